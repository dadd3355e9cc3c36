package critical

import (
	"context"
	"fmt"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Need says what a run with times must have.
var Need = run.Need{Command: "critical-path", AllCalls: true, Times: true,
	TimesAdvice: "commq simulate --critical-path gives it the times of a machine"}

// FromRun finds the critical path of a run with times. Where times are not measured, all ranks wait for the last one in
// a collective whatever o.Last says, and o.Eager follows from the origin of the times.
func FromRun(ctx context.Context, r *run.Run, o Options) (*Path, error) {
	origin := r.Manifest.TimeOrigin
	o.Last, o.Eager = o.Last || origin != "measured", origin == "virtual"
	g := NewForRun(r, o)
	if err := r.Events(ctx, Columns...)(g.AddEvents); err != nil {
		return nil, fmt.Errorf("critical-path of %s: %w", r.Name, err)
	}
	if err := g.ReadMessages(ctx, r); err != nil {
		return nil, err
	}
	return g.Path(nil), nil
}

// NewForRun returns a graph with the communicators of a run and no rows yet.
func NewForRun(r *run.Run, o Options) *Graph {
	g := New(int(r.Manifest.Ranks), o)
	for i := range r.Comms {
		for _, world := range r.Comms[i].Inside() {
			g.AddMember(r.Comms[i].ID, world)
		}
	}
	return g
}

// ReadMessages adds all messages of the run.
func (g *Graph) ReadMessages(ctx context.Context, r *run.Run) error {
	return r.Messages(ctx, MessageColumns...)(func(b *schema.Messages) error { g.AddMessages(b); return nil })
}
