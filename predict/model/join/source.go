package join

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// source gives the calls of all runs to package sign, with joint numbers. It goes through the runs' templates, not
// their rows, and stops repeating once the result is clear.
type source struct {
	runs  []runTables
	calls [][][]jointCall // by run, node of its own template, and value
	// by run and node: whether calls at or below it are counted among operations of communicators
	counts [][]bool
}

// jointCall is a call of a run in the joint signature.
type jointCall struct {
	symbol int32      // unset: no rank makes the call
	level  int32      // of a recursion
	place  sign.Place // with joint ids
	node   int32      // of the joint template
	value  int32      // unset: not interned yet
}

const unset = -1

func newSource(t *Training, tables *tables) *source {
	x := &source{runs: tables.runs}
	for _, run := range t.Runs {
		nodes := run.Nodes()
		calls, counts := make([][]jointCall, len(nodes)), make([]bool, len(nodes))
		for _, n := range slices.Backward(nodes) { // a loop comes before what is in it
			v := &run.Values[n.ID]
			calls[n.ID] = slices.Repeat([]jointCall{{symbol: unset}}, len(v.Events))
			counts[n.ID] = slices.ContainsFunc(v.Events, func(c *signature.Call) bool { return c.Instance }) ||
				slices.ContainsFunc(n.Children, func(c *template.Node) bool { return counts[c.ID] })
		}
		x.calls, x.counts = append(x.calls, calls), append(x.counts, counts)
	}
	return x
}

// ReadFlows implements sign.Source.
func (x *source) ReadFlows(f *sign.Flows) error {
	for i := range x.runs {
		run := x.runs[i].signature
		for r := range run.Ranks {
			w := flowWalker{source: x, flows: f, run: i, sig: run, rank: x.runs[i].first + r,
				operations: map[int32]int64{}}
			w.loop(run.Nodes()[0], run.Values[0].Loops[run.Roots[r]], 1)
		}
	}
	return nil
}

// flowWalker follows the calls of one rank.
type flowWalker struct {
	source     *source
	flows      *sign.Flows
	run        int
	sig        *signature.Signature // of the run
	rank       int32                // joint
	operations map[int32]int64      // so far, by communicator
}

// loop follows iterations, and counts the edges in them times over. All repetitions but the first give the same
// edges, so they are followed once, unless they have operations that must be counted.
func (w *flowWalker) loop(n *template.Node, items []fold.Item, times int64) {
	for i := range items {
		x := &items[i]
		if x.Times == 0 {
			w.iteration(n, w.sig.Values[n.ID].Bodies[x.Value], times)
			continue
		}
		w.loop(n, x.Items, times)
		if !w.source.counts[w.run][n.ID] {
			w.loop(n, x.Items, times*(x.Times-1))
			continue
		}
		for range x.Times - 1 {
			w.loop(n, x.Items, times)
		}
	}
}

func (w *flowWalker) iteration(n *template.Node, body []int32, times int64) {
	for i := 0; i < len(body); i += 2 {
		c, value := n.Children[body[i]], body[i+1]
		if c.Loop {
			w.loop(c, w.sig.Values[c.ID].Loops[value], times)
			continue
		}
		j := w.jointCall(c, value)
		if w.source.counts[w.run][c.ID] {
			w.meet(c, w.sig.Values[c.ID].Events[value], j.symbol)
		}
		w.flows.Follow(w.rank, j.symbol, j.level, times)
	}
}

// jointCall returns the joint call for a value of an event.
func (w *flowWalker) jointCall(n *template.Node, value int32) *jointCall {
	j := &w.source.calls[w.run][n.ID][value]
	if j.symbol == unset {
		tables := &w.source.runs[w.run]
		c := w.sig.Values[n.ID].Events[value]
		s := &w.sig.Symbols[n.Symbol]
		j.place = sign.Place{Call: int16(s.CallID), Site: w.sig.Callsite(n, c), Comm: c.Comm.Int32()}
		if s.Completes != "" {
			completes, _ := schema.CallByName(s.Completes) // names that are none were refused
			j.place.Comm, j.place.Completes = nulls.Value(s.Comm, schema.NullInt32), int16(completes)
		}
		j.level = tables.level[j.place.Site]
		toJoint(&j.place.Site, tables.site)
		toJoint(&j.place.Comm, tables.comm)
		j.symbol = w.flows.Symbol(j.place)
	}
	return j
}

// meet counts an operation of a communicator, and reports collective ones.
func (w *flowWalker) meet(n *template.Node, c *signature.Call, symbol int32) {
	if !c.Instance || c.Comm == signature.Null || c.Init != nil {
		return
	}
	comm := c.Comm.Int32()
	if w.sig.Class(n, c) == schema.ClassCollective {
		joint := w.source.runs[w.run].comm[comm]
		w.flows.Meet(signature.Operation{Comm: joint, Number: w.operations[comm]}, symbol)
	}
	w.operations[comm]++
}

// ReadValues implements sign.Source.
func (x *source) ReadValues(r *sign.Recorder) error {
	if x.findNodes(r); !x.keepsReferences() {
		return x.recordRows(r)
	}
	for i := range x.runs {
		run := x.runs[i].signature
		for rank := range run.Ranks {
			w := valueWalker{source: x, recorder: r, run: i, sig: run, path: r.Path(x.runs[i].first + rank)}
			w.loop(run.Nodes()[0], run.Values[0].Loops[run.Roots[rank]])
		}
	}
	return nil
}

// findNodes finds the nodes of all calls in the joint template as it is now.
func (x *source) findNodes(r *sign.Recorder) {
	for _, nodes := range x.calls {
		for _, calls := range nodes {
			for k := range calls {
				j := &calls[k]
				if j.symbol != unset {
					j.node, j.value = r.Event(j.place).ID, unset
				}
			}
		}
	}
}

