package packaging

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSpackRecipe checks that the recipe for Spack agrees with the sources that it builds. Spack itself is in no
// package registry, so CI does not run it.
func TestSpackRecipe(t *testing.T) {
	repo := "spack/spack_repo/commq"
	recipe := readText(t, filepath.Join(repo, "packages/commq/package.py"))
	needs := regexp.MustCompile(`(?m)^go ([0-9]+\.[0-9]+)`).FindStringSubmatch(readText(t, "../go.mod"))
	if needs == nil {
		t.Fatal("go.mod names no version of Go")
	}
	if want := `depends_on("go@` + needs[1] + `:", type="build")`; !strings.Contains(recipe, want) {
		t.Errorf("the recipe does not have %s, as go.mod does", want)
	}
	built := regexp.MustCompile(`build_directory = "(.+)"`).FindStringSubmatch(recipe)
	if built == nil {
		t.Fatal("the recipe names no build_directory")
	}
	if main := readText(t, filepath.Join("..", built[1], "main.go")); !strings.Contains(main, "package main") {
		t.Errorf("%s is no program", built[1])
	}
	if want := "namespace: " + filepath.Base(repo) + "\n"; !strings.Contains(readText(t, filepath.Join(repo, "repo.yaml")), want) {
		t.Errorf("repo.yaml does not have %q", want)
	}
	documented := "spack repo add packaging/" + repo + " "
	if !strings.Contains(readText(t, "../docs/how-to/install.md"), documented) {
		t.Errorf("the page on installing does not have %q", documented)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
