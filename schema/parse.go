package schema

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// MaxManifestBytes limits the size of a manifest; that of a run with a million files has about 100 MB.
const MaxManifestBytes = 256 << 20

// ParseManifest reads and validates the text of a manifest, of a folder or of object storage. Its errors say what was
// found and what to do.
func ParseManifest(text []byte) (*Manifest, error) {
	return parseManifest(text, (*Table).IsFilePath)
}

// ParseSummedManifest reads and validates the text of what Summed returns. Errors are as ParseManifest's.
func ParseSummedManifest(text []byte) (*Manifest, error) {
	return parseManifest(text, func(t *Table, p string) bool { return p == t.Name })
}

// Summed returns the manifest with a single entry, the folder, for all files of a table. A run with a million files
// then has a manifest of ordinary size.
func (m *Manifest) Summed() *Manifest {
	short := *m
	short.Sum = "" // that of another text
	short.Tables = slices.Clone(m.Tables)
	for i, t := range short.Tables {
		if len(t.Files) == 0 {
			continue
		}
		all := FileInfo{Path: t.Name}
		for _, f := range t.Files {
			all.Rows, all.Bytes = all.Rows+f.Rows, all.Bytes+f.Bytes
		}
		short.Tables[i].Files = []FileInfo{all}
	}
	return &short
}

// parseManifest reads a manifest whose tables may have files of these paths.
func parseManifest(text []byte, isFile func(t *Table, path string) bool) (*Manifest, error) {
	if len(text) > MaxManifestBytes {
		return nil, fmt.Errorf("more than %d bytes; it is not a manifest", MaxManifestBytes)
	}
	var version struct {
		SchemaVersion *int `json:"schema_version"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("not JSON of a manifest: %w; the run is damaged: copy it or capture it again", err)
	}
	if version.SchemaVersion == nil {
		return nil, fmt.Errorf("no schema_version; it is not a manifest")
	}
	if *version.SchemaVersion != Version {
		return nil, fmt.Errorf("the run has schema version %d, this commq reads %d; use the commq that wrote it, or "+
			"capture it again", *version.SchemaVersion, Version)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	m := new(Manifest)
	if err := dec.Decode(m); err != nil {
		return nil, fmt.Errorf("not JSON of a manifest: %w; the run is damaged: copy it or capture it again", err)
	}
	if err := m.compareSum(text); err != nil {
		return nil, err
	}
	m.lackDerived()
	return m, errors.Join(m.Check(), m.checkTables(isFile))
}

// lackDerived lists the derived tables that a run of an older commq lacks, without files.
func (m *Manifest) lackDerived() {
	for i, t := range Tables() {
		if t.Derived && i == len(m.Tables) {
			m.Tables = append(m.Tables, TableInfo{Name: t.Name})
		}
	}
}

// oneOf returns an error when a field has a value that is not allowed.
func oneOf(field, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return fmt.Errorf("%s is %q; want %s", field, value, strings.Join(values, ", "))
}

// Check validates the fields that the maker of a run fills in: all but those of its files and digests. Its errors name
// the field, what it is and what it may be.
func (m *Manifest) Check() error {
	errs := []error{
		oneOf("time_origin", m.TimeOrigin, "measured", "virtual", "simulated", "untimed"),
		oneOf("compute_clock", m.ComputeClock, ComputeClocks...),
		oneOf("record", m.Record, "all", "messages", "collectives"),
		oneOf("hash", m.Hash, "none", "crc64", "crc32"),
		oneOf("ended", m.Ended, EndedNames...),
	}
	if m.Ranks < 1 || m.Ranks > MaxRanks {
		errs = append(errs, fmt.Errorf("ranks is %d; a run has at least one and at most %d", m.Ranks, MaxRanks))
	}
	if m.Epochs < 0 {
		errs = append(errs, fmt.Errorf("epochs is %d", m.Epochs))
	}
	return errors.Join(errs...)
}

// checkTables validates the fields that are known when the run is written: its files and digests.
func (m *Manifest) checkTables(isFile func(t *Table, path string) bool) error {
	if err := checkDigest(m.Digest); err != nil {
		return err
	}
	tables := Tables()
	if len(m.Tables) != len(tables) {
		return fmt.Errorf("tables lists %d tables; want the %d of the schema", len(m.Tables), len(tables))
	}
	for i, t := range m.Tables {
		if err := checkTableInfo(tables[i], t, isFile); err != nil {
			return err
		}
	}
	return nil
}

// checkDigest reports digests that package writer/digest could not have written.
func checkDigest(s string) error {
	if b, err := hex.DecodeString(s); err != nil || len(b) != 16 {
		return fmt.Errorf("digest %q: want 32 hexadecimal digits", s)
	}
	return nil
}

func checkTableInfo(t *Table, info TableInfo, isFile func(t *Table, path string) bool) error {
	if info.Name != t.Name {
		return fmt.Errorf("tables lists %q where %q is wanted", info.Name, t.Name)
	}
	if t.Derived && len(info.Files) == 0 && info.Rows == 0 {
		return nil
	}
	if err := checkDigest(info.Digest); err != nil {
		return fmt.Errorf("table %s: %w", t.Name, err)
	}
	if len(info.Files) == 0 || !t.Sharded && len(info.Files) != 1 {
		return fmt.Errorf("table %s: %d files", t.Name, len(info.Files))
	}
	rows, bytes, last := info.Rows, int64(0), ""
	for _, f := range info.Files {
		if f.Path <= last || !isFile(t, f.Path) {
			return fmt.Errorf("table %s: file %q; want %s in increasing order", t.Name, f.Path, t.FilePath(0))
		}
		if f.Rows < 0 || f.Bytes < 0 {
			return fmt.Errorf("table %s: file %q has %d rows, %d bytes", t.Name, f.Path, f.Rows, f.Bytes)
		}
		if rows, bytes, last = rows-f.Rows, bytes+f.Bytes, f.Path; rows < 0 || bytes < 0 {
			return fmt.Errorf("table %s: its files have more than its %d rows, or more than 2^63 bytes", t.Name, info.Rows)
		}
	}
	if rows != 0 {
		return fmt.Errorf("table %s: its files have %d rows fewer than its %d", t.Name, rows, info.Rows)
	}
	return nil
}

// FilePath returns the path, with slashes, of a shard's file in a run: events/0007.parquet. Tables that are not Sharded
// have shard 0 alone.
func (t *Table) FilePath(shard int) string {
	return fmt.Sprintf("%s/%04d.parquet", t.Name, shard)
}

// IsFilePath is true for paths of files that the table may have, of any shard.
func (t *Table) IsFilePath(p string) bool {
	if !t.Sharded {
		return p == t.FilePath(0)
	}
	dir, base := path.Split(p)
	stem, ok := strings.CutSuffix(base, ".parquet")
	return ok && dir == t.Name+"/" && stem != "" && strings.Trim(stem, "0123456789") == ""
}
