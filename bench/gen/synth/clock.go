package synth

import (
	"math"
	"math/bits"
	"sync"

	"github.com/commq/commq/schema"
)

// Quantiles are those of a distribution of times in ns, at equal distances from 0 to 1.
type Quantiles []int32

// draws is the size of the table that a distribution is drawn from; a power of two.
const draws = 1 << 12

// table samples the distribution at (i+1/2)/draws, interpolating the logarithm between quantiles.
func (q Quantiles) table() []int32 {
	t := make([]int32, draws)
	for i := range t {
		x := (float64(i) + .5) / draws * float64(len(q)-1)
		k := int(x)
		a, b := math.Log(float64(max(1, q[k]))), math.Log(float64(max(1, q[min(k+1, len(q)-1)])))
		t[i] = int32(math.Round(math.Exp(a + (b-a)*(x-float64(k)))))
	}
	return t
}

func scaled(t []int32, share float64) []int32 {
	for i := range t {
		t[i] = max(1, int32(float64(t[i])*share))
	}
	return t
}

// mix returns a random number determined by its arguments (splitmix64).
func mix(seed, a, b uint64) uint64 {
	x := seed + a*0x9e3779b97f4a7c15 + b*0xd1342543de82ef95
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// times has the times of the calls in some turns of a section: op i of turn t at t*ops+i.
type times struct {
	start, end []int64
	compute    []int32
}

func (t *times) resize(n int) {
	if cap(t.start) < n {
		t.start, t.end, t.compute = make([]int64, n), make([]int64, n), make([]int32, n)
	}
	t.start, t.end, t.compute = t.start[:n], t.end[:n], t.compute[:n]
}

// clock executes a program in virtual time.
type clock struct {
	p       *Program
	seed    uint64
	threads int
	now     []int64 // by rank
	gaps    [][]int32
	calls   [][]int32
}

func newClock(p *Program, seed uint64, threads int) *clock {
	c := &clock{p: p, seed: seed, threads: threads, now: make([]int64, p.Ranks)}
	for _, t := range p.Timings {
		c.gaps, c.calls = append(c.gaps, t.Gap.table()), append(c.calls, scaled(t.Call.table(), p.OwnShare))
	}
	return c
}

// run executes turns [first, last) of section number k into t.
func (c *clock) run(k int, first, last int64, t *times) {
	s := c.p.Sections[k]
	n := len(s.ops)
	t.resize(int(last-first) * n)
	groups := make([]int64, len(s.groups))
	for turn := first; turn < last; turn++ {
		at := int(turn-first) * n
		x := turnClock{clock: c, s: s, salt: mix(c.seed, uint64(k)+1, uint64(turn)), start: t.start[at:][:n],
			end: t.end[at:][:n], compute: t.compute[at:][:n], groups: groups}
		for r, segments := range s.rounds {
			x.round(segments)
			for _, g := range s.ready[r] {
				groups[g] = 0
				for _, i := range s.groups[g] {
					groups[g] = max(groups[g], x.start[i])
				}
			}
		}
	}
}

// turnClock executes one turn.
type turnClock struct {
	*clock
	s          *Section
	salt       uint64
	start, end []int64
	compute    []int32
	groups     []int64 // the entry time of the last member
}

// manySegments is the number from which segments are divided among threads.
const manySegments = 1 << 14

func (x *turnClock) round(segments []segment) {
	if len(segments) < manySegments || x.threads < 2 {
		for i := range segments {
			x.segment(&segments[i])
		}
		return
	}
	var wg sync.WaitGroup
	each := (len(segments) + x.threads - 1) / x.threads
	for from := 0; from < len(segments); from += each {
		part := segments[from:min(from+each, len(segments))]
		wg.Go(func() {
			for i := range part {
				x.segment(&part[i])
			}
		})
	}
	wg.Wait()
}

func (x *turnClock) segment(g *segment) {
	i, now := g.first, x.now[g.rank]
	if g.resumed {
		if i == g.last {
			return
		}
		now = x.leave(i, now)
		i++
	}
	for ; i < g.last; i++ {
		now = x.leave(i, x.enter(i, now))
	}
	if g.enters {
		now = x.enter(i, now)
	}
	x.now[g.rank] = now
}

func (x *turnClock) enter(i int32, now int64) int64 {
	u := mix(x.salt, uint64(i), 1)
	gap := x.gaps[x.s.ops[i].Timing][u%draws]
	now += int64(gap)
	x.start[i], x.compute[i] = now, gap
	return now
}

// leave returns the time at which a call that begins at now returns: when everything that it waits for has arrived.
func (x *turnClock) leave(i int32, now int64) int64 {
	s, u := x.s, mix(x.salt, uint64(i), 2)
	if g := s.groupOf[i]; g != None {
		now = max(now, x.collective(i, g))
	} else {
		for k, last := s.waitsFor(i); k <= last; k++ {
			if from := s.from[k]; from != None && (k == i || s.done[k] == i) {
				now = max(now, x.start[from]+x.p.Network.LatencyNs+int64(s.ops[k].RecvBytes)*1000/x.p.Network.BytesPerUs)
			}
		}
	}
	now += int64(x.calls[s.ops[i].Timing][u%draws])
	x.end[i] = now
	return now
}

// collective returns the earliest end of an operation.
func (x *turnClock) collective(i, g int32) int64 {
	s, o := x.s, &x.s.ops[i]
	members := len(s.groups[g])
	cost := x.p.Network.LatencyNs * int64(bits.Len(uint(members-1)))
	switch schema.CallID(o.Call) {
	case schema.CallBcast:
		if s.isRoot(i) {
			return 0
		}
		return x.start[s.rootOf(g)] + cost
	case schema.CallReduce:
		if !s.isRoot(i) {
			return 0
		}
	case schema.CallAlltoall:
		cost = x.p.Network.LatencyNs*int64(members) + int64(o.SendBytes)*1000/x.p.Network.BytesPerUs
	}
	return x.groups[g] + cost
}
