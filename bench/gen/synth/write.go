package synth

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
	"github.com/commq/commq/writer/derive"
)

// Options select how a run is written. The zero value writes one like commq capture --hash none without call sites,
// with times in whole ns.
type Options struct {
	// Seed determines all random numbers.
	Seed uint64
	// TimeResolutionNs is the power of two to whose multiples times are rounded down; 0 means 1.
	TimeResolutionNs int64
	// Hash adds payload hashes, which all differ.
	Hash bool
	// Callsites adds call sites to rows.
	Callsites bool
	// RanksPerHost is the number of ranks on a host; 0 means all.
	RanksPerHost int
	// Record selects the rows of events as commq capture --record does: all or messages; empty means all.
	Record string
	// StopAt, unless zero, ends the run after the first epoch finished later. The run then has fewer messages, and
	// the number depends on the machine's speed; another run with as many messages is equal.
	StopAt time.Time
	// Check checks the run before it gets its name, as commq runs check does.
	Check bool
	// Progress, where not nil, is called after each epoch with the number of messages so far.
	Progress func(messages int64)

	epochRows int64 // tests have small epochs
}

const (
	// epochRows is the approximate number of rows of events in an epoch.
	epochRows = 1 << 20
	// shards is the number of files of events and messages in long runs; shardRanks the largest number of ranks in a
	// file.
	shards     = 2
	shardRanks = 1 << 14
	// heldRows is the largest number of rows of events of an epoch held in memory; of longer epochs one file at a
	// time is held.
	heldRows = 3 << 20
)

// recordMessages keeps only the rows of events that are not about messages.
const recordMessages = "messages"

// run is a run being written.
type run struct {
	p *Program
	o Options

	out      *writer.Run
	fillers  []*filler
	seq      []int64 // of each rank at the beginning of the section
	request  []int64
	instance []int64 // of each communicator
	waits    *derive.WaitSums
	messages int64
	manifest schema.Manifest
}

// Write writes the run with that name into the store. It uses up the program: afterwards only Messages works.
func Write(p *Program, store, name string, o Options) error {
	if o.TimeResolutionNs == 0 {
		o.TimeResolutionNs = 1
	}
	if o.TimeResolutionNs&(o.TimeResolutionNs-1) != 0 {
		return fmt.Errorf("time resolution of %d ns: want a power of two", o.TimeResolutionNs)
	}
	if o.epochRows == 0 {
		o.epochRows = epochRows
	}
	if o.Record == "" {
		o.Record = "all"
	}
	if o.RanksPerHost == 0 {
		o.RanksPerHost = p.Ranks
	}
	if err := p.seal(); err != nil {
		return err
	}
	out, err := writer.Create(store, name, writer.Options{Check: o.Check})
	if err != nil {
		return err
	}
	defer out.Abort()
	r := &run{p: p, o: o, out: out, seq: make([]int64, p.Ranks), request: make([]int64, p.Ranks),
		instance: make([]int64, len(p.Comms))}
	if err := r.write(); err != nil {
		return err
	}
	m := r.manifest
	r.fillers = nil
	for _, s := range p.Sections { // of a million ranks they are more than a gigabyte, and Commit has its own
		s.free()
	}
	return out.Commit(context.Background(), &m)
}

// free drops the contents of a section except its number of messages.
func (s *Section) free() { *s = Section{Times: s.Times, sent: s.messages()} }

