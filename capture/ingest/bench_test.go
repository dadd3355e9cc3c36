package ingest

import (
	"context"
	"testing"

	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/schema"
)

type discard struct{}

func (discard) Write(int, schema.Batch) error { return nil }

// BenchmarkRows measures ingest without writing: reading, decoding and matching, on one core.
func BenchmarkRows(b *testing.B) {
	dir := b.TempDir()
	h := spoolgen.Halo{Ranks: 64, Neighbours: 2, Iterations: 4000, Seed: 1, Job: 1}
	if err := h.Write(dir); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		o := Options{Workers: 1}
		if err := o.withDefaults(); err != nil {
			b.Fatal(err)
		}
		j, err := openJob(dir, o.Job, allFiles)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := makeRun(context.Background(), j, &o, discard{}); err != nil {
			b.Fatal(err)
		}
		j.close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(h.Calls()), "ns/event")
}
