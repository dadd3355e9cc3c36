package paraver

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// smallRun writes a run of two ranks: rank 0 sends 4097 bytes to rank 1, and both reduce them to rank 1; rank 1 then
// makes a call that never returns.
func smallRun(t *testing.T) string {
	t.Helper()
	store := t.TempDir()
	out, err := writer.Create(store, "small", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	ranks, comms, events, messages, sites := &schema.RankInfos{}, &schema.Comms{}, &schema.Events{},
		&schema.Messages{}, &schema.Callsites{}
	for rank := range int32(2) {
		r, c := schema.NullRankInfo, schema.NullComm
		r.Rank, r.Host, r.Threads = rank, rank, 1
		ranks.Append(&r)
		c.Comm, c.CommRank, c.WorldRank, c.Kind = 0, rank, rank, int16(schema.CommWorld)
		comms.Append(&c)
	}
	site := schema.NullCallsite
	site.ID, site.Function, site.File, site.Line = 0, "main", "ring\n.c", 17
	sites.Append(&site)
	add := func(rank int32, seq int64, call schema.CallID, start, end int64, more func(*schema.Event)) {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Call, e.Class, e.StartNs, e.EndNs, e.Callsite, e.Thread = rank, seq, int16(call),
			int16(schema.Calls[call].Class), start, end, 0, 0
		if more != nil {
			more(&e)
		}
		events.Append(&e)
	}
	reduce := func(e *schema.Event) {
		e.Comm, e.Instance, e.RootWorld, e.SendBytes, e.RecvBytes = 0, 0, 1, 24, 0
		if e.Rank == 1 {
			e.RecvBytes = 24
		}
	}
	add(0, 0, schema.CallSend, 100, 110, nil)
	add(0, 1, schema.CallReduce, 110, 150, reduce)
	add(1, 0, schema.CallIrecv, 20, 23, nil)
	add(1, 1, schema.CallWait, 30, 130, nil)
	add(1, 2, schema.CallReduce, 140, 160, reduce)
	add(1, 3, schema.CallBarrier, 170, schema.NullInt64, nil)
	m := schema.NullMessage
	m.Src, m.Dst, m.Tag, m.Bytes, m.SendStartNs, m.RecvPostNs, m.RecvEndNs = 0, 1, 9, 4097, 100, 20, 130
	m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = 0, 0, 1
	messages.Append(&m)
	for _, b := range []schema.Batch{ranks, comms, events, messages, sites} {
		if err := out.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	err = out.Commit(t.Context(), &schema.Manifest{Ranks: 2, TimeOrigin: "measured", ComputeClock: "none", Record: "all",
		Hash: "none", Ended: "killed", Epochs: 1, EndNs: 180,
		Callsites: true, Origin: schema.Origin{Started: "2026-03-05T07:09:11Z", Hosts: []string{"alpha", "beta"}}})
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, "small")
}

func TestExport(t *testing.T) {
	var trace, names, rows strings.Builder
	notes, err := Export(context.Background(), smallRun(t), &trace, &names, &rows)
	if err != nil {
		t.Fatal(err)
	}
	want := `#Paraver (05/03/2026 at 07:09):180_ns:2(1,1):1:2(1:1,1:2),1
c:1:1:2:1:2
1:1:1:1:1:0:100:1
1:2:1:2:1:0:20:1
1:2:1:2:1:20:23:11
2:2:1:2:1:20:50000001:4:70000001:1:80000001:1
2:2:1:2:1:23:50000001:0
1:2:1:2:1:23:30:1
1:2:1:2:1:30:130:8
2:2:1:2:1:30:50000001:5:70000001:1:80000001:1
1:1:1:1:1:100:110:4
2:1:1:1:1:100:50000001:1:70000001:1:80000001:1
3:1:1:1:1:100:100:2:1:2:1:20:130:4097:9
2:1:1:1:1:110:50000001:0
1:1:1:1:1:110:150:13
2:1:1:1:1:110:50000002:9:50100001:24:50100002:0:50100004:1:70000001:1:80000001:1
2:2:1:2:1:130:50000001:0
1:2:1:2:1:130:140:1
1:2:1:2:1:140:160:13
2:2:1:2:1:140:50000002:9:50100001:24:50100002:24:50100003:1:50100004:1:70000001:1:80000001:1
2:1:1:1:1:150:50000002:0
2:2:1:2:1:160:50000002:0
1:2:1:2:1:160:170:1
1:2:1:2:1:170:180:5
2:2:1:2:1:170:50000002:8:70000001:1:80000001:1
`
	if diff := cmp.Diff(want, trace.String()); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"\n9   50000001    MPI Point-to-point\nVALUES\n", "\n1   MPI_Send\n",
		"\n9   MPI_Reduce\n", "\n1   main\n", "\n1   17 (ring?.c)\n"} {
		if !strings.Contains(names.String(), text) {
			t.Errorf("%q is not in\n%s", text, names.String())
		}
	}
	if diff := cmp.Diff("LEVEL CPU SIZE 2\n1.alpha\n2.beta\n\nLEVEL NODE SIZE 2\nalpha\nbeta\n\nLEVEL THREAD SIZE 2\nTHREAD 1.1.1\nTHREAD 1.2.1\n\n", rows.String()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"calls that never returned: 1; the trace does not say when they end"},
		notes); diff != "" {
		t.Error(diff)
	}
}

