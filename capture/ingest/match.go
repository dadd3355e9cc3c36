package ingest

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
)

// pass is a second pass over the records of some ranks: epoch by epoch, it makes their rows (decode) and matches their
// sends with receives (match).
type pass struct {
	layout   *layout
	plan     *plan
	workers  int
	decoders []*decoder // by index in the ranks of the layout
	shards   []shard
	indexOf  []int32 // index of the decoder by world rank; -1: its records are not here

	// away marks, by world rank, the ranks whose records are in another part of the job, where their sends are
	// matched; nil if there are no other parts.
	away []bool
	// foreign has, by shard, the receives of the epoch that ranks elsewhere posted for messages of ranks here.
	foreign [][]match.Recv
}

// shard is a range of ranks: it matches their sends, and their rows go to the same file.
type shard struct {
	number  int
	ranks   []int // indexes of decoders
	matcher match.Matcher
	early   []match.Pair // matched sends of earlier epochs
	most    int          // the largest number of its rows of events in an epoch
	made    int          // its rows of messages in the current epoch

	fetched                 int64 // without meaning; see addMatched
	countOnly               bool  // count messages without writing them
	count, bytes, wildcards int64
	verified, mismatches    int64 // messages hashed at both ends, and those of them whose hashes differ
}

// newPass begins a pass over the ranks of the layout, in a job of size ranks.
func newPass(p *plan, l *layout, size int32, workers int) *pass {
	s := &pass{layout: l, plan: p, workers: workers, shards: make([]shard, l.shards),
		indexOf: slices.Repeat([]int32{-1}, int(size))}
	for i, r := range l.ranks {
		s.indexOf[r.rank] = int32(i)
		s.decoders = append(s.decoders, newDecoder(p, r))
		shard := &s.shards[l.shardOf[i]]
		shard.ranks = append(shard.ranks, i)
	}
	for i := range s.shards {
		shard := &s.shards[i]
		shard.number, shard.countOnly = i, p.filter.record == RecordCollectives
		for e := range p.epochs() {
			n := 0
			for _, k := range shard.ranks {
				n += l.rowsOf(k, e)
			}
			shard.most = max(shard.most, n)
		}
	}
	return s
}

// keepSome makes the decoders also note which rows are kept.
func (p *pass) keepSome() {
	for _, d := range p.decoders {
		d.filter.keep = []bool{}
	}
}

// decode makes the rows of events of an epoch.
func (p *pass) decode(ctx context.Context, e *epoch) error {
	for s := range p.shards {
		n := 0
		for _, i := range p.shards[s].ranks {
			e.bases[i] = n
			n += p.layout.rowsOf(i, e.number)
		}
		e.events[s].Resize(n)
	}
	shardOf := p.layout.shardOf
	return parallel(ctx, p.workers, len(p.decoders), func(i int) error {
		d := p.decoders[i]
		if err := d.decodeEpoch(e.number, &e.events[shardOf[i]], e.bases[i]); err != nil {
			return err
		}
		e.keep[i] = d.filter.keep
		d.ends.route(len(p.shards), p.indexOf, shardOf, p.away)
		return nil
	})
}

// match makes the messages of an epoch, after decode.
func (p *pass) match(ctx context.Context, e *epoch) error {
	return parallel(ctx, p.workers, len(p.shards), func(s int) error { p.matchShard(&p.shards[s], e); return nil })
}

// matchShard pairs the sends of the shard's ranks in this epoch with their receives, and makes the messages in the
// order of their sends. It adds the receives first. Then a send finds its partner at once, and only messages whose
// send has waited since an earlier epoch are out of order.
func (p *pass) matchShard(s *shard, e *epoch) {
	s.early = s.early[:0]
	for _, d := range p.decoders {
		for _, i := range d.ends.bySource[s.number] {
			s.addRecv(&d.ends.recvs[i])
		}
	}
	if p.foreign != nil {
		recvs := p.foreign[s.number]
		for i := range recvs {
			s.addRecv(&recvs[i])
		}
	}
	slices.SortFunc(s.early, func(a, b match.Pair) int {
		return cmp.Or(cmp.Compare(a.Send.Src, b.Send.Src), cmp.Compare(a.Send.Seq, b.Send.Seq))
	})
	p.reserveMessages(s, e)
	early := s.early
	for _, i := range s.ranks {
		d := p.decoders[i]
		for len(early) > 0 && early[0].Send.Src == d.r.rank {
			s.addMessage(e, &early[0].Send, &early[0].Recv)
			early = early[1:]
		}
		s.matchSends(d, e)
	}
	e.messages[s.number].Resize(s.made)
	s.matcher.Sweep()
}

// matched is a send of this epoch with its receive.
type matched struct {
	send match.Send
	recv *match.Recv
	row  int32 // of the send
}

// matchedAtOnce is the number of messages that are found before their rows are made.
const matchedAtOnce = 16

// matchSends pairs the sends of a rank. The receives are far apart in memory, so it looks for several and fetches them
// together: the processor then waits once for all of them.
func (s *shard) matchSends(d *decoder, e *epoch) {
	var found [matchedAtOnce]matched
	n := 0
	for _, row := range d.ends.sends {
		if row < 0 {
			continue
		}
		m := &found[n]
		m.send = d.rows.send(row, d.r.rank, d.ends.partOf[row], d.filter.isHidden(int(row)))
		if m.recv, m.row = s.matcher.Send(&m.send), row; m.recv == nil {
			continue
		}
		if n++; n == len(found) {
			s.addMatched(d, e, found[:])
			n = 0
		}
	}
	s.addMatched(d, e, found[:n])
}

