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
	// Before means that the run was there before, with all ranks of this folder and made with the same options, so that
	// nothing was read.
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
		return r.checkMade(ctx, job, filepath.Join(store, r.Run), &o.Options)
	}
	if r.Manifest, err = IngestPart(ctx, r.folder, parts, o); err != nil {
		return err
	}
	r.records, err = ShareOf(job, o.Share, o.Shares)
	return err
}

// checkMade returns an error if the run in folder dir, which is of this job, lacks ranks that have records here, or was
// made with other options.
func (r *Ingested) checkMade(ctx context.Context, job *JobInfo, dir string, o *Options) error {
	const advice = "; to ingest all parts again, first remove it with commq runs remove"
	if err := o.withDefaults(); err != nil {
		return err
	}
	m, err := writer.ReadManifest(dir)
	if err != nil {
		return err
	}
	filters := slices.DeleteFunc(slices.Clone(m.Filters), func(word string) bool { return word == switchedWord })
	if m.Record != o.Record || m.TimeResolutionNs != o.TimeResolutionNs || !slices.Equal(filters, callWords(o.Calls)) {
		return fmt.Errorf("run %q holds job %s, but was made with other values of --record, --calls or "+
			"--time-resolution-ns%s", r.Run, r.Job, advice)
	}
	absent := make([]bool, m.Ranks)
	from := writer.Opened{Dir: dir, Digest: m.Digest}
	err = from.ReadTable(ctx, &schema.RanksTable, 4096, func(b schema.Batch) error {
		rows := b.(*schema.RankInfos)
		for i, rank := range rows.Rank {
			absent[rank] = rows.Threads[i] == 0
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range job.Files {
		rank := rankOfFile(name)
		if rank >= len(absent) || !absent[rank] {
			continue
		}
		f, err := spool.Open(filepath.Join(r.folder, name))
		if errors.Is(err, spool.ErrUnwritten) {
			continue
		}
		if err == nil {
			f.Close()
		}
		return fmt.Errorf("run %q holds job %s without the records of rank %d, which are in %s%s", r.Run, r.Job, rank,
			r.folder, advice)
	}
	return nil
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