func TestFiles(t *testing.T) {
	for trace, want := range map[string]string{
		"shared/cg.A.prv": "shared/cg.A.prv shared/cg.A.pcf shared/cg.A.row",
		"cg.trace":        "",
		"shared/.prv":     "",
		"cg.prv.gz":       "",
	} {
		names, err := Files(trace)
		if got := strings.Join(names, " "); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", trace, got, err, want)
		}
	}
}

// The numbers are those that prv2dim knows calls by: some that a line too many or too few would shift.
func TestNumbers(t *testing.T) {
	for call, want := range map[schema.CallID]code{
		schema.CallSend: {typePointToPoint, 1, stateBlockingSend}, schema.CallScan: {typeCollective, 30, stateGroup},
		schema.CallFinalize:      {typeOther, 32, stateOthers},
		schema.CallSendrecv:      {typePointToPoint, 41, stateSendrecv},
		schema.CallWaitsome:      {typePointToPoint, 60, stateWait},
		schema.CallReduceScatter: {typeCollective, 80, stateGroup}, schema.CallStart: {typeOther, 123, stateTest},
		schema.CallPut:        {typeOneSided, 65, stateMemory},
		schema.CallIbarrier:   {typeCollective, 156, stateSynchronising},
		schema.CallAlltoallw:  {typeCollective, 170, stateGroup},
		schema.CallImrecv:     {typePointToPoint, 193, stateImmediateRecv},
		schema.CallInitThread: {typeOther, 194, stateOthers},
	} {
		if got := codes[call]; got != want {
			t.Errorf("%s: %v; want %v", call, got, want)
		}
	}
	if len(numbered) != 194 || len(stateNames) != len(stateColours) {
		t.Errorf("%d numbers, %d names and %d colours of states", len(numbered), len(stateNames), len(stateColours))
	}
	known := map[string]bool{}
	for _, c := range schema.Calls {
		known[c.Name] = true
	}
	for _, name := range numbered {
		if !known["MPI_"+name] {
			t.Errorf("there is no MPI_%s", name)
		}
	}
}

// Sorted in pieces, and in pieces of pieces, is sorted.
func TestSorter(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 17))
	whole, parts := sorter{most: 1 << 30}, sorter{most: 700}
	for i := range 5000 {
		at := r.Int64N(900)
		for _, s := range []*sorter{&whole, &parts} {
			if err := s.add(at, fmt.Appendf(nil, "%d %d\n", at, i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var want, got bytes.Buffer
	if err := whole.write(&want); err != nil {
		t.Fatal(err)
	}
	if err := parts.write(&got); err != nil || parts.files < 6*atOnce || len(parts.levels) != 2 {
		t.Fatal(parts.files, len(parts.levels), err)
	}
	if left, err := os.ReadDir(parts.folder); err != nil || len(left) >= 2*atOnce {
		t.Errorf("%d files at once, %v", len(left), err)
	}
	if !bytes.Equal(want.Bytes(), got.Bytes()) {
		t.Error("the order differs")
	}
	if err := parts.close(); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(parts.folder, "*")); err != nil || left != nil {
		t.Error(left, err)
	}
}
