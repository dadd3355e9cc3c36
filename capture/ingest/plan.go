package ingest

import (
	"fmt"
	"time"

	"github.com/commq/commq/capture/ingest/clocks"
	"github.com/commq/commq/capture/ingest/handles"
	"github.com/commq/commq/capture/ingest/sites"
	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/schema"
)

// warnings are the manifest's sentences about problems of a run.
type warnings []string

func (w *warnings) add(format string, args ...any) { *w = append(*w, fmt.Sprintf(format, args...)) }

// addFirst adds the sentences, at most maxNamed of them.
func (w *warnings) addFirst(list []string) { *w = append(*w, list[:min(len(list), maxNamed)]...) }

// maxNamed is the largest number of calls in progress, and of unreadable modules, that the warnings list.
const maxNamed = 8

// plan is the result of the first pass over all ranks that the second pass needs: the definitions of the run, its
// clock and its epochs.
type plan struct {
	rows   int64 // of all ranks
	comms  *handles.Table
	types  *schema.Datatypes
	sites  []schema.Callsite
	stack  int32 // frames that were walked; 0: none
	hosts  []clocks.Host
	hostOf map[int32]int32 // index in hosts by rank
	filter selection
	bounds []int64 // when epochs 1, 2, ... begin
}

// epochs returns the number of epochs.
func (p *plan) epochs() int32 { return int32(len(p.bounds)) + 1 }

// partSites are the call sites of ranks whose records are on other machines.
type partSites struct {
	paths    []sites.Path
	frames   map[sites.Key][]symbols.Frame // of all ranks, so that nothing needs to be looked up here
	warnings []string
}

// newPlan makes the plan of a job whose ranks have been scanned, and gives every rank its clock and its call sites.
// remote is nil when all records are here.
func newPlan(j *job, o *Options, remote *partSites, w *warnings) (*plan, error) {
	if err := j.checkEnds(o.Partial, w); err != nil {
		return nil, err
	}
	p := &plan{hostOf: map[int32]int32{}}
	for _, r := range j.ranks {
		p.rows += r.facts.Rows
	}
	var err error
	if p.filter, err = newSelection(j.ranks, o); err != nil {
		return nil, err
	}
	defs := make([]*handles.Definitions, len(j.ranks))
	for i, r := range j.ranks {
		defs[i] = r.facts.Handles
	}
	var warning string
	if p.comms, warning, err = handles.UnifyComms(j.size, defs); err != nil {
		return nil, err
	}
	if warning != "" {
		w.add("%s", warning)
	}
	p.types = handles.UnifyTypes(defs)
	p.setSites(j, o, remote, w)
	if err := p.setClocks(j, o, w); err != nil {
		return nil, err
	}
	if p.rows > mostRows {
		return nil, fmt.Errorf("the ranks have %d calls in all: an index of another part is damaged", p.rows)
	}
	size := o.epochRows
	if size <= 0 {
		size = min(max(p.rows/usualEpochs, leastEpoch), mostEpoch)
	}
	p.bounds = epochBounds(j.ranks, p.rows, size)
	return p, nil
}

// setSites numbers the call sites of all ranks.
func (p *plan) setSites(j *job, o *Options, remote *partSites, w *warnings) {
	mixed := false
	for i, r := range j.ranks {
		stack := int32(r.files[0].Header.Stack)
		mixed = mixed || i > 0 && stack != p.stack
		p.stack = max(p.stack, stack)
	}
	if mixed {
		w.add("The ranks' call sites have different numbers of frames, at most %d.", p.stack)
	}
	tree := &sites.Tree{}
	leaves := make([]map[uint32]*sites.Node, len(j.ranks))
	for i, r := range j.ranks {
		if r.files[0].Header.Stack > 0 && !r.remote {
			leaves[i] = tree.Add(&r.sites)
		}
	}
	var frames map[sites.Key][]symbols.Frame
	var moduleWarnings []string
	switch {
	case remote != nil:
		for _, path := range remote.paths {
			tree.AddPath(path)
		}
		frames, moduleWarnings = remote.frames, remote.warnings
	case !o.NoSymbols:
		frames, moduleWarnings = tree.Resolve(j.started())
	}
	w.addFirst(moduleWarnings)
	p.sites = tree.Number(frames)
	for i, r := range j.ranks {
		for number, n := range leaves[i] {
			r.siteID.Set(int64(number), n.ID())
		}
	}
}

// setClocks puts all ranks on one clock.
func (p *plan) setClocks(j *job, o *Options, w *warnings) error {
	ranks := make([]clocks.Rank, len(j.ranks))
	for i, r := range j.ranks {
		ranks[i] = clocks.Rank{Rank: r.rank, Pairs: r.facts.Pairs, HasCalls: r.facts.Rows > 0}
		for _, f := range r.files {
			ranks[i].Files = append(ranks[i].Files, clocks.File{Name: f.Name, Header: &f.Header})
		}
		if r.facts.Rows > 0 {
			ranks[i].FirstTick = r.blocks[0].t0
		}
	}
	base, err := clocks.Unify(ranks, o.TimeResolutionNs)
	if err != nil {
		return err
	}
	p.hosts = base.Hosts
	for i, r := range j.ranks {
		r.clock, p.hostOf[r.rank] = base.ByRank[i], base.HostOf[i]
	}
	*w = append(*w, base.Warnings...)
	return nil
}

// layout distributes the rows of some ranks over the files of a table.
type layout struct {
	ranks   []*rankSpool
	rows    int64   // of these ranks
	shards  int     // files of a table
	shardOf []int32 // by index in ranks
}

// newLayout cuts the ranks into ranges with about equal numbers of rows. It depends only on the job, not on the
// machine.
func newLayout(ranks []*rankSpool, o *Options) *layout {
	l := &layout{ranks: ranks, shardOf: make([]int32, len(ranks))}
	for _, r := range ranks {
		l.rows += r.facts.Rows
	}
	l.shards = o.shardsFor(l.rows, len(ranks))
	var before int64
	last := int32(0)
	for i, r := range ranks {
		s := int32(0)
		if l.rows > 0 {
			s = int32((before + r.facts.Rows/2) * int64(l.shards) / l.rows)
		}
		last = min(max(last, s), int32(l.shards-1))
		l.shardOf[i] = last
		before += r.facts.Rows
	}
	return l
}

// rowsOf returns the number of rows of the rank with index i in an epoch.
func (l *layout) rowsOf(i int, epoch int32) int {
	starts := l.ranks[i].starts
	return int(starts[epoch+1].row - starts[epoch].row)
}

// shardsFor returns the number of files of a table with this many rows of this many ranks.
func (o *Options) shardsFor(rows int64, ranks int) int {
	return int(max(min(1+(rows-1)/o.shardRows, o.maxShards, int64(ranks)), 1))
}

// started returns when the first process called MPI_Init.
func (j *job) started() time.Time {
	first := j.ranks[0].files[0].Header.RealtimeNs
	for _, r := range j.ranks {
		first = min(first, r.files[0].Header.RealtimeNs)
	}
	return time.Unix(0, first)
}
