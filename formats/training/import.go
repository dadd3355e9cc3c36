package training

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Options control the import. The zero value works.
type Options struct {
	// Format is the name of the traces' format.
	Format string
	// Origin describes where the run came from.
	Origin schema.Origin
	// Numbered means that the Seq of a collective is the same on all ranks: it becomes its instance. Ranks may lack
	// some.
	Numbered bool
	// TimeOrigin is that of the run: measured; simulated, where the times of the operations are on one clock, in
	// places that a reader chose; untimed, where they only tell the order. "" means measured.
	TimeOrigin string
	// NoCompute means that the trace does not show when a process computed.
	NoCompute bool
	// Warnings are sentences on the traces of the job as a whole.
	Warnings []string

	epochRows, shardRows int64 // 0: the usual ones; tests use tiny ones
}

// epochTarget is the number of rows of an epoch over all ranks: those held in memory together.
const epochTarget = 1 << 19

const measured, untimed = "measured", "untimed"

// sink takes the rows: a writer.Run.
type sink interface {
	Write(shard int, b schema.Batch) error
}

// job is the state of an import.
type job struct {
	o      Options
	ranks  []*rank // by their number
	byRank map[int32]*rank
	world  int32
	comms  []*comm

	datatypes schema.Datatypes
	typeIDs   map[string]int32

	startNs int64 // of the run, on the clock of the first rank
	bounds  []int64
	endNs   int64
	counts  schema.Counts
	byName  map[string]int64
	sizes   map[int64]int32 // numbers of the sizes of messages
	unset   int
	// assumed tells that no trace names a group, and all operations count on all ranks.
	assumed bool
	alone   int64 // operations without a group
	// inferred are sends and receives whose group follows from the other sides.
	inferred int64
	rootless, untyped,
	peerless int64
}

// rank is a rank of the run.
type rank struct {
	*Rank
	comms      []*comm // by operation
	hasClock   bool
	moved      bool
	torn       bool
	clock      int64 // what is added to its times
	clockError int64
	shiftNs    int64 // with the start of the run
	next       int64
}

// Collect imports ranks, which are closed, and gives the rows to write instead of a run on disk.
func Collect(ctx context.Context, ranks []*Rank, write func(shard int, b schema.Batch) error,
	o Options) (*schema.Manifest, error) {
	j, err := newJob(ranks, o)
	if err != nil {
		return nil, err
	}
	return j.importTo(ctx, sinkFunc(write))
}

type sinkFunc func(shard int, b schema.Batch) error

func (f sinkFunc) Write(shard int, b schema.Batch) error { return f(shard, b) }

func newJob(ranks []*Rank, o Options) (*job, error) {
	j := &job{o: o, byRank: map[int32]*rank{}, typeIDs: map[string]int32{}, byName: map[string]int64{},
		sizes: map[int64]int32{}}
	if j.o.TimeOrigin == "" {
		j.o.TimeOrigin = measured
	}
	if j.o.epochRows == 0 {
		j.o.epochRows = epochTarget
	}
	for _, r := range ranks {
		if r.Rank < 0 || r.Rank >= importing.MostRanks || r.World > importing.MostRanks {
			return nil, fmt.Errorf("%s: rank %d of %d; want less than %d", r.File, r.Rank, r.World, importing.MostRanks)
		}
		if first := j.byRank[r.Rank]; first != nil {
			return nil, fmt.Errorf("%s and %s are both of rank %d; want one file for each rank", first.File, r.File, r.Rank)
		}
		x := &rank{Rank: r, comms: make([]*comm, len(r.Ops))}
		j.ranks, j.byRank[r.Rank] = append(j.ranks, x), x
		j.world = max(j.world, r.World, r.Rank+1)
	}
	slices.SortFunc(j.ranks, func(a, b *rank) int { return cmp.Compare(a.Rank.Rank, b.Rank.Rank) })
	return j, nil
}

func (j *job) importTo(ctx context.Context, out sink) (*schema.Manifest, error) {
	j.placeGroups()
	j.dropLone()
	j.setClocks()
	j.settle()
	if err := j.write(ctx, out); err != nil {
		return nil, err
	}
	for _, write := range []func(sink) error{j.writeComms, j.writeRanks,
		func(out sink) error { return out.Write(0, &j.datatypes) }} {
		if err := write(out); err != nil {
			return nil, err
		}
	}
	return j.manifest(), nil
}

