package bench

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/commq/commq/queries"
)

// BenchmarkQueries measures every canned query with its defaults: the whole command, from the start of the process to
// the last row, on a stencil's run of $COMMQ_BENCH_MESSAGES messages (default one epoch). If $COMMQ_BENCH_STORE is
// set, the run is kept there and reused. cpu-s is the time of all cores together, peak-MiB the largest resident set
// of the process. $COMMQ_BENCH_MEMORY_MIB is the memory limit of the engine (default the command's own).
func BenchmarkQueries(b *testing.B) {
	messages, commq := benchMessages(b), buildCommq(b)
	store := os.Getenv("COMMQ_BENCH_STORE")
	if store == "" {
		store = b.TempDir()
	}
	run := stencilRunOf(b, store, messages)
	all, err := queries.All()
	if err != nil {
		b.Fatal(err)
	}
	for _, q := range all {
		b.Run(fmt.Sprintf("%s/messages=%d", q.Name, run.Manifest.Counts.Messages), func(b *testing.B) {
			var peak, bytes int64
			var cpu time.Duration
			for b.Loop() {
				state, n := askCommand(b, commq, run.Dir, q.Name)
				peak, bytes = max(peak, state.SysUsage().(*syscall.Rusage).Maxrss), n
				cpu += state.UserTime() + state.SystemTime()
			}
			b.ReportMetric(cpu.Seconds()/float64(b.N), "cpu-s")
			b.ReportMetric(float64(peak)/1024, "peak-MiB")
			b.ReportMetric(float64(bytes), "answer-bytes")
		})
	}
}

// buildCommq builds the command into a folder of the benchmark.
func buildCommq(b *testing.B) string {
	name := filepath.Join(b.TempDir(), "commq")
	if out, err := exec.Command("go", "build", "-o", name, "../cmd/commq").CombinedOutput(); err != nil {
		b.Fatalf("build commq: %v\n%s", err, out)
	}
	return name
}

// askCommand runs the command and gives how it ended and the bytes of its answer.
func askCommand(b *testing.B, commq, dir, query string) (state *os.ProcessState, answerBytes int64) {
	args := []string{"query", query, "--run", dir, "--format", "csv"}
	if mib := os.Getenv("COMMQ_BENCH_MEMORY_MIB"); mib != "" {
		args = append(args, "--memory", mib)
	}
	cmd := exec.Command(commq, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	if answerBytes, err = io.Copy(io.Discard, out); err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		b.Fatalf("commq query %s: %v", query, err)
	}
	return cmd.ProcessState, answerBytes
}
