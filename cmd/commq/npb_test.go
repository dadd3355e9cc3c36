package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/writer"
)

// The checks in this file compare captures of the NAS Parallel Benchmarks with known counts. If $COMMQ_NPB names a
// folder with openmpi/cg.W.x, mpich/cg.W.x and so on, they capture the programs and write the counts to
// docs/validation/npb; otherwise they check the committed counts.

const (
	goldenDir     = "../../testdata/golden/npb"
	validationDir = "../../docs/validation/npb"
)

// pointToPoint returns a run's sends in the form of the golden files.
const pointToPoint = `SELECT src, dst, count(*) AS msgs, CAST(sum(bytes) AS BIGINT) AS bytes FROM messages GROUP BY src, dst ORDER BY src, dst`

// collectiveCalls returns a run's collectives in the form of the golden files: bytes are count x size of the call's
// own count argument, and for Alltoallv the sum over destinations.
const collectiveCalls = `
WITH size AS (SELECT comm, count(*) AS commsize FROM comms GROUP BY comm)
SELECT e.rank, lower(substr(e.call, 5)) AS op, s.commsize, count(*) AS calls,
       CAST(sum(CASE WHEN e.call = 'MPI_Barrier' THEN 0
                     WHEN e.call = 'MPI_Alltoallv' THEN e.send_bytes
                     ELSE coalesce(e.send_count * t.bytes, e.recv_count * r.bytes) END) AS BIGINT) AS bytes
FROM events AS e JOIN size AS s ON s.comm = e.comm
LEFT JOIN datatypes AS t ON t.id = e.send_datatype
LEFT JOIN datatypes AS r ON r.id = e.recv_datatype
WHERE e.class = 'collective' GROUP BY e.rank, op, s.commsize ORDER BY e.rank, op`

// npb is one program at one size.
type npb struct {
	library, app, class string
	ranks               int
}

func (n npb) name() string { return fmt.Sprintf("%s.%s.%d", n.app, n.class, n.ranks) }

// goldenRuns lists the runs of a library that have golden files.
func goldenRuns(t *testing.T, library string, apps ...string) []npb {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(goldenDir, "*.coll.csv"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files in %s: %v", goldenDir, err)
	}
	var runs []npb
	for _, f := range files {
		part := strings.Split(filepath.Base(f), ".")
		ranks, err := strconv.Atoi(part[2])
		if err != nil {
			t.Fatalf("golden file %s: %v", f, err)
		}
		if len(apps) == 0 || slices.Contains(apps, part[0]) {
			runs = append(runs, npb{library, part[0], part[1], ranks})
		}
	}
	return runs
}

// commq runs a command line in this process and fails the test unless it ends with status 0.
func commq(t *testing.T, args ...string) (stdout string) {
	t.Helper()
	var out, errs bytes.Buffer
	if status := execute(context.Background(), args, strings.NewReader(""), &out, &errs); status != 0 {
		t.Fatalf("commq %s: exit status %d\n%s%s", strings.Join(args, " "), status, errs.String(), tail(out.String()))
	}
	return out.String()
}

// tail returns the end of a program's output.
func tail(s string) string {
	if len(s) > 2000 {
		return "..." + s[len(s)-2000:]
	}
	return s
}

// capture runs the program under commq capture and checks that its own verification succeeded.
func (n npb) capture(t *testing.T, folder, store string, flags ...string) {
	t.Helper()
	for _, kv := range testenv.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	if n.library == "mpich" {
		t.Setenv("LD_PRELOAD", testenv.Yielding(t))
	}
	program := filepath.Join(folder, n.library, fmt.Sprintf("%s.%s.x", n.app, n.class))
	args := append([]string{"capture", "--store", store, "--name", n.name(), "-n", fmt.Sprint(n.ranks), "-q"}, flags...)
	out := commq(t, append(args, "--", program)...)
	if !strings.Contains(strings.ToUpper(out), "SUCCESSFUL") {
		t.Fatalf("%s under %s did not verify:\n%s", n.name(), n.library, tail(out))
	}
}

// record captures the program and writes its counts to docs/validation.
func (n npb) record(t *testing.T, folder string) {
	t.Helper()
	store := t.TempDir()
	n.capture(t, folder, store)
	commq(t, "runs", "check", "--store", store, n.name())
	for suffix, query := range map[string]string{".csv": pointToPoint, ".coll.csv": collectiveCalls} {
		rows := commq(t, "sql", "--store", store, "--run", n.name(), "--format", "csv", query)
		rows = strings.ReplaceAll(rows, "\r\n", "\n")
		dir := filepath.Join(validationDir, n.library)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, n.name()+suffix), []byte(rows), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCapturesReproduceTheGoldenCounts(t *testing.T) {
	folder := os.Getenv("COMMQ_NPB")
	runs := goldenRuns(t, "openmpi")
	runs = append(runs, goldenRuns(t, "mpich")...)
	if folder == "" {
		t.Log("$COMMQ_NPB is not set: committed counts only")
	}
	for _, n := range runs {
		t.Run(n.library+"/"+n.name(), func(t *testing.T) {
			if folder != "" {
				n.record(t, folder)
			}
			for _, suffix := range []string{".csv", ".coll.csv"} {
				want := readCSV(t, filepath.Join(goldenDir, n.name()+suffix))
				got := readCSV(t, filepath.Join(validationDir, n.library, n.name()+suffix))
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s%s: golden (-) and captured (+) differ:\n%s", n.name(), suffix, diff)
				}
			}
		})
	}
}

