package main

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/writer"
)

// Every format that import reads has a command, and the other way round. Their order differs: importFormats
// has the order in which import tries them.
func TestImportCommands(t *testing.T) {
	var commands, formats []string
	for _, c := range newImportCommand(&app{}).Commands() {
		commands = append(commands, c.Name())
	}
	for _, f := range importFormats {
		formats = append(formats, f.name)
	}
	slices.Sort(commands)
	slices.Sort(formats)
	if !slices.Equal(commands, formats) {
		t.Errorf("commands of import: %v\nformats: %v", commands, formats)
	}
}

// import finds OTF2 by the file's content; the run answers queries, and its messages are those of the trace.
func TestImportOTF2(t *testing.T) {
	store := t.TempDir()
	trace := filepath.Join("..", "..", "formats", "otf2", "testdata", "ping-pong", "traces.otf2")
	mustCommq(t, "import", trace, "--store", store)
	out := mustCommq(t, "query", "density", "--store", store, "--run", "ping-pong", "--format", "csv")
	if !strings.Contains(out, "\n0,1,8,4177920") || !strings.Contains(out, "\n1,0,8,4177920") {
		t.Error(out)
	}
	trace = filepath.Join(store, "out")
	mustCommq(t, "export", "otf2", "--store", store, "--run", "ping-pong", "-o", trace)
	mustCommq(t, "import", filepath.Join(trace, "traces.otf2"), "--store", store, "--name", "again")
	if again := mustCommq(t, "query", "density", "--store", store, "--run", "again", "--format", "csv"); again != out {
		t.Error(again)
	}
}

