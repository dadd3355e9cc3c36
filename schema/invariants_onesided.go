package schema

// madeKey is the row that made a window or opened a file; madeState what it says.
type madeKey struct {
	rank int32
	seq  int64
}

type madeState struct {
	class Class
	comm  int32
}

// makes says whether a call makes a window or opens a file.
func makes(call int16) bool {
	r := Calls[call].Recorder
	return r == "win_new" || r == "file_open"
}

// checkOneSided looks at the rows of class rma.
func checkOneSided(c *Checker, b Batch) {
	e := b.(*Events)
	for i, class := range e.Class {
		if class != int16(ClassRMA) {
			continue
		}
		c.checkMade(e, i)
		c.checkBare(e, i)
		send, recv := Sides(CallID(e.Call[i]))
		data := send || recv
		if e.ProcNull[i] != NullInt32 && e.Comm[i] == NullInt32 && e.ProcNull[i] == 0 {
			continue // the window is not known, and so is the target
		}
		c.checkTarget(e, i, "send", send, data, e.SendPeer[i], e.SendBytes[i], ProcNullSend)
		c.checkTarget(e, i, "recv", recv, data, e.RecvPeer[i], e.RecvBytes[i], ProcNullRecv)
	}
}

// checkTarget looks at one side of a row of class rma; has says that the call has that side, data that it moves data.
func (c *Checker) checkTarget(e *Events, i int, name string, has, data bool, peer int32, bytes int64, bit int32) {
	null := e.ProcNull[i] != NullInt32 && e.ProcNull[i]&bit != 0
	switch {
	case !has && bytes != NullInt64:
		c.bad(e.Rank[i], e.Seq[i], "%s has %s_bytes %d", CallID(e.Call[i]), name, bytes)
	case !has && (peer != NullInt32 || null) && (data || name == "recv"): // what synchronises names its target as send_peer
		c.bad(e.Rank[i], e.Seq[i], "%s has a %s side", CallID(e.Call[i]), name)
	case has && null && bytes != 0:
		c.bad(e.Rank[i], e.Seq[i], "%s_bytes is not 0 with the target MPI_PROC_NULL", name)
	case has && !null && peer == NullInt32 && c.returned(e, i):
		c.bad(e.Rank[i], e.Seq[i], "%s has no %s_peer", CallID(e.Call[i]), name)
	}
}

// checkFiles looks at the rows of class io.
func checkFiles(c *Checker, b Batch) {
	e := b.(*Events)
	for i, class := range e.Class {
		if class != int16(ClassIO) {
			continue
		}
		c.checkMade(e, i)
		c.checkBare(e, i)
		send, recv := Sides(CallID(e.Call[i]))
		switch {
		case e.SendPeer[i] != NullInt32 || e.RecvPeer[i] != NullInt32 || e.ProcNull[i] != NullInt32:
			c.bad(e.Rank[i], e.Seq[i], "%s has a peer", CallID(e.Call[i]))
		case !send && (e.SendBytes[i] != NullInt64 || e.SendCount[i] != NullInt64):
			c.bad(e.Rank[i], e.Seq[i], "%s has a send side", CallID(e.Call[i]))
		case !recv && (e.RecvBytes[i] != NullInt64 || e.RecvCount[i] != NullInt64):
			c.bad(e.Rank[i], e.Seq[i], "%s has a receive side", CallID(e.Call[i]))
		case e.SendBytes[i] < 0 && e.SendBytes[i] != NullInt64 || e.RecvBytes[i] < 0 && e.RecvBytes[i] != NullInt64:
			c.bad(e.Rank[i], e.Seq[i], "%s moves less than nothing", CallID(e.Call[i]))
		}
	}
}

// returned says that the call of row i came back, and without an error.
func (c *Checker) returned(e *Events, i int) bool {
	return e.ErrorClass[i] == NullInt32 && (e.EndNs[i] != NullInt64 || c.manifest.TimeOrigin == "untimed")
}

// checkBare looks for what neither class has: tags, how a receive was posted, a root.
func (c *Checker) checkBare(e *Events, i int) {
	if e.SendTag[i] != NullInt32 || e.RecvTag[i] != NullInt32 || e.PostedAny[i] != NullInt32 || e.RootWorld[i] != NullInt32 {
		c.bad(e.Rank[i], e.Seq[i], "%s has a tag, a root or posted_any", CallID(e.Call[i]))
	}
}

// checkMade looks at what a row says of the row that made its window or opened its file.
func (c *Checker) checkMade(e *Events, i int) {
	rank, seq, made := e.Rank[i], e.Seq[i], e.InitSeq[i]
	if makes(e.Call[i]) {
		c.made[madeKey{rank, seq}] = madeState{Class(e.Class[i]), e.Comm[i]}
		if made != NullInt64 {
			c.bad(rank, seq, "%s has init_seq %d", CallID(e.Call[i]), made)
		}
		return
	}
	if e.Instance[i] != NullInt64 {
		c.bad(rank, seq, "%s has instance %d", CallID(e.Call[i]), e.Instance[i])
	}
	if made == NullInt64 || !c.dense() {
		return
	}
	maker, ok := c.made[madeKey{rank, made}]
	switch {
	case !ok || maker.class != Class(e.Class[i]):
		c.bad(rank, seq, "init_seq is %d, which is no earlier row that made a window or opened a file", made)
	case maker.comm != e.Comm[i]:
		c.bad(rank, seq, "init_seq is %d, a row on communicator %d; this one is on %d", made, maker.comm, e.Comm[i])
	}
}
