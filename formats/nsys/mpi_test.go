package nsys

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
)

// The handles of MPI_COMM_WORLD in MPICH, and of a communicator made from it.
const world, made = 0x44000000, -2080374784

// call adds a call of MPI, with what columns have.
func (d *database) call(table string, pid int, name string, start, end int, columns string, values ...any) {
	d.t.Helper()
	marks := strings.Repeat(", ?", len(values))
	if columns != "" {
		columns = ", " + columns
	}
	d.exec("INSERT INTO "+table+" (start, end, globalTid, textId"+columns+") VALUES (?, ?, ?, ?"+marks+")",
		append([]any{start, end, thread(pid), d.text(name)}, values...)...)
}

func (d *database) p2p(pid int, name string, start, end, comm, tag, peer, bytes int, request any) {
	d.t.Helper()
	d.call("MPI_P2P_EVENTS", pid, name, start, end, "commHandle, tag, remoteRank, size, requestHandle", comm, tag, peer,
		bytes, request)
}

func (d *database) rank(pid, rank int) {
	d.t.Helper()
	d.exec("INSERT INTO MPI_RANKS VALUES (?, ?)", thread(pid), rank)
}

func (d *database) other(pid int, name string, start, end int) {
	d.t.Helper()
	d.call("MPI_OTHER_EVENTS", pid, name, start, end, "")
}

// What rows do not tell of a collective is null, not 0.
func TestUntoldSizes(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "mpi.sqlite")
	for rank, pid := range []int{50, 51} {
		d.rank(pid, rank)
		for i, name := range []string{"MPI_Reduce_scatter", "MPI_Reduce_scatter_block", "MPI_Alltoallv", "MPI_Scatterv"} {
			d.call("MPI_COLLECTIVES_EVENTS", pid, name, 30+10*i, 35+10*i, "commHandle, rootRank, size, recvSize", world, 0,
				12, 12)
		}
	}
	wantRows(t, mustImport(t, d.path), `
0.0 Reduce_scatter comm=0 instance=0 30-35
0.1 Reduce_scatter_block comm=0 instance=1 40-45
0.2 Alltoallv comm=0 instance=2 50-55
0.3 Scatterv comm=0 root=0 received=12 instance=3 60-65
1.0 Reduce_scatter comm=0 instance=0 30-35
1.1 Reduce_scatter_block comm=0 instance=1 40-45
1.2 Alltoallv comm=0 instance=2 50-55
1.3 Scatterv comm=0 root=0 sent=0 received=12 instance=3 60-65`)
}

