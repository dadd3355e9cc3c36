// Package report makes one HTML page of one or several runs: what they are, what is wrong with them, the answers of canned
// queries as pictures and tables, and how to get each of them again. The page needs no network and no other file.
package report

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/queries"
)

// Input is a run to be reported on.
type Input struct {
	queries.Run
	// Args name the run on the command line of commq query, for example --run bt.C.64.
	Args []string
	// Facts say what the run is, in order.
	Facts []Fact
	// Findings are what checks of the run came to.
	Findings []Finding
}

// Fact is one thing that is known of a run.
type Fact struct{ Name, Value string }

// Finding is what one check of a run came to.
type Finding struct {
	// Check names the check.
	Check string
	// Status is ok, warning or failed.
	Status string
	// Found is what was found, Do what helps; Do may be empty.
	Found, Do string
}

// Options say what stands in a report. The zero value works.
type Options struct {
	// Engine says what the query engine may use.
	Engine queries.Options
	// More are queries that are asked beside the five measures, with their defaults.
	More []string
	// Queries are those that a report may ask; nil is queries.All.
	Queries []*queries.Query
	// Rows is how many rows a table has at most; 0 is 200. Pictures show more.
	Rows int
	// Progress is told before each step; nil: nobody.
	Progress func(step string, done, total int)
	// Version is the version of commq, for the foot of the page.
	Version string
}

const defaultRows = 200

// measures are the queries of every report, in order. scaling compares runs.
var measures = [...]string{"density", "data-density", "ratio", "collectives", "sizes", "scaling"}

// Report is what a page is made of; see Write.
type Report struct {
	Title    string
	Runs     []runPart
	Sections []*section
	Data     []cellData
	Version  string
	// Sound names the runs without findings; "" when there are none.
	Sound string
}

type runPart struct {
	ID       string
	Name     string
	Overview []string
	Facts    []Fact
	Worse    []Finding // warnings and failures
	Fine     []Finding
	Open     bool
}

// section is a query and its answer.
type section struct {
	ID       string
	Query    *queries.Query
	Matrices []*matrix
	Bars     *bars
	Chart    *chart
	Table    *table
	Notes    []string
	Skipped  []string
	Commands string
	SQL      string
}

// Build asks the runs and makes a report of them. What a run cannot answer is said in the report; an error is something
// that keeps it from being made.
func Build(ctx context.Context, inputs []Input, o Options) (*Report, error) {
	chosen, err := choose(o, len(inputs) > 1)
	if err != nil {
		return nil, err
	}
	if o.Rows <= 0 {
		o.Rows = defaultRows
	}
	b := &builder{inputs: inputs, o: o, report: &Report{Title: title(inputs), Version: Printable(o.Version)}}
	for i, in := range inputs {
		b.report.Runs = append(b.report.Runs, describe(i, in, len(inputs) == 1))
	}
	b.report.Sound = sound(b.report.Runs)
	for _, q := range chosen {
		b.sections = append(b.sections, b.begin(q))
		b.total++
		if !q.OverRuns {
			b.total += len(inputs) - 1
		}
	}
	if err := b.ask(ctx); err != nil {
		return nil, err
	}
	for _, s := range b.sections {
		b.finish(s)
	}
	return b.report, nil
}

// choose finds the measures and the queries asked for besides.
func choose(o Options, several bool) ([]*queries.Query, error) {
	all := o.Queries
	if all == nil {
		var err error
		if all, err = queries.All(); err != nil {
			return nil, err
		}
	}
	find := func(name string) *queries.Query {
		if i := slices.IndexFunc(all, func(q *queries.Query) bool { return q.Name == name }); i >= 0 {
			return all[i]
		}
		return nil
	}
	var chosen []*queries.Query
	for _, name := range measures {
		if q := find(name); q != nil && (several || name != "scaling") {
			chosen = append(chosen, q)
		}
	}
	for _, name := range o.More {
		q := find(name)
		if q == nil {
			return nil, fmt.Errorf("no query is called %q; commq query --list names them", name)
		}
		if !slices.Contains(chosen, q) {
			chosen = append(chosen, q)
		}
	}
	return chosen, nil
}

// titleRuns is up to how many runs a title names.
const titleRuns = 4

func title(inputs []Input) string {
	if len(inputs) > titleRuns {
		return fmt.Sprintf("%d runs", len(inputs))
	}
	var names []string
	for _, in := range inputs {
		names = append(names, Printable(in.Name))
	}
	return strings.Join(names, ", ")
}

// describe is what the page says of a run before any query.
func describe(i int, in Input, open bool) runPart {
	m := in.Manifest
	program := ""
	if len(m.Origin.Command) > 0 {
		program = shellquote.Join(m.Origin.Command...)
	}
	r := runPart{ID: fmt.Sprintf("run-%d", i), Name: Printable(in.Name), Open: open}
	for _, s := range []string{program, fmt.Sprint(m.Ranks), fmt.Sprint(len(m.Origin.Hosts)), m.TimeOrigin, fmt.Sprint(m.Counts.Calls),
		fmt.Sprint(m.Counts.Messages), fmt.Sprint(m.Counts.MessageBytes), fmt.Sprint(m.Counts.Collectives), m.Ended, m.Origin.Started} {
		r.Overview = append(r.Overview, Printable(s))
	}
	for _, f := range in.Facts {
		r.Facts = append(r.Facts, Fact{Printable(f.Name), Printable(f.Value)})
	}
	for _, f := range in.Findings {
		f = Finding{Printable(f.Check), f.Status, Printable(f.Found), Printable(f.Do)}
		if f.Status == "ok" {
			r.Fine = append(r.Fine, f)
		} else {
			r.Worse = append(r.Worse, f)
		}
	}
	return r
}

