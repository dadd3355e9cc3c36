package sign

import (
	"fmt"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// rowSource reads calls from the rows of a run.
type rowSource struct {
	run       *signature.Run
	exchanges exchanges // of the last ReadValues
}

// ReadFlows implements Source.
func (x *rowSource) ReadFlows(f *Flows) error {
	var e schema.Event
	var at places
	return x.run.Events(func(b *schema.Events) error {
		for i, r := range b.Rank {
			if r < 0 || r >= f.sig.Ranks {
				return fmt.Errorf("rank %d, seq %d: the run has %d ranks", r, b.Seq[i], f.sig.Ranks)
			}
			if b.Seq[i] != f.calls[r] {
				return fmt.Errorf("rank %d, seq %d: want seq %d; rows of the rank are missing", r, b.Seq[i], f.calls[r])
			}
			if err := checkCallID(b, i); err != nil {
				return err
			}
			b.Row(i, &e)
			symbol := f.Symbol(at.find(&e))
			if b.Instance[i] != schema.NullInt64 && b.Comm[i] != schema.NullInt32 &&
				schema.Class(b.Class[i]) == schema.ClassCollective {
				f.Meet(signature.Operation{Comm: b.Comm[i], Number: b.Instance[i]}, symbol)
			}
			f.Follow(r, symbol, 0, 1)
		}
		return nil
	})
}

// ReadValues implements Source.
func (x *rowSource) ReadValues(r *Recorder) error {
	x.exchanges = exchanges{}
	var e schema.Event
	return x.run.Events(func(b *schema.Events) error {
		for i := range b.Rank {
			b.Row(i, &e)
			if err := checkCallID(b, i); err != nil {
				return err
			}
			n := r.EventOf(&e)
			if n == nil || e.Rank < 0 || int(e.Rank) >= len(r.paths) {
				return fmt.Errorf("rank %d, seq %d: the events changed while they were read", e.Rank, e.Seq)
			}
			r.RecordRow(n, &e, 0)
			if x.run.Parts != nil {
				x.exchanges.add(n, &e)
			}
		}
		return nil
	})
}

func checkCallID(b *schema.Events, i int) error {
	if call := b.Call[i]; call <= 0 || int(call) >= len(schema.CallNames) {
		return fmt.Errorf("rank %d, seq %d: no MPI call has the number %d", b.Rank[i], b.Seq[i], call)
	}
	return nil
}
