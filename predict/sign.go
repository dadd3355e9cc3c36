package predict

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Sign makes the signature of a run. It reads its events three times or more. It is an error when the run does not have the rows of all calls.
func Sign(run *Run) (*Signature, error) {
	m := run.Manifest
	switch {
	case m.Record != "all":
		return nil, fmt.Errorf("run %q does not have the rows of all calls (record %s); capture it again with --record all", run.Name, m.Record)
	case len(m.Filters) > 0:
		return nil, fmt.Errorf("run %q does not have the rows of all calls (%s); capture it again without filters", run.Name, strings.Join(m.Filters, ", "))
	case m.Counts.Dropped > 0:
		return nil, fmt.Errorf("run %q does not have the rows of all calls (%d could not be recorded)", run.Name, m.Counts.Dropped)
	}
	s, err := newSigner(run)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(s.exchanges(), s.findPhases()); err != nil {
		return nil, err
	}
	s.sig.FindCommunications()
	return s.sig, nil
}

// newSigner makes the template and finds what ranks did, from the rows of a run.
func newSigner(run *Run) (*signer, error) {
	s := emptySigner(run)
	return s, s.signFrom(rowsOf{run})
}

// source gives a signer the calls of all ranks, each rank's in their order, as often as it is asked.
type source interface {
	// flows calls s.follow and s.meet for each call.
	flows(s *signer) error
	// values calls s.take for each call.
	values(s *signer) error
}

// emptySigner has the tables of the run and nothing of its calls.
func emptySigner(run *Run) *signer {
	m := run.Manifest
	s := &signer{run: run, sig: &Signature{Version: Version, Run: run.Name, Digest: m.Digest, Ranks: m.Ranks, ComputeClock: m.ComputeClock,
		TimeOrigin: m.TimeOrigin, Oversubscribed: oversubscribed(m), Stack: m.Stack}, ids: map[symbolKey]int32{},
		met: map[instance]*meeting{}, pairs: map[[2]int32]bool{}, size: map[int32]int32{}}
	s.tables()
	return s
}

// oversubscribed says whether the launcher was told that ranks may share CPUs; nil: the manifest does not say how many CPUs there were.
func oversubscribed(m *schema.Manifest) *bool {
	for _, word := range m.Origin.Launcher {
		if word = strings.ToLower(word); strings.Contains(word, "oversubscribe") && !strings.Contains(word, "nooversubscribe") {
			yes := true
			return &yes
		}
	}
	return nil
}

// branches says whether a loop of levels of a recursion is gone through from, or back to, other levels than the first.
func (s *Signature) branches() bool {
	for i := range s.Values {
		for _, l := range s.Values[i].levels {
			if first := s.Values[i].levels[0]; min(l[0], l[1]) != min(first[0], first[1]) {
				return true
			}
		}
	}
	return false
}

// errBranches is that a function whose levels are taken for iterations of a loop calls itself more than once.
var errBranches = errors.New("a recursion branches")

// signFrom makes the template and finds what ranks did; errBranches where levels of a recursion are no iterations of a loop.
func (s *signer) signFrom(calls source) error {
	if err := s.readFlows(calls); err != nil {
		return err
	}
	s.join()
	var branches bool
	if s.sig.Template, branches = template(s.flows, s.first, s.deep); branches {
		return errBranches
	}
	s.flows = nil
	for splits := true; ; {
		s.sig.link()
		if err := s.readValues(calls.values); err != nil {
			return err
		}
		if splits = splits && s.sig.split(); !splits && !s.sig.merge() {
			if s.sig.branches() {
				return errBranches
			}
			return nil
		}
	}
}

// signer makes a signature.
type signer struct {
	run   *Run
	sig   *Signature
	ids   map[symbolKey]int32 // of symbols
	flows []flow              // by rank
	first []int64             // by symbol: the least number of rows before it on any rank
	same  []int32             // by symbol as it was before join: what it is since
	last  []int32             // by rank, while flows are read: the symbol that came last
	level []int32             // and its level of a recursion
	deep  []bool              // by symbol: some rank has it at a level that is not the first
	rows  []int64             // by rank: calls so far
	leaf  []*Node             // by symbol
	ranks []signedRank
	found []interned // by node
	times []*timesOf // by node
	cuts  [][]int64  // by rank: calls before which an iteration ends; nil: the template says it all
	key   []byte     // of what is looked up, to be used again
	// Of collective operations: those that not all ranks have come to, symbols that have met, and the sizes of communicators.
	met   map[instance]*meeting
	pairs map[[2]int32]bool
	size  map[int32]int32
	parts partsPass
	// Of the logical clock: messages without a partner.
	unmatched []string
}

