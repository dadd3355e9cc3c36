package ingest

import (
	"os"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/schema"
)

// onWindow writes a call on window 7 and its RMA slot, which edit may fill in.
func onWindow(s *script, id schema.CallID, call func(*spool.Call), edit func(*spool.RMA)) {
	s.call(id, func(c *spool.Call) {
		c.Comm = 2
		if call != nil {
			call(c)
		}
	})
	r := spoolgen.NewRMA(7)
	if edit != nil {
		edit(&r)
	}
	s.RMA(r)
}

// origin fills in the origin argument, of 4-byte elements.
func origin(peer int32, count int64, req uint32) func(*spool.Call) {
	return to(2, peer, null32, count, req)
}

// oneSided makes a job in which ranks 2 and 0 of three make a window on a communicator where they are 0 and 1.
func oneSided(rank int, s *script) {
	if rank == 1 {
		s.call(schema.CallCommSplit, func(c *spool.Call) { c.Comm, c.Count = 0, -1 })
		s.Coll(spoolgen.NewColl(0))
		return
	}
	members := []int32{2, 0}
	if rank == 0 {
		members = nil
	}
	s.call(schema.CallCommSplit, func(c *spool.Call) { c.Comm, c.Count = 0, 2 })
	s.Coll(spoolgen.NewColl(0))
	s.DefComm(2, spool.CommDef{Kind: int32(schema.CommSplit), Parent: 0, Size: 2, Rank: int32(1 - rank/2),
		LeaderWorld: 2, Members: int32(len(members))}, members)
	s.call(schema.CallWinAllocate, func(c *spool.Call) { c.Comm, c.Count = 2, 7 })
	s.Coll(spoolgen.NewColl(0))
	if rank == 2 {
		return
	}
	onWindow(s, schema.CallPut, origin(0, 5, 0), nil)
	onWindow(s, schema.CallRget, origin(0, 3, 1), nil)
	onWindow(s, schema.CallRgetAccumulate, func(c *spool.Call) { c.Peer, c.Req, c.Count = 0, 2, null64 },
		func(r *spool.RMA) { r.Op, r.Rdtype, r.Rcount, r.Obytes = uint16(schema.OpNoOp), 0, 9, 0 })
	s.call(schema.CallWaitall, nil)
	s.Done(spool.DoneEntry{Req: 1, Source: null32, Tag: null32, Bytes: null64},
		spool.DoneEntry{Req: 2, Source: null32, Tag: null32, Bytes: null64})
	onWindow(s, schema.CallFetchAndOp, func(c *spool.Call) { origin(null32, 1, 0)(c); c.Flags = spool.FlagProcNull },
		func(r *spool.RMA) { r.Op, r.Rdtype, r.Rcount = uint16(schema.OpSum), 0, 1 })
	onWindow(s, schema.CallWinFlush, func(c *spool.Call) { c.Peer = 0 }, nil)
	onWindow(s, schema.CallWinFree, nil, nil)
}

func TestOneSided(t *testing.T) {
	for _, rows := range []int64{0, 3} {
		r := inMemory(t, program{ranks: 3, body: oneSided}.write(t), Options{epochRows: rows})
		compareLines(t, "rank 0", r.eventLines(0), `
			1 Comm_split comm comm 0 instance 0
			2 Win_allocate rma comm 1 instance 0
			3 Put rma comm 1 to 2 sends 20 init 2
			4 Rget rma comm 1 from 2 receives 12 request 1 done 6 init 2
			5 Rget_accumulate rma comm 1 to 2 sends 0 from 2 receives 36 request 2 done 6 init 2
			6 Waitall complete
			7 Fetch_and_op rma comm 1 sends 0 receives 0 null 3 init 2
			8 Win_flush rma comm 1 to 2 init 2
			9 Win_free rma comm 1 init 2`)
		if r.Counts.Messages != 0 || r.Counts.Collectives != 0 ||
			r.Counts.UnmatchedSends+r.Counts.UnmatchedReceives != 0 {
			t.Errorf("counts %+v: one-sided communication is neither messages nor collectives", r.Counts)
		}
		for _, e := range r.events {
			if want := map[string]schema.Op{"MPI_Fetch_and_op": schema.OpSum,
				"MPI_Rget_accumulate": schema.OpNoOp}; e.ReduceOp != schema.NullEnum &&
				schema.Op(e.ReduceOp) != want[schema.CallNames[e.Call]] {
				t.Errorf("%s has the operation %s", schema.CallNames[e.Call], schema.OpNames[e.ReduceOp])
			}
		}
	}
}

// inFile writes a call on file 5 and its IO slot.
func inFile(s *script, id schema.CallID, call func(*spool.Call), bytes int64) {
	s.call(id, func(c *spool.Call) {
		c.Comm = 0
		if call != nil {
			call(c)
		}
	})
	s.IO(spoolgen.NewIO(5, bytes))
}

func fileOpen(s *script, comm, number int32, instance uint64) {
	s.call(schema.CallFileOpen, func(c *spool.Call) { c.Comm, c.Count = comm, int64(number) })
	s.Coll(spoolgen.NewColl(instance))
	s.Def(spool.DefLabel, 0, []byte("/scratch/a name that does not fit into the 56 bytes of one slot.\xff"))
}

