package bench

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// BenchmarkSimulate measures the parts of a simulation: reading the rows, the engine on rows in memory, and both.
// $COMMQ_SIMULATE_RUN names the run, $COMMQ_SIMULATE_MACHINE the configuration of Dimemas. See bench/simulate.md.
func BenchmarkSimulate(b *testing.B) {
	dir, machine := os.Getenv("COMMQ_SIMULATE_RUN"), os.Getenv("COMMQ_SIMULATE_MACHINE")
	if dir == "" || machine == "" {
		b.Skip("COMMQ_SIMULATE_RUN and COMMQ_SIMULATE_MACHINE name no run and no machine")
	}
	f, err := os.Open(machine)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	m, err := models.ReadCFG(machine, f, func(name string) (io.ReadCloser, error) { return os.Open(filepath.Join(filepath.Dir(machine), name)) })
	if err != nil {
		b.Fatal(err)
	}
	p := &simulate.Program{}
	err = writer.ReadTable(b.Context(), dir, &schema.RanksTable, 4096, func(x schema.Batch) error {
		p.Threads = append(p.Threads, x.(*schema.RankInfos).Threads...)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	world := run.Comm{ID: 1}
	for r := range p.Threads {
		world.Members = append(world.Members, int32(r))
	}
	p.Comms = []run.Comm{world, {ID: 0, Members: world.Members}}
	type next = func(add func(*schema.Events) error) error
	read := func() next {
		rows, err := writer.ReadEpochs(dir, &schema.EventsTable, 1<<13, simulate.Columns...)
		if err != nil {
			b.Fatal(err)
		}
		return func(add func(*schema.Events) error) error {
			return rows.Next(context.Background(), func(x schema.Batch) error { return add(x.(*schema.Events)) })
		}
	}
	records := 0
	var kept [][]schema.Event
	for n := read(); ; {
		var epoch []schema.Event
		err := n(func(x *schema.Events) error {
			records += len(x.Rank)
			for i := range x.Rank {
				var r schema.Event
				x.Row(i, &r)
				epoch = append(epoch, r)
			}
			return nil
		})
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		kept = append(kept, epoch)
	}
	var batches [][]*schema.Events
	for _, epoch := range kept {
		var of []*schema.Events
		for len(epoch) > 0 {
			n := min(len(epoch), 1<<13)
			x := &schema.Events{}
			for i := range epoch[:n] {
				x.Append(&epoch[i])
			}
			of, epoch = append(of, x), epoch[n:]
		}
		batches = append(batches, of)
	}
	memory := func() next {
		at := 0
		return func(add func(*schema.Events) error) error {
			if at == len(batches) {
				return io.EOF
			}
			at++
			for _, x := range batches[at-1] {
				if err := add(x); err != nil {
					return err
				}
			}
			return nil
		}
	}
	per := func(b *testing.B, from time.Duration) {
		b.ReportMetric(float64(records)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		b.ReportMetric(float64((cpuTime(b)-from).Nanoseconds())/float64(b.N)/float64(records), "cpu-ns/row")
	}
	b.Run("read", func(b *testing.B) {
		from := cpuTime(b)
		for b.Loop() {
			n := read()
			for n(func(*schema.Events) error { return nil }) != io.EOF {
			}
		}
		per(b, from)
	})
	for name, source := range map[string]func() next{"engine": memory, "both": read} {
		b.Run(name, func(b *testing.B) {
			from := cpuTime(b)
			var result *simulate.Result
			for b.Loop() {
				if result, err = simulate.Simulate(m, p, &simulate.Options{Dialect: simulate.Dimemas5},
					source()); err != nil {
					b.Fatal(err)
				}
			}
			per(b, from)
			b.ReportMetric(float64(result.Events)/float64(records), "events/row")
		})
	}
}
