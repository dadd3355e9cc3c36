package run

import (
	"context"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// streamRows is the number of rows of events or messages that are read at once: few enough to stay in the cache.
const streamRows = 1 << 13

// Events returns a function that passes all rows of events to add, epoch by epoch and each rank's in the order of seq.
// Columns that are not wanted are null, or zero where they cannot be. The function starts anew at each call and
// returns the error of add; add must not keep the rows.
func (r *Run) Events(ctx context.Context, columns ...string) func(add func(*schema.Events) error) error {
	return func(add func(*schema.Events) error) error {
		e, err := r.EventEpochs(columns...)
		if err != nil {
			return err
		}
		return e.rows.All(ctx, func(b schema.Batch) error { return add(b.(*schema.Events)) })
	}
}

// Messages does for messages what Events does for events.
func (r *Run) Messages(ctx context.Context, columns ...string) func(add func(*schema.Messages) error) error {
	return func(add func(*schema.Messages) error) error {
		rows, err := r.Opened().ReadEpochs(&schema.MessagesTable, streamRows, columns...)
		if err != nil {
			return err
		}
		return rows.All(ctx, func(b schema.Batch) error { return add(b.(*schema.Messages)) })
	}
}

// MessagesLate passes all rows of messages to add, as Messages does, for a reader that seldom needs the columns in
// late: these are read only for batches for which add calls rest. Columns must include late.
func (r *Run) MessagesLate(ctx context.Context, columns, late []string,
	add func(b *schema.Messages, rest schema.Rest) error) error {
	rows, err := r.Opened().ReadEpochs(&schema.MessagesTable, streamRows, columns...)
	if err != nil {
		return err
	}
	return rows.AllLate(ctx, late, func(b schema.Batch, rest schema.Rest) error {
		return add(b.(*schema.Messages), rest)
	})
}

// Parts returns a function that passes all rows of parts to add; see Events.
func (r *Run) Parts(ctx context.Context) func(add func(*schema.Parts) error) error {
	return func(add func(*schema.Parts) error) error {
		return r.Opened().ReadTable(ctx, &schema.PartsTable, smallRows,
			func(b schema.Batch) error { return add(b.(*schema.Parts)) })
	}
}

// Epochs reads rows of events epoch by epoch, for an engine that interleaves reading with work.
type Epochs struct{ rows *writer.Epochs }

// EventEpochs begins to read rows of events, with the wanted columns; see Events.
func (r *Run) EventEpochs(columns ...string) (*Epochs, error) {
	rows, err := r.Opened().ReadEpochs(&schema.EventsTable, streamRows, columns...)
	return &Epochs{rows}, err
}

// Next passes the rows of the next epoch to add, in any number of batches that add must not keep. It returns io.EOF
// after the last epoch.
func (e *Epochs) Next(ctx context.Context, add func(*schema.Events) error) error {
	return e.rows.Next(ctx, func(b schema.Batch) error { return add(b.(*schema.Events)) })
}

// Skip passes over the next epoch without reading it. It returns io.EOF after the last epoch.
func (e *Epochs) Skip() error { return e.rows.Skip() }

// MessageEpochs reads rows of messages epoch by epoch, beside those of events.
type MessageEpochs struct{ rows *writer.Epochs }

// MessageEpochs begins to read rows of messages, with the wanted columns; see Events.
func (r *Run) MessageEpochs(columns ...string) (*MessageEpochs, error) {
	rows, err := r.Opened().ReadEpochs(&schema.MessagesTable, streamRows, columns...)
	return &MessageEpochs{rows}, err
}

// Epoch returns the epoch that Next reads; found is false after the last one.
func (e *MessageEpochs) Epoch() (epoch int64, found bool) { return e.rows.Epoch() }

// Next passes the rows of the next epoch to add, as Epochs.Next does.
func (e *MessageEpochs) Next(ctx context.Context, add func(*schema.Messages) error) error {
	return e.rows.Next(ctx, func(b schema.Batch) error { return add(b.(*schema.Messages)) })
}
