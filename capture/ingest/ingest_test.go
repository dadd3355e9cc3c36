package ingest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/schema"
)

// Rank 1 sends 3 ints, tag 9, to rank 2, which waits for them; rank 2 sends 5 to rank 1's blocking receive. The receive
// of rank 0 that gets no message is cancelled.
func TestBlockingAndNonblocking(t *testing.T) {
	r := ingested(t, program{ranks: 3, body: func(rank int, s *script) {
		switch rank {
		case 0:
			s.call(schema.CallIrecv, from(0, 1, 9, 1))
			s.call(schema.CallCancel, func(c *spool.Call) { c.Req = 1 })
			s.call(schema.CallWait, func(c *spool.Call) { c.Req, c.Flags = 1, spool.FlagCancelled })
			s.call(schema.CallSend, func(c *spool.Call) { to(0, null32, 9, 7, 0)(c); c.Flags = spool.FlagProcNull })
		case 1:
			s.call(schema.CallSend, to(0, 2, 9, 3, 0))
			s.call(schema.CallRecv, received(0, 2, 9, 20, 0))
		case 2:
			s.call(schema.CallIrecv, from(0, 1, 9, 1))
			s.call(schema.CallIsend, to(0, 1, 9, 5, 2))
			s.call(schema.CallWait, got(1, 1, 9, 12))
			s.call(schema.CallWait, sent(2))
		}
	}}.write(t), Options{})
	compareLines(t, "messages", r.messageLines(), `
		1>2 comm 0 tag 9 bytes 12 rows 1 1 3 epoch 0
		2>1 comm 0 tag 9 bytes 20 rows 2 2 2 epoch 0`)
	compareLines(t, "rank 0", r.eventLines(0), `
		1 Irecv recv comm 0 from 1 tag 9 request 1 done 3
		2 Cancel complete request 1
		3 Wait complete request 1
		4 Send send comm 0 tag 9 sends 0 null 1`)
	compareLines(t, "rank 1", r.eventLines(1), `
		1 Send send comm 0 to 2 tag 9 sends 12
		2 Recv recv comm 0 from 2 tag 9 receives 20`)
	compareLines(t, "rank 2", r.eventLines(2), `
		1 Irecv recv comm 0 from 1 tag 9 receives 12 request 1 done 3
		2 Isend send comm 0 to 1 tag 9 sends 20 request 2 done 4
		3 Wait complete request 1
		4 Wait complete request 2`)
	m := r.messages[0]
	// Rank 1's send is its call 1: 10 to 14 ns; rank 2 posts in its call 1 and waits in its call 3: 30 to 34 ns.
	if got, want := []int64{m.SendStartNs, m.SendEndNs, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs},
		[]int64{10, 14, 10, 30, 34}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("times %v, want %v", got, want)
	}
	if c := r.Counts; c.Messages != 2 || c.MessageBytes != 32 || c.UnmatchedSends != 0 || c.UnmatchedReceives != 0 ||
		c.Calls != 16 {
		t.Errorf("counts %+v", c)
	}
	if r.Ended != "finalized" || r.EndNs != 54 || r.ComputeClock != "cpu" || r.Epochs != 1 {
		t.Errorf("manifest: ended %s, end %d, clock %s, %d epochs", r.Ended, r.EndNs, r.ComputeClock, r.Epochs)
	}
}

