package otf2

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"

	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Options control the import. The zero value is what commands use.
type Options struct {
	// Origin is what the caller knows about the origin of the run.
	Origin schema.Origin
	// Replace allows that a run has the name already; the new one takes its place.
	Replace bool
	// Progress, if not nil, is called from time to time with the number of events read and of those to read, each
	// event twice: the trace is read two times. It may be called by several goroutines.
	Progress func(read, all int64)

	epochRows, shardRows int64 // 0: the usual ones; tests use tiny ones
	keep                 int
}

const (
	// epochTarget is the number of rows of an epoch over all ranks: those held in memory together.
	epochTarget = 1 << 19
	// keptTarget is the number of rows of all ranks that wait for their requests in memory.
	keptTarget, leastKept, mostKept = 1 << 18, 64, 4096
	// sampleRows is the number of rows of a rank between two samples of their times.
	sampleRows = 256
)

// ImportFile imports the archive with that anchor file (.otf2) as the run of this name in a store. Without a name the
// run gets that of the file, or, if that is the traces.otf2 of Score-P, of its folder. An error names the file, the
// byte and what was found.
func ImportFile(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	a, err := openArchive(path)
	if err != nil {
		return nil, err
	}
	j, err := newJob(a, o)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = writer.NameFor(baseName(path))
	}
	out, err := writer.Create(store, name, writer.Options{Replace: o.Replace})
	if err != nil {
		return nil, err
	}
	m, err := j.importTo(ctx, out)
	if err == nil {
		err = out.Commit(ctx, m)
	}
	if err != nil {
		_ = out.Abort() // the first error counts
		return nil, err
	}
	return m, nil
}

// baseName returns a name for the run of an anchor file.
func baseName(path string) string {
	base := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if full, err := filepath.Abs(path); err == nil && (base == "traces" || base == "eztrace_log") {
		return filepath.Base(filepath.Dir(full))
	}
	return base
}

// sink takes the rows: a writer.Run.
type sink interface {
	Write(shard int, b schema.Batch) error
}

// job is the state of an import.
type job struct {
	*archive
	*layout
	o       Options
	ours    bool // commq wrote the archive
	keep    int
	workers int

	locals [][]*local // by rank and thread
	sites  [][]*sites
	far    []map[int64]*slot
	facts  []rankFacts
	selfs  []bool
	selfID []int32

	shift      int64 // start of the run in ns since the first tick
	bounds     []int64
	shardOf    []int
	shardCount int
	table      siteTable
	counts     schema.Counts
	byName     map[string]int64
	endNs      int64
	uneven     int64 // communicators whose members do not make the same collective operations
	resized    int64 // sends whose receive in the channel's order has another size
	read       atomic.Int64
	tally      tally
}

// rankFacts is what the first pass learns about a rank.
type rankFacts struct {
	rows, polls int64
	first       int64
	samples     []int64 // starts of every sampleRows-th row
	level       int32
	ended       bool
	events      int64
	threads     int32
	// collectives is, by communicator, the sum of hashes of its operations' numbers and calls.
	collectives map[int32]uint64
}

// newJob reads the definitions.
func newJob(a *archive, o Options) (*job, error) {
	data, err := a.definitionFile(a.defs)
	if err != nil {
		return nil, err
	}
	d, err := parseDefinitions(data, a.defBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.defs, err)
	}
	l, err := newLayout(d)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.defs, err)
	}
	n := len(l.threads)
	j := &job{archive: a, layout: l, o: o, ours: strings.HasPrefix(a.creator, creator), workers: runtime.GOMAXPROCS(0),
		locals: make([][]*local, n), sites: make([][]*sites, n), far: make([]map[int64]*slot, n),
		facts: make([]rankFacts, n), selfs: make([]bool, n), selfID: make([]int32, n), byName: map[string]int64{},
		table: siteTable{byKey: map[siteKey]int32{}}, tally: tally{mute: map[string]int64{}}}
	j.keep = o.keep
	if j.keep == 0 {
		j.keep = min(max(keptTarget/n, leastKept), mostKept)
	}
	if j.o.epochRows == 0 {
		j.o.epochRows = epochTarget
	}
	for rank, threads := range l.threads {
		j.far[rank] = map[int64]*slot{}
		for _, t := range threads {
			x, err := j.localOf(t.id)
			if err != nil {
				return nil, err
			}
			j.locals[rank], j.sites[rank] = append(j.locals[rank], x), append(j.sites[rank], newSites(j))
		}
	}
	return j, nil
}

