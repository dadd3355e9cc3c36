package queries

import (
	"context"
	"testing"

	"github.com/duckdb/duckdb-go/v2"
)

func TestClosed(t *testing.T) {
	for cond, ok := range map[string]bool{
		"tag = 9":                           true,
		"(tag = 9) OR (src IN (1, 3))":      true,
		"name = 'it''s )' AND \"a)\" = 3":   true,
		"name = e'it\\'s )'":                true,
		"name = E'\\\\' AND (x)":            true,
		"DATE '2020-03-05' < DATE'x'":       true,
		"tag = 9 -- ) a remark":             true,
		"tag = 9 -- (\nAND src = 3":         true,
		"tag = 9)":                          false,
		")(":                                false,
		"(tag = 9":                          false,
		"tag = 'x":                          false,
		"tag = \"x":                         false,
		"tag = e'x\\'":                      false,
		"tag = 9;":                          false,
		"tag = 9 /* ( */":                   false,
		"tag = $1":                          false,
		"1$$'$$) OR true":                   false,
		" \n\t":                             false,
		"tag = 9 \x00":                      false,
		"name = ';' AND name <> '--' AND x": true,
	} {
		if err := closed(cond); (err == nil) != ok {
			t.Errorf("closed(%q) = %v; want ok %v", cond, err, ok)
		}
	}
}

// FuzzCondition searches for a condition that passes the check and yet leaves its parentheses. Such a condition would
// change the number of columns of the answer, the number of statements, or let rows through although FALSE is added.
func FuzzCondition(f *testing.F) {
	for _, s := range []string{"tag = 9", "a) OR (b", "e'\\') OR TRUE --'", "1) UNION SELECT (2", "$$)$$", "/*", "'",
		"x -- )\n",
		"1e'\\') --'", "U&'\\0029'", "DATE'1')", "TRUE) OR (TRUE"} {
		f.Add(s)
	}
	db, err := connect(context.Background(), nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { db.Close() })
	if err := exec(context.Background(), db.conn, "CREATE TABLE messages AS SELECT 3 AS src, 9 AS tag"); err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{"SET enable_external_access = false", "SET lock_configuration = true"} {
		if err := exec(context.Background(), db.conn, s); err != nil {
			f.Fatal(err)
		}
	}
	p := Param{Name: "where", Kind: "condition"}
	f.Fuzz(func(t *testing.T, cond string) {
		text, err := p.literal(cond)
		if err != nil || len(cond) > 200 {
			return
		}
		prepared := db.prepare(context.Background(), "SELECT 1 FROM messages WHERE "+text,
			func(s *duckdb.Stmt) error { return nil })
		if prepared != nil {
			return
		}
		err = db.prepare(context.Background(), "SELECT src, tag FROM messages WHERE FALSE AND "+text+" AND FALSE",
			func(s *duckdb.Stmt) error {
				typ, err1 := s.StatementType()
				columns, err2 := s.ColumnCount()
				if err1 != nil || err2 != nil || typ != duckdb.STATEMENT_TYPE_SELECT || columns != 2 {
					t.Errorf("%q makes another statement", cond)
				}
				return nil
			})
		if err != nil {
			t.Errorf("%q holds alone and not between others: %v", cond, err)
		}
	})
}