// Two wildcards of rank 3 are posted before a receive that names rank 5 and tag 9. Their statuses show that the first
// wildcard took a message from rank 5's second channel (tag 8) and the second one rank 4's message.
func TestWildcardsHoldTheirPlaceInPostingOrder(t *testing.T) {
	r := ingested(t, program{ranks: 6, body: func(rank int, s *script) {
		switch rank {
		case 3:
			s.call(schema.CallIrecv, from(0, anyRank, anyTag, 1))
			s.call(schema.CallIrecv, from(0, anyRank, 9, 2))
			s.call(schema.CallIrecv, from(0, 5, 9, 3))
			s.call(schema.CallWaitall, nil)
			s.Done(spool.DoneEntry{Req: 1, Source: 5, Tag: 8, Bytes: 4},
				spool.DoneEntry{Req: 2, Source: 5, Tag: 9, Bytes: 8},
				spool.DoneEntry{Req: 3, Source: 5, Tag: 9, Bytes: 12})
			s.call(schema.CallRecv, received(0, 4, 1, 16, spool.FlagAnySource))
		case 4:
			s.call(schema.CallSend, to(0, 3, 1, 4, 0))
		case 5:
			s.call(schema.CallSend, to(0, 3, 9, 2, 0))
			s.call(schema.CallSend, to(0, 3, 8, 1, 0))
			s.call(schema.CallSend, to(0, 3, 9, 3, 0))
		}
	}}.write(t), Options{})
	compareLines(t, "messages", r.messageLines(), `
		4>3 comm 0 tag 1 bytes 16 rows 1 5 5 epoch 0
		5>3 comm 0 tag 9 bytes 8 rows 1 2 4 epoch 0
		5>3 comm 0 tag 8 bytes 4 rows 2 1 4 epoch 0
		5>3 comm 0 tag 9 bytes 12 rows 3 3 4 epoch 0`)
	compareLines(t, "rank 3", r.eventLines(3), `
		1 Irecv recv comm 0 from 5 tag 8 receives 4 any 3 request 1 done 4
		2 Irecv recv comm 0 from 5 tag 9 receives 8 any 1 request 2 done 4
		3 Irecv recv comm 0 from 5 tag 9 receives 12 request 3 done 4
		4 Waitall complete
		5 Recv recv comm 0 from 4 tag 1 receives 16 any 1`)
	if r.Counts.WildcardReceives != 3 {
		t.Errorf("%d wildcard receives, want 3", r.Counts.WildcardReceives)
	}
}

// A persistent pair is started twice, once by MPI_Start and once by MPI_Startall, whose second row begins at its end.
func TestPersistentRequests(t *testing.T) {
	r := ingested(t, program{ranks: 1, body: func(rank int, s *script) {
		s.call(schema.CallSendInit, to(0, 0, 5, 2, 1))
		s.call(schema.CallRecvInit, from(0, anyRank, 5, 2))
		s.call(schema.CallStart, func(c *spool.Call) { c.Req = 3 })
		s.Start(spoolgen.Pair{Req: 3, Template: 1})
		s.call(schema.CallStart, func(c *spool.Call) { c.Req = 4 })
		s.Start(spoolgen.Pair{Req: 4, Template: 2})
		s.call(schema.CallWaitall, nil)
		s.Done(spool.DoneEntry{Req: 3, Source: null32, Tag: null32, Bytes: null64},
			spool.DoneEntry{Req: 4, Source: 0, Tag: 5, Bytes: 8})
		s.call(schema.CallStartall, nil)
		s.Start(spoolgen.Pair{Req: 5, Template: 2}, spoolgen.Pair{Req: 6, Template: 1})
		s.call(schema.CallWait, got(5, 0, 5, 8))
		s.call(schema.CallRequestFree, func(c *spool.Call) { c.Req = 6 })
		s.call(schema.CallRequestFree, func(c *spool.Call) { c.Req = 1 })
	}}.write(t), Options{})
	compareLines(t, "rank 0", r.eventLines(0), `
		1 Send_init other comm 0 to 0 tag 5 request 1
		2 Recv_init other comm 0 tag 5 any 1 request 2
		3 Start send comm 0 to 0 tag 5 sends 8 request 3 done 5 init 1
		4 Start recv comm 0 from 0 tag 5 receives 8 any 1 request 4 done 5 init 2
		5 Waitall complete
		6 Startall recv comm 0 from 0 tag 5 receives 8 any 1 request 5 done 8 init 2
		7 Startall send comm 0 to 0 tag 5 sends 8 request 6 init 1
		8 Wait complete request 5
		9 Request_free complete request 6
		10 Request_free complete request 1`)
	compareLines(t, "messages", r.messageLines(), `
		0>0 comm 0 tag 5 bytes 8 rows 3 4 5 epoch 0
		0>0 comm 0 tag 5 bytes 8 rows 7 6 8 epoch 0`)
	if a, b := r.events[6], r.events[7]; a.StartNs != 60 || a.EndNs != 64 || b.StartNs != 64 || b.EndNs != 64 {
		t.Errorf("MPI_Startall from %d to %d and %d to %d, want 60 to 64 and 64 to 64", a.StartNs, a.EndNs, b.StartNs,
			b.EndNs)
	}
}

