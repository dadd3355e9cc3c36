// Package ingest turns a spool into a run: it reads what the ranks of a job recorded, finds out which communicators and
// datatypes are the same, brings all times onto one clock, matches sends with receives and writes the tables.
//
// The spool is read twice, by as many workers as there are cores. The first pass collects definitions, counts and an
// index; from it follow the communicators, the clocks and the epochs. The second pass makes the rows, epoch by epoch, so
// that memory is bounded by an epoch and by what is in flight, whatever the size of the job.
package ingest

import (
	"context"
	"fmt"
	"runtime"

	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// What Options.Record may be.
const (
	// RecordAll keeps a row of events for every call.
	RecordAll = "all"
	// RecordMessages drops the rows of matched messages and of their completion calls.
	RecordMessages = "messages"
	// RecordCollectives keeps what is not point-to-point: collectives and what completes them, communicators, RMA, I/O and
	// marks. Messages are counted and have no rows.
	RecordCollectives = "collectives"
)

// Options says how to ingest a spool. The zero value keeps every row of the only job there.
type Options struct {
	// Record is RecordAll, RecordMessages or RecordCollectives; empty is RecordAll.
	Record string
	// Calls says by patterns of MPI names, as path.Match has them, which rows are kept: MPI_Isend, MPI_I*. One that begins
	// with - leaves its calls out instead. With none that keeps calls, all are kept but those left out. A message goes with
	// the row that sent it. Empty: everything is kept.
	Calls []string
	// Workers is the number of concurrent workers; 0 is one per core. The run does not depend on it.
	Workers int
	// Progress, when not nil, is called now and then with the calls done and their total. Calls do not overlap.
	Progress func(done, total int64)
	// Partial accepts a spool in which ranks are missing or records were cut off. The run's warnings say so.
	Partial bool
	// Origin is what the caller knows of where the run came from; what the spool knows is filled in where it is empty.
	Origin schema.Origin
	// TimeResolutionNs rounds times down to its multiples, which makes a run smaller; a power of two, 0 is 1 ns.
	TimeResolutionNs int64
	// Job is the id of the job, 16 hexadecimal digits; empty: the only job in the spool.
	Job string

	// NoSymbols leaves the functions, files and lines of call sites unknown: the modules' files are not read.
	NoSymbols bool

	epochRows int64 // rows per epoch; 0: epochTarget. Tests use tiny ones.
	shardRows int64 // rows per shard; 0: shardTarget
	maxShards int64 // files of a table, of each part; 0: maxShards
}

const (
	// epochTarget is the number of rows of an epoch over all ranks: what is held in memory at once, some 250 bytes each.
	epochTarget = 1 << 20
	// shardTarget is the number of rows per file of a table that has several, up to maxShards.
	shardTarget = 2 << 20
	maxShards   = 8
)

func (o *Options) withDefaults() error {
	switch o.Record {
	case "":
		o.Record = RecordAll
	case RecordAll, RecordMessages, RecordCollectives:
	default:
		return fmt.Errorf("record %q: want %s, %s or %s", o.Record, RecordAll, RecordMessages, RecordCollectives)
	}
	if o.TimeResolutionNs == 0 {
		o.TimeResolutionNs = 1
	}
	if o.TimeResolutionNs < 1 || o.TimeResolutionNs&(o.TimeResolutionNs-1) != 0 || o.TimeResolutionNs > 1<<30 {
		return fmt.Errorf("time resolution of %d ns: want a power of two up to 2^30", o.TimeResolutionNs)
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.epochRows <= 0 {
		o.epochRows = epochTarget
	}
	if o.shardRows <= 0 {
		o.shardRows = shardTarget
	}
	if o.maxShards <= 0 {
		o.maxShards = maxShards
	}
	if o.Progress == nil {
		o.Progress = func(done, total int64) {}
	}
	return nil
}

// Ingest writes the tables of a job in the spool folder to out and commits it. The error names the file, or the rank, and
// what can be done; out is then aborted. The run does not depend on the number of workers.
func Ingest(ctx context.Context, spoolDir string, out *writer.Run, o Options) (*schema.Manifest, error) {
	m, err := ingest(ctx, spoolDir, out, o)
	if err != nil {
		_ = out.Abort() // the first error counts
		return nil, err
	}
	return m, nil
}

func ingest(ctx context.Context, spoolDir string, out *writer.Run, o Options) (*schema.Manifest, error) {
	if err := o.withDefaults(); err != nil {
		return nil, err
	}
	job, err := openJob(spoolDir, o)
	if err != nil {
		return nil, err
	}
	defer job.close()
	m, err := job.run(ctx, out)
	if err != nil {
		return nil, err
	}
	if err := out.Commit(m); err != nil {
		return nil, err
	}
	return m, nil
}

// sink is where rows go: a writer.Run. Different (table, shard) pairs are written concurrently.
type sink interface {
	Write(shard int, b schema.Batch) error
}

// waitSummer is a sink that wants the rows of an epoch together.
type waitSummer interface {
	SumWaits(hosts []int32, comms *schema.Comms, dense bool) *schema.WaitSums
}

// run makes all tables and says what they hold.
func (j *job) run(ctx context.Context, out sink) (*schema.Manifest, error) {
	if err := j.prepare(ctx); err != nil {
		return nil, err
	}
	if err := j.writeRows(ctx, out); err != nil {
		return nil, err
	}
	if err := j.writeDefinitions(out); err != nil {
		return nil, err
	}
	return j.manifest(), nil
}

// job is a job's spool while it is ingested.
type job struct {
	o     Options
	dir   string
	id    uint64
	size  int32        // of MPI_COMM_WORLD
	ranks []*rankSpool // those present, ascending

	hosts  []host
	comms  *commTable
	types  *typeTable
	sites  *siteTable
	paths  []sitePath                  // of ranks that are known by a part's index
	frames map[siteKey][]symbols.Frame // looked up already, by the parts; nil: not
	// moduleWarnings are what the parts could not look up.
	moduleWarnings []string
	sel            selection
	epochs         int32
	shards         int
	shardOf        []int32 // by index in ranks
	rows           int64   // of events, in all
	progress       int64

	warnings []string
	counts   schema.Counts
	byName   map[string]int64 // collective operations by MPI name
	endNs    int64
}

// warn adds a sentence to the run's warnings.
func (j *job) warn(format string, args ...any) {
	j.warnings = append(j.warnings, fmt.Sprintf(format, args...))
}

// prepare is the first pass and what follows from it.
func (j *job) prepare(ctx context.Context) error {
	if err := j.scan(ctx); err != nil {
		return err
	}
	bounds, err := j.unify()
	if err != nil {
		return err
	}
	j.setShards()
	return j.split(ctx, bounds)
}

// scan is the first pass.
func (j *job) scan(ctx context.Context) error {
	err := parallel(ctx, j.o.Workers, len(j.ranks), func(i int) error { return j.ranks[i].scan() })
	if err != nil {
		return err
	}
	return j.checkKept()
}

// unify is what follows from the first pass over all ranks. It returns where epochs 1, 2, ... begin.
func (j *job) unify() (bounds []int64, err error) {
	if err := j.checkEnds(); err != nil {
		return nil, err
	}
	for _, r := range j.ranks {
		j.rows += r.rows
	}
	if err := j.setSelection(); err != nil {
		return nil, err
	}
	if j.comms, err = unifyComms(j); err != nil {
		return nil, err
	}
	j.types = unifyTypes(j.ranks)
	j.sites = unifySites(j)
	if err := j.setClocks(); err != nil {
		return nil, err
	}
	bounds = j.epochBounds()
	j.epochs = int32(len(bounds)) + 1
	return bounds, nil
}

// split cuts the ranks' rows into epochs.
func (j *job) split(ctx context.Context, bounds []int64) error {
	return parallel(ctx, j.o.Workers, len(j.ranks), func(i int) error { return j.ranks[i].split(bounds) })
}

// setShards cuts the ranks into ranges of about equal numbers of rows. It depends on the job alone, not on the machine.
func (j *job) setShards() {
	j.shards = j.shardsFor(j.rows, len(j.ranks))
	j.shardOf = make([]int32, len(j.ranks))
	var before int64
	last := int32(0)
	for i, r := range j.ranks {
		s := int32(0)
		if j.rows > 0 {
			s = int32((before + r.rows/2) * int64(j.shards) / j.rows)
		}
		last = min(max(last, s), int32(j.shards-1))
		j.shardOf[i] = last
		before += r.rows
	}
}

// shardsFor is the number of files of a table for so many rows of so many ranks.
func (j *job) shardsFor(rows int64, ranks int) int {
	return int(max(min(1+(rows-1)/j.o.shardRows, j.o.maxShards, int64(ranks)), 1))
}

// manifest says what was ingested; the tables are filled in by Commit.
func (j *job) manifest() *schema.Manifest {
	first := &j.ranks[0].files[0].Header
	origin := "measured"
	if j.virtual() {
		origin = "virtual"
	}
	return &schema.Manifest{
		Ranks: j.size, TimeOrigin: origin, ComputeClock: computeClocks[first.ComputeClock],
		TimeResolutionNs: j.o.TimeResolutionNs,
		Record:           j.o.Record, Filters: j.filters(), Hash: algorithms[first.Hash], HashVerify: first.HashVerify != 0, Ended: j.ended(), EndNs: j.endNs, Epochs: j.epochs,
		Callsites: j.sites.stack > 0, Stack: j.sites.stack,
		Counters: countersNames[j.ranks[0].files[0].Header.Counters],
		Counts:   j.counts, Collectives: j.byName, Warnings: j.warnings, Origin: j.origin(),
	}
}

// countersNames are the manifest's words for the header's counters.
var countersNames = [...]string{"", "perf", "fake"}

// computeClocks are the manifest's words for the header's compute_clock.
var computeClocks = [...]string{"none", "wall", "cpu"}

// algorithms are the manifest's words for the header's hash.
var algorithms = [...]string{"none", "crc64", "crc32"}
