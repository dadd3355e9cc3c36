package chakra

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// attr is an AttributeProto with a number in the given field, or with a text.
func attr(name string, field protowire.Number, x uint64, text string) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, fieldAttrName, protowire.BytesType), name)
	if field == attrString {
		return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), x)
}

func number(name string, x int64) []byte { return attr(name, 9, uint64(x), "") }

// made is a node of a test.
type made struct {
	id     uint64
	kind   nodeType
	deps   []uint64 // of data
	ctrl   []uint64
	micros uint64
	inputs string
	attrs  [][]byte
}

// file writes nodes as a trace.
func file(nodes ...made) []byte {
	message := func(b []byte) []byte { return append(protowire.AppendVarint(nil, uint64(len(b))), b...) }
	out := message(protowire.AppendString(protowire.AppendTag(nil, fieldVersion, protowire.BytesType), "0.0.4"))
	for _, n := range nodes {
		var b []byte
		number := func(field protowire.Number, x uint64) {
			b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), x)
		}
		number(fieldID, n.id)
		number(fieldType, uint64(n.kind))
		if len(n.deps) > 0 { // packed, as protocol buffers of version 3 are
			var deps []byte
			for _, d := range n.deps {
				deps = protowire.AppendVarint(deps, d)
			}
			b = protowire.AppendBytes(protowire.AppendTag(b, fieldData, protowire.BytesType), deps)
		}
		for _, d := range n.ctrl {
			number(fieldCtrl, d)
		}
		if n.micros > 0 {
			number(fieldDuration, n.micros)
		}
		if n.inputs != "" {
			sub := protowire.AppendString(protowire.AppendTag(nil, fieldInputValues, protowire.BytesType), n.inputs)
			b = protowire.AppendBytes(protowire.AppendTag(b, fieldInputs, protowire.BytesType), sub)
		}
		for _, a := range n.attrs {
			b = protowire.AppendBytes(protowire.AppendTag(b, fieldAttr, protowire.BytesType), a)
		}
		out = append(out, message(b)...)
	}
	return out
}

// imported imports the traces of a job.
func imported(t testing.TB, o Options, traces ...[]byte) (*formatstest.Run, error) {
	t.Helper()
	dir, store := t.TempDir(), t.TempDir()
	for i, b := range traces {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("job.%d.et", i)), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ImportPath(context.Background(), dir, store, "run", o); err != nil {
		return nil, err
	}
	return formatstest.Stored(t, filepath.Join(store, "run")), nil
}

// rows returns the rows of a run as text.
func rows(r *formatstest.Run) string {
	var b strings.Builder
	for i := range r.Events {
		e := &r.Events[i]
		fmt.Fprintf(&b, "%d.%d %s", e.Rank, e.Seq, strings.TrimPrefix(schema.CallID(e.Call).String(), "MPI_"))
		say := func(name string, x int64, null bool) {
			if !null {
				fmt.Fprintf(&b, " %s=%d", name, x)
			}
		}
		say("compute", e.ComputeNs, e.ComputeNs == 0)
		say("comm", int64(e.Comm), e.Comm == null32)
		say("instance", e.Instance, e.Instance == null64)
		say("to", int64(e.SendWorld), e.SendWorld == null32)
		say("sent", e.SendBytes, e.SendBytes == null64)
		say("from", int64(e.RecvWorld), e.RecvWorld == null32)
		say("received", e.RecvBytes, e.RecvBytes == null64)
		say("done", e.DoneSeq, e.DoneSeq == null64)
		b.WriteString("\n")
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		fmt.Fprintf(&b, "%d.%d -> %d.%d.%d: %d, tag %d\n", m.Src, m.SendSeq, m.Dst, m.RecvPostSeq, m.RecvDoneSeq,
			m.Bytes, m.Tag)
	}
	for i := range r.Comms {
		c := &r.Comms[i]
		fmt.Fprintf(&b, "comm %d %s: %d is %d\n", c.Comm, c.Name, c.CommRank, c.WorldRank)
	}
	return b.String()
}

