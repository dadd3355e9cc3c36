package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/bounded"
)

// JobInfo describes a job whose files are in a spool folder.
type JobInfo struct {
	// ID is the job's id, 16 hexadecimal digits.
	ID string
	// Ranks is the number of processes in the job's MPI_COMM_WORLD.
	Ranks int32
	// Files are the names of its files in the folder.
	Files []string
	// Summaries are the names of the files that its simulator ranks wrote there beside the records.
	Summaries []string
	// Program is the path of the executable.
	Program string
	// Started is when the first of its processes called MPI_Init.
	Started time.Time
}

var fileName = regexp.MustCompile(`^([0-9a-f]{16})\.([0-9]{1,9})\.([0-9]{1,9})\` + spool.Suffix + `$`)

// Jobs lists the jobs with files in the spool folder in the order in which they started, because a script may run
// several MPI programs. An empty folder has none. A missing folder is an error, and so is a file with a spool file's
// name that is not one.
func Jobs(spoolDir string) ([]JobInfo, error) {
	entries, err := os.ReadDir(spoolDir)
	if err != nil {
		return nil, fmt.Errorf("read the spool: %w", err)
	}
	byID, summaries := map[string]*JobInfo{}, map[string][]string{}
	for _, e := range entries {
		if name := summaryName.FindStringSubmatch(e.Name()); name != nil {
			summaries[name[1]] = append(summaries[name[1]], e.Name())
		}
		name := fileName.FindStringSubmatch(e.Name())
		if name == nil {
			continue
		}
		j := byID[name[1]]
		if j == nil {
			j = &JobInfo{ID: name[1]}
			byID[name[1]] = j
		}
		j.Files = append(j.Files, e.Name())
	}
	jobs := make([]JobInfo, 0, len(byID))
	for _, j := range byID {
		err := j.readHeader(spoolDir)
		if errors.Is(err, spool.ErrUnwritten) {
			continue
		}
		if err != nil {
			return nil, err
		}
		j.Summaries = summaries[j.ID]
		jobs = append(jobs, *j)
	}
	slices.SortFunc(jobs, func(a, b JobInfo) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.ID, b.ID))
	})
	return jobs, nil
}

// readHeader fills in what the header of the job's first file holds that has one.
func (j *JobInfo) readHeader(dir string) (err error) {
	for _, name := range j.Files {
		var h *spool.Header
		if h, err = readHeader(filepath.Join(dir, name)); err == nil {
			j.Ranks = h.Size
			j.Program = spool.Text(h.Program[:])
			j.Started = time.Unix(0, h.RealtimeNs).UTC()
		}
		if !errors.Is(err, spool.ErrUnwritten) {
			return err
		}
	}
	return err
}

func readHeader(path string) (*spool.Header, error) {
	f, _, err := bounded.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data := make([]byte, spool.HeaderBytes)
	switch _, err := io.ReadFull(f, data); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%s: shorter than a header: not a spool file, or cut short", path)
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	}
	s, err := spool.Parse(path, data) // of an empty file: zeros
	if errors.Is(err, spool.ErrUnwritten) {
		s, err = spool.Open(path) // which sees whether records follow
	}
	if err != nil {
		return nil, err
	}
	return &s.Header, nil
}

// Find returns the job with that id in the spool folder, or the only job if id is empty. Its error lists the jobs in
// the folder.
func Find(dir, id string) (*JobInfo, error) {
	jobs, err := Jobs(dir)
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, errNoRecords(dir)
	}
	if id == "" && len(jobs) == 1 {
		return &jobs[0], nil
	}
	var lines []string
	for i := range jobs {
		if jobs[i].ID == strings.ToLower(id) {
			return &jobs[i], nil
		}
		lines = append(lines, fmt.Sprintf("%s (%d ranks of %s)", jobs[i].ID, jobs[i].Ranks, jobs[i].Program))
	}
	list := strings.Join(lines, ", ")
	if id == "" {
		return nil, fmt.Errorf("spool %s: has the records of %d jobs; choose one with --job: %s", dir, len(jobs), list)
	}
	return nil, fmt.Errorf("spool %s: no job %s; there is %s", dir, id, list)
}

// errNoRecords looks for records in the folders below, because commq capture makes a folder for each launch.
func errNoRecords(dir string) error {
	found, err := fs.Glob(os.DirFS(dir), "*/*"+spool.Suffix)
	var folders []string
	for _, f := range found {
		if fileName.MatchString(filepath.Base(f)) {
			folders = append(folders, filepath.Join(dir, filepath.Dir(f)))
		}
	}
	folders = slices.Compact(folders)
	if err != nil || len(folders) == 0 {
		found, _ := otherFiles(dir)
		return fmt.Errorf("spool %s: no records in it (files named JOB.RANK.THREAD%s)%s; was the program run under "+
			"commq exec?", dir, spool.Suffix, found)
	}
	if n := len(folders); n > 5 {
		folders = append(folders[:5], fmt.Sprintf("and %d more", n-5))
	}
	return fmt.Errorf("spool %s: no records in it, but in folders below it; name one of them: %s", dir,
		strings.Join(folders, ", "))
}

// CheckAwaited returns an error if records are not to be expected in a folder: it has other files and none of a job.
// Nothing is wrong with an empty folder, or with files of records that have no header yet.
func CheckAwaited(dir string) error {
	if found, ok := otherFiles(dir); ok && found != "" {
		return errNoRecords(dir)
	}
	return nil
}

// FolderOf returns the folder of the records: the given one, or the only one below it that commq capture made if the
// given one has no files of a job, as one that was named with --spool.
func FolderOf(dir string) string {
	if _, ok := otherFiles(dir); !ok {
		return dir
	}
	below, err := filepath.Glob(filepath.Join(dir, spool.FolderPrefix+"*"))
	if err != nil || len(below) != 1 {
		return dir
	}
	return below[0]
}

// otherFiles names what a folder has, hidden files aside; ok is false if the files of a job are among it.
func otherFiles(dir string) (found string, ok bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", false
	}
	first, n := "", 0
	for _, e := range entries {
		name := e.Name()
		if fileName.MatchString(name) || summaryName.MatchString(name) || strings.HasSuffix(name, spool.WindowsSuffix) {
			return "", false
		}
		if strings.HasPrefix(name, ".") {
			continue
		}
		if n++; n == 1 {
			first = name
		}
	}
	switch n {
	case 0:
		return "", true
	case 1:
		return ", only " + first, true
	}
	return fmt.Sprintf(", only %s and %d more", first, n-1), true
}

// job is the records of a job, opened.
type job struct {
	dir       string
	id        uint64
	size      int32        // of MPI_COMM_WORLD
	ranks     []*rankSpool // those with records, ascending
	summaries []string     // names of the files of its simulator ranks
	unwritten []unwritten  // files without a header
}

// unwritten is a file without a header.
type unwritten struct {
	rank, thread int // by its name
	err          error
}

// addUnwritten adds a file of that name without a header.
func (j *job) addUnwritten(name string, err error) {
	u := unwritten{rank: -1, err: err}
	if parts := fileName.FindStringSubmatch(name); parts != nil {
		u.rank, _ = strconv.Atoi(parts[2]) // at most nine digits
		u.thread, _ = strconv.Atoi(parts[3])
	}
	j.unwritten = append(j.unwritten, u)
}

// openJob maps the files of a job that choose returns, and compares their headers. An empty jobID means the only job
// in the folder.
func openJob(dir, jobID string, choose func(*JobInfo) ([]string, error)) (*job, error) {
	info, err := Find(dir, jobID)
	if err != nil {
		return nil, err
	}
	id, err := strconv.ParseUint(info.ID, 16, 64)
	if err != nil {
		return nil, err
	}
	files, err := choose(info)
	if err != nil {
		return nil, fmt.Errorf("spool %s: %w", dir, err)
	}
	j := &job{dir: dir, id: id, size: info.Ranks, summaries: info.Summaries}
	for _, name := range files {
		f, err := spool.Open(filepath.Join(j.dir, name))
		if errors.Is(err, spool.ErrUnwritten) {
			j.addUnwritten(name, err)
			continue
		}
		if err == nil {
			j.add(f)
			err = j.checkHeader(f, name)
		}
		if err != nil {
			j.close()
			return nil, err
		}
	}
	if len(j.ranks) == 0 {
		return nil, errNoRecords(dir)
	}
	j.sort()
	return j, nil
}

// allFiles chooses all files of a job.
func allFiles(info *JobInfo) ([]string, error) { return info.Files, nil }

// add adds a file to its rank.
func (j *job) add(f *spool.File) {
	for _, r := range slices.Backward(j.ranks) { // backwards, because files come roughly by rank
		if r.rank == f.Header.Rank {
			r.files = append(r.files, f)
			return
		}
	}
	j.ranks = append(j.ranks, &rankSpool{rank: f.Header.Rank, files: []*spool.File{f}})
}

// sort sorts the files by rank and thread.
func (j *job) sort() {
	slices.SortFunc(j.ranks, func(a, b *rankSpool) int { return cmp.Compare(a.rank, b.rank) })
	for _, r := range j.ranks {
		slices.SortFunc(r.files, func(a, b *spool.File) int { return cmp.Compare(a.Header.Thread, b.Header.Thread) })
	}
}

func (j *job) close() {
	for _, r := range j.ranks {
		for _, f := range r.files {
			_ = f.Close() // read-only pages: nothing is lost
		}
	}
}

// virtual reports whether the times are the virtual ones of simulator ranks. checkHeader makes sure that all files
// agree.
func (j *job) virtual() bool { return j.ranks[0].files[0].Header.Timer == spool.TimerVirtual }

// checkHeader compares a file's header with its name and with the job.
func (j *job) checkHeader(f *spool.File, name string) error {
	h := &f.Header
	first := &j.ranks[0].files[0].Header
	want := fileName.FindStringSubmatch(name)
	got := fmt.Sprintf("%016x.%d.%d", h.Job, h.Rank, h.Thread)
	switch {
	case want == nil:
		return fmt.Errorf("%s: records are in files named JOB.RANK.THREAD%s", f.Name, spool.Suffix)
	case strings.TrimSuffix(want[0], spool.Suffix) != got:
		return fmt.Errorf("%s: holds the records of %s (job.rank.thread): was it renamed?", f.Name, got)
	case h.Size != j.size:
		return fmt.Errorf("%s: is from a job with %d ranks, but the other files have %d: the folder mixes jobs with the same id",
			f.Name, h.Size, j.size)
	case h.ComputeClock != first.ComputeClock:
		return fmt.Errorf("%s: captured with --clock %s, but %s with %s: capture all ranks alike", f.Name,
			computeClocks[h.ComputeClock], j.ranks[0].files[0].Name, computeClocks[first.ComputeClock])
	case (h.Timer == spool.TimerVirtual) != j.virtual():
		return fmt.Errorf("%s: either this file or the others of the job were captured with simulator ranks: capture all ranks alike",
			f.Name)
	}
	return nil
}

// checkPresent finds missing ranks and threads: an error, or with partial a warning.
func (j *job) checkPresent(partial bool, w *warnings) error {
	const most = 10
	finalized := map[int]bool{}
	for _, r := range j.ranks {
		finalized[int(r.rank)] = r.finalized()
	}
	for _, u := range j.unwritten {
		if !finalized[u.rank] {
			w.add("%v.", u.err)
		}
	}
	var missing []string
	next := int32(0)
	for _, r := range j.ranks {
		for ; next < r.rank && len(missing) < most; next++ {
			missing = append(missing, fmt.Sprintf("rank %d", next))
		}
		next = r.rank + 1
		if t, misses := j.missingThread(r); misses {
			missing = append(missing, fmt.Sprintf("thread %d of rank %d", t, r.rank))
		}
	}
	for ; next < j.size && len(missing) < most; next++ {
		missing = append(missing, fmt.Sprintf("rank %d", next))
	}
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, ", ")
	if absent := int(j.size) - len(j.ranks); absent > len(missing) {
		list += fmt.Sprintf(" and others (%d of %d ranks are missing)", absent, j.size)
	}
	if !partial {
		return fmt.Errorf("spool %s: job %016x has no records of %s; put the files of all nodes into one folder, or ingest what is there with --partial",
			j.dir, j.id, list)
	}
	w.add("No records of %s: messages from and to them are unmatched.", list)
	return nil
}

// finalized reports whether the rank reached the end of MPI_Finalize: by then all its threads had written their headers.
func (r *rankSpool) finalized() bool {
	return slices.ContainsFunc(r.files, func(f *spool.File) bool {
		return f.Header.Ended == spool.EndedFinalized && !f.Doubtful
	})
}

// missingThread returns the first thread of a rank whose file is missing, or empty although the rank finalized. The
// header of thread 0 has the number of threads, but not that of a process that was killed or of an older commq.
func (j *job) missingThread(r *rankSpool) (thread int, misses bool) {
	for t, f := range r.files {
		if int(f.Header.Thread) != t {
			return t, true
		}
	}
	there := len(r.files)
	if !r.finalized() {
		return there, false
	}
	empty := slices.ContainsFunc(j.unwritten, func(u unwritten) bool { return u.rank == int(r.rank) && u.thread >= there })
	return there, empty || !r.files[0].Doubtful && int(r.files[0].Header.Threads) > there
}

// checkRecorded rejects a spool captured only to measure its size, and notes where records were dropped.
func checkRecorded(ranks []*rankSpool) error {
	for _, r := range ranks {
		for _, f := range r.files {
			if f.Header.Calls > 0 {
				return fmt.Errorf("%s: was captured with --dry-run, which keeps no records; capture without it", f.Name)
			}
			r.facts.Lossy = r.facts.Lossy || f.Header.Dropped > 0 || f.Header.Limited != 0 || r.facts.Damaged > 0
		}
	}
	return nil
}

// checkEnds finds files that were cut short between two records, because a process that reached MPI_Finalize has
// recorded it.
func (j *job) checkEnds(partial bool, w *warnings) error {
	for _, r := range j.ranks {
		f := r.files[0]
		if f.Header.Ended != spool.EndedFinalized || r.facts.Finalized || f.Header.Dropped > 0 || r.facts.Damaged > 0 {
			continue
		}
		if !partial {
			return fmt.Errorf("%s: rank %d reached MPI_Finalize, but its records end before: the file was cut short; copy it again, or ingest what is there with --partial",
				f.Name, r.rank)
		}
		w.add("The records of rank %d end before its MPI_Finalize: its file was cut short.", r.rank)
	}
	return nil
}

// warnDropped warns of calls that were not recorded, and says why.
func (j *job) warnDropped(w *warnings) {
	var full, limited, files int64
	var first struct {
		ns   int64
		file *spool.File
	}
	for _, r := range j.ranks {
		for _, f := range r.files {
			if f.Header.Limited == 0 {
				full += int64(f.Header.Dropped)
				continue
			}
			limited += int64(f.Header.Dropped)
			files++
			if ns := r.clock.Ns(r.lastTick(f)); first.file == nil || ns < first.ns {
				first.ns, first.file = ns, f
			}
		}
	}
	if full > 0 {
		w.add("%d calls could not be recorded, because there was no space left for the spool: their messages and collectives are missing.",
			full)
	}
	if files > 0 {
		h := &first.file.Header
		w.add("The records of %d threads reached their limit (--max-spool: %d bytes each), the first of them those of thread %d of rank %d at %.6f s. The %d calls that these threads made after that are not recorded: their messages and collectives are missing.",
			files, h.Limit, h.Thread, h.Rank, float64(first.ns)/1e9, limited)
	}
}

// lastTick returns when the last recorded call in a file of the rank was entered.
func (r *rankSpool) lastTick(f *spool.File) uint64 {
	if r.remote {
		return r.lastTicks[f.Header.Thread]
	}
	tick := f.Header.Clock0Tick
	for _, s := range f.All() {
		if s.Kind == spool.End {
			break
		}
		if s.Kind == spool.KindCall {
			tick = s.T0
		}
	}
	return tick
}
