package kineto

import (
	"cmp"
	"slices"
	"sort"

	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// operations makes the operations of a process of its calls and kernels.
func (t *trace) operations() {
	calls := t.params
	if len(calls) == 0 {
		calls = t.marked
	} else {
		calls = append(calls, t.backend()...)
	}
	t.complete(calls)
	t.Device = len(t.kernels) > 0 || t.kernelled
	runs, lost := t.run(calls)
	without := 0
	for i := range calls {
		c := &calls[i]
		op := c.operation()
		if c.joined {
			t.joined++
		}
		switch {
		case runs[i] != nil:
			op.StartNs, op.EndNs, op.Stream = runs[i].start, runs[i].end, runs[i].stream
		case t.Device:
			without++
		}
		t.Ops = append(t.Ops, op)
	}
	if lost > 0 {
		t.Warnings = append(t.Warnings, "Kernels of collectives without the call that asked for them have no row.")
	}
	if without > 0 {
		t.Warnings = append(t.Warnings, "Operations without a kernel in the trace have the time of their call.")
	}
	if !t.kernelled {
		t.Busy = t.hostBusy
	}
	t.launches, t.kernels, t.params, t.marked, t.asked, t.hostBusy = nil, nil, nil, nil, nil, training.Busy{}
}

// backend returns the annotations of backends that write no record_param_comms: those outside any of these.
func (t *trace) backend() (calls []hostCall) {
	in := newCover(t.params)
	for _, c := range t.marked {
		if in.find(c.thread, c.start) < 0 {
			calls = append(calls, c)
		}
	}
	return calls
}

// complete adds to calls what the calls of c10d around them say: the root, sizes, and when the program asked.
func (t *trace) complete(calls []hostCall) {
	around := newCover(t.asked)
	slices.SortStableFunc(t.asked, func(a, b hostCall) int { return cmp.Compare(a.function, b.function) })
	for i := range calls {
		c := &calls[i]
		x := t.before(c)
		if k := around.find(c.thread, c.start); k >= 0 {
			x = &around.calls[k]
		}
		if x != nil {
			c.completeBy(x)
		}
	}
	t.completeInOrder(calls, around)
}

// completeBy adds to a call what the call of c10d that asked for it says.
func (c *hostCall) completeBy(x *hostCall) {
	if x.call != c.call && !(x.out >= 0 && c.out < 0) {
		return
	}
	if c.add(x) && x.joined {
		c.joined = true
	}
	c.askedAt(x)
}

// add adds what another record of the same call has and this one lacks, but for the group. It reports whether that was
// anything.
func (c *hostCall) add(x *hostCall) (added bool) {
	if c.root < 0 && x.root >= 0 {
		c.root, added = x.root, true
	}
	if c.peer < 0 && x.peer >= 0 {
		c.peer, c.inGroup, added = x.peer, x.inGroup, true
	}
	if c.isTypedBy(x) {
		c.in, c.out, c.kind, added = x.in, x.out, x.kind, true
	}
	if len(c.inSplit) == 0 && len(c.outSplit) == 0 && len(x.inSplit)+len(x.outSplit) > 0 {
		c.inSplit, c.outSplit, added = x.inSplit, x.outSplit, true
	}
	return added
}

// isTypedBy reports whether another record of the same call knows more of the sizes and their type, and nothing less.
// Sizes and type are taken from one record: the size of one with the type of another may be of no call.
func (c *hostCall) isTypedBy(x *hostCall) bool {
	more := c.in < 0 && x.in >= 0 || c.out < 0 && x.out >= 0 || c.kind == "" && x.kind != ""
	less := c.in >= 0 && x.in < 0 || c.out >= 0 && x.out < 0 || c.kind != "" && x.kind == ""
	return more && !less
}

// completeInOrder completes calls that worker threads executed in traces that do not number functions. Workers take
// calls from queues: the n-th that one began of an operation and a size is the n-th that the program asked for. Of two
// queues the times of equal calls may so be exchanged.
func (t *trace) completeInOrder(calls []hostCall, around *cover) {
	isNumbered := func(c hostCall) bool { return c.function > 0 }
	if slices.ContainsFunc(t.asked, isNumbered) || slices.ContainsFunc(calls, isNumbered) {
		return
	}
	type alike struct {
		call schema.CallID
		in   int64
	}
	waiting := map[alike][]*hostCall{}
	slices.SortStableFunc(t.asked, func(a, b hostCall) int { return cmp.Compare(a.start, b.start) })
	for i := range t.asked {
		x := &t.asked[i]
		waiting[alike{x.call, x.in}] = append(waiting[alike{x.call, x.in}], x)
	}
	var executed []*hostCall
	for i := range calls {
		if c := &calls[i]; around.find(c.thread, c.start) < 0 {
			executed = append(executed, c)
		}
	}
	slices.SortStableFunc(executed, func(a, b *hostCall) int { return cmp.Compare(a.start, b.start) })
	for _, c := range executed {
		k := alike{c.call, c.in}
		if len(waiting[k]) > 0 && waiting[k][0].start <= c.start {
			c.completeBy(waiting[k][0])
			waiting[k] = waiting[k][1:]
		}
	}
}

// askedAt gives a call the time at which the program asked for it: one that another thread executed, or an annotation
// that lasts until the program waited.
func (c *hostCall) askedAt(x *hostCall) {
	if x.thread != c.thread || c.start >= x.start && c.start <= x.end && c.end > x.end {
		c.asked, c.returned = x.start, x.end
	}
}

// before returns the call of c10d that asked for what a worker thread executed: functions are numbered in the order of
// their calls, and that of the worker is made in the call.
func (t *trace) before(c *hostCall) *hostCall {
	if c.function < 0 {
		return nil
	}
	i := sort.Search(len(t.asked), func(i int) bool { return t.asked[i].function >= c.function })
	for ; i > 0; i-- {
		if x := &t.asked[i-1]; x.call == c.call && x.start <= c.start && !x.taken {
			x.taken = true
			return x
		}
	}
	return nil
}

// run returns the time on the device of each call, nil for those without a kernel, and the number of kernels without a
// call. A kernel belongs to the call with its external id, else to the one in which it was launched.
func (t *trace) run(calls []hostCall) (runs []*kernel, lost int) {
	runs = make([]*kernel, len(calls))
	byID := map[int64]int{}
	for i := range calls {
		if calls[i].external >= 0 {
			byID[calls[i].external] = i
		}
	}
	around := newCover(calls)
	for n := range t.kernels {
		k := &t.kernels[n]
		i, ok := byID[k.external]
		if !ok || k.external < 0 {
			i = -1
			if l, ok := t.launches[k.correlation]; ok {
				i = around.find(l.thread, l.at)
			}
		}
		switch {
		case i >= 0 && runs[i] == nil:
			runs[i] = k
		case i >= 0:
			runs[i].start, runs[i].end = min(runs[i].start, k.start), max(runs[i].end, k.end)
		case k.own != nil:
			op := k.own.operation()
			op.IssuedNs, op.ReturnedNs, op.StartNs, op.EndNs, op.Stream = k.start, k.start, k.start, k.end, k.stream
			t.Ops = append(t.Ops, op)
		default:
			lost++
		}
	}
	return runs, lost
}

// operation makes an operation of a call.
func (c *hostCall) operation() training.Op {
	op := training.Op{Call: c.call, Group: c.group, Seq: c.seq, IssuedNs: c.start, ReturnedNs: c.end, StartNs: c.start,
		EndNs: c.end, InElements: c.in, OutElements: c.out, Type: c.kind, Root: c.root, Peer: c.peer, PeerInGroup: c.inGroup,
		InSplit: c.inSplit, OutSplit: c.outSplit}
	if c.asked != 0 || c.returned != 0 {
		op.IssuedNs, op.ReturnedNs = c.asked, c.returned
	}
	return op
}

// cover finds the call of a thread at a time. Calls of a thread do not overlap.
type cover struct {
	calls []hostCall
	order map[string][]int // by thread: indices in the order of their starts
}

func newCover(calls []hostCall) *cover {
	c := &cover{calls: slices.Clone(calls), order: map[string][]int{}}
	for i := range calls {
		c.order[calls[i].thread] = append(c.order[calls[i].thread], i)
	}
	for _, list := range c.order {
		slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(calls[a].start, calls[b].start) })
	}
	return c
}

// find returns the index of the latest call of a thread that covers a time, or -1.
func (c *cover) find(thread string, at int64) int {
	list := c.order[thread]
	i := sort.Search(len(list), func(i int) bool { return c.calls[list[i]].start > at })
	if i == 0 || c.calls[list[i-1]].end < at {
		return -1
	}
	return list[i-1]
}
