package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Untimed describes a run without times whose calls are generated. WriteUntimed pairs its messages and counts.
type Untimed struct {
	// Store and Name say where the run goes.
	Store, Name string
	// Replace allows that a run has the name already; the new one takes its place.
	Replace bool
	// Manifest is that of the run but for the number of epochs and the counts.
	Manifest schema.Manifest
	// Comms, Callsites and Datatypes are the rows of these tables, in their order.
	Comms     []schema.Comm
	Callsites []schema.Callsite
	Datatypes []schema.Datatype
	// Epochs is the number of epochs, Calls the number of calls of each rank.
	Epochs int32
	Calls  []int64
	// Next adds the rows of events of a rank's next epoch to events, and their parts to parts.
	Next func(rank int32, events *schema.Events, parts *schema.Parts) error
	// Callsite finds the call site of a row of a later epoch that completes a receive; see match.Rows.
	Callsite func(rank int32, seq int64) int32
	// Progress is called with the number of calls that are written; nil means no callback.
	Progress func(done, total int64)
}

// WriteUntimed writes the run and returns its manifest. A send without a receive, or a receive without a send, is an
// error.
func WriteUntimed(ctx context.Context, u *Untimed) (*schema.Manifest, error) {
	out, err := writer.Create(u.Store, u.Name, writer.Options{Replace: u.Replace})
	if err != nil {
		return nil, err
	}
	defer out.Abort()
	w := newUntimedWriter(u, out)
	if err := w.write(ctx); err != nil {
		return nil, fmt.Errorf("write run %q: %w", u.Name, err)
	}
	return &w.manifest, out.Commit(ctx, &w.manifest)
}

// untimedWriter writes the tables of an untimed run.
type untimedWriter struct {
	in       *Untimed
	out      *writer.Run
	matcher  match.Rows
	manifest schema.Manifest
	first    map[int32]int32 // by communicator: the world rank of its first member
	shardOf  []int           // by rank
	// by shard, of the epoch
	events   []schema.Events
	messages []schema.Messages
	parts    []schema.Parts
}

func newUntimedWriter(u *Untimed, out *writer.Run) *untimedWriter {
	w := &untimedWriter{in: u, out: out, manifest: u.Manifest, first: map[int32]int32{}}
	w.matcher.Callsite = u.Callsite
	w.manifest.TimeResolutionNs, w.manifest.Epochs, w.manifest.Collectives = 1, u.Epochs, map[string]int64{}
	shards := 0
	w.shardOf, shards = writer.Shards(u.Calls, 0)
	w.events, w.messages, w.parts = make([]schema.Events, shards), make([]schema.Messages, shards),
		make([]schema.Parts, shards)
	return w
}

func (w *untimedWriter) write(ctx context.Context) error {
	if err := w.smallTables(); err != nil {
		return err
	}
	total, done := int64(0), int64(0)
	for _, n := range w.in.Calls {
		total += n
	}
	w.manifest.Counts.Calls = total
	for epoch := range w.in.Epochs {
		if err := ctx.Err(); err != nil {
			return err
		}
		rows, err := w.epoch(epoch)
		if err != nil {
			return err
		}
		done += rows
		if w.in.Progress != nil {
			w.in.Progress(done, total)
		}
	}
	c := &w.manifest.Counts
	if c.UnmatchedSends, c.UnmatchedReceives = w.matcher.Waiting(); c.UnmatchedSends+c.UnmatchedReceives > 0 {
		return fmt.Errorf("%s and %s have no partner", units.Count(c.UnmatchedSends, "send"),
			units.Count(c.UnmatchedReceives, "receive"))
	}
	return nil
}

func (w *untimedWriter) smallTables() error {
	comms, sites, types, ranks := &schema.Comms{}, &schema.Callsites{}, &schema.Datatypes{}, &schema.RankInfos{}
	for i := range w.in.Comms {
		c := &w.in.Comms[i]
		comms.Append(c)
		if c.CommRank == 0 && c.Remote == 0 {
			w.first[c.Comm] = c.WorldRank
		}
	}
	for i := range w.in.Callsites {
		sites.Append(&w.in.Callsites[i])
	}
	for i := range w.in.Datatypes {
		types.Append(&w.in.Datatypes[i])
	}
	for rank, calls := range w.in.Calls {
		row := schema.NullRankInfo
		row.Rank, row.Threads, row.Events, row.Ended = int32(rank), 1, calls, schema.EndedFinalized
		ranks.Append(&row)
	}
	return errors.Join(w.out.Write(0, comms), w.out.Write(0, sites), w.out.Write(0, types), w.out.Write(0, ranks))
}

// epoch writes the rows of an epoch, and returns the number of calls.
func (w *untimedWriter) epoch(epoch int32) (rows int64, err error) {
	for i := range w.events {
		w.events[i].Resize(0)
		w.messages[i].Resize(0)
		w.parts[i].Resize(0)
	}
	for rank, shard := range w.shardOf {
		if err := w.in.Next(int32(rank), &w.events[shard], &w.parts[shard]); err != nil {
			return 0, err
		}
	}
	pieces := make([]*schema.Events, len(w.events))
	for i := range w.events {
		pieces[i] = &w.events[i]
		w.countCollectives(pieces[i])
		rows += int64(pieces[i].Len())
	}
	w.matcher.Epoch(pieces, func(s *match.Send, r *match.Recv) { w.addMessage(epoch, s, r) })
	for i := range w.events {
		if err := errors.Join(w.out.Write(i, &w.events[i]), w.out.Write(i, &w.messages[i]),
			w.out.Write(i, &w.parts[i])); err != nil {
			return 0, err
		}
	}
	return rows, nil
}

// countCollectives counts collective operations, each at the first rank of its communicator.
func (w *untimedWriter) countCollectives(b *schema.Events) {
	for i, rank := range b.Rank {
		if schema.Class(b.Class[i]) == schema.ClassCollective && b.Instance[i] != schema.NullInt64 &&
			b.ErrorClass[i] == schema.NullInt32 && w.first[b.Comm[i]] == rank {
			w.manifest.Collectives[schema.CallID(b.Call[i]).String()]++
			w.manifest.Counts.Collectives++
		}
	}
}

func (w *untimedWriter) addMessage(epoch int32, s *match.Send, r *match.Recv) {
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
