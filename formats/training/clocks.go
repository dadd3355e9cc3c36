package training

import (
	"fmt"
	"math"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// bound is an interval that the difference of two clocks is in, in ns.
type bound struct {
	least, most int64
	matched     int
}

var noBound = bound{math.MinInt64 / 4, math.MaxInt64 / 4, 0}

// meet narrows a bound by a collective that both processes were in: neither left before the other had come. least and
// most bound what has to be added to the times of b.
func (x *bound) meet(a, b *Op) {
	x.least = max(x.least, a.StartNs-b.EndNs)
	x.most = min(x.most, a.EndNs-b.StartNs)
	x.matched++
}

// synchronises reports whether no process can leave the operation before all have come.
func synchronises(op *Op) bool {
	switch op.Call {
	case schema.CallIbarrier:
		return true
	case schema.CallIallreduce, schema.CallIallgather, schema.CallIreduceScatterBlock, schema.CallIalltoall:
		return op.InElements > 0
	}
	return false
}

// setClocks sets the clock of each rank by that of the first, through communicators that connect them. Clocks that
// agree within their bounds stay as they are.
func (j *job) setClocks() {
	if len(j.ranks) == 0 || j.o.TimeOrigin != measured {
		return
	}
	set := map[int32]bool{j.ranks[0].Rank.Rank: true}
	j.ranks[0].hasClock = true
	for more := true; more; {
		more = false
		for _, c := range j.comms {
			more = j.setOn(c, set) || more
		}
	}
	for _, r := range j.ranks {
		if !r.hasClock {
			j.unset++
		}
	}
}

// setOn sets the clocks of a communicator's ranks that are not set yet by one that is, and reports whether it did so.
func (j *job) setOn(c *comm, set map[int32]bool) (did bool) {
	if !c.agrees && !j.o.Numbered {
		return false
	}
	var from *rank
	for _, world := range c.ranks {
		if set[world] {
			from = j.byRank[world]
			break
		}
	}
	if from == nil {
		return false
	}
	for _, world := range c.ranks {
		if r := j.byRank[world]; r != nil && !set[world] {
			if b := c.bound(from, r); b.matched > 0 {
				r.setClock(from, b)
				set[world], did = true, true
			}
		}
	}
	return did
}

// bound returns what bounds the clock of b by that of a.
func (c *comm) bound(a, b *rank) bound {
	x := noBound
	left, right := c.ops[a.Rank.Rank], c.ops[b.Rank.Rank]
	m, n := 0, 0
	for m < len(left) && n < len(right) {
		p, q := &a.Ops[left[m]], &b.Ops[right[n]]
		switch {
		case p.instance == null64, q.instance != null64 && p.instance < q.instance:
			m++
		case q.instance == null64, q.instance < p.instance:
			n++
		default:
			if synchronises(p) && synchronises(q) {
				x.meet(p, q)
			}
			m++
			n++
		}
	}
	return x
}

// setClock sets the clock of a rank by that of another.
func (r *rank) setClock(from *rank, b bound) {
	r.hasClock = true
	r.clock = from.clock
	if b.least > 0 || b.most < 0 {
		r.clock += b.least + (b.most-b.least)/2
		r.moved = true
	}
	off := r.clock - from.clock
	r.clockError = from.clockError + max(abs(b.most-off), abs(off-b.least))
	r.torn = b.least > b.most
}

func abs(x int64) int64 { return max(x, -x) }

// clockText tells how the clocks were set.
func (j *job) clockText() (texts []string) {
	moved, torn, worst := 0, 0, int64(0)
	for _, r := range j.ranks {
		if r.moved {
			moved++
		}
		if r.torn {
			torn++
		}
		if r.hasClock {
			worst = max(worst, r.clockError)
		}
	}
	switch {
	case j.o.TimeOrigin != measured:
		return nil
	case len(j.ranks) < 2 || j.unset == len(j.ranks)-1:
	case moved == 0:
		texts = append(texts, fmt.Sprintf("The clocks agree with the matched collectives and stay as they are; they "+
			"cannot be off by more than %s.", units.Duration(worst)))
	default:
		texts = append(texts, fmt.Sprintf("Clocks of %d ranks were set by matched collectives; the error is at most %s.",
			moved, units.Duration(worst)))
	}
	if torn > 0 {
		texts = append(texts, fmt.Sprintf("Clocks of %d ranks drift: no one offset fits all their collectives.", torn))
	}
	if j.unset > 0 && len(j.ranks) > 1 {
		texts = append(texts, fmt.Sprintf("No matched collective tells the clocks of %d ranks; they stay as they are.",
			j.unset))
	}
	return texts
}
