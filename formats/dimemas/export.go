package dimemas

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/spill"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// ExportOptions control the export. In the zero value only MPI_Ssend and its variants are rendezvous sends.
type ExportOptions struct {
	// EagerThresholdBytes is the payload size from which a send waits for its receiver; 0 means no send waits because
	// of its size.
	EagerThresholdBytes int64
}

// Tags that Dimemas does not take for those of messages: one for OpenCL, and all from firstCUDA on for CUDA.
const (
	openCLTag = 3121
	cudaTag   = 49370
)

// need lists the requirements on a run that is exported.
var need = run.Need{AllCalls: true, ComputeTimes: true}

// Export writes the run in folder dir as a Dimemas trace to w. Its notes are sentences about what the trace lacks or
// represents differently. The error names what the run lacks. Intermediate data goes to a temporary file.
func Export(ctx context.Context, dir string, w io.Writer, o ExportOptions) (notes []string, err error) {
	m, err := run.ReadManifest(ctx, dir, need)
	if err != nil {
		return nil, err
	}
	records, err := spill.Create(m.Ranks)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, records.Close()) }()
	x := &exporter{o: o, records: records, ranks: make([]rankExport, m.Ranks), tags: map[int32]int32{},
		counts: map[string]int64{}}
	from := writer.Opened{Dir: dir, Digest: m.Digest}
	if x.delivered, err = run.FindDelivered(ctx, from); err != nil {
		return nil, err
	}
	if err := x.read(ctx, from); err != nil {
		return nil, err
	}
	if err := x.assemble(w, m.Origin.Name); err != nil {
		return nil, err
	}
	return x.notes(), nil
}

// exporter turns rows into records.
type exporter struct {
	o         ExportOptions
	records   *spill.File
	ranks     []rankExport
	comms     []commExport
	tags      map[int32]int32
	delivered *run.Delivered
	// counts has the number of calls that were left out or changed, by the sentence that reports them.
	counts map[string]int64
}

type commExport struct {
	id      int32
	members []int32
}

// rankExport is the state of one rank.
type rankExport struct {
	computeNs int64
	begun     bool
	// done has the records that complete requests, by the row that completes them.
	done map[int64][]string
	// made has the calls that created persistent requests, by their row.
	made map[int64]schema.CallID
}

