package kineto

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/jsonstream"
	"github.com/commq/commq/schema"
)

// executionOf is an execution trace with these nodes.
func executionOf(nodes ...string) string {
	return `{"schema":"1.1.1-chakra.0.0.4","pid":7,"time":"2026-01-02 03:04:05","start_ts":5,"nodes":[` +
		strings.Join(nodes, ",") + `],"finish_ts":9}`
}

// node is the node of a function.
func node(function int, name, values, shapes, types string) string {
	return fmt.Sprintf(`{"id":%d,"name":%q,"ctrl_deps":1,"inputs":{"values":%s,"shapes":%s,"types":%s},`+
		`"outputs":{"values":[]},"attrs":[{"name":"rf_id","type":"uint64","value":%[1]d}]}`,
		function, name, values, shapes, types)
}

// paramsNode is a node of record_param_comms on the group "7", tp, of the ranks 0 and 1, if no list has other ranks:
// with the root's or the process's number in it.
func paramsNode(function, who int, name string, elements int) string {
	return node(function, "record_param_comms", fmt.Sprintf(`[[[1,2,0,%d,4,"cuda:0"]],33,["7","tp"],%d,%q,[],[],0,1,2]`,
		elements, who, name), fmt.Sprintf(`[[[%d]]]`, elements), `["GenericList[Tensor(float)]"]`)
}

// bare is a record_param_comms of the profiler, of which only the name is known.
func bare(at, function int, name string) string {
	return fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"record_param_comms","tid":7,"ts":%d,"dur":5,"args":{`+
		`"Record function id":%d,"Collective name":%q}},`, at, function, name)
}

var times = regexp.MustCompile(` -?\d+-\d+( compute=\d+)?`)

// untimed are the rows of operations without their times, and starts those times.
func untimed(r *formatstest.Run) (rows []string, starts []int64) {
	for i := range r.Events {
		if e := &r.Events[i]; schema.CallID(e.Call) != schema.CallWait {
			rows, starts = append(rows, times.ReplaceAllString(line(e), "")), append(starts, e.StartNs)
		}
	}
	return rows, starts
}

// A rank above all that a job may have makes a group unknown, as do the other checks of ranks.
func TestRanksOfGroups(t *testing.T) {
	if got := narrow([]int64{0, importing.MostRanks - 1}); len(got) != 2 {
		t.Errorf("%v", got)
	}
	if got := narrow([]int64{0, importing.MostRanks}); got != nil {
		t.Errorf("%v", got)
	}
}

// testdata/joined.py tells what its processes do. The profiler recorded no shapes: sizes, roots, splits and the sides
// of the message are those of the execution traces, and the times those of the profiler.
func TestJoined(t *testing.T) {
	r := mustImport(t, "testdata/joined.2")
	want := strings.Split(strings.TrimSpace(`
