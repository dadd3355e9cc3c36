package nsys

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// The public sample: an all-to-all of PyTorch's is a group of sends and receives, and one kernel. Both processes have
// 8 with a kernel in the first 80 ms, and one kernel each whose call came before.
func TestPublicSample(t *testing.T) {
	r := mustImport(t, sample(t))
	calls := map[schema.CallID]int{}
	threads := map[int32]bool{}
	for i := range r.Events {
		e := &r.Events[i]
		calls[schema.CallID(e.Call)]++
		threads[e.Thread] = true
		if schema.CallID(e.Call) == schema.CallIalltoall && (e.Comm != 0 || e.SendBytes != schema.NullInt64) {
			t.Errorf("%+v", e)
		}
	}
	if r.Ranks != 2 || calls[schema.CallIalltoall] != 16 || calls[schema.CallWait] != 16 || len(r.Events) != 32 ||
		r.Counts.Collectives != 8 || r.ComputeClock != "device" || r.Ended != "finalized" {
		t.Errorf("%d ranks, %v, %+v", r.Ranks, calls, r.Manifest)
	}
	wantWarning(t, r, "Exports of Nsight Systems 2026.2.1.210.")
	wantWarning(t, r, "no payloads of NCCL's ranges")
	wantWarning(t, r, "Kernels of sends and receives without the call that asked for them, which have no row: 2.")
	wantWarning(t, r, "whose kernels overlap in time on all ranks")
}

// ImportPath makes a run with a manifest that is valid, named after the file.
func TestStored(t *testing.T) {
	store := t.TempDir()
	m, err := ImportPath(context.Background(), sample(t), store, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	back, err := writer.ReadManifest(filepath.Join(store, "mfu"))
	if err != nil {
		t.Fatal(err)
	}
	if back.Digest != m.Digest || back.Origin.Trace.Format != "nsys" || back.Evidence() != schema.EvidenceImported {
		t.Errorf("%+v", back)
	}
}

// Payloads: two processes of one file make a communicator, 0xabc, process 7 as rank 1. An all-gather of 100 bytes each
// gives 200, a broadcast of 60 from rank 1 (process 7), and process 8 (rank 0) sends 5000 bytes to it in a group. Times
// count from the first kernel of process 7, 1000.
func TestPayloads(t *testing.T) {
	for name, form := range map[string]func(b []byte) any{
		"blob": func(b []byte) any { return b },
		"hex":  func(b []byte) any { return inHex(b) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t, t.TempDir(), "a.sqlite")
			d.layouts()
			for i, pid := range []int{7, 8} {
				rank := int32(1 - i)
				d.span(pid, "ncclCommInitRank", 10, 20, form(blob(layoutInit, 0xabc, int32(2), rank, int32(0))))
				d.kernel(pid, i, 3, "gemm", 30, 1000, 1100)
				d.span(pid, "ncclAllGather", 100, 150, form(blob(layoutGather, 0xabc, 100)))
				d.kernel(pid, i, 5, "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096>)", 120, 1100+10*i,
					1200)
				d.span(pid, "ncclBroadcast", 200, 250, form(blob(layoutRoot, 0xabc, 60, int32(1))))
				d.kernel(pid, i, 5, "ncclDevKernel_Broadcast_RING_LL", 220, 1300, 1400)
				d.span(pid, "ncclGroupStart", 300, 301, nil)
				if rank == 0 {
					d.span(pid, "ncclSend", 310, 320, form(blob(layoutPeer, 0xabc, 5000, int32(1))))
				} else {
					d.span(pid, "ncclRecv", 310, 320, form(blob(layoutPeer, 0xabc, 5000, int32(0))))
				}
				d.span(pid, "ncclGroupEnd", 330, 350, nil)
				d.kernel(pid, i, 5, "ncclDevKernel_SendRecv", 340, 1500, 1600)
			}
			r := mustImport(t, d.path)
			wantRows(t, r, `
0.0 Iallgather comm=0 sent=100 received=200 instance=0 request=1 done=1 label=RING LL 110-110
0.1 Wait request=1 110-200
0.2 Ibcast comm=0 root=1 sent=0 received=60 instance=1 request=2 done=3 label=RING LL 300-300
0.3 Wait request=2 300-400
0.4 Isend comm=0 to=1 stag=0 sent=5000 request=3 done=5 500-500
0.5 Wait request=3 500-600
1.0 Iallgather comm=0 sent=100 received=200 instance=0 request=1 done=1 label=RING LL 100-100
1.1 Wait request=1 100-200
1.2 Ibcast comm=0 root=1 sent=60 received=0 instance=1 request=2 done=3 label=RING LL 300-300
1.3 Wait request=2 300-400
1.4 Irecv comm=0 from=0 rtag=0 received=5000 request=3 done=5 500-500
1.5 Wait request=3 500-600`)
			if r.Counts.Messages != 1 || r.Counts.MessageBytes != 5000 || r.Counts.Collectives != 2 {
				t.Errorf("%+v", r.Counts)
			}
			wantWarning(t, r, "numbered by their ranks in the largest communicator of NCCL")
		})
	}
}

