package exectrace

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// imported imports traces as a run that breaks no rule.
func imported(t testing.TB, path string) (*formatstest.Run, error) {
	t.Helper()
	return formatstest.Import(t, func(k *formatstest.Memory) (*schema.Manifest, error) {
		ranks, how, err := load(context.Background(), path, nil)
		if err != nil {
			return nil, err
		}
		return training.Collect(context.Background(), ranks, k.Write, how)
	})
}

func mustImport(t testing.TB, path string) *formatstest.Run {
	t.Helper()
	r, err := imported(t, path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// write writes traces as the files of a folder: trace-0.json and on.
func write(t testing.TB, traces ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range traces {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("trace-%d.json", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func traceOf(schema string, nodes ...string) string {
	return fmt.Sprintf(`{"schema":%q,"pid":7,"time":"2026-01-02 03:04:05","start_ts":5,"nodes":[%s],"finish_ts":9}`, schema,
		strings.Join(nodes, ","))
}

// listed is the node of schema 1.1 that lists groups.
const listed = `{"id":4,"name":"## process_group:init ##","ctrl_deps":3,"inputs":{"values":["[{\"pg_name\": \"0\", ` +
	`\"pg_desc\": \"default_pg\", \"ranks\": [], \"group_size\": 2}, {\"pg_name\": \"3\", \"pg_desc\": \"tp\", ` +
	`\"ranks\": [1], \"group_size\": 1}]"],"shapes":[[]],"types":["String"]},"outputs":{},"attrs":[]}`

// params is record_param_comms of schema 1.1.
func params(id, number int, pg, desc string, who int, name, dtype string, in, out int, splits string) string {
	return fmt.Sprintf(`{"id":%d,"name":"record_param_comms","ctrl_deps":3,"inputs":{"values":[[[1,2,0,9,4,"cuda:1"]],%d,[%q,%q],%d,%q,`+
		`%s,%s,0,1,2],"shapes":[[[9]]],"types":["GenericList[Tensor(float)]"]},"outputs":{"values":[],"shapes":[],"types":[]},"attrs":[`+
		`{"name":"rf_id","type":"uint64","value":1},{"name":"dtype","type":"string","value":%q},{"name":"in_msg_nelems","type":"uint64",`+
		`"value":%d},{"name":"out_msg_nelems","type":"uint64","value":%d}]}`, id, number, pg, desc, who, name, splits, splits, dtype, in, out)
}

func wait(id, number, rank int) string {
	return fmt.Sprintf(`{"id":%d,"name":"record_param_comms","ctrl_deps":3,"inputs":{"values":[%d,["",""],%d,"wait",[],[],-1,-1,1],`+
		`"shapes":[],"types":[]},"outputs":{"values":[],"shapes":[],"types":[]},"attrs":[]}`, id, number, rank)
}

func wantRows(t *testing.T, r *formatstest.Run, want string) {
	t.Helper()
	var got []string
	for i := range r.Events {
		got = append(got, rowText(&r.Events[i]))
	}
	if got, want := strings.Join(got, "\n"), strings.TrimSpace(want); got != want {
		t.Errorf("got\n%s\nwant\n%s\n%s", got, want, strings.Join(r.Warnings, "\n"))
	}
}

func rowText(e *schema.Event) string {
	words := []string{fmt.Sprintf("%d", e.Rank), strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_")}
	say := func(name string, v, null int64) {
		if v != null {
			words = append(words, fmt.Sprint(name, "=", v))
		}
	}
	say("start", e.StartNs, schema.NullInt64)
	say("compute", e.ComputeNs, schema.NullInt64)
	say("comm", int64(e.Comm), int64(schema.NullInt32))
	say("instance", e.Instance, schema.NullInt64)
	say("to", int64(e.SendWorld), int64(schema.NullInt32))
	say("from", int64(e.RecvWorld), int64(schema.NullInt32))
	say("root", int64(e.RootWorld), int64(schema.NullInt32))
	say("count", e.SendCount, schema.NullInt64)
	say("sent", e.SendBytes, schema.NullInt64)
	say("received", e.RecvBytes, schema.NullInt64)
	say("request", e.Request, schema.NullInt64)
	return strings.Join(words, " ")
}

// Nodes are in a file in the order in which they ended. Rank 1 is the root of the broadcast; the wait for 34 stands
// before the send, that for 33 at the end, as no node tells it; nothing waits for the messages.
func TestSchema11(t *testing.T) {
	both := func(rank int, message string) string {
		return traceOf("1.1.0-chakra.0.0.4", listed, params(20, 34, "0", "default_pg", rank, "all_reduce", "Float", 9, 9, "[]"),
			params(10, 33, "0", "default_pg", 1, "broadcast", "Long", 53, 53, "[]"), wait(25, 34, rank), message)
	}
	r := mustImport(t, write(t,
		both(0, params(30, 1, "0", "default_pg", 1, "send", "Half", 100, 100, "[]")),
		both(1, params(30, 1, "0", "default_pg", 0, "recv", "Half", 100, 100, "[]"))))
	wantRows(t, r, `
0 Ibcast comm=0 instance=0 root=1 sent=0 received=424 request=1
0 Iallreduce comm=0 instance=1 count=9 sent=36 received=36 request=2
0 Wait request=2
0 Isend comm=0 to=1 count=100 sent=200 request=3
0 Wait request=1
0 Wait request=3
1 Ibcast comm=0 instance=0 root=1 count=53 sent=424 received=0 request=1
1 Iallreduce comm=0 instance=1 count=9 sent=36 received=36 request=2
1 Wait request=2
1 Irecv comm=0 from=0 received=200 request=3
1 Wait request=1
1 Wait request=3`)
	if r.TimeOrigin != "untimed" || r.EndNs != 0 || len(r.Messages) != 1 || r.Messages[0].Bytes != 200 || r.Ended != "finalized" {
		t.Errorf("%s, %d, %+v, %s", r.TimeOrigin, r.EndNs, r.Messages, r.Ended)
	}
	if r.Comms[0].Name != "default_pg" || !slices.ContainsFunc(r.Comms, func(c schema.Comm) bool { return c.Name == "tp" }) {
		t.Errorf("%+v", r.Comms)
	}
}

// Schema 1.0.1 has an address as group, no sizes but shapes, and splits as numbers.
func TestSchema101(t *testing.T) {
	rank := func(own int, in, out string) string {
		return traceOf("1.0.1", fmt.Sprintf(`{"name":"record_param_comms","id":7,"inputs":[[1,2,0,6,4,"cuda:0"],147,9400%d,%d,"all_to_allv",%s,%s],`+
			`"input_shapes":[[6],[],[],[],[],[[],[]],[[],[]]],"input_types":["Tensor(float)","Int"],"outputs":[[3,4,0,6,4,"cuda:0"]],`+
			`"output_shapes":[[%s]],"output_types":["Tensor(float)"]}`, own, own, in, out, strings.ReplaceAll(strings.Trim(out, "[]"), "2, 1", "3")),
			fmt.Sprintf(`{"name":"record_param_comms","id":9,"inputs":[147,0,%d,"wait",[],[]],"input_shapes":[],"input_types":[],"outputs":[]}`, own))
	}
	r := mustImport(t, write(t, rank(1, "[2, 4]", "[2, 1]"), rank(0, "[5, 1]", "[2, 1]")))
	// By the nodes the first file is of rank 1.
	wantRows(t, r, `
0 Ialltoallv comm=0 instance=0 count=6 sent=24 received=12 request=1
0 Wait request=1
1 Ialltoallv comm=0 instance=0 count=6 sent=24 received=12 request=1
1 Wait request=1`)
	if len(r.Parts) != 4 || r.Parts[0].SendBytes != 20 || r.Parts[0].RecvBytes != 8 {
		t.Errorf("%+v", r.Parts)
	}
}

// A rank in a group is not the rank of the process: number 0 of the group of 1 and 3 is rank 1. Where the ranks of
// groups are unknown and the numbers in them equal, the file's name tells the rank.
func TestRankByGroup(t *testing.T) {
	reduced := params(20, 34, "3", "tp", 0, "all_reduce", "Float", 9, 9, "[]")
	inGroup := func(ranks string) string {
		return traceOf("1.1.0", strings.Replace(listed, `[1], \"group_size\": 1`, ranks+`, \"group_size\": 2`, 1), reduced)
	}
	a, b := inGroup("[1, 3]"), inGroup("[0, 2]")
	unknown := traceOf("1.1.0", strings.Replace(reduced, ",0,1,2]", ",-1,-1,2]", 1))
	for _, c := range []struct {
		traces []string
		want   []int32
	}{
		{[]string{a, b}, []int32{1, 0}},
		{[]string{unknown, unknown}, []int32{0, 1}},
	} {
		ranks, _, err := load(context.Background(), write(t, c.traces...), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, r := range ranks {
			if r.Rank != c.want[i] {
				t.Errorf("%s is of rank %d, want %d", filepath.Base(r.File), r.Rank, c.want[i])
			}
		}
	}
}

// A rank that no job has is an error, also where its number would not fit.
func TestRankBeyond(t *testing.T) {
	far := strings.Replace(params(20, 34, "7", "pair", 1999, "all_reduce", "Float", 9, 9, "[]"), ",0,1,2]",
		",4194304,4194304,2000]", 1)
	_, err := imported(t, write(t, traceOf("1.1.0", far)))
	if err == nil || !strings.Contains(err.Error(), "want less than") {
		t.Error(err)
	}
}

// Lists of lists of tensors count; deeper ones are no tensors, which bounds the time that damaged input takes.
func TestCount(t *testing.T) {
	for text, want := range map[string]int64{"[3]": 3, "[3,4]": 12, "[]": 1, "[[3],[4,2]]": 11, "[[[3],[3]]]": 6,
		"[[[[2]]]]": 2, "[[[[[2]]]]]": training.Unknown, "[-1]": training.Unknown, "7": training.Unknown,
		strings.Repeat("[", 9000) + strings.Repeat("]", 9000): training.Unknown} {
		if got := count([]byte(text), mostNesting); got != want {
			t.Errorf("%.20s: %d, want %d", text, got, want)
		}
	}
}

// A rank other than the root has a list without tensors, which looks as a tensor without dimensions does.
func TestEmptyList(t *testing.T) {
	for types, want := range map[string]int64{`"GenericList[]"`: training.Unknown, `"Tensor(float)"`: 1, ``: 1} {
		v := values{Shapes: []json.RawMessage{[]byte("[]")}}
		if err := json.Unmarshal([]byte("["+types+"]"), &v.Types); err != nil {
			t.Fatal(err)
		}
		if got := v.firstCount(); got != want {
			t.Errorf("%s: %d, want %d", types, got, want)
		}
	}
}

// A node that is damaged is an error with its place; a node that communicates nothing is left out.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		traceOf("1.1.0", `{"id":"x"}`): "byte",
		"{":                            "unexpected EOF",
		`{"schema":"1","nodes":5}`:     "where [ is due",
	} {
		file := filepath.Join(t.TempDir(), "a.json")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := imported(t, file)
		if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gave %v, want %s", text, err, want)
		}
	}
	r := mustImport(t, write(t, traceOf("1.1.0", params(3, 1, "0", "d", 0, "_broadcast_oop_later", "Float", 1, 1, "[]"), `{"id":1,"name":"aten::add"}`)))
	if len(r.Events) != 0 {
		t.Errorf("%+v", r.Events)
	}
	if _, err := find(t.TempDir()); err == nil {
		t.Error("an empty folder has traces")
	}
}

func FuzzImport(f *testing.F) {
	f.Add(traceOf("1.1.0-chakra.0.0.4", listed, params(20, 34, "0", "default_pg", 0, "all_reduce", "Float", 9, 9, "[]"), wait(25, 34, 0)),
		traceOf("1.1.0-chakra.0.0.4", listed, params(20, 34, "0", "default_pg", 1, "all_reduce", "Float", 9, 9, "[]"), wait(25, 34, 1)))
	f.Add(traceOf("1.1.0", params(30, 1, "0", "d", 1, "send", "Half", 100, 100, "[]")),
		traceOf("1.1.0", params(30, 1, "0", "d", 0, "recv", "Half", 100, 100, "[]")))
	f.Add(traceOf("1.0.3", params(30, 1, "0", "d", 1, "all_to_allv", "Half", 4, 4, "[1,3]")),
		`{"schema":"1.0.1","pid":1,"nodes":[{"name":"record_param_comms","id":7,"inputs":[[1,2],147,94,0,"all_gather",[],[]],`+
			`"input_shapes":[[[6],[2]]],"input_types":["GenericList[Tensor(float)]"],"outputs":[[3]],"output_shapes":[[6]]}]}`)
	f.Add(formatstest.Gzip(f, traceOf("1.1.0", params(30, 1, "0", "d", 1, "send", "Half", 100, 100, "[]"))),
		formatstest.Gzip(f, traceOf("1.1.0", params(30, 1, "0", "d", 0, "recv", "Half", 100, 100, "[]"))))
	f.Fuzz(func(t *testing.T, a, b string) {
		dir := write(t, a, b)
		ranks, _, err := load(context.Background(), dir, nil)
		if err == nil && slices.ContainsFunc(ranks, func(r *training.Rank) bool { return max(r.World, r.Rank) > 1<<12 }) {
			return // a test has no memory for so many
		}
		_, _ = imported(t, dir)
	})
}

// Traces of Gloo have no record_param_comms: the calls of c10d are the operations, on the only group that is listed.
func TestGloo(t *testing.T) {
	r := mustImport(t, "../kineto/testdata/joined.2")
	var got []string
	for i := range r.Events {
		if e := &r.Events[i]; e.Rank == 1 && schema.CallID(e.Call) != schema.CallWait {
			got = append(got, rowText(e))
		}
	}
	want := []string{
		"1 Ibcast comm=0 instance=0 root=1 count=7 sent=28 received=0 request=1",
		"1 Iallreduce comm=0 instance=1 count=15 sent=60 received=60 request=2",
		"1 Ireduce comm=0 instance=2 root=1 count=9 sent=72 received=72 request=3",
		"1 Ialltoallv comm=0 instance=3 count=6 sent=24 received=32 request=4",
		"1 Iallgather comm=0 instance=4 count=3 sent=12 received=24 request=5",
		"1 Irecv comm=0 from=0 received=44 request=6",
		"1 Ibarrier comm=0 instance=5 request=7",
	}
	if !slices.Equal(got, want) || r.TimeOrigin != "untimed" {
		t.Errorf("%s: %s\nwant\n%s", r.TimeOrigin, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Groups with more members than any job has are an error, not a matter of memory.
func TestTooManyMembers(t *testing.T) {
	var groups, calls []string
	for i := range 5 {
		groups = append(groups, fmt.Sprintf(`{\"pg_name\": \"g%d\", \"ranks\": [], \"group_size\": 4194304}`, i))
		calls = append(calls, fmt.Sprintf(`{"id":%d,"name":"record_param_comms","inputs":{"values":[[],1,["g%d",""],0,`+
			`"all_reduce",[],[],0,1,4194304],"shapes":[],"types":[]}}`, 20+i, i))
	}
	list := `{"id":4,"name":"## process_group:init ##","inputs":{"values":["[` + strings.Join(groups, ",") +
		`]"],"shapes":[[]],"types":["String"]}}`
	for want, nodes := range map[string][]string{"node 4 (## process_group:init ##)": {list},
		"node 24 (record_param_comms)": calls} {
		_, err := imported(t, write(t, traceOf("1.1.0-chakra.0.0.4", nodes...)))
		want += `: group "g4": the groups of the process have more than 16777216 members together`
		if err == nil || !strings.Contains(err.Error(), "trace-0.json: byte ") || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