// localOf reads the definitions of a location; a location may have none.
func (j *job) localOf(id uint64) (*local, error) {
	path := filepath.Join(j.dir, fmt.Sprint(id, ".def"))
	data, err := j.definitionFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &local{}, nil
	}
	if err != nil {
		return nil, err
	}
	x, err := parseLocal(data, j.defBytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// importTo reads the events twice: to learn, and to write.
func (j *job) importTo(ctx context.Context, out sink) (*schema.Manifest, error) {
	err := j.parallel(len(j.threads), func(rank int) error { return j.learn(ctx, int32(rank)) })
	if err != nil {
		return nil, err
	}
	j.settle()
	if err := j.write(ctx, out); err != nil {
		return nil, err
	}
	for _, write := range []func(sink) error{j.writeComms, j.writeRanks, j.writeSites} {
		if err := write(out); err != nil {
			return nil, err
		}
	}
	return j.manifest(), nil
}

// parallel calls fn for 0 to n-1 and returns the error of the lowest.
func (j *job) parallel(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(j.workers, n) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				errs[i] = fn(i)
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// rankReader begins to read a rank.
func (j *job) rankReader(rank int32, learning bool) (*rankReader, error) {
	n := len(j.threads[rank])
	r := &rankReader{j: j, rank: rank, heads: make([]call, n), has: make([]bool, n), pending: map[requestKey]*slot{},
		instances: map[int32]int64{}, windows: map[uint32]int64{}, handles: map[uint32]int64{}, polls: make([]int64, n),
		pollNs: make([]int64, n), far: j.far[rank], learning: learning}
	for t, x := range j.threads[rank] {
		s, err := j.openStream(x.id)
		if err != nil {
			r.close()
			return nil, err
		}
		r.threads = append(r.threads, &reader{j: j, rank: rank, thread: int32(t), stream: s, local: j.locals[rank][t],
			clock: clock{offsets: j.locals[rank][t].clocks}, sites: j.sites[rank][t], lastEnd: null64,
			high: map[uint32]regionKind{}, prev: -1 << 62, counts: tally{mute: map[string]int64{}}})
	}
	return r, nil
}

func (r *rankReader) close() {
	for _, t := range r.threads {
		t.stream.close()
	}
}

// learn reads the events of a rank to know what writing needs.
func (j *job) learn(ctx context.Context, rank int32) error {
	r, err := j.rankReader(rank, true)
	if err != nil {
		return err
	}
	defer r.close()
	f := &j.facts[rank]
	f.first, f.level = 1<<62, null32
	reported := int64(0)
	for n := int64(0); ; n++ {
		if n%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			reported = j.report(r, reported)
		}
		s, err := r.next()
		if err != nil {
			return err
		}
		if s == nil {
			break
		}
		f.add(&s.row)
	}
	j.report(r, reported)
	for _, t := range r.threads {
		f.polls += sum(r.polls)
		clear(r.polls)
		f.events += t.counts.events
	}
	return nil
}

func sum(all []int64) (n int64) {
	for _, x := range all {
		n += x
	}
	return n
}

// report adds to the progress what a reader read since it was reported last, and returns what it has read.
func (j *job) report(r *rankReader, reported int64) int64 {
	if j.o.Progress == nil {
		return 0
	}
	now := int64(0)
	for _, t := range r.threads {
		now += t.counts.events
	}
	all := int64(0)
	for _, threads := range j.threads {
		for _, t := range threads {
			all += int64(t.events)
		}
	}
	j.o.Progress(j.read.Add(now-reported), 2*all)
	return now
}

// add takes a row.
func (f *rankFacts) add(row *schema.Event) {
	f.first = min(f.first, row.StartNs)
	if f.rows%sampleRows == 0 {
		f.samples = append(f.samples, row.StartNs)
	}
	f.rows++
	f.threads = max(f.threads, row.Thread+1)
	if row.Polls != null64 {
		f.polls += row.Polls
	}
	if row.Instance != null64 {
		if f.collectives == nil {
			f.collectives = map[int32]uint64{}
		}
		operation := binary.LittleEndian.AppendUint64(make([]byte, 0, 10), uint64(row.Instance))
		f.collectives[row.Comm] += xxh3.Hash(binary.LittleEndian.AppendUint16(operation, uint16(row.Call)))
	}
	if schema.CallID(row.Call).Is(schema.FactFinalizes) && row.EndNs != null64 {
		f.ended = true
	}
}

// countUneven counts the communicators of several ranks whose members do not make the same collective operations.
func (j *job) countUneven() {
	for _, c := range j.comms {
		members := slices.Concat(c.groups[0], c.groups[1])
		if slices.ContainsFunc(members, func(rank int32) bool {
			return j.facts[rank].collectives[c.id] != j.facts[members[0]].collectives[c.id]
		}) {
			j.uneven++
		}
	}
}

// settle evaluates the first pass.
func (j *job) settle() {
	rows := make([]int64, len(j.facts))
	first, all := int64(1<<62), int64(0)
	for i := range j.facts {
		rows[i] = j.facts[i].rows
		all += rows[i]
		first = min(first, j.facts[i].first)
	}
	if first < 0 { // calls before the first tick that the trace defines
		j.shift = first
	}
	j.shardOf, j.shardCount = writer.Shards(rows, j.o.shardRows)
	j.selfID = j.placeSelf(j.selfs)
	for _, threads := range j.sites {
		for _, s := range threads {
			j.table.add(s)
		}
	}
	j.counts.Calls = all
	j.countUneven()
	j.bounds = j.epochBounds(all)
}

// epochBounds returns the times at which epochs 1, 2, ... begin, so that each has about the same number of rows.
func (j *job) epochBounds(rows int64) (bounds []int64) {
	var samples []int64
	for i := range j.facts {
		samples = append(samples, j.facts[i].samples...)
		j.facts[i].samples = nil
	}
	slices.Sort(samples)
	n := (rows + j.o.epochRows/2) / j.o.epochRows
	for k := int64(1); k < n; k++ {
		at := samples[k*int64(len(samples))/n]
		if len(bounds) == 0 && at > samples[0] || len(bounds) > 0 && at > bounds[len(bounds)-1] {
			bounds = append(bounds, at)
		}
	}
	return bounds
}

// selfComm returns MPI_COMM_SELF of a rank. The first pass only notes that it needs one.
func (j *job) selfComm(rank int32) *comm {
	j.selfs[rank] = true
	if id := j.selfID[rank]; id != 0 {
		return j.comms[id]
	}
	c := newComm(nil, schema.CommSelf, []int32{rank})
	c.id = -1
	return c
}

// shard has the rows of a range of ranks, which go to one file, in an epoch.
type shard struct {
	ranks    []int
	events   schema.Events
	messages schema.Messages
	sends    []match.Send
	recvs    []match.Recv
	counts   schema.Counts
	byCall   map[schema.CallID]int64
	endNs    int64
}

// pass is the second pass.
type pass struct {
	*job
	readers  []*rankReader
	held     []*slot // the first row of a rank's next epoch
	reported []int64
	shards   []shard
	matcher  match.Matcher
	pairs    []match.Pair
}

// write writes events and messages, epoch by epoch.
func (j *job) write(ctx context.Context, out sink) error {
	p := &pass{job: j, shards: make([]shard, j.shardCount), held: make([]*slot, len(j.threads)),
		reported: make([]int64, len(j.threads))}
	defer func() {
		for _, r := range p.readers {
			r.close()
		}
	}()
	for rank := range j.threads {
		r, err := j.rankReader(int32(rank), false)
		if err != nil {
			return err
		}
		p.readers = append(p.readers, r)
		s := &p.shards[j.shardOf[rank]]
		s.ranks = append(s.ranks, rank)
	}
	for i := range p.shards {
		p.shards[i].byCall = map[schema.CallID]int64{}
		p.reserve(&p.shards[i])
	}
	for e := 0; e <= len(j.bounds); e++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := j.parallel(len(p.shards), func(i int) error { return p.decode(&p.shards[i], int32(e)) }); err != nil {
			return err
		}
		p.match(int32(e))
		for i := range p.shards {
			if err := out.Write(i, &p.shards[i].events); err != nil {
				return err
			}
			if err := out.Write(i, &p.shards[i].messages); err != nil {
				return err
			}
		}
	}
	p.count()
	return nil
}

