package hang

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/schema"
)

const testJob = 0x5eed

// script writes the calls of a thread: the n-th, from 0, is entered at n seconds and returns after half a second.
type script struct {
	*spoolgen.Writer
	now uint64
}

const second = 1_000_000_000

func (s *script) call(id schema.CallID, edit func(*spool.Call)) {
	c := spoolgen.NewCall(id, s.now, s.now+second/2)
	c.Count = schema.NullInt64
	s.now += second
	if edit != nil {
		edit(&c)
	}
	s.Call(&c)
}

// never makes a call that does not return.
func never(edit func(*spool.Call)) func(*spool.Call) {
	return func(c *spool.Call) {
		if edit != nil {
			edit(c)
		}
		c.T1 = 0
	}
}

// args sets a call's communicator, peer, tag and request, and 4097 bytes.
func args(comm, peer, tag int32, req uint32) func(*spool.Call) {
	return func(c *spool.Call) { c.Comm, c.Peer, c.Tag, c.Req, c.Dtype, c.Count = comm, peer, tag, req, 6, 4097 }
}

func anySource(c *spool.Call) {
	args(0, schema.NullInt32, schema.NullInt32, 0)(c)
	c.Flags = spool.FlagAnySource | spool.FlagAnyTag
}

func on(comm int32) func(*spool.Call) { return func(c *spool.Call) { c.Comm = comm } }

func request(req uint32) func(*spool.Call) { return func(c *spool.Call) { c.Req = req } }

// all makes the call wait for the n requests that begin with first.
func all(first uint32, n int64) func(*spool.Call) {
	return func(c *spool.Call) { c.Req, c.Tag, c.Count = first, int32(first)+int32(n)-1, n }
}

// collective writes a collective operation that returned.
func (s *script) collective(id schema.CallID, comm int32, instance uint64) {
	s.call(id, on(comm))
	s.Coll(spoolgen.NewColl(instance))
}