0.0 Ibcast comm=0 instance=0 root=1 sent=0 received=28 done=1
0.2 Iallreduce comm=0 instance=1 sent=60 received=60 done=3
0.4 Ireduce comm=0 instance=2 root=1 sent=72 received=0 done=5
0.6 Ialltoallv comm=0 instance=3 sent=24 received=16 done=7
0.8 Iallgather comm=0 instance=4 sent=12 received=24 done=9
0.10 Isend comm=0 to=1 sent=44 done=11
0.12 Ibarrier comm=0 instance=5 done=13
1.0 Ibcast comm=0 instance=0 root=1 sent=28 received=0 done=1
1.2 Iallreduce comm=0 instance=1 sent=60 received=60 done=3
1.4 Ireduce comm=0 instance=2 root=1 sent=72 received=72 done=5
1.6 Ialltoallv comm=0 instance=3 sent=24 received=32 done=7
1.8 Iallgather comm=0 instance=4 sent=12 received=24 done=9
1.10 Irecv comm=0 from=0 received=44 done=11
1.12 Ibarrier comm=0 instance=5 done=13
`), "\n")
	got, starts := untimed(r)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	var parts []string
	for _, p := range r.Parts {
		parts = append(parts, fmt.Sprintf("%d to %d: %d, %d back", p.Rank, p.PeerWorld, p.SendBytes, p.RecvBytes))
	}
	if want := []string{"0 to 0: 12, 12 back", "0 to 1: 12, 4 back", "1 to 0: 4, 12 back",
		"1 to 1: 20, 20 back"}; !reflect.DeepEqual(parts, want) {
		t.Errorf("%q, want %q", parts, want)
	}
	text := strings.Join(r.Warnings, "\n")
	// Of the 14 operations the barriers have nothing to complete.
	if !strings.Contains(text, "Execution traces of 2 ranks complete the sizes, roots, splits and groups of 12 "+
		"operations;") || strings.Contains(text, "do not tell") {
		t.Error(text)
	}
	alone := t.TempDir()
	for rank := range 2 {
		copyFile(t, fmt.Sprintf("testdata/joined.2/rank-%d.json.gz", rank), alone)
	}
	without := mustImport(t, alone)
	if text := strings.Join(without.Warnings, "\n"); !strings.Contains(text,
		"Operations whose size the traces do not tell: 10.") || len(without.Messages) != 0 || len(r.Messages) != 1 {
		t.Errorf("%d messages, with execution traces %d\n%s", len(without.Messages), len(r.Messages), text)
	}
	_, bareStarts := untimed(without)
	for i, at := range bareStarts {
		if i >= 5 { // after the message, which has no row without execution traces, and its sender
			break
		}
		if at != starts[i] {
			t.Errorf("row %d starts at %d, without execution traces at %d", i, starts[i], at)
		}
	}
}

// NCCL's record_param_comms is in both traces, with the same number. The profiler may lack the group and the root.
func TestJoinedGroups(t *testing.T) {
	dir := write(t, t.TempDir(), head(0)+bare(10, 4, "broadcast")+bare(30, 6, "allreduce")+end,
		head(1)+bare(10, 5, "broadcast")+bare(30, 7, "allreduce")+end)
	groups := node(1, "## process_group:init ##", `["[{\"pg_name\": \"7\", \"pg_desc\": \"tp\", \"ranks\": [1, 0], `+
		`\"group_size\": 2}]"]`, `[[]]`, `["String"]`)
	writeAs(t, dir, "et-0.json", executionOf(groups, paramsNode(4, 1, "broadcast", 9), paramsNode(6, 1, "allreduce", 100)))
	writeAs(t, dir, "et-1.json", executionOf(groups, paramsNode(5, 1, "broadcast", 9), paramsNode(7, 0, "allreduce", 100)))
	r := mustImport(t, dir)
	// Number 1 of the group, the broadcast's root, is rank 0: so the nodes tell the ranks of the processes, too.
	want := []string{
		"0.0 Ibcast comm=1 instance=0 root=0 sent=36 received=0 done=1",
		"0.2 Iallreduce comm=1 instance=1 sent=400 received=400 done=3",
		"1.0 Ibcast comm=1 instance=0 root=0 sent=0 received=36 done=1",
		"1.2 Iallreduce comm=1 instance=1 sent=400 received=400 done=3",
	}
	if got, _ := untimed(r); !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwant\n%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), strings.Join(r.Warnings, "\n"))
	}
}

// Without numbers of functions the n-th operation of the one trace is the n-th of the other.
func TestJoinedInOrder(t *testing.T) {
	marked := func(at int, name string) string {
		return fmt.Sprintf(`{"ph":"X","cat":"user_annotation","name":"nccl:%s","tid":7,"ts":%d,"dur":5,"args":{}},`, name, at)
	}
	exchange := node(5, "record_param_comms", `[[[1,2,0,3,4,"cuda:0"]],34,["7","tp"],0,"all_to_allv",[1,2],[3,0],0,1,2]`,
		`[[[3]]]`, `["GenericList[Tensor(float)]"]`)
	dir := write(t, t.TempDir(), head(0)+marked(30, "all_to_all")+marked(10, "all_reduce")+end)
	writeAs(t, dir, "et-0.json", executionOf(exchange, paramsNode(4, 0, "allreduce", 100)))
	r := mustImport(t, dir)
	want := []string{"0.0 Iallreduce comm=1 instance=0 sent=400 received=400 done=1",
		"0.2 Ialltoallv comm=1 instance=1 sent=12 done=3"}
	if got, _ := untimed(r); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q\n%s", got, want, strings.Join(r.Warnings, "\n"))
	}
	dir = write(t, t.TempDir(), head(0)+marked(10, "all_gather")+end)
	writeAs(t, dir, "et-0.json", executionOf(paramsNode(4, 0, "allreduce", 100)))
	if text := strings.Join(mustImport(t, dir).Warnings, "\n"); !strings.Contains(text,
		"an operation is MPI_Iallreduce (100 elements) there, and MPI_Iallgather (size unknown) for the profiler.") {
		t.Error(text)
	}
	dir = write(t, t.TempDir(), head(0)+marked(10, "all_reduce")+end)
	writeAs(t, dir, "et-0.json", executionOf(exchange, paramsNode(4, 0, "allreduce", 100)))
	if text := strings.Join(mustImport(t, dir).Warnings, "\n"); !strings.Contains(text,
		"et-0.json does not belong to rank-0.json, and is not used: it has 2 operations, and the profiler 1.") {
		t.Error(text)
	}
}

