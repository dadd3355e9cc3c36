package queries

import (
	"slices"
	"testing"

	"github.com/commq/commq/schema"
)

// TestNamesOfTables finds the tables in SQL: all that can be meant in the user's, the ones that are read in commq's
// own.
func TestNamesOfTables(t *testing.T) {
	for text, want := range map[string][]string{
		`SELECT 1 FROM "Messages", (TABLE ranks) r`: {"messages", "ranks"},
		"SHOW TABLES":                     {"channels", "events", "runs"},
		"FROM query('FROM eve' || 'nts')": {"events"},
		"SELECT * FROM duckdb_columns()":  {"events"},
		"SELECT bytes FROM messages_of WHERE rank IN (SELECT rank FROM comms)": {"comms"},
	} {
		names := textNames(text)
		for _, name := range want {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %s is not among its names", text, name)
			}
		}
	}
	if names := textNames("SELECT bytes FROM messages_of"); slices.Contains(names, "messages") {
		t.Error("messages_of is not messages")
	}
	names := cannedNames("SELECT SUM(messages) FROM channels c JOIN ranks r ON r.rank = c.src")
	if !slices.Equal(names, []string{"channels", "ranks"}) {
		t.Errorf("channels and ranks are read, found %q", names)
	}
}

// TestUnless leaves tables out by the values of parameters.
func TestUnless(t *testing.T) {
	text := "-- summary: S.\n-- source: S\n-- needs: messages\n-- param where condition messages = TRUE: W.\n" +
		"-- param kind choice a|b = a: K.\n-- column n BIGINT 1: N.\n-- order: n\n-- cost: C\n" +
		"SELECT 1 AS n FROM {{messages unless default where}} JOIN {{events unless kind b}} e ON {{where}} " +
		"JOIN {{parts unless other none}} ON {{kind}} = 'a'"
	q, err := parse("test", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args map[string]string
		want []string
	}{
		{nil, []string{"events", "parts"}},
		{map[string]string{"where": "tag = 1"}, []string{"messages", "events", "parts"}},
		{map[string]string{"kind": "b"}, []string{"parts"}},
	} {
		sql, err := q.SQL(c.args)
		if err != nil {
			t.Fatal(err)
		}
		if got := cannedNames(sql); !slices.Equal(got, c.want) {
			t.Errorf("%v: the SQL reads %q, want %q:\n%s", c.args, got, c.want, sql)
		}
	}
}

// TestQueriesOpenWhatTheyNeed names the tables that often asked queries open with their defaults: none that grows with
// a run's length for those that sums answer.
func TestQueriesOpenWhatTheyNeed(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	large := map[string][]string{"tags": nil, "ratio": nil, "sizes": nil, "pairs": nil, "partners": nil, "locality": nil,
		"duplicates": nil, "latency": nil, "density": nil, "data-density": nil, "communicators": nil,
		"datatypes": nil, "collectives": nil, "by-rank": nil, "over-time": {"events", "messages"}}
	for _, q := range all {
		want, known := large[q.Name]
		if !known {
			continue
		}
		sql, err := q.SQL(nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, table := range []*schema.Table{&schema.EventsTable, &schema.MessagesTable} {
			if slices.Contains(cannedNames(sql), table.Name) {
				got = append(got, table.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s opens %q, want %q", q.Name, got, want)
		}
	}
}
