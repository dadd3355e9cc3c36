package ingest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// PartOptions say how to ingest one part of a job: the ranks whose records are in one folder.
type PartOptions struct {
	Options
	// Parts is the number of parts of the job.
	Parts int
	// Share and Shares, when Shares is not 0, choose the ranks of one part from a folder with the records of several:
	// Share of Shares, from 0.
	Share, Shares int
	// Patience is how long to wait for news from the other parts; 0 means for ever.
	Patience time.Duration
	// Waiting, unless nil, is called with a description of what is missing, whenever that changes.
	Waiting func(what string)
}

// mostParts is the number of files that a table can have, at least one from each part.
const mostParts = 10_000

// checkDivisible rejects what cannot be ingested in parts.
func (o *PartOptions) checkDivisible(j *job) error {
	switch {
	case o.Record == RecordMessages:
		return fmt.Errorf("--record messages does not work with --parts: which rows it keeps is known only " +
			"when all messages are matched; ingest all of them, or put the files of all nodes into one folder and " +
			"leave out --parts")
	case j.virtual():
		return fmt.Errorf("records of simulator ranks cannot be ingested in parts; put " +
			"the files of all nodes into one folder and leave out --parts")
	}
	return nil
}

// IngestPart ingests one part of a job into parts, beside other processes that ingest the others. The process that
// finishes when all others have done so makes the run. That is the same run as Ingest makes of all records in one
// folder. IngestPart returns when the run is there: its manifest if this process made it, else nil. The steps that a
// process completed before it was killed are kept, and the next one continues from there.
func IngestPart(ctx context.Context, spoolDir string, parts *writer.Parts, o PartOptions) (*schema.Manifest, error) {
	if o.Parts < 1 || o.Parts > mostParts {
		return nil, fmt.Errorf("%d parts: want 1 to %d", o.Parts, mostParts)
	}
	o.maxShards = max(1, min(maxShards, mostParts/int64(o.Parts)))
	if err := o.withDefaults(); err != nil {
		return nil, err
	}
	own, err := openJob(spoolDir, o.Job, func(info *JobInfo) ([]string, error) {
		return ShareOf(info, o.Share, o.Shares)
	})
	if err != nil {
		return nil, err
	}
	defer own.close()
	if err := o.checkDivisible(own); err != nil {
		return nil, err
	}
	p := &partIngest{o: &o, parts: parts, own: own, number: own.ranks[0].rank}
	release, err := p.begin()
	if err != nil {
		return nil, err
	}
	m, err := p.run(ctx)
	if errors.Is(err, errFinished) {
		err = p.parts.Remove()
	}
	if e := release(); !errors.Is(e, fs.ErrNotExist) { // else the run got its name, and the lock is gone
		err = errors.Join(err, e)
	}
	return m, err
}

