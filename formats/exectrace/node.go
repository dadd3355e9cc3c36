package exectrace

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/jsonstream"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// values are the inputs or outputs of a node, in a trace of schema 1.0.2 or later.
type values struct {
	Values []json.RawMessage `json:"values"`
	Shapes []json.RawMessage `json:"shapes"`
	Types  []string          `json:"types"`
}

// node is a node of a trace. Up to schema 1.0.1 inputs are an array, with shapes and types beside it.
type node struct {
	ID      int64           `json:"id"`
	Name    string          `json:"name"`
	Number  json.RawMessage `json:"rf_id"`
	Inputs  json.RawMessage `json:"inputs"`
	Outputs json.RawMessage `json:"outputs"`
	Attrs   []struct {
		Name  string          `json:"name"`
		Value json.RawMessage `json:"value"`
	} `json:"attrs"`
	InputShapes  []json.RawMessage `json:"input_shapes"`
	InputTypes   []string          `json:"input_types"`
	OutputShapes []json.RawMessage `json:"output_shapes"`
}

// number returns the number of the function that the node is of, by which Kineto's traces know it too; -1 for none.
func (n *node) number() int64 {
	for _, a := range n.Attrs {
		if a.Name == "rf_id" {
			return integer(a.Value)
		}
	}
	return integer(n.Number)
}

// inputs and outputs return the inputs and outputs of a node.
func (n *node) inputs() values  { return valuesOf(n.Inputs, n.InputShapes, n.InputTypes) }
func (n *node) outputs() values { return valuesOf(n.Outputs, n.OutputShapes, nil) }

func valuesOf(raw json.RawMessage, shapes []json.RawMessage, types []string) (v values) {
	if json.Unmarshal(raw, &v) == nil && v.Values != nil {
		return v
	}
	v = values{Shapes: shapes, Types: types}
	if json.Unmarshal(raw, &v.Values) != nil {
		return values{}
	}
	return v
}

// trace is the contents of a file that are needed.
type trace struct {
	*training.Rank
	pid     int64            // -1 for none
	own     int32            // world rank by its nodes and groups, -1 for none
	number  int32            // rank in a group of unknown members, -1 for none
	groups  map[string][]int // by name: indices of Groups, of other members each
	moments []moment

	byNumber map[int64]training.Op // operations by the number of their function
	asked    []training.Op         // those of calls of c10d, and where they stand
	askedAt  []moment
}

