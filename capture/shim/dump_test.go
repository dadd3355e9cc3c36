package shim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/schema"
)

// dumper converts a spool file to text: a line per call with all its fields except times and addresses. It decodes
// with encoding/binary, independently of package spool.
type dumper struct {
	data     []byte
	at       int
	header   spool.Header
	types    map[int64]spool.TypeDef
	lines    []string
	rest     []byte // of the last line: see add
	calls    []spool.Call
	pre      []spool.Pre
	sites    symbols.Sites
	hashes   []spool.Hashes // not part of the text; for hash_test.go
	problems []string
}

func (d *dumper) slot(v any) {
	if err := binary.Read(bytes.NewReader(d.data[d.at:d.at+spool.SlotBytes]), binary.LittleEndian, v); err != nil {
		d.problems = append(d.problems, err.Error())
	}
	d.at += spool.SlotBytes
}

// add adds to the last line, which endLine then ends: a line may have 100,000 parts.
func (d *dumper) add(format string, args ...any) {
	if len(d.lines) == 0 {
		d.lines = append(d.lines, "")
	}
	d.rest = fmt.Appendf(d.rest, format, args...)
}

func (d *dumper) endLine() {
	if len(d.rest) > 0 {
		d.lines[len(d.lines)-1] += string(d.rest)
		d.rest = d.rest[:0]
	}
}