// reserve makes room for the rows of a shard in an epoch, which else grow with many copies.
func (p *pass) reserve(s *shard) {
	rows := int64(0)
	for _, rank := range s.ranks {
		rows += p.facts[rank].rows
	}
	epochs := int64(len(p.bounds) + 1)
	s.events.Resize(int(rows/epochs + rows/epochs/8))
}

// decode makes the rows of a shard's ranks in an epoch.
func (p *pass) decode(s *shard, e int32) error {
	s.events.Resize(0)
	s.messages.Resize(0)
	s.sends, s.recvs = s.sends[:0], s.recvs[:0]
	until := int64(math.MaxInt64)
	if int(e) < len(p.bounds) {
		until = p.bounds[e]
	}
	for _, rank := range s.ranks {
		r := p.readers[rank]
		for {
			x := p.held[rank]
			p.held[rank] = nil
			if x == nil {
				var err error
				if x, err = r.next(); err != nil {
					return err
				}
			}
			if x == nil {
				break
			}
			if x.row.StartNs >= until {
				p.held[rank] = x
				break
			}
			p.row(s, x, e)
		}
		p.reported[rank] = p.report(r, p.reported[rank])
	}
	return nil
}

// row adds a row to its shard.
func (p *pass) row(s *shard, x *slot, e int32) {
	row := &x.row
	row.Epoch = e
	row.StartNs -= p.shift
	if row.EndNs == null64 {
		s.counts.InProgress++
	} else {
		row.EndNs -= p.shift
		s.endNs = max(s.endNs, row.EndNs)
	}
	class := schema.Class(row.Class)
	if class == schema.ClassCollective && row.Comm != null32 && p.comms[row.Comm].leads(row.Rank) {
		s.counts.Collectives++
		s.byCall[schema.CallID(row.Call)]++
	}
	s.events.Append(row)
	isSendrecv := class == schema.ClassSendrecv
	if row.SendWorld != null32 && (class == schema.ClassSend || isSendrecv) {
		s.sends = append(s.sends, match.Send{Channel: match.Channel{Comm: row.Comm, Src: row.Rank, Dst: row.SendWorld,
			Tag: row.SendTag}, Datatype: null32, Count: null64, Buffer: null64, Seq: row.Seq, StartNs: row.StartNs,
			EndNs: row.EndNs, Bytes: row.SendBytes, Callsite: row.Callsite})
	}
	if row.RecvWorld != null32 && (class == schema.ClassRecv || isSendrecv) {
		s.recvs = append(s.recvs, p.recv(x))
	}
}

