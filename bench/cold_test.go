package bench

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/writer"
)

// BenchmarkColdStart measures the cost of a small question, on testdata/runs/cg.A.4. process: commq prints its
// version. query: commq query density, from the start of the process to its end. open: the part of it that starts the
// engine and makes its views, in a process that has done it before; ask: the query itself. Each reports its median.
func BenchmarkColdStart(b *testing.B) {
	commq, dir := buildCommq(b), filepath.Join("..", "testdata", "runs", "cg.A.4")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"process", []string{"--version"}},
		{"query", []string{"query", "density", "--run", dir, "--format", "csv"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			times, cpu := medians{}, medians{}
			for b.Loop() {
				start := time.Now()
				cmd := exec.Command(commq, c.args...)
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				times = append(times, time.Since(start))
				cpu = append(cpu, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
			}
			b.ReportMetric(times.ms(), "median-ms")
			b.ReportMetric(cpu.ms(), "cpu-ms")
		})
	}
	b.Run("stages", func(b *testing.B) {
		m, err := writer.ReadManifest(dir)
		if err != nil {
			b.Fatal(err)
		}
		run := queries.Run{Name: "cg.A.4", Dir: dir, Manifest: m}
		opened, asked := medians{}, medians{}
		for b.Loop() {
			start := time.Now()
			db, err := queries.Open(context.Background(), []queries.Run{run}, queries.Options{})
			if err != nil {
				b.Fatal(err)
			}
			opened = append(opened, time.Since(start))
			start = time.Now()
			rowsOf(b, db, "density", nil)
			asked = append(asked, time.Since(start))
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(opened.ms(), "open-ms")
		b.ReportMetric(asked.ms(), "ask-ms")
	})
}

type medians []time.Duration

// ms returns the median in milliseconds.
func (m medians) ms() float64 {
	slices.Sort(m)
	return float64(m[len(m)/2].Microseconds()) / 1000
}
