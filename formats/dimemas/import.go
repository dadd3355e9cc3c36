package dimemas

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// Options control the import. The zero value works.
type Options struct {
	importing.Options // there is no Progress
	// Name is the file's name, for messages and the run's origin.
	Name string
	// Events turns each event of the trace into a row of commq_mark with the label TYPE:VALUE. Otherwise events are
	// counted and left out.
	Events bool

	epochRows, shardRows int64 // 0: the target below, and the writer's; tests use tiny ones
}

const (
	// epochTarget is the number of rows of an epoch over all ranks: those held in memory together.
	epochTarget = 1 << 20
	// bufferTarget is the memory for reading all tasks at the same time.
	bufferTarget, leastBuffer, mostBuffer = 64 << 20, 4 << 10, 1 << 20
)

// Import writes the trace as an untimed run to out and commits it. An error names the line, what was found and what
// to do; out is then aborted. The file is read three times; memory is bounded by the number of tasks and what is in
// flight between them.
func Import(ctx context.Context, in io.ReaderAt, size int64, out *writer.Run, o Options) (*schema.Manifest, error) {
	return importing.Finish(ctx, out, func(out *writer.Run) (*schema.Manifest, error) {
		return importTo(ctx, in, size, out, o)
	})
}

// sink takes the rows: a writer.Run.
type sink interface {
	Write(shard int, b schema.Batch) error
}

func importTo(ctx context.Context, in io.ReaderAt, size int64, out sink, o Options) (*schema.Manifest, error) {
	if o.epochRows == 0 {
		o.epochRows = epochTarget
	}
	t, err := openTrace(in, size, o.Name)
	if err != nil {
		return nil, err
	}
	j := &job{trace: t, o: o, comms: newComms(t), window: max(o.epochRows/int64(len(t.tasks)), 1),
		ranks: make([]rankFacts, len(t.tasks))}
	if err := j.pass(ctx, nil); err != nil {
		return nil, err
	}
	j.settle()
	if err := j.pass(ctx, out); err != nil {
		return nil, err
	}
	if err := j.comms.write(out); err != nil {
		return nil, err
	}
	if err := j.writeRanks(out); err != nil {
		return nil, err
	}
	return j.manifest(), nil
}

// job is the state of an import: what the first pass over the tasks learns for the second.
type job struct {
	*trace
	o       Options
	comms   *comms
	window  int64 // rows of a rank in an epoch
	ranks   []rankFacts
	epochs  int32
	endedAs int16 // an index into schema.EndedNames
	counts  schema.Counts
	byName  map[string]int64
	tally   tally
	// resized counts receives that state another size than their message has; lone counts waits without a receive.
	resized, lone int64
	shardOf       []int
	shardCount    int
}

// rankFacts has what the first pass found out about a rank for the second.
type rankFacts struct {
	rows int64
	// done maps a row to the row in a later epoch that completes it; bytes has the size of the message for receives
	// that state another.
	done, bytes map[int64]int64
}

// pass reads all tasks, epoch by epoch. The first pass, with out nil, only learns; the second writes events and
// messages.
func (j *job) pass(ctx context.Context, out sink) error {
	p := &pass{job: j, out: out, first: out == nil, shards: make([]shard, max(j.shardCount, 1))}
	j.tally = tally{}
	j.resized, j.lone = 0, 0
	buffer := min(max(bufferTarget/len(j.tasks), leastBuffer), mostBuffer)
	for task := range j.tasks {
		p.decoders = append(p.decoders, &decoder{pass: p, rank: int32(task), facts: &j.ranks[task],
			reader: j.taskReader(int32(task), buffer, j.o.Events, &j.tally), irecvs: map[key][]pending{},
			instances: map[int32]int64{}})
	}
	for e := int32(0); ; e++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := p.epoch(e)
		if err != nil {
			return err
		}
		if !more {
			j.epochs = e + 1
			break
		}
	}
	p.count()
	return nil
}

// pass is the state of one pass over all tasks.
type pass struct {
	job      *job
	out      sink
	first    bool
	decoders []*decoder
	shards   []shard
	matcher  match.Rows
}

// shard holds the rows of a range of ranks, which go to one file.
type shard struct {
	events   schema.Events
	messages schema.Messages
}

// epoch decodes an epoch and reports whether more follow.
func (p *pass) epoch(e int32) (more bool, err error) {
	for i := range p.shards {
		p.shards[i].events.Resize(0)
		p.shards[i].messages.Resize(0)
	}
	for i, d := range p.decoders {
		s := 0
		if p.job.shardOf != nil {
			s = p.job.shardOf[i]
		}
		if err := d.decode(e, s); err != nil {
			return false, err
		}
		more = more || !d.ended
	}
	p.match(e)
	if p.first {
		return more, nil
	}
	for i := range p.shards {
		if err := p.out.Write(i, &p.shards[i].events); err != nil {
			return false, err
		}
		if err := p.out.Write(i, &p.shards[i].messages); err != nil {
			return false, err
		}
	}
	return more, nil
}