// fileBytes returns the content of a rank's file.
func fileBytes(t testing.TB, rank, ranks int, edit func(*spool.Header), body func(s *script)) (string, []byte) {
	t.Helper()
	h := spool.Header{Rank: int32(rank), Size: int32(ranks), Job: testJob, Timer: spool.TimerTSC,
		OffsetInitNs: schema.NullInt64,
		Clock1Tick:   100 * second, Clock1Ns: 100 * second}
	copy(h.Program[:], "/bin/stuck")
	if edit != nil {
		edit(&h)
	}
	var b bytes.Buffer
	s := &script{Writer: spoolgen.NewWriter(&b, h)}
	s.call(schema.CallInit, nil)
	s.DefType(6, "MPI_BYTE", 0, 1, 1)
	body(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return spoolgen.FileName(&h), b.Bytes()
}

// write writes the files of a job and returns their folder.
func write(t testing.TB, ranks int, edit func(*spool.Header), body func(rank int, s *script)) string {
	t.Helper()
	dir := t.TempDir()
	for rank := range ranks {
		name, data := fileBytes(t, rank, ranks, edit, func(s *script) { body(rank, s) })
		data = append(data, make([]byte, 100*spool.SlotBytes)...) // allocated and not used
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func report(t testing.TB, dir string) (string, *Report) {
	t.Helper()
	j, err := Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	r := j.Report()
	var b strings.Builder
	if err := r.Write(&b, 0); err != nil {
		t.Fatal(err)
	}
	return b.String(), r
}

func TestReports(t *testing.T) {
	for _, c := range []struct {
		name  string
		ranks int
		body  func(rank int, s *script)
		want  string
	}{
		{"two receives", 6, func(rank int, s *script) {
			switch rank {
			case 3:
				s.call(schema.CallRecv, never(args(0, 5, 9, 0)))
			case 5:
				s.call(schema.CallRecv, never(args(0, 3, 9, 0)))
			case 4:
				s.collective(schema.CallBarrier, 0, 0)
				s.call(schema.CallFinalize, nil)
			default:
				s.call(schema.CallBarrier, never(on(0)))
			}
		}, `job 0000000000005eed: 6 ranks of stuck, killed
deadlock: 3 waits for 5 waits for 3
  ranks 0-2: since 1.000 s in MPI_Barrier on MPI_COMM_WORLD (its operation 1), waiting for ranks 3, 5
  rank 3: since 1.000 s in MPI_Recv from rank 5, tag 9, on MPI_COMM_WORLD, 4097 bytes
  rank 4: finalized
  rank 5: since 1.000 s in MPI_Recv from rank 3, tag 9, on MPI_COMM_WORLD, 4097 bytes
`},
		// Ranks 1, 3 and 5 are 0, 1 and 2 of a communicator; rank 5 made one Allreduce on it and went to compute.
		{"left out of a barrier", 6, func(rank int, s *script) {
			s.call(schema.CallCommSplit, on(0))
			s.Coll(spoolgen.NewColl(0))
			def := spool.CommDef{Kind: int32(schema.CommSplit), Size: 3, Rank: int32(rank / 2),
				LeaderWorld: int32(rank % 2)}
			members := []int32{int32(rank % 2), int32(2 + rank%2), int32(4 + rank%2)}
			if rank < 2 {
				def.Members = 3
				s.DefComm(7, def, members)
			} else {
				s.DefComm(7, def)
			}
			if rank == 1 {
				s.Def(spool.DefCommName, 7, []byte("odd"))
			}
			s.collective(schema.CallAllreduce, 7, 0)
			if rank == 1 || rank == 3 {
				s.call(schema.CallBarrier, never(on(7)))
			}
			if rank%2 == 0 {
				s.call(schema.CallFinalize, never(nil))
			}
		}, `job 0000000000005eed: 6 ranks of stuck, killed
waiting: ranks 0-4 wait for rank 5, which is outside MPI since 2.500 s, after MPI_Allreduce
  ranks 0, 2, 4: since 3.000 s in MPI_Finalize, waiting for ranks 1, 3, 5
  ranks 1, 3: since 3.000 s in MPI_Barrier on odd (its operation 2), waiting for rank 5
  rank 5: since 2.500 s outside MPI, after MPI_Allreduce
`},
		// Each sends to its right neighbour, rank 3 with the wrong tag: ranks 3 and 0 wait for each other.
		{"waitall", 4, func(rank int, s *script) {
			left, right := int32(rank+3)%4, int32(rank+1)%4
			s.call(schema.CallIrecv, args(0, left, 9, 1))
			tag := int32(9)
			if rank == 3 {
				tag = 8
			}
			s.call(schema.CallIsend, args(0, right, tag, 2))
			s.call(schema.CallWaitall, never(all(1, 2)))
		}, `job 0000000000005eed: 4 ranks of stuck, killed
deadlock: 0 waits for 3 waits for 0
  rank 0: since 3.000 s in MPI_Waitall for MPI_Irecv from rank 3, tag 9, on MPI_COMM_WORLD, 4097 bytes (rank 3 has sent it a message with tag 8), waiting for rank 3
  ranks 1, 2: since 3.000 s in MPI_Waitall for 2 requests that the other side has posted too
  rank 3: since 3.000 s in MPI_Waitall for MPI_Isend to rank 0, tag 8, on MPI_COMM_WORLD, 4097 bytes, waiting for rank 0
`},
		// Messages that a freed receive, one that was too small, and both sides of such an MPI_Sendrecv took are gone;
		// a send that was cancelled is none, and neither is a receive that was cancelled before it was freed.
		{"messages that are gone", 2, func(rank int, s *script) {
			other := int32(1 - rank)
			if rank == 0 {
				s.call(schema.CallIrecv, args(0, other, 5, 1))
				s.call(schema.CallRequestFree, request(1))
				s.call(schema.CallIrecv, args(0, other, 5, 2))
				s.call(schema.CallCancel, request(2))
				s.call(schema.CallRequestFree, request(2))
				s.call(schema.CallRecv, func(c *spool.Call) { args(0, other, 5, 0)(c); c.Flags = spool.FlagNoStatus })
				s.Truncate(15)
				s.call(schema.CallSendrecv, args(0, other, 6, 0))
				s.Side(spool.Side{Peer: other, Tag: 5, Flags: spool.FlagNoStatus | spool.FlagAnySource})
				s.Truncate(15)
				s.call(schema.CallRecv, never(args(0, other, 5, 0)))
				return
			}
			for range 3 {
				s.call(schema.CallSend, args(0, other, 5, 0))
			}
			s.call(schema.CallIsend, args(0, other, 5, 1))
			s.call(schema.CallCancel, request(1))
			s.call(schema.CallWait, func(c *spool.Call) { c.Req, c.Flags = 1, spool.FlagCancelled })
			s.call(schema.CallRecv, args(0, other, 6, 4097))
			s.call(schema.CallRecv, never(args(0, other, 6, 0)))
		}, `job 0000000000005eed: 2 ranks of stuck, killed
deadlock: 0 waits for 1 waits for 0
  rank 0: since 8.000 s in MPI_Recv from rank 1, tag 5, on MPI_COMM_WORLD, 4097 bytes
  rank 1: since 8.000 s in MPI_Recv from rank 0, tag 6, on MPI_COMM_WORLD, 4097 bytes
`},
		// Ranks 0 to 2 exchange with each other, and rank 0 with rank 3, which computes. That is no circle, though
		// each waits for all the others.
		{"a neighbour that computes", 4, func(rank int, s *script) {
			if rank == 3 {
				s.call(schema.CallRecv, args(0, 0, 8, 4097))
				return
			}
			s.call(schema.CallIrecv, args(0, 3, 5, 1)) // never waited for
			n := int64(0)
			req := uint32(2)
			for peer := range int32(3) {
				if peer != int32(rank) {
					s.call(schema.CallIrecv, args(0, peer, 9, req))
					s.call(schema.CallSend, args(0, peer, 9, 0))
					req, n = req+1, n+1
				}
			}
			if rank == 0 {
				s.call(schema.CallIrecv, args(0, 3, 9, req))
				n++
			}
			s.call(schema.CallWaitall, never(all(2, n)))
		}, `job 0000000000005eed: 4 ranks of stuck, killed
waiting: rank 0 waits for rank 3, which is outside MPI since 1.500 s, after MPI_Recv
  rank 0: since 7.000 s in MPI_Waitall for MPI_Irecv from rank 3, tag 9, on MPI_COMM_WORLD, 4097 bytes, waiting for rank 3
  ranks 1, 2: since 6.000 s in MPI_Waitall for 2 requests that the other side has posted too
  rank 3: since 1.500 s outside MPI, after MPI_Recv
`},
		{"the other has ended", 6, func(rank int, s *script) {
			switch rank {
			case 5:
				s.call(schema.CallRecv, args(0, 3, 9, 4097))
				s.call(schema.CallFinalize, nil)
			case 3:
				s.call(schema.CallSend, args(0, 5, 9, 0))
				s.call(schema.CallIsend, args(0, 5, 9, 1))
				s.call(schema.CallWait, never(request(1)))
			case 2:
				s.call(schema.CallProbe, never(args(0, 3, 4, 0)))
			default:
				s.call(schema.CallFinalize, nil)
			}
		}, `job 0000000000005eed: 6 ranks of stuck, killed
ended: rank 3 waits for rank 5, which has finalized
  ranks 0, 1, 4, 5: finalized
  rank 2: since 1.000 s in MPI_Probe from rank 3, tag 4, on MPI_COMM_WORLD, 4097 bytes
  rank 3: since 3.000 s in MPI_Wait for MPI_Isend to rank 5, tag 9, on MPI_COMM_WORLD, 4097 bytes
`},
		{"any source", 3, func(rank int, s *script) {
			s.call(schema.CallRecv, never(anySource))
		}, `job 0000000000005eed: 3 ranks of stuck, killed
deadlock: 0 waits for 1 waits for 0
  rank 0: since 1.000 s in MPI_Recv from any rank on MPI_COMM_WORLD, 4097 bytes, waiting for one of ranks 1, 2
  rank 1: since 1.000 s in MPI_Recv from any rank on MPI_COMM_WORLD, 4097 bytes, waiting for one of ranks 0, 2
  rank 2: since 1.000 s in MPI_Recv from any rank on MPI_COMM_WORLD, 4097 bytes, waiting for one of ranks 0, 1
`},
		{"different collectives", 6, func(rank int, s *script) {
			s.collective(schema.CallBarrier, 0, 0)
			root := int32(3)
			if rank == 5 {
				root = 2
			}
			s.call(schema.CallBcast, never(func(c *spool.Call) { c.Comm, c.Peer = 0, root }))
		}, `job 0000000000005eed: 6 ranks of stuck, killed
mismatch: operation 2 on MPI_COMM_WORLD is MPI_Bcast with root 3 on rank 0, but MPI_Bcast with root 2 on rank 5
  ranks 0-5: since 2.000 s in MPI_Bcast on MPI_COMM_WORLD (its operation 2)
`},
		// The root sent its message and went on: what ranks did lately is compared too.
		{"different roots before", 4, func(rank int, s *script) {
			bcast := func(c *spool.Call) { c.Comm, c.Peer = 0, 0 }
			if rank == 2 {
				s.call(schema.CallBcast, never(func(c *spool.Call) { c.Comm, c.Peer = 0, 1 }))
				return
			}
			s.call(schema.CallBcast, bcast)
			s.Coll(spoolgen.NewColl(0))
			s.call(schema.CallBarrier, never(on(0)))
		}, `job 0000000000005eed: 4 ranks of stuck, killed
mismatch: operation 1 on MPI_COMM_WORLD is MPI_Bcast with root 0 on rank 0, but MPI_Bcast with root 1 on rank 2
  ranks 0, 1, 3: since 2.000 s in MPI_Barrier on MPI_COMM_WORLD (its operation 2), waiting for rank 2
  rank 2: since 1.000 s in MPI_Bcast on MPI_COMM_WORLD (its operation 1)
`},
		// It is named if all went on, too, the first of several.
		{"another order before", 4, func(rank int, s *script) {
			s.collective(schema.CallBarrier, 0, 0)
			calls := []schema.CallID{schema.CallBcast, schema.CallBarrier}
			if rank == 1 {
				slices.Reverse(calls)
			}
			s.collective(calls[0], 0, 1)
			s.collective(calls[1], 0, 2)
			s.collective(schema.CallAllgather, 0, 3)
		}, `job 0000000000005eed: 4 ranks of stuck, killed
mismatch: operation 2 on MPI_COMM_WORLD is MPI_Bcast on rank 0, but MPI_Barrier on rank 1
  ranks 0-3: since 4.500 s outside MPI, after MPI_Allgather
`},
		// A shift along a chain whose last rank is elsewhere: all the others wait for their right neighbour.
		{"sendrecv", 6, func(rank int, s *script) {
			if rank == 5 {
				s.collective(schema.CallAllreduce, 1, 0)
				return
			}
			s.call(schema.CallSendrecv, never(func(c *spool.Call) {
				args(0, int32(rank)-1, 9, uint32(rank)+2)(c)
				if rank == 0 {
					c.Peer, c.Flags = schema.NullInt32, spool.FlagProcNull
				}
			}))
		}, `job 0000000000005eed: 6 ranks of stuck, killed
waiting: rank 4 waits for rank 5, which is outside MPI since 1.500 s, after MPI_Allreduce
  rank 0: since 1.000 s in MPI_Sendrecv to MPI_PROC_NULL on MPI_COMM_WORLD, 4097 bytes, receiving from rank 1
  rank 1: since 1.000 s in MPI_Sendrecv to rank 0, tag 9, on MPI_COMM_WORLD, 4097 bytes, receiving from rank 2
  rank 2: since 1.000 s in MPI_Sendrecv to rank 1, tag 9, on MPI_COMM_WORLD, 4097 bytes, receiving from rank 3
  rank 3: since 1.000 s in MPI_Sendrecv to rank 2, tag 9, on MPI_COMM_WORLD, 4097 bytes, receiving from rank 4
  rank 4: since 1.000 s in MPI_Sendrecv to rank 3, tag 9, on MPI_COMM_WORLD, 4097 bytes, receiving from rank 5, waiting for rank 5
  rank 5: since 1.500 s outside MPI, after MPI_Allreduce
`},
		// A persistent receive that was started, and one that was not.
		{"persistent", 4, func(rank int, s *script) {
			if rank != 3 {
				s.call(schema.CallFinalize, nil)
				return
			}
			s.call(schema.CallRecvInit, args(0, 2, 9, 1))
			s.call(schema.CallRecvInit, args(0, 1, 9, 2))
			s.call(schema.CallStart, request(3))
			s.Start(spoolgen.Pair{Req: 3, Template: 1})
			s.call(schema.CallWait, never(request(3)))
		}, `job 0000000000005eed: 4 ranks of stuck, killed
ended: rank 3 waits for rank 2, which has finalized
  ranks 0-2: finalized
  rank 3: since 4.000 s in MPI_Wait for MPI_Recv_init from rank 2, tag 9, on MPI_COMM_WORLD, 4097 bytes
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := report(t, write(t, c.ranks, nil, c.body))
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The JSON that a program reads: every field of a receive that hangs.
func TestFields(t *testing.T) {
	_, r := report(t, write(t, 6, nil, func(rank int, s *script) {
		switch rank {
		case 3:
			s.call(schema.CallRecv, never(args(0, 5, 9, 0)))
		default:
			s.collective(schema.CallBarrier, 0, 0)
			s.call(schema.CallAbort, nil)
		}
	}))
	i32 := func(n int32) *int32 { return &n }
	i64 := func(n int64) *int64 { return &n }
	want := State{Rank: 3, State: InCall, Call: "MPI_Recv", SinceNs: i64(second), Calls: 1, WaitsFor: []int32{5},
		Text: "MPI_Recv from rank 5, tag 9, on MPI_COMM_WORLD, 4097 bytes",
		Pending: []Operation{{Call: "MPI_Recv", Peer: i32(5), Tag: i32(9), Comm: "MPI_COMM_WORLD", Bytes: i64(4097),
			WaitsFor: []int32{5}}}}
	got := r.Threads[3]
	got.known = false
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(State{}, Operation{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.State != Killed || r.EndNs != 2*second+second/2 || r.Ranks != 6 || r.Seen != 6 {
		t.Errorf("%s, ended at %d, %d of %d ranks", r.State, r.EndNs, r.Seen, r.Ranks)
	}
}

// TestStoppedRecording: what a rank does whose records reached their limit is not known. Nobody is said to wait for it,
// though its last call returned, and a circle of others is still found.
func TestStoppedRecording(t *testing.T) {
	for name, stop := range map[string]func(*spool.Header){
		"limited": func(h *spool.Header) { h.Limited = 1 }, "dropped": func(h *spool.Header) { h.Dropped = 7 }} {
		edit := func(h *spool.Header) {
			if h.Rank == 1 {
				stop(h)
			}
		}
		text, _ := report(t, write(t, 4, edit, func(rank int, s *script) {
			switch rank {
			case 0:
				s.call(schema.CallRecv, never(args(0, 1, 9, 0)))
			case 2, 3:
				s.call(schema.CallRecv, never(args(0, int32(5-rank), 9, 0)))
			default:
				s.collective(schema.CallBarrier, 1, 0)
			}
		}))
		want := `job 0000000000005eed: 4 ranks of stuck, killed
deadlock: 2 waits for 3 waits for 2
unclear: rank 1 is no longer recorded, so what it does is not known
  rank 0: since 1.000 s in MPI_Recv from rank 1, tag 9, on MPI_COMM_WORLD, 4097 bytes
  rank 1: since 1.500 s no longer recorded, after MPI_Barrier
  rank 2: since 1.000 s in MPI_Recv from rank 3, tag 9, on MPI_COMM_WORLD, 4097 bytes
  rank 3: since 1.000 s in MPI_Recv from rank 2, tag 9, on MPI_COMM_WORLD, 4097 bytes
`
		if diff := cmp.Diff(want, text); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A rank of a killed job may outlive the launcher, as this test's process does: the job runs until it is over.
func TestRanksThatOutliveTheLauncher(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := write(t, 2, func(h *spool.Header) {
		h.Pid = int64(os.Getpid())
		copy(h.BootID[:], bootID())
		h.Program = [len(h.Program)]byte{}
		copy(h.Program[:], filepath.Base(exe))
	}, func(rank int, s *script) { s.call(schema.CallRecv, never(args(0, 1-int32(rank), 9, 0))) })
	j, err := Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if r := j.Report(); r.State != Running || len(r.Findings) != 0 {
		t.Errorf("alive and seen once: %s, %v; want running and no findings", r.State, r.Findings)
	}
	j.Over = true
	if r := j.Report(); r.State != Killed || len(r.Findings) != 1 || r.Findings[0].Kind != Deadlock {
		t.Errorf("when the launcher has ended: %s, %v; want killed and a deadlock", r.State, r.Findings)
	}
}

func TestRuns(t *testing.T) {
	for _, c := range []struct {
		exe  string
		err  error
		want bool
	}{
		{"/home/ada/ring", nil, true},
		{"/home/ada/ring (deleted)", nil, true},
		{"/usr/bin/make", nil, false}, // another process has the number now
		{"", fs.ErrPermission, true},  // of another user
		{"", fs.ErrNotExist, false},   // it is ending
	} {
		if got := runs(c.exe, c.err, "/nfs/ada/ring"); got != c.want {
			t.Errorf("runs(%q, %v): %t, want %t", c.exe, c.err, got, c.want)
		}
	}
}

// Ticks of virtual time are ps since 1 us before MPI_Init; they are not on the machine's clock.
func TestVirtualTime(t *testing.T) {
	_, r := report(t, write(t, 2, func(h *spool.Header) { h.Timer = spool.TimerVirtual }, func(rank int, s *script) {
		s.call(schema.CallRecv, never(args(0, 1-int32(rank), 9, 0)))
	}))
	if got := r.Threads[0].SinceNs; got == nil || *got != (second-spool.VirtualStart)/1000 {
		t.Errorf("since %v", got)
	}
}

// A file that grows by any number of bytes at a time gives the same report as one read at once, and no error.
func TestReadingOn(t *testing.T) {
	body := func(s *script) {
		s.collective(schema.CallBarrier, 0, 0)
		s.call(schema.CallIrecv, args(0, 3, 9, 1))
		s.call(schema.CallSend, args(0, 3, 9, 0))
		s.call(schema.CallWait, func(c *spool.Call) { c.Req, c.Peer, c.Tag, c.Count = 1, 3, 9, 4097 })
		s.call(schema.CallCommDup, on(0))
		s.Coll(spoolgen.NewColl(1))
		s.DefComm(7, spool.CommDef{Kind: int32(schema.CommDup), Instance: 1, Size: 2, Members: 2}, []int32{0, 1})
		s.call(schema.CallWaitany, nil)
		s.Done(spool.DoneEntry{Req: 7}, spool.DoneEntry{Req: 8})
		s.call(schema.CallRecv, never(args(7, 1, 5, 0)))
	}
	name, data := fileBytes(t, 0, 2, nil, body)
	whole := t.TempDir()
	if err := os.WriteFile(filepath.Join(whole, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
	_, want := report(t, whole)
	for _, step := range []int{13, 64, 100, 640} {
		dir := t.TempDir()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data[:spool.HeaderBytes], 0o644); err != nil {
			t.Fatal(err)
		}
		j, err := Open(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		for n := spool.HeaderBytes; n < len(data); n += step {
			if err := os.WriteFile(file, data[:min(n+step, len(data))], 0o644); err != nil {
				t.Fatal(err)
			}
			if err := j.Update(); err != nil {
				t.Fatalf("%d bytes: %v", n+step, err)
			}
			j.Report()
		}
		if got := j.Report(); !reflect.DeepEqual(got, want) {
			t.Errorf("step %d: (-want +got):\n%s", step, cmp.Diff(want, got, cmp.AllowUnexported(State{}, Operation{})))
		}
	}
}

// A pipe in a spool is not waited for.
func TestPipesInASpool(t *testing.T) {
	dir := write(t, 1, nil, func(_ int, s *script) { s.call(schema.CallRecv, never(args(0, 0, 5, 0))) })
	j, err := Open(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	w, err := Watch(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	pipe := filepath.Join(dir, j.Info.ID+".0.1"+spool.Suffix)
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 3)
	go func() {
		ended <- j.Update()
		ended <- w.readFile(filepath.Base(pipe))
		_, _, err := spool.NewTail(pipe, &spool.Header{}).Size()
		ended <- err
	}()
	for range cap(ended) {
		select {
		case err := <-ended:
			if !errors.Is(err, bounded.ErrNotRegular) {
				t.Error(err)
			}
		case <-time.After(testenv.Patience):
			t.Fatal("it waits for the pipe")
		}
	}
}

// A call without an end, followed by other calls, was left by a jump: it is not in progress.
func TestAbandoned(t *testing.T) {
	got, _ := report(t, write(t, 1, nil, func(_ int, s *script) {
		s.call(schema.CallRecv, never(args(0, 0, 9, 0)))
		s.call(schema.CallBarrier, never(on(0)))
	}))
	if want := "rank 0: since 2.000 s in MPI_Barrier on MPI_COMM_WORLD (its operation 1)\n"; !strings.HasSuffix(got,
		want) {
		t.Errorf("%s\nwant the last line %s", got, want)
	}
}

func TestRankList(t *testing.T) {
	for _, c := range []struct {
		ranks []int32
		want  string
	}{{nil, ""}, {[]int32{5}, "5"}, {[]int32{3, 4}, "3, 4"}, {[]int32{0, 1, 2, 3, 5, 7, 8, 9}, "0-3, 5, 7-9"},
		{[]int32{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 33},
			"0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30 and 2 more"}} {
		if got := rankList(c.ranks); got != c.want {
			t.Errorf("%v: %q, want %q", c.ranks, got, c.want)
		}
	}
}

// waitsForAll is a rank that waits in MPI_Waitall for a receive and for a started persistent one.
func waitsForAll(s *script) {
	s.DefComm(7, spool.CommDef{Kind: int32(schema.CommDup), Instance: 0, Size: 2, Members: 2}, []int32{0, 1})
	s.collective(schema.CallBarrier, 7, 0)
	s.call(schema.CallIrecv, args(7, 1, 9, 1))
	s.call(schema.CallRecvInit, args(0, 1, 9, 2))
	s.call(schema.CallStart, request(3))
	s.Start(spoolgen.Pair{Req: 3, Template: 2})
	s.call(schema.CallWaitall, never(all(1, 3)))
}

// Whatever the slots of two ranks hold, reading them neither crashes nor runs for ever.
func FuzzRead(f *testing.F) {
	_, seed := fileBytes(f, 0, 2, nil, waitsForAll)
	f.Add(seed[spool.HeaderBytes:], 3)
	f.Fuzz(func(t *testing.T, slots []byte, cut int) {
		dir := t.TempDir()
		name, whole := fileBytes(t, 1, 2, nil, func(s *script) { s.call(schema.CallRecv, never(args(0, 0, 9, 0))) })
		first, other := fileBytes(t, 0, 2, nil, func(*script) {})
		other = append(other[:spool.HeaderBytes], slots...)
		write := func(name string, data []byte) {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write(name, whole)
		write(first, other[:spool.HeaderBytes+min(max(cut, 0), len(slots))])
		j, err := Open(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		j.Report()
		write(first, other)
		if err := j.Update(); err != nil {
			t.Fatal(err)
		}
		if err := j.Report().Write(&bytes.Buffer{}, 20); err != nil {
			t.Fatal(err)
		}
		w, err := Watch(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Look(); err != nil {
			t.Fatal(err)
		}
	})
}

// The same with good files, their slots and headers changed.
func FuzzReadEdited(f *testing.F) {
	name, good := fileBytes(f, 0, 2, nil, waitsForAll)
	second, other := fileBytes(f, 1, 2, nil, func(s *script) { s.call(schema.CallRecv, never(args(0, 0, 9, 0))) })
	f.Add([]byte{3, 5, 0, 9, 8, 7, 2, 1, 4, 1}, []byte{})
	f.Add([]byte{0, 5, 6, 9, 8}, []byte{0, 0, 2, 3, 3})
	f.Fuzz(func(t *testing.T, edits, later []byte) {
		dir := t.TempDir()
		write := func(name string, data []byte) {
			if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write(second, other)
		write(name, spoolgen.Edit(bytes.Clone(good), edits))
		j, err := Open(dir, "")
		if err != nil {
			return
		}
		j.Report()
		write(name, spoolgen.Edit(bytes.Clone(good), later))
		if err := j.Update(); err != nil {
			return
		}
		if err := j.Report().Write(&bytes.Buffer{}, 20); err != nil {
			t.Fatal(err)
		}
	})
}
