package chakra

import (
	"cmp"
	"compress/gzip"
	"context"
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

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// Options control the import. The zero value works.
type Options struct {
	importing.Options // Progress counts files

	epochRows int64 // 0: the target below; tests use tiny ones
}

// epochTarget is the number of rows of an epoch over all ranks.
const epochTarget = 1 << 19

// ending is that of the files of a trace.
const ending = ".et"

// find returns the files of a job by rank: a file alone, or those of a folder, whose names end with the rank.
func find(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	byRank := map[int]string{}
	for _, e := range entries {
		if !strings.HasSuffix(strings.TrimSuffix(e.Name(), ".gz"), ending) {
			continue
		}
		full := filepath.Join(path, e.Name())
		m := lastNumber.FindStringSubmatch(e.Name())
		if m == nil {
			return nil, fmt.Errorf("%s: the name has no rank; want one such as trace.3.et", full)
		}
		n, err := strconv.Atoi(m[1])
		if err != nil || n >= importing.MostRanks {
			return nil, fmt.Errorf("%s: rank %s; want less than %d", full, m[1], importing.MostRanks)
		}
		if first, ok := byRank[n]; ok {
			return nil, fmt.Errorf("%s and %s are both of rank %d; want one file for each rank", first, full, n)
		}
		byRank[n] = full
	}
	files := make([]string, len(byRank))
	for i := range files {
		file, ok := byRank[i]
		if !ok {
			return nil, fmt.Errorf("%s: of %d traces none is of rank %d; want those of all ranks, from 0", path, len(byRank), i)
		}
		files[i] = file
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no Chakra traces (*.et)", path)
	}
	return files, nil
}

var lastNumber = regexp.MustCompile(`(\d+)\.et(?:\.gz)?$`)

// IsFolder reports whether a folder has Chakra traces.
func IsFolder(path string) bool {
	for _, pattern := range []string{"*" + ending, "*" + ending + ".gz"} {
		files, err := fs.Glob(os.DirFS(path), pattern)
		if err == nil && len(files) > 0 {
			return isTraceFile(filepath.Join(path, files[0]))
		}
	}
	return false
}

// isTraceFile reports whether a file, which may be compressed, begins as a trace does. A pipe is none.
func isTraceFile(file string) bool {
	f, in, err := opened(file, true)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 4096)
	n, _ := io.ReadFull(in, head)
	return IsTrace(head[:n])
}

// opened opens a file, which may be compressed, and returns what reads it. One of a folder must be regular; one that the
// user names may be a pipe.
func opened(file string, ofFolder bool) (f *os.File, in io.Reader, err error) {
	if ofFolder {
		f, _, err = bounded.OpenRegular(file)
	} else {
		f, err = os.Open(file)
	}
	if err != nil || !strings.HasSuffix(file, ".gz") {
		return f, f, err
	}
	if in, err = gzip.NewReader(f); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", file, err), f.Close())
	}
	return f, in, nil
}

// readFile reads the trace of a rank, which may be compressed.
func readFile(file string, ofFolder bool) (*rank, error) {
	f, in, err := opened(file, ofFolder)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readRank(in, file)
}

// ImportPath imports a trace, or those of a folder, as an untimed run of this name in a store. Without a name the run
// gets that of the file or folder.
func ImportPath(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	files, err := find(path)
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name, err = writer.NameOf(path, ".gz", ending); err != nil {
			return nil, err
		}
	}
	j := &job{o: o}
	for i, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r, err := readFile(file, file != path)
		if err != nil {
			return nil, err
		}
		j.ranks = append(j.ranks, r)
		if o.Progress != nil {
			o.Progress(int64(i+1), int64(len(files)))
		}
	}
	u, err := j.untimed(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	u.Store, u.Name, u.Replace = store, name, o.Replace
	return run.WriteUntimed(ctx, u)
}

// job is the state of an import.
type job struct {
	o      Options
	ranks  []*rank
	comms  []*comm
	byName map[string]*comm
	window int64
	tally  tally
	totals [][]total // of collectives, by communicator and instance
	lone   int64
	// resized counts the receives whose own size is not that of their message.
	resized int64
	// assumed counts the groups whose ranks no trace lists.
	assumed int64
}

// total is the size of a collective from the traces of all its members.
type total struct {
	bytes  int64 // sum; -1 if unknown
	differ bool  // members have different sizes
}

