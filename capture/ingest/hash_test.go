package ingest

import (
	"fmt"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/schema"
)

// hashed sets in headers that payloads were hashed at both ends.
func hashed(h *spool.Header) { h.Hash, h.HashVerify = spool.AlgorithmCRC32, 1 }

// sentHash and gotHash are HASH slots; only what is sent has a sum.
func sentHash(req uint32, hash uint64) spool.Hashes {
	return spool.Hashes{What: spool.HashSent, Flags: spool.HasHash | spool.HasSum | spool.HasHead, Req: req,
		Hash: hash, Sum: hash + 1, Head: hash + 2}
}

func gotHash(req uint32, hash uint64) spool.Hashes {
	return spool.Hashes{What: spool.HashReceived, Flags: spool.HasHash | spool.HasHead, Req: req, Hash: hash}
}

// payloads returns the hashes of all messages, and those left in events: hash, sum, head, and what arrived.
func (r *result) payloads() string {
	s := ""
	for _, m := range r.messages {
		s += fmt.Sprintf("%d>%d %s %s %s got %s\n", m.Src, m.Dst, n(m.PayloadHash), n(m.PayloadSum), n(m.PayloadHead),
			n(m.RecvHash))
	}
	for _, e := range r.events {
		if e.PayloadHash != null64 {
			s += fmt.Sprintf("%d %s %d %d %d\n", e.Rank, schema.CallNames[e.Call], e.PayloadHash, e.PayloadSum,
				e.PayloadHead)
		}
	}
	return s
}

// Rank 3 sends to rank 5: a blocking send into a blocking receive, an Isend into an Irecv that a Waitall ends, two
// starts of one persistent send, the second by a Startall, into a matched receive and into one that was hashed
// otherwise; unreceived messages and the collective keep their hashes in events. The last epoch's length does not
// matter.
func TestHashes(t *testing.T) {
	p := program{ranks: 6, header: hashed, body: func(rank int, s *script) {
		switch rank {
		case 3:
			s.call(schema.CallSend, to(0, 5, 9, 3, 0))
			s.Hash(sentHash(0, 100))
			s.call(schema.CallIsend, to(0, 5, 9, 5, 1))
			s.Hash(sentHash(0, 200))
			s.call(schema.CallSendInit, to(0, 5, 9, 7, 2))
			s.call(schema.CallStart, func(c *spool.Call) { c.Req = 3 })
			s.Hash(sentHash(3, 300))
			s.Start(spoolgen.Pair{Req: 3, Template: 2})
			s.call(schema.CallWait, sent(3))
			s.call(schema.CallStartall, nil)
			s.Hash(sentHash(4, 400))
			s.Start(spoolgen.Pair{Req: 4, Template: 2})
			s.call(schema.CallWait, sent(4))
			s.call(schema.CallWait, sent(1))
			s.call(schema.CallSend, to(0, 5, 8, 3, 0))
			s.Hash(sentHash(0, 500))
		case 5:
			s.call(schema.CallRecv, received(0, 3, 9, 12, 0))
			s.Hash(gotHash(0, 100))
			s.call(schema.CallIrecv, from(0, 3, 9, 1))
			s.call(schema.CallMprobe, func(c *spool.Call) { c.Comm, c.Peer, c.Tag, c.Count, c.Req = 0, 3, 9, 28, 2 })
			s.call(schema.CallMrecv, func(c *spool.Call) { c.Dtype, c.Count, c.Req = 0, 7, 28 })
			s.Wide(spool.WideMessage, 2)
			s.Hash(gotHash(0, 300))
			s.call(schema.CallRecv, received(0, 3, 9, 28, 0))
			s.Hash(gotHash(0, 444))
			s.call(schema.CallWaitall, nil)
			s.Done(spool.DoneEntry{Req: 1, Source: 3, Tag: 9, Bytes: 20})
			s.Hash(gotHash(1, 200))
		}
		s.call(schema.CallAllreduce, func(c *spool.Call) { c.Comm, c.Dtype, c.Count = 0, 0, 1 })
		if rank == 3 {
			s.Hash(sentHash(0, 600))
		}
		coll := spoolgen.NewColl(0)
		coll.Rdtype, coll.Rcount, coll.Sbytes, coll.Rbytes = 0, 1, 4, 4
		s.Coll(coll)
	}}
	want := `
		3>5 100 101 102 got 100
		3>5 200 201 202 got 200
		3>5 300 301 302 got 300
		3>5 400 401 402 got 444
		3 MPI_Send 500 501 502
		3 MPI_Allreduce 600 601 602`
	r := ingested(t, p.write(t), Options{})
	compareLines(t, "hashes", r.payloads(), want)
	if c := r.Counts; r.Hash != "crc32" || !r.HashVerify || c.HashesVerified != 4 || c.HashMismatches != 1 ||
		c.UnmatchedSends != 1 || len(r.Warnings) != 1 {
		t.Errorf("hash %s, verified %v, counts %+v, warnings %q", r.Hash, r.HashVerify, c, r.Warnings)
	}
	kept := ingested(t, p.write(t), Options{Record: RecordMessages})
	compareLines(t, "hashes, messages only", kept.payloads(), want)
	// With one row per epoch nearly every message crosses a border. No hash may be lost.
	for _, rows := range []int64{1, 3} {
		r := inMemory(t, p.write(t), Options{epochRows: rows})
		hashes := map[string]bool{}
		for _, m := range r.messages {
			hashes[fmt.Sprint(m.PayloadHash, m.PayloadSum, m.PayloadHead, m.RecvHash)] = true
		}
		for _, want := range []string{"100 101 102 100", "200 201 202 200", "300 301 302 300", "400 401 402 444"} {
			if !hashes[want] {
				t.Errorf("epochs of %d rows: no message with %s: %v", rows, want, hashes)
			}
		}
		if c := r.Counts; c.HashesVerified != 4 || c.HashMismatches != 1 {
			t.Errorf("epochs of %d rows: counts %+v", rows, c)
		}
	}
}
