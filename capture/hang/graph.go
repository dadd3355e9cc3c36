package hang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// node is a rank in the graph of ranks that wait for each other.
type node struct {
	rank    int32
	states  []*State
	alive   bool // it may continue, or nothing is known against it
	ended   bool
	waiting bool    // all its threads are in calls that wait for other ranks
	unknown bool    // a thread's recording stopped
	on      []int32 // the ranks that it waits for, ascending
}

// findings draws conclusions from which rank waits for which. A rank can continue if one of its threads can. A thread
// can continue if it is outside MPI, in a call whose partners can continue, or in a call about which nothing is
// known. All other ranks are stuck: they wait for each other in a circle, or for a rank that has ended.
func findings(states []State) []Finding {
	g := newGraph(states)
	g.spread()
	var out []Finding
	circles, inCircle := g.circles()
	out = append(out, circles...)
	out = append(out, g.waitsForEnded(inCircle)...)
	return append(out, g.waitsForIdle()...)
}

type graph struct {
	nodes  []*node
	byRank map[int32]*node
}

func newGraph(states []State) *graph {
	g := &graph{byRank: map[int32]*node{}}
	for i := range states {
		s := &states[i]
		n := g.byRank[s.Rank]
		if n == nil {
			n = &node{rank: s.Rank, ended: true, waiting: true}
			g.byRank[s.Rank] = n
			g.nodes = append(g.nodes, n)
		}
		n.states = append(n.states, s)
		if s.State != Finalized && s.State != Aborted {
			n.ended = false
		}
		n.unknown = n.unknown || s.State == Unrecorded
		if s.State == Missing || s.State == Unrecorded || s.State == Outside ||
			s.State == InCall && (!s.known || len(s.WaitsFor) == 0) {
			n.alive, n.waiting = true, false
		}
		n.on = append(n.on, s.WaitsFor...)
	}
	for _, n := range g.nodes {
		n.waiting = n.waiting && !n.ended
		slices.Sort(n.on)
		n.on = slices.Compact(n.on)
	}
	return g
}

// spread marks all ranks that can continue because those they wait for can.
func (g *graph) spread() {
	for changed := true; changed; {
		changed = false
		for _, n := range g.nodes {
			if !n.alive && !n.ended && slices.ContainsFunc(n.states, g.canContinue) {
				n.alive, changed = true, true
			}
		}
	}
}

func (g *graph) canContinue(s *State) bool {
	alive := func(r int32) bool { n := g.byRank[r]; return n == nil || n.alive }
	if s.State != InCall {
		return false
	}
	if s.Any {
		return slices.ContainsFunc(s.WaitsFor, alive)
	}
	return !slices.ContainsFunc(s.WaitsFor, func(r int32) bool { return !alive(r) })
}

// stuck reports whether the rank cannot continue.
func (n *node) stuck() bool { return !n.alive && !n.ended }

// circles finds, for each group of ranks that wait for each other, a shortest circle through its lowest rank.
// inCircle has all ranks of such groups.
func (g *graph) circles() (out []Finding, inCircle map[int32]bool) {
	inCircle = map[int32]bool{}
	for _, n := range g.nodes {
		if !n.stuck() || inCircle[n.rank] {
			continue
		}
		circle := g.circle(n)
		if circle == nil {
			continue
		}
		forth, back := g.reach(n, false), g.reach(n, true)
		for r := range forth {
			if back[r] {
				inCircle[r] = true
			}
		}
		inCircle[n.rank] = true
		out = append(out, Finding{Kind: Deadlock, Ranks: circle, Text: circleText(circle)})
	}
	return out, inCircle
}

// circle returns a shortest path over stuck ranks from a stuck rank back to itself, or nil.
func (g *graph) circle(from *node) []int32 {
	before := map[int32]int32{}
	queue := []int32{from.rank}
	for len(queue) > 0 {
		r := queue[0]
		queue = queue[1:]
		for _, to := range g.byRank[r].on {
			if to == from.rank {
				var path []int32
				for ; r != from.rank; r = before[r] {
					path = append(path, r)
				}
				path = append(path, from.rank)
				slices.Reverse(path)
				return path
			}
			if n := g.byRank[to]; n != nil && n.stuck() {
				if _, seen := before[to]; !seen {
					before[to] = r
					queue = append(queue, to)
				}
			}
		}
	}
	return nil
}

// reach returns the stuck ranks that n waits for, directly or indirectly; with back, those that wait for n.
func (g *graph) reach(n *node, back bool) map[int32]bool {
	edges := map[int32][]int32{}
	for _, m := range g.nodes {
		for _, to := range m.on {
			if t := g.byRank[to]; m.stuck() && t != nil && t.stuck() {
				if back {
					edges[to] = append(edges[to], m.rank)
				} else {
					edges[m.rank] = append(edges[m.rank], to)
				}
			}
		}
	}
	return reachable(edges, n.rank)
}

