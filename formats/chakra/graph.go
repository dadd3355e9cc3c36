package chakra

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// op is an operation of a rank with others.
type op struct {
	call  schema.CallID // nonblocking
	group string        // "" for all ranks
	bytes int64         // -1 if unknown
	peer  int32         // of a message
	tag   int32
	root  int32 // of a collective, a rank of its group; -1 if unknown
	// seq is the row that begins it, done the one that completes it; -1 for none, and dropped is one without a partner.
	seq, done int64
	dropped   bool
	instance  int64 // on its communicator
}

// step is something that a rank does next: it begins an operation, or waits for one.
type step struct {
	op        int32
	wait      bool
	computeNs int64 // before it
}

// rank is the contents of the trace of a rank.
type rank struct {
	file   string
	ops    []op
	steps  []step
	restNs int64            // computed after the last step
	groups map[string]group // as its metadata lists them, by name
	tally  tally
}

// tally counts what was read, and what has no row.
type tally struct {
	nodes, comm, launches, unknown, untimed, outside, rootless, unsized, callers, uneven int64
}

func (t *tally) add(o *tally) {
	t.nodes += o.nodes
	t.comm += o.comm
	t.launches += o.launches
	t.unknown += o.unknown
	t.untimed += o.untimed
	t.outside += o.outside
	t.rootless += o.rootless
	t.unsized += o.unsized
	t.callers += o.callers
}

// calls are the operations by CollectiveCommType.
var calls = [...]schema.CallID{schema.CallIallreduce, schema.CallIreduce, schema.CallIallgather, schema.CallIgather,
	schema.CallIscatter, schema.CallIbcast, schema.CallIalltoall, schema.CallIreduceScatterBlock,
	schema.CallIreduceScatterBlock, schema.CallIbarrier}

// readRank reads the trace of a rank.
func readRank(in io.Reader, file string) (*rank, error) {
	r := &rank{file: file, groups: map[string]group{}}
	g := &graph{rank: r, byID: map[uint64]int32{}}
	m := &messages{in: bufio.NewReaderSize(in, 1<<18)}
	if head, err := m.next(); err != nil || !isMetadata(head) {
		return nil, fmt.Errorf("%s: the first message is not the metadata of a Chakra trace", file)
	}
	for {
		b, err := m.next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = g.add(b)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: message %d: %w", file, m.n, err)
		}
	}
	if err := g.lay(); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return r, nil
}

// graph is the nodes of a rank.
type graph struct {
	rank   *rank
	nodes  []vertex
	byID   map[uint64]int32
	device bool // nodes of a device compute
}

// vertex is a node in the order of its graph.
type vertex struct {
	id, startUs uint64
	ns          int64
	device      bool
	op          int32 // -1 for none
	ctrl, data  []uint64
	deps        []int32 // the nodes that it depends on, as far as they are in the trace
	after       []int32 // operations that it follows
	next        []int32 // nodes that depend on it
	missing     int     // nodes that it depends on and that are not laid
	unwaited    int     // operations that it depends on and that no laid node waits for
}

// mostNs limits the time of a node: a day.
const mostNs = 86400e9

// add adds the next node.
func (g *graph) add(b []byte) error {
	n, err := parseNode(b)
	if err != nil {
		return err
	}
	if _, ok := g.byID[n.id]; ok {
		return fmt.Errorf("node %d is there twice", n.id)
	}
	g.rank.tally.nodes++
	v := vertex{id: n.id, startUs: n.startUs, device: n.attrs.device, op: -1, ctrl: n.ctrl, data: n.data}
	switch n.kind {
	case compNode:
		v.ns = int64(min(float64(n.micros)*1e3, mostNs))
		g.device = g.device || n.attrs.device && v.ns > 0
		if !n.hasTime {
			g.rank.tally.untimed++
		}
	case metadataNode:
		g.rank.addGroups(n.inputs)
	case sendNode, recvNode, collNode:
		if v.op, err = g.rank.addOp(n); err != nil {
			return err
		}
	}
	g.byID[n.id] = int32(len(g.nodes))
	g.nodes = append(g.nodes, v)
	return nil
}

// group is a process group, as PyTorch lists it.
type group struct {
	Name        string  `json:"pg_name"`
	Description string  `json:"pg_desc,omitempty"`
	Ranks       []int32 `json:"ranks"`
}

