package check

import (
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/derive"
	"github.com/commq/commq/writer/digest"
)

// waitTables are the tables that derive.WaitSums makes.
var waitTables = []*schema.Table{&schema.WaitsTable, &schema.TransfersTable, &schema.CollectiveWaitsTable}

// checkWaits computes waits, transfers and collective_waits again and compares their digests.
func checkWaits(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	if r.lacks(&schema.WaitsTable) && r.lacks(&schema.TransfersTable) && r.lacks(&schema.CollectiveWaitsTable) {
		return nil, nil
	}
	found := map[*schema.Table]*digest.Digester{}
	for _, t := range waitTables {
		found[t] = digest.New(t)
	}
	var hosts []int32 // by rank
	var sums *derive.WaitSums
	begin := func() *derive.WaitSums {
		if sums == nil {
			sums = derive.NewWaitSums(hosts, r.dense())
		}
		return sums
	}
	untimed := r.manifest.TimeOrigin == "untimed" // an untimed run has no rows of waits
	batch = func(b schema.Batch) {
		switch t := b.(type) {
		case *schema.RankInfos:
			hosts = append(hosts, t.Host...)
		case *schema.Comms:
			begin().AddComms(t)
		case *schema.Waits, *schema.Transfers, *schema.CollectiveWaits:
			found[b.Table()].Add(b)
		case *schema.Events:
			if !untimed {
				begin().AddEvents(t)
			}
		case *schema.Messages:
			if !untimed {
				begin().AddMessages(t)
			}
		}
	}
	return batch, func() { compareWaits(r, out, begin(), found) }
}

func compareWaits(r *run, out *reporter, sums *derive.WaitSums, found map[*schema.Table]*digest.Digester) {
	want := map[*schema.Table]*digest.Digester{}
	for _, t := range waitTables {
		want[t] = digest.New(t)
	}
	sums.Rows(func(b schema.Batch) error { // cannot fail: the function returns no error
		want[b.Table()].Add(b)
		return nil
	})
	for _, t := range waitTables {
		if r.lacks(t) || found[t].Equal(want[t]) {
			continue
		}
		out.wrong("the %d rows of %s are not the %d sums of the rows of events and messages; "+
			"commq runs profile makes them again", found[t].Rows(), t.Name, want[t].Rows())
	}
}

// checkChannels computes channels again and compares its digest.
func checkChannels(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	if r.lacks(&schema.ChannelsTable) {
		return nil, nil
	}
	found, want, sums := digest.New(&schema.ChannelsTable), digest.New(&schema.ChannelsTable), derive.NewChannelSums()
	batch = func(b schema.Batch) {
		if m, ok := b.(*schema.Messages); ok {
			sums.Add(m)
		} else {
			found.Add(b)
		}
	}
	return batch, func() {
		if rows := sums.Rows(); rows != nil {
			want.Add(rows)
		}
		if !found.Equal(want) {
			out.wrong("the %d rows of channels are not the %d sums of the rows of messages; "+
				"commq runs profile makes them again", found.Rows(), want.Rows())
		}
	}
}

// checkCollectives computes collective_calls again and compares its digest.
func checkCollectives(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	table := &schema.CollectiveCallsTable
	if r.lacks(table) {
		return nil, nil
	}
	found, want, sums := digest.New(table), digest.New(table), derive.NewCollectiveSums()
	batch = func(b schema.Batch) {
		if e, ok := b.(*schema.Events); ok {
			sums.Add(e)
		} else {
			found.Add(b)
		}
	}
	return batch, func() {
		if rows := sums.Calls(); rows != nil {
			want.Add(rows)
		}
		if !found.Equal(want) {
			out.wrong("the %d rows of collective_calls are not the %d sums of the rows of events; "+
				"commq runs profile makes them again", found.Rows(), want.Rows())
		}
	}
}

// checkActivity computes activity again and compares its digest.
func checkActivity(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	table := &schema.ActivityTable
	if r.lacks(table) {
		return nil, nil
	}
	found, want := digest.New(table), digest.New(table)
	var sums *derive.ActivitySums
	add := func(b schema.Batch) {
		if !derive.HasActivity(r.manifest) {
			return
		}
		if sums == nil { // the table ranks comes before
			sums = derive.NewActivitySums(len(r.ranks))
		}
		switch t := b.(type) {
		case *schema.Comms:
			sums.AddComms(t)
		case *schema.Events:
			sums.AddEvents(t)
		case *schema.Messages:
			sums.AddMessages(t)
		}
	}
	batch = func(b schema.Batch) {
		if b.Table() == table {
			found.Add(b)
		} else {
			add(b)
		}
	}
	return batch, func() {
		if sums != nil {
			sums.Rows(func(b *schema.ActivityCells) error { // cannot fail: the function returns no error
				want.Add(b)
				return nil
			})
		}
		if !found.Equal(want) {
			out.wrong("the %d rows of activity are not the %d sums of the rows of events and messages; "+
				"commq runs profile makes them again", found.Rows(), want.Rows())
		}
	}
}

// checkProfile computes the table profile again, file by file, and compares digests.
func checkProfile(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	found, want := digest.New(&schema.ProfileTable), digest.New(&schema.ProfileTable)
	if r.lacks(&schema.ProfileTable) {
		return nil, nil
	}
	profilers := map[string]*derive.Profiler{} // by file of events
	add := func(b *schema.Profiles) error {
		want.Add(b)
		return nil
	}
	batch = func(b schema.Batch) {
		e, ok := b.(*schema.Events)
		if !ok {
			found.Add(b)
			return
		}
		p := profilers[r.place.file]
		if p == nil {
			p = derive.NewProfiler()
			profilers[r.place.file] = p
		}
		p.Add(e, add) // returns add's error, which is nil
	}
	return batch, func() {
		for _, p := range profilers {
			p.Flush(add) // likewise
		}
		if !found.Equal(want) {
			out.wrong("the %d rows of profile are not the %d sums of the rows of events; "+
				"commq runs profile makes them again", found.Rows(), want.Rows())
		}
	}
}
