package sign

import (
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// eventTimes collects what ranks computed before the calls of an event.
type eventTimes struct{ compute, instructions, cycles histogram }

func (t *eventTimes) add(e *schema.Event) {
	t.compute.add(e.ComputeNs)
	t.instructions.add(e.Instructions)
	t.cycles.add(e.Cycles)
}

// summary returns the distributions; nil if no call had a time.
func (t *eventTimes) summary() *signature.Times {
	if t.compute.count == 0 {
		return nil
	}
	all := &signature.Times{Compute: t.compute.spread()}
	if t.instructions.count > 0 {
		s := t.instructions.spread()
		all.Instructions = &s
	}
	if t.cycles.count > 0 {
		s := t.cycles.spread()
		all.Cycles = &s
	}
	return all
}

// maxTimedValues is how many values of an event get a histogram of their times. The others have only the mean.
const maxTimedValues = 1 << 12

// addCallTime counts the compute time of a call with a value.
func (x *interned) addCallTime(value int32, ns int64) {
	if ns == schema.NullInt64 {
		return
	}
	for int(value) >= len(x.callTimes) {
		x.callTimes = append(x.callTimes, histogram{})
	}
	h := &x.callTimes[value]
	if value < maxTimedValues {
		h.add(ns)
		return
	}
	h.count++
	h.sum += max(ns, 0)
}

// setCallTimes sets the mean compute time of each call of an event, and the noise of the event's times around them.
func setCallTimes(v *signature.Values, calls []histogram) {
	var noise histogram
	for i := range calls {
		h := &calls[i]
		if h.count == 0 {
			continue
		}
		mean := float64(h.sum) / float64(h.count)
		if len(v.Events) > 1 {
			ns := int64(math.Round(mean))
			v.Events[i].ComputeNs = &ns
		}
		if mean == 0 || h.count < 2 {
			continue
		}
		for bin, n := range h.bins {
			noise.addTimes(int64(math.Round(1000*float64(binMiddle(bin))/mean)), n)
		}
	}
	if noise.count > 0 && v.Times != nil {
		s := noise.spread()
		v.Times.Noise = &s
	}
}

// histogram counts non-negative numbers in logarithmic bins: each power of two is divided into binsPerDouble equal
// bins, so that a number is known to within 1/binsPerDouble. Null is not counted.
type histogram struct {
	count, sum int64
	bins       map[int32]int64
}

const binBits, binsPerDouble = 6, 1 << 6

func (h *histogram) add(x int64) {
	if x != schema.NullInt64 {
		h.addTimes(x, 1)
	}
}

// addTimes counts a number n times.
func (h *histogram) addTimes(x, n int64) {
	if h.bins == nil {
		h.bins = map[int32]int64{}
	}
	x = max(x, 0)
	h.count += n
	h.sum += x * n
	h.bins[binOf(x)] += n
}

// binOf returns the bin of x. Small numbers have a bin each.
func binOf(x int64) int32 {
	if x < binsPerDouble {
		return int32(x)
	}
	shift := bits.Len64(uint64(x)) - 1 - binBits
	return int32((shift+1)<<binBits | int(x>>shift)&(binsPerDouble-1))
}

// binMiddle returns the middle of a bin.
func binMiddle(bin int32) int64 {
	if bin < binsPerDouble {
		return int64(bin)
	}
	shift := int(bin>>binBits) - 1
	low := (int64(bin&(binsPerDouble-1)) | binsPerDouble) << shift
	return low + (int64(1)<<shift)/2
}

// spread returns the distribution.
func (h *histogram) spread() signature.Spread {
	order := slices.Sorted(maps.Keys(h.bins))
	quartile := func(q int64) int64 {
		left := (h.count*q + 3) / 4
		for _, bin := range order {
			if left -= h.bins[bin]; left <= 0 {
				return binMiddle(bin)
			}
		}
		return 0
	}
	return signature.Spread{Count: h.count, Sum: h.sum, Low: quartile(1), Median: quartile(2), High: quartile(3)}
}
