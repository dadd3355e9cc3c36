// Package extrapolated makes the run that a model predicts at another number of ranks, and writes it.
package extrapolated

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/times"
	"github.com/commq/commq/predict/training"
	"github.com/commq/commq/run"
	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
)

// Conditions say when a model may be extrapolated.
type Conditions struct {
	// Explained is the least fraction of the messages of the largest training run whose destinations have a law.
	Explained float64
	// Accept are warnings that do not refuse the answer: some of Acceptable.
	Accept []string
}

// Acceptable are the warnings that refuse an extrapolation unless they are accepted. report.WallClock refuses only
// compute times.
var Acceptable = []string{report.LayoutSwitch, report.Undecided, report.WallClock}

// Extrapolate makes the run at a number of ranks. The extrapolation is never nil: after an error it has everything
// that is known (report.Partial). Accepting report.WallClock changes the model's laws of times. progress is called
// with the number of ranks that are done.
func Extrapolate(ctx context.Context, m *model.Model, ranks int32, c Conditions,
	progress func(done, all int32)) (*generate.Prediction, error) {
	if slices.Contains(c.Accept, report.WallClock) {
		m.Times().AcceptDoubt()
	}
	o := generate.Options{TakeSimplest: slices.Contains(c.Accept, report.Undecided), Progress: progress}
	var refused error
	if w, event, switches := report.SwitchesLayout(m, ranks); switches && !slices.Contains(c.Accept, w.Name) {
		refused = fmt.Errorf("at %d ranks: %s: %s; --accept %s assumes that the layout stays as it is", ranks, w.Name,
			w.Text, w.Name)
		o.Doubted = []generate.Doubt{{Event: event, Why: w.Name + ": " + w.Text}}
	}
	if share := 1 - float64(m.Unexplained)/float64(max(m.Traffic, 1)); share < c.Explained {
		refused = fmt.Errorf("laws explain only %.4g %% of the messages of the largest run, less than --explained %v",
			100*share, c.Explained)
	}
	x, err := training.Await(ctx, func() (*generate.Prediction, error) { return generate.Predict(ctx, m, ranks, o) })
	if x == nil {
		x = &generate.Prediction{}
	}
	if err == nil || refused != nil && ctx.Err() == nil {
		err = refused
	}
	return x, err
}

// Target says where an extrapolated run is written.
type Target struct {
	Store, Name string
	// Replace allows that a run has the name already; the new one takes its place.
	Replace bool
	// Commq is the version of commq for the run's origin.
	Commq string
	// Progress begins to show a stage of the work, in calls; finish ends it.
	Progress func(stage string) (update func(done, total int64), finish func())
}

// unmatchedListed limits the messages without a partner that an error names.
const unmatchedListed = 3

// CheckRanks returns an error if a run of so many ranks cannot be saved.
func CheckRanks(ranks int32) error {
	if ranks > schema.MaxRanks {
		return fmt.Errorf("%d ranks: a run has at most %d", ranks, schema.MaxRanks)
	}
	return nil
}

// Save writes the extrapolated run and returns its manifest. It is an error when a send has no receive or a receive no
// send.
func Save(ctx context.Context, m *model.Model, x *generate.Prediction, to Target) (*schema.Manifest, error) {
	if n := len(x.Unmatched); n > 0 {
		return nil, fmt.Errorf("write run %q: messages without a partner at %d places: %s", to.Name, n,
			strings.Join(x.Unmatched[:min(n, unmatchedListed)], "; "))
	}
	var sizes map[receive]int64
	if x.Inexact > 0 {
		update, finish := to.Progress("pairing " + to.Name)
		var err error
		sizes, err = receivedBytes(ctx, x.Signature, update)
		finish()
		if err != nil {
			return nil, fmt.Errorf("write run %q: %w", to.Name, err)
		}
	}
	stream, err := openStream(ctx, x.Signature)
	if err != nil {
		return nil, fmt.Errorf("write run %q: %w", to.Name, err)
	}
	update, finish := to.Progress("writing " + to.Name)
	defer finish()
	return run.WriteUntimed(ctx, &run.Untimed{Store: to.Store, Name: to.Name, Replace: to.Replace, Manifest: newManifest(m, x, to.Commq),
		Comms: x.Run.Comms, Callsites: x.Run.Callsites, Datatypes: x.Run.Datatypes,
		Epochs: stream.Epochs, Calls: stream.Calls, Callsite: stream.Callsite, Progress: update,
		Next: func(rank int32, events *schema.Events, parts *schema.Parts) error {
			first := events.Len()
			stream.Parts = parts
			if err := stream.Next(rank, events); err != nil {
				return err
			}
			correctReceives(events, first, sizes)
			return nil
		}})
}

// newManifest returns the manifest of the run, without counts.
func newManifest(m *model.Model, x *generate.Prediction, commq string) schema.Manifest {
	out := *x.Run.Manifest
	p := &schema.Prediction{Numbers: x.Numbers, Inexact: x.Inexact}
	for _, s := range m.Runs() {
		for _, c := range s.Captures[min(1, len(s.Captures)):] { // the first is the run itself
			p.Runs = append(p.Runs, schema.PredictedFrom{Run: c.Run, Digest: c.Digest, Ranks: s.Ranks})
		}
		p.Runs = append(p.Runs, schema.PredictedFrom{Run: s.Run, Digest: s.Digest, Ranks: s.Ranks})
	}
	out.Origin = schema.Origin{Commq: commq, Prediction: p}
	out.Warnings = x.Warnings
	if text, undecided := x.ConflictWarning(); undecided {
		out.Warnings = append(slices.Clone(x.Warnings), report.Undecided+": "+text)
	}
	return out
}

// openStream begins to generate the rows of a signature.
func openStream(ctx context.Context, s *signature.Signature) (*signature.Stream, error) {
	return training.Await(ctx, func() (*signature.Stream, error) {
		return s.Stream(max(times.EpochRows/int64(s.Ranks), 1)), nil
	})
}

// receive names the row of events that posts a receive.
type receive struct {
	rank int32
	seq  int64
}

// receivedBytes returns the sizes of receives that differ from what is sent to them. A message has the size of the
// send; where a size is an estimate, the law of the receive need not agree.
func receivedBytes(ctx context.Context, s *signature.Signature, update func(done, total int64)) (map[receive]int64,
	error) {
	stream, err := openStream(ctx, s)
	if err != nil {
		return nil, err
	}
	sizes := map[receive]int64{}
	var matcher match.Rows
	events := &schema.Events{}
	done := int64(0)
	for range stream.Epochs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		events.Resize(0)
		for rank := range s.Ranks {
			if err := stream.Next(rank, events); err != nil {
				return nil, err
			}
		}
		matcher.Epoch([]*schema.Events{events}, func(s *match.Send, r *match.Recv) {
			if r.Bytes != s.Bytes {
				sizes[receive{r.Dst, r.PostSeq}] = s.Bytes
			}
		})
		done += int64(events.Len())
		update(done, s.Calls)
	}
	return sizes, nil
}

// correctReceives sets the sizes of receives in rows from first on.
func correctReceives(b *schema.Events, first int, sizes map[receive]int64) {
	if len(sizes) == 0 {
		return
	}
	for i := first; i < b.Len(); i++ {
		if bytes, differs := sizes[receive{b.Rank[i], b.Seq[i]}]; differs {
			b.RecvBytes[i] = bytes
		}
	}
}