// A matched probe takes the first message although a receive posted after it completes before the MPI_Mrecv.
func TestMatchedProbes(t *testing.T) {
	r := ingested(t, program{ranks: 2, body: func(rank int, s *script) {
		if rank == 0 {
			s.call(schema.CallSend, to(0, 1, 9, 1, 0))
			s.call(schema.CallSend, to(0, 1, 9, 2, 0))
			s.call(schema.CallSend, to(0, 1, 9, 3, 0))
			return
		}
		probed := func(serial uint32, bytes int64) func(*spool.Call) {
			return func(c *spool.Call) {
				c.Comm, c.Peer, c.Tag, c.Count, c.Req, c.Flags = 0, 0, 9, bytes, serial, spool.FlagAnySource
			}
		}
		s.call(schema.CallMprobe, probed(1, 4))
		s.call(schema.CallRecv, received(0, 0, 9, 8, 0))
		s.call(schema.CallMrecv, func(c *spool.Call) { c.Dtype, c.Count, c.Req = 0, 50, 4 })
		s.Wide(spool.WideMessage, 1)
		s.call(schema.CallImprobe, probed(2, 12))
		s.call(schema.CallImrecv, func(c *spool.Call) { c.Dtype, c.Count, c.Req = 0, 50, 3 })
		s.Wide(spool.WideMessage, 2)
		s.call(schema.CallWait, got(3, 0, 9, 12))
	}}.write(t), Options{})
	compareLines(t, "messages", r.messageLines(), `
		0>1 comm 0 tag 9 bytes 4 rows 1 1 3 epoch 0
		0>1 comm 0 tag 9 bytes 8 rows 2 2 2 epoch 0
		0>1 comm 0 tag 9 bytes 12 rows 3 4 6 epoch 0`)
	compareLines(t, "rank 1", r.eventLines(1), `
		1 Mprobe probe comm 0 from 0 tag 9 receives 4 any 1
		2 Recv recv comm 0 from 0 tag 9 receives 8
		3 Mrecv recv comm 0 from 0 tag 9 receives 4 init 1
		4 Improbe probe comm 0 from 0 tag 9 receives 12 any 1
		5 Imrecv recv comm 0 from 0 tag 9 receives 12 request 3 done 6 init 4
		6 Wait complete request 3`)
}

// Rank 1's first thread waits in a probe while the second one probes, receives and probes again. In MPICH the first
// probe gets the last message, as one that waits holds no place; in Open MPI it gets the first one.
func TestMatchedProbesOfThreads(t *testing.T) {
	at := func(start, end uint64, edit func(*spool.Call)) func(*spool.Call) {
		return func(c *spool.Call) { edit(c); c.T0, c.T1 = start, end }
	}
	probed := func(serial, bytes uint32) func(*spool.Call) {
		return func(c *spool.Call) { c.Comm, c.Peer, c.Tag, c.Count, c.Req = 0, 0, 9, int64(bytes), serial }
	}
	mrecv := func(s *script, message int64, bytes uint32) {
		s.call(schema.CallMrecv, at(90, 94, func(c *spool.Call) { c.Dtype, c.Count, c.Req = 0, 50, bytes }))
		s.Wide(spool.WideMessage, message)
	}
	for _, c := range []struct {
		library string
		bytes   [4]uint32 // that the rows 1 to 4 of rank 1 get
		want    string
	}{{"MPICH Version:\t4.0.2", [4]uint32{16, 4, 8, 12}, `
		0>1 comm 0 tag 9 bytes 4 rows 1 2 7 epoch 0
		0>1 comm 0 tag 9 bytes 8 rows 2 3 3 epoch 0
		0>1 comm 0 tag 9 bytes 12 rows 3 4 8 epoch 0
		0>1 comm 0 tag 9 bytes 16 rows 4 1 5 epoch 0`},
		{"Open MPI v4.1.4", [4]uint32{4, 8, 12, 16}, `
		0>1 comm 0 tag 9 bytes 4 rows 1 1 5 epoch 0
		0>1 comm 0 tag 9 bytes 8 rows 2 2 7 epoch 0
		0>1 comm 0 tag 9 bytes 12 rows 3 3 3 epoch 0
		0>1 comm 0 tag 9 bytes 16 rows 4 4 8 epoch 0`}} {
		header := func(h *spool.Header) { clear(h.MPILibrary[:]); copy(h.MPILibrary[:], c.library) }
		p := program{ranks: 2, header: header, body: func(rank int, s *script) {
			if rank == 1 {
				s.call(schema.CallMprobe, at(20, 80, probed(1, c.bytes[0])))
				mrecv(s, 1, c.bytes[0])
				return
			}
			for count := range int64(4) {
				s.call(schema.CallSend, to(0, 1, 9, count+1, 0))
			}
		}, second: func(rank int, s *script) {
			if rank == 1 {
				s.call(schema.CallMprobe, at(30, 40, probed(2, c.bytes[1])))
				s.call(schema.CallRecv, at(50, 60, received(0, 0, 9, c.bytes[2], 0)))
				s.call(schema.CallImprobe, at(62, 64, probed(3, c.bytes[3])))
				mrecv(s, 2, c.bytes[1])
				mrecv(s, 3, c.bytes[3])
			}
		}}
		compareLines(t, c.library, ingested(t, p.write(t), Options{}).messageLines(), c.want)
	}
}

