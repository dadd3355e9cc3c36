package ingest

import (
	"cmp"
	"context"
	"slices"

	"github.com/commq/commq/capture/match"
	"github.com/commq/commq/schema"
)

// pass is the second pass over the spool: it makes the rows, epoch by epoch.
type pass struct {
	*job
	out      sink
	decoders []*decoder // by index in ranks
	events   []schema.Events
	shards   []shard
	indexOf  []int32 // index in ranks by world rank; -1: missing
	parts    schema.Parts

	waits *schema.WaitSums // nil: the writer makes them of the files

	keepParts func(epoch int32, parts *schema.Parts) error // where they are not for the sink

	away    []bool         // by world rank: its records are on another machine, where its sends are matched; nil: none are
	foreign [][]match.Recv // by shard: the epoch's receives of such ranks from ranks that are here
}

// shard is a range of ranks: those whose sends it matches, and whose rows go to one file.
type shard struct {
	number   int
	ranks    []int // indexes
	matcher  match.Matcher
	messages schema.Messages
	kept     schema.Events
	early    []match.Pair // matched sends of earlier epochs

	bare                    bool // messages are counted and not written
	count, bytes, wildcards int64
	verified, mismatches    int64 // messages that were hashed at both ends, and differ
}

func (j *job) newPass(out sink) *pass {
	p := &pass{job: j, out: out, events: make([]schema.Events, j.shards), shards: make([]shard, j.shards), indexOf: make([]int32, j.size)}
	for i := range p.indexOf {
		p.indexOf[i] = -1
	}
	for i, r := range j.ranks {
		p.indexOf[r.rank] = int32(i)
		p.decoders = append(p.decoders, newDecoder(j, r))
		s := &p.shards[j.shardOf[i]]
		s.ranks = append(s.ranks, i)
	}
	for i := range p.shards {
		p.shards[i].number = i
		p.shards[i].bare = j.sel.record == RecordCollectives
	}
	return p
}

// writeRows writes events, messages and parts.
func (j *job) writeRows(ctx context.Context, out sink) error {
	p := j.newPass(out)
	if j.sel.atOnce() {
		for _, d := range p.decoders {
			d.keep = []bool{}
		}
	}
	if s, ok := out.(waitSummer); ok && j.o.Record == RecordAll && !j.sel.atOnce() {
		p.waits = s.SumWaits(j.rankRows().Host, j.comms.rows(), true)
	}
	for e := range j.epochs {
		if err := p.epoch(ctx, e); err != nil {
			return err
		}
	}
	j.count(p.tally())
	j.warnOpen()
	if j.o.Record != RecordMessages {
		return nil
	}
	return j.writeKeptRows(ctx, p)
}

// writeKeptRows writes the rows that RecordMessages keeps: which ones is known only after all messages are matched, so the rows
// are made a second time.
func (j *job) writeKeptRows(ctx context.Context, first *pass) error {
	p := j.newPass(first.out)
	unmatched := first.unmatched()
	for i, d := range p.decoders {
		d.keep, d.unknown = []bool{}, unmatched[i]
	}
	for e := range j.epochs {
		bases := p.resize(e)
		if err := p.decode(ctx, e, bases); err != nil {
			return err
		}
		err := parallel(ctx, j.o.Workers, len(p.shards), func(s int) error { return p.writeKept(&p.shards[s], bases) })
		if err != nil {
			return err
		}
	}
	return nil
}

// epoch makes and writes the rows of one epoch.
func (p *pass) epoch(ctx context.Context, e int32) error {
	bases := p.resize(e)
	if err := p.decode(ctx, e, bases); err != nil {
		return err
	}
	// A matched send's hashes go to its message, so the events are written after matching.
	err := parallel(ctx, p.o.Workers, len(p.shards), func(s int) error { p.match(&p.shards[s], e); return nil })
	if err != nil {
		return err
	}
	err = parallel(ctx, p.o.Workers, 1+2*len(p.shards), func(k int) error {
		if k == 0 {
			p.sumWaits()
			return nil
		}
		k--
		s := &p.shards[k/2]
		if k%2 == 1 {
			return p.out.Write(s.number, &s.messages)
		}
		if p.o.Record == RecordMessages {
			return nil
		}
		if p.sel.atOnce() {
			return p.writeKept(s, bases)
		}
		return p.out.Write(s.number, &p.events[s.number])
	})
	if err != nil {
		return err
	}
	p.gatherParts(e)
	if p.keepParts != nil {
		err = p.keepParts(e, &p.parts)
	} else {
		err = writeParts(p.out, &p.parts, e == p.epochs-1)
	}
	if err != nil {
		return err
	}
	for _, r := range p.ranks {
		p.progress += r.starts[e+1].row - r.starts[e].row
	}
	p.o.Progress(p.progress, p.rows)
	return nil
}