// dropLone turns sends and receives whose other side is not known, which no row can have, into nothing.
func (j *job) dropLone() {
	for _, r := range j.ranks {
		lone := func(i int32) bool {
			op := &r.Ops[i]
			if schema.Calls[op.Call].Class == schema.ClassCollective {
				return false
			}
			c := r.comms[i]
			if c == nil {
				return true
			}
			_, ok := c.local[op.Peer]
			return !ok
		}
		before := len(r.rows)
		r.rows = slices.DeleteFunc(r.rows, func(e entry) bool { return e.kind != entryStep && lone(e.index) })
		j.peerless += int64(before-len(r.rows)) / 2
		for seq, e := range r.rows {
			if e.kind == entryEnd {
				r.Ops[e.index].doneSeq = int64(seq)
			}
		}
	}
}

// settle finds the start of the run, its epochs, and what is counted.
func (j *job) settle() {
	j.startNs = 1<<63 - 1
	for _, r := range j.ranks {
		if len(r.rows) > 0 {
			j.startNs = min(j.startNs, r.firstNs+r.clock)
		}
		j.counts.Calls += int64(len(r.rows))
		j.counts.Dropped += r.Dropped
	}
	var samples []int64
	for _, r := range j.ranks {
		r.shiftNs = r.clock - j.startNs
		for i, e := range r.rows {
			if i%64 == 0 {
				samples = append(samples, e.start+r.shiftNs)
			}
		}
		for i := range r.Ops {
			j.tally(r, &r.Ops[i], r.comms[i])
		}
	}
	slices.Sort(samples)
	n := (j.counts.Calls + j.o.epochRows/2) / j.o.epochRows
	for k := int64(1); k < n; k++ {
		at := samples[k*int64(len(samples))/n]
		if at > samples[0] && (len(j.bounds) == 0 || at > j.bounds[len(j.bounds)-1]) {
			j.bounds = append(j.bounds, at)
		}
	}
}

// tally counts an operation, and what is not known of it.
func (j *job) tally(r *rank, op *Op, c *comm) {
	if schema.Calls[op.Call].Class != schema.ClassCollective {
		return
	}
	if c == nil {
		j.alone++
	} else if c.leads(r.Rank.Rank) {
		j.counts.Collectives++
		j.byName[op.Call.String()]++
	}
	if op.Call == schema.CallIbarrier {
		return
	}
	if _, bytes := Type(op.Type); bytes == 0 && !op.InBytes || op.InElements < 0 && op.OutElements < 0 {
		j.untyped++
	} else if schema.Calls[op.Call].Facts&schema.FactRooted != 0 && op.Root == Unknown {
		j.rootless++
	}
}

// leads reports whether collective operations are counted at this rank.
func (c *comm) leads(rank int32) bool { return c.ranks[0] == rank }

// datatype returns the id of a type of elements, and its size; null and 0 if it is unknown.
func (j *job) datatype(name string) (int32, int64) {
	name, bytes := Type(name)
	if bytes == 0 {
		return null32, 0
	}
	id, ok := j.typeIDs[name]
	if !ok {
		id = int32(len(j.typeIDs))
		j.typeIDs[name] = id
		row := schema.NullDatatype
		row.ID, row.Name, row.Combiner, row.Bytes, row.ExtentBytes = id, name, "named", bytes, bytes
		j.datatypes.Append(&row)
	}
	return id, bytes
}

// shard has the rows of a range of ranks, which go to one file, in an epoch.
type shard struct {
	ranks    []*rank
	events   schema.Events
	parts    schema.Parts
	messages schema.Messages
}

// write writes events, messages and parts, epoch by epoch.
func (j *job) write(ctx context.Context, out sink) error {
	rows := make([]int64, j.world)
	for _, r := range j.ranks {
		rows[r.Rank.Rank] = int64(len(r.rows))
	}
	of, n := writer.Shards(rows, j.o.shardRows)
	shards := make([]shard, n)
	for _, r := range j.ranks {
		s := &shards[of[r.Rank.Rank]]
		s.ranks = append(s.ranks, r)
	}
	var matcher match.Matcher
	for e := range len(j.bounds) + 1 {
		if err := ctx.Err(); err != nil {
			return err
		}
		for i := range shards {
			j.fill(&shards[i], int32(e))
		}
		j.match(&matcher, shards, of, int32(e))
		for i := range shards {
			s := &shards[i]
			for _, b := range []schema.Batch{&s.events, &s.messages, &s.parts} {
				if err := out.Write(i, b); err != nil {
					return err
				}
			}
		}
	}
	j.counts.UnmatchedSends, j.counts.UnmatchedReceives = matcher.Waiting()
	return nil
}