func (d *dumper) line(format string, args ...any) {
	d.endLine()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// dumpSpool returns the dump of one file. types are datatypes that other threads of the process define, or nil.
func dumpSpool(t *testing.T, path string, types map[int64]spool.TypeDef) *dumper {
	t.Helper()
	d := readSpool(t, path, types)
	for _, p := range d.problems {
		t.Errorf("%s: %s", path, p)
	}
	d.checkTimes(t, path)
	return d
}

func readSpool(t *testing.T, path string, types map[int64]spool.TypeDef) *dumper {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = withSlots(t, path, data)
	d := &dumper{data: data, types: map[int64]spool.TypeDef{}}
	maps.Copy(d.types, types)
	if len(data) < spool.HeaderBytes {
		t.Fatalf("%s: %d bytes, less than a header", path, len(data))
	}
	if err := binary.Read(bytes.NewReader(data), binary.LittleEndian, &d.header); err != nil {
		t.Fatal(err)
	}
	checkSums(t, path, data)
	var defs []string // definitions that precede their call
	for d.at = spool.HeaderBytes; d.at+spool.SlotBytes <= len(data); {
		kind := spool.Kind(data[d.at+2])
		if kind == spool.End {
			break
		}
		if kind == spool.KindDef {
			if s := d.def(); s != "" {
				defs = append(defs, s)
			}
			if len(d.lines) > 0 && len(defs) > 0 {
				d.add(" [%s]", strings.Join(defs, "; "))
				defs = nil
			}
			continue
		}
		d.continued(kind)
	}
	d.endLine()
	return d
}

// withSlots returns the bytes of a file as they would be if its slots were not packed.
func withSlots(t *testing.T, path string, data []byte) []byte {
	t.Helper()
	f, err := spool.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Header.Packed == 0 {
		return data
	}
	if damaged := f.Damaged(); len(damaged) > 0 {
		t.Errorf("%s: the checksums of %v do not fit, of %d slots", path, damaged, f.Len())
	}
	var slots bytes.Buffer
	if err := binary.Write(&slots, binary.LittleEndian, spool.NewReader(f).From(0, f.Len())); err != nil {
		t.Fatal(err)
	}
	return append(data[:spool.HeaderBytes:spool.HeaderBytes], slots.Bytes()...)
}

// checkSums checks that the checksums of a file fit, and that they cover all but its last slots.
func checkSums(t *testing.T, path string, data []byte) {
	t.Helper()
	f, err := spool.Parse(path, slices.Clone(data))
	if err != nil {
		t.Fatal(err)
	}
	if damaged := f.Damaged(); len(damaged) > 0 {
		t.Errorf("%s: the checksums of %v do not fit, of %d slots", path, damaged, f.Len())
	}
	h := &f.Header
	if h.Sums == 1 && h.Check != 0 && h.Dropped == 0 && h.Slots > 100 && h.Calls == 0 && h.Summed+70 < h.Slots {
		t.Errorf("%s: checksums for %d of %d slots", path, h.Summed, h.Slots)
	}
}

// checkTimes checks that calls do not overlap, lie within the header's clock and have returned.
func (d *dumper) checkTimes(t *testing.T, path string) {
	t.Helper()
	last := d.header.Clock0Tick
	for i, c := range d.calls {
		name := schema.CallID(c.Call).String()
		if c.T0 < last {
			t.Errorf("%s: call %d (%s): begins at %d, before the previous one ended at %d", path, i, name, c.T0, last)
		}
		last = c.T0
		if c.T1 == 0 && d.header.Ended == spool.EndedFinalized {
			t.Errorf("%s: call %d (%s): has not returned", path, i, name)
		}
		if c.T1 != 0 && c.T1 < c.T0 {
			t.Errorf("%s: call %d (%s): ends before it begins", path, i, name)
		}
		if c.T1 != 0 {
			last = c.T1
		}
	}
	if d.header.Clock1Tick < last && d.header.Ended == spool.EndedFinalized {
		t.Errorf("%s: the last clock pair is before the last call", path)
	}
}

func (d *dumper) flags(f uint8) string {
	names := []string{"any_source", "any_tag", "proc_null", "root", "in_place_s", "in_place_r", "no_status",
		"cancelled"}
	s := ""
	for i, n := range names {
		if f&(1<<i) != 0 {
			s += " " + n
		}
	}
	return s
}

func num32(name string, v int32) string {
	if v == schema.NullInt32 {
		return ""
	}
	return fmt.Sprintf(" %s=%d", name, v)
}

func num64(name string, v int64) string {
	if v == schema.NullInt64 {
		return ""
	}
	return fmt.Sprintf(" %s=%d", name, v)
}

// datatype returns the type as its size in bytes, followed by an x unless it is a named type.
func (d *dumper) datatype(name string, n int32) string {
	if n == schema.NullInt32 {
		return ""
	}
	def, ok := d.types[int64(n)]
	if !ok {
		d.problems = append(d.problems, fmt.Sprintf("datatype %d is not defined before its use", n))
	}
	derived := ""
	if def.Combiner != 0 {
		derived = "x"
	}
	return fmt.Sprintf(" %s=%d%s", name, def.Bytes, derived)
}

func (d *dumper) continued(kind spool.Kind) {
	switch kind {
	case spool.KindCall:
		var c spool.Call
		d.slot(&c)
		d.calls = append(d.calls, c)
		d.line("%s%s%s%s%s%s", schema.CallID(c.Call), num32("comm", c.Comm), num32("peer", c.Peer), num32("tag", c.Tag),
			num64("count", c.Count), d.datatype("size", c.Dtype))
		switch r := schema.Calls[c.Call].Recorder; {
		case r == "recv" || r == "mrecv":
			d.add(" bytes=%d", c.Req)
		case c.Req != 0:
			d.add(" req=%d", c.Req)
		}
		d.add("%s", d.flags(c.Flags))
	case spool.KindSide:
		var s spool.Side
		d.slot(&s)
		d.add(" <%s%s%s%s%s%s", num32("peer", s.Peer), num32("tag", s.Tag), num64("count", s.Count),
			d.datatype("size", s.Dtype),
			num64("bytes", s.Bytes), d.flags(s.Flags))
	case spool.KindColl:
		var s spool.Coll
		d.slot(&s)
		d.add(" | #%d", s.Instance)
		if s.Op != 0xffff {
			d.add(" %s", schema.OpNames[s.Op])
		}
		d.add("%s%s%s%s", num64("sbytes", s.Sbytes), num64("rcount", s.Rcount), d.datatype("rsize", s.Rdtype),
			num64("rbytes", s.Rbytes))
	case spool.KindParts:
		var s spool.Parts
		d.slot(&s)
		for _, p := range s.Part[:s.N] {
			d.add(" %d:%d/%d", p.Peer, p.SendBytes, p.RecvBytes)
		}
	case spool.KindDone:
		var s spool.Done
		d.slot(&s)
		for _, e := range s.Done[:s.N] {
			d.add(" (%d%s%s%s%s)", e.Req, num32("peer", e.Source), num32("tag", e.Tag), num64("bytes", e.Bytes),
				d.flags(uint8(e.Flags)))
		}
	case spool.KindStart:
		var s spool.Start
		d.slot(&s)
		for _, e := range s.Start[:s.N] {
			d.add(" (%d of %d)", e.Req, e.Template)
		}
	case spool.KindPre:
		var s spool.Pre
		d.slot(&s)
		d.pre = append(d.pre, s)
	case spool.KindWide:
		var s spool.Wide
		d.slot(&s)
		d.add(" wide%d=%d", s.What, s.Value)
	case spool.KindHash:
		var s spool.Hashes
		d.slot(&s)
		d.hashes = append(d.hashes, s)
	case spool.KindSum, spool.KindRMA:
		d.at += spool.SlotBytes
	case spool.KindErr:
		var s spool.Err
		d.slot(&s)
		d.add(" error=%d", s.ErrorClass)
		if s.Flags&spool.TruncateError != 0 {
			d.add(" truncated")
		}
	default:
		d.problems = append(d.problems, fmt.Sprintf("slot at %d: kind %d is not expected here", d.at, kind))
		d.at += spool.SlotBytes
	}
}

// def reads a definition with its payload and returns its text; types and clocks have no text.
func (d *dumper) def() string {
	var def spool.Def
	d.slot(&def)
	var payload []byte
	for len(payload) < int(def.Bytes) {
		var b spool.Blob
		if spool.Kind(d.data[d.at+2]) == spool.KindSum {
			d.at += spool.SlotBytes
			continue
		}
		if spool.Kind(d.data[d.at+2]) != spool.KindBlob {
			d.problems = append(d.problems, fmt.Sprintf("slot at %d: the payload of a definition ends after %d of %d bytes", d.at, len(payload), def.Bytes))
			return ""
		}
		d.slot(&b)
		payload = append(payload, b.Data[:b.N]...)
	}
	switch def.What {
	case spool.DefType:
		var td spool.TypeDef
		if err := binary.Read(bytes.NewReader(payload), binary.LittleEndian, &td); err != nil {
			d.problems = append(d.problems, err.Error())
		}
		d.types[def.ID] = td
		return ""
	case spool.DefComm:
		return d.comm(def.ID, payload)
	case spool.DefCommName:
		return fmt.Sprintf("comm %d is %q", def.ID, payload)
	case spool.DefLabel:
		return fmt.Sprintf("%q", payload)
	case spool.DefCommFree:
		return fmt.Sprintf("comm %d ends", def.ID)
	case spool.DefModule, spool.DefSite:
		if err := d.sites.Define(def.What, def.ID, payload); err != nil {
			d.problems = append(d.problems, err.Error())
		}
	}
	return ""
}

func (d *dumper) comm(id int64, payload []byte) string {
	var c spool.CommDef
	r := bytes.NewReader(payload)
	if err := binary.Read(r, binary.LittleEndian, &c); err != nil {
		d.problems = append(d.problems, err.Error())
	}
	list := func(name string, n int32) string {
		v := make([]int32, n)
		if err := binary.Read(r, binary.LittleEndian, v); err != nil {
			d.problems = append(d.problems, err.Error())
		}
		if n == 0 {
			return ""
		}
		return fmt.Sprintf(" %s=%s", name, strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ","), "[]"))
	}
	s := fmt.Sprintf("comm %d: %s%s #%d rank %d of %d, leader %d", id, schema.CommKindNames[c.Kind],
		num32("parent", c.Parent), c.Instance, c.Rank, c.Size, c.LeaderWorld)
	if c.RemoteSize != 0 {
		s += fmt.Sprintf(", remote %d, leader %d", c.RemoteSize, c.RemoteLeaderWorld)
	}
	if c.Key != 0 {
		s += fmt.Sprintf(", key %d", c.Key)
	}
	s += list("members", c.Members) + list("remote_members", c.RemoteMembers) + list("dims", c.Dims) + list("periods",
		c.Dims) + list("edges", c.Edges)
	if r.Len() != 0 {
		d.problems = append(d.problems, fmt.Sprintf("comm %d: %d bytes too many", id, r.Len()))
	}
	return s
}

