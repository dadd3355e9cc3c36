package timed

import (
	"context"
	"encoding/binary"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Options control an import. The zero value works.
type Options struct {
	// Progress is in the unit of Trace.Size; the trace is read two times.
	importing.Options

	// EpochRows is the number of rows of an epoch over all ranks, ShardRows that of a file, Keep how many rows of a
	// rank wait for their requests, Round how many rows of a rank are matched together in the first pass. 0: the usual
	// ones; tests use tiny ones.
	EpochRows, ShardRows int64
	Keep                 int
	Round                int64

	// Learn has the first pass read all calls of a trace that it would skim else. ErrLearn asks for it.
	Learn bool
}

// ErrLearn is the error of an import that skimmed its trace and met in the second pass what the first has to know: a
// request that is open for more calls than memory shall hold, or a rank's MPI_COMM_SELF. It has to begin again, with
// Options.Learn.
var ErrLearn = errors.New("skimming the trace is not enough")

const (
	// An epoch has leastEpoch to mostEpoch rows of all ranks, so that there are about usualEpochs: small ones take less
	// memory and time, many make more row groups. Two are in memory together.
	leastEpoch, mostEpoch, usualEpochs = 1 << 17, 1 << 19, 64
	// keptTarget is the number of rows of all ranks that wait for their requests in memory.
	keptTarget, leastKept, mostKept = 1 << 18, 64, 4096
	// skimmedTarget is the same of a trace that was skimmed, whose rows cannot be completed but in memory.
	skimmedTarget, leastSkimmed = 1 << 19, 64
	// sampleRows is the number of rows of a rank between two samples of their times.
	sampleRows = 256
	// reportRows is the number of rows of a rank between two reports of progress.
	reportRows = 4096
)

// Job is an import.
type Job struct {
	trace Trace
	o     Options
	keep  int
	comms *Comms

	sketches   []Sketch
	facts      []rankFacts
	shift      int64 // start of the run in ns since the zero of the trace's times
	bounds     []int64
	shardOf    []int
	shardCount int
	read       atomic.Int64

	// Counts, ByName (collective operations by name), EndNs, and the counts below are known after Import.
	Counts schema.Counts
	ByName map[string]int64
	EndNs  int64
	// Uneven is the number of communicators whose members do not make the same collective operations.
	Uneven int64
	// Resized is the number of sends whose receive in the order of the channel has another size.
	Resized int64
	// Sourceless is the number of receives whose source or tag the trace does not tell, Shadowed that of later ones
	// whose message one of them may have taken.
	Sourceless, Shadowed int64
	// Lost is the number of completions of requests that no call made.
	Lost int64
}

// rankFacts has what the passes find out about a rank.
type rankFacts struct {
	// Of the first pass, if it reads all calls: rows that are completed long after, by seq, and, by seq too, the bytes
	// of messages that are smaller than the buffer they were received in.
	far   map[int64]*slot
	sizes map[int64]int64

	// Of the second pass. collectives has for each communicator the sum of hashes of its operations' numbers and calls.
	rows, polls int64
	ended       bool
	threads     int32
	collectives map[int32]uint64
}

// New returns an import of a trace.
func New(trace Trace, o Options) *Job {
	n := len(trace.Comms.selfs)
	j := &Job{trace: trace, o: o, comms: trace.Comms, sketches: make([]Sketch, n), facts: make([]rankFacts, n),
		ByName: map[string]int64{}, keep: o.Keep}
	switch {
	case o.Keep > 0:
	case j.skims():
		j.keep = max(skimmedTarget/n, leastSkimmed)
	default:
		j.keep = min(max(keptTarget/n, leastKept), mostKept)
	}
	if j.o.Round == 0 {
		j.o.Round = max(mostEpoch/int64(n), 1)
	}
	for i := range j.facts {
		j.sketches[i] = Sketch{job: j, first: 1 << 62}
		j.facts[i] = rankFacts{far: map[int64]*slot{}, sizes: map[int64]int64{}}
	}
	return j
}

// Import reads the trace twice, to learn and to write, and writes the tables events, messages, comms and ranks.
func (j *Job) Import(ctx context.Context, out Sink) error {
	learn := j.learn
	if j.skims() {
		learn = j.skim
	}
	if err := learn(ctx); err != nil {
		return err
	}
	j.settle()
	if err := j.write(ctx, out); err != nil {
		return err
	}
	j.countUneven()
	if err := out.Write(0, j.comms.rows()); err != nil {
		return err
	}
	return j.writeRanks(out)
}

// Parallel calls fn for 0 to n-1, some at once, and returns the error of the lowest.
func Parallel(n int, fn func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
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

// learner is the first pass over a rank.
type learner struct {
	r      *rankReader
	sketch *Sketch
	done   bool
	posted []posting
	sends  []match.Send
	recvs  []match.Recv
}

// learn reads the calls of all ranks to know what writing needs. The ranks of a trace that tells only the size of
// receive buffers are read in rounds, to find the sizes of the messages; other ranks are read one after the other.
func (j *Job) learn(ctx context.Context) error {
	n := len(j.facts)
	if !j.trace.AtMost {
		return Parallel(n, func(rank int) error {
			l, err := j.learner(rank)
			if err != nil {
				return err
			}
			defer l.r.close()
			return l.rows(ctx, 1<<62)
		})
	}
	all := make([]*learner, 0, n)
	defer func() {
		for _, l := range all {
			l.r.close()
		}
	}()
	for rank := range n {
		l, err := j.learner(rank)
		if err != nil {
			return err
		}
		all = append(all, l)
	}
	var m match.Matcher
	for slices.ContainsFunc(all, func(l *learner) bool { return !l.done }) {
		if err := Parallel(n, func(rank int) error { return all[rank].rows(ctx, j.o.Round) }); err != nil {
			return err
		}
		j.sizes(&m, all)
	}
	return nil
}

func (j *Job) learner(rank int) (*learner, error) {
	r, err := j.rankReader(int32(rank), true)
	if err != nil {
		return nil, err
	}
	return &learner{r: r, sketch: &j.sketches[rank]}, nil
}

// rows learns from the next rows, up to most of them.
func (l *learner) rows(ctx context.Context, most int64) error {
	j := l.r.j
	for n := int64(0); n < most && !l.done; n++ {
		if n%reportRows == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			j.report(l.r)
		}
		s, err := l.r.next()
		if err != nil {
			return err
		}
		if s == nil {
			l.done = true
			break
		}
		l.sketch.row(&s.row)
		if j.trace.AtMost {
			l.sends = addSend(l.sends, s)
			l.post(s)
		}
	}
	l.settle()
	j.report(l.r)
	return nil
}

// sizes matches a round of messages, and notes the sizes of those that are smaller than the buffer of their receive.
func (j *Job) sizes(m *match.Matcher, all []*learner) {
	note := func(s *match.Send, r *match.Recv) {
		if r.Bytes != null64 && s.Bytes < r.Bytes {
			j.facts[r.Dst].sizes[r.PostSeq] = s.Bytes
		}
	}
	for _, l := range all {
		for i := range l.recvs {
			if s := m.Recv(&l.recvs[i]); s != nil {
				note(s, &l.recvs[i])
			}
		}
		l.recvs = l.recvs[:0]
	}
	for _, l := range all {
		for i := range l.sends {
			if r := m.Send(&l.sends[i]); r != nil {
				note(&l.sends[i], r)
			}
		}
		l.sends = l.sends[:0]
	}
	m.Sweep()
}

// report adds to the progress what a rank read since it was reported last.
func (j *Job) report(r *rankReader) {
	now := int64(0)
	for _, s := range r.sources {
		now += s.Read()
	}
	j.read.Add(now - r.reported)
	r.reported = now
	j.tell()
}

// tell tells the progress.
func (j *Job) tell() {
	if j.o.Progress != nil {
		j.o.Progress(j.read.Load(), 2*j.trace.Size)
	}
}

// add takes a row of the second pass.
func (f *rankFacts) add(row *schema.Event) {
	f.rows++
	f.threads = max(f.threads, row.Thread+1)
	if row.Polls != null64 {
		f.polls += row.Polls
	}
	if schema.CallID(row.Call).Is(schema.FactFinalizes) && row.EndNs != null64 {
		f.ended = true
	}
	f.addCollective(row)
}

// addCollective takes a row, whose communicator is known by now, if it is a collective operation.
func (f *rankFacts) addCollective(row *schema.Event) {
	if row.Instance == null64 {
		return
	}
	if f.collectives == nil {
		f.collectives = map[int32]uint64{}
	}
	operation := binary.LittleEndian.AppendUint64(make([]byte, 0, 10), uint64(row.Instance))
	f.collectives[row.Comm] += xxh3.Hash(binary.LittleEndian.AppendUint16(operation, uint16(row.Call)))
}

// countUneven counts the communicators of several ranks whose members do not make the same collective operations.
func (j *Job) countUneven() {
	for _, c := range j.comms.all {
		members := slices.Concat(c.Groups[0], c.Groups[1])
		if slices.ContainsFunc(members, func(rank int32) bool {
			return j.facts[rank].collectives[c.ID] != j.facts[members[0]].collectives[c.ID]
		}) {
			j.Uneven++
		}
	}
}

// settle evaluates the first pass.
func (j *Job) settle() {
	rows := make([]int64, len(j.sketches))
	first, all := int64(1<<62), int64(0)
	for i := range j.sketches {
		rows[i] = j.sketches[i].rows
		all += rows[i]
		first = min(first, j.sketches[i].first)
	}
	if first < 0 { // calls before the zero of the trace's times
		j.shift = first
	}
	j.shardOf, j.shardCount = writer.Shards(rows, j.o.ShardRows)
	j.comms.placeSelf()
	if j.trace.Learned != nil {
		j.trace.Learned()
	}
	j.bounds = j.epochBounds(all)
}

// epochBounds returns the times at which epochs 1, 2, ... begin, so that each has about the same number of rows.
func (j *Job) epochBounds(rows int64) (bounds []int64) {
	var samples []int64
	for i := range j.sketches {
		samples = append(samples, j.sketches[i].samples...)
		j.sketches[i].samples = nil
	}
	slices.Sort(samples)
	target := j.o.EpochRows
	if target == 0 {
		target = min(max(rows/usualEpochs, leastEpoch), mostEpoch)
	}
	n := (rows + target/2) / target
	for k := int64(1); k < n; k++ {
		at := samples[k*int64(len(samples))/n]
		if len(bounds) == 0 && at > samples[0] || len(bounds) > 0 && at > bounds[len(bounds)-1] {
			bounds = append(bounds, at)
		}
	}
	return bounds
}
