package generate

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/slots"
	"github.com/commq/commq/schema"
)

// row returns the row of a site's call at a place, without the columns that depend on earlier calls.
func (w *rankWriter) row(x *model.Site, index []int32) schema.Event {
	g := w.g
	p := law.Point{Ranks: g.ranks, Rank: w.rank, PeerRank: pattern.None, Index: index}
	sym := &g.sig.Symbols[x.Event.Symbol]
	e := schema.NullEvent
	e.Rank = w.rank
	e.Call, e.Class = int16(sym.CallID), int16(schema.Calls[sym.CallID].Class)
	a := g.peers.peersOf(x, index)
	d := w.directionOf(x, slots.PlaceOf(index), a)
	if d.class != "" {
		e.Class = int16(slices.Index(schema.ClassNames, d.class))
	}
	copyLike(&e, x, sym, d)
	if !w.setComm(&e, x, index) {
		return e
	}
	if v, ok := w.number(x, numberRoot, x.Root, &p); ok {
		if e.RootWorld = v.Int32(); x.RootInComm {
			e.RootWorld = g.memberOf(x, e.Comm, v.Int32())
		}
		p.Root = e.RootWorld == w.rank
	}
	if x.SizesOfFirst {
		if p.Rank = e.RootWorld; p.Rank == schema.NullInt32 {
			p.Rank = g.comms.firsts[e.Comm]
		}
	}
	if x.Send.Like != nil && d.sends {
		s := w.side(x, &x.Send, a.to, e.Comm, p)
		e.SendWorld, e.SendPeer, e.SendTag, e.SendCount, e.SendDatatype, e.SendBytes = s.world, s.peer, s.tag, s.count,
			s.datatype, s.bytes
		if x.Sends && s.null {
			e.ProcNull = max(e.ProcNull, 0) | schema.ProcNullSend
		}
	}
	if x.Recv.Like != nil && d.receives {
		s := w.side(x, &x.Recv, a.from, e.Comm, p)
		e.RecvWorld, e.RecvPeer, e.RecvTag, e.RecvCount, e.RecvDatatype, e.RecvBytes = s.world, s.peer, s.tag, s.count,
			s.datatype, s.bytes
		if x.Receives && s.null {
			e.ProcNull = max(e.ProcNull, 0) | schema.ProcNullRecv
		}
	}
	return e
}

// setComm sets the communicator of a call, if it has one; false if that is not known.
func (w *rankWriter) setComm(e *schema.Event, x *model.Site, index []int32) bool {
	unknown := func(why string) bool {
		w.g.unknown.addCalls(x.Event.ID, w.g.model.NodeName(x.Event)+", communicator", why)
		return false
	}
	c := x.CommOf(index)
	if c == nil {
		return x.CommAt == nil || unknown("no run shows which of several communicators it uses in a later iteration")
	}
	id := w.g.comms.ids[c][w.rank]
	if id < 0 {
		return unknown(fmt.Sprintf("rank %d makes the call, but is in none of its communicators", w.rank))
	}
	e.Comm = id
	return true
}

// copyLike sets the columns that are the same in all calls of a site.
func copyLike(e *schema.Event, x *model.Site, sym *signature.Symbol, d direction) {
	e.Callsite = nulls.Value(sym.Frame, schema.NullInt32)
	e.PostedAny = nulls.Value(x.Like.PostedAny, schema.NullInt32)
	if e.ProcNull = nulls.Value(x.Like.ProcNull, schema.NullInt32); x.Sends || x.Receives {
		e.ProcNull = min(e.ProcNull, 0) // which sides are null depends on the rank
	}
	if x.StartsBoth {
		if e.PostedAny = schema.NullInt32; d.receives {
			e.PostedAny = nulls.Value(x.PostedAny, schema.NullInt32)
		}
	}
	e.Label = nulls.Value(x.Like.Label, schema.NullText)
	if x.Like.ReduceOp != "" {
		e.ReduceOp = int16(slices.Index(schema.OpNames, x.Like.ReduceOp))
	}
}