// dumpFolder dumps all files of a spool by rank and thread.
func dumpFolder(t *testing.T, folder string) []*dumper {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*"+spool.Suffix))
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]map[int64]spool.TypeDef{} // the datatypes of each file; a process may have hundreds
	for _, p := range paths {
		if types := readSpool(t, p, nil).types; len(types) > 0 {
			defined[p] = types
		}
	}
	var all []*dumper
	for _, p := range paths {
		all = append(all, dumpSpool(t, p, ofOtherThreads(p, defined)))
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i].header, all[j].header
		return a.Rank < b.Rank || a.Rank == b.Rank && a.Thread < b.Thread
	})
	for _, d := range all {
		if d.header.Job != all[0].header.Job {
			t.Errorf("%s: rank %d is of job %x, rank 0 of %x", folder, d.header.Rank, d.header.Job, all[0].header.Job)
		}
	}
	return all
}

// ofOtherThreads returns the datatypes that are defined in the files of a process's other threads.
func ofOtherThreads(path string, defined map[string]map[int64]spool.TypeDef) map[int64]spool.TypeDef {
	process := func(path string) []string { return strings.Split(filepath.Base(path), ".")[:2] }
	types := map[int64]spool.TypeDef{}
	for p, of := range defined {
		if p != path && slices.Equal(process(p), process(path)) {
			maps.Copy(types, of)
		}
	}
	return types
}

// text is the dump of a job in the form of .want files.
func text(all []*dumper) string {
	var b strings.Builder
	for _, d := range all {
		fmt.Fprintf(&b, "rank %d\n", d.header.Rank)
		for _, l := range d.lines {
			fmt.Fprintf(&b, "%s\n", l)
		}
	}
	return b.String()
}
