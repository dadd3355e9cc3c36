package ingest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/schema"
)

// commLines returns the communicators as text: id kind name, then per group its world ranks and parent.
func (r *result) commLines(t *testing.T) string {
	var lines []string
	last, lastRemote := int32(-1), int32(-1)
	read(t, r.dir, &schema.CommsTable, func(b *schema.Comms, i int) {
		if b.Comm[i] != last {
			lines = append(lines, fmt.Sprintf("%d %s", b.Comm[i], schema.CommKindNames[b.Kind[i]]))
			if b.Name[i] != schema.NullText {
				lines[len(lines)-1] += " " + b.Name[i]
			}
			lastRemote = -1
		}
		line := &lines[len(lines)-1]
		if b.Remote[i] != lastRemote {
			*line += " of " + n(b.Parent[i]) + ":"
		}
		*line += " " + n(b.WorldRank[i])
		if b.CartDims[i] != schema.NullText && b.CommRank[i] == 0 {
			*line += " (" + b.CartDims[i] + "; " + b.CartPeriods[i] + ")"
		}
		if b.GraphEdges[i] != schema.NullText {
			*line += "[" + b.GraphEdges[i] + "]"
		}
		last, lastRemote = b.Comm[i], b.Remote[i]
	})
	return strings.Join(lines, "\n")
}

// making writes a constructor of communicator id over the world ranks members, as operation instance of the parent.
func making(s *script, call schema.CallID, rank int, id, parent int32, instance uint64, members []int32,
	edit func(*spool.CommDef)) {
	d := spool.CommDef{Kind: int32(schema.CommSplit), Parent: parent, Instance: instance, Size: int32(len(members)),
		LeaderWorld: members[0]}
	for i, m := range members {
		if int(m) == rank {
			d.Rank = int32(i)
		}
	}
	if edit != nil {
		edit(&d)
	}
	s.call(call, func(c *spool.Call) { c.Comm, c.Count = parent, int64(id) })
	s.Coll(spoolgen.NewColl(instance))
	var list []int32
	if d.Rank == 0 {
		d.Members, list = d.Size, members
	}
	s.DefComm(int64(id), d, list)
}

// MPI_Comm_split makes {0, 2, 4} backwards and {1, 3}; each rank gives its own one number 2. It is freed, and its
// number goes to another communicator, of the next instance. Sends are to ranks in the communicator.
func TestNumbersOfCommunicatorsAreReused(t *testing.T) {
	groups := [][]int32{{4, 2, 0}, {1, 3}}
	r := ingested(t, program{ranks: 5, body: func(rank int, s *script) {
		g := groups[rank%2]
		making(s, schema.CallCommSplit, rank, 2, 0, 0, g, nil)
		if rank == 4 || rank == 1 {
			s.call(schema.CallSend, to(2, 1, 9, 1, 0))
		}
		if rank == 2 || rank == 3 {
			s.call(schema.CallRecv, received(2, 0, 9, 4, 0))
		}
		s.call(schema.CallCommFree, func(c *spool.Call) { c.Comm = 2 })
		s.Def(spool.DefCommFree, 2, nil)
		making(s, schema.CallCommSplit, rank, 2, 0, 1, g, nil)
		s.Def(spool.DefCommName, 2, []byte("second"))
		if rank == 0 {
			s.call(schema.CallSend, to(2, 0, 9, 2, 0))
		}
		if rank == 4 {
			s.call(schema.CallRecv, received(2, 2, 9, 8, 0))
		}
	}}.write(t), Options{})
	compareLines(t, "comms", r.commLines(t), `
		0 world MPI_COMM_WORLD of -: 0 1 2 3 4
		1 split of 0: 1 3
		2 split second of 0: 1 3
		3 split of 0: 4 2 0
		4 split second of 0: 4 2 0`)
	compareLines(t, "messages", r.messageLines(), `
		0>4 comm 4 tag 9 bytes 8 rows 4 5 5 epoch 0
		1>3 comm 1 tag 9 bytes 4 rows 2 2 2 epoch 0
		4>2 comm 3 tag 9 bytes 4 rows 2 2 2 epoch 0`)
}

