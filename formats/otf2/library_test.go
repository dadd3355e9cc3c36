package otf2

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/internal/testenv"
)

// library compiles archive.c, which writes archives with OTF2's own library.
func library(t *testing.T) string {
	t.Helper()
	testenv.Need(t, "gcc", "otf2-print")
	if _, err := os.Stat("/usr/include/otf2/otf2.h"); err != nil {
		testenv.Skip(t, "OTF2's library is not installed; scripts/setup test installs what the tests need")
	}
	exe := filepath.Join(t.TempDir(), "archive")
	out, err := exec.Command("gcc", "-Wall", "-Wextra", "-Werror", "-o", exe, "testdata/archive.c",
		"-lopen-trace-format2").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return exe
}

// called is a line "LOCATION START-END NAME RECORD ; RECORD ...": a region with records at its end. Without an end the
// region has none.
var called = regexp.MustCompile(`^(\d+) (\d+)-(\d*) (\w+)(?: (.*))?$`)

// entered is an event of a region with a name.
var entered = regexp.MustCompile(`^(@ \d+ \d+ (?:enter|leave|enter_with_attribute)) ([A-Za-z]\w*)(.*)$`)

// script turns the lines of a test into those of archive.c: "job N" is N ranks on a node with MPI_COMM_WORLD, and
// regions are defined where they have a name.
func script(text string) string {
	regions := map[string]int{}
	var defs, out []string
	region := func(name string) int {
		n, ok := regions[name]
		if !ok {
			n = 100 + len(regions)
			regions[name] = n
			defs = append(defs, fmt.Sprintf("region %d %s - 0", n, name))
		}
		return n
	}
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		var n int
		switch m := called.FindStringSubmatch(l); {
		case m != nil:
			id := region(m[4])
			out = append(out, fmt.Sprintf("@ %s %s enter %d", m[1], m[2], id))
			at := m[3]
			if at == "" {
				at = m[2]
			}
			for r := range strings.SplitSeq(m[5], ";") {
				if strings.TrimSpace(r) != "" {
					out = append(out, fmt.Sprintf("@ %s %s %s", m[1], at, strings.TrimSpace(r)))
				}
			}
			if m[3] != "" {
				out = append(out, fmt.Sprintf("@ %s %s leave %d", m[1], m[3], id))
			}
		case entered.MatchString(l):
			m := entered.FindStringSubmatch(l)
			out = append(out, fmt.Sprint(m[1], " ", region(m[2]), m[3]))
		default:
			if _, err := fmt.Sscanf(l, "job %d", &n); err == nil {
				defs = append(defs, jobLines(n)...)
			} else {
				out = append(out, l)
			}
		}
	}
	return strings.Join(append(defs, out...), "\n") + "\n"
}

// jobLines are the definitions of so many ranks.
func jobLines(n int) []string {
	lines := []string{"clock 1000000000 0 1000000", "node 1000 one node -"}
	all := ""
	for i := range n {
		all += fmt.Sprint(" ", i)
		lines = append(lines, fmt.Sprintf("process %d 1000", i), fmt.Sprintf("location %d %d 1", i, i))
	}
	return append(lines, "ranks 1000"+all, "group 1001"+all, "comm 0 MPI_COMM_WORLD 1001 -")
}

// written writes an archive with OTF2's library and returns its anchor file.
func written(t *testing.T, exe, text string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "archive")
	cmd := exec.Command(exe, dir, "traces")
	cmd.Stdin = strings.NewReader(script(text))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "traces.otf2")
}

// tables are the parts of a run as text, by name, and its call paths.
func tables(r *formatstest.Run) map[string]string {
	all := formatstest.Tables(r)
	for i, path := range paths(r.Events, r.Callsites) {
		all["paths"] += fmt.Sprintf("%d.%d %s\n", r.Events[i].Rank, r.Events[i].Seq, path)
	}
	lines := strings.SplitAfterN(all["said"], "\n", 2)
	all["said"] = lines[1] // without what OTF2 never tells
	return all
}

