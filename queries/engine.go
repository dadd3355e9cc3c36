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
	"sync"

	"github.com/duckdb/duckdb-go/v2"
	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/filehash"
	"github.com/commq/commq/internal/gone"
	"github.com/commq/commq/schema"
)

// Options limit the engine. The zero value works.
type Options struct {
	// MemoryBytes limits the engine's memory; more spills to TempDir. 0 means 4 GiB.
	MemoryBytes int64
	// TempDir is the folder to spill to, created when needed. Empty means a new one in the system's folder for
	// temporary files, which only this user can read.
	TempDir string
	// Threads is the number of cores to use; 0 means all.
	Threads int
	// Objects says how to reach object storage, for runs whose Dir is an s3:// URL.
	Objects *Objects
	// Verify compares every file with its hash in the manifest before anything is asked. Without it sizes and footers
	// are compared, and pages by their own checksums as they are read. Runs in object storage are not verified.
	Verify bool
	// ByColumn lets answers be read by columns (see Batches), which is faster.
	ByColumn bool
	// AsWritten makes joins in the order of the statement. To choose one, DuckDB reads the statistics of every row
	// group of every table: of runs of 10^8 messages 30 ms for each time that a statement names events.
	AsWritten bool
	// Trino is the address, as for Dial, of a Trino server where the runs are registered. If set, that server answers
	// instead of the engine in this process, and the other options have no effect.
	Trino string
}

const defaultMemoryBytes = 4 << 30

// DB is a query engine opened on one or more runs: DuckDB in memory reading their files, or a Trino server where they
// are registered. Its views are the tables of the schema with a column run in front, and runs, one row per run from
// its manifest. Only SELECT runs, only files of the runs can be read, and nothing is written into a run's folder.
// The files of a table are opened by the first query that names it. Close it after use.
type DB struct {
	db     *sql.DB
	conn   *sql.Conn
	runs   []Run
	views  *views
	remote *remote // nil: the engine is in this process
	// byColumn: answers can be read by columns
	byColumn bool
	temp     string // the folder to spill to, removed by Close; empty: there is none of our own
	finest   struct {
		sync.Mutex
		*sums // see finestSums; nil: not read yet
	}
}

