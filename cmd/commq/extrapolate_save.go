package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/capture/match"
	"github.com/commq/commq/predict"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

const (
	// extrapolatedRows is how many rows of events an epoch of an extrapolated run has at most, over all ranks.
	extrapolatedRows = 1 << 18
	// unmatchedShown is how many messages without a partner an error names.
	unmatchedShown = 3
)

// extrapolated is an extrapolated run that is being written.
type extrapolated struct {
	run      *predict.Run
	stream   *predict.Stream
	out      *writer.Run
	matcher  match.Rows
	shardOf  []int
	events   []schema.Events // by shard, of the epoch
	messages []schema.Messages
	parts    []schema.Parts
	manifest *schema.Manifest
	first    map[int32]int32 // the world rank of the first member of each communicator
	received map[rowOf]int64 // bytes of receives that get other than their law says
}

// rowOf names a row of events.
type rowOf struct {
	rank int32
	seq  int64
}

// saveExtrapolation writes the run. It is an error when a send has no receive or a receive no send.
func saveExtrapolation(ctx context.Context, a *app, m *predict.Model, x *predict.Extrapolation, name string) (*schema.Manifest, error) {
	if n := len(x.Unmatched); n > 0 {
		return nil, fmt.Errorf("write run %q: messages without a partner at %d places: %s", name, n, strings.Join(x.Unmatched[:min(n, unmatchedShown)], "; "))
	}
	out, err := writer.Create(a.storeDir(), name, writer.Options{})
	if err != nil {
		return nil, err
	}
	defer out.Abort()
	w := &extrapolated{run: x.Run, out: out, first: map[int32]int32{}}
	if x.Inexact > 0 {
		update, finish := newProgress(a, "pairing "+name, "calls")
		w.received, err = received(ctx, x.Signature, update)
		finish()
	}
	if err == nil {
		update, finish := newProgress(a, "writing "+name, "calls")
		err = w.write(ctx, x.Signature, update)
		finish()
	}
	if err != nil {
		return nil, fmt.Errorf("extrapolate: %w", err)
	}
	w.manifest.Origin = schema.Origin{Commq: version, Prediction: &schema.Prediction{Numbers: x.Numbers, Inexact: x.Inexact}}
	for _, s := range m.Runs() {
		for _, c := range s.Captures[min(1, len(s.Captures)):] { // the first is the run
			w.manifest.Origin.Prediction.Runs = append(w.manifest.Origin.Prediction.Runs, schema.PredictedFrom{Run: c.Run, Digest: c.Digest, Ranks: s.Ranks})
		}
		w.manifest.Origin.Prediction.Runs = append(w.manifest.Origin.Prediction.Runs, schema.PredictedFrom{Run: s.Run, Digest: s.Digest, Ranks: s.Ranks})
	}
	w.manifest.Warnings = x.Warnings
	if text, is := x.Undecided(); is {
		w.manifest.Warnings = append(slices.Clone(x.Warnings), predict.Undecided+": "+text)
	}
	return w.manifest, out.Commit(w.manifest)
}

// streamed is the rows of a signature in epochs of the size that an extrapolated run has.
func streamed(ctx context.Context, s *predict.Signature) (*predict.Stream, error) {
	return await(ctx, func() (*predict.Stream, error) { return s.Stream(max(extrapolatedRows/int64(s.Ranks), 1)), nil })
}

// received are the bytes of receives of which the law says other than the law of the send that they get, by the row that posts them: where one side is
// an estimate the two need not agree. A message has what is sent.
func received(ctx context.Context, s *predict.Signature, update func(done, total int64)) (map[rowOf]int64, error) {
	stream, err := streamed(ctx, s)
	if err != nil {
		return nil, err
	}
	other := map[rowOf]int64{}
	var matcher match.Rows
	events := &schema.Events{}
	done := int64(0)
	for range stream.Epochs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		events.Resize(0)
		for rank := range s.Ranks {
			if err := stream.Next(rank, events); err != nil {
				return nil, err
			}
		}
		matcher.Epoch([]*schema.Events{events}, func(s *match.Send, r *match.Recv) {
			if r.Bytes != s.Bytes {
				other[rowOf{r.Dst, r.PostSeq}] = s.Bytes
			}
		})
		done += int64(events.Len())
		update(done, s.Calls)
	}
	return other, nil
}