// read reads the trace of a process.
func read(path string) (*trace, error) {
	f, err := jsonstream.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t := &trace{Rank: &training.Rank{File: path, Device: true}, pid: -1, own: -1, number: -1,
		groups: map[string][]int{}, byNumber: map[int64]training.Op{}}
	if err := jsonstream.Object(f, "nodes", t.node, t.header); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// header takes what stands beside the nodes.
func (t *trace) header(key string, d *json.Decoder) error {
	if key != "pid" {
		return jsonstream.Skip(d)
	}
	var pid json.RawMessage
	err := d.Decode(&pid)
	t.pid = max(training.Unknown, integer(pid))
	return err
}

// node takes a node.
func (t *trace) node(d *json.Decoder) error {
	var n node
	if err := d.Decode(&n); err != nil {
		return err
	}
	t.Events++
	var err error
	switch {
	case strings.Contains(n.Name, "process_group:init"):
		err = t.listed(&n)
	case n.Name == "record_param_comms":
		err = t.params(&n)
	case strings.HasPrefix(n.Name, "c10d::"), isBackends(n.Name):
		t.call(&n)
	}
	if err != nil {
		return fmt.Errorf("node %d (%s): %w", n.ID, n.Name, err)
	}
	return nil
}

// listed takes the list of groups that a process is in.
func (t *trace) listed(n *node) error {
	var groups []struct {
		Name        string  `json:"pg_name"`
		Description string  `json:"pg_desc"`
		Ranks       []int64 `json:"ranks"`
		Size        int64   `json:"group_size"`
	}
	v := n.inputs()
	if len(v.Values) == 0 || json.Unmarshal([]byte(text(v.Values[0])), &groups) != nil {
		return nil
	}
	for _, g := range groups {
		if g.Size < 1 || g.Size > importing.MostRanks {
			continue
		}
		t.HasGroups = true
		if len(g.Ranks) == 0 { // all
			t.World = max(t.World, int32(g.Size))
			g.Ranks = training.Strided(0, 1, g.Size)
		}
		if _, err := t.group(g.Name, g.Description, g.Ranks); err != nil {
			return err
		}
	}
	return nil
}

// group returns the index of a group, and adds it if it is new.
func (t *trace) group(name, description string, ranks []int64) (int, error) {
	g := training.Group{Name: name, Description: description, Ranks: narrow(ranks)}
	if len(g.Ranks) < len(ranks) {
		return training.Unknown, nil
	}
	if len(g.Ranks) > 0 {
		t.World = max(t.World, slices.Max(g.Ranks)+1)
	}
	for _, i := range t.groups[name] {
		if slices.Equal(t.Groups[i].Ranks, g.Ranks) {
			return i, nil
		}
	}
	if err := t.KeepMembers(&g); err != nil {
		return training.Unknown, err
	}
	t.groups[name] = append(t.groups[name], len(t.Groups))
	t.Groups = append(t.Groups, g)
	return len(t.Groups) - 1, nil
}

// narrow returns world ranks, nil if one of them cannot be one.
func narrow(ranks []int64) []int32 {
	list := make([]int32, len(ranks))
	for i, r := range ranks {
		if r < 0 || r >= importing.MostRanks {
			return nil
		}
		list[i] = int32(r)
	}
	return list
}

// listedGroup returns the group whose members are known under a name: the first one. false if there is none.
func (t *trace) listedGroup(name string) (int, bool) {
	for _, i := range t.groups[name] {
		if len(t.Groups[i].Ranks) > 0 {
			return i, true
		}
	}
	return training.Unknown, false
}

// groupOf returns the group of an operation: the one that is known under its name, else that of the call's own ranks.
func (t *trace) groupOf(c *call) (int, error) {
	if i, ok := t.listedGroup(c.pg); ok {
		return i, nil
	}
	return t.group(c.pg, c.desc, c.ranks())
}

// call has the arguments of record_param_comms, which PyTorch lists one after the other: tensors, number, group, rank
// or root, name, splits, and since schema 1.0.3 the group's first rank, stride and size.
type call struct {
	name      string
	number    int64
	pg, desc  string
	who       int64 // rank in the group: the root of rooted operations, the other side of messages, else the process
	in, out   []int64
	hasTensor bool

	first, stride, size int64 // of the group's ranks
}

// ranks returns the ranks of the group by the call itself, nil for none.
func (c *call) ranks() []int64 { return training.Strided(c.first, c.stride, c.size) }

func (v *values) call() (c call, ok bool) {
	k := -1
	for i := 1; i < len(v.Values); i++ {
		if text(v.Values[i]) != "" && isNumber(v.Values[i-1]) {
			k = i
		}
	}
	if k < 3 {
		return c, false
	}
	c.name, c.who, c.number = text(v.Values[k]), integer(v.Values[k-1]), integer(v.Values[k-3])
	c.pg, c.desc = groupName(v.Values[k-2])
	c.hasTensor = k == 4
	if len(v.Values) > k+2 {
		c.in, c.out = integers(v.Values[k+1]), integers(v.Values[k+2])
	}
	if len(v.Values) > k+5 {
		c.first, c.stride, c.size = integer(v.Values[k+3]), integer(v.Values[k+4]), integer(v.Values[k+5])
	}
	return c, true
}

// params takes a node of record_param_comms: an operation, or a wait for one.
func (t *trace) params(n *node) (err error) {
	in, out := n.inputs(), n.outputs()
	c, ok := in.call()
	if !ok {
		return nil
	}
	if c.name == "wait" {
		t.moments = append(t.moments, moment{n.ID, c.number, -1})
		t.setRank(&c)
		return nil
	}
	op := operation(c.name)
	op.InSplit, op.OutSplit = c.in, c.out
	if op.Call == 0 {
		return nil
	}
	if c.pg != "" {
		if op.Group, err = t.groupOf(&c); err != nil {
			return err
		}
	}
	t.side(&op, &c)
	t.elements(&op, n, &in, &out, c.hasTensor)
	t.keep(n, op)
	t.moments = append(t.moments, moment{n.ID, c.number, len(t.Ops)})
	t.Ops = append(t.Ops, op)
	return nil
}

// keep keeps an operation under the number of its function.
func (t *trace) keep(n *node, op training.Op) {
	if number := n.number(); number >= 0 {
		t.byNumber[number] = op
	}
}

// operation returns an operation with a name and everything else unknown.
func operation(name string) training.Op {
	return training.Op{Call: training.CallOf(name), Group: training.Unknown, Seq: training.Unknown, Root: training.Unknown,
		Peer: training.Unknown, InElements: training.Unknown, OutElements: training.Unknown}
}

// setRank sets the rank of the process, which its nodes tell as the rank in the group of an operation.
func (t *trace) setRank(c *call) {
	who := max(-1, min(c.who, importing.MostRanks))
	i, listed := t.listedGroup(c.pg)
	switch {
	case c.pg != "" && listed:
		if ranks := t.Groups[i].Ranks; who >= 0 && who < int64(len(ranks)) {
			t.own = ranks[who]
		}
	case c.pg != "" && len(c.ranks()) > 0:
		if who >= 0 && who < c.size {
			t.own = int32(min(c.first+who*c.stride, importing.MostRanks))
		}
	default:
		t.number = int32(who)
	}
}

// side sets what the fourth argument means: the root, the other side, or the process itself.
func (t *trace) side(op *training.Op, c *call) {
	who := int32(max(-1, min(c.who, importing.MostRanks)))
	switch {
	case op.Call == schema.CallIsend, op.Call == schema.CallIrecv:
		if op.Group >= 0 && who >= 0 && int(who) < len(t.Groups[op.Group].Ranks) {
			op.Peer = t.Groups[op.Group].Ranks[who]
		}
	case op.Call.Is(schema.FactRooted):
		op.Root = who
	default:
		t.setRank(c)
	}
}

var tensorType = regexp.MustCompile(`Tensor\(([^()]+)\)`)

// elements sets sizes and type: by the attributes of schema 1.1, else by the shapes of the tensors.
func (t *trace) elements(op *training.Op, n *node, in, out *values, hasTensor bool) {
	for _, a := range n.Attrs {
		switch a.Name {
		case "in_msg_nelems":
			op.InElements = integer(a.Value)
		case "out_msg_nelems":
			op.OutElements = integer(a.Value)
		case "dtype":
			op.Type = text(a.Value)
		}
	}
	if op.Type != "" || !hasTensor {
		return
	}
	if len(in.Types) > 0 {
		if m := tensorType.FindStringSubmatch(in.Types[0]); m != nil {
			op.Type = m[1]
		}
	}
	op.InElements, op.OutElements = in.firstCount(), out.firstCount()
}

// firstCount returns the elements of the first value: a tensor or a list of tensors. A list without any, as ranks other
// than the root have, looks like a tensor without dimensions but for its type.
func (v *values) firstCount() int64 {
	if len(v.Shapes) == 0 || len(v.Types) > 0 && !tensorType.MatchString(v.Types[0]) {
		return training.Unknown
	}
	return count(v.Shapes[0], mostNesting)
}

// mostNesting limits the depth of nested lists of tensors. PyTorch's calls have lists of lists.
const mostNesting = 3

// count returns the elements of a tensor by its shape, or of a list of tensors that nests at most so deep. The limit
// bounds the time that damaged input takes: each level reads the text again.
func count(shape json.RawMessage, nesting int) int64 {
	var dims []float64
	if json.Unmarshal(shape, &dims) == nil {
		n := 1.0
		for _, d := range dims {
			n *= d
		}
		if n >= 0 && n < 1<<53 && n == math.Trunc(n) {
			return int64(n)
		}
		return training.Unknown
	}
	var list []json.RawMessage
	if nesting == 0 || json.Unmarshal(shape, &list) != nil {
		return training.Unknown
	}
	sum := int64(0)
	for _, s := range list {
		n := count(s, nesting-1)
		if n < 0 || sum > 1<<53 {
			return training.Unknown
		}
		sum += n
	}
	return sum
}

func text(v json.RawMessage) (s string) {
	if json.Unmarshal(v, &s) != nil {
		return ""
	}
	return s
}

// groupName returns name and description of a group: a pair, or the name alone. Traces of schema 1.0.1 have an address,
// which no other process has.
func groupName(v json.RawMessage) (name, description string) {
	var pair []string
	if json.Unmarshal(v, &pair) == nil && len(pair) > 0 {
		if len(pair) > 1 {
			description = pair[1]
		}
		return pair[0], description
	}
	return text(v), ""
}

func isNumber(v json.RawMessage) bool {
	var n json.Number
	return len(v) > 0 && v[0] != '"' && json.Unmarshal(v, &n) == nil
}

// integer returns a number, or the first of a list of them as of a number and whether it is of a message; -1 for none.
func integer(v json.RawMessage) int64 {
	if len(v) > 0 && v[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(v, &list) != nil || len(list) == 0 || len(list[0]) > 0 && list[0][0] == '[' {
			return training.Unknown
		}
		return integer(list[0])
	}
	n, err := strconv.ParseInt(strings.Trim(string(v), `"`), 10, 64)
	if err != nil {
		return training.Unknown
	}
	return n
}

func integers(v json.RawMessage) (list []int64) {
	if json.Unmarshal(v, &list) != nil {
		return nil
	}
	return list
}
