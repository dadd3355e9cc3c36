package predict

import (
	"math"

	"github.com/commq/commq/predict/pattern"
)

// ComputeTime is what ranks of an extrapolated run compute.
type ComputeTime struct {
	// RankNs is the mean over ranks of all that one computes, in ns; LowNs and HighNs bound it with 95 %.
	RankNs float64 `json:"rank_ns"`
	LowNs  float64 `json:"low_ns"`
	HighNs float64 `json:"high_ns"`
	// Calls is how many calls have a compute time before them, Unknown how many none: no run has it.
	Calls   int64 `json:"calls"`
	Unknown int64 `json:"calls_unknown"`
	// Once is the part of RankNs that is from calls which one run alone made: nothing says how their times change.
	Once float64 `json:"once_share"`
}

// timesSaid is what is said of compute times while a run is made.
type timesSaid struct {
	grids map[*pattern.Grid]map[string]int32 // ranks of each role
	means map[*siteTimes]float64             // of what roles take, over the ranks
	laws  map[toldTime]partOf
}

// toldTime is a time before the calls of an event, partOf the law that said it: part is how much of what the law says.
type (
	toldTime struct {
		node int32
		ns   int64
	}
	partOf struct {
		law  *timeLaw
		part float64
	}
)

// compute is the time that the rank computes before a call, in ns; nil before one that no run has times of.
func (w *rankWriter) compute(x *siteModel, k madeCall) *int64 {
	s := w.Model.times().sites[x.node.ID]
	if s == nil {
		return nil
	}
	law, part := s.law(k.place)
	part *= s.role(roleOf(s.grid, w.ranks, w.rank)) / w.said.roleMean(s, w.ranks)
	ns := int64(math.Round(law.at(w.ranks).value * part))
	w.said.laws[toldTime{k.node, ns}] = partOf{law, part}
	return &ns
}

// role is what ranks of a role take to the mean; 1 where no run has it.
func (s *siteTimes) role(role string) float64 {
	if f, known := s.roles[role]; known {
		return f
	}
	return 1
}

// roleMean is the mean over ranks of what their roles take.
func (t *timesSaid) roleMean(s *siteTimes, ranks int32) float64 {
	grid := s.grid
	if mean, known := t.means[s]; known {
		return mean
	}
	if t.grids[grid] == nil {
		t.grids[grid] = map[string]int32{}
		for r := range ranks {
			t.grids[grid][roleOf(grid, ranks, r)]++
		}
	}
	sum := 0.0
	for _, role := range sortedKeys(t.grids[grid]) {
		sum += s.role(role) * float64(t.grids[grid][role])
	}
	mean := sum / float64(ranks)
	if mean <= 0 {
		mean = 1
	}
	t.means[s] = mean
	return mean
}

func newTimesSaid() *timesSaid {
	return &timesSaid{grids: map[*pattern.Grid]map[string]int32{}, means: map[*siteTimes]float64{}, laws: map[toldTime]partOf{}}
}

