package run

import (
	"context"
	"maps"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Rewrite describes how a run is made from another one.
type Rewrite struct {
	// Store and Name say where the new run goes.
	Store, Name string
	// Replace allows that a run has the name already; the new one takes its place.
	Replace bool
	// Commq is the version of commq for the new run's origin.
	Commq string
	// TimeOrigin is the time origin of the new run. "untimed" removes the times, "simulated" leaves them to the
	// changed tables. Both reset everything that belongs to the old times: clock offsets, polls, and the counts that
	// only runs with virtual times have. "" keeps the times and all these.
	TimeOrigin string
	// Check checks the new run's rules before the run gets its name.
	Check bool
}

// Change returns the rows of the new run that replace those in the batch. It may change and return the batch itself;
// the result is written at once.
type Change func(schema.Batch) (schema.Batch, error)

// Rewriter writes a run that is made from another one. Commit or Abort ends it.
type Rewriter struct {
	source *Run
	how    Rewrite
	out    *writer.Run
}

// NewRewriter reserves the new run's name. The run is not visible before Commit.
func NewRewriter(source *Run, how Rewrite) (*Rewriter, error) {
	out, err := writer.Create(how.Store, how.Name, writer.Options{Check: how.Check, Replace: how.Replace})
	if err != nil {
		return nil, err
	}
	return &Rewriter{source: source, how: how, out: out}, nil
}

// copyRows is the number of rows that are copied at once: a row group each, if the source does not have smaller ones.
const copyRows = 1 << 17

// Copy copies a table with a change; nil changes nothing. Times, polls and clock offsets are reset after the change,
// as described at Rewrite.TimeOrigin. Derived tables are not copied: the writer makes them.
func (w *Rewriter) Copy(ctx context.Context, t *schema.Table, change Change) error {
	return w.out.ChangeTable(ctx, w.source.Dir, t, copyRows, func(b schema.Batch) (schema.Batch, error) {
		if change != nil {
			var err error
			if b, err = change(b); err != nil {
				return nil, err
			}
		}
		w.resetRows(b)
		return b, nil
	})
}

// CopyAll copies all tables, with the changes of those that have one.
func (w *Rewriter) CopyAll(ctx context.Context, changes map[*schema.Table]Change) error {
	for _, t := range schema.Tables() {
		if err := w.Copy(ctx, t, changes[t]); err != nil {
			return err
		}
	}
	return nil
}

// Append adds rows to a table's first file, in the order of the table's key.
func (w *Rewriter) Append(b schema.Batch) error {
	w.resetRows(b)
	return w.out.Write(0, b)
}

// resetRows resets the columns that do not hold in the new run.
func (w *Rewriter) resetRows(b schema.Batch) {
	if w.how.TimeOrigin == "" {
		return
	}
	untimed := w.how.TimeOrigin == "untimed"
	switch t := b.(type) {
	case *schema.Events:
		setNull(t.Polls, t.PollNs)
		if untimed {
			setNull(t.StartNs, t.EndNs)
		}
	case *schema.Messages:
		if untimed {
			setNull(t.SendStartNs, t.SendEndNs, t.RecvPostNs, t.RecvStartNs, t.RecvEndNs)
		}
	case *schema.RankInfos:
		clear(t.Polls)
		setNull(t.ClockOffsetInitNs, t.ClockErrorInitNs, t.ClockOffsetFinalNs, t.ClockErrorFinalNs)
	}
}

func setNull(columns ...[]int64) {
	for _, column := range columns {
		for i := range column {
			column[i] = schema.NullInt64
		}
	}
}

// Manifest returns a copy of the source's manifest for the new run, in which everything that does not hold there is
// reset. The caller changes it further, sets its origin and gives it to Commit.
func (w *Rewriter) Manifest() *schema.Manifest {
	m := *w.source.Manifest
	m.Collectives = map[string]int64{}
	maps.Copy(m.Collectives, w.source.Manifest.Collectives)
	m.Origin.Commq = w.how.Commq
	if w.how.TimeOrigin == "" {
		return &m
	}
	m.TimeOrigin, m.TimeResolutionNs, m.EndNs = w.how.TimeOrigin, 1, 0
	m.Counts.Polls, m.Counts.InProgress = 0, 0
	m.Counts.Choices, m.Counts.OutOfOrder, m.Counts.EarlyCollectives = 0, 0, 0
	m.Origin.Simulation = nil
	return &m
}

// Commit completes the new run and gives it its name; see writer.Run.Commit.
func (w *Rewriter) Commit(ctx context.Context, m *schema.Manifest) error { return w.out.Commit(ctx, m) }

// Abort removes the written files, unless the run was committed.
func (w *Rewriter) Abort() error { return w.out.Abort() }
