package ingest

import (
	"fmt"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// Definitions are the communicators and datatypes that one rank defined, taken in one by one: for readers of a spool that
// is still being written. Make them with NewDefinitions.
type Definitions struct {
	s scanner
}

// NewDefinitions are those of a rank that has defined nothing yet. The name of its file is for messages.
func NewDefinitions(rank int32, file string) *Definitions {
	r := &rankSpool{rank: rank, files: []*spool.File{{Name: file}}}
	return &Definitions{scanner{rankSpool: r, names: map[int64]int{}}}
}

// Add takes in a definition that stands behind a slot of that call (0: at the beginning of the file). Definitions that are
// neither of communicators nor of datatypes are left out. The error says what cannot be read; the definition is then left
// out too.
func (d *Definitions) Add(call schema.CallID, def *spool.Def, payload []byte) error {
	switch def.What {
	case spool.DefComm, spool.DefCommName, spool.DefCommFree, spool.DefType:
	default:
		return nil
	}
	slots := [1]spool.Call{{Call: uint16(call), Kind: spool.KindCall}}
	if call == 0 {
		slots[0].Kind = spool.KindDef
	}
	return d.s.define(&group{slots: slots[:]}, def, payload)
}

// TypeBytes is the size of a datatype by the process's number of it; false: it is not defined.
func (d *Definitions) TypeBytes(number int32) (bytes int64, ok bool) {
	for i := len(d.s.types) - 1; i >= 0; i-- {
		if d.s.types[i].id == int64(number) {
			return d.s.types[i].fixed.Bytes, true
		}
	}
	return 0, false
}

// View is a communicator as one rank sees it.
type View struct {
	// ID is the communicator's id in the run.
	ID int32
	// Name is what it is called, empty when nothing gave it a name.
	Name string
	// Kind says how it was made.
	Kind schema.CommKind
	// Own are the world ranks of the rank's own group, -1 where one is not known.
	Own []int32
	// Peers are the world ranks of the group that peers are ranks in: Own, or the remote group of an intercommunicator.
	Peers []int32
	// Rank is the rank's own in Own.
	Rank int32
}

// Inter says whether it is an intercommunicator.
func (v *View) Inter() bool { return len(v.Own) > 0 && len(v.Peers) > 0 && &v.Own[0] != &v.Peers[0] }

// Views are the communicators of a job by rank and the rank's own numbers.
type Views map[int32]map[int32]View

// Unify finds out which communicators of different ranks are the same. size is that of MPI_COMM_WORLD. The error names
// the file that is damaged.
func Unify(size int32, ranks []*Definitions) (Views, error) {
	j := &job{size: size}
	for _, d := range ranks {
		d.s.usesSelf = true
		j.ranks = append(j.ranks, d.s.rankSpool)
	}
	table, err := unifyComms(j)
	if err != nil {
		return nil, err
	}
	views := Views{}
	for _, r := range j.ranks {
		of := map[int32]View{worldNumber: table.view(0, r.rank, r.rank)}
		if self, ok := table.self[r.rank]; ok {
			of[selfNumber] = table.view(self, r.rank, 0)
		}
		for i := range r.comms {
			c := &r.comms[i]
			if _, ok := predefined(c); !ok && c.id >= 0 && c.id <= maxNumber {
				of[int32(c.id)] = table.view(c.global, r.rank, c.fixed.Rank)
			}
		}
		views[r.rank] = of
	}
	return views, nil
}

// maxNumber is the highest number of a communicator that a CALL slot can hold.
const maxNumber = 1<<31 - 1

// view is communicator id as the process sees it that has that world rank, and that rank in its group.
func (t *commTable) view(id, world, rank int32) View {
	m := &t.comms[id]
	v := View{ID: id, Name: m.name, Kind: schema.CommKind(m.kind), Own: m.groups[0], Peers: m.groups[0], Rank: rank}
	if len(m.groups[1]) == 0 {
		return v
	}
	v.Peers = m.groups[1]
	if int(rank) >= len(v.Own) || v.Own[rank] != world {
		v.Own, v.Peers = v.Peers, v.Own
	}
	return v
}

// Text is the communicator in words: its name, or how it was made and its size.
func (v *View) Text() string {
	if v.Name != "" {
		return v.Name
	}
	kind := "a communicator"
	if k := int(v.Kind); k >= 0 && k < len(schema.CommKindNames) {
		kind = "a " + schema.CommKindNames[k] + " communicator"
	}
	if v.Inter() {
		return fmt.Sprintf("%s of %d and %d ranks", kind, len(v.Own), len(v.Peers))
	}
	return fmt.Sprintf("%s of %d ranks", kind, len(v.Own))
}
