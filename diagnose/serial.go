package diagnose

import (
	"context"
)

// keeping is how a run differs in which the ranks compute only a part of their excess, and nobody computes the rest.
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

// sharers is how many ranks could share the excess of a cause: those that compute it, one at a time, and those that wait
// meanwhile, on average.
func (f *Finding) sharers(ranks int) float64 {
	return min(float64(ranks), 1+float64(f.WaitNs)/float64(max(1, f.excessNs)))
}

// mostWait is the part of all ranks that compute or wait in a serial section at least: nobody else computes meanwhile.
const mostWait = 0.9

// muchMore is how many times as much as doing work later sharing it out gains at least, if it is called a serial section.
const muchMore = 1.5

// serialSections finds the causes that gain little if the work is done later: computing that the others can only wait
// for. Their gain is that of sharing it out among the ranks that wait, and of leaving it out.
func (d *Diagnosis) serialSections(ctx context.Context, w *whatIf) error {
	var gains []*gain
	var found []*Finding
	shared := make([]int64, len(d.Findings))
	for i := range d.Findings {
		f := &d.Findings[i]
		sharers := f.sharers(d.Ranks)
		if f.keeping == nil || sharers < mostWait*float64(d.Ranks) ||
			float64(f.excessNs)*(1-1/sharers) < muchMore*float64(f.GainNs) {
			continue
		}
		what := "serial section at " + siteText(f.Call, f.Place)
		gains = append(gains, &gain{what, []*change{f.keeping(1 / sharers)}, &shared[len(found)]},
			&gain{what, []*change{f.keeping(0)}, &f.MostNs})
		found = append(found, f)
	}
	if err := w.gains(ctx, gains); err != nil {
		return err
	}
	for i, f := range found {
		if float64(shared[i]) < max(muchMore*float64(f.GainNs), leastSimulated*float64(d.TimeNs)) {
			f.MostNs = 0
			continue
		}
		sharers, keeping := f.sharers(d.Ranks), f.keeping
		f.Rule, f.Advice, f.GainNs = SerialSection, advice[SerialSection], shared[i]
		f.without = func() *change { return keeping(1 / sharers) }
	}
	return nil
}
