package liballprof

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Options control the import. Progress counts bytes.
type Options = timed.Options

// ImportPath imports a trace as the run of this name in a store: path is the file of a rank, or their folder. Without a
// name the run gets that of the files or the folder. An error names the file, the line and what was found.
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

// importTo scans the lines for communicators and clocks, and makes the run.
func (t *trace) importTo(ctx context.Context, out timed.Sink, o Options) (*schema.Manifest, error) {
	s, err := t.scan(ctx)
	if err != nil {
		return nil, err
	}
	base, bytes := int64(math.MaxInt64), int64(0)
	for _, f := range t.files {
		base, bytes = min(base, f.first), bytes+f.size
	}
	s.findCopies()
	comms, made, told := s.resolve()
	var second []*reader
	hosts, hostOf := calls.Hosts(len(t.files), func(rank int) string { return t.files[rank].host })
	j := timed.New(timed.Trace{Comms: comms, AtMost: true, Size: bytes, Hosts: hosts, HostOf: hostOf,
		Open: func(rank int32, learning bool) ([]timed.Reader, error) {
			in, err := t.files[rank].open()
			if err != nil {
				return nil, err
			}
			r := &reader{file: t.files[rank], lines: in, told: told[rank], zero: base, last: -1 << 62,
				rank: calls.NewRank(rank, comms, made[rank], calls.Unshown, calls.Unshown)}
			r.mpich, r.openIn, r.stride = s.library.mpich(), r.rank.OpenIn, s.library.stride()
			r.copies, r.me, r.ranks = s.copies, int64(rank), int64(len(t.files))
			if !learning {
				second = append(second, r)
			}
			return []timed.Reader{r}, nil
		}}, o)
	if err := j.Import(ctx, out); err != nil {
		return nil, err
	}
	origin := o.Origin
	origin.Trace = &schema.Trace{Format: "liballprof", File: filepath.Base(t.path), Program: t.files[0].program}
	vague, unsure := int64(0), int64(0)
	for _, r := range second {
		vague += r.vague
		unsure += r.rank.Unsure()
	}
	return j.Manifest(origin, append(s.warnings(vague, unsure), t.withoutOffset()...)), nil
}

// withoutOffset tells how many files of other hosts than that of rank 0 lack the offset of their clock.
func (t *trace) withoutOffset() []string {
	n := 0
	for _, f := range t.files[1:] {
		if !f.hasEarly && !f.hasLate && (f.host == "" || f.host != t.files[0].host) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("Files without the offset of their clock to that of rank 0, which was taken as 0: %d. "+
		"Waits and latencies between hosts are off by it.", n)}
}

// reader hands over the calls of a rank.
type reader struct {
	decoder
	*file
	*lines
	zero int64
	last int64 // end of the call before
	rank *calls.Rank
	args calls.Args
	told map[int]int // by line, the constructor that made its communicator
}

// Next reads the next call; false after the last.
func (r *reader) Next(c *timed.Call) (bool, error) {
	for {
		line, more, err := r.next()
		if err != nil || !more {
			return false, err
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		p, isMPI, err := split(line)
		if err != nil {
			return false, r.bad(err)
		}
		fn, ok := functions[p.name]
		if a, is := untold(p.name); is {
			if _, err := r.rank.Fill(&a, c); err != nil { // its row is left out
				return false, r.bad(fmt.Errorf("%s: %w", p.name, err))
			}
		}
		if !ok || !isMPI {
			continue
		}
		hasRow := schema.Calls[fn.call].Recorder != ""
		if hasRow {
			r.place(&p)
		}
		err = r.arguments(&p, &fn, &r.args)
		r.args.Comm.Nth = r.told[r.lines.number]
		if err == nil && !hasRow {
			r.rank.Shows(r.args.Comm)
			continue
		}
		if err == nil {
			_, err = r.rank.Fill(&r.args, c)
		}
		if err != nil {
			return false, r.bad(fmt.Errorf("%s: %w", p.name, err))
		}
		return true, nil
	}
}

// place puts the times of a call on the clock of rank 0, not before those of the call before. MPI_Init and
// MPI_Finalize have one time each.
func (r *reader) place(p *parsed) {
	if p.start == null64 {
		p.start = p.end
	}
	if p.end == null64 {
		p.end = p.start
	}
	p.start = max(r.correct(p.start)-r.zero, r.last)
	p.end = max(r.correct(p.end)-r.zero, p.start)
	r.last = p.end
}

// Site returns null: the format has no call sites.
func (r *reader) Site(int32) int32 { return schema.NullInt32 }

// Read returns the bytes that were read.
func (r *reader) Read() int64 { return r.lines.at }

// Close closes the file.
func (r *reader) Close() { _ = r.in.Close() } // it was only read
