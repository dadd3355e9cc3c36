package predict

import (
	"math"
	"math/bits"

	"github.com/commq/commq/schema"
)

// timesOf are what ranks computed before the calls of an event.
type timesOf struct{ compute, instructions, cycles counted }

func (t *timesOf) add(e *schema.Event) {
	t.compute.add(e.ComputeNs)
	t.instructions.add(e.Instructions)
	t.cycles.add(e.Cycles)
}

func (t *timesOf) spreads() *Times {
	if t.compute.n == 0 {
		return nil
	}
	all := &Times{Compute: t.compute.spread()}
	if t.instructions.n > 0 {
		s := t.instructions.spread()
		all.Instructions = &s
	}
	if t.cycles.n > 0 {
		s := t.cycles.spread()
		all.Cycles = &s
	}
	return all
}

// mostTimed is how many values of an event have the distribution of their times: of those beyond it is the mean alone.
const mostTimed = 1 << 12

// time counts the time of a call that has a value.
func (f *interned) time(value int32, ns int64) {
	if ns == schema.NullInt64 {
		return
	}
	for int(value) >= len(f.calls) {
		f.calls = append(f.calls, counted{})
	}
	c := &f.calls[value]
	if value < mostTimed {
		c.add(ns)
		return
	}
	c.n++
	c.sum += max(ns, 0)
}

// callTimes gives an event's values the means of their times, and the event how far from these times are.
func (v *Values) callTimes(calls []counted) {
	var noise counted
	for i := range calls {
		c := &calls[i]
		if c.n == 0 {
			continue
		}
		mean := float64(c.sum) / float64(c.n)
		if len(v.Events) > 1 {
			ns := int64(math.Round(mean))
			v.Events[i].ComputeNs = &ns
		}
		if mean == 0 || c.n < 2 {
			continue
		}
		for class, n := range c.classes {
			noise.many(int64(math.Round(1000*float64(middle(class))/mean)), n)
		}
	}
	if noise.n > 0 && v.Times != nil {
		s := noise.spread()
		v.Times.Noise = &s
	}
}

// counted counts numbers that are not negative by size: classes of a power of two, each in subClasses equal parts, so that a number is known to
// within 1/subClasses. Null is not counted.
type counted struct {
	n, sum  int64
	classes map[int32]int64
}

const subBits, subClasses = 6, 1 << 6

func (c *counted) add(x int64) {
	if x != schema.NullInt64 {
		c.many(x, 1)
	}
}

// many counts a number n times.
func (c *counted) many(x, n int64) {
	if c.classes == nil {
		c.classes = map[int32]int64{}
	}
	x = max(x, 0)
	c.n += n
	c.sum += x * n
	c.classes[classOf(x)] += n
}

// classOf is the class of x: x itself for the least.
func classOf(x int64) int32 {
	if x < subClasses {
		return int32(x)
	}
	shift := bits.Len64(uint64(x)) - 1 - subBits
	return int32((shift+1)<<subBits | int(x>>shift)&(subClasses-1))
}

// middle is the middle of a class.
func middle(class int32) int64 {
	if class < subClasses {
		return int64(class)
	}
	shift := int(class>>subBits) - 1
	low := (int64(class&(subClasses-1)) | subClasses) << shift
	return low + (int64(1)<<shift)/2
}

// spread is the distribution.
func (c *counted) spread() Spread {
	s := Spread{Count: c.n, Sum: c.sum}
	order := sortedKeys(c.classes)
	quantile := func(q int64) int64 { // q of 4
		left := (c.n*q + 3) / 4
		for _, class := range order {
			if left -= c.classes[class]; left <= 0 {
				return middle(class)
			}
		}
		return 0
	}
	s.Low, s.Median, s.High = quantile(1), quantile(2), quantile(3)
	return s
}