// A failed send is no message. A receive that was too small took its message; another error did not.
func TestCallsThatFailed(t *testing.T) {
	const truncate, otherError, rankError = 15, 16, 6
	r := ingested(t, program{ranks: 2, body: func(rank int, s *script) {
		if rank == 0 {
			s.call(schema.CallSend, to(0, 77, 9, 1, 0)) // there is no rank 77
			s.Err(rankError)
			s.call(schema.CallSend, to(0, 1, 9, 2, 0))
			s.call(schema.CallSend, to(0, 1, 9, 3, 0))
			return
		}
		s.call(schema.CallRecv, received(0, 0, 9, 0, spool.FlagNoStatus))
		s.Err(otherError)
		s.call(schema.CallRecv, received(0, 0, 9, 0, spool.FlagNoStatus))
		s.Truncate(truncate)
		s.call(schema.CallRecv, received(0, 0, 9, 12, 0))
	}}.write(t), Options{})
	compareLines(t, "messages", r.messageLines(), `
		0>1 comm 0 tag 9 bytes 8 rows 2 2 2 epoch 0
		0>1 comm 0 tag 9 bytes 12 rows 3 3 3 epoch 0`)
	compareLines(t, "rank 1", r.eventLines(1), `
		1 Recv recv comm 0 from 0 tag 9 error 16
		2 Recv recv comm 0 from 0 tag 9 error 15
		3 Recv recv comm 0 from 0 tag 9 receives 12`)
	if c := r.Counts; c.UnmatchedSends != 0 || c.UnmatchedReceives != 0 {
		t.Errorf("unmatched: %d sends, %d receives", c.UnmatchedSends, c.UnmatchedReceives)
	}
}

// A receive that was too small took its message, whatever number the library gives that error, and also where it took
// any: its status tells whose. A send whose Sendrecv failed so was sent.
func TestTruncatedWildcards(t *testing.T) {
	for _, truncate := range []int32{14, 15} {
		r := ingested(t, program{ranks: 2, body: func(rank int, s *script) {
			other := int32(1 - rank)
			if rank == 0 {
				for count := range int64(4) {
					s.call(schema.CallSend, to(0, 1, 9, count+1, 0))
				}
				s.call(schema.CallRecv, received(0, 1, 7, 4, 0))
				return
			}
			s.call(schema.CallRecv, received(0, other, 9, 0, spool.FlagNoStatus|spool.FlagAnySource))
			s.Truncate(truncate)
			s.call(schema.CallIrecv, from(0, anyRank, 9, 1))
			s.call(schema.CallWait, got(1, other, 9, null64))
			s.Truncate(truncate)
			s.call(schema.CallSendrecv, to(0, other, 7, 1, 0))
			s.Side(spool.Side{Dtype: 0, Peer: other, Tag: 9, Count: 50, Bytes: null64,
				Flags: spool.FlagNoStatus | spool.FlagAnySource})
			s.Truncate(truncate)
			s.call(schema.CallRecv, received(0, other, 9, 16, 0))
		}}.write(t), Options{})
		compareLines(t, "messages", r.messageLines(), `
			0>1 comm 0 tag 9 bytes 4 rows 1 1 1 epoch 0
			0>1 comm 0 tag 9 bytes 8 rows 2 2 3 epoch 0
			0>1 comm 0 tag 9 bytes 12 rows 3 4 4 epoch 0
			0>1 comm 0 tag 9 bytes 16 rows 4 5 5 epoch 0
			1>0 comm 0 tag 7 bytes 4 rows 4 5 5 epoch 0`)
		if c := r.Counts; c.UnmatchedSends != 0 || c.UnmatchedReceives != 0 {
			t.Errorf("unmatched: %d sends, %d receives", c.UnmatchedSends, c.UnmatchedReceives)
		}
	}
}

