package stored

import (
	"context"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/schema"
)

// CriticalPath simulates the run once more and finds its critical path on the machine.
func (s *Simulation) CriticalPath(ctx context.Context) (*critical.Path, error) {
	g, r, err := s.Graph(ctx, critical.Options{})
	if err != nil {
		return nil, err
	}
	return g.Path(Finish(r)), nil
}

// Graph simulates the run and makes the graph of its rows with the simulated times, in which all ranks wait for the
// last one in a collective and only sends wait that wait on the machine, whatever o says.
func (s *Simulation) Graph(ctx context.Context, o critical.Options) (*critical.Graph, *simulate.Result, error) {
	o.Last, o.SendWaits = true, s.Target.SendWaits
	g, err := critical.NewForRun(ctx, s.Run, o)
	if err != nil {
		return nil, nil, err
	}
	rows, err := s.graphRows(ctx)
	if err != nil {
		return nil, nil, err
	}
	how := s.options()
	how.Done = func(rank int32, seq int64, start, end models.Picoseconds) {
		g.SetTime(rank, seq, simulate.Nanoseconds(start), simulate.Nanoseconds(end))
	}
	r, err := simulate.Simulate(s.Target.Machine, s.Program, how, func(add func(*schema.Events) error) error {
		return rows(func(b *schema.Events) error {
			if err := g.AddEvents(b); err != nil {
				return err
			}
			if s.Change != nil {
				s.Change(b)
			}
			return add(b)
		})
	})
	if err != nil {
		return nil, nil, err
	}
	return g, r, g.ReadMessages(ctx, s.Run)
}

// graphRows passes the rows of the run to a simulation and a graph.
func (s *Simulation) graphRows(ctx context.Context) (source, error) {
	if s.Rows != nil {
		return s.Rows.Source(ctx), nil
	}
	rows, err := s.Run.EventEpochs(rowColumns...)
	return func(add func(*schema.Events) error) error { return rows.Next(ctx, add) }, err
}

// Finish returns when each rank ends, in ns.
func Finish(r *simulate.Result) (finish []int64) {
	for _, t := range r.Ranks {
		finish = append(finish, simulate.Nanoseconds(t.Finish))
	}
	return finish
}