// ShareOf returns the files of a share of a job's ranks: share of shares, from 0; all files when shares is 0. It is an
// error when the share has no ranks.
func ShareOf(job *JobInfo, share, shares int) ([]string, error) {
	if shares == 0 {
		return job.Files, nil
	}
	var ranks []int
	for _, f := range job.Files {
		ranks = append(ranks, rankOfFile(f))
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	ranks = ranks[share*len(ranks)/shares : (share+1)*len(ranks)/shares]
	if len(ranks) == 0 {
		return nil, fmt.Errorf("it has the records of fewer ranks than %d parts", shares)
	}
	return slices.DeleteFunc(slices.Clone(job.Files), func(f string) bool {
		_, ok := slices.BinarySearch(ranks, rankOfFile(f))
		return !ok
	}), nil
}

// rankOfFile returns the rank whose records are in a file, by the file's name.
func rankOfFile(name string) int {
	n, _ := strconv.Atoi(fileName.FindStringSubmatch(name)[2])
	return n
}

// partIngest ingests one part. All parts take the same steps, and leave a file for the others after each: the index
// of their ranks, the receives of messages that other parts sent, and their rows. partfiles.go has these files.
type partIngest struct {
	o      *PartOptions
	parts  *writer.Parts
	own    *job
	number int32  // its lowest rank
	waits  string // what it is waiting for

	// known once the indexes of all parts are there
	all      *job
	remote   *partSites
	warnings warnings
	numbers  []int32 // of all parts, ascending
	partOf   []int32 // index in numbers by world rank; -1: no records
	plan     *plan   // nil until it is needed
}

// begin checks that the job and the options agree with those of the other parts, and takes the lock of this part.
func (p *partIngest) begin() (release func() error, err error) {
	if err := p.agree(); err != nil {
		return nil, err
	}
	const tries = 20 // another process may hold the lock for a moment to see whether this part is alive
	for i := 0; ; i++ {
		release, err = p.parts.Lock(partFile(p.number, ""))
		if !errors.Is(err, writer.ErrBusy) || i == tries {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if err == writer.ErrBusy { // else it says more
		return nil, fmt.Errorf("another process ingests the part of rank %d; wait for it to end, or give each "+
			"process its --part when all nodes see the same spool folder",
			p.number)
	}
	return release, err
}

// agree writes what all parts must agree on; if another part came first, it compares with that.
func (p *partIngest) agree() error {
	o := &p.o.Options
	text, err := json.MarshalIndent(partJob{
		Job: p.own.idText(), Ranks: p.own.size, Parts: p.o.Parts, Shares: p.o.Shares, Record: o.Record, Calls: o.Calls,
		TimeResolutionNs: o.TimeResolutionNs,
		NoSymbols:        o.NoSymbols, Partial: o.Partial, SchemaVersion: schema.Version, SpoolVersion: spool.Version,
		Commq: o.Origin.Commq}, "", "  ")
	if err != nil {
		return err
	}
	err = p.parts.PutFirst(jobFile, text)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	first, err := os.ReadFile(p.parts.Path(jobFile))
	if err != nil {
		return err
	}
	if !bytes.Equal(first, text) {
		return fmt.Errorf("%s was begun with another job or other options; continue with those, or "+
			"remove the folder: there %s, here %s",
			p.parts.Path(jobFile), oneLine(first), oneLine(text))
	}
	return nil
}

func oneLine(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return string(text)
	}
	return b.String()
}

// errFinished means that another process has made the run.
var errFinished = errors.New("the run is there")

// run does the remaining steps.
func (p *partIngest) run(ctx context.Context) (*schema.Manifest, error) {
	if !p.parts.Has(partFile(p.number, rowsEnding)) {
		if err := p.makeRows(ctx); err != nil {
			return nil, err
		}
	}
	if err := p.join(ctx, nil); err != nil {
		return nil, err
	}
	return p.finish(ctx)
}

// makeRows does the work of the part.
func (p *partIngest) makeRows(ctx context.Context) error {
	o := &p.o.Options
	if err := scanRanks(ctx, p.own.ranks, o); err != nil {
		return err
	}
	if err := p.own.checkDamage(o.Partial); err != nil {
		return err
	}
	if err := p.putIndex(); err != nil {
		return err
	}
	if err := p.join(ctx, p.own); err != nil {
		return err
	}
	if err := p.makePlan(); err != nil {
		return err
	}
	if err := cutEpochs(ctx, p.own.ranks, p.plan.bounds, o.Workers); err != nil {
		return err
	}
	l := newLayout(p.own.ranks, o)
	if len(p.numbers) > 1 {
		if !p.parts.Has(partFile(p.number, receivesEnding)) {
			if err := p.putReceives(ctx, l); err != nil {
				return err
			}
		}
		if err := p.wait(ctx, receivesEnding); err != nil {
			return err
		}
	}
	return p.putRows(ctx, l)
}

// join waits for the indexes of all parts and makes the whole job from them. own is nil if the rows of this part are
// already written, so that its ranks were not scanned.
func (p *partIngest) join(ctx context.Context, own *job) error {
	if p.all != nil {
		return nil
	}
	indexes, err := p.readIndexes(ctx)
	if err != nil {
		return err
	}
	base := job{dir: p.parts.Dir(), id: p.own.id, size: p.own.size}
	if p.all, p.remote, err = joinParts(own, base, indexes); err == nil {
		err = p.all.checkPresent(p.o.Partial, &p.warnings)
	}
	if err != nil {
		return err
	}
	p.partOf = slices.Repeat([]int32{-1}, int(p.own.size))
	for i, x := range indexes {
		p.numbers = append(p.numbers, x.Ranks[0].Rank)
		for k := range x.Ranks {
			p.partOf[x.Ranks[k].Rank] = int32(i)
		}
	}
	return nil
}

// makePlan makes the plan of the whole job.
func (p *partIngest) makePlan() (err error) {
	if p.plan == nil {
		p.plan, err = newPlan(p.all, &p.o.Options, p.remote, &p.warnings)
	}
	return err
}

// newPass begins a pass over the ranks of this part.
func (p *partIngest) newPass(l *layout) *pass {
	pass := newPass(p.plan, l, p.own.size, p.o.Workers)
	own, _ := slices.BinarySearch(p.numbers, p.number)
	pass.away = make([]bool, p.own.size)
	for rank, part := range p.partOf {
		pass.away[rank] = part >= 0 && part != int32(own)
	}
	return pass
}

// putReceives writes what the ranks of this part received from ranks of the others.
func (p *partIngest) putReceives(ctx context.Context, l *layout) error {
	f, err := createReceives(p.parts, p.number)
	if err != nil {
		return err
	}
	defer f.file.Close()
	pass := p.newPass(l)
	byPart := make([][]match.Recv, len(p.numbers))
	e := pass.newEpoch()
	for e.number = range p.plan.epochs() {
		if err := pass.decode(ctx, e); err != nil {
			return err
		}
		for _, d := range pass.decoders {
			for i := range d.ends.recvs {
				if d.ends.state[i] == recvKnown && pass.away[d.ends.recvs[i].Src] {
					k := p.partOf[d.ends.recvs[i].Src]
					byPart[k] = append(byPart[k], d.ends.recvs[i])
				}
			}
		}
		for k, recvs := range byPart {
			if err := f.write(e.number, p.numbers[k], recvs); err != nil {
				return err
			}
			byPart[k] = recvs[:0]
		}
	}
	return f.finish(p.parts, p.number)
}

// putRows makes and writes the rows of this part's ranks, and the messages that they sent.
func (p *partIngest) putRows(ctx context.Context, l *layout) error {
	readers, closeAll, err := p.openReceives()
	if err != nil {
		return err
	}
	defer closeAll()
	out := p.parts.Begin()
	defer out.Abort()
	kept, err := createPartRows(p.parts.Path(partFile(p.number, rowsEnding) + dataEnding))
	if err != nil {
		return err
	}
	defer kept.file.Close()
	pass := p.newPass(l)
	w := newRowWriter(shiftedSink{out, p.firstShard()}, &p.o.Options, l.shards)
	w.putParts = kept.put
	w.beginEpoch = func(e int32) error {
		pass.foreign = make([][]match.Recv, l.shards)
		for i := range readers {
			recvs, err := readers[i].read(e)
			if err == nil {
				err = pass.addForeign(recvs, readers[i].file.Name())
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.writeAll(ctx, pass); err != nil {
		return err
	}
	if err := kept.finish(); err != nil {
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
	return p.parts.Put(partFile(p.number, rowsEnding), data)
}

// shiftedSink is a sink for the files of one part: their numbers follow those of the parts before.
type shiftedSink struct {
	out   sink
	first int
}

func (s shiftedSink) Write(shard int, b schema.Batch) error { return s.out.Write(s.first+shard, b) }

// firstShard returns the number of the part's first file of each table.
func (p *partIngest) firstShard() int {
	rows, ranks := make([]int64, len(p.numbers)), make([]int, len(p.numbers))
	for _, r := range p.all.ranks {
		rows[p.partOf[r.rank]] += r.facts.Rows
		ranks[p.partOf[r.rank]]++
	}
	first := 0
	for i := range p.numbers {
		if p.numbers[i] == p.number {
			break
		}
		first += p.o.shardsFor(rows[i], ranks[i])
	}
	return first
}

// finish waits for the rows of all parts and makes the run from them, unless another process does.
func (p *partIngest) finish(ctx context.Context) (m *schema.Manifest, err error) {
	err = p.waitUntil(ctx, func() (string, error) {
		if what := p.missing(rowsEnding); what != "" {
			if !p.parts.Has(jobFile) {
				return "", p.checkRemoved()
			}
			return what, nil
		}
		m, err = p.commit(ctx)
		if errors.Is(err, writer.ErrBusy) {
			what := "the process that makes the run of all parts"
			if err != writer.ErrBusy {
				what += fmt.Sprintf(" (%v)", err)
			}
			return what, nil
		}
		return "", err
	})
	return m, err
}

// checkRemoved returns an error if the hidden folder is gone although there is no run.
func (p *partIngest) checkRemoved() error {
	if done, err := p.parts.Done(p.own.idText()); done || err != nil {
		return err
	}
	return fmt.Errorf("%s was removed meanwhile; begin again", p.parts.Dir())
}

// commit makes the run from the rows of all parts. It returns nil if another process has made it.
func (p *partIngest) commit(ctx context.Context) (*schema.Manifest, error) {
	var files []writer.PartFile
	sum := &tally{}
	release, err := p.parts.Lock("commit")
	if err != nil {
		return nil, err
	}
	defer release()
	if done, err := p.parts.Done(p.own.idText()); done || err != nil { // made by the process that had the lock before
		return nil, err
	}
	for _, n := range p.numbers {
		var rows partRows
		if err := readPartFile(p.parts, partFile(n, rowsEnding), &rows); err != nil {
			return nil, err
		}
		if err := rows.Tally.check(); err != nil {
			return nil, fmt.Errorf("%s: %w", p.parts.Path(partFile(n, rowsEnding)), err)
		}
		files = append(files, rows.Files...)
		sum.add(&rows.Tally)
	}
	if err := p.makePlan(); err != nil {
		return nil, err
	}
	out, err := p.parts.Assemble(files)
	if err != nil {
		return nil, err
	}
	defer out.Abort()
	if err := p.plan.writeDefinitions(p.all, out); err != nil {
		return nil, err
	}
	if err := p.writeParts(out); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sim := &simulation{origin: p.o.Origin.Simulation}
	m := newManifest(p.all, p.plan, &p.o.Options, sum, sim, slices.Clone(p.warnings))
	if p.all.troubled(m) {
		out.CheckFirst()
	}
	if err := out.Commit(ctx, m); err != nil {
		return nil, err
	}
	return m, p.parts.Remove()
}

// wait waits until all parts have a file with that ending.
func (p *partIngest) wait(ctx context.Context, ending string) error {
	return p.waitUntil(ctx, func() (string, error) {
		return p.missing(ending), nil
	})
}

// missing names the parts without a file with that ending; "" means that all have it.
func (p *partIngest) missing(ending string) string {
	var missing []string
	for _, n := range p.numbers {
		if !p.parts.Has(partFile(n, ending)) {
			missing = append(missing, fmt.Sprint(n))
		}
	}
	if len(missing) == 0 {
		return ""
	}
	const most = 5
	if n := len(missing) - most; n > 0 {
		missing = append(missing[:most], fmt.Sprintf("and %d more", n))
	}
	return fmt.Sprintf("the parts whose lowest ranks are %s", strings.Join(missing, ", "))
}

// waitUntil calls step from time to time until it returns "". Otherwise step returns what it is waiting for.
func (p *partIngest) waitUntil(ctx context.Context, step func() (string, error)) error {
	pause, since := 10*time.Millisecond, time.Now()
	for {
		// another process may have had everything
		if done, err := p.parts.Done(p.own.idText()); done || err != nil {
			return cmp.Or(err, errFinished)
		}
		what, err := step()
		if what == "" || err != nil {
			p.waits = ""
			return err
		}
		if what != p.waits {
			p.waits, since, pause = what, time.Now(), 10*time.Millisecond
			if p.o.Waiting != nil {
				p.o.Waiting(what)
			}
		}
		if p.o.Patience > 0 && time.Since(since) > p.o.Patience {
			return fmt.Errorf("nothing new for %v from %s; what is done is kept: run the processes that ended there again, and this one",
				p.o.Patience, what)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		pause = min(2*pause, time.Second)
	}
}
