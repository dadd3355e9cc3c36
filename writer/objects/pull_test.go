package objects

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/disk/diskfail"
	"github.com/commq/commq/writer"
)

// pushed returns a store with a run, and its objects.
func pushed(t *testing.T) (*Store, map[string][]byte) {
	t.Helper()
	put := fakeS3(t)
	run := os.DirFS("../../testdata/runs/rma.3")
	err := fs.WalkDir(run, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		put[path.Join("/jobs/x/rma.3", name)], err = fs.ReadFile(run, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open("s3://jobs/x")
	if err != nil {
		t.Fatal(err)
	}
	return s, put
}

// A bucket cannot fill the disk: an object of another size than the manifest says is not read.
func TestPullReadsNoMoreThanTheManifestSays(t *testing.T) {
	s, put := pushed(t)
	store := t.TempDir()
	const table = "/jobs/x/rma.3/ranks/0000.parquet"
	put[table] = append(put[table], make([]byte, 1<<20)...)
	err := s.Pull(t.Context(), "rma.3", store, false)
	if err == nil || !strings.Contains(err.Error(), "s3://jobs/x/rma.3/ranks/0000.parquet has ") ||
		!strings.Contains(err.Error(), "bytes, the manifest says ") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(store); err != nil || len(left) > 0 {
		t.Errorf("the store has %v, %v", left, err)
	}
}

// With replace a run that is there with the same manifest is pulled and pushed again: its files may be damaged. One
// with missing files is never taken for whole.
func TestReplaceOfTheSameRun(t *testing.T) {
	s, put := pushed(t)
	store := t.TempDir()
	m, err := s.Manifest(t.Context(), "rma.3")
	if err != nil {
		t.Fatal(err)
	}
	runs := []Info{{Name: "rma.3", Manifest: m}}
	table := filepath.Join(store, "rma.3", "ranks", "0000.parquet")
	pull := func(replace bool, before int, wantErr string) {
		t.Helper()
		n, err := s.PullAll(t.Context(), runs, store, replace)
		if n != before || (err != nil) != (wantErr != "") || err != nil && !strings.Contains(err.Error(), wantErr) {
			t.Errorf("%d before, %v; want %d, %q", n, err, before, wantErr)
		}
	}
	pull(false, 0, "")
	pull(false, 1, "")
	if err := os.Remove(table); err != nil {
		t.Fatal(err)
	}
	pull(false, 0, "--replace")
	pull(true, 0, "")
	damaged, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	damaged[9] ^= 2
	if err := os.WriteFile(table, damaged, 0o644); err != nil {
		t.Fatal(err)
	}
	pull(true, 0, "")
	if err := writer.VerifyRun(t.Context(), filepath.Join(store, "rma.3")); err != nil {
		t.Error(err)
	}

	const object = "/jobs/x/rma.3/ranks/0000.parquet"
	put[object] = []byte("damaged")
	for _, replace := range []bool{false, true} {
		done, err := s.Push(t.Context(), filepath.Join(store, "rma.3"), "rma.3", replace)
		if whole := len(put[object]) > 7; err != nil || done != replace || whole != replace {
			t.Errorf("replace %v: %v %v, the object is whole: %v", replace, done, err, whole)
		}
	}

	var hashed string // a file with a hash: those that were captured have none
	for _, t := range m.Tables {
		for _, f := range t.Files {
			if f.Sum != "" {
				hashed = f.Path
			}
		}
	}
	local := filepath.Join(store, "rma.3", filepath.FromSlash(hashed))
	data, err := os.ReadFile(local)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(local, data, 0o644); err != nil {
		t.Fatal(err)
	}
	before := maps.Clone(put)
	_, err = s.Push(t.Context(), filepath.Join(store, "rma.3"), "rma.3", true)
	if err == nil || !strings.Contains(err.Error(), "nothing was replaced") || !maps.EqualFunc(before, put, bytes.Equal) {
		t.Errorf("a damaged run replaces the whole one: %v", err)
	}
}

// TestPowerAndDisksFail tries failures of pulling a run: it is there, whole, or not at all, and a second try works.
func TestPowerAndDisksFail(t *testing.T) {
	s, _ := pushed(t)
	whole := func(dir string) error { return writer.VerifyRun(t.Context(), filepath.Join(dir, "rma.3")) }
	diskfail.Try(t, diskfail.Story{
		Do: func(dir string) error {
			if whole(dir) == nil {
				return nil
			}
			err := s.Pull(t.Context(), "rma.3", dir, false)
			if there := whole(dir); err != nil && errors.Is(err, writer.ErrInPlace) != (there == nil) {
				t.Errorf("%v, and after it: %v", err, there)
			}
			return err
		},
		After: func(dir string, did bool) error {
			runs, err := writer.List(dir)
			if err != nil || len(runs) == 0 && !did {
				return err
			}
			return whole(dir)
		},
	}, diskfail.Trials()/4)
}

// Slashes in the store's name that say nothing are not part of the objects' keys: what is pushed is found.
func TestNameOfTheStoreIsClean(t *testing.T) {
	fakeS3(t)
	for name, want := range map[string]string{"s3://jobs/a//c": "a/c", "s3://jobs//": "", "s3://jobs": "",
		"s3://jobs/./a/": "a", "s3://jobs/a/b/": "a/b"} {
		s, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		url := strings.TrimSuffix("s3://jobs/"+want, "/")
		if got := s.key("r"); s.prefix != want || got != path.Join(want, "r") || s.Place("r") != url+"/r" {
			t.Errorf("%s: prefix %q, key %q, place %q; want the prefix %q", name, s.prefix, got, s.Place("r"), want)
		}
	}
}
