package stored

import (
	"context"
	"slices"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/schema"
)

// CriticalPath simulates the run once more and finds its critical path on the machine.
func (s *Simulation) CriticalPath(ctx context.Context) (*critical.Path, error) {
	g := critical.NewForRun(s.Run, critical.Options{Last: true})
	columns := slices.Clone(critical.Columns)
	for _, c := range simulate.Columns {
		if !slices.Contains(columns, c) {
			columns = append(columns, c)
		}
	}
	rows, err := s.Run.EventEpochs(columns...)
	if err != nil {
		return nil, err
	}
	o := s.options()
	o.Done = func(rank int32, seq int64, start, end models.Picoseconds) {
		g.SetTime(rank, seq, simulate.Nanoseconds(start), simulate.Nanoseconds(end))
	}
	r, err := simulate.Simulate(s.Target.Machine, s.Program, o, func(add func(*schema.Events) error) error {
		return rows.Next(ctx, func(b *schema.Events) error {
			if err := g.AddEvents(b); err != nil {
				return err
			}
			return add(b)
		})
	})
	if err != nil {
		return nil, err
	}
	if err := g.ReadMessages(ctx, s.Run); err != nil {
		return nil, err
	}
	var finish []int64
	for _, t := range r.Ranks {
		finish = append(finish, simulate.Nanoseconds(t.Finish))
	}
	return g.Path(finish), nil
}
