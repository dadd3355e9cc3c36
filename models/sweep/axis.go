package sweep

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/models"
)

// MaxPoints limits the combinations of a sweep.
const MaxPoints = 1_000_000

// Axis is a key of the machine and the values that it takes.
type Axis struct {
	// Key is a key of Machine.Set, Values are values as Set accepts them.
	Key    string
	Values []string
	// Numbers are the values as numbers, in the unit of the key; NaN for a word.
	Numbers []float64
	// Log marks a logarithmic range.
	Log bool
}

// rangeForm is A..B:log:N.
var rangeForm = regexp.MustCompile(`^([^.,:]+(?:\.[^.,:]+)?)\.\.([^,:]+):([a-z]+):([^,:]+)$`)

// ParseAxis reads KEY=VALUES, where VALUES are A..B:log:N, A..B:lin:N or a list with commas. Values that the machine
// takes only as whole numbers are rounded; equal ones come once.
func ParseAxis(m *models.Machine, text string) (*Axis, error) {
	key, values, ok := strings.Cut(text, "=")
	if !ok || values == "" {
		return nil, wrongAxis(text, "it has no values")
	}
	a := &Axis{Key: key}
	form := rangeForm.FindStringSubmatch(values)
	if form == nil {
		if strings.ContainsAny(values, ":") || strings.Contains(values, "..") {
			return nil, wrongAxis(text, "its values are neither a range nor a list")
		}
		for value := range strings.SplitSeq(values, ",") {
			if err := a.add(m, value); err != nil {
				return nil, fmt.Errorf("--sweep %s: %w", text, err)
			}
		}
		return a, nil
	}
	r, problem := parseRange(form)
	if problem != "" {
		return nil, wrongAxis(text, problem)
	}
	a.Log = r.log
	for i := range r.n {
		x := r.value(i)
		exact := a.add(m, strconv.FormatFloat(x, 'f', -1, 64))
		if exact == nil {
			continue
		}
		if err := a.add(m, strconv.FormatFloat(math.Round(x), 'f', -1, 64)); err != nil {
			return nil, fmt.Errorf("--sweep %s: %w", text, exact)
		}
	}
	return a, nil
}

func wrongAxis(text, problem string) error {
	return fmt.Errorf("--sweep %s: %s; want KEY=VALUES, for example latency_ns=1e3..1e5:log:20, "+
		"buses=1..16:lin:16 or buses=1,2,4,unlimited", text, problem)
}

// add adds a value that the machine takes, unless the axis has it.
func (a *Axis) add(m *models.Machine, value string) error {
	scratch := *m
	if err := scratch.Set(a.Key, value); err != nil {
		return err
	}
	if slices.Contains(a.Values, value) {
		return nil
	}
	x, err := strconv.ParseFloat(value, 64)
	if err != nil {
		x = math.NaN()
	}
	a.Values, a.Numbers = append(a.Values, value), append(a.Numbers, x)
	return nil
}

// CheckNumeric returns an error when a value is a word, which has no place on an axis of a picture or in a range.
func (a *Axis) CheckNumeric() error {
	for i, x := range a.Numbers {
		if math.IsNaN(x) {
			return fmt.Errorf("--sweep %s: %q is not a number, and has no place on an axis or in a range; "+
				"leave it out, or --plot and --within", a.Key, a.Values[i])
		}
	}
	return nil
}

// valueRange is n values from one number to a greater one.
type valueRange struct {
	from, to float64
	n        int
	log      bool
}

// parseRange reads the parts of A..B:log:N; problem is "" when they are right.
func parseRange(form []string) (r valueRange, problem string) {
	var err1, err2, err3 error
	r.from, err1 = strconv.ParseFloat(form[1], 64)
	r.to, err2 = strconv.ParseFloat(form[2], 64)
	r.n, err3 = strconv.Atoi(form[4])
	r.log = form[3] == "log"
	switch {
	case err1 != nil || err2 != nil || !(r.from < r.to) || math.IsInf(r.from, 0) || math.IsInf(r.to, 0):
		return r, "its range is not from a number to a greater one"
	case !r.log && form[3] != "lin":
		return r, fmt.Sprintf("%q is neither log nor lin", form[3])
	case r.log && r.from <= 0:
		return r, "a logarithmic range begins above 0"
	case err3 != nil || r.n < 2 || r.n > MaxPoints:
		return r, fmt.Sprintf("%q is not a number of values from 2 to %d", form[4], MaxPoints)
	}
	return r, ""
}

// value returns value i, rounded to about a hundredth of its distance to its neighbours.
func (r valueRange) value(i int) float64 {
	switch i {
	case 0:
		return r.from
	case r.n - 1:
		return r.to
	}
	f := float64(i) / float64(r.n-1)
	x, distance := r.from+(r.to-r.from)*f, (r.to-r.from)/float64(r.n-1)
	if r.log {
		x = r.from * math.Pow(r.to/r.from, f)
		distance = x * (1 - math.Pow(r.from/r.to, 1/float64(r.n-1)))
	}
	digits := math.Ceil(2 - math.Log10(distance))
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', max(0, int(digits)), 64), 64)
	if err != nil {
		return x
	}
	if digits < 0 {
		unit := math.Pow(10, -digits)
		rounded = math.Round(x/unit) * unit
	}
	return rounded
}
