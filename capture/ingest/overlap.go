package ingest

import (
	"cmp"
	"sync"

	"github.com/commq/commq/schema"
)

// epoch has the rows of an epoch, from when they are decoded until they are written.
type epoch struct {
	number   int32
	events   []schema.Events   // by shard
	messages []schema.Messages // by shard
	parts    schema.Parts
	bases    []int    // by decoder: index of its first row in the events of its shard
	keep     [][]bool // by decoder: rowFilter.keep
}

// newEpoch returns an epoch with room for the rows of events of any.
func (p *pass) newEpoch() *epoch {
	e := &epoch{events: make([]schema.Events, len(p.shards)), messages: make([]schema.Messages, len(p.shards)),
		bases: make([]int, len(p.decoders)), keep: make([][]bool, len(p.decoders))}
	for i := range p.shards {
		e.events[i].Resize(p.shards[i].most)
	}
	return e
}

// eachEpoch makes the rows of each epoch while those of the one before are written, so two epochs are in memory. With
// one worker it does one after the other. It returns the error of the lowest epoch when nothing runs any more.
func (p *pass) eachEpoch(produce, write func(*epoch) error) error {
	if p.workers == 1 {
		return p.inTurn(produce, write)
	}
	var rows [2]*epoch
	var writing sync.WaitGroup
	var failed error // of the epoch that is written; known after writing.Wait
	defer writing.Wait()
	for number := range p.plan.epochs() {
		if rows[number%2] == nil {
			rows[number%2] = p.newEpoch()
		}
		e := rows[number%2]
		e.number = number
		err := produce(e)
		writing.Wait()
		if err = cmp.Or(failed, err); err != nil {
			return err
		}
		writing.Go(func() { failed = write(e) })
	}
	writing.Wait()
	return failed
}

// inTurn makes and writes one epoch after the other.
func (p *pass) inTurn(produce, write func(*epoch) error) error {
	e := p.newEpoch()
	for e.number = range p.plan.epochs() {
		if err := produce(e); err != nil {
			return err
		}
		if err := write(e); err != nil {
			return err
		}
	}
	return nil
}

// gatherParts collects the parts of an epoch, in the order of ranks.
func (p *pass) gatherParts(e *epoch) {
	e.parts.Resize(0)
	for _, d := range p.decoders {
		rank := d.r.rank
		for _, a := range d.collectives.sortedParts() {
			if n := e.parts.Len(); n > 0 && e.parts.Rank[n-1] == rank && e.parts.Seq[n-1] == a.seq &&
				e.parts.PeerWorld[n-1] == a.world {
				e.parts.SendBytes[n-1] += a.send // a peer that is a neighbour twice
				e.parts.RecvBytes[n-1] += a.recv
				continue
			}
			e.parts.Append(&schema.Part{Rank: rank, Seq: a.seq, Epoch: e.number, PeerWorld: a.world, SendBytes: a.send,
				RecvBytes: a.recv})
		}
	}
}
