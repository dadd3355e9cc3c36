// Package bench measures commq: what, how and against whom is in its Markdown files.
package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// halo is a made-up run that looks like a captured one: ranks on a periodic square, each step exchanging one message
// with each of four neighbours and ending in an Allreduce. Half of the exchanges are completed by one Waitall, half by
// a Wait each. Durations have noise of hundreds of nanoseconds, compute gaps of 3 %, and a receive waits for its send.
type halo struct {
	side  int // ranks are side*side
	steps int
	bytes int64 // of a message
	gapNs float64
}

// haloRank is the state of a rank while the run is made.
type haloRank struct {
	now     int64
	lastEnd int64
	seq     int64
	serial  int64
	events  *schema.Events
}

// generate makes the events and messages of each rank, with epochs of epochRows events over all ranks.
func (h halo) generate(epochRows int) ([]*schema.Events, []*schema.Messages) {
	rng := rand.New(rand.NewPCG(3, 5))
	n := h.side * h.side
	ranks := make([]haloRank, n)
	messages := make([]*schema.Messages, n)
	for r := range ranks {
		ranks[r].events = &schema.Events{}
		messages[r] = &schema.Messages{}
		ranks[r].now = int64(rng.IntN(40000))
	}
	for step := range h.steps {
		for direction := range 4 {
			h.exchange(rng, ranks, messages, direction, step)
		}
		h.allreduce(rng, ranks, int64(step))
	}
	for r := range ranks {
		setEpochs(ranks[r].events, messages[r], epochRows/n)
	}
	return eventsOf(ranks), messages
}

func eventsOf(ranks []haloRank) []*schema.Events {
	out := make([]*schema.Events, len(ranks))
	for r := range ranks {
		out[r] = ranks[r].events
	}
	return out
}

// setEpochs cuts a rank's rows into windows. A message has its sender's epoch, near enough for a benchmark.
func setEpochs(e *schema.Events, m *schema.Messages, rows int) {
	for i := range e.Epoch {
		e.Epoch[i] = int32(i / rows)
	}
	for i := range m.Epoch {
		m.Epoch[i] = int32(m.SendSeq[i] / int64(rows))
	}
}

func (h halo) neighbour(r, direction int) int {
	x, y := r%h.side, r/h.side
	switch direction {
	case 0:
		x = (x + 1) % h.side
	case 1:
		x = (x + h.side - 1) % h.side
	case 2:
		y = (y + 1) % h.side
	case 3:
		y = (y + h.side - 1) % h.side
	}
	return y*h.side + x
}

// exchange: every rank posts a receive from the one side, sends to the other, computes, and waits for both.
func (h halo) exchange(rng *rand.Rand, ranks []haloRank, messages []*schema.Messages, direction, step int) {
	n := len(ranks)
	recvRow, sendRow := make([]int, n), make([]int, n)
	tag := int32(10 + direction)
	for r := range ranks {
		k := &ranks[r]
		from, to := h.neighbour(r, direction^1), h.neighbour(r, direction)
		k.compute(60 + rng.ExpFloat64()*40)
		e := k.begin(schema.CallIrecv, schema.ClassRecv)
		k.serial++
		e.RecvPeer, e.RecvWorld, e.RecvTag, e.RecvCount, e.RecvDatatype, e.RecvBytes = int32(from), int32(from), tag,
			h.bytes/8, 0, h.bytes
		e.RecvBuffer, e.PostedAny, e.ProcNull, e.Request = 0x7f3a5c000000+int64(r)<<24+int64(direction)<<16, 0, 0,
			k.serial
		recvRow[r] = k.end(e, 180+rng.ExpFloat64()*120)
		k.compute(60 + rng.ExpFloat64()*40)
		e = k.begin(schema.CallIsend, schema.ClassSend)
		k.serial++
		e.SendPeer, e.SendWorld, e.SendTag, e.SendCount, e.SendDatatype, e.SendBytes = int32(to), int32(to), tag,
			h.bytes/8, 0, h.bytes
		e.SendBuffer, e.ProcNull, e.Request = 0x7f3a5d000000+int64(r)<<24+int64(direction)<<16, 0, k.serial
		sendRow[r] = k.end(e, 700+rng.ExpFloat64()*400)
		if direction < 2 {
			k.compute(h.gapNs * (1 + 0.03*rng.NormFloat64()))
		}
	}
	for r := range ranks {
		from := h.neighbour(r, direction^1)
		arrived := float64(ranks[from].events.EndNs[sendRow[from]]) + 1500 + rng.ExpFloat64()*300
		ranks[r].wait(rng, direction >= 2, arrived, recvRow[r], sendRow[r])
		messages[from].Append(message(ranks, from, sendRow[from], r, recvRow[r]))
	}
}

