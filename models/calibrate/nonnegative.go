package calibrate

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// nonNegative solves the least squares problem a x = b with x >= 0, by the active set method of Lawson and Hanson
// (Solving Least Squares Problems, 1974, chapter 23). a has at least one row, and a column for each unknown. The norms
// of the columns should be similar.
func nonNegative(a *mat.Dense, b []float64) []float64 {
	rows, n := a.Dims()
	x, free := make([]float64, n), make([]bool, n)
	rest := mat.NewVecDense(rows, nil)
	for range 3 * n { // as many exchanges as are ever needed in practice; each step only makes the fit better
		rest.MulVec(a, mat.NewVecDense(n, x))
		rest.SubVec(mat.NewVecDense(rows, b), rest)
		enter, steepest := -1, 1e-12*norm(b)
		for j := range n {
			if g := mat.Dot(a.ColView(j), rest) / max(mat.Norm(a.ColView(j), 2),
				math.SmallestNonzeroFloat64); !free[j] && g > steepest {
				enter, steepest = j, g
			}
		}
		if enter < 0 {
			return x
		}
		free[enter] = true
		for {
			z := solveFree(a, b, free)
			if z == nil { // the column depends on the others
				free[enter], x[enter] = false, 0
				return x
			}
			alpha, blocking := 1.0, -1
			for j := range n {
				if free[j] && z[j] <= 0 && x[j]/(x[j]-z[j]) < alpha {
					alpha, blocking = x[j]/(x[j]-z[j]), j
				}
			}
			for j := range n {
				x[j] += alpha * (z[j] - x[j])
			}
			if blocking < 0 {
				break
			}
			free[blocking], x[blocking] = false, 0
		}
	}
	return x
}

// solveFree returns the least squares solution in the free columns, with 0 in the others; nil when the free columns are
// not independent.
func solveFree(a *mat.Dense, b []float64, free []bool) []float64 {
	rows, n := a.Dims()
	var columns []int
	for j := range n {
		if free[j] {
			columns = append(columns, j)
		}
	}
	if len(columns) > rows {
		return nil
	}
	part := mat.NewDense(rows, len(columns), nil)
	for k, j := range columns {
		part.SetCol(k, mat.Col(nil, j, a))
	}
	var qr mat.QR
	qr.Factorize(part)
	if qr.Cond() > 1e12 {
		return nil
	}
	var found mat.VecDense
	if err := qr.SolveVecTo(&found, false, mat.NewVecDense(rows, b)); err != nil {
		return nil
	}
	x := make([]float64, n)
	for k, j := range columns {
		x[j] = found.AtVec(k)
	}
	return x
}

func norm(b []float64) float64 { return mat.Norm(mat.NewVecDense(len(b), b), 2) }
