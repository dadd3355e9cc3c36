package diagnose

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

const (
	// chainCalls is the most calls of a chain; repeated calls of one place count as one.
	chainCalls = 4
	// At most mostChains different chains are counted, and keptChains named.
	mostChains = 10_000
	keptChains = 3
	// Chains with less than leastChain of the time of all chains are not named.
	leastChain = 0.01
)

// at is a call of the program.
type at struct {
	site int32
	call schema.CallID
}

// look reads the rows of one finding again: for the calls that lead to it and, if nobody waited because of it, for its
// instances.
type look struct {
	f        *Finding
	place    func(int32) string
	waits    bool // the instances are waits, which are known already
	course   critical.Course
	from, to int64 // the time of the program in the rows
	belongs  map[at]bool
	ranks    map[int32]bool // nil means all
	last     map[[2]int32][]at
	chains   map[[chainCalls]at]*Chain
	ns       map[int32]int64 // by rank
	// peers are the peers of operations, by rank and seq of the row that completes them; noPeer if there are several.
	peers map[[2]int64]int32
	in    *Instances
}

// lookColumns are the columns of events that look needs.
var lookColumns = append([]string{"rank", "seq", "thread", "call", "callsite", "start_ns", "end_ns", "send_world",
	"recv_world", "done_seq"}, computeColumns...)

// look completes the instances of a finding. It reads the rows only if no earlier diagnosis did so for this finding.
func (q *search) look(ctx context.Context, f *Finding, path *critical.Path) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(fmt.Appendf(text, "%d %d %t", path.EndNs, path.DurationNs, q.d.TimesSimulated))
	var in Instances
	name := fmt.Sprintf("finding-%x", sum[:8])
	if kept.Load(q.w.kept, name, &in) {
		f.Instances = &in
		return nil
	}
	q.w.step("read the calls of the finding")
	if err := q.lookAtRows(ctx, q.w.simulation.Run, f, path); err != nil {
		return err
	}
	kept.Save(q.w.kept, name, f.Instances)
	return nil
}

func (q *search) lookAtRows(ctx context.Context, r *run.Run, f *Finding, path *critical.Path) error {
	l := &look{f: f, place: r.Place(ctx), belongs: map[at]bool{}, last: map[[2]int32][]at{},
		chains: map[[chainCalls]at]*Chain{}, ns: map[int32]int64{}, waits: f.Instances != nil, from: math.MaxInt64,
		peers: map[[2]int64]int32{}}
	if l.in = f.Instances; !l.waits {
		l.in = &Instances{Of: ofCalls, OverTime: []TimeSlice{}, Longest: []Instance{}, Before: []Chain{}}
		if f.Rule == Variation {
			l.in.Of = ofComputing
		}
	}
	if len(f.Ranks) > 0 {
		l.ranks = map[int32]bool{}
		for _, rank := range f.Ranks {
			l.ranks[rank] = true
		}
	}
	fill := fillComputing(r)
	err := r.Events(ctx, lookColumns...)(func(b *schema.Events) error {
		if fill != nil {
			fill(b)
		}
		l.add(b)
		return nil
	})
	if err != nil {
		return err
	}
	if !q.d.TimesSimulated {
		l.from, l.to = path.EndNs-path.DurationNs, path.EndNs
	}
	l.complete()
	return nil
}

func (l *look) add(b *schema.Events) {
	for i := range b.Rank {
		if call := schema.CallID(b.Call[i]); b.EndNs[i] != schema.NullInt64 && !call.Is(schema.FactInitializes) &&
			!call.Is(schema.FactFinalizes) {
			l.begin(b.StartNs[i] - max(0, b.ComputeNs[i]))
			l.to = max(l.to, b.EndNs[i])
		}
		if l.ranks != nil && !l.ranks[b.Rank[i]] {
			continue
		}
		peer := l.peer(b, i)
		here, thread := at{b.Callsite[i], schema.CallID(b.Call[i])}, [2]int32{b.Rank[i], b.Thread[i]}
		way := l.last[thread]
		if n := len(way); n == 0 || way[n-1] != here {
			if n == chainCalls {
				way = slices.Delete(way, 0, 1)
			}
			way = append(way, here)
			l.last[thread] = way
		}
		if l.isOf(here) {
			l.instance(b, i, way, peer)
		}
	}
}

// begin notes a time at which a rank was in the program.
func (l *look) begin(at int64) {
	if l.from == math.MaxInt64 {
		l.course.FromNs = at
	}
	l.from = min(l.from, at)
}

// noPeer is the peer of a call without one, or with several.
const noPeer = -1

