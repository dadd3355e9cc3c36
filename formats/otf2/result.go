package otf2

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
)

// creator begins the name of the program that wrote an archive, where that was commq.
const creator = "commq"

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
	p.shards[p.shardOf[s.Src]].messages.Append(&m)
	p.counts.Messages++
	p.counts.MessageBytes += s.Bytes
}

// count adds up the second pass.
func (p *pass) count() {
	c := &p.counts
	c.UnmatchedSends, c.UnmatchedReceives = p.matcher.Waiting()
	c.UnmatchedSends += p.resized
	c.UnmatchedReceives += p.resized
	for i := range p.shards {
		s := &p.shards[i]
		c.Collectives += s.counts.Collectives
		c.InProgress += s.counts.InProgress
		p.endNs = max(p.endNs, s.endNs)
		for call, n := range s.byCall {
			p.byName[call.String()] += n
		}
	}
	for i := range p.facts {
		c.Polls += p.facts[i].polls
	}
	for _, r := range p.readers {
		for _, t := range r.threads {
			p.tally.add(&t.counts)
		}
	}
}

// add adds the counts of a location.
func (t *tally) add(o *tally) {
	t.events += o.events
	t.outside += o.outside
	t.unpaired += o.unpaired
	t.lostEnds += o.lostEnds
	t.noRecord += o.noRecord
	for i := range t.skipped {
		t.skipped[i] += o.skipped[i]
		t.unknown[i] += o.unknown[i]
	}
	for name, n := range o.mute {
		t.mute[name] += n
	}
}

// ended returns how the run ended: finalized if each rank called MPI_Finalize, and the members of each communicator made the
// same collective operations.
func (j *job) ended() int16 {
	if j.uneven > 0 {
		return schema.EndedKilled
	}
	for i := range j.facts {
		if !j.facts[i].ended {
			return schema.EndedKilled
		}
	}
	return schema.EndedFinalized
}

func (j *job) writeRanks(out sink) error {
	b := &schema.RankInfos{}
	for i := range j.facts {
		f := &j.facts[i]
		row := schema.NullRankInfo
		row.Rank, row.Host, row.Threads, row.Events, row.Polls = int32(i), j.hosts[i], max(f.threads, 1), f.rows, f.polls
		row.Ended = schema.EndedKilled
		if f.ended && j.uneven == 0 {
			row.Ended = schema.EndedFinalized
		}
		b.Append(&row)
	}
	return out.Write(0, b)
}

func (j *job) writeSites(out sink) error { return out.Write(0, &j.table.rows) }

func (j *job) manifest() *schema.Manifest {
	origin := j.o.Origin
	origin.Trace = &schema.Trace{Format: "otf2", File: filepath.Base(j.path), Program: j.archive.creator}
	origin.Hosts = j.names
	depth := j.table.depth()
	return &schema.Manifest{
		Ranks: int32(len(j.threads)), TimeOrigin: "measured", TimeResolutionNs: 1, ComputeClock: "wall", Record: "all",
		Hash: "none", Callsites: depth > 0, Stack: depth, Ended: schema.EndedNames[j.ended()], EndNs: j.endNs,
		Epochs: int32(len(j.bounds) + 1), Counts: j.counts, Collectives: j.byName, Warnings: j.warnings(),
		Origin: origin,
	}
}

// depth returns the number of frames of the longest call path.
func (t *siteTable) depth() (most int32) {
	depths := make([]int32, t.rows.Len())
	for i, parent := range t.rows.Parent {
		depths[i] = 1
		if parent != null32 {
			depths[i] = depths[parent] + 1
		}
		most = max(most, depths[i])
	}
	return most
}

// warnings tell what the format lacks, and what was skipped.
func (j *job) warnings() []string {
	w := []string{"OTF2 has no payload hashes, datatypes and buffers, and does not tell whether a receive was " +
		"posted with a wildcard; these columns are null."}
	say := func(n int64, format string) {
		if n > 0 {
			w = append(w, fmt.Sprintf(format, n))
		}
	}
	t := &j.tally
	read := fmt.Sprintf("Read: %d events of %d locations", t.events, j.archive.locations)
	if names := j.skippedNames(); names != "" {
		read += "; of them skipped, or calls without a row: " + names
	}
	w = append(w, read+".")
	for _, name := range sortedKeys(j.skipped) {
		w = append(w, fmt.Sprintf("Skipped: %d %s.", j.skipped[name], name))
	}
	for id, n := range t.unknown {
		say(n, fmt.Sprintf("Events of a later version of OTF2 (record %d), skipped: %%d.", id))
	}
	for _, id := range sortedKeys(j.unknown) {
		say(j.unknown[id], fmt.Sprintf("Definitions of a later version of OTF2 (record %d), skipped: %%d.", id))
	}
	say(j.resized, "Sends and receives that belong together by their order and have different sizes, and so count as "+
		"unmatched (parts of the program may not be recorded): %d.")
	say(t.outside, "Records of MPI outside a call, each a row of its own: %d.")
	say(t.noRecord, "Collective calls without a record, which have no communicator: %d.")
	say(t.lostEnds, "Completions of requests that no call made: %d.")
	say(t.unpaired, "Ends of regions that did not begin: %d.")
	say(j.uneven, "Communicators whose members do not make the same collective operations: %d; the run counts as killed.")
	if j.uneven == 0 && j.ended() != schema.EndedFinalized {
		w = append(w, "Not every rank has an MPI_Finalize; the run counts as killed.")
	}
	return w
}

// skippedNames lists the events and calls that have no row.
func (j *job) skippedNames() string {
	var words []string
	for id, n := range j.tally.skipped {
		if n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, eventName(uint8(id))))
		}
	}
	for _, name := range sortedKeys(j.tally.mute) {
		words = append(words, fmt.Sprintf("%d %s", j.tally.mute[name], name))
	}
	return strings.Join(words, ", ")
}
