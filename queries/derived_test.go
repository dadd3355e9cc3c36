package queries_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/schema"
)

// withoutProfile returns a run as an older commq wrote it.
func withoutProfile(run queries.Run) queries.Run {
	m := *run.Manifest
	m.Tables = slices.DeleteFunc(slices.Clone(m.Tables), func(i schema.TableInfo) bool { return i.Name == "profile" })
	run.Manifest = &m
	return run
}

// The profile of the writer and the one that the engine computes from events have the same rows, and give the same
// answers.
func TestProfileEqualsSumOfEvents(t *testing.T) {
	_, heat := heatRun(t)
	runs := []queries.Run{heat, newRun(t, "times.5", world+fiveRanks+twoRanksCall, example.Manifest(5))}
	for _, name := range []string{"cg.A.4", "bt-io.S.4", "rma.3", "is.W.16", "bt.C.64", "pingpong.2"} {
		runs = append(runs, captured(t, name))
	}
	for _, run := range runs {
		with, without := open(t, run), open(t, withoutProfile(run))
		const rows = "FROM profile ORDER BY rank, nth"
		a, err := with.Query(context.Background(), rows)
		want := text(t, a, err)
		b, err := without.Query(context.Background(), rows)
		if got := text(t, b, err); got != want || len(run.Manifest.Tables) < len(schema.Tables()) {
			t.Errorf("%s: the profile\n%s\nthe sums of events\n%s", run.Name, want, got)
		}
	}
	both := open(t, withoutProfile(runs[2]), runs[3])
	rows, err := both.Query(context.Background(),
		"SELECT run, CAST(SUM(calls) AS BIGINT) AS calls FROM profile GROUP BY run ORDER BY run DESC")
	a, b := runs[2].Manifest, runs[3].Manifest
	if got, want := text(t, rows, err), fmt.Sprintf("%s,%d\n%s,%d\n", runs[2].Name, a.Tables[0].Rows, runs[3].Name,
		b.Tables[0].Rows); got != want {
		t.Errorf("of a run without a profile and one with: %s\nwant %s", got, want)
	}
}
