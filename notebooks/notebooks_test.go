// Package notebooks tests the Jupyter notebooks beside it.
package notebooks

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

var update = flag.Bool("update", false, "execute the notebooks and write those whose outputs are others")

// maxBytes is the most that a notebook may take.
const maxBytes = 300 << 10

// varying are texts in outputs that another execution, or one on another machine, would have otherwise.
var varying = map[string]*regexp.Regexp{
	"an address in memory":       regexp.MustCompile(` at 0x[0-9a-f]+`),
	"an id that is made anew":    regexp.MustCompile(`id="T_[0-9a-f]+`),
	"a path of a machine":        regexp.MustCompile(`/(home|root|tmp|usr|opt|var|mnt|private|Users)/`),
	"a date or a time of day":    regexp.MustCompile(`\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d`),
	"a path of Windows":          regexp.MustCompile(`[A-Z]:\\\\`),
	"a warning or a traceback":   regexp.MustCompile(`Warning|Traceback`),
	"how long something took":    regexp.MustCompile(`(?i)wall time|elapsed`),
	"codes that colour terminal": regexp.MustCompile(`\x1b\[`),
}

// live are the notebooks that capture a program, whose times are others each time: their outputs are compared by kind.
var live = []string{"5-capture.ipynb"}

// notebook is a notebook as nbformat 4 has it.
type notebook struct {
	Cells []cell `json:"cells"`
}

type cell struct {
	Type           string   `json:"cell_type"`
	Source         lines    `json:"source"`
	Outputs        []output `json:"outputs"`
	ExecutionCount *int     `json:"execution_count"`
}

type output struct {
	Type string           `json:"output_type"`
	Name string           `json:"name"` // of a stream
	Text lines            `json:"text"` // of a stream
	Data map[string]lines `json:"data"` // by media type
}

// lines is a text, which a notebook may have as a list of lines.
type lines string

func (l *lines) UnmarshalJSON(text []byte) error {
	var list []string
	if err := json.Unmarshal(text, &list); err == nil {
		*l = lines(strings.Join(list, ""))
		return nil
	}
	return json.Unmarshal(text, (*string)(l))
}

const pngType = "image/png"

// notebooks lists the notebooks by their file names.
func notebooks(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.ipynb")
	if err != nil || len(files) < 5 {
		t.Fatalf("found the notebooks %v, want at least five: %v", files, err)
	}
	return files
}

func read(t *testing.T, path string) (n notebook, text []byte) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &n); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return n, text
}

