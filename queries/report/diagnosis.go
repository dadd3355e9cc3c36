package report

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/plot"
)

// Diagnosis says why a run takes so long.
type Diagnosis struct {
	// Verdict is one sentence, Warnings are doubts about it.
	Verdict  string
	Warnings []string
	// Basis says which run the times and efficiencies are of, if not the one shown below.
	Basis string
	// Factors are the efficiencies whose product is the first of them.
	Factors []Factor
	// ComputingNs is the time that all ranks compute together; 0 if unknown.
	ComputingNs int64
	// Causes are the findings, the most expensive first.
	Causes []Cause
	// Before is a cause that costs time before that of the verdict; its Rule is empty if there is none.
	Before Cause
	// Left says what is not listed. Missing says why there is no diagnosis, and how to get one.
	Left, Missing string
}

// Factor is an efficiency: a share of 1, at some depth of the tree.
type Factor struct {
	Name  string
	Depth int
	// Share is NaN if it is not known.
	Share float64
	// Doc says what it is.
	Doc string
}

// Cause is one cause of lost time.
type Cause struct {
	// Rule is its kind and Gain what the run would gain without it. Found says what was found, Do what to do.
	Rule, Gain, Found, Do string
	// Called names the caller of the function with the call; "" if that is not needed.
	Called string
	// Waits are the calls that waited.
	Waits []string
	// Computing is the computing time of each rank, in ns, for a picture; nil for no picture. Marked are the ranks of
	// the cause.
	Computing []int64
	Marked    []int32
	// Window is the part of the run that shows the cause best; nil for no picture of it.
	Window *Window
	// Place names a call of the program in captions. Messages are its call sites, for a picture of the messages of
	// these calls; nil for none.
	Place    string
	Messages []int32
	// InTurn is the mean computing of ranks before a call of the place, in ns, by rank and part of the run, for a
	// picture; nil for no picture.
	InTurn [][]float64
	// Lost is the time lost over the run, for a picture; nil for no picture.
	Lost []Slice
	// See is the name of a query of the report that shows more; "" for none.
	See string
}

// Slice is a part of a run's time, in ns since its start, and the time that all ranks together lost in it.
type Slice struct{ FromNs, ToNs, Ns int64 }

// Window is a part of the run: some ranks, in ascending order, between two times.
type Window struct {
	// Args are the arguments with which the query timeline shows it.
	Args  map[string]string
	Ranks []int32
}

// causePart is a cause with its pictures.
type causePart struct {
	Cause
	Bars, Times *rankBars
	Picture     *picture
	// Command draws the picture in full.
	Command string
	// Parts are pictures of a part of the facts: the messages of a call, or the computing before it.
	Parts []*picture
}

// printable returns the diagnosis with texts that show as they are.
func (d Diagnosis) printable() Diagnosis {
	p := d
	p.Verdict, p.Left, p.Missing = Printable(d.Verdict), Printable(d.Left), cleanLines(strings.Split(d.Missing, "\n"))
	p.Basis = Printable(d.Basis)
	p.Warnings, p.Causes = nil, nil
	for _, text := range d.Warnings {
		p.Warnings = append(p.Warnings, Printable(text))
	}
	for _, c := range d.Causes {
		c.Rule, c.Gain, c.Found, c.Do = Printable(c.Rule), Printable(c.Gain), Printable(c.Found), Printable(c.Do)
		c.Waits = slices.Clone(c.Waits)
		for i, text := range c.Waits {
			c.Waits[i] = Printable(text)
		}
		p.Causes = append(p.Causes, c)
	}
	return p
}

// rankBars draws what each rank computes: a bar for each, or for neighbours the longest of them; or the time lost in
// parts of the run.
type rankBars struct {
	Bars  []rankBar
	Mean  float64 // height of the mean; 0 for none
	Label string
	Least string // name of the first rank, and of the last one
	Most  string
	Top   string // the longest time
}

// rankBar is a bar in a picture of rankBarsWide by rankBarsHigh.
type rankBar struct {
	X, Y, Width, Height float64
	Marked              bool
	Text                string
}

const (
	rankBarsWide = 600.0
	rankBarsHigh = 110.0
	mostRankBars = 300
)

