package dimemas

import (
	"bytes"
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

func (m *memory) Write(shard int, b schema.Batch) error {
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

// result is a run in memory. Events are by rank and seq, messages as they were written.
type result struct {
	*schema.Manifest
	events   []schema.Event
	messages []schema.Message
	comms    []schema.Comm
}

// imported returns a trace as a run that breaks no rule.
func imported(t testing.TB, text string, o Options) (*result, error) {
	t.Helper()
	if o.Name == "" {
		o.Name = "test.dim"
	}
	var k memory
	m, err := importTo(context.Background(), strings.NewReader(text), int64(len(text)), &k, o)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(k.batches, func(a, b schema.Batch) int { return checkOrder(a) - checkOrder(b) })
	checker := check.NewChecker(m, func(p check.Problem) { t.Errorf("%v", p) })
	r := &result{Manifest: m}
	for i, b := range k.batches {
		if b.Len() == 0 {
			continue
		}
		checker.Add(fmt.Sprint(i), b)
		switch b := b.(type) {
		case *schema.Events:
			r.events = rowsOf(r.events, b)
		case *schema.Messages:
			r.messages = rowsOf(r.messages, b)
		case *schema.Comms:
			r.comms = rowsOf(r.comms, b)
		}
	}
	checker.Finish()
	slices.SortStableFunc(r.events, func(a, b schema.Event) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq))
	})
	return r, nil
}

func rowsOf[R any, B rowBatch[R]](to []R, b B) []R {
	var row R
	for i := range b.Len() {
		b.Row(i, &row)
		to = append(to, row)
	}
	return to
}

// checkOrder returns the order that a Checker wants: definitions, then events and messages by epoch.
func checkOrder(b schema.Batch) int {
	if b.Len() == 0 {
		return 0
	}
	switch b := b.(type) {
	case *schema.RankInfos:
		return -2
	case *schema.Events:
		return 2 * int(b.Epoch[0])
	case *schema.Messages:
		return 2*int(b.Epoch[0]) + 1
	}
	return -1
}

func mustImport(t testing.TB, text string, o Options) *result {
	t.Helper()
	r, err := imported(t, text, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// file returns a trace of tasks, whose records are given without the task and thread: "1:0.5" is a burst. Lines that
// begin with d: are definitions. The offsets are right.
func file(tasks ...string) string {
	var defs, records bytes.Buffer
	var begins []int
	for task, text := range tasks {
		begins = append(begins, records.Len())
		for _, line := range strings.Fields(text) {
			if strings.HasPrefix(line, "d:") {
				fmt.Fprintln(&defs, line)
				continue
			}
			kind, fields, _ := strings.Cut(line, ":")
			if fields != "" {
				fields = ":" + fields
			}
			fmt.Fprintf(&records, "%s:%d:0%s\n", kind, task, fields)
		}
	}
	threads := strings.TrimSuffix(strings.Repeat("1,", len(tasks)), ",")
	head := func(at int) string {
		return fmt.Sprintf("#DIMEMAS:\"test\":1,%06d:%d(%s),1,0,0    \n", at, len(tasks), threads)
	}
	first := len(head(0)) + defs.Len()
	var offsets bytes.Buffer
	for task, at := range begins {
		fmt.Fprintf(&offsets, "s:%d:%d\n", task, first+at)
	}
	return head(first+records.Len()) + defs.String() + records.String() + offsets.String()
}

// line returns an event as text: its call and the columns listed below.
func line(e *schema.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d.%d %s", e.Rank, e.Seq, strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_"))
	num := func(name string, x int64, null bool) {
		if !null {
			fmt.Fprintf(&b, " %s=%d", name, x)
		}
	}
	n32 := func(name string, x int32) { num(name, int64(x), x == null32) }
	n64 := func(name string, x int64) { num(name, x, x == null64) }
	if e.ComputeNs != 0 {
		n64("compute", e.ComputeNs)
	}
	n32("comm", e.Comm)
	n64("instance", e.Instance)
	n32("to", e.SendPeer)
	n32("toworld", e.SendWorld)
	n32("stag", e.SendTag)
	n64("sent", e.SendBytes)
	n32("from", e.RecvPeer)
	n32("fromworld", e.RecvWorld)
	n32("rtag", e.RecvTag)
	n64("received", e.RecvBytes)
	n32("root", e.RootWorld)
	n64("request", e.Request)
	n64("done", e.DoneSeq)
	if e.Label != schema.NullText {
		fmt.Fprintf(&b, " label=%s", e.Label)
	}
	return b.String()
}

func (r *result) lines() []string {
	var lines []string
	for i := range r.events {
		lines = append(lines, line(&r.events[i]))
	}
	return lines
}
