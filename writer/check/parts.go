package check

import "github.com/commq/commq/schema"

// checkParts compares the bytes of collectives with the sums of their rows in parts. The rows of parts come call by
// call, before or after the call's row in events.
func checkParts(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	p := &partSums{run: r, out: out, layouts: partLayouts(), calls: map[uint64]partSum{}, parts: map[uint64]partSum{}}
	batch = func(b schema.Batch) {
		switch t := b.(type) {
		case *schema.Events:
			for i, class := range t.Class {
				if schema.Class(class) == schema.ClassCollective {
					p.addCall(t, i)
				}
			}
		case *schema.Parts:
			for i := range t.Rank {
				p.addPart(t, i)
			}
		}
	}
	return batch, p.finish
}

// partLayout says which parts a collective has.
type partLayout uint8

const (
	partsNone     partLayout = iota
	partsBySide              // on each side that has a count per peer
	partsReceived            // only on the receive side
	partsAll                 // a neighbourhood collective: all its bytes are in parts
)

// partLayouts is indexed by CallID.
func partLayouts() []partLayout {
	layouts := make([]partLayout, len(schema.Calls))
	for id := range schema.CallID(len(schema.Calls)) {
		switch op := id.Operation(); {
		case id.IsNeighborhood():
			layouts[id] = partsAll
		case op == schema.CallAllgatherv:
			layouts[id] = partsReceived
		case op == schema.CallGatherv || op == schema.CallScatterv || op == schema.CallAlltoallv ||
			op == schema.CallAlltoallw:
			layouts[id] = partsBySide
		}
	}
	return layouts
}

// partSum holds the bytes of a call or of its parts.
type partSum struct {
	send, recv int64
	all        bool // of a call: its parts hold all bytes of both sides
}

// partSums holds calls that wait for their parts, and parts that wait for their call, by rowKey.
type partSums struct {
	run     *run
	out     *reporter
	layouts []partLayout
	calls   map[uint64]partSum
	parts   map[uint64]partSum

	// The call whose parts are being read, and their sum so far.
	isOpen  bool
	open    uint64
	openSum partSum
}

func (p *partSums) addPart(t *schema.Parts, i int) {
	key := schema.RowKey(t.Rank[i], t.Seq[i])
	if key != p.open {
		p.closeCall()
	}
	p.open, p.isOpen = key, true
	p.openSum.send += t.SendBytes[i]
	p.openSum.recv += t.RecvBytes[i]
}

// closeCall ends the call whose parts were read last.
func (p *partSums) closeCall() {
	if !p.isOpen {
		return
	}
	if call, ok := p.calls[p.open]; ok {
		delete(p.calls, p.open)
		p.compare(p.open, call, p.openSum)
	} else {
		p.parts[p.open] = p.openSum
	}
	p.openSum, p.isOpen = partSum{}, false
}

// addCall adds the row of a collective, and compares it with its parts when these came before it.
func (p *partSums) addCall(e *schema.Events, i int) {
	key := schema.RowKey(e.Rank[i], e.Seq[i])
	if p.run.persistent.isOrphan(e, i) { // it may or may not have parts
		if _, ok := p.parts[key]; !ok {
			p.calls[key] = partSum{send: schema.NullInt64, recv: schema.NullInt64}
		}
		delete(p.parts, key)
		return
	}
	call := p.run.persistent.operation(e, i)
	if call < 0 || int(call) >= len(p.layouts) || p.layouts[call] == partsNone {
		return
	}
	sum := partSum{send: e.SendBytes[i], recv: e.RecvBytes[i]}
	switch p.layouts[call] {
	case partsReceived:
		sum.send = schema.NullInt64
	case partsAll:
		c := p.run.comms.byID[e.Comm[i]]
		sum.all = c != nil && !c.alien && e.ErrorClass[i] == schema.NullInt32
	}
	if parts, ok := p.parts[key]; ok {
		delete(p.parts, key)
		p.compare(key, sum, parts)
	} else if e.SendBytes[i] != 0 || e.RecvBytes[i] != 0 {
		p.calls[key] = sum
	}
}

// compare compares a call with its parts. A side without a count per peer has no parts.
func (p *partSums) compare(key uint64, call, parts partSum) {
	rank, seq := schema.RowOf(key)
	if (parts.send != 0 || call.all) && call.send != schema.NullInt64 && parts.send != call.send {
		p.out.bad(rank, seq, "the parts send %d bytes, the call %d", parts.send, call.send)
	}
	if (parts.recv != 0 || call.all) && call.recv != schema.NullInt64 && parts.recv != call.recv {
		p.out.bad(rank, seq, "the parts receive %d bytes, the call %d", parts.recv, call.recv)
	}
}

// finish reports parts without a call, and neighbourhood collectives without parts. Other calls may have no parts,
// because they may exchange nothing with their peers.
func (p *partSums) finish() {
	p.closeCall()
	for _, key := range sortedKeys(p.parts) {
		rank, seq := schema.RowOf(key)
		p.out.bad(rank, seq, "parts of a row that is not a collective call with a count per peer")
	}
	for _, key := range sortedKeys(p.calls) {
		p.compare(key, p.calls[key], partSum{})
	}
}
