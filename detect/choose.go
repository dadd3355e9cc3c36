package detect

import (
	"cmp"
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/rankset"
)

// Alternative is another operation that explains messages of a finding.
type Alternative struct {
	Operation ledger.Operation
	// Ranks are the participating world ranks, ascending.
	Ranks []int32
	// Instances is the number of its instances that share messages with the finding's.
	Instances int64
}

// choose decides between instances that share messages, as only one collective can replace a message. It takes the
// instance whose finding is no candidate, or else explains more messages, or else has larger instances. It returns the
// instances to give up, each with the one that it gives way to.
func choose(findings []*Finding, messages int) map[*ledger.Instance]*ledger.Instance {
	contested := contestedMessages(findings, messages)
	if len(contested) == 0 {
		return nil
	}
	ranked := slices.Clone(findings)
	slices.SortStableFunc(ranked, func(a, b *Finding) int {
		candidate := func(f *Finding) int { return min(max(int(f.Certainty)-int(ledger.Inferred), 0), 1) }
		return cmp.Or(candidate(a)-candidate(b), cmp.Compare(b.Messages, a.Messages),
			cmp.Compare(a.Instances, b.Instances), cmp.Compare(b.Bits, a.Bits))
	})
	winners := map[*ledger.Instance]*ledger.Instance{}
	for _, f := range ranked {
		for _, i := range f.instances {
			var first *ledger.Instance
			for _, m := range i.Messages {
				if first = contested[m]; first != nil {
					break
				}
			}
			if first != nil {
				winners[i] = first
				continue
			}
			for _, m := range i.Messages {
				if _, is := contested[m]; is {
					contested[m] = i
				}
			}
		}
	}
	return winners
}

// contestedMessages returns the messages that several instances have, without owners.
func contestedMessages(findings []*Finding, messages int) map[int32]*ledger.Instance {
	contested, seen := map[int32]*ledger.Instance{}, rankset.NewBits(messages)
	for _, f := range findings {
		for _, i := range f.instances {
			for _, m := range i.Messages {
				if seen.Has(int(m)) {
					contested[m] = nil
				}
				seen.Add(int(m))
			}
		}
	}
	return contested
}

// addAlternatives lists for each finding the operations of the instances that gave way to its own. Alternatives equal
// to the finding are left out.
func addAlternatives(findings []*Finding, found []*ledger.Instance, winners map[*ledger.Instance]*ledger.Instance) {
	of := map[*ledger.Instance]*Finding{}
	for _, f := range findings {
		for _, i := range f.instances {
			of[i] = f
		}
	}
	for _, lost := range found {
		f := of[winners[lost]]
		if f == nil || lost.Op == f.Operation && slices.Equal(lost.Ranks, f.Ranks) {
			continue
		}
		k := slices.IndexFunc(f.Alternatives, func(a Alternative) bool {
			return a.Operation == lost.Op && slices.Equal(a.Ranks, lost.Ranks)
		})
		if k < 0 {
			k = len(f.Alternatives)
			f.Alternatives = append(f.Alternatives, Alternative{Operation: lost.Op, Ranks: lost.Ranks})
		}
		f.Alternatives[k].Instances++
	}
}
