package otf2

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/formats/formatstest"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/writer"
)

// The public ping-pong of Score-P has what otf2-print and Pipit's own tests say: 120 events, 8 messages each way of
// 16 KiB to 2 MiB, and all of it below the function main.
func TestPingPong(t *testing.T) {
	for _, o := range []Options{{}, {EpochRows: 5, ShardRows: 9, Keep: 1}} {
		r, err := imported(t, "testdata/ping-pong/traces.otf2", o)
		if err != nil {
			t.Fatal(err)
		}
		const bytes = 2 * (16<<10 + 32<<10 + 64<<10 + 128<<10 + 256<<10 + 512<<10 + 1<<20 + 2<<20)
		if r.Counts.Messages != 16 || r.Counts.MessageBytes != bytes || r.Ended != "finalized" || r.Ranks != 2 ||
			len(r.Events) != 36 || r.Counts.UnmatchedSends+r.Counts.UnmatchedReceives != 0 {
			t.Errorf("%+v", r.Counts)
		}
		if want := "Read: 120 events of 2 locations; of them skipped, or calls without a row: 2 PROGRAM_BEGIN, " +
			"2 PROGRAM_END, 2 MPI_Comm_rank, 2 MPI_Comm_size."; r.Warnings[1] != want {
			t.Errorf("%q", r.Warnings)
		}
		if got := formatstest.Line(&r.Events[2]); got != "0.2 Recv comm=0 from=1 rtag=20 received=16384" {
			t.Error(got)
		}
		if len(r.Callsites) != 1 || r.Callsites[0].Function != "int main(int, char**)" && r.Callsites[0].Function != "main" {
			t.Errorf("%+v", r.Callsites)
		}
		for _, m := range r.Messages {
			if m.Src+m.Dst != 1 || m.SendSeq != m.RecvPostSeq && m.SendSeq != m.RecvPostSeq-1 &&
				m.SendSeq != m.RecvPostSeq+1 {
				t.Errorf("%+v", m)
			}
		}
	}
}

// An imported archive is a run of the store that breaks no rule.
func TestImportFile(t *testing.T) {
	dir := t.TempDir()
	var o Options
	o.Origin.Commq = "test"
	m, err := ImportFile(context.Background(), "testdata/ping-pong/traces.otf2", dir, "", o)
	if err != nil {
		t.Fatal(err)
	}
	if m.Origin.Name != "ping-pong" || m.Origin.Trace.Program != "Score-P 7.1" {
		t.Errorf("%+v", m.Origin)
	}
	problems, err := writer.Check(context.Background(), filepath.Join(dir, "ping-pong"))
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

// TestImportFileLearns: a trace for which skimming is not enough is imported from its beginning once more.
func TestImportFileLearns(t *testing.T) {
	out, store := filepath.Join(t.TempDir(), "trace"), t.TempDir()
	if _, err := Export(context.Background(), filepath.Join(runs, "mg.W.16"), out); err != nil {
		t.Fatal(err)
	}
	archive, o := filepath.Join(out, ExportName), Options{Keep: 3}
	if _, err := importedBy(t, archive, o); !errors.Is(err, timed.ErrLearn) {
		t.Fatalf("%v, want %v", err, timed.ErrLearn)
	}
	if _, err := ImportFile(context.Background(), archive, store, "r", o); err != nil {
		t.Fatal(err)
	}
	problems, err := writer.Check(context.Background(), filepath.Join(store, "r"))
	if err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
}

// What is wrong with a file is told with its place.
func TestDamaged(t *testing.T) {
	for _, c := range []struct {
		file, want string
		change     func(b []byte) []byte
	}{
		{"traces.otf2", "traces.otf2: byte 2: no OTF2 anchor file", func(b []byte) []byte { b[3] = 'X'; return b }},
		{"traces.otf2", "traces.otf2: byte 12: the record goes on beyond", func(b []byte) []byte { return b[:14] }},
		{"traces.def", "traces.def: byte 18: definition 5: the record goes on", func(b []byte) []byte { return b[:30] }},
		{"traces/0.evt", "0.evt: byte 0: byte 7 where a chunk begins; want 3", func(b []byte) []byte { b[0] = 7; return b }},
		{"traces/0.evt", "0.evt: byte 18: record 9 is unknown", func(b []byte) []byte { b[18] = 9; return b }},
		{"traces/1.evt", "the file ends without an end mark", func(b []byte) []byte { return b[:27] }},
		{"traces/1.evt", "event", func(b []byte) []byte { return b[:len(b)-12] }},
	} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("testdata/ping-pong")); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, c.file)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, c.change(data), 0o666); err != nil {
			t.Fatal(err)
		}
		_, err = imported(t, filepath.Join(dir, "traces.otf2"), Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.file, err, c.want)
		}
	}
}

// Damaged archives are errors or runs that break no rule; nothing else happens.
func FuzzImport(f *testing.F) {
	files := []string{"traces.otf2", "traces.def", "traces/0.def", "traces/0.evt"}
	var data [][]byte
	for _, name := range files {
		b, err := os.ReadFile(filepath.Join("testdata/ping-pong", name))
		if err != nil {
			f.Fatal(err)
		}
		data = append(data, b)
	}
	f.Add(data[0], data[1], data[2], data[3])
	for _, dir := range []string{"testdata/ping-pong", "testdata/probes"} {
		anchor := filepath.Join(dir, "traces.otf2")
		for _, at := range []string{anchor, packed(f, anchor, packing{order: binary.LittleEndian}),
			packed(f, anchor, packing{order: binary.BigEndian, padded: true})} {
			var b [4][]byte
			for i, name := range files {
				var err error
				if b[i], err = os.ReadFile(filepath.Join(filepath.Dir(at), name)); err != nil {
					f.Fatal(err)
				}
			}
			f.Add(b[0], b[1], b[2], b[3])
		}
	}
	f.Fuzz(func(t *testing.T, anchor, defs, local, events []byte) {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("testdata/ping-pong")); err != nil {
			t.Fatal(err)
		}
		for i, b := range [][]byte{anchor, defs, local, events} {
			if err := os.WriteFile(filepath.Join(dir, files[i]), b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		_, _ = imported(t, filepath.Join(dir, "traces.otf2"), Options{Keep: 2, EpochRows: 4})
	})
}
