package diagnose

import (
	"context"

	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/schema"
)

// leaveOutStartup says which part of a run is explained.
var leaveOutStartup = critical.Options{LeaveOutStartup: true}

// summed is what a diagnosis needs of the rows of a run: sums by call site and rank. They are kept, so that the rows
// are read once. A new field is kept too, unless it has a tag.
type summed struct {
	computed *computing
	waits    *critical.Explained // by the times of the run; nil if only computing was asked for
}

// The names under which both kinds of sums are kept.
const (
	keptAll       = "waits"
	keptComputing = "computing"
)

// rows sums the rows of the run, unless that was done before. computing means without waits.
func (w *whatIf) rows(ctx context.Context, computing bool) (*summed, error) {
	var s summed
	if kept.Load(w.kept, keptAll, &s) || computing && kept.Load(w.kept, keptComputing, &s) {
		return &s, nil
	}
	r := w.simulation.Run
	w.step("explain waits")
	s.computed = newComputing(r)
	name, err := keptAll, error(nil)
	if computing {
		name = keptComputing
		err = r.Events(ctx, append([]string{"rank", "thread", "call", "callsite", "start_ns", "end_ns"},
			s.computed.columns()...)...)(
			func(b *schema.Events) error { s.computed.add(b); return nil })
	} else {
		s.waits, err = critical.Explain(ctx, r, leaveOutStartup, w.memory, s.computed.add, s.computed.columns()...)
	}
	if err != nil {
		return nil, err
	}
	kept.Save(w.kept, name, &s)
	return &s, nil
}
