package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/models"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/models/simulate/stored"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
	"github.com/commq/commq/ui"
)

// uiOptions are the flags of commq ui.
type uiOptions struct {
	runs    []string      // --run
	port    int           // --port
	browser bool          // --browser
	memory  int           // --memory
	threads int           // --threads
	timeout time.Duration // --timeout
	once    string        // --once
}

func newUICommand(a *app) *cobra.Command {
	o := uiOptions{browser: true}
	c := &cobra.Command{
		Use:   "ui [RUN...]",
		Short: "Look at runs in a browser: timeline, matrix, call sites, SQL",
		Long: `ui serves a page about the given runs, or all runs of the store, on 127.0.0.1 and opens it in the browser.
It prints the address, which only you can use since it ends in a secret, and where there is no browser the
line for an ssh tunnel from a machine that has one. Ctrl-C ends it.

The page shows why a run is slow, its timeline down to the single call and message, who sends how much to whom,
where in the source, when, how long it would take on another machine, two runs one above the other, and answers
SQL. A time, ranks or a communicator that you select in one view limit the others. Each picture tells its SQL and
its command line. Nothing is changed and nothing leaves the machine.`,
		Example: `  commq ui
  commq ui bt.C.64 cg.A.16
  commq ui cg.A.16 --once cg.html
  commq ui 'sp.A.*' --port 8123 --browser=false`,
		RunE: func(c *cobra.Command, _ []string) error { return runUI(c.Context(), a, &o) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.runs, "run", nil, "`RUN` to show: a name in the store, a path, or a pattern of either; may "+
		"be repeated (default: all runs of the store)")
	register(c, completeRuns(a), "run")
	a.readsRuns(c)
	f.IntVar(&o.port, "port", 0, "`PORT` to listen on (default: one that is free)")
	f.BoolVar(&o.browser, "browser", true, "open the page in the browser, if there is one")
	f.IntVar(&o.memory, "memory", 1024, "memory in `MIB` that the engine of a run may use before it spills to the "+
		"folder for temporary files; at most six are open")
	f.IntVar(&o.threads, "threads", 0, "number `N` of cores that the engine may use (default: all)")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "longest `TIME` that a question may take")
	f.StringVar(&o.once, "once", "", "write a `FILE`.html that shows the runs without commq, and end")
	completeFiles(c, "once", "html")
	a.writes(c)
	completeNothing(c, "port", "memory", "threads", "timeout")
	return c
}

func (o *uiOptions) check() error {
	switch {
	case o.port < 0 || o.port > 65535:
		return fmt.Errorf("--port %d: want 1 to 65535, or 0 for one that is free", o.port)
	case o.threads < 0:
		return fmt.Errorf("--threads %d: want a number of cores, 0 for all", o.threads)
	case o.timeout <= 0:
		return fmt.Errorf("--timeout %v: want more than 0, as in 30s", o.timeout)
	case o.once != "" && filepath.Ext(o.once) != ".html":
		return fmt.Errorf("--once %s: want a name that ends in .html, as browsers do", o.once)
	}
	return checkMemory(o.memory, leastMemory)
}

func runUI(ctx context.Context, a *app, o *uiOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	s, token, err := newUIServer(ctx, a, o)
	if err != nil {
		return err
	}
	if o.once != "" {
		err := a.writeFile(o.once, func(w io.Writer) error { return s.WritePage(ctx, w) })
		if err == nil {
			a.note("%s written", o.once)
		}
		return errors.Join(err, s.Close())
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return errors.Join(fmt.Errorf("--port %d: %w", o.port, err), s.Close())
	}
	port := listener.Addr().(*net.TCPAddr).Port
	address := fmt.Sprintf("http://127.0.0.1:%d/?token=%s", port, token)
	if _, err := fmt.Fprintln(a.out(), address); err != nil {
		return errors.Join(err, listener.Close(), s.Close())
	}
	opened, removePage := false, func() {}
	if o.browser {
		opened, removePage = openBrowser(address)
	}
	defer removePage()
	if opened {
		a.note("if the browser finds no page, open the address above in it")
	} else {
		a.note("from another machine: ssh -N -L %d:127.0.0.1:%d %s, then open the address there", port, port, thisHost())
	}
	a.note("Ctrl-C ends it")
	if !signal.Ignored(syscall.SIGHUP) { // a closed terminal, or ssh
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, syscall.SIGHUP)
		defer stop()
	}
	return errors.Join(serve(ctx, s, listener), s.Close())
}

