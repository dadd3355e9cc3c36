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

// eventTimes collects the compute times before the calls of an event.
type eventTimes struct {
	compute, instructions, cycles histogram
	ranks                         map[int32]*rankTime
	spread                        int // calls of ranks that have a distribution of their own
	early                         []earlyCall
	mostEarly                     int32 // how many calls of a rank are kept in early
}

// callKind selects the calls of an event that share a distribution of compute times: by value, and by whether the call
// before was of another event. Of many calls in a loop only the first comes after computing.
type callKind int32

func kindOf(value int32, isFirst bool) callKind {
	if isFirst {
		return callKind(2*value + 1)
	}
	return callKind(2 * value)
}

// isFirst reports whether the calls follow a call of another event.
func (k callKind) isFirst() bool { return k%2 == 1 }

// followers returns the kind of calls with the same value that follow a call of the same event.
func (k callKind) followers() callKind { return k - k%2 }

// earlyCall is one of the first calls of an event that a rank makes, its k-th one.
type earlyCall struct {
	rank, k int32
	kind    callKind
	ns      float32
}

// maxEarly limits the early calls of an event, over all ranks.
const maxEarly = 1 << 14

// rankTime is the sum of a rank's times at an event, and the times of its calls.
type rankTime struct {
	ns    int64
	calls map[callKind]*histogram
}

// maxRankSpreads limits the kinds of calls of ranks with a histogram of their times at an event. The others have only
// the mean.
const maxRankSpreads = 1 << 10

