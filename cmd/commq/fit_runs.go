package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/predict"
	"github.com/commq/commq/writer"
)

// fittedRuns is what fit --runs says.
type fittedRuns struct {
	Runs                []fittedRun          `json:"runs"`
	TrainingMessages    int64                `json:"training_messages"`
	TrainingUnexplained int64                `json:"training_messages_unexplained"`
	Laws                []predict.PrintedLaw `json:"laws"`
	Unexplained         []string             `json:"unexplained"`
	Warnings            []string             `json:"warnings"`
}

// fittedRun is a run that was learnt from.
type fittedRun struct {
	Run   string `json:"run"`
	Ranks int32  `json:"ranks"`
	Calls int64  `json:"calls"`
	// Captures are those whose compute times are pooled, where there are several on that number of ranks.
	Captures []predict.Capture `json:"captures,omitempty"`
}

func runFitRuns(ctx context.Context, a *app, o *fitOptions) error {
	runs, err := signatures(ctx, a, o.runs)
	if err != nil {
		return err
	}
	m, err := newModel(ctx, runs)
	if err != nil {
		return fmt.Errorf("fit: %w", err)
	}
	if o.output != "" {
		if err := writeFile(o.output, packed(o.output, m.Write)); err != nil {
			return err
		}
	}
	p := fitted(m)
	if o.format == "json" {
		return printJSON(a.stdout, p)
	}
	return p.text(a.screen(), o.output)
}

// fitted is what there is to be said of a model.
func fitted(m *predict.Model) *fittedRuns {
	p := &fittedRuns{TrainingMessages: m.Traffic, TrainingUnexplained: m.Unexplained, Laws: m.Laws(), Warnings: m.Warnings}
	for _, s := range m.Runs() {
		p.Runs = append(p.Runs, fittedRun{s.Run, s.Ranks, s.Calls, s.Captures})
	}
	for _, u := range m.Pattern.Unexplained {
		p.Unexplained = append(p.Unexplained, u.Slot+": "+u.Why)
	}
	return p
}

// text prints it for people.
func (p *fittedRuns) text(w io.Writer, output string) error {
	var b strings.Builder
	for _, r := range p.Runs {
		fmt.Fprintf(&b, "%s: %s, %s", r.Run, counted(int64(r.Ranks), "rank"), counted(r.Calls, "call"))
		if n := len(r.Captures); n > 0 {
			var names []string
			for _, c := range r.Captures {
				names = append(names, c.Run)
			}
			fmt.Fprintf(&b, "; compute times are the medians of %d captures: %s", n, strings.Join(names, ", "))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%s of %s of the largest have no law\n", grouped(p.TrainingUnexplained), counted(p.TrainingMessages, "message"))
	if err := lawsText(&b, p.Laws); err != nil {
		return err
	}
	for _, u := range p.Unexplained {
		fmt.Fprintf(&b, "not explained: %s\n", u)
	}
	for _, t := range p.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", t)
	}
	if output != "" {
		fmt.Fprintf(&b, "%s: commq extrapolate --models %s --ranks P makes the run at P ranks\n", output, output)
	}
	_, err := io.WriteString(printable.Writer(w), b.String())
	return err
}

// signatures are those of the runs, and the files of commq sign, that patterns name, by their numbers of ranks. Runs are signed as many at once as there
// are CPUs.
func signatures(ctx context.Context, a *app, patterns []string) ([]*predict.Signature, error) {
	var make []func(context.Context) (*predict.Signature, error)
	for _, pattern := range patterns {
		files, err := signatureFiles(pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			make = append(make, func(context.Context) (*predict.Signature, error) { return readSignature(file) })
		}
		if files != nil {
			continue
		}
		dirs, _, err := writer.FindAll(a.storeDir(), pattern)
		if err != nil {
			return nil, err
		}
		for _, dir := range dirs {
			make = append(make, func(ctx context.Context) (*predict.Signature, error) { return signRun(ctx, dir) })
		}
	}
	show, clear := statusLine(a)
	defer clear()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all, errs := slices.Repeat([]*predict.Signature{nil}, len(make)), slices.Repeat([]error{nil}, len(make))
	var wait sync.WaitGroup
	var mu sync.Mutex
	next, done := 0, 0
	for range min(len(make), runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(make) || ctx.Err() != nil {
					return
				}
				if all[i], errs[i] = make[i](ctx); errs[i] != nil {
					cancel()
				}
				mu.Lock()
				done++
				show(fmt.Sprintf("signed %d of %s", done, counted(int64(len(make)), "run")))
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	for _, err := range errs { // the first that is not of the others' end
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil, err
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b *predict.Signature) int { return int(a.Ranks) - int(b.Ranks) })
	return all, nil
}

// signRun makes the signature of the run in a folder.
func signRun(ctx context.Context, dir string) (*predict.Signature, error) {
	run, err := predicted(ctx, dir)
	if err != nil {
		return nil, err
	}
	return predict.Sign(run)
}

// signatureFiles are the files of commq sign that a pattern names; nil where it does not end as these do.
func signatureFiles(pattern string) ([]string, error) {
	if !strings.HasSuffix(pattern, ".json") && !strings.HasSuffix(pattern, ".gz") {
		return nil, nil
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pattern, err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: no such file; commq sign --run RUN -o FILE makes it", pattern)
	}
	return files, nil
}

// readSignature reads a file of commq sign, compressed where its name says so.
func readSignature(name string) (*predict.Signature, error) {
	in, err := openPacked(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	s, err := predict.Read(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

// openPacked opens a file that is compressed where its name says so.
func openPacked(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil || !strings.HasSuffix(name, ".gz") {
		return f, err
	}
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{z, f}, nil
}

// packed is write, compressed where the name of the file says so.
func packed(name string, write func(io.Writer) error) func(io.Writer) error {
	if !strings.HasSuffix(name, ".gz") {
		return write
	}
	return func(w io.Writer) error {
		z := gzip.NewWriter(w)
		return errors.Join(write(z), z.Close())
	}
}
