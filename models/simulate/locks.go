package simulate

import "github.com/commq/commq/schema"

// locks are the windows' locks that are held: those of MPI_Win_lock, whose type is known, on one target. Who asks first
// gets a lock first, and both cost no time. MPI_Win_lock_all locks nothing.
type locks struct {
	cpus     *scheduler
	threads  []thread `snapshot:"-"` // the scheduler's
	progress *progress
	held     []lock
}

// lock is the lock of a window on a target that some threads hold.
type lock struct {
	lockKey
	exclusive bool
	holders   int32
	waiting   []int32 // threads, in the order in which they came
}

// lockKey tells locks apart: the window, by the communicator and the instance that made it there, and the target's
// rank.
type lockKey struct{ comm, instance, target int32 }

func lockKeyOf(o *op) lockKey { return lockKey{o.comm, o.tag, o.peer} }

// find returns the index of a lock that is held, or none.
func (l *locks) find(k lockKey) int32 {
	for n := range l.held {
		if l.held[n].lockKey == k {
			return int32(n)
		}
	}
	return none
}

// begin does MPI_Win_lock: the thread blocks until it has the lock.
func (l *locks) begin(i int32) {
	o := &l.threads[i].op
	k, exclusive := lockKeyOf(o), o.flags&flagExclusive != 0
	n := l.find(k)
	switch {
	case n == none:
		l.held = append(l.held, lock{lockKey: k, exclusive: exclusive, holders: 1})
	case exclusive || l.held[n].exclusive || len(l.held[n].waiting) > 0:
		l.held[n].waiting = append(l.held[n].waiting, i)
		l.cpus.block(i)
		return
	default:
		l.held[n].holders++
	}
	l.progress.complete(i, true)
}

// end does MPI_Win_unlock: the lock goes to the threads that waited longest.
func (l *locks) end(i int32) {
	n := l.find(lockKeyOf(&l.threads[i].op))
	l.progress.complete(i, true)
	if n == none {
		return
	}
	h := &l.held[n]
	if h.holders--; h.holders > 0 {
		return
	}
	next := h.takeWaiting(l.threads)
	if len(next) == 0 {
		l.held = append(l.held[:n], l.held[n+1:]...)
	}
	for _, thread := range next {
		l.progress.resume(thread)
	}
}

// takeWaiting gives the lock to the first thread that waits and, if it wants a shared lock, to all that do and follow.
func (h *lock) takeWaiting(threads []thread) (next []int32) {
	for len(h.waiting) > 0 {
		exclusive := threads[h.waiting[0]].op.flags&flagExclusive != 0
		if exclusive && len(next) > 0 {
			break
		}
		h.exclusive = exclusive
		next = append(next, h.waiting[0])
		h.waiting = h.waiting[1:]
		if exclusive {
			break
		}
	}
	h.holders = int32(len(next))
	return next
}

// lockTarget makes op take or give back the lock of a window on one target, if its type is known.
func (r *row) lockTarget(w *initRow) {
	call, target := r.op.callID(), r.b.SendWorld[r.i]
	if target == schema.NullInt32 || !call.IsAny(schema.FactLock|schema.FactUnlock) {
		return
	}
	kind := opLock
	if call.Is(schema.FactUnlock) {
		kind = opUnlock
	} else if r.b.Label[r.i] == schema.NullText {
		return
	}
	if r.op.kind != opLocal {
		r.addOp()
	}
	r.op.kind, r.op.peer, r.op.tag = kind, target, int32(w.instance)
	if r.b.Label[r.i] == schema.LabelExclusive {
		r.op.flags |= flagExclusive
	}
	if r.t.rules.arrivalOrder {
		r.t.cpus.lookahead = false // of two threads that ask at the same time the order matters
	}
}
