package writer

import (
	"context"
	"slices"

	"github.com/commq/commq/schema"
)

// writeSums writes the tables waits, transfers, collective_waits and repeats of the run in folder dir whose other tables are there. An untimed run
// has the first three without rows. It returns the tables that the run lacks, as there would be too much to keep for them.
func (r *Run) writeSums(ctx context.Context, dir string, m *schema.Manifest) (lacks []*schema.Table, err error) {
	var made []*schema.Table
	makes := []*schema.Table{&schema.RepeatsTable}
	write := func(b schema.Batch) error { return r.write(0, b) }
	if m.TimeOrigin != "untimed" {
		makes = append(makes, &schema.WaitsTable, &schema.TransfersTable, &schema.CollectiveWaitsTable)
		w := r.waits
		if r.waits = nil; w == nil {
			if w, err = makeWaits(ctx, dir, m.Record == "all" && len(m.Filters) == 0); err != nil {
				return nil, err
			}
		}
		if made, err = w.Rows(write); err != nil {
			return nil, err
		}
	}
	counted := r.repeats
	r.repeats = nil
	switch again, err := makeRepeats(ctx, dir, counted); {
	case err != nil:
		return nil, err
	case again != nil:
		made = append(made, again.Table())
		if err := write(again); err != nil {
			return nil, err
		}
	}
	for _, t := range makes {
		if !slices.Contains(made, t) {
			lacks = append(lacks, t)
		}
	}
	return lacks, nil
}

// makeWaits makes the sums for waits, transfers and collective_waits of the other tables of the run in folder dir; dense says that no row of events is missing.
func makeWaits(ctx context.Context, dir string, dense bool) (*schema.WaitSums, error) {
	var hosts []int32
	err := ReadTable(ctx, dir, &schema.RanksTable, checkRows, func(b schema.Batch) error {
		hosts = append(hosts, b.(*schema.RankInfos).Host...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	w := schema.NewWaitSums(hosts, dense)
	err = ReadTable(ctx, dir, &schema.CommsTable, checkRows, func(b schema.Batch) error {
		w.AddComms(b.(*schema.Comms))
		return nil
	})
	if err != nil {
		return nil, err
	}
	events, err := ReadEpochs(dir, &schema.EventsTable, sumRows, schema.WaitColumns(&schema.EventsTable)...)
	if err != nil {
		return nil, err
	}
	messages, err := ReadEpochs(dir, &schema.MessagesTable, sumRows, schema.WaitColumns(&schema.MessagesTable)...)
	if err != nil {
		return nil, err
	}
	for more := true; err == nil && more; {
		more, err = addEpoch(ctx, w, events, messages)
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// sumRows is the number of rows read at a time.
const sumRows = 1 << 14

// addEpoch adds the rows of the next epoch, events first; false: there are no more.
func addEpoch(ctx context.Context, w *schema.WaitSums, events, messages *Epochs) (more bool, err error) {
	first, some := events.epoch()
	of, any := messages.epoch()
	if some && (!any || first <= of) {
		return true, events.Next(ctx, func(b schema.Batch) error { w.AddEvents(b.(*schema.Events)); return nil })
	}
	if any {
		return true, messages.Next(ctx, func(b schema.Batch) error { w.AddMessages(b.(*schema.Messages)); return nil })
	}
	return false, nil
}

// makeRepeats makes the rows of repeats of the run in folder dir; nil: there are too many. s has counted its messages; nil: nobody has.
func makeRepeats(ctx context.Context, dir string, s *schema.RepeatSums) (schema.Batch, error) {
	all, late := schema.RepeatColumns()
	if s == nil {
		s = schema.NewRepeatSums()
		messages, err := ReadEpochs(dir, &schema.MessagesTable, sumRows, all[:len(all)-len(late)]...)
		if err != nil {
			return nil, err
		}
		if err := messages.All(ctx, func(b schema.Batch) error { s.Count(b.(*schema.Messages)); return nil }); err != nil {
			return nil, err
		}
	}
	for s.Again() {
		messages, err := ReadEpochs(dir, &schema.MessagesTable, sumRows, all...)
		if err != nil {
			return nil, err
		}
		err = messages.AllLate(ctx, late, func(b schema.Batch, rest schema.Rest) error { return s.Add(b.(*schema.Messages), rest) })
		if err != nil {
			return nil, err
		}
	}
	if rows := s.Rows(); rows != nil {
		return rows, nil
	}
	return nil, nil
}