// An execution trace that contradicts the profiler, or whose rank has no other trace, is not used, and the import says
// so.
func TestNotJoined(t *testing.T) {
	trace := head(0) + asked(10, 1, `"Record function id":4,`+allreduce) + end
	for _, c := range []struct{ name, execution, want string }{
		{"et-0.json", executionOf(paramsNode(4, 0, "allreduce", 999)),
			"et-0.json does not belong to rank-0.json, and is not used: function 4 is MPI_Iallreduce (999 elements) there, " +
				"and MPI_Iallreduce (1000 elements) for the profiler."},
		{"et-0.json", executionOf(paramsNode(4, 0, "all_gather", 1000)),
			"function 4 is MPI_Iallgather (1000 elements) there"},
		{"et-0.json", executionOf(paramsNode(5, 0, "allreduce", 1000)),
			"none of its functions has the number of one that the profiler saw communicate."},
		{"et-1.json", executionOf(paramsNode(4, 1, "allreduce", 1000)),
			"Execution traces of ranks that have no trace of the profiler, which are not used: 1."},
	} {
		dir := write(t, t.TempDir(), trace)
		writeAs(t, dir, c.name, c.execution)
		r := mustImport(t, dir)
		want := []string{"0.0 Iallreduce comm=0 instance=0 sent=2000 received=2000 done=1"}
		if got, _ := untimed(r); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", c.want, got, want)
		}
		if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text, c.want) {
			t.Errorf("%s, want %s", text, c.want)
		}
	}
}

// attributes are the attributes of an operation of record_param_comms, of schema 1.1.
func attributes(in, out int, kind string) string {
	return fmt.Sprintf(`"attrs":[{"name":"in_msg_nelems","type":"uint64","value":%d},`+
		`{"name":"out_msg_nelems","type":"uint64","value":%d},{"name":"dtype","type":"string","value":%q},`, in, out, kind)
}

// function is a call of the profiler with the number of a function.
func function(at, number int, name, args string) string {
	return fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":%q,"tid":7,"ts":%d,"dur":5,"args":{"Record function id":%d%s}},`,
		name, at, number, args)
}

// What both traces know must be the same: what a process gets, the type, the root, and the other side of a message.
func TestContradictions(t *testing.T) {
	one := `,"Concrete Inputs":["","","1","0"],"Input Dims":[[[9]]],"Input type":["TensorList"]`
	zero := func(name string) string {
		return node(3, name, `[[[1,2,0,9,4,"cpu"]],"<Object>",0,0]`, `[[[9]],[],[],[]]`,
			`["GenericList[Tensor(float)]","Object","Int","Int"]`)
	}
	for _, c := range []struct{ trace, node, want string }{
		{asked(10, 1, `"Record function id":4,"Collective name":"all_gather","dtype":"Float","In msg nelems":1000,`+
			`"Out msg nelems":2000`),
			strings.Replace(paramsNode(4, 0, "all_gather", 1000), `"attrs":[`, attributes(1000, 8000, "Float"), 1),
			"function 4 is MPI_Iallgather (1000 elements, 8000 received) there, and MPI_Iallgather (1000 elements, 2000 " +
				"received) for the profiler."},
		{asked(10, 1, `"Record function id":4,"Collective name":"allreduce","dtype":"Double","In msg nelems":9,`+
			`"Out msg nelems":9`), paramsNode(4, 0, "allreduce", 9),
			"function 4 is MPI_Iallreduce of float there, and MPI_Iallreduce of double for the profiler."},
		{function(10, 3, "c10d::broadcast_", one), zero("c10d::broadcast_"),
			"function 3 is MPI_Ibcast with root 0 there, and MPI_Ibcast with root 1 for the profiler."},
		{function(10, 3, "c10d::send", one), zero("c10d::send"),
			"function 3 is MPI_Isend with rank 0 there, and MPI_Isend with rank 1 for the profiler."},
	} {
		dir := write(t, t.TempDir(), head(0)+c.trace+end)
		writeAs(t, dir, "et-0.json", executionOf(c.node))
		text := strings.Join(mustImport(t, dir).Warnings, "\n")
		if !strings.Contains(text, "et-0.json does not belong to rank-0.json, and is not used: "+c.want) ||
			strings.Contains(text, "complete") {
			t.Errorf("%s, want %s", text, c.want)
		}
		same := strings.NewReplacer(`"value":8000`, `"value":2000`, "Tensor(float)", "Tensor(double)", `"<Object>",0,0`,
			`"<Object>",1,0`).Replace(c.node)
		writeAs(t, dir, "et-0.json", executionOf(same))
		if text := strings.Join(mustImport(t, dir).Warnings, "\n"); strings.Contains(text, "does not belong") {
			t.Error(text)
		}
	}
}

