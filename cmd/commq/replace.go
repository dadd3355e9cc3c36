package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/detect/replace"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// replaceOptions are the flags of commq replace.
type replaceOptions struct {
	run      string // --run
	findings string // --findings
	finding  []int  // --finding
	name     string // --name
}

func newReplaceCommand(a *app) *cobra.Command {
	var o replaceOptions
	c := &cobra.Command{
		Use:   "replace",
		Short: "Put collective operations in the place of messages that do them by hand",
		Long: `replace writes the run that a program would have if it called the collective operations that commq detect found, in the place of the
messages that do them: sends, receives and waits of these messages are gone, and each rank that takes part has a row of the collective.
What ranks compute stays. The run is untimed: commq simulate says what it takes on a machine.

--findings is the answer of commq detect --format json --messages; without it the run is looked at as commq detect does. A collective
stands where the last of a rank's operands is there, a rank without any has it where it has the first data; docs/method/replace.md has
the rules. Instances that would make ranks wait for each other for ever stay as they are, and are told.`,
		Example: `  commq replace --run hpl.16
  commq replace --run hpl.16 --finding 1,3 --name hpl.16.bcast
  commq detect --run hpl.16 --format json --messages > findings.json
  commq replace --run hpl.16 --findings findings.json
  commq simulate --run hpl.16.replaced --machine myrinet`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(c *cobra.Command, _ []string) error { return runReplace(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringVar(&o.run, "run", "", "`RUN` with the messages: a name in the store, or a path")
	f.StringVar(&o.findings, "findings", "", "`FILE` with the findings, of commq detect --format json --messages; - is standard input (default: look for them)")
	f.IntSliceVar(&o.finding, "finding", nil, "numbers of the findings to replace, from 1 (default: all)")
	f.StringVar(&o.name, "name", "", "`NAME` of the new run (default: the run's with .replaced)")
	register(c, completeRuns(a), "run")
	completeFiles(c, "findings")
	completeNothing(c, "finding", "name")
	return c
}

func runReplace(ctx context.Context, a *app, o *replaceOptions) error {
	if o.run == "" {
		return errors.New("no run given; name one with --run")
	}
	dir, err := writer.Find(a.storeDir(), o.run)
	if err != nil {
		return err
	}
	s := &replacement{dir: dir, name: filepath.Base(dir)}
	if s.manifest, err = writer.ReadManifest(dir); err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	if err := s.readFindings(ctx, a, o.findings); err != nil {
		return err
	}
	which, err := s.choose(o.finding)
	if err != nil {
		return err
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	plan := s.run.Plan(which)
	name := cmp.Or(o.name, s.name+".replaced")
	r, err := s.save(ctx, plan, a.storeDir(), name)
	if err != nil {
		return err
	}
	for _, l := range plan.Left {
		fmt.Fprintf(a.stderr, "commq: finding %d, instance %d stays: %s\n", s.numbers[l.Finding], l.Instance+1, l.Why)
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %s in the place of %s of %s; untimed: commq simulate --run %s --machine MACHINE times it\n", name,
		counted(r.Collectives, "collective"), counted(r.Messages, "message"), s.name, name)
	return err
}

// replacement is a run in which messages are to be replaced.
type replacement struct {
	dir, name string
	manifest  *schema.Manifest
	findings  []replace.Finding
	numbers   []int // of the findings
	run       *replace.Run
}

// check says what a run lacks.
func (s *replacement) check() error {
	m := s.manifest
	switch {
	case m.Record != "all":
		return fmt.Errorf("replace: run %q does not have the rows of all calls (record %s); capture it again with --record all", s.name, m.Record)
	case len(m.Filters) > 0:
		return fmt.Errorf("replace: run %q does not have the rows of all calls (%s); capture it again without filters", s.name, strings.Join(m.Filters, ", "))
	case m.Counts.Dropped > 0:
		return fmt.Errorf("replace: run %q misses %s that could not be recorded; capture it again with more space for the spool", s.name, counted(m.Counts.Dropped, "call"))
	}
	return nil
}

// readFindings reads a file of findings, or looks for them.
func (s *replacement) readFindings(ctx context.Context, a *app, file string) error {
	var p *printedDetection
	if file == "" {
		d := &detection{dir: s.dir, name: s.name}
		if err := d.detect(ctx, detect.Options{Messages: true}); err != nil {
			return err
		}
		p = d.printed()
	} else {
		p = &printedDetection{}
		data, err := readInput(a.stdin, file)
		if err != nil {
			return fmt.Errorf("--findings: %w", err)
		}
		if err := json.Unmarshal(data, p); err != nil {
			return fmt.Errorf("--findings %s: %w; want the answer of commq detect --format json --messages", file, err)
		}
		if p.RunDigest != s.manifest.Digest {
			return fmt.Errorf("--findings %s: the findings are of run %q with the digest %s; run %q has %s: commq detect --run %s --format json --messages makes its own",
				file, p.Run, cmp.Or(p.RunDigest, "(none)"), s.name, s.manifest.Digest, s.name)
		}
	}
	for i := range p.Findings {
		s.numbers = append(s.numbers, p.Findings[i].Finding)
	}
	var err error
	s.findings, err = p.replaceable()
	if err != nil && file != "" {
		return fmt.Errorf("--findings %s: %w", file, err)
	}
	return err
}

func readInput(stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(stdin)
	}
	return os.ReadFile(file)
}

// replaceable are the findings as replace wants them.
func (p *printedDetection) replaceable() ([]replace.Finding, error) {
	var out []replace.Finding
	for i := range p.Findings {
		x, err := p.Findings[i].replaceable()
		if err != nil {
			return nil, fmt.Errorf("finding %d: %w", i+1, err)
		}
		out = append(out, *x)
	}
	return out, nil
}

func (f *printedFinding) replaceable() (*replace.Finding, error) {
	op, err := replace.Operation(f.Operation)
	if err != nil {
		return nil, err
	}
	if int64(len(f.List)) != f.Instances {
		return nil, fmt.Errorf("%s in its list of %s; commq detect --format json writes them with --messages", counted(int64(len(f.List)), "instance"), grouped(f.Instances))
	}
	x := &replace.Finding{Operation: op, ReduceOp: schema.NullEnum, Comm: schema.NullInt32, Ranks: f.Ranks}
	if f.Communicator != nil {
		x.Comm = *f.Communicator
	}
	if len(f.Reductions) == 1 { // of several that agree nobody knows which is meant
		x.ReduceOp = int16(slices.Index(schema.OpNames, f.Reductions[0]))
	}
	for k := range f.List {
		in := detect.Instance{Root: schema.NullInt32, Bytes: f.List[k].Bytes, RankBytes: f.List[k].RankBytes}
		if f.List[k].Root != nil {
			in.Root = *f.List[k].Root
		}
		for _, m := range f.List[k].Messages {
			for _, rank := range m[:2] {
				if rank < 0 || rank > math.MaxInt32 {
					return nil, fmt.Errorf("instance %d: a message of rank %d", k+1, rank)
				}
			}
			one := detect.Message{Src: int32(m[0]), Dst: int32(m[1]), SendSeq: m[2], PostSeq: m[3], DoneSeq: m[4]}
			if m[4] < 0 {
				one.DoneSeq = schema.NullInt64
			}
			in.Messages = append(in.Messages, one)
		}
		x.Instances = append(x.Instances, in)
	}
	return x, nil
}

// choose are the places of the findings of these numbers; of all, where there are none.
func (s *replacement) choose(numbers []int) (which []int, err error) {
	if len(numbers) == 0 {
		for i := range s.findings {
			which = append(which, i)
		}
		return which, nil
	}
	for _, n := range numbers {
		k := slices.Index(s.numbers, n)
		if k < 0 {
			return nil, fmt.Errorf("--finding %d: there are %s; commq detect --run %s lists them", n, counted(int64(len(s.findings)), "finding"), s.name)
		}
		if !slices.Contains(which, k) {
			which = append(which, k)
		}
	}
	slices.Sort(which)
	return which, nil
}

// read reads the run.
func (s *replacement) read(ctx context.Context) error {
	src := &replace.Source{TypeBytes: map[int32]int64{}}
	err := writer.ReadTable(ctx, s.dir, &schema.RanksTable, smallRows, func(b schema.Batch) error {
		src.Threads = append(src.Threads, b.(*schema.RankInfos).Threads...)
		return nil
	})
	if err != nil {
		return err
	}
	err = writer.ReadTable(ctx, s.dir, &schema.CommsTable, smallRows, func(b schema.Batch) error {
		t := b.(*schema.Comms)
		for i, id := range t.Comm {
			if n := len(src.Comms); n == 0 || src.Comms[n-1].ID != id {
				src.Comms = append(src.Comms, replace.Comm{ID: id})
			}
			c := &src.Comms[len(src.Comms)-1]
			c.Inter = c.Inter || t.Remote[i] != 0 || t.WorldRank[i] == schema.NullInt32
			if t.WorldRank[i] != schema.NullInt32 {
				c.Members = append(c.Members, t.WorldRank[i])
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = writer.ReadTable(ctx, s.dir, &schema.DatatypesTable, smallRows, func(b schema.Batch) error {
		t := b.(*schema.Datatypes)
		for i, id := range t.ID {
			src.TypeBytes[id] = t.Bytes[i]
		}
		return nil
	})
	if err != nil {
		return err
	}
	src.Events = func(add func(*schema.Events) error) error {
		rows, err := writer.ReadEpochs(s.dir, &schema.EventsTable, eventRows, replace.EventColumns...)
		if err != nil {
			return err
		}
		return rows.All(ctx, func(b schema.Batch) error { return add(b.(*schema.Events)) })
	}
	src.Messages = func(add func(*schema.Messages) error) error {
		rows, err := writer.ReadEpochs(s.dir, &schema.MessagesTable, eventRows, replace.MessageColumns...)
		if err != nil {
			return err
		}
		return rows.All(ctx, func(b schema.Batch) error { return add(b.(*schema.Messages)) })
	}
	s.run, err = replace.Read(src, s.findings)
	return err
}

// save writes the run that the plan makes.
func (s *replacement) save(ctx context.Context, plan *replace.Plan, store, name string) (*schema.Replacement, error) {
	out, err := writer.Create(store, name, writer.Options{Check: true})
	if err != nil {
		return nil, err
	}
	defer out.Abort()
	w := &replacing{replacement: s, plan: plan, rows: plan.Rewriter(), out: out}
	if err := w.write(ctx); err != nil {
		return nil, fmt.Errorf("write run %q: %w", name, err)
	}
	m := w.replaced()
	return m.Origin.Replacement, out.Commit(m)
}

// replacing is a run that is being written.
type replacing struct {
	*replacement
	plan *replace.Plan
	rows *replace.Rewriter
	out  *writer.Run

	events   schema.Events
	messages schema.Messages
}

// write writes the tables; parts come after the events that they belong to.
func (w *replacing) write(ctx context.Context) error {
	change := map[*schema.Table]func(schema.Batch) (schema.Batch, error){
		&schema.EventsTable:   func(b schema.Batch) (schema.Batch, error) { return w.eventRows(b.(*schema.Events)), nil },
		&schema.MessagesTable: func(b schema.Batch) (schema.Batch, error) { return w.messageRows(b.(*schema.Messages)), nil },
		&schema.RanksTable:    func(b schema.Batch) (schema.Batch, error) { w.rankRows(b.(*schema.RankInfos)); return b, nil },
	}
	for _, t := range schema.Tables() {
		if t == &schema.PartsTable {
			continue
		}
		if err := w.out.ChangeTable(ctx, w.dir, t, copyRows, change[t]); err != nil {
			return err
		}
	}
	if len(w.plan.Comms()) > 0 {
		var comms schema.Comms
		for _, row := range w.plan.Comms() {
			comms.Append(&row)
		}
		if err := w.out.Write(0, &comms); err != nil {
			return err
		}
	}
	return w.parts(ctx)
}

// eventRows are rows without times.
func (w *replacing) eventRows(b *schema.Events) *schema.Events {
	w.events.Resize(0)
	w.rows.Events(b, &w.events)
	for _, column := range [][]int64{w.events.StartNs, w.events.EndNs, w.events.Polls, w.events.PollNs} {
		for i := range column {
			column[i] = schema.NullInt64
		}
	}
	return &w.events
}

func (w *replacing) messageRows(b *schema.Messages) *schema.Messages {
	w.messages.Resize(0)
	w.plan.Messages(b, &w.messages)
	m := &w.messages
	for _, column := range [][]int64{m.SendStartNs, m.SendEndNs, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs} {
		for i := range column {
			column[i] = schema.NullInt64
		}
	}
	return m
}

// rankRows says how many rows ranks have, and forgets polls and clocks.
func (w *replacing) rankRows(b *schema.RankInfos) {
	for i, rank := range b.Rank {
		b.Events[i], b.Polls[i] = w.plan.Rows(rank), 0
		b.ClockOffsetInitNs[i], b.ClockErrorInitNs[i] = schema.NullInt64, schema.NullInt64
		b.ClockOffsetFinalNs[i], b.ClockErrorFinalNs[i] = schema.NullInt64, schema.NullInt64
	}
}

// parts merges the parts of the new collectives with those that were there.
func (w *replacing) parts(ctx context.Context) error {
	added := w.rows.Parts()
	var rows schema.Parts
	err := writer.ReadTable(ctx, w.dir, &schema.PartsTable, smallRows, func(b schema.Batch) error {
		t := b.(*schema.Parts)
		rows.Resize(0)
		var x schema.Part
		for i := range t.Rank {
			t.Row(i, &x)
			x.Seq = w.plan.Row(x.Rank, x.Seq)
			for len(added) > 0 && partBefore(&added[0], &x) {
				rows.Append(&added[0])
				added = added[1:]
			}
			rows.Append(&x)
		}
		return w.out.Write(0, &rows)
	})
	if err != nil {
		return err
	}
	rows.Resize(0)
	for i := range added {
		rows.Append(&added[i])
	}
	return w.out.Write(0, &rows)
}

// partBefore compares by epoch, rank and seq: no two collectives have the same.
func partBefore(a, b *schema.Part) bool {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq)) < 0
}

// replaced is the manifest of the new run.
func (w *replacing) replaced() *schema.Manifest {
	m := *w.manifest
	m.TimeOrigin, m.TimeResolutionNs, m.EndNs = "untimed", 1, 0
	m.Collectives = map[string]int64{}
	for name, n := range w.manifest.Collectives {
		m.Collectives[name] = n
	}
	w.plan.Count(&m.Counts, m.Collectives)
	m.Counts.Polls, m.Counts.InProgress = 0, 0
	m.Counts.Choices, m.Counts.OutOfOrder, m.Counts.EarlyCollectives = 0, 0, 0
	m.Origin.Commq, m.Origin.Simulation = version, nil
	m.Origin.Replacement = &schema.Replacement{Run: w.name, RunDigest: w.manifest.Digest, Collectives: m.Counts.Collectives - w.manifest.Counts.Collectives,
		Messages: w.manifest.Counts.Messages - m.Counts.Messages, Left: int64(len(w.plan.Left))}
	return &m
}
