package communications_test

import (
	"fmt"
	"testing"

	"github.com/commq/commq/predict/communications"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature/sign"
)

// Five ranks send 4097 bytes around a ring; then the last four send 9 bytes to rank 0. On the ring each destination
// sends on to a third rank, so this communication is dependent. The second is not: rank 0 does not send.
func TestFind(t *testing.T) {
	const ranks = 5
	s, err := sign.FromRows(testruns.Sends(ranks, 2, func(r, step int) (to, bytes int) {
		switch {
		case step == 0:
			return (r + 1) % ranks, 4097
		case r == 0:
			return -1, 0
		}
		return 0, 9
	}))
	if err != nil {
		t.Fatal(err)
	}
	all, irregular := communications.Find(s)
	if len(all) != 2 || irregular != "" {
		t.Fatalf("%d communications, irregular %q; want 2", len(all), irregular)
	}
	for i, want := range []struct {
		calls, bytes int64
		dependent    bool
		topology     string
	}{
		{5, 5 * 4097, true, "ring (+1)"},
		{4, 4 * 9, false, "<nil>"},
	} {
		c := &all[i]
		if c.Number != i+1 || c.Places != 1 || c.Calls != want.calls || c.Bytes != want.bytes || c.Dynamic ||
			c.Dependent != want.dependent || fmt.Sprint(c.Topology) != want.topology {
			t.Errorf("communication %d: %+v, topology %v", i+1, c, c.Topology)
		}
	}
}
