package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
	"github.com/commq/commq/writer/objects"
)

func newRunsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "runs",
		Short: "List, show, check and remove runs",
		Long: `runs lists, shows, checks and removes the runs of a store: --store, else $COMMQ_STORE, else ./runs. A
run is a folder with a manifest and Parquet tables that any tool can read. The folder's name is the run's name: mv
renames a run, cp -r makes a copy with another name.`,
		Example: `  commq runs list
  commq runs show bt.C.64
  commq runs check bt.C.64
  commq runs remove ring.4`,
	}
	c.AddCommand(newRunsListCommand(a), newRunsShowCommand(a), newRunsCheckCommand(a), newRunsProfileCommand(a),
		newRunsRemoveCommand(a))
	return c
}

// runsFormats are the formats of list and show.
var runsFormats = [...]string{"table", "json", "csv"}

// formatFlag adds --format to a command.
func formatFlag(c *cobra.Command, format *string) {
	c.Flags().StringVar(format, "format", "table", "`FORMAT` of the answer: "+strings.Join(runsFormats[:], ", "))
	complete(c, "format", runsFormats[:]...)
}

func newRunsListCommand(a *app) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the runs of the store",
		Long: `list prints a line for each run of the store, sorted by name. It leaves out folders that are not
runs.`,
		Example: `  commq runs list
  commq runs list --store /scratch/runs --format csv`,
		Args:              wantArgs(0, 0, "no arguments"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", format, runsFormats[:]...); err != nil {
				return err
			}
			return runRunsList(c.Context(), a, format)
		},
	}
	formatFlag(c, &format)
	a.exactFlag(c)
	return c
}

// listedRun is a line of commq runs list.
type listedRun struct {
	// Name is the name of the run.
	Name string `json:"run"`
	// Ranks is the number of processes in MPI_COMM_WORLD.
	Ranks int32 `json:"ranks"`
	// Calls is the number of MPI calls recorded.
	Calls int64 `json:"calls"`
	// Messages is the number of matched point-to-point messages.
	Messages int64 `json:"messages"`
	// MessageBytes is their payload.
	MessageBytes int64 `json:"message_bytes"`
	// Collectives is the number of collective operations: P ranks in one barrier are one.
	Collectives int64 `json:"collectives"`
	// TimeOrigin is where times come from: measured, virtual, simulated or untimed.
	TimeOrigin string `json:"time_origin"`
	// Record tells which rows of events the run has: all, messages or collectives.
	Record string `json:"record"`
	// Ended is finalized when every rank reached MPI_Finalize, else aborted or killed.
	Ended string `json:"ended"`
	// Started is when the run began, RFC 3339 in UTC; empty if that is not known.
	Started string `json:"started"`
	// FileBytes is the size of its tables on disk.
	FileBytes int64 `json:"file_bytes"`
	// Digest is the digest of its rows.
	Digest string `json:"digest"`
	// WrongFiles is how many of its files are missing or have another size than the manifest says: it was copied in
	// part. Files in an object store are not looked at: 0.
	WrongFiles int64 `json:"wrong_files"`

	// Remarks tells people what is not as in most runs; nil means nothing.
	Remarks any `json:"-"`
}

var listedColumns = [...]string{"run", "ranks", "calls", "messages", "message_bytes", "collectives", "time_origin",
	"record", "ended", "started", "file_bytes", "digest", "wrong_files"}

func (l listedRun) cells() []string {
	n := func(x int64) string { return strconv.FormatInt(x, 10) }
	return []string{l.Name, n(int64(l.Ranks)), n(l.Calls), n(l.Messages), n(l.MessageBytes), n(l.Collectives),
		l.TimeOrigin, l.Record, l.Ended, l.Started, n(l.FileBytes), l.Digest, n(l.WrongFiles)}
}

func runRunsList(ctx context.Context, a *app, format string) error {
	w, store := a.screen(format), a.storeDir()
	infos, err := a.listRuns(ctx)
	if err != nil {
		return err
	}
	lines := []listedRun{}
	for _, info := range infos {
		if info.Err != nil {
			a.warn("left out: %v", info.Err)
			continue
		}
		lines = append(lines, lineOf(info))
	}
	switch format {
	case "json":
		return printJSON(w, lines)
	case "csv":
		rows := [][]string{listedColumns[:]}
		for _, l := range lines {
			rows = append(rows, l.cells())
		}
		return printable.NewCSV(w).WriteAll(rows)
	}
	if len(lines) == 0 {
		a.note("no runs in %s; make one with commq capture", store)
		return nil
	}
	return a.writeRows("table", listedRows(lines, a.exact))
}

