package main

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/commq/commq"

// listed is what go list -json says of a package.
type listed struct {
	ImportPath string
	Imports    []string
}

// arrows says which of the project's top folders each may import; cmd may import all.
var arrows = map[string][]string{
	"schema":   {"schema"},
	"writer":   {"writer", "schema"},
	"capture":  {"capture", "writer", "models", "schema"},
	"queries":  {"queries", "schema"},
	"models":   {"models", "schema", "internal"},
	"detect":   {"detect", "schema", "internal"},
	"predict":  {"predict", "schema"},
	"compare":  {"compare", "internal"},
	"internal": {"internal"},
}

// only says which top folders may import a foreign package: only writer and queries (for its output formats) know
// Parquet, only queries knows SQL, only cmd knows flags, only models knows YAML.
var only = map[string][]string{
	"github.com/apache/arrow-go/v18/parquet":         {"writer", "queries"},
	"github.com/apache/arrow-go/v18/parquet/file":    {"writer", "queries"},
	"github.com/apache/arrow-go/v18/parquet/pqarrow": {"writer", "queries"},
	"github.com/minio/minio-go/v7":                   {"writer"},
	"database/sql":                                   {"queries"},
	"github.com/duckdb/duckdb-go/v2":                 {"queries"},
	"github.com/trinodb/trino-go-client/trino":       {"queries"},
	"github.com/spf13/cobra":                         {"cmd"},
	"github.com/apache/arrow-go/v18/arrow":           {"writer", "queries"},
	"go.yaml.in/yaml/v4":                             {"models", "internal", "compare"},
	"golang.org/x/perf/benchmath":                    {"compare"},
}

// within says which packages of the project some may import beside those of their own folder: arrows inside a top folder.
var within = map[string][]string{
	module + "/capture/spool":    {module + "/schema"},
	module + "/capture/bench":    {module + "/capture/shim"},
	module + "/capture/symbols":  {module + "/capture/spool", module + "/schema"},
	module + "/capture/simrank":  {module + "/capture/spool", module + "/models", module + "/schema"},
	module + "/capture/perfetto": {module + "/schema", module + "/writer"},
	module + "/capture/prv":      {module + "/schema", module + "/writer"},
	module + "/capture/dim":      {module + "/capture/match", module + "/schema", module + "/writer"},
	module + "/capture/replay":   {module + "/capture/shim", module + "/schema"},
	module + "/capture/hang":     {module + "/capture/ingest", module + "/capture/spool", module + "/capture/symbols", module + "/schema"},
}

// schemaMayNot lists what the words of commq must not know: files, processes, networks.
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
		if strings.HasPrefix(imp, module+"/") && top != "cmd" && top != "bench" && !slices.Contains(arrows[top], folder(imp)) {
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

// folder is the top folder of a package of the module.
func folder(importPath string) string {
	top, _, _ := strings.Cut(strings.TrimPrefix(importPath, module+"/"), "/")
	return top
}
