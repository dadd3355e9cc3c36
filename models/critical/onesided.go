package critical

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// window is a window, as one rank uses it.
type window struct {
	run.WindowKey
	fences           int64           // number of fences so far
	origins, targets []int32         // groups of the last exposure posted and of the last access started
	locks            map[int32]*hold // of this rank, by target
}

// oneSided finds the waits on windows. A fence is a collective operation.
type oneSided struct {
	ranks       allRows
	collectives *collectives
	ungrouped   map[run.WindowKey]bool // windows whose groups are ignored: run.Run.Ungrouped
	unpaired    map[signalKey]*unpaired
	pairs       []pair              // pairs without their waits added yet
	holds       map[lockKey][]*hold // locks that rows may wait for
}

// add notes a call on a window that waits or that others may wait for: fences, exposures and accesses, and locks on one
// target.
func (o *oneSided) add(r *rankRows, b *schema.Events, i int, w *row, index int32) error {
	of, call, e := r.windows[b.InitSeq[i]], schema.CallID(b.Call[i]), entry{b.Rank[i], index}
	if of == nil {
		return nil
	}
	group, err := []int32(nil), error(nil)
	if call.IsAny(schema.FactExposes|schema.FactAccesses) && !o.ungrouped[of.WindowKey] {
		if group, err = schema.GroupOf(b.Label[i], len(o.ranks)); err != nil {
			return fmt.Errorf("seq %d: %s: %w", b.Seq[i], call, err)
		}
	}
	switch {
	case call.Is(schema.FactFence):
		of.fences++
		o.collectives.enter(r, w, e, operationKey{of.Comm, of.Instance, of.fences}, call)
	case call.Is(schema.FactExposes):
		of.origins = group
		o.signals(of, e, group, startNeeds)
		o.signals(of, e, group, completeNeeds)
	case call.Is(schema.FactAccesses):
		of.targets = group
		o.needs(of, e, group, startNeeds)
	case call.Is(schema.FactEndsAccess):
		o.needs(of, e, of.targets, completeNeeds)
		o.signals(of, e, of.targets, waitNeeds)
		of.targets = nil
	case call.Is(schema.FactEndsExposure):
		o.needs(of, e, of.origins, waitNeeds)
		of.origins = nil
	default:
		o.addLock(of, b, i, e)
	}
	return nil
}

// signal is a kind of dependency between one-sided calls: a call of one rank needs a call of another to have begun.
type signal uint8

const (
	startNeeds    signal = iota // MPI_Win_start needs the MPI_Win_post of each target
	completeNeeds               // MPI_Win_complete needs the same, if the library does not wait in MPI_Win_start
	waitNeeds                   // MPI_Win_wait needs the MPI_Win_complete of each origin
)

// awaits returns the kind of wait of a signal.
func (s signal) awaits() Awaited {
	if s == waitNeeds {
		return AwaitsComplete
	}
	return AwaitsPost
}

// signalKey identifies the signals of one kind in a window from one rank to another. The n-th signal belongs to the
// n-th call that needs one.
type signalKey struct {
	run.WindowKey
	from, to int32
	of       signal
}

// unpaired are calls of a key without their partners yet: all of them signals, or all calls that need one.
type unpaired struct {
	needs   bool
	entries []entry
}

// pair is a call and the signal that it needs.
type pair struct {
	waiter, signal entry
	awaits         Awaited
}

// signals records a row on which each of some ranks depends, needs a row that depends on one of each rank.
func (o *oneSided) signals(of *window, e entry, ranks []int32, s signal) {
	for _, to := range ranks {
		o.pairUp(signalKey{of.WindowKey, e.rank, to, s}, e, false)
	}
}

func (o *oneSided) needs(of *window, e entry, ranks []int32, s signal) {
	for _, from := range ranks {
		o.pairUp(signalKey{of.WindowKey, from, e.rank, s}, e, true)
	}
}

func (o *oneSided) pairUp(k signalKey, e entry, needs bool) {
	u := o.unpaired[k]
	if u == nil {
		u = &unpaired{}
		o.unpaired[k] = u
	}
	if len(u.entries) == 0 || u.needs == needs {
		u.needs, u.entries = needs, append(u.entries, e)
		return
	}
	other := u.entries[0]
	u.entries = slices.Delete(u.entries, 0, 1)
	if needs {
		e, other = other, e
	}
	o.pairs = append(o.pairs, pair{waiter: other, signal: e, awaits: k.of.awaits()})
}

