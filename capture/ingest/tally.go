package ingest

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// tally has the counts of a pass. Parts of a job send theirs to each other with gob.
type tally struct {
	Counts                        schema.Counts // those that are sums over ranks
	EndNs                         int64
	Backwards, Alien, WithoutSite int64
	Collectives                   []collectiveCount
}

// collectiveCount is the number of calls of a collective on a communicator, by the rank that called it most often.
type collectiveCount struct {
	Call  schema.CallID
	Comm  int32
	Times int64
}

// tally adds up the counts of the pass.
func (p *pass) tally() *tally {
	t := &tally{}
	c := &t.Counts
	c.Calls = p.layout.rows
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
	most := map[collectiveKey]int64{}
	for _, d := range p.decoders {
		c.UnmatchedReceives += d.ends.lostRecvs
		t.Backwards += d.times.backwards
		t.Alien += d.ends.alien
		t.WithoutSite += d.noSite
		t.EndNs = max(t.EndNs, d.times.endNs)
		for k, n := range d.collectives.counts {
			most[k] = max(most[k], n)
		}
	}
	for _, r := range p.layout.ranks {
		c.Polls += int64(r.facts.Polls)
		c.InProgress += int64(len(r.facts.Open))
		c.Dropped += r.dropped()
	}
	for k, n := range most {
		t.Collectives = append(t.Collectives, collectiveCount{k.call, k.comm, n})
	}
	slices.SortFunc(t.Collectives, func(a, b collectiveCount) int {
		return cmp.Or(cmp.Compare(a.Call, b.Call), cmp.Compare(a.Comm, b.Comm))
	})
	return t
}

// add adds the counts of a pass over other ranks.
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

// check reports calls that do not exist: another process's tally comes from a file.
func (t *tally) check() error {
	for _, n := range t.Collectives {
		if n.Call < 1 || int(n.Call) >= len(ops) {
			return fmt.Errorf("a collective with the number %d, known are 1 to %d", n.Call, len(ops)-1)
		}
	}
	return nil
}

// collectives returns the numbers of collective operations by MPI name. Unless the job was cut short, all ranks of a
// communicator enter the same operations. So the largest count of a rank is the number of operations.
func (t *tally) collectives() map[string]int64 {
	most := map[collectiveKey]int64{}
	for _, n := range t.Collectives {
		k := collectiveKey{n.Call, n.Comm}
		most[k] = max(most[k], n.Times)
	}
	byName := map[string]int64{}
	for k, n := range most {
		byName[k.call.String()] += n
	}
	return byName
}

// warn adds warnings for what the counts reveal.
func (t *tally) warn(w *warnings) {
	if c := &t.Counts; c.HashMismatches > 0 {
		w.add("%d of %d messages that were hashed at both ends arrived with another hash than they were sent with: the message was changed on its way, its buffer was changed while it was sent or before it was completed, threads that receive at once got each other's, or a hash is wrong (SELECT * FROM messages WHERE recv_hash <> payload_hash).",
			c.HashMismatches, c.HashesVerified)
	}
	if t.Backwards > 0 {
		w.add("The timer went backwards %d times: those times were set to the latest one before.", t.Backwards)
	}
	if t.WithoutSite > 0 {
		w.add("%d calls have no call site: calls from Fortran through MPICH's own functions need libunwind8 where the program runs.",
			t.WithoutSite)
	}
	if t.Alien > 0 {
		w.add("Sends and receives with processes outside MPI_COMM_WORLD or of unknown rank, which do not count as messages: %d.",
			t.Alien)
	}
}