// comm is a communicator of the run: a process group.
type comm struct {
	id    int32
	name  string
	ranks []int32
	place map[int32]int32
}

// untimed returns the run to write.
func (j *job) untimed(file string) (*run.Untimed, error) {
	for _, r := range j.ranks {
		j.tally.add(&r.tally)
	}
	j.placeGroups()
	j.pair()
	if err := j.agree(); err != nil {
		return nil, err
	}
	if j.o.epochRows == 0 {
		j.o.epochRows = epochTarget
	}
	n := int64(len(j.ranks))
	j.window = max(j.o.epochRows/n, 1)
	u := &run.Untimed{Comms: j.commRows(), Epochs: 1, Callsite: func(int32, int64) int32 { return null32 }}
	for _, r := range j.ranks {
		rows := int64(len(r.steps)) + 1 // MPI_Finalize
		u.Calls = append(u.Calls, rows)
		u.Epochs = max(u.Epochs, int32((rows+j.window-1)/j.window))
	}
	next := make([]int64, n)
	u.Next = func(rank int32, events *schema.Events, _ *schema.Parts) error {
		for end := next[rank] + j.window; next[rank] < min(end, u.Calls[rank]); next[rank]++ {
			row := j.row(rank, next[rank])
			row.Epoch = int32(next[rank] / j.window)
			events.Append(&row)
		}
		return nil
	}
	origin := j.o.Origin
	origin.Trace = &schema.Trace{Format: "chakra", File: file}
	u.Manifest = schema.Manifest{Ranks: int32(n), TimeOrigin: "untimed", ComputeClock: "wall", Record: "all",
		Hash: "none", Ended: schema.EndedNames[schema.EndedFinalized], Warnings: j.warnings(), Origin: origin}
	return u, nil
}

// placeGroups makes a communicator of each process group: with the ranks that a trace lists, else with those that use
// it.
func (j *job) placeGroups() {
	world := &comm{name: "", place: map[int32]int32{}}
	for i := range j.ranks {
		world.ranks = append(world.ranks, int32(i))
	}
	j.comms, j.byName = []*comm{world}, map[string]*comm{"": world}
	users, listed, described := map[string][]int32{}, map[string][]int32{}, map[string]string{}
	var names []string
	for i, r := range j.ranks {
		for name, g := range r.groups {
			listed[name], described[name] = g.Ranks, g.Description
		}
		for k := range r.ops {
			name := r.ops[k].group
			if all := users[name]; len(all) == 0 || all[len(all)-1] != int32(i) {
				users[name] = append(all, int32(i))
			}
		}
	}
	for name := range users {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		members, ok := listed[name]
		if !ok {
			members = users[name]
			j.assumed++
		}
		own := ok && len(members) > 0
		if ok && !own {
			members = world.ranks // PyTorch lists none for the group of all
		}
		j.addComm(name, described[name], members, own)
	}
	for _, c := range j.comms {
		c.place = make(map[int32]int32, len(c.ranks))
		for place, world := range c.ranks {
			c.place[world] = int32(place)
		}
	}
}

// addComm adds a communicator with the members that have a trace. One of all ranks that no trace lists is communicator
// 0; a listed one (own) may be another one of all ranks, whose collectives have an order of their own. A group without
// such members is none of the run's.
func (j *job) addComm(name, description string, members []int32, own bool) {
	members = slices.DeleteFunc(slices.Clone(members), func(r int32) bool { return r < 0 || int(r) >= len(j.ranks) })
	seen := map[int32]bool{}
	members = slices.DeleteFunc(members, func(r int32) bool { again := seen[r]; seen[r] = true; return again })
	if !own && slices.Equal(members, j.comms[0].ranks) {
		j.byName[name] = j.comms[0]
		if j.comms[0].name == "" {
			j.comms[0].name = cmp.Or(description, name)
		}
		return
	}
	c := &comm{id: int32(len(j.comms)), name: cmp.Or(description, name), ranks: members}
	j.byName[name] = c
	if len(members) > 0 {
		j.comms = append(j.comms, c)
	}
}

// commOf returns the communicator of an operation, nil if its rank is not a member. Messages name world ranks, so that
// they are on that of all ranks.
func (j *job) commOf(rank int32, o *op) *comm {
	if o.isMessage() {
		return j.comms[0]
	}
	c := j.byName[o.group]
	if _, ok := c.place[rank]; !ok {
		return nil
	}
	return c
}

