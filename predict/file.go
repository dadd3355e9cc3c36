package predict

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/commq/commq/schema"
)

// Write writes the signature as JSON, one line.
func (s *Signature) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	if err := json.NewEncoder(b).Encode(s); err != nil {
		return err
	}
	return b.Flush()
}

// Read reads a signature as Write writes it. The error says what is wrong with it, and where.
func Read(r io.Reader) (*Signature, error) {
	s := &Signature{}
	dec := json.NewDecoder(r)
	if err := dec.Decode(s); err != nil {
		return nil, fmt.Errorf("not a signature of commq sign: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("more stands behind the signature, from byte %d", dec.InputOffset())
	}
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("signature of %q: %w", s.Run, err)
	}
	return s, nil
}

// mostCalls bounds the calls that a rank of a signature has.
const mostCalls = 1 << 40

// check says what is wrong with a signature that was read, and links it.
func (s *Signature) check() error {
	switch {
	case s.Version != Version:
		return fmt.Errorf("commq_signature %d: this commq reads %d; make it again with commq sign", s.Version, Version)
	case s.Ranks < 1 || int(s.Ranks) != len(s.Roots):
		return fmt.Errorf("%d ranks, and roots of %d", s.Ranks, len(s.Roots))
	case s.Template == nil || !s.Template.Loop:
		return fmt.Errorf("the template's root is not a loop")
	}
	if err := s.checkTables(); err != nil {
		return err
	}
	if err := s.Template.check(len(s.Symbols)); err != nil {
		return err
	}
	s.link()
	if len(s.Values) != len(s.nodes) {
		return fmt.Errorf("values of %d nodes, the template has %d", len(s.Values), len(s.nodes))
	}
	for i := range s.Phases {
		if p := &s.Phases[i]; p.Node < 0 || int(p.Node) >= len(s.nodes) || !s.nodes[p.Node].Loop {
			return fmt.Errorf("phase %d: node %d is no loop", i, p.Node)
		}
	}
	for _, n := range slices.Backward(s.nodes) {
		if err := s.checkValues(n); err != nil {
			return fmt.Errorf("node %d: %w", n.ID, err)
		}
	}
	calls := s.counts()
	sum := int64(0)
	for rank, root := range s.Roots {
		if root < 0 || int(root) >= len(calls) {
			return fmt.Errorf("rank %d: root %d of %d", rank, root, len(calls))
		}
		if sum += calls[root]; sum > mostCalls {
			return fmt.Errorf("more than %d calls", int64(mostCalls))
		}
	}
	if sum != s.Calls {
		return fmt.Errorf("%d calls, and ranks that make %d", s.Calls, sum)
	}
	return nil
}

// checkTables looks at what does not depend on the template.
func (s *Signature) checkTables() error {
	frames := map[int32]bool{}
	for _, f := range s.Frames {
		frames[f.ID] = true
	}
	for i := range s.Symbols {
		sym := &s.Symbols[i]
		id := slices.Index(schema.CallNames, sym.Call)
		switch {
		case id <= 0:
			return fmt.Errorf("symbol %d: %q is no MPI call", i, sym.Call)
		case sym.Frame != nil && !frames[*sym.Frame]:
			return fmt.Errorf("symbol %d: there is no frame %d", i, *sym.Frame)
		}
		sym.call = schema.CallID(id)
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

// check looks at the nodes of a template.
func (n *Node) check(symbols int) error {
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
		if err := c.check(symbols); err != nil {
			return err
		}
	}
	return nil
}

// checkValues looks at what ranks did at a node.
func (s *Signature) checkValues(n *Node) error {
	v := &s.Values[n.ID]
	if !n.Loop {
		if len(v.Bodies)+len(v.Loops) > 0 {
			return fmt.Errorf("an event with iterations")
		}
		for i, c := range v.Events {
			if err := s.checkCall(c); err != nil {
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
				return fmt.Errorf("iteration %d: child %d of %d, in order", i, b[k], len(n.Children))
			}
			child := &s.Values[n.Children[b[k]].ID]
			if most := max(len(child.Events), len(child.Loops)); b[k+1] < 0 || int(b[k+1]) >= most {
				return fmt.Errorf("iteration %d: value %d of %d of child %d", i, b[k+1], most, b[k])
			}
		}
	}
	for i, l := range v.Loops {
		if !wellFormed(l, len(v.Bodies)) {
			return fmt.Errorf("loop %d: an iteration that is none of %d", i, len(v.Bodies))
		}
	}
	return nil
}

func wellFormed(items []Item, bodies int) bool {
	for i := range items {
		x := &items[i]
		if x.Times == 0 && (x.Value < 0 || int(x.Value) >= bodies) || x.Times != 0 && !wellFormed(x.Items, bodies) {
			return false
		}
	}
	return true
}

func (s *Signature) checkCall(c *Call) error {
	if c == nil {
		return fmt.Errorf("it is missing")
	}
	for _, side := range []Side{c.Send, c.Recv} {
		if n := len(side); n != 0 && n != SideCommPeer && n != SideCommPeer+1 {
			return fmt.Errorf("a side of %d numbers: want peer, tag, count, datatype, bytes", n)
		}
	}
	if c.ReduceOp != "" && !slices.Contains(schema.OpNames, c.ReduceOp) {
		return fmt.Errorf("reduce_op %q is none", c.ReduceOp)
	}
	if c.Class != "" && !slices.Contains(schema.ClassNames, c.Class) {
		return fmt.Errorf("class %q is none", c.Class)
	}
	refers := c.Completes
	for _, made := range [2]*Completion{c.Init, c.About} {
		if made != nil {
			refers = append(slices.Clone(refers), *made)
		}
	}
	for _, q := range refers {
		if q[0] < 0 || int(q[0]) >= len(s.nodes) || s.nodes[q[0]].Loop || q[1] < 0 || q[2] < 1 || q[2] > q[1]+1 {
			return fmt.Errorf("it refers to %v: want an event, how many of its calls ago, and how many of them", q)
		}
	}
	return nil
}

// counts are the calls of each value of the root; more than mostCalls are not counted.
func (s *Signature) counts() []int64 {
	all := make([][]int64, len(s.nodes))
	for _, n := range slices.Backward(s.nodes) {
		v := &s.Values[n.ID]
		if !n.Loop {
			all[n.ID] = make([]int64, len(v.Events))
			for i := range all[n.ID] {
				all[n.ID][i] = 1
			}
			continue
		}
		bodies := make([]int64, len(v.Bodies))
		for i, b := range v.Bodies {
			for k := 0; k < len(b); k += 2 {
				bodies[i] = min(bodies[i]+all[n.Children[b[k]].ID][b[k+1]], mostCalls+1)
			}
		}
		for _, l := range v.Loops {
			all[n.ID] = append(all[n.ID], weigh(l, bodies))
		}
	}
	return all[0]
}

// weigh adds up what the numbers that items stand for have, to mostCalls+1 at most.
func weigh(items []Item, of []int64) (sum int64) {
	for i := range items {
		x := &items[i]
		if x.Times == 0 {
			sum = min(sum+of[x.Value], mostCalls+1)
			continue
		}
		if n := weigh(x.Items, of); n > 0 {
			sum = min(sum+min(x.Times, (mostCalls+n)/n)*n, mostCalls+1)
		}
	}
	return sum
}
