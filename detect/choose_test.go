package detect

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect/ledger"
)

// A reduction of 2 instances shares its messages with a gather of 3, which explains more; a candidate that explains
// most gives way to both, where it shares messages with them.
func TestOverlappingFindingsAreOneChoice(t *testing.T) {
	instance := func(op ledger.Operation, ranks []int32, messages ...int32) *ledger.Instance {
		return &ledger.Instance{Op: op, Ranks: ranks, Messages: messages}
	}
	all, part := []int32{0, 1, 2}, []int32{0, 1}
	gathers := []*ledger.Instance{instance(ledger.Gather, all, 0, 1), instance(ledger.Gather, all, 2, 3), instance(ledger.Gather, all, 4, 5)}
	reduces := []*ledger.Instance{instance(ledger.Reduce, part, 2), instance(ledger.Reduce, part, 4)}
	doubtful := []*ledger.Instance{instance(ledger.Alltoallv, all, 5, 6, 7, 8), instance(ledger.Alltoallv, all, 9, 10, 11, 12)}
	finding := func(certainty ledger.Certainty, list []*ledger.Instance) *Finding {
		f := &Finding{Operation: list[0].Op, Ranks: list[0].Ranks, Instances: int64(len(list)), Certainty: certainty, instances: list}
		for _, i := range list {
			f.Messages += int64(len(i.Messages))
		}
		return f
	}
	findings := []*Finding{finding(ledger.Candidate, doubtful), finding(ledger.Inferred, reduces), finding(ledger.Inferred, gathers)}
	winners := choose(findings, 13)
	want := map[*ledger.Instance]*ledger.Instance{reduces[0]: gathers[1], reduces[1]: gathers[2], doubtful[0]: gathers[2]}
	if len(winners) != len(want) {
		t.Errorf("%d instances give way, want %d", len(winners), len(want))
	}
	for lost, winner := range want {
		if winners[lost] != winner {
			t.Errorf("%v of %v gives way to %+v, want %+v", lost.Op, lost.Messages, winners[lost], winner)
		}
	}
	found := append(append(append([]*ledger.Instance{}, gathers...), reduces...), doubtful...)
	addAlternatives([]*Finding{findings[2]}, found, winners)
	alternatives := []Alternative{{ledger.Reduce, part, 2}, {ledger.Alltoallv, all, 1}}
	if diff := cmp.Diff(alternatives, findings[2].Alternatives); diff != "" {
		t.Errorf("alternatives (-want +got):\n%s", diff)
	}
	if choose(findings[2:], 13) != nil {
		t.Error("instances give way that share no message")
	}
}
