package tit

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/internal/bounded"
)

// file is an open file of a trace.
type file interface {
	io.ReaderAt
	io.Closer
}

// opener opens a file of a trace, and returns its size.
type opener func(path string) (file, int64, error)

func openFile(path string) (file, int64, error) {
	f, size, err := bounded.OpenRegular(path)
	if err != nil {
		return nil, 0, fmt.Errorf("%w; the trace is read several times", err)
	}
	return f, size, nil
}

// trace locates the lines of each rank.
type trace struct {
	files []string
	// ranks has the pieces of files with the lines of a rank, in their order.
	ranks [][]segment
	// found has them while the files are scanned: a damaged line may name any rank.
	found map[int][]segment

	open    opener
	current int // the open file, -1 for none
	handle  file
}

// segment is a piece of a file.
type segment struct {
	file    int
	at, end int64
	line    int64 // the number of its first line
}

// maxLine is more than any line has: a million ranks have two megabytes in an alltoallv.
const maxLine = 1 << 26

// openTrace finds the lines of each rank in the files. Close the trace after use.
func openTrace(files []string, open opener) (*trace, error) {
	t := &trace{files: files, open: open, current: -1, found: map[int][]segment{}}
	if err := t.scanAll(); err != nil {
		_ = t.close() // the first error counts
		return nil, err
	}
	return t, nil
}

// scanAll adds the lines of all files.
func (t *trace) scanAll() error {
	files := t.files
	for i := range files {
		if err := t.scan(i); err != nil {
			return fmt.Errorf("%s%w", files[i], err)
		}
	}
	if len(t.found) == 0 {
		return fmt.Errorf("%s: the trace has no actions; want lines such as 0 init", files[0])
	}
	for rank := range len(t.found) {
		segments, ok := t.found[rank]
		if !ok {
			return fmt.Errorf("%s: rank %d has no actions, and %d ranks have; want those of all ranks, in one file or in "+
				"the files of a list", files[0], rank, len(t.found))
		}
		t.ranks = append(t.ranks, segments)
	}
	t.found = nil
	return nil
}

// scan adds the lines of a file. Its error begins with the colon after the file's name.
func (t *trace) scan(i int) error {
	f, size, err := t.use(i)
	if err != nil {
		return fmt.Errorf(": %w", err)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f, 0, size), int(max(min(size, 1<<20), 16)))
	at, last := int64(0), -1
	for n := int64(1); ; n++ {
		line, err := readLine(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf(":%d: %w", n, err)
		}
		next := at + int64(len(line))
		if text := bytes.TrimSpace(line); len(text) > 0 && text[0] != '#' {
			rank, err := rankOf(text)
			if err != nil {
				return fmt.Errorf(":%d: %w", n, err)
			}
			if err := t.add(rank, segment{i, at, next, n}, rank == last); err != nil {
				return fmt.Errorf(":%d: %w", n, err)
			}
			last = rank
		}
		at = next
	}
}

// rankOf returns the rank that a line begins with.
func rankOf(line []byte) (int, error) {
	word, _, ok := strings.Cut(strings.ReplaceAll(string(line[:min(len(line), 64)]), "\t", " "), " ")
	rank, err := strconv.ParseUint(word, 10, 32)
	if err != nil || !ok || rank >= importing.MostRanks {
		return 0, fmt.Errorf("found %.60q; want a line such as 0 send 1 0 4096: the rank, the action, its fields", line)
	}
	return int(rank), nil
}

// add adds a line of a rank: to its last segment if the line before was the rank's too.
func (t *trace) add(rank int, s segment, goesOn bool) error {
	all := t.found[rank]
	if goesOn {
		all[len(all)-1].end = s.end
		return nil
	}
	if len(all) > 0 && all[0].file != s.file {
		return fmt.Errorf("an action of rank %d, which has others in %s; want all of a rank in one file", rank,
			t.files[all[0].file])
	}
	t.found[rank] = append(all, s)
	return nil
}

// readLine returns the next line with its end, valid until the next call; io.EOF after the last.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		long := bytes.Clone(line)
		for err == bufio.ErrBufferFull && len(long) <= maxLine {
			line, err = in.ReadSlice('\n')
			long = append(long, line...)
		}
		if len(long) > maxLine {
			return nil, fmt.Errorf("the line has more than %d bytes; this is no trace of SimGrid", maxLine)
		}
		line = long
	}
	if err == io.EOF && len(line) > 0 {
		err = nil
	}
	return line, err
}

// use opens a file in place of the one that is open: there may be more ranks than files may be open.
func (t *trace) use(i int) (file, int64, error) {
	if err := t.close(); err != nil {
		return nil, 0, err
	}
	f, size, err := t.open(t.files[i])
	if err != nil {
		return nil, 0, err
	}
	t.current, t.handle = i, f
	return f, size, nil
}

func (t *trace) close() error {
	if t.current < 0 {
		return nil
	}
	t.current = -1
	return t.handle.Close()
}

// lines reads the lines of a rank.
type lines struct {
	t        *trace
	segments []segment
	in       *bufio.Reader
	next     int   // the segment that is read next
	at       int64 // in it

	// of the line last read
	left int64 // bytes of the segment after it
	seg  int
	line int64
}

