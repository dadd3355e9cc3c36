package writer

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zeebo/xxh3"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/schema"

	"github.com/commq/commq/internal/testenv"
)

// writeEmpty writes a run without rows.
func writeEmpty(t *testing.T, store, name string) string {
	t.Helper()
	if err := mustCreate(t, store, name).Commit(t.Context(), testManifest()); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(store, name)
}

// wantError fails the test unless err contains all of says.
func wantError(t *testing.T, err error, says ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error; want one that says %q", says)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q does not say %q", err, s)
		}
	}
}

func hidden(t *testing.T, store string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(store, ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// endsAfter is a context that reports cancellation after n calls of Err.
type endsAfter struct {
	context.Context
	n, asked int
}

func (c *endsAfter) Err() error {
	if c.asked++; c.asked > c.n {
		return context.Canceled
	}
	return nil
}

// A cancelled Commit, at whatever point it notices, leaves neither a run nor a hidden file, and frees the name.
func TestCancelledCommitLeavesNothing(t *testing.T) {
	store := t.TempDir()
	commit := func(n int) (*endsAfter, error) {
		r := mustCreate(t, store, "cancelled")
		if err := r.Write(0, someEvents()); err != nil {
			t.Fatal(err)
		}
		m := schema.NullMessage
		m.Dst, m.Bytes, m.PayloadHash = 1, 4097, 77
		again := m
		again.SendSeq = 1
		messages := &schema.Messages{}
		messages.Append(&m)
		messages.Append(&again)
		if err := r.Write(0, messages); err != nil {
			t.Fatal(err)
		}
		ctx := &endsAfter{Context: t.Context(), n: n}
		return ctx, r.Commit(ctx, testManifest())
	}
	n := 0
	for ; ; n++ {
		if n > 1000 {
			t.Fatal("Commit never ends")
		}
		_, err := commit(n)
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("cancelled after %d looks at the context: %v", n, err)
		}
		if entries, err := os.ReadDir(store); err != nil || len(entries) > 0 {
			t.Fatalf("cancelled after %d looks at the context: the store holds %v (%v)", n, entries, err)
		}
	}
	if n < len(schema.Tables()) {
		t.Errorf("Commit looked at its context %d times; want once per table at least", n)
	}
	if names := hidden(t, store); len(names) > 0 {
		t.Errorf("after a Commit that worked: %v", names)
	}
}

func TestNamesAreTaken(t *testing.T) {
	store := t.TempDir()
	r := mustCreate(t, store, "ring.3")
	_, err := Create(store, "ring.3", Options{})
	wantError(t, err, "ring.3", "being written")
	if err := r.Commit(t.Context(), testManifest()); err != nil {
		t.Fatal(err)
	}
	_, err = Create(store, "ring.3", Options{})
	wantError(t, err, "already exists", "--replace")
	if err := Remove(store, "ring.3"); err != nil {
		t.Fatal(err)
	}
	again := mustCreate(t, store, "ring.3")
	if err := again.Abort(); err != nil {
		t.Fatal(err)
	}
	if h := hidden(t, store); len(h) > 0 {
		t.Errorf("left in the store: %v", h)
	}
}

// A killed process leaves its hidden folder and its lock file, but not its lock.
func TestCreateAfterAKilledOne(t *testing.T) {
	store := t.TempDir()
	for _, name := range []string{".x.partial/events/0000.parquet", ".x.lock"} {
		path := filepath.Join(store, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777),
			os.WriteFile(path, []byte("half"), 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	dir := writeEmpty(t, store, "x")
	readAll(t, dir, &schema.EventsTable, 10, func(*schema.Events, int) { t.Error("a row of the killed process") })
	if h := hidden(t, store); len(h) > 0 {
		t.Errorf("left in the store: %v", h)
	}
}

func TestInvalidRunNamesAreRefused(t *testing.T) {
	for _, name := range []string{"", ".", "..", ".x", "-x", "a/b", `a\b`, "a b", "a*", "a?", "a[1]", "a{1}", "k=v",
		"a'b", "a\"b", "a\x00", "\xff", strings.Repeat("x", 201)} {
		if r, err := Create(t.TempDir(), name, Options{}); err == nil {
			r.Abort()
			t.Errorf("a run could be named %q", name)
		}
	}
	for _, name := range []string{"bt.C.64", "ring_3", "Größe@2", "a+b,c:d"} {
		writeEmpty(t, t.TempDir(), name)
	}
}

func TestNameFor(t *testing.T) {
	for file, want := range map[string]string{
		"bt.C.x": "bt.C.x", "my solver": "my_solver", "-x": "x", ".hidden": "hidden", "..": "run", "": "run",
		"k=v's[9]": "k_v_s_9_", "Größe": "Größe",
		"a\xff": "a_", strings.Repeat("ö", 200): strings.Repeat("ö", 90),
	} {
		if got := NameFor(file); got != want {
			t.Errorf("NameFor(%q) is %q; want %q", file, got, want)
		} else if err := CheckName(got + ".1048576"); err != nil {
			t.Error(err)
		}
	}
}

func TestUnusableStoresAreRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err := Create(filepath.Join(file, "runs"), "x", Options{})
	wantError(t, err, "--store")
	_, err = Create("/proc/self", "x", Options{}) // not even root may write there
	wantError(t, err, "--store")
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "x"), 0o777); err != nil {
		t.Fatal(err)
	}
	_, err = Create(dir, "x", Options{})
	wantError(t, err, "not a run")
}

