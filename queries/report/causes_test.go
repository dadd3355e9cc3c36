package report

import (
	"math"
	"strings"
	"testing"

	"github.com/commq/commq/queries"
)

// Bars beyond the limit are told of.
func TestBarsLeftOut(t *testing.T) {
	a := answer{run: "big", columns: []queries.Column{{Name: "rank", Type: "INTEGER"}, {Name: "kind", Type: "VARCHAR"},
		{Name: "time_ns", Type: "BIGINT", Unit: "ns"}}}
	for rank := range int32(1024) {
		a.rows = append(a.rows, []any{rank, "wait", int64(5)}, []any{rank, "send", int64(7)})
	}
	p := &queries.Plot{Kind: "bars", X: "rank", Y: "time_ns", Series: "kind"}
	if b := newBars(p, []answer{a}); len(b.Groups[0].Bars) != mostBars || b.Note != "Only the first 400 bars are drawn; the commands have all." {
		t.Errorf("%d bars: %q", len(b.Groups[0].Bars), b.Note)
	}
	a.rows = a.rows[:8]
	if b := newBars(p, []answer{a}); b.Note != "" {
		t.Errorf("4 ranks: %q", b.Note)
	}
}

// A column without a value in any row is left out, but only of a whole table: rows that are not shown may have one.
func TestEmptyColumns(t *testing.T) {
	a := answer{total: 2, columns: []queries.Column{{Name: "rank", Type: "INTEGER"}, {Name: "label", Type: "VARCHAR"},
		{Name: "name", Type: "VARCHAR"}}, rows: [][]any{{int32(3), nil, "main"}, {int32(5), nil, nil}}}
	for _, c := range []struct {
		rows int
		want string
	}{{2, "rank name"}, {1, "rank label name"}} {
		b := &builder{o: Options{Rows: c.rows}}
		table := b.table([]answer{a})
		var names []string
		for _, column := range table.Columns {
			names = append(names, column.Name)
		}
		if got := strings.Join(names, " "); got != c.want || len(table.Rows[0]) != len(names) || table.Rows[0][len(names)-1].Text != "main" {
			t.Errorf("%d of 2 rows: %s, %+v; want %s", c.rows, got, table.Rows, c.want)
		}
	}
}

// Parts of the run are as high as they lose time; without losses there is no picture.
func TestTimeBars(t *testing.T) {
	b := newTimeBars([]Slice{{0, 1e9, 10e6}, {1e9, 2e9, 40e6}})
	if b.Bars[0].Height != rankBarsHigh/4 || b.Bars[1].Height != rankBarsHigh || b.Bars[1].X != rankBarsWide/2 || b.Top != "40 ms" ||
		b.Most != "2 s" || b.Mean != 0 || !strings.Contains(b.Label, "50 ms waited by all ranks together, in 2 parts") {
		t.Errorf("%+v", b)
	}
	if newTimeBars([]Slice{{0, 1, 0}}) != nil || newTimeBars(nil) != nil {
		t.Error("a picture of nothing")
	}
}

// The heat map of many ranks has rows of neighbours.
func TestInTurnOfManyRanks(t *testing.T) {
	c := &Cause{Place: "/a/b/code.c:7"}
	for rank := range 600 {
		c.InTurn = append(c.InTurn, []float64{float64(rank), math.NaN()})
	}
	a := newArtist()
	if p, err := a.drawInTurn(c), a.finish(); err != nil || len(p.Light) < 1000 || len(p.Dark) < 1000 || !strings.Contains(p.Label, "each of 600 ranks before /a/b/code.c:7, in 2 parts") {
		t.Errorf("%+v, %v", p, err)
	}
}
