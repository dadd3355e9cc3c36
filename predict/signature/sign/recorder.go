package sign

import (
	"encoding/binary"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// Recorder writes what ranks do at the nodes of a template into a signature's Values, each distinct thing once.
type Recorder struct {
	sig      *signature.Signature
	symbols  *Symbols
	events   []*template.Node // by symbol
	interned []interned       // by node
	paths    []*Path          // by rank
	places   places           // of the rows so far
	key      []byte           // scratch
}

// interned finds the index of a value among those of a node.
type interned struct {
	events, bodies, loops map[string]int32
	unfolded              map[string]int32 // loops by iterations that EndUnfolded ended
	times                 *eventTimes      // of an event
	callTimes             []histogram      // compute times, by callKind
}

// Record replaces the values and roots of a linked signature by what read records. cuts has, by rank, the ends of
// iterations that the template does not show, in order; it may be nil.
func Record(sig *signature.Signature, symbols *Symbols, cuts [][]Cut, read func(*Recorder) error) error {
	r := NewRecorder(sig)
	r.symbols = symbols
	for rank := range sig.Ranks {
		p := r.NewPath()
		p.pending, p.initializers, p.persistent = map[int64][]signature.Position{},
			map[int64]signature.Position{}, map[int64]signature.Position{}
		if cuts != nil {
			p.cuts = cuts[rank]
		}
		r.paths = append(r.paths, p)
	}
	if err := read(r); err != nil {
		return err
	}
	for _, p := range r.paths {
		for len(p.open) > 1 {
			r.Leave(p)
		}
		r.Finish(p)
	}
	for i := range r.interned {
		if x := &r.interned[i]; x.times != nil {
			sig.Values[i].Times = x.times.summary()
			x.times.joinAlike(x.callTimes)
			setCallTimes(&sig.Values[i], x.callTimes)
			x.times.setRankTimes(&sig.Values[i], x.callTimes, sig.Ranks)
			x.times.setShared(&sig.Values[i])
		}
	}
	return nil
}

// NewRecorder clears the values and roots of a signature, which is linked, to record others.
func NewRecorder(sig *signature.Signature) *Recorder {
	nodes := sig.Nodes()
	sig.Roots, sig.Values = nil, make([]signature.Values, len(nodes))
	r := &Recorder{sig: sig, events: make([]*template.Node, len(sig.Symbols)), interned: make([]interned, len(nodes))}
	for i, n := range nodes {
		if n.Loop {
			r.interned[i].bodies, r.interned[i].loops = map[string]int32{}, map[string]int32{}
			r.interned[i].unfolded = map[string]int32{}
		} else {
			r.events[n.Symbol] = n
			r.interned[i].events = map[string]int32{}
			r.interned[i].times = &eventTimes{mostEarly: max(maxEarly/max(sig.Ranks, 1), 2)}
		}
	}
	return r
}

// EventOf returns the event of a row; nil if there is none. It must be called for each row of a rank, in order.
func (r *Recorder) EventOf(e *schema.Event) *template.Node { return r.Event(r.places.find(e)) }

// Event returns the event of the calls at a place; nil if there is none.
func (r *Recorder) Event(p Place) *template.Node {
	symbol, known := r.symbols.find(p)
	if !known || int(symbol) >= len(r.events) {
		return nil
	}
	return r.events[symbol]
}

// Node returns a node of the template.
func (r *Recorder) Node(id int32) *template.Node { return r.sig.Nodes()[id] }

// Symbol returns the symbol of an event.
func (r *Recorder) Symbol(n *template.Node) *signature.Symbol { return &r.sig.Symbols[n.Symbol] }

// Path returns the path of a rank.
func (r *Recorder) Path(rank int32) *Path { return r.paths[rank] }

// RecordRow records a row of an event at a level of a recursion.
func (r *Recorder) RecordRow(n *template.Node, e *schema.Event, level int32) {
	p := r.paths[e.Rank]
	isFirst := p.last != n
	r.GoTo(p, n, level)
	value := r.internRow(p, n, e)
	r.Take(p, n, value)
	kind := kindOf(value, isFirst)
	r.interned[n.ID].times.add(e, kind, p.Made[n.ID]-1)
	r.interned[n.ID].addCallTime(kind, e.ComputeNs)
}

// Intern returns the index of a call among the values of an event.
func (r *Recorder) Intern(n *template.Node, c *signature.Call) int32 {
	v, found := &r.sig.Values[n.ID], r.interned[n.ID].events
	r.key = c.AppendKey(r.key[:0])
	id, known := found[string(r.key)]
	if !known {
		id = int32(len(v.Events))
		found[string(r.key)] = id
		kept := *c
		v.Events = append(v.Events, &kept)
	}
	return id
}

// Take appends a call to a path. GoTo, or Enter and Leave, must have opened the loops around its event.
func (r *Recorder) Take(p *Path, n *template.Node, value int32) {
	top := p.innermost()
	top.body = append(top.body, n.Place, value)
	p.last = n
	p.Made[n.ID]++
	p.calls++
}

// GoTo moves a path from its last call to event n at a level of a recursion: it ends and begins loops and iterations.
func (r *Recorder) GoTo(p *Path, n *template.Node, level int32) {
	common := p.open[0].node
	if p.last != nil {
		loop, from, next := template.CommonLoop(p.last, n)
		ends := next <= from
		if l := loop.RecursionLoop(); l != nil && level != p.level {
			loop, ends = l, true
		}
		cut := p.cutHere()
		if cut != nil && cut.Loop != nil && cut.Loop.Depth < loop.Depth {
			loop = cut.Loop
		}
		for p.innermost().node != loop {
			r.Leave(p)
		}
		if ends || cut != nil {
			r.endIteration(p.innermost())
		}
		common = loop
	}
	p.level = level
	depth := len(p.open)
	for l := n.Parent; l != common; l = l.Parent {
		p.open = append(p.open, openLoop{node: l, firstLevel: level})
	}
	slices.Reverse(p.open[depth:])
}

// Leave ends the innermost loop of a path: it becomes part of an iteration of the loop around it.
func (r *Recorder) Leave(p *Path) {
	l := p.innermost()
	l.lastLevel = p.level
	value, place := r.endLoop(l), l.node.Place
	p.open = p.open[:len(p.open)-1]
	top := p.innermost()
	top.body = append(top.body, place, value)
}

// Finish ends the root of a path and appends its value to the signature's roots.
func (r *Recorder) Finish(p *Path) { r.sig.Roots = append(r.sig.Roots, r.endLoop(&p.open[0])) }

// EndIteration ends the iteration of a path's innermost loop and returns its index among the loop's bodies.
func (r *Recorder) EndIteration(p *Path) int32 { return r.endIteration(p.innermost()) }

func (r *Recorder) endIteration(l *openLoop) int32 {
	id := r.internBody(l)
	l.iterations.Add(id)
	return id
}

// EndUnfolded is EndIteration for all iterations of loops that have many and that ranks execute alike. What repeats is
// looked for at the end of the loop, unless an execution before had the same iterations.
func (r *Recorder) EndUnfolded(p *Path) {
	l := p.innermost()
	l.unfolded = append(l.unfolded, r.internBody(l))
}

// internBody ends an iteration and returns its index among the loop's bodies.
func (r *Recorder) internBody(l *openLoop) int32 {
	v, found := &r.sig.Values[l.node.ID], r.interned[l.node.ID].bodies
	key := r.key[:0]
	for _, x := range l.body {
		key = binary.AppendUvarint(key, uint64(x))
	}
	r.key = key
	id, known := found[string(key)]
	if !known {
		id = int32(len(v.Bodies))
		found[string(key)] = id
		v.Bodies = append(v.Bodies, slices.Clone(l.body))
	}
	l.body = l.body[:0]
	return id
}

// endLoop ends an execution of a loop and returns its index among the loop's values.
func (r *Recorder) endLoop(l *openLoop) int32 {
	if len(l.unfolded) > 0 {
		return r.foldLoop(l)
	}
	if len(l.body) > 0 {
		r.endIteration(l)
	}
	return r.internLoop(l)
}

// foldLoop ends an execution of a loop whose iterations are not folded.
func (r *Recorder) foldLoop(l *openLoop) int32 {
	r.key = r.key[:0]
	for _, body := range l.unfolded {
		r.key = binary.AppendUvarint(r.key, uint64(body))
	}
	found := r.interned[l.node.ID].unfolded
	if id, known := found[string(r.key)]; known {
		return id
	}
	key := string(r.key)
	for _, body := range l.unfolded {
		l.iterations.Add(body)
	}
	id := r.internLoop(l)
	found[key] = id
	return id
}

// internLoop returns the index of an execution of a loop among the loop's values.
func (r *Recorder) internLoop(l *openLoop) int32 {
	v, found := &r.sig.Values[l.node.ID], r.interned[l.node.ID].loops
	r.key = fold.AppendKey(r.key[:0], l.iterations.Items)
	if l.node.RecursionLevels {
		r.key = binary.AppendVarint(binary.AppendVarint(r.key, int64(l.firstLevel)), int64(l.lastLevel))
	}
	id, known := found[string(r.key)]
	if !known {
		id = int32(len(v.Loops))
		found[string(r.key)] = id
		v.Loops = append(v.Loops, l.iterations.Items)
		if l.node.RecursionLevels {
			v.RecursionLevels = append(v.RecursionLevels, [2]int32{l.firstLevel, l.lastLevel})
		}
	}
	return id
}