func (r *run) write() error {
	comms := r.comms()
	if err := r.definitions(comms); err != nil {
		return err
	}
	held := true
	for _, s := range r.p.Sections {
		held = held && len(s.ops) <= heldRows
	}
	if held {
		r.waits = r.out.SumWaits(r.hosts(), comms, r.o.Record != recordMessages)
	}
	n := r.files()
	for i := range n {
		r.fillers = append(r.fillers, &filler{run: r, first: i * r.p.Ranks / n, last: (i + 1) * r.p.Ranks / n,
			section: None})
	}
	c := newClock(r.p, r.o.Seed, runtime.GOMAXPROCS(0))
	epoch := int32(0)
	calls := map[string]int64{}
	for k, s := range r.p.Sections {
		turns := int64(max(1, r.o.epochRows/int64(max(1, len(s.ops)))))
		free := make(chan *window, 2)
		free <- &window{}
		if held {
			free <- &window{}
		}
		full := make(chan *window, 1)
		stop := make(chan struct{})
		go func() {
			defer close(full)
			for from := int64(0); from < s.Times; from += turns {
				if from > 0 && !r.o.StopAt.IsZero() && time.Now().After(r.o.StopAt) {
					s.Times = from
					return
				}
				var w *window
				select {
				case w = <-free:
				case <-stop:
					return
				}
				w.section, w.from, w.turns, w.epoch = k, from, int(min(turns, s.Times-from)), epoch
				epoch++
				c.run(k, from, from+int64(w.turns), &w.times)
				full <- w
			}
		}()
		for w := range full {
			if err := r.epoch(w); err != nil {
				close(stop)
				for range full {
				}
				return err
			}
			free <- w
		}
		r.end(s, calls)
	}
	r.finish(c, epoch, calls)
	return r.ranks()
}

// files returns the number of files of events and of messages.
func (r *run) files() int {
	rows := int64(0)
	for _, s := range r.p.Sections {
		rows += s.Times * int64(len(s.ops))
	}
	return min(r.p.Ranks, max(int(min(shards, (rows+r.o.epochRows-1)/r.o.epochRows)),
		(r.p.Ranks+shardRanks-1)/shardRanks))
}

// epoch writes the rows of a window.
func (r *run) epoch(w *window) error {
	jobs := make([]func() error, 0, 2*len(r.fillers)+1)
	if r.waits == nil {
		for _, f := range r.fillers {
			jobs = append(jobs, func() error {
				defer func() { f.events, f.messages, f.section = schema.Events{}, schema.Messages{}, None }()
				f.fill(w)
				return f.writeRows(r.out, f.first)
			})
		}
		return r.progress(w, parallel(jobs))
	}
	for _, f := range r.fillers {
		jobs = append(jobs, func() error { f.fill(w); return nil })
	}
	if err := parallel(jobs); err != nil {
		return err
	}
	jobs = jobs[:0]
	var events []*schema.Events
	var messages []*schema.Messages
	for _, f := range r.fillers {
		events, messages = append(events, &f.events), append(messages, &f.messages)
	}
	jobs = append(jobs, func() error { r.waits.Epoch(events, messages); return nil })
	for i, f := range r.fillers {
		jobs = append(jobs, func() error { return r.out.Write(i, &f.messages) }, func() error { return r.out.Write(i, &f.events) })
	}
	return r.progress(w, parallel(jobs))
}

func (f *filler) writeRows(out *writer.Run, _ int) error {
	i := f.number()
	if err := out.Write(i, &f.events); err != nil {
		return err
	}
	return out.Write(i, &f.messages)
}

// number returns the index of the filler's files.
func (f *filler) number() int {
	for i, g := range f.run.fillers {
		if f == g {
			return i
		}
	}
	return None
}

func (r *run) progress(w *window, err error) error {
	r.messages += int64(w.turns) * r.p.Sections[w.section].messages()
	if err == nil && r.o.Progress != nil {
		r.o.Progress(r.messages)
	}
	return err
}

// parallel runs all jobs, one per thread at a time, and returns one of their errors.
func parallel(jobs []func() error) error {
	next := make(chan func() error)
	errs := make(chan error, len(jobs))
	var wg sync.WaitGroup
	for range min(len(jobs), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for job := range next {
				if err := job(); err != nil {
					errs <- err
				}
			}
		})
	}
	for _, job := range jobs {
		next <- job
	}
	close(next)
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// end advances to the next section.
func (r *run) end(s *Section, calls map[string]int64) {
	for rank := range r.seq {
		r.seq[rank] += s.Times * int64(s.first[rank+1]-s.first[rank])
		r.request[rank] += s.Times * int64(s.requests[rank])
	}
	for c := range r.instance {
		r.instance[c] += s.Times * int64(s.perTurn[c])
	}
	for _, g := range s.groups {
		if o := &s.ops[g[0]]; schema.Calls[o.Call].Class == schema.ClassCollective {
			calls[schema.CallID(o.Call).String()] += s.Times
		}
	}
	bytes := int64(0)
	for i := range s.ops {
		if s.ops[i].SendTo != None {
			bytes += int64(s.ops[i].SendBytes)
		}
	}
	r.manifest.Counts.Calls += s.Times * int64(len(s.ops))
	r.manifest.Counts.Messages += s.Times * s.messages()
	r.manifest.Counts.MessageBytes += s.Times * bytes
}

