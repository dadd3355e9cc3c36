package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExportOTF2Replaces: a folder of that name stays unless --replace is given, and then only if it is such a trace.
func TestExportOTF2Replaces(t *testing.T) {
	dir := t.TempDir()
	out, other := filepath.Join(dir, "cg.otf2"), filepath.Join(dir, "other")
	export := func(args ...string) (int, string) {
		status, _, errs := commandLine("", append([]string{"export", "otf2", "../../testdata/runs/cg.A.4", "-o"}, args...)...)
		return status, errs
	}
	if status, errs := export(out); status != 0 {
		t.Fatal(errs)
	}
	if status, errs := export(out); status != 2 || !strings.Contains(errs, "--replace") {
		t.Errorf("status %d, %q, want 2 and --replace", status, errs)
	}
	if status, errs := export(out, "--replace"); status != 0 {
		t.Error(errs)
	}
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if status, errs := export(other, "--replace"); status != 2 || !strings.Contains(errs, "leaves it alone") {
		t.Errorf("status %d, %q, want 2, and the folder left alone", status, errs)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("%d entries are left (%v), want 2", len(left), err)
	}
}
