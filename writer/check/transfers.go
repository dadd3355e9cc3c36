package check

import "github.com/commq/commq/schema"

// checkOneSided checks the rows of class rma.
func checkOneSided(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	made := makers{}
	return func(b schema.Batch) {
		e := b.(*schema.Events)
		for i, class := range e.Class {
			if class != int16(schema.ClassRMA) {
				continue
			}
			made.check(r, out, e, i)
			checkNoTag(out, e, i)
			send, recv := schema.Sides(schema.CallID(e.Call[i]))
			data := send || recv
			if e.ProcNull[i] != schema.NullInt32 && e.Comm[i] == schema.NullInt32 && e.ProcNull[i] == 0 {
				continue // neither the window nor the target is known
			}
			for _, s := range []rmaSide{
				{"send", send, data, e.SendPeer[i], e.SendBytes[i], schema.ProcNullSend},
				{"recv", recv, data, e.RecvPeer[i], e.RecvBytes[i], schema.ProcNullRecv}} {
				s.check(r, out, e, i)
			}
		}
	}, nil
}

// rmaSide is one side of a row of class rma.
type rmaSide struct {
	name     string
	has      bool // the call has that side
	data     bool // the call moves data
	peer     int32
	bytes    int64
	procNull int32 // the side's bit in proc_null
}

func (s rmaSide) check(r *run, out *reporter, e *schema.Events, i int) {
	null := e.ProcNull[i] != schema.NullInt32 && e.ProcNull[i]&s.procNull != 0
	call := schema.CallID(e.Call[i])
	switch {
	case !s.has && s.bytes != schema.NullInt64:
		out.badRow(e, i, "%s has %s_bytes %d", call, s.name, s.bytes)
	// calls that synchronise name their target in send_peer
	case !s.has && (s.peer != schema.NullInt32 || null) && (s.data || s.name == "recv"):
		out.badRow(e, i, "%s has a %s side", call, s.name)
	case s.has && null && s.bytes != 0:
		out.badRow(e, i, "%s_bytes is not 0 with the target MPI_PROC_NULL", s.name)
	case s.has && !null && s.peer == schema.NullInt32 && succeeded(r, e, i):
		out.badRow(e, i, "%s has no %s_peer", call, s.name)
	}
}

// succeeded reports whether the call of row i returned without an error.
func succeeded(r *run, e *schema.Events, i int) bool {
	return e.ErrorClass[i] == schema.NullInt32 &&
		(e.EndNs[i] != schema.NullInt64 || r.manifest.TimeOrigin == "untimed")
}

// checkFiles checks the rows of class io.
func checkFiles(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	made := makers{}
	return func(b schema.Batch) {
		e := b.(*schema.Events)
		for i, class := range e.Class {
			if class != int16(schema.ClassIO) {
				continue
			}
			made.check(r, out, e, i)
			checkNoTag(out, e, i)
			call := schema.CallID(e.Call[i])
			send, recv := schema.Sides(call)
			switch {
			case e.SendPeer[i] != schema.NullInt32 || e.RecvPeer[i] != schema.NullInt32 ||
				e.ProcNull[i] != schema.NullInt32:
				out.badRow(b, i, "%s has a peer", call)
			case !send && (e.SendBytes[i] != schema.NullInt64 || e.SendCount[i] != schema.NullInt64):
				out.badRow(b, i, "%s has a send side", call)
			case !recv && (e.RecvBytes[i] != schema.NullInt64 || e.RecvCount[i] != schema.NullInt64):
				out.badRow(b, i, "%s has a receive side", call)
			case isNegative(e.SendBytes[i]) || isNegative(e.RecvBytes[i]):
				out.badRow(b, i, "%s moves a negative number of bytes", call)
			}
		}
	}, nil
}

func isNegative(x int64) bool { return x < 0 && x != schema.NullInt64 }

// checkNoTag looks for columns that neither class has: tags, posted_any and the root.
func checkNoTag(out *reporter, e *schema.Events, i int) {
	if e.SendTag[i] != schema.NullInt32 || e.RecvTag[i] != schema.NullInt32 || e.PostedAny[i] != schema.NullInt32 ||
		e.RootWorld[i] != schema.NullInt32 {
		out.badRow(e, i, "%s has a tag, a root or posted_any", schema.CallID(e.Call[i]))
	}
}

// makers maps rows that made a window or opened a file to their communicators.
type makers map[makerKey]int32

type makerKey struct {
	rank int32
	seq  int64
}

// check remembers a row that makes a window or opens a file, and compares any other row with the row that init_seq
// names.
func (m makers) check(r *run, out *reporter, e *schema.Events, i int) {
	call, rank, initSeq := schema.CallID(e.Call[i]), e.Rank[i], e.InitSeq[i]
	if call.IsAny(schema.FactCreatesWindow | schema.FactOpensFile) {
		m[makerKey{rank, e.Seq[i]}] = e.Comm[i]
		if initSeq != schema.NullInt64 {
			out.badRow(e, i, "%s has init_seq %d", call, initSeq)
		}
		return
	}
	if e.Instance[i] != schema.NullInt64 {
		out.badRow(e, i, "%s has instance %d", call, e.Instance[i])
	}
	if initSeq == schema.NullInt64 || !r.dense() {
		return
	}
	switch comm, ok := m[makerKey{rank, initSeq}]; {
	case !ok:
		out.badRow(e, i, "init_seq is %d, which is no earlier row that made a window or opened a file", initSeq)
	case comm != e.Comm[i]:
		out.badRow(e, i, "init_seq is %d, a row on communicator %d; this one is on %d", initSeq, comm, e.Comm[i])
	}
}
