package tit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/run"
	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Options control the import. The zero value works.
type Options struct {
	importing.Options // Progress counts rows
	// FlopsPerSecond is the speed of the machine that the trace's numbers of operations become times on; 0 means 1e9.
	FlopsPerSecond float64

	epochRows int64 // 0: the target below; tests use tiny ones
}

func (o *Options) flopsPerSecond() float64 {
	if o.FlopsPerSecond > 0 {
		return o.FlopsPerSecond
	}
	return 1e9 / NsPerFlop
}

const (
	// epochTarget is the number of rows of an epoch over all ranks: those held in memory together.
	epochTarget = 1 << 20
	// bufferTarget is the memory for reading all ranks at the same time.
	bufferTarget, leastBuffer, mostBuffer = 64 << 20, 4 << 10, 1 << 20
)

// ImportFile imports a trace, the trace whose files a list names, or that of a folder of Export, as an untimed run of
// this name in a store. Without a name the run gets that of the file, or of its folder if the file is a list of Export.
func ImportFile(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	info, err := os.Stat(path)
	isFolder := err == nil && info.IsDir()
	first := path
	if isFolder {
		first = filepath.Join(path, ListName)
	}
	files, err := filesOf(first, isFolder)
	if err != nil {
		return nil, err
	}
	if name == "" {
		named := path
		if !isFolder && filepath.Base(path) == ListName {
			named = filepath.Dir(path)
		}
		if name, err = writer.NameOf(named, ".txt", ".tit"); err != nil {
			return nil, err
		}
	}
	return importFiles(ctx, path, files, openFile, store, name, o)
}

// importFiles imports the trace in files as the run of this name in a store, and leaves none of them open.
func importFiles(ctx context.Context, path string, files []string, open opener, store, name string,
	o Options) (*schema.Manifest, error) {
	t, err := openTrace(files, open)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.close() }() // it was only read
	u, err := read(ctx, path, t, o)
	if err != nil {
		return nil, err
	}
	u.Store, u.Name, u.Replace, u.Progress = store, name, o.Replace, o.Progress
	return run.WriteUntimed(ctx, u)
}

// job is the state of an import: what the first pass over the ranks learns for the second.
type job struct {
	*trace
	o      Options
	window int64 // rows of a rank in an epoch
	facts  []facts
	epochs int32
	tally  tally

	kinds    map[int]int32 // rows of datatypes by number
	types    []schema.Datatype
	sites    map[place]int32
	siteRows []schema.Callsite

	// next is the instance of the first operation that some ranks have not reached; reached has those from it on.
	next    int64
	reached []operation
}

// place is a place in the source.
type place struct {
	file string
	line int32
}

// operation is a collective operation that some ranks have not reached.
type operation struct {
	call  schema.CallID
	root  int32
	rank  int32 // the first that reached it
	at    string
	count int
}

// tally counts what became something else, or no row.
type tally struct{ tests, lone, open, resized, comms, sleeps int64 }

// read reads a trace once, and returns the run to write, which reads it again.
func read(ctx context.Context, name string, t *trace, o Options) (*run.Untimed, error) {
	if o.epochRows == 0 {
		o.epochRows = epochTarget
	}
	j := &job{trace: t, o: o, window: max(o.epochRows/int64(len(t.ranks)), 1), facts: make([]facts, len(t.ranks)),
		kinds: map[int]int32{}, sites: map[place]int32{}}
	if err := j.learn(ctx); err != nil {
		return nil, err
	}
	origin := o.Origin
	origin.Trace = &schema.Trace{Format: "tit", File: filepath.Base(name)}
	u := &run.Untimed{Manifest: schema.Manifest{
		Ranks: int32(len(j.facts)), TimeOrigin: "untimed", ComputeClock: "cpu", Record: "all", Hash: "none",
		Callsites: len(j.siteRows) > 0, Ended: schema.EndedNames[schema.EndedFinalized], Warnings: j.warnings(),
		Origin: origin,
	}, Comms: j.comms(), Callsites: j.siteRows, Datatypes: j.types, Epochs: j.epochs, Callsite: j.noSite}
	if u.Manifest.Callsites {
		u.Manifest.Stack = 1
	}
	for i := range j.facts {
		u.Calls = append(u.Calls, j.facts[i].rows)
	}
	ranks := j.readers(false)
	epoch := int32(0)
	u.Next = func(rank int32, events *schema.Events, parts *schema.Parts) error {
		err := ranks[rank].decode(epoch, events, parts)
		if int(rank) == len(ranks)-1 {
			epoch++
		}
		return err
	}
	return u, nil
}

// noSite is the call site of a row of a later epoch that completes a receive.
func (j *job) noSite(int32, int64) int32 { return null32 }

// readers begins to read all ranks.
func (j *job) readers(first bool) []*rank {
	buffer := min(max(bufferTarget/len(j.facts), leastBuffer), mostBuffer)
	all := make([]*rank, len(j.facts))
	for i := range all {
		all[i] = &rank{job: j, me: int32(i), facts: &j.facts[i], lines: j.linesOf(int32(i), buffer), first: first,
			byDefault: byteType, callsite: null32}
	}
	return all
}

