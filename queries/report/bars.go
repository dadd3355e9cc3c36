package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/queries"
)

// bars is a chart of horizontal bars, each between its name and its value.
type bars struct {
	Groups []barGroup
	// Series are the parts of stacked bars.
	Series []string
	// X and Y name the bars and their values.
	X, Y string
	Note string
}

type barGroup struct {
	Name string
	Bars []bar
}

type bar struct {
	Name  string
	Parts []part
	Value string
}

// part is a part of a bar: its start and length in percent, and the number of its series.
type part struct {
	From, Percent float64
	Series        int
	Text          string
	amount        float64
}

// Limits of a picture: groups of bars, and bars.
const (
	mostGroups = 40
	mostBars   = 400
)

// newBars turns answers into bars. Kind bars has a bar for each X with a part for each series; kind grouped has a
// group for each X with a bar for each series. The longest bar fills the width.
func newBars(p *queries.Plot, answers []answer) *bars {
	columns := answers[0].columns
	x, y, series := find(columns, p.X), find(columns, p.Y), find(columns, p.Series)
	b := &bars{X: columns[x].Words(), Y: columns[y].Words()}
	stacked := p.Kind != "grouped"
	count, left := 0, false
	for _, a := range answers {
		for _, row := range a.rows {
			v, ok := number(row, y)
			if !ok || v < 0 {
				continue
			}
			at, name := label(row, x), label(row, series)
			switch {
			case p.X == "ranks":
				at += " ranks"
			case columns[x].Type != "VARCHAR":
				at = b.X + " " + at
			}
			group, barName := Printable(a.run), at
			if !stacked {
				group, barName = strings.TrimPrefix(group+", "+at, ", "), name
			}
			if !b.room(group, barName, count) {
				left = true
				continue
			}
			to := b.bar(group, barName)
			if len(to.Parts) == 0 {
				count++
			}
			s := 0
			if stacked && series >= 0 {
				s = b.series(name)
			}
			to.Parts = append(to.Parts, part{Series: s, Text: amount(v, columns[y]), amount: v})
		}
	}
	if left {
		b.Note = fmt.Sprintf("Only the first %d bars are drawn; the commands have all.", count)
	}
	switch {
	case p.Kind == "histogram":
		b.trim()
	case stacked:
		b.join()
		b.drop()
	default:
		b.trim()
	}
	b.scale(columns[y])
	return b
}

// join merges several groups of one bar each into one group for comparison: runs with one number of ranks each.
func (b *bars) join() {
	if len(b.Groups) < 2 || slices.ContainsFunc(b.Groups, func(g barGroup) bool { return len(g.Bars) != 1 }) {
		return
	}
	var all []bar
	for _, g := range b.Groups {
		g.Bars[0].Name = g.Name
		all = append(all, g.Bars[0])
	}
	b.Groups = []barGroup{{Bars: all}}
}

// fewSeries is the largest number of series that are all listed in the key, with their values behind the bar.
const fewSeries = 3

// drop removes series that are zero in all bars.
func (b *bars) drop() {
	if len(b.Series) <= fewSeries {
		return
	}
	some := make([]bool, len(b.Series))
	b.each(func(x *bar) {
		for _, p := range x.Parts {
			some[p.Series] = some[p.Series] || p.amount > 0
		}
	})
	to, kept := make([]int, len(b.Series)), []string{}
	for i, name := range b.Series {
		if some[i] {
			to[i], kept = len(kept), append(kept, name)
		}
	}
	b.each(func(x *bar) {
		x.Parts = slices.DeleteFunc(x.Parts, func(p part) bool { return p.amount == 0 })
		for i := range x.Parts {
			x.Parts[i].Series = to[x.Parts[i].Series]
		}
	})
	b.Series = kept
}

// trim removes the bars before the first and after the last name with a non-zero bar in any group.
func (b *bars) trim() {
	some := map[string]bool{}
	for _, g := range b.Groups {
		for _, x := range g.Bars {
			some[x.Name] = some[x.Name] || slices.ContainsFunc(x.Parts, func(p part) bool { return p.amount > 0 })
		}
	}
	for i := range b.Groups {
		g := &b.Groups[i]
		for len(g.Bars) > 1 && !some[g.Bars[0].Name] {
			g.Bars = g.Bars[1:]
		}
		for n := len(g.Bars); n > 1 && !some[g.Bars[n-1].Name]; n-- {
			g.Bars = g.Bars[:n-1]
		}
	}
}

// room reports whether a bar exists or may still be added.
func (b *bars) room(group, name string, count int) bool {
	i := slices.IndexFunc(b.Groups, func(g barGroup) bool { return g.Name == group })
	if i >= 0 && slices.ContainsFunc(b.Groups[i].Bars, func(x bar) bool { return x.Name == name }) {
		return true
	}
	return count < mostBars && (i >= 0 || len(b.Groups) < mostGroups)
}

// bar returns the bar with that name in that group, creating it if needed.
func (b *bars) bar(group, name string) *bar {
	i := slices.IndexFunc(b.Groups, func(g barGroup) bool { return g.Name == group })
	if i < 0 {
		i = len(b.Groups)
		b.Groups = append(b.Groups, barGroup{Name: group})
	}
	g := &b.Groups[i]
	k := slices.IndexFunc(g.Bars, func(x bar) bool { return x.Name == name })
	if k < 0 {
		k = len(g.Bars)
		g.Bars = append(g.Bars, bar{Name: name})
	}
	return &g.Bars[k]
}

func (b *bars) series(name string) int {
	i := slices.Index(b.Series, name)
	if i < 0 {
		i = len(b.Series)
		b.Series = append(b.Series, name)
	}
	return i
}

func (b *bars) each(f func(*bar)) {
	for i := range b.Groups {
		for k := range b.Groups[i].Bars {
			f(&b.Groups[i].Bars[k])
		}
	}
}

// scale turns values, in the order of the series, into percent and text. Bars of fractions span the whole width at 1.
func (b *bars) scale(c queries.Column) {
	most := 0.0
	total := func(x *bar) (sum float64) {
		for _, p := range x.Parts {
			sum += p.amount
		}
		return sum
	}
	b.each(func(x *bar) { most = max(most, total(x)) })
	if c.Type == "DOUBLE" && c.Unit == "1" && most > 0 && most < 1 {
		most = 1
	}
	b.each(func(x *bar) {
		slices.SortStableFunc(x.Parts, func(p, q part) int { return p.Series - q.Series })
		var texts []string
		from := 0.0
		for i := range x.Parts {
			p := &x.Parts[i]
			if most > 0 {
				p.From, p.Percent = percent(from/most), percent(p.amount/most)
			}
			from += p.amount
			texts = append(texts, p.Text)
			if len(b.Series) > 0 {
				p.Text = b.Series[p.Series] + ": " + p.Text
			}
		}
		x.Value = strings.Join(texts, " · ")
		if len(b.Series) > fewSeries {
			x.Value = amount(total(x), c)
		}
	})
}

// percent turns a fraction into percent with two decimals.
func percent(f float64) float64 { return float64(int(f*10000+0.5)) / 100 }

// words turns a column's name into words.
func words(column string) string { return strings.ReplaceAll(column, "_", " ") }