// Of the requests of a call that failed each ended in its own way, as the statuses say: one was too small and took its
// message, one is fine, one failed.
func TestRequestsOfACallThatFailed(t *testing.T) {
	const inStatus = 18
	r := ingested(t, program{ranks: 2, body: func(rank int, s *script) {
		if rank == 0 {
			s.call(schema.CallSend, to(0, 1, 9, 2, 0))
			s.call(schema.CallSend, to(0, 1, 8, 3, 0))
			s.call(schema.CallSend, to(0, 1, 9, 5, 0))
			return
		}
		for i, tag := range []int32{9, 8, 7} {
			s.call(schema.CallIrecv, from(0, 0, tag, uint32(i+1)))
		}
		s.call(schema.CallWaitall, nil)
		s.Done(spool.DoneEntry{Req: 1, Source: 0, Tag: 9, Flags: spool.FlagTruncated, Bytes: null64})
		s.Done(spool.DoneEntry{Req: 2, Source: 0, Tag: 8, Flags: spool.FlagNoError, Bytes: 12})
		s.Done(spool.DoneEntry{Req: 3, Source: null32, Tag: null32, Flags: spool.FlagNoStatus, Bytes: null64})
		s.Err(inStatus)
		s.call(schema.CallRecv, received(0, 0, 9, 20, 0))
	}}.write(t), Options{})
	compareLines(t, "messages", r.messageLines(), `
		0>1 comm 0 tag 9 bytes 8 rows 1 1 4 epoch 0
		0>1 comm 0 tag 8 bytes 12 rows 2 2 4 epoch 0
		0>1 comm 0 tag 9 bytes 20 rows 3 5 5 epoch 0`)
	compareLines(t, "rank 1", r.eventLines(1), `
		1 Irecv recv comm 0 from 0 tag 9 request 1 done 4
		2 Irecv recv comm 0 from 0 tag 8 receives 12 request 2 done 4
		3 Irecv recv comm 0 from 0 tag 7 request 3 done 4
		4 Waitall complete error 18
		5 Recv recv comm 0 from 0 tag 9 receives 20`)
	if c := r.Counts; c.UnmatchedSends != 0 || c.UnmatchedReceives != 0 {
		t.Errorf("unmatched: %d sends, %d receives", c.UnmatchedSends, c.UnmatchedReceives)
	}
}

func TestSendrecvIsBothSides(t *testing.T) {
	r := ingested(t, program{ranks: 3, body: func(rank int, s *script) {
		next, previous := int32((rank+1)%3), int32((rank+2)%3)
		s.call(schema.CallSendrecv, to(0, next, 9, int64(rank+1), 0))
		s.Side(spool.Side{Dtype: 0, Peer: previous, Tag: 9, Count: 50, Bytes: 4 * (int64(previous) + 1),
			Flags: spool.FlagAnyTag})
		s.call(schema.CallIsendrecv, to(0, next, 4, 5, 1))
		s.Side(spool.Side{Dtype: 0, Peer: previous, Tag: 4, Count: 50, Bytes: null64})
		s.call(schema.CallWait, got(1, previous, 4, 20))
	}}.write(t), Options{})
	compareLines(t, "messages", r.messageLines(), `
		0>1 comm 0 tag 9 bytes 4 rows 1 1 1 epoch 0
		0>1 comm 0 tag 4 bytes 20 rows 2 2 3 epoch 0
		1>2 comm 0 tag 9 bytes 8 rows 1 1 1 epoch 0
		1>2 comm 0 tag 4 bytes 20 rows 2 2 3 epoch 0
		2>0 comm 0 tag 9 bytes 12 rows 1 1 1 epoch 0
		2>0 comm 0 tag 4 bytes 20 rows 2 2 3 epoch 0`)
	compareLines(t, "rank 0", r.eventLines(0), `
		1 Sendrecv sendrecv comm 0 to 1 tag 9 sends 4 from 2 tag 9 receives 12 any 2
		2 Isendrecv sendrecv comm 0 to 1 tag 4 sends 20 from 2 tag 4 receives 20 request 1 done 3
		3 Wait complete request 1`)
}