// peer returns the rank that a row sends to or receives from, itself or by completing an operation; noPeer if there is
// none, or if there are several.
func (l *look) peer(b *schema.Events, i int) int32 {
	rank, own := int64(b.Rank[i]), int32(noPeer)
	for _, world := range []int32{b.RecvWorld[i], b.SendWorld[i]} {
		if world != schema.NullInt32 && world >= 0 {
			own = world
		}
	}
	if done := b.DoneSeq[i]; done > b.Seq[i] && own != noPeer {
		k := [2]int64{rank, done}
		if other, found := l.peers[k]; found && other != own {
			l.peers[k] = noPeer
		} else {
			l.peers[k] = own
		}
	}
	if completed, found := l.peers[[2]int64{rank, b.Seq[i]}]; found {
		delete(l.peers, [2]int64{rank, b.Seq[i]})
		return completed
	}
	return own
}

// isOf reports whether a call is at the finding's place.
func (l *look) isOf(here at) bool {
	is, known := l.belongs[here]
	if !known {
		is = (l.f.Call == "" || here.call.String() == l.f.Call) && l.place(here.site) == l.f.Place
		l.belongs[here] = is
	}
	return is
}

// instance adds a row of the finding. way are the calls that led to it, itself last.
func (l *look) instance(b *schema.Events, i int, way []at, peer int32) {
	computed, from, until := max(0, b.ComputeNs[i]), b.StartNs[i], b.EndNs[i]
	ns, timed := int64(0), from != schema.NullInt64 && until != schema.NullInt64
	switch {
	case l.in.Of == ofCalls && timed:
		ns = until - from
	case l.in.Of != ofCalls:
		ns, until = computed, from
	}
	l.chain(way, ns)
	if l.waits {
		return
	}
	if l.in.Of == ofComputing {
		ns = computed - l.f.mean[rankSite{b.Rank[i], b.Callsite[i]}]
		from = until - ns
	}
	if ns <= 0 {
		return
	}
	l.ns[b.Rank[i]] += ns
	if !timed {
		return
	}
	l.course.AddTime(from, until)
	x := Instance{AtNs: from, Rank: b.Rank[i], Ns: ns, OwnNs: ns, Place: l.place(b.Callsite[i]),
		Call: schema.CallID(b.Call[i]).String()}
	if peer != noPeer && l.in.Of == ofCalls {
		x.Peer = &peer
	}
	l.in.Longest = keepLongest(l.in.Longest, x)
}

// keepLongest adds an instance to the longest ones.
func keepLongest(all []Instance, x Instance) []Instance {
	if len(all) == critical.MostInstances && x.Ns <= all[len(all)-1].Ns {
		return all
	}
	i, _ := slices.BinarySearchFunc(all, x, func(a, b Instance) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(a.AtNs, b.AtNs), cmp.Compare(a.Rank, b.Rank))
	})
	all = slices.Insert(all, i, x)
	return all[:min(len(all), critical.MostInstances)]
}

// chain counts the calls that led to a row.
func (l *look) chain(way []at, ns int64) {
	var key [chainCalls]at
	for i := range key {
		key[i].call = -1
	}
	copy(key[:], way)
	c := l.chains[key]
	if c == nil {
		if len(l.chains) == mostChains {
			return
		}
		c = &Chain{}
		for _, x := range way {
			c.Calls = append(c.Calls, Step{l.place(x.site), x.call.String()})
		}
		l.chains[key] = c
	}
	c.Ns += ns
	c.Times++
}

// complete sets the fields that depend on all rows.
func (l *look) complete() {
	if !l.waits {
		l.in.Ranks = shares(l.ns)
		if len(l.in.Longest) > 0 { // else the run has no times
			l.in.OverTime = slicesOf(&l.course, l.from, l.to)
		}
	}
	l.in.Before = append(l.in.Before, l.joinedChains()...)
	l.f.Instances = l.in
}

// joinedChains returns the chains that took most time. Chains with equal places are joined, whatever call paths lead
// there.
func (l *look) joinedChains() (all []Chain) {
	same := func(a, b Chain) int {
		return slices.CompareFunc(a.Calls, b.Calls, func(x, y Step) int {
			return cmp.Or(cmp.Compare(x.Place, y.Place), cmp.Compare(x.Call, y.Call))
		})
	}
	for _, c := range slices.SortedFunc(maps.Values(l.chains), func(a, b *Chain) int { return same(*a, *b) }) {
		if n := len(all); n > 0 && same(all[n-1], *c) == 0 {
			all[n-1].Ns += c.Ns
			all[n-1].Times += c.Times
		} else {
			all = append(all, *c)
		}
	}
	slices.SortStableFunc(all, func(a, b Chain) int {
		return cmp.Or(cmp.Compare(b.Ns, a.Ns), cmp.Compare(b.Times, a.Times))
	})
	sum := int64(0)
	for _, c := range all {
		sum += c.Ns
	}
	all = slices.DeleteFunc(all, func(c Chain) bool { return float64(c.Ns) < leastChain*float64(sum) })
	return all[:min(len(all), keptChains)]
}
