package check

import (
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/derive"
)

// checkCounts compares the counts of the manifest with the rows.
func checkCounts(r *run, out *reporter) (batch func(schema.Batch), finish func()) {
	c := &counts{byCall: make([]int64, len(schema.Calls))}
	return func(b schema.Batch) { c.add(r, b) }, func() { c.compare(r, out) }
}

// counts are sums over the rows of a run.
type counts struct {
	messageBytes int64
	payloads     derive.PayloadSums
	collectives  int64
	byCall       []int64 // collectives by CallID
}

func (c *counts) add(r *run, b schema.Batch) {
	switch t := b.(type) {
	case *schema.Messages:
		for _, x := range t.Bytes {
			c.messageBytes += x
		}
		c.payloads.Add(t)
	case *schema.Events:
		for i, class := range t.Class {
			if class == int16(schema.ClassCollective) && t.ErrorClass[i] == schema.NullInt32 &&
				r.comms.isFirst(t.Rank[i], t.Comm[i]) {
				c.collectives++
				if !r.persistent.isOrphan(t, i) {
					c.byCall[r.persistent.operation(t, i)]++
				}
			}
		}
	}
}

// compare compares the sums with the manifest.
func (c *counts) compare(r *run, out *reporter) {
	m := &r.manifest.Counts
	equal := func(what string, found, want int64) {
		if found != want {
			out.wrong("%s: found %d; the manifest says %d", what, found, want)
		}
	}
	atMost := func(what string, found, most int64) {
		if found > most {
			out.wrong("%s: found %d; the manifest says that there were %d", what, found, most)
		}
	}
	messages, collectives := equal, equal
	if r.filtered() {
		messages, collectives = atMost, atMost
	}
	if m.Dropped > 0 { // the manifest counts those of the rank that recorded most, and found are those of another
		collectives = atMost
	}
	if r.manifest.Record == "collectives" {
		messages = func(what string, found, _ int64) {
			if found != 0 {
				out.wrong("%s: found %d in a run without rows of messages", what, found)
			}
		}
	}
	messages("messages", r.rows["messages"], m.Messages)
	messages("message_bytes", c.messageBytes, m.MessageBytes)
	equal("calls (the sum of ranks.events)", r.totals.events, m.Calls)
	equal("polls (the sum of ranks.polls)", r.totals.polls, m.Polls)
	equal("dropped (the sum of ranks.dropped)", r.totals.dropped, m.Dropped)
	equal("overlapping_calls (those that end after the next one of their thread began)", r.overlaps.Count(),
		m.OverlappingCalls)
	if want := r.manifest.Payloads; want != nil { // older runs have none
		equal("payloads (the fingerprint of the messages)", c.payloads.Fingerprint(), *want)
	}
	if r.finalized() {
		collectives("collectives", c.collectives, m.Collectives)
		for call, n := range c.byCall {
			if name := schema.CallID(call).String(); r.manifest.Collectives != nil {
				collectives("collectives by "+name, n, r.manifest.Collectives[name])
			}
		}
	}
	if !r.dense() {
		return
	}
	if r.manifest.TimeOrigin != "untimed" {
		equal("in_progress", r.inProgress, m.InProgress)
	}
	for i := range r.ranks {
		if s := &r.ranks[i]; s.rows != s.events {
			out.bad(int32(i), schema.NullInt64, "%d rows of events; ranks says %d", s.rows, s.events)
		}
	}
}
