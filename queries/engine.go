package queries

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/bits"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/schema"
)

// Options say what the engine may use. The zero value works.
type Options struct {
	// MemoryBytes bounds the engine's memory; what does not fit spills to TempDir. 0 is 4 GiB.
	MemoryBytes int64
	// TempDir is where it spills to; it is made when needed. Empty is a folder of this process in the system's folder for
	// temporary files.
	TempDir string
	// Threads is how many cores it uses; 0 is all.
	Threads int
	// Objects is how object storage is reached where runs lie in it, their Dir an s3:// URL.
	Objects *Objects
	// Trino is the address of a Trino server that the runs are registered with, as Dial has it: it is asked instead of the engine
	// in this process, which the other options are about. Empty is none.
	Trino string
}

const defaultMemoryBytes = 4 << 30

// DB is an engine over one or more runs: DuckDB in memory over their files, or a Trino server that knows them. Its views are the tables of the schema with the column
// run before them, and runs, a row per run with what its manifest says. Nothing is ever written into a run's folder:
// only SELECT runs, and no file but those of the runs can be read. It must be closed.
type DB struct {
	db       *sql.DB
	conn     *sql.Conn
	runs     []Run
	preamble string
	remote   *remote // nil: the engine is in this process
}

// Open makes an engine over runs. Names of runs must differ. Errors name the run and what is wrong with it.
func Open(ctx context.Context, runs []Run, o Options) (*DB, error) {
	if o.Trino != "" {
		return openTrino(ctx, runs, o.Trino)
	}
	views, paths, err := viewsOf(runs)
	if err != nil {
		return nil, err
	}
	d, err := connect(ctx, settings(o, groupBits(runs)))
	if err != nil {
		return nil, fmt.Errorf("start the query engine: %w", err)
	}
	for _, s := range []string{ // those with which it cannot start
		"SET enable_progress_bar = false",
		"SET parquet_metadata_cache = true", // else a file's footer is read for the view and again for each query
	} {
		if err := d.exec(ctx, s); err != nil {
			return nil, errors.Join(fmt.Errorf("set up the query engine: %w", err), d.Close())
		}
	}
	if slices.ContainsFunc(runs, func(r Run) bool { return inObjects(r.Dir) }) {
		if err := d.openObjects(ctx, o.Objects); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	for _, v := range views {
		if err := d.exec(ctx, v); err != nil {
			return nil, errors.Join(fmt.Errorf("open the runs' files: %w", d.damage(ctx, runs, err)), d.Close())
		}
	}
	if err := d.typed(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the runs' files: %w", d.damage(ctx, runs, err)), d.Close())
	}
	if err := d.lock(ctx, paths); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the query engine: %w", err), d.Close())
	}
	d.runs = runs
	d.preamble = strings.Join(views, ";\n") + ";\n"
	return d, nil
}

func connect(ctx context.Context, settings url.Values) (*DB, error) {
	connector, err := duckdb.NewConnector("?"+settings.Encode(), nil)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &DB{db: db, conn: conn}, nil
}

// Close ends the engine.
func (d *DB) Close() error {
	return errors.Join(d.conn.Close(), d.db.Close())
}

// Whole is the text of a query with the SQL before it that makes the tables of the runs: the duckdb shell, or a client of the Trino server, runs it.
func (d *DB) Whole(text string) string {
	if d.remote != nil {
		whole, _ := d.remote.with(text)
		return whole
	}
	return d.preamble + "\n" + text
}

func (d *DB) exec(ctx context.Context, s string) error {
	_, err := d.conn.ExecContext(ctx, s)
	return err
}

// settings make the engine predictable: bounded, in order, without network. It starts with them: as statements each would take a
// quarter of a millisecond.
func settings(o Options, groupBits int) url.Values {
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = defaultMemoryBytes
	}
	if o.TempDir == "" {
		o.TempDir = filepath.Join(os.TempDir(), fmt.Sprintf("commq-query-%d", os.Getpid()))
	}
	s := url.Values{}
	s.Set("memory_limit", fmt.Sprintf("%dB", o.MemoryBytes))
	s.Set("temp_directory", o.TempDir)
	s.Set("autoinstall_known_extensions", "false")
	s.Set("autoload_known_extensions", "false")
	s.Set("perfect_ht_threshold", strconv.Itoa(groupBits))
	if o.Threads > 0 {
		s.Set("threads", strconv.Itoa(o.Threads))
	}
	return s
}

// groupBits is how many bits a pair of world ranks takes, at least the engine's own default. The engine groups by integers
// whose range it knows and that have so many bits together in a plain array instead of a hash table: density of 100 M
// messages in 0.38 s instead of 0.61 s (bench/query.md). It is bounded because each thread has its own array: 2^18
// entries, for up to 510 ranks, are about 10 MB.
func groupBits(runs []Run) int {
	least, most := 12, 18
	for _, r := range runs {
		least = max(least, 2*bits.Len32(uint32(r.Manifest.Ranks)+1)) // the engine keeps a value for null
	}
	return min(least, most)
}