// A receive that is cancelled and then freed, so that no status tells how it ended, takes no message.
func TestReceiveCancelledAndFreed(t *testing.T) {
	for _, rows := range []int64{0, 1, 2, 3} { // in one epoch, and across the borders of several
		r := inMemory(t, program{ranks: 2, body: func(rank int, s *script) {
			if rank == 1 {
				s.call(schema.CallSend, to(0, 0, 9, 3, 0))
				s.call(schema.CallIsend, to(0, 0, 8, 1, 1)) // its MPI_Cancel says nothing of whether it arrives
				s.call(schema.CallCancel, func(c *spool.Call) { c.Req = 1 })
				s.call(schema.CallRequestFree, func(c *spool.Call) { c.Req = 1 })
				return
			}
			request := func(c *spool.Call) { c.Req = 1 }
			s.call(schema.CallIrecv, from(0, 1, 9, 1))
			s.call(schema.CallCancel, request)
			s.call(schema.CallRequestFree, request)
			s.call(schema.CallIrecv, from(0, 1, 9, 2))
			s.call(schema.CallWait, got(2, 1, 9, 12))
			s.call(schema.CallRecv, received(0, 1, 8, 4, 0))
		}}.write(t), Options{epochRows: rows})
		got := regexp.MustCompile(` epoch \d+`).ReplaceAllString(r.messageLines(), "")
		compareLines(t, "messages", got, `
			1>0 comm 0 tag 9 bytes 12 rows 1 4 5
			1>0 comm 0 tag 8 bytes 4 rows 2 6 6`)
		compareLines(t, "rank 0", r.eventLines(0), `
			1 Irecv recv comm 0 from 1 tag 9 request 1 done 3
			2 Cancel complete request 1
			3 Request_free complete request 1
			4 Irecv recv comm 0 from 1 tag 9 receives 12 request 2 done 5
			5 Wait complete request 2
			6 Recv recv comm 0 from 1 tag 8 receives 4`)
		if c := r.Counts; c.UnmatchedSends != 0 || c.UnmatchedReceives != 0 {
			t.Errorf("unmatched: %d sends, %d receives; want none", c.UnmatchedSends, c.UnmatchedReceives)
		}
		if rows == 1 && r.events[len(r.events)-1].Epoch < 4 {
			t.Errorf("%d epochs: too few for a receive to be freed in another", r.events[len(r.events)-1].Epoch+1)
		}
	}
}

// A sendrecv that did not return waits for a message: which one is not known.
func TestSendrecvThatDidNotReturn(t *testing.T) {
	ended := func(h *spool.Header) { h.Ended = spool.EndedNot }
	r := ingested(t, program{ranks: 2, header: ended, body: func(rank int, s *script) {
		if rank == 0 {
			s.call(schema.CallSendrecv, func(c *spool.Call) { to(0, 1, 9, 1, 0)(c); c.T1 = 0 })
		}
	}}.write(t), Options{Partial: true})
	if c := r.Counts; c.UnmatchedSends != 1 || c.UnmatchedReceives != 1 {
		t.Errorf("unmatched: %d sends, %d receives; want 1 each", c.UnmatchedSends, c.UnmatchedReceives)
	}
}

// crash returns a job that was killed: rank 2 waits for rank 1, whose last call is a receive from any source.
func crash() program {
	return program{ranks: 3, header: func(h *spool.Header) { h.Ended = spool.EndedNot }, body: func(rank int, s *script) {
		open := func(edit func(*spool.Call)) func(*spool.Call) { return func(c *spool.Call) { edit(c); c.T1 = 0 } }
		switch rank {
		case 0:
			s.call(schema.CallSend, to(0, 2, 9, 2, 0))
			s.call(schema.CallSend, open(to(0, 2, 9, 3, 0)))
			s.Def(spool.DefType, 1, make([]byte, 70)) // cut short by the kill: one BLOB slot of 56 bytes is there
		case 1:
			s.call(schema.CallRecv, open(from(0, anyRank, 4, 0)))
		case 2:
			s.call(schema.CallIrecv, from(0, 0, 9, 1))
			s.call(schema.CallWait, got(1, 0, 9, 8))
			s.call(schema.CallIrecv, from(0, 0, 9, 2))
			s.call(schema.CallIrecv, from(0, anyRank, 9, 3))
			s.call(schema.CallWait, open(func(c *spool.Call) { c.Req = 2 }))
		}
		s.Zeros(9)
	}}
}