// Payloads in tables of their own, as nsys export --dynamic-tables=all writes them.
func TestDynamicTables(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	d.exec(`CREATE TABLE DYNAMIC_NVTXPAYLOAD_DATATYPE_7_1_16777221 (eventId INTEGER, "NCCL communicator ID" INTEGER,
		"Message size [bytes]" INTEGER, "Reduction operation" INTEGER)`)
	for _, pid := range []int{7, 8} {
		d.span(pid, "ncclAllReduce", 100, 150, nil)
		d.kernel(pid, 0, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 120, 1100, 1200)
		d.exec("INSERT INTO DYNAMIC_NVTXPAYLOAD_DATATYPE_7_1_16777221 SELECT max(eventId), 99, 4097, 0 FROM " +
			"NVTX_EVENTS")
	}
	r := mustImport(t, d.path)
	wantRows(t, r, `
0.0 Iallreduce comm=0 sent=4097 received=4097 instance=0 request=1 done=1 label=Sum f32 RING LL 0-0
0.1 Wait request=1 0-100
1.0 Iallreduce comm=0 sent=4097 received=4097 instance=0 request=1 done=1 label=Sum f32 RING LL 0-0
1.1 Wait request=1 0-100`)
	wantWarning(t, r, "Communicators that were made outside of the recorded time; they have the ranks that used "+
		"them, in their order: 1.")
}

// PyTorch's all-to-all calls NCCL for each message: 10 bytes to rank 0 and 30 to rank 1 of process 7, which gets 10 and
// 50. The shares are uneven. The run begins with the step, at 90.
func TestAllToAllOfMessages(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	d.layouts()
	sends := [2][2]int{{10, 30}, {50, 70}}
	for i, pid := range []int{7, 8} {
		d.span(pid, "ncclCommInitRankConfig", 1, 2, blob(layoutInit, 5, int32(2), int32(i), int32(0)))
		d.span(pid, "ProfilerStep#4", 90, 400, nil)
		d.span(pid, "nccl:all_to_all, op_id = 12", 100, 300, nil)
		d.span(pid, "ncclGroupStart", 110, 111, nil)
		for peer := range 2 {
			d.span(pid, "ncclSend", 120+20*peer, 125+20*peer, blob(layoutPeer, 5, sends[i][peer], int32(peer)))
			d.span(pid, "ncclRecv", 130+20*peer, 135+20*peer, blob(layoutPeer, 5, sends[peer][i], int32(peer)))
		}
		d.span(pid, "ncclGroupEnd", 200, 290, nil)
		d.kernel(pid, i, 5, "ncclDevKernel_SendRecv", 220, 1000+i, 1100)
	}
	r := mustImport(t, d.path)
	wantRows(t, r, `
0.0 commq_mark label=ProfilerStep#4 0-0
0.1 Ialltoallv comm=0 sent=40 received=60 instance=0 request=1 done=2 910-910
0.2 Wait request=1 910-1010
1.0 commq_mark label=ProfilerStep#4 0-0
1.1 Ialltoallv comm=0 sent=120 received=100 instance=0 request=1 done=2 911-911
1.2 Wait request=1 911-1010`)
	if len(r.Parts) != 4 || r.Parts[1].PeerWorld != 1 || r.Parts[1].SendBytes != 30 || r.Parts[1].RecvBytes != 50 {
		t.Errorf("%+v", r.Parts)
	}
}

