package compute

import (
	"fmt"
	"math"

	"github.com/commq/commq/predict/model/join"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/predict/slots"
)

// When a slot gets a law of its own.
const (
	minRunsOfSlot  = 3     // runs that have the slot
	minShareOfSite = 0.002 // of the largest run's compute time, spent at the site
)

// Fit finds the laws of the compute times of runs. gridOf returns the grid for the roles of a site's ranks, or nil.
func Fit(t *join.Training, sites []*slots.Site, gridOf func(*slots.Site) *pattern.Grid) *Laws {
	c := &Laws{clock: t.Last().ComputeClock, sites: map[int32]*siteLaws{}}
	for _, s := range t.Runs {
		why := unusable(s)
		if why == "" && s.ComputeClock != c.clock {
			why = fmt.Sprintf(
				"run %q has compute times of the %s clock, others of the %s clock; capture all with --clock "+
					"cpu", s.Run, s.ComputeClock, c.clock)
		}
		if why != "" {
			return refuse(why)
		}
		if c.Doubt == "" {
			c.Doubt = doubt(s)
		}
	}
	c.Refused = c.Doubt
	f := newFitter(t, sites)
	for i := range t.Runs {
		f.addRun(i)
	}
	if f.calls == 0 {
		return refuse("no call of the runs has a compute time; capture them again with --clock cpu")
	}
	var totals []regress.Point
	for i, s := range t.Runs {
		totals = append(totals, regress.Point{Ranks: int64(s.Ranks), Value: f.total[i] / float64(s.Ranks)})
	}
	c.total = newTimeLaw(totals)
	for _, site := range sites {
		if s := f.fitSite(site, gridOf); s != nil {
			c.sites[site.Event.ID] = s
		}
	}
	c.spread = f.spreadOfRanks(sites, c.sites)
	return c
}

func refuse(why string) *Laws { return &Laws{clock: "none", Refused: why} }

// unusable returns the reason if a run's compute times cannot be used.
func unusable(s *signature.Signature) string {
	switch {
	case s.ComputeClock == "none" || s.ComputeClock == "":
		return fmt.Sprintf("run %q was captured without compute times; capture it again with --clock cpu", s.Run)
	case s.ComputeClock == "wall" && s.Oversubscribed != nil && *s.Oversubscribed:
		return fmt.Sprintf(
			"run %q has compute times of the wall clock, and its ranks were more than the CPUs: the times "+
				"include those of other ranks; capture it again with --clock cpu, or on as many CPUs as ranks", s.Run)
	}
	return ""
}

// doubt returns the reason if a run's compute times may include those of other ranks.
func doubt(s *signature.Signature) string {
	if s.ComputeClock != "wall" || s.Oversubscribed != nil {
		return ""
	}
	return fmt.Sprintf("the compute times of run %q are of the wall clock, and it does not say how many CPUs its hosts "+
		"have: if ranks shared CPUs, the times include those of other ranks; capture it again with --clock cpu, or, if "+
		"each rank had a CPU of its own, give --accept %s", s.Run, WallClock)
}

// WallClock is the name of that doubt.
const WallClock = "wall-clock"

// fitter collects compute times by site and slot.
type fitter struct {
	training *join.Training
	total    []float64 // ns, by run
	calls    int64
	sites    map[int32][]siteTotal       // by event, then run
	ranks    map[int32][][]rankSum       // by event, run and rank
	slots    map[*slots.Slot][][]float64 // by run and rank: mean ns before the calls of the slot; NaN: unknown
}

// rankSum is the time that a rank computed before its calls of an event.
type rankSum struct {
	ns    float64
	calls int64
}

// siteTotal sums up the times and counters of a site in a run.
type siteTotal struct {
	ns       float64
	calls    int64
	noise    *signature.Times // of the event with most calls that has noise
	counters counters
}

func newFitter(t *join.Training, sites []*slots.Site) *fitter {
	f := &fitter{training: t, total: make([]float64, len(t.Runs)), sites: map[int32][]siteTotal{},
		ranks: map[int32][][]rankSum{}, slots: map[*slots.Slot][][]float64{}}
	for _, site := range sites {
		f.sites[site.Event.ID] = make([]siteTotal, len(t.Runs))
		for _, s := range t.Runs {
			f.ranks[site.Event.ID] = append(f.ranks[site.Event.ID], make([]rankSum, s.Ranks))
		}
		for _, s := range site.Slots {
			f.slots[s] = make([][]float64, len(t.Runs))
		}
	}
	return f
}

