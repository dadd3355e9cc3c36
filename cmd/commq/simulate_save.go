package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// copyRows is how many rows of a run are copied at once: a row group each, where the source has not fewer.
const copyRows = 1 << 17

// saving is a simulated run that is being written.
type saving struct {
	*runSimulation
	out    *writer.Run
	target string // its name
	times  *writer.RowTimes
	endNs  *int64
	err    error // of a row's times
}

// open makes room for the times of rows: where the simulation is kept, with them.
func (v *saving) open(rows []int64) (err error) {
	if v.kept == nil {
		v.endNs = new(int64)
		v.times, err = writer.NewRowTimes(rows)
		return err
	}
	v.times, err = writer.KeepRowTimes(rows, v.kept.timesPath)
	v.kept.times, v.endNs = v.times, &v.kept.EndNs
	return err
}

// save simulates the run and keeps the times it gets for a run of that name, which commit makes when all else is done. The saving is nil where the
// run is there already.
func (s *runSimulation) save(ctx context.Context, store, name string) (*simulate.Result, *saving, error) {
	if r := s.saved(filepath.Join(store, name)); r != nil {
		return r, nil, nil
	}
	out, err := writer.Create(store, name, writer.Options{})
	if err != nil {
		return nil, nil, err
	}
	v := &saving{runSimulation: s, out: out, target: name}
	r, err := v.simulateForTimes(ctx)
	if err != nil {
		return nil, nil, errors.Join(err, v.end())
	}
	return r, v, nil
}

func (v *saving) simulateForTimes(ctx context.Context) (*simulate.Result, error) {
	rows, err := v.rowsPerRank(ctx)
	if err != nil {
		return nil, err
	}
	if err := v.open(rows); err != nil {
		return nil, err
	}
	v.options.Done = v.done
	r, err := v.kept.simulate(ctx, v.runSimulation, v.machine, onMachine)
	v.options.Done = nil
	return r, errors.Join(err, v.err)
}

// commit writes the run. After it nothing may fail: a command that failed leaves no run.
func (v *saving) commit(ctx context.Context) error {
	if v == nil {
		return nil
	}
	if err := v.write(ctx); err != nil {
		return fmt.Errorf("write run %q: %w", v.target, err)
	}
	return v.out.Commit(v.simulated())
}

// saved is what was simulated, where a process that was killed later has already written the run; nil where that is not so.
func (s *runSimulation) saved(dir string) *simulate.Result {
	if s.kept == nil || len(s.kept.Results) == 0 {
		return nil
	}
	m, err := writer.ReadManifest(dir)
	if err != nil || m.Origin.Simulation == nil || !reflect.DeepEqual(m.Origin.Simulation, (&saving{runSimulation: s}).origin()) {
		return nil
	}
	return &s.kept.Results[onMachine]
}

// end ends it; where there was no commit nothing of the run remains.
func (v *saving) end() error {
	if v == nil {
		return nil
	}
	if v.kept != nil {
		v.kept.times = nil
	}
	err := v.out.Abort()
	if v.times != nil {
		err = errors.Join(err, v.times.Close())
	}
	return err
}

// rowsPerRank is the number of rows of events of each rank: their seq counts from 0.
func (s *runSimulation) rowsPerRank(ctx context.Context) (rows []int64, err error) {
	err = writer.ReadTable(ctx, s.dir, &schema.RanksTable, smallRows, func(b schema.Batch) error {
		rows = append(rows, b.(*schema.RankInfos).Events...)
		return nil
	})
	return rows, err
}

// done keeps the times of a row.
func (v *saving) done(rank int32, seq int64, start, end models.Picoseconds) {
	if v.err != nil {
		return
	}
	*v.endNs = max(*v.endNs, inNs(end))
	v.err = v.times.Put(rank, seq, inNs(start), inNs(end))
}

// write copies the tables, with the times that were found.
func (v *saving) write(ctx context.Context) error {
	change := map[*schema.Table]func(schema.Batch) error{
		&schema.EventsTable:   func(b schema.Batch) error { return v.events(b.(*schema.Events)) },
		&schema.MessagesTable: func(b schema.Batch) error { return v.messages(b.(*schema.Messages)) },
		&schema.RanksTable:    func(b schema.Batch) error { v.ranks(b.(*schema.RankInfos)); return nil },
	}
	for _, t := range schema.Tables() {
		if err := v.out.CopyTable(ctx, v.dir, t, copyRows, change[t]); err != nil {
			return err
		}
	}
	return nil
}

// events gives rows their times and what the machine's CPUs compute before them. Nobody polls in a simulation.
func (v *saving) events(b *schema.Events) error {
	for i, rank := range b.Rank {
		start, end, err := v.times.Get(rank, b.Seq[i])
		if err != nil {
			return err
		}
		b.StartNs[i], b.EndNs[i] = start, end
		b.Polls[i], b.PollNs[i] = schema.NullInt64, schema.NullInt64
		if ns := b.ComputeNs[i]; ns > 0 {
			b.ComputeNs[i] = v.computed(ns)
		}
	}
	return nil
}

// computed is a compute time on the machine; on one whose nodes differ, that of the run.
func (v *saving) computed(ns int64) int64 {
	switch ratio := v.machine.CPURatio; {
	case v.machine.Uneven != nil || ratio == 1:
		return ns
	case ratio == 0:
		return 0
	default:
		return int64(math.Round(float64(ns) / ratio))
	}
}

// messages gives messages the times of the rows that they belong to.
func (v *saving) messages(b *schema.Messages) error {
	for i := range b.Src {
		var err error
		if b.SendStartNs[i], b.SendEndNs[i], err = v.times.Get(b.Src[i], b.SendSeq[i]); err != nil {
			return err
		}
		if b.RecvPostNs[i], _, err = v.times.Get(b.Dst[i], b.RecvPostSeq[i]); err != nil {
			return err
		}
		if b.RecvDoneSeq[i] == schema.NullInt64 {
			continue
		}
		if b.RecvStartNs[i], b.RecvEndNs[i], err = v.times.Get(b.Dst[i], b.RecvDoneSeq[i]); err != nil {
			return err
		}
	}
	return nil
}

// ranks forgets what the clocks of the hosts were, and polls.
func (v *saving) ranks(b *schema.RankInfos) {
	for i := range b.Rank {
		b.Polls[i] = 0
		b.ClockOffsetInitNs[i], b.ClockErrorInitNs[i] = schema.NullInt64, schema.NullInt64
		b.ClockOffsetFinalNs[i], b.ClockErrorFinalNs[i] = schema.NullInt64, schema.NullInt64
	}
}

// simulated is the manifest of the simulated run.
func (v *saving) simulated() *schema.Manifest {
	m := *v.manifest
	m.TimeOrigin, m.TimeResolutionNs, m.EndNs = "simulated", 1, *v.endNs
	m.Counts.Polls, m.Counts.InProgress = 0, 0
	m.Counts.Choices, m.Counts.OutOfOrder, m.Counts.EarlyCollectives = 0, 0, 0
	m.Origin.Commq = version
	m.Origin.Simulation = v.origin()
	return &m
}

// origin says what was simulated.
func (v *saving) origin() *schema.Simulation {
	sum := sha256.Sum256([]byte(v.machine.Description))
	return &schema.Simulation{Machine: v.machine.Name, Description: v.machine.Description, Digest: hex.EncodeToString(sum[:]),
		Dialect: v.options.Dialect.String(), Run: v.name, RunDigest: v.manifest.Digest, Set: v.changed}
}
