package chakra

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protodelim"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/formats/tit"
	"github.com/commq/commq/schema"
)

// messageFields are those of Chakra 1.0's messages that an export writes, with their numbers: so the official library
// reads the files, not ours.
var messageFields = map[string][]string{
	"GlobalMetadata": {"version 1 string"},
	"AttributeProto": {"name 1 string", "int32_val 7 int32", "int64_val 9 int64", "bool_val 27 bool",
		"string_val 29 string"},
	"IOInfo": {"values 1 string", "shapes 2 string", "types 3 string"},
	"Node": {"id 1 uint64", "name 2 string", "type 3 NodeType", "ctrl_deps 4 uint64...", "data_deps 5 uint64...",
		"start_time_micros 6 uint64", "duration_micros 7 uint64", "inputs 8 IOInfo", "outputs 9 IOInfo",
		"attr 10 AttributeProto..."},
}

var scalars = map[string]descriptorpb.FieldDescriptorProto_Type{
	"string": descriptorpb.FieldDescriptorProto_TYPE_STRING, "int32": descriptorpb.FieldDescriptorProto_TYPE_INT32,
	"int64": descriptorpb.FieldDescriptorProto_TYPE_INT64, "bool": descriptorpb.FieldDescriptorProto_TYPE_BOOL,
	"uint64": descriptorpb.FieldDescriptorProto_TYPE_UINT64}

// format describes the messages to the library.
func format(t testing.TB) protoreflect.MessageDescriptors {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("et.proto"), Package: proto.String("c"),
		Syntax: proto.String("proto3")}
	kinds := &descriptorpb.EnumDescriptorProto{Name: proto.String("NodeType")}
	for i, name := range []string{"INVALID_NODE", "METADATA_NODE", "MEM_LOAD_NODE", "MEM_STORE_NODE", "COMP_NODE",
		"COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"} {
		kinds.Value = append(kinds.Value, &descriptorpb.EnumValueDescriptorProto{Name: proto.String(name),
			Number: proto.Int32(int32(i))})
	}
	file.EnumType = append(file.EnumType, kinds)
	for name, fields := range messageFields {
		m := &descriptorpb.DescriptorProto{Name: proto.String(name)}
		for _, f := range fields {
			m.Field = append(m.Field, describe(f))
		}
		if name == "AttributeProto" { // a value that is 0 is one
			m.OneofDecl = append(m.OneofDecl, &descriptorpb.OneofDescriptorProto{Name: proto.String("value")})
			for _, f := range m.Field[1:] {
				f.OneofIndex = proto.Int32(0)
			}
		}
		file.MessageType = append(file.MessageType, m)
	}
	d, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.Messages()
}

// describe describes a field, such as "id 1 uint64"; dots stand for several.
func describe(text string) *descriptorpb.FieldDescriptorProto {
	var name, kind string
	var number int32
	fmt.Sscan(text, &name, &number, &kind)
	f := &descriptorpb.FieldDescriptorProto{Name: proto.String(name), Number: proto.Int32(number),
		Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
	if one, several := strings.CutSuffix(kind, "..."); several {
		kind, f.Label = one, descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
	}
	switch scalar, ok := scalars[kind]; {
	case ok:
		f.Type = scalar.Enum()
	case kind == "NodeType":
		f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum(), proto.String(".c.NodeType")
	default:
		f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String(".c."+kind)
	}
	return f
}

// nodes returns the messages of a trace as text, as the library of protocol buffers reads them.
func nodes(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	in := bytes.NewReader(b)
	messages := format(t)
	var out strings.Builder
	for i := 0; ; i++ {
		kind := protoreflect.Name("Node")
		if i == 0 {
			kind = "GlobalMetadata"
		}
		m := dynamicpb.NewMessage(messages.ByName(kind))
		if err := protodelim.UnmarshalFrom(in, m); err == io.EOF {
			return out.String()
		} else if err != nil {
			t.Fatal(err)
		}
		if len(m.GetUnknown()) > 0 {
			t.Errorf("message %d has fields that the format does not know", i)
		}
		out.WriteString(strings.TrimSpace(asText(m)) + "\n")
	}
}

// asText writes the fields of a message that are there, in the order of their numbers.
func asText(m protoreflect.Message) string {
	var b strings.Builder
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !m.Has(f) {
			continue
		}
		values := []protoreflect.Value{m.Get(f)}
		if f.IsList() {
			values = nil
			for k := range m.Get(f).List().Len() {
				values = append(values, m.Get(f).List().Get(k))
			}
		}
		for _, v := range values {
			switch {
			case f.Kind() == protoreflect.MessageKind:
				fmt.Fprintf(&b, " %s:{%s}", f.Name(), strings.TrimSpace(asText(v.Message())))
			case f.Kind() == protoreflect.EnumKind:
				fmt.Fprintf(&b, " %s:%s", f.Name(), f.Enum().Values().ByNumber(v.Enum()).Name())
			case f.Kind() == protoreflect.StringKind:
				fmt.Fprintf(&b, " %s:%q", f.Name(), v.String())
			default:
				fmt.Fprintf(&b, " %s:%v", f.Name(), v.Interface())
			}
		}
	}
	return b.String()
}

