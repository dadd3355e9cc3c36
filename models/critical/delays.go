package critical

import (
	"cmp"
	"maps"
	"slices"

	"github.com/commq/commq/schema"
)

// Activity is a use of a rank's time: computing before a call, or the call itself.
type Activity struct {
	Rank, Site int32
	Call       schema.CallID
	Kind       Kind
}

func (a Activity) compare(b Activity) int {
	return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Call, b.Call), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Rank, b.Rank))
}

// Place is a call of the program that waits.
type Place struct {
	Site int32
	Call schema.CallID
	// For is the kind of event that it waits for.
	For Awaited
}

// Awaited is the kind of a wait.
type Awaited uint8

const (
	// AwaitsSender is a receive, or a probe, that began before its message was sent: a late sender.
	AwaitsSender Awaited = iota
	// AwaitsReceiver is a send that began before its receive was posted: a late receiver.
	AwaitsReceiver
	// AwaitsReceiverSync is the same of a synchronous send, which waits for its receiver on every network.
	AwaitsReceiverSync
	// AwaitsCollective is a collective operation that a rank entered before the ranks that it needs.
	AwaitsCollective
	// AwaitsPost is MPI_Win_start or MPI_Win_complete that began before the window of a target was exposed: a late
	// post.
	AwaitsPost
	// AwaitsComplete is MPI_Win_wait that began before the access of an origin was complete: a late complete.
	AwaitsComplete
	// AwaitsUnlock is MPI_Win_lock, or the first call that needs its lock, that began while another rank had it.
	AwaitsUnlock
	// Awaits is the number of kinds.
	Awaits
)

func (a Awaited) String() string {
	return [Awaits]string{"late sender", "late receiver", "late receiver", "wait at collective", "late post",
		"late complete", "lock held"}[a]
}

// Waits sums the waits of the calls at a place.
type Waits struct {
	// Ns is the time waited, by all ranks together.
	Ns int64
	// Calls is the number of calls that waited. A call that waited for several reasons counts with a part for each.
	Calls float64
	// LongestNs is the longest wait, of rank LongestRank. It began at LongestAtNs, in ns since the start of the run.
	LongestNs, LongestAtNs int64
	LongestRank            int32
}

// longest updates the longest wait.
func (w *Waits) longest(ns int64, at int64, rank int32) {
	if ns > w.LongestNs || ns == w.LongestNs && (at < w.LongestAtNs || at == w.LongestAtNs && rank < w.LongestRank) {
		w.LongestNs, w.LongestAtNs, w.LongestRank = ns, at, rank
	}
}

// Delay is an activity that made other ranks wait.
type Delay struct {
	Activity
	// Ns is the time that others waited because of it, directly or through ranks that waited in between.
	Ns int64
	// ExcessNs is the part of the activity without which nobody would have waited for this rank directly. It counts
	// once, however many ranks waited.
	ExcessNs int64
	// Places are the calls that waited, and how long because of this delay.
	Places map[Place]*Waits
	// Receivers are ranks that waited for a message of the rank itself, the first MostReceivers of them.
	Receivers []int32
	// Course is Ns over time, and Longest the instances that cost most.
	Course  Course
	Longest []Instance
}

// MostReceivers limits the receivers of a delay that are kept: two show that it has more than one.
const MostReceivers = 2

// receiver notes a rank that waited for a message of the delay's rank.
func (d *Delay) receiver(rank int32) {
	if len(d.Receivers) < MostReceivers && !slices.Contains(d.Receivers, rank) {
		d.Receivers = append(d.Receivers, rank)
	}
}

// Delays explains each wait of the run by what the ranks that were waited for did instead, and sums the explanations by
// activity, the one that cost most first. It is the root-cause analysis of Böhme, Geimer, Wolf and Arnold ("Identifying
// the root causes of wait states in large-scale parallel applications", ICPP 2010): a wait of rank a for rank b is
// attributed to the activities that took longer on the way to b's call than on a, since a last waited itself. If b
// waited on that way, the way continues on the rank that b waited for. The graph is empty afterwards.
func (g *Graph) Delays() []*Delay { return g.Explain(nil).Delays }

// wait is a row that waited for another rank to begin the row cause.
type wait struct {
	cause, waiter entry
	ns            int64
}

// compareWaits orders waits: those with the same cause together, the longest of them first.
func compareWaits(a, b wait) int {
	return cmp.Or(cmp.Compare(a.cause.rank, b.cause.rank), cmp.Compare(a.cause.row, b.cause.row),
		cmp.Compare(b.ns, a.ns), cmp.Compare(a.waiter.rank, b.waiter.rank), cmp.Compare(a.waiter.row, b.waiter.row))
}

// delays sums explanations of waits.
type delays struct {
	g          *Graph
	byActivity map[[2]int32]*Delay // by rank and activity

	// Used while a wait is explained.
	own, total []int64 // by activity, of the waiting rank and on the way; zero between waits
	way        []seg
	parts      []share
	places     []placeWaits
	slices     []timeSlice

	fromNs, widthNs int64 // start of courses and width of their slices; 0 before the first wait
}

// explaining returns the sums of a graph.
func (g *Graph) explaining() *delays {
	if g.delays == nil {
		g.delays = &delays{g: g, byActivity: map[[2]int32]*Delay{}}
	}
	return g.delays
}

// sorted returns the delays, the one that cost most first.
func (d *delays) sorted() []*Delay {
	all := slices.Collect(maps.Values(d.byActivity))
	slices.SortFunc(all, func(a, b *Delay) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), a.compare(b.Activity))
	})
	return all
}

