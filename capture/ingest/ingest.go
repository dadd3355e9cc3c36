package ingest

import (
	"context"
	"fmt"
	"runtime"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
	"github.com/commq/commq/writer/derive"
)

// Values of Options.Record.
const (
	// RecordAll keeps a row of events for every call.
	RecordAll = "all"
	// RecordMessages drops the rows of matched messages and of the calls that completed them.
	RecordMessages = "messages"
	// RecordCollectives leaves out point-to-point communication. It keeps collectives and the calls that complete
	// them, communicators, RMA, I/O and marks. Messages are counted but have no rows.
	RecordCollectives = "collectives"
)

// Options control how a spool is ingested. The zero value keeps every row of the only job there.
type Options struct {
	// Record is RecordAll, RecordMessages or RecordCollectives; empty is RecordAll.
	Record string
	// Calls are patterns of MPI names, as in path.Match, that choose the rows to keep: MPI_Isend, MPI_I*. A pattern
	// that begins with - drops its calls instead. When all patterns begin with -, all other calls are kept. A message
	// is kept with the row that sent it. Empty keeps everything.
	Calls []string
	// Workers is the number of concurrent workers; 0 is one per core. It does not change the run.
	Workers int
	// Progress, unless nil, is called from time to time with the calls done and their total, never concurrently.
	Progress func(done, total int64)
	// Partial accepts a spool in which ranks are missing or records were cut off. The run's warnings list these.
	Partial bool
	// Origin describes where the run came from. Empty fields are filled in from the spool.
	Origin schema.Origin
	// TimeResolutionNs rounds times down to its multiples, which makes a run smaller; a power of two, 0 is 1 ns.
	TimeResolutionNs int64
	// Job is the id of the job, 16 hexadecimal digits; empty: the only job in the spool.
	Job string

	// NoSymbols leaves the functions, files and lines of call sites unknown: the files of modules are not read.
	NoSymbols bool
	// Replace allows that a run has the name already; the new one takes its place.
	Replace bool

	epochRows int64 // rows per epoch; 0: see leastEpoch. Tests use tiny ones.
	shardRows int64 // rows per shard; 0: shardTarget
	maxShards int64 // files of a table, of each part; 0: maxShards
}

const (
	// leastEpoch and mostEpoch are the numbers of rows in an epoch over all ranks: there are about usualEpochs of
	// them, in short runs fewer. Two epochs are in memory, at about 400 bytes a row each; many epochs make more row
	// groups and larger files.
	leastEpoch, mostEpoch, usualEpochs = 1 << 18, 1 << 20, 64
	// shardTarget is the number of rows per file of a table that has several, up to maxShards.
	shardTarget = 2 << 20
	maxShards   = 2
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

// Ingest writes the tables of a job in the spool folder to out and commits it. After an error, which names the file
// or the rank and a remedy, out is aborted. The number of workers does not change the run.
func Ingest(ctx context.Context, spoolDir string, out *writer.Run, o Options) (*schema.Manifest, error) {
	m, _, err := ingest(ctx, spoolDir, out, o)
	if err != nil {
		_ = out.Abort() // the first error counts
		return nil, err
	}
	return m, nil
}

// ingest does the work of Ingest. recorded is the number of ranks that have records.
func ingest(ctx context.Context, spoolDir string, out *writer.Run, o Options) (m *schema.Manifest, recorded int,
	err error) {
	if err := o.withDefaults(); err != nil {
		return nil, 0, err
	}
	job, err := openJob(spoolDir, o.Job, allFiles)
	if err != nil {
		return nil, 0, err
	}
	defer job.close()
	if m, err = makeRun(ctx, job, &o, out); err != nil {
		return nil, 0, err
	}
	if job.troubled(m) {
		out.CheckFirst()
	}
	if err := out.Commit(ctx, m); err != nil {
		return nil, 0, err
	}
	return m, len(job.ranks), nil
}

// sink takes rows, as a writer.Run does. Different (table, shard) pairs are written concurrently.
type sink interface {
	Write(shard int, b schema.Batch) error
}

// waitSummer is a sink that sums waits over the rows of an epoch, so that Commit need not read them again.
type waitSummer interface {
	SumWaits(hosts []int32, comms *schema.Comms, dense bool) *derive.WaitSums
}

// makeRun writes all tables of a job and returns the manifest for them.
func makeRun(ctx context.Context, j *job, o *Options, out sink) (*schema.Manifest, error) {
	var w warnings
	if err := j.checkPresent(o.Partial, &w); err != nil {
		return nil, err
	}
	sim, err := readSimulation(j, o.Origin.Simulation)
	if err != nil {
		return nil, err
	}
	if err := scanRanks(ctx, j.ranks, o); err != nil {
		return nil, err
	}
	if err := j.checkDamage(o.Partial); err != nil {
		return nil, err
	}
	w.addDamage(j)
	p, err := newPlan(j, o, nil, &w)
	if err != nil {
		return nil, err
	}
	if err := cutEpochs(ctx, j.ranks, p.bounds, o.Workers); err != nil {
		return nil, err
	}
	t, err := writeRows(ctx, j, p, o, out)
	if err != nil {
		return nil, err
	}
	if err := p.writeDefinitions(j, out); err != nil {
		return nil, err
	}
	return newManifest(j, p, o, t, sim, w), nil
}