// TestLibrary imports archives that OTF2's own library wrote from the lines of testdata/library, in both byte orders
// and compressed, and compares the rows number by number.
func TestLibrary(t *testing.T) {
	exe := library(t)
	files, err := filepath.Glob("testdata/library/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			parts, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if parts.Files[0].Name != "lines" || len(parts.Files) < 2 {
				t.Fatal("want the part lines, and tables")
			}
			anchor := written(t, exe, string(parts.Files[0].Data))
			for name, archive := range variants(t, anchor) {
				for _, o := range []Options{{}, {EpochRows: 3, ShardRows: 5, Keep: 1}} {
					r, err := imported(t, archive, o)
					if err != nil {
						t.Fatalf("%s: %v", name, err)
					}
					got := tables(r)
					for _, want := range parts.Files[1:] {
						if d := cmp.Diff(string(want.Data), got[want.Name]); d != "" {
							t.Fatalf("%s, %+v: %s\n%s\nall:\n%s", name, o, want.Name, d, got[want.Name])
						}
					}
				}
			}
		})
	}
}

// TestTurned: OTF2's library reads the archives of the other byte order as it reads those that it wrote.
func TestTurned(t *testing.T) {
	exe := library(t)
	files, err := filepath.Glob("testdata/library/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		parts, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		anchor := written(t, exe, string(parts.Files[0].Data))
		var texts [2]string
		for i, x := range []string{anchor, turned(t, anchor)} {
			out, err := exec.Command("otf2-print", "-A", "-M", "-C", x).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", file, err, out)
			}
			texts[i] = string(out)
		}
		if d := cmp.Diff(texts[0], texts[1]); d != "" || !strings.Contains(texts[0], "ENTER") {
			t.Errorf("%s: %s", file, d)
		}
	}
}

// TestProbes: probes, matched probes and the receives of what they found, as OTF2 3.2 records them.
// testdata/probes/write.py wrote the archive with the library of PyPI, whose clock begins with the first event, at 5.
func TestProbes(t *testing.T) {
	const rows = `0.0 Send comm=0 to=1 stag=9 sent=4097 [5-10]
0.1 Send comm=0 to=1 stag=5 sent=33 [15-20] compute=5
0.2 Send comm=0 to=1 stag=3 sent=21 [25-30] compute=5
0.3 Finalize [45-55] compute=15
1.0 Probe comm=0 from=0 rtag=9 polls=1 [7-11]
1.1 Mprobe comm=0 from=0 rtag=5 [12-13] compute=1
1.2 Recv comm=0 from=0 rtag=9 received=4097 [14-15] compute=1
1.3 Improbe comm=0 from=0 rtag=3 [26-27] compute=11
1.4 Imrecv comm=0 from=0 rtag=3 received=21 request=1 done=6 [28-29] compute=1
1.5 Mrecv comm=0 from=0 rtag=5 received=33 [30-31] compute=1
1.6 Wait request=1 [32-35] compute=1
1.7 Finalize [45-55] compute=10
`
	const messages = `0.0 -> 1.2 done 2, comm 0 tag 9: 4097
0.1 -> 1.5 done 5, comm 0 tag 5: 33
0.2 -> 1.4 done 6, comm 0 tag 3: 21
`
	r, err := imported(t, "testdata/probes/traces.otf2", Options{})
	if err != nil {
		t.Fatal(err)
	}
	got := tables(r)
	if d := cmp.Diff(rows, got["rows"]); d != "" {
		t.Errorf("%s\n%s", d, got["rows"])
	}
	if d := cmp.Diff(messages, got["messages"]); d != "" {
		t.Error(d)
	}
}

