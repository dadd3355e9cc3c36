package kineto

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
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

// line is a row as text: its call, where, and what is not null of its data.
func line(e *schema.Event) string {
	words := []string{fmt.Sprintf("%d.%d", e.Rank, e.Seq), strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_"),
		fmt.Sprintf("%d-%d", e.StartNs, e.EndNs)}
	say := func(name string, v, null int64) {
		if v != null {
			words = append(words, fmt.Sprint(name, "=", v))
		}
	}
	say("thread", int64(e.Thread), 0)
	say("compute", e.ComputeNs, 0)
	say("comm", int64(e.Comm), int64(schema.NullInt32))
	say("instance", e.Instance, schema.NullInt64)
	say("to", int64(e.SendWorld), int64(schema.NullInt32))
	say("from", int64(e.RecvWorld), int64(schema.NullInt32))
	say("root", int64(e.RootWorld), int64(schema.NullInt32))
	say("sent", e.SendBytes, schema.NullInt64)
	say("received", e.RecvBytes, schema.NullInt64)
	say("done", e.DoneSeq, schema.NullInt64)
	if e.Label != schema.NullText {
		words = append(words, e.Label)
	}
	return strings.Join(words, " ")
}

func lines(r *formatstest.Run) (all []string) {
	for i := range r.Events {
		all = append(all, line(&r.Events[i]))
	}
	return all
}

// The traces of testdata/train.py have the collectives that its arithmetic says, on the groups that it made.
func TestTrainingOnGloo(t *testing.T) {
	const steps, activations, gradients = 3, 32 * 64 * 4, 64 * 32 * 4
	type key struct {
		comm string
		call schema.CallID
	}
	for _, c := range []struct {
		path string
		want map[key][2]int64 // calls and bytes sent, of a rank other than the root
		all  int64            // operations
	}{
		// The tensor parallel group of 2 processes is the default one, and the data parallel groups have a process
		// each.
		{"testdata/gloo.2", map[key][2]int64{{"default_pg", schema.CallIbcast}: {steps, 0},
			{"default_pg", schema.CallIallreduce}: {steps, steps * activations},
			{"mesh_dp", schema.CallIallreduce}:    {2 * steps, 2 * steps * gradients}}, steps * (1 + 1 + 2*2)},
		{"testdata/gloo.4", map[key][2]int64{{"default_pg", schema.CallIbcast}: {steps, 0},
			{"mesh_tp", schema.CallIallreduce}: {steps, steps * activations},
			{"mesh_dp", schema.CallIallreduce}: {2 * steps, 2 * steps * gradients}}, steps * (1 + 2 + 2*2)},
	} {
		r := mustImport(t, c.path)
		if r.Ended != "finalized" || r.Counts.Collectives != c.all {
			t.Errorf("%s: %s, %d collectives, want %d\n%s", c.path, r.Ended, r.Counts.Collectives, c.all,
				strings.Join(r.Warnings, "\n"))
		}
		names := map[int32]string{}
		for _, m := range r.Comms {
			names[m.Comm] = m.Name
		}
		for rank := int32(1); rank < r.Ranks; rank++ {
			got := map[key][2]int64{}
			marks := 0
			for _, e := range r.Events {
				switch {
				case e.Rank != rank:
				case e.Class == int16(schema.ClassCollective):
					k := key{names[e.Comm], schema.CallID(e.Call)}
					got[k] = [2]int64{got[k][0] + 1, got[k][1] + max(0, e.SendBytes)}
				case e.Class == int16(schema.ClassMark):
					marks++
				}
			}
			if !reflect.DeepEqual(got, c.want) || marks != steps {
				t.Errorf("%s: rank %d: %d steps, %v, want %v", c.path, rank, marks, got, c.want)
			}
		}
	}
}

// Without the dumps of the flight recorder Gloo's operations have no group, and the run says so.
func TestGlooWithoutFlightRecorder(t *testing.T) {
	dir := t.TempDir()
	for rank := range 4 {
		copyFile(t, fmt.Sprintf("testdata/gloo.4/rank-%d.json.gz", rank), dir)
	}
	r := mustImport(t, dir)
	text := strings.Join(r.Warnings, "\n")
	if r.Counts.Collectives != 0 ||
		!strings.Contains(text, "whose group the traces do not tell, which have no communicator: 48.") {
		t.Errorf("%d collectives\n%s", r.Counts.Collectives, text)
	}
}