// What depends on no operation comes before what has to wait for one, so that two ranks that send to each other do not
// both wait first; the collectives of a group keep their order, although the second depends on nothing.
func TestWaitsComeLast(t *testing.T) {
	message := func(id uint64, kind nodeType, side string, peer int64, deps ...uint64) made {
		return made{id: id, kind: kind, deps: deps, attrs: [][]byte{attr(side, 7, uint64(peer), ""), number("comm_size", 8),
			attr("comm_tag", 5, uint64(id/10), "")}}
	}
	reduce := func(id uint64, bytes int64, deps ...uint64) made {
		return made{id: id, kind: collNode, deps: deps, attrs: [][]byte{number("comm_type", 0), number("comm_size", bytes),
			attr("pg_name", attrString, 0, "")}}
	}
	rank := func(other int64) []byte {
		return file(message(11, recvNode, "comm_src", other), made{id: 12, kind: compNode, micros: 1, deps: []uint64{11}},
			message(13, sendNode, "comm_dst", other), reduce(14, 400, 12), reduce(15, 500),
			message(16, sendNode, "comm_dst", other), message(17, recvNode, "comm_src", other))
	}
	r, err := imported(t, Options{}, rank(1), rank(0))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(rows(r)) {
		if strings.HasPrefix(line, "0.") {
			words := strings.Fields(line)
			got = append(got, words[1]+" "+words[len(words)-2])
		}
	}
	want := []string{"Irecv received=8", "Ibsend sent=8", "Ibsend sent=8", "Irecv received=8", "Wait 0.4",
		"Iallreduce received=400", "Iallreduce received=500"}
	if len(got) < len(want) || !cmp.Equal(got[:len(want)], want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Messages of a channel keep their order: the second send of rank 0, which waits for nothing, does not overtake the
// first. A receive of another size than its message is counted.
func TestChannelsKeepTheirOrder(t *testing.T) {
	message := func(id uint64, kind nodeType, side string, bytes int64, deps ...uint64) made {
		return made{id: id, kind: kind, deps: deps, attrs: [][]byte{attr(side, 7, 1, ""), number("comm_size", bytes)}}
	}
	zero := file(message(11, recvNode, "comm_src", 8), made{id: 12, kind: compNode, micros: 1, deps: []uint64{11}},
		message(13, sendNode, "comm_dst", 100, 12), message(14, sendNode, "comm_dst", 200))
	from0 := func(id uint64, bytes int64) made {
		return made{id: id, kind: recvNode, attrs: [][]byte{attr("comm_src", 7, 0, ""), number("comm_size", bytes)}}
	}
	one := file(made{id: 11, kind: sendNode, attrs: [][]byte{attr("comm_dst", 7, 0, ""), number("comm_size", 9)}},
		from0(13, 100), from0(14, 200))
	r, err := imported(t, Options{}, zero, one)
	if err != nil {
		t.Fatal(err)
	}
	var bytes []int64
	for i := range r.Messages {
		bytes = append(bytes, r.Messages[i].Bytes)
	}
	if want := []int64{100, 200, 9}; !cmp.Equal(bytes, want) || r.Messages[0].RecvPostSeq != 1 ||
		r.Messages[1].RecvPostSeq != 2 {
		t.Errorf("messages of %v bytes, want %v: %s", bytes, want, rows(r))
	}
	if want := "by the order of the channel; they have the message's: 1."; !strings.Contains(
		strings.Join(r.Warnings, " "), want) {
		t.Errorf("%q; want %q", r.Warnings, want)
	}
}

// Three ranks: one computes on its device during an all-reduce of all and waits for it; two exchange a message and
// reduce in a group that the metadata names. Nodes of the program that launch, and what it computes, have no row.
func TestSteps(t *testing.T) {
	device, program := attr("is_cpu_op", 27, 0, ""), attr("is_cpu_op", 27, 1, "")
	reduce := func(id uint64, group string, bytes int64, deps ...uint64) made {
		return made{id: id, kind: collNode, deps: deps, attrs: [][]byte{device, number("comm_type", 0), number("comm_size", bytes),
			attr("pg_name", attrString, 0, group)}}
	}
	groups := made{id: 1, kind: metadataNode, inputs: `['[{"pg_name": "7", "ranks": [2, 0]}, {"pg_name": "0", "ranks": []}]']`}
	first := file(groups,
		made{id: 2, kind: compNode, micros: 50, attrs: [][]byte{program}},
		made{id: 3, kind: compNode, micros: 3, attrs: [][]byte{device}},
		made{id: 4, kind: collNode, attrs: [][]byte{program}}, // c10d::allreduce_
		reduce(5, "0", 4096, 3, 4),
		made{id: 6, kind: compNode, micros: 9, deps: []uint64{3}, attrs: [][]byte{device}},
		made{id: 7, kind: compNode, micros: 2, deps: []uint64{5, 6}, attrs: [][]byte{device}},
		reduce(8, "7", 100, 7),
		made{id: 9, kind: sendNode, deps: []uint64{8, 77}, attrs: [][]byte{attr("comm_dst", 7, 2, ""), number("comm_size", 33),
			attr("comm_tag", 5, 4, "")}})
	second := file(groups, reduce(5, "0", 4096))
	third := file(groups, reduce(5, "0", 4096), reduce(8, "7", 100, 5),
		made{id: 9, kind: recvNode, attrs: [][]byte{attr("comm_src", 7, 0, ""), number("comm_size", 40), attr("comm_tag", 5, 4, "")}},
		made{id: 10, kind: recvNode, attrs: [][]byte{attr("comm_src", 7, 9, ""), number("comm_size", 40)}})
	want := `0.0 Iallreduce compute=3000 comm=0 instance=0 sent=4096 received=4096 done=1
0.1 Wait compute=9000
0.2 Iallreduce compute=2000 comm=1 instance=0 sent=100 received=100 done=3
0.3 Wait
0.4 Ibsend comm=0 to=2 sent=33 done=5
0.5 Wait
0.6 Finalize
1.0 Iallreduce comm=0 instance=0 sent=4096 received=4096 done=1
1.1 Wait
1.2 Finalize
2.0 Iallreduce comm=0 instance=0 sent=4096 received=4096 done=2
2.1 Irecv comm=0 from=0 received=33 done=5
2.2 Wait
2.3 Iallreduce comm=1 instance=0 sent=100 received=100 done=4
2.4 Wait
2.5 Wait
2.6 Finalize
0.4 -> 2.1.5: 33, tag 4
comm 0 0: 0 is 0
comm 0 0: 1 is 1
comm 0 0: 2 is 2
comm 1 7: 0 is 2
comm 1 7: 1 is 0
`
	for _, epoch := range []int64{0, 6} {
		r, err := imported(t, Options{epochRows: epoch}, first, second, third)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, rows(r)); diff != "" {
			t.Errorf("epochs of %d: %s", epoch, diff)
		}
	}
	r, err := imported(t, Options{}, first, second, third)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Read: 16 nodes, of which 8 communicate.",
		"Nodes that launch a collective, which has a node of its own: 1.",
		"Dependencies on nodes that are not in the trace: 1.",
		"Sends and receives whose other side has no trace, left out: 1."} {
		if !strings.Contains(strings.Join(r.Warnings, "\n"), want) {
			t.Errorf("%q lacks %q", r.Warnings, want)
		}
	}
}