// sumWaits adds the epoch's rows to the sums of waits.
func (p *pass) sumWaits() {
	if p.waits == nil {
		return
	}
	var events []*schema.Events
	var messages []*schema.Messages
	for i := range p.shards {
		events, messages = append(events, &p.events[i]), append(messages, &p.shards[i].messages)
	}
	p.waits.Epoch(events, messages)
}

// resize makes room for the epoch's rows and returns where each rank's begin in its shard.
func (p *pass) resize(e int32) []int {
	bases := make([]int, len(p.ranks))
	for s := range p.shards {
		n := 0
		for _, i := range p.shards[s].ranks {
			bases[i] = n
			n += int(p.ranks[i].starts[e+1].row - p.ranks[i].starts[e].row)
		}
		p.events[s].Resize(n)
	}
	return bases
}

func (p *pass) decode(ctx context.Context, e int32, bases []int) error {
	return parallel(ctx, p.o.Workers, len(p.decoders), func(i int) error {
		d := p.decoders[i]
		if err := d.decode(e, &p.events[p.shardOf[i]], bases[i]); err != nil {
			return err
		}
		d.route(p)
		return nil
	})
}

// route sorts the receives by the shard that matches them: that of their source.
func (d *decoder) route(p *pass) {
	if len(d.bySource) != len(p.shards) {
		d.bySource = make([][]int32, len(p.shards))
	}
	for s := range d.bySource {
		d.bySource[s] = d.bySource[s][:0]
	}
	for i := range d.recvs {
		if d.state[i] != recvKnown {
			continue
		}
		if p.away != nil && p.away[d.recvs[i].Src] {
			continue
		}
		k := p.indexOf[d.recvs[i].Src]
		s := int32(0) // the sender's records are missing: it waits anywhere
		if k >= 0 {
			s = p.shardOf[k]
		}
		d.bySource[s] = append(d.bySource[s], int32(i))
	}
}

// match pairs the epoch's sends of the shard's ranks with their receives and makes the messages, in the order of their
// sends. Receives come first: then a send finds its partner at once, and messages come out in order, except those
// whose send waited since an earlier epoch.
func (p *pass) match(s *shard, e int32) {
	s.early = s.early[:0]
	for _, d := range p.decoders {
		for _, i := range d.bySource[s.number] {
			r := &d.recvs[i]
			if send := s.matcher.Recv(r); send != nil {
				s.early = append(s.early, match.Pair{Send: *send, Recv: *r})
			}
		}
	}
	if p.foreign != nil {
		of := p.foreign[s.number]
		for i := range of {
			if send := s.matcher.Recv(&of[i]); send != nil {
				s.early = append(s.early, match.Pair{Send: *send, Recv: of[i]})
			}
		}
	}
	slices.SortFunc(s.early, func(a, b match.Pair) int {
		return cmp.Or(cmp.Compare(a.Send.Src, b.Send.Src), cmp.Compare(a.Send.Seq, b.Send.Seq))
	})
	s.messages.Resize(0)
	early := s.early
	for _, i := range s.ranks {
		d := p.decoders[i]
		for len(early) > 0 && early[0].Send.Src == d.rank {
			s.add(e, &early[0].Send, &early[0].Recv)
			early = early[1:]
		}
		for _, row := range d.sends {
			if row < 0 {
				continue
			}
			send := d.sendAt(int(row))
			if r := s.matcher.Send(&send); r != nil {
				s.add(e, &send, r)
				if d.hashed {
					d.setPayload(int(row), match.Payload{Hash: schema.NullInt64, Sum: schema.NullInt64, Head: schema.NullInt64})
				}
			}
		}
	}
	s.matcher.Sweep()
}

// setPayload sets the hashes of a row of the current epoch.
func (d *decoder) setPayload(row int, x match.Payload) {
	b, i := d.events, d.base+row
	b.PayloadHash[i], b.PayloadSum[i], b.PayloadHead[i] = x.Hash, x.Sum, x.Head
}