// import finds a trace of Extrae by its content; the doctor has nothing against the run, the export takes it and import
// reads it again, and what the trace does not tell is said.
func TestImportPrv(t *testing.T) {
	store := t.TempDir()
	trace := filepath.Join("..", "..", "formats", "paraver", "testdata", "requests", "requests.prv")
	mustCommq(t, "import", trace, "--store", store)
	if out := mustCommq(t, "doctor", "requests", "--store", store); !strings.Contains(out, "0 warnings, 0 failed") {
		t.Error(out)
	}
	out := mustCommq(t, "query", "density", "--store", store, "--run", "requests", "--format", "csv")
	if !strings.Contains(out, "\n0,1,9,44") || !strings.Contains(out, "\n1,0,8,32") {
		t.Error(out)
	}
	again := filepath.Join(store, "again.prv")
	mustCommq(t, "export", "prv", "--store", store, "--run", "requests", "-o", again)
	mustCommq(t, "import", "prv", again, "--store", store)
	if got := mustCommq(t, "query", "density", "--store", store, "--run", "again", "--format", "csv"); got != out {
		t.Error(got)
	}
	if list := mustCommq(t, "import", "--list"); !strings.Contains(list, "prv        traces of Extrae") {
		t.Error(list)
	}
	var stdout, errs strings.Builder
	duplicates := []string{"query", "duplicates", "--store", store, "--run", "requests"}
	if status := execute(t.Context(), duplicates, strings.NewReader(""), &stdout, &errs); status != 2 ||
		!strings.Contains(errs.String(), "its trace (prv) does not tell that") {
		t.Errorf("status %d: %s", status, errs.String())
	}
	if err := os.WriteFile(again, []byte("#Paraver (x):9_ns:1(1):1:1(1:1)\n2:1:1:7:1:5:1:1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	damaged := []string{"import", again, "--store", store, "--name", "damaged"}
	if status := execute(t.Context(), damaged, strings.NewReader(""), &stdout, &errs); status != 2 ||
		!strings.Contains(errs.String(), "again.prv:2: task 7 of application 1; the first line has 1") {
		t.Errorf("status %d: %s", status, errs.String())
	}
}

// import finds DUMPI by the content of a .meta, and in a folder.
func TestImportDUMPI(t *testing.T) {
	store := t.TempDir()
	traces := filepath.Join("..", "..", "formats", "dumpi", "testdata")
	mustCommq(t, "import", filepath.Join(traces, "ring", "testtrace.meta"), "--store", store, "--name", "file")
	mustCommq(t, "import", filepath.Join(traces, "ring"), "--store", store, "--name", "folder")
	out := mustCommq(t, "query", "density", "--store", store, "--run", "file", "--format", "csv")
	if !strings.Contains(out, "\n2,3,1,4") {
		t.Error(out)
	}
	if folder := mustCommq(t, "query", "density", "--store", store, "--run", "folder", "--format", "csv"); folder != out {
		t.Error(folder)
	}
}

// import finds liballprof by the content of a file.
func TestImportLiballprof(t *testing.T) {
	store := t.TempDir()
	for rank, call := range []string{"MPI_Send:2:100:3:11,8,8:1:5:0,0,2:3", "MPI_Recv:2:100:9:11,8,8:0:5:0,1,2:0:4"} {
		text := "# collprof 0.9 output file\n# host: n\n# Init clockdiff: 0\n\nMPI_Init:-:1:2:1\n" + call +
			"\nMPI_Finalize:5:-\n"
		if err := os.WriteFile(filepath.Join(store, fmt.Sprintf("rank-%d.txt", rank)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	mustCommq(t, "import", filepath.Join(store, "rank-0.txt"), "--store", store, "--name", "pair")
	if out := mustCommq(t, "query", "density", "--store", store, "--run", "pair", "--format", "csv"); !strings.Contains(out,
		"\n0,1,1,24") {
		t.Error(out)
	}
}

// import takes a folder of PyTorch's traces; the SQL of the reference gives the bytes of each group and step.
func TestImportTraining(t *testing.T) {
	store := t.TempDir()
	mustCommq(t, "import", filepath.Join("..", "..", "formats", "kineto", "testdata", "gloo.4"), "--store", store)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "reference", "training.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, sql, _ := strings.Cut(string(page), "```sql\n")
	sql, _, ok := strings.Cut(sql, "```")
	if !ok {
		t.Fatal("no SQL in docs/reference/training.md")
	}
	out := mustCommq(t, "sql", "--store", store, "--run", "gloo.4", "--format", "csv", sql)
	for step := range 3 {
		// 4 ranks give 1 and 2 times 32 x 64 floats, the root of the broadcast a long.
		for _, want := range []string{"default_pg,MPI_Ibcast,4,8,", "mesh_dp,MPI_Iallreduce,8,65536,",
			"mesh_tp,MPI_Iallreduce,4,32768,"} {
			if want = "\nProfilerStep#" + string(rune('1'+step)) + "," + want; !strings.Contains(out, want) {
				t.Errorf("%q is not in\n%s", want, out)
			}
		}
	}
	var to, errs strings.Builder
	status := execute(t.Context(), []string{"import", store, "--store", store}, strings.NewReader(""), &to, &errs)
	if status != 2 || !strings.Contains(errs.String(), "is a folder without traces that import reads there") {
		t.Errorf("%d %s", status, errs.String())
	}
}

// A trace of SimGrid is found by its list, goes out again for SimGrid and LogGOPSim, and comes back with the same
// messages.
func TestTracesOfSimulators(t *testing.T) {
	store, out := t.TempDir(), t.TempDir()
	trace := filepath.Join(out, "smpi.tit")
	mustCommq(t, "import", "../../formats/tit/testdata/smpi.trace", "--store", store, "--name", "smpi.3")
	mustCommq(t, "export", "tit", "--store", store, "--run", "smpi.3", "-o", trace)
	mustCommq(t, "export", "tit", "--store", store, "--run", "smpi.3", "-o", trace, "--replace")
	mustCommq(t, "import", filepath.Join(trace, "list"), "--store", store)
	mustCommq(t, "export", "goal", "--store", store, "--run", "smpi", "-o", filepath.Join(out, "smpi.goal"))
	for _, run := range []string{"smpi.3", "smpi"} {
		m, err := writer.ReadManifest(filepath.Join(store, run))
		if err != nil {
			t.Fatal(err)
		}
		if m.Counts.Messages != 6 || m.Counts.MessageBytes != 420 || m.Counts.Collectives != 15 {
			t.Errorf("%s: %+v", run, m.Counts)
		}
	}
	schedule, err := os.ReadFile(filepath.Join(out, "smpi.goal"))
	if err != nil || !strings.HasPrefix(string(schedule), "num_ranks 3\n") {
		t.Errorf("%.80q, %v", schedule, err)
	}
}

// What export writes import takes by the same name, from wherever it was moved to, and names the run after the folder
// without its ending. A folder that is a run already is no trace.
func TestImportFoldersOfExport(t *testing.T) {
	store, out := t.TempDir(), t.TempDir()
	mustCommq(t, "import", "../../formats/tit/testdata/smpi.trace", "--store", store, "--name", "smpi.3")
	mustCommq(t, "import", "../../formats/otf2/testdata/ping-pong", "--store", store)
	for _, x := range [][2]string{{"tit", "smpi.3"}, {"otf2", "ping-pong"}} {
		format, run := x[0], x[1]
		folder, moved := filepath.Join(out, "was."+format), filepath.Join(out, format+".moved."+format)
		mustCommq(t, "export", format, "--store", store, "--run", run, "-o", folder)
		mustCommq(t, "import", folder, "--store", store, "--replace")
		if err := os.Rename(folder, moved); err != nil {
			t.Fatal(err)
		}
		mustCommq(t, "import", format, moved, "--store", store)
		want := mustCommq(t, "query", "density", "--store", store, "--run", run, "--format", "csv")
		for _, again := range []string{"was", format + ".moved"} {
			if got := mustCommq(t, "query", "density", "--store", store, "--run", again, "--format", "csv"); got != want {
				t.Errorf("%s: %s", again, got)
			}
		}
	}
	var stdout, errs strings.Builder
	again := []string{"import", filepath.Join(store, "was"), "--store", store}
	if status := execute(t.Context(), again, strings.NewReader(""), &stdout, &errs); status != 2 ||
		!strings.Contains(errs.String(), "was is a run already, not a trace") {
		t.Errorf("status %d: %s", status, errs.String())
	}
}

// import finds logs of NCCL Inspector in a folder; queries name the rank that the others waited for, and say what the logs
// do not tell.
func TestImportInspector(t *testing.T) {
	store := t.TempDir()
	for rank, us := range []int{400, 100} {
		record := fmt.Sprintf(`{"header":{"id":"0xa","comm_name":"tp","rank":%d,"n_ranks":2,"nnodes":1},"metadata":{`+
			`"dump_timestamp_us":1748030377748202,"hostname":"h","pid":%d},"coll_perf":{"coll":"AllReduce","coll_sn":0,`+
			`"coll_msg_size_bytes":9000,"coll_exec_time_us":%d,"coll_timing_source":"kernel_gpu"}}`, rank, 50+rank, us)
		if err := os.WriteFile(filepath.Join(store, fmt.Sprintf("h-pid%d.log", 50+rank)), []byte(record), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	mustCommq(t, "import", filepath.Join(store, "h-pid50.log"), "--store", store, "--name", "one")
	mustCommq(t, "import", store, "--store", store, "--name", "tp")
	for query, want := range map[string]string{
		"collective-wait": "\nwait-at-nxn,MPI_Allreduce,0,1,1,0,0,0,1,300000\n",
		"communicators":   "\n0,world,tp,,2,,0,0,1,2,18000,18000\n",
	} {
		if out := mustCommq(t, "query", query, "--store", store, "--run", "tp", "--format", "csv"); !strings.Contains(out, want) {
			t.Errorf("%s: %s", query, out)
		}
	}
	var out, errs strings.Builder
	query := []string{"query", "compute", "--store", store, "--run", "tp"}
	if status := execute(t.Context(), query, strings.NewReader(""), &out, &errs); status != 2 ||
		!strings.Contains(errs.String(), "its trace (inspector) does not tell that") {
		t.Errorf("status %d: %s", status, errs.String())
	}
}

// import finds an export of Nsight Systems by its content: who waits for whom can be asked, what the export does not
// tell is said, and a damaged one is an error with the file and the table.
func TestImportNsys(t *testing.T) {
	store := t.TempDir()
	packed, err := os.Open(filepath.Join("..", "..", "formats", "nsys", "testdata", "mfu_2gpu_before.cut.sqlite.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	z, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	export := filepath.Join(store, "mfu.sqlite")
	if err := os.WriteFile(export, data, 0o666); err != nil {
		t.Fatal(err)
	}
	mustCommq(t, "import", export, "--store", store)
	if out := mustCommq(t, "doctor", "mfu", "--store", store); !strings.Contains(out, "0 warnings, 0 failed") {
		t.Error(out)
	}
	for query, want := range map[string]string{
		"collectives":     "\n2,MPI_Alltoall,8,8,,\n", // its sizes are not in the export,
		"collective-wait": "\nwait-at-nxn,MPI_Alltoall,0,0,8,",
	} {
		out := mustCommq(t, "query", query, "--store", store, "--run", "mfu", "--format", "csv")
		if !strings.Contains(out, want) {
			t.Errorf("%s: %s", query, out)
		}
	}
	if err := os.WriteFile(export, data[:len(data)/2], 0o666); err != nil {
		t.Fatal(err)
	}
	var out, errs strings.Builder
	again := []string{"import", export, "--store", store, "--name", "cut"}
	if status := execute(t.Context(), again, strings.NewReader(""), &out, &errs); status != 2 ||
		!strings.Contains(errs.String(), "mfu.sqlite: table ") {
		t.Errorf("status %d: %s", status, errs.String())
	}
}

// import finds execution traces of PyTorch in a folder; the run has no times, and queries that need them say so.
func TestImportExectrace(t *testing.T) {
	store := t.TempDir()
	for rank := range 2 {
		text := fmt.Sprintf(`{"schema":"1.1.0-chakra.0.0.4","pid":1,"time":"x","start_ts":1,"nodes":[{"id":2,"name":"record_param_comms",`+
			`"inputs":{"values":[[[1,2,0,9,4,"cuda:0"]],7,["0","default_pg"],%d,"all_reduce",[],[],0,1,2],"shapes":[[[9]]],`+
			`"types":["GenericList[Tensor(float)]"]},"outputs":{"values":[],"shapes":[[[9]]],"types":[]},"attrs":[]}]}`, rank)
		if err := os.WriteFile(filepath.Join(store, fmt.Sprintf("et-%d.json", rank)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	mustCommq(t, "import", store, "--store", store, "--name", "ddp")
	out := mustCommq(t, "query", "communicators", "--store", store, "--run", "ddp", "--format", "csv")
	if !strings.Contains(out, "\n0,world,default_pg,,2,,0,0,1,2,72,72\n") {
		t.Error(out)
	}
	var stdout, errs strings.Builder
	query := []string{"query", "collective-wait", "--store", store, "--run", "ddp"}
	if status := execute(t.Context(), query, strings.NewReader(""), &stdout, &errs); status != 2 ||
		!strings.Contains(errs.String(), "is untimed") {
		t.Errorf("status %d: %s", status, errs.String())
	}
}
