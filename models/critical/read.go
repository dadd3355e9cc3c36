package critical

import (
	"context"
	"fmt"
	"slices"

	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Need lists the requirements on a run with times.
var Need = run.Need{Command: "critical-path", AllCalls: true, Times: true,
	TimesAdvice: "commq simulate --critical-path gives it the times of a machine"}

// FromRun finds the critical path of a run with times. Where times are not measured, all ranks wait for the last one in
// a collective whatever o.Last says, and o.Eager and o.SendWaits follow from the origin of the times.
func FromRun(ctx context.Context, r *run.Run, o Options) (*Path, error) {
	g, err := Read(ctx, r, o, nil)
	if err != nil {
		return nil, fmt.Errorf("critical-path of %s: %w", r.Name, err)
	}
	return g.Path(nil), nil
}

// Read makes the graph of a run with times; the options are changed as FromRun says. also is called with all rows of
// events, which have the columns Columns and more; nil means no callback.
func Read(ctx context.Context, r *run.Run, o Options, also func(*schema.Events), more ...string) (*Graph, error) {
	g, err := NewForRun(ctx, r, optionsFor(r, o))
	if err != nil {
		return nil, err
	}
	err = r.Events(ctx, eventColumns(more)...)(func(b *schema.Events) error {
		if also != nil {
			also(b)
		}
		return g.AddEvents(b)
	})
	if err != nil {
		return nil, err
	}
	return g, g.ReadMessages(ctx, r)
}

func optionsFor(r *run.Run, o Options) Options {
	origin := r.Manifest.TimeOrigin
	o.Last, o.Eager = o.Last || origin != "measured", origin == "virtual"
	if sim := r.Manifest.Origin.Simulation; origin == "simulated" && sim != nil {
		if target, err := simulate.TargetOf(sim); err == nil { // else the machine is not known, and any send may wait
			o.SendWaits = target.SendWaits
		}
	}
	return o
}

func eventColumns(more []string) []string { return append(slices.Clone(Columns), more...) }

// NewForRun returns a graph with the communicators of a run and no rows yet.
func NewForRun(ctx context.Context, r *run.Run, o Options) (*Graph, error) {
	ungrouped, err := r.Ungrouped(ctx)
	if err != nil {
		return nil, err
	}
	g := New(int(r.Manifest.Ranks), o)
	g.windows.ungrouped = ungrouped
	for i := range r.Comms {
		c := &r.Comms[i]
		for _, world := range c.Inside() {
			g.AddMember(c.ID, world)
		}
		for k, world := range c.Members {
			if c.Inter && int32(k) >= c.FirstGroup && world != run.Outside {
				g.AddToSecondGroup(c.ID, world)
			}
		}
	}
	neighbours := run.Sources(r.Comms)
	for i := range r.Comms {
		for k, sources := range neighbours[r.Comms[i].ID] {
			g.AddSources(r.Comms[i].ID, r.Comms[i].Members[k], sources)
		}
	}
	return g, nil
}

// ReadMessages adds all messages of the run.
func (g *Graph) ReadMessages(ctx context.Context, r *run.Run) error {
	return r.Messages(ctx, MessageColumns...)(func(b *schema.Messages) error { g.AddMessages(b); return nil })
}
