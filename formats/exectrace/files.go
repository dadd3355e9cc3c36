package exectrace

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/jsonstream"
)

// IsTrace reports whether a file that begins so is an execution trace of PyTorch.
func IsTrace(head []byte) bool {
	has := func(key string) bool { return bytes.Contains(head, []byte(key)) }
	return bytes.HasPrefix(bytes.TrimLeft(head, " \t\r\n"), []byte("{")) && has(`"schema"`) && has(`"pid"`) &&
		has(`"nodes"`) && !has(`"traceEvents"`)
}

// IsFolder reports whether a folder has execution traces of PyTorch.
func IsFolder(path string) bool {
	_, err := find(path)
	return err == nil
}

// find returns the traces of a job: a file alone, or those of a folder.
func find(path string) ([]string, error) {
	return jsonstream.Files(path, isNamed, IsTrace,
		"execution trace of PyTorch (*.json, *.json.gz with schema and nodes)")
}

func isNamed(name string) bool { return strings.HasSuffix(strings.TrimSuffix(name, ".gz"), ".json") }

var lastNumber = regexp.MustCompile(`(\d+)\D*$`)

// rankOf finds the rank in the name of a file: dlrm_eg_3.json.
func rankOf(name string) (int32, bool) {
	m := lastNumber.FindStringSubmatch(strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".gz"), ".json"))
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 32)
	return int32(n), err == nil && n < importing.MostRanks
}

// setRanks gives each trace its rank: the one that its nodes tell, if those of all traces do and differ; else that of
// the file's name. A trace alone that does not tell it is of rank 0.
func setRanks(traces []*trace) error {
	seen := map[int32]bool{}
	for _, t := range traces {
		if t.own < 0 {
			t.own = t.number
		}
		if t.own >= 0 {
			seen[t.own] = true
		}
	}
	for _, t := range traces {
		n, ok := t.own, len(seen) == len(traces) || len(traces) == 1
		if !ok {
			n, ok = rankOf(t.File)
		}
		if !ok {
			return fmt.Errorf("%s: neither its nodes nor its name tell the rank; want a name such as trace-3.json", t.File)
		}
		t.Rank.Rank = max(n, 0)
	}
	return nil
}
