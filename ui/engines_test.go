package ui

import (
	"context"
	"errors"
	"testing"

	"github.com/duckdb/duckdb-go/v2"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
)

// TestABrokenEngineIsReplaced: a question that breaks the engine is asked once more, of a new one; another mistake is
// not asked again.
func TestABrokenEngineIsReplaced(t *testing.T) {
	found, err := run.Find("../testdata/runs", "cg.A.4")
	if err != nil {
		t.Fatal(err)
	}
	var e engines
	defer func() {
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}()
	runs := engineRuns([]run.Found{found})
	broken := &duckdb.Error{Type: duckdb.ErrorTypeInternal, Msg: "INTERNAL Error: index 0 within vector of size 0"}
	for name, c := range map[string]struct {
		first error
		asked int
	}{
		"broken":    {broken, 2},
		"a mistake": {errors.New("there is no column x"), 1},
	} {
		var dbs []*queries.DB
		err := e.with(context.Background(), runs, func(db *queries.DB) error {
			dbs = append(dbs, db)
			if len(dbs) == 1 {
				return c.first
			}
			rows, err := db.Query(context.Background(), "SELECT COUNT(*) AS n FROM messages")
			if err != nil {
				return err
			}
			return rows.Close()
		})
		if len(dbs) != c.asked || c.asked == 2 && (err != nil || dbs[0] == dbs[1]) || c.asked == 1 && err != c.first {
			t.Errorf("%s: asked %d engines: %v", name, len(dbs), err)
		}
	}
}
