package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// millionRanks is a ring on a million ranks. Each sends 8 bytes to the next with MPI_Sendrecv; every fourth also
// sends 4097 bytes to the rank 1000 further on (again one of these) in the next epoch; all meet in MPI_Barrier. A
// rank enters each call at 1000 ns times its row, and leaves it 700 ns later.
const (
	millionRanks  = 1_000_000
	millionJumps  = millionRanks / 4
	millionShards = 8
)

// millionRows appends the rows of a rank in an epoch: its events, and the messages that it sends.
func millionRows(rank, epoch int32, events *schema.Events, messages *schema.Messages) {
	jumps := rank%4 == 0
	row := func(seq int64, call schema.CallID, class schema.Class) schema.Event {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Epoch, e.Comm, e.Call, e.Class, e.StartNs, e.EndNs = rank, seq, epoch, 0, int16(call),
			int16(class), 1000*seq, 1000*seq+700
		return e
	}
	send := func(e *schema.Event, to int32, bytes int64) {
		to = (to + millionRanks) % millionRanks
		e.SendPeer, e.SendWorld, e.SendTag, e.SendBytes, e.ProcNull = to, to, 9, bytes, 0
	}
	receive := func(e *schema.Event, from int32, bytes int64) {
		from = (from + millionRanks) % millionRanks
		e.RecvPeer, e.RecvWorld, e.RecvTag, e.RecvBytes, e.PostedAny, e.ProcNull = from, from, 9, bytes, 0, 0
	}
	message := func(to int32, bytes, sent, received int64) {
		m := schema.NullMessage
		m.Src, m.Dst, m.Epoch, m.Comm, m.Tag, m.Bytes, m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = rank,
			to%millionRanks, epoch, 0, 9, bytes, sent, received, received
		m.SendStartNs, m.SendEndNs, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = 1000*sent, 1000*sent+700,
			1000*received, 1000*received, 1000*received+700
		messages.Append(&m)
	}
	if epoch == 0 {
		e := row(0, schema.CallSendrecv, schema.ClassSendrecv)
		send(&e, rank+1, 8)
		receive(&e, rank-1, 8)
		events.Append(&e)
		message(rank+1, 8, 0, 0)
		return
	}
	seq := int64(1)
	if jumps {
		e := row(1, schema.CallSend, schema.ClassSend)
		send(&e, rank+1000, 4097)
		events.Append(&e)
		message(rank+1000, 4097, 1, 2)
		e = row(2, schema.CallRecv, schema.ClassRecv)
		receive(&e, rank-1000, 4097)
		events.Append(&e)
		seq = 3
	}
	e := row(seq, schema.CallBarrier, schema.ClassCollective)
	e.Instance, e.SendBytes, e.RecvBytes = 0, 0, 0
	events.Append(&e)
}

// writeMillion writes the run with this name.
func writeMillion(t *testing.T, store, name string) {
	t.Helper()
	run, err := writer.Create(store, name, writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Abort()
	comms, ranks := &schema.Comms{}, &schema.RankInfos{}
	for rank := range int32(millionRanks) {
		c, r := schema.NullComm, schema.NullRankInfo
		c.CommRank, c.WorldRank, c.Kind = rank, rank, int16(schema.CommWorld)
		comms.Append(&c)
		r.Rank, r.Host, r.Threads, r.Ended, r.Events = rank, rank/64, 1, schema.EndedFinalized, 2
		if rank%4 == 0 {
			r.Events = 4
		}
		ranks.Append(&r)
	}
	write := func(shard int, b schema.Batch) {
		if err := run.Write(shard, b); err != nil {
			t.Fatal(err)
		}
	}
	write(0, comms)
	write(0, ranks)
	events, messages := &schema.Events{}, &schema.Messages{}
	for epoch := range int32(2) {
		for shard := range int32(millionShards) {
			events.Resize(0)
			messages.Resize(0)
			for rank := shard * millionRanks / millionShards; rank < (shard+1)*millionRanks/millionShards; rank++ {
				millionRows(rank, epoch, events, messages)
			}
			write(int(shard), events)
			write(int(shard), messages)
		}
	}
	m := schema.Manifest{Ranks: millionRanks, TimeOrigin: "measured", TimeResolutionNs: 1, ComputeClock: "none",
		Record: "all", Hash: "none", Ended: "finalized", Epochs: 2, EndNs: 3700}
	m.Collectives = map[string]int64{"MPI_Barrier": 1}
	m.Counts.Calls, m.Counts.Messages, m.Counts.MessageBytes, m.Counts.Collectives = 2*millionRanks+2*millionJumps,
		millionRanks+millionJumps, 8*millionRanks+4097*millionJumps, 1
	if err := run.Commit(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
}

// TestMillionRanks writes a run of a million ranks and compares answers with computed values.
func TestMillionRanks(t *testing.T) {
	store, out := t.TempDir(), filepath.Join(t.TempDir(), "density.csv")
	writeMillion(t, store, "ring")
	commq(t, "query", "density", "--store", store, "--run", "ring", "--format", "csv", "--output", out)
	f, err := os.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cells, messages, bytes, diagonals := 0, 0, 0, map[int]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan(); lines.Scan(); cells++ {
		var row [4]int
		for i, field := range strings.SplitN(lines.Text(), ",", 4) {
			if row[i], err = strconv.Atoi(field); err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
		}
		src, dst, m, b := row[0], row[1], row[2], row[3]
		messages, bytes = messages+m, bytes+b
		if m > 0 && src > 0 && dst > 0 {
			diagonals[(dst-src+millionRanks)%millionRanks]++
		}
	}
	// The barrier is a message of each other rank to rank 0 and back: the ring's from the last rank to 0 and from 0
	// to 1 are in the same cells, and those from 0 to 1000 and from P - 1000 to 0.
	const pairs, barrier = millionRanks + millionJumps, 2 * (millionRanks - 1)
	if cells != pairs+barrier-4 || messages != pairs+barrier || bytes != 8*millionRanks+4097*millionJumps {
		t.Errorf("density: %d cells, %d messages, %d bytes; want %d, %d, %d", cells, messages, bytes, pairs+barrier-4,
			pairs+barrier, 8*millionRanks+4097*millionJumps)
	}
	if len(diagonals) != 2 || diagonals[1] != millionRanks-2 || diagonals[1000] != millionJumps-2 {
		t.Errorf("density: cells by distance, without rank 0: %v", diagonals)
	}
	for query, want := range map[string][]string{
		"sizes": {"1000000,1,<= 16,16,1000000,8000000", "1000000,6,<= 16 Ki,16384,250000,1024250000"},
		"ratio": {"1000000,point-to-point,1250000,1.25,", "1000000,collective,1000000,1,"},
	} {
		got := commq(t, "query", query, "--store", store, "--run", "ring", "--format", "csv")
		for _, line := range want {
			if !strings.Contains("\n"+got, "\n"+line) {
				t.Errorf("%s has no line %q:\n%s", query, line, got)
			}
		}
	}
	// Waits exist for every pair that sends. The messages take no time: they are sent when their receive is posted,
	// or 1000 ns before.
	got := commq(t, "sql", "--store", store, "--run", "ring", "--format", "csv",
		"SELECT COUNT(*) AS pairs, CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(late_sends + late_receives) AS BIGINT) AS waits, (SELECT COUNT(*) FROM profile) AS sums FROM waits")
	if want := "pairs,messages,waits,sums\n1250000,1250000,0,2500000\n"; got != want {
		t.Errorf("derived tables: %q, want %q", got, want)
	}
}
