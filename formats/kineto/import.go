package kineto

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Options control the import. The zero value is what commands use.
type Options struct {
	// Origin is what the caller knows about the origin of the run.
	Origin schema.Origin
	// Replace allows that a run has the name already; the new one takes its place.
	Replace bool
	// Progress, if not nil, is called after each file with the number of files read and of those to read.
	Progress func(read, all int64)
}

// format is the name of the format.
const format = "kineto"

// ImportPath imports a trace, or those in a folder, as the run of this name in a store. Without a name the run gets
// that of the file or folder. Each file is read once; memory is bounded by a file's communication and the times in
// which it computed, not by its size. An error names the file, the byte and what was found.
func ImportPath(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	ranks, err := readAll(ctx, path, o.Progress)
	if err != nil {
		return nil, err
	}
	if name == "" {
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		base := filepath.Base(full)
		for _, ending := range []string{".gz", ".json", ".trace", ".pt"} {
			base = strings.TrimSuffix(base, ending)
		}
		name = writer.NameFor(base)
	}
	out, err := writer.Create(store, name, writer.Options{Replace: o.Replace})
	if err != nil {
		return nil, err
	}
	return training.Import(ctx, ranks, out, training.Options{Format: format, Origin: o.Origin, Replace: o.Replace})
}

// readAll reads the traces of a job.
func readAll(ctx context.Context, path string, progress func(read, all int64)) (ranks []*training.Rank, err error) {
	f, err := find(path)
	if err != nil {
		return nil, err
	}
	least := int64(0)
	var bases []int64
	for i, file := range f.traces {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t, err := read(file)
		if err != nil {
			return nil, err
		}
		if !t.hasRank && len(f.traces) > 1 {
			t.Rank.Rank, _ = rankOf(filepath.Base(file))
		}
		t.operations()
		if dump := f.flights[t.Rank.Rank]; dump != "" {
			entries, err := readFlight(dump)
			if err != nil {
				return nil, err
			}
			t.name(entries)
		}
		t.onlyGroup()
		t.Close()
		ranks, bases = append(ranks, t.Rank), append(bases, t.baseNs)
		if i == 0 || t.baseNs < least {
			least = t.baseNs
		}
		if progress != nil {
			progress(int64(i+1), int64(len(f.traces)))
		}
	}
	for i, r := range ranks {
		r.Later(bases[i] - least)
	}
	return ranks, nil
}

// onlyGroup gives operations without a group the only one that the process is in.
func (t *trace) onlyGroup() {
	if !t.HasGroups || len(t.Groups) != 1 {
		return
	}
	for i := range t.Ops {
		if t.Ops[i].Group == training.Unknown {
			t.Ops[i].Group = 0
		}
	}
}