// Three ranks under MPICH, all in one report: rank 0 sends 400 bytes to 1 blocking, and 88 bytes to 2 nonblocking; the
// receive of rank 1 has a buffer of 512 bytes, and rank 2 waits for two receives in one MPI_Waitall, a row each, the
// other from any source. A broadcast from rank 1, an all-reduce, an all-to-all of which the bytes are not told.
func TestMPI(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "mpi.sqlite")
	for rank, pid := range []int{50, 51, 52} {
		d.rank(pid, rank)
		d.other(pid, "MPI_Init", 10, 20)
		d.call("MPI_COLLECTIVES_EVENTS", pid, "MPI_Bcast", 30, 40, "commHandle, rootRank, size", world, 1, 4097)
		d.call("MPI_COLLECTIVES_EVENTS", pid, "MPI_Allreduce", 100, 120+rank, "commHandle, rootRank, size", world, nil,
			24)
		d.call("MPI_COLLECTIVES_EVENTS", pid, "MPI_Alltoall", 130, 140, "commHandle, size, recvSize", world, 12, 12)
		d.other(pid, "MPI_Finalize", 200, 210)
	}
	d.p2p(50, "MPI_Send", 50, 55, world, 9, 1, 400, nil)
	d.p2p(50, "MPI_Isend", 60, 61, world, 7, 2, 88, 1001)
	d.call("MPI_START_WAIT_EVENTS", 50, "MPI_Wait", 70, 75, "requestHandle", 1001)
	d.p2p(51, "MPI_Recv", 45, 58, world, 9, 0, 512, nil)
	d.p2p(52, "MPI_Irecv", 45, 46, world, 7, 0, 88, 1003)
	d.p2p(52, "MPI_Irecv", 47, 48, world, 8, -2, 16, 1004) // MPI_ANY_SOURCE of MPICH
	d.call("MPI_START_WAIT_EVENTS", 52, "MPI_Waitall", 70, 80, "requestHandle", 1003)
	d.call("MPI_START_WAIT_EVENTS", 52, "MPI_Waitall", 70, 80, "requestHandle", 1004)
	d.p2p(52, "MPI_Send", 85, 86, made, 3, 0, 5, nil)
	d.other(52, "MPI_Comm_rank", 90, 91)
	d.call("MPI_COLLECTIVES_EVENTS", 52, "MPI_Barrier", 132, 134, "commHandle", world) // inside of the all-to-all
	r := mustImport(t, d.path)
	wantRows(t, r, `
0.0 Init 10-20
0.1 Bcast comm=0 root=1 sent=0 received=4097 instance=0 30-40
0.2 Send comm=0 to=1 stag=9 sent=400 50-55
0.3 Isend comm=0 to=2 stag=7 sent=88 request=1 done=4 60-61
0.4 Wait request=1 70-75
0.5 Allreduce comm=0 sent=24 received=24 instance=1 100-120
0.6 Alltoall comm=0 instance=2 130-140
0.7 Finalize 200-210
1.0 Init 10-20
1.1 Bcast comm=0 root=1 sent=4097 received=0 instance=0 30-40
1.2 Recv comm=0 from=0 rtag=9 received=400 45-58
1.3 Allreduce comm=0 sent=24 received=24 instance=1 100-121
1.4 Alltoall comm=0 instance=2 130-140
1.5 Finalize 200-210
2.0 Init 10-20
2.1 Bcast comm=0 root=1 sent=0 received=4097 instance=0 30-40
2.2 Irecv comm=0 from=0 rtag=7 received=88 request=1 done=4 45-46
2.3 Irecv comm=0 rtag=8 received=16 request=2 done=4 47-48
2.4 Waitall 70-80
2.5 Send 85-86
2.6 Allreduce comm=0 sent=24 received=24 instance=1 100-122
2.7 Alltoall comm=0 instance=2 130-140
2.8 Finalize 200-210`)
	if r.Counts.Messages != 2 || r.Counts.MessageBytes != 488 || r.Ended != "finalized" || r.Counts.Collectives != 3 {
		t.Errorf("%+v", r.Counts)
	}
	wantWarning(t, r, "Calls on communicators whose members the exports do not tell, which have no communicator, "+
		"partner and size: 1.")
	wantWarning(t, r, "Calls without a row: 1 MPI_Comm_rank.")
	wantWarning(t, r, "Calls that began before another one of their thread had ended, as MPI libraries call MPI, "+
		"which have no row: 1.")
}

// Under Open MPI handles are addresses. What the exports call globally unique tells the communicators of all ranks: the
// first is MPI_COMM_WORLD, and each has messages of its own. The report of each rank is a file, 5000 ns later.
func TestMPIByUID(t *testing.T) {
	dir := t.TempDir()
	for rank := range 2 {
		d := newDatabase(t, dir, fmt.Sprintf("rank%d.sqlite", rank))
		d.exec("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, '')", 1_700_000_000_000_000_000+5000*rank)
		d.rank(70+rank, rank)
		for _, uid := range []int{3, 6} {
			name, peer := "MPI_Send", 1
			if rank == 1 {
				name, peer = "MPI_Recv", 0
			}
			d.call("MPI_P2P_EVENTS", 70+rank, name, 10*uid, 10*uid+5, "commHandle, commUid, tag, remoteRank, size",
				4000+100*rank+uid, uid, 2, peer, 10*uid)
		}
	}
	r := mustImport(t, dir)
	wantRows(t, r, `
0.0 Send comm=0 to=1 stag=2 sent=30 30-35
0.1 Send comm=1 to=1 stag=2 sent=60 60-65
1.0 Recv comm=0 from=0 rtag=2 received=30 5030-5035
1.1 Recv comm=1 from=0 rtag=2 received=60 5060-5065`)
	wantWarning(t, r, "Communicators that all ranks used besides MPI_COMM_WORLD; they have all ranks, in its order: 1.")
}