func newRankBars(c *Cause) *rankBars {
	n, most, sum := len(c.Computing), int64(0), 0.0
	for _, ns := range c.Computing {
		most, sum = max(most, ns), sum+float64(ns)
	}
	if n == 0 || most == 0 {
		return nil
	}
	block := (n + mostRankBars - 1) / mostRankBars
	wide := rankBarsWide / float64((n+block-1)/block)
	b := &rankBars{Least: "rank 0", Most: strconv.Itoa(n - 1), Top: units.Duration(most),
		Mean: rankBarsHigh * (1 - sum/float64(n)/float64(most))}
	for first := 0; first < n; first += block {
		last := min(first+block, n) - 1
		longest := first
		for i := first; i <= last; i++ {
			if c.Computing[i] > c.Computing[longest] {
				longest = i
			}
		}
		marked := func(rank int32) bool { return first <= int(rank) && int(rank) <= last }
		high := rankBarsHigh * float64(c.Computing[longest]) / float64(most)
		b.Bars = append(b.Bars, rankBar{X: wide * float64(first/block), Y: rankBarsHigh - high, Width: wide * 0.86,
			Height: high, Marked: slices.ContainsFunc(c.Marked, marked),
			Text: fmt.Sprintf("rank %d: %s", longest, units.Duration(c.Computing[longest]))})
	}
	ranks, mean := units.Count(int64(n), "rank"), units.Duration(int64(sum/float64(n)))
	b.Label = fmt.Sprintf("Computing time of each of %s; the line is the mean, %s", ranks, mean)
	if block > 1 {
		b.Label = fmt.Sprintf("Computing time of %s; a bar is the longest of %d neighbours, "+
			"the line is the mean of all ranks, %s", ranks, block, mean)
	}
	return b
}

// mostWindowRanks is the number of ranks of a run up to which a cut through its timeline is drawn: each rank has a row.
const mostWindowRanks = 10_000

// drawCauses draws the causes of a run.
func (b *builder) drawCauses(ctx context.Context, db *queries.DB, in *Input, to *runPart) error {
	all := b.o.Queries
	if all == nil {
		var err error
		if all, err = queries.All(); err != nil {
			return err
		}
	}
	named := func(name string) int {
		return slices.IndexFunc(all, func(q *queries.Query) bool { return q.Name == name })
	}
	i, matrix := named("timeline"), named("data-density")
	for k := range to.Causes {
		c := causePart{Cause: to.Causes[k], Bars: newRankBars(&to.Causes[k]), Times: newTimeBars(to.Causes[k].Lost)}
		if matrix >= 0 && len(c.Messages) > 0 && all[matrix].Check(in.Run) == nil {
			p, err := b.artist.drawMessages(ctx, db, all[matrix], in, &c.Cause)
			if err != nil {
				return err
			}
			c.add(p)
		}
		if len(c.InTurn) > 0 {
			c.add(b.artist.drawInTurn(&c.Cause))
		}
		if i >= 0 && c.Window != nil && in.Manifest.Ranks <= mostWindowRanks && all[i].Check(in.Run) == nil {
			var err error
			if c.Picture, err = b.artist.drawWindow(ctx, db, all[i], in, c.Window); err != nil {
				return err
			}
			c.Command = Printable(shellquote.Join(slices.Concat([]string{"commq", "query", "timeline"}, in.Args,
				[]string{"--from-s", c.Window.Args["from-s"], "--to-s", c.Window.Args["to-s"], "--plot",
					"window.png"})...))
		}
		to.Found = append(to.Found, c)
	}
	return nil
}

