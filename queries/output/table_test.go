package output_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/writer"
)

func text(t *testing.T, rows queries.Rows, how output.Text) string {
	t.Helper()
	var b bytes.Buffer
	if err := output.WriteText(&b, rows, how); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func lines(all ...string) string { return strings.Join(all, "\n") + "\n" }

// same compares a table with the one wanted.
func same(t *testing.T, want, got string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

var nanoseconds = []queries.Column{{Name: "call", Type: "VARCHAR"}, {Name: "time_ns", Type: "BIGINT", Unit: "ns"},
	{Name: "max_ns", Type: "BIGINT", Unit: "ns"}, {Name: "mpi_fraction", Type: "DOUBLE", Unit: "1", Share: true}}

// TestUnitsOfColumns: columns of times share a unit if that fits all, else each has one, else each value.
func TestUnitsOfColumns(t *testing.T) {
	near := &someRows{columns: nanoseconds, rows: [][]any{{"MPI_Send", int64(2_200_712_249), int64(68_995_315), 0.3857},
		{"MPI_Wait", int64(27_800_000), int64(0), 5.4e-05}}}
	same(t, lines(
		`call      time (s)  max (s)  mpi fraction (%)`,
		`MPI_Send    2.20     0.0690            38.6`,
		`MPI_Wait    0.0278   0                  0.005`), text(t, near, output.Text{}))
	columnwise := &someRows{columns: nanoseconds, rows: [][]any{{"MPI_Send", int64(2_200_712_249), int64(999), 0.5},
		{"MPI_Wait", int64(1_200_000_000), int64(57), 1.0}}}
	same(t, lines(
		`call      time (s)  max (ns)  mpi fraction (%)`,
		`MPI_Send      2.20       999                50`,
		`MPI_Wait      1.2         57               100`), text(t, columnwise, output.Text{}))
	cellwise := &someRows{columns: nanoseconds[:3], rows: [][]any{{"MPI_Send", int64(2_200_712_249), int64(999)},
		{"MPI_Wait", int64(54), int64(54)}, {"MPI_Test", nil, int64(0)}}}
	same(t, lines(
		`call        time  max (ns)`,
		`MPI_Send  2.20 s       999`,
		`MPI_Wait   54 ns        54`,
		`MPI_Test                 0`), text(t, cellwise, output.Text{}))
}

// TestExact: --exact prints what programs get, aligned, with the columns that are empty.
func TestExact(t *testing.T) {
	rows := &someRows{columns: nanoseconds, rows: [][]any{{"MPI_Send", int64(2_200_712_249), nil, 5.4e-05}}}
	same(t, lines(
		`call         time_ns  max_ns  mpi_fraction`,
		`MPI_Send  2200712249               5.4e-05`), text(t, rows, output.Text{Exact: true, Width: 30}))
}

// TestUnitsByName: a number of the user's own SQL has the unit that its name ends in.
func TestUnitsByName(t *testing.T) {
	rows := engineRows(t, `SELECT 1263456::BIGINT AS wait_ns, 195150756::HUGEINT AS sent_bytes, 0.38 AS a_share,
		3e9::DOUBLE AS bytes_per_s, 3.5::DOUBLE AS big_fraction, 1234567 AS n, 7 AS rank, 'x' AS name_bytes, 0.5::DOUBLE AS time_share`)
	same(t, lines(
		`wait (ms)  sent (MB)  a share  GB/s  big fraction          n  rank  name bytes  time share (%)`,
		`     1.26        195     0.38     3           3.5  1,234,567     7  x                       50`),
		text(t, rows, output.Text{}))
}

// TestEmptyColumns: a column without values is left out, unless there are no values at all.
func TestEmptyColumns(t *testing.T) {
	rows := engineRows(t, "SELECT 1 AS a, NULL AS b, 3 AS c UNION ALL SELECT 1, NULL, NULL")
	same(t, lines("  a    c", "  1    3", "  1"), text(t, queries.Again(rows), output.Text{}))
	same(t, lines("  a    b"), text(t, engineRows(t, "SELECT 1 AS a, 2 AS b WHERE false"), output.Text{}))
	same(t, lines("  a    b", "", ""), text(t, engineRows(t, "SELECT NULL AS a, NULL AS b UNION ALL SELECT NULL, NULL"),
		output.Text{}))
}

// wide is a table that needs 80 characters.
func wide() *someRows {
	return &someRows{columns: []queries.Column{{Name: "rank", Type: "INTEGER"}, {Name: "file", Type: "VARCHAR"},
		{Name: "point_to_point_messages", Type: "BIGINT", Unit: "1"}, {Name: "time_ns", Type: "BIGINT", Unit: "ns"}},
		rows: [][]any{{int32(0), "/home/someone/project/source/solver.f90:877", int64(1), int64(2000)},
			{int32(1), "main.c", int64(1234567), int64(5)}}}
}

// TestWidth: a table gets narrower by headers in several lines, then by shorter texts, then by parts.
func TestWidth(t *testing.T) {
	same(t, lines(
		`rank  file                                         point to point messages  time`,
		`   0  /home/someone/project/source/solver.f90:877                        1  2 us`,
		`   1  main.c                                                     1,234,567  5 ns`), text(t, wide(), output.Text{}))
	same(t, lines(
		`                                                    point to`,
		`                                                       point`,
		`rank  file                                          messages  time`,
		`   0  /home/someone/project/source/solver.f90:877          1  2 us`,
		`   1  main.c                                       1,234,567  5 ns`), text(t, wide(), output.Text{Width: 70}))
	same(t, lines(
		`                                point to`,
		`                                   point`,
		`rank  file                      messages  time`,
		`   0  /home…ce/solver.f90:877          1  2 us`,
		`   1  main.c                   1,234,567  5 ns`), text(t, wide(), output.Text{Width: 46}))
	same(t, lines(
		`rank  file`,
		`   0  /ho…er.f90:877`,
		`   1  main.c`,
		``,
		`      point to point`,
		`rank        messages`,
		`   0               1`,
		`   1       1,234,567`,
		``,
		`rank  time`,
		`   0  2 us`,
		`   1  5 ns`), text(t, wide(), output.Text{Width: 20}))
}

// TestQueriesFitTheTerminal asks all queries about captured runs: no line is longer than the terminal is wide, no
// number has an exponent as programs write it, and every number is in all widths the same.
func TestQueriesFitTheTerminal(t *testing.T) {
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, name := range []string{"cg.A.4", "mg.W.16", "bt-io.S.4"} {
		dir := filepath.Join("..", "..", "testdata", "runs", name)
		m, err := writer.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		run := queries.Run{Name: name, Dir: dir, Manifest: m}
		db, err := queries.Open(context.Background(), []queries.Run{run}, queries.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, q := range all {
			rows, err := db.Ask(context.Background(), q, nil)
			if err != nil {
				continue // the run lacks what the query needs
			}
			kept, err := queries.Keep(output.Limit(rows, 50))
			if err := rows.Close(); err != nil {
				t.Fatal(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			asked++
			for _, width := range []int{80, 100, 200} {
				checkFits(t, q.Name+" of "+name, text(t, queries.Again(kept), output.Text{Width: width}), width)
			}
		}
	}
	if asked < 60 {
		t.Errorf("only %d answers", asked)
	}
}

func checkFits(t *testing.T, what, table string, width int) {
	t.Helper()
	for _, line := range strings.Split(table, "\n") {
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%s, %d wide: %d characters in %q", what, width, n, line)
		}
		if strings.Contains(line, "e-0") || strings.Contains(line, "e+") || strings.HasSuffix(line, " ") {
			t.Errorf("%s: %q", what, line)
		}
	}
}
