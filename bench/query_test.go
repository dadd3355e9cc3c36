package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// The run that BenchmarkDensity asks: every column of messages filled, 64 ranks on a torus with six neighbours each.
const (
	queryRanks  = 64
	queryShards = 2
	epochRows   = 1 << 20
)

// BenchmarkDensity measures commq query density over a run of $COMMQ_BENCH_MESSAGES messages (default one epoch). The
// run is kept in $COMMQ_BENCH_STORE where that is set, and found there the next time.
func BenchmarkDensity(b *testing.B) {
	messages := benchMessages(b)
	for _, sizes := range []string{"few-sizes", "random"} {
		b.Run(fmt.Sprintf("%s/messages=%d", sizes, messages), func(b *testing.B) {
			run := queryRun(b, sizes, messages)
			b.ResetTimer()
			for range b.N {
				if rows := ask(b, run, "density", nil); rows < queryRanks {
					b.Fatalf("%d rows", rows)
				}
			}
			b.ReportMetric(float64(messages)*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

func benchMessages(b *testing.B) int {
	text := os.Getenv("COMMQ_BENCH_MESSAGES")
	if text == "" {
		return epochRows
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < queryRanks {
		b.Fatalf("COMMQ_BENCH_MESSAGES=%s: want a number of messages", text)
	}
	return n
}

// BenchmarkDuplicates measures commq query duplicates over messages with as many payloads (few-sizes) and over
// messages of which every other has one of five others' (repeated).
func BenchmarkDuplicates(b *testing.B) {
	messages := benchMessages(b)
	for kind, least := range map[string]int{"few-sizes": 0, "repeated": queryRanks} {
		b.Run(fmt.Sprintf("%s/messages=%d", kind, messages), func(b *testing.B) {
			run := queryRun(b, kind, messages)
			b.ResetTimer()
			for range b.N {
				if rows := ask(b, run, "duplicates", nil); rows < least {
					b.Fatalf("%d rows", rows)
				}
			}
			b.ReportMetric(float64(messages)*float64(b.N)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}

// ask does what commq query does, without printing, and returns the number of rows.
func ask(b *testing.B, run queries.Run, name string, args map[string]string) int {
	ctx := context.Background()
	db, err := queries.Open(ctx, []queries.Run{run}, queries.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	return rowsOf(b, db, name, args)
}

// rowsOf asks a query and reads all rows; it gives their number.
func rowsOf(b *testing.B, db *queries.DB, name string, args map[string]string) int {
	all, err := queries.All()
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for _, q := range all {
		if q.Name != name {
			continue
		}
		rows, err := db.Ask(context.Background(), q, args)
		if err != nil {
			b.Fatal(err)
		}
		for rows.Next() {
			n++
		}
		if err := rows.Err(); err != nil {
			b.Fatal(err)
		}
		rows.Close()
	}
	return n
}

// queryRun finds or writes the run.
func queryRun(b *testing.B, sizes string, messages int) queries.Run {
	store := os.Getenv("COMMQ_BENCH_STORE")
	if store == "" {
		store = b.TempDir()
	}
	name := fmt.Sprintf("density.%s.%d", sizes, messages)
	dir := filepath.Join(store, name)
	if _, err := os.Stat(dir); err != nil {
		writeQueryRun(b, store, name, sizes, messages)
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		b.Fatal(err)
	}
	return queries.Run{Name: name, Dir: dir, Manifest: m}
}

func writeQueryRun(b *testing.B, store, name, kind string, messages int) {
	run, err := writer.Create(store, name, writer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer run.Abort()
	comms := &schema.Comms{}
	for rank := range int32(queryRanks) {
		c := schema.NullComm
		c.CommRank, c.WorldRank = rank, rank
		comms.Append(&c)
	}
	if err := run.Write(0, comms); err != nil {
		b.Fatal(err)
	}
	var wg sync.WaitGroup
	errs := make([]error, queryShards)
	for shard := range queryShards {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[shard] = writeShard(run, shard, kind, messages/queryShards)
		}()
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
	err = run.Commit(context.Background(), &schema.Manifest{Ranks: queryRanks, TimeOrigin: "measured", ComputeClock: "cpu",
		Record: "messages",
		Hash:   "crc64", Callsites: true, Ended: "finalized", Epochs: int32(messages/epochRows + 1)})
	if err != nil {
		b.Fatal(err)
	}
}

// writeShard writes the messages of half the ranks: epoch by epoch, rank by rank.
func writeShard(run *writer.Run, shard int, kind string, messages int) error {
	rng := rand.New(rand.NewPCG(uint64(shard), 20))
	const ranks = queryRanks / queryShards
	perRank := epochRows / queryShards / ranks
	batch := &schema.Messages{}
	for epoch, left := 0, messages; left > 0; epoch++ {
		batch.Resize(0)
		for i := range min(left, perRank*ranks) {
			r := queryMessage(rng, kind, epoch, shard*ranks+i/perRank, epoch*perRank+i%perRank)
			batch.Append(&r)
		}
		left -= batch.Len()
		if err := run.Write(shard, batch); err != nil {
			return err
		}
	}
	return nil
}

func queryMessage(rng *rand.Rand, kind string, epoch, src, k int) schema.Message {
	steps := [...]int{1, 63, 8, 56, 9, 55}
	start := int64(epoch)*1e9 + int64(k)*30000 + rng.Int64N(900)
	m := schema.Message{
		Src: int32(src), Dst: int32((src + steps[k%6]) % queryRanks), Epoch: int32(epoch), Tag: int32(k % 6),
		Bytes: int64(21640 * (1 + k%3)), SendCount: int64(2705 * (1 + k%3)), SendDatatype: 3, SendSeq: int64(4 * k),
		SendStartNs: start, SendEndNs: start + 50 + rng.Int64N(300), RecvPostSeq: int64(4*k - 3),
		RecvDoneSeq: int64(4*k + 1),
		RecvPostNs:  start - rng.Int64N(900), RecvStartNs: start + 900 + rng.Int64N(900),
		RecvEndNs:   start + 2000 + rng.Int64N(900),
		PayloadHash: int64(rng.Uint64()), PayloadSum: int64(rng.Uint64()), PayloadHead: int64(rng.Uint64()),
		SrcBuffer:    int64(140000000000000 + src*100000 + k%6*21640),
		DstBuffer:    int64(140000000000000 + src*7000 + k%6*21640),
		SendCallsite: int32(k % 6), RecvCallsite: int32(6 + k%3),
	}
	switch {
	case kind == "random":
		m.Dst, m.Bytes = rng.Int32N(queryRanks), rng.Int64N(1000003)
		m.SendCount = m.Bytes
	case kind == "repeated" && k%2 == 1: // six times, to three ranks
		m.Bytes, m.SendCount = 21640, 2705
		m.PayloadHash = int64(uint64(src)<<40+uint64(k/12)) * -7046029254386353131
		m.PayloadHead = m.PayloadHash
	}
	return m
}
