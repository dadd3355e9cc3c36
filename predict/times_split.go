package predict

import (
	"math"

	"github.com/commq/commq/predict/regress"
)

// counters are the instructions and cycles of a site in a run: sums over calls and ranks.
type counters struct {
	times        map[*Times]bool
	instructions float64
	cycles       float64
	ns           float64
	calls        float64
}

// add counts an event's, once.
func (c *counters) add(t *Times) {
	if t.Instructions == nil || t.Cycles == nil || c.times[t] {
		return
	}
	if c.times == nil {
		c.times = map[*Times]bool{}
	}
	c.times[t] = true
	c.instructions += float64(t.Instructions.Sum)
	c.cycles += float64(t.Cycles.Sum)
	c.ns += float64(t.Compute.Sum)
	c.calls += float64(t.Compute.Count)
}

// splitLaw is a compute time in two parts that have trends of their own as ranks become more (section 4.2 of the paper): the execution time, in which the
// processor executes instructions, and the stall time, in which it waits for memory.
//
//	T = instructions x CPI x cycle + stall
//
// CPI is the least number of cycles for an instruction that the site had in any run: what it takes when hardly anything is missed.
type splitLaw struct {
	instructions *timeLaw // per call
	stall        *timeLaw // ns per call
	cpi, cycleNs float64
	// machineCycleNs is the real cycle time of the machine that is asked about; 0: the one of the runs.
	machineCycleNs float64
}

// split separates execution and stall where all runs counted both; counts are those of the law's points.
func (l *timeLaw) split(counts []counters) {
	s := &splitLaw{cpi: math.Inf(1)}
	var cycles, ns float64
	for _, c := range counts {
		if c.instructions <= 0 || c.cycles <= 0 || c.ns <= 0 {
			return
		}
		s.cpi = min(s.cpi, c.cycles/c.instructions)
		cycles += c.cycles
		ns += c.ns
	}
	if cycles == 0 || len(counts) != len(l.points) {
		return
	}
	s.cycleNs = ns / cycles
	var instructions, stall []regress.Point
	for i, c := range counts {
		executes := c.instructions * s.cpi * s.cycleNs
		instructions = append(instructions, regress.Point{Ranks: l.points[i].Ranks, Value: c.instructions / c.calls})
		stall = append(stall, regress.Point{Ranks: l.points[i].Ranks, Value: max(l.points[i].Value-executes/c.calls, 0)})
	}
	s.instructions, s.stall = newTimeLaw(instructions), newTimeLaw(stall)
	l.parts = s
}

// at adds the parts up. Their errors have nothing to do with one another.
func (s *splitLaw) at(ranks int32) timeSaid {
	cycle := s.cycleNs
	if s.machineCycleNs > 0 {
		cycle = s.machineCycleNs
	}
	i, w := s.instructions.at(ranks), s.stall.at(ranks)
	per := s.cpi * cycle
	v := i.value*per + w.value
	return timeSaid{v, max(v-math.Hypot((i.value-i.low)*per, w.value-w.low), 0), v + math.Hypot((i.high-i.value)*per, w.high-w.value)}
}
