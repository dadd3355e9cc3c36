// Package formatstest has runs in memory for tests of importers: it takes the rows that an importer writes, checks them
// by the rules of package writer/check, and gives them in order.
package formatstest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
	"github.com/commq/commq/writer/check"
	"github.com/commq/commq/writer/derive"
)

// Run is an imported run. Events are by rank and seq, messages by source and send.
type Run struct {
	*schema.Manifest
	Events    []schema.Event
	Messages  []schema.Message
	Parts     []schema.Part
	Comms     []schema.Comm
	Callsites []schema.Callsite
	RankInfos []schema.RankInfo
	Datatypes []schema.Datatype
}

// Memory takes rows as a run on disk would.
type Memory struct {
	mu      sync.Mutex
	batches []shardBatch
}

type shardBatch struct {
	shard int
	rows  schema.Batch
}

// Write keeps the rows of b, which the importer may use again. It may be called concurrently.
func (m *Memory) Write(shard int, b schema.Batch) error {
	switch from := b.(type) {
	case *schema.Events:
		b = copied(from, new(schema.Events))
	case *schema.Messages:
		if err := inOrder(from); err != nil {
			return err
		}
		b = copied(from, new(schema.Messages))
	case *schema.Parts:
		b = copied(from, new(schema.Parts))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.batches = append(m.batches, shardBatch{shard, b})
	return nil
}

// inOrder returns an error if messages are not in the order of their sends, which a file has them in.
func inOrder(b *schema.Messages) error {
	for i := 1; i < b.Len(); i++ {
		if cmp.Or(cmp.Compare(b.Src[i-1], b.Src[i]), cmp.Compare(b.SendSeq[i-1], b.SendSeq[i])) >= 0 {
			return fmt.Errorf("the message of send %d.%d comes before that of %d.%d", b.Src[i-1], b.SendSeq[i-1], b.Src[i],
				b.SendSeq[i])
		}
	}
	return nil
}

type rowBatch[R any] interface {
	Len() int
	Row(int, *R)
	Append(*R)
}

func copied[R any, B rowBatch[R]](from, to B) B {
	var row R
	for i := range from.Len() {
		from.Row(i, &row)
		to.Append(&row)
	}
	return to
}

// Import calls do to import into memory, and returns the run. Each rule that the run breaks fails the test.
func Import(t testing.TB, do func(m *Memory) (*schema.Manifest, error)) (*Run, error) {
	t.Helper()
	var k Memory
	m, err := do(&k)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(k.batches, func(a, b shardBatch) int {
		return cmp.Or(place(a.rows)-place(b.rows), a.shard-b.shard)
	})
	var overlaps derive.Overlaps // which a run on disk counts when it is finished
	for _, b := range k.batches {
		if events, ok := b.rows.(*schema.Events); ok {
			overlaps.Add(events)
		}
	}
	m.Counts.OverlappingCalls = overlaps.Count()
	checker := check.NewChecker(m, func(p check.Problem) { t.Errorf("%v", p) })
	r := &Run{Manifest: m}
	for i, b := range k.batches {
		if b.rows.Len() > 0 {
			checker.Add(fmt.Sprint(i), b.rows)
			r.add(b.rows)
		}
	}
	checker.Finish()
	r.sort()
	return r, nil
}

// Stored reads a run on disk, without its ranks.
func Stored(t testing.TB, dir string) *Run {
	t.Helper()
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{Manifest: m}
	for _, table := range []*schema.Table{&schema.EventsTable, &schema.MessagesTable, &schema.PartsTable,
		&schema.CommsTable, &schema.CallsitesTable} {
		if err := writer.ReadTable(context.Background(), dir, table, 1<<10, func(b schema.Batch) error {
			r.add(b)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	r.sort()
	return r
}

func (r *Run) sort() {
	slices.SortStableFunc(r.Events, func(a, b schema.Event) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq))
	})
	slices.SortStableFunc(r.Messages, func(a, b schema.Message) int {
		return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.SendSeq, b.SendSeq))
	})
}

// place is the order in which a Checker wants tables: definitions, then the rows of each epoch.
func place(b schema.Batch) int {
	if b.Len() == 0 {
		return 0
	}
	switch b := b.(type) {
	case *schema.RankInfos:
		return -3
	case *schema.Comms, *schema.Callsites, *schema.Datatypes:
		return -2
	case *schema.Events:
		return 2 * int(b.Epoch[0])
	case *schema.Messages:
		return 2*int(b.Epoch[0]) + 1
	case *schema.Parts:
		return 2*int(b.Epoch[0]) + 1
	}
	return -1
}

func (r *Run) add(b schema.Batch) {
	switch b := b.(type) {
	case *schema.Events:
		r.Events = rows(r.Events, b)
	case *schema.Messages:
		r.Messages = rows(r.Messages, b)
	case *schema.Parts:
		r.Parts = rows(r.Parts, b)
	case *schema.Comms:
		r.Comms = rows(r.Comms, b)
	case *schema.Callsites:
		r.Callsites = rows(r.Callsites, b)
	case *schema.RankInfos:
		r.RankInfos = rows(r.RankInfos, b)
	case *schema.Datatypes:
		r.Datatypes = rows(r.Datatypes, b)
	}
}

func rows[R any, B rowBatch[R]](to []R, b B) []R {
	var row R
	for i := range b.Len() {
		b.Row(i, &row)
		to = append(to, row)
	}
	return to
}
