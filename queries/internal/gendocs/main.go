// Command gendocs writes the files that are generated from the queries: docs/QUERIES.md from their headers, with
// example answers of a small run, queries/commq.sql, docs/skill/commq/SKILL.md, and the methods of the Python package.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/writer"
)

//go:embed heat.3.txt
var heat string

const runName = "heat.3"

func main() {
	err := errors.Join(generate(filepath.Join("..", "docs", "QUERIES.md")), generateMacros("commq.sql"),
		generatePython(filepath.Join("..", "python", "src", "commq", "_queries.py")))
	if err == nil { // the skill is made by a commq with these macros
		err = generateSkill(filepath.Join("..", "docs", "skill", "commq", "SKILL.md"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gendocs:", err)
		os.Exit(1)
	}
}

func generate(target string) error {
	store, err := os.MkdirTemp("", "commq-gendocs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(store)
	dir, err := example.Write(store, runName, heat, example.Manifest(3))
	if err != nil {
		return err
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		return err
	}
	all, err := queries.All()
	if err != nil {
		return err
	}
	run := queries.Run{Name: runName, Dir: dir, Manifest: m}
	text, err := queries.Markdown(all, func(q *queries.Query) (string, string, error) {
		answer, err := ask(run, q)
		return "commq query " + q.Name + " --run " + runName, answer, err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(target, []byte(text), 0o644)
}

// generateMacros writes the queries as macros of DuckDB.
func generateMacros(target string) error {
	all, err := queries.All()
	if err != nil {
		return err
	}
	text, err := queries.Macros(all)
	if err != nil {
		return err
	}
	return os.WriteFile(target, []byte(text), 0o644)
}

func ask(run queries.Run, q *queries.Query) (answer string, err error) {
	ctx := context.Background()
	db, err := queries.Open(ctx, []queries.Run{run}, queries.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Ask(ctx, q, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var b strings.Builder
	err = output.Write(&b, "table", rows)
	return b.String(), err
}
