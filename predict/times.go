package predict

import (
	"fmt"
	"math"
	"strings"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/regress"
)

// computeTimes says how long ranks compute before their calls at any number of ranks (section 4.1 and 4.2 of the paper, "computation pattern").
type computeTimes struct {
	// clock is that of the training runs; none where nothing is said of times, and why is in refused.
	clock   string
	refused string
	sites   map[int32]*siteTimes // by node of the joint template
	total   *timeLaw             // all that a rank computes
}

// siteTimes are those before the calls of a site.
type siteTimes struct {
	// mean is the law of the mean over ranks and calls. A slot that matters has one of its own; others are shares of it.
	mean   *timeLaw
	slots  map[place]*timeLaw
	shares map[place]float64
	// roles is what ranks of a role (first, last or inner along each axis) take to the mean.
	roles map[string]float64
	grid  *pattern.Grid // nil: a line of all ranks
	// noise is how times spread around their mean, in thousandths; nil: not known.
	noise *Spread
}

// timeLaw is a time against the number of ranks, in ns.
type timeLaw struct {
	points []regress.Point
	curve  *regress.Curve // nil: there is one point only
	// execution and stall are laws of its parts, where instructions and cycles were counted; see split.
	parts *splitLaw
	asked map[int32]timeSaid
}

// timeSaid is what a law says of a number of ranks.
type timeSaid struct{ value, low, high float64 }

// newTimeLaw finds the law of points; nil where there are none.
func newTimeLaw(points []regress.Point) *timeLaw {
	if len(points) == 0 {
		return nil
	}
	l := &timeLaw{points: points, asked: map[int32]timeSaid{}}
	if c, err := regress.Fit(points); err == nil {
		l.curve = c
	}
	return l
}

// at is what the law says: a time is not negative. One point alone says itself, and nothing of how wrong that is.
func (l *timeLaw) at(ranks int32) timeSaid {
	if s, known := l.asked[ranks]; known {
		return s
	}
	var s timeSaid
	switch {
	case l.parts != nil:
		s = l.parts.at(ranks)
	case l.curve == nil:
		v := l.points[0].Value
		s = timeSaid{v, 0, math.Inf(1)}
	default:
		p := l.curve.At(int64(ranks))
		s = timeSaid{max(p.Value, 0), max(p.Low, 0), max(p.High, 0)}
	}
	l.asked[ranks] = s
	return s
}

// What times are worth a law of their own.
const (
	leastRunsOfSlot  = 3     // runs that have the slot
	leastShareOfSlot = 0.002 // of the largest run's compute time
)

// unfitForTimes says why a run's compute times cannot be used; "" where they can.
func unfitForTimes(s *Signature) string {
	switch {
	case s.ComputeClock == "none" || s.ComputeClock == "":
		return fmt.Sprintf("run %q was captured without compute times; capture it again with --clock cpu", s.Run)
	case s.ComputeClock == "cpu":
		return ""
	case s.Oversubscribed == nil:
		return fmt.Sprintf("the compute times of run %q are of the wall clock, and it does not say how many CPUs its hosts have: had ranks shared them, the times would have the others' in them; capture it again with --clock cpu", s.Run)
	case *s.Oversubscribed:
		return fmt.Sprintf("run %q has compute times of the wall clock, and its ranks were more than the CPUs: the times have the other ranks' in them; capture it again with --clock cpu, or on as many CPUs as ranks", s.Run)
	}
	return ""
}

// OnCycle makes times those of a machine with a real cycle time in ns, where instructions and cycles were counted: what is executed takes its cycles,
// and waiting for memory as long as in the runs. 0 is the cycle time of the runs.
func (m *Model) OnCycle(ns float64) {
	for _, s := range m.times().sites {
		if p := s.mean.parts; p != nil && p.machineCycleNs != ns {
			p.machineCycleNs = ns
			clear(s.mean.asked)
		}
	}
}

// TimesRefused says why nothing is said of compute times, of which runs have none that can be used; "" where they are predicted.
func (m *Model) TimesRefused() string { return m.times().refused }

