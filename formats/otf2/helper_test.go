package otf2

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/check"
)

// memory takes rows as a run on disk would.
type memory struct{ batches []schema.Batch }

func (m *memory) Write(_ int, b schema.Batch) error {
	switch b := b.(type) {
	case *schema.Events:
		m.batches = append(m.batches, copied(b, new(schema.Events)))
	case *schema.Messages:
		m.batches = append(m.batches, copied(b, new(schema.Messages)))
	default:
		m.batches = append(m.batches, b) // not used again
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

// result is an imported run in memory, with rows by rank and seq.
type result struct {
	*schema.Manifest
	events   []schema.Event
	messages []schema.Message
	comms    []schema.Comm
	sites    []schema.Callsite
}

// imported imports an archive as a run that breaks no rule.
func imported(t testing.TB, path string, o Options) (*result, error) {
	t.Helper()
	a, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	j, err := newJob(a, o)
	if err != nil {
		return nil, err
	}
	var k memory
	m, err := j.importTo(context.Background(), &k)
	if err != nil {
		return nil, err
	}
	r := &result{Manifest: m}
	slices.SortStableFunc(k.batches, func(a, b schema.Batch) int { return checkOrder(a) - checkOrder(b) })
	checker := check.NewChecker(m, func(p check.Problem) { t.Errorf("%v", p) })
	for i, b := range k.batches {
		if b.Len() > 0 {
			checker.Add(fmt.Sprint(i), b)
			r.add(b)
		}
	}
	checker.Finish()
	r.sort()
	return r, nil
}

// sort orders events by rank and seq, and messages by source and send.
func (r *result) sort() {
	slices.SortFunc(r.events, func(a, b schema.Event) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq))
	})
	slices.SortFunc(r.messages, func(a, b schema.Message) int {
		return cmp.Or(cmp.Compare(a.Src, b.Src), cmp.Compare(a.SendSeq, b.SendSeq))
	})
}

// checkOrder is the order in which the checker wants tables.
func checkOrder(b schema.Batch) int {
	return slices.Index([]string{"ranks", "comms", "callsites", "events", "messages"}, b.Table().Name)
}

func (r *result) add(b schema.Batch) {
	switch b := b.(type) {
	case *schema.Events:
		r.events = rows(r.events, b)
	case *schema.Messages:
		r.messages = rows(r.messages, b)
	case *schema.Comms:
		r.comms = rows(r.comms, b)
	case *schema.Callsites:
		r.sites = rows(r.sites, b)
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

// line is a row as text: its call, and what is not null of its message, collective and request.
func line(e *schema.Event) string {
	words := []string{fmt.Sprintf("%d.%d", e.Rank, e.Seq), strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_")}
	say := func(name string, v, null int64) {
		if v != null {
			words = append(words, fmt.Sprint(name, "=", v))
		}
	}
	for _, x := range []struct {
		name string
		v    int32
	}{{"thread", max(e.Thread-1, -1)}, {"comm", e.Comm}, {"to", e.SendWorld}, {"stag", e.SendTag}, {"from", e.RecvWorld},
		{"rtag", e.RecvTag}, {"root", e.RootWorld}} {
		if x.name != "thread" || x.v >= 0 {
			say(x.name, int64(x.v), int64(null32))
		}
	}
	say("sent", e.SendBytes, null64)
	say("received", e.RecvBytes, null64)
	say("instance", e.Instance, null64)
	say("request", e.Request, null64)
	say("done", e.DoneSeq, null64)
	say("polls", e.Polls, null64)
	if e.Label != schema.NullText {
		words = append(words, "label="+e.Label)
	}
	return strings.Join(words, " ")
}
