package exectrace

import (
	"strings"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// isBackends reports whether a node is what a backend notes of an operation: gloo:broadcast.
func isBackends(name string) bool {
	backend, _, ok := strings.Cut(name, ":")
	return ok && (backend == "gloo" || backend == "nccl" || backend == "ucc")
}

// call takes a node of a call of c10d, or of a backend. Traces of Gloo have no record_param_comms.
func (t *trace) call(n *node) {
	op := operation(n.Name)
	if op.Call == 0 {
		return
	}
	in := n.inputs()
	in.sizes(&op)
	isAsked := strings.HasPrefix(n.Name, "c10d::")
	if isAsked {
		in.setPartners(n.Name, &op)
		t.asked = append(t.asked, op)
		t.askedAt = append(t.askedAt, moment{id: n.ID, op: len(t.askedAt)})
	}
	t.keep(n, op)
}

// sizes sets the elements and their type: those of the only tensor, or of what is got and what is given, in this order.
func (v *values) sizes(op *training.Op) {
	if op.Call == schema.CallIbarrier { // its tensor only tells the device
		return
	}
	for i := range min(len(v.Types), len(v.Shapes), 2) {
		m := tensorType.FindStringSubmatch(v.Types[i])
		if m == nil {
			break
		}
		op.Type, _, _ = strings.Cut(m[1], ",")
		op.OutElements, op.InElements = op.InElements, count(v.Shapes[i], mostNesting)
	}
}

// rootAt are the places of the root among the arguments of calls of c10d, and splitsAt those of the splits of what is
// got, before those of what is given.
var rootAt = map[string]int{"broadcast_": 2, "reduce_": 3, "gather_": 3, "scatter_": 3}

const splitsAt, peerAt = 3, 2

// setPartners sets the root, the other side of a message, and the splits of an uneven exchange.
func (v *values) setPartners(name string, op *training.Op) {
	name = strings.TrimPrefix(name, "c10d::")
	who := func(at int) int32 {
		if at >= len(v.Values) {
			return training.Unknown
		}
		return int32(max(training.Unknown, min(integer(v.Values[at]), importing.MostRanks)))
	}
	switch name {
	case "send", "recv_":
		op.Peer = who(peerAt)
		op.PeerInGroup = op.Peer >= 0
	case "alltoall_base_":
		if len(v.Values) > splitsAt+1 {
			op.OutSplit, op.InSplit = integers(v.Values[splitsAt]), integers(v.Values[splitsAt+1])
		}
	default:
		if at := rootAt[name]; at > 0 {
			op.Root = who(at)
		}
	}
}

// withoutParams takes the calls of c10d as the operations of a process that has no record_param_comms.
func (t *trace) withoutParams() {
	if len(t.Ops) == 0 {
		t.Ops, t.moments = t.asked, t.askedAt
		t.OnlyGroup()
	}
	t.asked, t.askedAt, t.byNumber = nil, nil, nil
}