// finish fills in the manifest.
func (r *run) finish(c *clock, epochs int32, calls map[string]int64) {
	m := &r.manifest
	m.Ranks, m.TimeOrigin, m.TimeResolutionNs, m.ComputeClock, m.Record, m.Hash = int32(r.p.Ranks), "measured",
		r.o.TimeResolutionNs, "cpu", r.o.Record, "none"
	m.Ended, m.Epochs, m.Collectives, m.Callsites = "finalized", epochs, calls, r.o.Callsites
	if r.o.Hash {
		m.Hash = "crc64"
	}
	if r.o.Callsites {
		m.Stack = 1
	}
	for _, now := range c.now {
		m.EndNs = max(m.EndNs, now&^(r.o.TimeResolutionNs-1))
	}
	for _, n := range calls {
		m.Counts.Collectives += n
	}
	m.Origin.Command = []string{r.p.Name}
	m.Warnings = []string{"The run was made by a generator: no program ran."}
}

func (r *run) members(comm int32) int {
	if m := r.p.Comms[comm].Members; m != nil {
		return len(m)
	}
	return r.p.Ranks
}

// comms returns the rows of comms.
func (r *run) comms() *schema.Comms {
	b := &schema.Comms{}
	for id, c := range r.p.Comms {
		row := schema.NullComm
		row.Comm, row.Kind = int32(id), int16(c.Kind)
		if c.Name != "" {
			row.Name = c.Name
		}
		if c.Dims != "" {
			row.CartDims, row.CartPeriods = c.Dims, c.Periods
		}
		if c.Parent != None {
			row.Parent = c.Parent
		}
		for k := range r.members(int32(id)) {
			row.CommRank, row.WorldRank = int32(k), int32(k)
			if c.Members != nil {
				row.WorldRank = c.Members[k]
			}
			b.Append(&row)
		}
	}
	return b
}

func (r *run) hosts() []int32 {
	h := make([]int32, r.p.Ranks)
	for rank := range h {
		h[rank] = int32(rank / r.o.RanksPerHost)
	}
	return h
}

// definitions writes the tables that rows refer to.
func (r *run) definitions(comms *schema.Comms) error {
	sites, types := &schema.Callsites{}, &schema.Datatypes{}
	for i, name := range r.p.Sites {
		if !r.o.Callsites {
			break
		}
		c := schema.NullCallsite
		c.ID, c.Module, c.BuildID, c.Offset, c.Function = int32(i), r.p.Name, "5eed", 0x1000+int64(i)*64, name
		sites.Append(&c)
	}
	for i := range datatypes {
		types.Append(&datatypes[i])
	}
	for _, b := range []schema.Batch{comms, sites, types} {
		if err := r.out.Write(0, b); err != nil {
			return err
		}
	}
	return nil
}

// ranks writes the table of ranks.
func (r *run) ranks() error {
	b, hosts := &schema.RankInfos{}, r.hosts()
	for rank := range r.p.Ranks {
		i := schema.NullRankInfo
		i.Rank, i.Host, i.Threads, i.ThreadLevel, i.Ended, i.Events, i.Polls, i.Dropped = int32(rank), hosts[rank], 1,
			0, schema.EndedFinalized, r.seq[rank], 0, 0
		i.ClockOffsetInitNs, i.ClockErrorInitNs, i.ClockOffsetFinalNs, i.ClockErrorFinalNs = 0, 0, 0, 0
		b.Append(&i)
	}
	return r.out.Write(0, b)
}
