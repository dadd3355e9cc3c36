package hang

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/schema"
)

// Watcher follows a job by the headers and the ends of its spool files. The cost of a look does not grow with the
// records. It is not safe for concurrent use.
type Watcher struct {
	// Info comes from the folder and the first header.
	Info ingest.JobInfo

	dir   string
	files map[string]*tail
	buf   []byte
}

// Progress says how far a job has come.
type Progress struct {
	// Job is the job's id, Program the path of its executable.
	Job     string `json:"job"`
	Program string `json:"program"`
	// State is running, finalized, aborted, killed (all unfinished processes ran on this machine and none is alive),
	// or unknown (no process is alive here, and some on other machines have not ended).
	State string `json:"state"`
	// Ranks is the size of MPI_COMM_WORLD, Seen the number of its ranks with records, Ended the number of those that
	// have finalized or aborted.
	Ranks int32 `json:"ranks"`
	Seen  int   `json:"seen"`
	Ended int   `json:"ended"`
	// Calls is the number of recorded calls. When Exact is false, it was partly estimated from samples of the files.
	Calls int64 `json:"calls"`
	Exact bool  `json:"exact"`
	// Bytes is the size of the records.
	Bytes int64 `json:"spool_bytes"`
	// Dropped is the number of calls that could not be recorded, Limited the number of ranks whose spool is full.
	Dropped int64 `json:"dropped"`
	Limited int   `json:"limited"`
	// Doing are the calls that threads are in, the most frequent first; Call is empty for those outside MPI.
	Doing []Doing `json:"doing"`
	// Behind are the ranks with the fewest calls among those that have not ended, at most three.
	Behind []RankCalls `json:"behind"`
}

// Unknown is a Progress.State.
const Unknown = "unknown"

// Doing is a call and the ranks that are in it.
type Doing struct {
	// Call is the MPI function; empty for threads outside MPI.
	Call string `json:"call"`
	// Ranks are the ranks with threads in it.
	Ranks []int32 `json:"ranks"`
	// LongestRank has been in the call longest, for LongestNs; null when that is not known, as on another machine.
	LongestRank int32  `json:"longest_rank"`
	LongestNs   *int64 `json:"longest_ns"`
}

// RankCalls is a rank and the number of its calls.
type RankCalls struct {
	// Rank is a rank of MPI_COMM_WORLD.
	Rank int32 `json:"rank"`
	// Calls is the number of calls that it recorded.
	Calls int64 `json:"calls"`
}

// tail follows the end of a file.
type tail struct {
	h       spool.Header
	pos     int64 // of the next slot
	calls   int64 // up to pos
	exact   bool
	last    spool.Call // the last CALL slot
	lastPos int64      // where it is in the file
	alive   bool       // the process was alive when the file was read
	gone    bool
	kept    *os.File    // still open, to read how the process ended if the file is removed; nil if there are too many
	packed  *spool.Tail // of a file whose slots are packed; else nil
	bytes   int64       // that its records take
}

// Watch starts following a job of the spool folder; see ingest.Find for id and for errors.
func Watch(dir, id string) (*Watcher, error) {
	info, err := ingest.Find(dir, id)
	if err != nil {
		return nil, err
	}
	return &Watcher{Info: *info, dir: dir, files: map[string]*tail{}, buf: make([]byte, 1<<20)}, nil
}

// maxNew is the number of new bytes of a file that are read at most. If there are more, the calls are estimated from
// the last part.
const maxNew = 8 << 20

// maxKept is the number of files that are kept open at most.
const maxKept = 512

// Close closes the files.
func (w *Watcher) Close() {
	for _, t := range w.files {
		if t.kept != nil {
			t.kept.Close()
		}
	}
}

