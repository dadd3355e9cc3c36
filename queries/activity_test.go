package queries_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/bench/gen/synth"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// generated returns a made run of a stencil with enough calls for sums over time.
func generated(t *testing.T, ranks int, messages int64) queries.Run {
	t.Helper()
	return generatedWith(t, ranks, messages, synth.Options{Seed: 3})
}

func generatedWith(t *testing.T, ranks int, messages int64, o synth.Options) queries.Run {
	t.Helper()
	store := t.TempDir()
	p, err := synth.New("halo", ranks, messages)
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Write(p, store, "made", o); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(store, "made")
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return queries.Run{Name: "made", Dir: dir, Manifest: m}
}

// cell is a row of a timeline for a step of time, without the number of the step.
type cell struct {
	rank, ranks, start, end int
	kind                    string
}

// cellsOf returns calls, time_ns, messages and bytes in the steps of a timeline, and their length. Steps from the
// time on are left out.
func cellsOf(t *testing.T, answer string, before int) (all map[cell][4]int, length int) {
	t.Helper()
	all = map[cell][4]int{}
	for line := range strings.Lines(answer) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), ",")
		if f[2] == "" {
			continue // a message
		}
		n := func(i int) int {
			v, err := strconv.Atoi(f[i])
			if err != nil && f[i] != "" {
				t.Fatalf("%v in %q", err, line)
			}
			return v
		}
		c := cell{n(0), n(1), n(3), n(4), f[5]}
		if length = c.end - c.start; c.start < before {
			all[c] = [4]int{n(6), n(7), n(8), n(9)}
		}
	}
	return all, length
}

// total adds up all steps.
func total(cells map[cell][4]int) map[cell][4]int {
	sums := map[cell][4]int{}
	for c, values := range cells {
		c.start, c.end = 0, 0
		sum := sums[c]
		for i, v := range values {
			sum[i] += v
		}
		sums[c] = sum
	}
	return sums
}

// seconds writes a time in ns as an argument.
func seconds(ns int) string { return fmt.Sprintf("%d.%09d", ns/1e9, ns%1e9) }

// TestTimelineFromSums compares the answers from sums with those from rows in the same steps. A window from rows
// leaves out its last ns, so the one that is compared is a step longer. The end of the run is in no such window: sums
// of the whole run are compared over all steps.
func TestTimelineFromSums(t *testing.T) {
	runs := map[int]queries.Run{27: generated(t, 27, 130000), 520: generated(t, 520, 140000)}
	for _, c := range []struct {
		query     string
		ranks     int
		arguments []string
		// what is asked of rows: the steps of the sums have 2^22 or more ns, and their blocks 1 rank or 64
		same []string
	}{
		{"timeline", 27, []string{"bins", "1000"}, nil},
		{"timeline", 27, []string{"bins", "9", "rows", "8"}, []string{"rows", "8"}},
		{"timeline", 27, []string{"bins", "20", "from-s", "0.05", "to-s", "0.12", "from-rank", "3", "to-rank", "20"},
			[]string{"from-rank", "3", "to-rank", "20"}},
		{"timeline", 27, []string{"bins", "3", "from-s", "0.03", "to-s", "0.12", "rows", "2"}, []string{"rows", "2"}},
		{"timeline-groups", 27, []string{"bins", "30", "by", "calls"}, []string{"by", "calls"}},
		{"timeline", 520, []string{"bins", "20", "rows", "100", "from-rank", "70", "to-rank", "300"},
			[]string{"from-rank", "64", "to-rank", "319", "rows", "4"}},
		{"timeline", 520, []string{"bins", "3", "from-s", "0.01", "to-s", "0.02", "from-rank", "128", "to-rank", "140"},
			[]string{"from-rank", "128", "to-rank", "191", "rows", "1"}},
	} {
		run := runs[c.ranks]
		what := fmt.Sprint(c.query, " of ", c.ranks, " ranks ", c.arguments)
		sums, length := cellsOf(t, ask(t, run, c.query, append(c.arguments, "read", "sums")...), 1<<62)
		if length == 0 || length&(length-1) != 0 {
			t.Fatalf("%s: steps of %d ns", what, length)
		}
		from, to := 1<<62, 0
		for s := range sums {
			from, to = min(from, s.start), max(to, s.end)
		}
		if from%length != 0 {
			t.Errorf("%s: a step of %d ns begins at %d ns", what, length, from)
		}
		given := append(c.same, "read", "rows", "lines", "0")
		var rows map[cell][4]int
		if to > int(run.Manifest.EndNs) {
			rows, _ = cellsOf(t, ask(t, run, c.query, given...), 1<<62)
			sums, rows = total(sums), total(rows)
		} else {
			rows, _ = cellsOf(t, ask(t, run, c.query, append(given, "from-s", seconds(from), "to-s", seconds(to+length-1), "bins",
				fmt.Sprint((to-from)/length+1))...), to)
		}
		if d := cmp.Diff(rows, sums, cmp.AllowUnexported(cell{})); d != "" || len(rows) == 0 {
			t.Errorf("%s: %d rows (-from rows +from sums):\n%.3000s", what, len(rows), d)
		}
	}
}

