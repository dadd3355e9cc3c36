package timed_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// options are the sizes that each trace is imported with: the answer must not depend on them.
var options = map[string]timed.Options{
	"usual":            {},
	"few rows":         {EpochRows: 3, ShardRows: 5, Keep: 1, Round: 1},
	"an epoch per row": {EpochRows: 1, ShardRows: 1, Keep: 2, Round: 2},
	"all kept":         {EpochRows: 4, Keep: 1 << 20, Round: 3},
}

// imported imports a trace: it is skimmed, and read again if that is not enough.
func imported(t testing.TB, s *script, o timed.Options) (*formatstest.Run, error) {
	t.Helper()
	r, err := importedBy(t, s, o)
	if errors.Is(err, timed.ErrLearn) {
		o.Learn = true
		r, err = importedBy(t, s, o)
	}
	return r, err
}

func importedBy(t testing.TB, s *script, o timed.Options) (*formatstest.Run, error) {
	t.Helper()
	var open atomic.Int64
	r, err := formatstest.Import(t, func(m *formatstest.Memory) (*schema.Manifest, error) {
		j := timed.New(s.trace(&open), o)
		if err := j.Import(context.Background(), m); err != nil {
			return nil, err
		}
		return j.Manifest(schema.Origin{}, nil), nil
	})
	if open.Load() != 0 {
		t.Errorf("%d readers are open", open.Load())
	}
	return r, err
}

// TestTraces imports the traces of testdata and compares the tables of their runs.
func TestTraces(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if a.Files[0].Name != "trace" || len(a.Files) < 2 {
				t.Fatal("want the part trace, and tables")
			}
			s := parse(t, string(a.Files[0].Data))
			for name, o := range options {
				for _, o.Learn = range []bool{true, false} {
					r, err := imported(t, s, o)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					got := formatstest.Tables(r)
					for _, want := range a.Files[1:] {
						if d := cmp.Diff(string(want.Data), got[want.Name]); d != "" {
							t.Errorf("%s, learning %v: %s: %s\n%s", name, o.Learn, want.Name, d, got[want.Name])
						}
					}
				}
			}
		})
	}
}

const ring = `ranks 2
0 10-20 Send to=1 stag=9 sent=3
0 30-40 Finalize
1 10-20 Recv from=0 rtag=9 received=3
1 30-40 Finalize
`

// TestErrorOfReader: an error of a reader ends the import, in either pass, and all readers are closed.
func TestErrorOfReader(t *testing.T) {
	broken := errors.New("byte 7: no call")
	for _, inLearning := range []bool{true, false} {
		var open atomic.Int64
		tr := parse(t, ring).trace(&open)
		whole := tr.Open
		tr.Open = func(rank int32, learning bool) ([]timed.Reader, error) {
			all, err := whole(rank, learning)
			if rank == 1 && learning == inLearning {
				all[0].(*reader).err = broken
			}
			return all, err
		}
		var m formatstest.Memory
		err := timed.New(tr, timed.Options{Learn: true}).Import(context.Background(), &m)
		if !errors.Is(err, broken) || open.Load() != 0 {
			t.Errorf("learning %v: %v, %d readers are open", inLearning, err, open.Load())
		}
	}
}

// TestErrorOfOpen: a rank that cannot be opened ends the import.
func TestErrorOfOpen(t *testing.T) {
	missing := errors.New("no file")
	for _, inLearning := range []bool{true, false} {
		var open atomic.Int64
		tr := parse(t, ring).trace(&open)
		whole := tr.Open
		tr.Open = func(rank int32, learning bool) ([]timed.Reader, error) {
			if rank == 1 && learning == inLearning {
				return nil, missing
			}
			return whole(rank, learning)
		}
		var m formatstest.Memory
		err := timed.New(tr, timed.Options{Learn: true}).Import(context.Background(), &m)
		if !errors.Is(err, missing) || open.Load() != 0 {
			t.Errorf("learning %v: %v, %d readers are open", inLearning, err, open.Load())
		}
	}
}

