package detect

import (
	"cmp"
	"fmt"
	"io"

	"github.com/commq/commq/detect/combine"
	"github.com/commq/commq/detect/crc"
	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/detect/neighbours"
	"github.com/commq/commq/detect/rankset"
	"github.com/commq/commq/detect/scan"
	"github.com/commq/commq/detect/spread"
	"github.com/commq/commq/internal/snapshot"
)

// Detect finds the collective operations that consist of point-to-point messages. Errors are those of run.Messages
// and run.Events.
func Detect(run *Run, options Options) (result *Result, err error) {
	if run.State != nil {
		defer snapshot.Guard(&err)
	}
	if options.MinRanks == 0 {
		options.MinRanks = ledger.DefaultMinRanks
	}
	if options.MemoryBytes == 0 {
		options.MemoryBytes = DefaultMemoryBytes
	}
	d := &detector{run: run, options: options, named: map[int32]bool{}, result: &Result{},
		crc: crc.New(run.HashBits), reader: &scan.Reader{Messages: run.Messages}}
	for _, t := range run.Datatypes {
		d.named[t.ID] = t.Named
	}
	if run.State != nil {
		if err := snapshot.Read(run.State, d); err != nil {
			return nil, fmt.Errorf("go on: %w", err)
		}
		if err := d.checkRanks(); err != nil {
			return nil, fmt.Errorf("go on: the saved state makes no sense: %w", err)
		}
		if d.census != nil {
			d.reader.Shared = d.census.Shared
		}
	}
	for steps := []func() error{d.count, d.keep, d.spread, d.compose, d.sparse, d.combine, d.halos}; d.steps < len(steps); {
		if err := steps[d.steps](); err != nil {
			return nil, err
		}
		d.steps++
		if err := d.border(); err != nil {
			return nil, err
		}
	}
	r := reporter{ledger: &d.ledger, census: d.census, comms: run.Comms, listed: options.Messages, placed: map[string]Finding{}}
	d.result.Findings = r.report(&options)
	d.result.Calls, err = locate(d.result.Findings, d.ledger.Messages, run.Events)
	return d.result, err
}

// detector is the state of a detection, as saved in a checkpoint.
type detector struct {
	run     *Run            `snapshot:"-"`
	options Options         `snapshot:"-"`
	crc     *crc.Arithmetic `snapshot:"-"`
	reader  *scan.Reader    `snapshot:"-"`
	named   map[int32]bool  // datatypes
	steps   int             // steps of Detect that are done
	result  *Result

	census *scan.Census  // of all messages
	ledger ledger.Ledger // candidate messages and what was found among them
	passes *passes       // nil: all candidates fit into memory together
}

// checkRanks returns an error if a message of the state is of a rank that the run does not have.
func (d *detector) checkRanks() error {
	for i := range d.ledger.Messages {
		if err := d.ledger.Messages[i].CheckRanks(d.run.Ranks); err != nil {
			return err
		}
	}
	if d.census == nil || d.census.Sample == nil {
		return nil
	}
	return d.census.Sample.CheckRanks(d.run.Ranks)
}

// rules returns the rules of the stages.
func (d *detector) rules() *ledger.Rules {
	r := &ledger.Rules{MinRanks: d.options.MinRanks, MemoryBytes: d.options.MemoryBytes, Named: d.named, Crc: d.crc,
		Sent: d.census.Used, Lines: d.run.Lines, Sets: rankset.NewRoom(d.options.MemoryBytes), Stopped: d.stopped}
	r.Fill(d.census.Sample)
	if d.options.sets != nil {
		r.Sets = *d.options.sets
	}
	return r
}

// count counts messages and their payloads.
func (d *detector) count() (err error) {
	in := &scan.Source{Ranks: d.run.Ranks, HashBits: d.run.HashBits, Comms: d.run.Comms, MinRanks: d.options.MinRanks,
		Named: d.named, Crc: d.crc, Shared: d.run.Shared, Spill: d.run.Spill,
		MaxHeld: cmp.Or(d.options.held, d.options.MemoryBytes/(countedPart*4))}
	if d.census, err = in.Count(d.reader); err != nil {
		return err
	}
	c := d.census
	d.result.Messages, d.result.Unhashed, d.result.FalseMatch = c.Messages, c.Unhashed, c.FalseMatch
	d.result.Unclassed = c.Streams.Exchangers.Unclassed
	return nil
}

// keep loads the candidate messages, if they fit into memory.
func (d *detector) keep() error {
	most := d.mostReplayed()
	if d.options.part > 0 {
		most = d.options.part
	}
	k, err := d.census.Keep(d.reader, most, d.partRoom())
	if err != nil {
		return err
	}
	d.ledger, d.result.Replayed, d.result.LeftOut = k.Ledger, k.Replayed, k.LeftOut
	if k.Plan != nil {
		d.passes = newPasses(k.Plan)
	}
	return nil
}