// computeTimes finds the laws of compute times.
func (m *Model) computeTimes() *computeTimes {
	c := &computeTimes{clock: m.t.runs[len(m.t.runs)-1].ComputeClock, sites: map[int32]*siteTimes{}}
	for _, s := range m.t.runs {
		if why := unfitForTimes(s); why != "" {
			return &computeTimes{clock: "none", refused: why}
		}
		if s.ComputeClock != c.clock {
			return &computeTimes{clock: "none", refused: fmt.Sprintf("run %q has compute times of the %s clock, others of the %s clock; capture all with --clock cpu", s.Run, s.ComputeClock, c.clock)}
		}
	}
	b := newTimesBuilder(m)
	for i := range m.t.runs {
		b.read(i)
	}
	var totals []regress.Point
	for i, s := range m.t.runs {
		totals = append(totals, regress.Point{Ranks: int64(s.Ranks), Value: b.total[i] / float64(s.Ranks)})
	}
	if b.calls == 0 {
		return &computeTimes{clock: "none", refused: "no call of the runs has a compute time; capture them again with --clock cpu"}
	}
	c.total = newTimeLaw(totals)
	for _, x := range m.sites {
		if s := b.site(x); s != nil {
			c.sites[x.node.ID] = s
		}
	}
	return c
}

// timesBuilder gathers compute times by the joint template.
type timesBuilder struct {
	*Model
	total []float64 // by run
	calls int64
	of    map[int32][]siteTotal // by node, then run
	slots map[*slot][][]float64 // by run and rank: mean time before the calls there; NaN: not known
}

// siteTotal is what a site has in a run.
type siteTotal struct {
	ns    float64
	calls int64
	noise *Spread
	count counters
}

func newTimesBuilder(m *Model) *timesBuilder {
	b := &timesBuilder{Model: m, total: make([]float64, len(m.t.runs)), of: map[int32][]siteTotal{}, slots: map[*slot][][]float64{}}
	for _, x := range m.sites {
		b.of[x.node.ID] = make([]siteTotal, len(m.t.runs))
		for _, s := range x.slots {
			b.slots[s] = make([][]float64, len(m.t.runs))
		}
	}
	return b
}

// meanNs is the mean time before a call of an event; NaN: not known.
func (v *Values) meanNs(c *Call) float64 {
	switch {
	case c.ComputeNs != nil:
		return float64(*c.ComputeNs)
	case v.Times == nil || v.Times.Compute.Count == 0:
		return math.NaN()
	}
	return float64(v.Times.Compute.Sum) / float64(v.Times.Compute.Count)
}

// read takes a run in: it goes through what each rank did in the run's own template and in the joint one side by side.
func (b *timesBuilder) read(run int) {
	s := b.t.runs[run]
	type done struct {
		node *Node
		ns   float64
	}
	type sum struct {
		ns float64
		n  int64
	}
	var rows []done
	for r := range s.Ranks {
		rows = rows[:0]
		s.Walk(r, func(n *Node, c *Call) { rows = append(rows, done{n, s.Values[n.ID].meanNs(c)}) })
		means, k := map[*Call]sum{}, 0
		b.t.Walk(b.t.base[run]+r, func(n *Node, c *Call) {
			own, ns := rows[k].node, rows[k].ns
			k++
			if math.IsNaN(ns) {
				return
			}
			to := &b.of[n.ID][run]
			to.ns += ns
			to.calls++
			b.total[run] += ns
			b.calls++
			if t := s.Values[own.ID].Times; t != nil {
				if t.Noise != nil && (to.noise == nil || t.Noise.Count > to.noise.Count) {
					to.noise = t.Noise
				}
				to.count.add(t)
			}
			x := means[c]
			means[c] = sum{x.ns + ns, x.n + 1}
		})
		for slot, times := range b.slots {
			if times[run] == nil {
				times[run] = make([]float64, s.Ranks)
			}
			times[run][r] = math.NaN()
			if c := slot.runs[run][r]; c != nil {
				if x := means[c]; x.n > 0 {
					times[run][r] = x.ns / float64(x.n)
				}
			}
		}
	}
}

// site finds the laws of a site; nil where nothing is known of its times.
func (b *timesBuilder) site(x *siteModel) *siteTimes {
	s := &siteTimes{slots: map[place]*timeLaw{}, shares: map[place]float64{}, roles: map[string]float64{}}
	var points []regress.Point
	var parts []counters
	last := -1
	for i, t := range b.of[x.node.ID] {
		if t.calls == 0 {
			continue
		}
		points = append(points, regress.Point{Ranks: int64(b.Training[i]), Value: t.ns / float64(t.calls)})
		parts = append(parts, t.count)
		last = i
		if t.noise != nil {
			s.noise = t.noise
		}
	}
	if last < 0 {
		return nil
	}
	s.mean = newTimeLaw(points)
	s.mean.split(parts)
	if len(x.slots) > 1 {
		b.slotTimes(x, s, last)
	}
	b.roleTimes(x, s)
	return s
}

