package replay

import (
	"github.com/commq/commq/schema"
)

// survey reads the rows once, for what has to be known before the first call is made.
func (b *builder) survey() error {
	b.ranks = make([]rankState, len(b.src.Ranks))
	for rank := range b.ranks {
		b.ranks[rank] = rankState{rank: int32(rank), firstUse: map[int32]int64{}, starts: map[int64]*schema.Event{}, last: -1}
	}
	b.parts, b.instances = map[rowKey][]schema.Part{}, map[instanceKey]*instance{}
	for _, p := range b.src.Parts {
		k := rowKey{p.Rank, p.Seq}
		b.parts[k] = append(b.parts[k], p)
	}
	var e schema.Event
	return b.src.Events(func(rows *schema.Events) error {
		for i := range rows.Len() {
			rows.Row(i, &e)
			ok, err := b.playable(&e)
			if err != nil {
				return err
			}
			if ok {
				if err := b.look(&e); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// look notes what a row says about others.
func (b *builder) look(e *schema.Event) error {
	s := &b.ranks[e.Rank]
	if e.Seq <= s.last {
		return outOfOrder(e, s.last)
	}
	s.last = e.Seq
	if e.Comm != schema.NullInt32 {
		k, ok := b.commOf[e.Comm]
		if !ok || b.comms[k].side(e.Rank) < 0 {
			return notMember(e)
		}
		if _, used := s.firstUse[k]; !used {
			s.firstUse[k] = e.Seq
		}
		if kind, ok := kinds[constructorName(e.Call)]; ok {
			s.constructors = append(s.constructors, constructor{seq: e.Seq, instance: e.Instance, comm: k, kind: kind, makes: -1})
		}
	}
	op := b.operation(e, s)
	if schema.Class(e.Class) == schema.ClassCollective {
		if e.InitSeq != schema.NullInt64 && s.starts[e.InitSeq] == nil {
			row := *e
			s.starts[e.InitSeq] = &row
		}
		switch op {
		case schema.CallGatherv, schema.CallScatterv, schema.CallAllgatherv, schema.CallReduceScatter:
			b.exchanged(e)
		}
	}
	return nil
}

// operation is the collective that a row is, of a started one too; 0: none that has to be looked at.
func (b *builder) operation(e *schema.Event, s *rankState) schema.CallID {
	call := schema.CallID(e.Call)
	if schema.Calls[e.Call].Recorder == "collective_init" {
		if s.inits == nil {
			s.inits = map[int64]schema.CallID{}
		}
		s.inits[e.Seq] = call
	}
	if made, ok := s.inits[e.InitSeq]; ok {
		call = made
	}
	return call.Operation()
}

func constructorName(call int16) string {
	name := schema.Calls[call].Name
	return name[min(len(name), len("MPI_")):]
}

// exchanged notes what a rank sends and receives in a collective.
func (b *builder) exchanged(e *schema.Event) {
	key := instanceKey{e.Comm, e.Instance}
	x := b.instances[key]
	if x == nil {
		x = &instance{map[int32]int64{}, map[int32]int64{}}
		b.instances[key] = x
	}
	x.send[e.Rank], x.recv[e.Rank] = max(e.SendBytes, 0), max(e.RecvBytes, 0)
}