// {3, 1} meets {0, 2} in an intercommunicator (their numbers of it differ); peers are ranks in the other group. Rank 3,
// the root, broadcasts to {0, 2}. Its self sends are on a communicator of its own.
func TestIntercommunicators(t *testing.T) {
	groups := [][]int32{{0, 2}, {3, 1}}
	r := ingested(t, program{ranks: 4, body: func(rank int, s *script) {
		mine, theirs := groups[rank%2], groups[1-rank%2]
		making(s, schema.CallCommSplit, rank, 2, 0, 0, mine, nil)
		id := int32(3 + rank%2)
		d := spool.CommDef{Kind: int32(schema.CommInter), Parent: 2, Size: 2, LeaderWorld: mine[0], RemoteSize: 2,
			RemoteLeaderWorld: theirs[0], Key: 7}
		s.call(schema.CallIntercommCreate, func(c *spool.Call) { c.Comm, c.Count = 2, int64(id) })
		s.Coll(spoolgen.NewColl(0))
		if int32(rank) == mine[0] {
			d.Members, d.RemoteMembers = 2, 2
			s.DefComm(int64(id), d, mine, theirs)
		} else {
			d.Rank = 1
			s.DefComm(int64(id), d)
		}
		switch rank {
		case 0:
			s.call(schema.CallSend, to(id, 1, 9, 1, 0)) // to world rank 1
			s.call(schema.CallRecv, received(id, 0, 9, 8, 0))
		case 1:
			s.call(schema.CallRecv, received(id, 0, 9, 4, spool.FlagAnySource))
		case 3:
			s.call(schema.CallSend, to(id, 0, 9, 2, 0)) // to world rank 0
			s.call(schema.CallSendrecv, to(1, 0, 9, 5, 0))
			s.Side(spool.Side{Dtype: 0, Peer: 0, Tag: 9, Count: 5, Bytes: 20})
		}
		coll := spoolgen.NewColl(0)
		s.call(schema.CallBcast, func(c *spool.Call) {
			c.Comm, c.Dtype, c.Count = id, 0, 3
			switch rank {
			case 3:
				c.Flags, coll.Sbytes = spool.FlagRoot, 12
			case 1:
				c.Flags, c.Dtype, c.Count = spool.FlagProcNull, null32, null64
			default:
				c.Peer, coll.Rbytes = 0, 12
			}
		})
		s.Coll(coll)
	}}.write(t), Options{})
	compareLines(t, "comms", r.commLines(t), `
		0 world MPI_COMM_WORLD of -: 0 1 2 3
		1 split of 0: 0 2
		2 inter of 1: 0 2 of 4: 3 1
		3 self MPI_COMM_SELF of -: 3
		4 split of 0: 3 1`)
	compareLines(t, "messages", r.messageLines(), `
		0>1 comm 2 tag 9 bytes 4 rows 3 3 3 epoch 0
		3>0 comm 2 tag 9 bytes 8 rows 3 4 4 epoch 0
		3>3 comm 3 tag 9 bytes 20 rows 4 4 4 epoch 0`)
	compareLines(t, "rank 0", r.eventLines(0), `
		1 Comm_split comm comm 0 instance 0
		2 Intercomm_create comm comm 1
		3 Send send comm 2 to 1 tag 9 sends 4
		4 Recv recv comm 2 from 3 tag 9 receives 8
		5 Bcast collective comm 2 instance 0 sends 0 receives 12 root 3`)
	compareLines(t, "rank 1", r.eventLines(1), `
		1 Comm_split comm comm 0 instance 0
		2 Intercomm_create comm comm 4
		3 Recv recv comm 2 from 0 tag 9 receives 4 any 1
		4 Bcast collective comm 2 instance 0 sends 0 receives 0`)
	compareLines(t, "rank 3", r.eventLines(3), `
		1 Comm_split comm comm 0 instance 0
		2 Intercomm_create comm comm 4
		3 Send send comm 2 to 0 tag 9 sends 8
		4 Sendrecv sendrecv comm 3 to 3 tag 9 sends 20 from 3 tag 9 receives 20
		5 Bcast collective comm 2 instance 0 sends 12 receives 0 root 3`)
	if r.Counts.Collectives != 1 {
		t.Errorf("%d collectives, want 1", r.Counts.Collectives)
	}
}

