package evidence

import (
	"math"
	"testing"

	"github.com/commq/commq/detect/ledger"
)

// gathers are so many gathers to rank 0 by all of n ranks, from one call site that sends nothing else.
func gathers(n, times int, order float64) (*Finding, *Weigher) {
	l := &ledger.Ledger{}
	f := &Finding{Op: ledger.Gatherv, CommSize: n, Basis: ledger.ByStructure, Whole: true}
	proof := &ledger.Proof{Basis: ledger.ByStructure, Order: order}
	for r := range int32(n) {
		f.Ranks = append(f.Ranks, r)
	}
	for k := range times {
		i := &ledger.Instance{Op: f.Op, Ranks: f.Ranks, Bytes: 80, Proof: proof}
		for r := int32(1); r < int32(n); r++ {
			i.Messages = append(i.Messages, int32(len(l.Messages)))
			l.Messages = append(l.Messages, ledger.Message{Src: r, Bytes: 16 + int64(r), SendSite: 1, SendSeq: int64(k), Hash: int64(r), Carrier: ledger.None})
		}
		f.Instances = append(f.Instances, i)
	}
	l.Found = f.Instances
	used := map[ledger.Place]int64{ledger.PlaceOf(0, 0, 1): int64(len(l.Messages))}
	return f, NewWeigher(l, ledger.NewSample(int32(n)), used, []*Finding{f})
}

// TestGathers: all messages but the first choose the root, and the order of blocks is evidence besides.
func TestGathers(t *testing.T) {
	for _, c := range []struct {
		ranks, times int
		order        float64
		want         float64
		certainty    ledger.Certainty
	}{
		{6, 1, 0, 4 * math.Log2(5), ledger.Candidate},
		{6, 1, 6.9, 4*math.Log2(5) + 6.9, ledger.Inferred},
		{6, 2, 0, 8 * math.Log2(5), ledger.Inferred},
		{3, 5, 0, 5, ledger.Candidate},
	} {
		f, w := gathers(c.ranks, c.times, c.order)
		bits, basis := w.Weigh(f)
		if math.Abs(bits-c.want) > 1e-9 || basis != ledger.ByStructure || Certainty(bits, basis) != c.certainty {
			t.Errorf("%d gathers by %d ranks with %g bits of order: %g bits by %v, %v; want %g, %v", c.times, c.ranks, c.order, bits, basis,
				Certainty(bits, basis), c.want, c.certainty)
		}
	}
}
