package synth

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/commq/commq/writer"
)

// A column counts when it has at least this many bytes per row in either run: smaller columns together are less than
// a tenth of a run, and most of it is the overhead of pages.
const countsBytes = 0.05

// likeness is how far the bytes per row of a column may be from a real capture's.
const likeness = 0.20

// TestColumnsResembleRealRuns compares the bytes per row of each column of made runs with those of real captures of the
// same codes, with the same options and as many messages.
func TestColumnsResembleRealRuns(t *testing.T) {
	for _, c := range []struct {
		pattern, real string
		o             Options
	}{
		{"shift", "testdata/shift.8", Options{Hash: true, Callsites: true}},
		{"cg", "../../../testdata/runs/cg.A.16", Options{Hash: true, Callsites: true}},
		{"sp", "../../../testdata/runs/sp.W.4", Options{Hash: true, Callsites: true}},
	} {
		t.Run(c.pattern, func(t *testing.T) {
			m, err := writer.ReadManifest(c.real)
			if err != nil {
				t.Fatal(err)
			}
			dir, _ := made(t, c.pattern, int(m.Ranks), m.Counts.Messages, c.o)
			for _, table := range []string{"events", "messages"} {
				compareColumns(t, c.pattern+" "+table, columnBytes(t, c.real, table), columnBytes(t, dir, table))
			}
		})
	}
}

// compareColumns logs the columns that count, as rows of a table, and fails if one differs too much.
func compareColumns(t *testing.T, what string, real, got map[string]float64) {
	var names []string
	for name := range real {
		names = append(names, name)
	}
	sort.Slice(names, func(i, j int) bool { return real[names[i]] > real[names[j]] })
	rest := [2]float64{}
	var rows strings.Builder
	for _, name := range names {
		a, b := real[name], got[name]
		if max(a, b) < countsBytes {
			rest[0], rest[1] = rest[0]+a, rest[1]+b
			continue
		}
		if math.Abs(b/a-1) > likeness {
			t.Errorf("%s: %s has %.3f bytes per row, %.3f in the capture; want it within %.0f %%", what, name, b, a,
				100*likeness)
		}
		fmt.Fprintf(&rows, "| %s | %s | %.3f | %.3f | %+.0f %% |\n", what, name, a, b, 100*(b/a-1))
	}
	fmt.Fprintf(&rows, "| %s | all others | %.3f | %.3f | |\n", what, rest[0], rest[1])
	if os.Getenv("COMMQ_BENCH_COLUMNS") != "" {
		t.Log("\n" + rows.String())
	}
}

// columnBytes returns the compressed bytes per row of each column of a table.
func columnBytes(t *testing.T, dir, table string) map[string]float64 {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, table, "*.parquet"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no files of %s: %v", dir, table, err)
	}
	bytes, rows := map[string]float64{}, 0.0
	for _, name := range names {
		r, err := file.OpenParquetFile(name, false)
		if err != nil {
			t.Fatal(err)
		}
		rows += float64(r.NumRows())
		for g := range r.NumRowGroups() {
			for c := range r.MetaData().Schema.NumColumns() {
				chunk, err := r.MetaData().RowGroup(g).ColumnChunk(c)
				if err != nil {
					t.Fatal(err)
				}
				bytes[r.MetaData().Schema.Column(c).Name()] += float64(chunk.TotalCompressedSize())
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for name := range bytes {
		bytes[name] /= rows
	}
	return bytes
}
