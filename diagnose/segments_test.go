package diagnose

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
)

// computes is a call of a rank with computing before it.
type computes struct {
	rank, site int32
	ns         int64
}

// batch are these calls, in the order of the ranks.
func batch(calls []computes) *schema.Events {
	b := &schema.Events{}
	for _, c := range calls {
		e := schema.NullEvent
		e.Rank, e.Callsite, e.ComputeNs = c.rank, c.site, c.ns
		b.Append(&e)
	}
	return b
}

// divided is the computing of these calls.
func divided(calls []computes, ranks int) *computing {
	c := &computing{ns: map[rankSite]int64{}, rows: map[rankSite]int64{}, squares: map[rankSite]float64{},
		calls: map[int32]schema.CallID{}, gaps: newGaps()}
	c.add(batch(calls))
	c.sites, c.cells = c.common(ranks), cells{}
	c.cells.add(newWalk(c.sites), batch(calls))
	return c
}

// evened is what the calls compute that compute the mean together.
func evened(calls []computes, ranks int) []int64 {
	c := divided(calls, ranks)
	cause := &cause{rule: Imbalance, total: c.total(ranks), computed: c}
	b := batch(calls)
	cause.even(meanOf(cause.total), func(int32) bool { return true }).apply(b)
	return b.ComputeNs
}

// A rank that computes longer only at the end of the run is relieved there, and the others take over then.
func TestImbalanceInTime(t *testing.T) {
	var calls []computes
	for step := range 96 { // four steps in a slice
		calls = append(calls, computes{0, 7, 10}, computes{1, 7, 10})
		if step >= 92 {
			calls[len(calls)-1].ns = 90
		}
	}
	c := divided(calls, 2)
	if c.sites[7] != 4 {
		t.Errorf("%d calls in a slice, want 4", c.sites[7])
	}
	// Rank 0 computes 960 ns and rank 1 1280, 160 more than the mean.
	for i, ns := range evened(calls, 2) {
		want := int64(10)
		if i/2 >= 92 {
			want = 50
		}
		if ns != want {
			t.Errorf("rank %d computes %d ns in step %d, want %d", i%2, ns, i/2, want)
		}
	}
}

// Ranks that do the same work before different lines between two calls that both make keep it, and the excess goes
// where it is: rank 0 computes longer only before line 9.
func TestImbalanceBesideLinesOfSomeRanks(t *testing.T) {
	var calls []computes
	var want []int64
	for range 64 {
		calls = append(calls, computes{0, 7, 100}, computes{0, 9, 60}, computes{1, 8, 100}, computes{1, 9, 20})
		want = append(want, 100, 40, 100, 40)
	}
	if diff := cmp.Diff(want, evened(calls, 2)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c := divided(calls, 2)
	less := c.cells.joined().spread([]int64{-64 * 20, 0})
	parts := partsOf(less, c, siteName, 2)
	if len(parts) != 1 || parts[0].place != "9" || parts[0].excess[0] != 64*20 {
		t.Errorf("parts: %+v, want 1280 ns at 9", parts)
	}
}