// Each rank used one handle: that of MPI_COMM_WORLD, unless uids or MPICH's handles say that there are
// several communicators. Ranks 2 and 3 then have a communicator of their own, in which they are 0 and 1.
func TestMPIOnlyHandles(t *testing.T) {
	for name, c := range map[string]struct {
		handles [4]int
		uids    [4]any
		foreign int
	}{
		"addresses":   {handles: [4]int{0x7f0000004000, 0x7f0000005000, 0x7f0000006000, 0x7f0000007000}},
		"uids":        {handles: [4]int{4005, 4005, 4006, 4006}, uids: [4]any{5, 5, 6, 6}, foreign: 4},
		"MPICH":       {handles: [4]int{world, world, made, made}, foreign: 2},
		"MPICH, made": {handles: [4]int{made, made, made + 1, made + 1}, foreign: 4},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDatabase(t, t.TempDir(), "mpi.sqlite")
			for rank, pid := range []int{50, 51, 52, 53} {
				d.rank(pid, rank)
				name, peer := "MPI_Send", rank+1
				if rank%2 == 1 {
					name, peer = "MPI_Recv", rank-1
				}
				if c.foreign > 0 {
					peer %= 2
				}
				d.call("MPI_P2P_EVENTS", pid, name, 10, 20, "commHandle, commUid, tag, remoteRank, size",
					c.handles[rank], c.uids[rank], 2, peer, 70+rank/2)
			}
			r := mustImport(t, d.path)
			if want := int64(4-c.foreign) / 2; r.Counts.Messages != want {
				t.Errorf("%d messages; want %d", r.Counts.Messages, want)
			}
			for i := range r.Events {
				if e := &r.Events[i]; e.SendWorld != schema.NullInt32 && e.SendWorld/2 != e.Rank/2 {
					t.Errorf("rank %d sends to %d", e.Rank, e.SendWorld)
				}
			}
			if c.foreign > 0 {
				wantWarning(t, r, fmt.Sprintf("members the exports do not tell, which have no communicator, partner "+
					"and size: %d.", c.foreign))
			}
		})
	}
}

// A row of MPI_Sendrecv has one partner for two messages: neither is made up, and the calls are counted.
func TestMPISendrecv(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "mpi.sqlite")
	for rank, pid := range []int{50, 51} {
		d.rank(pid, rank)
		d.p2p(pid, "MPI_Sendrecv", 10, 20, world, 9, 1-rank, 100, nil)
		d.p2p(pid, "MPI_Sendrecv_replace", 30, 40, world, 9, 1-rank, 100, nil)
	}
	r := mustImport(t, d.path)
	wantRows(t, r, `
0.0 Sendrecv 10-20
0.1 Sendrecv_replace 30-40
1.0 Sendrecv 10-20
1.1 Sendrecv_replace 30-40`)
	wantWarning(t, r, "they have no communicator, partner and size, and their messages are not in the run: 4.")
}

// A tag that is not told is not made up, and no receive is said to have got the message.
func TestMPISendWithoutTag(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "mpi.sqlite")
	for rank, pid := range []int{50, 51} {
		d.rank(pid, rank)
	}
	d.call("MPI_P2P_EVENTS", 50, "MPI_Send", 10, 20, "commHandle, remoteRank, size", world, 1, 8)
	d.p2p(51, "MPI_Recv", 10, 20, world, 0, 0, 8, nil)
	r := mustImport(t, d.path)
	wantRows(t, r, `
0.0 Send comm=0 to=1 sent=8 10-20
1.0 Recv comm=0 from=0 rtag=0 received=8 10-20`)
	wantWarning(t, r, "Sends whose tag the exports do not tell, which have none, and whose messages are not in the "+
		"run: 1.")
}

