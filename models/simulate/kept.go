package simulate

import (
	"math"

	"github.com/commq/commq/schema"
)

// Keep returns which part of its cost an operation keeps. It shows what a program would gain if its messages cost less:
// matching, order and waits do not change. The operation is that of row seq of a rank, at a call site. For one-sided
// transfers it is the row of the rank that calls. In Dimemas, where a CPU is busy with the latency at both ends of a
// message, each end keeps its own row's part.
type Keep func(rank int32, seq int64, site int32, call schema.CallID) Kept

// Kept is the part of its cost that an operation keeps, each a factor of at least 0.
//
// A collective operation is one operation: it keeps the smallest factors of its ranks. The time of a file operation
// keeps the larger of both factors, as its part of latency is unknown.
type Kept struct {
	// Latency is the factor of latencies, of messages and of the phases of a collective.
	Latency float64
	// Bytes is the factor of the bytes of a message, and of the time that a collective takes for its bytes.
	Bytes float64
	// Standard means that a synchronous send becomes a standard one: it waits for its receiver only from the eager
	// threshold of the machine on.
	Standard bool
}

// KeptAll keeps the whole cost.
var KeptAll = Kept{Latency: 1, Bytes: 1}

// Least combines two changes: it keeps the smaller factor of each.
func (k Kept) Least(other Kept) Kept {
	return Kept{min(k.Latency, other.Latency), min(k.Bytes, other.Bytes), k.Standard || other.Standard}
}

// kept returns the part of its cost that an operation of a rank keeps.
func (x *setting) kept(rank int32, o *op) Kept {
	if x.options.Keep == nil {
		return KeptAll
	}
	return x.options.Keep(rank, o.seq, o.site, o.callID())
}

// keptLatency returns the part of a latency that an operation of a rank keeps.
func (x *setting) keptLatency(l Picoseconds, rank int32, o *op) Picoseconds {
	if x.options.Keep == nil {
		return l
	}
	return part(l, x.kept(rank, o).Latency)
}

// messageLatency returns the latency of a message from its sender.
func (x *setting) messageLatency(m *message) Picoseconds {
	l := x.latency(m.src, m.dst)
	if x.options.Keep == nil {
		return l
	}
	return part(l, x.options.Keep(m.src, m.seq, m.site, schema.CallID(m.call)).Latency)
}

// part is a fraction of a number, rounded.
func part[N ~int64](n N, fraction float64) N {
	if fraction == 1 {
		return n
	}
	return N(math.Round(float64(n) * fraction))
}

// keep notes what a rank that enters a collective keeps of its cost.
func (k *collectives) keep(c, rank int32, o *op) {
	if k.setting.options.Keep == nil {
		return
	}
	for len(k.kept) <= int(c) {
		k.kept = append(k.kept, KeptAll)
	}
	kept := k.setting.kept(rank, o)
	if len(k.items[c].takers) > 0 {
		kept = kept.Least(k.kept[c])
	}
	k.kept[c] = kept
}

// keptOf is the part of its time that a collective keeps. It takes took, of that bytes for its bytes.
func (k *collectives) keptOf(c int32, took, bytes Picoseconds) Picoseconds {
	kept := k.kept[c]
	if kept.Latency == kept.Bytes {
		return part(took, kept.Latency)
	}
	bytes = min(bytes, took)
	return part(took-bytes, kept.Latency) + part(bytes, kept.Bytes)
}
