package ingest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
	"github.com/commq/commq/writer/check"
)

const null32, null64 = schema.NullInt32, schema.NullInt64

// script writes the calls of one thread, a call every 10 ns that takes 4 ns: the n-th call (from 0) is entered at 10n.
type script struct {
	*spoolgen.Writer
	now uint64
}

// call writes a CALL slot after edit has filled it in.
func (s *script) call(id schema.CallID, edit func(c *spool.Call)) {
	c := spoolgen.NewCall(id, s.now, s.now+4)
	s.now += 10
	if edit != nil {
		edit(&c)
	}
	s.Call(&c)
}

// to fills in a send side.
func to(comm, peer, tag int32, count int64, req uint32) func(*spool.Call) {
	return func(c *spool.Call) {
		c.Comm, c.Peer, c.Tag, c.Dtype, c.Count, c.Req = comm, peer, tag, 0, count, req
	}
}

// from fills in a posted receive; peer and tag may be anyRank and anyTag.
func from(comm, peer, tag int32, req uint32) func(*spool.Call) {
	return func(c *spool.Call) {
		c.Comm, c.Peer, c.Tag, c.Dtype, c.Count, c.Req = comm, peer, tag, 0, 99, req
		wildcards(c)
	}
}

const anyRank, anyTag = -7, -7

func wildcards(c *spool.Call) {
	if c.Peer == anyRank {
		c.Peer, c.Flags = null32, c.Flags|spool.FlagAnySource
	}
	if c.Tag == anyTag {
		c.Tag, c.Flags = null32, c.Flags|spool.FlagAnyTag
	}
}

// got fills in the end of a receive by MPI_Wait and its like.
func got(req uint32, source, tag int32, bytes int64) func(*spool.Call) {
	return func(c *spool.Call) { c.Req, c.Peer, c.Tag, c.Count = req, source, tag, bytes }
}

// sent returns the end of a send.
func sent(req uint32) func(*spool.Call) {
	return func(c *spool.Call) { c.Req, c.Count = req, null64 }
}

// received fills in a blocking receive: what it got.
func received(comm, source, tag int32, bytes uint32, flags uint8) func(*spool.Call) {
	return func(c *spool.Call) {
		c.Comm, c.Peer, c.Tag, c.Dtype, c.Count, c.Req, c.Flags = comm, source, tag, 0, 99, bytes, flags
	}
}

// program is a synthetic job: what each rank, and each of its threads, writes.
type program struct {
	ranks  int
	header func(h *spool.Header) // edits headers; may be nil
	body   func(rank int, s *script)
	second func(rank int, s *script) // a second thread; may be nil
}

const testJob = 0xabc

// write makes the spool and returns its folder. Every rank begins with MPI_Init and defines datatype 0, MPI_INT.
func (p program) write(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	for rank := range p.ranks {
		p.file(t, dir, rank, 0, p.body)
		if p.second != nil {
			p.file(t, dir, rank, 1, p.second)
		}
	}
	return dir
}

func (p program) file(t testing.TB, dir string, rank, thread int, body func(int, *script)) {
	t.Helper()
	h := spool.Header{Rank: int32(rank), Size: int32(p.ranks), Thread: int32(thread), Job: testJob,
		ComputeClock: spool.ClockCPU, Ended: spool.EndedFinalized,
		OffsetInitNs: null64, OffsetFinalNs: null64, RealtimeNs: 1_700_000_000e9}
	copy(h.Host[:], "node0")
	copy(h.Program[:], "/bin/prog")
	copy(h.MPILibrary[:], "Open MPI v4.1.4")
	if p.header != nil {
		p.header(&h)
	}
	f, err := os.Create(filepath.Join(dir, spoolgen.FileName(&h)))
	if err != nil {
		t.Fatal(err)
	}
	s := script{Writer: spoolgen.NewWriter(f, h)}
	if thread == 0 {
		s.call(schema.CallInit, nil)
		s.DefType(0, "MPI_INT", 0, 4, 4)
	}
	body(rank, &s)
	if thread == 0 && h.Ended == spool.EndedFinalized {
		s.call(schema.CallFinalize, nil)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// result is an ingested run, its rows as text.
type result struct {
	*schema.Manifest
	dir      string
	events   []schema.Event
	messages []schema.Message
}

// ingested ingests a spool, checks the run, and reads it back.
func ingested(t testing.TB, dir string, o Options) *result {
	t.Helper()
	store := t.TempDir()
	out, err := writer.Create(store, "run", writer.Options{Check: len(o.Origin.Command) == 0})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Ingest(context.Background(), dir, out, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &result{Manifest: m, dir: filepath.Join(store, "run")}
	read(t, r.dir, &schema.EventsTable, func(b *schema.Events, i int) {
		var row schema.Event
		b.Row(i, &row)
		r.events = append(r.events, row)
	})
	slices.SortStableFunc(r.events, func(a, b schema.Event) int { // files are ranges of ranks; one order for the tests
		return int(a.Rank-b.Rank)*1_000_000 + int(a.Seq-b.Seq)
	})
	read(t, r.dir, &schema.MessagesTable, func(b *schema.Messages, i int) {
		var row schema.Message
		b.Row(i, &row)
		r.messages = append(r.messages, row)
	})
	return r
}

// memory is a sink that stores rows.
type memory struct {
	sync.Mutex
	batches []schema.Batch
}

// Write copies the batch, because ingest reuses its memory.
func (k *memory) Write(_ int, b schema.Batch) error {
	k.Lock()
	defer k.Unlock()
	if b.Len() > 0 {
		k.batches = append(k.batches, copied(b))
	}
	return nil
}

func copied(b schema.Batch) schema.Batch {
	switch b := b.(type) {
	case *schema.Events:
		c := &schema.Events{}
		var row schema.Event
		for i := range b.Len() {
			b.Row(i, &row)
			c.Append(&row)
		}
		return c
	case *schema.Messages:
		c := &schema.Messages{}
		var row schema.Message
		for i := range b.Len() {
			b.Row(i, &row)
			c.Append(&row)
		}
		return c
	}
	return b // others are not reused
}

// inMemory ingests as ingested does, but without a disk. It checks the rows as they would be written.
func inMemory(t testing.TB, dir string, o Options) *result {
	t.Helper()
	if err := o.withDefaults(); err != nil {
		t.Fatal(err)
	}
	j, err := openJob(dir, o.Job, allFiles)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	var k memory
	m, err := makeRun(context.Background(), j, &o, &k)
	if err != nil {
		t.Fatal(err)
	}
	r := &result{Manifest: m}
	slices.SortStableFunc(k.batches, func(a, b schema.Batch) int { return checkOrder(a) - checkOrder(b) })
	checker := check.NewChecker(m, func(p check.Problem) { t.Errorf("%v", p) })
	for i, b := range k.batches {
		checker.Add(fmt.Sprint(i), b)
		r.add(b)
	}
	checker.Finish()
	slices.SortStableFunc(r.events, func(a, b schema.Event) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq))
	})
	return r
}

