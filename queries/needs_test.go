package queries

import (
	"testing"

	"github.com/commq/commq/schema"
)

// TestLacksOfATrace: a program cannot be captured again from a trace of another tool.
func TestLacksOfATrace(t *testing.T) {
	for trace, want := range map[*schema.Trace]string{
		nil: `run "r" was captured without payload hashes; capture it again with --hash crc64`,
		{Format: "dumpi"}: `run "r" was imported without payload hashes; its trace (dumpi) does not tell that: ` +
			`record the program with commq capture, with --hash crc64`,
	} {
		run := Run{Name: "r", Manifest: &schema.Manifest{Hash: "none", Origin: schema.Origin{Trace: trace}}}
		got := (&Query{Needs: []string{"hashes"}}).lacks(run)
		if len(got) != 1 || got[0] != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestReads: a query reads what its needs name; rows of calls that send or receive only if it needs every call, or
// shows what is there.
func TestReads(t *testing.T) {
	const messages, operations, all = schema.ReadsMessages, schema.ReadsOperations, schema.ReadsAll
	some := &schema.Manifest{Record: "messages"}
	for name, want := range map[string]schema.Reads{"tags": messages, "density": messages | operations,
		"calls": all &^ messages, "timeline": all, "timeline-calls": all &^ messages, "over-time": messages | operations,
		"ratio": operations, "measures": messages | operations, "unmatched": messages | operations, "pairs": messages,
		"sizes": messages} {
		q, err := Named([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		if got := q[0].Reads(some, nil); got != want {
			t.Errorf("%s reads %b, want %b", name, got, want)
		}
		if got := q[0].Reads(&schema.Manifest{Record: "all"}, nil); name == "measures" && got != all {
			t.Errorf("%s of all calls reads %b", name, got)
		}
	}
	for args, want := range map[string]schema.Reads{"none": messages, "tree": messages | operations} {
		q, err := Named([]string{"density"})
		if err != nil {
			t.Fatal(err)
		}
		if got := q[0].Reads(some, map[string]string{"collectives": args}); got != want {
			t.Errorf("density --collectives %s reads %b, want %b", args, got, want)
		}
	}
	for text, want := range map[string]schema.Reads{"SELECT * FROM comms": 0, "SELECT run, messages FROM runs": 0,
		"SELECT 1 FROM runs r, events AS e WHERE messages > 1": operations | all&^messages, "FROM Messages": messages,
		"FROM events JOIN messages":                                              all,
		`SELECT * FROM "messages" WHERE tag > 100`:                               messages,
		"SELECT * FROM main.messages":                                            messages,
		"SELECT * FROM (SELECT 9 AS t) k, messages":                              messages,
		`SELECT * FROM (messages NATURAL JOIN comms), "Events"`:                  all,
		"TABLE messages":                                                         messages,
		"SELECT (SELECT COUNT(*) FROM runs), messages FROM runs ORDER BY events": 0,
		"SELECT 'FROM messages' FROM runs -- JOIN messages":                      0,
		"WITH k AS (SELECT * FROM messages) SELECT * FROM k":                     messages,
		`SELECT * FROM comms WHERE comm IN (SELECT comm FROM main."messages")`:   messages,
		"SELECT * FROM /* all */ messages":                                       messages,
		"SELECT * FROM query_table('messages')":                                  all,
		"SELECT * FROM runs UNION ALL BY NAME FROM messages":                     messages,
	} {
		if got := ReadsOf(text); got != want {
			t.Errorf("%s reads %b, want %b", text, got, want)
		}
	}
}