// direction has the sides of a row, and its class if it differs from the MPI function's.
type direction struct {
	class           string
	sends, receives bool
}

// directionOf returns the direction of a rank's call. A start of a persistent request sends or receives as the request
// does; if a site starts both kinds, the ranks with a destination send.
func (w *rankWriter) directionOf(x *model.Site, at slots.Place, a *peers) direction {
	if !x.StartsBoth {
		return direction{x.Like.Class, true, true}
	}
	class := x.Classes[at] // of MPI_PROC_NULL
	switch {
	case hasRank(a.to, w.rank):
		class = schema.ClassSend.String()
	case hasRank(a.from, w.rank):
		class = schema.ClassRecv.String()
	}
	return direction{class, class != schema.ClassRecv.String(), class != schema.ClassSend.String()}
}

// memberOf returns the world rank of a rank in a communicator.
func (g *generator) memberOf(x *model.Site, comm, rank int32) int32 {
	for world, r := range g.comms.ranks[comm] {
		if r == rank {
			return world
		}
	}
	g.unknown.addSizes(x.Event.ID, g.model.NodeName(x.Event)+", root", fmt.Sprintf(
		"its law gives rank %d of a communicator of %d, which is impossible", rank, len(g.comms.ranks[comm])))
	return schema.NullInt32
}

// sideColumns are the columns of one side of a row.
type sideColumns struct {
	world, peer, tag int32
	count            int64
	datatype         int32
	bytes            int64
	null             bool // to or from MPI_PROC_NULL
}

// side returns one side of a row. p is the point of the row.
func (w *rankWriter) side(x *model.Site, laws *model.SideLaws, m *pattern.Map, comm int32, p law.Point) sideColumns {
	like := laws.Like
	if p.Root && laws.LikeRoot != nil {
		like = laws.LikeRoot
	}
	s := sideColumns{schema.NullInt32, schema.NullInt32, schema.NullInt32, schema.NullInt64,
		like[signature.SideDatatype].Int32(), schema.NullInt64, false}
	if m != nil {
		if dst, found := m.Dst(w.rank); found {
			p.PeerRank = dst
			rank, member := w.g.comms.ranks[comm][dst]
			if !member {
				w.g.unknown.addCalls(x.Event.ID, w.g.model.NodeName(x.Event)+", peer",
					fmt.Sprintf("its law gives rank %d for rank %d, which is not in the communicator", dst, w.rank))
				rank = schema.NullInt32
			}
			s.world, s.peer = dst, rank
		}
	}
	if v, ok := w.number(x, numberTag, laws.Tag, &p); ok {
		s.tag = v.Int32()
	}
	// Where it is known who calls, there is no map if all of them have MPI_PROC_NULL in all runs.
	callersKnown := (x.Sends || x.Receives) && (x.AllCall || x.In != "")
	if s.null = p.PeerRank == pattern.None && (m != nil || callersKnown || !laws.HasPeers); s.null {
		s.setEmpty(laws, like, &p)
		return s
	}
	if v, ok := w.bytes(x, laws, comm, &p); ok {
		s.bytes = int64(v)
		if laws.ElementBytes > 0 && like[signature.SideCount] != signature.Null {
			s.count = int64(v) / laws.ElementBytes
		}
	}
	if laws.ElementBytes == 0 && like[signature.SideCount] != signature.Null {
		if v, ok := w.number(x, numberCount, laws.Count, &p); ok {
			s.count = int64(v)
		}
	}
	return s
}

