package ingest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/writer"
)

// haloSpool writes the spool of 5 ranks, with sums.
func haloSpool(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := (spoolgen.Halo{Ranks: 5, Neighbours: 1, Iterations: 60, Seed: 1, Job: 1}).Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func ingestHalo(t *testing.T, dir string, partial bool) (*result, error) {
	t.Helper()
	store := t.TempDir()
	out, err := writer.Create(store, "run", writer.Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Ingest(context.Background(), dir, out, Options{Partial: partial, NoSymbols: true})
	return &result{Manifest: m}, err
}

// A flipped bit in a block names the block; with Partial the other ranks are whole, the damaged one ends before it, the
// warnings say what is missing, and the run passes its check.
func TestDamagedBlocksAreNamed(t *testing.T) {
	dir := haloSpool(t)
	path := filepath.Join(dir, "0000000000000001.2.0.cqs")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all, err := ingestHalo(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 5))
	for range 40 {
		data := append([]byte(nil), whole...)
		slot := random.IntN((len(whole) - spool.HeaderBytes) / spool.SlotBytes)
		data[spool.HeaderBytes+slot*spool.SlotBytes+random.IntN(36)] ^= 1 << random.IntN(8)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ingestHalo(t, dir, false); err == nil || !strings.Contains(err.Error(), path+": slots ") ||
			!strings.Contains(err.Error(), "--partial") {
			t.Fatalf("slot %d: %v", slot, err)
		}
		part, err := ingestHalo(t, dir, true)
		if err != nil {
			t.Fatalf("slot %d: %v", slot, err)
		}
		if n := part.Counts.Calls + part.Counts.Dropped; part.Counts.Dropped == 0 || n > all.Counts.Calls ||
			part.Counts.Calls < all.Counts.Calls*4/5 {
			t.Errorf("slot %d: %d calls, %d dropped, of %d", slot, part.Counts.Calls, part.Counts.Dropped,
				all.Counts.Calls)
		}
		if len(part.Warnings) == 0 || !strings.Contains(part.Warnings[0], "The records of rank 2 end before") {
			t.Errorf("slot %d: warnings %q", slot, part.Warnings)
		}
	}
}

// A file that was cut short between two slots is an error, even if nothing but its header is left.
func TestFilesThatAreCutShort(t *testing.T) {
	dir := haloSpool(t)
	path := filepath.Join(dir, "0000000000000001.2.0.cqs")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := (len(whole)-spool.HeaderBytes)/spool.SlotBytes - 1
	for _, slots := range []int{0, 7, last} {
		if err := os.WriteFile(path, whole[:spool.HeaderBytes+slots*spool.SlotBytes], 0o644); err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(" to %d (bytes ", last)
		if _, err := ingestHalo(t, dir, false); err == nil || !strings.Contains(err.Error(), path+": slots ") ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d slots: %v; want %q", slots, err, want)
		}
		part, err := ingestHalo(t, dir, true)
		if err != nil || !strings.Contains(strings.Join(part.Warnings, "\n"), "The records of rank 2 end before") {
			t.Errorf("%d slots: %v, %+v", slots, err, part)
		}
	}
}

// A header that its process completed has a checksum. A mark of another thread may be counted in it after that: then
// all calls are kept with Partial, and a warning says what is doubtful.
func TestDamagedHeader(t *testing.T) {
	dir := haloSpool(t)
	path := filepath.Join(dir, "0000000000000001.0.0.cqs")
	edit(t, path, header(func(h *spool.Header) { h.Seal() }))
	all, err := ingestHalo(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	edit(t, path, header(func(h *spool.Header) { h.Marks++ }))
	if _, err := ingestHalo(t, dir, false); err == nil ||
		!strings.Contains(err.Error(), path+": damaged header: its checksum does not fit; ") {
		t.Error(err)
	}
	part, err := ingestHalo(t, dir, true)
	if err != nil {
		t.Fatal(err)
	}
	if part.Counts.Calls != all.Counts.Calls || part.Counts.Messages != all.Counts.Messages {
		t.Errorf("%+v, want %+v", part.Counts, all.Counts)
	}
	if len(part.Warnings) != 1 || !strings.Contains(part.Warnings[0], path+": the checksum of its header does not fit") {
		t.Errorf("warnings %q", part.Warnings)
	}
}

// A flipped bit in a header is never unsaid: the error names the file, or with Partial a warning does.
func TestFlippedHeaderBits(t *testing.T) {
	dir := haloSpool(t)
	path := filepath.Join(dir, "0000000000000001.3.0.cqs")
	edit(t, path, header(func(h *spool.Header) { h.Seal() }))
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for bit := 0; bit < int(unsafe.Offsetof(spool.Header{}.Host))*8; bit += 7 {
		data := slices.Clone(whole)
		data[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ingestHalo(t, dir, false); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("bit %d: %v", bit, err)
		}
		part, err := ingestHalo(t, dir, true)
		switch {
		case err != nil && !strings.Contains(err.Error(), path):
			t.Errorf("bit %d with Partial: %v", bit, err)
		case err == nil && !slices.ContainsFunc(part.Warnings, func(w string) bool { return strings.HasPrefix(w, path) }):
			t.Errorf("bit %d: warnings %q", bit, part.Warnings)
		case err == nil:
			kept++
		}
	}
	if kept < 100 {
		t.Errorf("only %d damaged headers were ingested", kept)
	}
}
