package compare

import (
	"fmt"
	"maps"
	"slices"

	"github.com/commq/commq/internal/nearest"
)

// equations checks that measures follow the equations of the baseline at any number of ranks. Where the baseline has
// runs of that many, their values count.
func (j *judge) equations(runs []int) {
	b := j.e.Baseline
	if b == nil || b.Equations == nil {
		j.missing("the baseline has no equations; write it over runs of three numbers of ranks or more: " +
			"commq check --write-baseline --equations")
		return
	}
	var alike []int
	for _, i := range runs {
		if section := b.sectionLike(&j.e.New[i], j.e.Kept[i]); j.keepsAs(i, section) {
			alike = append(alike, i)
		}
	}
	keys := slices.DeleteFunc(b.wholeKeys(), func(key string) bool {
		_, err := b.byRanks(key)
		return err != nil
	})
	for _, pattern := range j.Measures {
		if !slices.ContainsFunc(keys, func(key string) bool { return matched(pattern, key) }) {
			j.missing("the baseline has no equation of %q%s", pattern, nearest.Hint(pattern, keys))
		}
	}
	for _, key := range keys {
		if len(alike) > 0 && j.matches(key) {
			j.equation(key, alike)
		}
	}
}

// sectionLike returns the section to compare a run's kept rows with: the one for its number of ranks, else one with the
// same kept rows, else any.
func (b *Baseline) sectionLike(s *Sample, kept string) (like *Section) {
	if section := b.Sections[s.Ranks]; section != nil {
		return section
	}
	for _, ranks := range slices.Sorted(maps.Keys(b.Sections)) {
		if section := b.Sections[ranks]; like == nil || section.Kept == kept {
			like = section
		}
	}
	return like
}

// equation checks one measure of runs.
func (j *judge) equation(key string, runs []int) {
	law, why := j.law(key)
	before := len(j.result.Findings)
	var unknown []int32
	for _, i := range runs {
		s := &j.e.New[i]
		v, known := s.Find(key)
		section := j.e.Baseline.Sections[s.Ranks]
		switch {
		case !known || !v.Exact:
			j.missing("run %s has no exact measure %s", s.Run, key)
		case section != nil:
			if want := section.Exact[key]; want != v.Value {
				j.broken(Finding{run: s.Run, Message: fmt.Sprintf("%s of run %s is %s, the baseline has %s "+
					"with %s", key,
					s.Run, number(v.Value, v.Unit), number(want, v.Unit), plural(int64(s.Ranks), "rank"))})
			}
		case law == nil:
			if !slices.Contains(unknown, s.Ranks) {
				unknown = append(unknown, s.Ranks)
			}
		default:
			j.follows(law, s, &v)
		}
	}
	switch {
	case len(unknown) > 0:
		j.missing("%s with %s ranks has nothing to compare with: %s", key, list(unknown), why)
	case len(j.result.Findings) == before && law != nil:
		j.note("%s is %s", key, law.Equation)
	case len(j.result.Findings) == before:
		j.note("%s is as in the baseline", key)
	}
}

// law returns the law of the baseline's values of a measure, or why there is none and what to do.
func (j *judge) law(key string) (law *Law, why string) {
	want, has := j.e.Baseline.Equations[key]
	if !has {
		return nil, noLaw + "; leave it out of the rule, or write the baseline with runs of so many"
	}
	values, err := j.e.Baseline.byRanks(key)
	if err == nil {
		law, err = j.e.Fit(values)
	}
	switch {
	case err != nil:
		return nil, err.Error()
	case law == nil || law.Equation != want:
		return nil, fmt.Sprintf("the equation %s is not the exact law of the baseline's values; write the "+
			"baseline again",
			want)
	}
	return law, ""
}

// follows compares a value with that of a law.
func (j *judge) follows(law *Law, s *Sample, v *Value) {
	value, low, high, ok := law.At(int64(s.Ranks))
	is, ranks := float64(v.Value), plural(int64(s.Ranks), "rank")
	if !ok {
		j.missing("%s of run %s is %s, and the baseline's equation %s has no whole value with %s; write the baseline "+
			"with runs of so many", v.Key(), s.Run, number(v.Value, v.Unit), law.Equation, ranks)
		return
	}
	if is == value {
		return
	}
	text := fmt.Sprintf("%s of run %s is %s, the baseline's equation %s says %s with %s", v.Key(), s.Run,
		number(v.Value, v.Unit), law.Equation, number(int64(value), v.Unit), ranks)
	if low <= is && is <= high {
		j.missing("%s, but its runs are too few to exclude other laws; write it over more numbers of ranks", text)
		return
	}
	j.broken(Finding{run: s.Run, Message: text})
}
