package diagnose

import (
	"context"
	"slices"
)

// keeping returns the change after which the ranks compute only this part of their excess, and nobody computes the
// rest.
func (c *cause) keeping(part float64) *change {
	k := &change{scale: map[cell]*scaling{}, at: newWalk(nil)}
	for _, p := range c.parts {
		for rank, excess := range p.excess {
			if computed := p.computed[rank]; computed > 0 {
				factor := max(0, 1-(1-part)*float64(excess)/float64(computed))
				for _, site := range p.sites {
					k.scale[cell{rank, noSite, site}] = &scaling{factor: []float64{factor}, more: []int64{0}}
				}
			}
		}
	}
	return k
}

// sharers returns how many ranks could share the excess of a cause: the one that computes it and, on average, those
// that wait meanwhile.
func (f *Finding) sharers(ranks int) float64 {
	return min(float64(ranks), 1+float64(f.WaitNs)/float64(max(1, f.excessNs)))
}

// A section is serial only if at least leastWaiting of all ranks compute in it or wait for it: nobody else computes
// meanwhile.
const leastWaiting = 0.9

// A section is serial only if sharing its work out gains at least muchMore times what doing it later gains.
const muchMore = 1.5

// serialSections finds the causes that gain little if the work is done later: computing of one rank for which the
// others can only wait. It sets their gains: GainNs of sharing the work among the ranks that wait, MostNs of leaving it
// out.
func (q *search) serialSections(ctx context.Context) error {
	var found []*section
	var gains []*gain
	for i := range q.d.Findings {
		f := &q.d.Findings[i]
		if !q.maybeSerial(f) {
			continue
		}
		sharers, keeping := f.sharers(q.d.Ranks), f.keeping
		s := &section{Finding: f, shared: func() *change { return keeping(1 / sharers) }}
		what := "serial section at " + siteText(f.Call, f.Place)
		gains = append(gains, &gain{what, []*change{s.shared()}, &s.sharedNs}, &gain{what, []*change{f.keeping(0)},
			&s.mostNs})
		found = append(found, s)
	}
	if err := q.w.gains(ctx, gains); err != nil {
		return err
	}
	found = slices.DeleteFunc(found, func(s *section) bool {
		return float64(s.sharedNs) < max(muchMore*float64(s.GainNs), leastSimulated*float64(q.d.TimeNs))
	})
	if err := q.besideOthers(ctx, found); err != nil {
		return err
	}
	for _, s := range found {
		if float64(s.besideNs) >= leastBeside*float64(s.sharedNs) {
			s.Rule, s.Advice, s.GainNs, s.MostNs, s.without = SerialSection, advice[SerialSection], s.sharedNs,
				s.mostNs, s.shared
		}
	}
	return nil
}

// section is a finding that may be a serial section.
type section struct {
	*Finding
	// shared makes the change after which the ranks that wait share the work.
	shared func() *change
	// sharedNs and mostNs are the gains of sharing the work and of leaving it out. besideNs is the gain of sharing it
	// in a run without the other finding that gains most.
	sharedNs, mostNs, besideNs int64
}

// maybeSerial reports whether one rank computes while nearly all others wait, and sharing that may gain much more than
// doing it later. Several ranks that compute in turn are variation, or a chain.
func (q *search) maybeSerial(f *Finding) bool {
	sharers := f.sharers(q.d.Ranks)
	return f.keeping != nil && !f.Bound && len(f.Ranks) == 1 && sharers >= leastWaiting*float64(q.d.Ranks) &&
		float64(f.excessNs)*(1-1/sharers) >= muchMore*float64(f.GainNs)
}

// A section is serial only if it still gains leastBeside of its gain in a run without the other finding that gains
// most: otherwise the ranks wait because of that finding.
const leastBeside = 0.5

// besideOthers sets besideNs of the sections.
func (q *search) besideOthers(ctx context.Context, found []*section) error {
	var other *Finding
	for i := range q.d.Findings {
		f := &q.d.Findings[i]
		if f.without != nil && !slices.ContainsFunc(found,
			func(s *section) bool { return s.Finding == f }) && (other == nil || f.GainNs > other.GainNs) {
			other = f
		}
	}
	var gains []*gain
	for _, s := range found {
		if s.besideNs = s.sharedNs; other != nil && other.GainNs > 0 {
			gains = append(gains, &gain{"serial section at " + siteText(s.Call, s.Place) + " " +
				"beside " + string(other.Rule), []*change{other.without(), s.shared()}, &s.besideNs})
		}
	}
	if err := q.w.gains(ctx, gains); err != nil {
		return err
	}
	if len(gains) > 0 {
		for _, s := range found {
			s.besideNs -= other.GainNs
		}
	}
	return nil
}
