package ingest

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/commq/commq/capture/spool"
)

// JobInfo is a job whose files lie in a spool folder.
type JobInfo struct {
	// ID is the job's id, 16 hexadecimal digits.
	ID string
	// Ranks is the number of processes in the job's MPI_COMM_WORLD.
	Ranks int32
	// Files are the names of its files in the folder.
	Files []string
	// Summaries are the names of the files that its simulator ranks left there beside the records.
	Summaries []string
	// Program is the path of the executable.
	Program string
	// Started is when the first of its processes called MPI_Init.
	Started time.Time
}

var fileName = regexp.MustCompile(`^([0-9a-f]{16})\.([0-9]{1,9})\.([0-9]{1,9})\` + spool.Suffix + `$`)

// Jobs lists the jobs whose files lie in the spool folder, by when they started: a script may run several MPI programs.
// An empty folder has none; a folder that is not there, or a file in it that is no spool file, is an error.
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
		if err := j.describe(spoolDir); err != nil {
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

// describe fills in what the header of the job's first file says.
func (j *JobInfo) describe(dir string) error {
	path := filepath.Join(dir, j.Files[0])
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data := make([]byte, spool.HeaderBytes)
	if _, err := io.ReadFull(f, data); err != nil {
		return fmt.Errorf("%s: shorter than a header: not a spool file, or cut short", path)
	}
	s, err := spool.Parse(path, data)
	if err != nil {
		return err
	}
	j.Ranks = s.Header.Size
	j.Program = spool.Text(s.Header.Program[:])
	j.Started = time.Unix(0, s.Header.RealtimeNs).UTC()
	return nil
}

// noRecords says where records may be instead: commq capture puts those of each launch into a folder of its own.
func noRecords(dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"+spool.Suffix))
	var folders []string
	for _, f := range found {
		if fileName.MatchString(filepath.Base(f)) {
			folders = append(folders, filepath.Dir(f))
		}
	}
	folders = slices.Compact(folders)
	if err != nil || len(folders) == 0 {
		return fmt.Errorf("spool %s: no records in it (files named JOB.RANK.THREAD%s); was the program run under commq exec or commq env?", dir, spool.Suffix)
	}
	if n := len(folders); n > 5 {
		folders = append(folders[:5], fmt.Sprintf("and %d more", n-5))
	}
	return fmt.Errorf("spool %s: no records in it, but in folders of it; name one of them: %s", dir, strings.Join(folders, ", "))
}

// openJob maps the files of the job that the options choose and checks that they belong together.
func openJob(dir string, o Options) (*job, error) {
	return openFiles(dir, o, func(info *JobInfo) ([]string, error) { return info.Files, nil }, func(j *job, info *JobInfo) error {
		if err := j.checkPresent(); err != nil {
			return err
		}
		return j.readSummaries(info.Summaries)
	})
}

// openFiles maps those files of the job that the options choose, and has check look at what is in them.
func openFiles(dir string, o Options, choose func(*JobInfo) ([]string, error), check func(*job, *JobInfo) error) (*job, error) {
	info, err := Find(dir, o.Job)
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
	j := &job{o: o, dir: dir, id: id, size: info.Ranks}
	if err = j.open(files); err == nil {
		err = check(j, info)
	}
	if err != nil {
		j.close()
		return nil, err
	}
	return j, nil
}

// Find returns the job of that id in the spool folder, or the only one there when id is empty. The error says what lies
// there instead.
func Find(dir, id string) (*JobInfo, error) {
	jobs, err := Jobs(dir)
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, noRecords(dir)
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
		return nil, fmt.Errorf("spool %s: records of %d jobs; choose one with --job: %s", dir, len(jobs), list)
	}
	return nil, fmt.Errorf("spool %s: no job %s; there is %s", dir, id, list)
}

// open maps the files and sorts them by rank and thread.
func (j *job) open(names []string) error {
	for _, name := range names {
		f, err := spool.Open(filepath.Join(j.dir, name))
		if err != nil {
			return err
		}
		j.add(f)
		if err := j.checkHeader(f, name); err != nil {
			return err
		}
	}
	j.sort()
	return nil
}

// add adds a file to its rank.
func (j *job) add(f *spool.File) {
	for _, r := range slices.Backward(j.ranks) { // files come by rank, more or less
		if r.rank == f.Header.Rank {
			r.files = append(r.files, f)
			return
		}
	}
	j.ranks = append(j.ranks, &rankSpool{rank: f.Header.Rank, blockRows: min(maxBlockRows, max(1, j.o.epochRows/64)), files: []*spool.File{f}})
}

func (j *job) sort() {
	slices.SortFunc(j.ranks, func(a, b *rankSpool) int { return cmp.Compare(a.rank, b.rank) })
	for _, r := range j.ranks {
		slices.SortFunc(r.files, func(a, b *spool.File) int { return cmp.Compare(a.Header.Thread, b.Header.Thread) })
	}
}

// checkHeader compares a file's header with its name and with the job.
func (j *job) checkHeader(f *spool.File, name string) error {
	h := &f.Header
	first := &j.ranks[0].files[0].Header
	want := fileName.FindStringSubmatch(name)
	got := fmt.Sprintf("%016x.%d.%d", h.Job, h.Rank, h.Thread)
	switch {
	case strings.TrimSuffix(want[0], spool.Suffix) != got:
		return fmt.Errorf("%s: holds the records of %s (job.rank.thread): was it renamed?", f.Name, got)
	case h.Size != j.size:
		return fmt.Errorf("%s: of a job with %d ranks, the files of the others say %d: the folder mixes jobs of one id", f.Name, h.Size, j.size)
	case h.ComputeClock != first.ComputeClock:
		return fmt.Errorf("%s: captured with --clock %s, %s with %s: capture all ranks alike", f.Name, computeClocks[h.ComputeClock], j.ranks[0].files[0].Name, computeClocks[first.ComputeClock])
	case (h.Timer == spool.TimerVirtual) != j.virtual():
		return fmt.Errorf("%s: captured with simulator ranks or without, other files of the job the other way: capture all ranks alike", f.Name)
	}
	return nil
}

// checkPresent sees to it that all ranks and their threads are there, or warns with Partial.
func (j *job) checkPresent() error {
	var missing []string
	next := int32(0)
	for _, r := range j.ranks {
		for ; next < r.rank && len(missing) < 10; next++ {
			missing = append(missing, fmt.Sprintf("rank %d", next))
		}
		next = r.rank + 1
		for t, f := range r.files {
			if int(f.Header.Thread) != t {
				missing = append(missing, fmt.Sprintf("thread %d of rank %d", t, r.rank))
				break
			}
		}
	}
	for ; next < j.size && len(missing) < 10; next++ {
		missing = append(missing, fmt.Sprintf("rank %d", next))
	}
	if len(missing) == 0 {
		return nil
	}
	list := strings.Join(missing, ", ")
	if absent := int(j.size) - len(j.ranks); absent > len(missing) {
		list += fmt.Sprintf(" and others (%d of %d ranks are missing)", absent, j.size)
	}
	if !j.o.Partial {
		return fmt.Errorf("spool %s: job %016x has no records of %s; put the files of all nodes into one folder, or ingest what is there with --partial", j.dir, j.id, list)
	}
	j.warn("No records of %s: messages from and to them are unmatched.", list)
	return nil
}

// checkKept refuses a spool of which only the size was to be known, and notes where records were dropped.
func (j *job) checkKept() error {
	for _, r := range j.ranks {
		for _, f := range r.files {
			if f.Header.Calls > 0 {
				return fmt.Errorf("%s: was captured with --dry-run, which keeps no records; capture without it", f.Name)
			}
			r.lossy = r.lossy || f.Header.Dropped > 0 || f.Header.Limited != 0
		}
	}
	return nil
}

// warnDropped says what was not recorded, and why.
func (j *job) warnDropped() {
	var full, limited, files int64
	first := struct {
		ns   int64
		file *spool.File
	}{ns: math.MaxInt64}
	for _, r := range j.ranks {
		for _, f := range r.files {
			if f.Header.Limited == 0 {
				full += int64(f.Header.Dropped)
				continue
			}
			limited += int64(f.Header.Dropped)
			files++
			if ns := r.clock.at(r.lastTick(f)); ns < first.ns {
				first.ns, first.file = ns, f
			}
		}
	}
	if full > 0 {
		j.warn("%d calls could not be recorded, because there was no space left for the spool: their messages and collectives are missing.", full)
	}
	if files > 0 {
		h := &first.file.Header
		j.warn("The records of %d threads reached their bound (--max-spool: %d bytes each), first those of thread %d of rank %d at %.6f s. The %d calls that these threads made from there on are not recorded: their messages and collectives are missing.",
			files, h.Limit, h.Thread, h.Rank, float64(first.ns)/1e9, limited)
	}
}

// lastTick is when the last recorded call of a file of the rank was entered.
func (r *rankSpool) lastTick(f *spool.File) uint64 {
	if r.elsewhere {
		return r.lastTicks[f.Header.Thread]
	}
	tick := f.Header.Clock0Tick
	for i := range f.Slots {
		if f.Slots[i].Kind == spool.End {
			break
		}
		if f.Slots[i].Kind == spool.KindCall {
			tick = f.Slots[i].T0
		}
	}
	return tick
}

// checkEnds finds files that were cut short at the border of a record: a process that reached MPI_Finalize recorded it.
func (j *job) checkEnds() error {
	for _, r := range j.ranks {
		f := r.files[0]
		if f.Header.Ended != spool.EndedFinalized || r.finalized || f.Header.Dropped > 0 {
			continue
		}
		if !j.o.Partial {
			return fmt.Errorf("%s: rank %d reached MPI_Finalize, but its records end before: the file was cut short; copy it again, or ingest what is there with --partial", f.Name, r.rank)
		}
		j.warn("The records of rank %d end before its MPI_Finalize: its file was cut short.", r.rank)
	}
	return nil
}

func (j *job) close() {
	for _, r := range j.ranks {
		for _, f := range r.files {
			_ = f.Close() // read-only pages: nothing is lost
		}
	}
}

// payload reads fixed fields from the front of a definition's payload.
func payload[T any](data []byte) (v T, rest []byte, err error) {
	if uintptr(len(data)) < unsafe.Sizeof(v) {
		return v, nil, errors.New("payload too short")
	}
	_, err = binary.Decode(data, binary.LittleEndian, &v)
	return v, data[unsafe.Sizeof(v):], err
}
