package writer

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/digest"
)

// profiled writes a run of the events of someEvents in two files, and returns its profile.
func profiled(t *testing.T) (dir string, rows []schema.Profile) {
	t.Helper()
	store := t.TempDir()
	r, e := mustCreate(t, store, "ring.3"), someEvents()
	for _, err := range []error{r.Write(3, e.Slice(3, 5)), r.Write(0, e.Slice(0, 2)), r.Write(0, e.Slice(2, 3)),
		r.Commit(t.Context(), testManifest())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	dir = filepath.Join(store, "ring.3")
	return dir, profileRowsOf(t, dir)
}

func profileRowsOf(t *testing.T, dir string) (rows []schema.Profile) {
	t.Helper()
	readAll(t, dir, &schema.ProfileTable, 10, func(b *schema.Profiles, i int) {
		var p schema.Profile
		b.Row(i, &p)
		rows = append(rows, p)
	})
	return rows
}

// The writer sums the rows of events as they are written, however they are split into batches and files.
func TestWriterMakesProfile(t *testing.T) {
	dir, got := profiled(t)
	row := func(rank int32, calls, bytes, first, last int64) schema.Profile {
		p := schema.NullProfile
		p.Rank, p.Call, p.Class = rank, int16(schema.CallSend), int16(schema.ClassSend)
		p.Calls, p.SendBytes, p.TimeNs, p.MinNs, p.MaxNs, p.FirstNs, p.LastNs = calls, bytes, 97*calls, 97, 97, first,
			last
		return p
	}
	if d := cmp.Diff([]schema.Profile{row(0, 3, 2*4097, 0, 2097), row(1, 2, 2*4097, 3000, 4097)}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	info := m.Tables[slices.Index(schema.Tables(), &schema.ProfileTable)]
	if info.Name != "profile" || info.Rows != 2 || len(info.Files) != 2 ||
		info.Files[1].Path != "profile/0003.parquet" {
		t.Errorf("the manifest says %+v", info)
	}
	r := mustCreate(t, t.TempDir(), "own")
	p := &schema.Profiles{}
	p.Append(&got[0])
	if err := r.Write(0, p); err == nil || !strings.Contains(err.Error(), "table profile is made by the writer") {
		t.Errorf("a profile of one's own: %v", err)
	}
}

// A run of an older commq gets the profile that a new one would have, and keeps its digest and all other files. If
// interrupted, it is left unchanged.
func TestMakeProfile(t *testing.T) {
	dir, want := profiled(t)
	whole, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	old := *whole
	old.Tables = old.Tables[:slices.IndexFunc(schema.Tables(), func(t *schema.Table) bool { return t.Derived })]
	if d := digest.OfRun(&old).String(); d != whole.Digest {
		t.Errorf("the digest without derived tables is %s, with them %s", d, whole.Digest)
	}
	for _, table := range []string{"profile", "waits", "transfers", "collective_waits", "repeats", "channels", "collective_calls",
		"collective_parts", "activity"} {
		if err := os.RemoveAll(filepath.Join(dir, table)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeManifest(dir, &old); err != nil {
		t.Fatal(err)
	}
	lacking := func(what string) {
		t.Helper()
		m, err := ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range m.Tables {
			if slices.Contains([]string{"profile", "waits", "transfers", "collective_waits", "repeats", "channels", "collective_calls",
				"collective_parts", "activity"}, p.Name) &&
				len(p.Files) > 0 {
				t.Errorf("%s: the manifest has %+v", what, p)
			}
		}
	}
	lacking("an older run")
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := MakeProfile(ended, dir); err == nil {
		t.Error("a cancelled MakeProfile says nothing")
	}
	lacking("cancelled")
	for _, what := range []string{"of a run without", "again"} {
		if err := MakeProfile(context.Background(), dir); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, profileRowsOf(t, dir)); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	m, err := ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(whole, m); d != "" {
		t.Errorf("manifest (-written +made):\n%s", d)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s is left", e.Name())
		}
	}
	if err := MakeProfile(context.Background(), t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "is not a run") {
		t.Errorf("no run: %v", err)
	}
}

// A derived table that would need too much memory is left out: the run has neither a file nor a folder of it, and is
// valid.
func TestRunWithoutADerivedTable(t *testing.T) {
	const rows = 1<<20 + 1 // all of different sizes: one more than the limit of transfers
	store := t.TempDir()
	r, b := mustCreate(t, store, "lacks"), &schema.Messages{}
	b.Resize(rows)
	for i := range rows {
		m := schema.NullMessage
		m.Src, m.Dst, m.Bytes, m.SendSeq = 1, 2, int64(i), int64(i)
		b.Set(i, &m)
	}
	ranks := &schema.RankInfos{}
	for rank := range int32(3) {
		i := schema.NullRankInfo
		i.Rank = rank
		ranks.Append(&i)
	}
	for _, b := range []schema.Batch{ranks, b} {
		if err := r.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Commit(t.Context(), testManifest()); err != nil {
		t.Fatal(err)
	}
	m, err := ReadManifest(filepath.Join(store, "lacks"))
	if err != nil {
		t.Fatal(err)
	}
	info := m.Tables[slices.Index(schema.Tables(), &schema.TransfersTable)]
	if info.Name != "transfers" || len(info.Files) != 0 {
		t.Errorf("the manifest says %+v; want no file of transfers", info)
	}
	if _, err := os.Stat(filepath.Join(store, "lacks", "transfers")); !os.IsNotExist(err) {
		t.Errorf("transfers: %v; want nothing there", err)
	}
}
