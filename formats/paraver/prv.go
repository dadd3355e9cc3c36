package paraver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

const (
	null32 = schema.NullInt32
	null64 = schema.NullInt64
)

// inMemory is the number of bytes of records sorted in memory at a time.
const inMemory = 128 << 20

// batch is the number of rows read at a time.
const batch = 1 << 13

// Files returns the names of the three files of a trace, of which the first is given: NAME.prv, NAME.pcf and NAME.row.
func Files(trace string) ([]string, error) {
	base, ok := strings.CutSuffix(trace, ".prv")
	if !ok || filepath.Base(trace) == ".prv" {
		return nil, fmt.Errorf("%s: want a file name ending in .prv; the .pcf and .row files get the same name", trace)
	}
	return []string{trace, base + ".pcf", base + ".row"}, nil
}

// Export writes the run in folder dir. Its notes are sentences about what the trace lacks. A run without times is an
// error. Records that do not fit into memory go to temporary files.
func Export(ctx context.Context, dir string, trace, names, rows io.Writer) (notes []string, err error) {
	m, err := run.ReadManifest(ctx, dir, run.Need{})
	if err != nil {
		return nil, err
	}
	if m.TimeOrigin == "untimed" {
		return nil, errors.New("the run is untimed; give it the times of a machine with commq simulate --name NAME")
	}
	x := &exporter{m: m, sorter: sorter{most: inMemory}, ranks: make([]rank, m.Ranks), used: map[int16]bool{},
		sites: map[int32]bool{}}
	defer func() { err = errors.Join(err, x.sorter.close()) }()
	from := writer.Opened{Dir: dir, Digest: m.Digest}
	if err := x.layout(ctx, from); err != nil {
		return nil, err
	}
	if err := each(ctx, from, &schema.EventsTable, eventColumns,
		func(b schema.Batch) error { return x.events(b.(*schema.Events)) }); err != nil {
		return nil, err
	}
	if err := each(ctx, from, &schema.MessagesTable, messageColumns,
		func(b schema.Batch) error { return x.messages(b.(*schema.Messages)) }); err != nil {
		return nil, err
	}
	if err := x.names(ctx, from, names); err != nil {
		return nil, err
	}
	if err := x.rowNames(rows); err != nil {
		return nil, err
	}
	w := bufio.NewWriterSize(trace, 1<<20)
	x.header(w)
	if err := x.sorter.write(w); err != nil {
		return nil, err
	}
	return x.notes(), w.Flush()
}

// each reads columns of a table, epoch by epoch.
func each(ctx context.Context, from writer.Opened, t *schema.Table, columns []string, fn func(schema.Batch) error) error {
	rows, err := from.ReadEpochs(t, batch, columns...)
	if err != nil {
		return err
	}
	return rows.All(ctx, fn)
}

var (
	eventColumns = []string{"rank", "seq", "thread", "call", "class", "start_ns", "end_ns", "comm", "instance",
		"send_bytes", "recv_bytes", "root_world", "callsite"}

	messageColumns = []string{"src", "dst", "tag", "bytes", "send_start_ns", "recv_post_ns", "recv_end_ns"}
)

// rank is a task of the trace.
type rank struct {
	host     int32
	threads  int     // at least 1
	busyTo   []int64 // by thread: the end of the states written so far
	firstCPU int     // counted from 1
}

// comm is a communicator of the trace.
type comm struct {
	id      int32
	members []int32
}

type exporter struct {
	m      *schema.Manifest
	sorter sorter
	ranks  []rank
	comms  []comm
	used   map[int16]bool // calls in the run
	sites  map[int32]bool
	line   []byte

	open, untimed, unnumbered int64 // calls that never returned, messages without times, calls without a number
}

