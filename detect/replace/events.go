package replace

import (
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// readerState is the state of a rank that is needed only while its rows are read.
type readerState struct {
	posted  []posted          // receives, by the row that posted them
	sends   map[int64][]int32 // messages of findings, by the row that sends them
	posts   map[int64][]int32
	windows map[int64]*window // by the row that created them
	split   map[int64]bool    // rows that created partitioned requests
}

// posted is a receive of a message.
type posted struct {
	channel
	post int64
	need need
}

// channel is a communicator, source and tag: messages of one channel do not overtake each other.
type channel struct{ comm, src, tag int32 }

// window is a window for one-sided communication.
type window struct {
	instance, fences int64
}

// syncKey names a collective operation of a communicator.
type syncKey struct {
	comm     int32
	instance int64
}

// readEvents reads the table events.
func (r *Run) readEvents() error {
	for i := range r.ranks {
		q := &r.ranks[i]
		q.syncs = map[int64]sync{}
		q.reader.sends, q.reader.posts = map[int64][]int32{}, map[int64][]int32{}
		q.reader.windows, q.reader.split = map[int64]*window{}, map[int64]bool{}
	}
	for i := range r.messages {
		m := &r.messages[i]
		s, d := r.ranks[m.Src].reader.sends, r.ranks[m.Dst].reader.posts
		s[m.SendSeq] = append(s[m.SendSeq], int32(i))
		d[m.PostSeq] = append(d[m.PostSeq], int32(i))
	}
	err := r.source.Events(func(b *schema.Events) error {
		for i := range b.Rank {
			if err := r.row(b, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range r.ranks {
		q := &r.ranks[i]
		q.ends = make([]int32, len(q.done))
		for seq, done := range q.done {
			if done != schema.NullInt64 {
				if done <= int64(seq) || done >= int64(len(q.done)) {
					return fmt.Errorf("rank %d, seq %d: done_seq %d is no later row of it", i, seq, done)
				}
				q.ends[done]++
			}
		}
		for _, n := range q.needs {
			if n.done >= 0 && n.done < int64(len(q.flags)) {
				q.flags[n.done] |= rowWaits
			}
		}
		for _, s := range q.syncs {
			if s.blocks {
				r.syncs[syncKey{s.comm, s.instance}]++
			}
		}
	}
	for i := range r.messages {
		m := &r.messages[i]
		sends := m.kind[0] == schema.ClassSend || m.kind[0] == schema.ClassSendrecv
		receives := m.kind[1] == schema.ClassRecv || m.kind[1] == schema.ClassSendrecv ||
			m.kind[1] == schema.ClassProbe && m.recvRow != m.PostSeq
		if !sends || !receives {
			return fmt.Errorf("finding %d, instance %d: the message that rank %d sends with seq %d does not have the rows of both its ends", r.findings[m.finding].Number, m.instance+1, m.Src, m.SendSeq)
		}
	}
	return nil
}

// row reads row i of events.
func (r *Run) row(b *schema.Events, i int) error {
	if b.Rank[i] < 0 || int(b.Rank[i]) >= len(r.ranks) {
		return fmt.Errorf("rank %d, seq %d: the run has %d ranks", b.Rank[i], b.Seq[i], len(r.ranks))
	}
	q := &r.ranks[b.Rank[i]]
	seq := b.Seq[i]
	if seq != int64(len(q.flags)) {
		return fmt.Errorf("rank %d: seq %d where %d is due: rows are missing; capture the run again with --record all", b.Rank[i], seq, len(q.flags))
	}
	call, class := schema.CallID(b.Call[i]), schema.Class(b.Class[i])
	var flags uint8
	switch class {
	case schema.ClassComplete:
		flags |= rowComplete
	case schema.ClassSendrecv:
		flags |= rowSends
	case schema.ClassProbe:
		if b.RecvWorld[i] != schema.NullInt32 {
			flags |= rowProbe
			q.probes = append(q.probes, probe{seq: seq, comm: b.Comm[i], src: b.RecvWorld[i], tag: b.RecvTag[i],
				found: need{src: none}})
		}
	}
	if s, ok := q.sync(b, i, call); ok {
		flags |= rowSyncs
		q.syncs[seq] = s
	}
	q.flags = append(q.flags, flags)
	q.thread = append(q.thread, int16(b.Thread[i]))
	q.compute = append(q.compute, b.ComputeNs[i])
	q.done = append(q.done, b.DoneSeq[i])
	r.ends(q, b, i, call, class)
	return nil
}

// sync returns the collective operation of a communicator that row i is, if it is one.
func (q *rank) sync(b *schema.Events, i int, call schema.CallID) (sync, bool) {
	instance, comm := b.Instance[i], b.Comm[i]
	if call.Is(schema.FactCreatesWindow) {
		q.reader.windows[b.Seq[i]] = &window{instance: instance}
	}
	if call.Is(schema.FactFence) {
		w := q.reader.windows[b.InitSeq[i]]
		if w == nil || w.instance == schema.NullInt64 || comm == schema.NullInt32 {
			return sync{}, false
		}
		w.fences++
		return sync{comm: comm, instance: -(w.instance<<32 | w.fences), blocks: true}, true
	}
	if instance == schema.NullInt64 || comm == schema.NullInt32 {
		return sync{}, false
	}
	if call.Is(schema.FactMakesRequest) && call.IsAny(schema.FactCollective|schema.FactCreatesCommunicator) {
		return sync{comm, instance, false, true}, true
	}
	starts := call.Is(schema.FactStarts)
	return sync{comm, instance, !starts, !starts}, true
}

// ends records what the row tells about the messages that begin or end at it.
func (r *Run) ends(q *rank, b *schema.Events, i int, call schema.CallID, class schema.Class) {
	seq := b.Seq[i]
	switch {
	case call.Is(schema.FactPartitioned | schema.FactPersistent):
		q.reader.split[seq] = true
	case call.Is(schema.FactMatched | schema.FactReceives):
		for _, k := range q.reader.posts[b.InitSeq[i]] {
			m := &r.messages[k]
			m.recvRow, m.recvDatatype, m.recvBuffer = seq, b.RecvDatatype[i], b.RecvBuffer[i]
		}
		return
	}
	null := b.ProcNull[i]
	if null == schema.NullInt32 {
		null = 0
	}
	for _, k := range q.reader.sends[seq] {
		m := &r.messages[k]
		m.kind[0], m.otherNull[0] = class, null&schema.ProcNullRecv != 0
		m.partitioned = m.partitioned || q.reader.split[b.InitSeq[i]]
	}
	for _, k := range q.reader.posts[seq] {
		m := &r.messages[k]
		m.kind[1], m.otherNull[1] = class, null&schema.ProcNullSend != 0
		m.wildcard = b.PostedAny[i] != schema.NullInt32 && b.PostedAny[i] != 0
		m.partitioned = m.partitioned || q.reader.split[b.InitSeq[i]]
		if class != schema.ClassProbe {
			m.recvDatatype, m.recvBuffer = b.RecvDatatype[i], b.RecvBuffer[i]
		}
	}
}

// findProbed finds the message of each probe: the first one in its channel that is received at or after the probe.
func (r *Run) findProbed() {
	for i := range r.ranks {
		q := &r.ranks[i]
		wanted := map[channel][]*posted{}
		for k := range q.probes {
			p := &q.probes[k]
			wanted[channel{p.comm, p.src, p.tag}] = nil
		}
		if len(wanted) > 0 {
			for k := range q.reader.posted {
				p := &q.reader.posted[k]
				if list, ok := wanted[p.channel]; ok {
					wanted[p.channel] = append(list, p)
				}
			}
		}
		for k := range q.probes {
			p := &q.probes[k]
			list := wanted[channel{p.comm, p.src, p.tag}]
			at, _ := slices.BinarySearchFunc(list, p.seq,
				func(x *posted, seq int64) int { return compare(x.post, seq) })
			if at < len(list) {
				p.found, p.matches = list[at].need, list[at].post == p.seq
			}
		}
		q.reader = readerState{}
	}
}
