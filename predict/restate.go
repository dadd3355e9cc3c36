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
	symbols [][][]int32 // joint symbols, by run, node of its template and number of the call there; none: nobody makes it
	levels  [][][]int32 // of a recursion, of these calls
	meets   [][]bool    // by run and node: calls below it are operations of a communicator, which are counted
	calls   [][][]int32 // numbers of joint calls, by run, node and number there; none: not asked yet
	nodes   [][][]int32 // nodes of the joint template, by run, node of its own and number there
}

func (j *joiner) restate() *restated {
	x := &restated{joiner: j}
	for _, run := range j.runs {
		x.symbols, x.levels = append(x.symbols, run.numbers()), append(x.levels, run.numbers())
		meets := make([]bool, len(run.nodes))
		for _, n := range slices.Backward(run.nodes) { // a loop comes before what is in it
			meets[n.ID] = slices.ContainsFunc(run.Values[n.ID].Events, func(c *Call) bool { return c.Instance }) ||
				slices.ContainsFunc(n.Children, func(c *Node) bool { return meets[c.ID] })
		}
		x.meets = append(x.meets, meets)
	}
	return x
}

// numbers are so many times none as events have different calls, by node.
func (s *Signature) numbers() [][]int32 {
	all := make([][]int32, len(s.nodes))
	for i := range all {
		all[i] = slices.Repeat([]int32{none}, len(s.Values[i].Events))
	}
	return all
}

// symbol is the joint symbol of a call of a run.
func (x *restated) symbol(s *signer, i int, n *Node, value int32) int32 {
	symbol := &x.symbols[i][n.ID][value]
	if *symbol == none {
		run := x.runs[i]
		sym, c := &run.Symbols[n.Symbol], run.Values[n.ID].Events[value]
		site, comm := run.callsite(n, c), c.Comm.int32()
		x.levels[i][n.ID][value] = x.levelOf[i][site]
		renumber(&site, x.siteOf[i])
		renumber(&comm, x.commIDs[i])
		*symbol = s.symbolOf(int16(sym.call), site, comm)
	}
	return *symbol
}

func (x *restated) flows(s *signer) error {
	for i, run := range x.runs {
		for r := range run.Ranks {
			w := flowing{restated: x, s: s, run: i, rank: x.base[i] + r, instances: map[int32]int64{}}
			w.loop(run.nodes[0], run.Values[0].Loops[run.Roots[r]], 1)
		}
	}
	return nil
}

// flowing follows what a rank of a run did.
type flowing struct {
	*restated
	s         *signer
	run       int
	rank      int32
	instances map[int32]int64 // operations of communicators so far
}

// loop follows iterations, which count so many times. All repetitions of an item but the first are the same, where no operations are counted.
func (w *flowing) loop(n *Node, items []Item, times int64) {
	for i := range items {
		x := &items[i]
		if x.Times == 0 {
			w.body(n, w.runs[w.run].Values[n.ID].Bodies[x.Value], times)
			continue
		}
		w.loop(n, x.Items, times)
		if !w.meets[w.run][n.ID] {
			w.loop(n, x.Items, times*(x.Times-1))
			continue
		}
		for range x.Times - 1 {
			w.loop(n, x.Items, times)
		}
	}
}

func (w *flowing) body(n *Node, b []int32, times int64) {
	run := w.runs[w.run]
	for i := 0; i < len(b); i += 2 {
		c, value := n.Children[b[i]], b[i+1]
		if c.Loop {
			w.loop(c, run.Values[c.ID].Loops[value], times)
			continue
		}
		symbol := w.symbol(w.s, w.run, c, value)
		if w.meets[w.run][c.ID] {
			w.meet(c, run.Values[c.ID].Events[value], symbol)
		}
		w.s.follow(w.rank, symbol, w.levels[w.run][c.ID][value], times)
	}
}

// meet counts an operation of a communicator, and notes that it meets those of others.
func (w *flowing) meet(n *Node, c *Call, symbol int32) {
	if !c.Instance || c.Comm == null || c.Init != nil {
		return
	}
	comm := c.Comm.int32()
	if w.runs[w.run].classOf(n, c) == schema.ClassCollective {
		w.s.meet(instance{w.commIDs[w.run][comm], w.instances[comm]}, symbol)
	}
	w.instances[comm]++
}