type symbolKey struct {
	call       int16
	site, comm int32
}

// tables copies what is known of communicators, datatypes and call paths.
func (s *signer) tables() {
	for i := range s.run.Comms {
		c := &s.run.Comms[i]
		n := len(s.sig.Comms)
		if n == 0 || s.sig.Comms[n-1].ID != c.Comm {
			s.sig.Comms = append(s.sig.Comms, Comm{ID: c.Comm, Parent: pointer(c.Parent, schema.NullInt32), Kind: schema.CommKindNames[c.Kind],
				Name: text(c.Name), Dims: text(c.CartDims), Periods: text(c.CartPeriods)})
			n++
		}
		s.size[c.Comm]++
		to, world := &s.sig.Comms[n-1].Members, c.WorldRank
		if c.Remote != 0 {
			to = &s.sig.Comms[n-1].Remote
		}
		if world == schema.NullInt32 {
			world = -1
		}
		*to = append(*to, world)
	}
	for _, d := range s.run.Datatypes {
		s.sig.Datatypes = append(s.sig.Datatypes, Datatype{ID: d.ID, Name: text(d.Name), Bytes: d.Bytes})
	}
	for _, f := range s.run.Callsites {
		s.sig.Frames = append(s.sig.Frames, Frame{ID: f.ID, Parent: pointer(f.Parent, schema.NullInt32), Module: text(f.Module), BuildID: text(f.BuildID),
			Offset: pointer(f.Offset, schema.NullInt64), Function: text(f.Function), File: text(f.File), Line: pointer(f.Line, schema.NullInt32)})
	}
}

func text(t string) string {
	if t == schema.NullText {
		return ""
	}
	return t
}

// pointer is nil for null.
func pointer[T comparable](x, null T) *T {
	if x == null {
		return nil
	}
	return &x
}

// readFlows finds which call follows which.
func (s *signer) readFlows(calls source) error {
	s.flows = make([]flow, s.sig.Ranks)
	s.last, s.level, s.rows = make([]int32, s.sig.Ranks), make([]int32, s.sig.Ranks), make([]int64, s.sig.Ranks)
	for r := range s.flows {
		s.flows[r], s.last[r] = flow{}, outside
	}
	err := calls.flows(s)
	for r := range s.flows {
		s.flows[r][edge{s.last[r], outside, 0}]++
		s.sig.Calls += s.rows[r]
	}
	return err
}

// follow notes a rank's next call at a level of a recursion, 0 where there is none; it is made so many times with the one before it; its first time comes alone.
func (s *signer) follow(rank, symbol, level int32, times int64) {
	s.first[symbol] = min(s.first[symbol], s.rows[rank])
	s.deep[symbol] = s.deep[symbol] || level > 0
	way := int8(0)
	if s.last[rank] != outside {
		way = int8(cmp.Compare(level, s.level[rank]))
	}
	s.flows[rank][edge{s.last[rank], symbol, way}] += times
	s.last[rank], s.level[rank] = symbol, level
	s.rows[rank] += times
}

// rowsOf are the calls that rows of events are.
type rowsOf struct{ run *Run }

func (x rowsOf) flows(s *signer) error {
	return x.run.Events(func(b *schema.Events) error {
		for i, r := range b.Rank {
			if r < 0 || r >= s.sig.Ranks {
				return fmt.Errorf("rank %d, seq %d: the run has %d ranks", r, b.Seq[i], s.sig.Ranks)
			}
			if b.Seq[i] != s.rows[r] {
				return fmt.Errorf("rank %d, seq %d: want seq %d; rows of the rank are missing", r, b.Seq[i], s.rows[r])
			}
			symbol, err := s.symbol(b, i)
			if err != nil {
				return err
			}
			if b.Instance[i] != schema.NullInt64 && b.Comm[i] != schema.NullInt32 && schema.Class(b.Class[i]) == schema.ClassCollective {
				s.meet(instance{b.Comm[i], b.Instance[i]}, symbol)
			}
			s.follow(r, symbol, 0, 1)
		}
		return nil
	})
}