func reachable(edges map[int32][]int32, from int32) map[int32]bool {
	seen := map[int32]bool{}
	queue := []int32{from}
	for len(queue) > 0 {
		r := queue[0]
		queue = queue[1:]
		for _, to := range edges[r] {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return seen
}

// maxCircle is the largest number of ranks of a circle that a text lists.
const maxCircle = 12

func circleText(circle []int32) string {
	names := circle
	if len(circle) > maxCircle {
		names = circle[:maxCircle]
	}
	var parts []string
	for _, r := range names {
		parts = append(parts, strconv.Itoa(int(r)))
	}
	if len(circle) > len(names) {
		parts = append(parts, fmt.Sprintf("... (%d ranks)", len(circle)))
	}
	parts = append(parts, strconv.Itoa(int(circle[0])))
	if len(circle) == 1 {
		return fmt.Sprintf("rank %d waits for itself", circle[0])
	}
	return strings.Join(parts, " waits for ")
}

// waitsForEnded finds the stuck ranks outside circles that wait for ranks that have ended.
func (g *graph) waitsForEnded(inCircle map[int32]bool) []Finding {
	waiting := map[int32][]int32{}
	for _, n := range g.nodes {
		if !n.stuck() || inCircle[n.rank] {
			continue
		}
		for _, to := range n.on {
			if t := g.byRank[to]; t != nil && t.ended {
				waiting[to] = append(waiting[to], n.rank)
			}
		}
	}
	return g.sentences(Ended, waiting)
}

// waitsForIdle finds the ranks that wait, directly or indirectly, for a rank that does not wait itself. Of one whose
// recording stopped nothing is known.
func (g *graph) waitsForIdle() []Finding {
	edges := map[int32][]int32{}
	for _, n := range g.nodes {
		if n.waiting && !n.stuck() {
			for _, to := range n.on {
				edges[to] = append(edges[to], n.rank)
			}
		}
	}
	waiting := map[int32][]int32{}
	for _, n := range g.nodes {
		if n.waiting || n.ended || n.unknown || len(edges[n.rank]) == 0 {
			continue
		}
		for r := range reachable(edges, n.rank) {
			if r != n.rank {
				waiting[n.rank] = append(waiting[n.rank], r)
			}
		}
	}
	return g.sentences(Waiting, waiting)
}

// sentences makes a finding for each rank that others wait for: which ones wait, and what that rank is doing. The
// rank with the most waiting ranks comes first.
func (g *graph) sentences(kind string, waiting map[int32][]int32) []Finding {
	var out []Finding
	for to, who := range waiting {
		slices.Sort(who)
		text := fmt.Sprintf("%s for rank %d, which %s", waitText(who), to, doingText(g.byRank[to]))
		out = append(out, Finding{Kind: kind, Ranks: who, For: &to, Text: text})
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(len(b.Ranks), len(a.Ranks)), cmp.Compare(*a.For, *b.For))
	})
	return out
}

func waitText(who []int32) string {
	if len(who) == 1 {
		return fmt.Sprintf("rank %d waits", who[0])
	}
	return fmt.Sprintf("ranks %s wait", rankList(who))
}

// doingText says what a rank is doing, as a clause.
func doingText(n *node) string {
	s := n.states[0]
	for _, t := range n.states {
		if t.State == Outside || t.State == InCall && len(t.WaitsFor) == 0 {
			s = t
			break
		}
	}
	switch s.State {
	case InCall:
		return "is" + s.sinceText() + " in " + s.Text
	case Outside:
		return "is " + s.Text + s.sinceText() + s.afterText()
	case Finalized:
		return "has finalized"
	case Missing:
		return "has no records here"
	}
	return s.Text
}

// sinceText says when the state began, as the end of a sentence.
func (s *State) sinceText() string {
	if s.SinceNs == nil {
		return ""
	}
	return fmt.Sprintf(" since %s", seconds(*s.SinceNs))
}

// afterText names the last call of a thread outside MPI, or no longer recorded, as the end of a sentence.
func (s *State) afterText() string {
	if s.State != Outside && s.State != Unrecorded || s.Call == "" {
		return ""
	}
	text := ", after " + s.Call
	if s.Site != "" {
		text += " at " + s.Site
	}
	return text
}

func seconds(ns int64) string { return fmt.Sprintf("%.3f s", float64(ns)/1e9) }

// rankList lists ascending ranks: 0-3, 7.
func rankList(ranks []int32) string {
	var parts []string
	for i := 0; i < len(ranks); {
		k := i
		for k+1 < len(ranks) && ranks[k+1] == ranks[k]+1 {
			k++
		}
		switch {
		case k > i+1:
			parts = append(parts, fmt.Sprintf("%d-%d", ranks[i], ranks[k]))
		default:
			k = i
			parts = append(parts, strconv.Itoa(int(ranks[i])))
		}
		i = k + 1
		if len(parts) == maxListed && i < len(ranks) {
			return fmt.Sprintf("%s and %d more", strings.Join(parts, ", "), len(ranks)-i)
		}
	}
	return strings.Join(parts, ", ")
}

// maxListed is the largest number of entries in a list of ranks.
const maxListed = 16
