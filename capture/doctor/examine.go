package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/commq/commq/internal/rows"
	"github.com/commq/commq/writer"
)

// Engine opens the query engine over a run, gives use a function that asks it queries, and closes it.
type Engine func(ctx context.Context, r *Run, use func(rows.Ask) error) error

// Examine checks what a name means: a program if it is an executable file, else a run of the store or in a folder, else
// a program in $PATH.
func Examine(ctx context.Context, store, name string, engine Engine) ([]Finding, error) {
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		return Program(ctx, name)
	}
	dir, err := writer.Find(store, name)
	if err == nil {
		return examineRun(ctx, dir, engine, (*Run).Check)
	}
	if path, e := exec.LookPath(name); e == nil {
		return Program(ctx, path)
	}
	return nil, fmt.Errorf("%s is neither a program nor a run: %w", name, err)
}

// ExamineRun checks a run of the store or in a folder.
func ExamineRun(ctx context.Context, store, name string, engine Engine) ([]Finding, error) {
	dir, err := writer.Find(store, name)
	if err != nil {
		return nil, err
	}
	return examineRun(ctx, dir, engine, (*Run).Check)
}

// ExamineContents checks the run in a folder: its manifest and rows and nothing outside it, and what ingest warned of.
// doubts are those of Run.Doubts, of a run of any size.
func ExamineContents(ctx context.Context, dir string, engine Engine) (list, doubts []Finding, err error) {
	list, err = examineRun(ctx, dir, engine, func(r *Run, ctx context.Context) ([]Finding, error) {
		inRows, err := r.checkRows(ctx, true)
		if err != nil {
			return nil, err
		}
		doubts = r.doubtful(inRows)
		return slices.Concat(checkManifest(r.Manifest), inRows, IngestWarnings(r.Manifest)), nil
	})
	return list, doubts, err
}

// examineRun opens the run in a folder and checks it.
func examineRun(ctx context.Context, dir string, engine Engine,
	check func(*Run, context.Context) ([]Finding, error)) (list []Finding, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	m, err := writer.ReadManifest(abs)
	if err != nil {
		return nil, err
	}
	r := &Run{Name: filepath.Base(abs), Dir: abs, Manifest: m}
	err = engine(ctx, r, func(ask rows.Ask) (err error) {
		r.Ask = ask
		list, err = check(r, ctx)
		return err
	})
	return list, err
}