// wait completes a receive and a send, by a Wait each or by one Waitall.
func (k *haloRank) wait(rng *rand.Rand, both bool, arrived float64, recvRow, sendRow int) {
	k.compute(60 + rng.ExpFloat64()*40)
	blocked := max(0, arrived-float64(k.now)) + 250 + rng.ExpFloat64()*200
	if both {
		row := k.end(k.begin(schema.CallWaitall, schema.ClassComplete), blocked+80)
		k.events.DoneSeq[recvRow], k.events.DoneSeq[sendRow] = int64(row), int64(row)
		return
	}
	for _, posted := range []int{recvRow, sendRow} {
		e := k.begin(schema.CallWait, schema.ClassComplete)
		e.Request = k.events.Request[posted]
		k.events.DoneSeq[posted] = int64(k.end(e, blocked))
		blocked = 120 + rng.ExpFloat64()*80
		k.compute(50 + rng.ExpFloat64()*30)
	}
}

func message(ranks []haloRank, src, sendRow, dst, recvRow int) *schema.Message {
	s, r := ranks[src].events, ranks[dst].events
	done := r.DoneSeq[recvRow]
	return &schema.Message{Src: int32(src), Dst: int32(dst), Comm: 0, Tag: s.SendTag[sendRow],
		Bytes:     s.SendBytes[sendRow],
		SendCount: s.SendCount[sendRow], SendDatatype: 0, SendSeq: s.Seq[sendRow], SendStartNs: s.StartNs[sendRow],
		SendEndNs:   s.EndNs[sendRow],
		RecvPostSeq: r.Seq[recvRow], RecvDoneSeq: done, RecvPostNs: r.StartNs[recvRow], RecvStartNs: r.StartNs[done],
		RecvEndNs:   r.EndNs[done],
		PayloadHash: schema.NullInt64, PayloadSum: schema.NullInt64, PayloadHead: schema.NullInt64,
		SrcBuffer: s.SendBuffer[sendRow], DstBuffer: r.RecvBuffer[recvRow], SendCallsite: schema.NullInt32,
		RecvCallsite: schema.NullInt32}
}

func (h halo) allreduce(rng *rand.Rand, ranks []haloRank, instance int64) {
	last := int64(0)
	for r := range ranks {
		ranks[r].compute(h.gapNs * (1 + 0.03*rng.NormFloat64()))
		last = max(last, ranks[r].now)
	}
	for r := range ranks {
		k := &ranks[r]
		e := k.begin(schema.CallAllreduce, schema.ClassCollective)
		e.Instance, e.ReduceOp = instance, int16(schema.OpSum)
		e.SendCount, e.SendDatatype, e.SendBytes, e.SendBuffer = 3, 0, 24, 0x7ffc10000000+int64(r)<<12
		e.RecvCount, e.RecvDatatype, e.RecvBytes, e.RecvBuffer = 3, 0, 24, 0x7ffc10000040+int64(r)<<12
		k.end(e, float64(last-k.now)+4000+rng.ExpFloat64()*900)
	}
}

// compute lets a rank compute for about ns nanoseconds.
func (k *haloRank) compute(ns float64) { k.now += int64(max(1, ns)) }

func (k *haloRank) begin(call schema.CallID, class schema.Class) *schema.Event {
	e := schema.NullEvent
	e.Rank, e.Seq, e.Call, e.Class = 0, k.seq, int16(call), int16(class)
	e.StartNs, e.ComputeNs, e.Comm = k.now, k.now-k.lastEnd, 0
	if class == schema.ClassComplete {
		e.Comm = schema.NullInt32
	}
	return &e
}

func (k *haloRank) end(e *schema.Event, ns float64) int {
	k.now += int64(ns)
	e.EndNs = k.now
	k.lastEnd = k.now
	k.events.Append(e)
	k.seq++
	return int(e.Seq)
}