// TestThreadsShareProbes: what one thread matches another one receives. testdata/threads/write.py wrote the archive,
// whose clock begins with the first event, at 10.
func TestThreadsShareProbes(t *testing.T) {
	const rows = `0.0 Send comm=0 to=1 stag=3 sent=21 [0-4]
0.1 Finalize [40-50] compute=36
1.0 Mprobe comm=0 from=2 rtag=5 [7-8]
1.1 Imrecv comm=0 from=2 rtag=5 received=33 request=1 done=3 [9-10] compute=1
1.2 Mprobe comm=0 from=0 rtag=3 [11-12] compute=1
1.3 Wait thread=1 request=1 [15-20]
1.4 Mrecv thread=1 comm=0 from=0 rtag=3 received=21 [21-22] compute=1
1.5 Imrecv request=2 done=6 [23-24] compute=11
1.6 Wait thread=1 request=2 [25-26] compute=3
1.7 Finalize [40-50] compute=16
2.0 Send comm=0 to=1 stag=5 sent=33 [0-5]
2.1 Finalize [40-50] compute=35
`
	r, err := imported(t, "testdata/threads/traces.otf2", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := tables(r)["rows"]; got != rows {
		t.Errorf("%s\n%s", cmp.Diff(rows, got), got)
	}
}

// TestUnknownRecords: records of later versions are skipped by their length and counted by number.
func TestUnknownRecords(t *testing.T) {
	at := changed(t, "testdata/probes/traces.otf2", func(name string, b []byte) []byte {
		last := len(b) - 2 // the marks of the ends of file and buffer
		switch {
		case strings.HasSuffix(name, ".evt") && b[last] == recordEndOfFile:
			long := append([]byte{200, 255, 44, 1, 0, 0, 0, 0, 0, 0}, make([]byte, 300)...)
			return slices.Concat(b[:last], []byte{93, 3, 7, 7, 7, 93, 0}, long, b[last:])
		case name == "/traces.def" && b[last] == recordEndOfFile:
			return slices.Concat(b[:last], []byte{44, 2, 7, 7, 99, 0}, b[last:])
		}
		return b
	})
	was, err := imported(t, "testdata/probes/traces.otf2", Options{})
	if err != nil {
		t.Fatal(err)
	}
	is, err := imported(t, at, Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, b := tables(was), tables(is)
	if d := cmp.Diff(a["rows"], b["rows"]); d != "" {
		t.Error(d)
	}
	const said = `Read: 42 events of 2 locations.
Events of a later version of OTF2 (record 93), skipped: 4.
Events of a later version of OTF2 (record 200), skipped: 2.
Definitions of a later version of OTF2 (record 44), skipped: 1.
Definitions of a later version of OTF2 (record 99), skipped: 1.
`
	if d := cmp.Diff(said, b["said"]); d != "" {
		t.Error(d)
	}
}

// TestManyChunks reads an archive whose events go over several chunks, which are blocks where it is compressed.
func TestManyChunks(t *testing.T) {
	const messages = 12000
	var lines strings.Builder
	lines.WriteString("job 2\n")
	for k := range messages {
		fmt.Fprintf(&lines, "0 %d-%d MPI_Send send 1 0 %d %d\n", 100*k, 100*k+10, k%7, 1000+k)
		fmt.Fprintf(&lines, "1 %d-%d MPI_Recv recv 0 0 %d %d\n", 100*k+5, 100*k+30, k%7, 1000+k)
	}
	lines.WriteString("0 1200000-1200001 MPI_Finalize\n1 1200000-1200001 MPI_Finalize\n")
	anchor := written(t, library(t), lines.String())
	info, err := os.Stat(filepath.Join(filepath.Dir(anchor), "traces", "0.evt"))
	if err != nil || info.Size() < 3*testChunk/2 {
		t.Fatalf("%v: want several chunks; %v", info, err)
	}
	for name, archive := range variants(t, anchor) {
		r, err := imported(t, archive, Options{EpochRows: 5000})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		const bytes = 1000*messages + messages*(messages-1)/2
		if r.Counts.Messages != messages || r.Counts.MessageBytes != bytes || r.EndNs != 1200001 {
			t.Errorf("%s: %+v", name, r.Counts)
		}
		for i := range r.Messages {
			m, k := &r.Messages[i], int64(i)
			if m.SendSeq != k || m.RecvPostSeq != k || m.Tag != int32(k%7) || m.Bytes != 1000+k || m.SendStartNs != 100*k ||
				m.RecvEndNs != 100*k+30 {
				t.Fatalf("%s: message %d is %+v", name, i, *m)
			}
		}
	}
}

// TestDamagedBlocks: what is wrong with a compressed block is told with its place.
func TestDamagedBlocks(t *testing.T) {
	good := packed(t, "testdata/probes/traces.otf2", packing{order: binary.LittleEndian, ends: true})
	for _, c := range []struct {
		want   string
		change func(b []byte) []byte
	}{
		{"traces.def: byte 0: 0x1000000ffffffff where a compressed block begins", func(b []byte) []byte { b[7]++; return b }},
		{"the header of a compressed block ends after 12 of 20 bytes", func(b []byte) []byte { return b[:12] }},
		{"a compressed block: zlib: invalid header", func(b []byte) []byte { b[20] = 0; return b }},
		{"holds 522 bytes; its header says 523", func(b []byte) []byte { b[12]++; return b }},
		{"holds more than the 521 bytes", func(b []byte) []byte { b[12]--; return b }},
		{"a compressed block: zlib: invalid checksum", func(b []byte) []byte { b[len(b)-1]++; return b }},
		{"a compressed block: unexpected EOF", func(b []byte) []byte { return b[:40] }},
		{"compressed to 4294967040; want at most", func(b []byte) []byte { b[8], b[11] = 0, 255; b[9], b[10] = 255, 255; return b }},
	} {
		at := changed(t, good, func(name string, b []byte) []byte {
			if name == "/traces.def" {
				return c.change(b)
			}
			return b
		})
		if _, err := imported(t, at, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
	}
}

// A call of MPI_Startall counts with all its requests for how many rows an epoch gets, skimmed as well as learned.
func TestRowsOfStartall(t *testing.T) {
	const requests, calls, epochRows = 50, 100, 500
	var lines strings.Builder
	lines.WriteString("job 2\n")
	for k := range calls {
		var starts, ends []string
		for i := range requests {
			starts = append(starts, fmt.Sprintf("isend 1 0 4 100 %d", i+1))
			ends = append(ends, fmt.Sprintf("isend_complete %d", i+1))
		}
		fmt.Fprintf(&lines, "0 %d-%d MPI_Startall %s\n", 1000*k, 1000*k+10, strings.Join(starts, " ; "))
		fmt.Fprintf(&lines, "0 %d-%d MPI_Waitall %s\n", 1000*k+20, 1000*k+30, strings.Join(ends, " ; "))
	}
	anchor := written(t, library(t), lines.String())
	for _, learn := range []bool{true, false} {
		r, err := importedBy(t, anchor, Options{EpochRows: epochRows, Learn: learn})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Events) != (requests+1)*calls || int(r.Epochs) != len(r.Events)/epochRows {
			t.Errorf("learning %v: %d rows in %d epochs", learn, len(r.Events), r.Epochs)
		}
	}
}

// TestEmptyGroup: no record can be on an intercommunicator of which one group has no members.
func TestEmptyGroup(t *testing.T) {
	anchor := written(t, library(t), "job 2\ngroup 3\ngroup 4 0 1\nintercomm 7 half 3 4 0\n"+
		"0 10-20 MPI_Barrier collective_begin ; collective_end 0 7 - 0 0\n")
	if _, err := imported(t, anchor, Options{}); err == nil || !strings.HasSuffix(err.Error(), "communicator 7 is not defined") {
		t.Error(err)
	}
}
