package ingest

import (
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/schema"
)

// initPartitioned makes a partitioned request with tag 9, to or from a rank, with these numbers of partitions and
// elements.
func initPartitioned(s *script, call schema.CallID, peer int32, partitions, count int64, req uint32) {
	s.call(call, to(0, peer, 9, count, req))
	s.Wide(spool.WideParts, partitions)
}

func start(s *script, made, serial uint32) {
	s.call(schema.CallStart, func(c *spool.Call) { c.Req = serial })
	s.Start(spoolgen.Pair{Req: serial, Template: made})
}

func wait(s *script, serial uint32, bytes int64) {
	s.call(schema.CallWait, func(c *spool.Call) { c.Req, c.Count = serial, bytes })
}

// Rank 3 has two requests with the same envelope to rank 5, of 2 x 3 and 5 x 4097 numbers. Both ranks start them
// twice, rank 3 the later one first and rank 5 the earlier one first. A plain message with the same envelope comes
// between.
func TestPartitionedRequestsMatchInOrder(t *testing.T) {
	r := inMemory(t, program{ranks: 6, body: func(rank int, s *script) {
		switch rank {
		case 3:
			initPartitioned(s, schema.CallPsendInit, 5, 2, 3, 1)
			initPartitioned(s, schema.CallPsendInit, 5, 5, 4097, 2)
			start(s, 2, 3)
			s.call(schema.CallSend, to(0, 5, 9, 7, 0))
			start(s, 1, 4)
			s.call(schema.CallPready, func(c *spool.Call) { c.Count, c.Req = 3, 3 })
			wait(s, 3, null64)
			start(s, 2, 5)
			wait(s, 4, null64)
			start(s, 1, 6)
			wait(s, 6, null64)
			wait(s, 5, null64)
		case 5:
			initPartitioned(s, schema.CallPrecvInit, 3, 2, 3, 1)
			initPartitioned(s, schema.CallPrecvInit, 3, 5, 4097, 2)
			for i := uint32(0); i < 2; i++ {
				start(s, 1, 3+2*i)
				start(s, 2, 4+2*i)
				if i == 0 {
					s.call(schema.CallRecv, received(0, 3, 9, 28, 0))
				}
				s.call(schema.CallWait, got(3+2*i, 3, 9, 24))
				s.call(schema.CallWait, got(4+2*i, 3, 9, 5*4097*4))
			}
		}
	}}.write(t), Options{})
	// 2 x 3 x 4 bytes; 5 x 4097 x 4; 7 x 4
	compareLines(t, "messages", r.messageLines(), `
		3>5 comm 0 tag 9 bytes 81940 rows 3 4 7 epoch 0
		3>5 comm 0 tag 9 bytes 28 rows 4 5 5 epoch 0
		3>5 comm 0 tag 9 bytes 24 rows 5 3 6 epoch 0
		3>5 comm 0 tag 9 bytes 81940 rows 8 9 11 epoch 0
		3>5 comm 0 tag 9 bytes 24 rows 10 8 10 epoch 0`)
	if r.Counts.UnmatchedSends+r.Counts.UnmatchedReceives != 0 {
		t.Errorf("counts %+v", r.Counts)
	}
}

// between defines communicator 2 of a rank: its own group has the world ranks members, the other group remote; -1 is a
// process of another job.
func between(s *script, rank int, members, remote []int32) {
	s.DefComm(2, spool.CommDef{Kind: int32(schema.CommInter), Parent: null32, Size: int32(len(members)),
		Rank:        int32(slices.Index(members, int32(rank))),
		LeaderWorld: members[0], RemoteSize: int32(len(remote)), RemoteLeaderWorld: remote[0],
		Members: int32(len(members)), RemoteMembers: int32(len(remote))}, members, remote)
}

// What is sent to processes of other jobs, and received from them, is counted in a warning and is no message.
func TestProcessesOfOtherJobs(t *testing.T) {
	dir := program{ranks: 6, body: func(rank int, s *script) {
		switch rank {
		case 3, 5:
			between(s, rank, []int32{5, 3}, []int32{-1, -1, -1})
			if rank == 3 {
				s.call(schema.CallSend, to(2, 2, 9, 4097, 0))
				s.call(schema.CallSend, to(0, 5, 9, 5, 0))
			} else {
				s.call(schema.CallRecv, received(2, 1, 9, 12, 0))
				s.call(schema.CallRecv, received(0, 3, 9, 20, 0))
			}
		}
	}}.write(t)
	r := ingested(t, dir, Options{})
	compareLines(t, "messages", r.messageLines(), `3>5 comm 0 tag 9 bytes 20 rows 2 2 2 epoch 0`)
	compareLines(t, "communicators", r.commLines(t), `
		0 world MPI_COMM_WORLD of -: 0 1 2 3 4 5
		1 inter of -: 5 3 of -: - - -`)
	if w := strings.Join(r.Warnings, "\n"); !strings.Contains(w,
		"outside MPI_COMM_WORLD or of unknown rank, which do not count as messages: 2.") {
		t.Errorf("warnings %q: want one about 2 calls", w)
	}
}

// The leaders of both groups of the communicator are processes of another job, so that the files of this one do not
// show which group is which.
func TestIntercommunicatorLedByOtherJobs(t *testing.T) {
	r := ingested(t, program{ranks: 6, body: func(rank int, s *script) {
		switch rank {
		case 3:
			between(s, rank, []int32{-1, 3}, []int32{-1, 5, -1})
			s.call(schema.CallSend, to(2, 1, 9, 5, 0))
		case 5:
			between(s, rank, []int32{-1, 5, -1}, []int32{-1, 3})
			s.call(schema.CallRecv, received(2, 1, 9, 20, 0))
		}
		s.call(schema.CallBarrier, func(c *spool.Call) { c.Comm = 0 })
		s.Coll(spoolgen.NewColl(0))
	}}.write(t), Options{})
	if r.Counts.Collectives != 1 || r.Counts.InProgress != 0 {
		t.Errorf("counts %+v: want the barrier", r.Counts)
	}
	compareLines(t, "messages", r.messageLines(), `3>5 comm 1 tag 9 bytes 20 rows 1 1 1 epoch 0`)
	compareLines(t, "communicators", r.commLines(t), `
		0 world MPI_COMM_WORLD of -: 0 1 2 3 4 5
		1 inter of -: - 3 of -: - 5 -`)
	if w := strings.Join(r.Warnings, "\n"); !strings.Contains(w, "both led by processes outside MPI_COMM_WORLD: 1.") {
		t.Errorf("warnings %q: want one about the communicator", w)
	}
}
