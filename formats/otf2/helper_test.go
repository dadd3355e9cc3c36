package otf2

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/schema"
)

// imported imports an archive as a run that breaks no rule.
func imported(t testing.TB, path string, o Options) (*formatstest.Run, error) {
	t.Helper()
	return formatstest.Import(t, func(k *formatstest.Memory) (*schema.Manifest, error) {
		a, err := openArchive(path)
		if err != nil {
			return nil, err
		}
		j, err := newJob(a, o)
		if err != nil {
			return nil, err
		}
		return j.importTo(context.Background(), k)
	})
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
	}{{"thread", e.Thread}, {"comm", e.Comm}, {"to", e.SendWorld}, {"stag", e.SendTag}, {"from", e.RecvWorld},
		{"rtag", e.RecvTag}, {"root", e.RootWorld}} {
		if x.name != "thread" || x.v > 0 {
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
