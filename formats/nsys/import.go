package nsys

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/jsonstream"
	"github.com/commq/commq/formats/training"
	"github.com/commq/commq/schema"
)

// Options control the import.
type Options = importing.Options

// format is the name of the format.
const format = "nsys"

// endings are those of the files.
var endings = []string{".sqlite", ".sqlite3", ".db", ".nsys-rep"}

// ImportPath imports an export, or those in a folder, as the run of this name in a store. Without a name the run gets
// that of the file or folder. It has the operations of NCCL, or the calls of MPI if there are more of these. Memory
// grows with the operations of libraries for collectives, not with the size of the files. An error names the file, the
// table, the row and what was found.
func ImportPath(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	exports, err := readAll(ctx, path, o.Progress)
	if err != nil {
		return nil, err
	}
	if isMPI(exports) {
		return importMPI(ctx, exports, path, store, name, o)
	}
	return training.ImportPath(ctx, path, store, name, o, endings,
		func(context.Context, string, func(read, all int64)) ([]*training.Rank, training.Options, error) {
			return ranksOf(exports)
		})
}

// IsFolder reports whether a folder has exports of Nsight Systems.
func IsFolder(path string) bool {
	_, err := find(path)
	return err == nil
}

// find returns the exports of a job: a file alone, or those of a folder.
func find(path string) ([]string, error) {
	return jsonstream.Files(path, func(string) bool { return true }, IsTrace, "exports of Nsight Systems; want SQLite "+
		"databases, which nsys export --type sqlite writes of a .nsys-rep")
}

// readAll reads the exports of a job. Other databases in a folder are not read.
func readAll(ctx context.Context, path string, progress func(read, all int64)) (all []*export, err error) {
	files, err := find(path)
	if err != nil {
		return nil, err
	}
	for i, name := range files {
		x, err := readFile(ctx, name)
		if err != nil {
			return nil, err
		}
		if x != nil {
			all = append(all, x)
		} else if name == path {
			return nil, notExport(path)
		}
		if progress != nil {
			progress(int64(i+1), int64(len(files)))
		}
	}
	if len(all) == 0 {
		return nil, notExport(path)
	}
	return all, nil
}

func notExport(path string) error {
	return fmt.Errorf("%s: no table of Nsight Systems; want a database with StringIds and NVTX_EVENTS or "+
		"CUPTI_ACTIVITY_KIND_KERNEL, as nsys export --type sqlite writes", path)
}

// readFile reads a file; nil if it is another database.
func readFile(ctx context.Context, path string) (*export, error) {
	f, err := open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer f.close()
	if !f.isExport() {
		return nil, nil
	}
	return readExport(ctx, f)
}

// ranksOf makes ranks of a run of the exports.
func ranksOf(exports []*export) ([]*training.Rank, training.Options, error) {
	how := training.Options{Format: format}
	j := newJob(exports)
	if len(j.devices) == 0 {
		return nil, how, fmt.Errorf("%s: no operation of NCCL in it (%s); record a part of the program that "+
			"communicates, with nsys profile --trace=cuda,nvtx", exports[0].path, j.found())
	}
	least := exports[0].baseNs
	for _, x := range exports {
		least = min(least, x.baseNs)
	}
	groups, of := j.groups()
	var ranks []*training.Rank
	var bases []int64
	for _, d := range j.devices {
		ranks = append(ranks, j.rank(d, groups, of))
		bases = append(bases, d.process.export.baseNs-least)
	}
	how.Numbered = align(ranks, bases)
	how.Warnings = j.warnings()
	if how.Numbered {
		how.Warnings = append(how.Warnings, "The exports name no communicators: operations count on all ranks, and "+
			"those whose kernels overlap in time on all ranks are taken as one. Those outside of a rank's recorded "+
			"time count as dropped.")
	}
	for i, r := range ranks {
		r.Close()
		r.Later(bases[i])
	}
	return ranks, how, nil
}

// rank makes a rank of the run of a device.
func (j *job) rank(d *device, groups []training.Group, of map[uint64]int) *training.Rank {
	p := d.process
	r := &training.Rank{File: p.export.path, Rank: d.world, World: j.ranks, Host: p.export.host, Groups: groups,
		HasGroups: len(groups) > 0, Steps: p.namedSteps(), Device: p.onDevice, Events: p.read}
	if busy := p.busy[d.number]; busy != nil && p.onDevice {
		r.Busy = *busy
	}
	r.Ops = make([]training.Op, 0, len(d.ops))
	for i := range d.ops {
		o := &d.ops[i]
		size := int64(training.Unknown)
		if o.comm != 0 {
			if g, ok := of[o.comm]; ok {
				o.Group = g
				size = int64(len(groups[g].Ranks))
			}
			size = max(size, int64(j.comms[o.comm].ranks))
		}
		o.settle(size)
		r.Ops = append(r.Ops, o.Op)
	}
	d.ops = nil
	return r
}

// settle sets the sizes of an operation on a group of this many ranks.
func (o *operation) settle(ranks int64) {
	if !o.total {
		o.InElements, o.OutElements = training.ArgumentSizes(o.Call, o.bytes, cmp.Or(max(ranks, 0), training.Unknown))
		return
	}
	o.InSplit, o.OutSplit = uneven(o.splits[0], ranks), uneven(o.splits[1], ranks)
}

// uneven returns the shares of the members of a group, nil if they are even or not all known.
func uneven(shares map[int32]int64, ranks int64) (split []int64) {
	if ranks < 1 || int64(len(shares)) > ranks {
		return nil
	}
	even := int64(len(shares)) == ranks
	for rank := range int32(ranks) {
		split = append(split, shares[rank])
		even = even && shares[rank] == shares[0]
	}
	if even {
		return nil
	}
	return split
}

// namedSteps returns the steps of a process, the first by time first; those without a number get one.
func (p *process) namedSteps() []training.Step {
	steps := slices.Clone(p.steps)
	slices.SortStableFunc(steps, func(a, b training.Step) int { return cmp.Compare(a.StartNs, b.StartNs) })
	for i := range steps {
		if name := steps[i].Name; name[len(name)-1] < '0' || name[len(name)-1] > '9' {
			steps[i].Name = fmt.Sprintf("%s %d", name, i)
		}
	}
	return steps
}