// PyTorch's traces have callers as dependencies of control: node 2 is called by node 3, which waits for what it did.
func TestCallers(t *testing.T) {
	r, err := imported(t, Options{}, file(made{id: 2, kind: collNode, ctrl: []uint64{3}, attrs: [][]byte{number("comm_type", 9)}},
		made{id: 3, kind: compNode, micros: 4, deps: []uint64{2}}))
	if err != nil {
		t.Fatal(err)
	}
	want := "0.0 Ibarrier comm=0 instance=0 sent=0 received=0 done=1\n0.1 Wait\n0.2 Finalize compute=4000\n" +
		"comm 0 MPI_COMM_WORLD: 0 is 0\n"
	if diff := cmp.Diff(want, rows(r)); diff != "" || !strings.Contains(strings.Join(r.Warnings, "\n"), "callers of nodes: 1.") {
		t.Errorf("%s%q", diff, r.Warnings)
	}
}

// A trace of ASTRA-sim's (examples/workload/microbenchmarks/reduce_scatter/4npus_1MB, MIT): each of four ranks gives
// 1 MiB and gets a quarter.
func TestTraceOfASTRASim(t *testing.T) {
	store := t.TempDir()
	m, err := ImportPath(context.Background(), "testdata/reduce_scatter.4", store, "", Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := formatstest.Stored(t, filepath.Join(store, "reduce_scatter.4"))
	if m.Ranks != 4 || m.Counts.Collectives != 1 || len(r.Events) != 4*3 {
		t.Fatalf("%d ranks, %+v, %d rows", m.Ranks, m.Counts, len(r.Events))
	}
	for rank := range 4 {
		e := &r.Events[3*rank]
		if e.Call != int16(schema.CallIreduceScatterBlock) || e.SendBytes != 1<<20 || e.RecvBytes != 1<<18 || e.DoneSeq != 1 {
			t.Errorf("rank %d: %+v", rank, e)
		}
	}
}

// What a trace tells of the size of a collective is its input: 120 bytes on four ranks.
func TestSizes(t *testing.T) {
	for _, x := range []struct {
		call       schema.CallID
		send, recv int64
	}{{schema.CallIallreduce, 120, 120}, {schema.CallIallgather, 120, 480}, {schema.CallIalltoall, 120, 120},
		{schema.CallIreduceScatterBlock, 120, 30}, {schema.CallIreduce, 120, null64}, {schema.CallIbcast, null64, 120},
		{schema.CallIbarrier, 0, 0}} {
		if send, recv := sizes(x.call, 120, 4); send != x.send || recv != x.recv {
			t.Errorf("%s: %d and %d; want %d and %d", x.call, send, recv, x.send, x.recv)
		}
	}
}

// Of parts of different sizes a trace has the sum that the rank gives: what it gets is known only where all parts are
// of one size. Those of rank 1 of the first all-to-all could be.
func TestUnevenParts(t *testing.T) {
	var traces [][]byte
	for rank := range int64(3) {
		coll := func(id uint64, kind, bytes int64) made {
			return made{id: id, kind: collNode, attrs: [][]byte{number("comm_type", kind), number("comm_size", bytes)}}
		}
		traces = append(traces, file(coll(1, 6, 6+3*rank), coll(2, 6, 10), coll(3, 6, 12), coll(4, 7, 10), coll(5, 7, 12)))
	}
	r, err := imported(t, Options{}, traces...)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][2]int64{{9, null64}, {10, null64}, {12, 12}, {10, null64}, {12, 4}} {
		e := &r.Events[len(r.Events)/3+i]
		if got := [2]int64{e.SendBytes, e.RecvBytes}; got != want {
			t.Errorf("operation %d of rank 1: %v; want %v", i, got, want)
		}
	}
	if w := r.Warnings[len(r.Warnings)-1]; !strings.Contains(w, "parts of different sizes") || !strings.HasSuffix(w, ": 9.") {
		t.Errorf("%q", r.Warnings)
	}
}