func lineOf(info writer.Info) listedRun {
	m := info.Manifest
	bytes, wrong := m.FileBytes(), 0
	if !objects.Is(info.Dir) {
		bytes, wrong = writer.OnDisk(info.Dir, m)
	}
	return listedRun{info.Name, m.Ranks, m.Counts.Calls, m.Counts.Messages, m.Counts.MessageBytes, m.Counts.Collectives,
		m.TimeOrigin, m.Record, m.Ended, m.Origin.Started, bytes, m.Digest, int64(wrong), remarksOn(m, wrong)}
}

// remarksOn returns the unusual properties of a run; nil if there are none. wrong is the number of missing or truncated
// files.
func remarksOn(m *schema.Manifest, wrong int) any {
	var all []string
	if text := run.Remarks(m); text != "" {
		all = append(all, text)
	}
	if wrong > 0 {
		all = append(all, fmt.Sprintf("incomplete: %s missing or cut off", counted(int64(wrong), "file")))
	}
	if len(all) == 0 {
		return nil
	}
	return strings.Join(all, ", ")
}

// listColumns are the columns of the table for people, which fit on a narrow screen.
var listColumns = []queries.Column{{Name: "run", Type: "VARCHAR"}, {Name: "ranks", Type: "INTEGER", Unit: "1"},
	{Name: "messages", Type: "BIGINT", Unit: "1"}, {Name: "sent", Type: "BIGINT", Unit: "bytes"},
	{Name: "collectives", Type: "BIGINT", Unit: "1"}, {Name: "remarks", Type: "VARCHAR"},
	{Name: "on_disk", Type: "BIGINT", Unit: "bytes"}}

// allListColumns are those of --exact, with the names of the other formats.
var allListColumns = []queries.Column{{Name: "run", Type: "VARCHAR"}, {Name: "ranks", Type: "INTEGER"},
	{Name: "calls", Type: "BIGINT"}, {Name: "messages", Type: "BIGINT"}, {Name: "message_bytes", Type: "BIGINT"},
	{Name: "collectives", Type: "BIGINT"}, {Name: "time_origin", Type: "VARCHAR"}, {Name: "record", Type: "VARCHAR"},
	{Name: "ended", Type: "VARCHAR"}, {Name: "started", Type: "VARCHAR"}, {Name: "file_bytes", Type: "BIGINT"},
	{Name: "digest", Type: "VARCHAR"}, {Name: "wrong_files", Type: "BIGINT"}}

// listedRows are the lines as rows of a table for people, or with all columns.
func listedRows(lines []listedRun, exact bool) queries.Rows {
	var rows [][]any
	for _, l := range lines {
		if exact {
			rows = append(rows, []any{l.Name, l.Ranks, l.Calls, l.Messages, l.MessageBytes, l.Collectives, l.TimeOrigin,
				l.Record, l.Ended, l.Started, l.FileBytes, l.Digest, l.WrongFiles})
		} else {
			rows = append(rows, []any{l.Name, l.Ranks, l.Messages, l.MessageBytes, l.Collectives, l.Remarks,
				l.FileBytes})
		}
	}
	if exact {
		return queries.RowsOf(allListColumns, rows)
	}
	return queries.RowsOf(listColumns, rows)
}