// TestOverTimeFromSums compares the answer from sums with the user's own SQL over rows in the same steps.
func TestOverTimeFromSums(t *testing.T) {
	for _, run := range []queries.Run{generated(t, 27, 130000), generated(t, 520, 140000)} {
		for _, bins := range []string{"5", "1000"} {
			answer := ask(t, run, "over-time", "bins", bins, "read", "sums")
			first := strings.Split(strings.SplitN(answer, "\n", 2)[0], ",")
			rows, err := open(t, run).Query(context.Background(), fmt.Sprintf(`
				WITH m AS (SELECT CAST(FLOOR(send_start_ns / %[1]s.0) AS INTEGER) AS bin, COUNT(*) AS messages, SUM(bytes) AS bytes FROM messages GROUP BY 1),
				c AS (SELECT CAST(FLOOR(at_ns / %[1]s.0) AS INTEGER) AS bin, COUNT(*) AS operations, SUM(bytes) AS bytes
				      FROM (SELECT MIN(start_ns) AS at_ns, SUM(send_bytes) AS bytes FROM events WHERE class = 'collective' GROUP BY comm, instance) AS o GROUP BY 1)
				SELECT b.bin, b.bin * %[1]s AS start_ns, (b.bin + 1) * %[1]s AS end_ns, COALESCE(m.messages, 0), COALESCE(m.bytes, 0),
				       COALESCE(c.operations, 0), COALESCE(c.bytes, 0)
				FROM (SELECT CAST(UNNEST(RANGE(%[2]d // %[1]s + 1)) AS INTEGER) AS bin) AS b LEFT JOIN m ON m.bin = b.bin LEFT JOIN c ON c.bin = b.bin
				ORDER BY b.bin`, first[2], run.Manifest.EndNs))
			same(t, fmt.Sprint(run.Manifest.Ranks, " ranks in ", bins, " steps"), answer, text(t, rows, err))
		}
	}
}

// TestGroupsFromBlocks cannot be: a block may have ranks of several groups.
func TestGroupsFromBlocks(t *testing.T) {
	db := open(t, generated(t, 520, 140000))
	_, err := db.Text(context.Background(), named(t, "timeline-groups"), map[string]string{"read": "sums"})
	const want = "query timeline-groups: --read sums: there are no sums for this: the run has sums for blocks of ranks, not for each; leave it out, or take rows"
	if err == nil || err.Error() != want {
		t.Errorf("error %v; want %s", err, want)
	}
}

