package writer

import (
	"context"

	"github.com/commq/commq/schema"
)

// hasWaits says whether the tables waits and transfers are made of a run: it has times, and every call and message.
func hasWaits(m *schema.Manifest) bool {
	return m.TimeOrigin != "untimed" && m.Record == "all" && len(m.Filters) == 0 && m.Counts.Messages > 0
}

// lacking says of a table without rows that the run lacks it, and not that it is empty.
func lacking(t *schema.Table) bool { return t == &schema.WaitsTable || t == &schema.TransfersTable }

// writeWaits writes the tables waits and transfers of a run whose other tables are closed.
func (r *Run) writeWaits(m *schema.Manifest) error {
	if !hasWaits(m) {
		return nil
	}
	waits, transfers, err := makeWaits(context.Background(), r.dir)
	if err == nil {
		err = r.write(0, waits)
	}
	if err == nil {
		err = r.write(0, transfers)
	}
	return err
}

// makeWaits makes the rows of waits and transfers of the other tables of the run in folder dir.
func makeWaits(ctx context.Context, dir string) (*schema.Waits, *schema.Transfers, error) {
	var hosts []int32
	err := ReadTable(ctx, dir, &schema.RanksTable, checkRows, func(b schema.Batch) error {
		hosts = append(hosts, b.(*schema.RankInfos).Host...)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	w := schema.NewWaitSums(hosts)
	events, err := ReadEpochs(dir, &schema.EventsTable, waitRows, schema.WaitColumns(&schema.EventsTable)...)
	if err != nil {
		return nil, nil, err
	}
	messages, err := ReadEpochs(dir, &schema.MessagesTable, waitRows, schema.WaitColumns(&schema.MessagesTable)...)
	if err != nil {
		return nil, nil, err
	}
	for more := true; err == nil && more; {
		more, err = addEpoch(ctx, w, events, messages)
	}
	if err != nil {
		return nil, nil, err
	}
	waits, transfers := w.Rows()
	return waits, transfers, nil
}

// waitRows is the number of rows read at a time.
const waitRows = 1 << 14

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