// Sizes and type are of one of the traces, and no size that is known gets lost.
func TestSizesAndTypeOfOneTrace(t *testing.T) {
	for _, c := range []struct{ call, other, want hostCall }{
		{hostCall{in: -1, out: -1}, hostCall{in: 3, out: 6, kind: "float"}, hostCall{in: 3, out: 6, kind: "float"}},
		{hostCall{in: -1, out: 6, kind: "float"}, hostCall{in: 3, out: 6, kind: "float"},
			hostCall{in: 3, out: 6, kind: "float"}},
		{hostCall{in: 3, out: -1}, hostCall{in: 3, out: -1, kind: "float"}, hostCall{in: 3, out: -1, kind: "float"}},
		{hostCall{in: 6, out: -1, kind: "long"}, hostCall{in: 3, out: 6, kind: "float"},
			hostCall{in: 3, out: 6, kind: "float"}},
		{hostCall{in: -1, out: -1, kind: "long"}, hostCall{in: 3, out: 6}, hostCall{in: -1, out: -1, kind: "long"}},
		{hostCall{in: 3, out: 6}, hostCall{in: 3, out: -1, kind: "long"}, hostCall{in: 3, out: 6}},
		{hostCall{in: 3, out: -1}, hostCall{in: -1, out: 6, kind: "long"}, hostCall{in: 3, out: -1}},
		{hostCall{in: 3, out: 6, kind: "long"}, hostCall{in: 9, out: 9, kind: "float"},
			hostCall{in: 3, out: 6, kind: "long"}},
	} {
		got := c.call
		added := got.add(&c.other)
		if !reflect.DeepEqual(got, c.want) || added == reflect.DeepEqual(c.call, c.want) {
			t.Errorf("%+v with %+v gave %+v, %v", c.call, c.other, got, added)
		}
	}
}

// The shapes of reduce_scatter_ begin with what the process gets: the profiler takes it for what it gives, and the
// execution trace knows both.
func TestJoinedShapes(t *testing.T) {
	dir := write(t, t.TempDir(),
		head(0)+function(10, 3, "c10d::reduce_scatter_",
			`,"Input Dims":[[[3]],[[[3],[3]]]],"Input type":["TensorList",""]`)+
			strings.Replace(function(11, 4, "gloo:reduce_scatter", ""), "cpu_op", "user_annotation", 1)+end)
	writeAs(t, dir, "et-0.json", executionOf(node(3, "c10d::reduce_scatter_", `[[],[]]`, `[[[3]],[[[3],[3]]]]`,
		`["GenericList[Tensor(float)]","GenericList[GenericList[Tensor(float),Tensor(float)]]"]`)))
	r := mustImport(t, dir)
	want := []string{"0.0 Ireduce_scatter_block comm=0 instance=0 sent=24 received=12 done=1"}
	if got, _ := untimed(r); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q\n%s", got, want, strings.Join(r.Warnings, "\n"))
	}
	if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text, "Execution traces of 1 ranks complete") ||
		!strings.Contains(text, "of 1 operations;") {
		t.Error(text)
	}
}

