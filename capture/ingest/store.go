package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Ingested is a job of a spool folder that was ingested into a store.
type Ingested struct {
	// Run is the name of the run, Job the id of the job.
	Run, Job string
	// Manifest describes the run. It is nil when another process makes it, and when the run was there before.
	Manifest *schema.Manifest
	// Before means that the run was there before, with all parts of this job, so that nothing was read.
	Before bool

	folder  string
	records []string // the files in the folder that were read
}

// IngestInto writes a job of a spool folder as the run of this name in a store. Without a name the run gets that of the
// program and its number of ranks. When o.Parts is not 0 other processes ingest the other parts of the job at the same
// time, and the last of them to finish makes the run.
func IngestInto(ctx context.Context, spoolDir, store, name string, o PartOptions) (*Ingested, error) {
	job, err := Find(spoolDir, o.Job)
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = fmt.Sprintf("%s.%d", writer.NameFor(filepath.Base(job.Program)), job.Ranks)
	}
	o.Job = job.ID
	r := &Ingested{Run: name, Job: job.ID, folder: spoolDir}
	if o.Parts != 0 {
		return r, r.ingestPart(ctx, job, store, o)
	}
	out, err := writer.Create(store, name, writer.Options{Replace: o.Replace})
	if err != nil {
		return nil, err
	}
	r.records = slices.Concat(job.Files, job.Summaries)
	r.Manifest, err = Ingest(ctx, spoolDir, out, o.Options)
	return r, err
}

// ingestPart ingests the part of this process.
func (r *Ingested) ingestPart(ctx context.Context, job *JobInfo, store string, o PartOptions) error {
	parts, err := writer.OpenParts(store, r.Run, job.ID, o.Replace)
	if err != nil {
		return err
	}
	if parts == nil {
		r.Before = true
		return nil
	}
	if r.Manifest, err = IngestPart(ctx, r.folder, parts, o); err != nil {
		return err
	}
	r.records, err = ShareOf(job, o.Share, o.Shares)
	return err
}

// RemoveRecords removes the records that were read, and the spool folder if nothing is left in it.
func (r *Ingested) RemoveRecords() error {
	var errs []error
	names := slices.Clone(r.records)
	for _, name := range r.records {
		if records, ok := strings.CutSuffix(name, spool.Suffix); ok {
			names = append(names, records+spool.WindowsSuffix) // of a process that was killed
		}
	}
	for _, name := range names {
		if err := disk.Remove(filepath.Join(r.folder, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	_ = disk.Remove(r.folder) // fails if it is not empty
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the run is written, but its records could not be removed: %w", err)
	}
	return nil
}
