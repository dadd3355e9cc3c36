package ingest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/schema"
)

// module and site write definitions as the shim does.
func (s *script) module(number int64, d spool.ModuleDef, rest string) {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, d) // memory
	s.Def(spool.DefModule, number, append(b.Bytes(), rest...))
}

func (s *script) site(number int64, path ...uint64) {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, path)
	s.Def(spool.DefSite, number, b.Bytes())
}

// withSite sets the call site of a call.
func withSite(site uint32, edit func(*spool.Call)) func(*spool.Call) {
	return func(c *spool.Call) {
		if edit != nil {
			edit(c)
		}
		c.Site = site
	}
}

const id = "\x0a\xbc\x01\x99" // a build id

// paths returns a job of three ranks, each with the program at another address, with a call path of two frames and
// one of one. The ranks come to their sites in different orders.
func paths() program {
	header := func(h *spool.Header) { h.Stack = 2 }
	body := func(rank int, s *script) {
		base := uint64(0x5000_0000) + uint64(rank)<<20
		s.module(1, spool.ModuleDef{Low: base, High: base + 0x9000, Bias: base, IDBytes: 4}, id+"/nowhere/prog")
		s.module(2, spool.ModuleDef{Low: 0x7f00_0000, High: 0x7f00_9000, Bias: 0x7f00_0000 - 0x1000, IDBytes: 0},
			"/nowhere/libhalo.so")
		send, recv, wait := uint32(3), uint32(4), uint32(5)
		if rank == 2 {
			send, recv, wait = 5, 3, 4
		}
		s.site(int64(send), 0x7f00_0100, base+0x500)
		s.site(int64(recv), 0x7f00_0200, base+0x500)
		s.site(int64(wait), base+0x90)
		next, before := int32(rank+1)%3, int32(rank+2)%3
		s.call(schema.CallIrecv, withSite(recv, from(0, before, 9, 1)))
		s.call(schema.CallSend, withSite(send, to(0, next, 9, 5, 0)))
		s.call(schema.CallWait, withSite(wait, got(1, before, 9, 20)))
		s.call(schema.CallBarrier, withSite(0, func(c *spool.Call) { c.Comm = 0 }))
		s.Coll(newColl())
	}
	return program{ranks: 3, header: header, body: body}
}

// newColl returns the COLL slot of the first barrier.
func newColl() spool.Coll {
	return spool.Coll{Kind: spool.KindColl, Op: 0xffff, Rdtype: null32, Rcount: null64, Sbytes: null64, Rbytes: null64}
}

// siteLines returns the rows of callsites: id, parent, module, build id, offset, function, file, line.
func (r *result) siteLines(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	read(t, r.dir, &schema.CallsitesTable, func(c *schema.Callsites, i int) {
		or := func(s string) string { return cmp.Or(s, "-") }
		text := func(s string) string {
			if s == schema.NullText {
				return "-"
			}
			return or(s)
		}
		fmt.Fprintf(&b, "%d %s %s %s %#x %s %s %s\n", c.ID[i], n(c.Parent[i]), text(c.Module[i]), text(c.BuildID[i]),
			c.Offset[i], text(c.Function[i]), text(c.File[i]), n(c.Line[i]))
	})
	return b.String()
}

// Ids are in the order of modules and offsets. The ranks' paths become the same rows, whatever their addresses,
// numbers and order.
func TestCallSitesAreUnified(t *testing.T) {
	dir := paths().write(t)
	for _, o := range []Options{{}, {Workers: 1, epochRows: 3}, {epochRows: 2, NoSymbols: true}} {
		r := ingested(t, dir, o)
		compareLines(t, "callsites", r.siteLines(t), `
0 - prog 0abc0199 0x90 - - -
1 - prog 0abc0199 0x500 - - -
2 1 libhalo.so - 0x1100 - - -
3 1 libhalo.so - 0x1200 - - -
`[1:])
		var got strings.Builder
		for _, e := range r.events {
			fmt.Fprintf(&got, "%s %s\n", schema.CallID(e.Call), n(e.Callsite))
		}
		compareLines(t, "events", got.String(),
			strings.Repeat("MPI_Init -\nMPI_Irecv 3\nMPI_Send 2\nMPI_Wait 0\nMPI_Barrier -\nMPI_Finalize -\n", 3))
		for _, m := range r.messages {
			if m.SendCallsite != 2 || m.RecvCallsite != 0 { // of the Wait that completed it
				t.Errorf("message %d -> %d: sites %d and %d", m.Src, m.Dst, m.SendCallsite, m.RecvCallsite)
			}
		}
		if !r.Callsites || r.Stack != 2 || len(r.messages) != 3 {
			t.Errorf("callsites %v, stack %d, %d messages", r.Callsites, r.Stack, len(r.messages))
		}
		warnings := strings.Join(r.Warnings, "\n")
		if strings.Contains(warnings, "9 calls have no call site") != true ||
			strings.Contains(warnings, "Functions and lines in prog are not known: its file cannot be read here") == o.NoSymbols {
			t.Errorf("warnings: %s", warnings)
		}
	}
}

// Without sites in the spool the run has none, and says so.
func TestNoCallSites(t *testing.T) {
	p := paths()
	p.header = nil // stack 0
	r := ingested(t, p.write(t), Options{})
	if r.Callsites || r.Stack != 0 || r.siteLines(t) != "" || r.events[1].Callsite != null32 || r.Warnings != nil {
		t.Errorf("callsites %v, stack %d, %q, %v", r.Callsites, r.Stack, r.siteLines(t), r.Warnings)
	}
}

// A report on a job that hangs names sites from the files alone, even if the last record is half written.
func TestSitesFromSpoolFiles(t *testing.T) {
	dir := paths().write(t)
	var job symbols.Job
	for rank := range int32(3) {
		f, err := spool.Open(filepath.Join(dir, fmt.Sprintf("%016x.%d.0%s", testJob, rank, spool.Suffix)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := job.Rank(rank).Read(f); err != nil {
			t.Fatal(err)
		}
	}
	for rank, want := range []string{"libhalo.so+0x1200", "libhalo.so+0x1200", "prog+0x90"} { // site 4
		if got := job.Site(int32(rank), 4); got != want {
			t.Errorf("rank %d: %q, want %q", rank, got, want)
		}
	}
	if got := job.Site(7, 4) + job.Site(0, 99); got != "" {
		t.Errorf("what is not there is called %q", got)
	}
	torn := program{ranks: 1, header: func(h *spool.Header) { h.Ended = spool.EndedNot }, body: func(rank int, s *script) {
		s.call(schema.CallBarrier, func(c *spool.Call) { c.Comm, c.T1 = 0, 0 })
		s.site(5, 0x99, 0x88)
	}}.write(t)
	path := filepath.Join(torn, fmt.Sprintf("%016x.0.0%s", testJob, spool.Suffix))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data[:len(data)-spool.SlotBytes], 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := spool.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var s symbols.Sites
	if err := s.Read(f); err != nil || s.Path(5) != nil {
		t.Errorf("a definition that is cut short: %v, %v", s.Path(5), err)
	}
}
