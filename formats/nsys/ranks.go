package nsys

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/training"
)

// device is a rank of the run: a GPU of a process.
type device struct {
	process *process
	number  int64 // of the GPU, if the process uses several
	ops     []operation
	world   int32
}

// comm is a communicator of NCCL that payloads name.
type comm struct {
	id    uint64
	ranks int32             // Unknown if no function that made it was recorded
	of    map[int32]*device // by the rank in it
	users map[*device]bool
}

// job is the state of an import.
type job struct {
	exports []*export
	devices []*device
	comms   map[uint64]*comm
	ranks   int32 // of the job, as far as it is known
	tally   tally
	// order says by what the ranks are numbered.
	order string
	// assumed is the number of communicators whose members are those that used them.
	assumed int64
}

// newJob makes the ranks of the processes that have operations.
func newJob(exports []*export) *job {
	j := &job{exports: exports, comms: map[uint64]*comm{}}
	for _, x := range exports {
		for _, p := range x.sorted() {
			j.add(p)
		}
	}
	j.number()
	return j
}

// add adds the devices of a process.
func (j *job) add(p *process) {
	ops := p.operations(&j.tally)
	if len(ops) == 0 {
		return
	}
	byNumber := map[int64]*device{}
	var devices []*device
	for _, o := range ops {
		if o.ran && byNumber[o.device] == nil {
			byNumber[o.device] = &device{process: p, number: o.device}
			devices = append(devices, byNumber[o.device])
		}
	}
	if len(devices) == 0 {
		devices = []*device{{process: p}}
	}
	slices.SortFunc(devices, func(a, b *device) int { return cmp.Compare(a.number, b.number) })
	for _, o := range ops {
		d := devices[0]
		if o.ran {
			d = byNumber[o.device]
		}
		d.ops = append(d.ops, o)
		if o.comm != 0 {
			j.comm(o.comm).users[d] = true
		}
	}
	j.devices = append(j.devices, devices...)
	j.join(p, devices)
	p.onDevice = len(p.kernels) > 0
	p.events, p.kernels, p.launches = nil, nil, nil // they take the most memory
}

func (j *job) comm(id uint64) *comm {
	c := j.comms[id]
	if c == nil {
		c = &comm{id: id, ranks: training.Unknown, of: map[int32]*device{}, users: map[*device]bool{}}
		j.comms[id] = c
	}
	return c
}

// join notes the ranks of a process in communicators, as the functions that made them tell.
func (j *job) join(p *process, devices []*device) {
	for i := range p.events {
		e := &p.events[i]
		if e.is != joins || e.comm == 0 || e.ranks < 1 || e.rank < 0 || e.rank >= e.ranks || e.ranks > importing.MostRanks {
			continue
		}
		d := devices[0]
		if len(devices) > 1 {
			at := slices.IndexFunc(devices, func(d *device) bool { return d.number == int64(e.cuda) })
			if at < 0 {
				continue
			}
			d = devices[at]
		}
		c := j.comm(e.comm)
		c.ranks = max(c.ranks, e.ranks)
		c.of[e.rank] = d
	}
}

// number gives the devices their ranks, by the first source that tells them all.
func (j *job) number() {
	slices.SortStableFunc(j.devices, func(a, b *device) int {
		return cmp.Or(cmp.Compare(a.process.export.path, b.process.export.path), cmp.Compare(a.process.id,
			b.process.id),
			cmp.Compare(a.number, b.number))
	})
	sources := []struct {
		of   string
		rank func(d *device) int32
	}{
		{"their ranks in the largest communicator of NCCL", j.rankInLargest()},
		{"their ranks of MPI", func(d *device) int32 { return d.process.mpiRank }},
		{"the environment of their processes", j.rankInEnvironment},
		{"the names of the files", j.rankInNames()},
	}
	for _, s := range sources {
		if j.numberBy(s.rank) {
			j.order = s.of
			return
		}
	}
	for i, d := range j.devices {
		d.world = int32(i)
	}
	j.ranks = max(j.ranks, int32(len(j.devices)))
	j.order = "the order of their files, processes and GPUs"
}

// numberBy numbers the devices if a source gives each a number of its own.
func (j *job) numberBy(rank func(d *device) int32) bool {
	seen := map[int32]bool{}
	for _, d := range j.devices {
		r := rank(d)
		if r < 0 || r >= importing.MostRanks || seen[r] {
			return false
		}
		seen[r] = true
	}
	for _, d := range j.devices {
		d.world = rank(d)
		j.ranks = max(j.ranks, d.world+1)
	}
	return true
}