// sendAt is the send of a row of the current epoch.
func (d *decoder) sendAt(row int) match.Send {
	b, i := d.events, d.base+row
	return match.Send{
		Channel:  match.Channel{Comm: b.Comm[i], Src: d.rank, Dst: b.SendWorld[i], Tag: b.SendTag[i], Part: d.partOf[int32(row)]},
		Datatype: b.SendDatatype[i], Seq: b.Seq[i], StartNs: b.StartNs[i], EndNs: b.EndNs[i], Bytes: b.SendBytes[i], Count: b.SendCount[i], Buffer: b.SendBuffer[i],
		Callsite: b.Callsite[i],
		Payload:  match.Payload{Hash: b.PayloadHash[i], Sum: b.PayloadSum[i], Head: b.PayloadHead[i]},
		Hidden:   d.hidden != nil && d.hidden[row],
	}
}

// add makes the row of a message.
func (s *shard) add(e int32, send *match.Send, r *match.Recv) {
	m := schema.NullMessage
	m.Src, m.Dst, m.Epoch, m.Comm, m.Tag = send.Src, send.Dst, e, send.Comm, send.Tag
	m.Bytes, m.SendCount, m.SendDatatype = max(send.Bytes, 0), send.Count, send.Datatype
	m.SendSeq, m.SendStartNs, m.SendEndNs, m.SrcBuffer = send.Seq, send.StartNs, send.EndNs, send.Buffer
	m.RecvPostSeq, m.RecvDoneSeq, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = r.PostSeq, r.DoneSeq, r.PostNs, r.StartNs, r.EndNs
	m.DstBuffer = r.Buffer
	m.SendCallsite, m.RecvCallsite = send.Callsite, r.Callsite
	m.PayloadHash, m.PayloadSum, m.PayloadHead, m.RecvHash = send.Payload.Hash, send.Payload.Sum, send.Payload.Head, r.Hash
	if !send.Hidden && !s.bare {
		s.messages.Append(&m)
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

// gatherParts adds the epoch's parts, in the order of ranks.
func (p *pass) gatherParts(e int32) {
	for _, d := range p.decoders {
		slices.SortStableFunc(d.parts, func(a, b part) int { return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.world, b.world)) })
		for _, a := range d.parts {
			if n := p.parts.Len(); n > 0 && p.parts.Rank[n-1] == d.rank && p.parts.Seq[n-1] == a.seq && p.parts.PeerWorld[n-1] == a.world {
				p.parts.SendBytes[n-1] += a.send // a peer that is a neighbour twice
				p.parts.RecvBytes[n-1] += a.recv
				continue
			}
			p.parts.Append(&schema.Part{Rank: d.rank, Seq: a.seq, Epoch: e, PeerWorld: a.world, SendBytes: a.send, RecvBytes: a.recv})
		}
	}
}

// writeParts writes the parts when there are many, and at the end.
func writeParts(out sink, parts *schema.Parts, last bool) error {
	if parts.Len() == 0 || !last && parts.Len() < partsRows {
		return nil
	}
	err := out.Write(0, parts)
	parts.Resize(0)
	return err
}

// partsRows is the number of parts from which on they are written.
const partsRows = 1 << 18

// writeKept writes those of a shard's rows that are kept.
func (p *pass) writeKept(s *shard, bases []int) error {
	s.kept.Resize(0)
	var row schema.Event
	for _, i := range s.ranks {
		for k, keep := range p.decoders[i].keep {
			if keep {
				p.events[s.number].Row(bases[i]+k, &row)
				s.kept.Append(&row)
			}
		}
	}
	return p.out.Write(s.number, &s.kept)
}

