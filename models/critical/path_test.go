package critical

import (
	"fmt"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// Rank 0 computes 100 ns, then is 10 ns in MPI_Send. Rank 1 waits for the message from 40 ns on, has it at 120 ns, and
// computes 30 ns before MPI_Finalize, which takes 5 ns. The path is 30 + 5 ns of rank 1, 20 ns of transfer and 100 ns
// of rank 0's computing.
func TestPathIsGroupedByKeys(t *testing.T) {
	g := graph(t, 2, Options{},
		call{rank: 0, call: schema.CallSend, from: 100, to: 110},
		call{rank: 1, call: schema.CallRecv, from: 40, to: 120},
		call{rank: 1, call: schema.CallFinalize, from: 150, to: 155})
	g.message(0, 0, 1, 0, 0)
	p := g.Path(nil)
	if p.DurationNs != 155 || p.LastRank != 1 || p.RankChanges != 1 {
		t.Errorf("%d ns from rank %d with %d changes", p.DurationNs, p.LastRank, p.RankChanges)
	}
	sum := p.Sum()
	if sum.TotalNs() != 155 || sum.Ns[Compute] != 130 || sum.Ns[Transfer] != 20 || sum.Ns[Other] != 5 {
		t.Errorf("%+v", sum)
	}
	place := func(site int32) string { return fmt.Sprintf("site %d", site) }
	for want, keys := range map[string][]Key{
		"MPI_Send 100, MPI_Finalize 35, MPI_Recv 20":                          {ByCall},
		"rank 0 100, rank 1 55":                                               {ByRank},
		"site 0 MPI_Send 100, site 101 MPI_Finalize 35, site 100 MPI_Recv 20": {ByCall, ByCallsite},
		"155": nil,
	} {
		var got []string
		for _, group := range p.GroupBy(keys, place) {
			words := []string{group.Callsite, group.Call}
			if len(keys) == 1 && keys[0] == ByRank {
				words = append(words, fmt.Sprintf("rank %d", group.Rank))
			}
			words = append(words, fmt.Sprint(group.TotalNs()))
			got = append(got, strings.Join(strings.Fields(strings.Join(words, " ")), " "))
		}
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("by %v: %s, want %s", keys, text, want)
		}
	}
}
