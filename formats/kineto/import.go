package kineto

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// Options control the import.
type Options = importing.Options

// format is the name of the format.
const format = "kineto"

// ImportPath imports a trace, or those in a folder, as the run of this name in a store. Without a name the run gets
// that of the file or folder. Each file is read once; memory is bounded by a file's communication and the times in
// which it computed, not by its size. An error names the file, the byte and what was found.
func ImportPath(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	return training.ImportPath(ctx, path, store, name, o, []string{".gz", ".json", ".trace", ".pt"}, load)
}

// load reads the traces of a job.
func load(ctx context.Context, path string, progress func(read, all int64)) (ranks []*training.Rank,
	how training.Options, err error) {
	how.Format = format
	f, err := find(path)
	if err != nil {
		return nil, how, err
	}
	x, err := readExecutions(f)
	if err != nil {
		return nil, how, err
	}
	least := int64(0)
	var bases []int64
	for i, file := range f.traces {
		if err := ctx.Err(); err != nil {
			return nil, how, err
		}
		t, err := read(file)
		if err != nil {
			return nil, how, err
		}
		if !t.hasRank && len(f.traces) > 1 {
			t.Rank.Rank, _ = rankOf(filepath.Base(file))
		}
		if t.join(x); t.err != nil { // with the groups of the execution trace
			return nil, how, fmt.Errorf("%s: %w", file, t.err)
		}
		t.operations()
		x.count(t)
		if dump := f.flights[t.Rank.Rank]; dump != "" {
			entries, err := readFlight(dump)
			if err != nil {
				return nil, how, err
			}
			t.name(entries)
		}
		t.OnlyGroup()
		t.Close()
		ranks, bases = append(ranks, t.Rank), append(bases, t.baseNs)
		if i == 0 || t.baseNs < least {
			least = t.baseNs
		}
		if progress != nil {
			progress(int64(i+1), int64(len(f.traces)))
		}
	}
	how.Warnings = x.warnings()
	for i, r := range ranks {
		r.Later(bases[i] - least)
	}
	return ranks, how, nil
}
