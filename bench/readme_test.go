package bench

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/perf/benchfmt"

	"github.com/commq/commq/internal/stats"
	"github.com/commq/commq/internal/units"
)

var update = flag.Bool("update", false, "write the figures of README.md anew")

// figureName is how the first cell of a row begins that make bench measures.
var figureName = regexp.MustCompile("^`([a-z-]+)`: ")

// The cells of a row in README.md's table, of which the first is before the first |.
const (
	cellFigure = iota + 1
	cellCommq
	cellPeer
	cellLimit
	cellRatio
	cellCommit
	cells
)

// The rows of README.md that make bench measures are those of the last file of figures. scripts/bench writes them with
// -update.
func TestREADMEHasTheLastFigures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("figures", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of figures: %v", len(files), err)
	}
	last := slices.Max(files)
	medians, commit := readFigures(t, last)
	const page = "README.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		row := strings.Split(line, "|")
		if len(row) < cells || !figureName.MatchString(strings.TrimSpace(row[cellFigure])) {
			continue
		}
		name := figureName.FindStringSubmatch(strings.TrimSpace(row[cellFigure]))[1]
		ratio, measured := medians[name+" ratio"]
		if !measured {
			t.Errorf("%s has a row for %s, which %s does not have", page, name, last)
			continue
		}
		found[name] = true
		peer, _, _ := strings.Cut(strings.TrimSpace(row[cellPeer]), ": ")
		if s, ok := medians[name+" peer-sec"]; ok {
			peer += ": " + units.Duration(int64(s*1e9))
		}
		own := ""
		if s, ok := medians[name+" own-sec"]; ok {
			own = units.Duration(int64(s * 1e9))
		}
		row[cellCommq], row[cellPeer], row[cellCommit] = " "+own+" ", " "+peer+" ", " "+commit+" "
		row[cellRatio] = " " + strconv.FormatFloat(ratio, 'g', 3, 64) + " "
		lines[i] = strings.Join(row, "|")
	}
	for key := range medians {
		if name, isRatio := strings.CutSuffix(key, " ratio"); isRatio && !found[name] {
			t.Errorf("%s has no row for %s", page, name)
		}
	}
	got := strings.Join(lines, "\n")
	switch {
	case got == string(text):
	case *update:
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from %s; make bench or go test ./bench -run README -update writes it", page, last)
	}
}

// readFigures returns the median of each figure and unit, and the commit.
func readFigures(t *testing.T, name string) (medians map[string]float64, commit string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	values := map[string][]float64{}
	reader := benchfmt.NewReader(f, name)
	for reader.Scan() {
		r, ok := reader.Result().(*benchfmt.Result)
		if !ok {
			continue
		}
		commit = r.GetConfig("commit")
		for _, v := range r.Values {
			key := fmt.Sprintf("%s %s", strings.TrimPrefix(string(r.Name), "Figures/"), v.Unit)
			values[key] = append(values[key], v.Value)
		}
	}
	if err := reader.Err(); err != nil || len(values) == 0 || commit == "" {
		t.Fatalf("%s: %d figures of commit %q: %v", name, len(values), commit, err)
	}
	medians = map[string]float64{}
	for key, all := range values {
		medians[key] = stats.Median(all)
	}
	return medians, commit
}