// fill makes the rows of a shard's ranks in an epoch.
func (j *job) fill(s *shard, epoch int32) {
	s.events.Resize(0)
	s.parts.Resize(0)
	s.messages.Resize(0)
	for _, r := range s.ranks {
		for ; r.next < int64(len(r.rows)); r.next++ {
			e := &r.rows[r.next]
			if int(epoch) < len(j.bounds) && e.start+r.shiftNs >= j.bounds[epoch] {
				break
			}
			row := j.row(r, r.next)
			row.Epoch = epoch
			j.endNs = max(j.endNs, row.EndNs)
			s.events.Append(&row)
			if e.kind == entryBegin {
				j.parts(&s.parts, &row, &r.Ops[e.index], r.comms[e.index])
			}
		}
	}
}

// match pairs the sends and receives of an epoch.
func (j *job) match(m *match.Matcher, shards []shard, of []int, epoch int32) {
	var pairs []match.Pair
	for i := range shards {
		b := &shards[i].events
		var row schema.Event
		for k := range b.Len() {
			switch schema.Class(b.Class[k]) {
			case schema.ClassSend:
				b.Row(k, &row)
				s := match.Send{Channel: match.Channel{Comm: row.Comm, Src: row.Rank, Dst: row.SendWorld,
					Part: j.sizeClass(row.SendBytes)}, Seq: row.Seq,
					StartNs: row.StartNs, EndNs: row.EndNs, Bytes: known(row.SendBytes), Count: row.SendCount,
					Datatype: row.SendDatatype, Buffer: null64, Callsite: null32}
				if r := m.Send(&s); r != nil {
					pairs = append(pairs, match.Pair{Send: s, Recv: *r})
				}
			case schema.ClassRecv:
				b.Row(k, &row)
				r := j.byRank[row.Rank].recv(&row)
				r.Part = j.sizeClass(row.RecvBytes)
				if j.o.TimeOrigin == untimed {
					r.StartNs, r.EndNs = null64, null64
				}
				if s := m.Recv(&r); s != nil {
					pairs = append(pairs, match.Pair{Send: *s, Recv: r})
				}
			}
		}
	}
	m.Sweep()
	slices.SortFunc(pairs, func(a, b match.Pair) int {
		return cmp.Or(cmp.Compare(a.Send.Src, b.Send.Src), cmp.Compare(a.Send.Seq, b.Send.Seq))
	})
	for i := range pairs {
		j.message(&shards[of[pairs[i].Send.Src]].messages, &pairs[i], epoch)
	}
}

// sizeClass numbers sizes. Both sides of a message have the same size, and traces may lack some messages: so the n-th
// send of a size meets the n-th receive of that size.
func (j *job) sizeClass(bytes int64) int32 {
	n, ok := j.sizes[bytes]
	if !ok {
		n = int32(len(j.sizes))
		j.sizes[bytes] = n
	}
	return n
}

func known(bytes int64) int64 { return max(0, bytes) }

// recv returns the receive of a row of the rank.
func (r *rank) recv(row *schema.Event) match.Recv {
	done := &r.rows[row.DoneSeq]
	return match.Recv{Channel: match.Channel{Comm: row.Comm, Src: row.RecvWorld, Dst: row.Rank}, PostSeq: row.Seq,
		PostNs: row.StartNs, DoneSeq: row.DoneSeq, StartNs: done.start + r.shiftNs, EndNs: done.end + r.shiftNs,
		Buffer: null64, Bytes: known(row.RecvBytes), Callsite: null32, Hash: null64}
}

// message adds the row of a message.
func (j *job) message(b *schema.Messages, p *match.Pair, epoch int32) {
	s, r := &p.Send, &p.Recv
	m := schema.NullMessage
	m.Src, m.Dst, m.Epoch, m.Comm, m.Bytes, m.SendCount, m.SendDatatype = s.Src, s.Dst, epoch, s.Comm, s.Bytes, s.Count,
		s.Datatype
	m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = s.Seq, r.PostSeq, r.DoneSeq
	m.SendStartNs, m.SendEndNs, m.RecvPostNs, m.RecvStartNs, m.RecvEndNs = s.StartNs, s.EndNs, r.PostNs, r.StartNs, r.EndNs
	b.Append(&m)
	j.counts.Messages++
	j.counts.MessageBytes += s.Bytes
}

