package otf2

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// ExportName is the name of the anchor file in the folder that Export makes.
const ExportName = "traces.otf2"

// need lists the requirements on a run that is exported.
var need = run.Need{AllCalls: true, Times: true}

// Export writes the run in folder dir as an OTF2 archive into a new folder out: traces.otf2, traces.def and traces. Its
// notes are sentences about what the trace lacks. A run without times or without all rows is an error.
func Export(ctx context.Context, dir, out string) (notes []string, err error) {
	m, err := run.ReadManifest(ctx, dir, need)
	if err != nil {
		return nil, err
	}
	from := writer.Opened{Dir: dir, Digest: m.Digest}
	delivered, err := run.FindDelivered(ctx, from)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		return nil, err
	}
	if err := os.Mkdir(out, 0o777); err != nil {
		return nil, err
	}
	x := &exporter{m: m, out: out, tracks: map[trackKey]*track{}, texts: map[string]uint32{},
		calls: map[int16]uint32{}, frames: map[frame]uint32{}, comms: map[int32]*commExport{},
		done: make([]map[int64][]schema.Event, m.Ranks), counts: map[string]int64{}, delivered: delivered}
	x.text("") // 0
	if err = x.export(ctx, from); err != nil {
		_ = os.RemoveAll(out) // the first error counts
	}
	return x.notes(), err
}

// trackKey is a thread of a rank.
type trackKey struct{ thread, rank int32 }

type exporter struct {
	m         *schema.Manifest
	out       string
	tracks    map[trackKey]*track
	order     []*track
	threads   []int32 // by rank
	hosts     []int32
	texts     map[string]uint32
	strings   []string
	regions   []regionExport
	calls     map[int16]uint32 // region by call
	frames    map[frame]uint32 // region by frame
	sites     []siteExport
	comms     map[int32]*commExport
	ids       []int32
	done      []map[int64][]schema.Event // by rank: rows that the row with this seq completes
	delivered *run.Delivered
	counts    map[string]int64
}

type regionExport struct {
	name, file uint32
	line       uint32
	role       uint8
	paradigm   uint8
}

type frame struct {
	function, file string
	line           int32
}

type siteExport struct {
	parent int32
	region uint32
}

// place is where a process is in a communicator: in which group, and its rank there.
type place struct {
	remote int32
	rank   uint32
}

type commExport struct {
	groups       [2][]uint64
	places       map[int32]place // by world rank
	name         string
	parent       int32
	dims, period string
	outside      bool
}

func (x *exporter) text(s string) uint32 {
	id, ok := x.texts[s]
	if !ok {
		id = uint32(len(x.strings))
		x.texts[s] = id
		x.strings = append(x.strings, s)
	}
	return id
}

