package main

import (
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/commq/commq"

// listed is the output of go list -json for a package.
type listed struct {
	ImportPath string
	Imports    []string
}

// arrows lists, for each top folder of the project, the others that it may import; cmd may import all.
var arrows = map[string][]string{
	"schema":   {"schema"},
	"writer":   {"writer", "schema", "internal"},
	"run":      {"run", "writer", "schema", "internal"},
	"models":   {"models", "run", "schema", "internal"},
	"diagnose": {"diagnose", "models", "run", "schema", "internal"},
	"capture":  {"capture", "writer", "models", "run", "schema", "internal"},
	"formats":  {"formats", "writer", "models", "run", "schema", "internal"},
	"replay":   {"replay", "capture", "writer", "models", "run", "schema"},
	"queries":  {"queries", "schema", "internal"},
	"detect":   {"detect", "models", "run", "schema", "internal"},
	"predict":  {"predict", "models", "run", "schema", "internal"},
	"compare":  {"compare", "run", "schema", "internal"},
	"ui":       {"ui", "queries", "run", "internal"},
	"internal": {"internal"},
}

// only lists the top folders that may import a foreign package: only writer and queries (for its output formats) use
// Parquet, only queries and formats (for databases of other tools) use SQL, only cmd uses flags, only models uses YAML.
var only = map[string][]string{
	"github.com/apache/arrow-go/v18/parquet":         {"writer", "queries"},
	"github.com/apache/arrow-go/v18/parquet/file":    {"writer", "queries"},
	"github.com/apache/arrow-go/v18/parquet/pqarrow": {"writer", "queries"},
	"github.com/minio/minio-go/v7":                   {"writer"},
	"database/sql":                                   {"queries", "formats"},
	"modernc.org/sqlite":                             {"formats"},
	"github.com/duckdb/duckdb-go/v2":                 {"queries"},
	"github.com/trinodb/trino-go-client/trino":       {"queries"},
	"github.com/spf13/cobra":                         {"cmd"},
	"github.com/apache/arrow-go/v18/arrow":           {"writer", "queries"},
	"go.yaml.in/yaml/v4":                             {"models", "internal", "compare"},
	"golang.org/x/perf/benchmath":                    {"compare"},
}

// within lists, for some packages, the packages of the project that they may import besides those of their own
// folder: arrows inside a top folder.
var within = map[string][]string{
	module + "/capture/spool":   {module + "/internal/bounded", module + "/schema"},
	module + "/capture/bench":   {module + "/capture/shim"},
	module + "/capture/symbols": {module + "/capture/spool", module + "/internal/bounded", module + "/schema"},
	module + "/capture/simrank": {module + "/capture/spool", module + "/internal/private", module + "/models",
		module + "/schema"},
	module + "/formats/perfetto": {module + "/run", module + "/schema", module + "/writer"},
	module + "/formats/paraver": {module + "/formats/calls", module + "/formats/importing", module + "/formats/spill",
		module + "/formats/timed", module + "/internal/bounded", module + "/run", module + "/schema", module + "/writer"},
	module + "/formats/nsys": {module + "/formats/calls", module + "/formats/importing", module + "/formats/jsonstream",
		module + "/formats/spill", module + "/formats/timed", module + "/formats/training", module + "/schema", module + "/writer"},
	module + "/formats/dimemas": {module + "/formats/importing", module + "/formats/spill", module + "/run", module + "/run/match", module + "/schema",
		module + "/writer"},
	module + "/replay": {module + "/capture/shim", module + "/schema"},
	module + "/capture/hang": {module + "/capture/ingest", module + "/capture/ingest/handles",
		module + "/capture/spool",
		module + "/capture/symbols", module + "/internal/bounded", module + "/internal/printable", module + "/schema"},
	module + "/capture/ingest/clocks": {module + "/capture/spool", module + "/schema"},
	module + "/capture/ingest/handles": {module + "/capture/ingest/internal/dense", module + "/capture/spool",
		module + "/schema"},
	module + "/capture/ingest/sites": {module + "/capture/ingest/handles", module + "/capture/symbols",
		module + "/schema"},
}

// predictOrder lists the packages of prediction, by their paths below predict, from the lowest up. Each may import only
// those before it.
var predictOrder = []string{"pattern", "regress", "internal/nulls", "signature/fold", "signature/template", "signature",
	"internal/testruns", "internal/randomprograms", "signature/sign", "phases/clock", "phases", "slots",
	"communications", "model/join", "model/law",
	"model/compute", "model", "generate", "report", "", "training", "times", "extrapolated"}

// inPredict returns the path of a package below predict; false if it is not there.
func inPredict(importPath string) (path string, found bool) {
	if importPath == module+"/predict" {
		return "", true
	}
	return strings.CutPrefix(importPath, module+"/predict/")
}

// checkPredictOrder checks the arrows inside predict.
func checkPredictOrder(t *testing.T, p listed) {
	from, found := inPredict(p.ImportPath)
	if !found {
		return
	}
	place := slices.Index(predictOrder, from)
	if place < 0 {
		t.Errorf("%s has no place in predictOrder", p.ImportPath)
		return
	}
	for _, imp := range p.Imports {
		if to, found := inPredict(imp); found && !slices.Contains(predictOrder[:place], to) {
			t.Errorf("%s imports %s, which does not come before it in predictOrder", p.ImportPath, imp)
		}
	}
}

// schemaMayNot lists what schema must not use: files, processes, networks.
var schemaMayNot = []string{"os", "os/exec", "net", "net/http", "io/fs", "path/filepath", "database/sql"}

func TestArrowsPointAtSchema(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	seen := map[string]bool{}
	for {
		var p listed
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		top := folder(p.ImportPath)
		seen[top] = true
		checkArrows(t, top, p)
		checkPredictOrder(t, p)
	}
	for _, want := range []string{"schema", "writer", "capture", "models", "queries", "cmd"} {
		if !seen[want] {
			t.Errorf("no package under %s: the test looks at the wrong module", want)
		}
	}
}

func checkArrows(t *testing.T, top string, p listed) {
	if strings.Contains(p.ImportPath, "/internal/gen") { // generators run at build time, not in commq
		return
	}
	for _, imp := range p.Imports {
		if strings.HasPrefix(imp, module+"/") && top != "cmd" && top != "bench" &&
			!slices.Contains(arrows[top], folder(imp)) {
			t.Errorf("%s imports %s: %s may only import %v", p.ImportPath, imp, top, arrows[top])
		}
		if may, ok := within[p.ImportPath]; ok && strings.HasPrefix(imp, module+"/") && !slices.Contains(may, imp) {
			t.Errorf("%s imports %s: it may only import %v", p.ImportPath, imp, may)
		}
		if may, ok := only[imp]; ok && top != "bench" && !slices.Contains(may, top) {
			t.Errorf("%s imports %s: only %v may", p.ImportPath, imp, may)
		}
		if p.ImportPath == module+"/schema" && slices.Contains(schemaMayNot, imp) {
			t.Errorf("schema imports %s: it knows no I/O", imp)
		}
	}
}

// folder returns the top folder of a package of the module.
func folder(importPath string) string {
	top, _, _ := strings.Cut(strings.TrimPrefix(importPath, module+"/"), "/")
	return top
}

// TestPictureShowsArrows compares the arrows between rooms in the picture of docs/ARCHITECTURE.md with those allowed:
// every arrow drawn is allowed, and every arrow allowed is drawn or follows from drawn ones.
func TestPictureShowsArrows(t *testing.T) {
	text, err := os.ReadFile("../../docs/figures/architecture.dot")
	if err != nil {
		t.Fatal(err)
	}
	rooms, _, _ := strings.Cut(string(text), "subgraph cluster_call")
	drawn := map[string][]string{}
	word, attributes := regexp.MustCompile(`[a-z]+`), regexp.MustCompile(`\[[^]]*\]`)
	for _, line := range strings.Split(attributes.ReplaceAllString(rooms, ""), "\n") {
		if !strings.Contains(line, "->") || strings.Contains(line, "//") {
			continue
		}
		var from []string
		for _, side := range strings.Split(line, "->") {
			to := word.FindAllString(side, -1)
			for _, f := range from {
				drawn[f] = append(drawn[f], to...)
			}
			from = to
		}
	}
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		return slices.ContainsFunc(drawn[from], func(next string) bool { return next == to || reaches(next, to) })
	}
	for from, tos := range drawn {
		for _, to := range tos {
			if from != "cmd" && !slices.Contains(arrows[from], to) {
				t.Errorf("the picture has an arrow from %s to %s, which is not allowed", from, to)
			}
		}
	}
	for from, tos := range arrows {
		for _, to := range tos {
			if from != to && to != "internal" && from != "internal" && !reaches(from, to) {
				t.Errorf("%s may import %s, and the picture has no arrow that leads there", from, to)
			}
		}
	}
}

// mostFilesWithoutMap is the largest number of files, without tests and generated ones, of a package without a doc.go.
const mostFilesWithoutMap = 10

func TestLargePackagesHaveAMap(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		names, err := filepath.Glob(filepath.Join(path, "*.go"))
		if err != nil {
			return err
		}
		names = slices.DeleteFunc(names, func(name string) bool {
			return strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_gen.go")
		})
		if len(names) > mostFilesWithoutMap && !slices.Contains(names, filepath.Join(path, "doc.go")) {
			t.Errorf("%s has %d files and no doc.go that lists them in reading order", path, len(names))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
