package liballprof

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/internal/bounded"
)

// IsTrace reports whether a file that begins like this is one of liballprof.
func IsTrace(head []byte) bool {
	return bytes.HasPrefix(head, []byte("# collprof ")) || bytes.HasPrefix(head, []byte("# htor's PMPI Tracer"))
}

// IsFolder reports whether a folder has the files of one trace.
func IsFolder(path string) bool {
	_, err := filesIn(path)
	return err == nil
}

// trace is a trace: its files, by rank.
type trace struct {
	path  string // as the user gave it
	name  string // of the trace, for its run
	files []*file
}

// file is the file of a rank, without its calls.
type file struct {
	path, program, host string
	size                int64
	// early and late are the offsets of the clock behind that of rank 0, in ns, at the times earlyAt and lateAt on this
	// clock.
	early, late       int64
	earlyAt, lateAt   int64
	hasEarly, hasLate bool
	seconds           bool  // the file has offsets in seconds, not microseconds
	first             int64 // corrected time of its first call
}

// openTrace finds the files of a trace: path is the file of a rank, or their folder.
func openTrace(path string) (*trace, error) {
	t := &trace{path: path}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var names []string
	if info.IsDir() {
		t.name = filepath.Base(path)
		names, err = filesIn(path)
	} else {
		prefix, suffix, _ := parts(filepath.Base(path))
		t.name = cmp.Or(strings.TrimRight(prefix, "-_."), "trace")
		names, err = filesLike(filepath.Dir(path), prefix, suffix)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		t.files = append(t.files, &file{path: name})
	}
	return t, nil
}

// parts returns what stands before and after the number of the rank in the name of a file, and the number.
func parts(name string) (prefix, suffix string, rank int) {
	end := len(name)
	for end > 0 && (name[end-1] < '0' || name[end-1] > '9') {
		end--
	}
	begin := end
	for begin > 0 && name[begin-1] >= '0' && name[begin-1] <= '9' {
		begin--
	}
	rank, err := strconv.Atoi(name[begin:end])
	if err != nil {
		return name, "", -1
	}
	return name[:begin], name[end:], rank
}

// filesIn returns the files of the one trace in a folder, by rank.
func filesIn(dir string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	found := map[[2]string]bool{}
	for _, e := range all {
		if e.Type().IsRegular() && begins(filepath.Join(dir, e.Name())) {
			prefix, suffix, _ := parts(e.Name())
			found[[2]string{prefix, suffix}] = true
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s has the files of %d traces of liballprof; want those of one, or the name of a file", dir,
			len(found))
	}
	for k := range found {
		return filesLike(dir, k[0], k[1])
	}
	return nil, nil
}

// begins reports whether a file begins like those of liballprof.
func begins(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 32)
	n, _ := io.ReadFull(f, head)
	return IsTrace(head[:n])
}

// filesLike returns the files with that prefix and suffix, by rank.
func filesLike(dir, prefix, suffix string) ([]string, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	byRank := map[int]string{}
	for _, e := range all {
		if p, s, rank := parts(e.Name()); p == prefix && s == suffix && rank >= 0 {
			if other, ok := byRank[rank]; ok {
				return nil, fmt.Errorf("%s and %s are both of rank %d", other, e.Name(), rank)
			}
			byRank[rank] = e.Name()
		}
	}
	names := make([]string, len(byRank))
	for rank := range names {
		name, ok := byRank[rank]
		if !ok {
			return nil, fmt.Errorf("%s: no file of rank %d; there are %d files %s*%s, want those of ranks 0, 1, 2, ...", dir,
				rank, len(byRank), prefix, suffix)
		}
		names[rank] = filepath.Join(dir, name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no files %s*%s with the number of a rank in their names; name the file of a rank, or the folder of all", dir, prefix, suffix)
	}
	return names, nil
}

// header reads a line that begins with #.
func (f *file) header(line string) (err error) {
	if f.program == "" {
		f.program = strings.TrimSpace(strings.TrimPrefix(line, "#"))
		f.program = strings.TrimSuffix(strings.TrimSuffix(f.program, " output file"), " Output File")
		return nil
	}
	key, value, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "#")), ":")
	value = strings.TrimSpace(value)
	switch key {
	case "host", "hostname":
		f.host = value
	case "Init clockdiff", "clockdiff":
		f.seconds, f.hasEarly = key == "clockdiff", true
		f.early, err = f.offset(value)
	case "Finalize clockdiff":
		f.hasLate = true
		f.late, err = f.offset(value)
	}
	return err
}

// mostOffset is the largest offset of a clock, in ns: clocks that count from 1970 and from the start of a host differ
// by less until 2033.
const mostOffset = 2e18

// offset reads the offset of a clock, in ns.
func (f *file) offset(value string) (int64, error) {
	word, _, _ := strings.Cut(value, " ")
	x, err := strconv.ParseFloat(word, 64)
	if f.seconds {
		x *= 1e6
	}
	if x *= 1e3; err != nil || !(math.Abs(x) <= mostOffset) {
		return 0, fmt.Errorf("the offset %q of the clock; want a number of at most 2e9 seconds", value)
	}
	return int64(math.Round(x)), nil
}

// settle makes an offset that is told only once one for all times.
func (f *file) settle() {
	switch {
	case !f.hasLate:
		f.late = f.early
	case !f.hasEarly:
		f.early = f.late
	}
}

// correct returns a time of the file on the clock of rank 0.
func (f *file) correct(at int64) int64 {
	span := f.lateAt - f.earlyAt
	if span <= 0 {
		return at + f.early
	}
	part := float64(min(max(at-f.earlyAt, 0), span)) / float64(span)
	return at + f.early + int64(math.Round(part*float64(f.late-f.early)))
}

// lines reads the lines of a file.
type lines struct {
	in     *os.File
	text   *bufio.Reader
	path   string
	number int
	at     int64
}

func (f *file) open() (*lines, error) {
	in, _, err := bounded.OpenRegular(f.path)
	if err != nil {
		return nil, err
	}
	return &lines{in: in, text: bufio.NewReaderSize(in, 1<<16), path: f.path}, nil
}

// longest is more than the longest line: counts for 2^20 ranks.
const longest = 1 << 26

// next returns the next line that is not empty; false after the last.
func (l *lines) next() (string, bool, error) {
	var long []byte
	for {
		piece, err := l.text.ReadSlice('\n')
		l.at += int64(len(piece))
		if errors.Is(err, bufio.ErrBufferFull) {
			if long = append(long, piece...); len(long) < longest {
				continue
			}
			err = fmt.Errorf("more than %d characters", longest)
		}
		l.number++
		if err != nil && err != io.EOF {
			return "", false, l.bad(err)
		}
		line := strings.TrimSpace(string(slices.Concat(long, piece)))
		long = long[:0]
		if err == io.EOF && isCut(line) {
			return "", false, l.bad(fmt.Errorf("%q ends the file within a line; want the whole file", line[:min(len(line), 40)]))
		}
		if line != "" || err == io.EOF {
			return line, line != "", nil
		}
	}
}

// isCut reports whether what stands after the last end of a line is only a part of one.
func isCut(line string) bool {
	return line != "" && !strings.HasPrefix(line, "#") &&
		!(strings.HasPrefix(line, "MPI_Finalize:") && strings.HasSuffix(line, ":-"))
}

func (l *lines) bad(err error) error { return fmt.Errorf("%s: line %d: %w", l.path, l.number, err) }
