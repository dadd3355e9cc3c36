package ingest

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/writer"
)

// jobOf makes a spool of 4 ranks whose program is bin/solver, beside a file of something else.
func jobOf(t *testing.T) (dir string, job *JobInfo) {
	t.Helper()
	dir, _, _, _ = randomSpool(t, 3, 4, 60)
	if err := os.WriteFile(filepath.Join(dir, "note.txt"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	job, err := Find(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return dir, job
}

// left lists the files of a folder.
func left(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A job goes into a store under a name of its own or its program's, and its records stay until they are removed.
func TestIngestInto(t *testing.T) {
	dir, job := jobOf(t)
	store, before := t.TempDir(), left(t, dir)
	for _, name := range []string{"", "mine"} {
		want := cmp.Or(name, fmt.Sprintf("%s.4", writer.NameFor(filepath.Base(job.Program))))
		r, err := IngestInto(context.Background(), dir, store, name, PartOptions{})
		if err != nil || r.Run != want || r.Job != job.ID || r.Before || r.Manifest == nil || r.Manifest.Ranks != 4 {
			t.Fatalf("%q: %+v, %v", name, r, err)
		}
		if got := left(t, dir); !slices.Equal(got, before) {
			t.Errorf("%q: %v are left of %v", name, got, before)
		}
		if name == "" {
			continue
		}
		if err := r.RemoveRecords(); err != nil {
			t.Error(err)
		}
	}
	if got := left(t, dir); !slices.Equal(got, []string{"note.txt"}) {
		t.Errorf("%v are left, want what commq did not write", got)
	}
	if _, err := IngestInto(context.Background(), dir, store, "again", PartOptions{}); err == nil {
		t.Error("the records are gone")
	}
	if got := left(t, store); len(got) != 2 {
		t.Errorf("the store has %v", got)
	}
}

// Each part removes its own records; a part that comes again finds the run made.
func TestIngestIntoInParts(t *testing.T) {
	dir, job := jobOf(t)
	store := t.TempDir()
	part := func(share int) (*Ingested, error) {
		return IngestInto(context.Background(), dir, store, "r",
			PartOptions{Options: Options{Job: job.ID}, Parts: 2, Share: share, Shares: 2, Patience: time.Minute})
	}
	type result struct {
		r   *Ingested
		err error
	}
	ended := make(chan result)
	for share := range 2 {
		go func() {
			r, err := part(share)
			ended <- result{r, err}
		}()
	}
	var parts []*Ingested
	for range 2 {
		x := <-ended
		if x.err != nil || x.r.Before {
			t.Fatalf("%+v, %v", x.r, x.err)
		}
		parts = append(parts, x.r)
	}
	if (parts[0].Manifest == nil) == (parts[1].Manifest == nil) {
		t.Error("one part makes the run")
	}
	if r, err := part(0); err != nil || !r.Before || r.Manifest != nil {
		t.Errorf("again: %+v, %v", r, err)
	}
	all := left(t, dir)
	if err := parts[0].RemoveRecords(); err != nil {
		t.Fatal(err)
	}
	if some := left(t, dir); len(some) >= len(all) || len(some) < 2 {
		t.Errorf("%v are left of %v", some, all)
	}
	if err := parts[1].RemoveRecords(); err != nil {
		t.Fatal(err)
	}
	if none := left(t, dir); !slices.Equal(none, []string{"note.txt"}) {
		t.Errorf("%v are left", none)
	}
}

// A run of some parts is not taken for one of all parts, nor one made with other options for what was asked for.
func TestPartsThatTheRunLacks(t *testing.T) {
	dir, _, _, _ := randomSpool(t, 3, 6, 60)
	dirs := nodes(t, dir, 3, func(rank int) int { return rank / 2 })
	store := t.TempDir()
	ended := make(chan error)
	part := func(node int, o PartOptions) (*Ingested, error) {
		o.Patience = testenv.Patience
		return IngestInto(context.Background(), dirs[node], store, "r", o)
	}
	for node := range 2 { // the third node is down
		go func() {
			_, err := part(node, PartOptions{Parts: 2, Options: Options{Partial: true}})
			ended <- err
		}()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		node int
		o    PartOptions
		want string
	}{
		{"a node that is in the run", 1, PartOptions{Parts: 3, Options: Options{Replace: true}}, ""},
		{"the node that was down", 2, PartOptions{Parts: 3, Options: Options{Replace: true}},
			"without the records of rank 4, which are in " + dirs[2] + "; to ingest all parts again, first remove it"},
		{"other rows", 1, PartOptions{Parts: 2, Options: Options{Replace: true, Record: RecordCollectives}},
			"was made with other values of --record"},
		{"other calls", 1, PartOptions{Parts: 2, Options: Options{Calls: []string{"-MPI_I*"}}}, "other values of --record"},
		{"other times", 1, PartOptions{Parts: 2, Options: Options{TimeResolutionNs: 64}}, "other values of --record"},
	} {
		r, err := part(c.node, c.o)
		if c.want == "" && (err != nil || !r.Before) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %+v, %v; want %q", c.name, r, err, c.want)
		}
	}
}