// TestErrorOfSkim: so does a rank that cannot be skimmed.
func TestErrorOfSkim(t *testing.T) {
	broken := errors.New("byte 7: no event")
	var open atomic.Int64
	tr := parse(t, ring).trace(&open)
	tr.Skim = func(context.Context, int32, *timed.Sketch) error { return broken }
	var m formatstest.Memory
	if err := timed.New(tr, timed.Options{}).Import(context.Background(), &m); !errors.Is(err, broken) || open.Load() != 0 {
		t.Errorf("%v, %d readers are open", err, open.Load())
	}
}

// TestSkimIsNotEnough: what the first pass has to know ends an import that only skimmed, and nothing else does.
func TestSkimIsNotEnough(t *testing.T) {
	late := "ranks 1\n0 0-5 Irecv class=recv from=0 rtag=1 received=8 post=1\n0 10-15 Barrier\n0 20-25 Barrier\n" +
		"0 30-35 Isend class=send to=0 stag=1 sent=8 post=2\n0 40-45 Waitall end=1/received:0:0:1:8 end=2/\n"
	for _, c := range []struct {
		text string
		keep int
		want error
	}{
		{ring, 1, nil},
		{late, 4, nil},
		{late, 3, timed.ErrLearn},
		{"ranks 2\n1 0-5 Barrier comm=self\n", 0, timed.ErrLearn},
	} {
		if _, err := importedBy(t, parse(t, c.text), timed.Options{Keep: c.keep}); !errors.Is(err, c.want) {
			t.Errorf("%s, at most %d rows kept: %v, want %v", c.text, c.keep, err, c.want)
		}
		if _, err := importedBy(t, parse(t, c.text), timed.Options{Keep: c.keep, Learn: true}); err != nil {
			t.Errorf("%s: %v", c.text, err)
		}
	}
}

// fullDisk is a sink that takes no rows of one epoch.
type fullDisk struct {
	formatstest.Memory
	epoch int32
}

var errFull = errors.New("no space left")

func (d *fullDisk) Write(shard int, b schema.Batch) error {
	if e, ok := b.(*schema.Events); ok && e.Len() > 0 && e.Epoch[0] == d.epoch {
		return errFull
	}
	return d.Memory.Write(shard, b)
}

// TestErrorOfSink: rows that cannot be written end the import, whichever epoch they are of.
func TestErrorOfSink(t *testing.T) {
	const epochs = 4
	long := "ranks 1\n"
	for i := range 1024 {
		long += fmt.Sprintf("0 %d-%d Barrier\n", 10*i, 10*i+5)
	}
	for epoch := range int32(epochs + 1) {
		var open atomic.Int64
		j := timed.New(parse(t, long).trace(&open), timed.Options{EpochRows: 1024 / epochs})
		err := j.Import(context.Background(), &fullDisk{epoch: epoch})
		if want := epoch < j.Manifest(schema.Origin{}, nil).Epochs; errors.Is(err, errFull) != want || open.Load() != 0 {
			t.Errorf("epoch %d: %v, %d readers are open", epoch, err, open.Load())
		}
		if n := j.Manifest(schema.Origin{}, nil).Epochs; n != epochs {
			t.Errorf("%d epochs, want %d", n, epochs)
		}
	}
}

// TestSendOfAnEarlierEpoch: a message that is received epochs after it was sent stands before those of later senders.
func TestSendOfAnEarlierEpoch(t *testing.T) {
	text := "ranks 2\n0 0-5 Send to=1 stag=1 sent=8\n"
	for i := 1; i < 1024; i++ {
		text += fmt.Sprintf("0 %d-%d Barrier\n1 %d-%d Barrier\n", 10*i, 10*i+5, 10*i, 10*i+5)
	}
	text += "1 10240-10245 Recv from=0 rtag=1 received=8\n1 10250-10255 Send to=0 stag=2 sent=8\n" +
		"0 10250-10260 Recv from=1 rtag=2 received=8\n"
	r, err := imported(t, parse(t, text), timed.Options{EpochRows: 512})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Messages) != 2 || r.Messages[0].Epoch != 3 || r.Messages[1].Epoch != 3 || r.Messages[0].Src != 0 {
		t.Errorf("%+v", r.Messages)
	}
}