// recv returns the receive of a row.
func (p *pass) recv(x *slot) match.Recv {
	row := &x.row
	m := match.Recv{Channel: match.Channel{Comm: row.Comm, Src: row.RecvWorld, Dst: row.Rank, Tag: row.RecvTag},
		PostSeq: row.Seq, PostNs: row.StartNs, DoneSeq: row.Seq, StartNs: row.StartNs, EndNs: row.EndNs, Buffer: null64,
		Bytes: row.RecvBytes, Callsite: row.Callsite, Hash: null64}
	if x.received {
		m.DoneSeq, m.StartNs, m.EndNs, m.Callsite = row.DoneSeq, x.doneStart-p.shift, x.doneEnd, x.doneSite
		if m.EndNs != null64 {
			m.EndNs -= p.shift
		}
	}
	return m
}

// leads reports whether collective operations are counted at this rank.
func (c *comm) leads(rank int32) bool { return c.groups[0][0] == rank }

// match pairs the epoch's sends and receives, in the order of the sends.
func (p *pass) match(e int32) {
	p.pairs = p.pairs[:0]
	for i := range p.shards {
		for k := range p.shards[i].recvs {
			r := &p.shards[i].recvs[k]
			if s := p.matcher.Recv(r); s != nil {
				p.pairs = append(p.pairs, match.Pair{Send: *s, Recv: *r})
			}
		}
	}
	for i := range p.shards {
		for k := range p.shards[i].sends {
			s := &p.shards[i].sends[k]
			if r := p.matcher.Send(s); r != nil {
				p.pairs = append(p.pairs, match.Pair{Send: *s, Recv: *r})
			}
		}
	}
	p.matcher.Sweep()
	slices.SortFunc(p.pairs, comparePairs)
	for i := range p.pairs {
		if s, r := &p.pairs[i].Send, &p.pairs[i].Recv; s.Bytes == r.Bytes {
			p.message(e, s, r)
		} else { // one of them has its partner in a part that was not recorded
			p.resized++
		}
	}
}
