package signature

import (
	"fmt"
	"slices"

	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// maxCalls is the largest number of calls that a signature may have.
const maxCalls = 1 << 40

// Check links a decoded signature and returns an error if it is inconsistent. A signature that passes can be walked
// and expanded without further checks, except for references to calls that are not there.
func (s *Signature) Check() error {
	switch {
	case s.Version != Version:
		return fmt.Errorf("commq_signature %d: this commq reads %d; make it again with commq export signature", s.Version,
			Version)
	case s.Ranks < 1 || int(s.Ranks) != len(s.Roots):
		return fmt.Errorf("%d ranks, but roots of %d", s.Ranks, len(s.Roots))
	case s.Template == nil || !s.Template.Loop:
		return fmt.Errorf("the template's root is not a loop")
	}
	if err := checkTables(s); err != nil {
		return err
	}
	if err := checkNode(s.Template, len(s.Symbols)); err != nil {
		return err
	}
	s.Link()
	if len(s.Values) != len(s.nodes) {
		return fmt.Errorf("values of %d nodes, but the template has %d", len(s.Values), len(s.nodes))
	}
	for i := range s.Phases {
		if p := &s.Phases[i]; p.Node < 0 || int(p.Node) >= len(s.nodes) || !s.nodes[p.Node].Loop {
			return fmt.Errorf("phase %d: node %d is not a loop", i, p.Node)
		}
	}
	for _, n := range slices.Backward(s.nodes) {
		if err := checkValues(s, n); err != nil {
			return fmt.Errorf("node %d: %w", n.ID, err)
		}
		if err := s.Values[n.ID].Times.check(s.Ranks); err != nil {
			return fmt.Errorf("node %d: %w", n.ID, err)
		}
	}
	return checkRoots(s)
}

// mostRatio is the largest ratio of two compute times in a signature, in thousandths.
const mostRatio = 1e12

// check checks ratios of times; t may be nil.
func (t *Times) check(ranks int32) error {
	if t == nil {
		return nil
	}
	if n := len(t.ByRank); n != 0 && n != int(ranks) {
		return fmt.Errorf("by_rank_permille of %d ranks, but there are %d", n, ranks)
	}
	for rank, ratio := range t.ByRank {
		if ratio < 0 || ratio > mostRatio {
			return fmt.Errorf("by_rank_permille %d of rank %d", ratio, rank)
		}
	}
	if t.Shared < 0 || t.Shared > 1000 {
		return fmt.Errorf("shared_noise_permille %d is not from 0 to 1000", t.Shared)
	}
	return nil
}

// checkTables checks what does not depend on the template, and sets the call ids of symbols.
func checkTables(s *Signature) error {
	frames := map[int32]bool{}
	for _, f := range s.Frames {
		frames[f.ID] = true
	}
	comms := map[int32]bool{}
	for i := range s.Comms {
		comms[s.Comms[i].ID] = true
	}
	for i := range s.Symbols {
		sym := &s.Symbols[i]
		id := slices.Index(schema.CallNames, sym.Call)
		switch {
		case id <= 0:
			return fmt.Errorf("symbol %d: %q is not an MPI call", i, sym.Call)
		case sym.Frame != nil && !frames[*sym.Frame]:
			return fmt.Errorf("symbol %d: there is no frame %d", i, *sym.Frame)
		case sym.Comm != nil && !comms[*sym.Comm]:
			return fmt.Errorf("symbol %d: there is no communicator %d", i, *sym.Comm)
		case sym.Completes != "" && slices.Index(schema.CallNames, sym.Completes) <= 0:
			return fmt.Errorf("symbol %d: it completes %q, which is not an MPI call", i, sym.Completes)
		}
		sym.CallID = schema.CallID(id)
	}
	for _, c := range s.Comms {
		for _, group := range []Ranks{c.Members, c.Remote} {
			for _, world := range group {
				if world < -1 || world >= s.Ranks {
					return fmt.Errorf("communicator %d: rank %d of %d", c.ID, world, s.Ranks)
				}
			}
		}
	}
	return nil
}

// checkNode checks the nodes from n down.
func checkNode(n *template.Node, symbols int) error {
	switch {
	case n.Loop && n.Symbol != 0:
		return fmt.Errorf("node %d: a loop with a symbol", n.ID)
	case !n.Loop && len(n.Children) > 0:
		return fmt.Errorf("node %d: an event with children", n.ID)
	case n.Symbol < 0 || !n.Loop && int(n.Symbol) >= symbols:
		return fmt.Errorf("node %d: symbol %d of %d", n.ID, n.Symbol, symbols)
	}
	for i, c := range n.Children {
		if c == nil {
			return fmt.Errorf("node %d: child %d is missing", n.ID, i)
		}
		if err := checkNode(c, symbols); err != nil {
			return err
		}
	}
	return nil
}

// checkValues checks the values of a node.
func checkValues(s *Signature, n *template.Node) error {
	v := &s.Values[n.ID]
	if !n.Loop {
		if len(v.Bodies)+len(v.Loops) > 0 {
			return fmt.Errorf("an event with iterations")
		}
		for i, c := range v.Events {
			err := checkCall(s, c)
			if err == nil && s.Class(n, c) == schema.ClassCollective && c.Comm != Null && !c.Instance {
				err = fmt.Errorf("a collective call that is not counted among the operations of its communicator (instance)")
			}
			if err != nil {
				return fmt.Errorf("call %d: %w", i, err)
			}
		}
		return nil
	}
	if len(v.Events) > 0 {
		return fmt.Errorf("a loop with calls")
	}
	for i, b := range v.Bodies {
		if len(b) == 0 || len(b)%2 != 0 {
			return fmt.Errorf("iteration %d: %d numbers; want pairs", i, len(b))
		}
		for k := 0; k < len(b); k += 2 {
			if b[k] < 0 || int(b[k]) >= len(n.Children) || k > 0 && b[k] <= b[k-2] {
				return fmt.Errorf("iteration %d: child %d of %d; want them in ascending order", i, b[k],
					len(n.Children))
			}
			child := &s.Values[n.Children[b[k]].ID]
			if count := max(len(child.Events), len(child.Loops)); b[k+1] < 0 || int(b[k+1]) >= count {
				return fmt.Errorf("iteration %d: value %d of %d of child %d", i, b[k+1], count, b[k])
			}
		}
	}
	for i, l := range v.Loops {
		if !indexesInRange(l, len(v.Bodies)) {
			return fmt.Errorf("loop %d: an iteration outside of the %d that there are", i, len(v.Bodies))
		}
	}
	return nil
}

// indexesInRange reports whether all numbers in items are valid indexes of bodies.
func indexesInRange(items []fold.Item, bodies int) bool {
	for i := range items {
		x := &items[i]
		if x.Times == 0 && (x.Value < 0 || int(x.Value) >= bodies) ||
			x.Times != 0 && !indexesInRange(x.Items, bodies) {
			return false
		}
	}
	return true
}

func checkCall(s *Signature, c *Call) error {
	if c == nil {
		return fmt.Errorf("it is missing")
	}
	for _, side := range []*Side{&c.Send, &c.Recv} {
		if n := len(*side); n != 0 && n != SideCommPeer && n != SideCommPeer+1 {
			return fmt.Errorf("a side of %d numbers: want peer, tag, count, datatype, bytes", n)
		}
		if len(*side) == 0 { // [] is written as nothing too; readers of a side test for nil
			*side = nil
		}
	}
	if c.ReduceOp != "" && !slices.Contains(schema.OpNames, c.ReduceOp) {
		return fmt.Errorf("unknown reduce_op %q", c.ReduceOp)
	}
	if c.Class != "" && !slices.Contains(schema.ClassNames, c.Class) {
		return fmt.Errorf("unknown class %q", c.Class)
	}
	refs := c.Completes
	for _, maker := range [2]*Backref{c.Init, c.About} {
		if maker != nil {
			refs = append(slices.Clone(refs), *maker)
		}
	}
	for _, b := range refs {
		if b[0] < 0 || int(b[0]) >= len(s.nodes) || s.nodes[b[0]].Loop || b[1] < 0 || b[2] < 1 || b[2] > b[1]+1 {
			return fmt.Errorf("bad reference %v: want an event, how many of its calls ago, and how many of them", b)
		}
	}
	return nil
}

// checkRoots checks the roots and the number of calls that they expand to.
func checkRoots(s *Signature) error {
	calls := rootCalls(s)
	sum := int64(0)
	for rank, root := range s.Roots {
		if root < 0 || int(root) >= len(calls) {
			return fmt.Errorf("rank %d: root %d of %d", rank, root, len(calls))
		}
		if sum += calls[root]; sum > maxCalls {
			return fmt.Errorf("more than %d calls", int64(maxCalls))
		}
	}
	if sum != s.Calls {
		return fmt.Errorf("%d calls, but the ranks make %d", s.Calls, sum)
	}
	return nil
}

// rootCalls returns the number of calls of each value of the root, at most maxCalls+1.
func rootCalls(s *Signature) []int64 {
	calls := make([][]int64, len(s.nodes)) // by node and value
	for _, n := range slices.Backward(s.nodes) {
		v := &s.Values[n.ID]
		if !n.Loop {
			calls[n.ID] = slices.Repeat([]int64{1}, len(v.Events))
			continue
		}
		bodies := make([]int64, len(v.Bodies))
		for i, b := range v.Bodies {
			for k := 0; k < len(b); k += 2 {
				bodies[i] = min(bodies[i]+calls[n.Children[b[k]].ID][b[k+1]], maxCalls+1)
			}
		}
		for _, l := range v.Loops {
			calls[n.ID] = append(calls[n.ID], sumCalls(l, bodies))
		}
	}
	return calls[0]
}

// sumCalls adds up the calls of iterations, to at most maxCalls+1.
func sumCalls(items []fold.Item, bodies []int64) (sum int64) {
	for i := range items {
		x := &items[i]
		if x.Times == 0 {
			sum = min(sum+bodies[x.Value], maxCalls+1)
			continue
		}
		if n := sumCalls(x.Items, bodies); n > 0 {
			sum = min(sum+min(x.Times, (maxCalls+n)/n)*n, maxCalls+1)
		}
	}
	return sum
}
