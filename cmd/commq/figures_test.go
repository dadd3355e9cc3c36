package main

import (
	"errors"
	"image"
	"image/png"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/plot"
)

// The page docs/FIGURES.md shows pictures, each with the command that draws it. The test draws them again and compares;
// with -update it writes them. Runs that are not in this repository are in the store that $COMMQ_FIGURES names; without
// it their pictures are drawn from their answers in docs/validation/measures.

const (
	figuresPage = "../../docs/FIGURES.md"
	figuresDir  = "../../docs"
	mostBytes   = 2 << 20 // of all pictures together
)

var (
	pictureLink = regexp.MustCompile(`!\[[^\]]*\]\(([^)]+)\)`)
	plotLine    = regexp.MustCompile(`(?m)^    (commq (?:query|simulate|critical-path) .* --plot (\S+))$`)
	captureLoop = regexp.MustCompile(`(?s)\n    for run in (.*?); do\n`)
)

// figure is a picture of the page.
type figure struct {
	args []string // of commq, without --plot
	asks []string // of them, those of the question
	file string   // from docs
	runs []string // names and patterns
}

func readFigures(t *testing.T) (all []figure, captured []string) {
	t.Helper()
	text, err := os.ReadFile(figuresPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range plotLine.FindAllStringSubmatch(string(text), -1) {
		args, err := shellquote.Split(m[1])
		if err != nil {
			t.Fatalf("%s: %v", m[1], err)
		}
		file, ok := strings.CutPrefix(m[2], "docs/")
		if !ok {
			t.Errorf("%s: want a picture in docs", m[1])
		}
		f := figure{file: file}
		for i := 1; i < len(args); i++ {
			switch args[i] {
			case "--plot":
				i++
				continue
			case "--run":
				f.runs = append(f.runs, args[i+1])
				f.args = append(f.args, args[i], args[i+1])
				i++
				continue
			}
			f.args, f.asks = append(f.args, args[i]), append(f.asks, args[i])
		}
		all = append(all, f)
	}
	if m := captureLoop.FindStringSubmatch(string(text)); m != nil {
		captured = strings.Fields(strings.ReplaceAll(m[1], "\\", " "))
	}
	if len(captured) == 0 {
		t.Fatalf("%s does not say how to capture the runs that are not here", figuresPage)
	}
	return all, captured
}

// TestFiguresPageIsComplete: the page has a command for each picture and a picture for each command, there are no
// other picture files, and all together stay small.
func TestFiguresPageIsComplete(t *testing.T) {
	figures, _ := readFigures(t)
	var drawn, shown []string
	for _, f := range figures {
		drawn = append(drawn, f.file)
	}
	var size int64
	used := map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range pictureLink.FindAllStringSubmatch(string(text), -1) {
			used[filepath.Clean(filepath.Join(filepath.Dir(path), m[1]))] = true
			if path == figuresPage {
				shown = append(shown, m[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(drawn, shown) || len(drawn) < 11 {
		t.Errorf("%s shows the pictures\n%q\nand has commands for\n%q", figuresPage, shown, drawn)
	}
	pictures, err := filepath.Glob(filepath.Join(figuresDir, "img", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pictures {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
		if !used[filepath.Clean(p)] {
			t.Errorf("no page shows %s", p)
		}
	}
	if size > mostBytes {
		t.Errorf("the pictures take %d bytes, more than %d", size, mostBytes)
	}
}

// TestFiguresMatchTheirCommands draws the pictures again.
func TestFiguresMatchTheirCommands(t *testing.T) {
	figures, captured := readFigures(t)
	store, more := t.TempDir(), os.Getenv("COMMQ_FIGURES")
	have := linkRuns(t, store, runsDir)
	for _, name := range captured {
		if slices.Contains(have, name) {
			t.Errorf("%s says how to capture %s, which is in this repository", figuresPage, name)
		}
	}
	if more != "" {
		linkRuns(t, store, more)
	}
	for _, f := range figures {
		t.Run(f.file, func(t *testing.T) {
			committed := filepath.Join(figuresDir, f.file)
			to := filepath.Join(t.TempDir(), filepath.Base(f.file))
			if *update {
				to = committed
			}
			missing := more == "" && f.needs(t, captured)
			if !missing {
				commq(t, append(slices.Clone(f.args), "--store", store, "--plot", to, "--replace")...)
			}
			if table := f.table(); table != "" {
				fromTable := to
				if !missing {
					fromTable = filepath.Join(t.TempDir(), "table.png")
				}
				f.drawFrom(t, table, fromTable)
				if differ := differingPixels(t, to, fromTable); differ > 0.001 {
					t.Errorf("drawn from the rows in %s, %g of its pixels are others", measuresDir, differ)
				}
			} else if missing {
				t.Fatal("its runs are not in this repository, and " + measuresDir + " does not have their answers")
			}
			if differ := differingPixels(t, committed, to); differ > 0.001 {
				t.Errorf("%g of its pixels are others; look at it after go test ./cmd/commq -run Figures -update", differ)
			}
		})
	}
}

// table returns the name of the table in docs/validation/measures that answers the figure's question; "" if there is none.
func (f figure) table() string {
	for table, question := range measuredBy {
		if slices.Equal(f.asks, append([]string{"query"}, question...)) {
			return table
		}
	}
	return ""
}

// drawFrom draws the figure from the rows of its runs in a table.
func (f figure) drawFrom(t *testing.T, table, file string) {
	t.Helper()
	all, err := queries.Named(measuredBy[table][:1])
	if err != nil {
		t.Fatal(err)
	}
	q, rows := all[0], readMeasures(t)[table]
	var runs []queries.Run
	answer := &tableRows{columns: append([]queries.Column{{Name: "run", Type: "VARCHAR"}}, q.Columns...)}
	for _, pattern := range f.runs {
		for _, name := range measuredRuns {
			if ok, err := filepath.Match(pattern, name); err != nil {
				t.Fatal(err)
			} else if ok {
				runs = append(runs, queries.Run{Name: name})
				answer.rows = append(answer.rows, rows[name]...)
			}
		}
	}
	args := map[string]string{}
	for i := 1; i+1 < len(measuredBy[table]); i += 2 {
		args[strings.TrimPrefix(measuredBy[table][i], "--")] = measuredBy[table][i+1]
	}
	d, err := q.Drawing(answer, runs, args)
	if err != nil {
		t.Fatal(err)
	}
	to, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Draw(to, plot.Options{Format: "png"}), to.Close()); err != nil {
		t.Fatal(err)
	}
}

// tableRows are the rows of an answer, as text.
type tableRows struct {
	columns []queries.Column
	rows    [][]string
	next    int
}

func (r *tableRows) Columns() []queries.Column { return r.columns }
func (r *tableRows) Err() error                { return nil }
func (r *tableRows) Close() error              { return nil }

func (r *tableRows) Next() bool {
	r.next++
	return r.next <= len(r.rows)
}

func (r *tableRows) Row() []any {
	values := make([]any, len(r.columns))
	for i, text := range r.rows[r.next-1] {
		switch r.columns[i].Type {
		case "VARCHAR":
			values[i] = text
		case "DOUBLE":
			values[i], _ = strconv.ParseFloat(text, 64)
		default:
			if n, err := strconv.ParseInt(text, 10, 64); err == nil { // else null
				values[i] = n
			}
		}
	}
	return values
}

// needs reports whether the figure has a run that is captured for the page.
func (f figure) needs(t *testing.T, captured []string) bool {
	t.Helper()
	return slices.ContainsFunc(captured, func(name string) bool {
		return slices.ContainsFunc(f.runs, func(run string) bool {
			ok, err := filepath.Match(run, name)
			if err != nil {
				t.Fatalf("%s: %v", run, err)
			}
			return ok
		})
	})
}

// linkRuns links the runs of a folder into a store, and names them.
func linkRuns(t *testing.T, store, folder string) (names []string) {
	t.Helper()
	manifests, err := filepath.Glob(filepath.Join(folder, "*", "manifest.json"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("no run in %s: %v", folder, err)
	}
	for _, m := range manifests {
		dir, err := filepath.Abs(filepath.Dir(m))
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(dir)
		if err := os.Symlink(dir, filepath.Join(store, name)); err != nil && !os.IsExist(err) {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	return names
}

// differingPixels returns the share of pixels that differ visibly between two pictures: rounding, which differs
// between processors, makes edges a little lighter or darker.
func differingPixels(t *testing.T, a, b string) float64 {
	t.Helper()
	before, after := readPNG(t, a), readPNG(t, b)
	if before.Bounds() != after.Bounds() {
		return 1
	}
	n, all := 0, before.Bounds()
	for y := all.Min.Y; y < all.Max.Y; y++ {
		for x := all.Min.X; x < all.Max.X; x++ {
			r1, g1, b1, _ := before.At(x, y).RGBA()
			r2, g2, b2, _ := after.At(x, y).RGBA()
			if max(r1, r2)-min(r1, r2) > 0x2000 || max(g1, g2)-min(g1, g2) > 0x2000 ||
				max(b1, b2)-min(b1, b2) > 0x2000 {
				n++
			}
		}
	}
	return float64(n) / float64(all.Dx()*all.Dy())
}

func readPNG(t *testing.T, path string) image.Image {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return img
}
