package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
)

const skillFolder = "../../docs/skill/commq"

// TestSkillShowsWhatCommandsPrint runs the commands of the page for assistants that have their output below them.
func TestSkillShowsWhatCommandsPrint(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(skillFolder, "SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	store, err := filepath.Abs("../../testdata/runs")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile(`(?m)^    \$ .*\n(?:    .*\n)*`).FindAllString(string(text), -1)
	if len(blocks) < 10 {
		t.Fatalf("found %d commands with output, want at least 10", len(blocks))
	}
	for _, block := range blocks {
		lines := strings.Split(strings.TrimSuffix(block, "\n"), "\n")
		for i := range lines {
			lines[i] = strings.TrimPrefix(lines[i], "    ")
		}
		for _, s := range readCommands(lines) {
			c := exec.Command("sh", "-c", s.command)
			c.Dir = t.TempDir()
			c.Env = testenv.Environ("COMMQ_STORE="+store, "HOME="+c.Dir, "NO_COLOR=1")
			got, err := c.Output()
			if err != nil {
				t.Errorf("$ %s\n%v", s.command, err)
				continue
			}
			if diff := cmp.Diff(strings.Join(s.want, "\n")+"\n", string(got)); diff != "" {
				t.Errorf("$ %s\n(-page +commq):\n%s", s.command, diff)
			}
		}
	}
}

// TestSkillHasAHead checks what assistants read of a skill before they choose it: the name of its folder, and a
// description of at most 1024 characters.
func TestSkillHasAHead(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(skillFolder, "SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	head := regexp.MustCompile(`\A---\nname: (.*)\ndescription: ((?:.+\n)+?)---\n`).FindStringSubmatch(string(text))
	if head == nil {
		t.Fatalf("the page begins with\n%.300s\nwant a head with name and description", text)
	}
	if head[1] != filepath.Base(skillFolder) {
		t.Errorf("the name is %q, the folder %s", head[1], filepath.Base(skillFolder))
	}
	if len(head[2]) > 1024 {
		t.Errorf("the description has %d characters, want at most 1024", len(head[2]))
	}
}
