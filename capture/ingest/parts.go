package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/commq/commq/capture/match"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// PartOptions says how to ingest one part of a job: the ranks whose records are in one folder.
type PartOptions struct {
	Options
	// Parts is the number of parts of the job.
	Parts int
	// Share and Shares, where Shares is not 0, choose of a folder with the records of several parts the ranks of one: Share of Shares, from 0.
	Share, Shares int
	// Patience is how long to wait for something new from the other parts; 0: for ever.
	Patience time.Duration
	// Waiting, when not nil, is called with what is waited for each time that changes.
	Waiting func(what string)
}

// Files that the processes of the parts put into the run's hidden folder, each behind the lowest rank of its part.
const (
	indexEnding    = ".index"    // a partIndex
	receivesEnding = ".receives" // a receiveIndex; the receives are in the file of that name with dataEnding behind
	rowsEnding     = ".rows"     // partRows; with dataEnding behind the rows of the table parts
	dataEnding     = ".data"
	jobFile        = "job.json"
)

// partJob is what all parts of a run must agree on.
type partJob struct {
	Job              string   `json:"job"`
	Ranks            int32    `json:"ranks"`
	Parts            int      `json:"parts"`
	Shares           int      `json:"shares"`
	Record           string   `json:"record"`
	Calls            []string `json:"calls"`
	TimeResolutionNs int64    `json:"time_resolution_ns"`
	NoSymbols        bool     `json:"no_symbols"`
	Partial          bool     `json:"partial"`
	SchemaVersion    int      `json:"schema_version"`
	SpoolVersion     int      `json:"spool_version"`
	Commq            string   `json:"commq"`
}

// partRows says that the rows of a part are written, and what they are.
type partRows struct {
	Files []writer.PartFile
	Tally tally
}

// receiveIndex says where a part's receives of sends of other parts are in its file.
type receiveIndex struct {
	Chunks []receiveChunk
}

// receiveChunk is the receives of an epoch of a part's ranks from those of the part To, by its lowest rank.
type receiveChunk struct {
	Epoch, To int32
	At, Count int64
}

// errNotParted says what cannot be ingested in parts.
func (o *PartOptions) errNotParted(j *job) error {
	switch {
	case o.Record == RecordMessages:
		return fmt.Errorf("--record messages is not there with --parts: which rows it keeps is known only when all messages are matched; ingest all of them, or put the files of all nodes into one folder and leave out --parts")
	case j.virtual():
		return fmt.Errorf("records of simulator ranks cannot be ingested in parts; put the files of all nodes into one folder and leave out --parts")
	}
	return nil
}

// IngestPart ingests one part of a job, into parts, beside other processes that ingest the others; whichever of them comes to the end first when all are there
// makes the run of them. The run is the same as that of Ingest over all records in one folder. It returns when the run is there: its manifest where this
// process made it, else nil. What a killed process had done of its part by then is kept, whole steps of it, and the next one goes on from there.
func IngestPart(ctx context.Context, spoolDir string, parts *writer.Parts, o PartOptions) (*schema.Manifest, error) {
	if o.Parts < 1 || o.Parts > mostParts {
		return nil, fmt.Errorf("%d parts: want 1 to %d", o.Parts, mostParts)
	}
	o.maxShards = max(1, min(maxShards, mostParts/int64(o.Parts)))
	if err := o.withDefaults(); err != nil {
		return nil, err
	}
	j, err := openPart(spoolDir, &o)
	if err != nil {
		return nil, err
	}
	defer j.close()
	p := &partIngest{PartOptions: o, parts: parts, own: j, number: j.ranks[0].rank}
	release, err := p.begin()
	if err != nil {
		return nil, err
	}
	m, err := p.run(ctx)
	if errors.Is(err, errFinished) {
		err = p.parts.Remove()
	}
	if e := release(); !errors.Is(e, fs.ErrNotExist) { // removed with all others, when the run had its name
		err = errors.Join(err, e)
	}
	return m, err
}