// Rank 0 leads two MPI_Comm_create_group with the same tag, one with rank 1 and one with rank 2. Rank 2 has only the
// second, which is its first with that leader and tag.
func TestGroupsOfOneTagAreCountedOnTheirLeader(t *testing.T) {
	byTag := func(d *spool.CommDef) { d.Kind, d.Key = int32(schema.CommCreate), 5 }
	r := ingested(t, program{ranks: 3, body: func(rank int, s *script) {
		if rank != 2 {
			making(s, schema.CallCommCreateGroup, rank, 2, 0, 0, []int32{0, 1}, byTag)
		}
		if rank != 1 {
			making(s, schema.CallCommCreateGroup, rank, 3, 0, 0, []int32{0, 2}, byTag)
			s.call(schema.CallSend, to(3, int32(1-rank/2), 9, 1, 0))
			s.call(schema.CallRecv, received(3, int32(1-rank/2), 9, 4, 0))
		}
	}}.write(t), Options{})
	compareLines(t, "comms", r.commLines(t), `
		0 world MPI_COMM_WORLD of -: 0 1 2
		1 create of 0: 0 1
		2 create of 0: 0 2`)
	compareLines(t, "messages", r.messageLines(), `
		0>2 comm 2 tag 9 bytes 4 rows 3 3 3 epoch 0
		2>0 comm 2 tag 9 bytes 4 rows 2 4 4 epoch 0`)
}

func TestTopologiesAreKept(t *testing.T) {
	r := ingested(t, program{ranks: 3, body: func(rank int, s *script) {
		d := spool.CommDef{Kind: int32(schema.CommCart), Size: 3, Rank: int32(rank), Dims: 2}
		var members []int32
		if rank == 0 {
			d.Members, members = 3, []int32{0, 1, 2}
		}
		s.call(schema.CallCartCreate, func(c *spool.Call) { c.Comm, c.Count = 0, 2 })
		s.Coll(spoolgen.NewColl(0))
		s.DefComm(2, d, members, nil, []int32{3, 1}, []int32{1, 0})
		d.Kind, d.Dims, d.Edges, d.Instance = int32(schema.CommDistGraph), 0, 1, 1
		s.call(schema.CallDistGraphCreateAdjacent, func(c *spool.Call) { c.Comm, c.Count = 0, 3 })
		s.Coll(spoolgen.NewColl(1))
		s.DefComm(3, d, members, []int32{int32(rank+1) % 3})
		d.Kind, d.Parent, d.Instance = int32(schema.CommDup), 3, 0
		s.call(schema.CallCommDup, func(c *spool.Call) { c.Comm, c.Count = 3, 4 })
		s.Coll(spoolgen.NewColl(0))
		s.DefComm(4, d, members, []int32{int32(rank+1) % 3})
	}}.write(t), Options{})
	compareLines(t, "comms", r.commLines(t), `
		0 world MPI_COMM_WORLD of -: 0 1 2
		1 cart of 0: 0 (3,1; 1,0) 1 2
		2 dist_graph of 0: 0[1] 1[2] 2[0]
		3 dup of 2: 0[1] 1[2] 2[0]`)
}

// Types with equal name, constructor, size and extent are the same type, whatever their numbers. Types that share
// only the name are not.
func TestDatatypesAreUnified(t *testing.T) {
	r := ingested(t, program{ranks: 2, body: func(rank int, s *script) {
		s.DefType(int64(5-rank), "", 3, 24, 40) // a vector
		s.DefType(int64(7+rank), "column", 3, 24, 40+int64(rank)*8)
		if rank == 0 {
			s.call(schema.CallSend, func(c *spool.Call) { to(0, 1, 9, 2, 0)(c); c.Dtype = 5 })
		} else {
			s.call(schema.CallRecv, func(c *spool.Call) { received(0, 0, 9, 48, 0)(c); c.Dtype = 4 })
		}
	}}.write(t), Options{})
	var lines []string
	read(t, r.dir, &schema.DatatypesTable, func(b *schema.Datatypes, i int) {
		name := b.Name[i]
		if name == schema.NullText {
			name = "-"
		}
		lines = append(lines, fmt.Sprintf("%d %s %s %d of %d", b.ID[i], name, b.Combiner[i], b.Bytes[i],
			b.ExtentBytes[i]))
	})
	compareLines(t, "datatypes", strings.Join(lines, "\n"), `
		0 MPI_INT named 4 of 4
		1 column vector 24 of 40
		2 column vector 24 of 48
		3 - vector 24 of 40`)
	if m := r.messages[0]; m.SendDatatype != 3 || m.Bytes != 48 || m.SendCount != 2 {
		t.Errorf("message: datatype %d, %d bytes, %d elements", m.SendDatatype, m.Bytes, m.SendCount)
	}
}

