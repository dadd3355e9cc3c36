package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestForeignStderr: a message of commq is not written into a file that the program opens in place of stderr, and
// no signal ends the program where stderr is a pipe that nobody reads, or a file that may not grow.
func TestForeignStderr(t *testing.T) {
	const kib = 20000
	for _, library := range libraries {
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "rough.c"), "-w", "-pthread")
		file := filepath.Join(t.TempDir(), "file")
		for how, script := range map[string]string{
			"replaced": `exec "$0" replaced "$1"`,
			"pipe":     `mkfifo "$1" && exec 4<>"$1" 2>"$1" 4>&- && exec "$0" plain`,
			"full":     fmt.Sprintf(`ulimit -f %d && truncate -s %dK "$1" && exec "$0" plain 2>>"$1"`, kib, kib),
		} {
			got := run(t, []string{"LD_PRELOAD=" + shimFor(t, library)}, "bash", "-c", script, exe, file)
			if got != (outcome{"ok\n", "", 0}) {
				t.Errorf("%s, %s: %+v", library, how, got)
			}
			if info, err := os.Stat(file); err != nil || how == "replaced" && info.Size() != 0 {
				t.Errorf("%s, %s: %d bytes in the program's file, %v", library, how, info.Size(), err)
			}
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
}
