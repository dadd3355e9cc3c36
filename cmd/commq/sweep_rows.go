package main

import (
	"context"
	"errors"
	"io"
	"reflect"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// keptRows are rows of events that many simulations read: the run's first epochs in memory, up to a bound, and the rest from its
// files whenever one comes to it. It can be used by several goroutines at once.
type keptRows struct {
	dir    string
	epochs [][]*schema.Events
	bytes  int64 // that they take
	whole  bool  // there are no others
}

// errFull ends reading when the bound is reached.
var errFull = errors.New("no more rows fit into memory")

// keepRows reads the rows of a run once. It keeps whole epochs that take at most so many bytes.
func keepRows(ctx context.Context, dir string, most int64) (*keptRows, error) {
	rows, err := writer.ReadEpochs(dir, &schema.EventsTable, eventRows, simulate.Columns...)
	if err != nil {
		return nil, err
	}
	k := &keptRows{dir: dir}
	pool := constants{}
	for {
		var epoch []*schema.Events
		err := rows.Next(ctx, func(b schema.Batch) error {
			c, bytes := pool.keep(b.(*schema.Events))
			if k.bytes += bytes; k.bytes > most {
				return errFull
			}
			epoch = append(epoch, c)
			return nil
		})
		switch {
		case errors.Is(err, io.EOF):
			k.whole = true
			return k, nil
		case errors.Is(err, errFull):
			return k, nil
		case err != nil:
			return nil, err
		}
		k.epochs = append(k.epochs, epoch)
	}
}

// source gives the rows from the first on, as simulate.Simulate wants them.
func (k *keptRows) source(ctx context.Context) func(add func(*schema.Events) error) error {
	next := 0
	var rest *writer.Epochs
	return func(add func(*schema.Events) error) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if next < len(k.epochs) {
			for _, b := range k.epochs[next] {
				if err := add(b); err != nil {
					return err
				}
			}
			next++
			return nil
		}
		if k.whole {
			return io.EOF
		}
		if rest == nil {
			var err error
			if rest, err = writer.ReadEpochs(k.dir, &schema.EventsTable, eventRows, simulate.Columns...); err != nil {
				return err
			}
			for range k.epochs {
				if err := rest.Skip(); err != nil {
					return err
				}
			}
		}
		return rest.Next(ctx, func(b schema.Batch) error { return add(b.(*schema.Events)) })
	}
}

// constants are slices that have one value everywhere, by that value. Most columns of a batch are such: what a call has not is
// null, and many have one thread, one communicator and no error.
type constants map[any]any

// keep copies rows. Columns of one value share their slice with others. bytes is what the copy takes.
func (p constants) keep(b *schema.Events) (c *schema.Events, bytes int64) {
	c = new(schema.Events)
	to := reflect.ValueOf(c).Elem()
	for i := range to.NumField() {
		var column any
		var size int64
		switch v := b.Data(i).(type) {
		case []int16:
			column, size = keepColumn(p, v, 2)
		case []int32:
			column, size = keepColumn(p, v, 4)
		case []int64:
			column, size = keepColumn(p, v, 8)
		case []string:
			column, size = keepColumn(p, v, 16)
			for _, s := range v {
				size += int64(len(s))
			}
		}
		to.Field(i).Set(reflect.ValueOf(column))
		bytes += size
	}
	return c, bytes
}

// keepColumn copies a column, of whose values each takes so many bytes.
func keepColumn[T comparable](p constants, v []T, each int64) ([]T, int64) {
	for _, x := range v {
		if x != v[0] {
			return append([]T(nil), v...), each * int64(len(v))
		}
	}
	if len(v) == 0 {
		return nil, 0
	}
	key := [1]T{v[0]} // of its own type: a 0 of 32 bits is another key than one of 64
	if had, ok := p[key].([]T); ok && len(had) >= len(v) {
		return had[:len(v):len(v)], 0
	}
	one := append([]T(nil), v...)
	p[key] = one
	return one, each * int64(len(v))
}
