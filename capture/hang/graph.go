package hang

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/schema"
)

// node is a rank in the graph of who waits for whom.
type node struct {
	rank    int32
	states  []*State
	alive   bool // it can go on, as far as is known
	ended   bool
	waiting bool // every thread of it is in a call that waits for somebody
	on      []int32
}

// findings draws the graph of who waits for whom and says what it shows. A rank can go on when one of its threads can; a
// thread can when it is outside MPI, or in a call whose partners can, or of which nothing is known. Ranks that cannot go on
// by this wait for each other in a circle, or for one that has ended.
func findings(states []State) []Finding {
	g := graphOf(states)
	g.spread()
	var out []Finding
	circles, in := g.circles()
	out = append(out, circles...)
	out = append(out, g.forEnded(in)...)
	return append(out, g.forOthers()...)
}

type graph struct {
	nodes []*node
	of    map[int32]*node
}

func graphOf(states []State) *graph {
	g := &graph{of: map[int32]*node{}}
	for i := range states {
		s := &states[i]
		n := g.of[s.Rank]
		if n == nil {
			n = &node{rank: s.Rank, ended: true, waiting: true}
			g.of[s.Rank] = n
			g.nodes = append(g.nodes, n)
		}
		n.states = append(n.states, s)
		if s.State != Finalized && s.State != Aborted {
			n.ended = false
		}
		if s.State == Missing || s.State == Outside || s.State == InCall && (!s.known || len(s.WaitsFor) == 0) {
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

// spread finds all ranks that can go on because those they wait for can.
func (g *graph) spread() {
	for changed := true; changed; {
		changed = false
		for _, n := range g.nodes {
			if !n.alive && !n.ended && slices.ContainsFunc(n.states, g.canGoOn) {
				n.alive, changed = true, true
			}
		}
	}
}

func (g *graph) canGoOn(s *State) bool {
	alive := func(r int32) bool { n := g.of[r]; return n == nil || n.alive }
	if s.State != InCall {
		return false
	}
	if s.Any {
		return slices.ContainsFunc(s.WaitsFor, alive)
	}
	return !slices.ContainsFunc(s.WaitsFor, func(r int32) bool { return !alive(r) })
}

// stuck says whether the rank cannot go on.
func (n *node) stuck() bool { return !n.alive && !n.ended }

// circles finds a shortest circle through the lowest rank of each group of ranks that wait for each other; in holds all
// ranks of such groups.
func (g *graph) circles() (out []Finding, in map[int32]bool) {
	in = map[int32]bool{}
	for _, n := range g.nodes {
		if !n.stuck() || in[n.rank] {
			continue
		}
		circle := g.circle(n)
		if circle == nil {
			continue
		}
		forth, back := g.reach(n, false), g.reach(n, true)
		for r := range forth {
			if back[r] {
				in[r] = true
			}
		}
		in[n.rank] = true
		out = append(out, Finding{Kind: Deadlock, Ranks: circle, Text: circleText(circle)})
	}
	return out, in
}

// circle is a shortest way from a stuck rank back to it over stuck ranks; nil: there is none.
func (g *graph) circle(from *node) []int32 {
	before := map[int32]int32{}
	queue := []int32{from.rank}
	for len(queue) > 0 {
		r := queue[0]
		queue = queue[1:]
		for _, to := range g.of[r].on {
			if to == from.rank {
				var way []int32
				for ; r != from.rank; r = before[r] {
					way = append(way, r)
				}
				way = append(way, from.rank)
				slices.Reverse(way)
				return way
			}
			if n := g.of[to]; n != nil && n.stuck() {
				if _, seen := before[to]; !seen {
					before[to] = r
					queue = append(queue, to)
				}
			}
		}
	}
	return nil
}

// reach are the stuck ranks that n waits for, directly or not, or with back those that wait for n.
func (g *graph) reach(n *node, back bool) map[int32]bool {
	edges := map[int32][]int32{}
	for _, m := range g.nodes {
		for _, to := range m.on {
			if t := g.of[to]; m.stuck() && t != nil && t.stuck() {
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

// maxCircle is how many ranks of a circle its text names.
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

// forEnded are the stuck ranks outside circles that wait for ranks that have ended.
func (g *graph) forEnded(in map[int32]bool) []Finding {
	by := map[int32][]int32{}
	for _, n := range g.nodes {
		if !n.stuck() || in[n.rank] {
			continue
		}
		for _, to := range n.on {
			if t := g.of[to]; t != nil && t.ended {
				by[to] = append(by[to], n.rank)
			}
		}
	}
	return g.sentences(Ended, by)
}

// forOthers are the ranks that wait, in the end, for one that waits for nobody.
func (g *graph) forOthers() []Finding {
	edges := map[int32][]int32{}
	for _, n := range g.nodes {
		if n.waiting && !n.stuck() {
			for _, to := range n.on {
				edges[to] = append(edges[to], n.rank)
			}
		}
	}
	by := map[int32][]int32{}
	for _, n := range g.nodes {
		if n.waiting || n.ended || len(edges[n.rank]) == 0 {
			continue
		}
		for r := range reachable(edges, n.rank) {
			if r != n.rank {
				by[n.rank] = append(by[n.rank], r)
			}
		}
	}
	return g.sentences(Waiting, by)
}

// sentences say who waits for each rank and what that one does, the rank that most wait for first.
func (g *graph) sentences(kind string, by map[int32][]int32) []Finding {
	var out []Finding
	for to, who := range by {
		slices.Sort(who)
		text := fmt.Sprintf("%s for rank %d, which %s", waits(who), to, doing(g.of[to]))
		out = append(out, Finding{Kind: kind, Ranks: who, For: &to, Text: text})
	}
	slices.SortFunc(out, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(len(b.Ranks), len(a.Ranks)), cmp.Compare(*a.For, *b.For))
	})
	return out
}

func waits(who []int32) string {
	if len(who) == 1 {
		return fmt.Sprintf("rank %d waits", who[0])
	}
	return fmt.Sprintf("ranks %s wait", rankList(who))
}

// doing says what a rank does, as a clause.
func doing(n *node) string {
	s := n.states[0]
	for _, t := range n.states {
		if t.State == Outside || t.State == InCall && len(t.WaitsFor) == 0 {
			s = t
			break
		}
	}
	switch s.State {
	case InCall:
		return "is" + s.since() + " in " + s.Text
	case Outside:
		return "is " + s.Text + s.since() + s.after()
	case Finalized:
		return "has finalized"
	case Missing:
		return "has no records here"
	}
	return s.Text
}

// since is when the state began, as the end of a sentence.
func (s *State) since() string {
	if s.SinceNs == nil {
		return ""
	}
	return fmt.Sprintf(" since %s", seconds(*s.SinceNs))
}

// after names the last call of a thread outside MPI, as the end of a sentence.
func (s *State) after() string {
	if s.State != Outside || s.Call == "" {
		return ""
	}
	text := ", after " + s.Call
	if s.Site != "" {
		text += " at " + s.Site
	}
	return text
}

func seconds(ns int64) string { return fmt.Sprintf("%.3f s", float64(ns)/1e9) }

// rankList is a list of ascending ranks in words: 0-3, 7.
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

// maxListed is how many entries a list of ranks has at most.
const maxListed = 16

// mismatches are communicators on which ranks are in different collective operations at the same place.
func (a *analysis) mismatches() []Finding {
	type place struct {
		comm int32
		n    uint64
	}
	type who struct {
		rank int32
		text string
	}
	at := map[place][]who{}
	names := map[int32]string{}
	for _, r := range a.ranks {
		for _, t := range r.threads {
			c := t.open
			if c == nil || !collective(c) {
				continue
			}
			v := a.view(r, c.Comm)
			if v == nil {
				continue
			}
			text := schema.CallID(c.Call).String()
			if w := world(v, c.Peer); c.Peer != schema.NullInt32 && w >= 0 && !v.Inter() {
				text += fmt.Sprintf(" with root %d", w)
			}
			names[v.ID] = v.Text()
			p := place{v.ID, r.next[c.Comm]}
			at[p] = append(at[p], who{r.rank, text})
		}
	}
	var out []Finding
	for p, all := range at {
		first := all[0]
		i := slices.IndexFunc(all, func(w who) bool { return w.text != first.text })
		if i < 0 {
			continue
		}
		out = append(out, Finding{Kind: Mismatch, Ranks: []int32{first.rank, all[i].rank}, Text: fmt.Sprintf(
			"operation %d on %s is %s on rank %d, but %s on rank %d", p.n+1, names[p.comm], first.text, first.rank, all[i].text, all[i].rank)})
	}
	slices.SortFunc(out, func(x, y Finding) int { return strings.Compare(x.Text, y.Text) })
	return out
}
