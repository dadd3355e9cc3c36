package replace

import (
	"cmp"
	"context"
	"fmt"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Need lists the requirements on a run in which findings are to be replaced.
var Need = run.Need{Command: "replace", AllCalls: true, NoneDropped: true}

// Open reads a run in order to replace findings in it.
func Open(ctx context.Context, r *run.Run, findings []Finding) (*Run, error) {
	source := &Source{Threads: r.Ranks.Threads, Comms: r.Comms, TypeBytes: map[int32]int64{},
		Events:   r.Events(ctx, EventColumns...),
		Messages: r.Messages(ctx, MessageColumns...)}
	for i := range r.Datatypes {
		source.TypeBytes[r.Datatypes[i].ID] = r.Datatypes[i].Bytes
	}
	return Read(source, findings)
}

// Write writes the run that the plan makes of source, without times. how gives its destination.
func (p *Plan) Write(ctx context.Context, source *run.Run, how run.Rewrite) (*schema.Replacement, error) {
	how.TimeOrigin, how.Check = "untimed", true
	out, err := run.NewRewriter(source, how)
	if err != nil {
		return nil, err
	}
	defer out.Abort()
	w := &tableWriter{source: source, plan: p, rows: p.Rewriter(), out: out}
	if err := w.write(ctx); err != nil {
		return nil, fmt.Errorf("write run %q: %w", how.Name, err)
	}
	m := w.manifest()
	return m.Origin.Replacement, out.Commit(ctx, m)
}

// tableWriter writes the tables of the new run.
type tableWriter struct {
	source *run.Run
	plan   *Plan
	rows   *Rewriter
	out    *run.Rewriter

	events   schema.Events
	messages schema.Messages
}

// write writes all tables. Parts come last because they need the events that they belong to.
func (w *tableWriter) write(ctx context.Context) error {
	change := map[*schema.Table]run.Change{
		&schema.EventsTable:   w.changeEvents,
		&schema.MessagesTable: w.changeMessages,
		&schema.RanksTable:    w.changeRanks,
	}
	for _, t := range schema.Tables() {
		if t == &schema.PartsTable {
			continue
		}
		if err := w.out.Copy(ctx, t, change[t]); err != nil {
			return err
		}
	}
	if len(w.plan.Comms()) > 0 {
		var comms schema.Comms
		for _, row := range w.plan.Comms() {
			comms.Append(&row)
		}
		if err := w.out.Append(&comms); err != nil {
			return err
		}
	}
	return w.mergeParts(ctx)
}

func (w *tableWriter) changeEvents(b schema.Batch) (schema.Batch, error) {
	w.events.Resize(0)
	w.rows.Events(b.(*schema.Events), &w.events)
	return &w.events, nil
}

func (w *tableWriter) changeMessages(b schema.Batch) (schema.Batch, error) {
	w.messages.Resize(0)
	w.plan.Messages(b.(*schema.Messages), &w.messages)
	return &w.messages, nil
}

// changeRanks sets the new numbers of rows of the ranks.
func (w *tableWriter) changeRanks(b schema.Batch) (schema.Batch, error) {
	ranks := b.(*schema.RankInfos)
	for i, rank := range ranks.Rank {
		ranks.Events[i] = w.plan.Rows(rank)
	}
	return b, nil
}

// mergeParts merges the parts of the new collectives with those of the run, in order.
func (w *tableWriter) mergeParts(ctx context.Context) error {
	added := w.rows.Parts()
	var rows schema.Parts
	err := w.source.Parts(ctx)(func(t *schema.Parts) error {
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
		return w.out.Append(&rows)
	})
	if err != nil {
		return err
	}
	rows.Resize(0)
	for i := range added {
		rows.Append(&added[i])
	}
	return w.out.Append(&rows)
}

// partBefore orders parts by epoch, rank and seq, which together name one collective.
func partBefore(a, b *schema.Part) bool {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq)) < 0
}

// manifest returns the manifest of the new run.
func (w *tableWriter) manifest() *schema.Manifest {
	m := w.out.Manifest()
	w.plan.Count(&m.Counts, m.Collectives)
	from := w.source.Manifest
	m.Origin.Replacement = &schema.Replacement{Run: w.source.Name, RunDigest: from.Digest,
		Collectives: m.Counts.Collectives - from.Counts.Collectives,
		Messages:    from.Counts.Messages - m.Counts.Messages, Left: int64(len(w.plan.Left))}
	return m
}
