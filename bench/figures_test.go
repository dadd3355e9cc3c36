package bench

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/shim"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// figureMessages is the number of messages in the runs of BenchmarkFigures.
const figureMessages = 1 << 20

// figures are the programs and runs that BenchmarkFigures measures on; each is made when it is first needed.
type figures struct {
	folder string
	commq  func() string
	spool  func() string
	torus  func() queries.Run
	halo   func() string
	grid   func() queries.Run
}

func newFigures(b *testing.B) *figures {
	f := &figures{folder: b.TempDir()}
	f.commq = sync.OnceValue(func() string {
		if built := os.Getenv("COMMQ_BENCH_COMMAND"); built != "" {
			return built
		}
		return buildCommq(b)
	})
	f.spool = sync.OnceValue(func() string {
		dir := filepath.Join(f.folder, "spool")
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			err = figureHalo().Write(dir)
		}
		if err != nil {
			b.Fatal(err)
		}
		return dir
	})
	f.torus = sync.OnceValue(func() queries.Run { return queryRun(b, "few-sizes", figureMessages) })
	f.halo = sync.OnceValue(func() string {
		h := ringHalo{messages: figureMessages, kind: "halo"}
		if err := h.write(f.folder); err != nil {
			b.Fatal(err)
		}
		return filepath.Join(f.folder, h.name())
	})
	f.grid = sync.OnceValue(func() queries.Run { return stencilRunOf(b, f.folder, figureMessages) })
	return f
}

// figureHalo is the program whose spool is ingested: 0.8 million calls.
func figureHalo() spoolgen.Halo {
	return spoolgen.Halo{Ranks: 64, Neighbours: 2, Iterations: 1000, Seed: 1, Job: 1}
}