// shards puts the ranks' rows into files by rank range, sorted as a run's are, a batch per epoch.
func shards(h halo, files, epochRows int) (events [][]*schema.Events, messages [][]*schema.Messages) {
	perRank, sent := h.generate(epochRows)
	events, messages = make([][]*schema.Events, files), make([][]*schema.Messages, files)
	per := (len(perRank) + files - 1) / files
	for r := range perRank {
		for i := range perRank[r].Rank {
			perRank[r].Rank[i] = int32(r)
		}
		f := r / per
		spreadEvents(&events[f], perRank[r])
		spreadMessages(&messages[f], sent[r])
	}
	return events, messages
}

func spreadEvents(epochs *[]*schema.Events, b *schema.Events) {
	var e schema.Event
	for i := range b.Len() {
		b.Row(i, &e)
		for int(e.Epoch) >= len(*epochs) {
			*epochs = append(*epochs, &schema.Events{})
		}
		(*epochs)[e.Epoch].Append(&e)
	}
}

func spreadMessages(epochs *[]*schema.Messages, b *schema.Messages) {
	var m schema.Message
	for i := range b.Len() {
		b.Row(i, &m)
		for int(m.Epoch) >= len(*epochs) {
			*epochs = append(*epochs, &schema.Messages{})
		}
		(*epochs)[m.Epoch].Append(&m)
	}
}

// BenchmarkWriter writes a run's events and messages, one goroutine per shard, and reports event rows per second of
// the whole write (messages included, without the final sync), and bytes per event over both tables.
func BenchmarkWriter(b *testing.B) {
	const files = 2
	events, messages := shards(halo{side: 8, steps: 2000, bytes: 40960, gapNs: 150000}, files, 1<<20)
	var rows int64
	for f := range events {
		for _, e := range events[f] {
			rows += int64(e.Len())
		}
	}
	store := b.TempDir()
	var spent, cpu time.Duration
	var m *schema.Manifest
	b.ResetTimer()
	for i := range b.N {
		r, err := writer.Create(store, fmt.Sprintf("halo.%d", i), writer.Options{})
		if err != nil {
			b.Fatal(err)
		}
		start, cpuStart := time.Now(), cpuTime(b)
		writeShards(b, r, events, messages)
		spent, cpu = spent+time.Since(start), cpu+cpuTime(b)-cpuStart
		m = &schema.Manifest{Ranks: 64, TimeOrigin: "measured", ComputeClock: "cpu", Record: "all", Hash: "none",
			Ended: "finalized", Epochs: 1}
		if err := r.Commit(context.Background(), m); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/spent.Seconds()/1e6, "Mevents/s")
	b.ReportMetric(float64(rows)*float64(b.N)/cpu.Seconds()/1e6, "Mevents/CPU-s")
	total := 0.0
	for _, name := range []string{"events", "messages"} {
		bytes := logColumns(b, filepath.Join(store, "halo.0", name), name)
		total += bytes
	}
	b.ReportMetric(total/float64(rows), "B/event")
	b.ReportMetric(0, "ns/op")
}

// cpuTime returns the CPU time this process has used: it says more than wall time on a machine that others use too.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func writeShards(b *testing.B, r *writer.Run, events [][]*schema.Events, messages [][]*schema.Messages) {
	var wg sync.WaitGroup
	for f := range events {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i, e := range events[f] {
				if err := r.Write(f, e); err != nil {
					b.Error(err)
				}
				if i < len(messages[f]) {
					if err := r.Write(f, messages[f][i]); err != nil {
						b.Error(err)
					}
				}
			}
		}()
	}
	wg.Wait()
}