// match pairs the epoch's sends and receives.
func (p *pass) match(e int32) {
	pieces := make([]*schema.Events, len(p.shards))
	for i := range p.shards {
		pieces[i] = &p.shards[i].events
	}
	p.matcher.Epoch(pieces, func(s *match.Send, r *match.Recv) {
		p.pair(s, r)
		p.message(e, s, r)
	})
}

// pair records the size of a message whose receive states another.
func (p *pass) pair(s *match.Send, r *match.Recv) {
	if !p.first || s.Bytes == r.Bytes {
		return
	}
	f := &p.job.ranks[r.Dst]
	if f.bytes == nil {
		f.bytes = map[int64]int64{}
	}
	f.bytes[r.PostSeq] = s.Bytes
}

// message appends the row of a message.
func (p *pass) message(e int32, s *match.Send, r *match.Recv) {
	if p.first {
		return
	}
	m := schema.NullMessage
	m.Src, m.Dst, m.Epoch, m.Comm, m.Tag, m.Bytes = s.Src, s.Dst, e, s.Comm, s.Tag, s.Bytes
	m.SendSeq, m.RecvPostSeq, m.RecvDoneSeq = s.Seq, r.PostSeq, r.DoneSeq
	p.shards[p.job.shardOf[s.Src]].messages.Append(&m)
	p.job.counts.Messages++
	p.job.counts.MessageBytes += s.Bytes
}

// count completes the counts after the second pass.
func (p *pass) count() {
	if p.first {
		return
	}
	p.job.counts.UnmatchedSends, p.job.counts.UnmatchedReceives = p.matcher.Waiting()
}

// settle evaluates the first pass.
func (j *job) settle() {
	j.endedAs = schema.EndedFinalized
	for id, c := range j.comms.list {
		if len(c.open) > 0 {
			j.note("The ranks of communicator %d make different numbers of collective operations: %d of them wait "+
				"for others at the end, %s the first; the run counts as killed.", id, len(c.open), c.open[0].call)
			j.endedAs = schema.EndedKilled
		}
		for len(c.open) > 0 {
			c.close()
		}
	}
	rows := int64(0)
	for i := range j.ranks {
		rows += j.ranks[i].rows
	}
	j.counts.Calls = rows
	calls := make([]int64, len(j.ranks))
	for i := range j.ranks {
		calls[i] = j.ranks[i].rows
	}
	j.shardOf, j.shardCount = writer.Shards(calls, j.o.shardRows)
	j.byName = map[string]int64{}
	for _, c := range j.comms.list {
		for call, n := range c.calls {
			j.byName[call.String()] += n
			j.counts.Collectives += n
		}
	}
}

func (j *job) writeRanks(out sink) error {
	b := &schema.RankInfos{}
	for i := range j.ranks {
		row := schema.NullRankInfo
		row.Rank, row.Threads, row.Events, row.Ended = int32(i), 1, j.ranks[i].rows, j.endedAs
		b.Append(&row)
	}
	return out.Write(0, b)
}

func (j *job) manifest() *schema.Manifest {
	origin := j.o.Origin
	origin.Trace = &schema.Trace{Format: "dim", File: filepath.Base(j.o.Name), Program: j.app}
	return &schema.Manifest{
		Ranks: int32(len(j.ranks)), TimeOrigin: "untimed", TimeResolutionNs: 1, ComputeClock: "cpu", Record: "all",
		Hash:  "none",
		Ended: schema.EndedNames[j.endedAs], Epochs: j.epochs, Counts: j.counts, Collectives: j.byName,
		Warnings: j.warnings(), Origin: origin,
	}
}

// warnings returns the notes and what was left out.
func (j *job) warnings() []string {
	w := j.notes
	say := func(n int64, format string, args ...any) {
		if n > 0 {
			w = append(w, fmt.Sprintf(format, args...))
		}
	}
	if !j.o.Events {
		say(j.tally.events, "Events of the trace that have no row: %d (commq import dim --events keeps them).",
			j.tally.events)
	}
	say(j.skipped, "Definitions of files and windows that were left out: %d.", j.skipped)
	say(j.tally.pseudo, "Collectives on a communicator that is not greater than 0, which Dimemas skips, and so "+
		"does this run: %d.", j.tally.pseudo)
	say(j.tally.noBurst, "Tasks whose first record is no CPU burst: %d, task %d the first; Dimemas itself leaves "+
		"them out.", j.tally.noBurst, j.tally.firstNoBurst)
	say(j.resized, "Receives that say another size than the message that they get has: %d; the run has the "+
		"message's.", j.resized)
	say(j.lone, "Waits without a receive before them, which are blocking receives here as in Dimemas: %d.", j.lone)
	silent := int64(0)
	for i := range j.tasks {
		if j.tasks[i].records == 0 {
			silent++
		}
	}
	say(silent, "Tasks without records: %d.", silent)
	return w
}
