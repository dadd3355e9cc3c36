package kineto

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/jsonstream"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// hostCall is a call of the program that asks for an operation.
type hostCall struct {
	call       schema.CallID
	thread     string
	start, end int64
	external   int64
	function   int64 // record function id, which grows in the order of calls; -1 if unknown
	group      int
	seq        int64
	in, out    int64
	inSplit    []int64
	outSplit   []int64
	kind       string
	root       int32
	peer       int32
	inGroup    bool // peer is a rank in the group
	taken      bool // by what a worker thread executed
	joined     bool // an execution trace has added to it
	// asked and returned are when the program asked for what a worker thread executed; 0 if the program executed it.
	asked, returned int64
}

// kernel is an operation that ran on the device.
type kernel struct {
	start, end            int64
	stream                int64
	external, correlation int64
	own                   *hostCall // what its own arguments say, nil if nothing
}

// launch is the thread and time at which the program started a kernel.
type launch struct {
	thread string
	at     int64
}

// trace is the contents of the file of a process: its communication, and when it computed.
type trace struct {
	*training.Rank
	baseNs    int64
	pid       int64 // -1 if unknown
	hasRank   bool
	params    []hostCall // record_param_comms: with sizes and groups
	marked    []hostCall // annotations as nccl:all_reduce, gloo:broadcast
	asked     []hostCall // c10d::allreduce_
	kernels   []kernel
	launches  map[int64]launch // by correlation
	strided   map[strides]int  // groups whose ranks are told as strides
	err       error            // what is wrong with the groups
	hostBusy  training.Busy    // operators of the program
	joined    int              // operations to which an execution trace has added
	kernelled bool             // there are kernels
	own       bool             // the file has something that only PyTorch's profiler writes
}

// strides are the ranks of a group as an event tells them.
type strides struct {
	name                string
	first, stride, size int64
}

// distributed is the description of the job in a trace.
type distributed struct {
	Rank    *int32 `json:"rank"`
	World   int32  `json:"world_size"`
	Configs []struct {
		Name        string          `json:"pg_name"`
		Description string          `json:"pg_desc"`
		Size        int64           `json:"pg_size"`
		Ranks       json.RawMessage `json:"ranks"`
	} `json:"pg_config"`
}

// read reads the trace of a process.
func read(path string) (*trace, error) {
	f, err := jsonstream.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := &trace{Rank: &training.Rank{File: path}, pid: -1, launches: map[int64]launch{}, strided: map[strides]int{}}
	if err := jsonstream.Object(f, "traceEvents", t.event, t.header); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !t.own {
		return nil, fmt.Errorf("%s: has events as Chrome and Perfetto show them, but nothing of PyTorch's profiler: no %s "+
			"and no event of the categories cpu_op, user_annotation, kernel or cuda_runtime; commq imports such traces of "+
			"PyTorch alone", path, strings.Join(ownKeys[:], ", "))
	}
	return t, nil
}

// ownKeys are the keys beside the events that PyTorch's profiler alone writes.
var ownKeys = [...]string{"schemaVersion", "distributedInfo", "deviceProperties", "baseTimeNanoseconds"}

// header takes what stands beside the events.
func (t *trace) header(key string, d *json.Decoder) error {
	t.own = t.own || slices.Contains(ownKeys[:], key)
	switch key {
	case "distributedInfo":
		var x distributed
		if err := d.Decode(&x); err != nil {
			return err
		}
		t.distributed(&x)
		return t.err
	case "baseTimeNanoseconds":
		var n int64
		if err := d.Decode(&n); err != nil {
			return err
		}
		if n < 0 || n > mostMicroseconds*1000 {
			return fmt.Errorf("baseTimeNanoseconds is %d", n)
		}
		t.baseNs = n
	case "host_name":
		return d.Decode(&t.Host)
	default:
		return jsonstream.Skip(d)
	}
	return nil
}

func (t *trace) distributed(x *distributed) {
	if x.Rank != nil {
		t.Rank.Rank, t.hasRank = *x.Rank, true
	}
	t.World = x.World
	for _, c := range x.Configs {
		ranks := integers(c.Ranks)
		if len(ranks) == 0 && c.Size == int64(x.World) {
			ranks = training.Strided(0, 1, c.Size)
		}
		t.HasGroups = true
		t.group(c.Name, c.Description, ranks)
	}
}