// bytes returns the bytes of a side at a point; false if there are none. Where they are a number of elements for each
// member of the communicator, the law of their count gives them: that bytes were the same in all runs is no law then, as
// of a scatter whose shares are rounded.
func (w *rankWriter) bytes(x *model.Site, laws *model.SideLaws, comm int32, p *law.Point) (signature.Int, bool) {
	members := int64(len(w.g.comms.ranks[comm]))
	if laws.EvenShares*members > 0 && !laws.Bytes.IsEmpty() {
		if e, known := laws.Bytes.Evaluate(p); known {
			return w.take(x, numberBytes, laws.Bytes, e.InShares(laws.EvenShares*members), p)
		}
	}
	each := laws.PeerBytes * members
	if laws.ElementBytes > 0 || each == 0 || laws.Count.IsEmpty() {
		return w.number(x, numberBytes, laws.Bytes, p)
	}
	e, known := laws.Bytes.Evaluate(p)
	if known && e.Exact && e.Value == 0 { // at other ranks than the root
		return w.take(x, numberBytes, laws.Bytes, e, p)
	}
	count, known := laws.Count.Evaluate(p)
	if !known {
		return w.number(x, numberBytes, laws.Bytes, p)
	}
	return w.take(x, numberBytes, laws.Bytes, count.Times(each), p)
}

// setEmpty sets the tag and sizes of a message to or from MPI_PROC_NULL: it has no bytes.
func (s *sideColumns) setEmpty(laws *model.SideLaws, like signature.Side, p *law.Point) {
	if like[signature.SideBytes] != signature.Null {
		s.bytes = 0
	}
	if !laws.NullTags {
		s.tag = schema.NullInt32
	}
	if like[signature.SideCount] == signature.Null {
		return
	}
	if count, known := laws.NullCount(p); known {
		s.count = count
	}
}

// What a number is.
const (
	numberRoot  = "root"
	numberTag   = "tag"
	numberBytes = "bytes"
	numberCount = "count"
)

// number returns a number of a site at a point by its law; false if there is none.
func (w *rankWriter) number(x *model.Site, what string, l *law.Law, p *law.Point) (signature.Int, bool) {
	if l.IsEmpty() {
		return signature.Null, false
	}
	e, known := l.Evaluate(p)
	if !known {
		w.g.unknown.addSizes(x.Event.ID, w.g.model.NodeName(x.Event)+", "+what,
			"no run has that place in the loops, and no law covers it")
		return signature.Null, false
	}
	return w.take(x, what, l, e, p)
}

// take returns the value of an estimate of a number of a site, by a law, and counts it; false if it is impossible or
// must be exact and is not.
func (w *rankWriter) take(x *model.Site, what string, l *law.Law, e law.Estimate,
	p *law.Point) (signature.Int, bool) {
	g := w.g
	name := func() string { return g.model.NodeName(x.Event) + ", " + what }
	if e.Value < 0 && what != numberTag {
		g.unknown.addSizes(x.Event.ID, name(),
			fmt.Sprintf("its law gives %d on rank %d, which is impossible", e.Value, p.Rank))
		return signature.Null, false
	}
	if what == numberBytes && (e.Value == 0 && l.IsExact() || e.Low <= 0 && l.LeavesOut(g.ranks)) &&
		(l == x.Send.Bytes && x.Send.NeverEmpty || l == x.Recv.Bytes && x.Recv.NeverEmpty) {
		noteEmpty(g, x, p.Rank)
	}
	if what == numberRoot && !e.Exact { // a rank near the right one is a wrong one
		why := "no law gives the roots of all runs"
		if l.IsExact() {
			why = "the laws that fit the roots of all runs do not give one rank"
		}
		g.unknown.addSizes(x.Event.ID, name(), why)
		return signature.Null, false
	}
	g.result.Numbers++
	isSize := what == numberBytes || what == numberCount
	if isSize && (g.peers.uncertain[x.To] || g.peers.uncertain[x.From]) { // sizes for other peers are unknown
		e.Low, e.High, e.Exact = 0, math.MaxInt64, false
	}
	if !e.Exact {
		g.result.Inexact++
		g.result.addBounds(l, e)
	}
	return signature.Int(e.Value), true
}