func TestErrors(t *testing.T) {
	coll := func(id uint64, kind int64, deps ...uint64) made {
		return made{id: id, kind: collNode, deps: deps, attrs: [][]byte{number("comm_type", kind), number("comm_size", 8)}}
	}
	whole := file(coll(1, 0))
	for _, x := range []struct {
		want   string
		traces [][]byte
	}{
		{"job.0.et: the first message is not the metadata", [][]byte{[]byte("\x05hello")}},
		{"message 2 is cut off", [][]byte{whole[:len(whole)-3]}},
		{"node 1 is there twice", [][]byte{file(coll(1, 0), coll(1, 0))}},
		{"go in a circle", [][]byte{file(coll(1, 0, 2), coll(2, 0, 1))}},
		{"node 1 is collective 10; there are those from 0 to 9", [][]byte{file(coll(1, 10))}},
		{"node 3 has type 9", [][]byte{file(made{id: 3, kind: 9})}},
		{"a message, has the partner -1", [][]byte{file(made{id: 3, kind: sendNode})}},
		{"job.1.et: operation 0 of group \"\" is MPI_Ibarrier here", [][]byte{whole, file(coll(1, 9))}},
		{"job.1.et: 0 operations of group \"\", and 1 in", [][]byte{whole, file()}},
	} {
		if _, err := imported(t, Options{}, x.traces...); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v; want %s", err, x.want)
		}
	}
	dir := filepath.Join(t.TempDir(), "a[1]")
	if err := errors.Join(os.Mkdir(dir, 0o777), os.WriteFile(filepath.Join(dir, "x.1.et"), whole, 0o666)); err != nil {
		t.Fatal(err)
	}
	if _, err := ImportPath(context.Background(), dir, t.TempDir(), "run", Options{}); err == nil ||
		!strings.Contains(err.Error(), "of 1 traces none is of rank 0") {
		t.Errorf("a rank without a file: %v", err)
	}
	if !IsFolder(dir) || IsFolder(t.TempDir()) || IsTrace([]byte("{\"traceEvents\": []}")) || IsTrace([]byte("#DIMEMAS:")) {
		t.Error("what is a trace")
	}
}

