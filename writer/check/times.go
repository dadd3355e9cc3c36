package check

import (
	"slices"

	"github.com/commq/commq/schema"
)

// checkTimes checks that nothing ends before it starts and that no duration or count is negative.
func checkTimes(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	latest := int64(0)
	batch = func(b schema.Batch) {
		if m, ok := b.(*schema.Messages); ok {
			endAfterStart(out, b, "send", m.SendStartNs, m.SendEndNs)
			endAfterStart(out, b, "receive", m.RecvStartNs, m.RecvEndNs)
			return
		}
		e := b.(*schema.Events)
		endAfterStart(out, b, "", e.StartNs, e.EndNs)
		for _, column := range []struct {
			name   string
			values []int64
		}{{"compute_ns", e.ComputeNs}, {"polls", e.Polls}, {"poll_ns", e.PollNs}} {
			for i, v := range column.values {
				if v < 0 && v != schema.NullInt64 {
					out.badRow(b, i, "%s is %d", column.name, v)
				}
			}
		}
		for i, end := range e.EndNs {
			latest = max(latest, end)
			if end == schema.NullInt64 && e.StartNs[i] != schema.NullInt64 {
				r.inProgress++
			}
		}
	}
	return batch, func() {
		if want := r.manifest.EndNs; r.dense() && latest != want || latest > want {
			out.wrong("the latest end is at %d ns; the manifest's end_ns is %d", latest, want)
		}
	}
}

func endAfterStart(out *reporter, b schema.Batch, what string, start, end []int64) {
	for i, x := range end {
		if x < start[i] && x != schema.NullInt64 {
			if what == "" {
				out.badRow(b, i, "end %d ns before start", start[i]-x)
			} else {
				out.badRow(b, i, "the %s ends %d ns before it starts", what, start[i]-x)
			}
		}
	}
}

// checkThreads checks that calls of a thread start in the order of seq, and counts those that overlap.
func checkThreads(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	latestOf := map[uint64]int64{} // by rank and thread: the latest start_ns
	return func(b schema.Batch) {
		e := b.(*schema.Events)
		r.overlaps.Add(e)
		var key uint64
		latest, begun := schema.NullInt64, false
		for i, start := range e.StartNs {
			if x := e.Thread[i]; x < 0 || x >= schema.MaxThreads {
				out.badRow(b, i, "the number of the thread is %d; want 0 to %d", x, schema.MaxThreads-1)
			}
			if k := uint64(e.Rank[i])<<32 | uint64(uint32(e.Thread[i])); k != key || !begun {
				if begun {
					latestOf[key] = latest
				}
				var ok bool
				key, begun = k, true
				if latest, ok = latestOf[k]; !ok {
					latest = schema.NullInt64
				}
			}
			if start == schema.NullInt64 {
				continue
			}
			if start < latest {
				out.badRow(b, i, "thread %d starts the call %d ns before the call before it", e.Thread[i],
					latest-start)
			}
			latest = start
		}
		if begun {
			latestOf[key] = latest
		}
	}, nil
}

// timeColumns returns the columns that are null in an untimed run.
func timeColumns(t *schema.Table) []string {
	if t == &schema.MessagesTable {
		return []string{"send_start_ns", "send_end_ns", "recv_post_ns", "recv_start_ns", "recv_end_ns"}
	}
	return []string{"start_ns", "end_ns"}
}

func checkUntimed(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	if r.manifest.TimeOrigin != "untimed" {
		return func(b schema.Batch) {
			if e, ok := b.(*schema.Events); ok {
				if i := slices.Index(e.StartNs, schema.NullInt64); i >= 0 {
					out.badRow(b, i, "start_ns is null in a run that is %s", r.manifest.TimeOrigin)
				}
			}
		}, nil
	}
	return func(b schema.Batch) {
		for _, name := range timeColumns(b.Table()) {
			_, k := b.Table().Column(name)
			for i, x := range b.Data(k).([]int64) {
				if x != schema.NullInt64 {
					out.badRow(b, i, "%s is %d in an untimed run", name, x)
					break
				}
			}
		}
	}, nil
}

// checkCausality checks that no message is received before it is sent, in runs whose times are on one exact clock.
// Measured clocks have errors.
func checkCausality(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	if origin := r.manifest.TimeOrigin; origin != "virtual" && origin != "simulated" {
		return nil, nil
	}
	return func(b schema.Batch) {
		m := b.(*schema.Messages)
		for i, end := range m.RecvEndNs {
			if start := m.SendStartNs[i]; end < start && end != schema.NullInt64 {
				out.badRow(b, i, "received %d ns before it was sent", start-end)
			}
		}
	}, nil
}
