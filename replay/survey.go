package replay

import (
	"fmt"

	"github.com/commq/commq/schema"
)

// findings are facts about the rows as a whole that later stages need.
type findings struct {
	ranks     []rankFindings
	parts     map[rowKey][]schema.Part
	exchanges map[instanceKey]*exchanged
}

// rankFindings are the findings of one rank.
type rankFindings struct {
	last         int64           // seq
	firstUse     map[int32]int64 // seq, by index of the communicator
	constructors []constructor
	starts       map[int64]*schema.Event // first start of persistent collectives, by the row that made them
	inits        map[int64]schema.CallID // calls that made persistent collectives, by row
	wildcards    map[int64]*wildcard     // of persistent receives that were started, by the row that made them
}

// exchanged are the bytes that the ranks of a collective send and receive, by world rank.
type exchanged struct{ send, recv map[int32]int64 }

// constructor is a call that makes a communicator.
type constructor struct {
	seq      int64
	instance int64
	comm     int32 // index of the parent
	kind     schema.CommKind
	makes    int32 // index; -1: none for this rank
}

// survey reads the rows once and collects everything that must be known before the first operation is made.
func survey(src *Source, f *filter, comms *commTable, n notes) (*findings, error) {
	found := &findings{ranks: make([]rankFindings, len(src.Ranks)), parts: map[rowKey][]schema.Part{},
		exchanges: map[instanceKey]*exchanged{}}
	for rank := range found.ranks {
		found.ranks[rank] = rankFindings{firstUse: map[int32]int64{}, starts: map[int64]*schema.Event{},
			inits: map[int64]schema.CallID{}, wildcards: map[int64]*wildcard{}, last: -1}
	}
	for _, p := range src.Parts {
		k := rowKey{p.Rank, p.Seq}
		found.parts[k] = append(found.parts[k], p)
	}
	var e schema.Event
	err := src.Events(func(rows *schema.Events) error {
		for i := range rows.Len() {
			rows.Row(i, &e)
			ok, note, err := f.check(&e)
			if err != nil {
				return err
			}
			if note != "" {
				n.count(note)
			}
			if !ok {
				continue
			}
			if err := found.add(&e, comms); err != nil {
				return err
			}
		}
		return nil
	})
	return found, err
}

// add notes the facts of a row.
func (found *findings) add(e *schema.Event, comms *commTable) error {
	r := &found.ranks[e.Rank]
	if e.Seq <= r.last {
		return fmt.Errorf("%s: it comes after row %d of the rank", nameRow(e), r.last)
	}
	r.last = e.Seq
	r.addStart(e)
	if e.Comm != schema.NullInt32 {
		k, ok := comms.byID[e.Comm]
		if !ok || comms.list[k].side(e.Rank) < 0 {
			return fmt.Errorf("%s: the rank is no member of communicator %d", nameRow(e), e.Comm)
		}
		if _, used := r.firstUse[k]; !used {
			r.firstUse[k] = e.Seq
		}
		if kind, ok := madeKinds[schema.CallID(e.Call)]; ok {
			r.constructors = append(r.constructors,
				constructor{seq: e.Seq, instance: e.Instance, comm: k, kind: kind, makes: -1})
		}
	}
	op := r.operation(e)
	if schema.Class(e.Class) != schema.ClassCollective {
		return nil
	}
	if e.InitSeq != schema.NullInt64 && r.starts[e.InitSeq] == nil {
		row := *e
		r.starts[e.InitSeq] = &row
	}
	switch op {
	case schema.CallGatherv, schema.CallScatterv, schema.CallAllgatherv, schema.CallReduceScatter:
		found.addExchange(e)
	}
	return nil
}

// operation returns the collective operation of a row, also of a row that starts a persistent one; 0: none.
func (r *rankFindings) operation(e *schema.Event) schema.CallID {
	call := schema.CallID(e.Call)
	if call.Is(schema.FactCollective | schema.FactPersistent) {
		r.inits[e.Seq] = call
	}
	if made, ok := r.inits[e.InitSeq]; ok {
		call = made
	}
	return call.Operation()
}

// addExchange notes the bytes that a rank sends and receives in a collective.
func (found *findings) addExchange(e *schema.Event) {
	key := instanceKey{e.Comm, e.Instance}
	x := found.exchanges[key]
	if x == nil {
		x = &exchanged{map[int32]int64{}, map[int32]int64{}}
		found.exchanges[key] = x
	}
	x.send[e.Rank], x.recv[e.Rank] = max(e.SendBytes, 0), max(e.RecvBytes, 0)
}
