package ingest

import (
	"context"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/derive"
)

// writeRows writes events, messages and parts, and returns what it counted.
func writeRows(ctx context.Context, j *job, p *plan, o *Options, out sink) (*tally, error) {
	l := newLayout(j.ranks, o)
	first := newPass(p, l, j.size, o.Workers)
	w := newRowWriter(out, o, l.shards)
	if s, ok := out.(waitSummer); ok && o.Record == RecordAll && !p.filter.keepsEarly() {
		w.waits = s.SumWaits(p.rankRows(j).Host, p.comms.Rows(), true)
	}
	if err := w.writeAll(ctx, first); err != nil {
		return nil, err
	}
	if o.Record != RecordMessages {
		return first.tally(), nil
	}
	// Which rows are kept is known only now that all messages are matched, so the rows are made a second time.
	second := newPass(p, l, j.size, o.Workers)
	second.keepSome()
	for i, unmatched := range first.unmatched() {
		second.decoders[i].filter.unmatched = unmatched
	}
	decode := func(e *epoch) error { return second.decode(ctx, e) }
	err := second.eachEpoch(decode, func(e *epoch) error {
		return parallel(ctx, o.Workers, len(second.shards), func(s int) error { return w.writeKept(second, e, s) })
	})
	if err != nil {
		return nil, err
	}
	return first.tally(), nil
}

// rowWriter writes the rows that a pass makes.
type rowWriter struct {
	out   sink
	o     *Options
	kept  []schema.Events  // by shard: the rows of an epoch that are kept
	parts schema.Parts     // that are not written yet
	waits *derive.WaitSums // nil: the writer reads the files again for them

	// putParts, when not nil, takes the parts of each epoch instead of the sink.
	putParts func(epoch int32, parts *schema.Parts) error
	// beginEpoch, when not nil, is called before an epoch is made.
	beginEpoch func(epoch int32) error
}

func newRowWriter(out sink, o *Options, shards int) *rowWriter {
	return &rowWriter{out: out, o: o, kept: make([]schema.Events, shards)}
}

// writeAll makes and writes the rows of all epochs. With RecordMessages it writes no events.
func (w *rowWriter) writeAll(ctx context.Context, p *pass) error {
	if p.plan.filter.keepsEarly() {
		p.keepSome()
	}
	done := int64(0)
	return p.eachEpoch(func(e *epoch) error { return w.makeEpoch(ctx, p, e) }, func(e *epoch) error {
		if err := w.writeEpoch(ctx, p, e); err != nil {
			return err
		}
		for _, r := range p.layout.ranks {
			done += r.starts[e.number+1].row - r.starts[e.number].row
		}
		w.o.Progress(done, p.layout.rows)
		return nil
	})
}

// makeEpoch makes the rows of an epoch.
func (w *rowWriter) makeEpoch(ctx context.Context, p *pass, e *epoch) error {
	if w.beginEpoch != nil {
		if err := w.beginEpoch(e.number); err != nil {
			return err
		}
	}
	if err := p.decode(ctx, e); err != nil {
		return err
	}
	if err := p.match(ctx, e); err != nil {
		return err
	}
	p.gatherParts(e)
	return nil
}

// writeEpoch writes the rows of an epoch. They have been matched: the hashes of a matched send go to its message, so
// its event changes.
func (w *rowWriter) writeEpoch(ctx context.Context, p *pass, e *epoch) error {
	err := parallel(ctx, w.o.Workers, 1+2*len(p.shards), func(k int) error {
		if k == 0 {
			w.sumWaits(e)
			return nil
		}
		shard := (k - 1) / 2
		if k%2 == 0 {
			return w.out.Write(shard, &e.messages[shard])
		}
		if w.o.Record == RecordMessages {
			return nil
		}
		if p.plan.filter.keepsEarly() {
			return w.writeKept(p, e, shard)
		}
		return w.out.Write(shard, &e.events[shard])
	})
	if err != nil {
		return err
	}
	if w.putParts != nil {
		return w.putParts(e.number, &e.parts)
	}
	var row schema.Part
	for i := range e.parts.Len() {
		e.parts.Row(i, &row)
		w.parts.Append(&row)
	}
	return writeParts(w.out, &w.parts, e.number == p.plan.epochs()-1)
}

// sumWaits adds the epoch's rows to the sums of waits.
func (w *rowWriter) sumWaits(e *epoch) {
	if w.waits == nil {
		return
	}
	var events []*schema.Events
	var messages []*schema.Messages
	for i := range e.events {
		events, messages = append(events, &e.events[i]), append(messages, &e.messages[i])
	}
	w.waits.Epoch(events, messages)
}

// partsRows is the number of parts that are collected before they are written.
const partsRows = 1 << 18

// writeParts writes the parts when there are many, and at the end.
func writeParts(out sink, parts *schema.Parts, last bool) error {
	if parts.Len() == 0 || !last && parts.Len() < partsRows {
		return nil
	}
	err := out.Write(0, parts)
	parts.Resize(0)
	return err
}

// writeKept writes those rows of a shard that are kept.
func (w *rowWriter) writeKept(p *pass, e *epoch, shard int) error {
	kept := &w.kept[shard]
	kept.Resize(0)
	var row schema.Event
	for _, i := range p.shards[shard].ranks {
		for k, keep := range e.keep[i] {
			if keep {
				e.events[shard].Row(e.bases[i]+k, &row)
				kept.Append(&row)
			}
		}
	}
	return w.out.Write(shard, kept)
}
