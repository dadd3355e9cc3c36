package ingest

import (
	"cmp"
	"slices"

	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
)

// envelopes are the sends and receives of a rank in the current epoch, which matching pairs afterwards.
type envelopes struct {
	rank  int32
	sends []int32 // rows of the epoch that are sends; -1: turned out not to be a message
	recvs []match.Recv
	state []recvState // of recvs
	// at is when recvs took their places, if lateProbes; else they did so in the order of their rows, and it is empty.
	at         []int64
	posted     int64 // the latest of them of receives that were posted
	lateProbes bool  // threads call MPI side by side, and a matched probe that waits has no place

	partOf   map[int32]int32 // by row, for partitioned sends: Part of the channel
	bySource [][]int32       // indexes in recvs by the shard that matches them
	// unmatched are the seqs of rows, in all epochs, without a partner that matching does not see; only with
	// RecordMessages, because there may be millions.
	unmatched      map[int64]bool
	listsUnmatched bool

	alien     int64 // sends and receives, in all epochs, with a process outside this run
	lostRecvs int64 // receives, in all epochs, without a partner that matching does not see
}

// recvState says what matching can do with a receive.
type recvState uint8

const (
	recvKnown recvState = iota // its source and tag are known
	recvOpen                   // a wildcard; what it received is not known
	recvVoid                   // it was cancelled or failed
	recvAlien                  // its source is outside MPI_COMM_WORLD, or has no known world rank
)

// reset clears the sends and receives for the next epoch.
func (e *envelopes) reset() {
	e.sends, e.recvs, e.state, e.at = e.sends[:0], e.recvs[:0], e.state[:0], e.at[:0]
	clear(e.partOf)
}

// addSend adds the row with index n in the epoch as a send and returns its index in sends; -1 if it is not a message
// of this run.
func (e *envelopes) addSend(n int, r *schema.Event) int32 {
	if r.SendWorld == schema.NullInt32 {
		e.addAlien(r.Seq)
		return -1
	}
	e.sends = append(e.sends, int32(n))
	return int32(len(e.sends) - 1)
}

// addRecv adds the row as a posted receive and returns its index in recvs.
func (e *envelopes) addRecv(r *schema.Event) int32 {
	e.recvs = append(e.recvs, match.Recv{
		Channel: match.Channel{Comm: r.Comm, Src: r.RecvWorld, Dst: e.rank, Tag: r.RecvTag},
		Any:     r.PostedAny,
		PostSeq: r.Seq, PostNs: r.StartNs, DoneSeq: schema.NullInt64, StartNs: schema.NullInt64,
		EndNs: schema.NullInt64, Buffer: r.RecvBuffer,
		Callsite: schema.NullInt32, Hash: schema.NullInt64})
	e.state = append(e.state, stateOf(r))
	if e.lateProbes { // the rows of MPI_Startall may start after those that follow
		e.posted = max(e.posted, r.StartNs)
		e.at = append(e.at, e.posted)
	}
	return int32(len(e.recvs) - 1)
}

// addProbed adds the row of a matched probe as a receive, as addRecv does. With lateProbes it looks again and again,
// and takes a message just before it returns.
func (e *envelopes) addProbed(r *schema.Event) int32 {
	posted := e.posted
	i := e.addRecv(r)
	if e.lateProbes {
		e.posted, e.at[i] = posted, r.EndNs
	}
	return i
}

// orderRecvs puts the receives into the order in which they took their places, when the epoch's rows are complete.
// Those that were posted stay in the order of their rows.
func (e *envelopes) orderRecvs() {
	if slices.IsSorted(e.at) {
		return
	}
	order := make([]int32, len(e.at))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(e.at[a], e.at[b]) })
	recvs, state := slices.Clone(e.recvs), slices.Clone(e.state)
	for to, from := range order {
		e.recvs[to], e.state[to] = recvs[from], state[from]
	}
}

// stateOf returns the state of a receive from its row.
func stateOf(r *schema.Event) recvState {
	switch {
	case r.RecvPeer == schema.NullInt32 || r.RecvTag == schema.NullInt32:
		return recvOpen
	case r.RecvWorld == schema.NullInt32:
		return recvAlien
	}
	return recvKnown
}

// completeRecv sets the row that completed receive i.
func (e *envelopes) completeRecv(i int32, r *schema.Event, hash int64) {
	m := &e.recvs[i]
	m.DoneSeq, m.StartNs, m.EndNs, m.Callsite, m.Hash = r.Seq, r.StartNs, r.EndNs, r.Callsite, hash
}

// setPart moves the send or receive of a started partitioned request onto its own channel.
func (e *envelopes) setPart(part int32, p *pending) {
	if part == 0 {
		return
	}
	if p.send >= 0 {
		if e.partOf == nil {
			e.partOf = map[int32]int32{}
		}
		e.partOf[p.row] = part
	}
	if p.recv >= 0 {
		e.recvs[p.recv].Part = part
	}
}

// countOpen counts the receives that matching will not see, at the end of an epoch.
func (e *envelopes) countOpen() {
	for i := range e.state {
		switch e.state[i] {
		case recvAlien:
			e.addAlien(e.recvs[i].PostSeq)
		case recvOpen:
			e.addLost(e.recvs[i].PostSeq)
		}
	}
}

// addAlien counts a send or a receive whose partner is not in this run.
func (e *envelopes) addAlien(seq int64) {
	e.alien++
	e.addUnmatched(seq)
}

// addLost counts a receive without a partner.
func (e *envelopes) addLost(seq int64) {
	e.lostRecvs++
	e.addUnmatched(seq)
}

func (e *envelopes) addUnmatched(seq int64) {
	if !e.listsUnmatched {
		return
	}
	if e.unmatched == nil {
		e.unmatched = map[int64]bool{}
	}
	e.unmatched[seq] = true
}

// route sorts the receives by the shard that matches them, the one of their source. indexOf and shardOf belong to the
// pass. Receives from ranks in away are left out, because another part of the job matches them; away may be nil.
func (e *envelopes) route(shards int, indexOf, shardOf []int32, away []bool) {
	if len(e.bySource) != shards {
		e.bySource = make([][]int32, shards)
	}
	for s := range e.bySource {
		e.bySource[s] = e.bySource[s][:0]
	}
	for i := range e.recvs {
		if e.state[i] != recvKnown || away != nil && away[e.recvs[i].Src] {
			continue
		}
		s := int32(0) // if the sender's records are missing, any shard will do
		if k := indexOf[e.recvs[i].Src]; k >= 0 {
			s = shardOf[k]
		}
		e.bySource[s] = append(e.bySource[s], int32(i))
	}
}
