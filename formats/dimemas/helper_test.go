package dimemas

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/schema"
)

// result is a run in memory.
type result struct{ *formatstest.Run }

// imported returns a trace as a run that breaks no rule.
func imported(t testing.TB, text string, o Options) (*result, error) {
	t.Helper()
	if o.Name == "" {
		o.Name = "test.dim"
	}
	r, err := formatstest.Import(t, func(k *formatstest.Memory) (*schema.Manifest, error) {
		return importTo(context.Background(), strings.NewReader(text), int64(len(text)), k, o)
	})
	if err != nil {
		return nil, err
	}
	return &result{r}, nil
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
	for i := range r.Events {
		lines = append(lines, line(&r.Events[i]))
	}
	return lines
}
