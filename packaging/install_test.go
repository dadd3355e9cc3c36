package packaging

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
)

// archiveName is the archive that install.sh takes on this machine.
const archiveName = "commq-1.2.3-linux-" + runtime.GOARCH + ".tar.xz"

// makeRelease makes a folder with the files of a release, whose commq runs a shell line.
func makeRelease(t *testing.T, line string) string {
	t.Helper()
	testenv.Need(t, "sh", "tar", "xz", "sha256sum")
	folder, tree := t.TempDir(), t.TempDir()
	name := strings.TrimSuffix(archiveName, ".tar.xz")
	write(t, filepath.Join(tree, name, "bin/commq"), "#!/bin/sh\n"+line+"\n", 0o755)
	write(t, filepath.Join(tree, name, "share/man/man1/commq.1"), "manual", 0o644)
	write(t, filepath.Join(tree, name, "share/modulefiles/commq/1.2.3.lua"), "module", 0o644)
	cmd := exec.Command("tar", "-C", tree, "-cJf", filepath.Join(folder, archiveName), name)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("tar: %v\n%s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(folder, archiveName))
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("install.sh")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(folder, "install.sh"), string(script), 0o755)
	write(t, filepath.Join(folder, "SHA256SUMS"), fmt.Sprintf("%x  install.sh\n%x  %s\n%x  %s.cdx.json\n",
		sha256.Sum256(script), sha256.Sum256(data), archiveName, sha256.Sum256(data), name), 0o644)
	return folder
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

// install runs install.sh for a user with a home and returns what it prints, with an exit status that is not 0.
func install(home string, args ...string) string {
	return installWith([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, args...)
}

// installWith is install with an environment.
func installWith(env []string, args ...string) string {
	cmd := exec.Command("sh", append([]string{"install.sh"}, args...)...)
	cmd.Env = env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s(%v)\n", out, err)
	}
	return string(out)
}

// files lists the files in a folder, without the folders.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestInstall(t *testing.T) {
	good := makeRelease(t, "echo commq version 1.2.3")
	server := httptest.NewServer(http.StripPrefix("/releases/download/v1.2.3/", http.FileServer(http.Dir(good))))
	t.Cleanup(server.Close)
	for name, args := range map[string][]string{
		"from a folder":   {"--from", good},
		"from an address": {"--from", server.URL + "/releases/download/v1.2.3"},
		"a version":       {"--from", good, "--version", "v1.2.3"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			write(t, filepath.Join(home, ".local/share/modulefiles/commq/0.1.0.lua"), "of an older version", 0o644)
			for range 2 { // the second time over the first
				want := "commq version 1.2.3 is in " + home + "/.local/bin\nPut it on your path:  export PATH=" + home +
					"/.local/bin:$PATH\nNext:  commq doctor\n"
				if got := install(home, args...); got != want {
					t.Fatalf("printed\n%s\nwant\n%s", got, want)
				}
			}
			want := ".local/bin/commq .local/share/man/man1/commq.1 .local/share/modulefiles/commq/1.2.3.lua"
			if got := strings.Join(files(t, home), " "); got != want {
				t.Errorf("installed %s", got)
			}
		})
	}
}

// Users of zsh are told where its completion is: zsh does not look there.
func TestInstallForZsh(t *testing.T) {
	home := t.TempDir()
	got := installWith([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "SHELL=/usr/bin/zsh"}, "--from",
		makeRelease(t, "echo commq version 1.2.3"))
	if want := "~/.zshrc:  fpath=(" + home + "/.local/share/zsh/site-functions $fpath)\n"; !strings.Contains(got, want) {
		t.Errorf("printed\n%s\nwant %s", got, want)
	}
}

// A folder that cannot be written to is exit status 2 and a sentence.
func TestInstallCannotWrite(t *testing.T) {
	good := makeRelease(t, "echo commq version 1.2.3")
	for _, folder := range []string{"share", "bin"} {
		home := t.TempDir()
		write(t, filepath.Join(home, ".local", folder), "a file", 0o644)
		got := install(home, "--from", good)
		want := "install.sh: cannot write to " + home + "/.local/" + folder + "\n(exit status 2)\n"
		if !strings.HasSuffix(got, want) {
			t.Errorf("printed\n%s\nwant %q at the end", got, want)
		}
	}
}

// What cannot be installed leaves nothing, and what was installed before.
func TestInstallRefuses(t *testing.T) {
	damaged := makeRelease(t, "echo commq version 1.2.3")
	write(t, filepath.Join(damaged, archiveName), "another archive", 0o644)
	foreign := makeRelease(t, "exit 1")
	empty := t.TempDir()
	for _, c := range []struct {
		says string
		args []string
	}{
		{"has another checksum than SHA256SUMS says", []string{"--from", damaged}},
		{"the program does not start on this machine", []string{"--from", foreign}},
		{"has no commq 9.9.9 for " + runtime.GOARCH, []string{"--from", foreign, "--version", "9.9.9"}},
		{empty + " has no SHA256SUMS", []string{"--from", empty}},
		{"http://127.0.0.1:1 has no SHA256SUMS", []string{"--from", "http://127.0.0.1:1"}},
		{"nowhere is neither a folder nor an address", []string{"--from", "nowhere"}},
		{"choose another folder with --prefix", []string{"--from", foreign, "--prefix", "/proc/commq"}},
		{"unknown argument --force", []string{"--force"}},
		{"--version needs a value", []string{"--version"}},
		{"--from needs a value", []string{"--from", ""}},
	} {
		home := t.TempDir()
		write(t, filepath.Join(home, ".local/bin/commq"), "the one before", 0o755)
		got := install(home, c.args...)
		if !strings.HasPrefix(got, "install.sh: ") && !strings.Contains(got, "\ninstall.sh: ") ||
			!strings.Contains(got, c.says) || !strings.HasSuffix(got, "(exit status 2)\n") {
			t.Errorf("%q printed\n%s\nwant %q and exit status 2", c.args, got, c.says)
		}
		if left := strings.Join(files(t, home), " "); left != ".local/bin/commq" {
			t.Errorf("%q left %s", c.args, left)
		}
	}
}
