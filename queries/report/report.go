// Package report writes an HTML page about one or several runs: what they are, what is wrong with them, answers of
// canned queries as pictures and tables, and the commands that reproduce them. The page needs no network and no other
// file.
package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
)

// Input is a run to report on.
type Input struct {
	queries.Run
	// Args select the run on the command line of commq query, for example --run bt.C.64.
	Args []string
	// Facts describe the run, in order.
	Facts []Fact
	// Findings are the results of checking the run.
	Findings []Finding
	// Diagnosis says why the run takes so long; the zero value leaves it out.
	Diagnosis Diagnosis
	// Lacks tells, in a sentence without a full stop, what the run lacks of its program's calls where a page that reads
	// such rows of it lacks them too; "" for nothing. nil means that it lacks none.
	Lacks func(schema.Reads) string
	// Examine sets Findings and Diagnosis. Build calls it while it asks queries; nil means that they are set.
	Examine func(context.Context, *Input) error
}

// Fact is one thing known about a run.
type Fact struct{ Name, Value string }

// Finding is the result of one check of a run.
type Finding struct {
	// Check names the check.
	Check string
	// Status is ok, warning or failed.
	Status string
	// Found says what was found, Do what to do; Do may be empty.
	Found, Do string
}

// Options select the contents of a report. The zero value works.
type Options struct {
	// Engine limits the query engine.
	Engine queries.Options
	// More are queries to ask, with their defaults, besides the five measures.
	More []string
	// Queries are those that a report may ask; nil means queries.All.
	Queries []*queries.Query
	// Rows limits the rows of a table; 0 means 200. Pictures show more.
	Rows int
	// Progress is called before each step; nil means no callback.
	Progress func(step string, done, total int)
	// Version is commq's version, for the foot of the page.
	Version string
}

const defaultRows = 200

// measures are the queries of every report, in order. scaling compares runs.
var measures = [...]string{"density", "data-density", "ratio", "collectives", "sizes", "scaling"}

// times are the queries of every report if a run can answer them, in order.
var times = [...]string{"efficiency", "wait-states", "time-by-rank", "callsite-time"}

// Report is the content of a page; see Write.
type Report struct {
	Title    string
	Runs     []runPart
	Sections []*section
	Data     []cellData
	Version  string
	// Sound names the runs without findings; "" if there are none.
	Sound string
	// Factors are the efficiencies of the runs; nil if none has any.
	Factors *factorTable
	// Lacking says what the runs lack of their programs' calls, a sentence for each that does.
	Lacking []string
	// Figures are the key numbers of a single run.
	Figures []figure
	// Unasked are queries of the report that no run can answer, with the reasons.
	Unasked []unasked
}

// Diagnosed reports whether the page says of any run why it takes so long, or why it cannot.
func (r *Report) Diagnosed() bool {
	return slices.ContainsFunc(r.Runs, func(p runPart) bool { return p.Verdict != "" || p.Missing != "" })
}

// figure is a key number: Value for people, Exact in full if it differs.
type figure struct{ Name, Value, Exact string }

// unasked is a set of queries that cannot be asked for the same reasons.
type unasked struct {
	Queries string
	Why     []string
}

type runPart struct {
	ID       string
	Name     string
	Overview []cell
	Facts    []Fact
	Worse    []Finding // warnings and failures
	Fine     []Finding
	Diagnosis
	Found []causePart
	Open  bool
}

// section is a query and its answer.
type section struct {
	ID       string
	Query    *queries.Query
	Wanted   bool // selected by the user, or one of the measures
	Matrices []*matrix
	Bars     *bars
	Chart    *chart
	Pictures []*picture
	Table    *table
	Notes    []string
	Skipped  []string
	Commands string
	SQL      string
	// Beside puts the table beside the picture if there is room.
	Beside bool
}

// Build asks the runs and assembles a report. What a run cannot answer is in the report; an error means that it could
// not be made.
func Build(ctx context.Context, inputs []Input, o Options) (*Report, error) {
	chosen, wanted, err := choose(o, len(inputs) > 1)
	if err != nil {
		return nil, err
	}
	if o.Rows <= 0 {
		o.Rows = defaultRows
	}
	b := &builder{inputs: slices.Clone(inputs), o: o, report: &Report{Title: title(inputs),
		Version: Printable(o.Version), Runs: make([]runPart, len(inputs))}, artist: newArtist(),
		reads: map[string]schema.Reads{}}
	for i, q := range chosen {
		s := b.begin(q)
		s.Wanted = wanted[i]
		b.sections = append(b.sections, s)
		b.total++
		if !q.OverRuns {
			b.total += len(inputs) - 1
		}
	}
	b.total += len(inputs) // their examinations
	end := b.examine(ctx)
	err = b.ask(ctx)
	end()
	if err := errors.Join(err, b.artist.finish()); err != nil {
		return nil, err
	}
	b.report.Sound, b.report.Factors = sound(b.report.Runs), newFactorTable(b.inputs)
	for _, s := range b.sections {
		b.finish(s)
	}
	b.leaveOut()
	b.tellLacking()
	if len(inputs) == 1 {
		b.report.Figures = b.figures(inputs[0].Manifest)
	}
	return b.report, nil
}

