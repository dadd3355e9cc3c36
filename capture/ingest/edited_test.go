package ingest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/writer"
)

// FuzzSlots ingests jobs whose records are changed beyond their form: an error, or a run that breaks no rule.
func FuzzSlots(f *testing.F) {
	timeless := ring(3)
	timeless.header = virtual
	summed := ring(3)
	summed.header = func(h *spool.Header) { h.Sums = 1 }
	var seeds []string
	for _, p := range []program{ring(3), crash(), paths(), timeless, summed} {
		seeds = append(seeds, p.write(f))
	}
	dir, _, _, _ := randomSpool(f, 3, 3, 40)
	seeds = append(seeds, dir)
	for i := range seeds {
		f.Add(uint8(i), uint8(0), []byte{3, 5, 0, 9, 8, 7, 2, 1, 4, 1})
	}
	f.Fuzz(func(t *testing.T, seed, rank uint8, edits []byte) {
		from, dir := seeds[int(seed)%len(seeds)], t.TempDir()
		entries, err := os.ReadDir(from)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range entries {
			data, err := os.ReadFile(filepath.Join(from, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if i == int(rank)%len(entries) {
				data = spoolgen.Edit(data, edits)
			}
			if err := os.WriteFile(filepath.Join(dir, e.Name()), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		store := t.TempDir()
		out, err := writer.Create(store, "run", writer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Ingest(context.Background(), dir, out, Options{NoSymbols: true, Workers: 1}); err != nil {
			return
		}
		problems, err := writer.Check(context.Background(), filepath.Join(store, "run"))
		if err != nil || len(problems) > 0 {
			t.Fatalf("the run fails its check: %v, %v", problems, err)
		}
	})
}