// computeTime sums up what was said, and gives the events of the signature their times. Laws err independently of one another; the law of all that a
// rank computes says something of its own, and both intervals count.
func (g *generator) computeTime() *ComputeTime {
	if g.times().refused != "" {
		return nil
	}
	c := &ComputeTime{}
	asked := map[*timeLaw]float64{} // calls, as many as their parts say
	var laws []*timeLaw             // of asked, in the order that they are met: sums come out the same each time
	sig := g.signer.sig
	occurrences := sig.occurrences()
	for _, n := range sig.nodes {
		if n.Loop {
			continue
		}
		v := &sig.Values[n.ID]
		sum := Spread{}
		for i, calls := range occurrences[n.ID] {
			ns := v.Events[i].ComputeNs
			if ns == nil {
				c.Unknown += calls
				continue
			}
			p := g.said.laws[toldTime{n.ID, *ns}]
			if _, known := asked[p.law]; !known {
				laws = append(laws, p.law)
			}
			asked[p.law] += p.part * float64(calls)
			sum.Count += calls
			sum.Sum += calls * *ns
		}
		if sum.Count > 0 {
			c.Calls += sum.Count
			v.Times = g.times().sites[n.ID].spread(sum)
		}
	}
	var low, high, once float64
	for _, l := range laws {
		s, calls := l.at(g.ranks), asked[l]
		c.RankNs += s.value * calls
		if l.curve == nil { // one point: it bounds nothing, and is told by itself
			once += s.value * calls
			continue
		}
		low += math.Pow((s.value-s.low)*calls, 2)
		high += math.Pow((s.high-s.value)*calls, 2)
	}
	c.LowNs, c.HighNs = c.RankNs-math.Sqrt(low), c.RankNs+math.Sqrt(high)
	if c.RankNs > 0 {
		c.Once = once / c.RankNs
	}
	for _, ns := range []*float64{&c.RankNs, &c.LowNs, &c.HighNs} {
		*ns /= float64(g.ranks)
	}
	if all := g.times().total; all.curve != nil {
		s := all.at(g.ranks)
		c.LowNs, c.HighNs = min(c.LowNs, s.low), max(c.HighNs, s.high)
	}
	c.LowNs = max(c.LowNs, 0)
	return c
}

// spread is how times with a sum are spread if they are as noisy as the site's.
func (s *siteTimes) spread(sum Spread) *Times {
	mean := float64(sum.Sum) / float64(sum.Count)
	sum.Low, sum.Median, sum.High = int64(mean), int64(mean), int64(mean)
	if n := s.noise; n != nil {
		of := func(permille int64) int64 { return int64(math.Round(mean * float64(permille) / 1000)) }
		sum.Low, sum.Median, sum.High = of(n.Low), of(n.Median), of(n.High)
	}
	return &Times{Compute: sum, Noise: s.noise}
}

// occurrences is how often all ranks together make each call of an event, by node and number of the call.
func (s *Signature) occurrences() [][]int64 { return s.occurrencesOf(s.Roots) }

// occurrencesOf is how often ranks with these roots together make each call of an event.
func (s *Signature) occurrencesOf(roots []int32) [][]int64 {
	of := make([][]int64, len(s.nodes))
	for _, n := range s.nodes {
		of[n.ID] = make([]int64, max(len(s.Values[n.ID].Events), len(s.Values[n.ID].Loops)))
	}
	for _, root := range roots {
		of[0][root]++
	}
	for _, n := range s.nodes { // a loop comes before what is in it
		v := &s.Values[n.ID]
		bodies := make([]int64, len(v.Bodies))
		for i, l := range v.Loops {
			if times := of[n.ID][i]; times > 0 {
				occur(l, times, bodies)
			}
		}
		for i, b := range v.Bodies {
			for k := 0; k < len(b); k += 2 {
				of[n.Children[b[k]].ID][b[k+1]] += bodies[i]
			}
		}
	}
	return of
}

// occur counts the numbers that items stand for.
func occur(items []Item, times int64, bodies []int64) {
	for i := range items {
		if x := &items[i]; x.Times > 0 {
			occur(x.Items, times*x.Times, bodies)
		} else {
			bodies[x.Value] += times
		}
	}
}

// computeNs is the compute time before a call of a rank, in ns: drawn from those that the event has, the same every time it is asked. It is 0 where the
// signature does not have it.
func (s *Signature) computeNs(rank int32, seq int64, n *Node, c *Call) int64 {
	v := &s.Values[n.ID]
	mean := v.meanNs(c)
	if math.IsNaN(mean) {
		return 0
	}
	return int64(math.Round(mean * v.Times.factor(uniformOf(uint64(rank)<<32|uint64(uint32(n.ID)), uint64(seq)))))
}

// uniformOf is a number from 0 to 1 that looks random and is the same every time (splitmix64).
func uniformOf(a, b uint64) float64 {
	z := a*0x9e3779b97f4a7c15 + b*0xd1b54a32d192ed03 + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float64(z>>11) / (1 << 53)
}