// lock takes away what a query does not need: other files, the network, the settings.
func (d *DB) lock(ctx context.Context, paths []string) error {
	quoted := patterns(paths) // the engine asks for the pattern first, then for the file
	for _, p := range paths {
		quoted = append(quoted, quote(p))
	}
	for _, s := range []string{
		"SET allowed_paths = [" + strings.Join(quoted, ", ") + "]",
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	} {
		if err := d.exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// viewsOf is the SQL of the views over runs, and the files they read.
func viewsOf(runs []Run) (views, paths []string, err error) {
	if len(runs) == 0 {
		return nil, nil, errors.New("no run given; name one with --run")
	}
	seen := map[string]string{}
	dirs := make([]string, len(runs))
	for i, r := range runs {
		if dirs[i] = r.Dir; !inObjects(r.Dir) {
			if dirs[i], err = filepath.Abs(r.Dir); err != nil {
				return nil, nil, err
			}
		}
		if other, twice := seen[r.Name]; twice {
			return nil, nil, fmt.Errorf("two runs are called %q: %s and %s", r.Name, other, dirs[i])
		}
		seen[r.Name] = dirs[i]
	}
	for _, t := range schema.Tables() {
		var parts []string
		for i, r := range runs {
			files, err := tableFiles(r, dirs[i], t)
			if err != nil {
				return nil, nil, err
			}
			paths = append(paths, files...)
			part := selectTable(r.Name, t, files)
			if t.Derived && len(files) == 0 { // the run of an older commq, or one that leaves out rows
				if part, err = derivedPart(r, dirs[i], t, len(runs) == 1); err != nil {
					return nil, nil, err
				}
			}
			parts = append(parts, part)
		}
		views = append(views, "CREATE VIEW "+quoteName(t.Name)+" AS\n"+strings.Join(parts, "\nUNION ALL\n"))
	}
	return append(views, runsView(runs)), paths, nil
}

// tableFiles are the files of a run's table; none when the run lacks the table.
func tableFiles(r Run, dir string, t *schema.Table) ([]string, error) {
	info := tableInfo(r.Manifest, t.Name)
	if info == nil {
		return nil, nil
	}
	var files []string
	for _, f := range info.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			return nil, fmt.Errorf("run %q: the manifest names the file %q, which is not in the run's folder", r.Name, f.Path)
		}
		if inObjects(dir) {
			files = append(files, dir+"/"+f.Path)
			continue
		}
		name := filepath.Join(dir, filepath.FromSlash(f.Path))
		if globMeta.MatchString(name) && strings.Contains(name, `\`) {
			return nil, fmt.Errorf(`run %q: the path %q has a \ and one of * ? [ ], and the engine cannot open such a file; rename the folder`, r.Name, dir)
		}
		there, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("run %q: table %s: %w; the run is damaged, see commq runs check", r.Name, t.Name, err)
		}
		if there.Size() != f.Bytes {
			return nil, fmt.Errorf("run %q: %s has %d bytes, the manifest says %d; the run is damaged: copy it or capture it again; commq runs check %s says more",
				r.Name, f.Path, there.Size(), f.Bytes, shellquote.Join(r.Dir))
		}
		files = append(files, name)
	}
	return files, nil
}

// unionFiles is up to how many files a table is read one by one. The engine knows the range of a column only where it
// reads a single file, and groupBits needs it.
const unionFiles = 32

// selectTable reads a table of one run, its columns in schema order. Their types are the files', which typed compares.
func selectTable(run string, t *schema.Table, files []string) string {
	if len(files) == 0 {
		return selectColumns(run, t, func(c schema.Column) string { return "CAST(NULL AS " + c.Type.SQL() + ") AS " + quoteName(c.Name) }) + " WHERE FALSE"
	}
	columns := selectColumns(run, t, func(c schema.Column) string { return quoteName(c.Name) })
	if len(files) > unionFiles {
		return columns + "\nFROM read_parquet([" + strings.Join(patterns(files), ", ") + "])"
	}
	parts := patterns(files)
	for i, p := range parts {
		parts[i] = columns + "\nFROM read_parquet(" + p + ")"
	}
	return strings.Join(parts, "\nUNION ALL\n")
}

func selectColumns(run string, t *schema.Table, from func(schema.Column) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "SELECT %s AS run", quote(run))
	for _, c := range t.Columns {
		b.WriteString(", " + from(c))
	}
	return b.String()
}

var globMeta = regexp.MustCompile(`[*?\[\]]`)

// patterns are files as read_parquet takes them: characters that mean something in a file pattern stand in brackets to
// mean themselves.
func patterns(files []string) []string {
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = quote(globMeta.ReplaceAllString(f, "[$0]"))
	}
	return quoted
}

// appRe is a run name of the form APP.CLASS.RANKS, as the NAS parallel benchmarks are called.
var appRe = regexp.MustCompile(`^([^.]+)\.([^.]+)\.[0-9]+$`)

// appOf is the program and the class that a run's name tells, "" where it tells none.
func appOf(run string) (app, class string) {
	if m := appRe.FindStringSubmatch(run); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

// textOrNull is a text as a literal, and an empty one as null.
func textOrNull(s string) string {
	if s == "" {
		return "CAST(NULL AS VARCHAR)"
	}
	return quote(s)
}

// runColumn is a column of runs, with the value of a run.
type runColumn struct{ name, typ, literal string }

// runColumns are the columns of runs: what the run's manifest says.
func runColumns(r Run) []runColumn {
	m, c := r.Manifest, r.Manifest.Counts
	app, class := appOf(r.Name)
	text := func(name, literal string) runColumn { return runColumn{name, "VARCHAR", literal} }
	number := func(name, typ string, value int64) runColumn {
		return runColumn{name, typ, fmt.Sprintf("CAST(%d AS %s)", value, typ)}
	}
	all := []runColumn{text("run", quote(r.Name)), text("app", textOrNull(app)), text("class", textOrNull(class)), number("ranks", "INTEGER", int64(m.Ranks)),
		text("label", textOrNull(m.Origin.Label)), text("time_origin", quote(m.TimeOrigin)), text("compute_clock", quote(m.ComputeClock)),
		text("record", quote(m.Record)), text("hash", quote(m.Hash)), text("ended", quote(m.Ended)),
		number("end_ns", "BIGINT", m.EndNs), number("epochs", "INTEGER", int64(m.Epochs))}
	for _, v := range []struct {
		value int64
		name  string
	}{{c.Calls, "calls"}, {c.Polls, "polls"}, {c.Messages, "messages"}, {c.MessageBytes, "message_bytes"},
		{c.Collectives, "collectives"}, {c.UnmatchedSends, "unmatched_sends"}, {c.UnmatchedReceives, "unmatched_receives"},
		{c.WildcardReceives, "wildcard_receives"}, {c.Dropped, "dropped"}, {c.InProgress, "in_progress"}, {c.OverlappingCalls, "overlapping_calls"}} {
		all = append(all, number(v.name, "BIGINT", v.value))
	}
	return append(all, text("digest", quote(m.Digest)), text("command", quote(strings.Join(m.Origin.Command, " "))),
		text("mpi", quote(m.Origin.MPI)), text("started", quote(m.Origin.Started)))
}

// runsView is the view runs: what the manifests say.
func runsView(runs []Run) string {
	parts := make([]string, len(runs))
	for i, r := range runs {
		var columns []string
		for _, c := range runColumns(r) {
			columns = append(columns, c.literal+" AS "+c.name)
		}
		parts[i] = "SELECT " + strings.Join(columns, ", ")
	}
	return "CREATE VIEW runs AS\n" + strings.Join(parts, "\nUNION ALL\n")
}

// CheckCondition says whether a condition means something on the columns of a table. Its error has the engine's own
// message and the columns.
func (d *DB) CheckCondition(ctx context.Context, table, cond string) error {
	text, err := (&Param{Name: "condition", Kind: "condition"}).literal(cond)
	if err == nil {
		err = d.valid(ctx, "SELECT 1 FROM "+quoteName(table)+" WHERE "+text)
	}
	if err == nil {
		return nil
	}
	t := tableOf(table)
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	return fmt.Errorf("%w\ncolumns of %s: %s", err, table, strings.Join(names, ", "))
}

// valid says whether a query means something.
func (d *DB) valid(ctx context.Context, text string) error {
	if d.remote != nil {
		return d.remote.valid(ctx, text)
	}
	return d.prepare(ctx, text, nil)
}

// prepare prepares exactly one statement and gives it to use, which may be nil.
func (d *DB) prepare(ctx context.Context, text string, use func(*duckdb.Stmt) error) error {
	return d.conn.Raw(func(c any) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		stmt, err := c.(driver.Conn).Prepare(text)
		if err != nil {
			return engineError(err)
		}
		defer stmt.Close()
		if stmt.NumInput() != 0 {
			return errors.New("a parameter (? or $1) has no value here; write the value in its place")
		}
		if use == nil {
			return nil
		}
		return use(stmt.(*duckdb.Stmt))
	})
}

// explainRe is what may stand before a statement to see its plan.
var explainRe = regexp.MustCompile(`(?is)^(\s|--[^\n]*\n|/\*.*?\*/)*EXPLAIN(\s+ANALYZE)?\s`)

// readOnly says whether the text is one statement that only reads. EXPLAIN ANALYZE runs what it explains, so what counts
// is the statement after it.
func (d *DB) readOnly(ctx context.Context, text string) error {
	if d.remote != nil {
		return d.remote.readOnly(text)
	}
	if loc := explainRe.FindStringIndex(text); loc != nil {
		text = text[loc[1]:]
	}
	return d.prepare(ctx, text, func(s *duckdb.Stmt) error {
		t, err := s.StatementType()
		if err != nil {
			return err
		}
		if t != duckdb.STATEMENT_TYPE_SELECT {
			return errors.New("only SELECT (also WITH, FROM, DESCRIBE, SUMMARIZE, EXPLAIN) runs here: runs are never changed; write results with --output")
		}
		return nil
	})
}

// engineError makes the engine's messages ours: one about the driver's statements says what to do.
func engineError(err error) error {
	if strings.Contains(err.Error(), "PrepareContext") {
		return errors.New("one statement at a time, please")
	}
	return err
}