// finder returns a function that finds the runs to show. All runs that are named must be there when it is first called;
// one that is removed later is left out, and the others are still shown. It warns about each run that it leaves out
// once, not for each list.
func (o *uiOptions) finder(a *app) func(context.Context) ([]run.Found, error) {
	var warned sync.Map
	var started atomic.Bool
	leftOut := func(err error) {
		if _, before := warned.LoadOrStore(err.Error(), true); !before {
			a.warn("left out: %v", err)
		}
	}
	return func(context.Context) ([]run.Found, error) {
		switch {
		case len(o.runs) == 0:
			return run.All(a.storeDir(), leftOut)
		case started.Swap(true):
			return run.FindPresent(a.storeDir(), o.runs, leftOut)
		}
		return run.FindAll(a.storeDir(), o.runs)
	}
}

// newUIServer makes the server, after it has found the runs once.
func newUIServer(ctx context.Context, a *app, o *uiOptions) (s *ui.Server, token string, err error) {
	l, err := a.queryLibrary()
	if err != nil {
		return nil, "", err
	}
	find := o.finder(a)
	found, err := find(ctx)
	if err == nil && len(found) == 0 {
		err = errNoRun
	}
	if err == nil {
		err = distinct(queriedRuns(found))
	}
	if err != nil {
		return nil, "", err
	}
	token = ui.NewToken()
	s, err = ui.New(ui.Options{Token: token, Runs: find, Queries: l.all, Timeout: o.timeout, Version: version,
		Args:     func(f run.Found) []string { return runArgs(a, queriedRuns([]run.Found{f})[0]) },
		Engine:   queries.Options{MemoryBytes: int64(o.memory) << 20, Threads: o.threads, ByColumn: true},
		Machines: uiMachines(), Simulate: simulateForUI, Predict: predictForUI,
		CriticalPath: a.pathForUI,
		Diagnose: func(ctx context.Context, f run.Found) (any, error) {
			d, err := newDiagnoseOptions(o.memory, "").diagnose(ctx, a, f, func(string) {})
			if err != nil {
				return nil, err
			}
			return shownDiagnosis{d, d.Verdict(), d.Gains(), d.Shown(diagnoseLeast, diagnoseShown)}, nil
		}})
	return s, token, err
}

// serve answers requests until ctx ends.
func serve(ctx context.Context, s http.Handler, listener net.Listener) error {
	server := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 1 << 16,
		BaseContext:    func(net.Listener) context.Context { return ctx }}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := server.Shutdown(last)
	if errors.Is(err, context.DeadlineExceeded) {
		err = server.Close() // s waits for what it still does when it is closed
	}
	return err
}

// openBrowser opens an address in the browser of a desktop; opened is false if there is none. All users of the machine
// can read the command lines of xdg-open and the browser, so these name a page that leads to the address and that only
// its owner can read; remove removes it.
func openBrowser(address string) (opened bool, remove func()) {
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return false, func() {}
	}
	dir, err := os.MkdirTemp("", "commq-ui-*") // 0700
	if err != nil {
		return false, func() {}
	}
	remove = func() { _ = os.RemoveAll(dir) } // the secret in it ends with the server
	page := filepath.Join(dir, "open.html")
	text := fmt.Sprintf(`<!DOCTYPE html><meta charset="utf-8"><title>commq ui</title>
<meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=%[1]s">
<p><a href="%[1]s">Open commq ui</a></p>
`, html.EscapeString(address))
	if err := os.WriteFile(page, []byte(text), 0o600); err != nil {
		return false, remove
	}
	c := exec.Command("xdg-open", page)
	if err := c.Start(); err != nil {
		return false, remove
	}
	go c.Wait()
	return true, remove
}