// group returns the index of a group; its ranks may be unknown here and known elsewhere.
func (t *trace) group(name, description string, ranks []int64) int {
	for i := range t.Groups {
		g := &t.Groups[i]
		if g.Name != name || len(ranks) > 0 && len(g.Ranks) > 0 && !areEqual(g.Ranks, ranks) {
			continue
		}
		if len(g.Ranks) == 0 {
			t.setMembers(g, ranks)
		}
		g.Description = cmp.Or(g.Description, description)
		return i
	}
	t.Groups = append(t.Groups, training.Group{Name: name, Description: description})
	t.setMembers(&t.Groups[len(t.Groups)-1], ranks)
	return len(t.Groups) - 1
}

// setMembers sets the ranks of a group.
func (t *trace) setMembers(g *training.Group, ranks []int64) {
	g.Ranks = narrow(ranks)
	if err := t.KeepMembers(g); err != nil {
		g.Ranks, t.err = nil, err
	}
}

// stridedGroup returns the index of a group whose ranks are told as strides; events tell those of a group again and
// again.
func (t *trace) stridedGroup(at strides, description string) int {
	i, ok := t.strided[at]
	if !ok {
		i = t.group(at.name, description, training.Strided(at.first, at.stride, at.size))
		t.strided[at] = i
	}
	t.Groups[i].Description = cmp.Or(t.Groups[i].Description, description)
	return i
}

func narrow(ranks []int64) (list []int32) {
	for _, r := range ranks {
		if r < 0 || r >= importing.MostRanks {
			return nil
		}
		list = append(list, int32(r))
	}
	return list
}

// areEqual compares lists of ranks.
func areEqual(a []int32, b []int64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if int64(a[i]) != b[i] {
			return false
		}
	}
	return true
}

// event takes the event that is next.
func (t *trace) event(d *json.Decoder) error {
	var e event
	if err := d.Decode(&e); err != nil {
		return err
	}
	t.Events++
	if e.Phase != "X" {
		return nil
	}
	start, ok := nanoseconds(e.Start)
	if !ok {
		return fmt.Errorf("event %d (%s): ts is %q; want a time in microseconds", t.Events, e.Name, plain(e.Start))
	}
	length, ok := nanoseconds(e.Length)
	if !ok || length < 0 {
		length = 0
	}
	length = min(length, mostLength)
	if t.take(&e, start, start+length); t.err != nil {
		return fmt.Errorf("event %d (%s): %w", t.Events, e.Name, t.err)
	}
	return nil
}

// mostLength is the longest that an event is believed to last, some 11 days, in ns.
const mostLength = 1e15

// take keeps what is needed of an event.
func (t *trace) take(e *event, start, end int64) {
	switch category := strings.ToLower(e.Category); category {
	case "kernel":
		t.kernelled, t.own = true, true
		if training.IsCommunication(e.Name) {
			t.kernels = append(t.kernels, t.kernel(e, start, end))
			return
		}
		t.Busy.Add(start, end)
	case "cuda_runtime", "cuda_driver", "runtime", "hip_runtime":
		t.own = true
		if strings.Contains(e.Name, "Launch") {
			var a arguments
			if json.Unmarshal(e.Args, &a) == nil {
				if id := integer(a.Correlation, -1); id >= 0 {
					t.launches[id] = launch{string(e.Thread), start}
				}
			}
		}
	case "cpu_op", "user_annotation", "operator":
		t.own = true
		t.host(e, start, end, category)
	}
}

func (t *trace) kernel(e *event, start, end int64) kernel {
	k := kernel{start: start, end: end, external: -1, correlation: -1}
	var a arguments
	if json.Unmarshal(e.Args, &a) != nil {
		return k
	}
	k.stream, k.external, k.correlation = integer(a.Stream, 0), integer(a.ExternalID, -1), integer(a.Correlation, -1)
	if call := training.CallOf(a.Collective); call != 0 {
		h := t.call(e, &a, call, start, end)
		k.own = &h
	}
	return k
}

