package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/capture/bench"
	"github.com/commq/commq/capture/ingest"
	"github.com/commq/commq/capture/launch"
)

// collectivesPart is the ratio of the largest message to the largest collective: some collectives move their size
// once per rank.
const collectivesPart = 16

// measure captures the measuring program and makes its run the one to learn from. remove deletes the run unless --name
// keeps it.
func (o *calibrateOptions) measure(ctx context.Context, a *app, args []string) (remove func(), err error) {
	if o.mpi == "" {
		if o.mpi, err = onlyLibrary(o.mpicc); err != nil {
			return nil, err
		}
	}
	if err := oneOf("mpi", o.mpi, "openmpi", "mpich"); err != nil {
		return nil, err
	}
	program, err := bench.Build(ctx, o.mpi, o.mpicc)
	if err != nil {
		return nil, err
	}
	launcher := o.launcher
	if launcher == "" {
		path, err := launch.Find(ctx, o.mpi)
		if err != nil {
			return nil, err
		}
		launcher = shellquote.Join(path)
	}
	if len(args) > 0 {
		launcher += " " + shellquote.Join(args...)
	}
	remove = func() {}
	to, name := *a, o.name
	if name == "" {
		folder, err := os.MkdirTemp("", "commq-calibrate-")
		if err != nil {
			return nil, fmt.Errorf("calibrate: %w", err)
		}
		remove = func() { os.RemoveAll(folder) }
		to.store, name = folder, fmt.Sprintf("calibrate.%d", o.ranks)
	}
	c := captureOptions{name: name, ranks: o.ranks, launcher: launcher, gather: o.gather, resolution: 1,
		format: "text", preloadOptions: preloadOptions{mpi: o.mpi, mpicc: o.mpicc, clock: "cpu", hash: "none"},
		filter: filterOptions{record: ingest.RecordAll}}
	if err := runCapture(ctx, &to, &c, []string{program, strconv.Itoa(o.rounds), strconv.FormatInt(o.maxBytes, 10),
		strconv.FormatInt(o.maxBytes/collectivesPart, 10)}); err != nil {
		remove()
		return nil, measuringError(err)
	}
	o.run = filepath.Join(to.storeDir(), name)
	return remove, nil
}

// measuringError explains why the measuring program was not captured. The launcher's exit status is not that of
// calibrate, so that the error does not wrap it.
func measuringError(err error) error {
	if status := exitError(0); errors.As(err, &status) {
		return fmt.Errorf("calibrate: the measuring program ended with status %d; its launcher may have said above why, "+
			"and takes options after --", int(status))
	}
	return fmt.Errorf("calibrate: the measuring program: %w", err)
}