// logColumns logs the bytes per row of each column of a table, with $COMMQ_BENCH_COLUMNS set, and returns the table's
// bytes, footers included.
func logColumns(b *testing.B, dir, table string) float64 {
	names, _ := filepath.Glob(filepath.Join(dir, "*.parquet"))
	bytes, rows, all := map[string]int64{}, int64(0), 0.0
	for _, name := range names {
		info, err := os.Stat(name)
		if err != nil {
			b.Fatal(err)
		}
		all += float64(info.Size())
		r, err := file.OpenParquetFile(name, false)
		if err != nil {
			b.Fatal(err)
		}
		rows += r.NumRows()
		for g := range r.NumRowGroups() {
			for c := range r.MetaData().Schema.NumColumns() {
				chunk, err := r.MetaData().RowGroup(g).ColumnChunk(c)
				if err != nil {
					b.Fatal(err)
				}
				bytes[r.MetaData().Schema.Column(c).Name()] += chunk.TotalCompressedSize()
			}
		}
		r.Close()
	}
	b.ReportMetric(all/float64(rows), table+"-B/row")
	if os.Getenv("COMMQ_BENCH_COLUMNS") != "" {
		fmt.Fprintf(os.Stderr, "%s: %d rows\n%s", table, rows, columnTable(bytes, rows))
	}
	return all
}

func columnTable(bytes map[string]int64, rows int64) string {
	var names []string
	for n := range bytes {
		names = append(names, n)
	}
	sort.Slice(names, func(i, j int) bool { return bytes[names[i]] > bytes[names[j]] })
	var s strings.Builder
	for _, n := range names {
		fmt.Fprintf(&s, "%10.3f B/row  %s\n", float64(bytes[n])/float64(rows), n)
	}
	return s.String()
}

// haloRun writes a run of the halo whose definitions are there, so that it keeps all rules but the messages' epochs.
func haloRun(b *testing.B, h halo, files, epochRows int) (dir string, rows int64) {
	events, messages := shards(h, files, epochRows)
	store := b.TempDir()
	r, err := writer.Create(store, "halo", writer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	writeShards(b, r, events, messages)
	m := &schema.Manifest{Ranks: int32(h.side * h.side), TimeOrigin: "measured", ComputeClock: "cpu", Record: "all",
		Hash: "none", Ended: "finalized"}
	perRank := map[int32]int64{}
	for f := range events {
		for _, e := range events[f] {
			for i, rank := range e.Rank {
				perRank[rank]++
				m.Epochs, m.EndNs = max(m.Epochs, e.Epoch[i]+1), max(m.EndNs, e.EndNs[i])
			}
			m.Counts.Calls += int64(e.Len())
		}
		for _, x := range messages[f] {
			m.Counts.Messages += int64(x.Len())
			m.Counts.MessageBytes += int64(x.Len()) * h.bytes
		}
	}
	m.Counts.Collectives = int64(h.steps)
	ranks, comms, types := &schema.RankInfos{}, &schema.Comms{}, &schema.Datatypes{}
	types.Append(&schema.Datatype{Name: "MPI_DOUBLE", Combiner: "named", Bytes: 8, ExtentBytes: 8})
	for rank := range m.Ranks {
		ranks.Append(&schema.RankInfo{Rank: rank, Threads: 1, Ended: schema.EndedFinalized, Events: perRank[rank]})
		comms.Append(&schema.Comm{CommRank: rank, WorldRank: rank, Name: "MPI_COMM_WORLD", Parent: schema.NullInt32,
			CartDims: schema.NullText, CartPeriods: schema.NullText, GraphEdges: schema.NullText})
	}
	for _, x := range []schema.Batch{ranks, comms, types} {
		if err := r.Write(0, x); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.Commit(context.Background(), m); err != nil {
		b.Fatal(err)
	}
	return filepath.Join(store, "halo"), m.Counts.Calls
}

// BenchmarkReadTable reads every column of events.
func BenchmarkReadTable(b *testing.B) {
	dir, rows := haloRun(b, halo{side: 8, steps: 500, bytes: 40960, gapNs: 150000}, 2, 1<<20)
	b.ResetTimer()
	for range b.N {
		n := int64(0)
		err := writer.ReadTable(b.Context(), dir, &schema.EventsTable, 1<<12,
			func(x schema.Batch) error { n += int64(x.Len()); return nil })
		if err != nil || n != rows {
			b.Fatalf("%d of %d rows, %v", n, rows, err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}

// BenchmarkCheck checks a run against every rule.
func BenchmarkCheck(b *testing.B) {
	dir, rows := haloRun(b, halo{side: 8, steps: 500, bytes: 40960, gapNs: 150000}, 2, 1<<20)
	b.ResetTimer()
	for range b.N {
		problems, err := writer.Check(b.Context(), dir)
		if err != nil || len(problems) > 0 {
			b.Fatal(problems, err)
		}
	}
	b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
}
