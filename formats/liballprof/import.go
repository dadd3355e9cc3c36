package liballprof

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Options control the import. The zero value is what commands use.
type Options struct {
	// Origin is what the caller knows about the origin of the run.
	Origin schema.Origin
	// Replace allows that a run has the name already; the new one takes its place.
	Replace bool
	// Progress, if not nil, is called from time to time with the number of bytes read and of those to read.
	Progress func(read, all int64)

	passes timed.Options // tests use tiny sizes
}

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
	out, err := writer.Create(store, name, writer.Options{Replace: o.Replace})
	if err != nil {
		return nil, err
	}
	m, err := t.importTo(ctx, out, o)
	if err == nil {
		err = out.Commit(ctx, m)
	}
	if err != nil {
		_ = out.Abort() // the first error counts
		return nil, err
	}
	return m, nil
}

// scan is what a look at all lines tells before the passes.
type scan struct {
	defines  [][]calls.Args // by rank
	lines    int64
	skipped  map[string]int64 // calls without a row, by name
	lost     map[string]int64 // calls that commq records, and this format does not tell enough of
	library  library
	cancels  int64 // calls of MPI_Cancel
	backward int64 // calls that end before they begin
	copies   bool  // all ranks show rank 0 of all ranks
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
	comms := timed.NewComms(len(t.files))
	s.findCopies()
	made := calls.Resolve(comms, s.defines, calls.Unshown, calls.Unshown)
	var second []*reader
	passes := o.passes
	passes.Progress = o.Progress
	hosts, hostOf := t.hosts()
	j := timed.New(timed.Trace{Comms: comms, AtMost: true, Size: bytes, Hosts: hosts, HostOf: hostOf,
		Open: func(rank int32, learning bool) ([]timed.Reader, error) {
			in, err := t.files[rank].open()
			if err != nil {
				return nil, err
			}
			r := &reader{file: t.files[rank], lines: in, zero: base, last: -1 << 62,
				rank: calls.NewRank(rank, comms, made[rank], calls.Unshown, calls.Unshown)}
			r.mpich, r.openIn, r.stride = s.library.mpich(), r.rank.OpenIn, s.library.stride()
			r.copies, r.me, r.ranks = s.copies, int64(rank), int64(len(t.files))
			if !learning {
				second = append(second, r)
			}
			return []timed.Reader{r}, nil
		}}, passes)
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

// hosts returns the names of the hosts, and the host of each rank.
func (t *trace) hosts() (names []string, of []int32) {
	number := map[string]int32{}
	for _, f := range t.files {
		name := cmp.Or(f.host, "unknown")
		n, ok := number[name]
		if !ok {
			n = int32(len(names))
			number[name] = n
			names = append(names, name)
		}
		of = append(of, n)
	}
	return names, of
}

// scan reads all lines once.
func (t *trace) scan(ctx context.Context) (*scan, error) {
	s := &scan{defines: make([][]calls.Args, len(t.files)), skipped: map[string]int64{}, lost: map[string]int64{}}
	var lock sync.Mutex
	err := timed.Parallel(len(t.files), func(rank int) error {
		one, err := t.files[rank].scan(ctx)
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		s.defines[rank] = one.defines[0]
		s.lines += one.lines
		s.library.join(one.library)
		s.cancels += one.cancels
		s.backward += one.backward
		for name, n := range one.skipped {
			s.skipped[name] += n
		}
		for name, n := range one.lost {
			s.lost[name] += n
		}
		return nil
	})
	return s, err
}

// scan reads the lines of a file: its clock, and the calls that make communicators or show the handle of one.
func (f *file) scan(ctx context.Context) (*scan, error) {
	in, err := f.open()
	if err != nil {
		return nil, err
	}
	defer in.in.Close()
	s := &scan{defines: make([][]calls.Args, 1), skipped: map[string]int64{}, lost: map[string]int64{}}
	shown := map[calls.Handle]bool{}
	d := decoder{scanning: true}
	f.first = math.MaxInt64
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		line, more, err := in.next()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		if strings.HasPrefix(line, "#") {
			if err := f.header(line); err != nil {
				return nil, in.bad(err)
			}
			continue
		}
		p, isMPI, err := split(line)
		if err != nil {
			return nil, in.bad(err)
		}
		s.lines++
		fn, ok := functions[p.name]
		if !ok || !isMPI || schema.Calls[fn.call].Recorder == "" {
			s.skip(p.name)
		}
		if a, ok := untold(p.name); ok {
			s.keep(&a)
		}
		if !ok || !isMPI {
			continue
		}
		if err := f.times(&p, &fn); err != nil {
			return nil, in.bad(err)
		}
		var a calls.Args
		if err := d.arguments(&p, &fn, &a); err != nil {
			return nil, in.bad(err)
		}
		s.library.see(&a, &fn, p.args, d.base, d.count)
		if a.Call == schema.CallCancel {
			s.cancels++
		}
		if p.end != null64 && p.end < p.start {
			s.backward++
		}
		s.define(&a, &fn, shown)
	}
	if f.first == math.MaxInt64 {
		return nil, fmt.Errorf("%s: no call with a time", f.path)
	}
	f.size = in.at
	f.settle()
	f.first = f.correct(f.first)
	return s, nil
}