func (x rowsOf) values(s *signer) error {
	var e schema.Event
	return x.run.Events(func(b *schema.Events) error {
		for i := range b.Rank {
			b.Row(i, &e)
			symbol, err := s.symbol(b, i)
			if err != nil {
				return err
			}
			if int(symbol) >= len(s.leaf) || e.Rank < 0 || int(e.Rank) >= len(s.ranks) {
				return fmt.Errorf("rank %d, seq %d: the events changed while they were read", e.Rank, e.Seq)
			}
			s.takeRow(s.leaf[symbol], &e, 0)
		}
		return nil
	})
}

// takeRow takes a row of event n in, at a level of a recursion.
func (s *signer) takeRow(n *Node, e *schema.Event, level int32) {
	p := &s.ranks[e.Rank]
	s.goTo(p, n, level)
	value := s.call(p, n, e)
	s.take(p, n, value)
	s.times[n.ID].add(e)
	if s.run.Parts != nil {
		s.parts.note(n, e)
	}
	s.found[n.ID].time(value, e.ComputeNs)
}

// symbol is the symbol of row i.
func (s *signer) symbol(b *schema.Events, i int) (int32, error) {
	if call := b.Call[i]; call <= 0 || int(call) >= len(schema.CallNames) {
		return 0, fmt.Errorf("rank %d, seq %d: no MPI call has the number %d", b.Rank[i], b.Seq[i], call)
	}
	return s.symbolOf(b.Call[i], b.Callsite[i], b.Comm[i]), nil
}

// symbolOf is the symbol of a call at a call site, or, where that is not known, on a communicator.
func (s *signer) symbolOf(call int16, site, comm int32) int32 {
	k := symbolKey{call, site, schema.NullInt32}
	if site == schema.NullInt32 {
		k.comm = comm
	}
	id, known := s.ids[k]
	if !known {
		id = int32(len(s.sig.Symbols))
		s.ids[k] = id
		s.first, s.deep = append(s.first, math.MaxInt64), append(s.deep, false)
		s.sig.Symbols = append(s.sig.Symbols, Symbol{Call: schema.CallNames[k.call], Frame: pointer(k.site, schema.NullInt32),
			Comm: pointer(k.comm, schema.NullInt32), call: schema.CallID(k.call)})
	}
	return id
}

// signedRank is where a rank is while its rows are read.
type signedRank struct {
	open    []openLoop // loops that it is in, the root first
	at      *Node      // event that came last; nil: none
	level   int32      // of a recursion, of that
	made    []int32    // calls of each event so far, by node
	pending map[int64][]post
	inits   map[int64]post // calls that later ones refer to
	// persistent are those of them that made a request, by its number.
	persistent map[int64]post
	calls      int64   // so far
	cuts       []int64 // calls that are to come before which an iteration ends, whatever the template says
}

// post is a call of an event.
type post struct{ node, number int32 }

// openLoop is an execution of a loop that has not ended.
type openLoop struct {
	node  *Node
	level int32   // of a recursion, of the first call
	to    int32   // of the last
	body  []int32 // the iteration so far
	items folder  // those before
}

// interned finds the number of what was there before.
type interned struct {
	events, bodies, loops map[string]int32
	calls                 []counted // compute times of events' values
}

// begin begins to find what ranks did, of a template that is linked.
func (s *signer) begin() {
	nodes := s.sig.nodes
	s.sig.Roots, s.parts = nil, partsPass{}
	s.leaf = make([]*Node, len(s.sig.Symbols))
	s.found, s.times = make([]interned, len(nodes)), make([]*timesOf, len(nodes))
	s.sig.Values = make([]Values, len(nodes))
	for i, n := range nodes {
		if n.Loop {
			s.found[i].bodies, s.found[i].loops = map[string]int32{}, map[string]int32{}
		} else {
			s.leaf[n.Symbol] = n
			s.found[i].events, s.times[i] = map[string]int32{}, &timesOf{}
		}
	}
}

