package replace

import (
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// fill makes the row of one rank's part in a collective, except for its position, and the rows of its parts.
func (r *Run) fill(in *insert, e *schema.Event) (parts []schema.Part) {
	j, t := in.joint, &in.joint.parts[in.part]
	f := &r.findings[j.finding]
	*e = schema.NullEvent
	e.Rank, e.Thread, e.Call, e.Class = t.rank, int32(t.thread), int16(f.Operation), int16(schema.ClassCollective)
	e.Comm, e.Instance, e.Callsite = j.comm, j.own, t.site
	root := f.Instances[j.instance].Root
	if f.Operation.Is(schema.FactRooted) {
		e.RootWorld = root
	}
	if f.Operation.Is(schema.FactReduces) {
		e.ReduceOp = f.ReduceOp
		if e.ReduceOp == schema.NullEnum {
			e.ReduceOp = int16(schema.OpUser)
		}
	}
	a := schema.CollectiveArgs{Peers: int64(len(j.parts)), Group: int64(len(j.parts)), Root: f.Operation.Is(schema.FactRooted) &&
		root == t.rank}
	a.Send, a.Recv, parts = r.args(j, t)
	e.SendBytes, e.RecvBytes = schema.CollectiveBytes(f.Operation, a)
	switch f.Operation {
	case schema.CallNeighborAllgather, schema.CallNeighborAlltoall: // the counts are those of one neighbour
		a.Send = eachPart(parts, func(x *schema.Part) int64 { return x.SendBytes })
		a.Recv = eachPart(parts, func(x *schema.Part) int64 { return x.RecvBytes })
	}
	if f.Operation != schema.CallBarrier {
		r.describe(f.Operation, t, a, e)
	}
	for k := range parts {
		parts[k].Rank = t.rank
	}
	return parts
}

// eachPart returns the common size of all parts that are not empty, 0 if all are, schema.NullInt64 if sizes differ.
func eachPart(parts []schema.Part, size func(*schema.Part) int64) (bytes int64) {
	for k := range parts {
		switch n := size(&parts[k]); {
		case n == 0 || n == bytes:
		case bytes > 0:
			return schema.NullInt64
		default:
			bytes = n
		}
	}
	return bytes
}

// args returns the bytes of a rank's own arguments, as schema.CollectiveArgs defines them, and its rows of parts.
func (r *Run) args(j *joint, t *part) (send, recv int64, parts []schema.Part) {
	f := &r.findings[j.finding]
	in := &f.Instances[j.instance]
	root, n := in.Root == t.rank, int64(len(j.parts))
	switch f.Operation {
	case schema.CallBarrier:
		return 0, 0, nil
	case schema.CallAllgather:
		return in.Bytes, in.Bytes, nil
	case schema.CallAllgatherv:
		return r.gatheredParts(j, t)
	case schema.CallAlltoall:
		block := in.Bytes / (n - 1) // a block may travel through other ranks
		return block, block, nil
	case schema.CallGather:
		return r.block(j, in.Root), r.block(j, in.Root), nil
	case schema.CallScatter:
		return r.block(j, in.Root), r.block(j, in.Root), nil
	case schema.CallGatherv, schema.CallScatterv:
		return r.rootedParts(j, t, root, f.Operation == schema.CallGatherv)
	case schema.CallReduceScatter, schema.CallReduceScatterBlock:
		if in.RankBytes != nil {
			k, _ := slices.BinarySearch(f.Ranks, t.rank)
			return in.Bytes, in.RankBytes[k], nil
		}
		return in.Bytes, in.Bytes / n, nil
	case schema.CallAlltoallv, schema.CallNeighborAllgather, schema.CallNeighborAllgatherv,
		schema.CallNeighborAlltoall, schema.CallNeighborAlltoallv,
		schema.CallNeighborAlltoallw:
		to := r.peers(t.sent, func(m *message) int32 { return m.Dst })
		from := r.peers(t.got, func(m *message) int32 { return m.Src })
		for len(to) > 0 || len(from) > 0 {
			switch {
			case len(from) == 0 || len(to) > 0 && to[0].rank < from[0].rank:
				parts, send, to = addPart(parts, to[0].rank, to[0].bytes, 0), send+to[0].bytes, to[1:]
			case len(to) == 0 || from[0].rank < to[0].rank:
				parts, recv, from = addPart(parts, from[0].rank, 0, from[0].bytes), recv+from[0].bytes, from[1:]
			default:
				parts = addPart(parts, to[0].rank, to[0].bytes, from[0].bytes)
				send, recv, to, from = send+to[0].bytes, recv+from[0].bytes, to[1:], from[1:]
			}
		}
		return send, recv, parts
	}
	return in.Bytes, in.Bytes, nil
}

func addPart(parts []schema.Part, peer int32, send, recv int64) []schema.Part {
	if send == 0 && recv == 0 {
		return parts
	}
	return append(parts, schema.Part{PeerWorld: peer, SendBytes: send, RecvBytes: recv})
}

// gatheredParts returns the arguments of MPI_Allgatherv. A message may join blocks of several ranks, so the finding's
// shares count, if it has them.
func (r *Run) gatheredParts(j *joint, t *part) (own, all int64, parts []schema.Part) {
	shares := r.findings[j.finding].Instances[j.instance].RankBytes
	for k := range j.parts {
		bytes := int64(0)
		if shares != nil {
			bytes = shares[k]
		} else {
			bytes = r.owned(&j.parts[k])
		}
		if &j.parts[k] == t {
			own = bytes
		}
		all += bytes
		parts = addPart(parts, j.parts[k].rank, 0, bytes)
	}
	return own, all, parts
}

// received returns the payloads that a rank receives, with the first row that has each.
func (r *Run) received(t *part) map[payload]int64 {
	rows := map[payload]int64{}
	for _, k := range t.got {
		m := &r.messages[k]
		done := m.DoneSeq
		if done == schema.NullInt64 {
			done = m.recvRow
		}
		x := payload{m.hash, m.bytes}
		if at, ok := rows[x]; !ok || done < at {
			rows[x] = done
		}
	}
	return rows
}

// owned returns what a rank contributes: the payloads that it sends without having received them first.
func (r *Run) owned(t *part) (bytes int64) {
	known := r.received(t)
	for _, k := range t.sent {
		m := &r.messages[k]
		x := payload{m.hash, m.bytes}
		if at, ok := known[x]; ok && at < m.SendSeq {
			continue
		}
		known[x] = -1
		bytes += m.bytes
	}
	return bytes
}

// operandHash returns the hash of what a rank contributes if one of the messages that it sent has all of it, else
// schema.NullInt64. What it sends after it has received something may result from that, unless the operation changes no
// payload; rows are those at which it received payloads.
func operandHash(op schema.CallID, messages []message, sent []int32, rows map[payload]int64, bytes int64) int64 {
	spreads := slices.Contains([]schema.CallID{schema.CallBcast, schema.CallAllgather, schema.CallAllgatherv,
		schema.CallNeighborAllgather}, op)
	first := int64(math.MaxInt64)
	for _, row := range rows {
		first = min(first, row)
	}
	for _, k := range sent {
		m := &messages[k]
		since, known := first, true
		if spreads {
			since, known = rows[payload{m.hash, m.bytes}]
		}
		if m.bytes == bytes && (!known || since >= m.SendSeq) {
			return m.hash
		}
	}
	return schema.NullInt64
}

// moved returns what a rank itself contributes to a gather, or takes out of a scatter. Data that only passes through
// is both sent and received, so the difference removes it.
func (r *Run) moved(t *part) int64 {
	sent := total(r.peers(t.sent, func(m *message) int32 { return m.Dst }))
	got := total(r.peers(t.got, func(m *message) int32 { return m.Src }))
	return max(sent-got, got-sent)
}

// block returns the size of each rank's part in a gather or a scatter: the root receives or sends one part for each
// other rank.
func (r *Run) block(j *joint, root int32) int64 {
	return r.moved(j.part(root)) / int64(len(j.parts)-1)
}

// rootedParts returns the arguments of MPI_Gatherv and MPI_Scatterv. If the finding does not give each rank's share,
// the part that the root keeps is unknown and counts as 0 bytes.
func (r *Run) rootedParts(j *joint, t *part, root, gathers bool) (send, recv int64, parts []schema.Part) {
	in := &r.findings[j.finding].Instances[j.instance]
	has := func(k int) int64 {
		switch {
		case in.RankBytes != nil:
			return in.RankBytes[k]
		case j.parts[k].rank == in.Root:
			return 0
		}
		return r.moved(&j.parts[k])
	}
	all, own := int64(0), int64(0)
	for k := range j.parts {
		bytes := has(k)
		all += bytes
		if &j.parts[k] == t {
			own = bytes
		}
		if gathers {
			parts = addPart(parts, j.parts[k].rank, 0, bytes)
		} else {
			parts = addPart(parts, j.parts[k].rank, bytes, 0)
		}
	}
	switch {
	case root && gathers:
		return own, all, parts
	case root:
		return all, own, parts
	case gathers:
		return own, schema.NullInt64, nil
	}
	return schema.NullInt64, own, nil
}

// describe fills in datatypes, counts, buffers and the hash of what the rank contributes.
func (r *Run) describe(op schema.CallID, t *part, a schema.CollectiveArgs, e *schema.Event) {
	e.SendDatatype = r.datatype(t.sent, t.got)
	size := r.source.TypeBytes[e.SendDatatype]
	count := func(bytes int64) int64 {
		if bytes == schema.NullInt64 || size <= 0 || bytes%size != 0 {
			return schema.NullInt64
		}
		return bytes / size
	}
	e.SendCount = count(a.Send)
	switch op {
	case schema.CallBcast, schema.CallReduce, schema.CallAllreduce, schema.CallScan, schema.CallExscan,
		schema.CallReduceScatter, schema.CallReduceScatterBlock:
	default:
		e.RecvDatatype, e.RecvCount = e.SendDatatype, count(a.Recv)
	}
	if len(t.sent) > 0 {
		e.SendBuffer = r.messages[t.sent[0]].srcBuffer
	}
	if len(t.got) > 0 {
		b := r.messages[t.got[0]].recvBuffer
		if op == schema.CallBcast {
			if !a.Root {
				e.SendBuffer = b
			}
		} else {
			e.RecvBuffer = b
		}
	}
	operand := e.SendBytes
	if op == schema.CallNeighborAllgather { // each neighbour gets the same
		operand = a.Send
	}
	e.PayloadHash = operandHash(op, r.messages, t.sent, r.received(t), operand)
}

// datatype returns the common datatype of all messages, schema.NullInt32 if they differ.
func (r *Run) datatype(lists ...[]int32) int32 {
	id, known := schema.NullInt32, false
	for side, list := range lists {
		for _, k := range list {
			m := &r.messages[k]
			of := m.datatype
			if side == 1 && m.recvDatatype != schema.NullInt32 {
				of = m.recvDatatype
			}
			if known && of != id {
				return schema.NullInt32
			}
			id, known = of, true
		}
	}
	return id
}
