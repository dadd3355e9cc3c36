// Package stored detects collectives in runs on disk: it feeds the engine of detect with the rows of a run.
package stored

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"

	"github.com/commq/commq/detect"
	"github.com/commq/commq/internal/payloads"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// Need lists the requirements of detection on a run.
var Need = run.Need{Command: "detect", Hashes: true, Messages: true}

// NeedToGuess lists the requirements on a run of guesses by structure.
var NeedToGuess = run.Need{Command: "detect", Messages: true}

// Detection looks for collectives in a run. Only Run must be set.
type Detection struct {
	Run     *run.Run
	Options detect.Options
	// Shared asks an engine which stretches have payloads of at least least messages, as detect.Run does; nil counts
	// them here.
	Shared func(ctx context.Context, least int) (map[detect.Stretch]bool, error)
	// Spill opens a temporary file for payloads that do not fit into memory; nil counts these roughly.
	Spill func() (SpillFile, error)
	// Progress is called before each pass over the messages; more is then called with numbers of messages that were
	// read, and finish at the end of the pass. nil means no callback.
	Progress func(pass int) (more func(messages int), finish func())
	// Checkpoint keeps the state between passes; nil keeps nothing.
	Checkpoint Checkpoint
}

// Identity lists everything that the result depends on, as pairs of name and value. A checkpoint can only be continued
// by a detection with the same identity.
func (d *Detection) Identity() [][2]string {
	return [][2]string{{"task", "detect"}, {"run", d.Run.Manifest.Digest}, {"options", fmt.Sprintf("%+v", d.Options)}}
}

// SpillFile is a temporary file.
type SpillFile interface {
	payloads.Spill
	io.Closer
}

// Checkpoint keeps a state on disk for a later process, as writer.Checkpoint does.
type Checkpoint interface {
	// Saved reports whether an earlier process left a state; Load reads it.
	Saved() bool
	Load(read func(*bufio.Reader) error) error
	// ShouldSave reports whether it is time to save again; Save replaces the state.
	ShouldSave() bool
	Save(write func(io.Writer) error) error
}

// leastMemoryBytes is the least memory limit: the program, batches of rows and tables of streams take that.
const leastMemoryBytes = 256 << 20

// Guesses reports whether the run has no payload hashes, so that Detect guesses by structure.
func (d *Detection) Guesses() bool { return run.HashBits(d.Run.Manifest) == 0 }

// Detect detects collectives; in a run without payload hashes it guesses them.
func (d *Detection) Detect(ctx context.Context) (result *detect.Result, err error) {
	// With the limit, garbage is collected before the heap has doubled, so that the memory stays within the option. A
	// lower GOMEMLIMIT remains in force.
	limit := max(cmp.Or(d.Options.MemoryBytes, detect.DefaultMemoryBytes), leastMemoryBytes)
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(min(limit, debug.SetMemoryLimit(-1))))
	input, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	if d.Guesses() {
		return detect.Guess(input, d.Options)
	}
	if d.Spill != nil {
		var spill SpillFile
		input.Spill = func() (_ payloads.Spill, err error) {
			spill, err = d.Spill()
			return spill, err
		}
		defer func() {
			if spill != nil {
				err = errors.Join(err, spill.Close())
			}
		}()
	}
	detectAll := func() (err error) {
		if result, err = detect.Detect(input, d.Options); err != nil {
			return fmt.Errorf("detect: %w", err)
		}
		return nil
	}
	if d.Checkpoint == nil {
		err = detectAll()
		return result, err
	}
	input.Border = func(save func(io.Writer) error) error {
		if !d.Checkpoint.ShouldSave() {
			return nil
		}
		return d.Checkpoint.Save(save)
	}
	if d.Checkpoint.Saved() {
		err = d.Checkpoint.Load(func(in *bufio.Reader) error { input.State = in; return detectAll() })
	} else {
		err = detectAll()
	}
	return result, err
}