// addGroups keeps the process groups that PyTorch lists in a node of metadata.
func (r *rank) addGroups(inputs string) {
	begin, end := strings.Index(inputs, "["), strings.LastIndex(inputs, "]")
	if i := strings.Index(inputs, "[{"); i >= 0 {
		begin, end = i, strings.LastIndex(inputs, "}]")+1
	}
	if begin < 0 || end < begin {
		return
	}
	var list []group
	if json.Unmarshal([]byte(inputs[begin:end+1]), &list) != nil {
		return // not a list of groups
	}
	for _, g := range list {
		r.groups[g.Name] = g
	}
}

// addOp adds the operation of a node, and returns its number; -1 for a node that only launches another.
func (r *rank) addOp(n *node) (int32, error) {
	o := op{group: n.attrs.group, bytes: n.attrs.commSize, root: -1, seq: -1, done: -1}
	peer := n.attrs.dst
	switch n.kind {
	case sendNode:
		o.call = schema.CallIbsend // what depends on it does not wait for its receiver
	case recvNode:
		o.call, peer = schema.CallIrecv, n.attrs.src
	default:
		if n.attrs.commType < 0 { // c10d::allreduce_, whose kernel has a node of its own
			r.tally.launches++
			return -1, nil
		}
		if n.attrs.commType >= int64(len(calls)) {
			return 0, fmt.Errorf("node %d is collective %d; there are those from 0 to %d", n.id, n.attrs.commType, len(calls)-1)
		}
		o.call, peer = calls[n.attrs.commType], 0
		if n.attrs.root >= 0 && n.attrs.root <= math.MaxInt32 {
			o.root = int32(n.attrs.root)
		}
	}
	if peer < 0 || peer > math.MaxInt32 || n.attrs.tag < -math.MaxInt32 || n.attrs.tag > math.MaxInt32 {
		return 0, fmt.Errorf("node %d, a message, has the partner %d and the tag %d; want a rank and a number", n.id, peer,
			n.attrs.tag)
	}
	o.peer, o.tag = int32(peer), int32(n.attrs.tag)
	if o.bytes < 0 || o.bytes > mostBytes {
		o.bytes = -1
		r.tally.unsized++
	}
	r.tally.comm++
	r.ops = append(r.ops, o)
	return int32(len(r.ops) - 1), nil
}

// mostBytes is more than any operation moves.
const mostBytes = 1 << 50

// ready are the nodes whose dependencies are laid, first those that started first, then by number.
type ready struct {
	g   *graph
	all []int32
}

func (r *ready) Len() int { return len(r.all) }
func (r *ready) Less(i, j int) bool {
	a, b := &r.g.nodes[r.all[i]], &r.g.nodes[r.all[j]]
	return cmp.Or(cmp.Compare(a.startUs, b.startUs), cmp.Compare(a.id, b.id)) < 0
}
func (r *ready) Swap(i, j int) { r.all[i], r.all[j] = r.all[j], r.all[i] }
func (r *ready) Push(x any)    { r.all = append(r.all, x.(int32)) }
func (r *ready) Pop() any {
	last := r.all[len(r.all)-1]
	r.all = r.all[:len(r.all)-1]
	return last
}

// lay puts the nodes into an order that their dependencies allow, and makes the steps of the rank. Traces of PyTorch
// have the caller of a node as its dependency of control, which may in turn depend on what it called: where the
// dependencies go in a circle, those of control do not count.
func (g *graph) lay() error {
	control := true
	order, ok := g.order(control, false)
	if !ok {
		g.rank.tally.callers++
		control = false
		if order, ok = g.order(control, false); !ok {
			return errors.New("the dependencies of the nodes go in a circle; no order is possible")
		}
	}
	g.chain(order)
	order, _ = g.order(control, true)
	for _, i := range order {
		g.step(&g.nodes[i])
	}
	for i := range g.rank.ops {
		g.rank.wait(int32(i))
	}
	return nil
}

// link finds the nodes that each node depends on, with or without the dependencies of control.
func (g *graph) link(control bool) {
	g.rank.tally.unknown = 0
	for i := range g.nodes {
		v := &g.nodes[i]
		v.deps, v.next, v.missing = v.deps[:0], v.next[:0], 0
	}
	for i := range g.nodes {
		v := &g.nodes[i]
		ids := slices.Clone(v.data)
		if control {
			ids = append(ids, v.ctrl...)
		}
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			d, ok := g.byID[id]
			if !ok {
				g.rank.tally.unknown++
				continue
			}
			v.deps = append(v.deps, d)
			g.nodes[d].next = append(g.nodes[d].next, int32(i))
			v.missing++
		}
		for _, d := range v.after {
			g.nodes[d].next = append(g.nodes[d].next, int32(i))
			v.missing++
		}
	}
}

