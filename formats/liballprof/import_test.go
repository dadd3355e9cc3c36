package liballprof

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// imported imports a trace as a run that breaks no rule.
func imported(t testing.TB, path string, o Options) (*formatstest.Run, error) {
	t.Helper()
	return formatstest.Import(t, func(k *formatstest.Memory) (*schema.Manifest, error) {
		trace, err := openTrace(path)
		if err != nil {
			return nil, err
		}
		return trace.importTo(context.Background(), k, o)
	})
}

// sizes are whole and tiny passes.
var sizes = []Options{{}, {EpochRows: 3, ShardRows: 9, Keep: 1, Round: 2}}

const head = "# collprof 0.9 output file\n# Sat Mar 21 16:07:26 2009\n"

// written writes the files of ranks, each a text after its first lines, and returns that of rank 0.
func written(t testing.TB, ranks ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i, text := range ranks {
		if !strings.HasPrefix(text, "#") {
			text = fmt.Sprintf("%s# host: n%d\n# Init clockdiff: 0.000000\n\n%s", head, i, text)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("pmpi-trace-rank-%d.txt", i)), []byte(text),
			0o666); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "pmpi-trace-rank-0.txt")
}

// rowsOf returns the rows of a rank as text: call, times in us, and what is not null of messages and requests.
func rowsOf(r *formatstest.Run, rank int32) (all []string) {
	for i := range r.Events {
		e := &r.Events[i]
		if e.Rank != rank {
			continue
		}
		text := fmt.Sprintf("%s %d-%d", strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_"), e.StartNs/1000,
			e.EndNs/1000)
		for _, x := range []struct {
			name string
			v    int64
		}{{"comm", wide(e.Comm)}, {"to", wide(e.SendWorld)}, {"from", wide(e.RecvWorld)}, {"sent", e.SendBytes},
			{"received", e.RecvBytes}, {"root", wide(e.RootWorld)}, {"request", e.Request}, {"done", e.DoneSeq},
			{"polls", e.Polls}} {
			if x.v != null64 {
				text += fmt.Sprint(" ", x.name, "=", x.v)
			}
		}
		all = append(all, text)
	}
	return all
}

func wide(x int32) int64 {
	if x == schema.NullInt32 {
		return null64
	}
	return int64(x)
}

// Times go onto the clock of rank 0: its offset at the start is added, and as much of its drift as has passed. The
// message of 3 doubles arrives in a buffer of 10.
func TestClocksAndSizes(t *testing.T) {
	zero := "MPI_Init:-:1:2:1000.000000\n" +
		"MPI_Recv:1100.000000:5000:10:11,8,8:1:7:0,0,2:0:1500.500000\n" +
		"MPI_Allreduce:1600:5000:6000:2:11,8,8:3:0,0,2:1700\n" +
		"# Finalize clockdiff: 0.000000\nMPI_Finalize:3000.000000:-\n"
	one := head + "# host: b\n# Init clockdiff: -500.000000\n\n" +
		"MPI_Init:-:1:2:1500\nMPI_Send:1700:5000:3:11,8,8:0:7:0,1,2:1750\n" + // at 1500 to 3500: half a us for each 1000
		"MPI_Allreduce:2100:5000:6000:2:11,8,8:3:0,1,2:2500\n" +
		"# Finalize clockdiff: -540\nMPI_Finalize:3500:-\n"
	for _, o := range sizes {
		r, err := imported(t, written(t, zero, one), o)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"Init 0-0", "Recv 100-500 comm=0 from=1 received=24", "Allreduce 600-700 comm=0 sent=16 received=16",
			"Finalize 2000-2000"}
		if diff := cmp.Diff(want, rowsOf(r, 0)); diff != "" {
			t.Error(diff)
		}
		// 1700 - 500 - 40 x 200/2000 = 1196; 2100 - 500 - 12 = 1588; 2500 - 500 - 20 = 1980; 3500 - 540 = 2960.
		want = []string{"Init 0-0", "Send 196-245 comm=0 to=0 sent=24", "Allreduce 588-980 comm=0 sent=16 received=16",
			"Finalize 1960-1960"}
		if diff := cmp.Diff(want, rowsOf(r, 1)); diff != "" {
			t.Error(diff)
		}
		if r.Ended != "finalized" || r.Counts.Messages != 1 || r.Counts.MessageBytes != 24 || r.Events[1].EndNs != 500500 ||
			r.Origin.Trace.Program != "collprof 0.9" || !cmp.Equal(r.Origin.Hosts, []string{"n0", "b"}) {
			t.Errorf("%+v %+v", r.Counts, r.Origin)
		}
	}
}

