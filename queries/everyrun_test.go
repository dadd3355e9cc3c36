package queries_test

import (
	"os"
	"path/filepath"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// collectiveQueries answer from the sums of collectives, in every form.
var collectiveQueries = [][]string{
	{"density"}, {"density", "collectives", "logical"}, {"density", "collectives", "tree"}, {"density", "collectives", "none"},
	{"data-density"}, {"pairs", "collectives", "rooted"}, {"partners", "collectives", "logical"},
	{"locality", "collectives", "tree"}, {"collectives"}, {"communicators"}, {"datatypes"},
	{"sizes", "collectives", "calls"}, {"sizes", "collectives", "calls", "unit", "elements"},
}

// TestSumsOfCollectivesOnEveryRun compares, on every run of testdata, what queries answer from the sums that were
// written with the run with what they answer from its rows.
func TestSumsOfCollectivesOnEveryRun(t *testing.T) {
	folders, err := os.ReadDir(filepath.Join("..", "testdata", "runs"))
	if err != nil || len(folders) < 20 {
		t.Fatal(len(folders), err)
	}
	for _, folder := range folders {
		run := captured(t, folder.Name())
		fromRows, fromSums := open(t, withoutSums(run)), open(t, run)
		for _, q := range collectiveQueries {
			if named(t, q[0]).Check(run) != nil {
				continue
			}
			if d := gocmp.Diff(askOpen(t, fromRows, q[0], q[1:]...), askOpen(t, fromSums, q[0], q[1:]...)); d != "" {
				t.Errorf("%s, %s (-from rows +from sums):\n%s", run.Name, q, d)
			}
		}
	}
}
