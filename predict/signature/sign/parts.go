package sign

import (
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// exchanges collects the operations whose parts may be products of totals (signature.PartsProduct).
type exchanges struct {
	operations map[rowID]signature.Operation
	totals     map[signature.Operation]*exchangeTotals
}

// rowID names a row of events.
type rowID struct {
	rank int32
	seq  int64
}

// exchangeTotals has what each rank sends and receives in an operation.
type exchangeTotals struct {
	node       int32
	send, recv map[int32]int64 // bytes, by rank
}

// add notes a row of an event if its operation is an exchange with a count per peer.
func (x *exchanges) add(n *template.Node, e *schema.Event) {
	if e.Comm == schema.NullInt32 || e.Instance == schema.NullInt64 ||
		schema.Class(e.Class) != schema.ClassCollective ||
		signature.PartsRuleOf(schema.CallID(e.Call)) != signature.PartsExchange {
		return
	}
	op := signature.Operation{Comm: e.Comm, Number: e.Instance}
	if x.operations == nil {
		x.operations, x.totals = map[rowID]signature.Operation{}, map[signature.Operation]*exchangeTotals{}
	}
	t := x.totals[op]
	if t == nil {
		t = &exchangeTotals{node: n.ID, send: map[int32]int64{}, recv: map[int32]int64{}}
		x.totals[op] = t
	}
	x.operations[rowID{e.Rank, e.Seq}] = op
	t.send[e.Rank], t.recv[e.Rank] = max(e.SendBytes, 0), max(e.RecvBytes, 0)
}

// markProducts sets Values.Parts of the events for which all parts of the run are products of totals.
func markProducts(sig *signature.Signature, run *signature.Run, x *exchanges) error {
	if run.Parts == nil || len(x.operations) == 0 {
		return nil
	}
	wrong := map[int32]bool{} // events that have other parts
	sent := map[signature.Operation]int64{}
	for op, t := range x.totals {
		for _, bytes := range t.send {
			sent[op] += bytes
		}
	}
	inParts := map[signature.Operation]int64{} // bytes sent by the rows of parts
	n := 0
	err := run.Parts(func(b *schema.Parts) error {
		for i, rank := range b.Rank {
			op, found := x.operations[rowID{rank, b.Seq[i]}]
			if !found {
				continue
			}
			t, peer := x.totals[op], b.PeerWorld[i]
			send, sendOK := signature.ProductShare(t.send[rank], t.recv[peer], sent[op])
			recv, recvOK := signature.ProductShare(t.recv[rank], t.send[peer], sent[op])
			if n++; !sendOK || !recvOK || send != b.SendBytes[i] || recv != b.RecvBytes[i] || n > signature.MaxParts {
				wrong[t.node] = true
			}
			inParts[op] += b.SendBytes[i]
		}
		return nil
	})
	if err != nil {
		return err
	}
	for op, t := range x.totals {
		if inParts[op] != sent[op] {
			wrong[t.node] = true
		}
	}
	for _, t := range x.totals {
		if !wrong[t.node] {
			sig.Values[t.node].Parts = signature.PartsProduct
		}
	}
	return nil
}
