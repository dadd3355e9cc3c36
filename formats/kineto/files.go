package kineto

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/exectrace"
	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/jsonstream"
)

// kind is the format of a file of a job.
type kind int

const (
	other kind = iota
	traceFile
	flightFile
	executionFile
)

// headBytes is the length of the part of a file that shows its format.
const headBytes = 64 << 10

// IsTrace reports whether a file with this begin is a trace of PyTorch's profiler.
func IsTrace(head []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) &&
		(bytes.Contains(head, []byte(`"schemaVersion"`)) || bytes.Contains(head, []byte(`"distributedInfo"`)) ||
			bytes.Contains(head, []byte(`"deviceProperties"`)) || bytes.Contains(head, []byte(`"traceEvents"`)))
}

// kindOf returns the kind of a file by its begin.
func kindOf(path string) (kind, error) {
	f, err := jsonstream.Open(path)
	if err != nil {
		return other, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, headBytes))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return other, fmt.Errorf("%s: %w", path, err)
	}
	switch {
	case IsTrace(head):
		return traceFile, nil
	case bytes.Contains(head, []byte(`"entries"`)) && bytes.Contains(head, []byte(`"collective_seq_id"`)):
		return flightFile, nil
	case exectrace.IsTrace(head):
		return executionFile, nil
	}
	return other, nil
}

// files are the files of a job: traces of processes, dumps of the flight recorder by rank, and execution traces.
type files struct {
	traces     []string
	flights    map[int32]string
	executions []string
}

// find finds the files of a job: a file alone, or those of a folder. An error names all files that cannot be read; f
// has the others.
func find(path string) (f *files, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	f = &files{flights: map[int32]string{}}
	if !info.IsDir() {
		f.traces = []string{path}
		return f, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var unread []error
	for _, e := range entries { // but for hidden ones, such as an editor's lock of a trace
		if !strings.HasPrefix(e.Name(), ".") && strings.HasSuffix(strings.TrimSuffix(e.Name(), ".gz"), ".json") {
			unread = append(unread, f.add(filepath.Join(path, e.Name())))
		}
	}
	if err := errors.Join(unread...); err != nil {
		return f, err
	}
	if len(f.traces) == 0 {
		return nil, fmt.Errorf("%s has no trace of PyTorch's profiler (*.json, *.json.gz with traceEvents)", path)
	}
	slices.Sort(f.traces)
	slices.Sort(f.executions)
	return f, nil
}

// add adds a file of the folder, unless it is of another kind.
func (f *files) add(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	k, err := kindOf(path)
	switch k {
	case traceFile:
		f.traces = append(f.traces, path)
	case flightFile:
		rank, ok := rankOf(filepath.Base(path))
		if !ok {
			return fmt.Errorf("%s: no number of a rank in the name of a flight recorder's dump; want one as fr-3.json",
				path)
		}
		f.flights[rank] = path
	case executionFile:
		f.executions = append(f.executions, path)
	}
	return err
}

// IsFolder reports whether a folder has traces of PyTorch's profiler; others of its files may be unreadable, which
// ImportPath says.
func IsFolder(path string) bool {
	f, _ := find(path)
	return f != nil && len(f.traces) > 0
}

var (
	rankWord   = regexp.MustCompile(`(?i)(?:rank|worker)[-_.]?(\d+)`)
	lastNumber = regexp.MustCompile(`(\d+)\D*$`)
)

// rankOf finds the rank in the name of a file: rank-3.json, worker3_step_12.json, fr-3.json.
func rankOf(name string) (int32, bool) {
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".json")
	m := rankWord.FindStringSubmatch(name)
	if m == nil {
		m = lastNumber.FindStringSubmatch(name)
	}
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	return int32(n), err == nil && n < importing.MostRanks
}
