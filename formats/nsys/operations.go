package nsys

import (
	"cmp"
	"slices"
	"sort"

	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// unit is what a thread asked for as one thing: a range of PyTorch with its contents, a group of NCCL, or a function
// alone.
type unit struct {
	is         meaning // annotation, groupStart or function
	label      label
	thread     int64
	start, end int64
	functions  []event // of NCCL, with their payloads
	kernels    []activity
}

// units returns the units of the threads of a process, by thread in the order of their starts. Ranges of a thread are
// nested, so a unit ends before the next one begins. Groups without an end are left out.
func (p *process) units(t *tally) map[int64][]*unit {
	slices.SortStableFunc(p.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.thread, b.thread), cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	all := map[int64][]*unit{}
	unclosed := p.unclosed()
	t.unclosed += int64(len(unclosed))
	var b builder
	for i := range p.events {
		e := &p.events[i]
		if i > 0 && e.thread != p.events[i-1].thread {
			b = builder{}
		}
		if unclosed[i] {
			continue
		}
		if u := b.take(e); u != nil {
			all[e.thread] = append(all[e.thread], u)
		}
	}
	return all
}

// unclosed returns the places of the events that begin a group that does not end. An end is that of the
// innermost open group.
func (p *process) unclosed() map[int]bool {
	all := map[int]bool{}
	var open []int // of the thread
	for i := range p.events {
		e := &p.events[i]
		if i > 0 && e.thread != p.events[i-1].thread {
			open = open[:0]
		}
		switch e.is {
		case groupStart:
			open = append(open, i)
			all[i] = true
		case groupEnd:
			if n := len(open); n > 0 {
				delete(all, open[n-1])
				open = open[:n-1]
			}
		}
	}
	return all
}

// builder makes units of the events of a thread.
type builder struct {
	now   *unit // the latest one; nil: none
	depth int   // of open groups
}

// take takes the next event, and returns the unit that it begins; nil if it is a part of another.
func (b *builder) take(e *event) *unit {
	inside := b.now != nil && (b.depth > 0 || e.start < b.now.end)
	switch {
	case e.is == joins:
		return nil
	case inside:
		b.add(e)
		return nil
	case e.is == groupEnd:
		return nil // of a group that began before the recording
	}
	b.now = &unit{is: e.is, label: e.label, thread: e.thread, start: e.start, end: e.end}
	if e.is == groupStart {
		b.depth = 1
	}
	if e.is == function {
		b.now.functions = []event{*e}
	}
	return b.now
}

// add adds an event to the unit that it is in. A function of NCCL may call another one.
func (b *builder) add(e *event) {
	u := b.now
	switch {
	case e.is == function && u.is == function:
	case e.is == function:
		if n := len(u.functions); n == 0 || e.start >= u.functions[n-1].end {
			u.functions = append(u.functions, *e)
		}
	case b.depth == 0:
	case e.is == groupStart:
		b.depth++
	case e.is == groupEnd:
		b.depth--
	}
	if b.depth > 0 || u.is == groupStart {
		u.end = max(u.end, e.end)
	}
}

// operation is an operation on a device before the groups are known.
type operation struct {
	training.Op
	device int64
	ran    bool // the device is known
	comm   uint64
	bytes  int64 // by the function's arguments
	total  bool  // InElements and OutElements are known
	splits [2]map[int32]int64
}

// tally counts what has no row, or less than it should.
type tally struct {
	silent    int64 // kernels without the call that asked for them, whose names do not tell the operation
	captured  int64 // calls without a kernel in processes that use CUDA graphs
	unplaced  int64 // calls without a kernel in processes that use several devices
	waiting   int64 // calls without a kernel, which have the time of the call
	unclaimed int64 // calls of processes none of whose kernels could be joined with them
	unclosed  int64 // groups without an end
	undealt   int64 // calls of groups on several devices, with an unknown device for each
	paired    int64 // kernels that were launched outside of a range, and went to calls by their order
}

// operations returns the operations of a process.
func (p *process) operations(t *tally) (all []operation) {
	units := p.units(t)
	var order []int64
	for thread := range units {
		order = append(order, thread)
	}
	slices.Sort(order)
	joined, graphs, devices := p.join(units, &all, t)
	for _, thread := range order {
		for _, u := range units[thread] {
			if len(u.kernels) > 0 {
				all = append(all, u.operations(t)...)
				continue
			}
			n := u.count()
			switch {
			case graphs:
				t.captured += n
			case len(p.kernels) > 0 && !joined:
				t.unclaimed += n
			case devices > 1:
				t.unplaced += n
			default:
				if len(p.kernels) > 0 {
					t.waiting += n
				}
				all = append(all, u.operations(t)...)
			}
		}
	}
	return all
}

// join gives units their kernels: a kernel belongs to the unit in which it was launched. Of the others, pair finds the
// units if it can; the rest become operations by their names.
func (p *process) join(units map[int64][]*unit, all *[]operation, t *tally) (joined, graphs bool, devices int) {
	seen := map[int64]bool{}
	var loose []*activity
	for i := range p.kernels {
		k := &p.kernels[i]
		seen[k.device] = true
		graphs = graphs || k.graph
		l := p.launches[k.correlation]
		if u := around(units[l.thread], l.start); u != nil && l.thread != 0 && !k.graph {
			u.kernels = append(u.kernels, *k)
			joined = true
		} else {
			loose = append(loose, k)
		}
	}
	if joined && !graphs && len(seen) == 1 { // elsewhere calls without a kernel have no row
		loose = p.pair(loose, units, t)
	}
	for _, k := range loose {
		if k.call == 0 {
			t.silent++
			continue
		}
		issued, returned := p.launchOf(k)
		*all = append(*all, k.operation(k.call, issued, returned))
	}
	return joined, graphs, len(seen)
}

// launchOf returns when a kernel was launched; when it ran if that is not known.
func (p *process) launchOf(k *activity) (issued, returned int64) {
	l := p.launches[k.correlation]
	if l.thread == 0 {
		return k.start, k.start
	}
	return min(l.start, k.start), min(l.end, k.start)
}

// pair gives kernels that were launched outside of a unit, each to the first unit without a kernel that asked for the
// same operation before, and returns those for which there is none. A group may have a kernel for each function.
func (p *process) pair(loose []*activity, units map[int64][]*unit, t *tally) (rest []*activity) {
	waiting := map[schema.CallID][]*unit{} // by operation
	for _, of := range units {
		for _, u := range of {
			if len(u.kernels) > 0 {
				continue
			}
			for _, call := range u.kernelCalls() {
				waiting[call] = append(waiting[call], u)
			}
		}
	}
	for _, of := range waiting {
		slices.SortFunc(of, func(a, b *unit) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.thread, b.thread))
		})
	}
	slices.SortStableFunc(loose, func(a, b *activity) int {
		x, _ := p.launchOf(a)
		y, _ := p.launchOf(b)
		return cmp.Compare(x, y)
	})
	latest := map[schema.CallID]*unit{} // that got a kernel
	for _, k := range loose {
		issued, _ := p.launchOf(k)
		u := latest[k.call]
		if of := waiting[k.call]; len(of) > 0 && of[0].start <= issued {
			u, waiting[k.call] = of[0], of[1:]
			latest[k.call] = u
		} else if u == nil || len(u.kernels) >= len(u.functions) {
			rest = append(rest, k)
			continue
		}
		u.kernels = append(u.kernels, *k)
		t.paired++
	}
	return rest
}

