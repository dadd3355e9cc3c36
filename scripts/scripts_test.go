// Package scripts tests the scripts of this folder that others do not test by using them.
package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// stubs makes a folder with commands, each a script in sh, and returns a $PATH that begins with it.
func stubs(t *testing.T, commands map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, lines := range commands {
		write(t, filepath.Join(folder, name), "#!/bin/sh\n"+lines+"\n", 0o755)
	}
	return folder + ":" + os.Getenv("PATH")
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// alone makes git use no configuration of whoever runs the tests, such as signing, hooks, or ignored files.
var alone = []string{"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1"}

// run runs a command in a folder and returns what it prints and its exit status.
func run(t *testing.T, dir string, env []string, args ...string) (out string, status int) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), alone...), env...)
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// TestCheckGenerated checks generated files beside work that is not committed: only what generating changes is wrong.
func TestCheckGenerated(t *testing.T) {
	testenv.Need(t, "git")
	repository := t.TempDir()
	for _, folder := range []string{"schema", "capture", "docs", "queries", "ui", "python"} {
		write(t, filepath.Join(repository, folder, "file"), "as committed\n", 0o644)
	}
	figure := filepath.Join(repository, "docs/figures/a.svg")
	write(t, figure, "<svg width=1>\n", 0o644)
	write(t, filepath.Join(repository, "scripts/draw"), "#!/bin/sh\necho '<svg width=2 new>' >docs/figures/a.svg\n", 0o755)
	script, err := os.ReadFile("check-generated")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(repository, "scripts/check-generated"), string(script), 0o755)
	for _, args := range [][]string{{"init", "-q"}, {"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "all"}} {
		if out, status := run(t, repository, nil, append([]string{"git"}, args...)...); status != 0 {
			t.Fatalf("git %q: %s", args, out)
		}
	}
	write(t, filepath.Join(repository, "docs/file"), "not committed\n", 0o644)
	write(t, filepath.Join(repository, "docs/new"), "not committed\n", 0o644)
	write(t, figure, "<svg width=3 new>\n", 0o644)
	for _, c := range []struct {
		name, generate string
		status         int
		says           string
	}{
		{"nothing to change", "exit 0", 0, ""},
		{"a file of a commit", "echo made >queries/file", 1, "queries/file"},
		{"a file that is not committed", "echo made >docs/new", 1, "docs/new"},
	} {
		out, status := run(t, repository, []string{"PATH=" + stubs(t, map[string]string{"go": c.generate})}, "scripts/check-generated")
		if status != c.status || !strings.Contains(out, c.says) || strings.Contains(out, "docs/file") {
			t.Errorf("%s: status %d\n%s", c.name, status, out)
		}
	}
	if text, err := os.ReadFile(figure); err != nil || string(text) != "<svg width=3 new>\n" {
		t.Errorf("the figure is %q, %v", text, err)
	}
}

// TestSetupOldGo checks that a Go that cannot read go.mod is refused in words: Debian 12's own is 1.19.
func TestSetupOldGo(t *testing.T) {
	testenv.Need(t, "cc", "g++")
	for version, status := range map[string]int{"1.9.7": 2, "1.19.8": 2, "1.20": 2, "1.21.0": 0, "1.26.0": 0, "1.30": 0} {
		path := stubs(t, map[string]string{"go": "echo go version go" + version + " linux/amd64"})
		out, got := run(t, ".", []string{"PATH=" + path}, "./setup", "build")
		if got != status || (status != 0) != strings.Contains(out, "go"+version+" linux/amd64 is too old; install Go 1.26 or newer\n") {
			t.Errorf("Go %s: status %d, %s", version, got, out)
		}
	}
}

// TestSetupTools checks that what there is for x86-64 alone is not installed on other machines.
func TestSetupTools(t *testing.T) {
	testenv.Need(t, "cc", "g++", "flock")
	script, err := os.ReadFile("setup")
	if err != nil {
		t.Fatal(err)
	}
	for machine, releases := range map[string]bool{"x86_64": true, "aarch64": false} {
		root := t.TempDir()
		asked := filepath.Join(root, "asked")
		write(t, filepath.Join(root, "scripts/setup"), string(script), 0o755)
		for _, name := range []string{"venv", "trino"} {
			write(t, filepath.Join(root, "scripts", name), "#!/bin/sh\necho \"$0 $*\" >>"+asked+"\n", 0o755)
		}
		path := stubs(t, map[string]string{"uname": "echo " + machine})
		out, status := run(t, root, []string{"PATH=" + path, "XDG_CACHE_HOME=" + root}, "scripts/setup", "tools")
		text, err := os.ReadFile(asked)
		if err != nil || status != 0 {
			t.Fatalf("%s: status %d, %v\n%s", machine, status, err, out)
		}
		if !strings.Contains(string(text), "python/requirements.txt") || strings.Contains(string(text), "/packaging/") != releases ||
			strings.Contains(out, "their tests are skipped") == releases {
			t.Errorf("%s: installs\n%s\nand says\n%s", machine, text, out)
		}
	}
}
