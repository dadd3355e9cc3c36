// Package stored connects replay to runs on disk: it opens a run to be played, checks that the replay ends, compares
// what was played with the run, and writes runs that can be given away for a replay elsewhere.
package stored

import (
	"context"
	"fmt"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	simulated "github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/replay"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Need lists what a run must have to be played.
var Need = run.Need{Command: "replay", AllCalls: true, NoneDropped: true, Playable: true}

// Open reads the run in folder dir and returns it with the source of its schedules.
func Open(ctx context.Context, dir string) (*run.Run, *replay.Source, error) {
	r, err := run.Open(ctx, dir, Need)
	if err != nil {
		return nil, nil, err
	}
	s := &replay.Source{Datatypes: r.Datatypes,
		Events: r.Events(ctx, replay.Columns...), Messages: r.Messages(ctx, replay.MessageColumns...)}
	if s.Ranks, err = run.Rows[schema.RankInfo](ctx, r, &schema.RanksTable); err != nil {
		return nil, nil, err
	}
	if s.Comms, err = run.Rows[schema.Comm](ctx, r, &schema.CommsTable); err != nil {
		return nil, nil, err
	}
	s.Parts, err = run.Rows[schema.Part](ctx, r, &schema.PartsTable)
	return r, s, err
}

// Options say how a run is played.
type Options struct {
	replay.Options
	// EagerThresholdBytes is the size from which on CheckEnds lets sends wait for their receivers; less than 0:
	// EagerThresholdBytes of the run.
	EagerThresholdBytes int64
}

// Schedule makes the schedule of a run that Open opened, and checks that its ranks would come to an end.
func Schedule(ctx context.Context, r *run.Run, source *replay.Source, o Options) (*replay.Schedule, error) {
	s, err := replay.New(source, &o.Options)
	if err != nil {
		return nil, err
	}
	machine, err := models.Load("flat")
	if err != nil {
		return nil, err
	}
	if o.EagerThresholdBytes < 0 {
		o.EagerThresholdBytes = EagerThresholdBytes(r.Manifest)
	}
	if err := CheckEnds(ctx, r, machine, o.EagerThresholdBytes); err != nil {
		return nil, fmt.Errorf("it would not come to an end: %w", err)
	}
	return s, nil
}

// SetOrigin makes the origin of a captured player that of a replay of r. compute is what its ranks did while the
// program computed, skip has the classes of calls that were left out.
func SetOrigin(o *schema.Origin, r *run.Run, compute string, skip []string) {
	o.Command = nil
	o.Replay = &schema.Replay{Run: r.Name, RunDigest: r.Manifest.Digest, Compute: compute, Skip: skip,
		Of: r.Manifest.Evidence()}
}

// NewPhasePrediction begins the prediction of a run's time from its phases, each played so many times.
func NewPhasePrediction(r *run.Run, repeat int) *replay.PhasePrediction {
	p := &replay.PhasePrediction{Run: r.Name, Ranks: r.Manifest.Ranks, Repeat: repeat}
	if r.Manifest.TimeOrigin == "measured" {
		p.RunNs = &r.Manifest.EndNs
	}
	return p
}

// leastEagerBytes is the size from which on CheckEnds lets sends wait in a run that did not happen like this. MPI
// libraries in common use do not let smaller ones wait.
const leastEagerBytes = 4096

// EagerThresholdBytes returns the size from which on CheckEnds lets sends of a run wait for their receivers: none in
// a run that a program made, since that ended.
func EagerThresholdBytes(m *schema.Manifest) int64 {
	if m.TimeOrigin == "measured" || m.TimeOrigin == "virtual" {
		return models.NoThreshold
	}
	return leastEagerBytes
}

// CheckEnds simulates a run on a machine to check that its ranks do not wait for each other forever. Sends of
// eagerBytes and more wait for their receivers.
func CheckEnds(ctx context.Context, r *run.Run, machine *models.Machine, eagerBytes int64) error {
	ideal := machine.Ideal()
	ideal.EagerThresholdBytes = eagerBytes
	rows, err := r.EventEpochs(simulate.Columns...)
	if err != nil {
		return err
	}
	program, err := simulated.ProgramOf(ctx, r)
	if err != nil {
		return err
	}
	_, err = simulate.Simulate(ideal, program, &simulate.Options{}, func(add func(*schema.Events) error) error {
		return rows.Next(ctx, add)
	})
	if err != nil && eagerBytes != models.NoThreshold {
		err = fmt.Errorf("%w\nsends of %d bytes and more are taken to wait for their receivers; if those of your MPI "+
			"library do not, tell so with --eager-threshold-bytes", err, eagerBytes)
	}
	return err
}

// Compare compares the communication of a run with that of a replay of it.
func Compare(ctx context.Context, original, played *run.Run) (*replay.Comparison, error) {
	var sides [2]*replay.Side
	for i, r := range []*run.Run{original, played} {
		comms, err := run.Rows[schema.Comm](ctx, r, &schema.CommsTable)
		if err != nil {
			return nil, err
		}
		sides[i] = &replay.Side{Name: r.Name, Comms: comms, Events: r.Events(ctx, replay.Columns...),
			Messages: r.Messages(ctx, replay.MessageColumns...)}
	}
	c, err := replay.Compare(sides[0], sides[1])
	if err != nil {
		return nil, fmt.Errorf("replay %s: compare with %s: %w", original.Name, played.Name, err)
	}
	return c, nil
}
