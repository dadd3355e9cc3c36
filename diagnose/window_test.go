package diagnose

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A window has the rank that waited longest, the first causes and neighbours, and half the wait before and after it.
func TestWindow(t *testing.T) {
	f := Finding{Ranks: []int32{60, 50, 40, 30, 20}, Waits: []Wait{
		{LongestNs: 10, LongestRank: 1, LongestAtNs: 5}, {LongestNs: 2_000_000_000, LongestRank: 3, LongestAtNs: 500_000_001}}}
	d := Diagnosis{Ranks: 64}
	want := &Window{FromNs: 0, ToNs: 3_500_000_001, Ranks: []int32{1, 2, 3, 4, 30, 40, 50, 60}}
	if diff := cmp.Diff(want, d.window(&f)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"from-s": "0.000000000", "to-s": "3.500000001"}, want.Args()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	f.Instances = &Instances{Of: ofWaits, Longest: []Instance{{AtNs: 1000, Rank: 9, Ns: 500, OwnNs: 200}}}
	if w := d.window(&f); w.FromNs != 900 || w.ToNs != 1300 || !slices.Contains(w.Ranks, 9) {
		t.Errorf("around the instance that cost most: %+v", w)
	}
	if d.TimesSimulated = true; d.window(&f) != nil {
		t.Error("times of a simulation are not in the run")
	}
}
