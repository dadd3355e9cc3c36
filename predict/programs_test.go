package predict_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
)

// block returns the length of part x of n cells divided into g parts, of which the first may be longer.
func block(n, g, x int) int {
	b := n / g
	if x < n%g {
		b++
	}
	return b
}

// squarish returns the extents of MPI_Dims_create for two dimensions: as equal as possible, the larger first.
func squarish(ranks int) (rows, columns int) {
	for columns = 1; (columns+1)*(columns+1) <= ranks; columns++ {
	}
	for ranks%columns != 0 {
		columns--
	}
	return ranks / columns, columns
}

// ninePoint returns a nine-point stencil on 100 x 84 cells without periodic borders: one call in a loop over eight
// directions, some of which ranks at the border skip.
func ninePoint(ranks int) *signature.Run {
	rows, columns := squarish(ranks)
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		row, column := rank/columns, rank%columns
		for range 3 {
			for d := range 9 {
				dr, dc := d/3-1, d%3-1
				to := [2]int{row + dr, column + dc}
				if d == 4 || to[0] < 0 || to[0] >= rows || to[1] < 0 || to[1] >= columns {
					continue
				}
				bytes := 8
				if dr == 0 {
					bytes *= block(100, rows, row)
				}
				if dc == 0 {
					bytes *= block(84, columns, column)
				}
				all = append(all, message(0, to[0]*columns+to[1], 10+d, bytes))
			}
			all = append(all, message(1, rank, 3, 16))
		}
		return all
	})
}

// doubling is recursive doubling: one call sends a message of twice the size in each step.
func doubling(ranks int) *signature.Run {
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		for i, by := 0, 1; by < ranks; i, by = i+1, 2*by {
			all = append(all, message(0, rank^by, 7, 4<<i))
		}
		return append(all, message(1, (rank+1)%ranks, 3, 4097))
	})
}

// wavefront sweeps over a grid from one corner to the other, a plane at a time.
func wavefront(ranks int) *signature.Run {
	rows, columns := squarish(ranks)
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		row, column := rank/columns, rank%columns
		for range 11 {
			if column+1 < columns {
				all = append(all, message(0, rank+1, 5, 8*block(60, rows, row)))
			}
			if row+1 < rows {
				all = append(all, message(1, rank+columns, 6, 8*block(90, columns, column)))
			}
		}
		return all
	})
}

// Programs unlike those that the forms of laws were made for are predicted exactly.
func TestPrograms(t *testing.T) {
	for _, c := range []struct {
		name     string
		run      func(ranks int) *signature.Run
		training []int
		asked    []int
	}{
		{"nine-point", ninePoint, []int{4, 6, 8, 9, 12, 16}, []int{20, 24}},
		{"doubling", doubling, []int{4, 8, 16, 32}, []int{64, 128}},
		{"wavefront", wavefront, []int{4, 6, 9, 12, 16}, []int{20, 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var runs []*signature.Signature
			for _, ranks := range c.training {
				runs = append(runs, sign(t, c.run(ranks)))
			}
			m, err := model.New(runs)
			if err != nil {
				t.Fatal(err)
			}
			for _, ranks := range c.asked {
				x, err := generate.Predict(context.Background(), m, int32(ranks), generate.Options{})
				if err != nil {
					t.Fatal(err)
				}
				s := report.Compare(x.Signature, sign(t, c.run(ranks)))
				if !isPerfect(s) {
					t.Errorf("at %d ranks: %+v", ranks, s)
				}
			}
		})
	}
}

// masterWorker has a rank 0 that sends work on request, in an order that cannot be predicted.
func masterWorker(ranks int) *signature.Run {
	g := rand.New(rand.NewPCG(uint64(ranks), 11))
	order := make([]int, 8*ranks)
	for i := range order {
		order[i] = 1 + g.IntN(ranks-1)
	}
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		for i, to := range order {
			switch rank {
			case 0:
				all = append(all, message(0, to, 1, 4096+i))
			case to:
				all = append(all, message(1, 0, 2, 8))
			}
		}
		return all
	})
}

// unstructured exchanges with neighbours on an irregularly partitioned mesh.
func unstructured(ranks int) *signature.Run {
	g := rand.New(rand.NewPCG(uint64(ranks), 5))
	to := make([][]int, ranks)
	for r := range to {
		for range 3 + g.IntN(4) {
			to[r] = append(to[r], g.IntN(ranks))
		}
	}
	return testruns.Messages(ranks, func(rank int) (all []testruns.Message) {
		for range 3 {
			for _, peer := range to[rank] {
				all = append(all, message(0, peer, 9, 8*(100+peer%7)))
			}
			all = append(all, message(1, rank, 3, 16))
		}
		return all
	})
}

// Destinations that are decided at run time, or by data, cannot be predicted.
func TestProgramsWithoutLaws(t *testing.T) {
	for name, program := range map[string]func(int) *signature.Run{"master-worker": masterWorker,
		"unstructured": unstructured} {
		t.Run(name, func(t *testing.T) {
			var runs []*signature.Signature
			for _, ranks := range []int{4, 8, 12, 16} {
				runs = append(runs, sign(t, program(ranks)))
			}
			m, err := model.New(runs)
			if err != nil {
				t.Fatal(err)
			}
			if share := float64(m.Unexplained) / float64(m.Traffic); share < 0.3 {
				t.Errorf("%.2f of the messages are unexplained, want more", share)
			}
			if _, err := generate.Predict(context.Background(), m, 24, generate.Options{}); err == nil ||
				!strings.Contains(err.Error(), "not known there") {
				t.Errorf("got %v", err)
			}
		})
	}
}
