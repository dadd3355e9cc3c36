package dumpi

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Options control the import. Progress counts bytes.
type Options = timed.Options

// ImportPath imports a trace as the run of this name in a store: path is its file .meta, the folder of that, or the
// file of a rank. Without a name the run gets that of the trace. An error names the file, the byte and what was found.
func ImportPath(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	t, err := openTrace(path)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = writer.NameFor(t.name)
	}
	return importing.Run(ctx, store, name, o.Replace, func(out *writer.Run) (*schema.Manifest, error) {
		return t.importTo(ctx, out, o)
	})
}

// scan is the result of reading all records before the passes.
type scan struct {
	defines [][]calls.Args // by rank
	records int64
	skipped map[string]int64 // calls without a row, by name
	differ  int              // files whose footer has other numbers of calls
}

// importTo scans the records for communicators, and makes the run.
func (t *trace) importTo(ctx context.Context, out timed.Sink, o Options) (*schema.Manifest, error) {
	base := t.files[0].wallBase
	size := int64(0)
	for _, f := range t.files {
		base = min(base, f.wallBase)
		size += f.end - f.body
	}
	s, err := t.scan(ctx)
	if err != nil {
		return nil, err
	}
	comms := timed.NewComms(len(t.files))
	made := calls.Resolve(comms, s.defines, commWorld, commSelf)
	hosts, hostOf := calls.Hosts(len(t.files), func(rank int) string { return t.files[rank].host })
	j := timed.New(timed.Trace{Comms: comms, AtMost: true, Size: size, Hosts: hosts, HostOf: hostOf,
		Open: func(rank int32, _ bool) ([]timed.Reader, error) {
			f := t.files[rank]
			in, err := f.open(base * 1e9)
			if err != nil {
				return nil, err
			}
			return []timed.Reader{&reader{records: in, decoder: decoder{&types{f, map[int64]int64{}}},
				rank: calls.NewRank(rank, comms, made[rank], commWorld, commSelf)}}, nil
		}}, o)
	if err := j.Import(ctx, out); err != nil {
		return nil, err
	}
	origin := o.Origin
	f := t.files[0]
	origin.Trace = &schema.Trace{Format: "dumpi", File: filepath.Base(t.path),
		Program: fmt.Sprintf("DUMPI %d.%d.%d", f.version[0], f.version[1], f.version[2])}
	return j.Manifest(origin, s.warnings(len(hosts))), nil
}

// scan reads all records once.
func (t *trace) scan(ctx context.Context) (*scan, error) {
	s := &scan{defines: make([][]calls.Args, len(t.files)), skipped: map[string]int64{}}
	var lock sync.Mutex
	err := timed.Parallel(len(t.files), func(rank int) error {
		f := t.files[rank]
		defines, counts, err := f.scan(ctx)
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		s.defines[rank] = defines
		for n, count := range counts {
			s.records += count
			if x := (record{function: n}); count > 0 && x.call() == 0 {
				s.skipped[functions[n].name] += count
			}
		}
		if f.called != nil && !slices.Equal(f.called, counts) {
			s.differ++
		}
		return nil
	})
	return s, err
}

// scan returns the calls of a file that make groups and communicators, and the numbers of all by function.
func (f *file) scan(ctx context.Context) (defines []calls.Args, counts []int64, err error) {
	in, err := f.open(0)
	if err != nil {
		return nil, nil, err
	}
	defer in.in.Close()
	counts = make([]int64, allFunctions)
	d := decoder{&types{f, map[int64]int64{}}}
	var x record
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		more, err := in.next(&x)
		if err != nil || !more {
			return defines, counts, err
		}
		counts[x.function]++
		var a calls.Args
		if groupMakers[functions[x.function].name] != calls.NoGroup || x.call().Is(schema.FactCreatesCommunicator) {
			if err := d.arguments(&x, &a); err != nil {
				return nil, nil, fmt.Errorf("%s: byte %d: %s: %w", f.path, x.at, functions[x.function].name, err)
			}
			defines = append(defines, a)
		}
	}
}

// warnings tell what the format lacks, and what was skipped.
func (s *scan) warnings(hosts int) []string {
	w := []string{"DUMPI has no payload hashes, buffers and call sites; these columns are null, and so are counts and " +
		"datatypes, whose sizes are in the bytes."}
	if hosts > 1 {
		w = append(w, fmt.Sprintf("DUMPI has the clocks of %d hosts as they were, without their offsets: waits and "+
			"latencies between hosts are off by these.", hosts))
	}
	read := fmt.Sprintf("Read: %d calls", s.records)
	var words []string
	for _, name := range slices.Sorted(maps.Keys(s.skipped)) {
		words = append(words, fmt.Sprintf("%d %s", s.skipped[name], name))
	}
	if len(words) > 0 {
		read += "; of them without a row: " + strings.Join(words, ", ")
	}
	w = append(w, read+".")
	if s.differ > 0 {
		w = append(w, fmt.Sprintf("Files whose footer has other numbers of calls than their records: %d.", s.differ))
	}
	return w
}

// reader hands over the calls of a rank.
type reader struct {
	decoder
	*records
	rank *calls.Rank
	x    record
	args calls.Args
}

// Next reads the next call; false after the last.
func (r *reader) Next(c *timed.Call) (bool, error) {
	for {
		more, err := r.next(&r.x)
		if err != nil || !more {
			return false, err
		}
		r.define(&r.x)
		if r.x.call() == 0 && groupMakers[functions[r.x.function].name] == calls.NoGroup {
			continue
		}
		has := false
		err = r.arguments(&r.x, &r.args)
		if err == nil {
			has, err = r.rank.Fill(&r.args, c)
		}
		if err != nil {
			return false, fmt.Errorf("%s: byte %d: %s: %w", r.path, r.x.at, functions[r.x.function].name, err)
		}
		if has {
			return true, nil
		}
	}
}

// Site returns null: the format has no call sites.
func (r *reader) Site(int32) int32 { return schema.NullInt32 }

// Read returns the bytes that were read.
func (r *reader) Read() int64 { return r.cur.at - r.body }

// Close closes the file.
func (r *reader) Close() { _ = r.in.Close() } // it was only read