// slotTimes finds what is known of the slots of a site: laws where they matter and enough runs have them, else shares of the site's mean.
func (b *timesBuilder) slotTimes(x *siteModel, s *siteTimes, last int) {
	matters := b.of[x.node.ID][last].ns >= leastShareOfSlot*b.total[last]
	for _, slot := range x.slots {
		var points []regress.Point
		for i, times := range b.slots[slot] {
			if mean, known := meanOf(times); known {
				points = append(points, regress.Point{Ranks: int64(b.Training[i]), Value: mean})
				if of := b.of[x.node.ID][i]; of.ns > 0 {
					s.shares[slot.place] = mean * float64(of.calls) / of.ns
				}
			}
		}
		if matters && len(points) >= leastRunsOfSlot && s.mean.parts == nil {
			s.slots[slot.place] = newTimeLaw(points)
		}
	}
}

// meanOf is the mean of what is known.
func meanOf(times []float64) (mean float64, known bool) {
	n := 0
	for _, t := range times {
		if !math.IsNaN(t) {
			mean += t
			n++
		}
	}
	return mean / float64(max(n, 1)), n > 0
}

// roleTimes finds what ranks of a role take to the mean.
func (b *timesBuilder) roleTimes(x *siteModel, s *siteTimes) {
	s.grid = b.grid(x)
	took, mean := map[string]float64{}, map[string]float64{}
	for _, slot := range x.slots {
		for i, times := range b.slots[slot] {
			m, known := meanOf(times)
			if !known || m == 0 {
				continue
			}
			for r, t := range times {
				if !math.IsNaN(t) {
					role := roleOf(s.grid, b.Training[i], int32(r))
					took[role] += t
					mean[role] += m
				}
			}
		}
	}
	for role, of := range mean {
		s.roles[role] = took[role] / of
	}
}

// roleOf is a rank's place along each axis: only, first, inner or last.
func roleOf(g *pattern.Grid, ranks, rank int32) string {
	dims, coords := []int32{ranks}, []int32{rank}
	if g != nil {
		if d, ok := g.Dims(ranks); ok {
			if c, ok := g.Coords(ranks, rank); ok {
				dims, coords = d, c
			}
		}
	}
	var role strings.Builder
	for a, d := range dims {
		switch {
		case d == 1:
			role.WriteByte('o')
		case coords[a] == 0:
			role.WriteByte('f')
		case coords[a] == d-1:
			role.WriteByte('l')
		default:
			role.WriteByte('i')
		}
	}
	return role.String()
}

// law is that of a place, and what share of it the place has.
func (s *siteTimes) law(at place) (l *timeLaw, share float64) {
	if l := s.slots[at]; l != nil {
		return l, 1
	}
	if share, known := s.shares[at]; known {
		return s.mean, share
	}
	return s.mean, 1
}

// factor is how a time is to its mean: u, from 0 to 1, is a place in the distribution. Between the quartiles it is linear; below the first one it
// goes down as far as to the median, above the third one it is exponential with what is left of the mean.
func (t *Times) factor(u float64) float64 {
	if t == nil || t.Noise == nil || t.Noise.Count < 4 || t.Noise.Sum == 0 {
		return 1
	}
	n := t.Noise
	mean := float64(n.Sum) / float64(n.Count)
	low, mid, high := float64(n.Low)/mean, float64(n.Median)/mean, float64(n.High)/mean
	least := max(0, 2*low-mid)
	// The mean of the four quarters is 1.
	tail := 4 - (least+low)/2 - (low+mid)/2 - (mid+high)/2 - high
	scale := 1.0
	if tail < 0 {
		scale, tail = 4/(4-tail), 0
	}
	var f float64
	switch q := 4 * u; {
	case q < 1:
		f = least + q*(low-least)
	case q < 2:
		f = low + (q-1)*(mid-low)
	case q < 3:
		f = mid + (q-2)*(high-mid)
	default:
		f = high - tail*math.Log(max(4-q, 1e-9))
	}
	return scale * f
}