// layout reads the placement of the ranks and the communicators, the one with all ranks first.
func (x *exporter) layout(ctx context.Context, from writer.Opened) error {
	err := from.ReadTable(ctx, &schema.RanksTable, batch, func(b schema.Batch) error {
		t := b.(*schema.RankInfos)
		for i, r := range t.Rank {
			x.ranks[r].host, x.ranks[r].threads = max(0, t.Host[i]), max(1, int(t.Threads[i]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	cpu := 1
	for i := range x.ranks {
		r := &x.ranks[i]
		r.threads = max(1, r.threads)
		r.busyTo = make([]int64, r.threads)
		r.firstCPU = cpu
		cpu += r.threads
	}
	err = from.ReadTable(ctx, &schema.CommsTable, batch, func(b schema.Batch) error {
		t := b.(*schema.Comms)
		for i, id := range t.Comm {
			if len(x.comms) == 0 || x.comms[len(x.comms)-1].id != id {
				x.comms = append(x.comms, comm{id: id})
			}
			if c := &x.comms[len(x.comms)-1]; t.WorldRank[i] != null32 {
				c.members = append(c.members, t.WorldRank[i])
			}
		}
		return nil
	})
	slices.SortStableFunc(x.comms, func(a, b comm) int { return len(b.members)/len(x.ranks) - len(a.members)/len(x.ranks) })
	return err
}

// beginLine begins a line for a thread of a rank: KIND:CPU:1:TASK:THREAD.
func (x *exporter) beginLine(kind byte, rank int32, thread int) {
	x.line = append(x.line[:0], kind)
	x.place(rank, thread)
}

func (x *exporter) place(rank int32, thread int) {
	x.put(int64(x.ranks[rank].firstCPU+thread), 1, int64(rank)+1, int64(thread)+1)
}

// put appends numbers to the line.
func (x *exporter) put(numbers ...int64) {
	for _, n := range numbers {
		x.line = append(x.line, ':')
		x.line = strconv.AppendInt(x.line, n, 10)
	}
}

// endLine ends the line and passes it to the sorter with its time.
func (x *exporter) endLine(at int64) error {
	x.line = append(x.line, '\n')
	return x.sorter.add(at, x.line)
}

// events writes the states and events of calls.
func (x *exporter) events(b *schema.Events) error {
	for i, rank := range b.Rank {
		if rank < 0 || int(rank) >= len(x.ranks) || b.Call[i] < 0 || int(b.Call[i]) >= len(codes) {
			return fmt.Errorf("events: rank %d, seq %d: it has no such rank or call", rank, b.Seq[i])
		}
		if b.StartNs[i] == null64 {
			x.open++
			continue
		}
		if err := x.event(b, i); err != nil {
			return err
		}
	}
	return nil
}

// event writes a call: the state running before it, its own state, and an event at its begin and end. A call that
// never returned has no end event, and its state lasts until the end of the run.
func (x *exporter) event(b *schema.Events, i int) error {
	rank, thread := b.Rank[i], max(0, int(b.Thread[i]))
	r := &x.ranks[rank]
	if thread >= r.threads {
		return fmt.Errorf("events: rank %d, seq %d: thread %d, and the rank has %d", rank, b.Seq[i], thread, r.threads)
	}
	c := codes[b.Call[i]]
	x.used[b.Call[i]] = true
	if c.typ == typeUnnumbered {
		x.unnumbered++
	}
	start, end := b.StartNs[i], b.EndNs[i]
	if end == null64 {
		x.open++
		end = max(start, x.m.EndNs)
	}
	if err := x.state(rank, thread, r.busyTo[thread], start, stateRunning); err != nil {
		return err
	}
	if err := x.state(rank, thread, max(start, r.busyTo[thread]), end, c.state); err != nil {
		return err
	}
	r.busyTo[thread] = max(r.busyTo[thread], end)
	x.beginLine('2', rank, thread)
	x.put(start, int64(c.typ), int64(c.value))
	if c.typ == typeCollective && b.Instance[i] != null64 {
		x.put(typeSent, max(0, b.SendBytes[i]), typeReceived, max(0, b.RecvBytes[i]))
		if b.RootWorld[i] == rank {
			x.put(typeRoot, 1)
		}
		x.put(typeComm, commID(b.Comm[i]))
	}
	if site := b.Callsite[i]; site != null32 {
		x.sites[site] = true
		x.put(typeFunction, int64(site)+1, typeLine, int64(site)+1)
	}
	if err := x.endLine(start); err != nil {
		return err
	}
	if b.EndNs[i] == null64 {
		return nil
	}
	x.beginLine('2', rank, thread)
	x.put(end, int64(c.typ), 0)
	return x.endLine(end)
}

// commID returns a communicator's number in the trace, counted from 1.
func commID(id int32) int64 { return int64(id) + 1 }

// state writes a state unless it has no duration.
func (x *exporter) state(rank int32, thread int, from, to int64, state int) error {
	if from >= to {
		return nil
	}
	x.beginLine('1', rank, thread)
	x.put(from, to, int64(state))
	return x.endLine(from)
}

// messages writes communications, from the start of the send to the posting of the receive and the end of the call
// that completed it. Messages do not record threads, so they go between threads 1.
func (x *exporter) messages(b *schema.Messages) error {
	for i, src := range b.Src {
		send, post, done := b.SendStartNs[i], b.RecvPostNs[i], b.RecvEndNs[i]
		if send == null64 || post == null64 || done == null64 {
			x.untimed++
			continue
		}
		x.beginLine('3', src, 0)
		x.put(send, send)
		x.place(b.Dst[i], 0)
		x.put(post, done, b.Bytes[i], int64(b.Tag[i]))
		if err := x.endLine(send); err != nil {
			return err
		}
	}
	return nil
}

// header writes the first lines: #Paraver (DATE at
// TIME):END_ns:NODES(CPUS,...):1:TASKS(THREADS:NODE,...),COMMUNICATORS and the communicators.
func (x *exporter) header(w *bufio.Writer) {
	began, err := time.Parse(time.RFC3339, x.m.Origin.Started)
	if err != nil {
		began = time.Unix(0, 0)
	}
	end := x.m.EndNs
	for i := range x.ranks {
		end = max(end, slices.Max(x.ranks[i].busyTo))
	}
	fmt.Fprintf(w, "#Paraver (%s):%d_ns:", began.UTC().Format("02/01/2006 at 15:04"), end)
	cpus := x.cpus()
	fmt.Fprintf(w, "%d(", len(cpus))
	for i, n := range cpus {
		fmt.Fprintf(w, "%s%d", comma(i), n)
	}
	fmt.Fprintf(w, "):1:%d(", len(x.ranks))
	for i := range x.ranks {
		fmt.Fprintf(w, "%s%d:%d", comma(i), x.ranks[i].threads, x.ranks[i].host+1)
	}
	fmt.Fprintf(w, "),%d\n", len(x.comms))
	for _, c := range x.comms {
		fmt.Fprintf(w, "c:1:%d:%d", commID(c.id), len(c.members))
		for _, rank := range c.members {
			fmt.Fprintf(w, ":%d", rank+1)
		}
		fmt.Fprintln(w)
	}
}

func comma(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// cpus returns the number of CPUs of each node: as many as it has threads.
func (x *exporter) cpus() (of []int) {
	for i := range x.ranks {
		r := &x.ranks[i]
		for len(of) <= int(r.host) {
			of = append(of, 0)
		}
		of[r.host] += r.threads
	}
	return of
}

// notes lists what the trace lacks.
func (x *exporter) notes() (all []string) {
	for _, n := range []struct {
		count int64
		text  string
	}{{x.open, "calls that never returned: %d; the trace does not say when they end"},
		{x.untimed, "messages without the times of both their ends: %d; they are not in the trace"},
		{x.unnumbered, "calls of functions that Extrae has no number for: %d; they have the event type 47000001"}} {
		if n.count > 0 {
			all = append(all, fmt.Sprintf(n.text, n.count))
		}
	}
	for i := range x.ranks {
		if x.ranks[i].threads > 1 {
			return append(all, "messages do not say which threads they are of: in the trace they go between the "+
				"first ones")
		}
	}
	return all
}