// keepsReferences reports whether joining maps the events that calls refer to one to one: each to one event of the
// joint template, to which no other event of the run is mapped. If not, references must be counted anew from rows.
func (x *source) keepsReferences() bool {
	for i := range x.runs {
		run := x.runs[i].signature
		referenced := run.Referenced()
		own := map[int32]int32{} // event of the run, by joint event
		for _, n := range run.Nodes() {
			for k := range x.calls[i][n.ID] {
				j := &x.calls[i][n.ID][k]
				if j.symbol == unset {
					continue
				}
				before, taken := own[j.node]
				if taken && before != n.ID && (referenced[n.ID] || referenced[before]) || referenced[n.ID] &&
					j.node != x.jointNode(i, n.ID) {
					return false
				}
				own[j.node] = n.ID
			}
		}
	}
	return true
}

// jointNode returns the joint event of an event that calls refer to.
func (x *source) jointNode(run int, event int32) int32 {
	calls := x.calls[run][event]
	return calls[slices.IndexFunc(calls, func(j jointCall) bool { return j.symbol != unset })].node
}

// valueWalker records the calls of one rank.
type valueWalker struct {
	source   *source
	recorder *sign.Recorder
	run      int
	sig      *signature.Signature // of the run
	path     *sign.Path
}

// loop records iterations. Of a repetition it records only the first few, until it is clear that each further one
// only increases the count of one item.
func (w *valueWalker) loop(n *template.Node, items []fold.Item) {
	for i := range items {
		x := &items[i]
		if x.Times == 0 {
			w.iteration(n, w.sig.Values[n.ID].Bodies[x.Value])
			continue
		}
		for k := int64(0); k < x.Times; k++ {
			var before *sign.Snapshot
			if left := x.Times - k - 1; k > 1 && k&(k-1) == 0 && left > 2 { // two repetitions must be there first
				before = w.path.Snapshot()
			}
			w.loop(n, x.Items)
			if before != nil && w.path.GrowRepetition(before, x.Times-k-1) {
				break
			}
		}
	}
}

func (w *valueWalker) iteration(n *template.Node, body []int32) {
	for i := 0; i < len(body); i += 2 {
		c, value := n.Children[body[i]], body[i+1]
		if c.Loop {
			w.loop(c, w.sig.Values[c.ID].Loops[value])
			continue
		}
		j := &w.source.calls[w.run][c.ID][value]
		event := w.recorder.Node(j.node)
		if j.value == unset {
			j.value = w.recorder.Intern(event, w.joinCall(event, c, value))
		}
		w.recorder.GoTo(w.path, event, j.level)
		w.recorder.Take(w.path, event, j.value)
	}
}

// joinCall returns a call with joint numbers, for an event of the joint template.
func (w *valueWalker) joinCall(event, n *template.Node, value int32) *signature.Call {
	tables := &w.source.runs[w.run]
	c := *w.sig.Values[n.ID].Events[value]
	c.ComputeNs, c.FirstNs = nil, nil // calls of several runs share one value
	comm := c.Comm.Int32()
	toJoint(&comm, tables.comm)
	c.Comm = signature.IntOf(comm)
	c.Send, c.Recv = tables.joinSide(c.Send), tables.joinSide(c.Recv)
	if c.Root != nil {
		root := *c.Root + tables.first
		c.Root = &root
	}
	site := c.Frame
	if site == nil {
		site = w.sig.Symbols[n.Symbol].Frame
	}
	c.Frame = nil
	if site != nil {
		joint := tables.site[*site]
		if f := w.recorder.Symbol(event).Frame; f == nil || *f != joint {
			c.Frame = &joint
		}
	}
	join := func(b signature.Backref) signature.Backref {
		return signature.Backref{w.source.jointNode(w.run, b[0]), b[1], b[2]}
	}
	completes := c.Completes
	c.Completes = nil
	for _, b := range completes {
		c.Completes = append(c.Completes, join(b))
	}
	for _, maker := range [2]**signature.Backref{&c.Init, &c.About} {
		if *maker != nil {
			joint := join(**maker)
			*maker = &joint
		}
	}
	return &c
}

// rows passes the rows of the joint run to add, rank by rank.
func (x *source) rows(add func(*schema.Events) error) error {
	b := &schema.Events{}
	return x.eachRank(func(rows []schema.Event, _ []int32) error {
		b.Resize(0)
		for k := range rows {
			b.Append(&rows[k])
		}
		return add(b)
	})
}

// recordRows records the rows of the joint run.
func (x *source) recordRows(r *sign.Recorder) error {
	return x.eachRank(func(rows []schema.Event, levels []int32) error {
		for k := range rows {
			e := &rows[k]
			r.RecordRow(r.EventOf(e), e, levels[k])
		}
		return nil
	})
}

// eachRank makes the joint rows of one rank after the other, with their levels of a recursion. They are valid until
// visit returns.
func (x *source) eachRank(visit func(rows []schema.Event, levels []int32) error) error {
	var rows []schema.Event
	var levels []int32
	for i := range x.runs {
		tables := &x.runs[i]
		for r := range tables.signature.Ranks {
			expander := tables.signature.Expander(r)
			expander.Reuse(rows)
			var err error
			if rows, err = expander.Next(math.MaxInt64); err != nil {
				return fmt.Errorf("signature of %q: %w", tables.signature.Run, err)
			}
			levels = levels[:0]
			for k := range rows {
				levels = append(levels, tables.level[rows[k].Callsite])
				tables.joinRow(&rows[k])
			}
			if err := visit(rows, levels); err != nil {
				return err
			}
		}
	}
	return nil
}