// explainAll explains waits whose causes began by until. The others are kept until all that waited for the same cause
// have ended: an earlier one may turn out to have waited for something later.
func (d *delays) explainAll(waits []wait, until int64) {
	slices.SortFunc(waits, compareWaits)
	for rest := waits; len(rest) > 0; {
		n, ended := 0, true
		for ; n < len(rest) && rest[n].cause == rest[0].cause; n++ {
			ended = ended && d.g.ranks.row(rest[n].waiter).lastTime() <= until
		}
		cause := rest[0].cause
		if ended && d.g.ranks.start(cause) <= until {
			d.g.visit(cause.rank, cause.row)
			d.explain(rest[:n])
		} else {
			r := &d.g.ranks[cause.rank]
			r.pinned = min(r.pinned, cause.row)
		}
		rest = rest[n:]
	}
	for _, w := range waits { // all explained first: they are needed as they are
		if r := d.g.ranks.row(w.waiter); r.left {
			r.waitedRow = d.g.ranks.row(w.cause).node
		}
	}
}

// placeWaits are waits for one row, at one place.
type placeWaits struct {
	Place
	Waits
}

// explain adds the waits for one row. The explanation of the longest one applies to the others in the same proportions.
func (d *delays) explain(waits []wait) {
	longest, ns := waits[0], int64(0)
	d.sumByPlace(waits)
	d.spread(waits)
	for _, w := range waits {
		ns += w.ns
	}
	for _, s := range d.shares(longest) {
		k := [2]int32{s.rank, s.activity}
		delay := d.byActivity[k]
		if delay == nil {
			delay = &Delay{Activity: d.g.places.activity(s.rank, s.activity), Places: map[Place]*Waits{}}
			d.byActivity[k] = delay
		}
		if s.rank == longest.cause.rank {
			delay.ExcessNs += part(s.fraction, longest.ns)
			if d.g.ranks.row(longest.waiter).awaits == AwaitsSender {
				delay.receiver(longest.waiter.rank)
			}
		}
		d.note(delay, s.fraction, longest, ns)
		for i := range d.places {
			w := &d.places[i]
			to := delay.Places[w.Place]
			if to == nil {
				to = &Waits{}
				delay.Places[w.Place] = to
			}
			ns := part(s.fraction, w.Ns)
			delay.Ns += ns
			to.Ns += ns
			to.Calls += s.fraction * w.Calls
			to.longest(part(s.fraction, w.LongestNs), w.LongestAtNs, w.LongestRank)
		}
	}
}

// part returns a fraction of a time, in ns.
func part(fraction float64, ns int64) int64 { return int64(fraction*float64(ns) + 0.5) }

// sumByPlace sums waits by place, and marks them as explained.
func (d *delays) sumByPlace(waits []wait) {
	d.places = d.places[:0]
	for _, w := range waits {
		r := d.g.ranks.row(w.waiter)
		r.left = true
		at := d.g.places.all[r.place]
		p := Place{at.site, at.call, r.awaits}
		i := slices.IndexFunc(d.places, func(q placeWaits) bool { return q.Place == p })
		if i < 0 {
			i, d.places = len(d.places), append(d.places, placeWaits{Place: p})
		}
		to := &d.places[i]
		to.Ns += w.ns
		to.Calls++
		to.longest(w.ns, r.start, w.waiter.rank)
	}
}

// share is the fraction of a wait that an activity of a rank explains.
type share struct {
	rank, activity int32
	fraction       float64
}

// shares explains a wait by the activities on the way to the row that was waited for, minus the time that the waiting
// rank spent on the same activities. The fractions add up to 1. The result is valid until the next call.
func (d *delays) shares(w wait) []share {
	if n := len(d.g.places.all) * int(Kinds); n > len(d.own) {
		d.own, d.total = make([]int64, 2*n), make([]int64, 2*n)
	}
	since := d.spend(w.waiter, 1)
	d.way = d.way[:0]
	d.g.tree.walkBack(d.g.ranks.row(w.cause).node, since, func(s seg) { d.way = append(d.way, s) })
	d.way = joined(d.way)
	for _, s := range d.way {
		d.total[s.activity] += s.ns
	}
	d.parts = d.parts[:0]
	sum := 0.0
	for _, s := range d.way {
		of := d.total[s.activity]
		if excess := of - d.own[s.activity]; excess > 0 {
			part := float64(s.ns) * float64(excess) / float64(of)
			d.parts = append(d.parts, share{s.rank, s.activity, part})
			sum += part
		}
	}
	for i := range d.parts {
		d.parts[i].fraction /= sum
	}
	for _, s := range d.way {
		d.total[s.activity] = 0
	}
	d.spend(w.waiter, 0)
	return d.parts
}

// spend adds to own what a rank did between its last wait, or the begin of its thread, and a row, times a factor; the
// factor 0 clears it. It returns when that began.
func (d *delays) spend(at entry, factor int64) (since int64) {
	r := &d.g.ranks[at.rank]
	w := r.rowAt(at.row)
	until := w.start
	add := func(activity int32, from int64) {
		if from != unknown && from < until {
			d.own[activity] = factor * (d.own[activity] + until - from)
			until = from
		}
	}
	for {
		compute := activityOf(w.place, Compute)
		switch {
		case w.prev < 0:
			add(compute, r.beginOr(min(d.g.firstNs, until)))
			return until
		case w.prev < r.dropped:
			t := &r.tails[w.thread]
			add(compute, t.at)
			for _, s := range t.own {
				d.own[s.activity] = factor * (d.own[s.activity] + s.ns)
			}
			if len(t.own) == 0 {
				return until
			}
			return min(until, t.since)
		}
		p := r.rowAt(w.prev)
		add(compute, p.lastTime())
		if w = p; w.waitedRank >= 0 {
			return until
		}
		add(activityOf(w.place, w.kindWithoutWait()), w.start)
	}
}