func FuzzImport(f *testing.F) {
	f.Add(file(made{id: 1, kind: compNode, micros: 3}, made{id: 2, kind: collNode, deps: []uint64{1},
		attrs: [][]byte{number("comm_type", 0), number("comm_size", 8), attr("pg_name", attrString, 0, "3")}}))
	f.Add(file(made{id: 1, kind: metadataNode, inputs: `[{"pg_name": "3", "ranks": [0]}]`},
		made{id: 2, kind: sendNode, attrs: [][]byte{attr("comm_dst", 7, 0, "")}},
		made{id: 3, kind: recvNode, deps: []uint64{2}, attrs: [][]byte{attr("comm_src", 15, 0, "")}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readRank(bytes.NewReader(b), "test.et")
		if err != nil {
			return
		}
		j := &job{o: Options{epochRows: 3}, ranks: []*rank{r}}
		u, err := j.untimed("test.et")
		if err != nil {
			return
		}
		if got := generated(t, u); got != u.Calls[0] {
			t.Errorf("%d rows; want %d", got, u.Calls[0])
		}
	})
}

// FuzzFile reads files of a folder, compressed or not: what can be read whole can be imported, or is an error.
func FuzzFile(f *testing.F) {
	text := file(made{id: 1, kind: compNode, micros: 3}, made{id: 2, kind: sendNode,
		attrs: [][]byte{attr("comm_dst", 7, 0, "")}})
	packed := []byte(formatstest.Gzip(f, string(text)))
	f.Add("trace.0.et.gz", packed)
	f.Add("trace.0.et.gz", packed[:len(packed)/2])
	f.Add("trace.0.et", text)
	f.Add("4194304.et", text)
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		if name != filepath.Base(name) || !filepath.IsLocal(name) || name == "." || len(name) > 200 || strings.Contains(name, "\x00") {
			return
		}
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = IsFolder(dir)
		files, err := find(dir)
		if err != nil {
			return
		}
		if r, err := readFile(files[0], true); err == nil {
			_, _ = (&job{o: Options{epochRows: 3}, ranks: []*rank{r}}).untimed(files[0])
		}
	})
}

// A pipe among the traces of a folder is not waited for.
func TestPipesAreNoTraces(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(dir, "t.0.et"), file(), 0o600),
		syscall.Mkfifo(filepath.Join(dir, "t.1.et"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := ImportPath(t.Context(), dir, t.TempDir(), "x", Options{})
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "t.1.et is not a regular file") {
			t.Error(err)
		}
	case <-time.After(testenv.Patience):
		t.Error("it waits for the pipe")
	}
}

// A pipe that the user names is read, as in commq import chakra <(zstd -dc t.0.et.zst).
func TestPipeThatTheUserNames(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "t.0.et")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := os.WriteFile(pipe, file(), 0o600); err != nil {
			t.Error(err)
		}
	}()
	if r, err := readFile(pipe, false); err != nil || r.file != pipe {
		t.Errorf("%+v, %v", r, err)
	}
}

// generated makes all rows of a run of one rank, and returns their number.
func generated(t *testing.T, u *run.Untimed) int64 {
	var events schema.Events
	for range u.Epochs {
		if err := u.Next(0, &events, nil); err != nil {
			t.Fatal(err)
		}
	}
	return int64(events.Len())
}

// A group of ranks without traces is none of the run's; those after it have the next numbers.
func TestGroupWithoutRanks(t *testing.T) {
	list := made{id: 9, kind: metadataNode,
		inputs: `['[{"pg_name": "4", "ranks": [5, 6]}, {"pg_name": "5", "ranks": [1, 0]}]']`}
	barrier := func(id uint64, group string) made {
		return made{id: id, kind: collNode, attrs: [][]byte{number("comm_type", 9), attr("pg_name", attrString, 0, group)}}
	}
	r, err := imported(t, Options{}, file(list, barrier(1, "5"), barrier(2, "4")), file(list, barrier(1, "5")))
	if err != nil {
		t.Fatal(err)
	}
	got := rows(r)
	for _, want := range []string{"0.0 Ibarrier comm=1 instance=0", "1.0 Ibarrier comm=1 instance=0", "comm 1 5: 0 is 1"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}
