// Package importing has what the imports of all formats share: their options, and a run that is complete or not there.
package importing

import (
	"context"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// MostRanks is the number of ranks that a job, or a group of it, may have by the files of a trace: more than any job
// has, and so few that a wrong number does not take all memory.
const MostRanks = 1 << 22

// Options control an import. The zero value works.
type Options struct {
	// Origin describes where the run came from.
	Origin schema.Origin
	// Replace allows that a run has the name already; the new one takes its place.
	Replace bool
	// Progress, if not nil, is called from time to time with how much was read and of how much, in files, bytes, events
	// or rows. Several goroutines may call it.
	Progress func(read, all int64)
}

// Run makes a run of this name in a store; fill writes its rows and returns its manifest. After an error there is no
// run. replace lets it take the place of another of that name.
func Run(ctx context.Context, store, name string, replace bool,
	fill func(out *writer.Run) (*schema.Manifest, error)) (*schema.Manifest, error) {
	out, err := writer.Create(store, name, writer.Options{Replace: replace})
	if err != nil {
		return nil, err
	}
	return Finish(ctx, out, fill)
}

// Finish makes a run of out: fill writes its rows and returns its manifest. After an error out is aborted.
func Finish(ctx context.Context, out *writer.Run, fill func(out *writer.Run) (*schema.Manifest, error)) (*schema.Manifest,
	error) {
	m, err := fill(out)
	if err == nil {
		err = out.Commit(ctx, m)
	}
	if err != nil {
		_ = out.Abort() // the first error counts
		return nil, err
	}
	return m, nil
}
