package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Runs are shown as they were named; those of a pattern by their names in the store, or by their paths.
func TestEachShowsRunsAsTheyWereNamed(t *testing.T) {
	store, other := t.TempDir(), t.TempDir()
	for _, dir := range []string{store + "/sp.A.4", store + "/sp.A.16", other + "/bt.4"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte("{}"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	bt := filepath.Join(other, "bt.4")
	var shown []string
	each := func(name, dir string) error {
		if filepath.Base(dir) != filepath.Base(name) {
			t.Errorf("%s is shown as %s", dir, name)
		}
		shown = append(shown, name)
		return nil
	}
	if err := Each(store, []string{"sp.*", "sp.A.4", bt, filepath.Join(other, "b?.4")}, each); err != nil {
		t.Fatal(err)
	}
	if want := []string{"sp.A.4", "sp.A.16", "sp.A.4", bt, bt}; !slices.Equal(shown, want) {
		t.Errorf("%q, want %q", shown, want)
	}
	if err := Each(store, []string{"lu.*"}, each); err == nil || !strings.Contains(err.Error(), "lu.*") {
		t.Errorf("a pattern that fits nothing: %v", err)
	}
	stop := errors.New("stop")
	if err := Each(store, []string{"sp.*"}, func(string, string) error { return stop }); err != stop {
		t.Errorf("%v, want that of the first run", err)
	}
}
