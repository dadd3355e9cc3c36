package writer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/digest"
)

// manifestBytes limits the size of a manifest; that of a run with a million files has about 100 MB.
const manifestBytes = 256 << 20

// ReadManifest reads and validates the manifest of the run in folder dir.
func ReadManifest(dir string) (*schema.Manifest, error) {
	name := filepath.Join(dir, manifestName)
	f, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is not a run: it has no %s", dir, manifestName)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, manifestBytes+1))
	if err != nil {
		return nil, err
	}
	m, err := ParseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// completeManifest does the same as ReadManifest, but returns nil for a folder without a manifest: a run that is being
// written or removed.
func completeManifest(dir string) (*schema.Manifest, error) {
	if _, err := os.Stat(filepath.Join(dir, manifestName)); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return ReadManifest(dir)
}

// ParseManifest reads and validates the text of a manifest.
func ParseManifest(text []byte) (*schema.Manifest, error) {
	if len(text) > manifestBytes {
		return nil, fmt.Errorf("more than %d bytes; it is not a manifest", manifestBytes)
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
	if *version.SchemaVersion != schema.Version {
		return nil, fmt.Errorf("the run has schema version %d, this commq reads %d; use the commq that wrote it, or "+
			"capture it again", *version.SchemaVersion, schema.Version)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	m := new(schema.Manifest)
	if err := dec.Decode(m); err != nil {
		return nil, fmt.Errorf("not JSON of a manifest: %w; the run is damaged: copy it or capture it again", err)
	}
	lackDerived(m)
	return m, errors.Join(checkManifest(m), checkTables(m))
}

// lackDerived lists the derived tables that a run of an older commq lacks, without files.
func lackDerived(m *schema.Manifest) {
	for i, t := range schema.Tables() {
		if t.Derived && i == len(m.Tables) {
			m.Tables = append(m.Tables, schema.TableInfo{Name: t.Name})
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

// checkManifest validates the fields that the maker of a run fills in.
func checkManifest(m *schema.Manifest) error {
	errs := []error{
		oneOf("time_origin", m.TimeOrigin, "measured", "virtual", "simulated", "untimed"),
		oneOf("compute_clock", m.ComputeClock, schema.ComputeClocks...),
		oneOf("record", m.Record, "all", "messages", "collectives"),
		oneOf("hash", m.Hash, "none", "crc64", "crc32"),
		oneOf("ended", m.Ended, schema.EndedNames...),
	}
	if m.Ranks < 1 || m.Ranks > schema.MaxRanks {
		errs = append(errs, fmt.Errorf("ranks is %d; a run has at least one and at most %d", m.Ranks, schema.MaxRanks))
	}
	if m.Epochs < 0 {
		errs = append(errs, fmt.Errorf("epochs is %d", m.Epochs))
	}
	return errors.Join(errs...)
}

// checkTables validates the fields that Commit fills in.
func checkTables(m *schema.Manifest) error {
	if _, err := digest.Parse(m.Digest); err != nil {
		return err
	}
	tables := schema.Tables()
	if len(m.Tables) != len(tables) {
		return fmt.Errorf("tables lists %d tables; want the %d of the schema", len(m.Tables), len(tables))
	}
	for i, t := range m.Tables {
		if err := checkTableInfo(tables[i], t); err != nil {
			return err
		}
	}
	return nil
}

func checkTableInfo(t *schema.Table, info schema.TableInfo) error {
	if info.Name != t.Name {
		return fmt.Errorf("tables lists %q where %q is wanted", info.Name, t.Name)
	}
	if t.Derived && len(info.Files) == 0 && info.Rows == 0 {
		return nil
	}
	if _, err := digest.Parse(info.Digest); err != nil {
		return fmt.Errorf("table %s: %w", t.Name, err)
	}
	if len(info.Files) == 0 || !t.Sharded && len(info.Files) != 1 {
		return fmt.Errorf("table %s: %d files", t.Name, len(info.Files))
	}
	rows, last := info.Rows, ""
	for _, f := range info.Files {
		if f.Path <= last || !isTableFile(t, f.Path) {
			return fmt.Errorf("table %s: file %q; want %s in increasing order", t.Name, f.Path, tablePath(t, 0))
		}
		if f.Rows < 0 || f.Bytes < 0 {
			return fmt.Errorf("table %s: file %q has %d rows, %d bytes", t.Name, f.Path, f.Rows, f.Bytes)
		}
		rows, last = rows-f.Rows, f.Path
	}
	if rows != 0 {
		return fmt.Errorf("table %s: its files have %d rows fewer than its %d", t.Name, rows, info.Rows)
	}
	return nil
}

// tablePath returns the path, with slashes, of a shard's file in a run.
func tablePath(t *schema.Table, shard int) string {
	return fmt.Sprintf("%s/%04d.parquet", t.Name, shard)
}

func isTableFile(t *schema.Table, p string) bool {
	if !t.Sharded {
		return p == tablePath(t, 0)
	}
	dir, base := path.Split(p)
	stem, ok := strings.CutSuffix(base, ".parquet")
	return ok && dir == t.Name+"/" && stem != "" && strings.Trim(stem, "0123456789") == ""
}

// writeManifest writes the manifest of the run in folder dir and syncs it.
func writeManifest(dir string, m *schema.Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	f, err := disk.Create(filepath.Join(dir, manifestName))
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}