// An annotation of which no trace tells the size has that of the call of c10d around it, as the execution trace has it.
// One that has it from the profiler is not completed, though the execution trace completed the call around it.
func TestJoinedAround(t *testing.T) {
	for args, completes := range map[string]bool{"": true, `,"Input Dims":[[5,3]],"Input type":["float"]`: false} {
		dir := write(t, t.TempDir(), head(0)+function(10, 3, "c10d::allreduce_", "")+
			strings.Replace(function(11, 4, "gloo:all_reduce", args), "cpu_op", "user_annotation", 1)+end)
		writeAs(t, dir, "et-0.json", executionOf(node(3, "c10d::allreduce_", `[[]]`, `[[[5,3]]]`,
			`["GenericList[Tensor(float)]"]`)))
		r := mustImport(t, dir)
		want := []string{"0.0 Iallreduce comm=0 instance=0 sent=60 received=60 done=1"}
		if got, _ := untimed(r); !reflect.DeepEqual(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
		if text := strings.Join(r.Warnings, "\n"); strings.Contains(text, "complete") != completes {
			t.Errorf("%q: %s", args, text)
		}
	}
}

// The execution trace may be the only one that lists groups: operations that name none are on the only one. The group
// that the profiler names stays, and an execution trace that has nothing to add is not said to complete anything.
func TestGroupsOfExecutionTraces(t *testing.T) {
	listed := node(1, "## process_group:init ##", `["[{\"pg_name\": \"5\", \"pg_desc\": \"pair\", \"ranks\": [0, 2], `+
		`\"group_size\": 2}]"]`, `[[]]`, `["String"]`)
	dir := write(t, t.TempDir(), `{"schemaVersion":1,"distributedInfo":{"rank":0,"world_size":3},"traceEvents":[`+
		bare(10, 4, "allreduce")+end)
	writeAs(t, dir, "et-0.json", executionOf(listed, node(4, "c10d::allreduce_", `[[]]`, `[[[5,3]]]`,
		`["GenericList[Tensor(float)]"]`)))
	r := mustImport(t, dir)
	want := []string{"0.0 Iallreduce comm=1 instance=0 sent=60 received=60 done=1"}
	if got, _ := untimed(r); !reflect.DeepEqual(got, want) || r.Comms[len(r.Comms)-1].Name != "pair" {
		t.Errorf("%q, want %q\n%s", got, want, strings.Join(r.Warnings, "\n"))
	}
	dir = write(t, t.TempDir(), head(0)+asked(10, 1, `"Record function id":4,`+allreduce)+end)
	writeAs(t, dir, "et-0.json", executionOf(listed, strings.Replace(paramsNode(4, 0, "allreduce", 1000), "Tensor(float)",
		"Tensor(c10::BFloat16)", 1)))
	r = mustImport(t, dir)
	want = []string{"0.0 Iallreduce comm=0 instance=0 sent=2000 received=2000 done=1"}
	text := strings.Join(r.Warnings, "\n")
	if got, _ := untimed(r); !reflect.DeepEqual(got, want) || strings.Contains(text, "xecution") {
		t.Errorf("%q, want %q\n%s", got, want, text)
	}
}

// The rank that the nodes tell counts before that in the name of the file.
func TestRankOfExecutionTrace(t *testing.T) {
	dir := write(t, t.TempDir(), head(0)+bare(10, 4, "allreduce")+end, head(1)+bare(10, 4, "allreduce")+end)
	writeAs(t, dir, "et-1.json", executionOf(paramsNode(4, 0, "allreduce", 3)))
	writeAs(t, dir, "et-0.json", executionOf(node(4, "record_param_comms", `[[[1,2,0,5,4,"cuda:0"]],33,["9","pp"],0,`+
		`"allreduce",[],[],1,1,1]`, `[[[5]]]`, `["GenericList[Tensor(float)]"]`)))
	r := mustImport(t, dir)
	want := []string{"0.0 Iallreduce comm=1 instance=0 sent=12 received=12 done=1",
		"1.0 Iallreduce comm=2 instance=0 sent=20 received=20 done=1"}
	if got, _ := untimed(r); !reflect.DeepEqual(got, want) {
		t.Errorf("%q, want %q\n%s", got, want, strings.Join(r.Warnings, "\n"))
	}
}

// Execution traces whose rank is not clear are errors that name the file.
func TestUnclearExecutionTraces(t *testing.T) {
	barrier := executionOf(node(3, "c10d::barrier", `[]`, `[]`, `[]`))
	ofRank0 := executionOf(paramsNode(4, 0, "allreduce", 3))
	for _, c := range []struct {
		names []string
		text  string
		want  string
	}{
		{[]string{"et.json"}, barrier, "et.json: neither its nodes nor its name tell the rank of this execution trace"},
		{[]string{"a-0.json", "b-0.json"}, barrier, "b-0.json are execution traces of rank 0; want one of each rank"},
		{[]string{"et-0.json", "et-1.json"}, ofRank0, "et-1.json are execution traces of rank 0; want one of each rank"},
	} {
		dir := write(t, t.TempDir(), head(0)+end)
		for _, name := range c.names {
			writeAs(t, dir, name, c.text)
		}
		_, err := imported(t, dir)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Base(dir)) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// With the execution trace of one rank only, its operations alone have sizes, and both ranks made the same.
func TestSomeExecutionTraces(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"rank-0", "rank-1", "et-0"} {
		copyFile(t, "testdata/joined.2/"+name+".json.gz", dir)
	}
	r := mustImport(t, dir)
	text := strings.Join(r.Warnings, "\n")
	if r.Ended != "finalized" || !strings.Contains(text, "Execution traces of 1 ranks complete") ||
		!strings.Contains(text, "Operations whose size the traces do not tell: 5.") {
		t.Errorf("%s: %s", r.Ended, text)
	}
	for _, e := range r.Events {
		if e.Class == int16(schema.ClassCollective) && e.Instance == 3 && e.Call != int16(schema.CallIalltoallv) {
			t.Errorf("rank %d: the uneven exchange is %s", e.Rank, schema.CallID(e.Call))
		}
	}
}

var ofMessage = regexp.MustCompile(`send|recv`)

// readText returns a file of testdata/joined.2 as text.
func readText(t *testing.T, name string) string {
	t.Helper()
	f, err := jsonstream.Open("testdata/joined.2/" + name + ".json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withoutMessage returns a file of testdata/joined.2 without the message in its list.
func withoutMessage(t *testing.T, name, list string) string {
	t.Helper()
	var all map[string]any
	if err := json.Unmarshal([]byte(readText(t, name)), &all); err != nil {
		t.Fatal(err)
	}
	all[list] = slices.DeleteFunc(all[list].([]any), func(e any) bool {
		name, _ := e.(map[string]any)["name"].(string)
		return ofMessage.MatchString(name)
	})
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Execution traces that are exchanged are noticed, though the processes made the same operations: they are of other
// processes than the profiler's traces. Without that number only the message tells, which one sent and one received.
func TestExchangedExecutionTraces(t *testing.T) {
	dir := t.TempDir()
	for rank := range 2 {
		own, other := fmt.Sprintf("rank-%d", rank), fmt.Sprintf("et-%d", 1-rank)
		writeAs(t, dir, own+".json", withoutMessage(t, own, "traceEvents"))
		writeAs(t, dir, fmt.Sprintf("et-%d.json", rank), withoutMessage(t, other, "nodes"))
	}
	r := mustImport(t, dir)
	text := strings.Join(r.Warnings, "\n")
	for rank, pid := range []int{16699, 16698} {
		want := fmt.Sprintf("et-%d.json does not belong to rank-%[1]d.json, and is not used: it is of process %d, and the "+
			"profiler's of process %d.", rank, pid, 16698+rank)
		if !strings.Contains(text, want) {
			t.Errorf("%s, want %s", text, want)
		}
	}
	if strings.Contains(text, "complete") {
		t.Error(text)
	}
	for _, e := range r.Events {
		if e.RecvBytes > 0 {
			t.Errorf("rank %d: %s received %d B", e.Rank, schema.CallID(e.Call), e.RecvBytes)
		}
	}
	dir = t.TempDir()
	copyFile(t, "testdata/joined.2/rank-0.json.gz", dir)
	writeAs(t, dir, "et-0.json", strings.Replace(readText(t, "et-1"), `"pid": 16699`, `"pid": null`, 1))
	want := "MPI_Irecv (11 elements) there, and MPI_Isend (size unknown) for the profiler."
	if text := strings.Join(mustImport(t, dir).Warnings, "\n"); !strings.Contains(text, want) {
		t.Errorf("%s, want %s", text, want)
	}
}
