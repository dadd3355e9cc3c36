package report

import (
	"math"
	"strings"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
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

// A bar of neighbours is the longest of them, which the caption says; it is marked if any of them is.
func TestRankBarsOfManyRanks(t *testing.T) {
	c := &Cause{Computing: make([]int64, 1024), Marked: []int32{5}}
	for rank := range c.Computing {
		c.Computing[rank] = int64(rank+1) * 1e6
	}
	b := newRankBars(c)
	if len(b.Bars) != 256 || !b.Bars[1].Marked || b.Bars[0].Marked || b.Bars[2].Marked ||
		b.Bars[1].Text != "rank 7: 8 ms" ||
		!strings.HasPrefix(b.Label, "Computing time of 1,024 ranks; a bar is the longest of 4 neighbours, ") {
		t.Errorf("%q, %d bars: %+v", b.Label, len(b.Bars), b.Bars[:3])
	}
	c.Computing = c.Computing[:300]
	if b := newRankBars(c); len(b.Bars) != 300 || !strings.HasPrefix(b.Label, "Computing time of each of 300 ranks; ") {
		t.Errorf("%q, %d bars", b.Label, len(b.Bars))
	}
}

// What is not all is not 100 %.
func TestFiguresOfEfficiencies(t *testing.T) {
	a := answer{columns: []queries.Column{{Name: "metric", Type: "VARCHAR"}, {Name: "efficiency", Type: "DOUBLE"}},
		rows: [][]any{{"load-balance", 0.997}}}
	b := &builder{sections: []*asked{{section: &section{Query: &queries.Query{Name: "efficiency"}},
		answers: []answer{a}}}}
	all := b.figures(&schema.Manifest{TimeOrigin: "untimed"})
	if last := all[len(all)-1]; last.Name != "load balance" || last.Value != "99.7 %" {
		t.Errorf("%+v", last)
	}
}