// One process with two GPUs is two ranks: it asks for both in a group, and NCCL launches a kernel on each.
func TestGPUsOfOneProcess(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	d.span(7, "ncclGroupStart", 100, 101, nil)
	d.span(7, "ncclAllReduce", 110, 115, nil)
	d.span(7, "ncclAllReduce", 120, 125, nil)
	d.span(7, "ncclGroupEnd", 130, 150, nil)
	d.kernel(7, 0, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 140, 1000, 1100)
	d.kernel(7, 1, 9, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 142, 1010, 1100)
	r := mustImport(t, d.path)
	if r.Ranks != 2 || len(r.Events) != 4 || r.Counts.Collectives != 1 {
		t.Errorf("%d ranks, %+v", r.Ranks, r.Counts)
	}
}

// What a process asks for in a group for GPUs 0 and 1 goes to both alike: operation by operation or GPU by GPU. Where
// neither order fits, the kernels' names tell the rows. GPU 0 is rank 0, and gets its sizes as they are listed here.
func TestGroupsOfSeveralGPUs(t *testing.T) {
	for name, c := range map[string]struct {
		sizes   []int
		want    string
		undealt bool
	}{
		"by operation":  {sizes: []int{100, 100, 7000, 7000}, want: "[100 7000] [100 7000]"},
		"by GPU":        {sizes: []int{100, 7000, 100, 7000}, want: "[100 7000] [100 7000]"},
		"neither":       {sizes: []int{100, 200, 300, 400}, want: "[null] [null]", undealt: true},
		"one too many":  {sizes: []int{100, 100, 100}, want: "[null] [null]", undealt: true},
		"sizes differ":  {sizes: []int{100, 200}, want: "[100] [200]"},
		"fewer than of": {sizes: []int{100}, want: "[null] [null]", undealt: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t, t.TempDir(), "a.sqlite")
			d.layouts()
			d.span(7, "ncclGroupStart", 100, 101, nil)
			for i, bytes := range c.sizes {
				d.span(7, "ncclAllGather", 110+10*i, 115+10*i, blob(layoutGather, 0xabc, bytes))
			}
			d.span(7, "ncclGroupEnd", 190, 200, nil)
			for device := range 2 {
				d.kernel(7, device, 5, "ncclDevKernel_AllGather_RING_LL", 195+device, 1000, 1100)
			}
			r := mustImport(t, d.path)
			var got [2][]string
			for i := range r.Events {
				e := &r.Events[i]
				if schema.CallID(e.Call) != schema.CallIallgather {
					continue
				}
				bytes := "null"
				if e.SendBytes != schema.NullInt64 {
					bytes = fmt.Sprint(e.SendBytes)
				}
				got[e.Rank] = append(got[e.Rank], bytes)
			}
			if got := fmt.Sprint(got[0], got[1]); got != c.want {
				t.Errorf("%s; want %s\n%s", got, c.want, strings.Join(r.Warnings, "\n"))
			}
			if c.undealt {
				wantWarning(t, r, fmt.Sprintf("or their range of PyTorch has, without sizes: %d.", len(c.sizes)))
			}
		})
	}
}

// A group that does not end holds nothing: the call in it stands alone, and so do the three after it, each with its
// kernel. The group after these has its own end, whose range the recording cut: its two calls have its kernel.
func TestGroupsWithoutEnd(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	for i, pid := range []int{7, 8} {
		d.span(pid, "ncclGroupStart", 100, 101, nil)
		d.span(pid, "ncclAllGather", 110, 115, nil)
		for k := range 3 {
			at := 1000 * (k + 1)
			d.span(pid, "ncclAllReduce", at, at+100, nil)
			d.kernel(pid, i, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at+50, at+200, at+400)
		}
		d.span(pid, "ncclGroupStart", 4000, 4001, nil)
		d.span(pid, "ncclAllReduce", 4010, 4020, nil)
		d.span(pid, "ncclAllReduce", 4030, 4040, nil)
		d.span(pid, "ncclGroupEnd", 4050, 4060, nil)
		d.kernel(pid, i, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 4050, 4200, 4400)
	}
	d.exec("UPDATE NVTX_EVENTS SET end = NULL WHERE start = 4050")
	r := mustImport(t, d.path)
	var ends []int64
	for i := range r.Events {
		if e := &r.Events[i]; e.Rank == 1 && schema.CallID(e.Call) == schema.CallWait {
			ends = append(ends, e.EndNs)
		}
	}
	if got, want := fmt.Sprint(ends), "[5 1290 2290 3290 4290 4290]"; got != want || r.Counts.Collectives != 6 {
		t.Errorf("operations end at %s; want %s; %+v", got, want, r.Counts)
	}
	wantWarning(t, r, "Groups of NCCL without an end (ncclGroupEnd) in the export, whose calls stand alone: 2.")
}

