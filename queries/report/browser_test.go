package report_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/commq/commq/internal/chrome"
)

// open opens a page in a new tab, which is closed with the test.
func open(t *testing.T, chromium context.Context, text string, l chrome.Look) *chrome.Tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return chrome.Open(t, chromium, "file://"+file, l)
}
