package liballprof

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
)

// scan is the result of reading all lines before the passes.
type scan struct {
	defines  [][]calls.Args // by rank
	lineOf   [][]int        // of defines
	lines    int64
	skipped  map[string]int64 // calls without a row, by name
	lost     map[string]int64 // calls that commq records, but for which this format has too little
	library  library
	cancels  int64 // calls of MPI_Cancel
	backward int64 // calls that end before they begin
	copies   bool  // the files of all ranks are copies of that of rank 0
}

// scan reads all lines once.
func (t *trace) scan(ctx context.Context) (*scan, error) {
	s := &scan{defines: make([][]calls.Args, len(t.files)), lineOf: make([][]int, len(t.files)),
		skipped: map[string]int64{}, lost: map[string]int64{}}
	var lock sync.Mutex
	err := timed.Parallel(len(t.files), func(rank int) error {
		one, err := t.files[rank].scan(ctx)
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		s.defines[rank], s.lineOf[rank] = one.defines[0], one.lineOf[0]
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
	s := &scan{defines: make([][]calls.Args, 1), lineOf: make([][]int, 1),
		skipped: map[string]int64{}, lost: map[string]int64{}}
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
			s.keep(&a, in.number)
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
		s.define(&a, &fn, in.number, shown)
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
func (s *scan) define(a *calls.Args, fn *function, line int, shown map[calls.Handle]bool) {
	switch {
	case a.Defines() || a.Call == schema.CallCommFree:
		clear(shown)
	case strings.ContainsRune(fn.layout, 'c') && !shown[a.Comm]:
		shown[a.Comm] = true
	default:
		return
	}
	s.keep(a, line)
}

// keep keeps a call for calls.Resolve.
func (s *scan) keep(a *calls.Args, line int) {
	kept := *a
	kept.To, kept.From, kept.Ends, kept.Requests = nil, nil, nil, nil
	s.defines[0], s.lineOf[0] = append(s.defines[0], kept), append(s.lineOf[0], line)
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

// resolve finds out who is in which communicator. Handles that fit several are those that other ranks show by their
// order: told has, by rank and line, the constructor that made them.
func (s *scan) resolve() (comms *timed.Comms, made [][]*timed.Comm, told []map[int]int) {
	ranks := len(s.defines)
	comms = timed.NewComms(ranks)
	made = calls.Resolve(comms, s.defines, calls.Unshown, calls.Unshown)
	told = make([]map[int]int, ranks)
	if !calls.Agree(comms, s.defines, made) {
		return comms, made, told
	}
	for rank, all := range s.defines {
		told[rank] = map[int]int{}
		for i := range all {
			if n := all[i].Comm.Nth; n > 0 {
				told[rank][s.lineOf[rank][i]] = n
			}
		}
	}
	comms = timed.NewComms(ranks)
	return comms, calls.Resolve(comms, s.defines, calls.Unshown, calls.Unshown), told
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
