package shim

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// TestHashLaws checks that every way of hashing agrees with the definition, and the laws by which hashes of parts are
// compared.
func TestHashLaws(t *testing.T) {
	testenv.Need(t, "cc")
	exe := filepath.Join(t.TempDir(), "hashlaws")
	out, err := exec.Command("cc", "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-Isrc",
		filepath.Join(programs, "hashlaws.c"), "-o", exe, "-ldl").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, seed := range []string{"7", "4097"} {
		out, err := exec.Command(exe, seed).CombinedOutput()
		if got := string(out); err != nil || !strings.HasPrefix(got, "table ") || strings.Count(got, "table ") != 2 ||
			!strings.HasSuffix(got, " ok\n") {
			t.Errorf("seed %s: %v: %s", seed, err, got)
		}
		t.Logf("seed %s: %s", seed, out)
	}
}