// learn reads the trace for what must be known in advance.
func (j *job) learn(ctx context.Context) error {
	ranks := j.readers(true)
	var events schema.Events
	var matcher match.Rows
	for more := true; more; j.epochs++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		events.Resize(0)
		more = false
		for _, r := range ranks {
			if err := r.decode(j.epochs, &events, nil); err != nil {
				return err
			}
			more = more || !r.ended
		}
		matcher.Epoch([]*schema.Events{&events}, j.pair)
	}
	if sends, recvs := matcher.Waiting(); sends+recvs > 0 {
		return fmt.Errorf("%s: %d sends have no receive and %d receives no send; the trace is not whole", j.files[0],
			sends, recvs)
	}
	if len(j.reached) > 0 {
		o := &j.reached[0]
		return fmt.Errorf("%s: %s of rank %d is collective operation %d, and only %d of %d ranks make it; the format has "+
			"no communicators, so that the trace of a program with several cannot be told apart", o.at, o.call, o.rank,
			j.next, o.count, len(j.facts))
	}
	j.tally.resized = 0
	for i := range j.facts {
		j.tally.resized += int64(len(j.facts[i].bytes))
	}
	return nil
}

// pair notes the size of a message whose receive states another.
func (j *job) pair(s *match.Send, r *match.Recv) {
	if s.Bytes == r.Bytes {
		return
	}
	f := &j.facts[r.Dst]
	if f.bytes == nil {
		f.bytes = map[int64]int64{}
	}
	f.bytes[r.PostSeq] = s.Bytes
}

// arrive notes that a rank reaches its next collective operation, which must be that of the others.
func (j *job) arrive(r *rank, call schema.CallID, root int32) error {
	for int64(len(j.reached)) <= r.instance-j.next {
		j.reached = append(j.reached, operation{})
	}
	o := &j.reached[r.instance-j.next]
	if o.count == 0 {
		s := &r.lines.segments[r.lines.seg]
		*o = operation{call: call, root: root, rank: r.me, at: fmt.Sprintf("%s:%d", j.files[s.file], r.lines.line)}
	}
	if o.call != call || o.root != root {
		return fmt.Errorf("it is collective operation %d of the rank, and that of rank %d is %s with root %d (%s); the "+
			"format has no communicators, so that the trace of a program with several cannot be told apart", r.instance,
			o.rank, o.call, max(o.root, 0), o.at)
	}
	o.count++
	for len(j.reached) > 0 && j.reached[0].count == len(j.facts) {
		j.reached = j.reached[1:]
		j.next++
	}
	return nil
}

// datatype returns the row of a datatype.
func (j *job) datatype(kind int) int32 {
	id, ok := j.kinds[kind]
	if !ok {
		id = int32(len(j.types))
		j.kinds[kind] = id
		row := schema.NullDatatype
		row.ID, row.Name, row.Combiner = id, datatypes[kind].name, "named"
		row.Bytes, row.ExtentBytes = datatypes[kind].bytes, datatypes[kind].bytes
		j.types = append(j.types, row)
	}
	return id
}

// site returns the row of a place in the source, null for the place that SimGrid writes for none.
func (j *job) site(file string, line int32) int32 {
	if line <= 0 {
		return null32
	}
	p := place{file, line}
	id, ok := j.sites[p]
	if !ok {
		id = int32(len(j.siteRows))
		j.sites[p] = id
		row := schema.NullCallsite
		row.ID, row.File, row.Line = id, file, line
		j.siteRows = append(j.siteRows, row)
	}
	return id
}

func (j *job) comms() []schema.Comm {
	all := make([]schema.Comm, len(j.facts))
	for i := range all {
		row := schema.NullComm
		row.Kind, row.Name, row.CommRank, row.WorldRank = int16(schema.CommWorld), "MPI_COMM_WORLD", int32(i), int32(i)
		all[i] = row
	}
	return all
}

// warnings tell what the format lacks, and what became something else.
func (j *job) warnings() []string {
	w := []string{"SimGrid's traces have no times, payload hashes, communicators and buffers, and do not tell the tags " +
		"of MPI_Sendrecv, which are 0 here."}
	say := func(n int64, what string) {
		if n > 0 {
			w = append(w, fmt.Sprintf("%s: %d.", what, n))
		}
	}
	t := &j.tally
	say(t.resized, "Receives that say another size than the message that they get has; the run has the message's")
	say(t.tests, "Tests, which have no row: the trace does not tell whether they found a request done")
	say(t.lone, "Waits for requests that are not open, which SimGrid skips, and so does this run")
	say(t.open, "Ranks with requests that nothing waits for; MPI_Waitall before MPI_Finalize completes them, as in "+
		"SimGrid")
	say(t.comms, "Actions that make communicators, which SimGrid skips, and so does this run")
	say(t.sleeps, "Times of sleeping that count as computing")
	return w
}
