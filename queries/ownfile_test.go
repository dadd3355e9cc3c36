package queries_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
)

// saved makes a file of SQL that a run has answered, reads it as a user's own, and returns its text and its answer.
func saved(t *testing.T, run queries.Run, a queries.Answered) (text string, rows [][]any) {
	t.Helper()
	db, ctx := open(t, run), context.Background()
	answer, err := db.Query(ctx, a.SQL)
	if err != nil {
		t.Fatal(err)
	}
	a.Columns = answer.Columns()
	answer.Close()
	if text, _, err = queries.OwnFile(a); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, a.Name+".sql"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	own, unusable := queries.Own(dir, nil)
	if len(own) != 1 || len(unusable) > 0 {
		t.Fatalf("%v\n%s", unusable, text)
	}
	again, err := db.Ask(ctx, own[0], nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for again.Next() {
		rows = append(rows, append([]any(nil), again.Row()...))
	}
	if err := again.Err(); err != nil {
		t.Fatal(err)
	}
	again.Close()
	return text, rows
}

func TestOwnFile(t *testing.T) {
	run := newRun(t, "pp.5", world+pingpong, example.Manifest(5))
	text, rows := saved(t, run, queries.Answered{Name: "heaviest", Summary: "Who sends most.\n-- needs: events", Chart: "bars", X: "src", Y: "bytes",
		SQL: "SELECT src, CAST(SUM(bytes) AS BIGINT) AS bytes FROM messages GROUP BY src ORDER BY bytes DESC; \n"})
	want := `-- summary: Who sends most. -- needs: events
-- source: kept from commq ui
-- needs: messages
-- column src INTEGER -: World rank that sent it.
-- column bytes BIGINT bytes: Payload bytes.
-- order: that of the SELECT
-- cost: what the SELECT reads
-- plot: bars src bytes
SELECT src, CAST(SUM(bytes) AS BIGINT) AS bytes FROM messages GROUP BY src ORDER BY bytes DESC
`
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]any{{int32(3), int64(9194)}, {int32(1), int64(17)}}, rows); diff != "" {
		t.Error(diff)
	}
	// Names and types that a header cannot have, a comment where the header would go on, and an order.
	text, rows = saved(t, run, queries.Answered{Name: "odd", Summary: "Odd.", Chart: "points", X: "SRC", Y: "sent bytes", SQL: `-- cost: none
		SELECT count(*), sum(bytes) AS "sent bytes", src AS "9", [src] AS src, src::UTINYINT AS "SRC", 1.5 AS half
		FROM messages GROUP BY src ORDER BY src DESC`})
	if want := [][]any{{int64(4), int64(9194), int32(3), "[3]", int32(3), 1.5},
		{int64(1), int64(17), int32(1), "[1]", int32(1), 1.5}}; !cmp.Equal(want, rows) {
		t.Errorf("%v\n%s", rows, text)
	}
	for _, c := range []string{"column count_star BIGINT 1:", "column sent_bytes BIGINT bytes:", "column column_3 INTEGER 1:",
		"column src VARCHAR -:", "column src_5 INTEGER 1:", "column half DOUBLE 1:",
		"plot: points src_5 sent_bytes\n"} {
		if !strings.Contains(text, c) {
			t.Errorf("no %s in\n%s", c, text)
		}
	}
	if text, _ := saved(t, run, queries.Answered{Name: "when", Summary: "When.",
		SQL: "SELECT max(send_start_ns) AS last_ns FROM messages"}); !strings.Contains(text, "-- needs: messages, times\n") {
		t.Error(text)
	}
}

func TestOwnFileMistakes(t *testing.T) {
	one := []queries.Column{{Name: "x", Type: "INTEGER", Unit: "1"}}
	for want, a := range map[string]queries.Answered{
		`name "Two words"`:       {Name: "Two words", Summary: "x", SQL: "SELECT 1 AS x", Columns: one},
		"what the query answers": {Name: "x", Summary: " \n", SQL: "SELECT 1 AS x", Columns: one},
		"semicolon":              {Name: "x", Summary: "x", SQL: "SELECT 1 AS x; SELECT 2 AS x", Columns: one},
		"{{tag}}":                {Name: "x", Summary: "x", SQL: "SELECT '{{tag}}' AS x", Columns: one},
		"want bars, lines":       {Name: "x", Summary: "x", SQL: "SELECT 1 AS x", Columns: one, Chart: "pie", X: "x", Y: "x"},
		`of "y" over`:            {Name: "x", Summary: "x", SQL: "SELECT 1 AS x", Columns: one, Chart: "bars", X: "x", Y: "y"},
	} {
		if _, _, err := queries.OwnFile(a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