// BenchmarkFigures measures what commq costs in CPU time, each as a ratio to a peer that is measured right before it on
// the same data, so that figures of one machine hold on another. Less is better. scripts/bench runs it, keeps the
// figures and compares them with those of an earlier commit. $COMMQ_BENCH_COMMAND names a built commq.
func BenchmarkFigures(b *testing.B) {
	f := newFigures(b)
	for _, c := range []struct {
		name    string
		measure func(*testing.B) (peer, own time.Duration)
	}{
		{"capture", f.capture},
		{"ingest", f.ingest},
		{"density", f.density},
		{"density-rows", f.densityOfRows},
		{"detect", f.detect},
		{"simulate", f.simulate},
		{"cold", f.cold},
		{"report", f.report},
	} {
		b.Run(c.name, func(b *testing.B) {
			var peer, own time.Duration
			for b.Loop() {
				p, o := c.measure(b)
				peer, own = peer+p, own+o
			}
			b.ReportMetric(own.Seconds()/peer.Seconds(), "ratio")
			b.ReportMetric(own.Seconds(), "own-sec")
			b.ReportMetric(peer.Seconds(), "peer-sec")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// capture: three calls with a message to itself, recorded with the return address and without hashes, against the
// same calls of the bare program.
func (f *figures) capture(b *testing.B) (bare, with time.Duration) {
	const library = shim.OpenMPI
	testenv.MPI(b, library)
	lib, err := shim.Build(b.Context(), shim.BuildOptions{Library: library})
	if err != nil {
		b.Fatal(err)
	}
	program := filepath.Join(f.folder, "self")
	if _, err := os.Stat(program); err != nil {
		output(b, exec.Command("mpicc."+library, "-O2", "-o", program, filepath.Join("shim", "self.c")))
	}
	loop := func(variables ...string) time.Duration {
		cmd := exec.Command("mpirun."+library, append(append([]string{"-n", "1", "env"}, variables...),
			program, "8", "20000")...)
		cmd.Env = testenv.Environ()
		var fastest, median, cpuMedian, cpuLeast float64
		text := output(b, cmd)
		if _, err := fmt.Sscan(text, &fastest, &median, &cpuMedian, &cpuLeast); err != nil {
			b.Fatalf("self printed %q: %v", text, err)
		}
		return time.Duration(cpuLeast * 1000) // of a thousand iterations
	}
	spool := b.TempDir()
	bare = loop()
	with = loop("LD_PRELOAD="+lib, "COMMQ_SPOOL="+spool, "COMMQ_STACK=1")
	if files, err := os.ReadDir(spool); err != nil || len(files) == 0 {
		b.Fatalf("nothing was recorded: %v", err)
	}
	return bare, with
}

// ingest: a spool becomes a run, against a copy of its bytes in memory.
func (f *figures) ingest(b *testing.B) (copied, ingested time.Duration) {
	spool := f.spool()
	var data []byte
	err := filepath.WalkDir(spool, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		part, err := os.ReadFile(path)
		data = append(data, part...)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	const copies = 16
	into := bytes.Clone(data)
	from := cpuTime(b)
	for range copies {
		copy(into, data)
	}
	copied = (cpuTime(b) - from) / copies
	from = cpuTime(b)
	size := ingestOnce(b, spool, ingest.RecordAll)
	b.ReportMetric(float64(size)/float64(len(data)), "run-bytes/spool-byte")
	return copied, cpuTime(b) - from
}

// density: who sent how much to whom, from the run's folder to the rows, against the same sums by plain DuckDB on the
// same files.
func (f *figures) density(b *testing.B) (plain, asked time.Duration) {
	return f.askDensity(b, nil)
}

// densityOfRows: the same with a condition, which the sums cannot answer, so that commq reads the rows too.
func (f *figures) densityOfRows(b *testing.B) (plain, asked time.Duration) {
	return f.askDensity(b, map[string]string{"where": "bytes >= 0", "collectives": "none"})
}

// askDensity measures plain DuckDB's density of messages, and commq's with these arguments.
func (f *figures) askDensity(b *testing.B, args map[string]string) (plain, asked time.Duration) {
	r := f.torus()
	from := cpuTime(b)
	db, err := sql.Open("duckdb", "")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(context.Background(), `SELECT src, dst, count(*), CAST(sum(bytes) AS BIGINT)
FROM read_parquet('`+filepath.Join(r.Dir, "messages", "*.parquet")+`') GROUP BY src, dst ORDER BY src, dst`)
	if err != nil {
		b.Fatal(err)
	}
	pairs := 0
	for rows.Next() {
		pairs++
	}
	if err := rows.Close(); err != nil || pairs < queryRanks {
		b.Fatalf("%d pairs: %v", pairs, err)
	}
	plain = cpuTime(b) - from
	from = cpuTime(b)
	if rows := ask(b, r, "density", args); rows < queryRanks {
		b.Fatalf("%d rows", rows)
	}
	return plain, cpuTime(b) - from
}

// detect: the whole command, against reading the rows of its messages.
func (f *figures) detect(b *testing.B) (read, detected time.Duration) {
	dir := f.halo()
	return readRows(b, dir, &schema.MessagesTable), f.command(b, "detect", "--run", dir)
}

// simulate: the whole command, against reading the rows of the calls.
func (f *figures) simulate(b *testing.B) (read, simulated time.Duration) {
	dir := f.grid().Dir
	return readRows(b, dir, &schema.EventsTable), f.command(b, "simulate", "--run", dir, "--machine", "flat")
}

// cold: a small question in a new process, against a process that prints its version.
func (f *figures) cold(b *testing.B) (version, asked time.Duration) {
	dir := filepath.Join("..", "testdata", "runs", "cg.A.4")
	return f.version(b), f.command(b, "query", "density", "--run", dir, "--format", "csv")
}

// report: a page about a run, against a process that prints its version.
func (f *figures) report(b *testing.B) (version, reported time.Duration) {
	dir := filepath.Join("..", "testdata", "runs", "cg.A.16")
	return f.version(b), f.command(b, "report", "--run", dir, "--output", filepath.Join(b.TempDir(), "report.html"))
}

// version returns the CPU time of commq --version, the mean of several.
func (f *figures) version(b *testing.B) time.Duration {
	const times = 4
	var all time.Duration
	for range times {
		all += f.command(b, "--version")
	}
	return all / times
}

// command returns the CPU time of a run of commq.
func (f *figures) command(b *testing.B, args ...string) time.Duration {
	cmd := exec.Command(f.commq(), args...)
	cmd.Env = append(os.Environ(), "COMMQ_CACHE="+b.TempDir()) // nothing is kept from the run before
	output(b, cmd)
	u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// output runs a command and returns what it prints.
func output(b *testing.B, cmd *exec.Cmd) string {
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, errs.Bytes())
	}
	return string(out)
}

// readRows returns the CPU time of reading all rows of a table.
func readRows(b *testing.B, dir string, t *schema.Table) time.Duration {
	from, rows := cpuTime(b), 0
	err := writer.ReadTable(b.Context(), dir, t, 1<<13, func(x schema.Batch) error {
		rows += x.Len()
		return nil
	})
	if err != nil || rows < figureMessages {
		b.Fatalf("%d rows of %s: %v", rows, dir, err)
	}
	return cpuTime(b) - from
}