// addMatched makes the rows of messages.
func (s *shard) addMatched(d *decoder, e *epoch, found []matched) {
	for k := range found {
		s.fetched += found[k].recv.PostSeq + found[k].recv.Hash // the first and the last of its bytes
	}
	for k := range found {
		m := &found[k]
		s.addMessage(e, &m.send, m.recv)
		if d.hashed {
			d.rows.clearPayload(m.row)
		}
	}
}

// reserveMessages makes room for all messages of the shard in an epoch: there are no more than sends.
func (p *pass) reserveMessages(s *shard, e *epoch) {
	s.made = 0
	n := len(s.early)
	for _, i := range s.ranks {
		n += len(p.decoders[i].ends.sends)
	}
	if s.countOnly {
		n = 0
	}
	rows := &e.messages[s.number]
	rows.Resize(0)
	rows.Resize(n + n/8) // later epochs may have more
}

// addRecv gives a receive to the matcher. If its send was in an earlier epoch, the pair goes into early.
func (s *shard) addRecv(r *match.Recv) {
	if send := s.matcher.Recv(r); send != nil {
		s.early = append(s.early, match.Pair{Send: *send, Recv: *r})
	}
}

// clearPayload removes the hashes of a row: they are now in the row of its message.
func (w *epochRows) clearPayload(row int32) {
	b, i := w.events, w.base+int(row)
	b.PayloadHash[i], b.PayloadSum[i], b.PayloadHead[i] = schema.NullInt64, schema.NullInt64, schema.NullInt64
}

// send returns the send of a row. part is that of its channel; hidden means that a filter leaves the row out.
func (w *epochRows) send(row, rank, part int32, hidden bool) match.Send {
	b, i := w.events, w.base+int(row)
	return match.Send{
		Channel:  match.Channel{Comm: b.Comm[i], Src: rank, Dst: b.SendWorld[i], Tag: b.SendTag[i], Part: part},
		Datatype: b.SendDatatype[i], Seq: b.Seq[i], StartNs: b.StartNs[i], EndNs: b.EndNs[i], Bytes: b.SendBytes[i],
		Count: b.SendCount[i], Buffer: b.SendBuffer[i],
		Callsite: b.Callsite[i],
		Payload:  match.Payload{Hash: b.PayloadHash[i], Sum: b.PayloadSum[i], Head: b.PayloadHead[i]},
		Hidden:   hidden,
	}
}

// addMessage makes the row of a message.
func (s *shard) addMessage(e *epoch, send *match.Send, r *match.Recv) {
	m := schema.NullMessage
	m.Src, m.Dst, m.Epoch, m.Comm, m.Tag = send.Src, send.Dst, e.number, send.Comm, send.Tag
	m.Bytes, m.SendCount, m.SendDatatype = max(send.Bytes, 0), send.Count, send.Datatype
	m.SendSeq, m.SendStartNs, m.SendEndNs, m.SrcBuffer = send.Seq, send.StartNs, send.EndNs, send.Buffer
	m.RecvPostSeq, m.RecvDoneSeq, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = r.PostSeq, r.DoneSeq, r.PostNs,
		r.StartNs, r.EndNs
	m.DstBuffer = r.Buffer
	m.SendCallsite, m.RecvCallsite = send.Callsite, r.Callsite
	m.PayloadHash, m.PayloadSum, m.PayloadHead, m.RecvHash = send.Payload.Hash, send.Payload.Sum, send.Payload.Head,
		r.Hash
	if !send.Hidden && !s.countOnly {
		e.messages[s.number].Set(s.made, &m)
		s.made++
	}
	s.count++
	s.bytes += m.Bytes
	if m.RecvHash != schema.NullInt64 && m.PayloadHash != schema.NullInt64 {
		s.verified++
		if m.RecvHash != m.PayloadHash {
			s.mismatches++
		}
	}
	if r.Any != 0 {
		s.wildcards++
	}
}

// addForeign adds the receives of an epoch that another part of the job left in file.
func (p *pass) addForeign(recvs []match.Recv, file string) error {
	for k := range recvs {
		src := recvs[k].Src
		if src < 0 || int(src) >= len(p.indexOf) || p.indexOf[src] < 0 {
			return fmt.Errorf("%s: a receive from rank %d, which is not in this part", file, src)
		}
		s := p.layout.shardOf[p.indexOf[src]]
		p.foreign[s] = append(p.foreign[s], recvs[k])
	}
	return nil
}

// unmatched returns the rows of sends and receives without a partner, by index of the decoder.
func (p *pass) unmatched() []map[int64]bool {
	rows := make([]map[int64]bool, len(p.decoders))
	for i, d := range p.decoders {
		rows[i] = d.ends.unmatched
		if rows[i] == nil {
			rows[i] = map[int64]bool{}
		}
	}
	for s := range p.shards {
		p.shards[s].matcher.Each(
			func(m *match.Send) { rows[p.indexOf[m.Src]][m.Seq] = true },
			func(m *match.Recv) { rows[p.indexOf[m.Dst]][m.PostSeq] = true })
	}
	return rows
}
