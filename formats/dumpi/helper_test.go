package dumpi

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/schema"
)

// imported imports a trace as a run that breaks no rule.
func imported(t testing.TB, path string, o Options) (*formatstest.Run, error) {
	t.Helper()
	return formatstest.Import(t, func(k *formatstest.Memory) (*schema.Manifest, error) {
		trace, err := openTrace(path)
		if err != nil {
			return nil, err
		}
		return trace.importTo(context.Background(), k, o)
	})
}

// recorder writes the file of a rank: calls one after the other, 1 s each, with 1 s between them.
type recorder struct {
	data  []byte
	at    int64
	calls [allFunctions]uint32
	sizes []int64
}

const noTimes = -1

// call adds a record. Values are those of the parameters in their order: integers, arrays, texts, statuses.
func (r *recorder) call(name string, values ...any) { r.callBy(0, name, values...) }

func (r *recorder) callBy(thread uint16, name string, values ...any) {
	r.callTook(thread, r.at, r.at+1, name, values...)
	if r.at != noTimes {
		r.at += 2
	}
}

// callTook adds the record of a call that began and ended at these seconds.
func (r *recorder) callTook(thread uint16, start, end int64, name string, values ...any) {
	n := number(name)
	r.calls[n]++
	r.data = binary.BigEndian.AppendUint16(r.data, uint16(n))
	if r.at == noTimes {
		r.data = append(r.data, 0)
	} else {
		r.data = append(r.data, hasStatuses|hasTimes|hasThread)
		r.data = binary.BigEndian.AppendUint16(r.data, thread)
		for _, at := range []int64{start, end} {
			r.data = binary.BigEndian.AppendUint16(r.data, uint16(at))
			r.data = binary.BigEndian.AppendUint32(r.data, 7)
		}
	}
	for i, v := range values {
		r.value(functions[n].parts[i].kind, v)
	}
}

func number(name string) int {
	for n := range functions {
		if functions[n].name == name {
			return n
		}
	}
	panic(name)
}

func (r *recorder) value(kind byte, v any) {
	b := binary.BigEndian
	switch v := v.(type) {
	case int:
		switch kind {
		case 'b':
			r.data = append(r.data, byte(v))
		case 'h':
			r.data = b.AppendUint16(r.data, uint16(v))
		case 'l':
			r.data = b.AppendUint64(r.data, uint64(v))
		default:
			r.data = b.AppendUint32(r.data, uint32(v))
		}
	case []int:
		r.data = b.AppendUint32(r.data, uint32(len(v)))
		for _, x := range v {
			if kind == 'H' {
				r.data = b.AppendUint16(r.data, uint16(x))
			} else {
				r.data = b.AppendUint32(r.data, uint32(x))
			}
		}
	case [][]int:
		r.data = b.AppendUint32(r.data, uint32(len(v)))
		for _, x := range v {
			r.value('I', x)
		}
	case string:
		r.data = append(b.AppendUint32(r.data, uint32(len(v))), v...)
	case []calls.Status:
		r.data = b.AppendUint32(r.data, uint32(len(v)))
		for _, s := range v {
			r.data = b.AppendUint32(r.data, uint32(s.Bytes))
			r.data = b.AppendUint32(r.data, uint32(s.Source))
			cancelled := byte(0)
			if s.Cancelled {
				cancelled = 1
			}
			r.data = append(r.data, cancelled, 0)
			r.data = b.AppendUint32(r.data, uint32(s.Tag))
		}
	}
}

// file returns the whole file.
func (r *recorder) file(base uint32) []byte {
	b := binary.BigEndian
	var out []byte
	out = b.AppendUint64(out, magic)
	out = b.AppendUint32(out, 0)
	out = b.AppendUint32(out, base)
	out = append(out, r.data...)
	out = b.AppendUint16(out, endOfStream)
	header := len(out)
	out = append(out, 1, 1, 0)
	out = b.AppendUint64(out, uint64(base))
	out = append(b.AppendUint16(out, 2), "n1"...)
	out = append(b.AppendUint16(out, 1), "u"...)
	out = append(out, 0, 0, 0, 0, 0, 0, 0, 0)
	footer := len(out)
	out = b.AppendUint64(out, footMagic)
	for _, n := range r.calls {
		out = b.AppendUint32(out, n)
	}
	out = append(out, make([]byte, 4*(allFunctions+2))...)
	sizes := len(out)
	out = b.AppendUint32(out, uint32(len(r.sizes)))
	for _, n := range r.sizes {
		out = b.AppendUint32(out, uint32(n))
	}
	out = b.AppendUint64(out, magic)
	for _, at := range []int{sizes, 0, 0, header, 8, footer, 0} {
		out = b.AppendUint64(out, uint64(at))
	}
	return out
}

// written writes a trace and returns its .meta.
func written(t testing.TB, ranks ...*recorder) string {
	t.Helper()
	dir := t.TempDir()
	for i, r := range ranks {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("x-%04d.bin", i)), r.file(100), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	meta := filepath.Join(dir, "x.meta")
	text := fmt.Sprintf("hostname=n1\nnumprocs=%d\nusername=u\nfileprefix=x\n", len(ranks))
	if err := os.WriteFile(meta, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return meta
}

// line is a row as text: its call, and what is not null of its message, collective and request.
func line(e *schema.Event) string {
	words := []string{fmt.Sprintf("%d.%d", e.Rank, e.Seq), strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_")}
	say := func(name string, v, null int64) {
		if v != null {
			words = append(words, fmt.Sprint(name, "=", v))
		}
	}
	null32, null64 := int64(schema.NullInt32), int64(schema.NullInt64)
	for _, x := range []struct {
		name string
		v    int32
	}{{"comm", e.Comm}, {"to", e.SendWorld}, {"stag", e.SendTag}, {"from", e.RecvWorld}, {"rtag", e.RecvTag},
		{"root", e.RootWorld}} {
		say(x.name, int64(x.v), null32)
	}
	say("sent", e.SendBytes, null64)
	say("received", e.RecvBytes, null64)
	say("instance", e.Instance, null64)
	say("request", e.Request, null64)
	say("done", e.DoneSeq, null64)
	say("init", e.InitSeq, null64)
	if e.PostedAny > 0 {
		say("any", int64(e.PostedAny), null32)
	}
	if e.ProcNull > 0 {
		say("null", int64(e.ProcNull), null32)
	}
	say("polls", e.Polls, null64)
	if e.ReduceOp >= 0 {
		words = append(words, schema.OpNames[e.ReduceOp])
	}
	if e.Label != schema.NullText {
		words = append(words, "label="+e.Label)
	}
	return strings.Join(words, " ")
}