// read reads what detection needs beside the messages, and prepares their streams.
func (d *Detection) read(ctx context.Context) (*detect.Run, error) {
	r := d.Run
	input := &detect.Run{Ranks: r.Manifest.Ranks, Count: r.Manifest.Counts.Messages, HashBits: run.HashBits(r.Manifest),
		Comms: run.Intra(r.Comms), Stopped: ctx.Err, Messages: d.messages(ctx), Events: r.Events(ctx, detect.EventColumns...)}
	for i := range r.Datatypes {
		t := &r.Datatypes[i]
		input.Datatypes = append(input.Datatypes,
			detect.Datatype{ID: t.ID, Named: t.Combiner == "named", Name: t.Name, Bytes: t.Bytes})
	}
	var err error
	if input.Selves, err = readSelves(ctx, r); err != nil {
		return nil, err
	}
	if input.Functions, input.Lines, err = readPlaces(ctx, r); err != nil {
		return nil, err
	}
	if d.Shared != nil {
		input.Shared = func(least int) (map[detect.Stretch]bool, error) { return d.Shared(ctx, least) }
	}
	return input, nil
}

// messages returns a function that passes all messages to add; see detect.Run.
func (d *Detection) messages(ctx context.Context) func([]string, func(*schema.Messages, schema.Rest) error) error {
	pass := 0
	return func(columns []string, add func(b *schema.Messages, rest schema.Rest) error) error {
		pass++
		more, finish := func(int) {}, func() {}
		if d.Progress != nil {
			more, finish = d.Progress(pass)
		}
		defer finish()
		late := slices.DeleteFunc(slices.Clone(detect.Columns),
			func(name string) bool { return slices.Contains(columns, name) })
		return d.Run.MessagesLate(ctx, detect.Columns, late, func(b *schema.Messages, rest schema.Rest) error {
			more(b.Len())
			return add(b, rest)
		})
	}
}

// readPlaces numbers the functions that make calls, and the lines of the calls, by call site.
func readPlaces(ctx context.Context, r *run.Run) (functions, lines map[int32]int32, err error) {
	type function struct{ name, file string }
	type line struct {
		module string
		offset int64
	}
	byFunction, byLine := map[function]int32{}, map[line]int32{}
	functions, lines = map[int32]int32{}, map[int32]int32{}
	return functions, lines, r.Callsites(ctx, func(t *schema.Callsites) error {
		for i, id := range t.ID {
			if t.Function[i] != schema.NullText {
				functions[id] = numberOf(byFunction, function{t.Function[i], t.File[i]})
			}
			if t.Offset[i] != schema.NullInt64 {
				lines[id] = numberOf(byLine, line{t.Module[i], t.Offset[i]})
			}
		}
		return nil
	})
}

// numberOf numbers keys from 0, in the order in which they are first asked for.
func numberOf[K comparable](numbers map[K]int32, key K) int32 {
	n, known := numbers[key]
	if !known {
		n = int32(len(numbers))
		numbers[key] = n
	}
	return n
}

// selfColumns are the columns of events that readSelves reads.
var selfColumns = []string{"call", "rank", "seq", "send_datatype", "send_bytes", "send_buffer", "payload_hash",
	"payload_sum", "payload_head"}

// readSelves reads what ranks recorded with commq_send_to_self. Most runs have no such records; the profile, or the
// column call, shows this without reading all columns.
func readSelves(ctx context.Context, r *run.Run) (out []detect.Self, err error) {
	if never, err := r.NeverCalls(ctx, schema.CallCommqSendToSelf); err != nil || never {
		return nil, err
	}
	found := false
	err = r.Events(ctx, "call")(func(t *schema.Events) error {
		found = found || slices.Contains(t.Call, int16(schema.CallCommqSendToSelf))
		return nil
	})
	if err != nil || !found {
		return nil, err
	}
	err = r.Events(ctx, selfColumns...)(func(t *schema.Events) error {
		for i, call := range t.Call {
			if schema.CallID(call) != schema.CallCommqSendToSelf || t.PayloadHash[i] == schema.NullInt64 {
				continue
			}
			out = append(out, detect.Self{Rank: t.Rank[i], Datatype: t.SendDatatype[i], Seq: t.Seq[i],
				Bytes: t.SendBytes[i], Buffer: t.SendBuffer[i],
				Hash: t.PayloadHash[i], Sum: t.PayloadSum[i], Head: t.PayloadHead[i]})
		}
		return nil
	})
	return out, err
}
