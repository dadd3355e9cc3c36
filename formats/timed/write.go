package timed

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
)

// shard has the rows of a range of ranks, which go to one file, in an epoch.
type shard struct {
	ranks      []int
	events     schema.Events
	messages   schema.Messages
	parts      schema.Parts
	byPeer     []schema.Part // of a row
	sends      []match.Send
	recvs      []match.Recv
	counts     schema.Counts
	sourceless int64
	shadowed   int64
	byCall     map[schema.CallID]int64
	endNs      int64
}

// pass is the second pass.
type pass struct {
	*Job
	readers []*rankReader
	held    []*slot // the first row of a rank's next epoch
	shards  []shard
	matcher match.Matcher
	pairs   []match.Pair
}

// write writes events and messages, epoch by epoch.
func (j *Job) write(ctx context.Context, out Sink) error {
	n := len(j.facts)
	p := &pass{Job: j, shards: make([]shard, j.shardCount), held: make([]*slot, n)}
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
		p.reserve(&p.shards[i])
	}
	for e := 0; e <= len(j.bounds); e++ {
		if err := p.epoch(ctx, int32(e), out); err != nil {
			return err
		}
	}
	p.count()
	return nil
}

// epoch writes an epoch.
func (p *pass) epoch(ctx context.Context, e int32, out Sink) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := Parallel(len(p.shards), func(i int) error { return p.decode(&p.shards[i], e) }); err != nil {
		return err
	}
	p.match(e)
	for i := range p.shards {
		for _, b := range []schema.Batch{&p.shards[i].events, &p.shards[i].messages, &p.shards[i].parts} {
			if err := out.Write(i, b); err != nil {
				return err
			}
		}
	}
	return nil
}

// reserve makes room for the rows of a shard in an epoch, which else grow with many copies.
func (p *pass) reserve(s *shard) {
	rows := int64(0)
	for _, rank := range s.ranks {
		rows += p.facts[rank].rows
	}
	epochs := int64(len(p.bounds) + 1)
	s.events.Resize(int(rows/epochs + rows/epochs/8))
}

// decode makes the rows of a shard's ranks in an epoch.
func (p *pass) decode(s *shard, e int32) error {
	s.events.Resize(0)
	s.messages.Resize(0)
	s.parts.Resize(0)
	s.sends, s.recvs = s.sends[:0], s.recvs[:0]
	until := int64(math.MaxInt64)
	if int(e) < len(p.bounds) {
		until = p.bounds[e]
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
			if x.row.StartNs >= until {
				p.held[rank] = x
				break
			}
			p.row(s, x, e)
		}
		p.report(r)
	}
	return nil
}

// row adds a row to its shard.
func (p *pass) row(s *shard, x *slot, e int32) {
	row := &x.row
	row.Epoch = e
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
	p.facts[row.Rank].addCollective(row)
	class := schema.Class(row.Class)
	if class == schema.ClassCollective && row.Comm != null32 && p.comms.all[row.Comm].leads(row.Rank) {
		s.counts.Collectives++
		s.byCall[schema.CallID(row.Call)]++
	}
	s.events.Append(row)
	if x.to != nil || x.from != nil {
		s.addParts(x, p.comms.all[row.Comm])
	}
	s.sends = addSend(s.sends, x)
	unknown := p.readers[row.Rank].unknown
	if x.unknown() {
		s.sourceless++
		unknown.add(x.asks(), row.Seq)
	} else if r, ok := recvSide(x); ok && unknown.before(&r.Channel, row.Seq) {
		s.shadowed++
	} else if ok {
		s.recvs = append(s.recvs, r)
	}
}

// addParts adds the bytes by peer of a collective, in the order of the world ranks.
func (s *shard) addParts(x *slot, c *Comm) {
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
		s.parts.Append(&s.byPeer[i])
	}
}

// addSend appends the send of a row, if it has one.
func addSend(sends []match.Send, x *slot) []match.Send {
	row := &x.row
	class := schema.Class(row.Class)
	if row.SendWorld != null32 && (class == schema.ClassSend || class == schema.ClassSendrecv) {
		sends = append(sends, match.Send{Channel: match.Channel{Comm: row.Comm, Src: row.Rank, Dst: row.SendWorld,
			Tag: row.SendTag}, Datatype: row.SendDatatype, Count: row.SendCount, Buffer: null64, Seq: row.Seq,
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
	r := match.Recv{Channel: match.Channel{Comm: row.Comm, Src: row.RecvWorld, Dst: row.Rank, Tag: row.RecvTag},
		Any: row.PostedAny, PostSeq: row.Seq, PostNs: row.StartNs, DoneSeq: row.Seq, StartNs: row.StartNs,
		EndNs: row.EndNs, Buffer: null64, Bytes: row.RecvBytes, Callsite: row.Callsite, Hash: null64}
	if x.received {
		r.DoneSeq, r.StartNs, r.EndNs, r.Callsite = row.DoneSeq, x.doneStart, x.doneEnd, x.doneSite
	}
	return r, true
}

// match pairs the epoch's sends and receives, in the order of the sends.
func (p *pass) match(e int32) {
	p.pairs = p.pairs[:0]
	for i := range p.shards {
		for k := range p.shards[i].recvs {
			r := &p.shards[i].recvs[k]
			if s := p.matcher.Recv(r); s != nil {
				p.pairs = append(p.pairs, match.Pair{Send: *s, Recv: *r})
			}
		}
	}
	for i := range p.shards {
		for k := range p.shards[i].sends {
			s := &p.shards[i].sends[k]
			if r := p.matcher.Send(s); r != nil {
				p.pairs = append(p.pairs, match.Pair{Send: *s, Recv: *r})
			}
		}
	}
	p.matcher.Sweep()
	slices.SortFunc(p.pairs, comparePairs)
	for i := range p.pairs {
		if s, r := &p.pairs[i].Send, &p.pairs[i].Recv; s.Bytes == r.Bytes {
			p.message(e, s, r)
		} else { // one of them has its partner in a part that was not recorded
			p.Resized++
		}
	}
}

func comparePairs(a, b match.Pair) int {
	return cmp.Or(cmp.Compare(a.Send.Src, b.Send.Src), cmp.Compare(a.Send.Seq, b.Send.Seq))
}

// message appends the row of a message.
func (p *pass) message(e int32, s *match.Send, r *match.Recv) {
	m := schema.NullMessage
	m.Src, m.Dst, m.Epoch, m.Comm, m.Tag, m.Bytes = s.Src, s.Dst, e, s.Comm, s.Tag, s.Bytes
	m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = s.Seq, r.PostSeq, r.DoneSeq
	m.SendStartNs, m.SendEndNs, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = s.StartNs, s.EndNs, r.PostNs, r.StartNs,
		r.EndNs
	m.SendCallsite, m.RecvCallsite = s.Callsite, r.Callsite
	m.SendCount, m.SendDatatype = s.Count, s.Datatype
	p.shards[p.shardOf[s.Src]].messages.Append(&m)
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
		c.Polls += p.facts[i].polls
		p.Lost += p.readers[i].lost
	}
}