// write writes the tables and begins the manifest.
func (w *extrapolated) write(ctx context.Context, s *predict.Signature, update func(done, total int64)) error {
	var err error
	w.stream, err = streamed(ctx, s)
	if err != nil {
		return err
	}
	w.matcher.Callsite = w.stream.Callsite
	m := *w.run.Manifest
	w.manifest = &m
	m.TimeResolutionNs, m.Epochs, m.Collectives = 1, w.stream.Epochs, map[string]int64{}
	m.Counts.Calls = s.Calls
	if err := w.tables(); err != nil {
		return err
	}
	shards := 0
	w.shardOf, shards = writer.Shards(w.stream.Calls, 0)
	w.events, w.messages, w.parts = make([]schema.Events, shards), make([]schema.Messages, shards), make([]schema.Parts, shards)
	done := int64(0)
	for epoch := range w.stream.Epochs {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, err := w.epoch(epoch)
		if err != nil {
			return err
		}
		done += rows
		update(done, s.Calls)
	}
	c := &m.Counts
	if c.UnmatchedSends, c.UnmatchedReceives = w.matcher.Waiting(); c.UnmatchedSends+c.UnmatchedReceives > 0 {
		return fmt.Errorf("%s and %s have no partner", counted(c.UnmatchedSends, "send"), counted(c.UnmatchedReceives, "receive"))
	}
	return nil
}

// tables writes the small tables.
func (w *extrapolated) tables() error {
	comms, sites, types, ranks := &schema.Comms{}, &schema.Callsites{}, &schema.Datatypes{}, &schema.RankInfos{}
	for i := range w.run.Comms {
		c := &w.run.Comms[i]
		comms.Append(c)
		if c.CommRank == 0 && c.Remote == 0 {
			w.first[c.Comm] = c.WorldRank
		}
	}
	for i := range w.run.Callsites {
		sites.Append(&w.run.Callsites[i])
	}
	for i := range w.run.Datatypes {
		types.Append(&w.run.Datatypes[i])
	}
	for rank, calls := range w.stream.Calls {
		row := schema.NullRankInfo
		row.Rank, row.Threads, row.Events, row.Ended = int32(rank), 1, calls, schema.EndedFinalized
		ranks.Append(&row)
	}
	return errors.Join(w.out.Write(0, comms), w.out.Write(0, sites), w.out.Write(0, types), w.out.Write(0, ranks))
}

// epoch writes the rows of an epoch, and says how many there are.
func (w *extrapolated) epoch(epoch int32) (rows int64, err error) {
	for i := range w.events {
		w.events[i].Resize(0)
		w.messages[i].Resize(0)
		w.parts[i].Resize(0)
	}
	for rank, shard := range w.shardOf {
		b := &w.events[shard]
		first := b.Len()
		w.stream.Parts = &w.parts[shard]
		if err := w.stream.Next(int32(rank), b); err != nil {
			return 0, err
		}
		for i := first; i < b.Len() && len(w.received) > 0; i++ {
			if bytes, other := w.received[rowOf{int32(rank), b.Seq[i]}]; other {
				b.RecvBytes[i] = bytes
			}
		}
	}
	pieces := make([]*schema.Events, len(w.events))
	for i := range w.events {
		pieces[i] = &w.events[i]
		w.count(pieces[i])
		rows += int64(pieces[i].Len())
	}
	w.matcher.Epoch(pieces, func(s *match.Send, r *match.Recv) { w.message(epoch, s, r) })
	for i := range w.events {
		if err := errors.Join(w.out.Write(i, &w.events[i]), w.out.Write(i, &w.messages[i]), w.out.Write(i, &w.parts[i])); err != nil {
			return 0, err
		}
	}
	return rows, nil
}

// count counts collectives, each at the first rank of its communicator.
func (w *extrapolated) count(b *schema.Events) {
	for i, rank := range b.Rank {
		if schema.Class(b.Class[i]) == schema.ClassCollective && b.Instance[i] != schema.NullInt64 && w.first[b.Comm[i]] == rank {
			w.manifest.Collectives[schema.CallID(b.Call[i]).String()]++
			w.manifest.Counts.Collectives++
		}
	}
}

// message makes the row of a message.
func (w *extrapolated) message(epoch int32, s *match.Send, r *match.Recv) {
	m := schema.NullMessage
	m.Src, m.Dst, m.Epoch, m.Comm, m.Tag, m.Bytes = s.Src, s.Dst, epoch, s.Comm, s.Tag, s.Bytes
	m.SendCount, m.SendDatatype, m.SendCallsite = s.Count, s.Datatype, s.Callsite
	m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq, m.RecvCallsite = s.Seq, r.PostSeq, r.DoneSeq, r.Callsite
	w.messages[w.shardOf[s.Src]].Append(&m)
	c := &w.manifest.Counts
	c.Messages++
	c.MessageBytes += s.Bytes
	if r.Any > 0 {
		c.WildcardReceives++
	}
}

// predictedFrom names the runs that a run was predicted from.
func predictedFrom(p *schema.Prediction) string {
	var names []string
	for _, r := range p.Runs {
		names = append(names, r.Run)
	}
	return strings.Join(names, ", ")
}