// Open starts an engine on runs. Their names must differ. Errors name the run and what is wrong with it.
func Open(ctx context.Context, runs []Run, o Options) (*DB, error) {
	if o.Trino != "" {
		return openTrino(ctx, runs, o.Trino)
	}
	if o.Verify {
		if err := verify(ctx, runs); err != nil {
			return nil, err
		}
	}
	for _, r := range runs {
		if err := r.Manifest.CompareDigest(); err != nil {
			return nil, fmt.Errorf("run %q: %w", r.Name, err)
		}
	}
	views, paths, err := viewsOf(runs)
	if err != nil {
		return nil, err
	}
	temp := ""
	if o.TempDir == "" {
		temp = tempFolder()
		o.TempDir = temp
	}
	d, err := connect(ctx, settings(o, groupBits(runs)))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the query engine: %w", err), removeTemp(temp))
	}
	d.temp = temp
	for _, s := range []string{ // settings that cannot be given at start
		"SET enable_progress_bar = false",
		"SET parquet_metadata_cache = true", // otherwise each query reads the footers again
	} {
		if err := exec(ctx, d.conn, s); err != nil {
			return nil, errors.Join(fmt.Errorf("set up the query engine: %w", err), d.Close())
		}
	}
	if slices.ContainsFunc(runs, func(r Run) bool { return inObjects(r.Dir) }) {
		if err := openObjects(ctx, d.conn, o.Objects); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	if err := d.lock(ctx, paths); err != nil {
		return nil, errors.Join(fmt.Errorf("lock the query engine: %w", err), d.Close())
	}
	d.runs, d.views, d.byColumn = runs, views, o.ByColumn
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

// Close stops the engine.
func (d *DB) Close() error {
	err := errors.Join(d.conn.Close(), d.db.Close())
	return errors.Join(err, removeTemp(d.temp))
}

// noFolder is the name of a folder that nobody can make.
const noFolder = "/dev/null/commq-query"

// tempFolder makes a folder to spill to that no other user can read or have made before. If there is no room for one it
// returns noFolder: only an answer that spills then fails.
func tempFolder() string {
	dir, err := os.MkdirTemp("", "commq-query-")
	if err != nil {
		return noFolder
	}
	return dir
}

// removeTemp removes the folder that tempFolder made.
func removeTemp(dir string) error {
	if dir == "" || dir == noFolder {
		return nil
	}
	return os.RemoveAll(dir)
}

// Runnable returns a query's SQL with the statements before it that define the runs' tables, so that the duckdb shell
// or a Trino client can run it.
func (d *DB) Runnable(text string) string {
	if d.remote != nil {
		whole, _ := d.remote.with(text)
		return whole
	}
	return d.views.preamble() + "\n" + text
}

func exec(ctx context.Context, conn *sql.Conn, s string) error {
	_, err := conn.ExecContext(ctx, s)
	return err
}

// settings make the engine predictable: limited memory, ordered results, no network. They are given at start because
// each SET statement would take a quarter of a millisecond.
func settings(o Options, groupBits int) url.Values {
	if o.MemoryBytes <= 0 {
		o.MemoryBytes = defaultMemoryBytes
	}
	s := url.Values{}
	s.Set("memory_limit", fmt.Sprintf("%dB", o.MemoryBytes))
	s.Set("temp_directory", o.TempDir)
	s.Set("autoinstall_known_extensions", "false")
	s.Set("autoload_known_extensions", "false")
	if proxy, _ := proxyOf(os.Getenv("HTTP_PROXY")); proxy != "" {
		s.Set("http_proxy", proxy) // else it is $HTTP_PROXY with its password, and SQL can read every setting
	}
	s.Set("perfect_ht_threshold", strconv.Itoa(groupBits))
	if o.Threads > 0 {
		s.Set("threads", strconv.Itoa(o.Threads))
	}
	if o.AsWritten {
		s.Set("disabled_optimizers", "join_order")
	}
	return s
}

// groupBits returns the number of bits in a pair of world ranks, at least DuckDB's default. DuckDB groups integers of
// known range by a plain array instead of a hash table if they have at most this many bits together: density of 100 M
// messages then takes 0.38 s instead of 0.61 s (bench/query.md). The limit is there because each thread has its own
// array: 2^18 entries, enough for 510 ranks, take about 10 MB.
func groupBits(runs []Run) int {
	least, most := 12, 18
	for _, r := range runs {
		least = max(least, 2*bits.Len32(uint32(r.Manifest.Ranks)+1)) // one more value represents null
	}
	return min(least, most)
}

// lock forbids what queries do not need: other files, the network, changes of settings.
func (d *DB) lock(ctx context.Context, paths []string) error {
	quoted := patterns(paths) // the engine checks the pattern first, then the file
	for _, p := range paths {
		quoted = append(quoted, quote(p))
	}
	for _, s := range []string{
		"SET allowed_paths = [" + strings.Join(quoted, ", ") + "]",
		"SET enable_external_access = false",
		"SET lock_configuration = true",
	} {
		if err := exec(ctx, d.conn, s); err != nil {
			return err
		}
	}
	return nil
}

// tableFiles lists the files of a run's table; nil if the run lacks the table.
func tableFiles(r Run, dir string, t *schema.Table) ([]string, error) {
	info := tableInfo(r.Manifest, t.Name)
	if info == nil {
		return nil, nil
	}
	var files []string
	for _, f := range info.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			return nil, fmt.Errorf("run %q: the manifest names the file %q, which is not in the run's folder", r.Name,
				f.Path)
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
		if err = gone.Check(dir, err); gone.Is(err) {
			return nil, fmt.Errorf("run %q: %w", r.Name, err)
		}
		if err != nil {
			return nil, fmt.Errorf("run %q: table %s: %w; the run is damaged, see commq runs check", r.Name, t.Name,
				err)
		}
		if there.Size() != f.Bytes {
			return nil, fmt.Errorf("run %q: %s has %d bytes, the manifest says %d; the run is damaged: copy it or "+
				"capture it again; commq runs check %s says more",
				r.Name, f.Path, there.Size(), f.Bytes, shellquote.Join(r.Dir))
		}
		files = append(files, name)
	}
	return files, nil
}

// verify compares all files of the runs with their hashes in the manifests.
func verify(ctx context.Context, runs []Run) error {
	for _, r := range runs {
		if inObjects(r.Dir) {
			return fmt.Errorf("run %q: files in object storage cannot be verified; pull the run, or leave out --verify",
				r.Name)
		}
		for _, t := range r.Manifest.Tables {
			for _, f := range t.Files {
				if err := ctx.Err(); err != nil {
					return err
				}
				if err := filehash.File(r.Dir, f.Path, f.Bytes, f.Sum); err != nil {
					return damagedRun(r, err)
				}
			}
		}
	}
	return nil
}

