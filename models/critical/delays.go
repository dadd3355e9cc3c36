package critical

import (
	"cmp"
	"maps"
	"slices"

	"github.com/commq/commq/schema"
)

// Activity is what a rank spends time on: computing before a call, or being in it.
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

// Awaited is what a call waits for.
type Awaited uint8

const (
	// AwaitsSender is a receive, or a probe, that began before its message was sent: a late sender.
	AwaitsSender Awaited = iota
	// AwaitsReceiver is a send that began before its receive was posted: a late receiver.
	AwaitsReceiver
	// AwaitsCollective is a collective operation that a rank entered before the ranks that it needs.
	AwaitsCollective
)

func (a Awaited) String() string {
	return [...]string{"late sender", "late receiver", "wait at collective"}[a]
}

// Waits sums the waits of the calls at a place.
type Waits struct {
	// Ns is the time waited, by all ranks together.
	Ns int64
	// Calls is the number of calls that waited. A call that waited for several reasons counts with a part for each.
	Calls float64
	// LongestNs is the longest wait, of rank LongestRank from LongestAtNs on.
	LongestNs, LongestAtNs int64
	LongestRank            int32
}

func (w *Waits) add(ns int64, calls float64, at int64, rank int32) {
	w.Ns += ns
	w.Calls += calls
	if ns > w.LongestNs {
		w.LongestNs, w.LongestAtNs, w.LongestRank = ns, at, rank
	}
}

// Delay is an activity that made other ranks wait.
type Delay struct {
	Activity
	// Ns is the time that others waited because of it, directly or through ranks that waited in between.
	Ns int64
	// ExcessNs is the time that the activity took more than it had to: without it nobody would have waited for this
	// rank directly. It counts once, however many ranks waited.
	ExcessNs int64
	// Places are the calls that waited, and how long because of this delay.
	Places map[Place]*Waits
}

// Delays explains each wait of the run by what the ranks that were waited for did instead, and sums the explanations
// by activity, the one that cost most first. It is the root-cause analysis of Böhme, Geimer, Wolf and Arnold
// ("Identifying the root causes of wait states in large-scale parallel applications", ICPP 2010): of a wait of rank a
// for rank b the activities count that took longer on the way to b's call than on a, since a last waited itself.
// Where b waited on that way, the way is that of the rank that b waited for.
func (g *Graph) Delays() []*Delay {
	g.addCollectiveWaits()
	d := delays{g: g, byActivity: map[Activity]*Delay{}}
	for rest := g.waits(); len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].cause == rest[0].cause {
			n++
		}
		d.explain(rest[:n])
		rest = rest[n:]
	}
	all := slices.Collect(maps.Values(d.byActivity))
	slices.SortFunc(all, func(a, b *Delay) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), a.compare(b.Activity))
	})
	return all
}

// wait is a row that waited for another rank to begin the row cause.
type wait struct {
	cause, waiter entry
	ns            int64
}

// waits returns all waits, those with the same cause together, the longest of them first.
func (g *Graph) waits() (all []wait) {
	for rank := range g.ranks {
		for i := range g.ranks[rank].rows {
			r := &g.ranks[rank].rows[i]
			if r.waitedRank < 0 {
				continue
			}
			cause := entry{r.waitedRank, r.waitedRow}
			if ns := g.start(cause) - r.start; ns > 0 {
				all = append(all, wait{cause, entry{int32(rank), int32(i)}, ns})
			}
		}
	}
	slices.SortFunc(all, func(a, b wait) int {
		return cmp.Or(cmp.Compare(a.cause.rank, b.cause.rank), cmp.Compare(a.cause.row, b.cause.row),
			cmp.Compare(b.ns, a.ns), cmp.Compare(a.waiter.rank, b.waiter.rank))
	})
	return all
}

// delays sums explanations of waits.
type delays struct {
	g          *Graph
	byActivity map[Activity]*Delay
}

// explain adds waits for one row. What explains the longest of them explains the others in the same proportions.
func (d *delays) explain(waits []wait) {
	longest := waits[0]
	shares := d.shares(longest)
	for _, s := range shares {
		delay := d.byActivity[s.Activity]
		if delay == nil {
			delay = &Delay{Activity: s.Activity, Places: map[Place]*Waits{}}
			d.byActivity[s.Activity] = delay
		}
		if s.Rank == longest.cause.rank {
			delay.ExcessNs += int64(s.fraction*float64(longest.ns) + 0.5)
		}
		for _, w := range waits {
			ns := int64(s.fraction*float64(w.ns) + 0.5)
			delay.Ns += ns
			place := d.g.place(w)
			if delay.Places[place] == nil {
				delay.Places[place] = &Waits{}
			}
			delay.Places[place].add(ns, s.fraction, d.g.start(w.waiter), w.waiter.rank)
		}
	}
}

// place says where a wait is.
func (g *Graph) place(w wait) Place {
	r := &g.ranks[w.waiter.rank].rows[w.waiter.row]
	return Place{r.site, schema.CallID(r.call), r.awaits}
}

// share is the fraction of a wait that an activity explains.
type share struct {
	Activity
	fraction float64
}

// anywhere is an activity of any rank.
type anywhere struct {
	site int32
	call schema.CallID
	kind Kind
}

func (a Activity) anywhere() anywhere { return anywhere{a.Site, a.Call, a.Kind} }

// shares explains a wait: the activities on the way to the row that was waited for, less what the waiting rank spent on
// the same ones. The fractions add up to 1.
func (d *delays) shares(w wait) (all []share) {
	own, since := d.since(w.waiter)
	way, total := map[Activity]int64{}, map[anywhere]int64{}
	walk := d.g.walkFrom(d.g.start(w.cause), since, func(s Segment) {
		a := Activity{s.Rank, s.Site, s.Call, s.Kind}
		way[a] += s.To - s.From
		total[a.anywhere()] += s.To - s.From
	})
	rank := w.cause.rank
	for i := walk.before(rank, w.cause.row); i >= 0 && walk.at > since; {
		rank, i = walk.inside(rank, i)
		i = walk.before(rank, i)
	}
	sum := 0.0
	for _, a := range slices.SortedFunc(maps.Keys(way), Activity.compare) { // in order, so that sums round in one way
		ns, of := way[a], total[a.anywhere()]
		if excess := of - own[a.anywhere()]; excess > 0 {
			part := float64(ns) * float64(excess) / float64(of)
			all = append(all, share{a, part})
			sum += part
		}
	}
	for i := range all {
		all[i].fraction /= sum
	}
	return all
}

// since returns what a rank did between its last wait, or the begin of its thread, and row i, and when that began.
func (d *delays) since(at entry) (own map[anywhere]int64, since int64) {
	own = map[anywhere]int64{}
	rows := d.g.ranks[at.rank].rows
	i, until := at.row, rows[at.row].start
	for {
		r, from := &rows[i], d.g.ranks[at.rank].begin
		if r.prev >= 0 {
			from = rows[r.prev].lastTime()
		} else if from == unknown {
			from = min(d.g.firstNs, until)
		}
		if from != unknown && from < until {
			own[anywhere{r.site, schema.CallID(r.call), Compute}] += until - from
			until = from
		}
		if i = r.prev; i < 0 || rows[i].waitedRank >= 0 {
			return own, until
		}
		if r = &rows[i]; r.start != unknown && r.start < until {
			own[anywhere{r.site, schema.CallID(r.call), r.kindWithoutWait()}] += until - r.start
			until = r.start
		}
	}
}
