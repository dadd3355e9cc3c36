package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/writer"
)

// BenchmarkIngest turns the spool of a synthetic halo exchange into a run: events per second, bytes per event on
// disk, and the anonymous memory of the process at the end. COMMQ_BENCH_MESSAGES sets its size in messages (3 calls
// each).
func BenchmarkIngest(b *testing.B) {
	messages := 1_000_000
	if s := os.Getenv("COMMQ_BENCH_MESSAGES"); s != "" {
		if _, err := fmt.Sscan(s, &messages); err != nil {
			b.Fatal(err)
		}
	}
	h := spoolgen.Halo{Ranks: 64, Neighbours: 2, Iterations: messages / (64 * 4), Seed: 1, Job: 1}
	spool := b.TempDir()
	if err := h.Write(spool); err != nil {
		b.Fatal(err)
	}
	for _, record := range []string{ingest.RecordAll, ingest.RecordMessages} {
		b.Run(record, func(b *testing.B) {
			var size int64
			for b.Loop() {
				size = ingestOnce(b, spool, record)
			}
			b.ReportMetric(float64(h.Calls())*float64(b.N)/b.Elapsed().Seconds(), "events/s")
			b.ReportMetric(float64(size)/float64(h.Calls()), "bytes/event")
			b.ReportMetric(anonymous(), "anon-MiB")
		})
	}
}

// ingestOnce ingests the spool into a new store and returns the run's size.
func ingestOnce(b *testing.B, spool, record string) (size int64) {
	store := b.TempDir()
	out, err := writer.Create(store, "run", writer.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := ingest.Ingest(context.Background(), spool, out, ingest.Options{Record: record}); err != nil {
		b.Fatal(err)
	}
	err = filepath.Walk(store, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			size += info.Size()
		}
		return err
	})
	if err == nil {
		err = os.RemoveAll(store)
	}
	if err != nil {
		b.Fatal(err)
	}
	return size
}

// anonymous returns the anonymous memory that this process has now, in MiB. Its peak during an ingest is larger;
// bench/ingest.md explains how the peak was measured.
func anonymous() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for _, line := range strings.Split(string(text), "\n") {
		var kb float64
		if n, _ := fmt.Sscanf(line, "RssAnon: %f kB", &kb); n == 1 {
			return kb / 1024
		}
	}
	return 0
}
