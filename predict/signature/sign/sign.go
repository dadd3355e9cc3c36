// Package sign makes the signature of a run from its calls. It reads the calls of all ranks several times:
//
//   - Symbols numbers the calls that are one place in the program (symbols.go).
//   - Flows counts which call follows which on each rank (flows.go), and merges places in the program that ranks of a
//     collective operation use interchangeably.
//   - Package template finds the loops in the flows.
//   - Recorder goes through the calls again, follows each rank's path through the template and interns what the rank
//     did at every node (recorder.go, path.go, call.go; times.go for the compute times).
//   - refine.go looks at the recorded iterations for loops that the flows could not show. If it changes the template,
//     the values are recorded again.
//
// A Source gives the calls: the rows of a run (rows.go), or the signatures of several runs (package join). Package
// generate uses a Recorder to write down calls that no run made.
package sign

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/commq/commq/predict/internal/nulls"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Source gives the calls of all ranks, each rank's in order. It is read several times.
type Source interface {
	// ReadFlows calls f.Follow for each call, and f.Meet for each call of a collective operation.
	ReadFlows(f *Flows) error
	// ReadValues records each call.
	ReadValues(r *Recorder) error
}

// ErrBranches means that a recursive function, whose levels were to be iterations of a loop, calls itself more than
// once.
var ErrBranches = errors.New("a recursion branches")

// needs lists what a run must have to be signed.
var needs = run.Need{AllCalls: true, NoneDropped: true}

// FromRows makes the signature of a run, without phases and communications. It reads the events three times or more.
// It is an error if the run does not have the rows of all calls.
func FromRows(r *signature.Run) (*signature.Signature, error) {
	if err := needs.Check(r.Name, r.Manifest); err != nil {
		return nil, err
	}
	sig, rows := NewSignature(r), &rowSource{run: r}
	if _, err := Build(sig, rows); err != nil {
		return nil, err
	}
	return sig, markProducts(sig, r, &rows.exchanges)
}

// NewSignature returns a signature with the tables of a run: its communicators, datatypes and call paths, but no calls.
func NewSignature(r *signature.Run) *signature.Signature {
	m := r.Manifest
	sig := &signature.Signature{Version: signature.Version, Run: r.Name, Digest: m.Digest, Ranks: m.Ranks,
		ComputeClock: m.ComputeClock, TimeOrigin: m.TimeOrigin, Evidence: m.Evidence(), Command: commandOf(m),
		Oversubscribed: oversubscribed(m), Stack: m.Stack}
	for i := range r.Comms {
		c := &r.Comms[i]
		n := len(sig.Comms)
		if n == 0 || sig.Comms[n-1].ID != c.Comm {
			sig.Comms = append(sig.Comms, signature.Comm{ID: c.Comm, Parent: nulls.Pointer(c.Parent, schema.NullInt32),
				Kind: schema.CommKindNames[c.Kind], Name: nulls.Empty(c.Name), Dims: nulls.Empty(c.CartDims),
				Periods: nulls.Empty(c.CartPeriods)})
			n++
		}
		group, world := &sig.Comms[n-1].Members, c.WorldRank
		if c.Remote != 0 {
			group = &sig.Comms[n-1].Remote
		}
		if world == schema.NullInt32 {
			world = -1
		}
		*group = append(*group, world)
	}
	for _, d := range r.Datatypes {
		sig.Datatypes = append(sig.Datatypes, signature.Datatype{ID: d.ID, Name: nulls.Empty(d.Name), Bytes: d.Bytes})
	}
	for _, f := range r.Callsites {
		sig.Frames = append(sig.Frames, signature.Frame{ID: f.ID, Parent: nulls.Pointer(f.Parent, schema.NullInt32),
			Module: nulls.Empty(f.Module), BuildID: nulls.Empty(f.BuildID),
			Offset: nulls.Pointer(f.Offset, schema.NullInt64), Function: nulls.Empty(f.Function),
			File: nulls.Empty(f.File), Line: nulls.Pointer(f.Line, schema.NullInt32)})
	}
	return sig
}

// commandOf returns the command line without the folder of the program; nil if the manifest does not say.
func commandOf(m *schema.Manifest) []string {
	if len(m.Origin.Command) == 0 {
		return nil
	}
	return append([]string{filepath.Base(m.Origin.Command[0])}, m.Origin.Command[1:]...)
}

// oversubscribed returns true if the launcher was told that ranks may share CPUs; nil if the manifest does not say.
func oversubscribed(m *schema.Manifest) *bool {
	for _, word := range m.Origin.Launcher {
		if word = strings.ToLower(word); strings.Contains(word, "oversubscribe") &&
			!strings.Contains(word, "nooversubscribe") {
			yes := true
			return &yes
		}
	}
	return nil
}

// Build finds the template of the source's calls and records what ranks did at its nodes. It returns the symbols, for
// recording again. The error is ErrBranches if levels of a recursion cannot be iterations of a loop.
func Build(sig *signature.Signature, source Source) (*Symbols, error) {
	flows := newFlows(sig)
	if err := flows.read(source); err != nil {
		return nil, err
	}
	flows.mergeMeetingSymbols()
	symbols := flows.symbols
	sig.Symbols = symbols.list
	var branches bool
	if sig.Template, branches = template.Find(flows.byRank, flows.first, flows.recursive); branches {
		return nil, ErrBranches
	}
	for mayNest := true; ; {
		sig.Link()
		if err := Record(sig, symbols, nil, source.ReadValues); err != nil {
			return nil, err
		}
		if mayNest = mayNest && nestLeadingLoops(sig); !mayNest && !mergeAlternatingLoop(sig) {
			if recursionBranches(sig) {
				return nil, ErrBranches
			}
			return symbols, nil
		}
	}
}

// recursionBranches reports whether a loop over levels of a recursion is entered from, or left to, different levels.
func recursionBranches(sig *signature.Signature) bool {
	for i := range sig.Values {
		levels := sig.Values[i].RecursionLevels
		for _, l := range levels {
			if first := levels[0]; min(l[0], l[1]) != min(first[0], first[1]) {
				return true
			}
		}
	}
	return false
}
