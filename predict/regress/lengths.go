package regress

import (
	"errors"
	"math"
)

// lengths are the values of the ranks of each role by the extent of an axis of the grid, if they depend on nothing else
// in the samples: runs on other numbers of ranks with the same extent have the same values. A size is often that of a
// block with a border which no law has, but the block is the same wherever the axis is divided alike.
type lengths struct {
	Axis int `json:"axis"`
	// Values are the least and the largest value by role and extent.
	Values map[string]map[int64]valueSpan `json:"values"`
}

// valueSpan is a range of values, with its ends.
type valueSpan struct {
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}

// lengthsOf returns the axes of a group's grid whose extent determines the values.
func lengthsOf(rows []row) (all []lengths) {
	if len(rows) == 0 || len(rows[0].g) < 2 {
		return nil
	}
	for a := range rows[0].g {
		if l, ok := lengthsAlong(rows, a); ok {
			all = append(all, l)
		}
	}
	return all
}

// lengthsAlong returns the values by the extent of an axis; false if runs with the same extent have different ones, or
// if no two runs have the same extent, or all have.
func lengthsAlong(rows []row, axis int) (l lengths, ok bool) {
	type at struct {
		role   string
		extent int64
		ranks  int64
	}
	byRun := map[at]valueSpan{}
	for i := range rows {
		r := &rows[i]
		if len(r.g) <= axis {
			return l, false
		}
		k, v := at{r.role(), r.g[axis], r.ranks}, float64(r.v)
		s, known := byRun[k]
		if !known {
			s = valueSpan{v, v}
		}
		byRun[k] = valueSpan{math.Min(s.Least, v), math.Max(s.Most, v)}
	}
	l = lengths{axis, map[string]map[int64]valueSpan{}}
	again, extents := false, map[int64]bool{}
	for k, s := range byRun {
		extents[k.extent] = true
		if l.Values[k.role] == nil {
			l.Values[k.role] = map[int64]valueSpan{}
		}
		if seen, known := l.Values[k.role][k.extent]; known && seen != s {
			return l, false
		} else if known {
			again = true
		}
		l.Values[k.role][k.extent] = s
	}
	return l, again && len(extents) > 1
}

// valuesOf returns the values of the ranks of a place's role on the extent that the axis has there; false if no run
// shows them.
func (l *lengths) valuesOf(r *row) (s valueSpan, seen bool) {
	if l.Axis >= len(r.g) {
		return s, false
	}
	s, seen = l.Values[r.role()][r.g[l.Axis]]
	return s, seen
}

// byLength takes the values that runs have with the same extent of an axis into an estimate: the value is one of them,
// and the interval includes them all.
func (l *Law) byLength(e *Expected, r *row) {
	first := true
	for i := range l.lengths {
		s, seen := l.lengths[i].valuesOf(r)
		if !seen {
			continue
		}
		if first && (e.Value < s.Least || e.Value > s.Most) {
			e.Value = s.Most
		}
		first = false
		e.Low, e.High = math.Min(e.Low, s.Least), math.Max(e.High, s.Most)
	}
}

// checkLengths returns an error if lengths that were read are malformed.
func checkLengths(all []lengths) error {
	for _, l := range all {
		if l.Axis < 0 || l.Values == nil {
			return errors.New("a law with lengths of no axis")
		}
	}
	return nil
}