// kernelCalls returns what the names of a unit's kernels can tell: its operations, each once; 0 for sends and receives.
func (u *unit) kernelCalls() (all []schema.CallID) {
	if u.is == annotation && len(u.functions) == 0 {
		return []schema.CallID{kernelCallOf(u.label.call)}
	}
	for i := range u.functions {
		if call := kernelCallOf(u.functions[i].call); !slices.Contains(all, call) {
			all = append(all, call)
		}
	}
	return all
}

// kernelCallOf returns what the name of a kernel of an operation tells: nothing of those that NCCL carries out as sends
// and receives.
func kernelCallOf(call schema.CallID) schema.CallID {
	switch call {
	case schema.CallIsend, schema.CallIrecv, schema.CallIalltoall, schema.CallIalltoallv, schema.CallIgather,
		schema.CallIscatter:
		return 0
	case schema.CallIbarrier: // of PyTorch
		return schema.CallIallreduce
	}
	return call
}

// around returns the unit of a thread that covers a time; nil if there is none.
func around(all []*unit, at int64) *unit {
	i := sort.Search(len(all), func(i int) bool { return all[i].start > at })
	if i == 0 || all[i-1].end < at {
		return nil
	}
	return all[i-1]
}

// operation makes an operation of a kernel.
func (k *activity) operation(call schema.CallID, issued, returned int64) operation {
	o := newOperation(call, issued, returned)
	o.StartNs, o.EndNs, o.Stream, o.Label = k.start, k.end, k.stream, kernelNote(k.text)
	o.device, o.ran = k.device, true
	return o
}

func newOperation(call schema.CallID, issued, returned int64) operation {
	return operation{Op: training.Op{Call: call, Group: training.Unknown, Seq: training.Unknown, IssuedNs: issued,
		ReturnedNs: returned, StartNs: issued, EndNs: returned, InElements: training.Unknown,
		OutElements: training.Unknown,
		InBytes:     true, Root: training.Unknown, Peer: training.Unknown}, bytes: training.Unknown}
}

// count returns the number of operations of a unit.
func (u *unit) count() int64 {
	if u.is == annotation {
		return 1
	}
	return int64(len(u.functions))
}

