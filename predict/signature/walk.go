package signature

import (
	"maps"
	"slices"

	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// Link builds the indexes that other methods use. Call it after the template or the communicators changed.
func (s *Signature) Link() {
	s.nodes = s.Template.Link()
	s.comms = map[int32]*Comm{}
	for i := range s.Comms {
		c := &s.Comms[i]
		s.comms[c.ID] = c
		c.ranks, c.remoteRanks = c.Members.index(), c.Remote.index()
	}
	s.referenced, s.initializes = nil, nil
}

// Nodes returns the nodes of the template by ID. A loop comes before what is in it.
func (s *Signature) Nodes() []*template.Node { return s.nodes }

// CommByID returns a communicator; nil if there is none with this id.
func (s *Signature) CommByID(id int32) *Comm { return s.comms[id] }

// WorldComms returns the communicators that have all ranks in order, ordered by id.
func (s *Signature) WorldComms() (all []*Comm) {
	for i := range s.Comms {
		if c := &s.Comms[i]; len(c.Remote) == 0 && len(c.Members) == int(s.Ranks) && slices.IsSorted(c.Members) &&
			(s.Ranks > 1 || c.Kind != "self") {
			all = append(all, c)
		}
	}
	return all
}

// Class returns the class of a call of an event.
func (s *Signature) Class(n *template.Node, c *Call) schema.Class {
	if c.Class != "" {
		if i := slices.Index(schema.ClassNames, c.Class); i >= 0 {
			return schema.Class(i)
		}
		return schema.ClassOther
	}
	return schema.Calls[s.Symbols[n.Symbol].CallID].Class
}

// SendsMessage reports whether a call of an event sends a message to a process.
func (s *Signature) SendsMessage(n *template.Node, c *Call) bool {
	class := s.Class(n, c)
	return (class == schema.ClassSend || class == schema.ClassSendrecv) && c.Send.HasPeer()
}

// Callsite returns the call site of a call of an event, or null.
func (s *Signature) Callsite(n *template.Node, c *Call) int32 {
	switch {
	case c.Frame != nil:
		return *c.Frame
	case s.Symbols[n.Symbol].Frame != nil:
		return *s.Symbols[n.Symbol].Frame
	}
	return schema.NullInt32
}

// Walk calls visit with each call of a rank, in order, and its event.
func (s *Signature) Walk(rank int32, visit func(n *template.Node, c *Call)) {
	walkLoop(s, s.nodes[0], s.Roots[rank], visit)
}

// walkLoop visits the calls of one execution of a loop.
func walkLoop(s *Signature, loop *template.Node, value int32, visit func(n *template.Node, c *Call)) {
	v := &s.Values[loop.ID]
	fold.Each(v.Loops[value], func(body int32) bool {
		b := v.Bodies[body]
		for i := 0; i < len(b); i += 2 {
			if n := loop.Children[b[i]]; n.Loop {
				walkLoop(s, n, b[i+1], visit)
			} else {
				visit(n, s.Values[n.ID].Events[b[i+1]])
			}
		}
		return true
	})
}

// WalkTimes calls visit with the calls of a rank of a signature, their events, and how often the rank repeats them. It
// does not unfold what is repeated, so that its order is not that of the calls. A call may come more than once.
func WalkTimes(s *Signature, rank int32, visit func(n *template.Node, c *Call, times int64)) {
	walkLoopTimes(s, s.nodes[0], s.Roots[rank], 1, visit)
}

// walkLoopTimes visits the calls of equal executions of a loop.
func walkLoopTimes(s *Signature, loop *template.Node, value int32, times int64,
	visit func(n *template.Node, c *Call, times int64)) {
	v := &s.Values[loop.ID]
	fold.EachTimes(v.Loops[value], times, func(body int32, times int64) {
		b := v.Bodies[body]
		for i := 0; i < len(b); i += 2 {
			if n := loop.Children[b[i]]; n.Loop {
				walkLoopTimes(s, n, b[i+1], times, visit)
			} else {
				visit(n, s.Values[n.ID].Events[b[i+1]], times)
			}
		}
	})
}

// VisitExecutions calls visit for each distinct pair of loop and value at or below the given execution of a loop.
// Pairs in visited are skipped; visited pairs are added to it.
func (s *Signature) VisitExecutions(n *template.Node, value int32, visited map[[2]int32]bool) {
	k := [2]int32{n.ID, value}
	if !n.Loop || visited[k] {
		return
	}
	visited[k] = true
	v := &s.Values[n.ID]
	bodies := map[int32]bool{}
	fold.EachOnce(v.Loops[value], func(body int32) { bodies[body] = true })
	for body := range bodies {
		b := v.Bodies[body]
		for i := 0; i < len(b); i += 2 {
			s.VisitExecutions(n.Children[b[i]], b[i+1], visited)
		}
	}
}

// Occurrences returns, by node and value, how often ranks with these roots have the value, all together.
func (s *Signature) Occurrences(roots []int32) [][]int64 {
	counts := make([][]int64, len(s.nodes))
	for _, n := range s.nodes {
		counts[n.ID] = make([]int64, max(len(s.Values[n.ID].Events), len(s.Values[n.ID].Loops)))
	}
	for _, root := range roots {
		counts[0][root]++
	}
	for _, n := range s.nodes { // a loop comes before what is in it
		v := &s.Values[n.ID]
		bodies := make([]int64, len(v.Bodies))
		for i, l := range v.Loops {
			if times := counts[n.ID][i]; times > 0 {
				fold.Count(l, times, bodies)
			}
		}
		for i, b := range v.Bodies {
			for k := 0; k < len(b); k += 2 {
				counts[n.Children[b[k]].ID][b[k+1]] += bodies[i]
			}
		}
	}
	return counts
}

// Cursor iterates over the calls of a rank. Several cursors can be advanced side by side.
type Cursor struct {
	sig   *Signature
	stack []cursorFrame
}

// cursorFrame is a position in an iteration of a loop, or between iterations.
type cursorFrame struct {
	node  *template.Node
	body  []int32 // nil: between iterations
	items []fold.Item
	next  int32 // index in body or items
	times int64 // how often items remain to be done, the current time included
}

// Cursor returns a cursor before the first call of a rank.
func (s *Signature) Cursor(rank int32) Cursor {
	root := s.nodes[0]
	return Cursor{s, []cursorFrame{{node: root, items: s.Values[root.ID].Loops[s.Roots[rank]], times: 1}}}
}

// Next returns the event of the next call and the index of the call among the event's values; nil at the end.
func (c *Cursor) Next() (*template.Node, int32) {
	for {
		n, value, again := c.NextOrRepeat()
		if !again {
			return n, value
		}
	}
}

// NextOrRepeat returns what Next does, or again where a repetition has ended and the next one begins; then call it
// again.
func (c *Cursor) NextOrRepeat() (n *template.Node, value int32, again bool) {
	for len(c.stack) > 0 {
		f := &c.stack[len(c.stack)-1]
		v := &c.sig.Values[f.node.ID]
		switch {
		case f.body != nil && int(f.next) < len(f.body):
			n, value := f.node.Children[f.body[f.next]], f.body[f.next+1]
			f.next += 2
			if !n.Loop {
				return n, value, false
			}
			c.stack = append(c.stack, cursorFrame{node: n, items: c.sig.Values[n.ID].Loops[value], times: 1})
		case f.body == nil && int(f.next) < len(f.items):
			x := &f.items[f.next]
			f.next++
			if x.Times > 0 {
				c.stack = append(c.stack, cursorFrame{node: f.node, items: x.Items, times: x.Times})
			} else {
				c.stack = append(c.stack, cursorFrame{node: f.node, body: v.Bodies[x.Value]})
			}
		case f.times > 1:
			f.times, f.next = f.times-1, 0
			return nil, 0, true
		default:
			c.stack = c.stack[:len(c.stack)-1]
		}
	}
	return nil, 0, false
}

// Depth returns how many loops and repetitions are around the next call.
func (c *Cursor) Depth() int { return len(c.stack) }

// RepetitionsLeft returns how many repetitions are left of the innermost one that the cursor is in, the current one
// included.
func (c *Cursor) RepetitionsLeft() int64 { return c.stack[len(c.stack)-1].times }

// Skip skips whole repetitions of the innermost one that the cursor is in. There must be more left.
func (c *Cursor) Skip(repetitions int64) { c.stack[len(c.stack)-1].times -= repetitions }

// Mark saves the position of a cursor in to, whose memory it uses again.
func (c *Cursor) Mark(to *Cursor) { to.sig, to.stack = c.sig, append(to.stack[:0], c.stack...) }

// IsOneRepetitionAfter reports whether the cursor is where mark was, one repetition of the innermost one later.
func (c *Cursor) IsOneRepetitionAfter(mark *Cursor) bool {
	last := len(c.stack) - 1
	if last < 0 || len(mark.stack) != len(c.stack) {
		return false
	}
	for i := range c.stack {
		a, b := &c.stack[i], &mark.stack[i]
		later := int64(0)
		if i == last {
			later = 1
		}
		if a.node != b.node || a.next != b.next || a.times+later != b.times || !sameStart(a.items, b.items) ||
			!sameStart(a.body, b.body) {
			return false
		}
	}
	return true
}

// sameStart reports whether two slices begin at the same place in memory.
func sameStart[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// VisitEvents calls visit with each distinct event and value of a rank. Pairs of node and value in visited are skipped;
// visited ones are added to it.
func (s *Signature) VisitEvents(rank int32, visited map[[2]int32]bool, visit func(event, value int32)) {
	s.VisitExecutions(s.nodes[0], s.Roots[rank], visited)
	seen := map[[2]int32]bool{}
	for k := range visited {
		v := &s.Values[k[0]]
		loop := s.nodes[k[0]]
		fold.EachOnce(v.Loops[k[1]], func(body int32) {
			b := v.Bodies[body]
			for i := 0; i < len(b); i += 2 {
				e := [2]int32{loop.Children[b[i]].ID, b[i+1]}
				if !loop.Children[b[i]].Loop && !seen[e] {
					seen[e] = true
					visit(e[0], e[1])
				}
			}
		})
	}
}

// VisitTimes calls visit with each distinct value that an event has on a rank, and how often.
func (s *Signature) VisitTimes(rank, event int32, visit func(value int32, times int64)) {
	var path []*template.Node // from the root to the event
	for n := s.nodes[event]; n != nil; n = n.Parent {
		path = append(path, n)
	}
	slices.Reverse(path)
	counts := map[int32]int64{s.Roots[rank]: 1}
	for i, n := range path[:len(path)-1] {
		v, below := &s.Values[n.ID], map[int32]int64{}
		bodies := make([]int64, len(v.Bodies))
		for value, times := range counts {
			fold.Count(v.Loops[value], times, bodies)
		}
		for body, times := range bodies {
			if times == 0 {
				continue
			}
			b := v.Bodies[body]
			for k := 0; k < len(b); k += 2 {
				if n.Children[b[k]] == path[i+1] {
					below[b[k+1]] += times
				}
			}
		}
		counts = below
	}
	for _, value := range slices.Sorted(maps.Keys(counts)) {
		visit(value, counts[value])
	}
}