func TestCrashedJobsAreRecovered(t *testing.T) {
	r := ingested(t, crash().write(t), Options{})
	compareLines(t, "messages", r.messageLines(), `
		0>2 comm 0 tag 9 bytes 8 rows 1 1 2 epoch 0
		0>2 comm 0 tag 9 bytes 12 rows 2 3 - epoch 0`)
	compareLines(t, "rank 2", r.eventLines(2), `
		1 Irecv recv comm 0 from 0 tag 9 receives 8 request 1 done 2
		2 Wait complete request 1
		3 Irecv recv comm 0 from 0 tag 9 request 2
		4 Irecv recv comm 0 tag 9 any 1 request 3
		5 Wait complete request 2`)
	if e := r.events[2]; e.EndNs != null64 || e.StartNs != 20 {
		t.Errorf("the send in progress is from %d to %d", e.StartNs, e.EndNs)
	}
	if c := r.Counts; c.InProgress != 3 || c.UnmatchedReceives != 2 || c.UnmatchedSends != 0 {
		t.Errorf("counts %+v", c)
	}
	compareLines(t, "warnings", strings.Join(r.Warnings, "\n"), `
		Rank 0 never returned from MPI_Send to rank 2, tag 9.
		Rank 1 never returned from MPI_Recv from any rank, tag 4.
		Rank 2 never returned from MPI_Wait.`)
	if r.Ended != "killed" {
		t.Errorf("ended %s", r.Ended)
	}
}

func TestRecordMessagesKeepsUnmatched(t *testing.T) {
	r := ingested(t, program{ranks: 2, body: func(rank int, s *script) {
		other := int32(1 - rank)
		s.call(schema.CallIrecv, from(0, other, 9, 1))
		s.call(schema.CallIbarrier, func(c *spool.Call) { c.Comm, c.Req = 0, 2 })
		s.Coll(spoolgen.NewColl(0))
		s.call(schema.CallSend, to(0, other, 9, 3, 0))
		s.call(schema.CallWait, got(1, other, 9, 12))
		s.call(schema.CallWait, sent(2))
		s.call(schema.CallSend, to(0, other, 5, 1, 0))
		s.call(schema.CallBarrier, func(c *spool.Call) { c.Comm = 0 })
		s.Coll(spoolgen.NewColl(1))
	}}.write(t), Options{Record: RecordMessages})
	compareLines(t, "rank 1", r.eventLines(1), `
		2 Ibarrier collective comm 0 instance 0 sends 0 receives 0 request 2 done 5
		5 Wait complete request 2
		6 Send send comm 0 to 0 tag 5 sends 4
		7 Barrier collective comm 0 instance 1 sends 0 receives 0`)
	compareLines(t, "messages", r.messageLines(), `
		0>1 comm 0 tag 9 bytes 12 rows 3 1 4 epoch 0
		1>0 comm 0 tag 9 bytes 12 rows 3 1 4 epoch 0`)
	if c := r.Counts; c.Calls != 18 || c.Messages != 2 || c.UnmatchedSends != 2 || c.Collectives != 2 {
		t.Errorf("counts %+v", c)
	}
	if r.Collectives["MPI_Barrier"] != 1 || r.Collectives["MPI_Ibarrier"] != 1 {
		t.Errorf("collectives %v", r.Collectives)
	}
}

func TestRecordCollectivesKeepsNoMessages(t *testing.T) {
	r := ingested(t, program{ranks: 2, body: func(rank int, s *script) {
		other := int32(1 - rank)
		s.call(schema.CallIrecv, from(0, other, 9, 1))
		s.call(schema.CallIbarrier, func(c *spool.Call) { c.Comm, c.Req = 0, 2 })
		s.Coll(spoolgen.NewColl(0))
		s.call(schema.CallSend, to(0, other, 9, 3, 0))
		s.call(schema.CallWait, got(1, other, 9, 12))
		s.call(schema.CallWait, sent(2))
		s.call(schema.CallBarrier, func(c *spool.Call) { c.Comm = 0 })
		s.Coll(spoolgen.NewColl(1))
	}}.write(t), Options{Record: RecordCollectives})
	compareLines(t, "messages", r.messageLines(), "")
	compareLines(t, "rank 1", r.eventLines(1), `
		2 Ibarrier collective comm 0 instance 0 sends 0 receives 0 request 2 done 5
		5 Wait complete request 2
		6 Barrier collective comm 0 instance 1 sends 0 receives 0`)
	if c := r.Counts; r.Record != "collectives" || c.Calls != 16 || c.Messages != 2 || c.MessageBytes != 24 ||
		c.UnmatchedReceives != 0 || c.Collectives != 2 {
		t.Errorf("record %s, counts %+v", r.Record, c)
	}
}

