package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/writer"
)

// TestSignatureExpandsToTheRun: a signature expands to the calls of the run. It tests all runs of testdata that have the
// rows of all calls, and those of the store $COMMQ_TEST_STORE.
func TestSignatureExpandsToTheRun(t *testing.T) {
	signed := 0
	for _, store := range []string{runsDir, os.Getenv("COMMQ_TEST_STORE")} {
		if store == "" {
			continue
		}
		runs, err := writer.List(store)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			if r.Err != nil || r.Manifest.Record != "all" {
				continue
			}
			t.Run(r.Name, func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "signature.json.gz")
				mustCommq(t, "export", "signature", "--run", r.Name, "--store", store, "--check", "-o", file)
				info, err := os.Stat(file)
				if err != nil {
					t.Fatal(err)
				}
				if info.Size() > 100<<10 {
					t.Errorf("the signature has %d bytes, want at most 100 KiB", info.Size())
				}
			})
			signed++
		}
	}
	if signed == 0 {
		t.Error("no run was signed")
	}
}

// A signature has the command line, sources and modules of the run: it says so, as other exports do.
func TestSignatureDiscloses(t *testing.T) {
	file, run := filepath.Join(t.TempDir(), "s.json"), filepath.Join(runsDir, "cg.A.4")
	for _, line := range [][]string{{"-o", file}, {"--format", "json"}} {
		_, _, errs := commandLine("", append([]string{"export", "signature", "--run", run}, line...)...)
		if !strings.Contains(errs, " discloses: ") {
			t.Errorf("%q: %s", line, errs)
		}
	}
	_, _, errs := commandLine("", "export", "signature", "--run", file, "--format", "table")
	if strings.Contains(errs, "discloses") {
		t.Error(errs)
	}
}