// Two kernels of a group of three, launched after it and before the next one, are both the group's.
func TestGroupsLaunchedOutside(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	for i, pid := range []int{7, 8} {
		d.span(pid, "ncclAllReduce", 10, 60, nil)
		d.kernel(pid, i, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 20, 70, 80)
		for k := range 2 {
			at := 1000 * (k + 1)
			d.span(pid, "ncclGroupStart", at, at+1, nil)
			for f := range 3 {
				d.span(pid, "ncclAllReduce", at+10+10*f, at+15+10*f, nil)
			}
			d.span(pid, "ncclGroupEnd", at+50, at+60, nil)
			for n := range 2 {
				d.kernel(pid, i, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at+70+n, at+200+100*n, at+250+100*n)
			}
		}
	}
	r := mustImport(t, d.path)
	if r.Counts.Collectives != 7 || len(r.Events) != 28 {
		t.Errorf("%d rows, %+v", len(r.Events), r.Counts)
	}
}

// The kernels of the last two of three all-reduces are launched 50 ns after their ranges: they are the kernels of these
// calls, and none has a second row. A kernel that was launched before all calls has its own row.
func TestLaunchesOutsideOfRanges(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	for i, pid := range []int{7, 8} {
		d.kernel(pid, i, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 500, 900, 950)
		for k, launched := range []int{1050, 2150, 3150} {
			at := 1000 * (k + 1)
			d.span(pid, "ncclAllReduce", at, at+100, nil)
			d.kernel(pid, i, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", launched, at+200, at+400)
		}
		d.span(pid, "ncclAllGather", 4000, 4100, nil)
	}
	r := mustImport(t, d.path)
	if r.Counts.Collectives != 5 || len(r.Events) != 20 {
		t.Errorf("%d rows, %+v", len(r.Events), r.Counts)
	}
	wantWarning(t, r, "Kernels that were launched outside of the range of a call, each given to the first call of the "+
		"same operation that had none: 4.")
	wantWarning(t, r, "Operations without a kernel in the export, which have the time of their call: 2.")
}

// Kernels of a CUDA graph come without a call: their names tell the operation. What the process recorded into the graph
// has no kernel, and no row.
func TestGraphs(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	for _, pid := range []int{7, 8} {
		d.span(pid, "ncclAllReduce", 100, 150, nil)
		d.kernel(pid, 0, 5, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 500, 1000, 1100)
		d.kernel(pid, 0, 5, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 500, 2000, 2100)
		d.kernel(pid, 0, 5, "ncclDevKernel_SendRecv", 500, 2200, 2300)
	}
	d.exec("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET graphNodeId = rowid")
	r := mustImport(t, d.path)
	if r.Counts.Collectives != 2 || len(r.Events) != 8 {
		t.Errorf("%+v", r.Counts)
	}
	wantWarning(t, r, "taken as recorded into a graph, which have no row: 2.")
	wantWarning(t, r, "Kernels of sends and receives without the call that asked for them, which have no row: 2.")
}

// Recordings that begin and end at other operations: rank 0 has operations 0 to 5, rank 1 has 2 to 7. Those that
// overlap in time are the same.
func TestCutWindows(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	for i, pid := range []int{7, 8} {
		for op := 2 * i; op < 6+2*i; op++ {
			at := 1000 * (op + 1)
			d.span(pid, "nccl:all_reduce, op_id = 1", at, at+100, nil)
			d.kernel(pid, i, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", at+50, at+200+10*i, at+400)
		}
	}
	r := mustImport(t, d.path)
	var first [2]int64
	for i := range r.Events {
		if e := &r.Events[i]; e.Seq == 0 {
			first[e.Rank] = e.Instance
		}
	}
	if first != [2]int64{0, 2} || r.Ended != "killed" || r.Counts.Dropped != 4 {
		t.Errorf("the ranks begin with %v, %s, %+v", first, r.Ended, r.Counts)
	}
}

// Without kernels nothing overlaps: that all ranks made the same operations is then why they count on all.
func TestNoKernelsNoAlignment(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	for i, pid := range []int{7, 8} {
		for op := range 4 {
			d.span(pid, "ncclAllReduce", 1000*op+10*i, 1000*op+100, nil)
		}
	}
	r := mustImport(t, d.path)
	for _, w := range r.Warnings {
		if strings.Contains(w, "whose kernels overlap") {
			t.Error(w)
		}
	}
	wantWarning(t, r, "as all ranks made the same operations, these count on all ranks")
	if r.Counts.Collectives != 4 {
		t.Errorf("%+v", r.Counts)
	}
}

// A folder has an export of each rank; their clocks are set by when their sessions began. The names tell the ranks, the
// environment of launchers before them.
func TestFolder(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"report.rank1.sqlite", "report.rank0.sqlite"} {
		d := newDatabase(t, dir, name)
		d.exec("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, '')", 1_700_000_000_000_000_000+5000*i)
		d.exec("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'Hostname', ?)", name[7:12])
		d.span(7, "ncclAllReduce", 100, 150, nil)
		d.kernel(7, 0, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 120, 1000, 9000)
	}
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("of the job"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := mustImport(t, dir)
	wantRows(t, r, `
0.0 Iallreduce comm=0 instance=0 request=1 done=1 label=Sum f32 RING LL 5000-5000
0.1 Wait request=1 5000-13000
1.0 Iallreduce comm=0 instance=0 request=1 done=1 label=Sum f32 RING LL 0-0
1.1 Wait request=1 0-8000`)
	wantWarning(t, r, "numbered by the names of the files")
	if hosts := strings.Join(r.Origin.Hosts, " "); hosts != "rank0 rank1" {
		t.Errorf("hosts %s", hosts)
	}
}

// Numbers in names are ranks also if some are missing, which the import names. Numbers that do not begin at 0, or are
// too far apart, are those of reports, jobs or processes, and the order of the files counts.
func TestRanksInNames(t *testing.T) {
	for name, c := range map[string]struct {
		files []string
		ranks string
		says  string
	}{
		"word": {[]string{"a.rank0", "a.rank2", "a.rank3"}, "0 2 3 of 4",
			"No export has operations of these of the 4 ranks: 1."},
		"word, far":  {[]string{"a.rank9", "a.rank7"}, "7 9 of 10", "of the 10 ranks: 0, 1, 2, 3, 4, 5, 6, 8."},
		"number":     {[]string{"a_0", "a_2", "a_3"}, "0 2 3 of 4", "of the 4 ranks: 1."},
		"of reports": {[]string{"report1", "report2"}, "0 1 of 2", "numbered by the order of their files"},
		"of jobs":    {[]string{"a_0", "a_4711"}, "0 1 of 2", "numbered by the order of their files"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range c.files {
				d := newDatabase(t, dir, file+".sqlite")
				d.span(7, "ncclAllReduce", 100, 150, nil)
				d.kernel(7, 0, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 120, 1000, 9000)
			}
			r := mustImport(t, dir)
			got := ""
			for i := range r.Events {
				if e := &r.Events[i]; e.Seq == 0 {
					got += fmt.Sprintf("%d ", e.Rank)
				}
			}
			if got += fmt.Sprintf("of %d", r.Ranks); got != c.ranks {
				t.Errorf("ranks %s; want %s", got, c.ranks)
			}
			wantWarning(t, r, c.says)
		})
	}
}

// The environment tells the rank of the only process of an export.
func TestRankInEnvironment(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	d.exec("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (0, 'DeviceEnvironment', 'HOME=/root;RANK=3;WORLD_SIZE=5;X=1')")
	d.span(7, "ncclAllReduce", 100, 150, nil)
	d.kernel(7, 0, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 120, 1000, 1100)
	r := mustImport(t, d.path)
	if r.Ranks != 5 || r.Events[0].Rank != 3 {
		t.Errorf("rank %d of %d", r.Events[0].Rank, r.Ranks)
	}
}

// What cannot be read is an error that says where and what.
func TestErrors(t *testing.T) {
	good := sample(t)
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut.sqlite")
	if err := os.WriteFile(cut, data[:len(data)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(t.TempDir(), "text.sqlite")
	if err := os.WriteFile(text, []byte("no database"), 0o644); err != nil {
		t.Fatal(err)
	}
	build := func(fill func(d *database)) string {
		d := newDatabase(t, t.TempDir(), "made.sqlite")
		fill(d)
		return d.path
	}
	for path, want := range map[string]string{
		cut:  "malformed",
		text: `begins with "no database"; want a SQLite database`,
		build(func(d *database) {
			d.kernel(7, 0, 5, "gemm", 1, 2,
				3)
		}): "no operation of NCCL in it (1 processes with 2 events",
		build(func(d *database) {
			d.kernel(7, 0, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1, 2, 3)
			d.exec("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = 'noon'")
		}): `table CUPTI_ACTIVITY_KIND_KERNEL, row 1: start is "noon"; want a whole number`,
		build(func(d *database) {
			d.kernel(7, 0, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1, 2, 3)
			d.exec("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET end = 1 << 62")
		}): "row 1: end is 4611686018427387904; want a time in nanoseconds",
		build(func(d *database) {
			for _, table := range []string{"StringIds", "NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_KERNEL"} {
				d.exec("DROP TABLE " + table)
			}
		}): "no table of Nsight Systems",
		build(func(d *database) { d.exec("INSERT INTO MPI_RANKS VALUES (7, -1)") }): "rank is -1; want the rank of a " +
			"process",
	} {
		if _, err := imported(t, path); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), path) {
			t.Errorf("%v; want %s: ... %s", err, path, want)
		}
	}
}

// Tables without rowid are read as others are; rows are numbered in their order.
func TestTablesWithoutRowid(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	d.exec("DROP TABLE MPI_RANKS")
	d.exec("CREATE TABLE MPI_RANKS (globalTid INTEGER NOT NULL PRIMARY KEY, rank INTEGER) WITHOUT ROWID")
	for rank, pid := range []int{9, 8} {
		d.span(pid, "ncclAllReduce", 100, 150+pid, nil)
		d.rank(pid, rank)
	}
	if r := mustImport(t, d.path); r.Ranks != 2 || r.Events[0].Rank != 0 || r.Events[0].EndNs != 59 {
		t.Errorf("%d ranks, %+v", r.Ranks, r.Events)
	}
	d.exec("UPDATE MPI_RANKS SET rank = 'red' WHERE rank = 0")
	if _, err := imported(t, d.path); err == nil || !strings.Contains(err.Error(), `MPI_RANKS, row 2: rank is "red"`) {
		t.Error(err)
	}
}

// A table that is a view, or a virtual table, is none: it may never end.
func TestViewsAreNoTables(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "a.sqlite")
	d.span(7, "ncclAllReduce", 100, 150, nil)
	d.exec("DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL")
	d.exec("CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) " +
		"SELECT i AS start, i AS end, 0 AS deviceId, 0 AS streamId, 0 AS globalPid, 0 AS correlationId FROM n")
	if r := mustImport(t, d.path); len(r.Events) != 2 {
		t.Errorf("%d rows", len(r.Events))
	}
}

// What another program wrote beside the file is not lost silently.
func TestUnfinishedWriting(t *testing.T) {
	path := sample(t)
	if err := os.WriteFile(path+"-wal", []byte("pages"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := imported(t, path); err == nil || !strings.Contains(err.Error(), "-wal") {
		t.Error(err)
	}
}

// SQLite makes no value longer than the limit, whatever a damaged file claims.
func TestMemoryIsBounded(t *testing.T) {
	f, err := open(context.Background(), sample(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	err = f.query(context.Background(), "StringIds", []string{"value"}, "SELECT 1, zeroblob(400000000)", func(*row) {})
	if err == nil || !strings.Contains(err.Error(), "too big") {
		t.Errorf("400 MB: %v", err)
	}
}
