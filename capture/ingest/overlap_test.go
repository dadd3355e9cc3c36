package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// failingSink fails with the n-th write of events, and with all later ones.
type failingSink struct {
	n, writes, running atomic.Int64
	ended              atomic.Bool
	t                  *testing.T
}

var errSink = errors.New("the disk is full")

func (s *failingSink) Write(_ int, b schema.Batch) error {
	defer s.running.Add(-1)
	if s.running.Add(1); s.ended.Load() {
		s.t.Error("written after the end")
	}
	if b.Table() == &schema.EventsTable && s.writes.Add(1) >= s.n.Load() {
		return errSink
	}
	return nil
}

// goroutinesEnd waits until there are no more goroutines than before.
func goroutinesEnd(before int) {
	for runtime.NumGoroutine() > before { // go test -timeout ends it
		runtime.Gosched()
	}
}

// A write that fails while the next epoch is made ends ingest with its error, and nothing runs on.
func TestWritingFails(t *testing.T) {
	dir, _, _, _ := randomSpool(t, 4711, 7, 600)
	before := runtime.NumGoroutine()
	for _, record := range []string{RecordAll, RecordMessages, RecordCollectives} {
		for _, n := range []int64{1, 2, 5, 9} {
			for _, workers := range []int{1, 2, 5} {
				o := Options{Record: record, Workers: workers, epochRows: 50, shardRows: 300, NoSymbols: true}
				if err := o.withDefaults(); err != nil {
					t.Fatal(err)
				}
				j, err := openJob(dir, "", allFiles)
				if err != nil {
					t.Fatal(err)
				}
				s := &failingSink{t: t}
				s.n.Store(n)
				_, err = makeRun(context.Background(), j, &o, s)
				s.ended.Store(true)
				if !errors.Is(err, errSink) || s.running.Load() != 0 {
					t.Errorf("%s, write %d, %d workers: %v; %d writes go on", record, n, workers, err, s.running.Load())
				}
				j.close()
				goroutinesEnd(before)
			}
		}
	}
}

// The error of the lower epoch counts: a rank whose records end in a later epoch than the one whose write fails.
func TestWritingFailsBeforeReading(t *testing.T) {
	var p pass
	p.plan, p.workers = &plan{bounds: []int64{1, 2, 3}}, 2
	reading := errors.New("damaged records")
	var written, made []int32
	var mu sync.Mutex
	run := func(fails, damaged int32) error {
		written, made = nil, nil
		return p.eachEpoch(func(e *epoch) error {
			made = append(made, e.number)
			if e.number == damaged {
				return reading
			}
			return nil
		}, func(e *epoch) error {
			mu.Lock()
			defer mu.Unlock()
			written = append(written, e.number)
			if e.number == fails {
				return errSink
			}
			return nil
		})
	}
	if err := run(1, 2); err != errSink || !slices.Equal(written, []int32{0, 1}) ||
		!slices.Equal(made, []int32{0, 1, 2}) {
		t.Errorf("%v; %v made, %v written", err, made, written)
	}
	if err := run(2, 2); err != reading || !slices.Equal(written, []int32{0, 1}) {
		t.Errorf("%v; %v written", err, written)
	}
	if err := run(3, 9); err != errSink || !slices.Equal(written, []int32{0, 1, 2, 3}) {
		t.Errorf("%v; %v written", err, written)
	}
	if err := run(9, 9); err != nil || !slices.Equal(written, []int32{0, 1, 2, 3}) {
		t.Errorf("%v; %v written", err, written)
	}
}

// Cancelled after any epoch is written, ingest leaves nothing in the store and no goroutine.
func TestCancelledBetweenEpochs(t *testing.T) {
	dir, _, _, _ := randomSpool(t, 5, 3, 300)
	before := runtime.NumGoroutine()
	for n := range 6 {
		store := t.TempDir()
		out, err := writer.Create(store, "run", writer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		reports := 0
		_, err = Ingest(ctx, dir, out, Options{epochRows: 50, Workers: 2, NoSymbols: true, Progress: func(_, _ int64) {
			if reports++; reports > n {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled after %d reports: %v", n, err)
		}
		if files, _ := os.ReadDir(store); len(files) != 0 {
			t.Errorf("%s remains in the store", filepath.Join(store, files[0].Name()))
		}
		goroutinesEnd(before)
		cancel()
	}
}
