package spread

import (
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/run"
)

// MinUseShare bounds the use of a place: at least one in MinUseShare of the messages sent there must belong to
// collectives, or broadcasts of blank payloads there are withdrawn. Fields of zeros look like broadcasts until they
// are filled.
const MinUseShare = 4

// Doubt withdraws broadcasts of blank payloads at places that seldom take part in a found operation, and broadcasts
// to part of a communicator among messages of a kind that seldom take part: in an exchange a payload sometimes
// travels over a few ranks.
func Doubt(l *ledger.Ledger, used map[ledger.Place]int64, all *ledger.Sample, comms []run.Comm) {
	found, ofCell := map[ledger.Place]int64{}, map[ledger.Cell]int64{}
	for _, i := range l.Found {
		for _, m := range i.Messages {
			found[l.Messages[m].Place()]++
			ofCell[l.Messages[m].Cell()]++
		}
	}
	whole, sent := wholeSets(comms), map[ledger.Cell]int64{}
	l.Found = slices.DeleteFunc(l.Found, func(i *ledger.Instance) bool {
		if i.Op != ledger.Bcast || !i.Blank && slices.ContainsFunc(whole[setKeyOf(i.Ranks)],
			func(members []int32) bool { return slices.Equal(members, i.Ranks) }) {
			return false
		}
		part, of := int64(0), int64(0)
		for _, m := range i.Messages {
			m := &l.Messages[m]
			if i.Blank {
				part, of = part+found[m.Place()], of+used[m.Place()]
			} else if m.Carrier == ledger.None {
				c := m.Cell()
				n, known := sent[c]
				if !known {
					n = all.CountSent(c)
					sent[c] = n
				}
				part, of = part+ofCell[c], of+n
			}
		}
		if MinUseShare*part >= of {
			return false
		}
		l.Release(i)
		return true
	})
}

// setKey is a hash key for sets of ranks.
type setKey struct {
	size        int
	least, most int32
}

func setKeyOf(ranks []int32) setKey { return setKey{len(ranks), ranks[0], ranks[len(ranks)-1]} }

// wholeSets returns the sorted members of all communicators.
func wholeSets(comms []run.Comm) map[setKey][][]int32 {
	sets := map[setKey][][]int32{}
	for _, c := range comms {
		if len(c.Members) == 0 {
			continue
		}
		members := slices.Clone(c.Members)
		slices.Sort(members)
		k := setKeyOf(members)
		sets[k] = append(sets[k], members)
	}
	return sets
}
