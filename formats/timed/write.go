package timed

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/derive"
)

// shard is a range of ranks whose rows go to one file, and what is counted of them.
type shard struct {
	ranks      []int
	byPeer     []schema.Part // of a row
	counts     schema.Counts
	sourceless int64
	shadowed   int64
	byCall     map[schema.CallID]int64
	endNs      int64
}

// shardRows has the rows of a shard in an epoch.
type shardRows struct {
	events   schema.Events
	messages schema.Messages
	parts    schema.Parts
	sends    []match.Send // in the order of their rows
	recvs    []match.Recv
}

// epoch has the rows of an epoch by shard.
type epoch struct {
	number int32
	shards []shardRows
}

// pass is the second pass.
type pass struct {
	*Job
	readers []*rankReader
	held    []*slot // the first row of a rank's next epoch
	shards  []shard
	epochs  [2]epoch // one is decoded while the one before is matched and written
	matcher match.Matcher
	older   []match.Pair     // those of an epoch whose send is from an earlier one
	waits   *derive.WaitSums // nil: the writer reads the files again for them
}

// write writes events and messages, epoch by epoch.
func (j *Job) write(ctx context.Context, out Sink) error {
	n := len(j.facts)
	p := &pass{Job: j, shards: make([]shard, j.shardCount), held: make([]*slot, n)}
	if s, ok := out.(waitSummer); ok {
		p.waits = s.SumWaits(j.trace.HostOf, j.comms.rows(), true)
	}
	defer func() {
		for _, r := range p.readers {
			r.close()
		}
	}()
	for rank := range n {
		r, err := j.rankReader(int32(rank), false)
		if err != nil {
			return err
		}
		p.readers = append(p.readers, r)
		s := &p.shards[j.shardOf[rank]]
		s.ranks = append(s.ranks, rank)
	}
	for i := range p.shards {
		p.shards[i].byCall = map[schema.CallID]int64{}
	}
	if err := p.writeEpochs(ctx, out); err != nil {
		return err
	}
	p.count()
	return nil
}

// writeEpochs decodes each epoch while the one before is matched and written.
func (p *pass) writeEpochs(ctx context.Context, out Sink) error {
	var writing sync.WaitGroup
	var failed error // of the epoch that is written
	defer writing.Wait()
	for number := range len(p.bounds) + 1 {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := &p.epochs[number%len(p.epochs)]
		if e.number = int32(number); e.shards == nil {
			p.reserve(e)
		}
		err := Parallel(len(p.shards), func(i int) error { return p.decode(i, e) })
		writing.Wait()
		if err = errors.Join(failed, err); err != nil {
			return err
		}
		writing.Go(func() { failed = p.finish(e, out) })
	}
	writing.Wait()
	return failed
}

