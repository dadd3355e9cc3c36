package inspector

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/commq/commq/formats/jsonstream"
)

// headBytes is how much of a file tells what it is.
const headBytes = 4096

// IsTrace reports whether a file that begins so is a log of NCCL Inspector.
func IsTrace(head []byte) bool {
	has := func(key string) bool { return bytes.Contains(head, []byte(key)) }
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) && has(`"header"`) && has(`"n_ranks"`) &&
		(has(`"coll_perf"`) || has(`"p2p_perf"`) || has(`"dump_stats"`))
}

// IsFolder reports whether a folder has logs of NCCL Inspector.
func IsFolder(path string) bool {
	files, err := find(path)
	return err == nil && len(files) > 0
}

// find returns the logs of a job: a file alone, or those of a folder.
func find(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return []string{path}, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		full := filepath.Join(path, e.Name())
		if !e.Type().IsRegular() && e.Type()&fs.ModeSymlink == 0 {
			continue
		}
		is, err := isTraceFile(full)
		if err != nil {
			return nil, err
		}
		if is {
			files = append(files, full)
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no logs of NCCL Inspector; want files of records with header and coll_perf or p2p_perf "+
			"(NCCL_INSPECTOR_PROM_DUMP=0)", path)
	}
	slices.Sort(files)
	return files, nil
}

// isTraceFile looks at how a file begins. What cannot be read as a file, such as a folder behind a link, is none.
func isTraceFile(path string) (bool, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false, nil
	}
	f, err := jsonstream.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, headBytes))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	return IsTrace(head), nil
}
