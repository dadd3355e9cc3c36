package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
)

//go:embed skill.md.tmpl
var skillText string

// generateSkill writes the page that tells assistants how to use commq. Its examples are run with a commq built for it,
// on the runs in testdata/runs.
func generateSkill(target string) error {
	folder, err := os.MkdirTemp("", "commq-gendocs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	build := exec.Command("go", "build", "-o", filepath.Join(folder, "commq"), "../cmd/commq")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building commq: %w\n%s", err, out)
	}
	all, err := queries.All()
	if err != nil {
		return err
	}
	page, err := template.New("skill.md.tmpl").Funcs(template.FuncMap{
		"facts":   func() string { return strings.Join(queries.FactNames(), ", ") },
		"queries": func() string { return queries.Outline(all) },
		"tables":  schema.Outline,
		"run":     func(command string) (string, error) { return answer(folder, command) },
	}).Parse(skillText)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := page.Execute(&b, nil); err != nil {
		return err
	}
	return os.WriteFile(target, b.Bytes(), 0o644)
}

// answer runs a command with the commq in this folder, and returns it with its output as a block of Markdown.
func answer(folder, command string) (string, error) {
	store, err := filepath.Abs("../testdata/runs")
	if err != nil {
		return "", err
	}
	c := exec.Command("sh", "-c", command)
	c.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "COMMQ_STORE="+store, "HOME="+folder)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", command, err, stderr.String())
	}
	lines := strings.Split("$ "+command+"\n"+strings.TrimRight(string(out), "\n"), "\n")
	return "    " + strings.Join(lines, "\n    ") + "\n", nil
}
