package ingest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/internal/disk/diskfail"
	"github.com/commq/commq/writer"
)

// oneRun checks that a store opens and has a whole run, or none unless it must have one.
func oneRun(store string, must bool) error {
	runs, err := writer.List(store)
	if err != nil || len(runs) == 0 {
		if must {
			err = errors.Join(err, errors.New("no run"))
		}
		return err
	}
	if runs[0].Err != nil {
		return runs[0].Err
	}
	return writer.VerifyRun(context.Background(), runs[0].Dir)
}

// once ingests records into a store unless the run is there already. If that fails, the run is there if the error says
// so, and else not.
func once(t *testing.T, spool, store string, o PartOptions) (*Ingested, error) {
	if oneRun(store, true) == nil {
		return nil, nil
	}
	r, err := IngestInto(context.Background(), spool, store, "run", o)
	if there := oneRun(store, true); err != nil && errors.Is(err, writer.ErrInPlace) != (there == nil) {
		t.Errorf("%v, and after it: %v", err, there)
	}
	return r, err
}

// twoParts ingests records in two parts: each process is started again when it has nothing left to do but to wait for
// the other one.
func twoParts(spool, store string) error {
	o := PartOptions{Options: Options{NoSymbols: true, Workers: 1}, Parts: 2, Shares: 2, Patience: 1}
	for i := range 10 {
		o.Share = i % 2
		_, err := IngestInto(context.Background(), spool, store, "run", o)
		switch {
		case err == nil:
			return nil
		case !strings.HasPrefix(err.Error(), "nothing new for"):
			return err
		}
	}
	return fmt.Errorf("no run after five turns of both parts")
}

// TestPowerAndDisksFail tries failures of an ingest, as a whole and in two parts, of which one process after the other
// is started again until the run is there. The records stay, so a second try works.
func TestPowerAndDisksFail(t *testing.T) {
	spool := ring(3).write(t)
	random, _, _, _ := randomSpool(t, 11, 3, 40)
	stories := map[string]func(dir string) error{
		"whole": func(dir string) error {
			_, err := once(t, spool, dir, PartOptions{Options: Options{NoSymbols: true, Workers: 1}})
			return err
		},
		"parts": func(dir string) error { return twoParts(spool, dir) },
		"epochs": func(dir string) error { // each is written while the next is made
			_, err := IngestInto(context.Background(), random, dir, "run", PartOptions{Options: Options{Replace: true,
				NoSymbols: true, Workers: 2, epochRows: 20}})
			return err
		},
	}
	for name, do := range stories {
		t.Run(name, func(t *testing.T) {
			diskfail.Try(t, diskfail.Story{Do: do, After: oneRun}, diskfail.Trials()/2)
		})
	}
}

// TestPowerAndDisksFailBeforeRecordsAreRemoved: records are removed when the run is durable, not before.
func TestPowerAndDisksFailBeforeRecordsAreRemoved(t *testing.T) {
	from := ring(3).write(t)
	story := diskfail.Story{
		Before: func(dir string) error { return os.CopyFS(filepath.Join(dir, "spool"), os.DirFS(from)) },
		Do: func(dir string) error {
			r, err := once(t, filepath.Join(dir, "spool"), filepath.Join(dir, "runs"),
				PartOptions{Options: Options{NoSymbols: true, Workers: 1}})
			if r == nil || err != nil {
				return err
			}
			return r.RemoveRecords()
		},
		After: func(dir string, did bool) error { return oneRun(filepath.Join(dir, "runs"), did) },
	}
	diskfail.Try(t, story, diskfail.Trials()/2)
}