// finish matches and writes an epoch.
func (p *pass) finish(e *epoch, out Sink) error {
	p.match(e)
	return Parallel(1+len(e.shards), func(i int) error {
		if i == 0 {
			p.sumWaits(e)
			return nil
		}
		rows := &e.shards[i-1]
		for _, b := range []schema.Batch{&rows.events, &rows.messages, &rows.parts} {
			if err := out.Write(i-1, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// sumWaits adds an epoch to the sums of waits.
func (p *pass) sumWaits(e *epoch) {
	if p.waits == nil {
		return
	}
	var events []*schema.Events
	var messages []*schema.Messages
	for i := range e.shards {
		events, messages = append(events, &e.shards[i].events), append(messages, &e.shards[i].messages)
	}
	p.waits.Epoch(events, messages)
}

// reserve makes room for the rows of an epoch, which else grow with many copies.
func (p *pass) reserve(e *epoch) {
	e.shards = make([]shardRows, len(p.shards))
	room := func(n int64) int {
		n /= int64(len(p.bounds) + 1)
		return int(n + n/8)
	}
	for i := range p.shards {
		rows, sends, recvs := int64(0), int64(0), int64(0)
		for _, rank := range p.shards[i].ranks {
			k := &p.sketches[rank]
			rows, sends, recvs = rows+k.rows, sends+k.Sends, recvs+k.Recvs
		}
		s := &e.shards[i]
		s.events.Resize(room(rows))
		s.messages.Resize(room(sends))
		s.sends, s.recvs = make([]match.Send, 0, room(sends)), make([]match.Recv, 0, room(recvs))
	}
}

// decode makes the rows of a shard's ranks in an epoch.
func (p *pass) decode(number int, e *epoch) error {
	s, rows := &p.shards[number], &e.shards[number]
	rows.events.Resize(0)
	rows.messages.Resize(0)
	rows.parts.Resize(0)
	rows.sends, rows.recvs = rows.sends[:0], rows.recvs[:0]
	until := int64(math.MaxInt64)
	if int(e.number) < len(p.bounds) {
		until = p.bounds[e.number]
	}
	for _, rank := range s.ranks {
		r := p.readers[rank]
		for {
			x := p.held[rank]
			p.held[rank] = nil
			if x == nil {
				var err error
				if x, err = r.next(); err != nil {
					return err
				}
			}
			if x == nil {
				break
			}
			if x.row.Comm == unnumbered {
				return ErrLearn
			}
			if x.row.StartNs >= until {
				p.held[rank] = x
				break
			}
			x.row.Epoch = e.number
			p.row(s, rows, x)
		}
		p.report(r)
	}
	return nil
}

// row adds a row to its shard.
func (p *pass) row(s *shard, rows *shardRows, x *slot) {
	row := &x.row
	row.StartNs -= p.shift
	if x.received {
		x.doneStart -= p.shift
		if x.doneEnd != null64 {
			x.doneEnd -= p.shift
		}
	}
	if row.EndNs == null64 {
		s.counts.InProgress++
	} else {
		row.EndNs -= p.shift
		s.endNs = max(s.endNs, row.EndNs)
	}
	p.facts[row.Rank].add(row)
	class := schema.Class(row.Class)
	if class == schema.ClassCollective && row.Comm != null32 && p.comms.all[row.Comm].leads(row.Rank) {
		s.counts.Collectives++
		s.byCall[schema.CallID(row.Call)]++
	}
	rows.events.Append(row)
	if x.to != nil || x.from != nil {
		s.addParts(&rows.parts, x, p.comms.all[row.Comm])
	}
	rows.sends = addSend(rows.sends, x)
	unknown := p.readers[row.Rank].unknown
	if x.unknown() {
		s.sourceless++
		unknown.add(x.asks(), row.Seq)
	} else if r, ok := recvSide(x); ok && unknown.before(&r.Channel, row.Seq) {
		s.shadowed++
	} else if ok {
		rows.recvs = append(rows.recvs, r)
	}
}

// addParts adds the bytes by peer of a collective, in the order of the world ranks.
func (s *shard) addParts(parts *schema.Parts, x *slot, c *Comm) {
	s.byPeer = s.byPeer[:0]
	for i, peer := range c.PeerRanks(x.row.Rank) {
		b := schema.NullPart
		b.Rank, b.Seq, b.Epoch, b.PeerWorld = x.row.Rank, x.row.Seq, x.row.Epoch, peer
		b.SendBytes, b.RecvBytes = 0, 0
		if i < len(x.to) {
			b.SendBytes = x.to[i]
		}
		if i < len(x.from) {
			b.RecvBytes = x.from[i]
		}
		if b.SendBytes != 0 || b.RecvBytes != 0 {
			s.byPeer = append(s.byPeer, b)
		}
	}
	slices.SortFunc(s.byPeer, func(a, b schema.Part) int { return cmp.Compare(a.PeerWorld, b.PeerWorld) })
	for i := range s.byPeer {
		parts.Append(&s.byPeer[i])
	}
}

// addSend appends the send of a row, if it has one that was not cancelled.
func addSend(sends []match.Send, x *slot) []match.Send {
	row := &x.row
	class := schema.Class(row.Class)
	if row.SendWorld != null32 && !x.cancelled && (class == schema.ClassSend || class == schema.ClassSendrecv) {
		sends = append(sends, match.Send{Channel: match.Channel{Comm: row.Comm, Src: row.Rank, Dst: row.SendWorld,
			Tag: row.SendTag, Part: x.pair.Sent}, Datatype: row.SendDatatype, Count: row.SendCount, Buffer: null64, Seq: row.Seq,
			StartNs: row.StartNs, EndNs: row.EndNs, Bytes: row.SendBytes, Callsite: row.Callsite})
	}
	return sends
}

// recvSide returns the receive of a row; false if it has none, or one whose source or tag is not known.
func recvSide(x *slot) (match.Recv, bool) {
	row := &x.row
	class := schema.Class(row.Class)
	if row.RecvWorld == null32 || row.RecvTag == null32 || class != schema.ClassRecv && class != schema.ClassSendrecv {
		return match.Recv{}, false
	}
	r := match.Recv{Channel: match.Channel{Comm: row.Comm, Src: row.RecvWorld, Dst: row.Rank, Tag: row.RecvTag,
		Part: x.pair.Received}, Any: row.PostedAny, PostSeq: row.Seq, PostNs: row.StartNs, DoneSeq: row.Seq,
		StartNs: row.StartNs,
		EndNs:   row.EndNs, Buffer: null64, Bytes: row.RecvBytes, Callsite: row.Callsite, Hash: null64}
	if x.received {
		r.DoneSeq, r.StartNs, r.EndNs, r.Callsite = row.DoneSeq, x.doneStart, x.doneEnd, x.doneSite
	}
	return r, true
}

// match pairs the epoch's sends and receives, and writes messages in the order of their sends. Messages of earlier
// sends, which the epoch's receives meet, are merged in.
func (p *pass) match(e *epoch) {
	p.older = p.older[:0]
	for i := range e.shards {
		for k := range e.shards[i].recvs {
			r := &e.shards[i].recvs[k]
			if s := p.matcher.Recv(r); s != nil {
				p.older = append(p.older, match.Pair{Send: *s, Recv: *r})
			}
		}
	}
	slices.SortFunc(p.older, func(a, b match.Pair) int { return compareSends(&a.Send, &b.Send) })
	next := 0
	for i := range e.shards {
		for k := range e.shards[i].sends {
			s := &e.shards[i].sends[k]
			for ; next < len(p.older) && compareSends(&p.older[next].Send, s) < 0; next++ {
				p.message(e, &p.older[next].Send, &p.older[next].Recv)
			}
			if r := p.matcher.Send(s); r != nil {
				p.message(e, s, r)
			}
		}
	}
	for ; next < len(p.older); next++ {
		p.message(e, &p.older[next].Send, &p.older[next].Recv)
	}
	p.matcher.Sweep()
}

func compareSends(a, b *match.Send) int {
	return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.Seq, b.Seq))
}

// message appends the row of a message.
func (p *pass) message(e *epoch, s *match.Send, r *match.Recv) {
	if s.Bytes != r.Bytes { // one of them has its partner in a part that was not recorded
		p.Resized++
		return
	}
	m := schema.NullMessage
	m.Src, m.Dst, m.Epoch, m.Comm, m.Tag, m.Bytes = s.Src, s.Dst, e.number, s.Comm, s.Tag, s.Bytes
	m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = s.Seq, r.PostSeq, r.DoneSeq
	m.SendStartNs, m.SendEndNs, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = s.StartNs, s.EndNs, r.PostNs, r.StartNs,
		r.EndNs
	m.SendCallsite, m.RecvCallsite = s.Callsite, r.Callsite
	m.SendCount, m.SendDatatype = s.Count, s.Datatype
	e.shards[p.shardOf[s.Src]].messages.Append(&m)
	p.Counts.Messages++
	p.Counts.MessageBytes += s.Bytes
	if r.Any > 0 { // null where the trace does not tell
		p.Counts.WildcardReceives++
	}
}

// count adds up the second pass.
func (p *pass) count() {
	c := &p.Counts
	c.UnmatchedSends, c.UnmatchedReceives = p.matcher.Waiting()
	c.UnmatchedSends += p.Resized
	c.UnmatchedReceives += p.Resized
	for i := range p.shards {
		s := &p.shards[i]
		c.Collectives += s.counts.Collectives
		c.InProgress += s.counts.InProgress
		c.UnmatchedReceives += s.sourceless + s.shadowed
		p.Sourceless += s.sourceless
		p.Shadowed += s.shadowed
		p.EndNs = max(p.EndNs, s.endNs)
		for call, n := range s.byCall {
			p.ByName[call.String()] += n
		}
	}
	for i := range p.facts {
		f := &p.facts[i]
		for _, t := range p.readers[i].threads {
			f.polls += t.polls // those after its last row
		}
		c.Calls += f.rows
		c.Polls += f.polls
		p.Lost += p.readers[i].lost
	}
}
