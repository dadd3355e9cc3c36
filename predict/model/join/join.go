// Package join puts the signatures of a program's runs at several numbers of ranks side by side: as if they were one
// run with the ranks of all. Calls of different runs are the same event if their call paths are the same.
//
//   - Pool merges captures of the same run first: their compute times are replaced by medians (pool.go).
//   - tables.go numbers the communicators, datatypes and call sites of all runs.
//   - source.go gives the calls of all runs, with the joint numbers, to package sign, which makes the joint template.
//   - repeats.go then nests loops that do the same several times over in a loop of their own.
//   - waves.go flattens nests of loops of which ranks count the iterations differently, as in sweeps over a grid.
//   - merged.go ends executions of an inner loop where other ranks show that they end.
//   - even.go flattens nests of loops that are one loop, whose iterations end in one of two ways. inner.go collects the
//     iterations of inner loops for both.
package join

import (
	"errors"
	"fmt"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/sign"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/predict/slots"
	"github.com/commq/commq/schema"
)

// Training is a set of runs of a program at different numbers of ranks.
type Training struct {
	// Sig is the joint signature. Its ranks are those of all runs, one run after the other.
	Sig *signature.Signature
	// Runs are the runs' own signatures, by number of ranks.
	Runs []*signature.Signature
	// First is, by run, the joint rank of its rank 0.
	First []int32
	// LevelsAsIterations reports whether the levels of a recursion are iterations of loops.
	LevelsAsIterations bool
	// Reshaped are the loops that splitMerged and flattenEven made other ones of than the calls of a rank alone show.
	Reshaped map[*template.Node]bool

	comms []*signature.Comm // of the runs, by joint id
}

// Last returns the run with most ranks.
func (t *Training) Last() *signature.Signature { return t.Runs[len(t.Runs)-1] }

// Comm returns a run's own communicator for a joint id.
func (t *Training) Comm(id signature.Int) *signature.Comm { return t.comms[id] }

// SlotRuns returns the joint ranks of each run.
func (t *Training) SlotRuns() (runs []slots.Run) {
	for i, s := range t.Runs {
		runs = append(runs, slots.Run{First: t.First[i], Ranks: s.Ranks})
	}
	return runs
}

// Runs joins runs. It is an error if there are fewer than two, or two have the same number of ranks.
func Runs(runs []*signature.Signature) (*Training, error) {
	t, _, err := joinRuns(runs)
	return t, err
}

// joinRuns also returns the joint run, whose rows are those of all runs. Levels of a recursion are iterations of loops
// unless the recursion branches; then each level has its own events.
func joinRuns(runs []*signature.Signature) (*Training, *signature.Run, error) {
	t, all, err := joinWith(runs, true)
	if errors.Is(err, sign.ErrBranches) {
		return joinWith(runs, false)
	}
	return t, all, err
}

func joinWith(runs []*signature.Signature, levelsAsIterations bool) (*Training, *signature.Run, error) {
	t := &Training{Runs: slices.Clone(runs), LevelsAsIterations: levelsAsIterations, Reshaped: map[*template.Node]bool{}}
	slices.SortFunc(t.Runs, func(a, b *signature.Signature) int { return int(a.Ranks) - int(b.Ranks) })
	for i := 1; i < len(t.Runs); i++ {
		if t.Runs[i].Ranks == t.Runs[i-1].Ranks {
			return nil, nil, fmt.Errorf("%q and %q both have %d ranks; give one of them", t.Runs[i-1].Run,
				t.Runs[i].Run, t.Runs[i].Ranks)
		}
	}
	if len(t.Runs) < 2 {
		return nil, nil, fmt.Errorf(
			"%d runs: predicting other numbers of ranks needs at least two runs, and four to be "+
				"of much use", len(t.Runs))
	}
	all := &signature.Run{Name: "all", Manifest: &schema.Manifest{Record: "all"}}
	tables := &tables{sites: map[string]int32{}, datatypes: map[signature.Datatype]int32{}}
	for _, s := range t.Runs {
		first := all.Manifest.Ranks
		t.First = append(t.First, first)
		all.Manifest.Ranks += s.Ranks
		t.comms = append(t.comms, tables.add(s, first, levelsAsIterations, all)...)
	}
	source := newSource(t, tables)
	all.Events = source.rows
	t.Sig = sign.NewSignature(all)
	symbols, err := sign.Build(t.Sig, source)
	if err != nil {
		return t, all, err
	}
	// Repetitions may end in the middle of others, so the values are recorded call by call.
	var cuts [][]sign.Cut
	for _, refine := range []func(*Training) [][]sign.Cut{nestRepeats, flattenWaves, splitMerged, flattenEven} {
		added := refine(t)
		if added == nil {
			continue
		}
		if cuts == nil {
			cuts = added
		} else {
			for r := range cuts {
				cuts[r] = append(cuts[r], added[r]...)
			}
			sortCuts(cuts)
		}
		t.Sig.Link()
		if err := sign.Record(t.Sig, symbols, cuts, source.recordRows); err != nil {
			return t, all, err
		}
	}
	return t, all, nil
}
