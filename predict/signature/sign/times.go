package sign

import (
	"cmp"
	"maps"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/commq/commq/internal/stats"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// eventTimes collects what ranks computed before the calls of an event.
type eventTimes struct {
	compute, instructions, cycles histogram
	ranks                         map[int32]*rankTime
	spread                        int // calls of ranks that have a distribution of their own
	early                         []earlyCall
	mostEarly                     int32 // how many calls of a rank are kept in early
}

// earlyCall is one of the first calls of an event that a rank makes, its k-th one.
type earlyCall struct {
	rank, k, value int32
	ns             float32
}

// maxEarly is how many of these an event has over all ranks at most.
const maxEarly = 1 << 14

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
		if k < t.mostEarly {
			t.early = append(t.early, earlyCall{e.Rank, k, value, float32(max(e.ComputeNs, 0))})
		}
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

// leastShared is the correlation, in thousandths, from which on noise counts as shared.
const leastShared = 50

// setShared sets the correlation of the noise of different ranks in their early calls.
func (t *eventTimes) setShared(v *signature.Values) {
	if v.Times == nil {
		return
	}
	if permille := int64(math.Round(1000 * correlation(t.deviations()))); permille >= leastShared {
		v.Times.Shared = min(permille, 1000)
	}
}

// deviation is how far the time of a rank's k-th call is from those of its calls with the same value, in parts of their
// median.
type deviation struct {
	value, k int32
	off      float64
}

// deviations returns those of the early calls. Each rank and value has the mean 0, so that what ranks differ by is no
// noise. Outliers are cut off: a single late call of one rank shall not hide what the others share, nor one late
// iteration of all ranks what they do not.
func (t *eventTimes) deviations() (all []deviation) {
	slices.SortFunc(t.early, func(a, b earlyCall) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.rank, b.rank), cmp.Compare(a.k, b.k))
	})
	var ends []int // of the calls of a rank with a value, in all
	for first, next := 0, 0; first < len(t.early); first = next {
		var times []float64
		for next = first; next < len(t.early) && t.early[next].value == t.early[first].value &&
			t.early[next].rank == t.early[first].rank; next++ {
			times = append(times, float64(t.early[next].ns))
		}
		median := stats.Median(times)
		if len(times) < 2 || median == 0 {
			continue
		}
		for i, c := range t.early[first:next] {
			all = append(all, deviation{c.value, c.k, times[i]/median - 1})
		}
		ends = append(ends, len(all))
	}
	low, high := usual(all)
	first := 0
	for _, end := range ends {
		mean := 0.0
		for i := first; i < end; i++ {
			all[i].off = min(max(all[i].off, low), high)
			mean += all[i].off / float64(end-first)
		}
		for i := first; i < end; i++ {
			all[i].off -= mean
		}
		first = end
	}
	return all
}

// usual returns the range of deviations that are no outliers: three times the distance of the quartiles around these.
func usual(all []deviation) (low, high float64) {
	const most, least = 3, 0.01
	sorted := make([]float64, len(all))
	for i := range all {
		sorted[i] = all[i].off
	}
	slices.Sort(sorted)
	if len(sorted) == 0 {
		return 0, 0
	}
	q1, q3 := stat.Quantile(0.25, stat.Empirical, sorted, nil), stat.Quantile(0.75, stat.Empirical, sorted, nil)
	wide := max(q3-q1, least)
	return q1 - most*wide, q3 + most*wide
}

// correlation is the mean product of the deviations of two ranks in their k-th calls with the same value, over the mean
// of the squares; 0 if no two ranks have any.
func correlation(all []deviation) float64 {
	slices.SortStableFunc(all, func(a, b deviation) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(a.k, b.k))
	})
	var products, pairs, squares float64
	for first, next := 0, 0; first < len(all); first = next {
		var sum, square float64
		for next = first; next < len(all) && all[next].value == all[first].value && all[next].k == all[first].k; next++ {
			sum += all[next].off
			square += all[next].off * all[next].off
		}
		n := float64(next - first)
		products += sum*sum - square
		pairs += n * (n - 1)
		squares += square
	}
	if pairs == 0 || squares == 0 {
		return 0
	}
	return products / pairs / (squares / float64(len(all)))
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
