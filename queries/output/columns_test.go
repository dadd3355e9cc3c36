package output_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/writer"
)

// arrowOf asks SQL, writes the first limit rows (0: all) as an Arrow stream and returns what is in that; columns says
// whether the engine's rows could be read by columns.
func arrowOf(t *testing.T, run queries.Run, byColumn bool, text string, limit int) (values [][]string, columns bool) {
	t.Helper()
	ctx := context.Background()
	db, err := queries.Open(ctx, []queries.Run{run}, queries.Options{ByColumn: byColumn})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns = queries.Batches(rows) != nil
	var b bytes.Buffer
	if err := output.Write(&b, "arrow", output.Limit(rows, limit)); err != nil {
		t.Fatal(err)
	}
	stream, err := ipc.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Release()
	for stream.Next() {
		batch := stream.RecordBatch()
		for row := range int(batch.NumRows()) {
			var texts []string
			for _, c := range batch.Columns() {
				texts = append(texts, c.ValueStr(row))
			}
			values = append(values, texts)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return values, columns
}

// Answers by columns have the same rows as those row by row, whatever the types, nulls and lengths. If this fails with
// a new version of duckdb-go because rows are no longer read by columns, see resultOf in package queries.
func TestColumnsHaveTheValuesOfRows(t *testing.T) {
	dir, err := example.Write(t.TempDir(), "empty.1", "", example.Manifest(1))
	if err != nil {
		t.Fatal(err)
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	run := queries.Run{Name: "empty.1", Dir: dir, Manifest: m}
	for _, c := range []struct {
		name, text string
		limit      int
		byColumn   bool
		want       [][]string // nil: those of the rows
	}{
		{"every type", `SELECT 7::INTEGER AS i, 9007199254740993 AS b, 0.5::DOUBLE AS d, true AS t, 'MPI_Send' AS s
			UNION ALL SELECT NULL, NULL, NULL, NULL, NULL
			UNION ALL SELECT -7, -9007199254740993, -0.5, false, 'a text of more than twelve bytes: größer'`, 0, true,
			[][]string{{"7", "9007199254740993", "0.5", "true", "MPI_Send"},
				{"(null)", "(null)", "(null)", "(null)", "(null)"},
				{"-7", "-9007199254740993", "-0.5", "false", "a text of more than twelve bytes: größer"}}},
		{"texts about as long as stand in the engine's own", `SELECT repeat('x', i::INTEGER) AS s FROM range(11, 14) t(i)`,
			0, true, [][]string{{"xxxxxxxxxxx"}, {"xxxxxxxxxxxx"}, {"xxxxxxxxxxxxx"}}},
		{"no rows", `SELECT 1::INTEGER AS i WHERE false`, 0, true, nil},
		{"more rows than a batch, some null", `SELECT i AS n, CASE WHEN i % 3 = 0 THEN NULL ELSE 'row ' || i * 1000000 END AS s,
			CASE WHEN i % 70 > 64 THEN i::DOUBLE / 3 END AS d, i % 7 = 0 AS t FROM range(150001) r(i)`, 0, true, nil},
		{"some of the rows", `SELECT i AS n FROM range(5000) r(i)`, 4097, true, nil},
		{"a type that only rows have", `SELECT i AS n, i::HUGEINT AS h FROM range(5) r(i)`, 0, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			want, columns := arrowOf(t, run, false, c.text, c.limit)
			if columns {
				t.Error("an engine without ByColumn answers by columns")
			}
			got, columns := arrowOf(t, run, true, c.text, c.limit)
			if columns != c.byColumn {
				t.Errorf("answers by columns: %v, want %v", columns, c.byColumn)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("rows (-) and columns (+) differ:\n%s", diff)
			}
			if c.want != nil && !cmp.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