// readValues finds what each rank did; values calls take for each call.
func (s *signer) readValues(values func(*signer) error) error {
	s.begin()
	s.ranks = make([]signedRank, s.sig.Ranks)
	for r := range s.ranks {
		s.ranks[r] = signedRank{open: []openLoop{{node: s.sig.nodes[0]}}, made: make([]int32, len(s.sig.nodes)), pending: map[int64][]post{}, inits: map[int64]post{}, persistent: map[int64]post{}}
		if s.cuts != nil {
			s.ranks[r].cuts = s.cuts[r]
		}
	}
	if err := values(s); err != nil {
		return err
	}
	for r := range s.ranks {
		p := &s.ranks[r]
		for len(p.open) > 1 {
			s.leave(p)
		}
		s.sig.Roots = append(s.sig.Roots, s.endLoop(&p.open[0]))
	}
	for i, t := range s.times {
		if t != nil {
			s.sig.Values[i].Times = t.spreads()
			s.sig.Values[i].callTimes(s.found[i].calls)
		}
	}
	return nil
}

// take takes a call in, behind those that the rank made before; goTo went there.
func (s *signer) take(p *signedRank, n *Node, value int32) {
	top := &p.open[len(p.open)-1]
	top.body = append(top.body, n.place, value)
	p.at = n
	p.made[n.ID]++
	p.calls++
}

// goTo goes from the rank's last event to n at a level of a recursion: ends loops and iterations, and begins loops.
func (s *signer) goTo(p *signedRank, n *Node, level int32) {
	to := p.open[0].node
	if p.at != nil {
		loop, from, next := common(p.at, n)
		ends := next <= from
		if l := loop.level(); l != nil && level != p.level {
			loop, ends = l, true
		}
		for p.open[len(p.open)-1].node != loop {
			s.leave(p)
		}
		if ends || p.cut() {
			s.endIteration(&p.open[len(p.open)-1])
		}
		to = loop
	}
	p.level = level
	depth := len(p.open)
	for l := n.parent; l != to; l = l.parent {
		p.open = append(p.open, openLoop{node: l, level: level})
	}
	slices.Reverse(p.open[depth:])
}

// cut says whether an iteration ends before the call that comes, and forgets it.
func (p *signedRank) cut() bool {
	for len(p.cuts) > 0 && p.cuts[0] < p.calls {
		p.cuts = p.cuts[1:]
	}
	return len(p.cuts) > 0 && p.cuts[0] == p.calls
}

// leave ends the innermost loop of a rank: it becomes part of the iteration of the one around it.
func (s *signer) leave(p *signedRank) {
	l := &p.open[len(p.open)-1]
	l.to = p.level
	value, place := s.endLoop(l), l.node.place
	p.open = p.open[:len(p.open)-1]
	top := &p.open[len(p.open)-1]
	top.body = append(top.body, place, value)
}

// endIteration ends the iteration of a loop: its number.
func (s *signer) endIteration(l *openLoop) int32 {
	v, found := &s.sig.Values[l.node.ID], s.found[l.node.ID].bodies
	key := s.key[:0]
	for _, x := range l.body {
		key = binary.AppendUvarint(key, uint64(x))
	}
	s.key = key
	id, known := found[string(key)]
	if !known {
		id = int32(len(v.Bodies))
		found[string(key)] = id
		v.Bodies = append(v.Bodies, slices.Clone(l.body))
	}
	l.items.add(id)
	l.body = l.body[:0]
	return id
}

// endLoop ends the execution of a loop: its number.
func (s *signer) endLoop(l *openLoop) int32 {
	if len(l.body) > 0 {
		s.endIteration(l)
	}
	v, found := &s.sig.Values[l.node.ID], s.found[l.node.ID].loops
	s.key = appendItems(s.key[:0], l.items.items)
	if l.node.levels {
		s.key = binary.AppendVarint(binary.AppendVarint(s.key, int64(l.level)), int64(l.to))
	}
	id, known := found[string(s.key)]
	if !known {
		id = int32(len(v.Loops))
		found[string(s.key)] = id
		v.Loops = append(v.Loops, l.items.items)
		if l.node.levels {
			v.levels = append(v.levels, [2]int32{l.level, l.to})
		}
	}
	return id
}

func appendItems(key []byte, items []Item) []byte {
	key = binary.AppendUvarint(key, uint64(len(items)))
	for i := range items {
		key = binary.AppendUvarint(key, uint64(items[i].Times))
		if items[i].Times > 0 {
			key = appendItems(key, items[i].Items)
		} else {
			key = binary.AppendUvarint(key, uint64(items[i].Value))
		}
	}
	return key
}