func (x *exporter) read(ctx context.Context, from writer.Opened) error {
	err := from.ReadTable(ctx, &schema.RanksTable, 1<<12, func(b schema.Batch) error {
		r := b.(*schema.RankInfos)
		for i, threads := range r.Threads {
			if threads > 1 {
				return fmt.Errorf("rank %d has %d threads that call MPI; a trace of Dimemas has tasks of one "+
					"thread here", r.Rank[i], threads)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = from.ReadTable(ctx, &schema.CommsTable, 1<<12, func(b schema.Batch) error {
		c := b.(*schema.Comms)
		for i, id := range c.Comm {
			if n := len(x.comms); n == 0 || x.comms[n-1].id != id {
				x.comms = append(x.comms, commExport{id: id})
			}
			if world := c.WorldRank[i]; world != null32 {
				last := &x.comms[len(x.comms)-1]
				last.members = append(last.members, world)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = from.ReadTable(ctx, &schema.EventsTable, 1<<14, func(b schema.Batch) error {
		var row schema.Event
		e := b.(*schema.Events)
		for i := range e.Len() {
			e.Row(i, &row)
			if err := x.row(&row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for rank := range x.ranks {
		if r := &x.ranks[rank]; r.computeNs > 0 || !r.begun {
			if err := x.burst(int32(rank)); err != nil {
				return err
			}
		}
	}
	return nil
}

// write appends a line to the records of a rank.
func (x *exporter) write(rank int32, line string) error {
	return x.records.Append(rank, append([]byte(line), '\n'))
}

// burst writes the compute time of the rank since its last burst.
func (x *exporter) burst(rank int32) error {
	r := &x.ranks[rank]
	ns := r.computeNs
	r.computeNs, r.begun = 0, true
	return x.write(rank, fmt.Sprintf("1:%d:0:%d.%09d", rank, ns/1e9, ns%1e9))
}

// record writes a record, preceded by a burst. A rank's first record is always a burst.
func (x *exporter) record(rank int32, line string) error {
	if r := &x.ranks[rank]; r.computeNs > 0 || !r.begun {
		if err := x.burst(rank); err != nil {
			return err
		}
	}
	return x.write(rank, line)
}

// row writes the records of a row: its own and those of the requests that it completes.
func (x *exporter) row(e *schema.Event) error {
	r := &x.ranks[e.Rank]
	if e.ComputeNs != null64 {
		r.computeNs += e.ComputeNs
	}
	if x.delivered.Complete(e) {
		x.counts["Sends that were cancelled or failed and were left out"]++
	}
	if e.Instance != null64 && schema.Refused(e.ErrorClass) {
		x.counts["Collectives that returned an error and were left out"]++
	} else if err := x.recordAll(e.Rank, x.recordsOf(e)); err != nil {
		return err
	}
	if schema.Class(e.Class) == schema.ClassMark && e.Call == int16(schema.CallCommqMark) {
		return x.mark(e)
	}
	err := x.recordAll(e.Rank, r.done[e.Seq])
	delete(r.done, e.Seq)
	return err
}

func (x *exporter) recordAll(rank int32, lines []string) error {
	for _, line := range lines {
		if err := x.record(rank, line); err != nil {
			return err
		}
	}
	return nil
}

// mark ends a burst: at this point Dimemas may give the CPU to another rank.
func (x *exporter) mark(e *schema.Event) error {
	if err := x.burst(e.Rank); err != nil {
		return err
	}
	if kind, value, ok := eventOf(e.Label); ok {
		return x.write(e.Rank, fmt.Sprintf("20:%d:0:%d:%d", e.Rank, kind, value))
	}
	return nil
}

// eventOf returns the type and value of an event, which a mark has as its label, TYPE:VALUE; false for other labels.
func eventOf(label string) (kind, value uint64, ok bool) {
	first, second, ok := strings.Cut(label, ":")
	kind, err := strconv.ParseUint(first, 10, 64)
	value, other := strconv.ParseUint(second, 10, 64)
	return kind, value, ok && err == nil && other == nil
}

// recordsOf returns the records of a row itself.
func (x *exporter) recordsOf(e *schema.Event) []string {
	call := schema.CallID(e.Call)
	r := &x.ranks[e.Rank]
	if call.Is(schema.FactPersistent) {
		if r.made == nil {
			r.made = map[int64]schema.CallID{}
		}
		r.made[e.Seq] = call
		if schema.Class(e.Class) == schema.ClassOther {
			return nil
		}
	}
	if made, ok := r.made[e.InitSeq]; ok && (call == schema.CallStart || call == schema.CallStartall) {
		call = made
	}
	switch schema.Class(e.Class) {
	case schema.ClassSend:
		return x.send(e, call, e.Request != null64)
	case schema.ClassRecv:
		return x.recv(e, e.Request != null64, e.DoneSeq)
	case schema.ClassSendrecv:
		if e.Request != null64 {
			return slices.Concat(x.recv(e, true, e.DoneSeq), x.send(e, call, true))
		}
		return slices.Concat(x.recv(e, true, e.Seq), x.send(e, call, false))
	case schema.ClassCollective:
		if e.Comm == null32 { // a file has no number for it
			x.counts["Collectives without a communicator that were left out"]++
			return nil
		}
		return x.collective(e, call)
	case schema.ClassRMA:
		x.counts["One-sided calls that were left out"]++
	case schema.ClassIO:
		x.counts["Calls of I/O that were left out"]++
	}
	if schema.Class(e.Class) != schema.ClassRMA && schema.Class(e.Class) != schema.ClassIO && e.Instance != null64 &&
		e.Comm != null32 {
		x.counts["Calls that all ranks of a communicator make together and Dimemas does not have, written as "+
			"MPI_Barrier"]++
		return []string{fmt.Sprintf("10:%d:0:0:%d:0:0:0:0:%d", e.Rank, e.Comm+1, collectiveBlocking)}
	}
	return nil
}

func (x *exporter) tag(tag int32) int32 {
	if tag >= 0 && tag < openCLTag {
		return tag
	}
	t, ok := x.tags[tag]
	if !ok {
		t = openCLTag + 1 + int32(len(x.tags))
		x.tags[tag] = t
	}
	return t
}

func (x *exporter) send(e *schema.Event, call schema.CallID, immediate bool) []string {
	if e.SendWorld == null32 {
		return nil // MPI_PROC_NULL, or outside the run
	}
	mode := 0
	if call.Is(schema.FactSynchronous) || x.o.EagerThresholdBytes > 0 && e.SendBytes >= x.o.EagerThresholdBytes &&
		!call.Is(schema.FactBuffered) {
		mode |= sendRendezvous
	}
	if call.Is(schema.FactPartitioned) {
		x.counts["Partitioned sends, written as if all partitions were ready at the start"]++
	}
	if immediate || e.SendWorld == e.Rank { // Dimemas makes a blocking send to oneself wait for its receive
		mode |= sendImmediate
	}
	return []string{fmt.Sprintf("2:%d:0:%d:-1:%d:%d:%d:%d", e.Rank, e.SendWorld, max(e.SendBytes, 0),
		x.tag(e.SendTag), e.Comm+1, mode)}
}

func (x *exporter) recv(e *schema.Event, immediate bool, done int64) []string {
	if e.RecvWorld == null32 {
		if e.ProcNull == null32 || e.ProcNull&schema.ProcNullRecv == 0 {
			x.counts["Receives that got nothing and were left out"]++
		}
		return nil
	}
	line := fmt.Sprintf("3:%d:0:%d:-1:%d:%d:%d:", e.Rank, e.RecvWorld, max(e.RecvBytes, 0), x.tag(e.RecvTag), e.Comm+1)
	if !immediate {
		return []string{fmt.Sprint(line, recvBlocking)}
	}
	x.later(e.Rank, done, fmt.Sprint(line, recvWait))
	return []string{fmt.Sprint(line, recvImmediate)}
}

// later stores the record of a wait for the row that completes the request.
func (x *exporter) later(rank int32, done int64, line string) {
	if done == null64 {
		return
	}
	r := &x.ranks[rank]
	if r.done == nil {
		r.done = map[int64][]string{}
	}
	r.done[done] = append(r.done[done], line)
}

// number returns Dimemas' number of an MPI operation, or of a substitute if Dimemas does not have it.
func (x *exporter) number(call schema.CallID) int {
	if n := slices.Index(operations[:], call.Operation()); n >= 0 {
		return n
	}
	if call.Operation() == schema.CallExscan {
		x.counts["MPI_Exscan that were written as MPI_Scan"]++
		return slices.Index(operations[:], schema.CallScan)
	}
	x.counts["Neighbourhood collectives that were written as MPI_Alltoallw of all ranks"]++
	return slices.Index(operations[:], schema.CallAlltoallw)
}

func (x *exporter) collective(e *schema.Event, call schema.CallID) []string {
	op, mode, root := x.number(call), collectiveBlocking, int32(0)
	switch {
	case e.Request != null64:
		mode = collectiveStart
	case op == opReduce && e.Label != schema.LabelSynchronism1:
		mode = collectiveByMessages
	}
	if op == opReduce {
		root = max(e.RootWorld, 0)
	} else if e.RootWorld == e.Rank {
		root = 1
	}
	line := fmt.Sprintf("10:%d:0:%d:%d:%d:0:%d:%d:", e.Rank, op, e.Comm+1, root, x.size(e.SendBytes),
		x.size(e.RecvBytes))
	if mode == collectiveStart {
		x.later(e.Rank, e.DoneSeq, fmt.Sprint(line, collectiveWait))
	}
	return []string{fmt.Sprint(line, mode)}
}

// size limits a collective's size to the 32 bits that Dimemas has for it.
func (x *exporter) size(bytes int64) int64 {
	if bytes > math.MaxInt32 {
		x.counts["Sizes of collectives above 2147483647 bytes, which were written as that many: Dimemas keeps them "+
			"in 32 bits"]++
		return math.MaxInt32
	}
	return max(bytes, 0)
}

// assemble writes the header, the communicators, the ranks one by one, and the offsets.
func (x *exporter) assemble(w io.Writer, name string) error {
	var defs strings.Builder
	for _, c := range x.comms {
		fmt.Fprintf(&defs, "d:1:%d:%d", c.id+1, len(c.members))
		for _, m := range c.members {
			fmt.Fprintf(&defs, ":%d", m)
		}
		defs.WriteString("\n")
	}
	threads := strings.TrimSuffix(strings.Repeat("1,", len(x.ranks)), ",")
	head := func(at int64) string {
		return fmt.Sprintf("#DIMEMAS:\"%s\":1,%020d:%d(%s),%d,0,0\n",
			strings.ReplaceAll(cmp.Or(name, "run"), `"`, "'"), at, len(x.ranks), threads, len(x.comms))
	}
	at := int64(len(head(0)) + defs.Len())
	var offsets strings.Builder
	for rank := range x.ranks {
		fmt.Fprintf(&offsets, "s:%d:%d\n", rank, at)
		at += x.records.Bytes(int32(rank))
	}
	out := bufio.NewWriterSize(w, 1<<20)
	out.WriteString(head(at))
	out.WriteString(defs.String())
	for rank := range x.ranks {
		if err := x.records.CopyTo(int32(rank), out); err != nil {
			return err
		}
	}
	out.WriteString(offsets.String())
	return out.Flush() // returns the first error of all writes
}

func (x *exporter) notes() []string {
	var notes []string
	for what, n := range x.counts {
		notes = append(notes, fmt.Sprintf("%s: %d.", what, n))
	}
	if n := len(x.tags); n > 0 {
		notes = append(notes, fmt.Sprintf("Tags that have another number in the trace, as Dimemas takes %d and "+
			"those from %d on for something else: %d.", openCLTag, cudaTag, n))
		if openCLTag+n >= cudaTag {
			notes = append(notes, "There are more tags than Dimemas has numbers for; it may take some for CUDA's.")
		}
	}
	slices.Sort(notes)
	return notes
}
