package dumpi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/internal/bounded"
)

// magic begins a file, and its index.
const magic = 0xffaadd44554d5049

// footMagic begins the footer.
const footMagic = 0xf007fee7

// IsTrace reports whether a file that begins like this is one of DUMPI: the .meta of a trace, or the file of a rank.
func IsTrace(head []byte) bool {
	return len(head) >= 8 && binary.BigEndian.Uint64(head) == magic ||
		bytes.HasPrefix(head, []byte("hostname=")) && bytes.Contains(head, []byte("\nnumprocs=")) &&
			bytes.Contains(head, []byte("\nfileprefix="))
}

// IsFolder reports whether a folder has the files of one trace: a single .meta.
func IsFolder(path string) bool {
	_, err := metaIn(path)
	return err == nil
}

// metaIn returns the file .meta of a folder.
func metaIn(dir string) (string, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var found []string
	for _, entry := range all {
		path := filepath.Join(dir, entry.Name())
		if filepath.Ext(path) != ".meta" {
			continue
		}
		if isMeta(path) {
			found = append(found, path)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s has %d files .meta of DUMPI; want one, or the name of one", dir, len(found))
	}
	return found[0], nil
}

// mostMeta is more than any .meta has in bytes.
const mostMeta = 1 << 20

// isMeta reports whether a file is the .meta of a trace.
func isMeta(path string) bool {
	head, err := bounded.ReadRegular(path, mostMeta)
	return err == nil && IsTrace(head)
}

// trace is a trace: its files, by rank.
type trace struct {
	path  string // as the user gave it
	name  string // of the trace, for its run
	files []*file
}

// file is the file of a rank, without its records.
type file struct {
	path      string
	version   [3]uint8
	host      string
	body, end int64   // of the records
	sizes     []int64 // of datatypes in bytes, by number
	wallBase  int64   // seconds to add to all times of the wall clock
	called    []int64 // from the footer: calls by function, nil if there is none
}

// openTrace finds the files of a trace: path is its .meta, the folder of that, or the file of a rank.
func openTrace(path string) (*trace, error) {
	t := &trace{path: path}
	meta := path
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if info.IsDir() {
		if meta, err = metaIn(path); err != nil {
			return nil, err
		}
	}
	prefix, ranks, err := prefixOf(meta)
	if err != nil {
		return nil, err
	}
	t.name = filepath.Base(prefix)
	for rank := range ranks {
		name := fmt.Sprintf("%s-%04d.bin", prefix, rank)
		f, err := openFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is missing: the trace has %d ranks; put the files of all into one folder", name, ranks)
		}
		if err != nil {
			return nil, err
		}
		t.files = append(t.files, f)
	}
	return t, nil
}

// prefixOf returns what the names of the files begin with, and the number of ranks.
func prefixOf(path string) (prefix string, ranks int, err error) {
	base, ok := strings.CutSuffix(path, ".bin")
	if !ok {
		return readMeta(path)
	}
	prefix, _, ok = cutRank(base)
	if !ok {
		return "", 0, fmt.Errorf("%s: want the file of a rank, such as NAME-0000.bin, or the file NAME.meta", path)
	}
	meta := prefix + ".meta"
	if isMeta(meta) {
		_, ranks, err := readMeta(meta)
		return prefix, ranks, err
	}
	ranks, err = countFiles(prefix)
	return prefix, ranks, err
}

// cutRank takes the name of the file of a rank, without .bin, apart.
func cutRank(name string) (prefix string, rank int, ok bool) {
	i := strings.LastIndexByte(name, '-')
	n, err := strconv.ParseUint(name[i+1:], 10, 31)
	if i < 0 || err != nil || n >= importing.MostRanks {
		return "", 0, false
	}
	return name[:i], int(n), true
}

// countFiles returns the number of ranks without a .meta: one more than the highest rank that has a file.
func countFiles(prefix string) (ranks int, err error) {
	all, err := os.ReadDir(filepath.Dir(prefix))
	if err != nil {
		return 0, err
	}
	for _, entry := range all {
		name, ok := strings.CutSuffix(entry.Name(), ".bin")
		of, rank, isRank := cutRank(name)
		if ok && isRank && of == filepath.Base(prefix) {
			ranks = max(ranks, rank+1)
		}
	}
	return ranks, nil
}