// skip counts a call that gets no row.
func (s *scan) skip(name string) {
	if call, ok := schema.CallByName(name); !ok || schema.Calls[call].Recorder == "" {
		s.skipped[name]++
	} else {
		s.lost[name]++
	}
}

// times notes when the clock was compared with that of rank 0: at the end of MPI_Init and at MPI_Finalize.
func (f *file) times(p *parsed, fn *function) error {
	first := p.start
	if first == null64 {
		first = p.end
	}
	if first == null64 {
		return fmt.Errorf("%s without a time", p.name)
	}
	f.first = min(f.first, first)
	switch {
	case fn.call.Is(schema.FactInitializes):
		f.earlyAt = p.end
	case fn.call.Is(schema.FactFinalizes):
		f.lateAt = p.start
	}
	return nil
}

// untold returns the arguments of a constructor of a communicator that the format does not tell; false: it is none.
func untold(name string) (a calls.Args, is bool) {
	call, _ := schema.CallByName(name)
	if _, told := functions[name]; told || !call.Is(schema.FactCreatesCommunicator) {
		return a, false
	}
	a.Reset()
	a.Call, a.Comm, a.NewComm = call, calls.Held(0), calls.Held(0)
	return a, true
}

// define keeps a call that makes or frees a communicator, and the first call on each handle after it.
func (s *scan) define(a *calls.Args, fn *function, shown map[calls.Handle]bool) {
	switch {
	case a.Defines() || a.Call == schema.CallCommFree:
		clear(shown)
	case strings.ContainsRune(fn.layout, 'c') && !shown[a.Comm]:
		shown[a.Comm] = true
	default:
		return
	}
	s.keep(a)
}

// keep keeps a call for calls.Resolve.
func (s *scan) keep(a *calls.Args) {
	kept := *a
	kept.To, kept.From, kept.Ends, kept.Requests = nil, nil, nil, nil
	s.defines[0] = append(s.defines[0], kept)
}

// warnings tell what the format lacks, and what was skipped.
func (s *scan) warnings(vague, unsure int64) []string {
	w := []string{"liballprof has no payload hashes, statuses and call sites; these columns are null. Of counts and " +
		"datatypes only the bytes are kept. MPI_Init and MPI_Finalize have no length."}
	list := func(counts map[string]int64) string {
		var words []string
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			words = append(words, fmt.Sprintf("%d %s", counts[name], name))
		}
		return strings.Join(words, ", ")
	}
	read := fmt.Sprintf("Read: %d calls", s.lines)
	if len(s.skipped) > 0 {
		read += "; of them without a row: " + list(s.skipped)
	}
	w = append(w, read+".")
	if len(s.lost) > 0 {
		w = append(w, "Calls whose arguments the trace does not tell, which are missing: "+list(s.lost)+".")
	}
	return append(w, s.doubts(vague, unsure)...)
}

// doubts tell what the trace leaves open.
func (s *scan) doubts(vague, unsure int64) (w []string) {
	if vague > 0 {
		w = append(w, fmt.Sprintf("Calls of MPI_Waitany, _Waitsome and MPI_Test*, of which the trace does not tell what "+
			"they completed: %d.", vague))
	}
	if unsure > 0 {
		w = append(w, fmt.Sprintf("Communicators whose rank and size fit several that were made, of different members, and "+
			"that were taken as the first of them: %d. Peers of calls on them may be wrong.", unsure))
	}
	if s.backward > 0 {
		w = append(w, fmt.Sprintf("Calls that end before they begin, which got no length: %d. The clock was set back, or "+
			"the file is damaged.", s.backward))
	}
	if s.cancels > 0 {
		w = append(w, fmt.Sprintf("Calls of MPI_Cancel, of which the trace does not tell whether a message came before "+
			"them: %d. Receives completed after them were taken as cancelled.", s.cancels))
	}
	if s.library.unsure() {
		w = append(w, fmt.Sprintf("Receives and probes from -1 or -2: %d. The trace does not tell its MPI library: -1 was "+
			"taken as MPI_ANY_SOURCE and -2 as MPI_PROC_NULL, as in Open MPI; MPICH has the reverse.", s.library.negative))
	}
	if s.copies {
		w = append(w, "All files show rank 0 of all ranks: they are copies of one rank's file, and count as one rank each.")
	}
	return w
}

// findCopies finds out whether the files of all ranks show rank 0 of all ranks, and gives each the rank of its file.
func (s *scan) findCopies() {
	n := int64(len(s.defines))
	s.copies = n > 1
	for _, all := range s.defines {
		first := slices.IndexFunc(all, func(a calls.Args) bool { return a.Comm.Size == n })
		s.copies = s.copies && first >= 0 && all[first].Comm.Rank == 0
	}
	if !s.copies {
		return
	}
	for me, all := range s.defines {
		for i := range all {
			if h := &all[i].Comm; h.Size == n && h.Rank == 0 {
				h.Rank = int64(me)
			}
		}
	}
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