// damagedRun is the error about a file of a run that could not be compared, or is not as the manifest says.
func damagedRun(r Run, err error) error {
	if !filehash.IsDamage(err) {
		return fmt.Errorf("run %q: %w", r.Name, err)
	}
	return fmt.Errorf("run %q: %w; the run is damaged: copy it or capture it again; commq runs check %s says more",
		r.Name, err, shellquote.Join(r.Dir))
}

// unionFiles is the largest number of files for which a table is read file by file. DuckDB knows the range of a
// column only for a single file, and groupBits relies on the range.
const unionFiles = 32

// selectTable selects a table of one run, its columns in schema order. checkTypes compares the files' types.
func selectTable(run string, t *schema.Table, files []string) string {
	if len(files) == 0 {
		return selectColumns(run, t, func(c schema.Column) string {
			return "CAST(NULL AS " + c.Type.SQL() + ") AS " +
				quoteName(c.Name)
		}) + " WHERE FALSE"
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

// patterns quotes files for read_parquet; wildcard characters in their names are put in brackets so that they match
// themselves.
func patterns(files []string) []string {
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = quote(globMeta.ReplaceAllString(f, "[$0]"))
	}
	return quoted
}

// appRe matches run names of the form APP.CLASS.RANKS, the convention of the NAS Parallel Benchmarks.
var appRe = regexp.MustCompile(`^([^.]+)\.([^.]+)\.[0-9]+$`)

// appOf returns the program and the class in a run's name, "" if it has none.
func appOf(run string) (app, class string) {
	if m := appRe.FindStringSubmatch(run); m != nil {
		return m[1], m[2]
	}
	return "", ""
}

// textOrNull quotes a text; the empty one becomes null.
func textOrNull(s string) string {
	if s == "" {
		return "CAST(NULL AS VARCHAR)"
	}
	return quote(s)
}

// runColumn is a column of the view runs with its value for one run.
type runColumn struct{ name, typ, literal string }

// payloadsColumn is the column of runs that the table runs of a Trino server need not have: the row's manifest has it.
const payloadsColumn = "payloads"

// runColumns returns a run's row in the view runs, taken from its manifest.
func runColumns(r Run) []runColumn {
	m, c := r.Manifest, r.Manifest.Counts
	app, class := appOf(r.Name)
	text := func(name, literal string) runColumn { return runColumn{name, "VARCHAR", literal} }
	number := func(name, typ string, value int64) runColumn {
		return runColumn{name, typ, fmt.Sprintf("CAST(%d AS %s)", value, typ)}
	}
	all := []runColumn{text("run", quote(r.Name)), text("app", textOrNull(app)), text("class", textOrNull(class)),
		number("ranks", "INTEGER", int64(m.Ranks)),
		text("label", textOrNull(m.Origin.Label)), text("time_origin", quote(m.TimeOrigin)),
		text("compute_clock", quote(m.ComputeClock)),
		text("record", quote(m.Record)), text("hash", quote(m.Hash)), text("ended", quote(m.Ended)),
		number("end_ns", "BIGINT", m.EndNs), number("epochs", "INTEGER", int64(m.Epochs))}
	for _, v := range []struct {
		value int64
		name  string
	}{{c.Calls, "calls"}, {c.Polls, "polls"}, {c.Messages, "messages"}, {c.MessageBytes, "message_bytes"},
		{c.Collectives, "collectives"}, {c.UnmatchedSends, "unmatched_sends"},
		{c.UnmatchedReceives, "unmatched_receives"},
		{c.WildcardReceives, "wildcard_receives"}, {c.Dropped, "dropped"}, {c.InProgress, "in_progress"},
		{c.OverlappingCalls, "overlapping_calls"}} {
		all = append(all, number(v.name, "BIGINT", v.value))
	}
	payloads := runColumn{payloadsColumn, "BIGINT", "CAST(NULL AS BIGINT)"}
	if m.Payloads != nil {
		payloads = number(payloads.name, payloads.typ, *m.Payloads)
	}
	all = append(all, payloads)
	return append(all, text("digest", quote(m.Digest)), text("command", quote(strings.Join(m.Origin.Command, " "))),
		text("mpi", quote(m.Origin.MPI)), text("started", quote(m.Origin.Started)))
}

// runsView defines the view runs.
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

// CheckCondition checks a condition on the columns of a table. Its error has the engine's message and lists the
// columns.
func (d *DB) CheckCondition(ctx context.Context, table, cond string) error {
	text, err := (&Param{Name: "condition", Kind: "condition"}).literal(cond)
	if err == nil {
		err = d.check(ctx, "SELECT 1 FROM "+quoteName(table)+" WHERE "+text)
	}
	if err == nil {
		return nil
	}
	t := tableOf(table)
	names := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		names[i] = c.Name
	}
	if ctx.Err() != nil || IsBroken(err) {
		return err
	}
	// The first line says what is wrong; the others show a SELECT that the user did not write.
	what, _, _ := strings.Cut(err.Error(), "\n")
	return fmt.Errorf("%s\ncolumns of %s: %s", what, table, strings.Join(names, ", "))
}