// errFinished says that the run is there.
var errFinished = errors.New("the run is there")

// mostParts is the number of files that a table can have, at least one of each part.
const mostParts = 10_000

// openPart opens the records of the part's ranks.
func openPart(dir string, o *PartOptions) (*job, error) {
	return openFiles(dir, o.Options, func(info *JobInfo) ([]string, error) { return ShareOf(info, o.Share, o.Shares) },
		func(j *job, _ *JobInfo) error { return o.errNotParted(j) })
}

// ShareOf are the files of a share of a job's ranks: share of shares, from 0; all where shares is 0. There is an error where it has none.
func ShareOf(job *JobInfo, share, shares int) ([]string, error) {
	if shares == 0 {
		return job.Files, nil
	}
	rankOf := func(name string) int {
		n, _ := strconv.Atoi(fileName.FindStringSubmatch(name)[2])
		return n
	}
	var ranks []int
	for _, f := range job.Files {
		ranks = append(ranks, rankOf(f))
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	ranks = ranks[share*len(ranks)/shares : (share+1)*len(ranks)/shares]
	if len(ranks) == 0 {
		return nil, fmt.Errorf("it has the records of fewer ranks than %d parts", shares)
	}
	return slices.DeleteFunc(slices.Clone(job.Files), func(f string) bool {
		_, ok := slices.BinarySearch(ranks, rankOf(f))
		return !ok
	}), nil
}

// partIngest is the ingest of one part.
type partIngest struct {
	PartOptions
	parts  *writer.Parts
	own    *job
	number int32 // its lowest rank

	all     *job    // of all parts
	numbers []int32 // of all parts, ascending
	partOf  []int32 // index in numbers by world rank; -1: no records
	waits   string  // what is waited for
}

func fileOf(part int32, ending string) string { return fmt.Sprintf("%d%s", part, ending) }

// begin compares the job with that of the others, and takes the part's lock.
func (p *partIngest) begin() (release func() error, err error) {
	o := &p.Options
	text, err := json.MarshalIndent(partJob{
		Job: p.jobID(), Ranks: p.own.size, Parts: p.Parts, Shares: p.Shares, Record: o.Record, Calls: o.Calls, TimeResolutionNs: o.TimeResolutionNs,
		NoSymbols: o.NoSymbols, Partial: o.Partial, SchemaVersion: schema.Version, SpoolVersion: spool.Version, Commq: o.Origin.Commq}, "", "  ")
	if err != nil {
		return nil, err
	}
	switch err := p.parts.PutFirst(jobFile, text); {
	case errors.Is(err, fs.ErrExist):
		first, err := os.ReadFile(p.parts.Path(jobFile))
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(first, text) {
			return nil, fmt.Errorf("%s was begun with another job or other options than these; end it with those it says, or remove the folder: there %s, here %s",
				p.parts.Path(jobFile), oneLine(first), oneLine(text))
		}
	case err != nil:
		return nil, err
	}
	const tries = 20 // who waits for a part looks at its lock for a moment
	for i := 0; ; i++ {
		release, err = p.parts.Lock(fileOf(p.number, ""))
		if !errors.Is(err, writer.ErrBusy) || i == tries {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if errors.Is(err, writer.ErrBusy) {
		return nil, fmt.Errorf("another process ingests the part of rank %d; wait for it to end, or, where all nodes see one spool folder, give each process its --part", p.number)
	}
	return release, err
}

func oneLine(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}

// run does what is left to do.
func (p *partIngest) run(ctx context.Context) (*schema.Manifest, error) {
	if !p.parts.Has(fileOf(p.number, rowsEnding)) {
		if err := p.makeRows(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.join(ctx, nil); err != nil {
		return nil, err
	}
	return p.end(ctx)
}

// makeRows does the part's work.
func (p *partIngest) makeRows(ctx context.Context) error {
	if err := p.own.scan(ctx); err != nil {
		return err
	}
	if err := p.putIndex(); err != nil {
		return err
	}
	if err := p.join(ctx, p.own); err != nil {
		return err
	}
	bounds, err := p.all.unify()
	if err != nil {
		return err
	}
	own := *p.all
	own.ranks, own.warnings, own.rows, own.counts = p.own.ranks, nil, 0, schema.Counts{}
	for _, r := range own.ranks {
		own.rows += r.rows
	}
	own.setShards()
	if err := own.split(ctx, bounds); err != nil {
		return err
	}
	if len(p.numbers) > 1 {
		if !p.parts.Has(fileOf(p.number, receivesEnding)) {
			if err := p.putReceives(ctx, &own); err != nil {
				return err
			}
		}
		if err := p.wait(ctx, receivesEnding); err != nil {
			return err
		}
	}
	return p.putRows(ctx, &own)
}

// putIndex tells the others of this part's ranks.
func (p *partIngest) putIndex() error {
	data, err := pack(p.own.index())
	if err != nil {
		return err
	}
	name := fileOf(p.number, indexEnding)
	if there, err := os.ReadFile(p.parts.Path(name)); err == nil {
		if !bytes.Equal(there, data) {
			return fmt.Errorf("the records in %s are not those from which %s was made; remove %s to begin again", p.own.dir, p.parts.Path(name), p.parts.Dir())
		}
		return nil
	}
	return p.parts.Put(name, data)
}

// join waits for the indexes of all parts and makes the whole job of them.
func (p *partIngest) join(ctx context.Context, own *job) error {
	if p.all != nil {
		return nil
	}
	indexes := map[string]*partIndex{}
	ranks := 0
	err := p.until(ctx, func() (string, error) {
		names, err := p.parts.List(indexEnding)
		if err != nil {
			return "", err
		}
		for _, name := range names {
			if indexes[name] != nil {
				continue
			}
			x := &partIndex{}
			if err := p.read(name, x); err != nil {
				return "", err
			}
			if err := x.check(p.own.size); err != nil {
				return "", fmt.Errorf("%s: %w", p.parts.Path(name), err)
			}
			indexes[name] = x
			ranks += len(x.Ranks)
		}
		if ranks >= int(p.own.size) || len(indexes) >= p.Parts {
			return "", nil
		}
		return fmt.Sprintf("%d of %d parts: records of %d of %d ranks are not there yet", p.Parts-len(indexes), p.Parts, int(p.own.size)-ranks, p.own.size), nil
	})
	if err != nil {
		return err
	}
	var list []*partIndex
	for _, x := range indexes {
		list = append(list, x)
	}
	p.all, err = joined(p.Options, p.parts.Dir(), p.own.id, p.own.size, own, list)
	if err != nil {
		return err
	}
	p.partOf = slices.Repeat([]int32{-1}, int(p.own.size))
	for i, x := range list { // joined has sorted them
		p.numbers = append(p.numbers, x.Ranks[0].Rank)
		for k := range x.Ranks {
			p.partOf[x.Ranks[k].Rank] = int32(i)
		}
	}
	return nil
}

func (p *partIngest) read(name string, v any) error {
	data, err := os.ReadFile(p.parts.Path(name))
	if err == nil {
		err = unpack(data, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; remove %s to begin again", p.parts.Path(name), err, p.parts.Dir())
	}
	return nil
}

// wait waits for the files of that ending of all parts.
func (p *partIngest) wait(ctx context.Context, ending string) error {
	return p.until(ctx, func() (string, error) {
		return p.missing(ending), nil
	})
}

// missing says of which parts files of that ending are not there; empty: of none.
func (p *partIngest) missing(ending string) string {
	var of []string
	for _, n := range p.numbers {
		if !p.parts.Has(fileOf(n, ending)) {
			of = append(of, fmt.Sprint(n))
		}
	}
	if len(of) == 0 {
		return ""
	}
	const most = 5
	if n := len(of) - most; n > 0 {
		of = append(of[:most], fmt.Sprintf("and %d more", n))
	}
	return fmt.Sprintf("the parts whose lowest ranks are %s", strings.Join(of, ", "))
}

// until calls done now and then until it returns an empty text; what it returns instead is what is waited for.
func (p *partIngest) until(ctx context.Context, done func() (string, error)) error {
	pause, since := 10*time.Millisecond, time.Now()
	for {
		if done, err := p.parts.Done(p.jobID()); done || err != nil { // by another process, which had all that was missing
			return cmp.Or(err, errFinished)
		}
		what, err := done()
		if what == "" || err != nil {
			p.waits = ""
			return err
		}
		if what != p.waits {
			p.waits, since, pause = what, time.Now(), 10*time.Millisecond
			if p.Waiting != nil {
				p.Waiting(what)
			}
		}
		if p.Patience > 0 && time.Since(since) > p.Patience {
			return fmt.Errorf("nothing new for %v from %s; what is done is kept: run again what ended there, and this", p.Patience, what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
	}
}

// away says by world rank which have their records in another part.
func (p *partIngest) away() []bool {
	own, _ := slices.BinarySearch(p.numbers, p.number)
	away := make([]bool, p.own.size)
	for rank, of := range p.partOf {
		away[rank] = of >= 0 && of != int32(own)
	}
	return away
}

// putReceives tells the other parts what the ranks of this one received from theirs.
func (p *partIngest) putReceives(ctx context.Context, own *job) error {
	name := fileOf(p.number, receivesEnding)
	f, err := os.Create(p.parts.Path(name + dataEnding))
	if err != nil {
		return err
	}
	defer f.Close()
	pass := own.newPass(nil)
	pass.away = p.away()
	var x receiveIndex
	at := int64(0)
	to := make([][]match.Recv, len(p.numbers))
	for e := range own.epochs {
		bases := pass.resize(e)
		if err := pass.decode(ctx, e, bases); err != nil {
			return err
		}
		for _, d := range pass.decoders {
			for i := range d.recvs {
				if d.state[i] == recvKnown && pass.away[d.recvs[i].Src] {
					k := p.partOf[d.recvs[i].Src]
					to[k] = append(to[k], d.recvs[i])
				}
			}
		}
		for k, of := range to {
			if len(of) == 0 {
				continue
			}
			if _, err := f.Write(recvBytes(of)); err != nil {
				return err
			}
			x.Chunks = append(x.Chunks, receiveChunk{e, p.numbers[k], at, int64(len(of))})
			at += int64(len(recvBytes(of)))
			to[k] = of[:0]
		}
	}
	if err := f.Sync(); err != nil {
		return err
	}
	data, err := pack(&x)
	if err != nil {
		return err
	}
	return p.parts.Put(name, data)
}

// recvBytes is the memory of receives. All processes are of the same commq, and of one kind of machine as the spool is.
func recvBytes(of []match.Recv) []byte {
	if len(of) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&of[0])), uintptr(len(of))*unsafe.Sizeof(of[0]))
}

// foreign are the receives of other parts of what this one sent, by part.
type foreign struct {
	file   *os.File
	chunks []receiveChunk // those for this part, by epoch
}

func (p *partIngest) openForeign() (list []foreign, closeAll func(), err error) {
	closeAll = func() {
		for _, f := range list {
			f.file.Close()
		}
	}
	for _, n := range p.numbers {
		if n == p.number {
			continue
		}
		name := fileOf(n, receivesEnding)
		var x receiveIndex
		err := p.read(name, &x)
		if err == nil {
			var f *os.File
			if f, err = os.Open(p.parts.Path(name + dataEnding)); err == nil {
				x.Chunks = slices.DeleteFunc(x.Chunks, func(c receiveChunk) bool { return c.To != p.number })
				list = append(list, foreign{f, x.Chunks})
			}
		}
		if err != nil {
			closeAll()
			return nil, nil, err
		}
	}
	return list, closeAll, nil
}

// read reads the receives of an epoch. Epochs come in order.
func (f *foreign) read(epoch int32) ([]match.Recv, error) {
	if len(f.chunks) == 0 || f.chunks[0].Epoch != epoch {
		return nil, nil
	}
	c := f.chunks[0]
	f.chunks = f.chunks[1:]
	of := make([]match.Recv, c.Count)
	if _, err := f.file.ReadAt(recvBytes(of), c.At); err != nil {
		return nil, fmt.Errorf("%s: %w", f.file.Name(), err)
	}
	return of, nil
}

// shifted is a sink for the files of one part: their numbers begin behind those of the parts before.
type shifted struct {
	to    sink
	first int
}

func (s shifted) Write(shard int, b schema.Batch) error { return s.to.Write(s.first+shard, b) }

// firstShard is the number of the part's first file of each table.
func (p *partIngest) firstShard() int {
	rows, ranks := make([]int64, len(p.numbers)), make([]int, len(p.numbers))
	for _, r := range p.all.ranks {
		rows[p.partOf[r.rank]] += r.rows
		ranks[p.partOf[r.rank]]++
	}
	first := 0
	for i := range p.numbers {
		if p.numbers[i] == p.number {
			break
		}
		first += p.all.shardsFor(rows[i], ranks[i])
	}
	return first
}

// putRows makes the rows of this part's ranks and of what they sent.
func (p *partIngest) putRows(ctx context.Context, own *job) error {
	from, closeAll, err := p.openForeign()
	if err != nil {
		return err
	}
	defer closeAll()
	out := p.parts.Begin()
	defer out.Abort()
	pass := own.newPass(shifted{out, p.firstShard()})
	pass.away = p.away()
	if own.sel.atOnce() {
		for _, d := range pass.decoders {
			d.keep = []bool{}
		}
	}
	kept, err := newPartsFile(p.parts.Path(fileOf(p.number, rowsEnding) + dataEnding))
	if err != nil {
		return err
	}
	defer kept.file.Close()
	pass.keepParts = kept.put
	for e := range own.epochs {
		if err := pass.receive(from, e); err != nil {
			return err
		}
		if err := pass.epoch(ctx, e); err != nil {
			return err
		}
	}
	if err := kept.end(); err != nil {
		return err
	}
	files, err := out.ClosePart()
	if err != nil {
		return err
	}
	data, err := pack(&partRows{files, *pass.tally()})
	if err != nil {
		return err
	}
	return p.parts.Put(fileOf(p.number, rowsEnding), data)
}

// receive reads the epoch's receives of other parts.
func (p *pass) receive(from []foreign, e int32) error {
	p.foreign = make([][]match.Recv, len(p.shards))
	for i := range from {
		of, err := from[i].read(e)
		if err != nil {
			return err
		}
		for k := range of {
			if src := of[k].Src; src < 0 || int(src) >= len(p.indexOf) || p.indexOf[src] < 0 {
				return fmt.Errorf("%s: a receive from rank %d, which is not of this part", from[i].file.Name(), src)
			}
			s := p.shardOf[p.indexOf[of[k].Src]]
			p.foreign[s] = append(p.foreign[s], of[k])
		}
	}
	return nil
}

// end waits for the rows of all parts, and makes the run of them unless another process does.
func (p *partIngest) end(ctx context.Context) (m *schema.Manifest, err error) {
	err = p.until(ctx, func() (string, error) {
		if what := p.missing(rowsEnding); what != "" {
			if !p.parts.Has(jobFile) {
				return "", p.removed()
			}
			return what, nil
		}
		m, err = p.commit(ctx)
		if errors.Is(err, writer.ErrBusy) {
			return "the process that makes the run of all parts", nil
		}
		return "", err
	})
	return m, err
}

func (p *partIngest) jobID() string { return fmt.Sprintf("%016x", p.own.id) }

// removed is the error when the hidden folder has gone and the run is not there.
func (p *partIngest) removed() error {
	if done, err := p.parts.Done(p.jobID()); done || err != nil {
		return err
	}
	return fmt.Errorf("%s was removed meanwhile; begin again", p.parts.Dir())
}

// commit makes the run of the parts' rows.
func (p *partIngest) commit(ctx context.Context) (*schema.Manifest, error) {
	var files []writer.PartFile
	sum := &tally{}
	release, err := p.parts.Lock("commit")
	if err != nil {
		return nil, err
	}
	defer release()
	if done, err := p.parts.Done(p.jobID()); done || err != nil { // by the one who had the lock before
		return nil, err
	}
	for _, n := range p.numbers {
		var rows partRows
		if err := p.read(fileOf(n, rowsEnding), &rows); err != nil {
			return nil, err
		}
		files = append(files, rows.Files...)
		sum.add(&rows.Tally)
	}
	j := p.all
	if j.comms == nil {
		if _, err := j.unify(); err != nil {
			return nil, err
		}
	}
	out, err := p.parts.Assemble(files)
	if err != nil {
		return nil, err
	}
	defer out.Abort()
	j.count(sum)
	j.warnOpen()
	if err := j.writeDefinitions(out); err != nil {
		return nil, err
	}
	if err := p.writeParts(out); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m := j.manifest()
	if err := out.Commit(m); err != nil {
		return nil, err
	}
	return m, p.parts.Remove()
}

// partsOf is the rows of the table parts of an epoch.
type partsOf struct {
	Epoch int32
	Rows  *schema.Parts
}

// partsFile is a file of such, which is whole when its part's rows are.
type partsFile struct {
	file    *os.File
	packed  *zstd.Encoder
	encoder *gob.Encoder
}

func newPartsFile(path string) (*partsFile, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	w, err := zstd.NewWriter(f, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &partsFile{f, w, gob.NewEncoder(w)}, nil
}

func (f *partsFile) put(epoch int32, rows *schema.Parts) error {
	if rows.Len() == 0 {
		return nil
	}
	err := f.encoder.Encode(partsOf{epoch, rows})
	rows.Resize(0)
	return err
}

func (f *partsFile) end() error { return errors.Join(f.packed.Close(), f.file.Sync()) }

// partsReader reads such a file.
type partsReader struct {
	decoder *gob.Decoder
	next    partsOf
	ended   bool
}

func (r *partsReader) advance() error {
	r.next = partsOf{}
	err := r.decoder.Decode(&r.next)
	if errors.Is(err, io.EOF) {
		r.ended = true
		return nil
	}
	return err
}

// writeParts writes the table parts: the rows of all, epoch by epoch, by rank.
func (p *partIngest) writeParts(out sink) error {
	var readers []*partsReader
	for _, n := range p.numbers {
		f, err := os.Open(p.parts.Path(fileOf(n, rowsEnding) + dataEnding))
		if err != nil {
			return err
		}
		defer f.Close()
		z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return err
		}
		defer z.Close()
		r := &partsReader{decoder: gob.NewDecoder(z)}
		if err := r.advance(); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
		readers = append(readers, r)
	}
	var rows schema.Parts
	for e := range p.all.epochs {
		var of []schema.Part
		for _, r := range readers {
			if r.ended || r.next.Epoch != e {
				continue
			}
			for i := range r.next.Rows.Len() {
				var row schema.Part
				r.next.Rows.Row(i, &row)
				of = append(of, row)
			}
			if err := r.advance(); err != nil {
				return err
			}
		}
		slices.SortFunc(of, func(a, b schema.Part) int {
			return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.PeerWorld, b.PeerWorld))
		})
		for i := range of {
			rows.Append(&of[i])
		}
		if err := writeParts(out, &rows, e == p.all.epochs-1); err != nil {
			return err
		}
	}
	return nil
}