// A persistent receive, probes and tests: what they found is not told.
func TestMPIRequests(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "mpi.sqlite")
	for rank, pid := range []int{50, 51} {
		d.rank(pid, rank)
	}
	d.p2p(50, "MPI_Recv_init", 10, 11, world, 4, 1, 64, 900)
	d.call("MPI_START_WAIT_EVENTS", 50, "MPI_Start", 20, 21, "requestHandle", 900)
	d.call("MPI_START_WAIT_EVENTS", 50, "MPI_Test", 30, 31, "requestHandle", 900)
	d.call("MPI_START_WAIT_EVENTS", 50, "MPI_Wait", 40, 50, "requestHandle", 900)
	d.p2p(51, "MPI_Iprobe", 20, 22, world, 4, 0, 0, nil)
	d.p2p(51, "MPI_Send", 25, 29, world, 4, 0, 60, nil)
	d.call("MPI_COLLECTIVES_EVENTS", 51, "MPI_Ibarrier", 60, 61, "commHandle, requestHandle", world, 901)
	r := mustImport(t, d.path)
	wantRows(t, r, `
0.0 Recv_init 10-11
0.1 Start comm=0 from=1 rtag=4 received=60 request=1 done=2 20-21
0.2 Wait request=1 polls=1 40-50
1.0 Send comm=0 to=0 stag=4 sent=60 polls=1 25-29
1.1 Ibarrier comm=0 sent=0 received=0 instance=0 request=1 60-61`)
}

func TestMPIErrors(t *testing.T) {
	build := func(fill func(d *database)) string {
		d := newDatabase(t, t.TempDir(), "made.sqlite")
		fill(d)
		return d.path
	}
	for path, want := range map[string]string{
		build(func(d *database) {
			d.p2p(50, "MPI_Send", 10, 11, world, 4, 1, 64,
				nil)
		}): "no rank in the table MPI_RANKS",
		build(func(d *database) {
			d.rank(50, 3)
			d.p2p(50, "MPI_Send", 10, 11, world, 4, 1, 64, nil)
		}): "rank 3 of MPI, and no export of rank 0; want those of all ranks",
		build(func(d *database) {
			d.rank(50, 0)
			d.rank(51, 0)
			d.p2p(50, "MPI_Send", 10, 11, world, 4, 1, 64, nil)
		}): "rank 0 of MPI twice",
		build(func(d *database) {
			d.rank(50, 0)
			d.p2p(50, "MPI_Send", 10, 11, world, 4, 6, 64, nil)
		}): "rank 0, MPI_Send at 10 ns: a message to rank 6 of a communicator of 1 ranks",
		build(func(d *database) {
			d.rank(50, 0)
			d.p2p(50, "MPI_Send", 10, 11, world, 4, 0, 64, nil)
			d.exec("UPDATE MPI_P2P_EVENTS SET tag = 'red'")
		}): `row 1: tag is "red"; want a whole number`,
	} {
		if _, err := imported(t, path); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), path) {
			t.Errorf("%v; want %s: ... %s", err, path, want)
		}
	}
}

// MPI and NCCL in one export: the run has what there is more of, and says what it has not.
func TestMPIAndNCCL(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "both.sqlite")
	d.rank(50, 0)
	d.call("MPI_COLLECTIVES_EVENTS", 50, "MPI_Barrier", 60, 61, "commHandle", world)
	d.span(50, "ncclAllReduce", 100, 150, nil)
	d.span(50, "ncclAllReduce", 200, 250, nil)
	r := mustImport(t, d.path)
	wantWarning(t, r, "Calls of MPI, which are not in the run, as there are more operations of NCCL: 1.")
	for i := range 3 {
		d.call("MPI_COLLECTIVES_EVENTS", 50, "MPI_Barrier", 70+i, 71+i, "commHandle", world)
	}
	store := t.TempDir()
	m, err := ImportPath(context.Background(), d.path, store, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m.Counts.Calls != 4 || m.Evidence() != schema.EvidenceImported {
		t.Errorf("%+v", m)
	}
	if found, _ := filepath.Glob(filepath.Join(store, "both", "*")); len(found) == 0 {
		t.Error("no run named both")
	}
}

// Without ranks, calls of MPI cannot be imported; the operations of NCCL can, though they are fewer.
func TestMPIWithoutRanksAndNCCL(t *testing.T) {
	d := newDatabase(t, t.TempDir(), "both.sqlite")
	for i := range 3 {
		d.call("MPI_COLLECTIVES_EVENTS", 7, "MPI_Barrier", 10*i, 10*i+5, "commHandle", world)
	}
	d.span(7, "ncclAllReduce", 100, 150, nil)
	r := mustImport(t, d.path)
	if r.Counts.Calls != 2 || schema.CallID(r.Events[0].Call) != schema.CallIallreduce {
		t.Errorf("%+v", r.Events)
	}
	wantWarning(t, r, "Calls of MPI, which are not in the run, as no table MPI_RANKS tells the ranks: 3.")
}