// classOf is the class of a call of an event.
func (s *Signature) classOf(n *Node, c *Call) schema.Class {
	if c.Class != "" {
		return classNamed(c.Class)
	}
	return schema.Calls[s.Symbols[n.Symbol].call].Class
}

func (x *restated) values(s *signer) error {
	if x.link(s); !x.refers() {
		return x.joiner.values(s)
	}
	for i, run := range x.runs {
		for r := range run.Ranks {
			w := restatedRank{restated: x, s: s, run: i, sig: run, rank: &s.ranks[x.base[i]+r]}
			w.loop(run.nodes[0], run.Values[0].Loops[run.Roots[r]])
		}
	}
	return nil
}

// refers says whether every event whose calls others refer to is one of the joint template, which is no other event of the run: else what they refer to has to be
// counted anew, from rows.
func (x *restated) refers() bool {
	for i, run := range x.runs {
		run.refer()
		of := map[int32]int32{} // the event that one of the joint template is
		for _, n := range run.nodes {
			for _, to := range x.nodes[i][n.ID] {
				if to == none {
					continue
				}
				before, taken := of[to]
				if taken && before != n.ID && (run.referred[n.ID] || run.referred[before]) || run.referred[n.ID] && to != x.node(i, n.ID) {
					return false
				}
				of[to] = n.ID
			}
		}
	}
	return true
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
			at, level := w.rank.at, w.rank.level
			if left := x.Times - k - 1; k > 1 && k&(k-1) == 0 && left > 2 { // an item has to be there twice first
				before = w.rank.copied()
			}
			w.loop(n, x.Items)
			if before != nil && at == w.rank.at && level == w.rank.level && w.rank.repeats(before, x.Times-k-1) {
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
		to := w.s.sig.nodes[w.nodes[w.run][c.ID][value]]
		call := &w.calls[w.run][c.ID][value]
		if *call == none {
			*call = w.s.intern(to, w.call(w.run, to, w.sig, c, value, w.s))
		}
		w.s.goTo(w.rank, to, w.levels[w.run][c.ID][value])
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

// link finds which node of the joint template, as it is now, a call of an event of a run is at.
func (x *restated) link(s *signer) {
	x.calls, x.nodes = nil, nil
	for i, run := range x.runs {
		nodes := run.numbers()
		for id := range nodes {
			for value, symbol := range x.symbols[i][id] {
				if symbol != none {
					nodes[id][value] = s.leaf[s.same[symbol]].ID
				}
			}
		}
		x.calls, x.nodes = append(x.calls, run.numbers()), append(x.nodes, nodes)
	}
}

// node is the one node of the joint template that an event of a run is whose calls others refer to.
func (x *restated) node(i int, id int32) int32 {
	of := x.nodes[i][id]
	return of[slices.IndexFunc(of, func(n int32) bool { return n != none })]
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
	refer := func(q Completion) Completion { return Completion{x.node(i, q[0]), q[1], q[2]} }
	completes := c.Completes
	c.Completes = nil
	for _, q := range completes {
		c.Completes = append(c.Completes, refer(q))
	}
	for _, made := range [2]**Completion{&c.Init, &c.About} {
		if *made != nil {
			to := refer(**made)
			*made = &to
		}
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
	return j.each(func(rows []schema.Event, _ []int32) error {
		b.Resize(0)
		for k := range rows {
			b.Append(&rows[k])
		}
		return add(b)
	})
}

// each makes the rows of one rank after the other, with their levels of a recursion, which are valid until the next.
func (j *joiner) each(visit func(rows []schema.Event, levels []int32) error) error {
	var rows []schema.Event
	var levels []int32
	for i, s := range j.runs {
		for r := range s.Ranks {
			x := s.expansion(r)
			x.rows = rows
			var err error
			if rows, err = x.next(math.MaxInt64); err != nil {
				return fmt.Errorf("signature of %q: %w", s.Run, err)
			}
			levels = levels[:0]
			for k := range rows {
				levels = append(levels, j.levelOf[i][rows[k].Callsite])
				j.row(i, &rows[k])
			}
			if err := visit(rows, levels); err != nil {
				return err
			}
		}
	}
	return nil
}

// values takes in the calls of training runs as rows.
func (j *joiner) values(s *signer) error {
	return j.each(func(rows []schema.Event, levels []int32) error {
		for k := range rows {
			e := &rows[k]
			s.takeRow(s.leaf[s.symbolOf(e.Call, e.Callsite, e.Comm)], e, levels[k])
		}
		return nil
	})
}
