package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// ring returns a job without faults.
func ring(ranks int) program {
	return program{ranks: ranks, body: func(rank int, s *script) {
		s.call(schema.CallSend, to(0, int32((rank+1)%ranks), 9, 3, 0))
		s.call(schema.CallRecv, received(0, int32((rank+ranks-1)%ranks), 9, 12, 0))
	}}
}

func file(dir string, rank int) string {
	return filepath.Join(dir, fmt.Sprintf("%016x.%d.0%s", testJob, rank, spool.Suffix))
}

// edit changes a file's bytes.
func edit(t *testing.T, name string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(name)
	if err == nil {
		err = os.WriteFile(name, change(data), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// slot puts a slot where slot number k is.
func slot(k int, s spool.Call) func([]byte) []byte {
	return func(b []byte) []byte {
		copy(b[spool.HeaderBytes+k*spool.SlotBytes:], (*[spool.SlotBytes]byte)(unsafe.Pointer(&s))[:])
		return b
	}
}

func header(change func(*spool.Header)) func([]byte) []byte {
	return func(b []byte) []byte {
		change((*spool.Header)(unsafe.Pointer(&b[0])))
		return b
	}
}

// The slots of a rank of ring: 0 MPI_Init, 1 and 2 the datatype, 3 MPI_Send, 4 MPI_Recv, 5 MPI_Finalize.
func TestErrorsNameTheDamage(t *testing.T) {
	bad := func(edit func(*spool.Call)) spool.Call {
		c := spoolgen.NewCall(schema.CallSend, 10, 14)
		to(0, 0, 9, 1, 0)(&c)
		edit(&c)
		return c
	}
	const name = "0000000000000abc.1.0.cqs: "
	for _, c := range []struct {
		what   string
		change func([]byte) []byte
		want   string
	}{
		{"magic", func(b []byte) []byte { b[3] = 'x'; return b }, name + `not a spool file: begins with "COMxQSP1"`},
		{"version", header(func(h *spool.Header) { h.Version = 9 }), name + "spool version 9, this commq reads 6"},
		{"sizes", header(func(h *spool.Header) { h.SlotBytes = 32 }), name + "header of 4096 and slots of 32 bytes"},
		{"rank", header(func(h *spool.Header) { h.Rank = 3 }), name + "damaged header: rank 3 of 3"},
		{"thread", header(func(h *spool.Header) { h.Thread = -1 }), name + "damaged header: thread -1"},
		{"ended", header(func(h *spool.Header) { h.Ended = 7 }), name + "damaged header: ended 7"},
		{"another's name", header(func(h *spool.Header) { h.Rank = 2 }), name + "holds the records of 0000000000000abc.2.0"},
		{"world size", header(func(h *spool.Header) { h.Size = 4 }), name + "is from a job with 4 ranks, but the other files have 3"},
		{"clock", header(func(h *spool.Header) { h.ComputeClock = spool.ClockWall }), name + "captured with --clock wall"},
		{"no header", func(b []byte) []byte { return b[:100] }, name + "100 bytes, less than a header"},
		{"cut in a slot", func(b []byte) []byte { return b[:4200] }, name + "ends within a record, 40 bytes into it"},
		{"cut between slots", func(b []byte) []byte { return b[:4096+4*64] }, name + "rank 1 reached MPI_Finalize, but its records end before"},
		{"kind", slot(4, spool.Call{Kind: 200}), name + "slot 4: of kind 200: the file is damaged"},
		{"call", slot(3, bad(func(c *spool.Call) { c.Call = 60000 })), name + "slot 3: a call with the number 60000"},
		{"peer", slot(3, bad(func(c *spool.Call) { c.Peer = 3 })), name + "slot 3: MPI_Send: rank 3 of a communicator of 3 ranks"},
		{"communicator", slot(3, bad(func(c *spool.Call) { c.Comm = 5 })), name + "slot 3: MPI_Send: communicator 5 is not defined"},
		{"datatype", slot(3, bad(func(c *spool.Call) { c.Dtype = 5 })), name + "slot 3: MPI_Send: datatype 5 is not defined"},
		{"count", slot(3, bad(func(c *spool.Call) { c.Count = 1 << 62 })), name + "slot 3: MPI_Send: 4611686018427387904 elements of 4 bytes"},
		{"no side", slot(3, bad(func(c *spool.Call) { c.Call = uint16(schema.CallSendrecv) })), name + "slot 3: MPI_Sendrecv: no SIDE slot follows"},
		{"done", slot(4, *(*spool.Call)(unsafe.Pointer(&spool.Done{N: 3, Kind: spool.KindDone}))),
			name + "slot 4: a DONE slot with 3 entries"},
		{"blob", slot(2, spool.Call{Kind: spool.KindPre}),
			name + "slot 1: definition of kind 3: 0 bytes of payload follow, want 31"},
		{"definition", slot(1, *(*spool.Call)(unsafe.Pointer(&spool.Def{What: 99, Kind: spool.KindDef}))),
			name + "slot 1: definition of kind 99: unknown"},
	} {
		dir := ring(3).write(t)
		edit(t, file(dir, 1), c.change)
		if got := refused(t, dir, Options{}); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
	}
}

func TestMissingAndShortFiles(t *testing.T) {
	dir := ring(5).write(t)
	os.Remove(file(dir, 2))
	if got, want := refused(t, dir, Options{}),
		"has no records of rank 2; put the files of all nodes into one folder, or ingest what is there with --partial"; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	r := ingested(t, dir, Options{Partial: true})
	compareLines(t, "messages", r.messageLines(), `
		0>1 comm 0 tag 9 bytes 12 rows 1 2 2 epoch 0
		3>4 comm 0 tag 9 bytes 12 rows 1 2 2 epoch 0
		4>0 comm 0 tag 9 bytes 12 rows 1 2 2 epoch 0`)
	if r.Ranks != 5 || r.Ended != "killed" || r.Counts.UnmatchedSends != 1 || r.Counts.UnmatchedReceives != 1 {
		t.Errorf("%d ranks, %s, %+v", r.Ranks, r.Ended, r.Counts)
	}
	compareLines(t, "warnings", strings.Join(r.Warnings, "\n"),
		"No records of rank 2: messages from and to them are unmatched.")
	edit(t, file(dir, 1), func(b []byte) []byte { return b[:4096+4*64] })
	r = ingested(t, dir, Options{Partial: true})
	compareLines(t, "warnings", strings.Join(r.Warnings, "\n"), `
		No records of rank 2: messages from and to them are unmatched.
		The records of rank 1 end before its MPI_Finalize: its file was cut short.`)
}

// The last thread of a rank is missing, or its file is empty, although the rank finalized.
func TestMissingLastThread(t *testing.T) {
	for _, c := range []struct {
		what, want string
		threads    uint32 // in the header of thread 0
		ended      uint32
		last       []byte // what the file of thread 1 has; nil: it is missing
	}{
		{"missing", "has no records of thread 1 of rank 0; put the files", 2, spool.EndedFinalized, nil},
		{"empty", "has no records of thread 1 of rank 0; put the files", 2, spool.EndedFinalized, []byte{}},
		{"empty, of an older commq", "has no records of thread 1 of rank 0; put the files", 0, spool.EndedFinalized, []byte{}},
		{"missing, of an older commq", "", 0, spool.EndedFinalized, nil},
		{"killed", "", 0, spool.EndedNot, []byte{}},
		{"no other thread", "", 1, spool.EndedFinalized, nil},
	} {
		dir := ring(3).write(t)
		edit(t, file(dir, 0), header(func(h *spool.Header) { h.Threads, h.Ended = c.threads, c.ended }))
		last := strings.Replace(file(dir, 0), ".0"+spool.Suffix, ".1"+spool.Suffix, 1)
		if c.last != nil {
			if err := os.WriteFile(last, c.last, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		const warning = "No records of thread 1 of rank 0: messages from and to them are unmatched."
		if c.want != "" {
			if got := refused(t, dir, Options{}); !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q", c.what, got, c.want)
			}
		}
		r := ingested(t, dir, Options{Partial: c.want != ""})
		if slices.Contains(r.Warnings, warning) != (c.want != "") {
			t.Errorf("%s: warnings %q", c.what, r.Warnings)
		}
		killed := strings.Contains(strings.Join(r.Warnings, ""), "was killed while it made the file")
		if killed != (c.what == "killed") {
			t.Errorf("%s: warnings %q", c.what, r.Warnings)
		}
	}
}

// A process that is killed while it makes its file leaves an empty one, or one of zeros: it is as if it was not there.
func TestUnwrittenFiles(t *testing.T) {
	for _, left := range [][]byte{nil, make([]byte, spool.HeaderBytes), make([]byte, 1<<16)} {
		dir := ring(3).write(t)
		edit(t, file(dir, 0), func([]byte) []byte { return left })
		if got, want := refused(t, dir, Options{}), "has no records of rank 0; put"; !strings.Contains(got, want) {
			t.Errorf("%d bytes of zeros: %q, want %q", len(left), got, want)
		}
		const warning = "No records of rank 0: messages from and to them are unmatched."
		if r := ingested(t, dir, Options{Partial: true}); !slices.Contains(r.Warnings, warning) {
			t.Errorf("%d bytes of zeros: %q, want %q", len(left), r.Warnings, warning)
		}
		if len(left) > spool.HeaderBytes {
			edit(t, file(dir, 0), func(b []byte) []byte { b[len(b)-1] = 1; return b })
			if got, want := refused(t, dir, Options{Partial: true}), "it is all zeros, and records follow"; !strings.Contains(got, want) {
				t.Errorf("a header of zeros before records: %q, want %q", got, want)
			}
			edit(t, file(dir, 0), func(b []byte) []byte { b[len(b)-1] = 0; return b })
		}
		for rank := range 2 {
			edit(t, file(dir, 1+rank), func([]byte) []byte { return left })
		}
		if got, want := refused(t, dir, Options{}), "no records in it"; !strings.Contains(got, want) {
			t.Errorf("all files of %d bytes of zeros: %q, want %q", len(left), got, want)
		}
	}
}

// Two of five ranks reached their limit, rank 3 at 21 ns before rank 1 at 31; rank 4 had a full disk. A receive whose
// send was not recorded stands alone.
func TestRecordsThatReachedTheirLimit(t *testing.T) {
	p := program{ranks: 5, header: func(h *spool.Header) {
		switch h.Rank {
		case 1:
			h.Limit, h.Limited, h.Dropped = 65536, 1, 9
		case 3:
			h.Limit, h.Limited, h.Dropped = 65536, 1, 4097
		case 4:
			h.Limit, h.Dropped = 65536, 5
		}
	}, body: func(rank int, s *script) {
		switch rank {
		case 1:
			s.now = 31
			s.call(schema.CallSend, to(0, 2, 9, 3, 0))
		case 4:
			s.call(schema.CallRecv, received(0, 3, 9, 4, 0))
		case 2:
			s.now = 50
			s.call(schema.CallRecv, received(0, 1, 9, 12, 0))
			s.call(schema.CallRecv, received(0, 3, 7, 8, 0))
		case 3:
			s.now = 21
			s.call(schema.CallSend, to(0, 4, 9, 1, 0))
		}
	}}
	r := ingested(t, p.write(t), Options{})
	compareLines(t, "warnings", strings.Join(r.Warnings, "\n"), `
		5 calls could not be recorded, because there was no space left for the spool: their messages and collectives are missing.
		The records of 2 threads reached their limit (--max-spool: 65536 bytes each), the first of them those of thread 0 of rank 3 at 0.000000 s. The 4106 calls that these threads made after that are not recorded: their messages and collectives are missing.`)
	compareLines(t, "messages", r.messageLines(), `
		1>2 comm 0 tag 9 bytes 12 rows 1 1 1 epoch 0
		3>4 comm 0 tag 9 bytes 4 rows 1 1 1 epoch 0`)
	if c := r.Counts; c.Dropped != 9+4097+5 || c.Messages != 2 || c.UnmatchedReceives != 1 {
		t.Errorf("counts %+v", c)
	}
}

// A capture that only counted leaves nothing to ingest; the error says so.
func TestDryRunIsRefused(t *testing.T) {
	dir := ring(3).write(t)
	edit(t, file(dir, 2), header(func(h *spool.Header) { h.Calls, h.Slots = 9, 15 }))
	for _, partial := range []bool{false, true} {
		if got, want := refused(t, dir, Options{Partial: partial}),
			"0000000000000abc.2.0.cqs: was captured with --dry-run, which keeps no records; capture without it"; !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestJobsOfASpool(t *testing.T) {
	dir := ring(3).write(t)
	later := ring(2)
	later.header = func(h *spool.Header) { h.Job, h.RealtimeNs = 0xdef, h.RealtimeNs+1e9 }
	for _, f := range []string{"0000000000000def.0.0.cqs", "0000000000000def.1.0.cqs"} {
		data, err := os.ReadFile(filepath.Join(later.write(t), f))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, f), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o644)
	jobs, err := Jobs(dir)
	if err != nil || len(jobs) != 2 || jobs[0].ID != "0000000000000abc" || jobs[0].Ranks != 3 ||
		len(jobs[1].Files) != 2 || jobs[1].Program != "/bin/prog" {
		t.Errorf("jobs %+v, %v", jobs, err)
	}
	if got := refused(t, dir, Options{}); !strings.Contains(got,
		"records of 2 jobs; choose one with --job: 0000000000000abc (3 ranks of /bin/prog), 0000000000000def (2 ranks") {
		t.Error(got)
	}
	if got := refused(t, dir, Options{Job: "123"}); !strings.Contains(got, "no job 123; there is 0000000000000abc") {
		t.Error(got)
	}
	if r := ingested(t, dir, Options{Job: "0000000000000def"}); r.Ranks != 2 || r.Origin.Job != "0000000000000def" {
		t.Errorf("%d ranks of job %s", r.Ranks, r.Origin.Job)
	}
	if got := refused(t, t.TempDir(), Options{}); !strings.Contains(got, "no records in it") {
		t.Error(got)
	}
	above := filepath.Join(t.TempDir(), "a[1]") // a name with the characters of patterns
	if err := os.Symlink(filepath.Dir(dir), above); err != nil {
		t.Fatal(err)
	}
	for _, above := range []string{filepath.Dir(dir), above} {
		if got, want := refused(t, above, Options{}), "no records in it, but in folders below it; name one of them: "+
			filepath.Join(above, filepath.Base(dir)); !strings.Contains(got, want) {
			t.Errorf("%s; want %s", got, want)
		}
	}
	testFolderOf(t)
	for _, c := range []struct{ files, want string }{{"", ""}, {".nfs1", ""},
		{"notes.txt", "JOB.RANK.THREAD.cqs), only notes.txt; was"}, {"a b c", ", only a and 2 more; was"},
		{"notes.txt 0000000000000abc.0.0.cqs", ""}} {
		other := t.TempDir()
		for _, name := range strings.Fields(c.files) {
			if err := os.WriteFile(filepath.Join(other, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := CheckAwaited(other); (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("a folder with %s: %v; want %q", c.files, err, c.want)
		}
	}
	if _, err := Jobs(filepath.Join(dir, "nowhere")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// testFolderOf finds the folder that commq capture made below the one of --spool.
func testFolderOf(t *testing.T) {
	t.Helper()
	for _, c := range []struct{ made, want string }{{"", "."}, {"other/", "."}, {"commq-spool-1/", "commq-spool-1"},
		{"commq-spool-1/ notes.txt", "commq-spool-1"}, {"commq-spool-1/ commq-spool-2/", "."},
		{"commq-spool-1/ 0000000000000abc.0.0.cqs", "."}} {
		dir := t.TempDir()
		for _, name := range strings.Fields(c.made) {
			err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o700)
			if err == nil && !strings.HasSuffix(name, "/") {
				err = os.WriteFile(filepath.Join(dir, name), nil, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if got := FolderOf(dir); got != filepath.Join(dir, c.want) {
			t.Errorf("the folder of records in a folder with %q is %s, want %s", c.made, got, c.want)
		}
	}
}

func TestCancelling(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	out, err := writer.Create(t.TempDir(), "run", writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := Ingest(ctx, ring(3).write(t), out, Options{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestProgressEndsAtTheTotal(t *testing.T) {
	dir, _, _, _ := randomSpool(t, 5, 3, 300)
	var done, total, calls int64
	r := ingested(t, dir, Options{epochRows: 50, Progress: func(d, n int64) {
		if d < done {
			t.Errorf("%d after %d", d, done)
		}
		done, total, calls = d, n, calls+1
	}})
	if done != r.Counts.Calls || total != done || calls < 4 {
		t.Errorf("%d of %d calls in %d reports, the run has %d", done, total, calls, r.Counts.Calls)
	}
}

// checkingSink takes rows like a writer: no null where a column must have a value, no enum out of range.
type checkingSink struct{ t *testing.T }

func (k checkingSink) Write(shard int, b schema.Batch) error {
	for i, c := range b.Table().Columns {
		switch v := b.Data(i).(type) {
		case []int32:
			if !c.Nullable && slices.Contains(v, null32) {
				k.t.Errorf("%s.%s is null", b.Table().Name, c.Name)
			}
		case []int64:
			if !c.Nullable && slices.Contains(v, null64) {
				k.t.Errorf("%s.%s is null", b.Table().Name, c.Name)
			}
		case []int16:
			if slices.ContainsFunc(v, func(x int16) bool {
				return int(x) >= len(c.Names) || x < 0 &&
					(x != schema.NullEnum || !c.Nullable)
			}) {
				k.t.Errorf("%s.%s is out of range", b.Table().Name, c.Name)
			}
		}
	}
	return nil
}

func fuzzIngest(t *testing.T, data []byte, epochRows uint8) {
	data = append(make([]byte, 0, len(data)+8), data...) // aligned
	f, err := spool.Parse("fuzz", data)
	if err != nil {
		return
	}
	f.Header.Size, f.Header.Rank = min(f.Header.Size, 8), min(f.Header.Rank, 7)
	j := &job{size: f.Header.Size}
	o := Options{Partial: true, NoSymbols: true, Workers: 1, epochRows: int64(epochRows), Record: RecordAll}
	if epochRows >= 128 {
		o.Record = RecordMessages
	}
	if err := o.withDefaults(); err != nil {
		t.Fatal(err)
	}
	f.Header.Rank = min(f.Header.Rank, f.Header.Size-1)
	j.add(f)
	if j.size > 2 && f.Header.Rank == 0 { // the same file as a second thread
		second := *f
		second.Header.Thread = 1
		j.add(&second)
	}
	m, err := makeRun(context.Background(), j, &o, checkingSink{t})
	if err == nil && (m.Counts.Calls < m.Counts.InProgress || m.Counts.Messages < m.Counts.WildcardReceives) {
		t.Errorf("counts %+v", m.Counts)
	}
}

// Whatever a spool file contains, ingest makes a run or returns an error.
func FuzzSpool(f *testing.F) {
	seedOneSided(f)
	timeless := ring(1)
	timeless.header = virtual
	for _, p := range []program{ring(1), crash(), paths(), timeless} {
		data, err := os.ReadFile(file(p.write(f), 0))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint8(3))
	}
	dir, _, _, _ := randomSpool(f, 3, 1, 60)
	data, err := os.ReadFile(file(dir, 0))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data, uint8(200))
	groups := program{ranks: 1, body: func(rank int, s *script) {
		making(s, schema.CallCommSplit, rank, 2, 0, 0, []int32{0}, nil)
		s.Def(spool.DefCommName, 2, []byte("name"))
		making(s, schema.CallCommCreateGroup, rank, 3, 2, 0, []int32{0}, nil)
		s.call(schema.CallSendInit, to(2, 0, 5, 2, 1))
		s.call(schema.CallStartall, nil)
		s.Start(spoolgen.Pair{Req: 5, Template: 2}, spoolgen.Pair{Req: 6, Template: 1})
		s.call(schema.CallAlltoallv, func(c *spool.Call) { c.Comm = 3 })
		s.Coll(spoolgen.NewColl(0))
		s.Parts(spool.Part{Peer: 0, SendBytes: 4})
		s.DefClock(7, 9)
	}}
	if data, err = os.ReadFile(file(groups.write(f), 0)); err != nil {
		f.Fatal(err)
	}
	f.Add(data, uint8(3))
	f.Fuzz(fuzzIngest)
}