// unmatched are, by index of the rank, the rows of sends and receives without a partner.
func (p *pass) unmatched() []map[int64]bool {
	rows := make([]map[int64]bool, len(p.ranks))
	for i, d := range p.decoders {
		rows[i] = d.unmatched
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

// tally is what a pass counted.
type tally struct {
	Counts                        schema.Counts // of these those that are sums over ranks
	EndNs                         int64
	Backwards, Alien, WithoutSite int64
	Collectives                   []collectiveCount
}

// collectiveCount is how often a rank entered a collective call on a communicator: of the rank that did so most.
type collectiveCount struct {
	Call  schema.CallID
	Comm  int32
	Times int64
}

// tally adds up what the pass counted.
func (p *pass) tally() *tally {
	j, t := p.job, &tally{}
	c := &t.Counts
	c.Calls = j.rows
	for s := range p.shards {
		sh := &p.shards[s]
		sends, recvs := sh.matcher.Waiting()
		c.UnmatchedSends += sends
		c.UnmatchedReceives += recvs
		c.Messages += sh.count
		c.MessageBytes += sh.bytes
		c.WildcardReceives += sh.wildcards
		c.HashesVerified += sh.verified
		c.HashMismatches += sh.mismatches
	}
	for _, d := range p.decoders {
		c.UnmatchedSends += d.count.sends
		c.UnmatchedReceives += d.count.recvs
		t.Backwards += d.count.backwards
		t.Alien += d.count.alien
		t.WithoutSite += d.count.noSite
		t.EndNs = max(t.EndNs, d.count.endNs)
	}
	for _, r := range j.ranks {
		c.Polls += int64(r.polls)
		c.InProgress += int64(len(r.openCalls))
		for _, f := range r.files {
			c.Dropped += int64(f.Header.Dropped)
		}
	}
	t.Collectives = p.collectives()
	return t
}

// add adds what another pass counted, over other ranks.
func (t *tally) add(o *tally) {
	c, d := &t.Counts, &o.Counts
	c.Calls += d.Calls
	c.UnmatchedSends += d.UnmatchedSends
	c.UnmatchedReceives += d.UnmatchedReceives
	c.Messages += d.Messages
	c.MessageBytes += d.MessageBytes
	c.WildcardReceives += d.WildcardReceives
	c.HashesVerified += d.HashesVerified
	c.HashMismatches += d.HashMismatches
	c.Polls += d.Polls
	c.InProgress += d.InProgress
	c.Dropped += d.Dropped
	t.Backwards += o.Backwards
	t.Alien += o.Alien
	t.WithoutSite += o.WithoutSite
	t.EndNs = max(t.EndNs, o.EndNs)
	t.Collectives = append(t.Collectives, o.Collectives...)
}

// count fills in the counts of the manifest, and says what is to be said about them.
func (j *job) count(t *tally) {
	c, simulated := &j.counts, j.counts
	*c = t.Counts
	c.Choices, c.OutOfOrder, c.EarlyCollectives = simulated.Choices, simulated.OutOfOrder, simulated.EarlyCollectives
	j.endNs = t.EndNs
	backwards, alien, noSite := t.Backwards, t.Alien, t.WithoutSite
	j.countCollectives(t.Collectives)
	j.warnDropped()
	j.warnVirtual()
	if c.HashMismatches > 0 {
		j.warn("%d of %d messages that were hashed at both ends arrived with another hash than they were sent with: the message was changed on its way, its buffer while it was sent or before it was completed, or a hash is wrong (SELECT * FROM messages WHERE recv_hash <> payload_hash).", c.HashMismatches, c.HashesVerified)
	}
	if backwards > 0 {
		j.warn("The timer went backwards %d times: those times were set to the latest one before.", backwards)
	}
	if noSite > 0 {
		j.warn("%d calls have no call site: calls from Fortran through MPICH's own functions need libunwind8 where the program runs.", noSite)
	}
	if alien > 0 {
		j.warn("Sends and receives with processes outside MPI_COMM_WORLD or of unknown rank, which are not messages: %d.", alien)
	}
}

// countCollectives counts operations: of a communicator's ranks each counts the same calls, unless the job was cut
// short; the largest count stands.
func (j *job) countCollectives(of []collectiveCount) {
	most := map[collectiveKey]int64{}
	for _, n := range of {
		k := collectiveKey{n.Call, n.Comm}
		most[k] = max(most[k], n.Times)
	}
	j.byName = map[string]int64{}
	for k, n := range most {
		j.byName[k.call.String()] += n
		j.counts.Collectives += n
	}
}

type collectiveKey struct {
	call schema.CallID
	comm int32
}

// collectives are the collective calls of the pass's ranks, sorted.
func (p *pass) collectives() []collectiveCount {
	most := map[collectiveKey]int64{}
	for _, d := range p.decoders {
		for call, of := range d.count.byName {
			for comm, n := range of {
				k := collectiveKey{call, comm}
				most[k] = max(most[k], n)
			}
		}
	}
	list := make([]collectiveCount, 0, len(most))
	for k, n := range most {
		list = append(list, collectiveCount{k.call, k.comm, n})
	}
	slices.SortFunc(list, func(a, b collectiveCount) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Comm, b.Comm))
	})
	return list
}
