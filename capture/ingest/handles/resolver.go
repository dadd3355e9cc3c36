package handles

import (
	"fmt"

	"github.com/commq/commq/capture/ingest/internal/dense"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// Resolver turns the numbers that one process gave its communicators and datatypes into those of the run, while its
// records are read a second time. A process can reuse a number for another handle; Redefine follows that.
type Resolver struct {
	table    *Table
	defs     *Definitions
	views    []View
	viewOf   dense.Map[int32] // index in views by the process's number
	types    dense.Map[datatype]
	nextComm int // definitions read so far
	nextType int
}

type datatype struct {
	id    int32
	bytes int64
}

// NewResolver makes the resolver of the rank that defined defs, which UnifyComms and UnifyTypes have numbered.
func NewResolver(table *Table, defs *Definitions) *Resolver {
	r := &Resolver{table: table, defs: defs}
	r.set(World, 0, defs.Rank)
	if self, ok := table.self[defs.Rank]; ok {
		r.set(Self, self, 0)
	}
	// Before its definition is read, a number means its first definition: with several threads, a call can come
	// before the other thread's call that defined the number.
	for i := len(defs.Comms) - 1; i >= 0; i-- {
		if c := &defs.Comms[i]; !c.isPredefined() {
			r.set(c.ID, c.global, c.Fixed.Rank)
		}
	}
	for i := len(defs.Types) - 1; i >= 0; i-- {
		t := &defs.Types[i]
		r.types.Set(t.ID, datatype{t.global, t.Fixed.Bytes})
	}
	return r
}

func (c *Comm) isPredefined() bool {
	_, ok := c.identify()
	return ok
}

// set gives a number of the process to a communicator of the run, in which the process has that rank.
func (r *Resolver) set(number int64, id, rank int32) {
	r.viewOf.Set(number, int32(len(r.views)))
	r.views = append(r.views, r.table.view(id, r.defs.Rank, rank))
}

// Redefine must be called with each definition in the rank's records, in the order of Definitions.
func (r *Resolver) Redefine(def *spool.Def) {
	switch def.What {
	case spool.DefComm:
		c := &r.defs.Comms[r.nextComm]
		r.nextComm++
		if !c.isPredefined() {
			r.set(c.ID, c.global, c.Fixed.Rank)
		}
	case spool.DefCommName:
		if r.nextComm < len(r.defs.Comms) && r.defs.Comms[r.nextComm].Predefined {
			r.nextComm++ // the first pass made an entry just for the name
		}
	case spool.DefType:
		t := &r.defs.Types[r.nextType]
		r.nextType++
		r.types.Set(t.ID, datatype{t.global, t.Fixed.Bytes})
	}
}

// Comm looks up a communicator. The index that it returns stays valid, even when the number is reused.
func (r *Resolver) Comm(number int32) (view int32, ok bool) { return r.viewOf.Get(number) }

// View returns the communicator with the index that Comm returned.
func (r *Resolver) View(view int32) *View { return &r.views[view] }

// WorldRank returns the world rank of a peer in a communicator; null when the member is not known. A rank that the
// communicator does not have is an error, and so is view -1.
func (r *Resolver) WorldRank(view, peer int32) (int32, error) {
	if view < 0 {
		return schema.NullInt32, fmt.Errorf("rank %d of no communicator", peer)
	}
	v := &r.views[view]
	if peer < 0 || int(peer) >= len(v.Peers) {
		return schema.NullInt32, fmt.Errorf("rank %d of a communicator of %d ranks", peer, len(v.Peers))
	}
	if p := v.Peers[peer]; p >= 0 {
		return p, nil
	}
	return schema.NullInt32, nil
}

// Type looks up a datatype: its id in the run and its size.
func (r *Resolver) Type(number int32) (id int32, bytes int64, ok bool) {
	t, ok := r.types.Get(number)
	return t.id, t.bytes, ok
}
