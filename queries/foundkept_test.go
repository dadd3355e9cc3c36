package queries_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
)

// Answers that were kept are those of the engine, with the types of all values. A file that changed, or has a mistake,
// is asked again, also if only the default of a parameter changed.
func TestKeptAnswers(t *testing.T) {
	header := strings.Replace(findingHeader, "-- order", "-- column part DOUBLE 1: It.\n-- column name VARCHAR -: It.\n-- column yes BOOLEAN -: It.\n"+
		"-- column none BIGINT 1: It.\n-- order", 1)
	header = strings.Replace(header, "-- cost", "-- param least integer 1..9 = 1: It.\n-- cost", 1)
	text := header + strings.Replace(findingSQL, "\nFROM", ", CAST(0.25 AS DOUBLE) AS part, 'x' AS name, TRUE AS yes, "+
		"CAST(NULL AS BIGINT) AS none\nFROM", 1)
	text = strings.Replace(text, "ORDER BY src\n", "HAVING COUNT(*) >= {{least}} ORDER BY src\n", 1)
	fewer := strings.Replace(text, "1..9 = 1", "1..9 = 2", 1)
	changed := strings.Replace(text, "AS DOUBLE) AS part", "AS DOUBLE) + 1 AS part", 1)
	wrong := strings.Replace(text, "FROM messages", "FORM messages", 1)
	run, in := newRun(t, "few.4", few, example.Manifest(4)), t.TempDir()
	for _, c := range []struct {
		what, text string
		asked      int
	}{
		{"first", text, 1}, {"again", text, 0}, {"changed", changed, 1}, {"changed back", text, 0}, {"wrong", wrong, 1},
		{"another default", fewer, 1}, {"that default again", fewer, 0},
		{"still wrong", wrong, 1},
	} {
		own, unusable := ownFinding(t, c.text)
		if len(own) != 1 {
			t.Fatalf("%s: %+v", c.what, unusable)
		}
		asked := 0
		s := queries.Search{Kept: kept.ResultsOf(run.Dir, in), Progress: func(string) { asked++ }}
		got, fresh := look(t, &s, run, own), look(t, &queries.Search{}, run, own)
		if diff := cmp.Diff(fresh[0].Found, got[0].Found); diff != "" || asked != c.asked || (got[0].Err == nil) != (fresh[0].Err == nil) {
			t.Errorf("%s: %d files asked, want %d; -fresh +kept:\n%s", c.what, asked, c.asked, diff)
		}
		if c.what == "again" && (len(got[0].Found) != 2 || len(got[0].Found[0].Evidence) != 5) {
			t.Errorf("%+v", got[0])
		}
	}
}