// leaveOut removes sections that the user did not select and no run could answer, keeping the reasons.
func (b *builder) leaveOut() {
	b.report.Sections = slices.DeleteFunc(b.report.Sections, func(s *section) bool {
		if s.Wanted || s.Table != nil {
			return false
		}
		same := func(u unasked) bool { return slices.Equal(u.Why, s.Skipped) }
		if i := slices.IndexFunc(b.report.Unasked, same); i >= 0 {
			b.report.Unasked[i].Queries += ", " + s.Query.Name
		} else {
			b.report.Unasked = append(b.report.Unasked, unasked{s.Query.Name, s.Skipped})
		}
		return true
	})
}

// tellLacking says of each run what the answers lack because it does.
func (b *builder) tellLacking() {
	for _, in := range b.inputs {
		if in.Lacks == nil {
			continue
		}
		if text := in.Lacks(b.reads[in.Dir]); text != "" {
			b.report.Lacking = append(b.report.Lacking, Printable(text))
		}
	}
}

// figures returns the key numbers of a run.
func (b *builder) figures(m *schema.Manifest) []figure {
	count := func(name string, n int64) figure { return figure{Name: name, Value: comma(n)} }
	all := []figure{count("ranks", int64(m.Ranks))}
	if n := len(m.Origin.Hosts); n > 0 {
		all = append(all, count("hosts", int64(n)))
	}
	if m.TimeOrigin != "untimed" {
		all = append(all, figure{Printable(m.TimeOrigin) + " time", units.Duration(m.EndNs), comma(m.EndNs) + " ns"})
	}
	all = append(all, count("MPI calls", m.Counts.Calls), count("messages", m.Counts.Messages))
	bytes := figure{Name: "bytes in messages", Value: units.Bytes(m.Counts.MessageBytes),
		Exact: comma(m.Counts.MessageBytes) + " bytes"}
	all = append(all, bytes, count("collectives", m.Counts.Collectives))
	for _, s := range b.sections {
		if s.Query.Name != "efficiency" || len(s.answers) == 0 {
			continue
		}
		a := s.answers[0]
		metric, value := find(a.columns, "metric"), find(a.columns, "efficiency")
		for _, row := range a.rows {
			if x, ok := number(row, value); ok {
				name := words(strings.ReplaceAll(label(row, metric), "-", "_"))
				if m.TimeOrigin == "measured" {
					name = "measured " + name
				}
				all = append(all, figure{Name: name,
					Value: units.Percent(x), Exact: digits(x, 4)})
			}
		}
	}
	return all
}

// choose selects the measures, the times and the queries that the user added, and marks which must be in the report.
func choose(o Options, several bool) (chosen []*queries.Query, wanted []bool, err error) {
	all := o.Queries
	if all == nil {
		if all, err = queries.All(); err != nil {
			return nil, nil, err
		}
	}
	find := func(name string) *queries.Query {
		if i := slices.IndexFunc(all, func(q *queries.Query) bool { return q.Name == name }); i >= 0 {
			return all[i]
		}
		return nil
	}
	add := func(q *queries.Query, must bool) {
		switch i := slices.Index(chosen, q); {
		case q == nil:
		case i < 0:
			chosen, wanted = append(chosen, q), append(wanted, must)
		default:
			wanted[i] = wanted[i] || must
		}
	}
	for _, name := range measures {
		if several || name != "scaling" {
			add(find(name), true)
		}
	}
	for _, name := range times {
		add(find(name), false)
	}
	for _, name := range o.More {
		q := find(name)
		if q == nil {
			return nil, nil, fmt.Errorf("unknown query %q; commq query --list names them", name)
		}
		add(q, true)
	}
	return chosen, wanted, nil
}

// titleRuns is the largest number of runs that a title names.
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