// Sums without the collective operations that the run has, which an older commq made, do not say that there were none.
func TestOverTimeOfSumsWithoutOperations(t *testing.T) {
	run := generated(t, 64, 530_000)
	reads := func() string {
		t.Helper()
		text, err := open(t, run).Text(t.Context(), named(t, "over-time"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text, "FROM events") {
			return "rows"
		}
		return "sums"
	}
	if got := reads(); got != "sums" {
		t.Errorf("read: %s; want sums", got)
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	files, err := filepath.Glob(filepath.Join(run.Dir, "activity", "*.parquet"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	older := files[0] + ".older"
	if _, err := db.Exec(fmt.Sprintf("COPY (SELECT * FROM read_parquet('%s') WHERE class <> 'operations') TO '%s' (FORMAT parquet)",
		files[0], older)); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(older)
	if err := errors.Join(err, os.Rename(older, files[0])); err != nil {
		t.Fatal(err)
	}
	for i := range run.Manifest.Tables {
		if table := &run.Manifest.Tables[i]; table.Name == "activity" {
			f := &table.Files[0]
			f.Bytes, f.Sum, f.FooterSum, f.HeadersSum = info.Size(), "", "", "" // an older run has no hashes of files
		}
	}
	run.Manifest.Digest = schematest.DigestOf(run.Manifest)
	if got := reads(); got != "rows" {
		t.Errorf("read without operations: %s; want rows", got)
	}
	const want = `query over-time: --read sums: there are no sums for this: the sums of run "made" lack collective operations; where an ` +
		"older commq made them, commq runs profile makes them again; leave it out, or take rows"
	_, err = open(t, run).Text(t.Context(), named(t, "over-time"), map[string]string{"read": "sums"})
	if fmt.Sprint(err) != want {
		t.Errorf("error %v; want %s", err, want)
	}
}

// TestRead says what is read where no one says it, and what sums cannot answer.
func TestRead(t *testing.T) {
	small, made := generated(t, 8, 1000), generated(t, 64, 530_000)
	silent, without := made, *made.Manifest // as if all its calls were collective
	without.Counts.Messages, silent.Manifest = 0, &without
	without.Digest = schematest.DigestOf(&without)
	for _, c := range []struct {
		run  queries.Run
		args map[string]string
		want string // what is read, or the error
	}{
		{small, nil, "rows"},
		{made, nil, "sums"},
		{silent, nil, "sums"},
		{silent, map[string]string{"lines": "0"}, "sums"},
		{made, map[string]string{"read": "rows"}, "rows"},
		{made, map[string]string{"where": "bytes > 8"}, "rows"},
		{made, map[string]string{"to-rank": "31"}, "rows"},
		{made, map[string]string{"from-s": "0.1"}, "rows"},
		{made, map[string]string{"from-s": "0.1", "lines": "0", "bins": "9"}, "sums"},
		{made, map[string]string{"from-s": "0.1", "lines": "1", "bins": "9"}, "rows"},
		{made, map[string]string{"from-s": "0.1", "lines": "0", "bins": "5000"}, "rows"}, // sums have longer steps
		{made, map[string]string{"from-s": "0.1", "to-s": "0.12", "lines": "0", "bins": "1"}, "rows"},
		{small, map[string]string{"read": "sums"}, `query timeline: --read sums: there are no sums for this: run "made" has no sums over time; runs with few calls need none, and ` +
			"commq runs profile makes those of an older run; leave it out, or take rows"},
		{made, map[string]string{"read": "sums", "where": "bytes > 8"}, "query timeline: --read sums: there are no sums for this: --where needs rows; leave it out, or take rows"},
	} {
		text, err := open(t, c.run).Text(context.Background(), named(t, "timeline"), c.args)
		got := "sums"
		switch {
		case err != nil:
			got = err.Error()
		case strings.Contains(text, "FROM events\n"):
			got = "rows"
		}
		if got != c.want {
			t.Errorf("%v of %d ranks: read %s; want %s", c.args, c.run.Manifest.Ranks, got, c.want)
		}
	}
}
