package simulate

import (
	"errors"
	"fmt"
	"io"

	"github.com/commq/commq/models"
)

// progress takes threads from one operation to the next: it completes operations and requests, and reads more rows
// when a thread has nothing left to do.
type progress struct {
	clock    *clock
	setting  *setting
	rules    rules
	costs    []nodeCosts                                         `snapshot:"-"` // the setting's
	done     func(rank int32, seq int64, start, end Picoseconds) `snapshot:"-"` // of the options
	cpus     *scheduler
	threads  []thread `snapshot:"-"` // the scheduler's
	requests *requestPool
	input    *translator
	ops      *opPool

	operations int64 // so far
	epochs     int   // epochs read so far
	ended      bool  // there are no more rows
	border     bool  // rows were read since the last checkpoint
	err        error `snapshot:"-"` // ends the simulation
}

// fail ends the simulation with an error.
func (p *progress) fail(err error) {
	if p.err == nil {
		p.err = err
	}
}

// takeNext makes the thread's next operation the current one, and adds up the burst of the operations before it that
// only compute. It returns false when there is none.
func (p *progress) takeNext(i int32) bool {
	s := &p.threads[i]
	s.inRow = s.op.flags&flagPart != 0
	s.burst, s.io = 0, 0
	begin, inLocal, noBurst := Picoseconds(0), false, true
	for {
		if s.queue.empty() && !p.refill(s) {
			if len(s.locals) == 0 {
				return false
			}
			if p.rules.arrivalOrder && noBurst { // for a mark, Dimemas needs no CPU
				p.cpus.reportLocals(s)
				return false
			}
			s.op = op{opType: opType{kind: opEnd}}
			return true
		}
		p.ops.take(&s.queue, &s.op, s.rank)
		p.operations++
		noBurst = noBurst && s.op.flags&flagNoBurst != 0
		burst := p.burst(s)
		s.burst = min(s.burst+burst, models.Forever)
		if s.op.kind != opLocal {
			return true
		}
		if !inLocal {
			begin = s.burst
		}
		if inLocal = s.op.flags&flagPart != 0; !inLocal {
			s.locals = append(s.locals, localRow{s.op.seq, begin, s.burst})
		}
	}
}

// burst is how long the thread's next operation keeps its CPU before it begins: computing, or input and output, which
// take as long as in the run.
func (p *progress) burst(s *thread) Picoseconds {
	if s.op.kind != opLocal || s.op.flags&flagIO == 0 {
		return p.costs[s.node].scaled(s.op.compute)
	}
	took := sameEverywhere.scaled(s.op.compute)
	s.io = min(s.io+took, models.Forever)
	return took
}

// sameEverywhere has the CPUs of the run's own machine.
var sameEverywhere = nodeCosts{cpuRatio: 1}

// refill reads epochs until the thread has an operation. It returns false when none is left for it.
func (p *progress) refill(s *thread) bool {
	for s.queue.empty() {
		if p.ended || p.err != nil {
			return false
		}
		err := p.setting.next(p.input.add)
		switch {
		case errors.Is(err, io.EOF):
			p.ended, err = true, nil
		case err == nil:
			p.epochs++
			p.border = true
			err = p.checkMemory(s)
		}
		if err != nil {
			p.fail(err)
		}
	}
	return true
}

// checkMemory returns an error when operations, messages and requests take more memory than allowed. asking is the
// thread that needs more rows.
func (p *progress) checkMemory(asking *thread) error {
	limit := p.setting.options.MemoryBytes
	used := p.setting.memory()
	if limit == 0 || used <= limit {
		return nil
	}
	most := &p.threads[0]
	for i := range p.threads {
		if t := &p.threads[i]; t.queue.put-t.queue.taken > most.queue.put-most.queue.taken {
			most = t
		}
	}
	return fmt.Errorf("the rows that were read and not yet simulated take %d MiB after %d epochs, above the limit of %d MiB: rank %d is at its row %d, while rank %[7]d, which is at row %[8]d, has rows up to %[6]d; allow more memory",
		used>>20, p.epochs, limit>>20, asking.rank, asking.queue.taken, most.queue.put, most.rank, most.queue.taken)
}

// chargeLatency keeps the thread busy for a latency before its operation (Dimemas). It returns false when the
// operation can begin: there is no latency, or it is over.
func (p *progress) chargeLatency(i int32, latency Picoseconds) bool {
	s := &p.threads[i]
	if s.paid || latency < leastLatency || !p.rules.cpuLatency {
		s.paid = false
		return false
	}
	s.startup, s.burst = true, latency
	p.cpus.ready(i, true)
	return true
}

// leastLatency is the shortest latency that keeps a CPU busy in Dimemas, which ignores less than a nanosecond.
const leastLatency = Picoseconds(1000)

// end ends the thread's operation and takes the next one. It returns false when there is none.
func (p *progress) end(i int32) bool {
	s := &p.threads[i]
	now := p.clock.now
	if s.op.kind >= opSend {
		if s.op.kind >= opCollective && s.op.kind <= opIcollective {
			s.times.Collective += now - s.entered
		} else {
			s.times.PointToPoint += now - s.entered
		}
	}
	if s.blocked {
		s.blocked = false
		s.times.Waiting += now - s.blockedAt
	}
	if s.op.flags&flagPart == 0 && p.done != nil {
		p.done(s.rank, s.op.seq, s.rowStart, now)
	}
	if !p.takeNext(i) {
		p.cpus.finish(i)
		return false
	}
	return true
}

// complete ends the thread's operation and makes it ready for the next; front means that it still has its CPU. It
// returns false when the thread is over.
func (p *progress) complete(i int32, front bool) bool {
	if !p.end(i) {
		return false
	}
	p.cpus.ready(i, front)
	return true
}

// resume completes the operation of a blocked thread. The thread continues at once if a CPU is free.
func (p *progress) resume(i int32) {
	if p.complete(i, false) && !p.cpus.lookahead {
		p.cpus.dispatchOne(p.threads[i].node)
	}
}

// completeOrBlock completes a thread's wait for a chain of requests, or blocks until all of them are done.
func (p *progress) completeOrBlock(i int32) {
	p.threads[i].waitDone = 0
	if p.allDone(i) {
		p.complete(i, true)
	} else {
		p.cpus.block(i)
	}
}

// allDone reports whether all requests of the thread's wait are done. If not, the thread waits for the first one that
// is not.
func (p *progress) allDone(i int32) bool {
	s := &p.threads[i]
	for ; s.waitDone < len(s.queue.chain); s.waitDone++ {
		r := s.queue.chain[s.waitDone]
		q := &p.requests.items[r]
		if !q.done {
			q.waiter = i
			return false
		}
		p.requests.release(r)
	}
	return true
}

// completeRequest completes a request, which may be none. The thread that waits for it gets a free CPU at once, or
// with atOnce false together with others: threads that leave a collective get their CPUs together.
func (p *progress) completeRequest(r int32, atOnce bool) {
	if r == none {
		return
	}
	q := &p.requests.items[r]
	if q.orphan {
		p.requests.release(r)
		return
	}
	q.done = true
	if i := q.waiter; i == none || !p.allDone(i) {
		return
	} else if atOnce {
		p.resume(i)
	} else {
		p.complete(i, false)
	}
}

// completeTaker completes the operation or request of a taker.
func (p *progress) completeTaker(taker int32) {
	if isThread(taker) {
		p.resume(threadOf(taker))
	} else {
		p.completeRequest(taker, true)
	}
}
