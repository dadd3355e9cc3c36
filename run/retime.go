package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Retimer writes a run that has the calls of another one and other times. All times are put first, in any order; then
// Write writes the tables.
type Retimer struct {
	rewriter *Rewriter
	times    *writer.RowTimes
	endNs    int64
	err      error // the first of Put
}

// NewRetimer reserves the new run's name and makes room for the times of all rows of the source. The times are kept
// in a temporary file, or in the file with this name if it is not "". A later process then finds them there, and
// passes what Kept returned in the earlier one.
func NewRetimer(source *Run, how Rewrite, file string, kept KeptTimes) (*Retimer, error) {
	w, err := NewRewriter(source, how)
	if err != nil {
		return nil, err
	}
	t := &Retimer{rewriter: w, endNs: kept.EndNs}
	if file == "" {
		t.times, err = writer.NewRowTimes(source.Ranks.Rows)
	} else {
		t.times, err = writer.KeepRowTimes(source.Ranks.Rows, file, kept.Sum)
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort())
	}
	return t, nil
}

// Put sets the times of a row, in ns. Write returns its error.
func (t *Retimer) Put(rank int32, seq, startNs, endNs int64) {
	if t.err != nil {
		return
	}
	t.endNs = max(t.endNs, endNs)
	t.err = t.times.Put(rank, seq, startNs, endNs)
}

// KeptTimes describes the times of rows in a file.
type KeptTimes struct {
	EndNs int64  // the latest end of a row
	Sum   uint64 // their checksum
}

// Kept describes the times put so far.
func (t *Retimer) Kept() KeptTimes { return KeptTimes{t.endNs, t.times.Sum()} }

// Err returns the first error of Put.
func (t *Retimer) Err() error { return t.err }

// Sync writes the times put so far to the file.
func (t *Retimer) Sync() error { return t.times.Sync() }

// Write writes the tables. compute converts a compute time of a rank above 0.
func (t *Retimer) Write(ctx context.Context, compute func(rank int32, ns int64) int64) error {
	if t.err != nil {
		return t.err
	}
	err := t.rewriter.CopyAll(ctx, map[*schema.Table]Change{
		&schema.EventsTable: func(b schema.Batch) (schema.Batch, error) {
			return b, t.events(b.(*schema.Events), compute)
		},
		&schema.MessagesTable: func(b schema.Batch) (schema.Batch, error) {
			return b, t.messages(b.(*schema.Messages))
		},
	})
	if err != nil {
		return err
	}
	return t.times.CheckTaken()
}

func (t *Retimer) events(b *schema.Events, compute func(rank int32, ns int64) int64) (err error) {
	for i, rank := range b.Rank {
		if b.StartNs[i], b.EndNs[i], err = t.times.Take(rank, b.Seq[i]); err != nil {
			return err
		}
		if ns := b.ComputeNs[i]; ns > 0 {
			b.ComputeNs[i] = compute(rank, ns)
		}
	}
	return nil
}

// messages gives messages the times of the rows that they belong to.
func (t *Retimer) messages(b *schema.Messages) (err error) {
	for i := range b.Src {
		if b.SendStartNs[i], b.SendEndNs[i], err = t.times.Get(b.Src[i], b.SendSeq[i]); err != nil {
			return err
		}
		if b.RecvPostNs[i], _, err = t.times.Get(b.Dst[i], b.RecvPostSeq[i]); err != nil {
			return err
		}
		if b.RecvDoneSeq[i] == schema.NullInt64 {
			continue
		}
		if b.RecvStartNs[i], b.RecvEndNs[i], err = t.times.Get(b.Dst[i], b.RecvDoneSeq[i]); err != nil {
			return err
		}
		if b.RecvEndNs[i] < b.SendStartNs[i] { // threads that took each other's messages
			return fmt.Errorf("rank %d, seq %d: its message would be received %d ns before it is sent. "+
				"Threads of a rank that use one tag may take their messages in another order than in the run: then no "+
				"run of the new times can be saved (without --name there is an answer)",
				b.Src[i], b.SendSeq[i], b.SendStartNs[i]-b.RecvEndNs[i])
		}
	}
	return nil
}

// Manifest returns the manifest of the new run, for Commit; the caller sets the origin.
func (t *Retimer) Manifest() *schema.Manifest {
	m := t.rewriter.Manifest()
	m.EndNs = t.endNs
	return m
}

// Commit gives the new run its name.
func (t *Retimer) Commit(ctx context.Context, m *schema.Manifest) error {
	return t.rewriter.Commit(ctx, m)
}

// Close frees the times, and removes the written files unless the run was committed.
func (t *Retimer) Close() error { return errors.Join(t.rewriter.Abort(), t.times.Close()) }
