package shim

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readLayers returns the rank of each source file's layer as README.md lists them, the lowest layer being 0, and the
// layers' names by rank.
func readLayers(t *testing.T) (rank map[string]int, names []string) {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## Layers")
	var lines [][]string
	for _, line := range strings.Split(section, "\n") {
		if strings.HasPrefix(line, "    ") {
			lines = append(lines, strings.Fields(line))
		}
	}
	slices.Reverse(lines)
	rank = map[string]int{}
	for i, fields := range lines {
		names = append(names, fields[0])
		for _, file := range fields[1:] {
			rank[file] = i
		}
	}
	return rank, names
}

var (
	cInclude    = regexp.MustCompile(`(?m)^#include "(\w+\.h)"`)
	cDefinition = regexp.MustCompile(`(?m)^[A-Za-z][\w \t*]*?\b(cq_\w+)\([^;{}]*\)\n\{`)
	cUse        = regexp.MustCompile(`\bcq_\w+`)
	cComment    = regexp.MustCompile(`(?s)/\*.*?\*/|"(?:\\.|[^"\\\n])*"`)
)

// TestLayers checks that no source file includes a header, or calls a function, of a layer above its own.
func TestLayers(t *testing.T) {
	rank, layers := readLayers(t)
	names, files, err := sourceFiles()
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != len(rank) {
		t.Errorf("%d source files, README.md lists %d", len(names), len(rank))
	}
	definedIn := map[string]string{}
	for _, name := range names {
		if _, ok := rank[name]; !ok {
			t.Errorf("README.md has no layer for %s", name)
		}
		for _, m := range cDefinition.FindAllStringSubmatch(string(files[name]), -1) {
			definedIn[m[1]] = name
		}
	}
	if len(definedIn) < 200 {
		t.Errorf("only %d functions found", len(definedIn))
	}
	for _, name := range names {
		for _, m := range cInclude.FindAllStringSubmatch(string(files[name]), -1) {
			if rank[m[1]] > rank[name] {
				t.Errorf("%s (%s) includes %s (%s)", name, layers[rank[name]], m[1], layers[rank[m[1]]])
			}
		}
		if strings.HasSuffix(name, ".h") && !strings.Contains(string(files[name]), "static") {
			continue
		}
		code := cComment.ReplaceAllString(string(files[name]), "")
		used := cUse.FindAllString(code, -1)
		slices.Sort(used)
		for _, f := range slices.Compact(used) {
			home, ok := definedIn[f]
			if ok && rank[home] > rank[name] {
				t.Errorf("%s (%s) uses %s of %s (%s)", name, layers[rank[name]], f, home, layers[rank[home]])
			}
		}
	}
}

// TestOnlyHooksKnowSimulatorRanks checks that the recorder meets simulator ranks only in hooks.h and in the world's
// header, and in library.c, which chains no other tools to them: no other file of its layers compiles differently for
// them.
func TestOnlyHooksKnowSimulatorRanks(t *testing.T) {
	rank, layers := readLayers(t)
	names, files, err := sourceFiles()
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{"hooks.h", "world.h", "library.h", "library.c", "fns_gen.h"}
	for _, name := range names {
		if layers[rank[name]] == "simulator" || slices.Contains(allowed, name) {
			continue
		}
		code := cComment.ReplaceAllString(string(files[name]), "")
		if regexp.MustCompile(`\bCQ_SIM\b|\bcq_sim_|\bcq_world\.`).MatchString(code) {
			t.Errorf("%s knows simulator ranks other than through cq_hooks", name)
		}
	}
}
