package writer

import (
	"bytes"
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
)

// Published is the result of Publish.
type Published struct {
	// Linked is the number of the run's files that got a second name, Copied that of files that were copied. Both are 0
	// when the run was published already.
	Linked, Copied int
}

// publishedFolder is the subfolder with the manifests of published runs. SQL engines ignore names that begin with _.
const publishedFolder = "_commq"

// PartitionFolder returns the name of a run's folder in the folder of each table, in the style of Hive: run=bt.C.64.
// A colon is escaped, as it is not allowed in paths of Hadoop.
func PartitionFolder(run string) string { return "run=" + strings.ReplaceAll(run, ":", "%3A") }

// Publish lays out the run in folder dir by table in the folder to: TABLE/run=NAME/0000.parquet. Files get a second
// name there, or are copied when that is another file system. A table that the run lacks has no folder. row is a
// Parquet file with the run's row of the table runs. It is added last, so a run without it is not completely
// published. A run that is published with the same manifest is left as it is if each of its tables has a file there, a
// changed one is replaced.
func Publish(dir, name, to string, row []byte) (p Published, err error) {
	l, err := lockPublished(name, to)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	m, err := ReadManifest(dir)
	if err != nil {
		return p, err
	}
	folder, err := os.OpenRoot(dir) // it opens nothing outside, whatever links and names the run has
	if err != nil {
		return p, err
	}
	defer folder.Close()
	text, err := folder.ReadFile(manifestName)
	if err != nil {
		return p, err
	}
	record := filepath.Join(to, publishedFolder, name+".json")
	if there, err := os.ReadFile(record); err == nil && bytes.Equal(there, text) &&
		isFolder(filepath.Join(to, "runs", PartitionFolder(name))) && areReadable(to, m) {
		return p, nil
	}
	if err := unpublish(name, to); err != nil {
		return p, err
	}
	hidden := hiddenOf(name, to)
	if err := p.layOut(folder, m, hidden, row); err != nil {
		return p, errors.Join(fmt.Errorf("publish %s: %w", dir, err), disk.RemoveAll(hidden))
	}
	for _, t := range m.HeldTables() {
		if err := putPartition(hidden, to, name, t); err != nil {
			return p, err
		}
	}
	if err := putFile(record, text); err != nil {
		return p, err
	}
	if err := putPartition(hidden, to, name, &schema.TableInfo{Name: "runs", Rows: 1}); err != nil { // the last
		return p, err
	}
	return p, disk.RemoveAll(hidden)
}

// putPartition moves a table's folder from the hidden folder to its place. A folder without rows is kept only while
// the table has no other folder, so that the table can be read. A file without rows must not come before files with
// rows: if DuckDB finds it first, it reads all files with one thread.
func putPartition(hidden, to, name string, t *schema.TableInfo) error {
	place := filepath.Join(to, t.Name)
	if err := disk.MkdirAllSynced(place, 0o777); err != nil {
		return err
	}
	if t.Rows == 0 && isReadable(to, t) {
		return nil
	}
	if err := disk.Rename(filepath.Join(hidden, t.Name), filepath.Join(place, PartitionFolder(name))); err != nil {
		return err
	}
	if t.Rows > 0 {
		rowless, err := filepath.Glob(filepath.Join(escapeGlob(place), "run=*", rowlessFile))
		for _, f := range rowless {
			err = errors.Join(err, disk.Remove(f), disk.Remove(filepath.Dir(f)))
		}
		if err != nil {
			return err
		}
	}
	return disk.SyncFolder(place)
}

// isReadable reports whether a run has files of the table in the folder to.
func isReadable(to string, t *schema.TableInfo) bool {
	folder, err := os.Open(filepath.Join(to, t.Name))
	if err != nil {
		return false
	}
	defer folder.Close()
	for { // the first that is found is enough: there may be thousands
		names, err := folder.Readdirnames(64)
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "run=") }) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// areReadable reports whether runs have files of each table of the manifest in the folder to.
func areReadable(to string, m *schema.Manifest) bool {
	return !slices.ContainsFunc(m.HeldTables(), func(t *schema.TableInfo) bool { return !isReadable(to, t) })
}

// rowlessFile is the name of the published file of a table without rows.
const rowlessFile = "empty.parquet"

// published lists the files of a table to publish: those with rows, or one file when there are no rows.
func published(t *schema.TableInfo) (files []schema.FileInfo) {
	if t.Rows == 0 {
		return t.Files[:1]
	}
	for _, f := range t.Files {
		if f.Rows > 0 {
			files = append(files, f)
		}
	}
	return files
}

func publishedName(t *schema.TableInfo, f *schema.FileInfo) string {
	if t.Rows == 0 {
		return rowlessFile
	}
	return path.Base(f.Path)
}

func hiddenOf(name, to string) string { return filepath.Join(to, publishedFolder, name+".partial") }

func lockPublished(name, to string) (*lock, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	if err := disk.MkdirAllSynced(filepath.Join(to, publishedFolder), 0o777); err != nil {
		return nil, err
	}
	l, err := takeLock(filepath.Join(to, publishedFolder, name+".lock"))
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("run %q in %s is being published by another process; wait for it to end", name, to)
	}
	return l, err
}