// files makes a job of one rank. With epochs of 3 rows, its requests and a split collective end epochs later.
func files(_ int, s *script) {
	fileOpen(s, 0, 5, 0)
	inFile(s, schema.CallFileWriteAt, to(0, null32, null32, 5, 0), 20)
	inFile(s, schema.CallFileIwrite, to(0, null32, null32, 6, 1), null64)
	inFile(s, schema.CallFileIread, to(0, null32, null32, 9, 2), null64)
	inFile(s, schema.CallFileReadAllBegin, to(0, null32, null32, 99, 3), null64)
	for range 5 {
		inFile(s, schema.CallFileSync, nil, null64)
	}
	inFile(s, schema.CallFileReadAllEnd, func(c *spool.Call) { c.Req, c.Count = 3, 17 }, null64)
	s.call(schema.CallWait, func(c *spool.Call) { c.Req, c.Count = 2, 4 })
	s.call(schema.CallTest, func(c *spool.Call) { c.Req, c.Count = 1, 24 })
	inFile(s, schema.CallFileReadShared, to(0, null32, null32, 9, 0), null64)
	s.Err(38)
	inFile(s, schema.CallFileClose, nil, null64)
	s.call(schema.CallFileDelete, nil)
	s.Def(spool.DefLabel, 0, []byte("b"))
}

func TestFiles(t *testing.T) {
	for _, rows := range []int64{0, 3} {
		for _, record := range []string{RecordAll, RecordMessages} {
			r := inMemory(t, program{ranks: 1, body: files}.write(t), Options{epochRows: rows, Record: record})
			compareLines(t, "rank 0", r.eventLines(0), `
				1 File_open io comm 0 instance 0
				2 File_write_at io comm 0 sends 20 init 1
				3 File_iwrite io comm 0 sends 24 request 1 done 13 init 1
				4 File_iread io comm 0 receives 4 request 2 done 12 init 1
				5 File_read_all_begin io comm 0 receives 17 request 3 done 11 init 1
				6 File_sync io comm 0 init 1
				7 File_sync io comm 0 init 1
				8 File_sync io comm 0 init 1
				9 File_sync io comm 0 init 1
				10 File_sync io comm 0 init 1
				11 File_read_all_end io comm 0 request 3 init 1
				12 Wait complete request 2
				13 Test complete request 1
				14 File_read_shared io comm 0 init 1 error 38
				15 File_close io comm 0 init 1
				16 File_delete io`)
			var labels []string
			for _, e := range r.events {
				if e.Label != schema.NullText {
					labels = append(labels, schema.CallNames[e.Call]+" "+e.Label)
				}
			}
			compareLines(t, "labels", strings.Join(labels, "\n"),
				"MPI_File_open /scratch/a name that does not fit into the 56 bytes of one slot.\uFFFD\nMPI_File_delete b")
		}
	}
}

// A call that never returned has what was known at its entry. A call on a window or file whose making was not
// recorded has none.
func TestOneSidedCutShort(t *testing.T) {
	p := program{ranks: 1, header: func(h *spool.Header) { h.Ended = spool.EndedNot }, body: func(_ int, s *script) {
		s.call(schema.CallWinCreate, func(c *spool.Call) { c.Comm, c.Count = 0, -1 })
		s.Coll(spoolgen.NewColl(0))
		s.Err(45)
		s.call(schema.CallWinFence, nil)
		s.RMA(spoolgen.NewRMA(-1))
		s.call(schema.CallPut, func(c *spool.Call) { c.Dtype, c.Count = 0, 5 })
		s.RMA(spoolgen.NewRMA(-1))
		s.call(schema.CallFileSync, nil)
		s.IO(spoolgen.NewIO(-1, null64))
		c := spoolgen.NewCall(schema.CallGet, 95, 0)
		c.Comm, c.Peer, c.Dtype, c.Count = 0, 0, 0, 5
		s.Call(&c)
	}}
	r := inMemory(t, p.write(t), Options{Partial: true})
	compareLines(t, "rank 0", r.eventLines(0), `
		1 Win_create rma comm 0 instance 0 error 45
		2 Win_fence rma
		3 Put rma sends 20
		4 File_sync io
		5 Get rma comm 0 from 0`)
}

func TestDamagedOneSidedCallsAreNamed(t *testing.T) {
	for _, test := range []struct {
		body func(_ int, s *script)
		want string
	}{
		{func(_ int, s *script) { s.call(schema.CallWinFence, nil) }, "MPI_Win_fence: no RMA slot follows"},
		{func(_ int, s *script) { s.call(schema.CallFileSync, nil) }, "MPI_File_sync: no IO slot follows"},
		{func(_ int, s *script) { onWindow(s, schema.CallPut, to(0, 3, null32, 1, 0), nil) }, "MPI_Put: rank 3 of a communicator of 1 ranks"},
		{func(_ int, s *script) {
			onWindow(s, schema.CallPut, to(0, 0, null32, 1, 0), func(r *spool.RMA) { r.Op = 99 })
		}, "MPI_Put: reduction operation 99"},
		{func(_ int, s *script) {
			onWindow(s, schema.CallFetchAndOp, to(0, 0, null32, 1, 0), func(r *spool.RMA) { r.Rdtype, r.Rcount = 8, 1 })
		}, "MPI_Fetch_and_op: datatype 8 is not defined"},
		{func(_ int, s *script) { inFile(s, schema.CallFileRead, to(0, null32, null32, 1, 0), -4) }, "MPI_File_read: -4 bytes"},
		{func(_ int, s *script) {
			fileOpen(s, 1, 5, 0)
			inFile(s, schema.CallFileSync, nil, null64)
		}, "MPI_File_sync: window or file 5 is on another communicator"},
	} {
		if got := refused(t, program{ranks: 1, body: test.body}.write(t), Options{}); !strings.Contains(got,
			test.want) {
			t.Errorf("%s\nwant %s", got, test.want)
		}
	}
}

// seedOneSided adds the spools of this file to a fuzz target.
func seedOneSided(f *testing.F) {
	for _, body := range []func(int, *script){oneSided, files} {
		data, err := os.ReadFile(file(program{ranks: 3, body: body}.write(f), 0))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint8(3))
	}
}
