package filehash

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"
)

// parquet is shaped like a Parquet file: three bytes of pages, five of metadata, their length, PAR1.
const parquet = "abcmetad\x05\x00\x00\x00PAR1"

func TestFileAndFooter(t *testing.T) {
	dir := t.TempDir()
	whole, footer := Text(xxh3.HashString(parquet)), Text(xxh3.HashString(parquet[3:]))
	cases := []struct {
		name, content string
		file, footer  string // what the errors contain
	}{
		{"as written", parquet, "", ""},
		{"a page changed", "xbc" + parquet[3:], "the hash of the file", ""},
		{"metadata changed", "abcXetad" + parquet[8:], "the hash of the file", "the hash of the footer"},
		{"length changed", strings.Replace(parquet, "\x05", "\xf5", 1), "the hash of the file",
			"its footer has 253 bytes, the file 16"},
		{"cut", parquet[:15], "has 15 bytes, the manifest says 16", "has 15 bytes, the manifest says 16"},
	}
	for _, c := range cases {
		if err := os.WriteFile(filepath.Join(dir, "t.parquet"), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, of := range []struct {
			part string
			err  error
			want string
		}{{"whole", File(dir, "t.parquet", 16, whole), c.file},
			{"footer", Footer(dir, "t.parquet", 16, footer), c.footer}} {
			expect(t, c.name+", "+of.part, of.err, of.want)
			if IsDamage(of.err) != (of.want != "") {
				t.Errorf("%s, %s: damage: %v", c.name, of.part, of.err)
			}
		}
	}
	expect(t, "no hashes, but the size", File(dir, "t.parquet", 15, ""), "")
	missing := Footer(dir, "none", 16, footer)
	expect(t, "missing", missing, "no such file")
	folder := File(dir, ".", size(t, dir), whole)
	expect(t, "a folder", folder, "is not a regular file")
	if tooMany := error(unix.EMFILE); !IsDamage(missing) || !IsDamage(folder) || IsDamage(tooMany) {
		t.Errorf("damage: %v, %v", missing, folder)
	}
	changed := "no" + parquet[2:] // before the footer
	if err := os.WriteFile(filepath.Join(dir, "t.parquet"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, "of a small file all", Quick(t.Context(), dir, "t.parquet", 16, Sums{File: whole, Footer: footer}), "the hash of the file")
	expect(t, "else the footer", Quick(t.Context(), dir, "t.parquet", 16, Sums{Footer: footer}), "")
	expect(t, "which must be the same", Quick(t.Context(), dir, "t.parquet", 16, Sums{Footer: whole}), "the hash of the footer")
}

// A pipe is not waited for, and a device without an end not read, whatever size the manifest says.
func TestPipesAndDevicesAreDamage(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600), os.Symlink("/dev/zero", filepath.Join(dir, "zero")))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"pipe", "zero"} {
		for _, err := range []error{File(dir, name, 0, Text(1)), Footer(dir, name, 0, Text(1)),
			Quick(t.Context(), dir, name, 0, Sums{File: Text(1)})} {
			expect(t, name, err, "is not a regular file")
			if !IsDamage(err) {
				t.Errorf("%s: no damage: %v", name, err)
			}
		}
	}
}

func TestFooterOfNoParquetFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t"), []byte("PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, "four bytes", Footer(dir, "t", 4, Text(1)), "4 bytes are no Parquet file")
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// A file is read again only if it may have changed.
func TestHashesAreRemembered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t")
	m := &memory{sums: map[identity]uint64{}, settled: time.Hour}
	for _, c := range []struct {
		settled time.Duration
		content string
		kept    int
	}{{time.Hour, "young", 0}, {0, "older", 1}, {0, "other", 2}} {
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		then := time.Unix(1843, 0) // as cp -p and rsync -t set it
		if err := os.Chtimes(path, then, then); err != nil {
			t.Fatal(err)
		}
		m.settled = c.settled
		for range 2 {
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if got, err := m.hash(file, hashOf); err != nil || got != xxh3.HashString(c.content) {
				t.Errorf("%s: %x, %v", c.content, got, err)
			}
			if len(m.sums) != c.kept {
				t.Errorf("%s: keeps %d hashes, want %d", c.content, len(m.sums), c.kept)
			}
		}
		time.Sleep(20 * time.Millisecond) // longer than a tick of the clock of files
	}
	for id := range m.sums {
		m.sums[id] = 77
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got, err := m.hash(file, hashOf); err != nil || got != 77 {
		t.Errorf("unchanged: %x, %v: it was read again", got, err)
	}
}

func expect(t *testing.T, name string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v; want %q", name, err, want)
	}
}