// Look reads what is new and returns the progress. The error names a file that cannot be read; it is fs.ErrNotExist
// if the records are gone and did not tell before how the job ended.
func (w *Watcher) Look() (*Progress, error) {
	entries, err := os.ReadDir(w.dir)
	if err != nil && (len(w.files) == 0 || !errors.Is(err, fs.ErrNotExist)) {
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	for _, t := range w.files {
		t.gone = true
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), w.Info.ID+".") || !strings.HasSuffix(e.Name(), spool.Suffix) {
			continue
		}
		if err := w.readFile(e.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	for _, t := range w.files {
		if t.gone {
			return w.ended()
		}
	}
	return w.progress(), nil
}

// ended returns the last progress of a job whose files are removed: commq capture ingests the records as soon as the
// job has ended. The files that were kept open still tell how.
func (w *Watcher) ended() (*Progress, error) {
	gone := fmt.Errorf("job %s: %w any more: ingested or removed meanwhile", w.Info.ID, fs.ErrNotExist)
	for _, t := range w.files {
		if t.gone && (t.kept == nil || t.readRest(w.buf) != nil) {
			return nil, gone
		}
	}
	p := w.progress()
	if unseen := p.Seen < int(p.Ranks) && p.Ended == p.Seen; p.State == Running || p.State == Unknown || unseen {
		return nil, gone
	}
	return p, nil
}

// readRest reads a file that has been removed.
func (t *tail) readRest(buf []byte) error {
	h, alive, err := readLiveHeader(t.kept)
	if err != nil {
		return err
	}
	t.h, t.alive = *h, alive
	if t.packed != nil { // its reader opens the file by its name
		t.exact = false
		return nil
	}
	return t.follow(t.kept, buf)
}

func (w *Watcher) readFile(name string) error {
	f, _, err := bounded.OpenRegular(filepath.Join(w.dir, name))
	if err != nil {
		return err
	}
	t := w.files[name]
	keep := t == nil && len(w.files) < maxKept
	defer func() {
		if !keep {
			f.Close()
		}
	}()
	h, alive, err := readLiveHeader(f)
	if err != nil {
		keep = false
		return err
	}
	if t == nil {
		t = &tail{pos: spool.HeaderBytes, exact: true}
		if keep {
			t.kept = f
		}
		if h.Packed != 0 {
			t.packed = spool.NewTail(f.Name(), h)
		}
		w.files[name] = t
	}
	t.gone = false
	t.h, t.alive = *h, alive
	if err := t.follow(f, w.buf); err != nil {
		return fmt.Errorf("%s: %w", f.Name(), err)
	}
	return nil
}

// readLiveHeader reads a header and reports whether the process is alive. If it is not, the header is read again: the
// process may have ended since the first reading, and only then does the header say how.
func readLiveHeader(f *os.File) (h *spool.Header, alive bool, err error) {
	if h, err = readHeader(f); err != nil {
		return nil, false, err
	}
	if alive = isAlive(h); !alive && h.Ended == spool.EndedNot {
		h, err = readHeader(f)
	}
	return h, alive, err
}

// follow counts the new calls. If there are too many, it jumps to the last part and estimates their number from that.
func (t *tail) follow(f *os.File, buf []byte) error {
	var records io.ReaderAt = f
	if t.packed != nil {
		records = t.packed
	}
	end, err := t.end(f)
	if err != nil {
		return err
	}
	if end-t.pos > maxNew {
		if t.packed == nil {
			if end, err = usedEnd(f, t.pos, end); err != nil {
				return err
			}
		}
		if skipped := end - maxNew/2 - t.pos; end-t.pos > maxNew {
			skipped -= skipped % slotBytes
			from := t.pos + skipped
			t.pos = from
			before := t.calls
			if err := t.read(records, buf); err != nil {
				return err
			}
			t.calls += int64(float64(t.calls-before) * float64(skipped) / float64(max(t.pos-from, slotBytes)))
			t.exact = false
			return nil
		}
	}
	return t.read(records, buf)
}

// end returns where the file ends, or may end if its slots are not packed.
func (t *tail) end(f *os.File) (end int64, err error) {
	if t.packed != nil {
		end, t.bytes, err = t.packed.Size()
		return end, err
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// usedEnd finds the end of the used slots by bisection: used slots have a kind, unused ones are zeros.
func usedEnd(f io.ReaderAt, from, size int64) (int64, error) {
	low, high := int64(0), (size-from)/slotBytes
	var slot [slotBytes]byte
	for low < high {
		mid := (low + high) / 2
		if _, err := f.ReadAt(slot[:], from+mid*slotBytes); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if spool.Kind(slot[2]) != spool.End {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return from + low*slotBytes, nil
}

// read counts the calls up to the end.
func (t *tail) read(f io.ReaderAt, buf []byte) error {
	if t.last.T1 == 0 && t.lastPos > 0 { // it may have returned since
		if _, err := f.ReadAt(buf[:slotBytes], t.lastPos); err == nil {
			t.last = *(*spool.Call)(unsafe.Pointer(&buf[0]))
		}
	}
	for {
		n, err := f.ReadAt(buf, t.pos)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		slots := unsafe.Slice((*spool.Call)(unsafe.Pointer(&buf[0])), n/slotBytes)
		for i := range slots {
			if slots[i].Kind == spool.End {
				return nil
			}
			if slots[i].Kind == spool.KindCall {
				t.calls++
				t.last, t.lastPos = slots[i], t.pos
			}
			t.pos += slotBytes
		}
		if n < len(buf) {
			return nil
		}
	}
}

// progress adds up the state of all files.
func (w *Watcher) progress() *Progress {
	p := &Progress{Job: w.Info.ID, Program: w.Info.Program, Ranks: w.Info.Ranks, Exact: true, Doing: []Doing{},
		Behind: []RankCalls{}}
	type state struct {
		calls int64
		ended uint32
	}
	ranks := map[int32]*state{}
	doing := map[string]*Doing{}
	limited := map[int32]bool{}
	running, allHere := false, true
	now := monotonic()
	for _, name := range slices.Sorted(maps.Keys(w.files)) {
		t := w.files[name]
		r := ranks[t.h.Rank]
		if r == nil {
			r = &state{}
			ranks[t.h.Rank] = r
		}
		r.calls += t.calls
		r.ended = max(r.ended, t.h.Ended)
		p.Calls += t.calls
		p.Exact = p.Exact && t.exact
		if t.packed != nil {
			p.Bytes += t.bytes
		} else {
			p.Bytes += t.pos
		}
		p.Dropped += int64(t.h.Dropped)
		if t.h.Limited != 0 {
			limited[t.h.Rank] = true
		}
		if t.h.Ended != spool.EndedNot {
			continue
		}
		local := onThisMachine(&t.h)
		allHere = allHere && local
		if t.h.Thread == 0 {
			running = running || t.alive
		}
		t.addTo(doing, local, now)
	}
	p.Seen, p.Limited = len(ranks), len(limited)
	aborted := false
	for _, number := range slices.Sorted(maps.Keys(ranks)) {
		r := ranks[number]
		if r.ended != spool.EndedNot {
			p.Ended++
			aborted = aborted || r.ended == spool.EndedAborted
			continue
		}
		p.Behind = append(p.Behind, RankCalls{number, r.calls})
	}
	slices.SortStableFunc(p.Behind, func(a, b RankCalls) int { return cmp.Compare(a.Calls, b.Calls) })
	p.Behind = p.Behind[:min(len(p.Behind), 3)]
	for _, d := range doing {
		slices.Sort(d.Ranks)
		d.Ranks = slices.Compact(d.Ranks)
		p.Doing = append(p.Doing, *d)
	}
	slices.SortFunc(p.Doing, func(a, b Doing) int {
		return cmp.Or(cmp.Compare(len(b.Ranks), len(a.Ranks)), cmp.Compare(a.Call, b.Call))
	})
	switch {
	case running:
		p.State = Running
	case p.Ended == int(p.Ranks) && !aborted:
		p.State = Finalized
	case aborted:
		p.State = Aborted
	case allHere && p.Seen > 0:
		p.State = Killed
	default:
		p.State = Unknown
	}
	return p
}

// addTo adds what the thread is doing. local is true when it runs on this machine; now is its CLOCK_MONOTONIC.
func (t *tail) addTo(doing map[string]*Doing, local bool, now int64) {
	call, tick := "", t.last.T1
	if t.last.T1 == 0 && t.lastPos > 0 {
		tick = t.last.T0
		call = fmt.Sprintf("call %d", t.last.Call)
		if int(t.last.Call) < len(schema.Calls) {
			call = schema.CallID(t.last.Call).String()
		}
	}
	d := doing[call]
	if d == nil {
		d = &Doing{Call: call, LongestRank: t.h.Rank}
		doing[call] = d
	}
	d.Ranks = append(d.Ranks, t.h.Rank)
	if ns, ok := t.ns(tick); ok && local && now > ns {
		if since := now - ns; d.LongestNs == nil || since > *d.LongestNs {
			d.LongestRank, d.LongestNs = t.h.Rank, &since
		}
	}
}

// ns returns the time of a tick on CLOCK_MONOTONIC of its machine; ok is false when it is not known, as for virtual
// times.
func (t *tail) ns(tick uint64) (ns int64, ok bool) {
	if t.h.Timer == spool.TimerVirtual {
		return 0, false
	}
	d := float64(int64(tick - t.h.Clock0Tick))
	if t.h.Timer != spool.TimerMonotonic {
		if t.h.Clock1Tick <= t.h.Clock0Tick || tick < t.h.Clock0Tick {
			return 0, false
		}
		d *= float64(t.h.Clock1Ns-t.h.Clock0Ns) / float64(t.h.Clock1Tick-t.h.Clock0Tick)
	}
	if d < 0 || d > 1e17 {
		return 0, false
	}
	return t.h.Clock0Ns + int64(d), true
}

// monotonic returns CLOCK_MONOTONIC of this machine; 0 when it cannot be read.
func monotonic() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) != nil {
		return 0
	}
	return ts.Nano()
}