// add adds the times before a rank's k-th call of an event.
func (t *eventTimes) add(e *schema.Event, kind callKind, k int32) {
	if e.ComputeNs != schema.NullInt64 {
		if k < t.mostEarly {
			t.early = append(t.early, earlyCall{e.Rank, k, kind, float32(max(e.ComputeNs, 0))})
		}
		if t.ranks == nil {
			t.ranks = map[int32]*rankTime{}
		}
		r := t.ranks[e.Rank]
		if r == nil {
			r = &rankTime{calls: map[callKind]*histogram{}}
			t.ranks[e.Rank] = r
		}
		r.ns += max(e.ComputeNs, 0)
		h := r.calls[kind]
		if h == nil {
			h = &histogram{}
			if r.calls[kind] = h; t.spread < maxRankSpreads {
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

// maxTimed limits the kinds of calls of an event with a histogram of their times. The others have only the mean.
const maxTimed = 1 << 13

// addCallTime counts the compute time of a call.
func (x *interned) addCallTime(kind callKind, ns int64) {
	if ns == schema.NullInt64 {
		return
	}
	for int(kind) >= len(x.callTimes) {
		x.callTimes = append(x.callTimes, histogram{})
	}
	h := &x.callTimes[kind]
	if kind < maxTimed {
		h.add(ns)
		return
	}
	h.count++
	h.sum += max(ns, 0)
}

// First calls and others are kept apart from these on: the ratio and the difference of their mean times, and how many
// of either an event has.
const (
	splitRatio = 2
	splitNs    = 1000
	splitCalls = 4
)

// joinAlike joins the times of first calls and of others with the same value in those of the others, by callKind,
// unless those values of the event that have both show that first calls take much longer, or much less long.
func (t *eventTimes) joinAlike(calls []histogram) {
	isSplit := isSplit(calls)
	joins := func(kind callKind) bool {
		return kind.isFirst() && (!isSplit || calls[kind.followers()].count == 0)
	}
	for _, r := range t.ranks {
		for _, kind := range slices.Sorted(maps.Keys(r.calls)) {
			if !joins(kind) {
				continue
			}
			if h := r.calls[kind.followers()]; h != nil {
				h.join(r.calls[kind])
			} else {
				r.calls[kind.followers()] = r.calls[kind]
			}
			delete(r.calls, kind)
		}
	}
	for i, c := range t.early {
		if joins(c.kind) {
			t.early[i].kind = c.kind.followers()
		}
	}
	for i := range calls {
		if kind := callKind(i); joins(kind) {
			calls[kind.followers()].join(&calls[kind])
		}
	}
}

// isSplit reports whether first calls of an event and others with the same value take differently long.
func isSplit(calls []histogram) bool {
	var of [2]histogram
	for i := 1; i < len(calls); i += 2 {
		if calls[i-1].count == 0 || calls[i].count == 0 {
			continue
		}
		for k := range of {
			of[k].count += calls[i-1+k].count
			of[k].sum += calls[i-1+k].sum
		}
	}
	if min(of[0].count, of[1].count) < splitCalls {
		return false
	}
	low, high := min(of[0].mean(), of[1].mean()), max(of[0].mean(), of[1].mean())
	return high >= splitRatio*low && high-low >= splitNs
}

// setCallTimes sets the mean compute time of each call of an event, and the noise of the event's times around them.
func setCallTimes(v *signature.Values, calls []histogram) {
	noise := newNoise(calls)
	for i := range calls {
		h, kind := &calls[i], callKind(i)
		if h.count == 0 {
			continue
		}
		noise.add(h)
		switch c := v.Events[i/2]; {
		case kind.isFirst():
			c.FirstNs = h.roundedMean()
		case len(v.Events) > 1 || i+1 < len(calls) && calls[i+1].count > 0:
			c.ComputeNs = h.roundedMean()
		}
	}
	if noise.ratios.count > 0 && v.Times != nil {
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
		for _, kind := range slices.Sorted(maps.Keys(r.calls)) {
			if h := &calls[kind]; h.count > 0 {
				expected += float64(r.calls[kind].count) * h.mean()
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
	noise := newNoise(calls)
	for _, r := range t.ranks {
		for _, h := range r.calls {
			noise.add(h)
		}
	}
	if noise.ratios.count > 0 {
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

// deviation is how far the time of a rank's k-th call is from those of its calls of the same kind, in parts of their
// median.
type deviation struct {
	kind callKind
	k    int32
	off  float64
}

// deviations returns those of the early calls. Each rank and kind has the mean 0, so that what ranks differ by is no
// noise. Outliers are cut off: a single late call of one rank shall not hide what the others share, nor one late
// iteration of all ranks what they do not.
func (t *eventTimes) deviations() (all []deviation) {
	slices.SortFunc(t.early, func(a, b earlyCall) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.rank, b.rank), cmp.Compare(a.k, b.k))
	})
	var ends []int // of the calls of a rank of a kind, in all
	for first, next := 0, 0; first < len(t.early); first = next {
		var times []float64
		for next = first; next < len(t.early) && t.early[next].kind == t.early[first].kind &&
			t.early[next].rank == t.early[first].rank; next++ {
			times = append(times, float64(t.early[next].ns))
		}
		median := stats.Median(times)
		if len(times) < 2 || median == 0 {
			continue
		}
		for i, c := range t.early[first:next] {
			all = append(all, deviation{c.kind, c.k, times[i]/median - 1})
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

// correlation is the mean product of the deviations of two ranks in their k-th calls of the same kind, over the mean
// of the squares; 0 if no two ranks have any.
func correlation(all []deviation) float64 {
	slices.SortStableFunc(all, func(a, b deviation) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.k, b.k))
	})
	var products, pairs, squares float64
	for first, next := 0, 0; first < len(all); first = next {
		var sum, square float64
		for next = first; next < len(all) && all[next].kind == all[first].kind && all[next].k == all[first].k; next++ {
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

// noise collects times of an event relative to the mean of equal calls, in thousandths.
type noise struct {
	ratios histogram
	mean   float64 // of all calls, if each distribution counts by its mean; 0 if all calls count alike
	scale  int64   // of the counts
}

// newNoise returns the noise of an event without times. If its first calls have times of their own, each distribution
// counts by its mean: the noise is that of the calls that take the time.
func newNoise(calls []histogram) *noise {
	const fine = 1000
	n := &noise{scale: 1}
	var all histogram
	for i := range calls {
		all.count += calls[i].count
		all.sum += calls[i].sum
		if callKind(i).isFirst() && calls[i].count > 0 {
			n.scale = fine
		}
	}
	if n.scale > 1 {
		n.mean = all.mean()
	}
	return n
}

// add adds the times of equal calls.
func (n *noise) add(times *histogram) {
	mean := times.mean()
	if mean == 0 || times.count < 2 {
		return
	}
	for bin, calls := range times.bins {
		if n.mean > 0 {
			calls = int64(math.Round(float64(calls) * float64(n.scale) * mean / n.mean))
		}
		n.ratios.addTimes(int64(math.Round(1000*float64(binMiddle(bin))/mean)), calls)
	}
}

// spread returns the distribution.
func (n *noise) spread() signature.Spread {
	s := n.ratios.spread()
	s.Count /= n.scale
	s.Sum /= n.scale
	return s
}

// histogram counts non-negative numbers in logarithmic bins: each power of two is divided into binsPerDouble equal
// bins, so that a number is known to within 1/binsPerDouble. Null is not counted.
type histogram struct {
	count, sum int64
	bins       map[int32]int64
}

const binBits, binsPerDouble = 6, 1 << 6

// mean returns the mean of the numbers; 0 if there are none.
func (h *histogram) mean() float64 { return float64(h.sum) / float64(max(h.count, 1)) }

// roundedMean returns the mean, as a whole number.
func (h *histogram) roundedMean() *int64 {
	mean := int64(math.Round(h.mean()))
	return &mean
}

// join moves the numbers of another histogram to this one. It has bins only if both have.
func (h *histogram) join(other *histogram) {
	switch {
	case h.count == 0:
		h.bins = other.bins
	case other.count == 0:
	case other.bins == nil:
		h.bins = nil
	default:
		for bin, n := range other.bins {
			if h.bins != nil {
				h.bins[bin] += n
			}
		}
	}
	h.count += other.count
	h.sum += other.sum
	*other = histogram{}
}

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
