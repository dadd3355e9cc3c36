package writer

import (
	"context"
	"slices"
	"sync"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/derive"
)

// sums make the derived tables that need whole tables: all but profile.
type sums struct {
	waits *derive.WaitSums // of Run.SumWaits; nil: the files are read again

	mu       sync.Mutex
	repeats  *derive.RepeatSums  // has counted the messages written so far; nil before the first
	channels *derive.ChannelSums // has added them; nil before the first
	payloads *derive.PayloadSums // likewise

	muCollectives sync.Mutex
	collectives   *derive.CollectiveSums // has added the events written so far; nil before the first

	muActivity sync.Mutex
	activity   *derive.ActivitySums // has added all rows written so far; nil: the files are read again
}

// addActivity adds rows of events or messages to activity. It may be called concurrently.
func (s *sums) addActivity(b schema.Batch) {
	s.muActivity.Lock()
	defer s.muActivity.Unlock()
	if s.activity != nil {
		addActivity(s.activity, b)
	}
}

func addActivity(s *derive.ActivitySums, b schema.Batch) {
	switch rows := b.(type) {
	case *schema.Messages:
		s.AddMessages(rows)
	case *schema.Events:
		s.AddEvents(rows)
	}
}

// countCollectives adds rows of events to collective_calls. It may be called concurrently.
func (s *sums) countCollectives(e *schema.Events) {
	s.muCollectives.Lock()
	defer s.muCollectives.Unlock()
	if s.collectives == nil {
		s.collectives = derive.NewCollectiveSums()
	}
	s.collectives.Add(e)
}

// count counts the payloads of messages, the first pass of repeats, and adds them to channels and to the fingerprint.
// It may be called concurrently.
func (s *sums) count(m *schema.Messages) {
	var payloads derive.PayloadSums
	payloads.Add(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repeats == nil {
		s.repeats, s.channels, s.payloads = derive.NewRepeatSums(), derive.NewChannelSums(), &derive.PayloadSums{}
	}
	s.payloads.Join(payloads)
	s.repeats.Count(m)
	s.channels.Add(m)
}

// write writes the derived tables of the run in folder dir, whose other tables are complete, to files, and sets the
// fingerprint of payloads in m. An untimed run
// has waits, transfers and collective_waits without rows. It returns the tables that the run lacks because they would
// take too much memory.
func (s *sums) write(ctx context.Context, dir string, m *schema.Manifest, files *tableFiles) (lacks []*schema.Table,
	err error) {
	var made []*schema.Table
	wanted := []*schema.Table{&schema.RepeatsTable, &schema.ChannelsTable, &schema.CollectiveCallsTable,
		&schema.CollectivePartsTable}
	write := func(b schema.Batch) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return files.write(0, b)
	}
	if m.TimeOrigin != "untimed" {
		wanted = append(wanted, &schema.WaitsTable, &schema.TransfersTable, &schema.CollectiveWaitsTable)
		w := s.waits
		if s.waits = nil; w == nil { // not kept here, so that it can be freed
			if w, err = makeWaits(ctx, dir, m.Record == "all" && len(m.Filters) == 0); err != nil {
				return nil, err
			}
		}
		if made, err = w.Rows(write); err != nil {
			return nil, err
		}
	}
	if m.Payloads, err = makePayloads(ctx, dir, m, s.payloads); err != nil {
		return nil, err
	}
	counted, added := s.repeats, s.channels
	s.repeats, s.channels = nil, nil
	collectives, err := makeCollectives(ctx, dir, s.collectives)
	if s.collectives = nil; err != nil {
		return nil, err
	}
	makers := []func() (schema.Batch, error){
		func() (schema.Batch, error) { return makeChannels(ctx, dir, added) },
		func() (schema.Batch, error) { return makeRepeats(ctx, dir, counted) },
		func() (schema.Batch, error) { return collectiveCalls(collectives), nil },
		func() (schema.Batch, error) { return collectiveParts(collectives), nil },
	}
	for _, rowsOf := range makers {
		rows, err := rowsOf()
		if err != nil {
			return nil, err
		}
		if rows == nil {
			continue
		}
		made = append(made, rows.Table())
		if err := write(rows); err != nil {
			return nil, err
		}
	}
	activity := s.activity
	if s.activity = nil; derive.HasActivity(m) {
		if err := writeActivity(ctx, dir, m, activity, write); err != nil {
			return nil, err
		}
	}
	for _, t := range wanted {
		if !slices.Contains(made, t) {
			lacks = append(lacks, t)
		}
	}
	return lacks, nil
}

