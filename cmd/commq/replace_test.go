package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/detect/report"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// manualCollectives are the collectives that replace those done by hand in testdata/programs/manual.c on 5 ranks: the
// instances of manualFindings, with n bytes as defined in docs/SCHEMA.md. Of a Bcast the root sends n and 4 receive
// it, in an Allgather each sends n and receives 5n, in an Alltoall each sends and receives 5 blocks of 28 bytes, in a
// Neighbor_alltoall two of 4000.
const manualCollectives = `ranks,operation,instances,per_rank,send_bytes,recv_bytes
5,MPI_Allgather,2,2,40000,200000
5,MPI_Alltoall,1,1,700,700
5,MPI_Barrier,3,3,0,0
5,MPI_Bcast,25,24.8,84016,332064
5,MPI_Neighbor_alltoall,5,5,200000,200000
`

// byHandCollectives are those of testdata/programs/byhand.c: seven Bcasts of 1200 bytes to 3 ranks, besides the
// collectives that it calls itself.
const byHandCollectives = `ranks,operation,instances,per_rank,send_bytes,recv_bytes
4,MPI_Allreduce,1,1,16,16
4,MPI_Barrier,6,6,0,0
4,MPI_Bcast,7,7,8400,25200
`

// TestReplaceCollectivesByHand replaces everything that is found, candidates too, in the program of figure 6 of the
// paper, and in one that uses every kind of call. The new run is sound, has only the messages that belong to no
// finding, computes as long, and can be simulated.
func TestReplaceCollectivesByHand(t *testing.T) {
	captureEnvironment(t)
	for _, c := range []struct {
		program
		want, collectives string
	}{
		{program{name: "manual", ranks: 5}, "36 collectives instead of 270 messages", manualCollectives},
		{program{name: "byhand", ranks: 4}, "7 collectives instead of 21 messages", byHandCollectives},
	} {
		for _, library := range []string{"openmpi", "mpich"} {
			t.Run(c.name+"/"+library, func(t *testing.T) {
				commq(t, "capture", "build", "--mpi", library)
				exe, store := c.build(t, library, flavours()[0]), t.TempDir()
				commq(t, "capture", "--store", store, "--name", "a", "-q", "--hash", "crc64", "-n",
					fmt.Sprint(c.ranks), "--", exe)
				findings := filepath.Join(store, "findings.json")
				if err := os.WriteFile(findings,
					[]byte(commq(t, "detect", "--store", store, "--run", "a", "--all", "--format", "json",
						"--messages")),
					0o644); err != nil {
					t.Fatal(err)
				}
				out := commq(t, "replace", "--store", store, "--run", "a", "--findings", findings)
				if want := "a.replaced: " + c.want + " of a;"; !strings.HasPrefix(out, want) {
					t.Errorf("got %s want %s", out, want)
				}
				commq(t, "runs", "check", "--store", store, "a.replaced")
				if d := gocmp.Diff(c.collectives,
					commq(t, "query", "collectives", "--store", store, "--run", "a.replaced", "--format",
						"csv")); d != "" {
					t.Errorf("want, got:\n%s", d)
				}
				commq(t, "simulate", "--store", store, "--run", "a.replaced", "--machine", "ethernet-40g")
				if before, after := computed(t, filepath.Join(store, "a")),
					computed(t, filepath.Join(store, "a.replaced")); !gocmp.Equal(before, after) {
					t.Errorf("ranks compute %v ns; in the replaced run %v", before, after)
				}
			})
		}
	}
}

