package training

import (
	"context"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Importing controls how the traces of a job are imported. Commands use the zero value.
type Importing struct {
	// Origin describes where the run came from.
	Origin schema.Origin
	// Replace allows that a run has the name already; the new one takes its place.
	Replace bool
	// Progress, if not nil, is called after each file with the number of files read and of those to read.
	Progress func(read, all int64)
}

// Load reads the traces at a path, a file or a folder, as ranks that are closed, and says how to import them: Origin
// and Replace are those of Importing.
type Load func(ctx context.Context, path string, progress func(read, all int64)) ([]*Rank, Options, error)

// ImportPath imports what load reads at a path as the run of this name in a store. Without a name the run gets that of
// the file or folder, without these endings. After an error there is no run.
func ImportPath(ctx context.Context, path, store, name string, i Importing, endings []string, load Load) (*schema.Manifest, error) {
	ranks, how, err := load(ctx, path, i.Progress)
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name, err = writer.NameOf(path, endings...); err != nil {
			return nil, err
		}
	}
	out, err := writer.Create(store, name, writer.Options{Replace: i.Replace})
	if err != nil {
		return nil, err
	}
	how.Origin, how.Replace = i.Origin, i.Replace
	return Import(ctx, ranks, out, how)
}