// An offset that is told once holds for all times, however large; one that is told never is said.
func TestOffsets(t *testing.T) {
	body := "MPI_Init:-:1:2:1000\nMPI_Barrier:1100:0,%d,2:1200\n%sMPI_Finalize:2000:-\n"
	zero := head + "# host: a\n" + fmt.Sprintf(body, 0, "")
	for _, c := range []struct {
		begin, end string
		at         int64 // of the barrier of rank 1, us after that of rank 0
		said       bool
	}{
		{"# host: b\n# Init clockdiff: 300\n", "", 300, false},
		{"# host: b\n", "# Finalize clockdiff: 300\n", 300, false},
		{"# host: b\n# clockdiff: 2.5 s (relative to rank 0)\n", "", 2500000, false},
		{"# host: b\n# Init clockdiff: 1728000000000\n", "# Finalize clockdiff: 1728000000000\n", 1728000000000, false},
		{"# host: b\n", "", 0, true},
		{"# host: a\n", "", 0, false},
	} {
		r, err := imported(t, written(t, zero, head+c.begin+fmt.Sprintf(body, 1, c.end)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := (r.Events[4].StartNs - r.Events[1].StartNs) / 1000; got != c.at {
			t.Errorf("%q: %d us, want %d", c.begin+c.end, got, c.at)
		}
		w := strings.Join(r.Warnings, "\n")
		if strings.Contains(w, "Files without the offset of their clock to that of rank 0, which was taken as 0: 1.") !=
			c.said {
			t.Errorf("%q: %s", c.begin+c.end, w)
		}
	}
	for _, x := range []string{"nonsense", "", "NaN", "1e300"} {
		_, err := imported(t, written(t, zero, head+"# clockdiff: "+x+"\n"+fmt.Sprintf(body, 1, "")), Options{})
		if err == nil || !strings.Contains(err.Error(), "rank-1.txt: line 3: the offset \""+x+"\" of the clock; want") {
			t.Errorf("%q: %v", x, err)
		}
	}
}

// Requests are found by their addresses, 4 or 8 bytes apart in arrays; tests count as polls, and a request whose
// address is used again has no end that the trace tells.
func TestRequests(t *testing.T) {
	for _, stride := range []int{4, 8} {
		text := func(me, other int) string {
			comm := fmt.Sprintf("77,%d,2", me)
			return "MPI_Init:-:1:2:1\n" +
				fmt.Sprintf("MPI_Irecv:2:100:1:1,4,4:%d:3:%s:%d:3\n", other, comm, 1000) +
				fmt.Sprintf("MPI_Isend:4:200:1:1,4,4:%d:3:%s:%d:5\n", other, comm, 1000+stride) +
				"MPI_Test:6:1000:300:0:8\nMPI_Waitall:9:2:1000:0:10\n" +
				fmt.Sprintf("MPI_Isend:11:200:1:1,4,4:%d:3:%s:%d:12\n", other, comm, 2000) +
				fmt.Sprintf("MPI_Isend:13:200:1:1,4,4:%d:3:%s:%d:14\n", other, comm, 2000) +
				fmt.Sprintf("MPI_Wait:15:2000:0:16\nMPI_Recv:17:1:9:1,4,4:%d:3:%s:0:18\n", other, comm) +
				fmt.Sprintf("MPI_Recv:17:1:9:1,4,4:%d:3:%s:0:18\nMPI_Finalize:20:-\n", other, comm)
		}
		for _, o := range sizes {
			r, err := imported(t, written(t, text(0, 1), text(1, 0)), o)
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"Init 0-0", "Irecv 1-2 comm=0 from=1 received=4 request=1 done=3",
				"Isend 3-4 comm=0 to=1 sent=4 request=2 done=3", "Waitall 8-9 polls=1",
				"Isend 10-11 comm=0 to=1 sent=4 request=3", "Isend 12-13 comm=0 to=1 sent=4 request=4 done=6",
				"Wait 14-15 request=4", "Recv 16-17 comm=0 from=1 received=4", "Recv 17-17 comm=0 from=1 received=4",
				"Finalize 19-19"}
			if diff := cmp.Diff(want, rowsOf(r, 0)); diff != "" {
				t.Error(stride, diff)
			}
			if c := r.Counts; c.Messages != 6 || c.Polls != 2 || c.UnmatchedSends+c.UnmatchedReceives != 0 {
				t.Errorf("%+v", c)
			}
		}
	}
}

// Requests of 4 bytes show by an address that 8 does not divide: a wait for the first two of four completes these.
func TestRequestsOfFourBytes(t *testing.T) {
	text := "MPI_Init:-:1:2:1\n"
	for i := range 4 {
		text += fmt.Sprintf("MPI_Irecv:2:100:1:1,4,4:0:%d:7,0,1:%d:2\n", i, 1000+4*i)
	}
	for i := range 4 {
		text += fmt.Sprintf("MPI_Send:3:100:1:1,4,4:0:%d:7,0,1:3\n", i)
	}
	r, err := imported(t, written(t, text+"MPI_Waitall:4:2:1000:0:5\nMPI_Waitall:6:2:1008:0:7\nMPI_Finalize:8:-\n"),
		Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int64{9, 9, 10, 10} {
		if got := r.Events[1+i].DoneSeq; got != want {
			t.Errorf("request %d is done by call %d, want %d", i, got, want)
		}
	}
}

// A wait for an array takes as long as there are open requests, whatever number of them the line tells.
func TestManyRequests(t *testing.T) {
	text := "MPI_Init:-:1:2:1\nMPI_Isend:2:100:1:1,4,4:0:1:7,0,1:80:2\nMPI_Recv:3:100:1:1,4,4:0:1:7,0,1:0:3\n" +
		strings.Repeat("MPI_Waitall:4:2147483647:0:0:5\n", 1000) + "MPI_Finalize:8:-\n"
	begin := time.Now()
	r, err := imported(t, written(t, text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Events[1].DoneSeq != 3 || time.Since(begin) > 20*time.Second {
		t.Errorf("%+v after %v", r.Events[1], time.Since(begin))
	}
}

// The handle of a new communicator is not shown: it is the first that is used with its size and rank.
func TestCommunicators(t *testing.T) {
	var ranks []string
	for me := range 4 {
		world := fmt.Sprintf("77,%d,4", me)
		half := fmt.Sprintf("%d,%d,2", 500+me, me/2)
		ranks = append(ranks, "MPI_Init:-:1:2:1\n"+
			fmt.Sprintf("MPI_Comm_split:2:%s:%d:0:9000:3\nMPI_Comm_size:3:%s:8:4\n", world, me%2, half)+
			fmt.Sprintf("MPI_Gatherv:5:1:%d:1,4,4:2:3:3,5:4:0,3:1,4,4:1:%s:6\n", 3+me/2*2, half)+
			fmt.Sprintf("MPI_Barrier:7:%s:8\nMPI_Put:8:1:2:3:9\nMPI_Finalize:20:-\n", world))
	}
	r, err := imported(t, written(t, ranks...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Init 0-0", "Comm_split 1-2 comm=0", "Gatherv 4-5 comm=2 sent=20 received=32 root=3",
		"Barrier 6-7 comm=0 sent=0 received=0", "Finalize 19-19"}
	if diff := cmp.Diff(want, rowsOf(r, 3)); diff != "" {
		t.Error(diff)
	}
	if len(r.Parts) != 4 || r.Parts[1].RecvBytes != 20 || r.Parts[1].PeerWorld != 2 {
		t.Errorf("%+v", r.Parts)
	}
	if w := r.Warnings[2]; w != "Calls whose arguments the trace does not tell, which are missing: 4 MPI_Put." {
		t.Errorf("%q", r.Warnings)
	}
}

// A communicator of all ranks is not taken as MPI_COMM_WORLD after a constructor whose members the trace does not tell,
// nor where it shows another rank.
func TestUnknownMembers(t *testing.T) {
	for _, c := range []struct{ zero, one, want string }{
		{"MPI_Comm_create:2:77,0,2:5:6:3\nMPI_Send:4:1:8:1,1,1:1:5:88,1,2:5\n", "MPI_Comm_create:2:77,1,2:5:6:3\n",
			"rank-0.txt: line 8: MPI_Send: communicator 88, of 2 ranks, was not made"},
		{"MPI_Comm_create:2:77,0,2:5:6:3\nMPI_Barrier:4:88,0,2:5\n", "MPI_Comm_create:2:77,1,2:5:6:3\n",
			"rank-0.txt: line 8: MPI_Barrier: communicator 88, of 2 ranks, was not made"},
		{"MPI_Comm_rank:2:77,0,2:1:2\nMPI_Dist_graph_create:2:77,0,2:1:2:3:4:5:6:7:9:3\nMPI_Barrier:4:77,0,2:5\n" +
			"MPI_Barrier:6:88,0,2:7\n", "MPI_Barrier:2:77,1,2:3\n",
			"rank-0.txt: line 10: MPI_Barrier: communicator 88, of 2 ranks, was not made"},
		{"MPI_Barrier:2:77,0,2:3\nMPI_Barrier:4:88,1,2:5\n", "MPI_Barrier:2:77,1,2:3\n",
			"rank-0.txt: line 8: MPI_Barrier: communicator 88, of 2 ranks, was not made"},
	} {
		_, err := imported(t, written(t, "MPI_Init:-:1:2:1\n"+c.zero, "MPI_Init:-:1:2:1\n"+c.one), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// Files that all show rank 0 are copies of one: each counts as its rank, and this is said.
func TestCopies(t *testing.T) {
	text := "MPI_Init:-:1:2:1\nMPI_Bcast:2:1:4:1,1,1:0:77,0,2:3\nMPI_Finalize:20:-\n"
	r, err := imported(t, written(t, text, text), Options{})
	if err != nil {
		t.Fatal(err)
	}
	last := r.Warnings[len(r.Warnings)-1]
	if r.Counts.Collectives != 1 || !strings.HasPrefix(last, "All files show rank 0 of all ranks: they are copies") {
		t.Errorf("%+v %q", r.Counts, r.Warnings)
	}
}

// rows and columns of 2 x 2 ranks: the handle of the rows is freed, by the variable of it or by another, before that of
// the columns is the same number.
func TestHandlesUsedAgain(t *testing.T) {
	for _, c := range []struct {
		freed    int
		messages int64
		unsure   string
	}{{9000, 4, ""}, {9100, 0, "were taken as the first of them: 2."}} {
		var ranks []string
		for me := range 4 {
			world, row, column := fmt.Sprintf("77,%d,4", me), fmt.Sprintf("500,%d,2", me%2), fmt.Sprintf("500,%d,2", me/2)
			ranks = append(ranks, "MPI_Init:-:1:2:1\n"+
				fmt.Sprintf("MPI_Comm_split:2:%s:%d:0:9000:3\nMPI_Allreduce:4:1:2:1:1,4,4:3:%s:5\n", world, me/2, row)+
				fmt.Sprintf("MPI_Comm_free:6:%d:7\nMPI_Comm_split:8:%s:%d:0:9000:9\n", c.freed, world, me%2)+
				fmt.Sprintf("MPI_Sendrecv:10:1:1:1,4,4:%d:3:1:1:1,4,4:%d:3:%s:0:11\n", 1-me/2, 1-me/2, column)+
				"MPI_Finalize:20:-\n")
		}
		r, err := imported(t, written(t, ranks...), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if w := strings.Join(r.Warnings, "\n"); r.Counts.Messages != c.messages ||
			strings.Contains(w, "were taken as the first") != (c.unsure != "") || !strings.Contains(w, c.unsure) {
			t.Errorf("free of %d: %+v %s", c.freed, r.Counts, w)
		}
	}
}

// grid returns the lines of 2 x 2 ranks that make communicators of rows, then of columns, and use them.
func grid(use func(me int, row, column string) string) (ranks []string) {
	for me := range 4 {
		world := fmt.Sprintf("77,%d,4", me)
		ranks = append(ranks, "MPI_Init:-:1:2:1\n"+fmt.Sprintf("MPI_Comm_split:2:%s:%d:0:9000:3\n", world, me/2)+
			fmt.Sprintf("MPI_Comm_split:4:%s:%d:0:9001:5\n", world, me%2)+
			use(me, fmt.Sprintf("500,%d,2", me%2), fmt.Sprintf("600,%d,2", me/2))+"MPI_Finalize:20:-\n")
	}
	return ranks
}

// Ranks whose handles fit rows and columns use them in the order in which the others do; if these differ, the handles
// are counted.
func TestFitsSeveral(t *testing.T) {
	exchange := func(me, peer int, comm string, more string) string {
		return fmt.Sprintf("MPI_Sendrecv:10:1:1:1,4,4:%d:3:1:1:1,4,4:%d:3:%s:0:11\n", peer, peer, comm) + more
	}
	for i, c := range []struct {
		use    func(me int, row, column string) string
		unsure string
		pairs  [][2]int32
	}{
		{func(me int, row, column string) string {
			return exchange(me, 1-me/2, column, "")
		}, "", [][2]int32{{0, 2}, {1, 3}, {2, 0}, {3, 1}}},
		{func(me int, row, column string) string {
			return exchange(me, 1-me/2, column, "MPI_Bcast:12:1:1:1,4,4:0:"+row+":13\n")
		}, "", [][2]int32{{0, 2}, {1, 3}, {2, 0}, {3, 1}}},
		{func(me int, row, column string) string {
			return exchange(me, 1-me%2, row, "MPI_Bcast:12:1:1:1,4,4:0:"+column+":13\n")
		}, "", [][2]int32{{0, 1}, {1, 0}, {2, 3}, {3, 2}}},
		{func(me int, row, column string) string {
			if me == 1 || me == 3 {
				row, column = column, row
			}
			return "MPI_Bcast:10:1:0:1,4,4:0:" + column + ":11\nMPI_Bcast:12:1:0:1,4,4:0:" + row + ":13\n"
		}, "were taken as the first of them: 2.", nil},
	} {
		r, err := imported(t, written(t, grid(c.use)...), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var pairs [][2]int32
		for _, m := range r.Messages {
			pairs = append(pairs, [2]int32{m.Src, m.Dst})
		}
		slices.SortFunc(pairs, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
		w := strings.Join(r.Warnings, "\n")
		if diff := cmp.Diff(c.pairs, pairs); diff != "" ||
			strings.Contains(w, "were taken as the first") != (c.unsure != "") ||
			!strings.Contains(w, c.unsure) || c.unsure == "" && r.Ended != "finalized" {
			t.Errorf("%d: %s %s", i, diff, w)
		}
	}
}

// Of two communicators with the same ranks each may be the first: nothing is said.
func TestDuplicates(t *testing.T) {
	var ranks []string
	for me := range 2 {
		ranks = append(ranks, strings.ReplaceAll("MPI_Init:-:1:2:1\nMPI_Comm_dup:2:77,ME,2:9000:3\n"+
			"MPI_Comm_dup:4:77,ME,2:9001:5\n"+
			"MPI_Barrier:6:88,ME,2:7\nMPI_Barrier:8:99,ME,2:9\nMPI_Finalize:20:-\n", "ME", fmt.Sprint(me)))
	}
	r, err := imported(t, written(t, ranks...), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Events[3].Comm != 1 || r.Events[4].Comm != 2 || len(r.Warnings) != 2 {
		t.Errorf("%+v %q", r.Events[3:5], r.Warnings)
	}
}

// Wildcards have no source, so what they receive is unmatched; -1 is MPICH's MPI_PROC_NULL where something is sent to
// it.
func TestWildcards(t *testing.T) {
	for _, c := range []struct {
		to               int
		unmatched, calls int64
	}{{-2, 1, 5}, {-1, 0, 5}} {
		r, err := imported(t, written(t, "MPI_Init:-:1:2:1\n"+
			fmt.Sprintf("MPI_Send:2:1:1:1,4,4:%d:3:7,0,1:3\n", c.to)+
			"MPI_Recv:4:1:1:1,4,4:-1:3:7,0,1:0:5\nMPI_Recv:4:1:1:1,4,4:-1:3:7,0,1:0:5\nMPI_Finalize:20:-\n"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if n := r.Counts.UnmatchedReceives; n != 2*c.unmatched || r.Counts.Calls != c.calls {
			t.Errorf("to %d: %+v", c.to, r.Counts)
		}
	}
}

// The number of MPICH's MPI_COMM_WORLD tells that -2 is MPI_ANY_SOURCE and requests have 4 bytes; where nothing tells
// the library, this is said; a number that cannot be is an error.
func TestLibraries(t *testing.T) {
	run := func(comm, from, to string) (*formatstest.Run, string, error) {
		send := ""
		if to != "" {
			send = fmt.Sprintf("MPI_Send:2:1:1:1,4,4:%s:3:%s,0,1:3\n", to, comm)
		}
		r, err := imported(t, written(t, fmt.Sprintf("MPI_Init:-:1:2:1\n%sMPI_Recv:4:1:1:1,4,4:%s:3:%s,0,1:0:5\n"+
			"MPI_Finalize:20:-\n", send, from, comm)), Options{})
		if err != nil {
			return nil, "", err
		}
		return r, strings.Join(r.Warnings, "\n"), nil
	}
	for _, c := range []struct {
		comm, from, to string
		isAny, unsure  bool
	}{
		{"1140850688", "-2", "", true, false},
		{"1140850688", "-1", "", false, false},
		{"5641280", "-1", "", true, false},
		{"0", "-2", "", false, false},
		{"7", "-1", "", true, true},
		{"7", "-1", "-2", true, false},
		{"7", "-2", "-1", true, false},
	} {
		r, w, err := run(c.comm, c.from, c.to)
		if err != nil {
			t.Fatal(err)
		}
		if n := r.Counts.UnmatchedReceives; (n == 1) != c.isAny || strings.Contains(w, "from -1 or -2: 1.") != c.unsure {
			t.Errorf("%+v: %d unmatched, %s", c, n, w)
		}
	}
	for _, c := range []struct{ comm, from, to, want string }{
		{"1140850688", "0", "-2", "line 7: MPI_Send: a message to -2, which other calls"},
		{"7", "-5", "0", "line 8: rank -5; want a rank, or -1 or -2"},
	} {
		if _, _, err := run(c.comm, c.from, c.to); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// Roots of intercommunicators are those of the MPI library.
func TestRoots(t *testing.T) {
	for _, root := range []int{-4, -3} {
		connect := "MPI_Init:-:1:2:1\nMPI_Intercomm_create:2:55,0,1:0:77,%d,2:%d:3:9000:3\n"
		r, err := imported(t, written(t,
			fmt.Sprintf(connect+"MPI_Bcast:4:1:4:1,1,1:%d:99,0,1:5\nMPI_Finalize:9:-\n", 0, 1, root),
			fmt.Sprintf(connect+"MPI_Bcast:4:1:4:1,1,1:0:99,0,1:5\nMPI_Finalize:9:-\n", 1, 0)), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if e := r.Events[2]; e.RootWorld != 0 || e.SendBytes != 4 {
			t.Errorf("%+v", e)
		}
	}
}

// Counts of a gather's receives, and of a scatter's sends, mean something at the root only.
func TestCountsOfTheRoot(t *testing.T) {
	lines := "MPI_Init:-:1:2:1\nMPI_Gather:2:1:1:1,4,4:2:%[2]d:1,4,4:0:0,%[1]d,2:3\n" +
		"MPI_Gatherv:4:1:1:1,4,4:2:3:%[2]d,1:4:0,1:1,4,4:0:0,%[1]d,2:5\n" +
		"MPI_Scatter:6:1:%[2]d:1,4,4:2:1:1,4,4:0:0,%[1]d,2:7\n" +
		"MPI_Scatterv:8:1:3:%[2]d,1:4:0,1:1,4,4:2:1:1,4,4:0:0,%[1]d,2:9\nMPI_Finalize:20:-\n"
	r, err := imported(t, written(t, fmt.Sprintf(lines, 0, 1), fmt.Sprintf(lines, 1, -1)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Init 0-0", "Gather 1-2 comm=0 sent=4 received=0 root=0",
		"Gatherv 3-4 comm=0 sent=4 received=0 root=0",
		"Scatter 5-6 comm=0 sent=0 received=4 root=0", "Scatterv 7-8 comm=0 sent=0 received=4 root=0", "Finalize 19-19"}
	if diff := cmp.Diff(want, rowsOf(r, 1)); diff != "" {
		t.Error(diff)
	}
	if _, err = imported(t, written(t, fmt.Sprintf(lines, 0, -1), fmt.Sprintf(lines, 1, 1)), Options{}); err == nil ||
		!strings.Contains(err.Error(), "line 7: -1 elements of 4 bytes") {
		t.Error(err)
	}
}

// A receive that the program cancelled takes no message; one that uses its address again does.
func TestCancel(t *testing.T) {
	for _, end := range []string{"MPI_Wait:6:1000:0:7\n", "MPI_Waitall:6:1:1000:0:7\n", "MPI_Request_free:6:1000:7\n"} {
		for _, o := range sizes {
			r, err := imported(t, written(t, "MPI_Init:-:1:2:1\nMPI_Irecv:2:1:100:1,1,1:0:5:0,0,1:1000:3\n"+
				"MPI_Cancel:4:1000:5\n"+end+"MPI_Send:20:1:60:1,1,1:0:5:0,0,1:21\n"+
				"MPI_Irecv:22:1:100:1,1,1:0:5:0,0,1:1000:23\nMPI_Wait:24:1000:0:25\nMPI_Finalize:26:-\n"), o)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Messages) != 1 || r.Messages[0].RecvPostSeq != 5 || r.Events[5].RecvBytes != 60 ||
				!strings.Contains(strings.Join(r.Warnings, "\n"), "whether a message came before them: 1.") {
				t.Errorf("%s%+v %q", end, r.Messages, r.Warnings)
			}
		}
	}
}

// What is wrong with a trace is told with its line.
func TestDamaged(t *testing.T) {
	for _, c := range []struct{ want, line string }{
		{"line 7: \"hello\"; want a call such as", "hello"},
		{"line 7: \"x\"; want a time in microseconds", "MPI_Barrier:x:0,0,1:3"},
		{"line 7: MPI_Barrier with 2 arguments; want 1", "MPI_Barrier:2:0,0,1:4:3"},
		{"line 7: the communicator \"0,1,1\"", "MPI_Barrier:2:0,1,1:3"},
		{"line 7: MPI_Barrier: communicator 5, of 3 ranks, was not made", "MPI_Barrier:2:5,0,3:3"},
		{"line 7: the datatype \"11\"", "MPI_Bcast:2:1:1:11:0:0,0,1:3"},
		{"line 7: 9000000000000000 elements of 900000 bytes", "MPI_Bcast:2:1:9000000000000000:1,900000,1:0:0,0,1:3"},
		{"line 7: MPI_Send: a message to rank 4 of a communicator of 1 ranks", "MPI_Send:2:1:1:1,4,4:4:0:0,0,1:3"},
		{"line 7: MPI_Gatherv without the counts", "MPI_Gatherv:2:1:1:1,4,4:2:3:4:1,4,4:0:0,0,1:3"},
		{"line 7: -1 requests", "MPI_Waitall:2:-1:100:0:3"},
	} {
		_, err := imported(t, written(t, "MPI_Init:-:1:2:1\n"+c.line+"\n"), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "rank-0.txt: ") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// A file that ends within a line is refused, unless that is the last one; a line has an end to its length; calls that
// end before they begin are counted.
func TestCutFiles(t *testing.T) {
	for _, c := range []struct{ want, text string }{
		{"line 7: \"MPI_Barrier:6000:0,0,1:7\" ends the file within a line", "MPI_Init:-:1:2:1\nMPI_Barrier:6000:0,0,1:7"},
		{"line 7: \"MPI_Finalize:60\" ends the file within", "MPI_Init:-:1:2:1\nMPI_Finalize:60"},
		{"line 7: more than 67108864 characters", "MPI_Init:-:1:2:1\n" + strings.Repeat("x", 65<<20)},
	} {
		_, err := imported(t, written(t, c.text), Options{})
		if err == nil || !strings.Contains(err.Error(), "rank-0.txt: "+c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	r, err := imported(t, written(t, "MPI_Init:-:1:2:1\nMPI_Barrier:6000:0,0,1:7\nMPI_Finalize:8000:-"), Options{})
	if err != nil || !strings.Contains(strings.Join(r.Warnings, "\n"), "end before they begin, which got no length: 1.") {
		t.Errorf("%v %+v", err, r)
	}
}

// A trace is found by a file of it and by its folder; files of ranks must all be there.
func TestImportPath(t *testing.T) {
	text := "MPI_Init:-:1:2:1\nMPI_Finalize:20:-\n"
	path := written(t, text, text)
	for _, p := range []string{path, filepath.Dir(path)} {
		dir := t.TempDir()
		var o Options
		o.Origin.Commq = "test"
		m, err := ImportPath(context.Background(), p, dir, "x", o)
		if err != nil {
			t.Fatal(err)
		}
		problems, err := writer.Check(context.Background(), filepath.Join(dir, "x"))
		if err != nil || len(problems) > 0 || m.Ranks != 2 {
			t.Error(problems, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := imported(t, filepath.Join(filepath.Dir(path), "pmpi-trace-rank-1.txt"), Options{})
	if err == nil || !strings.Contains(err.Error(), "no file of rank 0; there are 1 files pmpi-trace-rank-*.txt") {
		t.Error(err)
	}
}

// Damaged traces are errors or runs that break no rule; nothing else happens.
func FuzzImport(f *testing.F) {
	const a = "MPI_Init:-:1:2:1\nMPI_Comm_split:2:77,0,2:1:0:9000:3\nMPI_Irecv:4:100:1:1,4,4:1:3:9,0,2:1000:5\n" +
		"MPI_Sendrecv:5:1:2:1,4,4:1:3:1:2:1,4,4:1:3:77,0,2:0:6\nMPI_Waitall:9:1:1000:0:10\n" +
		"MPI_Alltoallv:11:1:2:3,4:1:0,1:1,4,4:2:3:3,4:4:0,1:1,4,4:9,0,2:12\nMPI_Finalize:20:-\n"
	f.Add(head+"# Init clockdiff: 1.5\n"+a, head+"# Init clockdiff: -1.5\n"+strings.ReplaceAll(a, ",0,2", ",1,2")+
		"# Finalize clockdiff: 3\n")
	f.Add("# htor's PMPI Tracer 1 Output File\n# clockdiff: 0.5 s (relative to rank 0)\n"+a, a)
	const b = "MPI_Init:-:1:2:1\nMPI_Comm_rank:2:1140850688,0,2:9:2\nMPI_Comm_dup:2:1140850688,0,2:9000:3\n" +
		"MPI_Comm_split:3:1140850688,0,2:0:0:9000:4\nMPI_Irecv:4:100:1:1,4,4:-2:3:9,0,2:1000:5\nMPI_Cancel:5:1000:6\n" +
		"MPI_Waitall:6:2:996:0:7\nMPI_Comm_free:7:9000:8\nMPI_Comm_free:7:9001:8\nMPI_Barrier:8:9,0,2:9\n" +
		"MPI_Dist_graph_create:9:1:2:10\nMPI_Scatter:11:1:1:1,4,4:2:1:1,4,4:1:9,0,2:12\nMPI_Finalize:20:-\n"
	f.Add(head+b, head+strings.ReplaceAll(b, ",0,2", ",1,2"))
	f.Fuzz(func(t *testing.T, a, b string) {
		defer time.AfterFunc(4*time.Second, func() { panic("slow") }).Stop()
		if !strings.HasPrefix(a, "#") || !strings.HasPrefix(b, "#") {
			a, b = head+a, head+b
		}
		_, _ = imported(t, written(t, a, b), Options{Keep: 2, EpochRows: 4, Round: 3})
	})
}