// computed returns the computing time of each rank of a run.
func computed(t *testing.T, dir string) map[int32]int64 {
	t.Helper()
	sums := map[int32]int64{}
	err := writer.ReadTable(context.Background(), dir, &schema.EventsTable, 1<<13, func(b schema.Batch) error {
		e := b.(*schema.Events)
		for i, ns := range e.ComputeNs {
			sums[e.Rank[i]] += max(ns, 0)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return sums
}

// writeStar writes a run of 4 ranks in which rank 0 sends 4097 bytes to one rank after the other.
func writeStar(t *testing.T, store, name string) {
	t.Helper()
	writeStars(t, store, name, 0)
}

// writeStars writes a run of 4 ranks in which each root in turn sends 4097 bytes of its own to one rank after the
// other.
func writeStars(t *testing.T, store, name string, roots ...int32) {
	t.Helper()
	run, err := writer.Create(store, name, writer.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Abort()
	comms, ranks, types, events, messages := &schema.Comms{}, &schema.RankInfos{}, &schema.Datatypes{},
		&schema.Events{}, &schema.Messages{}
	types.Append(&schema.Datatype{ID: 0, Name: "MPI_BYTE", Combiner: "named", Bytes: 1, ExtentBytes: 1})
	for rank := range int32(4) {
		c, info := schema.NullComm, schema.NullRankInfo
		c.CommRank, c.WorldRank, c.Kind = rank, rank, int16(schema.CommWorld)
		comms.Append(&c)
		seq, seen := int64(0), [4]int64{} // the row of this rank; how many rows each rank has before the root's turn
		for _, root := range roots {
			for to := range int32(4) {
				e := schema.NullEvent
				e.Rank, e.Seq, e.Comm, e.ComputeNs, e.ProcNull = rank, seq, 0, 0, 0
				switch {
				case to == root || rank != root && rank != to:
					continue
				case rank == root:
					e.Call, e.Class = int16(schema.CallSend), int16(schema.ClassSend)
					e.SendPeer, e.SendWorld, e.SendTag, e.SendBytes, e.SendDatatype, e.SendCount = to, to, 9, 4097, 0,
						4097
					m := schema.NullMessage
					m.Src, m.Dst, m.Tag, m.Bytes, m.PayloadHash, m.SendSeq, m.SendDatatype = root, to, 9, 4097,
						4711+int64(root), seq, 0
					m.Comm, m.RecvPostSeq, m.RecvDoneSeq = 0, seen[to], seen[to]
					messages.Append(&m)
				default:
					e.Call, e.Class, e.PostedAny = int16(schema.CallRecv), int16(schema.ClassRecv), 0
					e.RecvPeer, e.RecvWorld, e.RecvTag, e.RecvBytes, e.RecvDatatype, e.RecvCount = root, root, 9,
						4097, 0, 4097
				}
				events.Append(&e)
				seq++
			}
			for of := range seen {
				if seen[of]++; int32(of) == root {
					seen[of] += 2
				}
			}
		}
		info.Rank, info.Threads, info.Ended, info.Events = rank, 1, schema.EndedFinalized, seq
		ranks.Append(&info)
	}
	for _, b := range []schema.Batch{comms, ranks, types, events, messages} {
		if err := run.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	m := &schema.Manifest{Ranks: 4, TimeOrigin: "untimed", TimeResolutionNs: 1, ComputeClock: "cpu", Record: "all",
		Hash: "crc64", Ended: "finalized", Epochs: 1}
	n := int64(len(roots))
	m.Counts.Calls, m.Counts.Messages, m.Counts.MessageBytes = 6*n, 3*n, 3*n*4097
	if err := run.Commit(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// TestDetectNamesNCCL: where NCCL prices the call, its algorithm and protocol are named. 4 ranks of a node of dgx-h100
// broadcast 4097 bytes by LL on a ring, in 6.6 + 0.6 us and 4097 bytes at 141 GB/s: 7229 ns.
func TestDetectNamesNCCL(t *testing.T) {
	store := t.TempDir()
	writeStar(t, store, "star.4")
	args := []string{"detect", "--store", store, "--run", "star.4", "--machine", "dgx-h100"}
	if s := commq(t, args...); !strings.Contains(s, "; the call is priced as NCCL's ring LL\n") {
		t.Errorf("the table says\n%s", s)
	}
	if s := commq(t, append(args, "--format", "csv")...); !strings.Contains(s, ",7229,") ||
		!strings.Contains(s, ",NCCL's ring LL,") {
		t.Errorf("the row says\n%s", s)
	}
}

// TestDetectPricesFindings: with L = 1000 ns, 1 byte per ns and one link out of a node, the broadcast by hand takes L
// and P-1 times 4097 ns, one after the other; MPI_Bcast takes (L + 4097 ns) times the logarithm of P, rounded up
// (equation 4).
func TestDetectPricesFindings(t *testing.T) {
	store := t.TempDir()
	writeStar(t, store, "star.4")
	machine := filepath.Join(store, "m.yaml")
	putFile(t, machine, "network:\n  latency_ns: 1000\n  bandwidth_bytes_per_s: 1e9\n  output_links: 1\n", 0o644)
	var d report.Report
	args := []string{"detect", "--store", store, "--run", "star.4", "--machine", machine, "--ranks", "8,3,4"}
	if err := json.Unmarshal([]byte(commq(t, append(args, "--format", "json")...)), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Findings) != 1 || d.Findings[0].Groups[0].List != nil {
		t.Fatalf("found %+v, want one without its messages", d.Findings)
	}
	p := d.Findings[0].Price
	if d.Pricing.PredictedNs != 13291 || *p.ReplacedNs != 10194 || *p.SavedNs != 3097 ||
		*d.Pricing.All.SavedNs != 3097 || p.Collectives != 1 || p.Left != 0 {
		t.Errorf("got %+v, %+v; want 1000 + 3 x 4097 = 13291 ns by hand, 2 x 5097 = 10194 ns called", d.Pricing, p)
	}
	var at []string
	for _, x := range p.AtRanks {
		at = append(at, fmt.Sprint(x.Ranks, *x.ByHandNs, *x.CalledNs))
	}
	if diff := gocmp.Diff([]string{"3 9194 10194", "4 13291 10194", "8 29679 15291"}, at); diff != "" ||
		*p.PaysFrom != 4 || p.Pattern != "linear MPI_Bcast of 4097 bytes" {
		t.Errorf("%s from %d: want, got:\n%s", p.Pattern, *p.PaysFrom, diff)
	}
	if s := commq(t, args...); !strings.Contains(s, "   saves 3.10 us of 13.3 us on "+machine+
		" (23.3 %); the call is priced as log2(P) messages of the largest size\n") ||
		!strings.Contains(s, "; 8 ranks: 29.7 us by hand, 15.3 us called; pays from 4 ranks\n") {
		t.Errorf("the table says\n%s", s)
	}
	const last = ",10194,3097,4,log2(P) messages of the largest size,\n"
	if s := commq(t, append(args, "--format", "csv")...); !strings.HasSuffix(s, last) {
		t.Errorf("the row says\n%s", s)
	}
	if s := commq(t, append(args, "--format", "sarif")...); !strings.Contains(s, `"saved_ns": 3097`) ||
		!strings.Contains(s, `"pays_from": 4`) {
		t.Errorf("SARIF has no price:\n%s", s)
	}
	if s := commq(t, "detect", "--store", store, "--run", "star.4", "--machine", "ethernet-40g"); !strings.HasPrefix(s,
		"prices: the machine has no bound on links or buses") {
		t.Errorf("nothing is said first of a machine without links:\n%s", s)
	}
	for _, c := range []struct{ args, want string }{
		{"--ranks 4", "commq: --ranks: only prices use it; name the machine with --machine\n"},
		{"--set link_mbytes_per_s=1 --dialect paper --ranks 4",
			"commq: --dialect: only prices use it; name the machine with --machine\n"},
		{"--machine ethernet-40g --ranks 1", "commq: --ranks 1: want 2 or more\n"},
	} {
		status, _, errs := commandLine("", append([]string{"detect", "--store", store, "--run", "star.4"},
			strings.Fields(c.args)...)...)
		if status != 2 || errs != c.want {
			t.Errorf("%s: status %d, %q; want 2 and %q", c.args, status, errs, c.want)
		}
	}
}

// TestDetectWithholdsPrices: where ranks share CPUs nothing is priced, in any format; one instance on as many ranks as
// CPUs is.
func TestDetectWithholdsPrices(t *testing.T) {
	store := t.TempDir()
	writeStar(t, store, "star.4")
	args := []string{"detect", "--store", store, "--run", "star.4", "--machine", "ethernet-40g", "--set", "cpus_per_node=3",
		"--set", "nodes=1", "--ranks", "3,8"}
	var d report.Report
	if err := json.Unmarshal([]byte(commq(t, append(args, "--format", "json")...)), &d); err != nil {
		t.Fatal(err)
	}
	const reason = "4 ranks share 3 CPUs: real ranks poll while they wait"
	p := d.Findings[0].Price
	if !strings.HasPrefix(d.Pricing.Withheld, reason) || p.SavedNs != nil || p.Problem != d.Pricing.Withheld ||
		p.AtRanks[0].CalledNs == nil || !strings.HasPrefix(p.AtRanks[1].Problem, "8 ranks share 3 CPUs") {
		t.Errorf("got %+v, %+v", d.Pricing, p)
	}
	if s := commq(t, args...); strings.Count(s, reason) != 1 || strings.Contains(s, "saves") {
		t.Errorf("the table says\n%s", s)
	}
}

// TestDetectPricesRootsInTurn: a root begins as soon as it has the data of the roots before it, while those still
// send to others. On the machine of TestDetectPricesFindings root 0's link is busy until 12291 ns; rank 1 has its
// message at 5097, sends to 0, 2 and 3 until 17388; rank 2 has that at 14291, sends until 26582; rank 3 has that at
// 27582, sends until 39873, and rank 2 has the last at 40873. Four MPI_Bcast of 10194 ns one after the other take
// 40776: one alone saves 3097 ns, the four together 97.
func TestDetectPricesRootsInTurn(t *testing.T) {
	store := t.TempDir()
	writeStars(t, store, "stars.4", 0, 1, 2, 3)
	machine := filepath.Join(store, "m.yaml")
	putFile(t, machine, "network:\n  latency_ns: 1000\n  bandwidth_bytes_per_s: 1e9\n  output_links: 1\n", 0o644)
	var d report.Report
	if err := json.Unmarshal([]byte(commq(t, "detect", "--store", store, "--run", "stars.4", "--machine", machine,
		"--format", "json")), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Findings) != 1 || d.Findings[0].Operation != "MPI_Bcast" ||
		!gocmp.Equal(d.Findings[0].Groups[0].RootOrder, []int32{0, 1, 2, 3}) {
		t.Fatalf("found %+v, want one MPI_Bcast whose roots are 0 to 3 in turn", d.Findings)
	}
	p := d.Findings[0].Price
	if d.Pricing.PredictedNs != 40873 || *p.ReplacedNs != 40776 || *p.SavedNs != 97 || p.Collectives != 4 ||
		p.Left != 0 {
		t.Errorf("got %+v, %+v; want 40873 ns by hand, 4 x 10194 = 40776 ns called", d.Pricing, p)
	}
}

// TestReplaceRefusesOtherMessages: findings with messages that the run does not have are an error, and no file is
// left.
func TestReplaceRefusesOtherMessages(t *testing.T) {
	store := t.TempDir()
	writeStar(t, store, "star.4")
	findings := commq(t, "detect", "--store", store, "--run", "star.4", "--format", "json", "--messages")
	for _, c := range []struct {
		change func(f *report.Finding)
		want   string
	}{
		{func(f *report.Finding) { f.Groups[0].List[0].Messages[2][2] = 7 }, "finding 1, instance 1: the run has no message that rank 0 sends with seq 7"},
		{func(f *report.Finding) { f.Groups[0].List[0].Messages[2][3] = 5 }, "is received by rank 3 with seq 0; the finding says rank 3, seq 5"},
		{func(f *report.Finding) { f.Groups[0].List[0].Messages[2][0] = 4 }, "a message from rank 4 to rank 3, which are not both among its ranks"},
		{func(f *report.Finding) { f.Groups[0].List[0].Messages[2] = f.Groups[0].List[0].Messages[1] }, "findings 1 and 1 both have the message that rank 0 sends with seq 1"},
		{func(f *report.Finding) { f.Groups[0].List[0].Root = nil }, "finding 1, instance 1: its root is not among its ranks"},
		{func(f *report.Finding) { f.Groups[0].Ranks = nil }, "finding 1: its ranks are []; want two or more, ascending"},
		{func(f *report.Finding) { f.Operation = "MPI_Comm_dup" }, `operation "MPI_Comm_dup" is none that can be put in place`},
		{func(f *report.Finding) { f.Groups[0].Instances = 2 }, "commq detect --format json writes them with --messages"},
	} {
		var d report.Report
		if err := json.Unmarshal([]byte(findings), &d); err != nil {
			t.Fatal(err)
		}
		c.change(&d.Findings[0])
		data, err := json.Marshal(&d)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		status, out, errs := commandLine(text, "replace", "--store", store, "--run", "star.4", "--findings", "-")
		if status != 2 || out != "" || !strings.Contains(errs, c.want) {
			t.Errorf("status %d, %q, %q; want 2 and %q", status, out, errs, c.want)
		}
	}
	if entries, err := filepath.Glob(filepath.Join(store, "*star.4.*")); err != nil || len(entries) != 0 {
		t.Errorf("there are %v, %v", entries, err)
	}
	commq(t, "replace", "--store", store, "--run", "star.4")
	commq(t, "runs", "check", "--store", store, "star.4.replaced")
}