// linesOf begins to read the lines of a rank, in pieces of the given size.
func (t *trace) linesOf(rank int32, buffer int) *lines {
	l := &lines{t: t, segments: t.ranks[rank], seg: -1}
	size := int64(0)
	for _, s := range l.segments {
		size += s.end - s.at
	}
	buffer = int(min(int64(buffer), max(size, leastBuffer)))
	l.in = bufio.NewReaderSize(l, buffer)
	return l
}

// Read reads the segments as if they stood one after another.
func (l *lines) Read(p []byte) (n int, err error) {
	for n < len(p) && l.next < len(l.segments) {
		s := &l.segments[l.next]
		if l.at < s.at {
			l.at = s.at
		}
		if s.file != l.t.current {
			if n > 0 {
				return n, nil
			}
			if _, _, err := l.t.use(s.file); err != nil {
				return 0, err
			}
		}
		got, err := l.t.handle.ReadAt(p[n:min(int64(len(p)), int64(n)+s.end-l.at)], l.at)
		n += got
		l.at += int64(got)
		if l.at >= s.end {
			l.next, l.at = l.next+1, 0
		} else if err != nil {
			return n, fmt.Errorf("%s: %w", l.t.files[s.file], err)
		}
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// read returns the words of the rank's next line with an action; io.EOF after the last.
func (l *lines) read() ([]string, error) {
	for {
		text, err := readLine(l.in)
		if err != nil {
			return nil, err
		}
		for l.left <= 0 {
			l.seg++
			s := &l.segments[l.seg]
			l.left, l.line = s.end-s.at, s.line-1
		}
		l.left -= int64(len(text))
		l.line++
		words := strings.Fields(string(text))
		if len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			return words, nil
		}
	}
}

// bad returns an error at the line last read.
func (l *lines) bad(err error) error {
	if l.seg < 0 {
		return err
	}
	return fmt.Errorf("%s:%d: %w", l.t.files[l.segments[l.seg].file], l.line, err)
}

// IsList reports whether the file is a list of the files of a trace, as smpirun -replay takes: its first line names a
// file that is a trace.
func IsList(path string) bool {
	files, err := listed(path, false)
	return err == nil && isTraceFile(files)
}

// IsFolder reports whether a folder is one that Export made: it has a list, and the files that this names.
func IsFolder(path string) bool {
	files, err := listed(filepath.Join(path, ListName), true)
	return err == nil && isTraceFile(files)
}

// isTraceFile reports whether the first of some files is a trace.
func isTraceFile(files []string) bool {
	if len(files) == 0 {
		return false
	}
	f, size, err := openFile(files[0])
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, min(size, 4096))
	n, _ := f.ReadAt(head, 0)
	return IsTrace(head[:n])
}

// filesOf returns the files of a trace: those in a list (see listed), or the file itself.
func filesOf(path string, beside bool) ([]string, error) {
	f, size, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, min(size, 4096))
	n, err := f.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if IsTrace(head[:n]) {
		return []string{path}, nil
	}
	files, err := listed(path, beside)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s is empty; want a trace, or a list of its files", path)
	}
	return files, err
}

// mostListed is more than any list has in bytes.
const mostListed = 1 << 28

// listed returns the files in a list; see findListed.
func listed(path string, beside bool) ([]string, error) {
	f, _, err := bounded.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var files []string
	in := bufio.NewScanner(io.LimitReader(f, mostListed))
	for n := 1; in.Scan(); n++ {
		name := strings.TrimSpace(in.Text())
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if strings.IndexByte(name, 0) >= 0 {
			return nil, fmt.Errorf("%s:%d: found %.60q; want a trace, or the name of a file of one", path, n, name)
		}
		found, err := findListed(filepath.Dir(path), name, beside)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, n, err)
		}
		files = append(files, found)
	}
	return files, in.Err()
}

// findListed finds a file that a list in folder dir names: from the working folder on, as smpirun wants it, then from
// dir on, then by its last name in dir; with beside the other way round, as a folder of Export may have been copied. A
// list may be that of a stranger, so no file outside these two folders is looked at.
func findListed(dir, name string, beside bool) (string, error) {
	tries := []string{name}
	if !filepath.IsAbs(name) {
		tries = append(tries, filepath.Join(dir, name))
	}
	isNear := func(try string) bool { return bounded.IsBelow(".", try) || bounded.IsBelow(dir, try) }
	inside := slices.ContainsFunc(tries, isNear)
	tries = append(tries, filepath.Join(dir, filepath.Base(name)))
	if beside {
		slices.Reverse(tries)
	}
	for _, try := range tries {
		if !isNear(try) {
			continue
		}
		if _, err := os.Stat(try); err == nil {
			return try, nil
		}
	}
	if !inside {
		return "", fmt.Errorf("the file %.200q is outside the folder of the list, and of the one you are in; no other "+
			"files are read: copy it beside the list, or import the list from a folder that holds both", name)
	}
	return "", fmt.Errorf("there is no file %.200q, neither from here on nor beside the list; want a trace of SimGrid, "+
		"or a list of its files", name)
}