// Gatherv to rank 1 of 3 ranks: rank r sends 4r bytes.
func TestCollectivesAndTheirParts(t *testing.T) {
	r := ingested(t, program{ranks: 3, body: func(rank int, s *script) {
		coll := spoolgen.NewColl(0)
		coll.Sbytes = 4 * int64(rank)
		s.call(schema.CallGatherv, func(c *spool.Call) { c.Comm, c.Peer, c.Dtype, c.Count = 0, 1, 0, int64(rank) })
		if rank == 1 {
			coll.Rdtype, coll.Rcount, coll.Rbytes = 0, 3, 12
			s.Coll(coll)
			s.Parts(spool.Part{Peer: 0}, spool.Part{Peer: 1, RecvBytes: 4}, spool.Part{Peer: 2, RecvBytes: 8})
		} else {
			s.Coll(coll)
		}
		coll = spoolgen.NewColl(1)
		coll.Op, coll.Sbytes, coll.Rbytes = uint16(schema.OpSum), 16, 16
		s.call(schema.CallAllreduce, func(c *spool.Call) { c.Comm, c.Dtype, c.Count = 0, 0, 4 })
		s.Coll(coll)
	}}.write(t), Options{})
	compareLines(t, "rank 1", r.eventLines(1), `
		1 Gatherv collective comm 0 instance 0 sends 4 receives 12 root 1
		2 Allreduce collective comm 0 instance 1 sends 16 receives 16`)
	compareLines(t, "rank 2", r.eventLines(2), `
		1 Gatherv collective comm 0 instance 0 sends 8 receives 0 root 1
		2 Allreduce collective comm 0 instance 1 sends 16 receives 16`)
	var parts []string
	read(t, r.dir, &schema.PartsTable, func(b *schema.Parts, i int) {
		parts = append(parts, fmt.Sprintf("%d.%d %d: %d %d", b.Rank[i], b.Seq[i], b.PeerWorld[i], b.SendBytes[i],
			b.RecvBytes[i]))
	})
	compareLines(t, "parts", strings.Join(parts, "\n"), "1.1 1: 0 4\n1.1 2: 0 8")
	if op := r.events[2].ReduceOp; op != int16(schema.OpSum) {
		t.Errorf("reduce_op %d", op)
	}
}

// A collective that returned an error is a call, but no operation: it has no bytes and no parts, whatever its arguments
// say.
func TestCollectivesThatFailed(t *testing.T) {
	const countError, opError = 2, 10
	r := ingested(t, program{ranks: 2, body: func(rank int, s *script) {
		bcast := func(instance uint64, count, sbytes int64) {
			s.call(schema.CallBcast, func(c *spool.Call) { c.Comm, c.Peer, c.Dtype, c.Count = 0, 0, 0, count })
			coll := spoolgen.NewColl(instance)
			coll.Sbytes = sbytes
			s.Coll(coll)
		}
		bcast(0, -50, -200)
		s.Err(countError)
		s.call(schema.CallAllgatherv, func(c *spool.Call) { c.Comm, c.Dtype, c.Count = 0, 0, int64(rank+1) })
		coll := spoolgen.NewColl(1)
		coll.Rdtype, coll.Rcount, coll.Sbytes, coll.Rbytes = 0, 3, int64(4*(rank+1)), 12
		s.Coll(coll)
		s.Parts(spool.Part{Peer: 0, RecvBytes: 4}, spool.Part{Peer: 1, RecvBytes: 8})
		s.Err(opError)
		bcast(2, 3, 12)
	}}.write(t), Options{})
	compareLines(t, "rank 1", r.eventLines(1), `
		1 Bcast collective comm 0 instance 0 root 0 error 2
		2 Allgatherv collective comm 0 instance 1 error 10
		3 Bcast collective comm 0 instance 2 sends 0 receives 12 root 0`)
	read(t, r.dir, &schema.PartsTable, func(b *schema.Parts, i int) {
		t.Errorf("parts of seq %d of a call that failed", b.Seq[i])
	})
	if n := r.Counts.Collectives; n != 1 || r.Collectives["MPI_Bcast"] != 1 {
		t.Errorf("%d collectives, by name %v; want 1 MPI_Bcast", n, r.Collectives)
	}
}