func copyFile(t *testing.T, from, dir string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, filepath.Base(from)), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// head begins a trace of rank R of 2, with the groups of a job.
func head(rank int) string {
	return fmt.Sprintf(`{"schemaVersion":1,"distributedInfo":{"rank":%d,"world_size":2,"pg_config":[{"pg_name":"0",`+
		`"pg_desc":"default_pg","pg_size":2,"ranks":[0,1]}]},"baseTimeNanoseconds":1000000000,"traceEvents":[`, rank)
}

// asked is a call of the program at a time in us, with an external id and arguments.
func asked(at int, id int, args string) string {
	return fmt.Sprintf(`{"ph":"X","cat":"cpu_op","name":"record_param_comms","tid":7,"ts":%d,"dur":5,"args":{`+
		`"External id":%d,"Process Group Name":"0","Process Group Ranks":"[0, 1]",%s}},`, at, id, args)
}

// ran is a kernel on a stream from one time to another; those of NCCL have the id of their call.
func ran(name string, stream, from, to, id int) string {
	return fmt.Sprintf(`{"ph":"X","cat":"kernel","name":%q,"tid":%d,"ts":%d,"dur":%d,"args":{"stream":%d,`+
		`"External id":%d}},`,
		name, stream, from, to-from, stream, id)
}

const end = `{"ph":"i","name":"Record Window End"}]}`

func write(t testing.TB, dir string, texts ...string) string {
	t.Helper()
	for rank, text := range texts {
		writeAs(t, dir, fmt.Sprintf("rank-%d.json", rank), text)
	}
	return dir
}

