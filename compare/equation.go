package compare

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/commq/commq/internal/rows"
)

// Fit finds the exact law that the values of a measure follow over the number of ranks; nil if there is none.
type Fit func(byRanks map[int64]float64) (*Law, error)

// Law is an exact law of a measure over the number of ranks.
type Law struct {
	// Equation is the law as text. P is the number of ranks.
	Equation string
	// At returns the law's value at a number of ranks, and the bounds within which other laws that the values allow
	// are. ok is false where the law has no whole value.
	At func(ranks int64) (value, low, high float64, ok bool)
}

// leastPoints is the number of rank counts that an equation needs.
const leastPoints = 3

// noLaw says why a measure has no equation.
const noLaw = "its values follow no exact law of the number of ranks"

// hasEquation reports whether the measure of a value can have an equation: exact measures of whole runs do.
func hasEquation(v *Value) bool {
	return v.Exact && v.Item == "" && v.Unit != Fingerprint && v.Measure != "ranks"
}

// wholeKeys returns the keys of the baseline's measures that can have equations, in order.
func (b *Baseline) wholeKeys() (keys []string) {
	for _, section := range b.Sections {
		for key, value := range section.Exact {
			if v := valueOf(key, value, true); hasEquation(&v) && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

// byRanks returns the values of a measure by number of ranks.
func (b *Baseline) byRanks(key string) (map[int64]float64, error) {
	values := map[int64]float64{}
	for _, ranks := range slices.Sorted(maps.Keys(b.Sections)) {
		value, known := b.Sections[ranks].Exact[key]
		if slices.Contains(b.Sections[ranks].LeftOut, key) {
			return nil, fmt.Errorf("the runs of %s differ in it", plural(int64(ranks), "rank"))
		}
		if !known {
			return nil, fmt.Errorf("the runs of %s do not have it", plural(int64(ranks), "rank"))
		}
		values[int64(ranks)] = float64(value)
	}
	return values, nil
}

// AddEquations adds the equations of the measures that follow an exact law of the number of ranks, and returns why
// others have none.
func (b *Baseline) AddEquations(fit Fit) (leftOut []string, err error) {
	if len(b.Sections) < leastPoints {
		return nil, fmt.Errorf("baseline: equations: not enough data: runs of %d numbers of ranks, at least "+
			"%d are needed",
			len(b.Sections), leastPoints)
	}
	b.Equations = map[string]string{}
	for _, key := range b.wholeKeys() {
		values, err := b.byRanks(key)
		if err != nil {
			leftOut = append(leftOut, fmt.Sprintf("no equation of %s: %v", key, err))
			continue
		}
		law, err := fit(values)
		switch {
		case err != nil:
			return nil, fmt.Errorf("baseline: equation of %s: %w", key, err)
		case law == nil:
			leftOut = append(leftOut, fmt.Sprintf("no equation of %s: %s", key, noLaw))
		default:
			b.Equations[key] = law.Equation
		}
	}
	return leftOut, nil
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