// describe returns what the page says about a run before any query.
func describe(i int, in Input, open bool) runPart {
	m := in.Manifest
	program := ""
	if len(m.Origin.Command) > 0 {
		program = shellquote.Join(m.Origin.Command...)
	}
	r := runPart{ID: fmt.Sprintf("run-%d", i), Name: Printable(in.Name), Open: open}
	amount := queries.Column{Type: "BIGINT", Unit: "1"}
	for _, v := range []any{program, int64(m.Ranks), int64(len(m.Origin.Hosts)), m.TimeOrigin, m.Counts.Calls,
		m.Counts.Messages, m.Counts.MessageBytes,
		m.Counts.Collectives, m.Ended, m.Origin.Started} {
		r.Overview = append(r.Overview, cellOf(v, amount))
	}
	for _, f := range in.Facts {
		r.Facts = append(r.Facts, Fact{Printable(f.Name), Printable(f.Value)})
	}
	r.Diagnosis = in.Diagnosis.printable()
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
	artist      *artist
	examined    []chan error            // by input
	reads       map[string]schema.Reads // by folder of the run: what the answers are made of
}

// asked is a section being filled.
type asked struct {
	*section
	answers []answer
	startup queries.Startup // what the answers leave out
}

// answer is the answer of one batch of runs.
type answer struct {
	run     string // "" of all runs together
	columns []queries.Column
	rows    [][]any // those that are drawn or shown
	total   int
	grid    *grid    // for a matrix
	picture *picture // of a timeline
}

// sqlComment matches comment lines of a query. The page leaves them out: they would be a quarter of it, and --sql
// shows them.
var sqlComment = regexp.MustCompile(`(?m)^ *--.*\n`)

func (b *builder) begin(q *queries.Query) *asked {
	s := &section{ID: q.Name, Query: q}
	chosen := argsOf(q)
	sql, _ := q.SQL(chosen)
	s.SQL = sqlComment.ReplaceAllString(sql, "")
	var lines []string
	if q.OverRuns {
		args := []string{"commq", "query", q.Name}
		for _, in := range b.inputs {
			args = append(args, in.Args...)
		}
		lines = append(lines, shellquote.Join(args...))
	} else {
		for _, in := range b.inputs {
			args := append([]string{"commq", "query", q.Name}, in.Args...)
			for _, name := range slices.Sorted(maps.Keys(chosen)) {
				args = append(args, "--"+name, chosen[name])
			}
			lines = append(lines, shellquote.Join(args...))
		}
	}
	s.Commands = cleanLines(lines)
	b.report.Sections = append(b.report.Sections, s)
	return &asked{section: s}
}

// examine begins to examine the runs, one after another. end ends that.
func (b *builder) examine(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	for range b.inputs {
		b.examined = append(b.examined, make(chan error, 1))
	}
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for i := range b.inputs {
			in := b.inputs[i]
			if in.Examine == nil {
				b.examined[i] <- nil
				continue
			}
			err := in.Examine(ctx, &in)
			b.inputs[i].Findings, b.inputs[i].Diagnosis = in.Findings, in.Diagnosis
			b.examined[i] <- err
		}
	}()
	return func() { cancel(); <-ended }
}

// ask opens each run once and asks it every query, then all runs together for the queries that compare runs.
func (b *builder) ask(ctx context.Context) error {
	over := func(q *queries.Query) bool { return q.OverRuns }
	for i := range b.inputs {
		if err := b.askRun(ctx, i, func(q *queries.Query) bool { return !over(q) }); err != nil {
			return err
		}
	}
	var runs []queries.Run
	for _, in := range b.inputs {
		runs = append(runs, in.Run)
	}
	return b.askRuns(ctx, runs, over)
}

