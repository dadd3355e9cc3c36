package paraver

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/formats/importing"
	"github.com/commq/commq/formats/timed"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Options control the import. Progress counts bytes: the records are read once, and twice again when they are sorted.
type Options = timed.Options

// ImportFile imports the trace in a file (.prv, also compressed with gzip) as the run of this name in a store; names
// come from the files .pcf and .row beside it, if there are. Without a name the run gets that of the file. An error
// names the file, the line and what was found.
func ImportFile(ctx context.Context, path, store, name string, o Options) (*schema.Manifest, error) {
	in, err := openLines(path)
	if err != nil {
		return nil, err
	}
	defer in.close()
	if name == "" {
		name = writer.NameFor(filepath.Base(trimEndings(path)))
	}
	names, err := readLabels(path)
	if err != nil {
		return nil, err
	}
	return importing.Run(ctx, store, name, o.Replace, func(out *writer.Run) (*schema.Manifest, error) {
		return importTo(ctx, in, names, out, o)
	})
}

// job is the state of an import.
type job struct {
	*timed.Job
	scan   *scan
	second []*reader // those of the second pass
}

// importTo reads the records and writes the run.
func importTo(ctx context.Context, in *lines, names *labels, out timed.Sink, o Options) (m *schema.Manifest, err error) {
	l, err := readLayout(in)
	if err != nil {
		return nil, err
	}
	report := func(int64) {}
	if o.Progress != nil {
		report = func(read int64) { o.Progress(read, 3*in.size) }
	}
	j := &job{scan: newScan(in, l, names)}
	defer func() { err = errors.Join(err, j.scan.items.close()) }()
	if err := j.scan.read(ctx, func() { report(in.read.n.Load()) }); err != nil {
		return nil, err
	}
	passes := o
	passes.Progress = func(read, all int64) {
		report(in.size + int64(2*float64(in.size)*float64(read)/float64(max(all, 1))))
	}
	hosts, hostOf := calls.Hosts(len(l.tasks), func(rank int) string { return names.node(l.tasks[rank].node) })
	j.Job = timed.New(timed.Trace{Comms: l.comms, Open: j.open, Size: j.scan.items.bytes, Hosts: hosts, HostOf: hostOf},
		passes)
	if err := j.Import(ctx, out); err != nil {
		return nil, err
	}
	if err := out.Write(0, &j.scan.sites.rows); err != nil {
		return nil, err
	}
	return j.manifest(o.Origin), nil
}

// open opens a rank for a pass.
func (j *job) open(rank int32, learning bool) ([]timed.Reader, error) {
	r, err := j.reader(rank)
	if err != nil {
		return nil, err
	}
	if !learning {
		j.second = append(j.second, r)
	}
	return []timed.Reader{r}, nil
}
