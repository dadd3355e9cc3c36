package timed

import (
	"context"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Store makes a run of this name in a store; fill writes its rows and returns its manifest. After an error there is no
// run. replace lets it take the place of another of that name.
func Store(ctx context.Context, store, name string, replace bool,
	fill func(out *writer.Run) (*schema.Manifest, error)) (*schema.Manifest, error) {
	out, err := writer.Create(store, name, writer.Options{Replace: replace})
	if err != nil {
		return nil, err
	}
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