func TestFindAll(t *testing.T) {
	store := t.TempDir()
	for _, name := range []string{"sp.A.16", "sp.A.4", "sp.A.64", "sp.B.4", "sp.A.016"} {
		writeEmpty(t, store, name)
	}
	elsewhere := filepath.Join(t.TempDir(), "s*")
	writeEmpty(t, elsewhere, "sp.A.9")
	writeEmpty(t, elsewhere, "sp.A.100")
	if err := os.Mkdir(filepath.Join(elsewhere, "sp.A.25"), 0o755); err != nil { // not a run
		t.Fatal(err)
	}
	copied := filepath.Join(elsewhere, "sp.?.9")
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(elsewhere, "sp.A.9"))); err != nil {
		t.Fatal(err)
	}
	in := func(store string, names ...string) (dirs []string) {
		for _, name := range names {
			dirs = append(dirs, filepath.Join(store, name))
		}
		return dirs
	}
	for _, c := range []struct {
		name    string
		want    []string
		pattern bool
	}{
		{"sp.A.*", in(store, "sp.A.4", "sp.A.016", "sp.A.16", "sp.A.64"), true},
		{"sp.?.4", in(store, "sp.A.4", "sp.B.4"), true},
		{"sp.[B-Z].*", in(store, "sp.B.4"), true},
		{"sp.B.4", in(store, "sp.B.4"), false},
		{filepath.Join(elsewhere, "sp.A*"), in(elsewhere, "sp.A.9", "sp.A.100"), true},
		{copied, in(elsewhere, "sp.?.9"), false},
	} {
		got, pattern, err := FindAll(store, c.name)
		if err != nil || !slices.Equal(got, c.want) || pattern != c.pattern {
			t.Errorf("FindAll(%q) = %q, %v, %v; want %q, %v", c.name, got, pattern, err, c.want, c.pattern)
		}
	}
	_, _, err := FindAll(store, "cg.*")
	wantError(t, err, `no run fits "cg.*"`, "it holds sp.A.016")
	_, _, err = FindAll(store, "sp.A.*,sp.B.*")
	wantError(t, err, "a comma does not separate runs; give each its own --run")
	_, _, err = FindAll(store, "sp.[")
	wantError(t, err, "syntax error in pattern")
	_, _, err = FindAll(store, "sp.C.4")
	wantError(t, err, "did you mean")
}