// rankInLargest returns the rank of a device in the largest communicator that all devices are in.
func (j *job) rankInLargest() func(d *device) int32 {
	var largest *comm
	for _, c := range j.sortedComms() {
		if len(c.of) == len(j.devices) && (largest == nil || c.ranks > largest.ranks) {
			largest = c
		}
	}
	if largest == nil {
		return func(*device) int32 { return training.Unknown }
	}
	j.ranks = max(j.ranks, largest.ranks)
	of := map[*device]int32{}
	for rank, d := range largest.of {
		of[d] = rank
	}
	return func(d *device) int32 {
		if rank, ok := of[d]; ok {
			return rank
		}
		return training.Unknown
	}
}

func (j *job) sortedComms() []*comm {
	all := make([]*comm, 0, len(j.comms))
	for _, c := range j.comms {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *comm) int { return cmp.Compare(a.id, b.id) })
	return all
}

// rankInEnvironment returns the rank that a launcher told the only process of an export.
func (j *job) rankInEnvironment(d *device) int32 {
	if j.hasSeveral(d.process.export) {
		return training.Unknown
	}
	env := d.process.export.env
	for _, pair := range rankVariables {
		rank, err := strconv.ParseInt(env[pair[0]], 10, 32)
		if err != nil || rank < 0 || rank >= importing.MostRanks {
			continue
		}
		if size, err := strconv.ParseInt(env[pair[1]], 10, 32); err == nil && size > rank && size <= importing.MostRanks {
			j.ranks = max(j.ranks, int32(size))
		}
		return int32(rank)
	}
	return training.Unknown
}

// hasSeveral reports whether several ranks are of one export.
func (j *job) hasSeveral(x *export) bool {
	n := 0
	for _, d := range j.devices {
		if d.process.export == x {
			n++
		}
	}
	return n > 1
}

var (
	rankWord   = regexp.MustCompile(`(?i)rank[-_.]?(\d+)`)
	lastNumber = regexp.MustCompile(`(\d+)\D*$`)
)

// rankInNames returns the ranks in the names of the files: report.rank3.sqlite, report_3.sqlite. One file alone says
// nothing. A number without the word counts as a rank only if the numbers of all files begin at 0 and few are missing:
// others are numbers of reports, jobs or processes.
func (j *job) rankInNames() func(d *device) int32 {
	of := map[*device]int32{}
	least, most, plain := int32(importing.MostRanks), int32(0), false
	for _, d := range j.devices {
		n, isPlain := numberIn(filepath.Base(d.process.export.path))
		if len(j.exports) < 2 || j.hasSeveral(d.process.export) {
			n = training.Unknown
		}
		of[d] = n
		least, most, plain = min(least, n), max(most, n), plain || isPlain
	}
	if plain && (least != 0 || int(most) >= 2*len(j.devices)) {
		return func(*device) int32 { return training.Unknown }
	}
	return func(d *device) int32 { return of[d] }
}

// numberIn returns the rank in the name of a file, Unknown if there is none, and whether it is a number without the
// word.
func numberIn(name string) (n int32, isPlain bool) {
	m := rankWord.FindStringSubmatch(name)
	if m == nil {
		m, isPlain = lastNumber.FindStringSubmatch(name), true
	}
	if m == nil {
		return training.Unknown, false
	}
	rank, err := strconv.ParseInt(m[1], 10, 32)
	if err != nil || rank >= importing.MostRanks {
		return training.Unknown, isPlain
	}
	return int32(rank), isPlain
}

// absent lists ranks below the highest that no export has, separated by commas; empty if there are none.
func (j *job) absent() string {
	has := map[int32]bool{}
	for _, d := range j.devices {
		has[d.world] = true
	}
	var words []string
	for rank := int32(0); rank < j.ranks && len(words) <= mostListed; rank++ {
		if !has[rank] {
			words = append(words, strconv.Itoa(int(rank)))
		}
	}
	if len(words) > mostListed {
		words[mostListed] = "..."
	}
	return strings.Join(words, ", ")
}

// members returns the ranks of a communicator's members; nil if they are not known.
func (j *job) members(c *comm) (ranks []int32) {
	if c.ranks < 0 {
		if len(c.users) < 2 {
			return nil
		}
		for d := range c.users {
			ranks = append(ranks, d.world)
		}
		slices.Sort(ranks)
		j.assumed++
		return ranks
	}
	same := c.ranks == j.ranks
	for rank, d := range c.of {
		same = same && d.world == rank
	}
	if !same && len(c.of) < int(c.ranks) {
		return nil
	}
	for i := range c.ranks {
		if same {
			ranks = append(ranks, i)
		} else {
			ranks = append(ranks, c.of[i].world)
		}
	}
	return ranks
}

// groups returns the groups of the job, and the index of each communicator's.
func (j *job) groups() (all []training.Group, of map[uint64]int) {
	of = map[uint64]int{}
	for _, c := range j.sortedComms() {
		if len(c.users) == 0 {
			continue
		}
		name := fmt.Sprintf("%#x", c.id)
		of[c.id] = len(all)
		all = append(all, training.Group{Name: name, Description: "communicator " + name, Ranks: j.members(c)})
	}
	return all, of
}
