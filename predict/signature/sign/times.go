package sign

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// eventTimes collects what ranks computed before the calls of an event.
type eventTimes struct {
	compute, instructions, cycles histogram
	ranks                         map[int32]*rankTime
	spread                        int // calls of ranks that have a distribution of their own
	together                      map[togetherAt]*togetherTimes
}

// togetherAt are the k-th calls of an event of all ranks for which they have the same value.
type togetherAt struct{ k, value int32 }

// togetherTimes are the number of such calls, and the sums of their times in ns and of the squares of these.
type togetherTimes struct{ calls, sum, squares float64 }

// maxTogether is how many of these an event has at most. Later calls do not tell how much noise ranks share.
const maxTogether = 1 << 12

// rankTime is the sum of a rank's times at an event, and the times of its calls by value.
type rankTime struct {
	ns    int64
	calls map[int32]*histogram
}

// maxRankSpreads is how many values of ranks get a histogram of their times at an event. The others have only the mean.
const maxRankSpreads = 1 << 9

// add adds the times before a rank's k-th call with a value.
func (t *eventTimes) add(e *schema.Event, value, k int32) {
	if e.ComputeNs != schema.NullInt64 {
		t.addTogether(togetherAt{k, value}, float64(max(e.ComputeNs, 0)))
		if t.ranks == nil {
			t.ranks = map[int32]*rankTime{}
		}
		r := t.ranks[e.Rank]
		if r == nil {
			r = &rankTime{calls: map[int32]*histogram{}}
			t.ranks[e.Rank] = r
		}
		r.ns += max(e.ComputeNs, 0)
		h := r.calls[value]
		if h == nil {
			h = &histogram{}
			if r.calls[value] = h; t.spread < maxRankSpreads {
				t.spread++
				h.bins = map[int32]int64{}
			}
		}
		if h.bins != nil {
			h.add(e.ComputeNs)
		} else {
			h.count++
			h.sum += max(e.ComputeNs, 0)
		}
	}
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
		noise.addRelative(h)
	}
	if noise.count > 0 && v.Times != nil {
		s := noise.spread()
		v.Times.Noise = &s
	}
}

// differsMuch is the difference of a rank's time from that of equal calls, in thousandths, from which on it is kept.
const differsMuch = 20

// setRankTimes sets the ratios of the ranks' times to those of equal calls.
func (t *eventTimes) setRankTimes(v *signature.Values, calls []histogram, ranks int32) {
	by, keep := make([]int64, ranks), false
	for rank, r := range t.ranks {
		expected := 0.0
		for _, value := range slices.Sorted(maps.Keys(r.calls)) {
			own := r.calls[value]
			if h := &calls[value]; h.count > 0 {
				expected += float64(own.count) * float64(h.sum) / float64(h.count)
			}
		}
		if expected <= 0 || rank < 0 || rank >= ranks {
			continue
		}
		by[rank] = max(int64(math.Round(1000*float64(r.ns)/expected)), 1)
		keep = keep || by[rank] < 1000-differsMuch || by[rank] > 1000+differsMuch
	}
	if !keep || v.Times == nil {
		return
	}
	v.Times.ByRank = by
	var noise histogram
	for _, r := range t.ranks {
		for _, h := range r.calls {
			noise.addRelative(h)
		}
	}
	if noise.count > 0 {
		s := noise.spread()
		v.Times.OwnNoise = &s
	}
}

func (t *eventTimes) addTogether(at togetherAt, ns float64) {
	x := t.together[at]
	if x == nil {
		if len(t.together) == maxTogether {
			return
		}
		if t.together == nil {
			t.together = map[togetherAt]*togetherTimes{}
		}
		x = &togetherTimes{}
		t.together[at] = x
	}
	x.calls++
	x.sum += ns
	x.squares += ns * ns
}

// leastShared is the correlation, in thousandths, from which on noise counts as shared.
const leastShared = 50

// setShared sets the correlation of the noise of different ranks, which setRankTimes has told apart from what ranks
// differ by in all their calls: the mean product of the deviations of two ranks from the mean, over the mean of the
// squares.
func (t *eventTimes) setShared(v *signature.Values, calls []histogram) {
	var pairs, products, squares, all float64
	for _, at := range slices.SortedFunc(maps.Keys(t.together), func(a, b togetherAt) int {
		return cmp.Or(cmp.Compare(a.k, b.k), cmp.Compare(a.value, b.value))
	}) {
		x, h := t.together[at], &calls[at.value]
		mean := float64(h.sum) / float64(max(h.count, 1))
		if mean == 0 || h.count == int64(x.calls) { // no noise: the mean is that of these calls
			continue
		}
		sum := x.sum/mean - x.calls
		square := x.squares/(mean*mean) - 2*x.sum/mean + x.calls
		products += sum*sum - square
		pairs += x.calls * (x.calls - 1)
		squares += square
		all += x.calls
	}
	if pairs == 0 || v.Times == nil {
		return
	}
	between := 0.0 // ranks in all their calls
	for _, by := range v.Times.ByRank {
		if by > 0 {
			between += math.Pow(float64(by)/1000-1, 2) / float64(len(v.Times.ByRank))
		}
	}
	own := squares/all - between
	if own <= 0 {
		return
	}
	shared := products/pairs + between/float64(max(len(v.Times.ByRank)-1, 1))
	if permille := int64(math.Round(1000 * min(shared/own, 1))); permille >= leastShared {
		v.Times.Shared = permille
	}
}

// addRelative adds the times of equal calls relative to their mean, in thousandths.
func (h *histogram) addRelative(times *histogram) {
	mean := float64(times.sum) / float64(max(times.count, 1))
	if mean == 0 || times.count < 2 {
		return
	}
	for bin, n := range times.bins {
		h.addTimes(int64(math.Round(1000*float64(binMiddle(bin))/mean)), n)
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