// layOut puts the files of the run in folder run into the hidden folder, by table. What a link points to is not
// published: it may be a file that others must not read.
func (p *Published) layOut(run *os.Root, m *schema.Manifest, hidden string, row []byte) error {
	for _, t := range m.HeldTables() {
		folder := filepath.Join(hidden, t.Name)
		if err := disk.MkdirAll(folder, 0o777); err != nil {
			return err
		}
		for _, f := range published(t) {
			info, err := run.Lstat(filepath.FromSlash(f.Path))
			if err == nil && !info.Mode().IsRegular() {
				err = fmt.Errorf("%s is not a regular file; a run's files lie in its folder", f.Path)
			}
			if err == nil && info.Size() != f.Bytes {
				err = fmt.Errorf("%s has %d bytes, the manifest says %d; commq runs check tells what is wrong", f.Path,
					info.Size(), f.Bytes)
			}
			if err == nil {
				err = p.link(run, filepath.FromSlash(f.Path), filepath.Join(folder, publishedName(t, &f)))
			}
			if err != nil {
				return err
			}
		}
		if err := disk.SyncFolder(folder); err != nil {
			return err
		}
	}
	if err := disk.MkdirAll(filepath.Join(hidden, "runs"), 0o777); err != nil {
		return err
	}
	return putFile(filepath.Join(hidden, "runs", "0000.parquet"), row)
}

// link gives a file of the run a second name, or copies it when that fails.
func (p *Published) link(run *os.Root, from, to string) error {
	err := disk.Link(filepath.Join(run.Name(), from), to)
	if err == nil {
		p.Linked++
		return nil
	}
	in, err := run.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := disk.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	p.Copied++
	return errors.Join(err, out.Sync(), out.Close())
}

// putFile creates or replaces a file, completely or not at all. Only one process may do so at a time. A killed process
// leaves a file that the next one overwrites.
func putFile(name string, data []byte) error {
	f, err := disk.Create(name + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = disk.Rename(f.Name(), name)
	}
	if err != nil {
		_ = disk.Remove(f.Name()) // the first error counts
		return err
	}
	return disk.SyncFolder(filepath.Dir(name))
}

// Unpublish removes a run from the folder to, where Publish laid it out; its row of runs goes first. The run itself
// stays. It returns an error when the run is not published there.
func Unpublish(name, to string) (err error) {
	if info, err := os.Stat(filepath.Join(to, publishedFolder)); err != nil || !info.IsDir() {
		return fmt.Errorf("%s holds no published runs: it has no folder %s", to, publishedFolder)
	}
	l, err := lockPublished(name, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.release()) }()
	folders, err := filepath.Glob(filepath.Join(escapeGlob(to), "*", escapeGlob(PartitionFolder(name))))
	if err == nil && len(folders) == 0 {
		err = fmt.Errorf("run %q is not published in %s", name, to)
	}
	if err != nil {
		return err
	}
	if err := unpublish(name, to); err != nil {
		return err
	}
	records, err := filepath.Glob(filepath.Join(escapeGlob(to), publishedFolder, "*.json"))
	for _, record := range records {
		err = errors.Join(err, keepReadable(strings.TrimSuffix(filepath.Base(record), ".json"), to))
	}
	return err
}

// keepReadable adds a file without rows to each table that a published run has and that has lost its last file, as
// Publish left out that of this run. A run that is being published is left alone: it sees to its tables itself.
func keepReadable(name, to string) (err error) {
	m, err := readRecord(name, to)
	if err != nil || areReadable(to, m) { // a record of another commq, or one that was just removed, tells nothing
		return nil
	}
	l, err := takeLock(filepath.Join(to, publishedFolder, name+".lock"))
	if errors.Is(err, errLocked) {
		return nil
	}
	if err != nil {
		return err
	}
	hidden := hiddenOf(name, to)
	defer func() { err = errors.Join(err, disk.RemoveAll(hidden), l.release()) }()
	if m, err = readRecord(name, to); err != nil { // unpublished in the meantime
		return nil
	}
	for i, t := range m.Tables {
		if len(t.Files) == 0 || isReadable(to, &t) {
			continue
		}
		folder := filepath.Join(hidden, t.Name)
		if err := disk.MkdirAll(folder, 0o777); err != nil {
			return err
		}
		f, err := createTableFile(filepath.Join(folder, rowlessFile), schema.Tables()[i])
		if err == nil {
			_, err = f.close()
		}
		if err == nil {
			err = putPartition(hidden, to, name, &schema.TableInfo{Name: t.Name})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readRecord reads the manifest of a published run.
func readRecord(name, to string) (*schema.Manifest, error) {
	text, err := os.ReadFile(filepath.Join(to, publishedFolder, name+".json"))
	if err != nil {
		return nil, err
	}
	return schema.ParseManifest(text)
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

// unpublish removes what is left of a published run.
func unpublish(name, to string) error {
	hidden := hiddenOf(name, to)
	if err := disk.RemoveAll(hidden); err != nil { // left by a killed process
		return err
	}
	entries, err := os.ReadDir(to)
	if err != nil {
		return err
	}
	tables := []string{"runs"}
	for _, e := range entries {
		if e.IsDir() && e.Name() != "runs" && e.Name() != publishedFolder {
			tables = append(tables, e.Name())
		}
	}
	for _, t := range tables {
		folder := filepath.Join(to, t, PartitionFolder(name))
		if !isFolder(folder) {
			continue
		}
		if err := disk.MkdirAll(hidden, 0o777); err != nil {
			return err
		}
		if err := disk.Rename(folder, filepath.Join(hidden, t)); err != nil { // in one step, not file by file
			return err
		}
		_ = disk.Remove(filepath.Join(to, t)) // fails while other runs are in it
	}
	err = disk.Remove(filepath.Join(to, publishedFolder, name+".json"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, disk.RemoveAll(hidden))
}
