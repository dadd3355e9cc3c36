package diagnose

import (
	"context"

	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/schema"
)

// leaveOutStartup explains a run without MPI_Init and MPI_Finalize.
var leaveOutStartup = critical.Options{LeaveOutStartup: true}

// summed has the sums over the rows of a run, by call site and rank, that a diagnosis needs. They are kept, so that the
// rows are read once. New fields are kept too, unless their tag says otherwise.
type summed struct {
	computed *computing
	waits    *critical.Explained // by the times of the run; nil if only computing was asked for
}

// The names under which sums are kept, with and without waits.
const (
	keptAll       = "waits"
	keptComputing = "computing"
)

// rows returns the sums over the rows of the run, from an earlier diagnosis if it kept them. computing means that waits
// are not needed.
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