func sound(runs []runPart) string {
	var names []string
	for _, r := range runs {
		if len(r.Worse) == 0 {
			names = append(names, r.Name)
		}
	}
	return strings.Join(names, ", ")
}

// builder asks queries and collects their answers.
type builder struct {
	inputs      []Input
	o           Options
	report      *Report
	sections    []*asked
	done, total int
}

// asked is a section while its rows come in.
type asked struct {
	*section
	answers []answer
}

// answer is what one batch of runs answered.
type answer struct {
	run     string // "" of all runs together
	columns []queries.Column
	rows    [][]any // as many as are drawn or shown
	total   int
	grid    *grid // of a matrix
}

func (b *builder) begin(q *queries.Query) *asked {
	s := &section{ID: q.Name, Query: q}
	s.SQL, _ = q.SQL(nil)
	var lines []string
	if q.OverRuns {
		args := []string{"commq", "query", q.Name}
		for _, in := range b.inputs {
			args = append(args, in.Args...)
		}
		lines = append(lines, shellquote.Join(args...))
	} else {
		for _, in := range b.inputs {
			lines = append(lines, shellquote.Join(append([]string{"commq", "query", q.Name}, in.Args...)...))
		}
	}
	s.Commands = cleanLines(lines)
	b.report.Sections = append(b.report.Sections, s)
	return &asked{section: s}
}

// ask opens each run once and asks it every query, then all runs together those that compare runs.
func (b *builder) ask(ctx context.Context) error {
	over := func(q *queries.Query) bool { return q.OverRuns }
	for _, in := range b.inputs {
		name := ""
		if len(b.inputs) > 1 {
			name = in.Name
		}
		err := b.askBatch(ctx, []queries.Run{in.Run}, name, func(q *queries.Query) bool { return !over(q) })
		if err != nil {
			return err
		}
	}
	var runs []queries.Run
	for _, in := range b.inputs {
		runs = append(runs, in.Run)
	}
	return b.askBatch(ctx, runs, "", over)
}

func (b *builder) askBatch(ctx context.Context, runs []queries.Run, name string, take func(*queries.Query) bool) (err error) {
	var wanted []*asked
	for _, s := range b.sections {
		if take(s.Query) {
			wanted = append(wanted, s)
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	db, err := queries.Open(ctx, runs, b.o.Engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	for _, s := range wanted {
		step := s.Query.Name
		if name != "" {
			step += " of " + name
		}
		if b.o.Progress != nil {
			b.o.Progress(step, b.done, b.total)
		}
		b.done++
		if why := cannot(s.Query, runs); why != nil {
			s.Skipped = append(s.Skipped, why...)
			continue
		}
		rows, err := db.Ask(ctx, s.Query, nil)
		if err != nil {
			return err
		}
		a := answer{run: name, columns: rows.Columns()}
		if err := errors.Join(b.read(&a, s.Query, runs[0], rows), rows.Close()); err != nil {
			return fmt.Errorf("query %s: %w", s.Query.Name, err)
		}
		s.answers = append(s.answers, a)
	}
	return nil
}

// cannot says why the runs cannot answer a query; nil when they can.
func cannot(q *queries.Query, runs []queries.Run) []string {
	var why []string
	for _, r := range runs {
		if err := q.Check(r); err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				why = append(why, Printable(strings.TrimPrefix(line, "query "+q.Name+": ")))
			}
		}
	}
	return why
}

// drawnRows is how many rows of an answer a picture is made of; a matrix is made of all.
const drawnRows = 5000

// read takes the rows that are shown or drawn and counts the others.
func (b *builder) read(a *answer, q *queries.Query, run queries.Run, rows queries.Rows) error {
	keep := b.o.Rows
	if q.Plot != nil && q.Plot.Kind == "matrix" {
		a.grid = newGrid(q, int(run.Manifest.Ranks))
	} else if q.Plot != nil {
		keep = max(keep, drawnRows)
	}
	for rows.Next() {
		a.total++
		if a.grid != nil {
			if err := a.grid.add(rows.Row()); err != nil {
				return err
			}
		}
		if len(a.rows) < keep {
			a.rows = append(a.rows, slices.Clone(rows.Row()))
		}
	}
	return rows.Err()
}

// drawn are the answers as they are drawn.
func drawn(q *queries.Query, answers []answer) (*queries.Plot, []answer) {
	var p queries.Plot
	all := slices.Clone(answers)
	for i, a := range all {
		d := q.Drawn(a.columns, a.rows, nil)
		p, all[i].columns, all[i].rows = d.Plot, d.Columns, d.Rows
	}
	return &p, all
}

// finish makes pictures and a table of the answers.
func (b *builder) finish(s *asked) {
	q := s.Query
	if len(s.answers) == 0 {
		return
	}
	s.Table = b.table(s.answers)
	switch {
	case q.Plot == nil:
	case q.Plot.Kind == "matrix":
		for _, a := range s.answers {
			s.Matrices = append(s.Matrices, b.matrix(q, a))
		}
	case q.Plot.Kind == "bars" || q.Plot.Kind == "grouped":
		s.Bars = newBars(drawn(q, s.answers))
	default:
		s.Chart = newChart(drawn(q, s.answers))
	}
	for _, a := range s.answers {
		if a.grid == nil && q.Plot != nil && a.total > len(a.rows) {
			s.Notes = append(s.Notes, fmt.Sprintf("The picture shows the first %s of %s rows.", comma(int64(len(a.rows))), comma(int64(a.total))))
			break
		}
	}
}