// host takes an operator or an annotation of the program.
func (t *trace) host(e *event, start, end int64, category string) {
	name := e.Name
	annotation := strings.HasPrefix(name, "nccl:") || strings.HasPrefix(name, "gloo:") || strings.HasPrefix(name, "ucc:")
	switch {
	case strings.HasPrefix(name, "ProfilerStep#"):
		t.Steps = append(t.Steps, training.Step{Name: name, StartNs: start})
		return
	case name == "record_param_comms", annotation, strings.HasPrefix(name, "c10d::"):
	case category == "user_annotation":
		return
	default:
		t.hostBusy.Add(start, end)
		return
	}
	if t.pid < 0 {
		t.pid = integer(e.Process, -1)
	}
	var a arguments
	if json.Unmarshal(e.Args, &a) != nil {
		return
	}
	switch {
	case annotation:
		if call := training.CallOf(name); call != 0 {
			t.marked = append(t.marked, t.call(e, &a, call, start, end))
		}
	case name == "record_param_comms":
		if call := training.CallOf(a.Collective); call != 0 {
			t.params = append(t.params, t.call(e, &a, call, start, end))
		}
	default:
		t.hostBusy.Add(start, end)
		if call := training.CallOf(name); call != 0 {
			t.asked = append(t.asked, t.call(e, &a, call, start, end))
		}
	}
}

// call makes a call of an event and its arguments.
func (t *trace) call(e *event, a *arguments, call schema.CallID, start, end int64) hostCall {
	h := hostCall{call: call, thread: string(e.Thread), start: start, end: end, external: integer(a.ExternalID, -1),
		function: integer(a.FunctionID, -1), group: training.Unknown, seq: integer(a.Seq, training.Unknown),
		in: integer(a.In, training.Unknown), out: integer(a.Out, training.Unknown), inSplit: integers(a.InSplit),
		outSplit: integers(a.OutSplit), kind: a.Type, root: training.Unknown, peer: training.Unknown}
	if name := plain(a.GroupName) + plain(a.GroupID); name != "" {
		if ranks := integers(a.GroupRanks); len(ranks) > 0 {
			h.group = t.group(name, a.Description, ranks)
		} else {
			h.group = t.stridedGroup(strides{name, integer(a.First, -1), integer(a.Stride, 0), integer(a.GroupSize, 0)},
				a.Description)
		}
	}
	switch call {
	case schema.CallIsend:
		h.peer = int32(min(integer(a.Destination, training.Unknown), importing.MostRanks))
	case schema.CallIrecv:
		h.peer = int32(min(integer(a.Source, training.Unknown), importing.MostRanks))
	}
	if h.in == training.Unknown && h.out == training.Unknown {
		h.shapes(e.Name, a)
	}
	return h
}

// shapes finds sizes and the root in the shapes and values of the arguments, which profiles with record_shapes have.
func (c *hostCall) shapes(name string, a *arguments) {
	sizes, kinds := tensors(a.Dims), texts(a.Types)
	for i, n := range sizes {
		if n < 0 {
			continue
		}
		c.in = n
		if i < len(kinds) && kinds[i] != "TensorList" {
			c.kind = kinds[i]
		}
		break
	}
	if strings.HasSuffix(name, "_base_") && len(sizes) > 1 && sizes[0] >= 0 && sizes[1] >= 0 {
		c.out, c.in = sizes[0], sizes[1] // alltoall_base_(output, input, ...)
	}
	values := texts(a.Inputs)
	if c.call == schema.CallIsend || c.call == schema.CallIrecv { // c10d::send, recv_(tensors, group, rank, tag)
		if (name == "c10d::send" || name == "c10d::recv_") && len(values) > 2 && c.peer == training.Unknown {
			c.peer = int32(min(integer(json.RawMessage(values[2]), training.Unknown), importing.MostRanks))
			c.inGroup = c.peer >= 0
		}
	}
	at := map[string]int{"c10d::broadcast_": 2, "c10d::reduce_": 3, "c10d::gather_": 3, "c10d::scatter_": 3}[name]
	if at > 0 && at < len(values) {
		c.root = int32(min(integer(json.RawMessage(values[at]), training.Unknown), importing.MostRanks))
	}
}
