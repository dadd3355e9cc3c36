package kept

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/commq/commq/internal/testenv"
)

type result struct {
	sums map[[2]int32]int64
	list []*int64
}

// runOf makes a folder that looks like a run.
func runOf(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r")
	if err := os.MkdirAll(filepath.Join(dir, "events"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"manifest.json": "{}", "events/0.parquet": "rows"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func save(r *Results) {
	n := int64(7)
	Save(r, "sums", &result{map[[2]int32]int64{{1, 2}: 3}, []*int64{&n, nil}})
}

func (x *result) equal() bool {
	return len(x.sums) == 1 && x.sums[[2]int32{1, 2}] == 3 && len(x.list) == 2 && *x.list[0] == 7 && x.list[1] == nil
}

func TestResultsAreKept(t *testing.T) {
	dir, in := runOf(t), filepath.Join(t.TempDir(), "made")
	save(ResultsOf(dir, in))
	var got result
	if !Load(ResultsOf(dir, in), "sums", &got) || !got.equal() {
		t.Errorf("kept %+v", got)
	}
	if Load(ResultsOf(dir, in), "other", &got) {
		t.Error("a result with a name that was not saved")
	}
	var other struct{ sums map[int32]int64 }
	if Load(ResultsOf(dir, in), "sums", &other) {
		t.Error("a result of another type")
	}
	if files, _ := os.ReadDir(in); len(files) != 1 {
		t.Errorf("%d files, want 1", len(files))
	}
}

// A run that changed in any file does not have the results of the one before.
func TestChangedRunsHaveNoResults(t *testing.T) {
	dir, in := runOf(t), t.TempDir()
	save(ResultsOf(dir, in))
	for _, c := range []struct {
		name   string
		change func() error
	}{
		{"other manifest", func() error { return os.WriteFile(filepath.Join(dir, "manifest.json"), []byte("[]"), 0o644) }},
		{"other rows", func() error {
			file := filepath.Join(dir, "events/0.parquet")
			return os.Chtimes(file, time.Now(), time.Now().Add(time.Second))
		}},
		{"another file", func() error { return os.WriteFile(filepath.Join(dir, "events/1.parquet"), nil, 0o644) }},
		{"no file", func() error { return os.Remove(filepath.Join(dir, "events/0.parquet")) }},
	} {
		if err := c.change(); err != nil {
			t.Fatal(err)
		}
		var got result
		if Load(ResultsOf(dir, in), "sums", &got) {
			t.Errorf("%s: has the results of the run before", c.name)
		}
		save(ResultsOf(dir, in))
	}
}

// A file that was damaged anywhere is not read, and is replaced.
func TestDamagedResultsAreNotRead(t *testing.T) {
	r := ResultsOf(runOf(t), t.TempDir())
	save(r)
	path := r.prefix + "sums"
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		damaged := append([]byte(nil), whole...)
		damaged[i] ^= 0x10
		for _, data := range [][]byte{damaged, whole[:i]} {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			got := result{list: []*int64{nil}}
			if Load(r, "sums", &got) {
				t.Fatalf("read with byte %d changed", i)
			}
			if len(got.list) != 1 || got.sums != nil {
				t.Fatalf("a result that was not read changed %+v", got)
			}
		}
	}
	save(r)
	var got result
	if !Load(r, "sums", &got) || !got.equal() {
		t.Errorf("after damage: %+v", got)
	}
}

// Where nothing can be written nothing is kept, and no file is left half written.
func TestNothingIsKeptWhereNothingCanBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var got result
	for _, r := range []*Results{ResultsOf(runOf(t), filepath.Join(file, "in")),
		ResultsOf(filepath.Join(file, "no run"), t.TempDir()), nil} {
		save(r)
		if Load(r, "sums", &got) {
			t.Error("something was kept")
		}
	}
}

func TestUnusedResultsAreRemoved(t *testing.T) {
	in := t.TempDir()
	old, used := ResultsOf(runOf(t), in), ResultsOf(runOf(t), in)
	save(old)
	save(used)
	long := time.Now().Add(-2 * unusedFor)
	for _, r := range []*Results{old, used} {
		if err := os.Chtimes(r.prefix+"sums", long, long); err != nil {
			t.Fatal(err)
		}
	}
	var got result
	if !Load(used, "sums", &got) {
		t.Fatal("it was kept")
	}
	save(ResultsOf(runOf(t), in))
	if Load(old, "sums", &got) || !Load(used, "sums", &got) {
		t.Error("want the one that was used, and not the other")
	}
}

// TestResultsOfOthersAreNotRead: a result that another user put into the folder is not taken for this user's.
func TestResultsOfOthersAreNotRead(t *testing.T) {
	testenv.Root(t, "to make what belongs to another user")
	folder := filepath.Join(t.TempDir(), "results")
	r := ResultsOf(runOf(t), folder)
	save(r)
	var got result
	if !Load(r, "sums", &got) {
		t.Fatal("not kept")
	}
	for _, path := range []string{r.prefix + "sums", folder} {
		if err := os.Chown(path, 1843, 1843); err != nil {
			t.Fatal(err)
		}
		if Load(r, "sums", &got) {
			t.Errorf("%s is another user's, and was read", path)
		}
		if err := os.Chown(path, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if !Load(r, "sums", &got) {
		t.Error("one's own is not read any more")
	}
}
