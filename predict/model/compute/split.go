package compute

import (
	"math"

	"github.com/commq/commq/predict/regress"
	"github.com/commq/commq/predict/signature"
)

// counters are the instructions and cycles of a site in a run, summed over calls and ranks.
type counters struct {
	times        map[*signature.Times]bool // that were added
	instructions float64
	cycles       float64
	ns           float64
	calls        float64
}

// add adds the counters of an event, once.
func (c *counters) add(t *signature.Times) {
	if t.Instructions == nil || t.Cycles == nil || c.times[t] {
		return
	}
	if c.times == nil {
		c.times = map[*signature.Times]bool{}
	}
	c.times[t] = true
	c.instructions += float64(t.Instructions.Sum)
	c.cycles += float64(t.Cycles.Sum)
	c.ns += float64(t.Compute.Sum)
	c.calls += float64(t.Compute.Count)
}

// splitLaw is a compute time as the sum of two parts with separate trends (section 4.2 of the paper): the execution
// time, in which the processor executes instructions, and the stall time, in which it waits for memory.
//
//	T = instructions x CPI x cycle + stall
//
// CPI is the least number of cycles per instruction that the site had in any run: what it takes with hardly any cache
// misses.
type splitLaw struct {
	instructions *timeLaw // per call
	stall        *timeLaw // ns per call
	cpi, cycleNs float64
	// machineCycleNs is the cycle time to predict for; 0: that of the runs.
	machineCycleNs float64
}

// newSplitLaw separates execution and stalls. counts has the counters for each point; the result is nil unless all
// runs counted instructions and cycles.
func newSplitLaw(points []regress.Point, counts []counters) *splitLaw {
	s := &splitLaw{cpi: math.Inf(1)}
	var cycles, ns float64
	for _, c := range counts {
		if c.instructions <= 0 || c.cycles <= 0 || c.ns <= 0 {
			return nil
		}
		s.cpi = min(s.cpi, c.cycles/c.instructions)
		cycles += c.cycles
		ns += c.ns
	}
	if cycles == 0 || len(counts) != len(points) {
		return nil
	}
	s.cycleNs = ns / cycles
	var instructions, stall []regress.Point
	for i, c := range counts {
		executionNs := c.instructions * s.cpi * s.cycleNs
		instructions = append(instructions, regress.Point{Ranks: points[i].Ranks, Value: c.instructions / c.calls})
		stall = append(stall,
			regress.Point{Ranks: points[i].Ranks, Value: max(points[i].Value-executionNs/c.calls, 0)})
	}
	s.instructions, s.stall = newTimeLaw(instructions), newTimeLaw(stall)
	return s
}

// evaluate adds up the two parts, whose errors are independent.
func (s *splitLaw) evaluate(ranks int32) interval {
	cycle := s.cycleNs
	if s.machineCycleNs > 0 {
		cycle = s.machineCycleNs
	}
	i, w := s.instructions.evaluate(ranks), s.stall.evaluate(ranks)
	per := s.cpi * cycle
	v := i.value*per + w.value
	return interval{v, max(v-math.Hypot((i.value-i.low)*per, w.value-w.low), 0),
		v + math.Hypot((i.high-i.value)*per, w.high-w.value)}
}
