package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// criticalOptions are the flags of commq critical-path.
type criticalOptions struct {
	run    string   // --run
	by     []string // --by
	until  string   // --until
	format string   // --format
	limit  int      // --limit
}

// pathKeys are what the rows of a critical path can be by.
var pathKeys, sitesAndCalls = []string{"callsite", "call", "rank"}, []string{"callsite", "call"}

func newCriticalPathCommand(a *app) *cobra.Command {
	var o criticalOptions
	c := &cobra.Command{
		Use:   "critical-path",
		Short: "What a run's duration is made of: its critical path by call site",
		Long: `critical-path walks a run back from the end of its last rank: through what that rank did, and where it waited for a message or for
others in a collective on through what the rank did that it waited for. The pieces are the run's duration, to the nanosecond: what is not
on the path would not make the run shorter. The times are of computing before a call, inside calls of point-to-point and collective
communication and others, and of transfer: from when the other side of a message was ready. docs/method/critical-path.md has the rule.

The run has times and the rows of all its calls; commq simulate --critical-path shows the path on another machine.`,
		Example: `  commq critical-path --run mg.W.16
  commq critical-path --run mg.W.16 --by call
  commq critical-path --run mg.W.16 --by rank --format csv`,
		Args:              wantArgs(0, 0, "no arguments but flags; name the run with --run"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", o.format, runsFormats[:]...); err != nil {
				return err
			}
			return runCriticalPath(c.Context(), a, &o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` to walk: a name in the store, or a path")
	f.StringSliceVar(&o.by, "by", sitesAndCalls, "what has a row: any of "+strings.Join(pathKeys, ", ")+", with commas")
	f.StringVar(&o.until, "until", "needed", "whom a rank waits for in a collective: needed, those whose data it needs, or last, the last rank in all operations")
	f.IntVar(&o.limit, "limit", 0, "print at most `N` rows, 0 for all")
	formatFlag(c, &o.format)
	register(c, completeRuns(a), "run")
	complete(c, "by", append(pathKeys, "callsite,rank", "call,rank", "callsite,call,rank")...)
	complete(c, "until", "needed", "last")
	completeNothing(c, "limit")
	return c
}

func (o *criticalOptions) check() error {
	switch {
	case o.run == "":
		return errors.New("no run given; name one with --run")
	case len(o.by) == 0:
		return fmt.Errorf("--by: want any of %s, with commas", strings.Join(pathKeys, ", "))
	case o.limit < 0:
		return fmt.Errorf("--limit %d: want a number of rows, 0 for all", o.limit)
	}
	for _, key := range o.by {
		if err := oneOf("by", key, pathKeys...); err != nil {
			return err
		}
	}
	return oneOf("until", o.until, "needed", "last")
}

func runCriticalPath(ctx context.Context, a *app, o *criticalOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	dir, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		return err
	}
	name := filepath.Base(dir)
	switch {
	case m.TimeOrigin == "untimed":
		return fmt.Errorf("critical-path: run %q is untimed; commq simulate --critical-path gives it the times of a machine", name)
	case m.Record != "all":
		return fmt.Errorf("critical-path: run %q does not have the rows of all calls (record %s); capture it again with --record all", name, m.Record)
	case len(m.Filters) > 0:
		return fmt.Errorf("critical-path: run %q does not have the rows of all calls (%s); capture it again without filters", name, strings.Join(m.Filters, ", "))
	}
	p := &pathOf{ctx: ctx, dir: dir, graph: critical.New(int(m.Ranks), critical.Options{Last: o.until == "last" || m.TimeOrigin != "measured", Eager: m.TimeOrigin == "virtual"})}
	if err := p.members(); err != nil {
		return err
	}
	rows, err := writer.ReadEpochs(dir, &schema.EventsTable, eventRows, critical.Columns...)
	if err != nil {
		return err
	}
	if err := rows.All(ctx, func(b schema.Batch) error { return p.graph.AddEvents(b.(*schema.Events)) }); err != nil {
		return fmt.Errorf("critical-path of %s: %w", name, err)
	}
	if err := p.messages(); err != nil {
		return err
	}
	p.walk(nil)
	if o.format == "table" {
		if err := p.summary(a.screen(), name); err != nil {
			return err
		}
	}
	return output.Write(a.screen(), o.format, output.Limit(p.rows(o.by), o.limit))
}

// pathOf is the critical path of a run.
type pathOf struct {
	ctx      context.Context
	dir      string
	graph    *critical.Graph
	duration int64 // ns
	from     int32 // rank that ends last
	jumps    int   // from one rank to another
	parts    map[pathKey]*pathPart
}

// pathKey is what has times of its own.
type pathKey struct {
	rank, site int32
	call       schema.CallID
}

// pathPart is the time of a part of the path, by kind, and how many pieces it is in.
type pathPart struct {
	ns     [critical.Kinds]int64
	pieces int64
}

// members tells the graph who is in which communicator, in order.
func (p *pathOf) members() error {
	return writer.ReadTable(p.ctx, p.dir, &schema.CommsTable, smallRows, func(b schema.Batch) error {
		t := b.(*schema.Comms)
		for i, world := range t.WorldRank {
			if world != schema.NullInt32 {
				p.graph.AddMember(t.Comm[i], world)
			}
		}
		return nil
	})
}

func (p *pathOf) messages() error {
	rows, err := writer.ReadEpochs(p.dir, &schema.MessagesTable, eventRows, critical.MessageColumns...)
	if err != nil {
		return err
	}
	return rows.All(p.ctx, func(b schema.Batch) error { p.graph.AddMessages(b.(*schema.Messages)); return nil })
}

// walk walks the path and adds its pieces up.
func (p *pathOf) walk(finish []int64) {
	p.parts, p.from = map[pathKey]*pathPart{}, -1
	before := int32(-1)
	p.duration = p.graph.Walk(finish, func(s critical.Segment) {
		if p.from < 0 {
			p.from = s.Rank
		} else if s.Rank != before {
			p.jumps++
		}
		before = s.Rank
		k := pathKey{s.Rank, s.Site, s.Call}
		part := p.parts[k]
		if part == nil {
			part = &pathPart{}
			p.parts[k] = part
		}
		part.ns[s.Kind] += s.To - s.From
		part.pieces++
	})
}

// total is the time of a part.
func (p *pathPart) total() (ns int64) {
	for _, t := range p.ns {
		ns += t
	}
	return ns
}

// summary says in a line what the path is.
func (p *pathOf) summary(w io.Writer, name string) error {
	if p.duration == 0 {
		return nil
	}
	var sum pathPart
	for _, part := range p.parts {
		for k, ns := range part.ns {
			sum.ns[k] += ns
		}
	}
	var text []string
	for k := range critical.Kinds {
		if ns := sum.ns[k]; ns > 0 {
			text = append(text, fmt.Sprintf("%s %s", percent(float64(ns)/float64(p.duration)), k))
		}
	}
	_, err := fmt.Fprintf(w, "critical path of %s: %s s back from rank %d, with %s: %s\n\n", name, seconds(p.duration), p.from, counted(int64(p.jumps), "change")+" of rank", strings.Join(text, ", "))
	return err
}

// table prints the path behind a prediction.
func (p *pathOf) table(w io.Writer, name string) error {
	fmt.Fprintln(w)
	if err := p.summary(w, name); err != nil {
		return err
	}
	return output.Write(w, "table", p.rows(sitesAndCalls))
}

// json is the path by call site, call and rank, as JSON has it; nil where there is none.
func (p *pathOf) json() (all []map[string]any) {
	if p == nil {
		return nil
	}
	for rows := p.rows(pathKeys); rows.Next(); {
		row := map[string]any{}
		for i, c := range rows.Columns() {
			row[c.Name] = rows.Row()[i]
		}
		all = append(all, row)
	}
	return all
}

// pathColumns are the columns of times.
var pathColumns = []queries.Column{{Name: "path_ns", Type: "BIGINT", Unit: "ns"}, {Name: "fraction", Type: "DOUBLE"}, {Name: "compute_ns", Type: "BIGINT", Unit: "ns"},
	{Name: "point_to_point_ns", Type: "BIGINT", Unit: "ns"}, {Name: "transfer_ns", Type: "BIGINT", Unit: "ns"}, {Name: "collective_ns", Type: "BIGINT", Unit: "ns"},
	{Name: "other_ns", Type: "BIGINT", Unit: "ns"}, {Name: "pieces", Type: "BIGINT"}}

// rows adds the path up by some of its keys, longest first.
func (p *pathOf) rows(by []string) queries.Rows {
	site := (&runSimulation{dir: p.dir}).callsite(p.ctx)
	type key struct {
		callsite, call string
		rank           int32
	}
	sums := map[key]*pathPart{}
	for k, part := range p.parts {
		var to key
		if slices.Contains(by, "callsite") {
			to.callsite = site(k.site)
		}
		if slices.Contains(by, "call") {
			to.call = k.call.String()
		}
		if slices.Contains(by, "rank") {
			to.rank = k.rank
		}
		sum := sums[to]
		if sum == nil {
			sum = &pathPart{}
			sums[to] = sum
		}
		for kind, ns := range part.ns {
			sum.ns[kind] += ns
		}
		sum.pieces += part.pieces
	}
	var keys []key
	for k := range sums {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(sums[b].total(), sums[a].total()), cmp.Compare(a.callsite, b.callsite), cmp.Compare(a.call, b.call), cmp.Compare(a.rank, b.rank))
	})
	var columns []queries.Column
	for _, name := range pathKeys {
		if slices.Contains(by, name) {
			columns = append(columns, queries.Column{Name: name, Type: map[bool]string{true: "INTEGER", false: "VARCHAR"}[name == "rank"]})
		}
	}
	var rows [][]any
	for _, k := range keys {
		var row []any
		for _, c := range columns {
			switch c.Name {
			case "callsite":
				row = append(row, nullIfEmpty(k.callsite))
			case "call":
				row = append(row, k.call)
			case "rank":
				row = append(row, k.rank)
			}
		}
		sum := sums[k]
		row = append(row, sum.total(), rounded6(float64(sum.total())/float64(p.duration)))
		for _, kind := range []critical.Kind{critical.Compute, critical.PointToPoint, critical.Transfer, critical.Collective, critical.Other} {
			row = append(row, sum.ns[kind])
		}
		rows = append(rows, append(row, sum.pieces))
	}
	return queries.RowsOf(append(columns, pathColumns...), rows)
}

// nullIfEmpty is a text, or null for none.
func nullIfEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// criticalPath simulates the program and walks its critical path.
func (s *runSimulation) criticalPath(ctx context.Context) (*pathOf, error) {
	p := &pathOf{ctx: ctx, dir: s.dir, graph: critical.New(len(s.program.Threads), critical.Options{Last: true})}
	if err := p.members(); err != nil {
		return nil, err
	}
	columns := slices.Clone(critical.Columns)
	for _, c := range simulate.Columns {
		if !slices.Contains(columns, c) {
			columns = append(columns, c)
		}
	}
	rows, err := writer.ReadEpochs(s.dir, &schema.EventsTable, eventRows, columns...)
	if err != nil {
		return nil, err
	}
	o := s.options
	o.Done = func(rank int32, seq int64, start, end models.Picoseconds) {
		p.graph.SetTime(rank, seq, inNs(start), inNs(end))
	}
	r, err := simulate.Simulate(s.machine, s.program, &o, func(add func(*schema.Events) error) error {
		return rows.Next(ctx, func(b schema.Batch) error {
			if err := p.graph.AddEvents(b.(*schema.Events)); err != nil {
				return err
			}
			return add(b.(*schema.Events))
		})
	})
	if err != nil {
		return nil, err
	}
	if err := p.messages(); err != nil {
		return nil, err
	}
	var finish []int64
	for _, t := range r.Ranks {
		finish = append(finish, inNs(t.Finish))
	}
	p.walk(finish)
	return p, nil
}