func writeAs(t testing.TB, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Groups with more members than any job has are an error, not a matter of memory; one that events name again and again
// counts once.
func TestTooManyMembers(t *testing.T) {
	var events []string
	for i := range 10 {
		events = append(events, fmt.Sprintf(`{"ph":"X","cat":"user_annotation","name":"nccl:all_reduce","ts":%d,"dur":1,`+
			`"args":{"Process Group Name":"g%d","Group size":4194304,"Global rank start":0,"Global rank stride":1}}`, i, i/2))
	}
	text := func(events []string) string {
		return `{"schemaVersion":1,"traceEvents":[` + strings.Join(events, ",") + `]}`
	}
	_, err := imported(t, write(t, t.TempDir(), text(events)))
	const want = `event 9 (nccl:all_reduce): group "g4": the groups of the process have more than 16777216 members ` +
		"together"
	if err == nil || !strings.Contains(err.Error(), "rank-0.json: byte ") || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
	x, err := read(filepath.Join(write(t, t.TempDir(), text(events[:4])), "rank-0.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(x.Groups) != 2 || len(x.marked) != 4 || x.marked[1].group != 0 || len(x.Groups[1].Ranks) != 4194304 {
		t.Errorf("%d groups", len(x.Groups))
	}
}

const allreduce = `"Collective name":"allreduce","dtype":"BFloat16","In msg nelems":1000,"Out msg nelems":1000`

// Kernels become rows on the thread of their stream; what computes meanwhile is compute time of the MPI_Wait, which
// lasts from when nothing else runs to the end of the kernel.
func TestKernels(t *testing.T) {
	// rank 0: computes 0-100, all-reduce 100-200 with a gemm 110-150 beside it: exposed from 150 on. rank 1: its clock
	// is 1000 us ahead. Computes 1000-1150, all-reduce 1150-1200 with nothing beside it; a send 1210-1230 on another
	// stream, which rank 0 receives at 205-225 of its clock.
	dir := write(t, t.TempDir(),
		head(0)+`{"ph":"X","cat":"user_annotation","name":"ProfilerStep#4","tid":7,"ts":1,"dur":500},`+
			asked(10, 1, allreduce)+
			asked(20, 2, `"Collective name":"recv","dtype":"Float","In msg nelems":3,"Out msg nelems":3,"Src Rank":"1"`)+
			ran("gemm", 7, 0, 100, 0)+ran("ncclDevKernel_AllReduce", 9, 100, 200, 1)+ran("gemm", 7, 110, 150, 0)+
			ran("ncclDevKernel_SendRecv", 11, 205, 225, 2)+end,
		head(1)+asked(1010, 1, allreduce)+
			asked(1020, 2, `"Collective name":"send","dtype":"Float","In msg nelems":3,"Out msg nelems":3,"Dst Rank":"0"`)+
			ran("gemm", 7, 1000, 1150, 0)+ran("ncclDevKernel_AllReduce", 9, 1150, 1200, 1)+
			ran("ncclDevKernel_SendRecv", 11, 1210, 1230, 2)+end)
	r := mustImport(t, dir)
	// The all-reduce bounds rank 1's clock: it began before rank 0's ended (1150 + x <= 200) and ended after rank 0's
	// began (1200 + x >= 100), so x is in [-1100, -950] us: -1025, within 75 us. The run starts at -25 us, where rank 1
	// begins.
	want := []string{
		"0.0 commq_mark 26000-26000 compute=1000 ProfilerStep#4",
		"0.1 Iallreduce 125000-125000 compute=99000 comm=0 instance=0 sent=2000 received=2000 done=2",
		"0.2 Wait 175000-225000 compute=40000",
		"0.3 Irecv 230000-230000 thread=1 compute=140000 comm=0 from=1 received=12 done=4",
		"0.4 Wait 230000-250000 thread=1",
		"1.0 Iallreduce 150000-150000 compute=150000 comm=0 instance=0 sent=2000 received=2000 done=1",
		"1.1 Wait 150000-200000",
		"1.2 Isend 210000-210000 thread=1 compute=150000 comm=0 to=0 sent=12 done=3",
		"1.3 Wait 210000-230000 thread=1",
	}
	if got := lines(r); !reflect.DeepEqual(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if r.Counts.Messages != 1 || r.Counts.MessageBytes != 12 || r.ComputeClock != "device" {
		t.Errorf("%+v, compute clock %s", r.Counts, r.ComputeClock)
	}
	if x := r.RankInfos[1]; x.ClockOffsetInitNs != 1025000 || x.ClockErrorInitNs != 75000 || x.Threads != 2 {
		t.Errorf("%+v", x)
	}
	if text := strings.Join(r.Warnings, "\n"); !strings.Contains(text,
		"Clocks of 1 ranks were set by matched collectives; the error is at most 75 us.") {
		t.Error(text)
	}
}

// An uneven exchange has a row of parts for each rank that it sends to or receives from; a group whose ranks made
// different operations makes the run one that did not end.
func TestUnevenExchange(t *testing.T) {
	exchange := `"Collective name":"all_to_allv","dtype":"Long","In msg nelems":6,"Out msg nelems":4,` +
		`"In split size":"[1, 2]","Out split size":"[4, 0]"`
	dir := write(t, t.TempDir(), head(0)+asked(1, 1, exchange)+end, head(1)+end)
	r := mustImport(t, dir)
	want := []schema.Part{{PeerWorld: 0, SendBytes: 16, RecvBytes: 32}, {PeerWorld: 1, SendBytes: 32}}
	if !reflect.DeepEqual(r.Parts, want) || r.Ended != "killed" {
		t.Errorf("%+v, %s", r.Parts, r.Ended)
	}
}

// What cannot be read is an error that says where and what.
func TestErrors(t *testing.T) {
	for _, c := range []struct{ texts []string }{
		{[]string{``}}, {[]string{`[]`}}, {[]string{head(0)}}, {[]string{head(0) + `{"ph":"X","ts":"x"}]}`}},
		{[]string{head(0) + `7]}`}}, {[]string{head(0) + end, head(0) + end}},
		{[]string{`{"traceEvents":[{"ph":"X","name":"foo","pid":0,"tid":0,"ts":1,"dur":2}]}`}}, // of another tool
		{[]string{`{"displayTimeUnit":"ns","traceEvents":[]}`}},
		{[]string{`{"schemaVersion":1,"distributedInfo":{"rank":-3},"traceEvents":[]}`}},
		{[]string{`{"schemaVersion":1,"baseTimeNanoseconds":-1,"traceEvents":[]}`}},
	} {
		dir := write(t, t.TempDir(), c.texts...)
		path := dir
		if len(c.texts) == 1 {
			path = filepath.Join(dir, "rank-0.json")
		}
		_, err := imported(t, path)
		if err == nil || !strings.Contains(err.Error(), "rank-0.json") {
			t.Errorf("%q: %v", c.texts, err)
		}
		t.Log(err)
	}
	if _, err := imported(t, t.TempDir()); err == nil || !strings.Contains(err.Error(), "no trace of PyTorch's profiler") {
		t.Error(err)
	}
}

// A rank's file that cannot be read is not left out; hidden files are.
func TestFilesThatCannotBeRead(t *testing.T) {
	dir := write(t, t.TempDir(), head(0)+end)
	for _, name := range []string{"notes.txt", "rank-1.json", ".#rank-2.json"} {
		if err := os.Symlink("elsewhere", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := imported(t, dir)
	if err == nil || !strings.Contains(err.Error(), "rank-1.json: no such file") ||
		strings.Contains(err.Error(), "notes") || strings.Contains(err.Error(), ".#") {
		t.Error(err)
	}
	if !IsFolder(dir) {
		t.Error("no folder of traces")
	}
}

// Times keep all their digits.
func TestNanoseconds(t *testing.T) {
	for text, want := range map[string]int64{"1712195495520871.123": 1712195495520871123, `"5"`: 5000, "-0.5": -500,
		"4832382544706.13": 4832382544706130, "1e3": 1000000, "0.0019": 1} {
		if got, ok := nanoseconds([]byte(text)); !ok || got != want {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "x", "1.-5", "1e300", "99999999999999999999", "NaN"} {
		if got, ok := nanoseconds([]byte(text)); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
}

// An import into a store makes a run with the name of the folder.
func TestImportPath(t *testing.T) {
	store := t.TempDir()
	m, err := ImportPath(context.Background(), "testdata/gloo.4", store, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Origin.Trace.Format != "kineto" || m.Ranks != 4 {
		t.Errorf("%+v", m)
	}
	if _, err := writer.ReadManifest(filepath.Join(store, "gloo.4")); err != nil {
		t.Error(err)
	}
}

// Whatever the files hold, an import ends with an error or a run that breaks no rule.
func FuzzImport(f *testing.F) {
	execution := executionOf(node(3, "c10d::broadcast_", `[[[1,2,0,6,4,"cpu"]],"<Object>",1,0]`, `[[[2,3]],[],[],[]]`,
		`["GenericList[Tensor(float)]","Object","Int","Int"]`))
	f.Add(head(0)+`{"ph":"X","cat":"cpu_op","name":"c10d::broadcast_","tid":5,"ts":1.5,"dur":2,"args":{`+
		`"Record function id":3,"Concrete Inputs":["","","1","0"],"Input Dims":[[[2,3]]]}},`+
		`{"ph":"X","cat":"user_annotation","name":"gloo:broadcast","tid":9,"ts":2,"dur":3,"args":{"Input Dims":[[2,3]],`+
		`"Input type":["float"],"Record function id":4}},`+end,
		`{"entries":[{"collective_seq_id":1,"process_group":["0","tp"],"profiling_name":"gloo:broadcast",`+
			`"time_created_ns":1000002000}]}`, execution)
	f.Add(head(0)+asked(10, 1, allreduce)+ran("gemm", 7, 0, 100, 0)+ran("ncclDevKernel_AllReduce", 9, 100, 200, 1)+end,
		"{}", execution)
	f.Add(head(0)+asked(20, 2, `"Collective name":"recv","dtype":"Float","In msg nelems":3,"Src Rank":"1"`)+end, "",
		executionOf(paramsNode(2, 0, "all_reduce", 3)))
	f.Add(head(1)+`{"ph":"X","cat":"user_annotation","name":"gloo:all_reduce","tid":9,"ts":5,"dur":3,"args":{`+
		`"Input Dims":[[2,3]],"Input type":["float"],"Record function id":4}},`+end, "", execution)
	f.Add(formatstest.Gzip(f, head(0)+asked(10, 1, allreduce)+end), "{}", formatstest.Gzip(f, execution))
	f.Fuzz(func(t *testing.T, trace, flight, execution string) {
		dir := write(t, t.TempDir(), trace)
		writeAs(t, dir, "fr-0.json", flight)
		writeAs(t, dir, "et-0.json", execution)
		ranks, _, err := load(context.Background(), dir, nil)
		if err == nil && len(ranks) > 0 && max(ranks[0].World, ranks[0].Rank) > 1<<12 {
			return // a test has no memory for so many
		}
		_, _ = imported(t, dir)
	})
}