// drawWindow draws a part of a run.
func (a *artist) drawWindow(ctx context.Context, db *queries.DB, q *queries.Query, in *Input,
	w *Window) (*picture, error) {
	var names []string
	for _, rank := range w.Ranks {
		names = append(names, strconv.Itoa(int(rank)))
	}
	list := strings.Join(names, ", ")
	args := map[string]string{"bins": "550", "rows": strconv.Itoa(int(in.Manifest.Ranks)),
		"where": fmt.Sprintf("src IN (%s) AND dst IN (%s)", list, list)}
	for name, value := range w.Args {
		args[name] = value
	}
	rows, err := db.Ask(ctx, q, args)
	if err != nil {
		return nil, err
	}
	d, err := q.Drawing(&someRanks{Rows: rows, ranks: w.Ranks, rank: find(rows.Columns(), "rank"),
		dst: find(rows.Columns(), "dst")}, []queries.Run{in.Run}, args)
	if err := rows.Close(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	t, ok := d.(*plot.Timeline)
	if !ok {
		return nil, fmt.Errorf("query %s draws %T instead of a timeline", q.Name, d)
	}
	t.Title, t.Note = "Around the longest wait", "lines are messages between these ranks"
	t.Names, t.Ranks, t.HighPx = names, len(names), 130+35*len(names)
	return a.pictureOf(t, fmt.Sprintf("Timeline of ranks %s around the longest wait", list)), nil
}

// someRanks are the rows of a timeline that are about some ranks, which are numbered in their order.
type someRanks struct {
	queries.Rows
	ranks     []int32
	rank, dst int
	row       []any
}

// Next goes on to the next row of these ranks.
func (s *someRanks) Next() bool {
	for s.Rows.Next() {
		s.row = slices.Clone(s.Rows.Row())
		if s.number(s.rank) && (s.row[s.dst] == nil || s.number(s.dst)) {
			return true
		}
	}
	return false
}

// number replaces a rank by its number; it returns false for one that is none of the ranks.
func (s *someRanks) number(column int) bool {
	rank, _ := s.row[column].(int32)
	i, found := slices.BinarySearch(s.ranks, rank)
	s.row[column] = int32(i)
	return found
}

// Row is the current row.
func (s *someRanks) Row() []any { return s.row }

// factorTable has the efficiencies of all runs, the run with the fewest ranks first.
type factorTable struct {
	Runs []string
	Rows []factorRow
}

type factorRow struct {
	Name, Doc string
	Depth     int
	Shares    []factorCell
}

// factorCell is a share with the class of its colour: good from 0.8 on, which is where POP stops to look for causes,
// fair from 0.6 on, else poor.
type factorCell struct {
	Text, Class string
	Percent     float64
}

func shareCell(x float64) factorCell {
	if math.IsNaN(x) {
		return factorCell{Text: "not known"}
	}
	c := factorCell{Text: units.Percent(x), Class: "poor", Percent: 100 * min(max(x, 0), 1)}
	switch {
	case x >= 0.8:
		c.Class = "good"
	case x >= 0.6:
		c.Class = "fair"
	}
	return c
}

const scalingDoc = "The computing time of all ranks in the smallest run by that in this one: 1 if the same work " +
	"takes the same time on any number of ranks. Runs with more work on more ranks have less."

// newFactorTable returns the efficiencies of the runs that have them; nil if none has. Runs of several numbers of ranks
// of one command are also compared with the smallest.
func newFactorTable(inputs []Input) *factorTable {
	inputs = slices.DeleteFunc(slices.Clone(inputs), func(in Input) bool { return len(in.Diagnosis.Factors) == 0 })
	if len(inputs) == 0 {
		return nil
	}
	slices.SortStableFunc(inputs, func(a, b Input) int { return int(a.Manifest.Ranks - b.Manifest.Ranks) })
	first, last, t := inputs[0], inputs[len(inputs)-1], &factorTable{}
	for i, f := range first.Diagnosis.Factors {
		r := factorRow{Name: f.Name, Doc: f.Doc, Depth: f.Depth}
		for _, in := range inputs {
			r.Shares = append(r.Shares, shareCell(in.Diagnosis.Factors[i].Share))
		}
		t.Rows = append(t.Rows, r)
	}
	scaled := factorRow{Name: "computation scaling", Doc: scalingDoc}
	for _, in := range inputs {
		name := Printable(in.Name)
		if len(inputs) == 1 {
			name = units.Count(int64(in.Manifest.Ranks), "rank")
		}
		t.Runs = append(t.Runs, name)
		scaled.Shares = append(scaled.Shares, shareCell(float64(first.Diagnosis.ComputingNs)/float64(max(1,
			in.Diagnosis.ComputingNs))))
	}
	differs := func(in Input) bool { return !slices.Equal(in.Manifest.Origin.Command, first.Manifest.Origin.Command) }
	if first.Manifest.Ranks < last.Manifest.Ranks && !slices.ContainsFunc(inputs, differs) {
		t.Rows = append(t.Rows, scaled)
	}
	return t
}