// TestInterrupted: a cancelled context ends the import.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var open atomic.Int64
	var m formatstest.Memory
	err := timed.New(parse(t, ring).trace(&open), timed.Options{}).Import(ctx, &m)
	if !errors.Is(err, context.Canceled) || open.Load() != 0 {
		t.Errorf("%v, %d readers are open", err, open.Load())
	}
}

// TestProgress: the reports end with all of both passes.
func TestProgress(t *testing.T) {
	var last, all atomic.Int64
	s := parse(t, ring)
	if _, err := imported(t, s, timed.Options{EpochRows: 1, Options: importing.Options{Progress: func(read, size int64) {
		if read < last.Load() {
			t.Errorf("%d after %d", read, last.Load())
		}
		last.Store(read)
		all.Store(size)
	}}}); err != nil {
		t.Fatal(err)
	}
	if last.Load() != 8 || all.Load() != 8 {
		t.Errorf("%d of %d; want 8 of 8", last.Load(), all.Load())
	}
}

// endless makes the calls of a rank as they are read: rank 0 sends, rank 1 receives what it posted before, and each has
// a request that is open from the first call to the last.
type endless struct {
	rank     int32
	at, last int64
}

func (r *endless) Next(c *timed.Call) (bool, error) {
	if r.at > r.last {
		return false, nil
	}
	c.Reset()
	row := &c.Row
	call := [2]schema.CallID{schema.CallIsend, schema.CallIrecv}[r.rank]
	k := r.at
	switch {
	case r.at == r.last:
		call = schema.CallFinalize
	case r.at == r.last-1:
		call, c.Ends = schema.CallWait, []timed.Ending{{Request: 1}}
	case r.at > 0 && r.at%2 == 0:
		call, c.Ends = schema.CallWait, []timed.Ending{{Request: 2}}
	default:
		c.Posts = []uint64{min(uint64(r.at)+1, 2)}
		row.Comm, row.ProcNull = 0, 0
		if r.rank == 0 {
			row.SendPeer, row.SendWorld, row.SendTag, row.SendBytes = 1, 1, 9, k%4096
		} else {
			row.RecvPeer, row.RecvWorld, row.RecvTag, row.RecvBytes = 0, 0, 9, k%4096
		}
	}
	row.Rank, row.Thread, row.Call, row.Class = r.rank, 0, int16(call), int16(schema.Calls[call].Class)
	row.StartNs, row.EndNs = 10*k, 10*k+5
	r.at++
	return true, nil
}

func (r *endless) Site(first int32) int32 { return first }
func (r *endless) Read() int64            { return r.at }
func (r *endless) Close()                 {}

// measuring counts rows, and keeps the largest heap in use at the end of an epoch.
type measuring struct {
	rows int64
	heap uint64
}

func (m *measuring) Write(_ int, b schema.Batch) error {
	if e, ok := b.(*schema.Events); ok {
		m.rows += int64(e.Len())
		var s runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&s)
		m.heap = max(m.heap, s.HeapAlloc)
	}
	return nil
}

// TestMemory: memory does not grow with the trace, though a request is open through all of it.
func TestMemory(t *testing.T) {
	heap := func(calls int64) uint64 {
		tr := timed.Trace{Comms: timed.NewComms(2), Hosts: []string{"one"}, HostOf: make([]int32, 2)}
		tr.Open = func(rank int32, _ bool) ([]timed.Reader, error) {
			return []timed.Reader{&endless{rank: rank, last: calls - 1}}, nil
		}
		var m measuring
		j := timed.New(tr, timed.Options{EpochRows: 1 << 12})
		if err := j.Import(context.Background(), &m); err != nil {
			t.Fatal(err)
		}
		if m.rows != 2*calls || j.Counts.Messages != (calls-1)/2 || j.Counts.UnmatchedSends != 0 {
			t.Fatalf("%d rows, %+v", m.rows, j.Counts)
		}
		return m.heap
	}
	short, long := heap(20_001), heap(320_001)
	if long > short+1<<20 {
		t.Errorf("%d bytes of heap with 40,002 calls, %d with 640,002", short, long)
	}
}
