// Package notebooks tests the Jupyter notebooks beside it.
package notebooks

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// notebooks lists the notebooks by their file names.
func notebooks(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.ipynb")
	if err != nil || len(files) < 4 {
		t.Fatalf("found the notebooks %v, want at least four: %v", files, err)
	}
	return files
}

// Outputs are large, differ from run to run and hold names of the machine, so that they are not committed.
func TestNotebooksAreCommittedWithoutOutputs(t *testing.T) {
	for _, name := range notebooks(t) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var notebook struct {
			Cells []struct {
				Type           string            `json:"cell_type"`
				Outputs        []json.RawMessage `json:"outputs"`
				ExecutionCount *int              `json:"execution_count"`
			} `json:"cells"`
		}
		if err := json.Unmarshal(text, &notebook); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		code := 0
		for i, c := range notebook.Cells {
			if c.Type == "code" {
				code++
			}
			if len(c.Outputs) > 0 || c.ExecutionCount != nil {
				t.Errorf("%s: cell %d has outputs or was executed; scripts/notebooks clear takes them out", name, i+1)
			}
		}
		if code == 0 {
			t.Errorf("%s has no code", name)
		}
	}
}

// Executing them takes Python packages, which scripts/notebooks installs the first time, so only make test does it.
func TestNotebooksRunFromTopToBottom(t *testing.T) {
	if os.Getenv("COMMQ_TEST_ALL") == "" {
		t.Skip("$COMMQ_TEST_ALL is not set: scripts/notebooks run executes the notebooks")
	}
	testenv.Need(t, "python3", "flock")
	folder := t.TempDir()
	if out, err := exec.Command("../scripts/notebooks", "run", folder).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range notebooks(t) {
		page, err := os.ReadFile(filepath.Join(folder, strings.TrimSuffix(name, ".ipynb")+".html"))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(page), "data:image/png") {
			t.Errorf("%s draws nothing", name)
		}
	}
	readInputs(t)
}

// readInputs opens what the notebooks were made from, so that go test does not take a result from its cache when one
// changed.
func readInputs(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"../scripts/notebooks", "../scripts/venv", "requirements.txt",
		"../testdata/runs/*/manifest.json"} {
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