func TestFind(t *testing.T) {
	store := t.TempDir()
	_, err := Find(store, "bt.C.64")
	wantError(t, err, "holds no runs", "commq capture")
	for _, name := range []string{"bt.C.64", "bt.C.16", "cg.A.4"} {
		writeEmpty(t, store, name)
	}
	for _, name := range []string{"bt.C.64", filepath.Join(store, "bt.C.64"), filepath.Join(store, "bt.C.64") + "/"} {
		if dir, err := Find(store, name); err != nil || dir != filepath.Join(store, "bt.C.64") {
			t.Errorf("Find(%q) = %q, %v", name, dir, err)
		}
	}
	_, err = Find(store, "bt.c.65")
	wantError(t, err, "did you mean bt.C.64")
	_, err = Find(store, "something-else")
	wantError(t, err, "it holds bt.C.16, bt.C.64, cg.A.4")
	_, err = Find(store, "bt.C.16,bt.C.64")
	wantError(t, err, "a comma does not separate runs; give each its own --run")
	writeEmpty(t, store, "bt,C") // a name may have one
	if _, err := Find(store, "bt,C"); err != nil {
		t.Error(err)
	}
	_, err = Find(store, store)
	wantError(t, err, "not a run", manifestName)
	_, err = Find(store, "")
	wantError(t, err, "no run")
}

func TestListAndRemove(t *testing.T) {
	store := t.TempDir()
	if infos, err := List(filepath.Join(store, "none")); err != nil || len(infos) > 0 {
		t.Errorf("a store that is not there lists %v, %v", infos, err)
	}
	writeEmpty(t, store, "b")
	writeEmpty(t, store, "a")
	broken := writeEmpty(t, store, "c")
	if err := os.WriteFile(filepath.Join(broken, manifestName), []byte("{}"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(store, "no-run"), 0o777); err != nil {
		t.Fatal(err)
	}
	infos, err := List(store)
	if err != nil {
		t.Fatal(err)
	}
	if len(infos) != 3 || infos[0].Name != "a" || infos[1].Name != "b" || infos[1].Manifest.Ranks != 3 ||
		infos[2].Name != "c" || infos[2].Err == nil {
		t.Errorf("listed %+v", infos)
	}
	for _, name := range []string{"no-run", "..", "../" + filepath.Base(store), "d", filepath.Join(store, "a")} {
		if err := Remove(store, name); err == nil {
			t.Errorf("removed %q", name)
		}
	}
	if err := Remove(store, "a"); err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(store)
	if len(left) != 3 || left[0].Name() != "b" {
		t.Errorf("after the removal the store holds %v", left)
	}
}

// A commit that fails leaves nothing: here because the manifest is invalid.
func TestFailedCommitLeavesNothing(t *testing.T) {
	store := t.TempDir()
	for name, spoil := range map[string]func(*schema.Manifest){
		"ranks":   func(m *schema.Manifest) { m.Ranks = 0 },
		"origin":  func(m *schema.Manifest) { m.TimeOrigin = "" },
		"invalid": func(m *schema.Manifest) { m.Ended = "well" },
	} {
		r := mustCreate(t, store, "x")
		if err := r.Write(2, someEvents()); err != nil {
			t.Fatal(err)
		}
		m := testManifest()
		spoil(m)
		if err := r.Commit(t.Context(), m); err == nil {
			t.Errorf("%s: committed", name)
		}
		if left, _ := os.ReadDir(store); len(left) > 0 {
			t.Errorf("%s: left in the store: %v", name, left)
		}
		if err := r.Write(0, someEvents()); err == nil {
			t.Errorf("%s: written after the commit", name)
		}
	}
}

// With Check on, rows that break a rule do not become a run.
func TestCommitChecks(t *testing.T) {
	store := t.TempDir()
	r, err := Create(store, "x", Options{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Write(0, someEvents()); err != nil {
		t.Fatal(err)
	}
	wantError(t, r.Commit(t.Context(), testManifest()), "rank is 0 in a run of 0 ranks")
	if left, _ := os.ReadDir(store); len(left) > 0 {
		t.Errorf("left in the store: %v", left)
	}
}

// On a full disk Write or Commit returns an error, and no run is left.
func TestFullDisk(t *testing.T) {
	s := &sink{sum: xxh3.New()}
	var err error
	if s.file, err = disk.OpenFile("/dev/full", os.O_WRONLY, 0); err != nil {
		testenv.Skip(t, "no /dev/full here")
	}
	defer s.file.Close()
	if _, err := s.Write(make([]byte, sinkBytes)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("writing to a full disk: %v", err)
	}
	if _, err := s.Write([]byte("x")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the error is forgotten: %v", err)
	}
}
