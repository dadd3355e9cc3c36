package predict

import (
	"encoding/binary"
	"slices"

	"github.com/commq/commq/schema"
)

// call is the number of what a call did at event n.
func (s *signer) call(p *signedRank, n *Node, e *schema.Event) int32 {
	c := s.callOf(n, e)
	c.Completes = p.completes(e.Seq)
	if init, known := p.inits[e.InitSeq]; known && e.InitSeq != schema.NullInt64 {
		c.Init = &Completion{init.node, p.made[init.node] - 1 - init.number, 1}
	} else if made, known := p.persistent[e.Request]; known && c.Completes == nil {
		c.About = &Completion{made.node, p.made[made.node] - 1 - made.number, 1}
	}
	me := post{n.ID, p.made[n.ID]}
	if e.DoneSeq != schema.NullInt64 && e.DoneSeq > e.Seq {
		p.pending[e.DoneSeq] = append(p.pending[e.DoneSeq], me)
	}
	if refersTo[e.Call] {
		p.inits[e.Seq] = me
		if e.Request != schema.NullInt64 {
			p.persistent[e.Request] = me
		}
	}
	return s.intern(n, &c)
}

// callOf is a row of event n as a call, but for the calls that it refers to.
func (s *signer) callOf(n *Node, e *schema.Event) Call {
	c := Call{Comm: int32Of(e.Comm), Root: pointer(e.RootWorld, schema.NullInt32), PostedAny: pointer(e.PostedAny, schema.NullInt32),
		ProcNull: pointer(e.ProcNull, schema.NullInt32),
		Error:    pointer(e.ErrorClass, schema.NullInt32), Label: pointer(e.Label, schema.NullText), Thread: e.Thread,
		Instance: e.Instance != schema.NullInt64, Request: e.Request != schema.NullInt64}
	if e.ReduceOp >= 0 && int(e.ReduceOp) < len(schema.OpNames) {
		c.ReduceOp = schema.OpNames[e.ReduceOp]
	}
	if class := schema.Class(e.Class); class != schema.Calls[e.Call].Class && class >= 0 && int(class) < len(schema.ClassNames) {
		c.Class = class.String()
	}
	if site := pointer(e.Callsite, schema.NullInt32); site != nil && *site != value(s.sig.Symbols[n.Symbol].Frame, *site) {
		c.Frame = site
	}
	c.Send = sideOf(e.Rank, e.SendWorld, e.SendPeer, e.SendTag, e.SendCount, e.SendDatatype, e.SendBytes)
	c.Recv = sideOf(e.Rank, e.RecvWorld, e.RecvPeer, e.RecvTag, e.RecvCount, e.RecvDatatype, e.RecvBytes)
	return c
}

// intern is the number of a call among those of event n.
func (s *signer) intern(n *Node, c *Call) int32 {
	v, found := &s.sig.Values[n.ID], s.found[n.ID].events
	key := c.appendKey(s.key[:0])
	s.key = key
	id, known := found[string(key)]
	if !known {
		id = int32(len(v.Events))
		found[string(key)] = id
		kept := *c
		v.Events = append(v.Events, &kept)
	}
	return id
}

// refersTo says of calls, by their ids, that later ones may refer to them by init_seq: what makes persistent requests, windows and files, and matched
// probes.
var refersTo = func() []bool {
	makers := []string{"send_init", "recv_init", "psend_init", "precv_init", "collective_init", "win_new", "file_open", "mprobe", "improbe"}
	t := make([]bool, len(schema.CallNames))
	for _, c := range schema.Calls {
		t[c.ID] = slices.Contains(makers, c.Recorder)
	}
	return t
}()

// completes are the requests that a row completes, those of an event one after another together.
func (p *signedRank) completes(seq int64) (all []Completion) {
	for _, q := range p.pending[seq] {
		all = p.completion(all, q)
	}
	delete(p.pending, seq)
	return all
}

// completion adds a call to those that are completed.
func (p *signedRank) completion(all []Completion, q post) []Completion {
	ago := p.made[q.node] - 1 - q.number
	if n := len(all); n > 0 && all[n-1][0] == q.node && all[n-1][1]-all[n-1][2] == ago {
		all[n-1][2]++
		return all
	}
	return append(all, Completion{q.node, ago, 1})
}

// sideOf is a side of a row; nil where it has none.
func sideOf(rank, world, peer, tag int32, count int64, datatype int32, bytes int64) Side {
	s := Side{int32Of(world), int32Of(tag), Int(count), int32Of(datatype), Int(bytes)}
	if world != schema.NullInt32 {
		s[SidePeer] -= Int(rank)
	} else if peer != schema.NullInt32 {
		return append(s, Int(peer))
	}
	for _, x := range s {
		if x != null {
			return s
		}
	}
	return nil
}

// appendKey appends a key that is the same for equal calls only.
func (c *Call) appendKey(key []byte) []byte {
	number := func(x int64) { key = binary.AppendVarint(key, x) }
	maybe := func(x *int32) {
		if x == nil {
			number(schema.NullInt64)
		} else {
			number(int64(*x))
		}
	}
	number(int64(c.Comm))
	for _, s := range [2]Side{c.Send, c.Recv} {
		number(int64(len(s)))
		for _, x := range s {
			number(int64(x))
		}
	}
	maybe(c.Root)
	maybe(c.Error)
	maybe(c.PostedAny)
	maybe(c.Frame)
	maybe(c.ProcNull)
	flags := int64(0)
	if c.Instance {
		flags |= 1
	}
	if c.Request {
		flags |= 2
	}
	if c.ComputeNs != nil { // of a run that is extrapolated
		flags |= 4
	}
	for _, x := range []int64{int64(c.Thread), flags, int64(len(c.Completes)), int64(len(c.parts))} {
		number(x)
	}
	if c.ComputeNs != nil {
		number(*c.ComputeNs)
	}
	for _, q := range c.Completes {
		number(int64(q[0]))
		number(int64(q[1]))
		number(int64(q[2]))
	}
	for i := range c.parts {
		p := &c.parts[i]
		number(int64(p.PeerWorld))
		number(p.SendBytes)
		number(p.RecvBytes)
	}
	for _, made := range [2]*Completion{c.Init, c.About} {
		if made != nil {
			number(int64(made[0]))
			number(int64(made[1]))
		} else {
			number(-1)
		}
	}
	key = append(append(append(append(key, c.ReduceOp...), 0), c.Class...), 0)
	if c.Label != nil {
		key = append(append(key, 1), *c.Label...)
	}
	return key
}
