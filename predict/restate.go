package predict

import (
	"fmt"

	"github.com/commq/commq/schema"
)

// restated are the calls of training runs as their signatures have them, said in the joint tables: no row is made.
type restated struct {
	*joiner
	symbols [][]int32   // joint symbols, by run and node of its template
	calls   [][][]int32 // numbers of joint calls, by run, node and number there; -1: not asked yet
	nodes   [][]int32   // nodes of the joint template, by run and node of its own
}

// restate is nil where an event of a run is several of the joint template, or several of a rank are one: then what calls refer to has to be counted
// anew, from rows.
func (j *joiner) restate(s *signer) *restated {
	x := &restated{joiner: j}
	for i, run := range j.runs {
		of := make([]int32, len(run.nodes))
		taken := map[int32]bool{}
		for _, n := range run.nodes {
			of[n.ID] = -1
			if n.Loop {
				continue
			}
			sym := &run.Symbols[n.Symbol]
			for _, c := range run.Values[n.ID].Events {
				site, comm := value(c.Frame, value(sym.Frame, schema.NullInt32)), c.Comm.int32()
				renumber(&site, j.siteOf[i])
				renumber(&comm, j.commIDs[i])
				symbol := s.symbolOf(int16(sym.call), site, comm)
				if of[n.ID] >= 0 && of[n.ID] != symbol {
					return nil
				}
				of[n.ID] = symbol
			}
			if taken[of[n.ID]] {
				return nil
			}
			taken[of[n.ID]] = true
		}
		x.symbols = append(x.symbols, of)
	}
	return x
}

func (x *restated) flows(s *signer) error {
	for i, run := range x.runs {
		for r := range run.Ranks {
			rank, instances := x.base[i]+r, map[int32]int64{}
			run.walk(run.nodes[0], run.Roots[r], func(n *Node, value int32) {
				symbol := x.symbols[i][n.ID]
				if c := run.Values[n.ID].Events[value]; c.Instance && c.Comm != null && c.Init == nil {
					class := schema.Calls[run.Symbols[n.Symbol].call].Class
					if c.Class != "" {
						class = classNamed(c.Class)
					}
					comm := c.Comm.int32()
					if class == schema.ClassCollective {
						s.meet(instance{x.commIDs[i][comm], instances[comm]}, symbol)
					}
					instances[comm]++
				}
				s.follow(rank, symbol)
			})
		}
	}
	return nil
}

func (x *restated) values(s *signer) error {
	x.link(s)
	for i, run := range x.runs {
		for r := range run.Ranks {
			p := &s.ranks[x.base[i]+r]
			run.walk(run.nodes[0], run.Roots[r], func(n *Node, value int32) {
				to := s.sig.nodes[x.nodes[i][n.ID]]
				call := &x.calls[i][n.ID][value]
				if *call < 0 {
					*call = s.intern(to, x.call(i, to, run, n, value, s))
				}
				s.goTo(p, to)
				s.take(p, to, *call)
			})
		}
	}
	return nil
}

// link finds which node of the joint template, as it is now, an event of a run is.
func (x *restated) link(s *signer) {
	x.calls, x.nodes = nil, nil
	for i, run := range x.runs {
		calls, nodes := make([][]int32, len(run.nodes)), make([]int32, len(run.nodes))
		for _, n := range run.nodes {
			if n.Loop {
				continue
			}
			nodes[n.ID] = s.leaf[s.same[x.symbols[i][n.ID]]].ID
			calls[n.ID] = make([]int32, len(run.Values[n.ID].Events))
			for k := range calls[n.ID] {
				calls[n.ID][k] = -1
			}
		}
		x.calls, x.nodes = append(x.calls, calls), append(x.nodes, nodes)
	}
}

// call is a call of a run said in the joint tables.
func (x *restated) call(i int, to *Node, run *Signature, n *Node, value int32, s *signer) *Call {
	c := *run.Values[n.ID].Events[value]
	c.ComputeNs = nil // calls of several runs are one
	comm := c.Comm.int32()
	renumber(&comm, x.commIDs[i])
	c.Comm = int32Of(comm)
	c.Send, c.Recv = x.side(i, c.Send), x.side(i, c.Recv)
	if c.Root != nil {
		root := *c.Root + x.base[i]
		c.Root = &root
	}
	site := c.Frame
	if site == nil {
		site = run.Symbols[n.Symbol].Frame
	}
	c.Frame = nil
	if site != nil {
		joint := x.siteOf[i][*site]
		if f := s.sig.Symbols[to.Symbol].Frame; f == nil || *f != joint {
			c.Frame = &joint
		}
	}
	refer := func(q Completion) Completion { return Completion{x.nodes[i][q[0]], q[1], q[2]} }
	completes := c.Completes
	c.Completes = nil
	for _, q := range completes {
		c.Completes = append(c.Completes, refer(q))
	}
	if c.Init != nil {
		init := refer(*c.Init)
		c.Init = &init
	}
	return &c
}

func (x *restated) side(i int, s Side) Side {
	if s == nil {
		return nil
	}
	to := append(Side{}, s...)
	datatype := s[SideDatatype].int32()
	renumber(&datatype, x.typeOf[i])
	to[SideDatatype] = int32Of(datatype)
	return to
}

// rows are the same calls as rows.
func (j *joiner) rows(add func(*schema.Events) error) error {
	b := &schema.Events{}
	for i, s := range j.runs {
		for r := range s.Ranks {
			rows, err := s.Expand(r)
			if err != nil {
				return fmt.Errorf("signature of %q: %w", s.Run, err)
			}
			b.Resize(0)
			for k := range rows {
				j.row(i, &rows[k])
				b.Append(&rows[k])
			}
			if err := add(b); err != nil {
				return err
			}
		}
	}
	return nil
}