// Queries count in the committed runs of NPB what the golden files have.
func TestQueriesReproduceTheGoldenCounts(t *testing.T) {
	compared := 0
	for _, n := range goldenRuns(t, "openmpi") {
		dir := filepath.Join(runsDir, n.name())
		if _, err := os.Stat(dir); err != nil {
			continue // most are not committed; the count is checked
		}
		m, err := writer.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		for suffix, query := range map[string]string{".csv": pointToPoint, ".coll.csv": collectiveCalls} {
			if suffix == ".coll.csv" && m.Record != "all" {
				continue // it has no rows of collectives
			}
			out := commq(t, "sql", "--store", runsDir, "--run", n.name(), "--format", "csv", query)
			got, err := csv.NewReader(strings.NewReader(out)).ReadAll()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(readCSV(t, filepath.Join(goldenDir, n.name()+suffix)), got); diff != "" {
				t.Errorf("%s%s: golden (-) and queried (+) differ:\n%s", n.name(), suffix, diff)
			}
			compared++
		}
	}
	if compared != 10 {
		t.Errorf("%d golden files were compared, want 10", compared)
	}
}

// totals are the messages of larger runs. SP class A's are Riesen's (Figure 14).
var totals = []struct {
	npb
	messages int64
}{
	{npb{"openmpi", "sp", "A", 4}, 19272},
	{npb{"openmpi", "sp", "A", 16}, 154080},
	{npb{"openmpi", "sp", "A", 64}, 1232256},
	{npb{"openmpi", "cg", "A", 4}, 6720},
}

func TestCapturesOfClassAMatchThePaper(t *testing.T) {
	folder := os.Getenv("COMMQ_NPB")
	for _, n := range totals {
		t.Run(n.name(), func(t *testing.T) {
			if folder != "" {
				n.record(t, folder)
			}
			var messages int64
			for _, row := range readCSV(t, filepath.Join(validationDir, n.library, n.name()+".csv"))[1:] {
				count, err := strconv.ParseInt(row[2], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				messages += count
			}
			if messages != n.messages {
				t.Errorf("%d messages, want %d", messages, n.messages)
			}
		})
	}
}

func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

const runsDir = "../../testdata/runs"

// query returns the rows of a command on a committed run, split into columns.
func query(t *testing.T, args ...string) [][]string {
	t.Helper()
	out := commq(t, append(args, "--store", runsDir, "--format", "csv")...)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// cell finds the row of a density matrix for a pair of ranks.
func cell(rows [][]string, src, dst string) []string {
	for _, r := range rows {
		if r[0] == src && r[1] == dst {
			return r[2:4]
		}
	}
	return nil
}

// Riesen, section 3.1: node 0 of CG on 4 nodes sends 416 messages to itself and 1265 to node 1, and one each to nodes 2
// and 3: the paper's numbers with the fan-out of one collective. NPB 3.4 has one Bcast more than NPB 2.
func TestDensityOfCGMatchesThePaper(t *testing.T) {
	rows := query(t, "query", "density", "--run", "cg.A.4", "--collectives", "none")
	if diff := cmp.Diff([]string{"416", "23296000"}, cell(rows, "0", "0")); diff != "" {
		t.Error("0 to 0:", diff)
	}
	if diff := cmp.Diff([]string{"1264", "23302912"}, cell(rows, "0", "1")); diff != "" {
		t.Error("0 to 1:", diff)
	}
	if c := cell(rows, "0", "2"); c != nil {
		t.Error("point-to-point messages from 0 to 2:", c)
	}
	// Rooted: Barrier (both ways), Bcast (from 0) and Reduce (to 0) add 2 messages from 0 to every other rank, with
	// the 4 bytes of the Bcast, and 2 from each to 0, with the 8 bytes of the Reduce.
	rows = query(t, "query", "density", "--run", "cg.A.4")
	for _, want := range [][]string{{"0", "0", "416", "23296000"}, {"0", "1", "1266", "23302916"}, {"0", "2", "2", "4"},
		{"0", "3", "2", "4"}, {"1", "0", "1266", "23302920"}, {"2", "0", "2", "8"}} {
		if diff := cmp.Diff(want[2:], cell(rows, want[0], want[1])); diff != "" {
			t.Errorf("rooted, %s to %s: %s", want[0], want[1], diff)
		}
	}
}

func TestDensityOfBTOn64Ranks(t *testing.T) {
	rows := query(t, "query", "density", "--run", "bt.C.64", "--collectives", "none")
	sent := map[string]int64{}
	var all int64
	for _, r := range rows {
		n, err := strconv.ParseInt(r[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		sent[r[0]] += n
		all += n
	}
	if all != 617856 || len(sent) != 64 {
		t.Errorf("%d messages from %d ranks, want 617856 from 64", all, len(sent))
	}
	for rank, n := range sent {
		if n != 9654 {
			t.Errorf("rank %s sent %d messages, want 9654", rank, n)
		}
	}
}

// Committed runs must be sound and small: they are in every clone.
func TestCommittedRunsAreSound(t *testing.T) {
	manifests, err := filepath.Glob(filepath.Join(runsDir, "*", "manifest.json"))
	if err != nil || len(manifests) < 8 {
		t.Fatalf("%d runs in %s: %v", len(manifests), runsDir, err)
	}
	var complete int64
	for _, m := range manifests {
		name := filepath.Base(filepath.Dir(m))
		commq(t, "runs", "check", "--store", runsDir, name)
		size := folderBytes(t, filepath.Join(runsDir, name))
		if name == "bt.C.64" {
			if size > 10<<20 {
				t.Errorf("bt.C.64 takes %d bytes, more than 10 MiB", size)
			}
			continue
		}
		complete += size
	}
	if complete > 12<<20 {
		t.Errorf("the other runs take %d bytes, more than 12 MiB", complete)
	}
}

func folderBytes(t *testing.T, dir string) (size int64) {
	t.Helper()
	err := filepath.Walk(dir, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			size += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return size
}