// check reports what is wrong with a query, without running it.
func (d *DB) check(ctx context.Context, text string) error {
	if d.remote != nil {
		return d.remote.check(ctx, text)
	}
	return d.prepare(ctx, text, nil)
}

// prepare prepares exactly one statement and passes it to use, unless that is nil.
func (d *DB) prepare(ctx context.Context, text string, use func(*duckdb.Stmt) error) error {
	if err := d.open(ctx, textNames(text)); err != nil {
		return err
	}
	err := d.prepareOpened(ctx, text, use)
	if err == nil || !strings.Contains(err.Error(), "does not exist") {
		return err
	}
	// The engine's message lists similar names among the tables that it knows; so let it know all.
	if openErr := d.open(ctx, viewNames()); openErr != nil {
		return openErr
	}
	return d.prepareOpened(ctx, text, use)
}

func (d *DB) prepareOpened(ctx context.Context, text string, use func(*duckdb.Stmt) error) error {
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

// explainRe matches an EXPLAIN before a statement.
var explainRe = regexp.MustCompile(`(?is)^(\s|--[^\n]*\n|/\*.*?\*/)*EXPLAIN(\s+ANALYZE)?\s`)

// checkReadOnly rejects text that is not one reading statement. For EXPLAIN ANALYZE the explained statement counts,
// since it is run.
func (d *DB) checkReadOnly(ctx context.Context, text string) error {
	if d.remote != nil {
		return d.remote.checkReadOnly(text)
	}
	if loc := explainRe.FindStringIndex(text); loc != nil {
		text = text[loc[1]:]
	}
	err := d.prepare(ctx, text, func(s *duckdb.Stmt) error {
		t, err := s.StatementType()
		if err != nil {
			return err
		}
		if t != duckdb.STATEMENT_TYPE_SELECT {
			return errNotRead(text)
		}
		return nil
	})
	if err != nil && writeRe.MatchString(text) { // whatever else is wrong with it
		return errNotRead(text)
	}
	return err
}

// writeRe matches statements that write.
var writeRe = regexp.MustCompile(`(?is)^(\s|--[^\n]*\n|/\*.*?\*/)*(ALTER|ATTACH|COPY|CREATE|DELETE|DROP|EXPORT|` +
	`IMPORT|INSERT|INSTALL|LOAD|MERGE|TRUNCATE|UPDATE)\s`)

// errNotRead is the error about a statement that is none of those that read.
func errNotRead(text string) error {
	not := ""
	if m := writeRe.FindStringSubmatch(text); m != nil {
		not = ", not " + strings.ToUpper(m[2])
	}
	return fmt.Errorf("only SELECT (also WITH, FROM, DESCRIBE, SUMMARIZE, EXPLAIN) runs here%s: runs are never "+
		"changed; write results with --output", not)
}

// fileAccessRe matches the engine's message about a file that SQL names.
var fileAccessRe = regexp.MustCompile(`Cannot access (?:file|directory) ("[^"]*")`)

// engineError replaces messages of the engine that do not say what to do.
func engineError(err error) error {
	if strings.Contains(err.Error(), "PrepareContext") {
		return errors.New("one statement at a time, please")
	}
	if m := fileAccessRe.FindStringSubmatch(err.Error()); m != nil {
		return fmt.Errorf("SQL reads no files, found %s; use the tables of the runs that --run names", m[1])
	}
	return err
}