func (j *job) ended() int16 {
	if len(j.ranks) < int(j.world) || j.disagreeing() != "" {
		return schema.EndedKilled
	}
	return schema.EndedFinalized
}

// hostsOf returns the names of the ranks' hosts, and the number of each rank's.
func hostsOf(ranks []*rank) (names []string, of map[int32]int32) {
	of, numbers := map[int32]int32{}, map[string]int32{}
	for _, r := range ranks {
		n, ok := numbers[r.Host]
		if !ok {
			n = int32(len(names))
			numbers[r.Host] = n
			names = append(names, r.Host)
		}
		of[r.Rank.Rank] = n
	}
	if numbers[""] != 0 || len(names) == 1 && names[0] == "" {
		return nil, of
	}
	return names, of
}

func (j *job) writeRanks(out sink) error {
	_, hosts := hostsOf(j.ranks)
	b := &schema.RankInfos{}
	for i := range j.world {
		row := schema.NullRankInfo
		row.Rank, row.Threads, row.Ended = i, 1, j.ended()
		if r := j.byRank[i]; r != nil {
			row.Host, row.Threads, row.Events = hosts[i], r.threads, int64(len(r.rows))
			row.Dropped = r.Dropped
			if r.hasClock {
				row.ClockOffsetInitNs, row.ClockErrorInitNs = -r.clock, r.clockError
			}
		}
		b.Append(&row)
	}
	return out.Write(0, b)
}

func (j *job) manifest() *schema.Manifest {
	origin := j.o.Origin
	names, _ := hostsOf(j.ranks)
	origin.Hosts = names
	if len(j.ranks) > 0 {
		origin.Trace = &schema.Trace{Format: j.o.Format, File: filepath.Base(j.ranks[0].File)}
	}
	clock := "wall"
	if j.o.NoCompute {
		clock = "none"
	} else if !slices.ContainsFunc(j.ranks, func(r *rank) bool { return !r.Device }) {
		clock = "device"
	}
	return &schema.Manifest{
		Ranks: j.world, TimeOrigin: j.o.TimeOrigin, TimeResolutionNs: 1, ComputeClock: clock, Record: "all", Hash: "none",
		Ended: schema.EndedNames[j.ended()], EndNs: j.endNs, Epochs: int32(len(j.bounds) + 1), Counts: j.counts,
		Collectives: j.byName, Warnings: j.warnings(), Origin: origin,
	}
}

// warnings tell what the traces lack, and how clocks were set.
func (j *job) warnings() []string {
	w := slices.Clone(j.o.Warnings)
	for _, r := range j.ranks {
		for _, text := range r.Warnings {
			if !slices.Contains(w, text) {
				w = append(w, text)
			}
		}
	}
	say := func(n int64, format string) {
		if n > 0 {
			w = append(w, fmt.Sprintf(format, n))
		}
	}
	events := int64(0)
	for _, r := range j.ranks {
		events += r.Events
	}
	waits := "for the part of it in which nothing else ran until its end"
	if j.o.NoCompute {
		waits = "from there until its end"
	}
	w = append(w, fmt.Sprintf("Read: %d events of %d ranks. The rows of an operation are a nonblocking call where it "+
		"begins and an MPI_Wait %s.", events, len(j.ranks), waits))
	say(int64(int(j.world)-len(j.ranks)), "Ranks without a trace: %d; they have no rows.")
	if j.assumed {
		w = append(w, "The traces name no groups; as all ranks made the same operations, these count on all ranks.")
	}
	say(j.alone, "Collective operations whose group the traces do not tell, which have no communicator: %d.")
	say(j.untyped, "Operations whose size the traces do not tell: %d.")
	say(j.rootless, "Operations whose root the traces do not tell, and so whose bytes on the root's side: %d.")
	say(j.inferred, "Sends and receives whose group the traces do not name: %d; each is on the only group whose other "+
		"side has the other end.")
	say(j.peerless, "Sends and receives whose other side the traces do not tell, which have no row: %d.")
	if names := j.disagreeing(); names != "" {
		w = append(w, "The ranks of these communicators made different operations in the time of the trace: "+names+
			"; the run counts as killed.")
	}
	return append(w, j.clockText()...)
}