// readMeta reads a .meta: what the names of the files begin with, and the number of ranks.
func readMeta(path string) (prefix string, ranks int, err error) {
	data, err := bounded.ReadRegular(path, mostMeta)
	if err != nil {
		return "", 0, err
	}
	named := ""
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "numprocs":
			if ranks, err = strconv.Atoi(value); err != nil || ranks < 1 || ranks > importing.MostRanks {
				return "", 0, fmt.Errorf("%s: numprocs=%s; want a number of ranks", path, value)
			}
		case "fileprefix":
			named = value
		}
	}
	if ranks == 0 || named == "" {
		return "", 0, fmt.Errorf("%s: no lines numprocs= and fileprefix=; want the .meta of a trace of DUMPI", path)
	}
	// Files may have been named anew together with the .meta.
	prefix = strings.TrimSuffix(path, filepath.Ext(path))
	if _, err := os.Stat(prefix + "-0000.bin"); err != nil {
		prefix = filepath.Join(filepath.Dir(path), filepath.Base(named))
	}
	return prefix, ranks, nil
}

// openFile reads all of a file but its records.
func openFile(path string) (*file, error) {
	in, size, err := bounded.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f := &file{path: path}
	if err := f.readTables(in, size); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// readTables reads the parts of a file that its index at the end points to.
func (f *file) readTables(in io.ReaderAt, size int64) error {
	var first [8]byte
	if _, err := in.ReadAt(first[:], 0); err != nil || binary.BigEndian.Uint64(first[:]) != magic {
		return fmt.Errorf("byte 0: %x; want the first bytes of a trace of DUMPI, %x", first, uint64(magic))
	}
	// Older versions have fewer entries; the first is that of the sizes of datatypes.
	at := map[string]int64{}
	names := []string{"sizes", "addresses", "counters", "header", "body", "footer", "keys"}
	for ; len(names) >= 4; names = names[1:] {
		from := size - int64(8*(len(names)+1))
		if from < 8 {
			continue
		}
		c := newCursor(in, from, size, 64)
		if uint64(c.int64()) != magic {
			continue
		}
		for _, name := range names {
			at[name] = c.int64()
			if at[name] < 0 || at[name] > from {
				return fmt.Errorf("the index says that the part %q begins at byte %d of %d", name, at[name], size)
			}
		}
		break
	}
	if len(at) == 0 {
		return fmt.Errorf("byte %d: no index at the end of the file: the program did not reach MPI_Finalize, or the file "+
			"was cut", size)
	}
	f.body, f.end = at["body"], at["header"]
	if f.body < 8 || f.end < f.body+8 {
		return fmt.Errorf("the index says that the records begin at byte %d and end at byte %d", f.body, f.end)
	}
	for _, part := range []struct {
		name string
		read func(c *cursor)
	}{{"header", f.header}, {"sizes", f.datatypes}, {"footer", f.footer}, {"body", f.bases}} {
		if at[part.name] == 0 {
			continue
		}
		c := newCursor(in, at[part.name], size, 4096)
		part.read(c)
		if c.err != nil {
			return fmt.Errorf("byte %d (%s): %w", c.at, part.name, c.err)
		}
	}
	return nil
}

func (f *file) header(c *cursor) {
	for i := range f.version {
		f.version[i] = c.uint8()
	}
	c.int64() // start in seconds, which the bases of times have too
	f.host = c.shortText()
}

// mostSizes is more than the datatypes of any program: their numbers have 16 bits.
const mostSizes = 1 << 16

func (f *file) datatypes(c *cursor) {
	n := c.length(4)
	if n > mostSizes {
		c.fail("sizes of %d datatypes", n)
	}
	for i := 0; i < n && c.err == nil; i++ {
		f.sizes = append(f.sizes, c.int32())
	}
}

func (f *file) footer(c *cursor) {
	if got := uint64(c.int64()); c.err == nil && got != footMagic {
		c.fail("%x; want %x", got, uint64(footMagic))
	}
	for range allFunctions {
		f.called = append(f.called, int64(c.uint32()))
	}
}

func (f *file) bases(c *cursor) {
	c.int32() // of the times of the CPU
	f.wallBase = c.int32()
	f.body = c.at
}

// since reports whether the file has at least version 0.6 of that patch.
func (f *file) since(patch uint8) bool {
	return bytes.Compare(f.version[:], []byte{0, 6, patch}) >= 0
}