// askRun asks a run some of the queries, and draws its causes.
func (b *builder) askRun(ctx context.Context, i int, take func(*queries.Query) bool) (err error) {
	in, name := &b.inputs[i], ""
	if len(b.inputs) > 1 {
		name = in.Name
	}
	runs := []queries.Run{in.Run}
	db, err := queries.Open(ctx, runs, b.o.Engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := b.askSections(ctx, db, runs, name, take); err != nil {
		return err
	}
	b.step("diagnosis", name)
	if err := <-b.examined[i]; err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	b.report.Runs[i] = describe(i, *in, len(b.inputs) == 1)
	return b.drawCauses(ctx, db, in, &b.report.Runs[i])
}

// step says what is done next, of a run if it has a name.
func (b *builder) step(what, run string) {
	if run != "" {
		what += " of " + run
	}
	if b.o.Progress != nil {
		b.o.Progress(what, b.done, b.total)
	}
	b.done++
}

// askRuns asks all runs together some of the queries.
func (b *builder) askRuns(ctx context.Context, runs []queries.Run, take func(*queries.Query) bool) (err error) {
	if !slices.ContainsFunc(b.sections, func(s *asked) bool { return take(s.Query) }) {
		return nil
	}
	db, err := queries.Open(ctx, runs, b.o.Engine)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return b.askSections(ctx, db, runs, "", take)
}

func (b *builder) askSections(ctx context.Context, db *queries.DB, runs []queries.Run, name string,
	take func(*queries.Query) bool) error {
	var wanted []*asked
	for _, s := range b.sections {
		if take(s.Query) {
			wanted = append(wanted, s)
		}
	}
	var startup *queries.Startup // what answers leave out, once it has been asked for
	for _, s := range wanted {
		b.step(s.Query.Name, name)
		if why := cannot(s.Query, runs); why != nil {
			s.Skipped = append(s.Skipped, why...)
			continue
		}
		rows, err := db.Ask(ctx, s.Query, argsOf(s.Query))
		if err != nil {
			return err
		}
		a := answer{run: name, columns: rows.Columns()}
		if err := errors.Join(b.read(&a, s.Query, runs[0], rows), rows.Close()); err != nil {
			return fmt.Errorf("query %s: %w", s.Query.Name, err)
		}
		s.answers = append(s.answers, a)
		for _, r := range runs {
			b.reads[r.Dir] |= s.Query.Reads(r.Manifest, argsOf(s.Query))
		}
		if !s.Query.LeavesOutStartup(nil) {
			continue
		}
		if startup == nil {
			found, err := db.Startup(ctx)
			if err != nil {
				return err
			}
			startup = &found
		}
		s.startup.Add(*startup)
	}
	return nil
}

// cannot returns the reasons why the runs cannot answer a query; nil if they can.
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

// drawnRows is the number of rows of an answer that a picture shows; a matrix shows all.
const drawnRows = 5000

// read stores the rows that are shown or drawn and counts the others.
func (b *builder) read(a *answer, q *queries.Query, run queries.Run, rows queries.Rows) error {
	keep := b.o.Rows
	if q.Plot != nil && q.Plot.Kind == "matrix" {
		a.grid = newGrid(q, int(run.Manifest.Ranks))
	} else if isTimeline(q) {
		var err error
		if rows, err = queries.Keep(rows); err != nil {
			return err
		}
		if a.picture, err = b.artist.drawTimeline(q, queries.Again(rows), run); err != nil {
			return err
		}
		rows = queries.Again(rows)
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

// narrow is the largest number of columns of a table in half a page.
const narrow = 6

// drawn prepares the answers for drawing.
func drawn(q *queries.Query, answers []answer) (*queries.Plot, []answer) {
	var p queries.Plot
	all := slices.Clone(answers)
	for i, a := range all {
		d := q.Drawn(a.columns, a.rows, nil, len(answers))
		p, all[i].columns, all[i].rows = d.Plot, d.Columns, d.Rows
	}
	return &p, all
}

// finish turns the answers into pictures and a table.
func (b *builder) finish(s *asked) {
	q := s.Query
	if len(s.answers) == 0 {
		return
	}
	s.Table = b.table(s.answers)
	if note := s.startup.Note(); note != "" {
		s.Notes = append(s.Notes, note+".")
	}
	switch {
	case q.Plot == nil: // a table alone
	case isTimeline(q):
		for _, a := range s.answers {
			a.picture.Run = Printable(a.run)
			s.Pictures = append(s.Pictures, a.picture)
		}
	case q.Plot.Kind == "matrix":
		for _, a := range s.answers {
			s.Matrices = append(s.Matrices, b.matrix(q, a))
		}
	case q.Plot.Kind == "bars" || q.Plot.Kind == "grouped" || q.Plot.Kind == "histogram":
		s.Bars = newBars(drawn(q, s.answers))
	default:
		s.Chart = newChart(drawn(q, s.answers))
	}
	s.Beside = q.Plot != nil && q.Plot.Kind != "lines" && !isTimeline(q) && len(s.answers) == 1 &&
		len(s.Table.Columns) <= narrow
	for _, a := range s.answers {
		if a.grid == nil && q.Plot != nil && a.picture == nil && a.total > len(a.rows) {
			s.Notes = append(s.Notes, fmt.Sprintf("The picture shows the first %s of %s rows.",
				comma(int64(len(a.rows))), comma(int64(a.total))))
			break
		}
	}
}
