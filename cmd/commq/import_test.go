package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// import finds OTF2 by the file's content; the run answers queries, and its messages are those of the trace.
func TestImportOTF2(t *testing.T) {
	store := t.TempDir()
	trace := filepath.Join("..", "..", "formats", "otf2", "testdata", "ping-pong", "traces.otf2")
	mustCommq(t, "import", trace, "--store", store)
	out := mustCommq(t, "query", "density", "--store", store, "--run", "ping-pong", "--format", "csv")
	if !strings.Contains(out, "\n0,1,8,4177920") || !strings.Contains(out, "\n1,0,8,4177920") {
		t.Error(out)
	}
	trace = filepath.Join(store, "out")
	mustCommq(t, "export", "otf2", "--store", store, "--run", "ping-pong", "-o", trace)
	mustCommq(t, "import", filepath.Join(trace, "traces.otf2"), "--store", store, "--name", "again")
	if again := mustCommq(t, "query", "density", "--store", store, "--run", "again", "--format", "csv"); again != out {
		t.Error(again)
	}
}
