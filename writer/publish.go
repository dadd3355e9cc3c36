package writer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/commq/commq/schema"
)

// Published says what Publish did.
type Published struct {
	// Linked and Copied are the numbers of files that are the run's own, under a second name, and copies of them. Both are 0 where the run was there already.
	Linked, Copied int
}

// publishedFolder is the folder, in one of published runs, that holds their manifests. Engines leave out names that begin so.
const publishedFolder = "_commq"

// PartitionFolder is the name of a run's folder in each table's, as Hive has it: run=bt.C.64. A colon is escaped, which paths of Hadoop cannot hold.
func PartitionFolder(run string) string { return "run=" + strings.ReplaceAll(run, ":", "%3A") }

// Publish lays the run in folder dir out in the folder to, by tables: TABLE/run=NAME/0000.parquet. The files get second names there; where that is another file
// system they are copied. A table that the run lacks has no folder. row is a Parquet file with the run's row of the table runs, which comes last: a run
// that is not there has not been published as a whole. A run that is there with the same manifest is left alone, one that changed is replaced.
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
	text, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return p, err
	}
	record := filepath.Join(to, publishedFolder, name+".json")
	if there, err := os.ReadFile(record); err == nil && bytes.Equal(there, text) && isFolder(filepath.Join(to, "runs", PartitionFolder(name))) {
		return p, nil
	}
	if err := unpublish(name, to); err != nil {
		return p, err
	}
	hidden := hiddenOf(name, to)
	if err := p.layOut(dir, m, hidden, row); err != nil {
		return p, errors.Join(fmt.Errorf("publish %s: %w", dir, err), os.RemoveAll(hidden))
	}
	for _, t := range m.Tables {
		if len(t.Files) == 0 {
			continue
		}
		if err := putPartition(hidden, to, name, &t); err != nil {
			return p, err
		}
	}
	if err := putFile(record, text); err != nil {
		return p, err
	}
	if err := putPartition(hidden, to, name, &schema.TableInfo{Name: "runs", Rows: 1}); err != nil { // the last
		return p, err
	}
	return p, os.RemoveAll(hidden)
}

// putPartition gives a table's folder, laid out in the hidden one, its place. A folder of no rows has one only while nothing else of the table is there, so that
// there is a table to read, and no file without rows is before one with rows: where DuckDB finds such a file first it reads all with one thread.
func putPartition(hidden, to, name string, t *schema.TableInfo) error {
	place := filepath.Join(to, t.Name)
	if err := os.MkdirAll(place, 0o777); err != nil {
		return err
	}
	pattern := filepath.Join(escapeGlob(place), "run=*")
	if others, err := filepath.Glob(pattern); err != nil || t.Rows == 0 && len(others) > 0 {
		return err
	}
	if err := os.Rename(filepath.Join(hidden, t.Name), filepath.Join(place, PartitionFolder(name))); err != nil {
		return err
	}
	if t.Rows > 0 {
		rowless, err := filepath.Glob(filepath.Join(pattern, rowlessFile))
		for _, f := range rowless {
			err = errors.Join(err, os.Remove(f), os.Remove(filepath.Dir(f)))
		}
		if err != nil {
			return err
		}
	}
	return syncFolder(place)
}

// rowlessFile is the name of a published file that stands for a table without rows.
const rowlessFile = "empty.parquet"

// published are the files of a table that are published: those with rows, or one where there are none.
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
	if err := os.MkdirAll(filepath.Join(to, publishedFolder), 0o777); err != nil {
		return nil, err
	}
	l, err := takeLock(filepath.Join(to, publishedFolder, name+".lock"))
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("run %q in %s is being published by another process; wait for it to end", name, to)
	}
	return l, err
}

// layOut puts the run's files into a hidden folder, by tables.
func (p *Published) layOut(dir string, m *schema.Manifest, hidden string, row []byte) error {
	for _, t := range m.Tables {
		if len(t.Files) == 0 {
			continue
		}
		folder := filepath.Join(hidden, t.Name)
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return err
		}
		for _, f := range published(&t) {
			from := filepath.Join(dir, filepath.FromSlash(f.Path))
			info, err := os.Stat(from)
			if err == nil && info.Size() != f.Bytes {
				err = fmt.Errorf("%s has %d bytes, the manifest says %d; commq runs check says what is wrong", f.Path, info.Size(), f.Bytes)
			}
			if err == nil {
				err = p.link(from, filepath.Join(folder, publishedName(&t, &f)))
			}
			if err != nil {
				return err
			}
		}
		if err := syncFolder(folder); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(hidden, "runs"), 0o777); err != nil {
		return err
	}
	return putFile(filepath.Join(hidden, "runs", "0000.parquet"), row)
}

// link gives a file a second name, or copies it where that cannot be.
func (p *Published) link(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		p.Linked++
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	p.Copied++
	return errors.Join(err, out.Sync(), out.Close())
}

// putFile makes a file, whole or not at all; nobody else does so at the time. One that was killed leaves a file that the next one writes over.
func putFile(name string, data []byte) error {
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error counts
		return err
	}
	return syncFolder(filepath.Dir(name))
}

// Unpublish takes a run from the folder to in which Publish laid it out: first its row of runs. The run itself stays. The error says where it was never published.
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
	return unpublish(name, to)
}

func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

// unpublish removes what there is of a published run.
func unpublish(name, to string) error {
	hidden := hiddenOf(name, to)
	if err := os.RemoveAll(hidden); err != nil { // of a process that was killed
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
		if err := os.MkdirAll(hidden, 0o777); err != nil {
			return err
		}
		if err := os.Rename(folder, filepath.Join(hidden, t)); err != nil { // at once, not file by file
			return err
		}
		_ = os.Remove(filepath.Join(to, t)) // fails where other runs are in it
	}
	err = os.Remove(filepath.Join(to, publishedFolder, name+".json"))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(hidden))
}
