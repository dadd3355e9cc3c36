package stored

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"

	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Rows holds rows of events that several simulations of a run read: the first epochs in memory, up to a limit. Each
// simulation reads the other epochs from the files. It is safe for concurrent use.
type Rows struct {
	run      *run.Run
	epochs   [][]*schema.Events
	bytes    int64 // of memory
	complete bool  // all epochs are in memory
}

// errFull ends reading at the limit.
var errFull = errors.New("no more rows fit into memory")

// rowColumns are the columns of Rows: those of simulations and of critical paths.
var rowColumns = union(simulate.Columns, critical.Columns)

func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, c := range b {
		if !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	return all
}

// ReadRows reads the rows of a run and keeps the epochs that take at most limit bytes.
func ReadRows(ctx context.Context, r *run.Run, limit int64) (*Rows, error) {
	rows, err := r.EventEpochs(rowColumns...)
	if err != nil {
		return nil, err
	}
	c := &Rows{run: r}
	pool := constants{}
	for {
		var epoch []*schema.Events
		err := rows.Next(ctx, func(b *schema.Events) error {
			kept, bytes := pool.clone(b)
			if c.bytes += bytes; c.bytes > limit {
				return errFull
			}
			epoch = append(epoch, kept)
			return nil
		})
		switch {
		case errors.Is(err, io.EOF):
			c.complete = true
			return c, nil
		case errors.Is(err, errFull):
			return c, nil
		case err != nil:
			return nil, err
		}
		c.epochs = append(c.epochs, epoch)
	}
}

// Source passes the rows from the first on, an epoch at a call, as simulate.Simulate wants them. add may change their
// compute times, which others do not see, and nothing else.
func (c *Rows) Source(ctx context.Context) func(add func(*schema.Events) error) error {
	next := 0
	var own schema.Events // a batch whose compute times are not shared
	var computeNs []int64
	var rest *run.Epochs
	return func(add func(*schema.Events) error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if next < len(c.epochs) {
			for _, b := range c.epochs[next] {
				computeNs = append(computeNs[:0], b.ComputeNs...)
				own = *b
				own.ComputeNs = computeNs
				if err := add(&own); err != nil {
					return err
				}
			}
			next++
			return nil
		}
		if c.complete {
			return io.EOF
		}
		if rest == nil {
			var err error
			if rest, err = c.rest(); err != nil {
				return err
			}
		}
		return rest.Next(ctx, add)
	}
}

// rest begins to read the epochs that are not in memory.
func (c *Rows) rest() (*run.Epochs, error) {
	rows, err := c.run.EventEpochs(rowColumns...)
	if err != nil {
		return nil, err
	}
	for range c.epochs {
		if err := rows.Skip(); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// constants caches slices that hold one value everywhere, by that value. Most columns of a batch are constant: values
// that a call does not have are null, and most calls have the same thread, communicator and error class.
type constants map[any]any

// clone copies rows. Columns of one value share their slice with other batches. bytes is the memory that the copy
// takes.
func (p constants) clone(b *schema.Events) (c *schema.Events, bytes int64) {
	c = new(schema.Events)
	to := reflect.ValueOf(c).Elem()
	for i := range to.NumField() {
		var column any
		var size int64
		switch v := b.Data(i).(type) {
		case []int16:
			column, size = cloneColumn(p, v, 2)
		case []int32:
			column, size = cloneColumn(p, v, 4)
		case []int64:
			column, size = cloneColumn(p, v, 8)
		case []string:
			column, size = cloneColumn(p, v, 16)
			for _, s := range v {
				size += int64(len(s))
			}
		}
		to.Field(i).Set(reflect.ValueOf(column))
		bytes += size
	}
	return c, bytes
}

// cloneColumn copies a column whose values take valueBytes each.
func cloneColumn[T comparable](p constants, v []T, valueBytes int64) ([]T, int64) {
	for _, x := range v {
		if x != v[0] {
			return append([]T(nil), v...), valueBytes * int64(len(v))
		}
	}
	if len(v) == 0 {
		return nil, 0
	}
	key := [1]T{v[0]} // keeps a 0 of 32 bits apart from one of 64
	if shared, ok := p[key].([]T); ok && len(shared) >= len(v) {
		return shared[:len(v):len(v)], 0
	}
	clone := append([]T(nil), v...)
	p[key] = clone
	return clone, valueBytes * int64(len(v))
}
