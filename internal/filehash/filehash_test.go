package filehash

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zeebo/xxh3"
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
		expect(t, c.name+", whole", File(dir, "t.parquet", 16, whole), c.file)
		expect(t, c.name+", footer", Footer(dir, "t.parquet", 16, footer), c.footer)
	}
	expect(t, "no hashes, but the size", File(dir, "t.parquet", 15, ""), "")
	expect(t, "missing", Footer(dir, "none", 16, footer), "no such file")
	changed := "no" + parquet[2:] // before the footer
	if err := os.WriteFile(filepath.Join(dir, "t.parquet"), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, "of a small file all", Quick(dir, "t.parquet", 16, whole, footer), "the hash of the file")
	expect(t, "else the footer", Quick(dir, "t.parquet", 16, "", footer), "")
	expect(t, "which must be the same", Quick(dir, "t.parquet", 16, "", whole), "the hash of the footer")
}

func TestFooterOfNoParquetFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t"), []byte("PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, "four bytes", Footer(dir, "t", 4, Text(1)), "4 bytes are no Parquet file")
}

func expect(t *testing.T, name string, err error, want string) {
	t.Helper()
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v; want %q", name, err, want)
	}
}
