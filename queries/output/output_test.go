package output_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/duckdb/duckdb-go/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
)

// someRows are rows in memory.
type someRows struct {
	columns []queries.Column
	rows    [][]any
	at      int
	err     error
}

func (r *someRows) Columns() []queries.Column { return r.columns }
func (r *someRows) Row() []any                { return r.rows[r.at-1] }
func (r *someRows) Err() error                { return r.err }
func (r *someRows) Close() error              { return nil }
func (r *someRows) Next() bool {
	r.at++
	return r.at <= len(r.rows)
}

func traffic() *someRows {
	return &someRows{
		columns: []queries.Column{{Name: "src", Type: "INTEGER", Doc: "Sender."}, {Name: "call", Type: "VARCHAR"},
			{Name: "bytes", Type: "BIGINT", Unit: "bytes"}},
		rows: [][]any{
			{int32(3), "MPI_Send", int64(4097)},
			{int32(17), nil, int64(9007199254740993)}, // 2^53 + 1: a float would lose the last digit
			{nil, "a,\"b\"\n|c", nil},
		},
	}
}

func write(t *testing.T, format string, rows queries.Rows) string {
	t.Helper()
	var b bytes.Buffer
	if err := output.Write(&b, format, rows); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextFormats(t *testing.T) {
	for format, want := range map[string]string{
		"csv": `
src,call,bytes
3,MPI_Send,4097
17,,9007199254740993
,"a,""b""
|c",
`,
		"json": `
[
{"src":3,"call":"MPI_Send","bytes":4097},
{"src":17,"call":null,"bytes":9007199254740993},
{"src":null,"call":"a,\"b\"\n|c","bytes":null}
]
`,
		"jsonl": `
{"src":3,"call":"MPI_Send","bytes":4097}
{"src":17,"call":null,"bytes":9007199254740993}
{"src":null,"call":"a,\"b\"\n|c","bytes":null}
`,
	} {
		got := write(t, format, traffic())
		if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
	table := strings.Join([]string{
		`src  call         bytes`,
		`  3  MPI_Send   4,097 B`,
		` 17             9.01 PB`,
		`     a,"b"\n|c`}, "\n") + "\n"
	if diff := cmp.Diff(table, write(t, "table", traffic())); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	markdown := strings.Join([]string{
		`| src | call        |            bytes |`,
		`|----:|-------------|-----------------:|`,
		`|   3 | MPI\_Send   |             4097 |`,
		`|  17 |             | 9007199254740993 |`,
		`|     | a,"b"\\n\|c |                  |`}, "\n") + "\n"
	if diff := cmp.Diff(markdown, write(t, "markdown", traffic())); diff != "" {
		t.Errorf("markdown (-want +got):\n%s", diff)
	}
}

// TestTableIsForPeople: units where names lack them, digits in groups but of what names something, few digits of
// fractions, no blanks at the ends of lines.
func TestTableIsForPeople(t *testing.T) {
	big, _ := new(big.Int).SetString("-170141183460469231731", 10)
	rows := &someRows{columns: []queries.Column{{Name: "rank", Type: "INTEGER"},
		{Name: "ranks", Type: "INTEGER", Unit: "1"},
		{Name: "at_most", Type: "BIGINT", Unit: "bytes"}, {Name: "bytes_per_s", Type: "BIGINT", Unit: "bytes/s"},
		{Name: "share", Type: "DOUBLE", Unit: "1"},
		{Name: "sum", Type: "HUGEINT", Unit: "1"}, {Name: "price", Type: "DECIMAL(9,2)", Unit: "1"},
		{Name: "call", Type: "VARCHAR"}},
		rows: [][]any{
			{int32(1234), int32(1234), int64(65536), int64(999), 0.123456789, big,
				duckdb.Decimal{Width: 9, Scale: 2, Value: bigInt(-123450)}, "MPI_Send"},
			{int32(3), int32(9), nil, int64(1000), 0.00054, nil, nil, nil}}}
	want := strings.Join([]string{
		`rank  ranks  at most (B)   kB/s  share (%)                           sum      price  call`,
		`1234  1,234       65,536  0.999     12.3    -170,141,183,460,469,231,731  -1,234.50  MPI_Send`,
		`   3      9               1          0.054`}, "\n") + "\n"
	if diff := cmp.Diff(want, write(t, "table", rows)); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	rows.at = 0
	csv := "rank,ranks,at_most,bytes_per_s,share,sum,price,call\n1234,1234,65536,999,0.123456789,-170141183460469231731,-1234.50,MPI_Send\n3,9,,1000,0.00054,,,\n"
	if diff := cmp.Diff(csv, write(t, "csv", rows)); diff != "" {
		t.Errorf("csv (-want +got):\n%s", diff)
	}
}

func bigInt(n int64) *big.Int { return big.NewInt(n) }

func TestNoRows(t *testing.T) {
	for format, want := range map[string]string{
		"csv": "src,call,bytes\n", "json": "[]\n", "jsonl": "", "table": "src  call  bytes\n",
		"markdown": "| src | call | bytes |\n|----:|------|------:|\n",
	} {
		rows := traffic()
		rows.rows = nil
		if got := write(t, format, rows); got != want {
			t.Errorf("%s of no rows: %q; want %q", format, got, want)
		}
	}
}

// TestJSONOfOddNumbers: what JSON cannot say is null, and the text is always valid.
func TestJSONOfOddNumbers(t *testing.T) {
	rows := &someRows{columns: []queries.Column{{Name: "x", Type: "DOUBLE"}, {Name: "n", Type: "HUGEINT"},
		{Name: "l", Type: "BIGINT[]"}},
		rows: [][]any{{math.NaN(), big.NewInt(7), []any{int64(3), nil}}, {math.Inf(-1), nil, nil},
			{1e300, big.NewInt(-9), nil}}}
	got := write(t, "json", rows)
	want := "[\n{\"x\":null,\"n\":7,\"l\":[3,null]},\n{\"x\":null,\"n\":null,\"l\":null},\n{\"x\":1e+300,\"n\":-9,\"l\":null}\n]\n"
	if got != want || !json.Valid([]byte(got)) {
		t.Errorf("got %s; want %s", got, want)
	}
}

// TestBinaryFormatsComeBack writes every type, with nulls and more rows than a batch, and reads it with another reader.
func TestBinaryFormatsComeBack(t *testing.T) {
	columns := []queries.Column{{Name: "i", Type: "INTEGER"},
		{Name: "n", Type: "BIGINT", Unit: "bytes", Doc: "Payload."}, {Name: "s", Type: "VARCHAR"},
		{Name: "f", Type: "DOUBLE"}, {Name: "b", Type: "BOOLEAN"}, {Name: "h", Type: "HUGEINT"},
		{Name: "d", Type: "DECIMAL(5,2)"}, {Name: "t", Type: "DATE"}}
	huge, _ := new(big.Int).SetString("-170141183460469231731", 10)
	const n = 70000
	rows := &someRows{columns: columns}
	for i := range n {
		row := []any{int32(i), int64(i) << 33, "rank", float64(i) / 4, i%3 == 0, huge,
			duckdb.Decimal{Width: 5, Scale: 2, Value: big.NewInt(-1234)},
			time.Date(2020, 3, 5, 0, 0, 0, 0, time.UTC)}
		if i%5 == 4 {
			row = make([]any, len(columns))
		}
		rows.rows = append(rows.rows, row)
	}
	file := filepath.Join(t.TempDir(), "x.parquet")
	if err := os.WriteFile(file, []byte(write(t, "parquet", rows)), 0o600); err != nil {
		t.Fatal(err)
	}
	// 0 + ... + 69999 = 2449965000 less the 14000 rows 4, 9, ..., 69999, which are null: 14000 x 35001.5 = 490021000.
	want := "70000,56000,1959944000,-170141183460469231731,-12.34,2020-03-05,18667,VARCHAR"
	if got := duck(t, `SELECT concat_ws(',', count(*), count(i), sum(i), min(h), max(d), max(t), count(*) FILTER (WHERE b), max(typeof(s)))
		FROM read_parquet('`+file+`')`); got != want {
		t.Errorf("Parquet reads %s; want %s", got, want)
	}
	rows.at = 0
	r, err := ipc.NewReader(strings.NewReader(write(t, "arrow", rows)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Release()
	seen, nulls := int64(0), 0
	for r.Next() {
		seen += r.RecordBatch().NumRows()
		nulls += r.RecordBatch().Column(5).NullN()
	}
	if r.Err() != nil || seen != n || nulls != n/5 {
		t.Errorf("Arrow has %d rows, %d null, %v", seen, nulls, r.Err())
	}
	if doc, _ := r.Schema().Field(1).Metadata.GetValue("description"); doc != "Payload." {
		t.Errorf("description %q", doc)
	}
}

// duck asks a DuckDB of its own for one text.
func duck(t *testing.T, query string) string {
	t.Helper()
	db := openDuck(t)
	var s string
	if err := db.QueryRow(query).Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestEngineTypes writes what the engine gives for types of its own in every format.
func TestEngineTypes(t *testing.T) {
	rows := engineRows(t, `SELECT 1::UTINYINT AS u, 18446744073709551615::UBIGINT AS ub, 1.50 AS dec, [1, 2] AS list, {'a': 3} AS struct, MAP {9: 'x'} AS map,
		TIMESTAMP '2020-03-05 07:09:11.5' AS ts, TIME '07:09:11' AS tm, DATE '2020-03-05' AS dt, INTERVAL 3 MONTH AS iv, 'x'::BLOB AS bl,
		'9c5b94b1-35ad-49bb-b118-8e8fc24abf80'::UUID AS id, 3::FLOAT AS fl, -7::TINYINT AS ti, NULL AS nothing, 'b'::ENUM('a', 'b') AS en`)
	want := "1,18446744073709551615,1.50,\"[1,2]\",\"{\"\"a\"\":3}\",\"{\"\"9\"\":\"\"x\"\"}\",2020-03-05 07:09:11.5,07:09:11,2020-03-05,"
	got := write(t, "csv", queries.Again(rows))
	_, body, _ := strings.Cut(got, "\n")
	if !strings.HasPrefix(body, want) || !strings.HasSuffix(body,
		",3 months 0 days 0 us,78,9c5b94b1-35ad-49bb-b118-8e8fc24abf80,3,-7,,b\n") {
		t.Errorf("csv %s; want it to begin with %s", body, want)
	}
	for _, format := range output.Formats() {
		if write(t, format, queries.Again(rows)) == "" {
			t.Errorf("%s is empty", format)
		}
	}
	if text := write(t, "json", queries.Again(rows)); !json.Valid([]byte(text)) {
		t.Errorf("not JSON: %s", text)
	} else if !strings.Contains(text, `"struct":{"a":3},"map":{"9":"x"}`) {
		t.Errorf("a struct and a map in JSON: %s", text)
	}
}

func TestErrorsPassThrough(t *testing.T) {
	full := errors.New("disk full")
	broken := errors.New("rows broke")
	for _, format := range output.Formats() {
		many := traffic()
		for range 20000 {
			many.rows = append(many.rows, many.rows[0])
		}
		if err := output.Write(failing{full}, format, many); !errors.Is(err, full) {
			t.Errorf("%s to a full disk: %v", format, err)
		}
		bad := traffic()
		bad.err = broken
		if err := output.Write(io.Discard, format, bad); !errors.Is(err, broken) {
			t.Errorf("%s of broken rows: %v", format, err)
		}
	}
	if err := output.Write(io.Discard, "xml", traffic()); err == nil ||
		!strings.Contains(err.Error(), "want one of table, csv") {
		t.Errorf("xml: %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		n, rows int
		more    bool
	}{{0, 3, false}, {2, 2, true}, {3, 3, false}, {7, 3, false}} {
		l := output.Limit(traffic(), c.n)
		got := strings.Count(write(t, "jsonl", l), "\"src\"")
		if got != c.rows || l.More() != c.more {
			t.Errorf("limit %d: %d rows, more %v; want %d, %v", c.n, got, l.More(), c.rows, c.more)
		}
	}
}

func TestByName(t *testing.T) {
	for file, want := range map[string]string{"a.csv": "csv", "b.PARQUET": "parquet", "c.md": "markdown",
		"d.ndjson": "jsonl", "e.png": "", "f": "", "g.txt": "table"} {
		if got := output.ByName(file); got != want {
			t.Errorf("%s: %q; want %q", file, got, want)
		}
	}
}