// operations returns the operations of a unit, those of each device that it ran on. If it is not told which device
// each function was for, they are those that the names of the kernels tell.
func (u *unit) operations(t *tally) (all []operation) {
	if len(u.kernels) == 0 {
		return u.requested(u.functions)
	}
	byDevice := map[int64][]activity{}
	var devices []int64
	for _, k := range u.kernels {
		if byDevice[k.device] == nil {
			devices = append(devices, k.device)
		}
		byDevice[k.device] = append(byDevice[k.device], k)
	}
	slices.Sort(devices)
	shares := dealt(u.functions, len(devices))
	if shares == nil {
		t.undealt += int64(len(u.functions))
		shares = make([][]event, len(devices))
	}
	for i, device := range devices {
		asked := u.requested(shares[i])
		for _, o := range asked {
			all = append(all, o.runs(byDevice[device]))
		}
		for _, k := range byDevice[device] {
			switch {
			case len(asked) > 0:
			case k.call != 0:
				all = append(all, k.operation(k.call, u.start, u.end))
			default:
				t.silent++
			}
		}
	}
	return all
}

// dealt returns the functions for each of several devices, nil if the order does not tell which these are. Devices ask
// for the same: either each operation is asked for on all devices before the next one, or a device asks for all of its
// operations before the next device. Sizes may differ between devices if the order of the calls alone tells it.
func dealt(functions []event, devices int) (shares [][]event) {
	n := len(functions) / devices
	if len(functions)%devices != 0 {
		return nil
	}
	inTurn, inBlocks := make([][]event, devices), make([][]event, devices)
	for i, f := range functions {
		inTurn[i%devices] = append(inTurn[i%devices], f)
		inBlocks[i/n] = append(inBlocks[i/n], f)
	}
	for _, withSizes := range []bool{true, false} {
		turn, blocks := areAlike(inTurn, withSizes), areAlike(inBlocks, withSizes)
		switch {
		case turn && (!blocks || withSizes || n < 2):
			return inTurn
		case blocks && !turn:
			return inBlocks
		}
	}
	return nil
}

// areAlike reports whether the devices ask for the same operations on the same communicators.
func areAlike(shares [][]event, withSizes bool) bool {
	for _, share := range shares[1:] {
		for i := range share {
			a, b := &share[i], &shares[0][i]
			if a.call != b.call || a.comm != b.comm || withSizes && a.bytes != b.bytes {
				return false
			}
		}
	}
	return true
}

// runs gives an operation the time of its kernels.
func (o operation) runs(kernels []activity) operation {
	k := kernels[0]
	o.StartNs, o.EndNs, o.Stream, o.Label = k.start, k.end, k.stream, kernelNote(k.text)
	o.device, o.ran = k.device, true
	for _, k := range kernels[1:] {
		o.StartNs, o.EndNs = min(o.StartNs, k.start), max(o.EndNs, k.end)
	}
	return o
}

// requested returns the operations that a unit asked for with these of its functions, without when they ran: one for a
// range of PyTorch's, else one for each function.
func (u *unit) requested(functions []event) (all []operation) {
	if u.is == annotation {
		o := newOperation(u.label.call, u.start, u.end)
		if u.label.to >= 0 {
			o.Peer, o.PeerInGroup = u.label.to, true
		}
		o.sum(functions)
		return []operation{o}
	}
	for i := range functions {
		f := &functions[i]
		o := newOperation(f.call, u.start, u.end)
		o.comm, o.bytes, o.Root = f.comm, f.bytes, f.root
		if f.peer >= 0 {
			o.Peer, o.PeerInGroup = f.peer, true
		}
		all = append(all, o)
	}
	return all
}

// sum takes the communicator and the sizes of an operation from the functions that it called: the same function, for
// several tensors, or the messages that it is made of.
func (o *operation) sum(functions []event) {
	sent, got := int64(training.Unknown), int64(training.Unknown)
	for i := range functions {
		f := &functions[i]
		if o.comm == 0 {
			o.comm = f.comm
		}
		switch {
		case f.bytes < 0 || f.comm != o.comm:
		case training.AreAlike(f.call, o.Call):
			o.bytes = max(o.bytes, 0) + f.bytes
			if f.root >= 0 {
				o.Root = f.root
			}
			if f.peer >= 0 && o.Peer < 0 {
				o.Peer, o.PeerInGroup = f.peer, true
			}
		case f.call == schema.CallIsend:
			sent = max(sent, 0) + f.bytes
			o.share(0, f)
		case f.call == schema.CallIrecv:
			got = max(got, 0) + f.bytes
			o.share(1, f)
		}
	}
	if sent >= 0 || got >= 0 {
		o.InElements, o.OutElements, o.total = sent, got, true
	}
}

// share notes what goes to a member of the group, or comes from it.
func (o *operation) share(side int, f *event) {
	if f.peer < 0 {
		return
	}
	if o.splits[side] == nil {
		o.splits[side] = map[int32]int64{}
	}
	o.splits[side][f.peer] += f.bytes
}