// startedAllgatherv returns a persistent allgatherv of 2 ranks, which give 4 and 8 bytes, started twice. The first
// start is still in progress when rank 0 sends rank 1 a message.
func startedAllgatherv() program {
	return program{ranks: 2, header: hashed, body: func(rank int, s *script) {
		s.call(schema.CallAllgathervInit, func(c *spool.Call) { c.Comm, c.Dtype, c.Count, c.Req = 0, 0, int64(rank+1), 1 })
		coll := spoolgen.NewColl(0)
		coll.Rdtype, coll.Rcount, coll.Sbytes, coll.Rbytes = 0, 3, int64(4*(rank+1)), 12
		s.Coll(coll)
		s.Parts(spool.Part{Peer: 0, RecvBytes: 4}, spool.Part{Peer: 1, RecvBytes: 8})
		s.call(schema.CallStart, func(c *spool.Call) { c.Req = 2 })
		s.Hash(sentHash(2, uint64(100+rank)))
		s.Start(spoolgen.Pair{Req: 2, Template: 1})
		if rank == 0 {
			s.call(schema.CallSend, to(0, 1, 9, 3, 0))
		} else {
			s.call(schema.CallRecv, received(0, 0, 9, 12, 0))
		}
		s.call(schema.CallWait, sent(2))
		s.call(schema.CallStartall, nil)
		s.Hash(sentHash(3, uint64(200+rank)))
		s.Start(spoolgen.Pair{Req: 3, Template: 1})
		s.call(schema.CallWaitall, nil)
		s.Done(spool.DoneEntry{Req: 3, Source: null32, Tag: null32, Bytes: null64})
		s.call(schema.CallRequestFree, func(c *spool.Call) { c.Req = 1 })
	}}
}

// Started collectives have their rows in whatever epochs they start and end, and whatever else is recorded.
func TestStartedCollectivesCrossEpochs(t *testing.T) {
	const kept = `
		1 Allgatherv_init other comm 0 instance 0 request 1
		2 Start collective comm 0 instance 4294967296 sends 8 receives 12 request 2 done 4 init 1
		4 Wait complete request 2
		5 Startall collective comm 0 instance 4294967297 sends 8 receives 12 request 3 done 6 init 1
		6 Waitall complete request 3`
	rank1 := map[string]string{
		RecordAll: `
		1 Allgatherv_init other comm 0 instance 0 request 1
		2 Start collective comm 0 instance 4294967296 sends 8 receives 12 request 2 done 4 init 1
		3 Recv recv comm 0 from 0 tag 9 receives 12
		4 Wait complete request 2
		5 Startall collective comm 0 instance 4294967297 sends 8 receives 12 request 3 done 6 init 1
		6 Waitall complete request 3
		7 Request_free complete request 1`,
	}
	for _, record := range []string{RecordAll, RecordMessages, RecordCollectives} {
		for _, rows := range []int64{0, 1, 2, 3} {
			what := fmt.Sprintf("%s, epochs of %d rows", record, rows)
			r := ingested(t, startedAllgatherv().write(t), Options{Record: record, epochRows: rows})
			compareLines(t, what, r.eventLines(1), cmp.Or(rank1[record], kept))
			var parts []string // by epoch in the file
			read(t, r.dir, &schema.PartsTable, func(b *schema.Parts, i int) {
				parts = append(parts, fmt.Sprintf("%d seq %d peer %d sends %d receives %d", b.Rank[i], b.Seq[i],
					b.PeerWorld[i], b.SendBytes[i], b.RecvBytes[i]))
			})
			slices.Sort(parts)
			compareLines(t, what+": parts", strings.Join(parts, "\n"), `
				0 seq 2 peer 0 sends 0 receives 4
				0 seq 2 peer 1 sends 0 receives 8
				0 seq 5 peer 0 sends 0 receives 4
				0 seq 5 peer 1 sends 0 receives 8
				1 seq 2 peer 0 sends 0 receives 4
				1 seq 2 peer 1 sends 0 receives 8
				1 seq 5 peer 0 sends 0 receives 4
				1 seq 5 peer 1 sends 0 receives 8`)
			message := "0>1 - - - got -"
			if record == RecordCollectives { // it has no messages
				message = ""
			}
			compareLines(t, what+": hashes", r.payloads(), message+`
				0 MPI_Start 100 101 102
				0 MPI_Startall 200 201 202
				1 MPI_Start 101 102 103
				1 MPI_Startall 201 202 203`)
			if want := map[string]int64{"MPI_Allgatherv_init": 2}; !maps.Equal(r.Collectives, want) ||
				(rows == 0) != (r.Epochs == 1) {
				t.Errorf("%s: collectives %v, %d epochs; want %v", what, r.Collectives, r.Epochs, want)
			}
		}
	}
}