func (o *op) isMessage() bool { return o.call == schema.CallIbsend || o.call == schema.CallIrecv }

// channel identifies the messages that a send and a receive are matched in.
type channel struct{ src, dst, tag int32 }

// pair drops messages without a partner, which exist if not all ranks have traces, and gives receives the size of their
// message.
func (j *job) pair() {
	type end struct{ rank, op int32 }
	sends, recvs := map[channel][]end{}, map[channel][]end{}
	for i, r := range j.ranks {
		for _, s := range r.steps {
			o := &r.ops[s.op]
			if s.wait || !o.isMessage() {
				continue
			}
			if o.call == schema.CallIbsend {
				c := channel{int32(i), o.peer, o.tag}
				sends[c] = append(sends[c], end{int32(i), s.op})
			} else {
				c := channel{o.peer, int32(i), o.tag}
				recvs[c] = append(recvs[c], end{int32(i), s.op})
			}
		}
	}
	drop := func(all []end) {
		for _, e := range all {
			j.ranks[e.rank].ops[e.op].dropped = true
			j.lone++
		}
	}
	for c, s := range sends {
		r := recvs[c]
		both := min(len(s), len(r))
		for i := range both {
			got, sent := &j.ranks[r[i].rank].ops[r[i].op], j.ranks[s[i].rank].ops[s[i].op].bytes
			if got.bytes >= 0 && sent >= 0 && got.bytes != sent {
				j.resized++
			}
			got.bytes = sent
		}
		drop(s[both:])
		drop(r[both:])
		delete(recvs, c)
	}
	for _, r := range recvs {
		drop(r)
	}
	for i, r := range j.ranks {
		r.dropLone()
		for k := range r.ops {
			if o := &r.ops[k]; !o.dropped && j.commOf(int32(i), o) == nil {
				j.tally.outside++
			}
		}
	}
}

// dropLone removes the steps of dropped messages.
func (r *rank) dropLone() {
	kept := r.steps[:0]
	carry := int64(0)
	for _, s := range r.steps {
		s.computeNs += carry
		carry = 0
		if r.ops[s.op].dropped {
			carry = s.computeNs
			continue
		}
		if s.wait {
			r.ops[s.op].done = int64(len(kept))
		} else {
			r.ops[s.op].seq = int64(len(kept))
		}
		kept = append(kept, s)
	}
	r.steps = kept
	r.restNs += carry
}

// agree checks that the members of each communicator made the same operations, and numbers them.
func (j *job) agree() error {
	made := make([][]*op, len(j.comms))
	j.totals = make([][]total, len(j.comms))
	first := make([]int32, len(j.comms)) // the first rank of each that has a trace
	for i := range first {
		first[i] = -1
	}
	for i, r := range j.ranks {
		count := make([]int, len(j.comms))
		for _, s := range r.steps {
			o := &r.ops[s.op]
			if s.wait || o.isMessage() {
				continue
			}
			c := j.commOf(int32(i), o)
			if c == nil {
				continue
			}
			n := count[c.id]
			count[c.id]++
			if first[c.id] < 0 {
				first[c.id] = int32(i)
			}
			if int32(i) == first[c.id] {
				made[c.id] = append(made[c.id], o)
				j.totals[c.id] = append(j.totals[c.id], total{})
			} else if n >= len(made[c.id]) || made[c.id][n].call != o.call {
				return fmt.Errorf("%s: operation %d of group %q is %s here, and another one or none in %s; all ranks of a "+
					"group make the same", r.file, n, c.name, o.call, j.ranks[first[c.id]].file)
			}
			o.instance = int64(n)
			j.totals[c.id][n].add(o.bytes, made[c.id][n].bytes)
		}
		for _, c := range j.comms {
			if _, ok := c.place[int32(i)]; ok && first[c.id] < 0 {
				first[c.id] = int32(i)
			} else if ok && count[c.id] != len(made[c.id]) {
				return fmt.Errorf("%s: %d operations of group %q, and %d in %s; all ranks of a group make the same", r.file,
					count[c.id], c.name, len(made[c.id]), j.ranks[first[c.id]].file)
			}
		}
	}
	return nil
}

// add adds the bytes of a member; first are those of the first one.
func (t *total) add(bytes, first int64) {
	t.differ = t.differ || bytes != first
	if bytes < 0 || t.bytes < 0 || t.bytes > mostBytes {
		t.bytes = -1
	} else {
		t.bytes += bytes
	}
}