// Polls and compute time that did not fit the CALL slot are in PRE slots.
func TestPollsAndComputeTime(t *testing.T) {
	r := ingested(t, program{ranks: 1, body: func(rank int, s *script) {
		s.call(schema.CallIsend, func(c *spool.Call) { to(0, 0, 9, 1, 1)(c); c.ComputeNs = 7 })
		s.call(schema.CallTest, func(c *spool.Call) { c.Req, c.ComputeNs = 1, 0xffffffff })
		s.Pre(spool.Pre{ComputeNs: 5_000_000_000, Polls: 17, PollTicks: 900})
	}}.write(t), Options{})
	if e := r.events[1]; e.ComputeNs != 7 || e.Polls != 0 || e.PollNs != 0 {
		t.Errorf("send: compute %d, polls %d of %d ns", e.ComputeNs, e.Polls, e.PollNs)
	}
	if e := r.events[2]; e.ComputeNs != 5_000_000_000 || e.Polls != 17 || e.PollNs != 900 {
		t.Errorf("test: compute %d, polls %d of %d ns", e.ComputeNs, e.Polls, e.PollNs)
	}
	if r.Counts.Polls != 17 || r.Counts.UnmatchedSends != 1 {
		t.Errorf("counts %+v", r.Counts)
	}
}

// Instructions and cycles before a call are in its PRE slot. There are none before a call without one, before
// MPI_Init, and in jobs that did not count them, whatever the slot says.
func TestInstructionsAndCycles(t *testing.T) {
	for _, c := range []struct {
		counters             uint32
		instructions, cycles string
	}{
		{spool.CountersPerf, "- - 4097 9000000000 0 -", "- - 1365 3000000000 7 -"},
		{spool.CountersNone, "- - - - - -", "- - - - - -"},
	} {
		r := ingested(t, program{ranks: 1, header: func(h *spool.Header) { h.Counters = c.counters }, body: func(rank int, s *script) {
			pre := func(polls uint64, instructions, cycles int64) {
				s.Pre(spool.Pre{ComputeNs: 35, Polls: polls, Instructions: instructions, Cycles: cycles})
			}
			s.call(schema.CallBarrier, func(c *spool.Call) { c.Comm = 0 })
			s.Coll(spoolgen.NewColl(0))
			s.call(schema.CallIsend, to(0, 0, 9, 3, 5))
			pre(0, 4097, 1365)
			s.call(schema.CallRecv, received(0, 0, 9, 12, 0))
			pre(0, 9_000_000_000, 3_000_000_000)
			s.call(schema.CallTest, sent(5))
			pre(3, 0, 7)
		}}.write(t), Options{})
		var instructions, cycles []string
		for _, e := range r.events {
			instructions, cycles = append(instructions, n(e.Instructions)), append(cycles, n(e.Cycles))
		}
		compareLines(t, "instructions", strings.Join(instructions, " "), c.instructions)
		compareLines(t, "cycles", strings.Join(cycles, " "), c.cycles)
		if e := r.events[4]; e.Polls != 3 || r.Counts.Messages != 1 || r.Counts.Polls != 3 {
			t.Errorf("%d polls before the test; counts %+v", e.Polls, r.Counts)
		}
	}
}

// Two threads of a rank: their calls are one sequence, in the order in which they were entered.
func TestThreadsAreMerged(t *testing.T) {
	r := ingested(t, program{ranks: 1,
		body: func(rank int, s *script) {
			s.call(schema.CallSend, to(0, 0, 1, 1, 0)) // at 10
			s.now = 40
			s.call(schema.CallWait, got(1, 0, 1, 4)) // of the other thread's receive
		},
		second: func(rank int, s *script) {
			s.now = 5
			s.call(schema.CallIrecv, from(0, 0, 1, 1))
			s.now = 20
			s.call(schema.CallSend, to(0, 0, 2, 2, 0))
			s.call(schema.CallRecv, received(0, 0, 2, 8, 0)) // at 30
		}}.write(t), Options{})
	compareLines(t, "rank 0", r.eventLines(0), `
		1 Irecv recv comm 0 from 0 tag 1 receives 4 request 1 done 5
		2 Send send comm 0 to 0 tag 1 sends 4
		3 Send send comm 0 to 0 tag 2 sends 8
		4 Recv recv comm 0 from 0 tag 2 receives 8
		5 Wait complete request 1`)
	var threads []int32
	for _, e := range r.events {
		threads = append(threads, e.Thread)
	}
	if fmt.Sprint(threads) != "[0 1 0 1 1 0 0]" {
		t.Errorf("threads %v", threads)
	}
	compareLines(t, "messages", r.messageLines(), `
		0>0 comm 0 tag 1 bytes 4 rows 2 1 5 epoch 0
		0>0 comm 0 tag 2 bytes 8 rows 3 4 4 epoch 0`)
}
