package compare

import (
	"context"
	"fmt"
	"math"

	"github.com/commq/commq/internal/rows"
)

// Fit fits an equation to the values of a measure by number of ranks and returns it as text.
type Fit func(byRanks map[int64]float64) (equation string, err error)

// leastPoints is the number of rank counts that an equation needs.
const leastPoints = 3

// Equation returns the equation of an exact measure over the number of ranks. The measure must have one value for
// each number of ranks, and the samples three or more such numbers.
func Equation(samples []Sample, key string, fit Fit) (string, error) {
	byRanks := map[int64]float64{}
	for i := range samples {
		s := &samples[i]
		v, known := s.Find(key)
		if !known || !v.Exact {
			return "", fmt.Errorf("run %s has no exact measure %s", s.Run, key)
		}
		if earlier, again := byRanks[int64(s.Ranks)]; again && earlier != float64(v.Value) {
			return "", fmt.Errorf("it differs between runs of %s", plural(int64(s.Ranks), "rank"))
		}
		byRanks[int64(s.Ranks)] = float64(v.Value)
	}
	if len(byRanks) < leastPoints {
		return "", fmt.Errorf("not enough data: runs of %d numbers of ranks, at least %d are needed", len(byRanks),
			leastPoints)
	}
	return fit(byRanks)
}

// AddEquations adds the equations of all exact measures of whole runs to a baseline.
func (b *Baseline) AddEquations(samples []Sample, fit Fit) error {
	b.Equations = map[string]string{}
	for _, v := range samples[0].Values {
		if !v.Exact || v.Item != "" || v.Unit == Fingerprint || v.Measure == "ranks" {
			continue
		}
		text, err := Equation(samples, v.Key(), fit)
		if err != nil {
			return fmt.Errorf("baseline: equation of %s: %w", v.Key(), err)
		}
		b.Equations[v.Key()] = text
	}
	return nil
}

// MeasureGrowth asks the query scaling how a measure grows with the number of ranks over the runs that ask has opened
// as one series. A run that lacks the measure is an error.
func MeasureGrowth(ctx context.Context, measure string, ask rows.Ask) (*Growth, error) {
	g := &Growth{Series: "the runs", Exponent: math.NaN(), Low: math.NaN(), High: math.NaN()}
	unknown := int64(0)
	err := ask(ctx, "scaling", map[string]string{"measure": measure}, func(r rows.Row) error {
		y, known := r.OptionalFloat("y")
		if !known {
			unknown++
			return nil
		}
		g.Ranks, g.Values = append(g.Ranks, int32(r.Int("ranks"))), append(g.Values, y)
		for column, to := range map[string]*float64{"slope": &g.Exponent, "slope_low": &g.Low, "slope_high": &g.High} {
			if x, known := r.OptionalFloat(column); known {
				*to = x
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if unknown > 0 {
		return nil, fmt.Errorf("%s of %s is not known: they do not hold it", measure, plural(unknown, "run"))
	}
	return g, nil
}