// checkOrder sorts tables as a Checker wants them: definitions, then events, messages and parts by epoch.
func checkOrder(b schema.Batch) int {
	switch b := b.(type) {
	case *schema.RankInfos:
		return -2
	case *schema.Events:
		return 3 * int(b.Epoch[0])
	case *schema.Messages:
		return 3*int(b.Epoch[0]) + 1
	case *schema.Parts:
		return 3*int(b.Epoch[0]) + 2
	}
	return -1
}

// add adds the rows of a batch.
func (r *result) add(b schema.Batch) {
	switch b := b.(type) {
	case *schema.Events:
		for i := range b.Len() {
			var row schema.Event
			b.Row(i, &row)
			r.events = append(r.events, row)
		}
	case *schema.Messages:
		for i := range b.Len() {
			var row schema.Message
			b.Row(i, &row)
			r.messages = append(r.messages, row)
		}
	}
}

// refused ingests a spool that must fail, and returns the text of the error.
func refused(t testing.TB, dir string, o Options) string {
	t.Helper()
	store := t.TempDir()
	out, err := writer.Create(store, "run", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = Ingest(context.Background(), dir, out, o); err == nil {
		t.Fatal("no error")
	}
	if files, _ := os.ReadDir(store); len(files) != 0 {
		t.Errorf("%d files remain in the store", len(files))
	}
	return err.Error()
}

func read[B schema.Batch](t testing.TB, dir string, table *schema.Table, row func(B, int)) {
	t.Helper()
	err := writer.ReadTable(context.Background(), dir, table, 1024, func(b schema.Batch) error {
		for i := range b.Len() {
			row(b.(B), i)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// n writes a number, "-" for null.
func n[T int32 | int64](v T) string {
	if v == T(null32) || int64(v) == null64 {
		return "-"
	}
	return fmt.Sprint(v)
}

// messageLines returns messages as text: src>dst comm tag bytes, then the rows: sent, posted, done; then the epoch.
func (r *result) messageLines() string {
	var b strings.Builder
	for _, m := range r.messages {
		fmt.Fprintf(&b, "%d>%d comm %d tag %d bytes %d rows %s %s %s epoch %d\n", m.Src, m.Dst, m.Comm, m.Tag,
			m.Bytes, n(m.SendSeq), n(m.RecvPostSeq), n(m.RecvDoneSeq), m.Epoch)
	}
	return b.String()
}

// eventLines returns the rows of one rank as text, without MPI_Init and MPI_Finalize: seq call class, then what is
// not null.
func (r *result) eventLines(rank int32) string {
	var b strings.Builder
	for _, e := range r.events {
		call := strings.TrimPrefix(schema.CallNames[e.Call], "MPI_")
		if e.Rank != rank || call == "Init" || call == "Finalize" {
			continue
		}
		fmt.Fprintf(&b, "%d %s %s", e.Seq, call, schema.Class(e.Class))
		field := func(name, v string) {
			if v != "-" {
				fmt.Fprintf(&b, " %s %s", name, v)
			}
		}
		field("comm", n(e.Comm))
		field("instance", n(e.Instance))
		field("to", n(e.SendWorld))
		field("tag", n(e.SendTag))
		field("sends", n(e.SendBytes))
		field("from", n(e.RecvWorld))
		field("tag", n(e.RecvTag))
		field("receives", n(e.RecvBytes))
		field("root", n(e.RootWorld))
		if e.PostedAny > 0 {
			field("any", n(e.PostedAny))
		}
		if e.ProcNull > 0 {
			field("null", n(e.ProcNull))
		}
		field("request", n(e.Request))
		field("done", n(e.DoneSeq))
		field("init", n(e.InitSeq))
		field("error", n(e.ErrorClass))
		b.WriteByte('\n')
	}
	return b.String()
}

// compareLines compares text line by line, without indents and empty lines.
func compareLines(t testing.TB, what, got, want string) {
	t.Helper()
	clean := func(s string) []string {
		var lines []string
		for _, l := range strings.Split(s, "\n") {
			if l = strings.TrimSpace(l); l != "" {
				lines = append(lines, l)
			}
		}
		return lines
	}
	if d := diff.Diff(clean(want), clean(got)); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