// spread finds operations that spread payloads: in one go if the candidates fit into memory, else in passes.
func (d *detector) spread() error {
	if d.passes != nil {
		return d.inPasses()
	}
	spread.All(d.rules(), &d.ledger)
	d.leaveOut(d.ledger.CountOversized())
	return d.stopped()
}

// compose builds other operations from broadcasts, and finds direct exchanges of every rank with every other: first
// among messages of one size, then of any.
func (d *detector) compose() error {
	rules := d.rules()
	c := &spread.Composer{Rules: rules, Ledger: &d.ledger, Comms: d.run.Comms}
	for _, make := range []func(){func() { spread.Doubt(&d.ledger, d.census.Used, d.census.Sample, d.run.Comms) },
		func() { spread.Answers(&d.ledger, d.census.Sample) }, c.Neighbourhoods, c.Gathers,
		func() { spread.Crossed(&d.ledger, d.census.Sample) }, d.ledger.Rejoin} {
		if err := d.stopped(); err != nil {
			return err
		}
		make()
	}
	aside := spread.SetAside(&d.ledger)
	for kind := range ledger.Classes(&ledger.Message{}) {
		if d.passes == nil {
			spread.Exchanges(rules, &d.ledger, kind)
		} else if err := d.exchangesInPasses(rules, kind, aside); err != nil {
			return err
		}
	}
	spread.PutBack(&d.ledger, aside)
	spread.Arrange(rules, &d.ledger, d.census.Sample, d.run.Comms)
	return nil
}

// combine finds operations whose payloads are concatenated, split or reduced.
func (d *detector) combine() error {
	beyond, err := combine.Find(&combine.Input{Rules: d.rules(), Comms: d.run.Comms, Datatypes: d.run.Datatypes,
		Selves: d.run.Selves, Functions: d.run.Functions, HashBits: d.run.HashBits, Room: d.sampleRoom(),
		Whole: d.readCells}, &d.ledger, d.census.Sample)
	spread.Scattered(&d.ledger, d.census.Sample)
	spread.Pongs(&d.ledger, d.census.Sample)
	d.leaveOut(beyond)
	return err
}

// sparse finds exchanges in which each rank sends to some of the others.
func (d *detector) sparse() error {
	neighbours.WithdrawPieces(d.neighbours(), &d.ledger, d.census.Sample)
	beyond, err := neighbours.FindSparse(d.neighbours(), &d.ledger, d.census.Sample)
	spread.Replies(&d.ledger, d.census.Sample)
	d.leaveOut(beyond)
	return err
}

// halos finds exchanges between neighbours.
func (d *detector) halos() error {
	neighbours.WithdrawPieces(d.neighbours(), &d.ledger, d.census.Sample)
	in := d.neighbours()
	if !d.options.Messages { // else each message is listed
		in.Outline = func(want map[ledger.Stream]*ledger.Outline, most int64) (bool, error) {
			return d.census.Outline(d.reader, want, most)
		}
	}
	beyond, err := neighbours.Find(in, &d.ledger, d.census.Sample)
	d.leaveOut(beyond)
	return err
}

// neighbours is the input of package neighbours.
func (d *detector) neighbours() *neighbours.Input {
	return &neighbours.Input{MinRanks: d.options.MinRanks, Comms: d.run.Comms, Lines: d.run.Lines,
		Room: d.sampleRoom(), Whole: d.readCells}
}

// readCells reads all messages of some cells.
func (d *detector) readCells(want map[ledger.Cell]bool) (*ledger.Sample, error) {
	return d.reader.ReadCells(d.run.Ranks, want)
}

// leaveOut counts messages left out because there is no memory for them.
func (d *detector) leaveOut(n int64) {
	d.result.LeftOut += n
	d.result.NoRoom += n
}

// border runs between two passes over the messages.
func (d *detector) border() error {
	if d.run.Border == nil {
		return nil
	}
	return d.run.Border(func(w io.Writer) error { return snapshot.Write(w, d) })
}

// stopped returns an error if the caller no longer wants an answer.
func (d *detector) stopped() error {
	if d.run.Stopped == nil {
		return nil
	}
	return d.run.Stopped()
}

// mostReplayed returns the largest number of messages to look at.
func (d *detector) mostReplayed() int64 { return max(1, d.options.MemoryBytes/replayedBytes) }

// partRoom returns the number of messages that one pass can look at, besides those kept from earlier ones.
func (d *detector) partRoom() int64 {
	if d.options.part > 0 {
		return d.options.part
	}
	return max(1, d.mostReplayed()/2)
}

// sampleRoom returns the number of messages that may be read completely where the sample has only the first ones.
func (d *detector) sampleRoom() int64 { return max(d.mostReplayed(), ledger.MaxSampled) }