// TestNotebooksGiveTheirOutputs executes the notebooks and compares. It takes Python packages, which scripts/notebooks
// installs the first time, so only make test does it, and -update. It comes first, so that the
// other tests see what it writes.
func TestNotebooksGiveTheirOutputs(t *testing.T) {
	if os.Getenv("COMMQ_TEST_ALL") == "" && !*update {
		t.Skip("$COMMQ_TEST_ALL is not set: go test ./notebooks -update executes the notebooks")
	}
	testenv.Need(t, "python3", "flock")
	testenv.MPI(t, "openmpi")
	folder := t.TempDir()
	c := exec.Command("../scripts/notebooks", "run", folder)
	cache, remove, err := testenv.Cache() // of compiled capture libraries
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(remove)
	c.Env = testenv.Environ("COMMQ_COMMAND="+testenv.Command(t, ".."), "COMMQ_CACHE="+cache)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range notebooks(t) {
		got, text := read(t, filepath.Join(folder, name))
		want, _ := read(t, name)
		report := t.Errorf
		if *update {
			report = t.Logf
		}
		if (different(want, got, name, report) || slices.Contains(live, name)) && *update {
			if err := os.WriteFile(name, canonical(t, name, text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	readInputs(t)
}

// Readers on a web page see the outputs that are committed.
func TestNotebooksAreCommittedWithOutputs(t *testing.T) {
	for _, name := range notebooks(t) {
		n, text := read(t, name)
		if len(text) > maxBytes {
			t.Errorf("%s has %d bytes, more than %d", name, len(text), maxBytes)
		}
		if same := canonical(t, name, text); !bytes.Equal(text, same) {
			t.Errorf("%s is not as go test ./notebooks -update writes it", name)
		}
		code, pictures, tables := 0, 0, 0
		for i, c := range n.Cells {
			if c.Type != "code" {
				continue
			}
			code++
			if c.ExecutionCount == nil || *c.ExecutionCount != code {
				t.Errorf("%s: cell %d was not executed as number %d: notebooks are executed from top to bottom", name, i+1, code)
			}
			if len(c.Outputs) == 0 {
				t.Errorf("%s: cell %d shows nothing", name, i+1)
			}
			for _, o := range c.Outputs {
				if o.Type == "error" || o.Name == "stderr" {
					t.Errorf("%s: cell %d has an error: %s", name, i+1, o.Text)
				}
				if o.Data[pngType] != "" {
					pictures++
				}
				if o.Data["text/html"] != "" {
					tables++
				}
				for what, found := range o.texts() {
					t.Errorf("%s: cell %d shows %s: %q", name, i+1, what, found)
				}
			}
		}
		if code == 0 || pictures == 0 || tables == 0 {
			t.Errorf("%s has %d cells of code, %d pictures and %d tables, want some of each", name, code, pictures, tables)
		}
	}
}

// texts finds what varies in the texts of an output.
func (o output) texts() map[string]string {
	found := map[string]string{}
	all := map[string]lines{"": o.Text}
	for media, data := range o.Data {
		if media != pngType {
			all[media] = data
		}
	}
	for _, text := range all {
		for what, pattern := range varying {
			if m := pattern.FindString(string(text)); m != "" {
				found[what] = m
			}
		}
	}
	return found
}

// Notebooks ask commq through its package, and leave out MPI_Init and MPI_Finalize as the queries do.
func TestNotebooksRepeatNoQuery(t *testing.T) {
	for _, name := range notebooks(t) {
		n, _ := read(t, name)
		var code strings.Builder
		for _, c := range n.Cells {
			if c.Type == "code" {
				code.WriteString(string(c.Source))
			}
		}
		if !strings.Contains(code.String(), "import commq\n") {
			t.Errorf("%s does not use the package commq", name)
		}
		for _, no := range []string{".parquet", "MPI_Init", "MPI_Finalize", "manifest.json", "import duckdb"} {
			if strings.Contains(code.String(), no) {
				t.Errorf("%s: its code has %s; commq has tables and queries for that", name, no)
			}
		}
	}
}

// different reports, and returns, whether an execution gave something else than the notebook has.
func different(want, got notebook, name string, report func(string, ...any)) bool {
	if len(want.Cells) != len(got.Cells) {
		report("%s has %d cells, executed %d", name, len(want.Cells), len(got.Cells))
		return true
	}
	differs := false
	for i, w := range want.Cells {
		g := got.Cells[i]
		if reflect.DeepEqual(w, g) {
			continue
		}
		differ := cell.differs
		if slices.Contains(live, name) {
			differ = cell.differsInKind
		}
		if why := differ(w, g); why != "" {
			report("%s: cell %d %s; go test ./notebooks -update writes it", name, i+1, why)
			differs = true
		}
	}
	return differs
}

// differs says what is different between two cells, or "". Pictures may differ in some pixels, because machines round
// otherwise.
func (c cell) differs(d cell) string {
	if c.Source != d.Source || c.Type != d.Type {
		return "has another source"
	}
	if !reflect.DeepEqual(c.ExecutionCount, d.ExecutionCount) || len(c.Outputs) != len(d.Outputs) {
		return "has another number, or another number of outputs"
	}
	for i, o := range c.Outputs {
		p := d.Outputs[i]
		if o.Type != p.Type || o.Name != p.Name || o.Text != p.Text || len(o.Data) != len(p.Data) {
			return "prints something else"
		}
		for media, data := range o.Data {
			switch other := p.Data[media]; {
			case data == other:
			case media != pngType:
				return "shows\n" + string(other) + "\nno longer\n" + string(data)
			case !samePicture(data, other):
				return "draws another picture"
			}
		}
	}
	return ""
}

// differsInKind says what is different between two cells but for the values that their outputs show, or "".
func (c cell) differsInKind(d cell) string {
	for _, e := range []*cell{&c, &d} {
		e.Outputs = slices.Clone(e.Outputs)
		for i, o := range e.Outputs {
			e.Outputs[i] = output{Type: o.Type, Name: o.Name, Data: map[string]lines{}}
			for media := range o.Data {
				e.Outputs[i].Data[media] = ""
			}
		}
	}
	return c.differs(d)
}

// samePicture reports whether two pictures have the same size and at most one pixel in a hundred is clearly different.
func samePicture(a, b lines) bool {
	x, errX := picture(a)
	y, errY := picture(b)
	if errX != nil || errY != nil || x.Bounds() != y.Bounds() {
		return false
	}
	others, r := 0, x.Bounds()
	for i := r.Min.Y; i < r.Max.Y; i++ {
		for j := r.Min.X; j < r.Max.X; j++ {
			if distance(x, y, j, i) > 0x3000 {
				others++
			}
		}
	}
	return others <= r.Dx()*r.Dy()/100
}

func picture(data lines) (image.Image, error) {
	return png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(string(data))))
}

// distance returns the greatest difference of a colour of a pixel, of 0xffff.
func distance(x, y image.Image, j, i int) int {
	r, g, b, _ := x.At(j, i).RGBA()
	s, h, c, _ := y.At(j, i).RGBA()
	most := 0
	for _, d := range []int{int(r) - int(s), int(g) - int(h), int(b) - int(c)} {
		most = max(most, d, -d)
	}
	return most
}

func TestPicturesAreTold(t *testing.T) {
	n, _ := read(t, "1-riesen-figures.ipynb")
	var pictures []lines
	for _, c := range n.Cells {
		for _, o := range c.Outputs {
			if p := o.Data[pngType]; p != "" {
				pictures = append(pictures, p)
			}
		}
	}
	for i, a := range pictures {
		for j, b := range pictures {
			if same := samePicture(a, b); same != (i == j) {
				t.Errorf("pictures %d and %d: same %v", i+1, j+1, same)
			}
		}
	}
}

// canonical returns a notebook without what an execution writes beside the outputs: times, and the version of Python.
// Its form is that of nbformat, so that Jupyter changes nothing when it saves the file.
func canonical(t *testing.T, name string, text []byte) []byte {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var n map[string]any
	if err := d.Decode(&n); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	n["metadata"].(map[string]any)["language_info"] = map[string]string{"name": "python"}
	for _, c := range n["cells"].([]any) {
		c.(map[string]any)["metadata"] = struct{}{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(n); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return b.Bytes()
}

// readInputs opens what the notebooks were made from, so that go test does not take a result from its cache when one
// changed.
func readInputs(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"../scripts/notebooks", "../scripts/venv", "../python/requirements.txt", "*.py",
		"../python/src/commq/*", "../testdata/runs/*/manifest.json"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no file %s: %v", pattern, err)
		}
		for _, f := range files {
			if _, err := os.ReadFile(f); err != nil {
				t.Fatal(err)
			}
		}
	}
}