// thisHost returns USER@HOST for ssh.
func thisHost() string {
	host, err := os.Hostname()
	if err != nil {
		host = "HOST"
	}
	if u, err := user.Current(); err == nil {
		return u.Username + "@" + host
	}
	return host
}

// shownDiagnosis is a diagnosis as the page gets it.
type shownDiagnosis struct {
	*diagnose.Diagnosis
	Verdict string `json:"verdict"`
	// Gains are what the findings cost, in words.
	Gains []string `json:"gains"`
	// Shown is how many of the findings matter.
	Shown int `json:"shown"`
}

// uiMachines are the machines that commq knows by name, as the page gets them.
func uiMachines() (all []ui.Machine) {
	for _, name := range models.Names() {
		m, err := models.Named(name)
		if err != nil {
			continue // a test reads them all
		}
		one := ui.Machine{Name: name, LatencyNs: float64(m.Network.Latency) / 1000, Buses: m.Network.Buses,
			CPURatio: m.CPURatio, CPUsPerNode: m.CPUsPerNode, BytesPerSecond: float64(m.Network.BytesPerSecond)}
		if m.Network.BytesPer > 1 {
			one.BytesPerSecond /= float64(m.Network.BytesPer)
		}
		all = append(all, one)
	}
	return all
}

// pathForUI finds the critical path of a run as commq critical-path does.
func (a *app) pathForUI(ctx context.Context, f run.Found) (ui.Path, error) {
	r, err := run.Open(ctx, f.Dir, critical.Need)
	if err != nil {
		return nil, err
	}
	p, err := critical.FromRun(ctx, r, critical.Options{LeaveOutStartup: true, Trace: true, Segments: true})
	if err != nil {
		return nil, err
	}
	summary := fmt.Sprintf("%s, %s: %s", a.duration(p.DurationNs), counted(int64(p.RankChanges), "change")+" of rank",
		p.Shares())
	return func(fromNs, toNs int64, most int) ui.PathParts {
		parts, step := p.Within(fromNs, toNs, most)
		answer := ui.PathParts{Parts: []ui.PathPart{}, StepNs: step, Summary: summary}
		for _, s := range parts {
			part := ui.PathPart{Rank: s.Rank, FromNs: s.From, ToNs: s.To, Kind: s.Kind.String()}
			if step == 0 {
				part.Call = s.Call.String()
			}
			answer.Parts = append(answer.Parts, part)
		}
		return answer
	}, nil
}

// predictForUI writes the run that commq simulate --name does.
func predictForUI(ctx context.Context, f run.Found, machine string, changes []string, store, name string) error {
	s, err := simulationForUI(ctx, f, machine, changes)
	if err == nil {
		_, err = s.Predict(ctx, stored.Wanted{Store: store, Save: name, Commq: version})
	}
	return err
}

// simulationForUI opens a run for a simulation on a machine.
func simulationForUI(ctx context.Context, f run.Found, machine string, changes []string) (*stored.Simulation, error) {
	target, err := simulate.ReadTarget(simulate.TargetOptions{Machine: machine, Set: changes})
	if err != nil {
		return nil, err
	}
	s, err := stored.Open(ctx, f.Dir, target)
	if err != nil {
		return nil, err
	}
	s.MemoryBytes = simulateMemoryMiB << 20
	return s, nil
}

// simulateForUI answers what commq simulate --critical-path does, in JSON.
func simulateForUI(ctx context.Context, f run.Found, machine string, changes []string) (any, error) {
	s, err := simulationForUI(ctx, f, machine, changes)
	if err != nil {
		return nil, err
	}
	found, err := s.Predict(ctx, stored.Wanted{Ideal: true, Path: true})
	if err != nil {
		return nil, err
	}
	p := s.Answer(found)
	p.CriticalPath = found.Path.Parts(critical.Keys, s.Run.Place(ctx))
	return p, nil
}