// addPairs adds the waits of the pairs. Rows that were dropped began earlier, so nobody waited for them.
func (o *oneSided) addPairs() {
	for _, p := range o.pairs {
		if o.ranks.has(p.waiter) && o.ranks.has(p.signal) {
			o.ranks.addWait(p.waiter.rank, p.waiter.row, p.signal.rank, p.signal.row, p.awaits)
		}
	}
	o.pairs = o.pairs[:0]
}

// lockKey is a target of a window.
type lockKey struct {
	run.WindowKey
	target int32
}

// hold is the time in which a rank has the lock of a target, from its MPI_Win_lock to its MPI_Win_unlock.
type hold struct {
	rank      int32
	exclusive bool
	rows      []int32 // rows that may wait for the lock: MPI_Win_lock, flushes, MPI_Win_unlock
	unlock    int32   // row, or -1
}

// addLock notes a call that takes, uses or releases the lock of a target. Locks of all targets at once, and of an
// unknown type, are not followed.
func (o *oneSided) addLock(of *window, b *schema.Events, i int, e entry) {
	call, target := schema.CallID(b.Call[i]), b.SendWorld[i]
	if !call.IsAny(schema.FactLock | schema.FactUnlock | schema.FactFlush) {
		return
	}
	if call.Is(schema.FactLock) {
		if label := b.Label[i]; target != schema.NullInt32 && label != schema.NullText {
			if of.locks == nil {
				of.locks = map[int32]*hold{}
			}
			h := &hold{rank: e.rank, exclusive: label == schema.LabelExclusive, rows: []int32{e.row}, unlock: -1}
			of.locks[target] = h
			k := lockKey{of.WindowKey, target}
			o.holds[k] = append(o.holds[k], h)
		}
		return
	}
	for to, h := range of.locks {
		if target == to || target == schema.NullInt32 && call.Is(schema.FactFlush) {
			h.rows = append(h.rows, e.row)
		}
	}
	if h := of.locks[target]; h != nil && call.Is(schema.FactUnlock) {
		h.unlock = e.row
		delete(of.locks, target)
	}
}

// addLockWaits adds the waits for locks, and drops rows and locks that no row beginning after until can wait for.
func (o *oneSided) addLockWaits(until int64) {
	for k, all := range o.holds {
		o.addWaitsOf(all)
		all = slices.DeleteFunc(all, func(h *hold) bool {
			return h.unlock >= 0 && o.ranks.over(entry{h.rank, h.unlock}, until)
		})
		for _, h := range all {
			h.rows = slices.DeleteFunc(h.rows, func(row int32) bool { return o.ranks.over(entry{h.rank, row}, until) })
		}
		if o.holds[k] = all; len(all) == 0 {
			delete(o.holds, k)
		}
	}
}

// addWaitsOf adds the waits of ranks for the same lock: each waits for the last rank that released it during the wait,
// of those that had it before. Ranks release a lock in the order in which they got it.
func (o *oneSided) addWaitsOf(all []*hold) {
	var given []*hold
	for _, h := range all {
		if h.unlock >= 0 && o.ranks.has(entry{h.rank, h.unlock}) {
			given = append(given, h)
		}
	}
	begins := func(h *hold) int64 { return o.ranks.start(entry{h.rank, h.unlock}) }
	slices.SortFunc(given, func(a, b *hold) int {
		return cmp.Or(cmp.Compare(begins(a), begins(b)), cmp.Compare(a.rank, b.rank))
	})
	for _, h := range all {
		for _, i := range h.rows {
			e := entry{h.rank, i}
			if !o.ranks.has(e) || o.ranks.row(e).end == unknown {
				continue
			}
			n, _ := slices.BinarySearchFunc(given, o.ranks.row(e).end, func(h *hold, at int64) int {
				return cmp.Compare(begins(h), at+1)
			})
			for n--; n >= 0 && begins(given[n]) > o.ranks.row(e).start; n-- {
				if o.before(given[n], h) {
					o.ranks.addWait(e.rank, i, given[n].rank, given[n].unlock, AwaitsUnlock)
					break
				}
			}
		}
	}
}

// before reports whether a rank, which has released the lock, had it before another one and not together with it.
func (o *oneSided) before(h, other *hold) bool {
	if h.rank == other.rank || !h.exclusive && !other.exclusive {
		return false
	}
	return other.unlock < 0 || !o.ranks.has(entry{other.rank, other.unlock}) ||
		o.ranks.row(entry{h.rank, h.unlock}).lastTime() <= o.ranks.row(entry{other.rank, other.unlock}).lastTime()
}