// exported writes a run as traces.
func exported(t testing.TB, dir string) (string, []string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	notes, err := Export(context.Background(), dir, out)
	if err != nil {
		t.Fatal(err)
	}
	return out, notes
}

// Computing in whole microseconds, whose rest goes on, a message that is sent while the rank computes, collectives with
// and without a root.
func TestNodes(t *testing.T) {
	dir := t.TempDir()
	trace := filepath.Join(dir, "trace.txt")
	if err := os.WriteFile(trace, []byte(`0 init
0 compute 1700
0 send 1 9 4097
0 isend 1 3 5
0 irecv 1 4 0
0 compute 1400
0 wait 0 1 3
0 wait 1 0 4
0 bcast 24 1
0 allreduce 40 0
0 compute 999
1 init
1 recv 0 9 4097
1 recv 0 3 5
1 send 0 4 0
1 bcast 24 1
1 allreduce 40 0
`), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := tit.ImportFile(context.Background(), trace, dir, "run", tit.Options{}); err != nil {
		t.Fatal(err)
	}
	out, notes := exported(t, filepath.Join(dir, "run"))
	const empty = "Ends of messages without data, at which a debug build of ASTRA-sim stops: 2."
	if !slices.Equal(notes, []string{empty}) {
		t.Errorf("%q", notes)
	}
	const gpu = ` attr:{name:"is_cpu_op" bool_val:false}`
	message := func(src, dst, tag, size int) string {
		return fmt.Sprintf(` attr:{name:"comm_src" int32_val:%d} attr:{name:"comm_dst" int32_val:%d} attr:{name:"comm_tag" `+
			`int32_val:%d} attr:{name:"comm_size" int64_val:%d}`, src, dst, tag, size) + gpu
	}
	collective := func(kind, size int) string {
		return fmt.Sprintf(` attr:{name:"comm_type" int64_val:%d} attr:{name:"comm_size" int64_val:%d}`, kind, size)
	}
	const root = ` attr:{name:"comm_root" int32_val:1}`
	want := `version:"1.0.0"
id:1 name:"compute" type:COMP_NODE duration_micros:1` + gpu + `
id:2 name:"send" type:COMM_SEND_NODE data_deps:1` + message(0, 1, 9, 4097) + `
id:3 name:"send" type:COMM_SEND_NODE data_deps:2` + message(0, 1, 3, 5) + `
id:4 name:"recv" type:COMM_RECV_NODE data_deps:2` + message(1, 0, 4, 0) + `
id:5 name:"compute" type:COMP_NODE data_deps:2 duration_micros:2` + gpu + `
id:6 name:"MPI_Bcast" type:COMM_COLL_NODE data_deps:5 data_deps:3 data_deps:4` + collective(5, 24) + root + gpu + `
id:7 name:"MPI_Allreduce" type:COMM_COLL_NODE data_deps:6` + collective(0, 40) + gpu + `
id:8 name:"compute" type:COMP_NODE data_deps:7 duration_micros:1` + gpu + `
`
	if d := cmp.Diff(want, nodes(t, filepath.Join(out, FirstName))); d != "" {
		t.Error(d)
	}
	want = `version:"1.0.0"
id:1 name:"recv" type:COMM_RECV_NODE` + message(0, 1, 9, 4097) + `
id:2 name:"recv" type:COMM_RECV_NODE data_deps:1` + message(0, 1, 3, 5) + `
id:3 name:"send" type:COMM_SEND_NODE data_deps:2` + message(1, 0, 4, 0) + `
id:4 name:"MPI_Bcast" type:COMM_COLL_NODE data_deps:3` + collective(5, 24) + root + gpu + `
id:5 name:"MPI_Allreduce" type:COMM_COLL_NODE data_deps:4` + collective(0, 40) + gpu + `
`
	if d := cmp.Diff(want, nodes(t, filepath.Join(out, "chakra.1.et"))); d != "" {
		t.Error(d)
	}
}

// Groups keep their names and ranks, and nonblocking collectives their waits: the run of a trace goes out and comes
// back as it was.
func TestGroupsThereAndBack(t *testing.T) {
	coll := func(id uint64, kind, size int64, group string, deps ...uint64) made {
		return made{id: id, kind: collNode, deps: deps, attrs: [][]byte{number("comm_type", kind), number("comm_size", size),
			attr("pg_name", attrString, 0, group)}}
	}
	list := func(name string, ranks string) made {
		return made{id: 1000 + uint64(len(name)), kind: metadataNode,
			inputs: fmt.Sprintf(`['[{"pg_name": %q, "pg_desc": "mesh_%s", "ranks": [%s]}]']`, name, name, ranks)}
	}
	pairs := []string{"2, 0", "1, 3", "2, 0", "1, 3"}
	var traces [][]byte
	for rank := range 4 {
		name := []string{"a", "bb"}[rank%2]
		traces = append(traces, file(list(name, pairs[rank]), coll(1, 0, 400, name), made{id: 2, kind: compNode, micros: 3},
			coll(3, 0, 96, ""), made{id: 4, kind: compNode, micros: 5, deps: []uint64{3, 2}}, coll(5, 2, 40, name, 4, 1),
			coll(6, 7, 48, "", 5)))
	}
	was, err := imported(t, Options{}, traces...)
	if err != nil {
		t.Fatal(err)
	}
	store := t.TempDir()
	in := filepath.Join(t.TempDir(), "in")
	if err := os.Mkdir(in, 0o777); err != nil {
		t.Fatal(err)
	}
	for i, b := range traces {
		if err := os.WriteFile(filepath.Join(in, fmt.Sprintf("job.%d.et", i)), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ImportPath(context.Background(), in, store, "was", Options{}); err != nil {
		t.Fatal(err)
	}
	out, notes := exported(t, filepath.Join(store, "was"))
	if len(notes) > 0 {
		t.Error(notes)
	}
	if _, err := ImportPath(context.Background(), out, store, "is", Options{}); err != nil {
		t.Fatal(err)
	}
	is := formatstest.Stored(t, filepath.Join(store, "is"))
	if d := cmp.Diff(rows(was), rows(is)); d != "" || !strings.Contains(rows(was), "comm 2 mesh_bb: 1 is 3") {
		t.Errorf("%s\n%s", d, rows(was))
	}
}

// operationsOf lists the collectives that a rank makes on each group, with what it gives and gets, and the root. Calls
// that only synchronise are left out: those that make communicators become barriers.
func operationsOf(r *formatstest.Run) map[string][]string {
	members := map[int32][]int32{}
	for i := range r.Comms {
		members[r.Comms[i].Comm] = append(members[r.Comms[i].Comm], r.Comms[i].WorldRank)
	}
	same := map[schema.CallID]schema.CallID{schema.CallAlltoallv: schema.CallAlltoall,
		schema.CallAllgatherv: schema.CallAllgather, schema.CallGatherv: schema.CallGather,
		schema.CallScatterv: schema.CallScatter, schema.CallReduceScatter: schema.CallReduceScatterBlock}
	all := map[string][]string{}
	for i := range r.Events {
		e := &r.Events[i]
		op := schema.CallID(e.Call).Operation()
		if schema.Class(e.Class) != schema.ClassCollective || op == schema.CallBarrier || len(members[e.Comm]) < 2 {
			continue
		}
		if base, ok := same[op]; ok {
			op = base
		}
		key := fmt.Sprintf("%d on %v", e.Rank, members[e.Comm])
		received := e.RecvBytes
		if op == schema.CallAlltoall || op == schema.CallReduceScatterBlock {
			received = null64 // with counts for each rank, the trace does not tell what each gets
		}
		all[key] = append(all[key], fmt.Sprintf("%s of %d and %d by %d", op, e.SendBytes, received, e.RootWorld))
	}
	return all
}

// Captured runs go out and come back with the same messages, collectives and computing.
func TestThereAndBack(t *testing.T) {
	for _, name := range []string{"is.W.16", "sp.W.4", "mg.W.16", "uneven.4", "pingpong.2"} {
		dir := filepath.Join("../../testdata/runs", name)
		out, notes := exported(t, dir)
		store := t.TempDir()
		if _, err := ImportPath(context.Background(), out, store, "run", Options{}); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		was, is := formatstest.Stored(t, dir), formatstest.Stored(t, filepath.Join(store, "run"))
		messages := func(r *formatstest.Run) (all []string) {
			for i := range r.Messages {
				m := &r.Messages[i]
				all = append(all, fmt.Sprintf("%d to %d: %d", m.Src, m.Dst, m.Bytes))
			}
			slices.Sort(all)
			return all
		}
		if d := cmp.Diff(messages(was), messages(is)); d != "" {
			t.Errorf("%s: messages: %.2000s\n%q", name, d, notes)
		}
		if d := cmp.Diff(operationsOf(was), operationsOf(is)); d != "" {
			t.Errorf("%s: collectives: %.2000s\n%q", name, d, notes)
		}
		a, b := computed(was), computed(is)
		for rank := range a {
			if rest := a[rank] - b[rank]; rest < 0 || rest >= 1000 {
				t.Errorf("%s: rank %d computes %d ns, was %d", name, rank, b[rank], a[rank])
			}
		}
	}
}

// computed returns the time that each rank computes.
func computed(r *formatstest.Run) []int64 {
	all := make([]int64, r.Ranks)
	for i := range r.Events {
		if e := &r.Events[i]; e.ComputeNs != null64 {
			all[e.Rank] += e.ComputeNs
		}
	}
	return all
}

// came exports an imported job and imports it again.
func came(t *testing.T, traces ...[]byte) (was, is *formatstest.Run, notes []string) {
	t.Helper()
	in, store := t.TempDir(), t.TempDir()
	for i, b := range traces {
		if err := os.WriteFile(filepath.Join(in, fmt.Sprintf("job.%d.et", i)), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ImportPath(context.Background(), in, store, "was", Options{}); err != nil {
		t.Fatal(err)
	}
	out, notes := exported(t, filepath.Join(store, "was"))
	if _, err := ImportPath(context.Background(), out, store, "is", Options{}); err != nil {
		t.Fatal(err)
	}
	return formatstest.Stored(t, filepath.Join(store, "was")), formatstest.Stored(t, filepath.Join(store, "is")), notes
}

// A trace that lacks what may be unknown comes back without it, and parts of different sizes with their sum: a
// broadcast and a reduction without a root, an all-reduce without a size, a gather to rank 1, to which each rank gives
// another part, and a scatter.
func TestUnknownThereAndBack(t *testing.T) {
	var traces [][]byte
	for rank := range int64(3) {
		coll := func(id uint64, attrs ...[]byte) made {
			return made{id: id, kind: collNode, deps: []uint64{id - 1}, attrs: attrs}
		}
		traces = append(traces, file(coll(2, number("comm_type", 5), number("comm_size", 1000000)),
			coll(3, number("comm_type", 1), number("comm_size", 64)), coll(4, number("comm_type", 0)),
			coll(5, number("comm_type", 3), number("comm_size", 100*rank), number(attrRoot, 1)),
			coll(6, number("comm_type", 4), number("comm_size", 10*rank), number(attrRoot, 2))))
	}
	was, is, notes := came(t, traces...)
	if d := cmp.Diff(rows(was), rows(is)); d != "" {
		t.Error(d)
	}
	want := []string{"Collectives that ASTRA-sim stops at: it has no reductions to a root, gathers, scatters and " +
		"barriers: 9.", "Collectives whose root the run does not have, written without one: 6.",
		"Collectives whose size the run does not have, written without one: 3."}
	if d := cmp.Diff(want, notes); d != "" {
		t.Error(d)
	}
	text := rows(is)
	for _, want := range []string{"0.0 Ibcast comm=0 instance=0 received=1000000",
		"0.4 Iallreduce comm=0 instance=2 done=5",
		"1.6 Igather comm=0 instance=3 sent=100 received=300", "2.8 Iscatter comm=0 instance=4 sent=30 received=20"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

// What depends on a send comes after it there and back.
func TestSendsThereAndBack(t *testing.T) {
	end := func(kind nodeType) made {
		return made{id: 1, kind: kind, attrs: [][]byte{number("comm_src", 0), number("comm_dst", 1), number("comm_size", 8)}}
	}
	after := made{id: 2, kind: compNode, deps: []uint64{1}, micros: 100}
	was, is, _ := came(t, file(end(sendNode), after), file(end(recvNode)))
	want := "0.1 Wait\n0.2 Finalize compute=100000\n"
	if d := cmp.Diff(rows(was), rows(is)); d != "" || !strings.Contains(rows(is), want) {
		t.Errorf("%s\n%s", d, rows(is))
	}
}

// Collectives of a group of all ranks keep apart from those of the world: ranks may begin them in another order.
func TestGroupOfAll(t *testing.T) {
	list := made{id: 9, kind: metadataNode, inputs: `['[{"pg_name": "4", "pg_desc": "copy", "ranks": [0, 1]}]']`}
	barrier := func(id uint64) made { return made{id: id, kind: collNode, attrs: [][]byte{number("comm_type", 9)}} }
	reduce := func(id uint64) made {
		return made{id: id, kind: collNode, attrs: [][]byte{number("comm_type", 0), number("comm_size", 4),
			attr("pg_name", attrString, 0, "4")}}
	}
	was, is, _ := came(t, file(list, barrier(1), reduce(2)), file(list, reduce(1), barrier(2)))
	if d := cmp.Diff(rows(was), rows(is)); d != "" || !strings.Contains(rows(is), "0.1 Iallreduce comm=1 instance=0") {
		t.Errorf("%s\n%s", d, rows(is))
	}
}

// A rank that waits for many operations at once before it begins many does not make each depend on each.
func TestManyDependencies(t *testing.T) {
	const n = 100
	dir := t.TempDir()
	var trace strings.Builder
	for rank := range 2 {
		fmt.Fprintf(&trace, "%d init\n", rank)
		for round := range 2 {
			for k := range n {
				fmt.Fprintf(&trace, "%d isend %d %d 8\n%d irecv %d %d 8\n", rank, 1-rank, k+n*round, rank, 1-rank, k+n*round)
			}
			fmt.Fprintf(&trace, "%d waitall %d\n", rank, 2*n)
		}
	}
	file := filepath.Join(dir, "trace.txt")
	if err := os.WriteFile(file, []byte(trace.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := tit.ImportFile(context.Background(), file, dir, "run", tit.Options{}); err != nil {
		t.Fatal(err)
	}
	out, _ := exported(t, filepath.Join(dir, "run"))
	text := nodes(t, filepath.Join(out, FirstName))
	if deps := strings.Count(text, "data_deps"); deps != 2*n+2*n {
		t.Errorf("%d dependencies; want those of a joining node and one for each operation after it", deps)
	}
	m, err := ImportPath(context.Background(), out, dir, "back", Options{})
	if err != nil || m.Counts.Messages != 4*n {
		t.Errorf("%+v, %v", m, err)
	}
}
