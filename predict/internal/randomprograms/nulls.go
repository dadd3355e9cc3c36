package randomprograms

import (
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/schema"
)

// nulls tells how the ranks that have no partner take part in a statement.
type nulls int

const (
	noNulls   nulls = iota // they do not
	separate               // MPI_Send to and MPI_Recv from MPI_PROC_NULL
	exchanged              // MPI_Sendrecv for both sides
	allNulls               // the number of ways
)

func (n nulls) String() string { return [...]string{"no nulls", "MPI_PROC_NULL", "MPI_Sendrecv"}[n] }

// exchangeWithNulls makes the calls of a step: the rank has at most one message on either side.
func (e *execution) exchangeWithNulls(l *leaf, step int, sends, receives []message) {
	own := l.element * l.size(e.here, e.here.rank, step)
	to, from := message{None, own}, message{None, own}
	if len(sends) > 0 {
		to = sends[0]
	}
	if len(receives) > 0 {
		from = receives[0]
	}
	if l.nulls == exchanged {
		e.add(testruns.Call{Site: l.site, Call: schema.CallSendrecv, To: to.peer, From: from.peer, Tag: 7, Bytes: to.bytes,
			Received: from.bytes, Element: l.element, Root: None})
		return
	}
	e.add(testruns.Call{Site: l.site, Call: schema.CallSend, To: to.peer, From: None, Tag: 7, Bytes: to.bytes,
		Element: l.element})
	e.add(testruns.Call{Site: l.site + 1, Call: schema.CallRecv, To: None, From: from.peer, Tag: 7, Bytes: from.bytes,
		Element: l.element})
}
