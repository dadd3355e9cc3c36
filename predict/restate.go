package predict

import (
	"fmt"
	"math"
	"slices"

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
			w := restatedRank{restated: x, s: s, run: i, sig: run, rank: &s.ranks[x.base[i]+r]}
			w.loop(run.nodes[0], run.Values[0].Loops[run.Roots[r]])
		}
	}
	return nil
}

// restatedRank takes in what a rank of a run did.
type restatedRank struct {
	*restated
	s    *signer
	run  int
	sig  *Signature
	rank *signedRank
}

// loop takes in iterations of a loop. Of what is repeated it takes in as much as it needs to see that all that comes only makes the last item of one
// sequence longer.
func (w *restatedRank) loop(n *Node, items []Item) {
	for i := range items {
		x := &items[i]
		if x.Times == 0 {
			w.body(n, w.sig.Values[n.ID].Bodies[x.Value])
			continue
		}
		for k := int64(0); k < x.Times; k++ {
			var before []openLoop
			at := w.rank.at
			if left := x.Times - k - 1; k > 1 && k&(k-1) == 0 && left > 2 { // an item has to be there twice first
				before = w.rank.copied()
			}
			w.loop(n, x.Items)
			if before != nil && at == w.rank.at && w.rank.repeats(before, x.Times-k-1) {
				break
			}
		}
	}
}

func (w *restatedRank) body(n *Node, b []int32) {
	for i := 0; i < len(b); i += 2 {
		c, value := n.Children[b[i]], b[i+1]
		if c.Loop {
			w.loop(c, w.sig.Values[c.ID].Loops[value])
			continue
		}
		to := w.s.sig.nodes[w.nodes[w.run][c.ID]]
		call := &w.calls[w.run][c.ID][value]
		if *call < 0 {
			*call = w.s.intern(to, w.call(w.run, to, w.sig, c, value, w.s))
		}
		w.s.goTo(w.rank, to)
		w.s.take(w.rank, to, *call)
	}
}

// copied is where a rank is, to be compared.
func (p *signedRank) copied() []openLoop {
	all := slices.Clone(p.open)
	for i := range all {
		all[i].body, all[i].items.items = slices.Clone(all[i].body), slices.Clone(all[i].items.items)
	}
	return all
}

// repeats says whether a rank is where it was before, but for one item of one sequence that comes more often; then it takes in the same so many times
// more. What calls do hangs on where the rank is, and on that number only where it is compared with another: where there is one that it may be
// equal to on the way, it is false.
func (p *signedRank) repeats(before []openLoop, times int64) bool {
	if len(before) != len(p.open) {
		return false
	}
	var grown *Item
	var by int64
	for i := range before {
		a, b := &before[i], &p.open[i]
		if a.node != b.node || !slices.Equal(a.body, b.body) || len(a.items.items) != len(b.items.items) {
			return false
		}
		for k := range b.items.items {
			was, is := &a.items.items[k], &b.items.items[k]
			if was.equal(is) {
				continue
			}
			if by = is.Times - was.Times; grown != nil || by <= 0 || was.Times == 0 || !sameItems(was.Items, is.Items) {
				return false
			}
			// What comes in the meantime is not as long as the item.
			behind := b.items.items[k+1:]
			if (was.Times-by)*countItems(was.Items) <= countItems(behind) || repeatedIn(b.items.items[:k], was) || repeatedIn(behind, was) {
				return false
			}
			grown = is
		}
	}
	if grown == nil {
		return false
	}
	grown.Times += times * by
	return true
}

// repeatedIn says whether items have, at any depth, what x repeats, as often or more.
func repeatedIn(items []Item, x *Item) bool {
	return slices.ContainsFunc(items, func(i Item) bool {
		return i.Times >= x.Times && sameItems(i.Items, x.Items) || repeatedIn(i.Items, x)
	})
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

// rows are the same calls as rows, in batches of the table events.
func (j *joiner) rows(add func(*schema.Events) error) error {
	b := &schema.Events{}
	return j.each(func(rows []schema.Event) error {
		b.Resize(0)
		for k := range rows {
			b.Append(&rows[k])
		}
		return add(b)
	})
}

// each makes the rows of one rank after the other, which are valid until the next.
func (j *joiner) each(visit func([]schema.Event) error) error {
	var rows []schema.Event
	for i, s := range j.runs {
		for r := range s.Ranks {
			x := s.expansion(r)
			x.rows = rows
			var err error
			if rows, err = x.next(math.MaxInt64); err != nil {
				return fmt.Errorf("signature of %q: %w", s.Run, err)
			}
			for k := range rows {
				j.row(i, &rows[k])
			}
			if err := visit(rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// jointRows are the calls of training runs as rows.
type jointRows struct{ *joiner }

func (x jointRows) flows(s *signer) error {
	return x.each(func(rows []schema.Event) error {
		for k := range rows {
			e := &rows[k]
			symbol := s.symbolOf(e.Call, e.Callsite, e.Comm)
			if e.Instance != schema.NullInt64 && e.Comm != schema.NullInt32 && schema.Class(e.Class) == schema.ClassCollective {
				s.meet(instance{e.Comm, e.Instance}, symbol)
			}
			s.follow(e.Rank, symbol)
		}
		return nil
	})
}

func (x jointRows) values(s *signer) error {
	return x.each(func(rows []schema.Event) error {
		for k := range rows {
			e := &rows[k]
			s.takeRow(s.leaf[s.symbolOf(e.Call, e.Callsite, e.Comm)], e)
		}
		return nil
	})
}
