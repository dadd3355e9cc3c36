package writer

import (
	"context"

	"github.com/commq/commq/schema"
)

// writeWaits writes the tables waits and transfers of the run in folder dir whose other tables are there. An untimed run has them without rows.
// It returns those that the run lacks, as there would be too much to keep for them.
func (r *Run) writeWaits(dir string, m *schema.Manifest) (lacks []*schema.Table, err error) {
	if m.TimeOrigin == "untimed" {
		return nil, nil
	}
	waits, transfers, err := makeWaits(context.Background(), dir, m.Record == "all" && len(m.Filters) == 0)
	if err != nil {
		return nil, err
	}
	if waits == nil {
		lacks = append(lacks, &schema.WaitsTable)
	} else if err := r.write(0, waits); err != nil {
		return nil, err
	}
	if transfers == nil {
		return append(lacks, &schema.TransfersTable), nil
	}
	return lacks, r.write(0, transfers)
}

// makeWaits makes the rows of waits and transfers of the other tables of the run in folder dir; dense says that no row of events is missing.
func makeWaits(ctx context.Context, dir string, dense bool) (*schema.Waits, *schema.Transfers, error) {
	var hosts []int32
	err := ReadTable(ctx, dir, &schema.RanksTable, checkRows, func(b schema.Batch) error {
		hosts = append(hosts, b.(*schema.RankInfos).Host...)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	w := schema.NewWaitSums(hosts, dense)
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