// line identifies operations that stay in order on a rank: the collectives of a group, or messages to or from one peer
// with one tag.
type line struct {
	call      schema.CallID // 0 for collectives
	group     string        // of collectives
	peer, tag int32         // of messages
}

// chain makes each operation follow the previous one of its line in an order: all ranks of a group must have the same
// order of its collectives, and messages meet the receives of their channel in order.
func (g *graph) chain(order []int32) {
	last := map[line]int32{}
	for _, i := range order {
		v := &g.nodes[i]
		if v.op < 0 {
			continue
		}
		o := &g.rank.ops[v.op]
		key := line{group: o.group}
		if o.isMessage() {
			key = line{call: o.call, peer: o.peer, tag: o.tag}
		}
		if before, ok := last[key]; ok {
			v.after = append(v.after, before)
		}
		last[key] = i
	}
}

// order returns the nodes in an order that the dependencies allow, and false if there is none: by their starts, or
// those first that wait for no operation. A rank that waited before it sent something that does not depend on the wait
// could hang in a simulation, as other ranks may wait for that first.
func (g *graph) order(control, waitsLast bool) (order []int32, ok bool) {
	g.link(control)
	l := layer{g: g, waitsLast: waitsLast, free: ready{g: g}, waits: ready{g: g}, waited: make([]bool, len(g.rank.ops)),
		waiters: map[int32][]int32{}}
	for i := range g.nodes {
		if g.nodes[i].missing == 0 {
			l.push(int32(i))
		}
	}
	laid := make([]bool, len(g.nodes))
	for l.free.Len()+l.waits.Len() > 0 {
		queue := &l.free
		if queue.Len() == 0 {
			queue = &l.waits
		}
		i := heap.Pop(queue).(int32)
		if laid[i] {
			continue // it was in both queues
		}
		laid[i] = true
		order = append(order, i)
		for _, d := range g.nodes[i].deps {
			l.wait(g.nodes[d].op)
		}
		for _, n := range g.nodes[i].next {
			if g.nodes[n].missing--; g.nodes[n].missing == 0 {
				l.push(n)
			}
		}
	}
	return order, len(order) == len(g.nodes)
}

// layer has the nodes whose dependencies are laid: those that wait for no operation, and the others.
type layer struct {
	g           *graph
	waitsLast   bool
	free, waits ready
	waited      []bool            // by operation: a laid node waits for it
	waiters     map[int32][]int32 // nodes of waits, by operation
}

// push adds a node.
func (l *layer) push(i int32) {
	v := &l.g.nodes[i]
	v.unwaited = 0
	for _, d := range v.deps {
		if op := l.g.nodes[d].op; op >= 0 && l.waitsLast && !l.waited[op] {
			v.unwaited++
			l.waiters[op] = append(l.waiters[op], i)
		}
	}
	if v.unwaited == 0 {
		heap.Push(&l.free, i)
	} else {
		heap.Push(&l.waits, i)
	}
}

// wait notes that a node waits for an operation, so that other nodes need not.
func (l *layer) wait(op int32) {
	if op < 0 || l.waited[op] {
		return
	}
	l.waited[op] = true
	for _, i := range l.waiters[op] {
		if l.g.nodes[i].unwaited--; l.g.nodes[i].unwaited == 0 {
			heap.Push(&l.free, i)
		}
	}
	delete(l.waiters, op)
}

// step adds the steps of a node: waits for the operations that it depends on, and its own.
func (g *graph) step(v *vertex) {
	r := g.rank
	for _, d := range v.deps {
		if op := g.nodes[d].op; op >= 0 {
			r.wait(op)
		}
	}
	if v.op >= 0 {
		r.steps = append(r.steps, step{op: v.op, computeNs: r.restNs})
		r.restNs = 0
		r.ops[v.op].seq = int64(len(r.steps) - 1)
	} else if v.device || !g.device {
		r.restNs += v.ns
	}
}

// wait adds the wait for an operation, unless there is one.
func (r *rank) wait(i int32) {
	if o := &r.ops[i]; o.done < 0 && o.seq >= 0 {
		r.steps = append(r.steps, step{op: i, wait: true, computeNs: r.restNs})
		r.restNs = 0
		o.done = int64(len(r.steps) - 1)
	}
}
