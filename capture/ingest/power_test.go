package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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

// TestPowerAndDisksFail tries failures of an ingest, as a whole and in two parts, of which one process after the other
// is started again until the run is there. The records stay, so a second try works.
func TestPowerAndDisksFail(t *testing.T) {
	spool := ring(3).write(t)
	random, _, _, _ := randomSpool(t, 11, 3, 40)
	whole := func(dir string) error {
		_, err := IngestInto(context.Background(), spool, dir, "run",
			PartOptions{Options: Options{Replace: true, NoSymbols: true, Workers: 1}})
		return err
	}
	stories := map[string]func(dir string) error{
		"whole": whole,
		"part": func(dir string) error {
			o := PartOptions{Options: Options{NoSymbols: true, Workers: 1}, Parts: 1}
			_, err := IngestInto(context.Background(), spool, dir, "run", o)
			return err
		},
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

// TestRecordsOutliveTheirRun: records are removed when the run is durable, not before.
func TestRecordsOutliveTheirRun(t *testing.T) {
	from := ring(3).write(t)
	story := diskfail.Story{
		Before: func(dir string) error { return os.CopyFS(filepath.Join(dir, "spool"), os.DirFS(from)) },
		Do: func(dir string) error {
			store := filepath.Join(dir, "runs")
			if oneRun(store, true) == nil {
				return nil
			}
			r, err := IngestInto(context.Background(), filepath.Join(dir, "spool"), store, "run",
				PartOptions{Options: Options{NoSymbols: true, Workers: 1}})
			if err != nil {
				return err
			}
			return r.RemoveRecords()
		},
		After: func(dir string, did bool) error { return oneRun(filepath.Join(dir, "runs"), did) },
	}
	diskfail.Try(t, story, diskfail.Trials()/4)
}
