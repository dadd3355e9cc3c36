package training

import (
	"context"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Load reads the traces at a path, a file or a folder, as ranks that are closed, and says how to import them: its
// Origin is that of the import.
type Load func(ctx context.Context, path string, progress func(read, all int64)) ([]*Rank, Options, error)

// ImportPath imports what load reads at a path as the run of this name in a store. Without a name the run gets that of
// the file or folder, without these endings. After an error there is no run.
func ImportPath(ctx context.Context, path, store, name string, o importing.Options, endings []string, load Load) (*schema.Manifest, error) {
	ranks, how, err := load(ctx, path, o.Progress)
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name, err = writer.NameOf(path, endings...); err != nil {
			return nil, err
		}
	}
	how.Origin = o.Origin
	return importing.Run(ctx, store, name, o.Replace, func(out *writer.Run) (*schema.Manifest, error) {
		j, err := newJob(ranks, how)
		if err != nil {
			return nil, err
		}
		return j.importTo(ctx, out)
	})
}