func newRunsShowCommand(a *app) *cobra.Command {
	var format string
	var runs []string
	c := &cobra.Command{
		Use:   "show RUN...",
		Short: "Show the contents of runs",
		Long: `show prints a run's manifest on one screen: ranks, calls, messages, collectives, how it ended, its
origin, warnings, and its tables. RUN is a name in the store, a path, or a pattern of either ('sp.A.*'). --format json
prints the manifest itself, of several runs one after the other; csv has a line for each table.`,
		Example: `  commq runs show bt.C.64
  commq runs show 'sp.A.*'
  commq runs show ./somewhere/ring.4 --format json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", format, runsFormats[:]...); err != nil {
				return err
			}
			return runRunsShow(c.Context(), a, runs, format, a.screen(format))
		},
	}
	a.wantsRuns(c, &runs, "to show")
	formatFlag(c, &format)
	a.exactFlag(c)
	return c
}

func runRunsShow(ctx context.Context, a *app, names []string, format string, w io.Writer) error {
	runs, err := foundRuns(ctx, a, names)
	if err != nil {
		return err
	}
	if format == "csv" {
		return showCSV(w, runs)
	}
	for i, r := range runs {
		if format == "json" {
			err = printJSON(w, r.Manifest)
		} else {
			if i > 0 {
				fmt.Fprintln(w)
			}
			err = showScreen(a, run.Found{Name: filepath.Base(r.Dir), Dir: r.Dir, Manifest: r.Manifest})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// foundRuns finds runs in folders or in object storage, and reads their manifests.
func foundRuns(ctx context.Context, a *app, names []string) ([]queries.Run, error) {
	if objects.Is(a.storeDir()) {
		return findObjects(ctx, a, names)
	}
	return findRuns(a, names)
}

// showCSV prints a line per table; of several runs the first column names the run.
func showCSV(w io.Writer, runs []queries.Run) error {
	rows := [][]string{{"run", "table", "rows", "files", "file_bytes", "digest"}}
	for _, r := range runs {
		for _, t := range r.Manifest.HeldTables() {
			rows = append(rows, []string{r.Name, t.Name, strconv.FormatInt(t.Rows, 10), strconv.Itoa(len(t.Files)),
				strconv.FormatInt(t.FileBytes(), 10), t.Digest})
		}
	}
	if len(runs) == 1 {
		for i := range rows {
			rows[i] = rows[i][1:]
		}
	}
	return printable.NewCSV(w).WriteAll(rows)
}

// showScreen prints a run for people.
func showScreen(a *app, r run.Found) error {
	facts := r.Facts(a.exact)
	for _, warning := range r.Manifest.Warnings {
		facts = append(facts, run.Fact{Name: "warning", Value: warning})
	}
	if err := writeFacts(a.out(), "", facts, a.text()); err != nil {
		return err
	}
	fmt.Fprintln(a.out())
	return a.writeRows("table", filesOfTables(r.Manifest, a.exact))
}

// filesOfTables has a row for each table of a run; exact takes the names of columns that csv has.
func filesOfTables(m *schema.Manifest, exact bool) queries.Rows {
	size := "on_disk"
	if exact {
		size = "file_bytes"
	}
	columns := []queries.Column{{Name: "table", Type: "VARCHAR"}, {Name: "rows", Type: "BIGINT", Unit: "1"},
		{Name: "files", Type: "BIGINT", Unit: "1"}, {Name: size, Type: "BIGINT", Unit: "bytes"},
		{Name: "bytes_per_row", Type: "DOUBLE", Unit: "1"}}
	var rows [][]any
	for _, t := range m.HeldTables() {
		var per any
		if bytes, known := t.BytesPerRow(); known {
			per = bytes
		}
		rows = append(rows, []any{t.Name, t.Rows, int64(len(t.Files)), t.FileBytes(), per})
	}
	return queries.RowsOf(columns, rows)
}

func newRunsCheckCommand(a *app) *cobra.Command {
	var format string
	var runs []string
	c := &cobra.Command{
		Use:   "check RUN...",
		Short: "Check that the files of runs are consistent",
		Long: `check reads every row of a run and prints a line for each place that breaks a rule: digests and counts
that differ from the manifest, rows out of order, undefined ids, messages without their send or receive.
docs/SCHEMA.md lists the rules. RUN is a name in the store, a path, or a pattern of either. Exit status: 0 when no
rule is broken, 1 when one is.`,
		Example: `  commq runs check bt.C.64
  commq runs check 'sp.A.*' --format json`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := oneOf("format", format, spokenFormats[:]...); err != nil {
				return err
			}
			return runRunsCheck(c.Context(), a, runs, format, a.stdout)
		},
	}
	a.wantsRuns(c, &runs, "to check")
	c.Flags().StringVar(&format, "format", "text", "`FORMAT` of the answer: text or json")
	complete(c, "format", spokenFormats[:]...)
	return c
}

// checkedRun is the result of commq runs check for a run.
type checkedRun struct {
	// Run is the run as it was named on the command line.
	Run string `json:"run"`
	// OK is true if no rule is broken.
	OK bool `json:"ok"`
	// Problems are the places that break a rule.
	Problems []string `json:"problems"`
}

func runRunsCheck(ctx context.Context, a *app, runs []string, format string, w io.Writer) error {
	broken, all := false, []checkedRun{}
	var lacking []queries.Run
	paint := painter(w)
	err := run.Each(a.storeDir(), runs, func(run, dir string) error {
		problems, err := writer.Check(ctx, dir)
		if err != nil {
			return err
		}
		c := checkedRun{Run: run, OK: len(problems) == 0, Problems: []string{}}
		for _, p := range problems {
			c.Problems = append(c.Problems, p.String())
		}
		all, broken = append(all, c), broken || !c.OK
		if m, err := writer.ReadManifest(dir); err == nil && m.Counts.Dropped > 0 { // not by request
			lacking = append(lacking, queries.Run{Name: run, Manifest: m})
		}
		if format == "json" {
			return nil
		}
		var b strings.Builder
		for _, p := range c.Problems {
			fmt.Fprintf(&b, "%s: %s\n", printable.Line(run), paint(red, printable.Line(p)))
		}
		if c.OK {
			fmt.Fprintf(&b, "%s: %s\n", printable.Line(run), paint(green, "ok"))
		}
		_, err = io.WriteString(w, b.String())
		return err
	})
	if err != nil {
		return err
	}
	if format == "json" {
		if err := printJSON(w, all); err != nil {
			return err
		}
	}
	noteLacking(a, lacking, func(*schema.Manifest) schema.Reads { return schema.ReadsAll })
	if broken {
		return exitError(exitFailed)
	}
	return nil
}

func newRunsRemoveCommand(a *app) *cobra.Command {
	var runs []string
	c := &cobra.Command{
		Use:     "remove RUN...",
		Aliases: []string{"rm"},
		Short:   "Remove runs from the store",
		Long: `remove deletes the runs of these names or patterns ('rr.*') from the store, without asking. It takes no
paths, deletes nothing but runs, and nothing outside the store, which may be object storage.`,
		Example: `  commq runs remove ring.4
  commq runs remove --store s3://jobs/2026-11 bt.C.64
  commq runs remove --store /scratch/runs bt.C.64 cg.A.4`,
		RunE: func(c *cobra.Command, _ []string) error {
			if objects.Is(a.storeDir()) {
				return removeObjects(c.Context(), a, runs)
			}
			names, err := namesInStore(a, runs)
			if err != nil {
				return err
			}
			for _, name := range names {
				if err := writer.Remove(a.storeDir(), name); err != nil {
					return err
				}
				a.note("removed run %s", name)
			}
			return nil
		},
	}
	a.wantsStored(c, &runs, "to remove")
	return c
}

// namesInStore are the names of the runs of the store that names and patterns match, each once.
func namesInStore(a *app, namesOrPatterns []string) (names []string, err error) {
	for _, name := range namesOrPatterns {
		dirs := []string{name}
		if name != "" && !isPattern(name) && filepath.Base(name) != name {
			return nil, notInStore(a, name)
		}
		if isPattern(name) {
			if dirs, err = run.Match(a.storeDir(), name); err != nil {
				return nil, err
			}
		}
		for _, dir := range dirs {
			if isPattern(name) {
				if filepath.Dir(dir) != filepath.Clean(a.storeDir()) {
					return nil, notInStore(a, dir)
				}
				dir = filepath.Base(dir)
			}
			if !slices.Contains(names, dir) {
				names = append(names, dir)
			}
		}
	}
	return names, nil
}

// notInStore refuses a path where a name in the store is wanted, and says how that run is removed.
func notInStore(a *app, path string) error {
	refused := fmt.Errorf("runs remove: %s is a path; want the name of a run in the store %s", path, a.storeDir())
	if objects.Is(path) {
		return refused
	}
	path = filepath.Clean(path)
	return fmt.Errorf("%w; to remove it: commq runs remove --store %s", refused,
		shellquote.Join(filepath.Dir(path), filepath.Base(path)))
}