// export reads the tables and writes the files.
func (x *exporter) export(ctx context.Context, from writer.Opened) error {
	files := filepath.Join(x.out, "traces")
	if err := os.Mkdir(files, 0o777); err != nil {
		return err
	}
	for _, t := range []struct {
		table *schema.Table
		read  func(schema.Batch)
	}{{&schema.RanksTable, x.readRanks}, {&schema.CommsTable, x.readComms}, {&schema.CallsitesTable, x.readSites}} {
		err := from.ReadTable(ctx, t.table, 1<<12, func(b schema.Batch) error { t.read(b); return nil })
		if err != nil {
			return err
		}
	}
	for rank, n := range x.threads {
		for thread := range n {
			t := &track{id: uint64(rank) + uint64(thread)*uint64(x.m.Ranks)}
			t.path = filepath.Join(files, fmt.Sprint(t.id, ".evt"))
			x.tracks[trackKey{thread, int32(rank)}] = t
			x.order = append(x.order, t)
		}
	}
	err := from.ReadTable(ctx, &schema.EventsTable, 1<<13, func(b schema.Batch) error {
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
	for _, t := range x.order {
		if !t.open { // else a reader would take the end of a frame for that of the call
			x.leave(t, 0)
		}
		// Readers want a file of local definitions too, though there are none.
		local := chunked{path: strings.TrimSuffix(t.path, ".evt") + ".def"}
		if err := errors.Join(t.close(), local.close()); err != nil {
			return err
		}
	}
	return x.writeDefinitions()
}

func (x *exporter) readRanks(b schema.Batch) {
	r := b.(*schema.RankInfos)
	for i := range r.Rank {
		x.threads = append(x.threads, max(1, r.Threads[i]))
		x.hosts = append(x.hosts, max(0, r.Host[i]))
		x.done[r.Rank[i]] = map[int64][]schema.Event{}
	}
}

func (x *exporter) readComms(b schema.Batch) {
	t := b.(*schema.Comms)
	var row schema.Comm
	for i := range t.Len() {
		t.Row(i, &row)
		c := x.comms[row.Comm]
		if c == nil {
			c = &commExport{places: map[int32]place{}, parent: row.Parent}
			x.comms[row.Comm] = c
			x.ids = append(x.ids, row.Comm)
			c.name, c.dims, c.period = notNull(row.Name), notNull(row.CartDims), notNull(row.CartPeriods)
		}
		if row.WorldRank == null32 {
			c.outside = true
			continue
		}
		c.places[row.WorldRank] = place{row.Remote, uint32(row.CommRank)}
		c.groups[row.Remote] = append(c.groups[row.Remote], uint64(row.WorldRank))
	}
}

// notNull returns a text, empty for null.
func notNull(s string) string {
	if s == schema.NullText {
		return ""
	}
	return s
}

func (x *exporter) readSites(b schema.Batch) {
	t := b.(*schema.Callsites)
	var row schema.Callsite
	for i := range t.Len() {
		t.Row(i, &row)
		f := frame{function: unknownFrame, line: max(row.Line, 0)}
		if row.Function != schema.NullText {
			f.function = row.Function
		} else if row.Module != schema.NullText {
			f.function = fmt.Sprintf("%s+%#x", row.Module, max(row.Offset, 0))
		}
		if row.File != schema.NullText {
			f.file = row.File
		}
		id, ok := x.frames[f]
		if !ok {
			id = x.region(regionExport{x.text(f.function), x.text(f.file), uint32(f.line), 1, 2})
			x.frames[f] = id
		}
		x.sites = append(x.sites, siteExport{row.Parent, id})
	}
}

func (x *exporter) region(r regionExport) uint32 {
	x.regions = append(x.regions, r)
	return uint32(len(x.regions) - 1)
}

// callRegion returns the region of a call.
func (x *exporter) callRegion(call, class int16) uint32 {
	id, ok := x.calls[call]
	if !ok {
		role := uint8(1)
		switch schema.Class(class) {
		case schema.ClassCollective:
			role = 26
		case schema.ClassSend, schema.ClassRecv, schema.ClassSendrecv, schema.ClassProbe, schema.ClassComplete:
			role = 28
		case schema.ClassRMA:
			role = 29
		case schema.ClassIO:
			role = 27
		}
		id = x.region(regionExport{x.text(schema.CallID(call).String()), 0, 0, role, paradigmMPI})
		x.calls[call] = id
	}
	return id
}

// row writes the events of a row.
func (x *exporter) row(e *schema.Event) error {
	t := x.tracks[trackKey{e.Thread, e.Rank}]
	if t == nil {
		return fmt.Errorf("rank %d, seq %d: thread %d is not in the table ranks", e.Rank, e.Seq, e.Thread)
	}
	if t.open {
		x.counts["Calls that never returned, though others of their thread follow: they end where the next begins"]++
		t.number(evtLeave, e.StartNs, t.region)
	}
	x.walk(t, e)
	region := uint64(x.callRegion(e.Call, e.Class))
	t.number(evtEnter, e.StartNs, region)
	end := e.EndNs
	if end == null64 {
		end = e.StartNs
	}
	if x.delivered.Complete(e) {
		x.counts["Sends that were cancelled or failed, without records"]++
	}
	x.records(t, e, end)
	for _, r := range x.done[e.Rank][e.Seq] {
		x.complete(t, &r, end)
	}
	delete(x.done[e.Rank], e.Seq)
	if e.Polls != null64 {
		x.counts["Failed tests and probes, which have no events"] += e.Polls
	}
	if e.EndNs != null64 {
		t.number(evtLeave, end, region)
	}
	t.end, t.region, t.open = end, region, e.EndNs == null64
	return t.err
}

// walk leaves and enters the regions between the last call's path and this one's.
func (x *exporter) walk(t *track, e *schema.Event) {
	var path []int32
	for s := e.Callsite; s != null32 && int(s) < len(x.sites) && s >= 0; s = x.sites[s].parent {
		path = append(path, s)
	}
	slices.Reverse(path)
	same := 0
	for same < len(path) && same < len(t.frames) && path[same] == t.frames[same] {
		same++
	}
	x.leave(t, same)
	for _, s := range path[same:] {
		t.number(evtEnter, e.StartNs, uint64(x.sites[s].region))
	}
	t.frames = path
}

// leave leaves the frames of the last call's path but for the outermost ones.
func (x *exporter) leave(t *track, outermost int) {
	for n := len(t.frames) - 1; n >= outermost; n-- {
		t.number(evtLeave, t.end, uint64(x.sites[t.frames[n]].region))
	}
}

// records writes the records of a call: what it sends, posts and takes part in.
func (x *exporter) records(t *track, e *schema.Event, end int64) {
	if e.Request != null64 && e.DoneSeq != null64 {
		x.done[e.Rank][e.DoneSeq] = append(x.done[e.Rank][e.DoneSeq], *e)
	}
	class := schema.Class(e.Class)
	if class == schema.ClassComplete || class == schema.ClassOther {
		return
	}
	if c := x.comms[e.Comm]; c != nil && c.outside {
		x.counts["Calls on communicators with processes outside the run, without records"]++
		return
	}
	if (class == schema.ClassCollective || e.Instance != null64) && schema.Refused(e.ErrorClass) {
		x.counts["Collectives that returned an error, without records"]++
		return
	}
	if class == schema.ClassRecv && e.RecvWorld == null32 && e.ProcNull == 0 {
		x.counts["Receives that got nothing, whose requests are written as cancelled"]++
	}
	posts := e.Request != null64
	if (class == schema.ClassSend || class == schema.ClassSendrecv) && e.SendWorld != null32 {
		t.sent(e)
	}
	switch {
	case (class == schema.ClassRecv || class == schema.ClassSendrecv) && posts && (e.RecvWorld != null32 ||
		e.SendWorld == null32):
		t.number(evtIrecvRequest, e.StartNs, otherRequest(e))
	case (class == schema.ClassRecv || class == schema.ClassSendrecv) && e.RecvWorld != null32:
		t.event(evtRecv, end, false, received(e))
	case class == schema.ClassCollective && posts:
		t.event(evtNBCRequest, e.StartNs, false, new(record).uint64(otherRequest(e)))
	// Operations, and calls that make or free communicators or make windows.
	case class == schema.ClassCollective || e.Instance != null64 || class == schema.ClassComm && e.Comm != null32:
		if r, ok := x.collective(e); ok {
			t.event(evtCollBegin, e.StartNs, false, new(record))
			t.event(evtCollEnd, end, false, r)
		}
	case class == schema.ClassProbe && e.RecvWorld != null32:
		t.event(evtProbe, end, false, probed(e))
	case class == schema.ClassRMA:
		x.counts["One-sided calls, which have their times but no records"]++
	case class == schema.ClassIO:
		x.counts["Calls of I/O, which have their times but no records"]++
	}
}

// sendRequest and otherRequest are the numbers of a row's request in a trace, of its send and of its receive or
// collective operation: MPI_Isendrecv has one request for both, and a trace has one for each.
func sendRequest(e *schema.Event) uint64  { return 2 * uint64(e.Request) }
func otherRequest(e *schema.Event) uint64 { return sendRequest(e) + 1 }

// sent writes what a row sends.
func (t *track) sent(e *schema.Event) {
	r := new(record).uint32(uint32(e.SendPeer)).uint32(uint32(e.Comm)).uint32(uint32(e.SendTag)).
		uint64(uint64(max(e.SendBytes, 0)))
	if e.Request != null64 {
		t.event(evtIsend, e.StartNs, false, r.uint64(sendRequest(e)))
	} else {
		t.event(evtSend, e.StartNs, false, r)
	}
}

func received(e *schema.Event) *record {
	return new(record).uint32(uint32(e.RecvPeer)).uint32(uint32(e.Comm)).uint32(uint32(e.RecvTag)).
		uint64(uint64(max(e.RecvBytes, 0)))
}

// probed is the record of what a probe found. Its receive has a record as if it had not been probed, so that no number
// of the message is needed.
func probed(e *schema.Event) *record {
	return new(record).uint32(uint32(e.RecvPeer)).uint32(uint32(e.Comm)).uint32(uint32(e.RecvTag)).uint64(undefined64)
}

// complete writes that a request is completed.
func (x *exporter) complete(t *track, e *schema.Event, at int64) {
	id := otherRequest(e)
	class := schema.Class(e.Class)
	if c := x.comms[e.Comm]; c != nil && c.outside {
		return
	}
	if (class == schema.ClassSend || class == schema.ClassSendrecv) && e.SendWorld != null32 {
		t.number(evtIsendComplete, at, sendRequest(e))
	}
	switch {
	case (class == schema.ClassRecv || class == schema.ClassSendrecv) && e.RecvWorld != null32:
		t.event(evtIrecv, at, false, received(e).uint64(id))
	case class == schema.ClassRecv && e.ProcNull == 0:
		t.number(evtCancelled, at, id)
	case class == schema.ClassCollective:
		if r, ok := x.collective(e); ok {
			t.event(evtNBCComplete, at, false, r.uint64(id))
		}
	}
}

// collective returns the record of a collective operation; false for those that OTF2 does not have.
func (x *exporter) collective(e *schema.Event) (*record, bool) {
	op := slices.Index(collectives[:], schema.CallID(e.Call).Operation())
	if schema.Class(e.Class) != schema.ClassCollective {
		op = 17 // a new handle
		if e.Instance == null64 {
			op = 18 // the end of one
		}
	}
	if op < 0 || e.Comm == null32 {
		x.counts["Collective operations that OTF2 does not have (of neighbours), without records"]++
		return nil, false
	}
	root := uint32(undefined32)
	if c := x.comms[e.Comm]; c != nil {
		root = c.root(e)
	}
	return new(record).uint8(uint8(op)).uint32(uint32(e.Comm)).uint32(root).uint64(uint64(max(e.SendBytes, 0))).
		uint64(uint64(max(e.RecvBytes, 0))), true
}

// root returns the root of a collective as OTF2 writes it. On an intercommunicator the ranks of the other group name
// it; the others of its own group, which only stand aside, do not know it.
func (c *commExport) root(e *schema.Event) uint32 {
	root, known := c.places[e.RootWorld]
	switch {
	case c.groups[1] == nil && known:
		return root.rank
	case c.groups[1] == nil:
	case known && e.RootWorld == e.Rank:
		return rootSelf
	case known && root.remote != c.places[e.Rank].remote:
		return root.rank
	case known, schema.CallID(e.Call).Is(schema.FactRooted) && e.SendBytes == 0 && e.RecvBytes == 0:
		return rootThisGroup
	}
	return undefined32
}

// writeDefinitions writes the global definitions and the anchor file.
func (x *exporter) writeDefinitions() error {
	var all []definition
	later := func(id uint8, r *record) { all = append(all, definition{id, r}) }
	later(6, new(record).uint8(paradigmMPI).uint32(x.text("MPI")).uint8(1))
	x.defineSystem(later)
	for i, r := range x.regions {
		later(defRegion, new(record).uint32(uint32(i)).uint32(r.name).uint32(0).uint8(r.role).uint32(r.file).
			uint32(r.line).uint32(r.line).uint32(r.name).uint8(r.role).uint8(r.paradigm).uint32(0))
	}
	x.defineComms(later)
	// The functions above number strings, which come first.
	first := []definition{{defClock, new(record).uint64(1e9).uint64(0).uint64(uint64(x.m.EndNs) + 1).uint64(undefined64)}}
	for i, s := range x.strings {
		first = append(first, definition{defString, new(record).uint32(uint32(i)).text(s)})
	}
	w := &chunked{path: filepath.Join(x.out, "traces.def")}
	w.define(append(first, all...))
	if err := w.close(); err != nil {
		return err
	}
	var a record
	a.uint8(recordChunkHeader).uint8(littleEndian).text(anchorMagic).uint8(3).uint8(2).uint8(2).uint8(0).uint8(0)
	a.full64(exportChunk).full64(uint64(w.chunk())).uint8(substratePosix).uint8(compressionNone)
	a.full64(uint64(len(x.order))).full64(w.records)
	a.text("").text(strings.TrimSpace(creator + " " + x.m.Origin.Commq)).text(x.m.Origin.Name)
	a.Write(make([]byte, 4)) // properties
	a.full64(1)              // the trace's identifier
	a.Write(make([]byte, 8)) // snapshots, thumbnails
	a.uint8(recordEndOfFile)
	return os.WriteFile(filepath.Join(x.out, ExportName), a.Bytes(), 0o666)
}

// defineSystem writes hosts, processes and threads.
func (x *exporter) defineSystem(later func(uint8, *record)) {
	later(defSystemTreeNode, new(record).uint32(0).uint32(x.text("system")).uint32(x.text("machine")).uint32(undefined32))
	for host := range slices.Max(x.hosts) + 1 {
		name := x.m.Origin.HostName(host)
		later(defSystemTreeNode, new(record).uint32(uint32(host)+1).uint32(x.text(name)).uint32(x.text("node")).uint32(0))
	}
	for rank, host := range x.hosts {
		later(defLocationGroup, new(record).uint32(uint32(rank)).uint32(x.text(fmt.Sprint("MPI Rank ", rank))).
			uint8(locationGroupProcess).uint32(uint32(host)+1).uint32(undefined32))
	}
	tracks := slices.Clone(x.order)
	slices.SortFunc(tracks, func(a, b *track) int { return int(a.id) - int(b.id) })
	for _, t := range tracks {
		thread := t.id / uint64(x.m.Ranks)
		name := "Master thread"
		if thread > 0 {
			name = fmt.Sprint("thread ", thread)
		}
		later(defLocation, new(record).uint64(t.id).uint32(x.text(name)).uint8(locationCPUThread).uint64(t.events).
			uint32(uint32(t.id%uint64(x.m.Ranks))))
	}
}

// defineComms writes the groups and communicators.
func (x *exporter) defineComms(later func(uint8, *record)) {
	group := uint32(0)
	members := func(kind uint8, all []uint64) uint32 {
		r := new(record).uint32(group).uint32(0).uint8(kind).uint32(uint32(len(all)))
		for _, m := range all {
			r.uint64(m)
		}
		later(defGroup, r.uint8(kind).uint8(paradigmMPI).uint32(0))
		group++
		return group - 1
	}
	var ranks []uint64
	for rank := range x.hosts {
		ranks = append(ranks, uint64(rank))
	}
	members(groupCommLocations, ranks)
	dimension := uint32(0)
	topology := uint32(0)
	for _, id := range x.ids {
		c := x.comms[id]
		if c.outside {
			continue
		}
		parent := uint32(undefined32)
		if p := x.comms[c.parent]; c.parent != null32 && p != nil && !p.outside {
			parent = uint32(c.parent)
		}
		name := x.text(c.name)
		a := members(groupCommGroup, c.groups[0])
		if c.groups[1] != nil {
			b := members(groupCommGroup, c.groups[1])
			later(defInterComm, new(record).uint32(uint32(id)).uint32(name).uint32(a).uint32(b).uint32(parent).uint32(0))
			continue
		}
		later(defComm, new(record).uint32(uint32(id)).uint32(name).uint32(a).uint32(parent).uint32(0))
		if c.dims == "" {
			continue
		}
		sizes, periods := strings.Split(c.dims, ","), strings.Split(c.period, ",")
		r := new(record).uint32(topology).uint32(0).uint32(uint32(id)).uint8(uint8(len(sizes)))
		for i, s := range sizes {
			size, _ := strconv.ParseUint(s, 10, 32) // the writer made it
			periodic := uint8(0)
			if i < len(periods) && periods[i] == "1" {
				periodic = 1
			}
			later(defCartDimension, new(record).uint32(dimension).uint32(0).uint32(uint32(size)).uint8(periodic))
			r.uint32(dimension)
			dimension++
		}
		later(defCartTopology, r)
		topology++
	}
}

func (x *exporter) notes() []string {
	var notes []string
	for _, what := range sortedKeys(x.counts) {
		if n := x.counts[what]; n > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d.", what, n))
		}
	}
	return notes
}
