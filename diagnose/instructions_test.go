package diagnose

import (
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// Rank 2 computes 3 times as long as the others. It executes 3 times as many instructions, or hardly more.
func TestInstructions(t *testing.T) {
	for _, c := range []struct {
		name        string
		executed    []int64 // by rank; nil: not counted
		says, hides string
		slower      bool
	}{
		{"more work", []int64{500, 500, 1500, 500}, "it executes 3 times as many instructions as the others there", "",
			false},
		{"the same work", []int64{500, 500, 520, 500},
			"it executes 1.04 times as many instructions as the others there", "", true},
		{"not counted", nil, "before MPI_Send at x.c:1", "instructions", false},
	} {
		b := &schema.Events{}
		computed := &computing{ns: map[rankSite]int64{}, rows: map[rankSite]int64{}, squares: map[rankSite]float64{},
			calls: map[int32]schema.CallID{}, gaps: newGaps()}
		if c.executed != nil {
			computed.instructions = map[rankSite]int64{}
		}
		for rank, ns := range []int64{100, 100, 300, 100} {
			e := schema.NullEvent
			e.Rank, e.Callsite, e.Call, e.ComputeNs = int32(rank), 7, int16(schema.CallSend), ns
			if c.executed != nil {
				e.Instructions = c.executed[rank]
			}
			b.Append(&e)
		}
		computed.add(b)
		for _, group := range []bool{false, true} {
			p := &part{place: "x.c:1", call: schema.CallSend, excess: map[int32]int64{2: 150},
				computed: map[int32]int64{2: 300},
				bySite:   map[int32]int64{7: 150}}
			f := (&cause{rule: Imbalance, group: group, parts: []*part{p}, computed: computed,
				total: computed.total(4)}).finding()
			if !strings.Contains(f.Title, c.says) || c.hides != "" && strings.Contains(f.Title, c.hides) {
				t.Errorf("%s, group %v: %s", c.name, group, f.Title)
			}
			if got := f.Advice == sameWork; got != c.slower {
				t.Errorf("%s, group %v: %s", c.name, group, f.Advice)
			}
		}
	}
}
