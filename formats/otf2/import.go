package otf2

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Options control the import. Progress counts events, each twice: the trace is read two times.
type Options = timed.Options

// ImportFile imports the archive with that anchor file (.otf2), or the one in that folder, as the run of this name in a
// store. Without a name the run gets that of the folder, or of the file if that is not the traces.otf2 of Score-P. An
// error names the file, the byte and what was found.
func ImportFile(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		anchor, err := anchorIn(path)
		if err == nil && name == "" {
			name, err = writer.NameOf(path, ending)
		}
		if err != nil {
			return nil, err
		}
		path = anchor
	}
	m, err := importFile(ctx, path, store, name, o)
	if errors.Is(err, timed.ErrLearn) {
		o.Learn = true
		m, err = importFile(ctx, path, store, name, o)
	}
	return m, err
}

func importFile(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	a, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	j, err := newJob(a, o)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = writer.NameFor(baseName(path))
	}
	return importing.Run(ctx, store, name, o.Replace, func(out *writer.Run) (*schema.Manifest, error) {
		return j.importTo(ctx, out)
	})
}

// baseName returns a name for the run of an anchor file.
func baseName(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if full, err := filepath.Abs(path); err == nil && (base == "traces" || base == "eztrace_log") {
		return strings.TrimSuffix(filepath.Base(filepath.Dir(full)), ending)
	}
	return base
}

// job is the state of an import.
type job struct {
	*archive
	*layout
	*timed.Job
	o Options
	// ours tells that commq wrote the archive, scoreP that Score-P did.
	ours, scoreP bool

	locals [][]*local // by rank and thread
	sites  [][]*sites
	table  siteTable
	second []*reader // those of the second pass
	tally  tally
}

// newJob reads the definitions.
func newJob(a *archive, o Options) (*job, error) {
	data, err := a.definitionFile(a.defs)
	if err != nil {
		return nil, err
	}
	d, err := parseDefinitions(data, a.defBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.defs, err)
	}
	l, err := newLayout(d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.defs, err)
	}
	n := len(l.threads)
	j := &job{archive: a, layout: l, o: o, ours: strings.HasPrefix(a.creator, creator),
		scoreP: strings.HasPrefix(a.creator, scoreP), locals: make([][]*local, n),
		sites: make([][]*sites, n), table: siteTable{byKey: map[siteKey]int32{}}, tally: tally{mute: map[string]int64{}}}
	events := int64(0)
	for rank, threads := range l.threads {
		for _, t := range threads {
			events += int64(t.events)
			x, err := j.localOf(t.id)
			if err != nil {
				return nil, err
			}
			j.locals[rank], j.sites[rank] = append(j.locals[rank], x), append(j.sites[rank], newSites(j))
		}
	}
	j.Job = timed.New(timed.Trace{Comms: l.comms, Open: j.open, Skim: j.skim, Learned: j.learned, Size: events,
		Hosts: l.names, HostOf: l.hosts}, o)
	return j, nil
}

// localOf reads the definitions of a location; a location may have none.
func (j *job) localOf(id uint64) (*local, error) {
	path := filepath.Join(j.dir, fmt.Sprint(id, ".def"))
	data, err := j.definitionFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &local{}, nil
	}
	if err != nil {
		return nil, err
	}
	x, err := parseLocal(data, j.defBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// importTo reads the events and writes the run.
func (j *job) importTo(ctx context.Context, out timed.Sink) (*schema.Manifest, error) {
	if err := j.Import(ctx, out); err != nil {
		return nil, err
	}
	for _, r := range j.second {
		j.tally.add(&r.counts)
	}
	if err := out.Write(0, &j.table.rows); err != nil {
		return nil, err
	}
	return j.manifest(), nil
}

// open opens the locations of a rank.
func (j *job) open(rank int32, learning bool) (readers []timed.Reader, err error) {
	all, err := j.readers(rank)
	if err != nil {
		return nil, err
	}
	for _, r := range all {
		readers = append(readers, r)
	}
	if !learning {
		j.second = append(j.second, all...)
	}
	return readers, nil
}

// readers opens the locations of a rank.
func (j *job) readers(rank int32) (all []*reader, err error) {
	together := newShared(len(j.threads[rank]))
	for t, x := range j.threads[rank] {
		s, err := j.openStream(x.id)
		if err != nil {
			for _, r := range all {
				r.Close()
			}
			return nil, err
		}
		all = append(all, &reader{j: j, rank: rank, thread: int32(t), stream: s, local: j.locals[rank][t],
			clock: clock{offsets: j.locals[rank][t].clocks}, sites: j.sites[rank][t],
			high: map[uint32]regionKind{}, prev: -1 << 62, shared: together, counts: tally{mute: map[string]int64{}}})
	}
	return all, nil
}

// learned numbers the call sites that the first pass found.
func (j *job) learned() {
	for _, threads := range j.sites {
		for _, s := range threads {
			j.table.add(s)
		}
	}
}
