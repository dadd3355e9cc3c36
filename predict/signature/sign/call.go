package sign

import (
	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// internRow returns the index of what a row did at an event, with references to the calls before it.
func (r *Recorder) internRow(p *Path, n *template.Node, e *schema.Event) int32 {
	c := NewCall(&r.sig.Symbols[n.Symbol], e)
	for _, q := range p.pending[e.Seq] {
		c.Completes = p.AppendBackref(c.Completes, q)
	}
	delete(p.pending, e.Seq)
	if init, known := p.initializers[e.InitSeq]; known && e.InitSeq != schema.NullInt64 {
		c.Init = p.Backref(init)
	} else if maker, known := p.persistent[e.Request]; known && c.Completes == nil {
		c.About = p.Backref(maker)
	}
	here := signature.Position{Node: n.ID, Number: p.Made[n.ID]}
	if e.DoneSeq != schema.NullInt64 && e.DoneSeq > e.Seq {
		p.pending[e.DoneSeq] = append(p.pending[e.DoneSeq], here)
	}
	if isInitializer(schema.CallID(e.Call)) {
		p.initializers[e.Seq] = here
		if e.Request != schema.NullInt64 {
			p.persistent[e.Request] = here
		}
	}
	return r.Intern(n, &c)
}

// NewCall converts a row of a symbol, without references to other calls.
func NewCall(symbol *signature.Symbol, e *schema.Event) signature.Call {
	c := signature.Call{Comm: signature.IntOf(e.Comm), Root: nulls.Pointer(e.RootWorld, schema.NullInt32),
		PostedAny: nulls.Pointer(e.PostedAny, schema.NullInt32),
		ProcNull:  nulls.Pointer(e.ProcNull, schema.NullInt32),
		Error:     nulls.Pointer(e.ErrorClass, schema.NullInt32), Label: nulls.Pointer(e.Label, schema.NullText),
		Thread: e.Thread, Instance: e.Instance != schema.NullInt64, Request: e.Request != schema.NullInt64}
	if e.ReduceOp >= 0 && int(e.ReduceOp) < len(schema.OpNames) {
		c.ReduceOp = schema.OpNames[e.ReduceOp]
	}
	if class := schema.Class(e.Class); class != schema.Calls[e.Call].Class && class >= 0 &&
		int(class) < len(schema.ClassNames) {
		c.Class = class.String()
	}
	if site := nulls.Pointer(e.Callsite, schema.NullInt32); site != nil && *site != nulls.Value(symbol.Frame, *site) {
		c.Frame = site
	}
	c.Send = signature.NewSide(e.Rank, e.SendWorld, e.SendPeer, e.SendTag, e.SendCount, e.SendDatatype, e.SendBytes)
	c.Recv = signature.NewSide(e.Rank, e.RecvWorld, e.RecvPeer, e.RecvTag, e.RecvCount, e.RecvDatatype, e.RecvBytes)
	return c
}

// isInitializer reports whether later calls may refer to a call by init_seq: calls that make persistent requests,
// windows and files, and matched probes.
func isInitializer(call schema.CallID) bool {
	return call.IsAny(schema.FactPersistent|schema.FactCreatesWindow|schema.FactOpensFile) ||
		call.Is(schema.FactProbes|schema.FactMatched)
}