// addRun adds the times of a run. It goes through the run's own template, which has the times, and through the joint
// one, which has the slots, side by side.
func (f *fitter) addRun(run int) {
	s := f.training.Runs[run]
	type timed struct {
		event *template.Node
		ns    float64
	}
	type sum struct {
		ns float64
		n  int64
	}
	var rows []timed
	for r := range s.Ranks {
		rows = rows[:0]
		var last *template.Node
		s.Walk(r, func(n *template.Node, c *signature.Call) {
			v := &s.Values[n.ID]
			rows = append(rows, timed{n, v.MeanNs(c, n != last) * v.Times.RankFactor(r)})
			last = n
		})
		sums, k := map[*signature.Call]sum{}, 0
		f.training.Sig.Walk(f.training.First[run]+r, func(n *template.Node, c *signature.Call) {
			event, ns := rows[k].event, rows[k].ns
			k++
			if math.IsNaN(ns) {
				return
			}
			f.addCall(run, n, s.Values[event.ID].Times, ns)
			if sums := f.ranks[n.ID]; sums != nil {
				sums[run][r].ns += ns
				sums[run][r].calls++
			}
			x := sums[c]
			sums[c] = sum{x.ns + ns, x.n + 1}
		})
		for slot, means := range f.slots {
			if means[run] == nil {
				means[run] = make([]float64, s.Ranks)
			}
			means[run][r] = math.NaN()
			if c := slot.Runs[run][r]; c != nil {
				if x := sums[c]; x.n > 0 {
					means[run][r] = x.ns / float64(x.n)
				}
			}
		}
	}
}

// addCall adds the time before a call of a joint event. times are those of the run's own event.
func (f *fitter) addCall(run int, joint *template.Node, times *signature.Times, ns float64) {
	total := &f.sites[joint.ID][run]
	total.ns += ns
	total.calls++
	f.total[run] += ns
	f.calls++
	if times != nil {
		if times.Noise != nil && (total.noise == nil || times.Noise.Count > total.noise.Noise.Count) {
			total.noise = times
		}
		total.counters.add(times)
	}
}

// fitSite finds the laws of a site; nil if its times are unknown.
func (f *fitter) fitSite(site *slots.Site, gridOf func(*slots.Site) *pattern.Grid) *siteLaws {
	s := &siteLaws{slots: map[slots.Place]*timeLaw{}, shares: map[slots.Place]float64{}, grid: gridOf(site)}
	f.divide(site, s)
	factors := make([][]float64, len(f.training.Runs)) // of roles, by run and rank
	for i, r := range f.training.Runs {
		factors[i] = s.factors(r.Ranks)
	}
	references := make([]float64, len(factors))
	var points []regress.Point
	var parts []counters
	last := -1
	for i, t := range f.sites[site.Event.ID] {
		if t.calls == 0 {
			continue
		}
		references[i] = reference(f.ranks[site.Event.ID][i], factors[i])
		points = append(points, regress.Point{Ranks: int64(f.training.Runs[i].Ranks), Value: references[i]})
		parts = append(parts, t.counters)
		last = i
		if t.noise != nil {
			s.noise, s.own, s.shared = t.noise.Noise, t.noise.AroundRanks(), t.noise.Shared
		}
	}
	if last < 0 {
		return nil
	}
	s.mean = newTimeLaw(points)
	s.mean.parts = newSplitLaw(points, parts)
	if len(site.Slots) > 1 {
		f.fitSlots(site, s, last, references, factors)
	}
	return s
}

// reference returns the time before a call in a run, for the reference role, from the times and factors of the ranks.
func reference(ranks []rankSum, factors []float64) float64 {
	ns, weight := 0.0, 0.0
	for r, x := range ranks {
		ns += x.ns
		weight += float64(x.calls) * factors[r]
	}
	return ns / weight
}

// fitSlots finds laws of a site's slots if the site matters and enough runs have the slot; else shares of the site's
// reference. last is the largest run that has the site; references and factors are those of each run.
func (f *fitter) fitSlots(site *slots.Site, s *siteLaws, last int, references []float64, factors [][]float64) {
	matters := f.sites[site.Event.ID][last].ns >= minShareOfSite*f.total[last]
	for _, slot := range site.Slots {
		var points []regress.Point
		for i, times := range f.slots[slot] {
			time, known := meanOver(times, factors[i])
			if !known {
				continue
			}
			points = append(points, regress.Point{Ranks: int64(f.training.Runs[i].Ranks), Value: time})
			if references[i] > 0 {
				s.shares[slot.Place] = time / references[i]
			}
		}
		if matters && len(points) >= minRunsOfSlot && s.mean.parts == nil {
			s.slots[slot.Place] = newTimeLaw(points)
		}
	}
}

// meanOver returns the sum of the times that are not NaN over the sum of their ranks' weights; nil weights are 1.
func meanOver(times, weights []float64) (mean float64, known bool) {
	sum := 0.0
	for r, t := range times {
		if !math.IsNaN(t) {
			mean += t
			known = true
			if weights == nil {
				sum++
			} else {
				sum += weights[r]
			}
		}
	}
	if sum > 0 {
		mean /= sum
	}
	return mean, known
}