// makeWaits reads the run in folder dir and sums waits, transfers and collective_waits; dense promises that no row of
// events is missing.
func makeWaits(ctx context.Context, dir string, dense bool) (*derive.WaitSums, error) {
	var hosts []int32
	err := readTable(ctx, dir, &schema.RanksTable, checkRows, func(b schema.Batch) error {
		hosts = append(hosts, b.(*schema.RankInfos).Host...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	w := derive.NewWaitSums(hosts, dense)
	err = readTable(ctx, dir, &schema.CommsTable, checkRows, func(b schema.Batch) error {
		w.AddComms(b.(*schema.Comms))
		return nil
	})
	if err != nil {
		return nil, err
	}
	events, err := readEpochs(dir, &schema.EventsTable, sumRows, derive.WaitColumns(&schema.EventsTable)...)
	if err != nil {
		return nil, err
	}
	messages, err := readEpochs(dir, &schema.MessagesTable, sumRows, derive.WaitColumns(&schema.MessagesTable)...)
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

// addEpoch adds the rows of the next epoch of either table, events first; more is false after the last.
func addEpoch(ctx context.Context, w *derive.WaitSums, events, messages *Epochs) (more bool, err error) {
	e, hasEvents := events.Epoch()
	m, hasMessages := messages.Epoch()
	if hasEvents && (!hasMessages || e <= m) {
		return true, events.Next(ctx, func(b schema.Batch) error { w.AddEvents(b.(*schema.Events)); return nil })
	}
	if hasMessages {
		return true, messages.Next(ctx, func(b schema.Batch) error { w.AddMessages(b.(*schema.Messages)); return nil })
	}
	return false, nil
}

// makeChannels makes the rows of channels of the run in folder dir; nil when there are too many. s has added the run's
// messages; when it is nil they are read.
func makeChannels(ctx context.Context, dir string, s *derive.ChannelSums) (schema.Batch, error) {
	if s == nil {
		s = derive.NewChannelSums()
		messages, err := readEpochs(dir, &schema.MessagesTable, sumRows, derive.ChannelColumns()...)
		if err != nil {
			return nil, err
		}
		if err := messages.All(ctx, func(b schema.Batch) error { s.Add(b.(*schema.Messages)); return nil }); err != nil {
			return nil, err
		}
	}
	if rows := s.Rows(); rows != nil {
		return rows, nil
	}
	return nil, nil
}

// makePayloads returns the fingerprint of the payloads of the run in folder dir; nil where it has no hashes. s has added
// the run's messages; when it is nil they are read.
func makePayloads(ctx context.Context, dir string, m *schema.Manifest, s *derive.PayloadSums) (*int64, error) {
	if m.Hash == "none" {
		return nil, nil
	}
	if s == nil {
		s = &derive.PayloadSums{}
		messages, err := readEpochs(dir, &schema.MessagesTable, sumRows, derive.PayloadColumns()...)
		if err != nil {
			return nil, err
		}
		if err := messages.All(ctx, func(b schema.Batch) error { s.Add(b.(*schema.Messages)); return nil }); err != nil {
			return nil, err
		}
	}
	fingerprint := s.Fingerprint()
	return &fingerprint, nil
}

// writeActivity writes the rows of activity of the run in folder dir. s has added the run's events and messages; when
// it is nil they are read.
func writeActivity(ctx context.Context, dir string, m *schema.Manifest, s *derive.ActivitySums,
	write func(schema.Batch) error) error {
	if s == nil {
		s = derive.NewActivitySums(int(m.Ranks))
		err := readTable(ctx, dir, &schema.CommsTable, checkRows, func(b schema.Batch) error {
			s.AddComms(b.(*schema.Comms))
			return nil
		})
		if err != nil {
			return err
		}
		for _, t := range []*schema.Table{&schema.EventsTable, &schema.MessagesTable} {
			rows, err := readEpochs(dir, t, sumRows, derive.ActivityColumns(t)...)
			if err != nil {
				return err
			}
			if err := rows.All(ctx, func(b schema.Batch) error { addActivity(s, b); return nil }); err != nil {
				return err
			}
		}
	}
	return s.Rows(func(b *schema.ActivityCells) error { return write(b) })
}

// makeRepeats makes the rows of repeats of the run in folder dir; nil when there are too many. s has counted the run's
// messages; when it is nil they are counted first.
func makeRepeats(ctx context.Context, dir string, s *derive.RepeatSums) (schema.Batch, error) {
	all, late := derive.RepeatColumns()
	if s == nil {
		s = derive.NewRepeatSums()
		messages, err := readEpochs(dir, &schema.MessagesTable, sumRows, all[:len(all)-len(late)]...)
		if err != nil {
			return nil, err
		}
		if err := messages.All(ctx,
			func(b schema.Batch) error { s.Count(b.(*schema.Messages)); return nil }); err != nil {
			return nil, err
		}
	}
	for s.Again() {
		messages, err := readEpochs(dir, &schema.MessagesTable, sumRows, all...)
		if err != nil {
			return nil, err
		}
		err = messages.AllLate(ctx, late, func(b schema.Batch, rest schema.Rest) error {
			return s.Add(b.(*schema.Messages), rest)
		})
		if err != nil {
			return nil, err
		}
	}
	if rows := s.Rows(); rows != nil {
		return rows, nil
	}
	return nil, nil
}

// makeCollectives returns the sums of the run in folder dir for collective_calls and collective_parts. s has added the
// run's events; when it is nil they are read.
func makeCollectives(ctx context.Context, dir string, s *derive.CollectiveSums) (*derive.CollectiveSums, error) {
	if s == nil {
		s = derive.NewCollectiveSums()
		events, err := readEpochs(dir, &schema.EventsTable, sumRows, derive.CollectiveColumns()...)
		if err != nil {
			return nil, err
		}
		if err := events.All(ctx, func(b schema.Batch) error { s.Add(b.(*schema.Events)); return nil }); err != nil {
			return nil, err
		}
	}
	return s, readTable(ctx, dir, &schema.PartsTable, sumRows, func(b schema.Batch) error {
		s.AddParts(b.(*schema.Parts))
		return nil
	})
}

// collectiveCalls returns the rows of collective_calls; nil when there are too many.
func collectiveCalls(s *derive.CollectiveSums) schema.Batch {
	if rows := s.Calls(); rows != nil {
		return rows
	}
	return nil
}

// collectiveParts returns the rows of collective_parts; nil when there are too many.
func collectiveParts(s *derive.CollectiveSums) schema.Batch {
	if rows := s.Parts(); rows != nil {
		return rows
	}
	return nil
}
