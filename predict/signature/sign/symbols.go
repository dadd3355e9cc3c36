package sign

import (
	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// Symbols numbers the distinct calls of a program.
type Symbols struct {
	ids  map[Place]int32
	list []signature.Symbol
	// alike has, by id, the first of the communicators that are one in the program. It lacks those that are like no
	// other.
	alike map[int32]int32
}

func newSymbols(sig *signature.Signature) *Symbols {
	return &Symbols{ids: map[Place]int32{}, alike: alikeComms(sig.Comms)}
}

// Place is the place of a call in the program, as far as it is known.
type Place struct {
	// Call is the id of the MPI function, and Site the innermost frame of the call path.
	Call int16
	Site int32
	// Comm is the communicator of the call, or if it has none, that of the operations that it completes. Completes is
	// the id of the function that began these; 0 if it completes none, or those of several functions or communicators.
	// Both count only where Site is null.
	Comm      int32
	Completes int16
}

// key returns what tells the place from others.
func (s *Symbols) key(p Place) Place {
	if p.Site != schema.NullInt32 {
		return Place{Call: p.Call, Site: p.Site, Comm: schema.NullInt32}
	}
	if first, found := s.alike[p.Comm]; found {
		p.Comm = first
	}
	return p
}

// find returns the number of the calls at a place.
func (s *Symbols) find(p Place) (id int32, known bool) {
	id, known = s.ids[s.key(p)]
	return id, known
}

// add returns the number of the calls at a place, a new one if it is not known.
func (s *Symbols) add(p Place) int32 {
	k := s.key(p)
	id, known := s.ids[k]
	if !known {
		id = int32(len(s.list))
		s.ids[k] = id
		x := signature.Symbol{Call: schema.CallNames[k.Call], Frame: nulls.Pointer(k.Site, schema.NullInt32),
			Comm: nulls.Pointer(k.Comm, schema.NullInt32), CallID: schema.CallID(k.Call)}
		if k.Completes != 0 {
			x.Completes = schema.CallNames[k.Completes]
		}
		s.list = append(s.list, x)
	}
	return id
}

// alikeComms returns, by id, the first of the communicators that a program knows by one name, on different ranks or in
// different runs: those of all ranks of a run, and those of one name of which no rank is in two.
func alikeComms(comms []signature.Comm) map[int32]int32 {
	first := map[string]int32{}
	members := map[string]map[int32]bool{}
	twice := map[string]bool{}
	name := func(c *signature.Comm) string {
		if c.Kind == schema.CommKindNames[schema.CommWorld] {
			return c.Kind
		}
		if c.Name == "" {
			return ""
		}
		return "named " + c.Name
	}
	for i := range comms {
		c := &comms[i]
		k := name(c)
		if members[k] == nil {
			first[k], members[k] = c.ID, map[int32]bool{}
		}
		for _, group := range []signature.Ranks{c.Members, c.Remote} {
			for _, r := range group {
				twice[k] = twice[k] || r >= 0 && members[k][r]
				members[k][r] = true
			}
		}
	}
	alike := map[int32]int32{}
	for i := range comms {
		if k := name(&comms[i]); k != "" && !twice[k] {
			alike[comms[i].ID] = first[k]
		}
	}
	return alike
}

// places finds the places of rows, each rank's in order.
type places struct {
	pending map[rowID]Place // of the operations without a call site that a row completes
}

// find returns the place of a row.
func (x *places) find(e *schema.Event) Place {
	p := Place{Call: e.Call, Site: e.Callsite, Comm: e.Comm}
	here := rowID{e.Rank, e.Seq}
	if done, found := x.pending[here]; found {
		delete(x.pending, here)
		if p.Site == schema.NullInt32 && p.Comm == schema.NullInt32 && done.Call != several {
			p.Comm, p.Completes = done.Comm, done.Call
		}
	}
	if e.Callsite == schema.NullInt32 && e.DoneSeq != schema.NullInt64 && e.DoneSeq > e.Seq {
		x.begin(rowID{e.Rank, e.DoneSeq}, Place{Call: e.Call, Comm: e.Comm})
	}
	return p
}

// several is the call of operations that are begun by more than one function or on more than one communicator.
const several = -1

// begin notes that an operation is completed by a row.
func (x *places) begin(done rowID, op Place) {
	if x.pending == nil {
		x.pending = map[rowID]Place{}
	}
	if before, found := x.pending[done]; found && before != op {
		op.Call = several
	}
	x.pending[done] = op
}
