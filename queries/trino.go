package queries

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/user"
	"regexp"
	"slices"
	"strings"

	"github.com/trinodb/trino-go-client/trino"

	"github.com/commq/commq/internal/secrets"
	"github.com/commq/commq/schema"
)

// server is a Trino server and the place of the tables in it.
type server struct {
	db              *sql.DB
	address         string // for messages: without a password
	catalog, schema string
}

const addressHelp = "want http://USER@HOST:8080?catalog=hive&schema=commq"

// stages is the session property that limits the parts of a plan. Trino plans a WITH query again wherever it is
// named, which gives some queries more stages than the default limit of 150. Statistics are switched off because
// registered partitions have none, and looking for them doubles the planning time of measures and unmatched. Scans wait
// for the filters that joins with few rows give them: unmatched then reads no row of a run where everything met.
const stages = "query_max_stage_count"

// newServer parses an address. The defaults are catalog hive, schema commq and the user of the process.
func newServer(address string) (*server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("address %q of a Trino server: %s", secrets.Text(address), addressHelp)
	}
	if u.User == nil {
		who, err := user.Current()
		if err != nil {
			return nil, fmt.Errorf("address %q of a Trino server has no user: %w; %s", secrets.Text(address), err,
				addressHelp)
		}
		u.User = url.User(who.Username)
	}
	q := u.Query()
	for name, value := range map[string]string{"catalog": "hive", "schema": "commq", "source": "commq",
		"request_retry_timeout": "5s"} { // the driver's two minutes are long for a wrong address
		if q.Get(name) == "" {
			q.Set(name, value)
		}
	}
	properties := q.Get("session_properties")
	for name, value := range map[string]string{stages: "1000", q.Get("catalog") + ".statistics_enabled": "false",
		q.Get("catalog") + ".collect_column_statistics_on_write": "false",
		q.Get("catalog") + ".dynamic_filtering_wait_timeout":     "1m"} {
		if !strings.Contains(properties, name+":") {
			properties = strings.TrimPrefix(properties+";"+name+":"+value, ";")
		}
	}
	q.Set("session_properties", properties)
	u.RawQuery = q.Encode()
	db, err := sql.Open("trino", u.String())
	if err != nil {
		return nil, fmt.Errorf("address %q of a Trino server: %s; %s", secrets.Text(address), secrets.Text(err.Error()),
			addressHelp)
	}
	return &server{db: db, address: u.Scheme + "://" + u.Host, catalog: q.Get("catalog"), schema: q.Get("schema")}, nil
}

func (s *server) schemaName() string { return quoteName(s.catalog) + "." + quoteName(s.schema) }

// table returns a table's full name.
func (s *server) table(name string) string { return s.schemaName() + "." + quoteName(name) }

func (s *server) exec(ctx context.Context, text string) error {
	rows, err := s.db.QueryContext(ctx, text)
	if err != nil {
		return s.explain(err, text, 0)
	}
	for rows.Next() {
	}
	return s.explain(errors.Join(rows.Err(), rows.Close()), text, 0)
}

// each passes each row of a statement, whose columns must be texts, to use.
func (s *server) each(ctx context.Context, text string, use func(row []string)) error {
	rows, err := s.db.QueryContext(ctx, text)
	if err != nil {
		return s.explain(err, text, 0)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	row := make([]string, len(columns))
	targets := make([]any, len(row))
	for i := range row {
		targets[i] = &row[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		use(row)
	}
	return s.explain(rows.Err(), text, 0)
}

// openTrino does what Open does, on a Trino server where the runs are registered. The server has no session views, so
// each query is preceded by the runs' tables in a WITH clause.
func openTrino(ctx context.Context, runs []Run, address string) (*DB, error) {
	if len(runs) == 0 {
		return nil, errors.New("no run given; name one with --run")
	}
	if err := checkRegistered(runs); err != nil {
		return nil, err
	}
	s, err := newServer(address)
	if err != nil {
		return nil, err
	}
	remote := &remote{server: s}
	for _, t := range schema.Tables() {
		view, err := remote.view(t, runs)
		if err != nil {
			return nil, errors.Join(err, s.db.Close())
		}
		remote.views = append(remote.views, view)
	}
	remote.views = append(remote.views, remoteView{name: "runs", text: remote.runs(runs)})
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(s.explain(err, "", 0), s.db.Close())
	}
	return &DB{db: s.db, conn: conn, runs: runs, remote: remote}, nil
}

// checkRegistered rejects two runs of a server with the same name.
func checkRegistered(runs []Run) error {
	for i, r := range runs {
		earlier := slices.IndexFunc(runs[:i], func(earlier Run) bool { return earlier.Name == r.Name })
		switch {
		case earlier < 0:
		case cmp.Or(runs[earlier].Registered, r.Name) == cmp.Or(r.Registered, r.Name):
			return schema.GivenTwice(r.Name)
		default:
			return schema.CalledAlike(r.Name)
		}
	}
	return nil
}

// remote is a DB's connection to a Trino server.
type remote struct {
	*server
	views []remoteView
}

// remoteView is a table of the opened runs, as a query in WITH.
type remoteView struct {
	name, text string
	// usesOthers is true if the text names other tables of the runs.
	usesOthers bool
}

// view returns a table of the runs: their partitions in the server's table, and derived rows for runs that lack it.
func (r *remote) view(t *schema.Table, runs []Run) (remoteView, error) {
	v := remoteView{name: t.Name}
	var there, parts []string
	var renamed []Run
	for _, run := range runs {
		if info := tableInfo(run.Manifest, t.Name); !t.Derived || info != nil && len(info.Files) > 0 {
			if run.Registered != "" && run.Registered != run.Name {
				renamed = append(renamed, run)
			} else {
				there = append(there, run.Name)
			}
			continue
		}
		if t == &schema.ProfileTable {
			parts = append(parts, profileOfEvents("SELECT * FROM events WHERE run = "+quote(run.Name)))
		} else {
			part, err := madeOf(t, run.Name, len(runs) == 1)
			if err != nil {
				return v, err
			}
			parts = append(parts, part)
		}
		v.usesOthers = true
	}
	var columns []string
	for _, c := range t.Columns {
		columns = append(columns, quoteName(c.Name))
	}
	all := fmt.Sprintf("%s FROM %s WHERE run", strings.Join(columns, ", "), r.table(t.Name))
	if len(there) > 0 {
		parts = append(parts, fmt.Sprintf("SELECT run, %s IN (%s)", all, quoteAll(there)))
	}
	for _, run := range renamed {
		parts = append(parts, fmt.Sprintf("SELECT %s AS run, %s = %s", quote(run.Name), all, quote(run.Registered)))
	}
	v.text = strings.Join(parts, "\nUNION ALL\n")
	return v, nil
}

// runs returns the table runs: the server's rows, and rows from the manifests for runs that have another name here.
func (r *remote) runs(runs []Run) string {
	var there, columns, parts []string
	for _, c := range runColumns(runs[0]) {
		if columns = append(columns, quoteName(c.name)); c.name == payloadsColumn {
			columns[len(columns)-1] = "CAST(json_extract_scalar(manifest, '$.payloads') AS BIGINT) AS " + quoteName(c.name)
		}
	}
	for _, run := range runs {
		if run.Registered == "" || run.Registered == run.Name {
			there = append(there, run.Name)
			continue
		}
		var literals []string
		for _, c := range runColumns(run) {
			literals = append(literals, c.literal+" AS "+quoteName(c.name))
		}
		parts = append(parts, "SELECT "+strings.Join(literals, ", "))
	}
	if len(there) > 0 {
		parts = append(parts, fmt.Sprintf("SELECT %s FROM %s WHERE run IN (%s)", strings.Join(columns, ", "),
			r.table("runs"), quoteAll(there)))
	}
	return strings.Join(parts, "\nUNION ALL\n")
}

var (
	// leading matches blanks and comments before a statement's first word.
	leading = regexp.MustCompile(`^(?s:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*`)
	// withRe matches the start of a query with its own WITH.
	withRe    = regexp.MustCompile(`(?i)^WITH(\s+RECURSIVE)?\b`)
	explainAt = regexp.MustCompile(`(?i)^EXPLAIN(\s+ANALYZE)?(\s+VERBOSE)?(\s*\([^)]*\))?`)
	readsRe   = regexp.MustCompile(`(?i)^(SELECT|WITH|VALUES|TABLE|\()`)
	showsRe   = regexp.MustCompile(`(?i)^(SHOW|DESCRIBE|DESC)\b`)
)

// with puts the runs' tables that a query names in front of it and returns how many lines they take. Columns of
// errors in later lines stay as they are in the query.
func (r *remote) with(text string) (full string, lines int) {
	at := len(leading.FindString(text))
	if loc := explainAt.FindString(text[at:]); loc != "" {
		at += len(loc)
		at += len(leading.FindString(text[at:]))
	}
	if !readsRe.MatchString(text[at:]) {
		return text, 0
	}
	named := text
	var views []string
	for _, v := range slices.Backward(r.views) {
		if !regexp.MustCompile(`(?i)\b` + v.name + `\b`).MatchString(named) {
			continue
		}
		if v.usesOthers {
			named += "\n" + v.text
		}
		views = append(views, quoteName(v.name)+" AS (\n"+v.text+"\n)")
	}
	if len(views) == 0 {
		return text, 0
	}
	slices.Reverse(views)
	word, before, end := "WITH", strings.Join(views, ",\n"), "\n"
	body := text[at:]
	if own := withRe.FindString(body); own != "" {
		word, end = own, ",\n"
		body = blank(own) + body[len(own):]
	}
	before = word + " " + before + end
	head := text[:at]
	if strings.TrimSpace(leading.ReplaceAllString(head, "")) == "" { // not EXPLAIN: it is a comment
		return before + head + body, strings.Count(before, "\n")
	}
	return head + before + blank(head) + body, strings.Count(before, "\n")
}

// blank replaces all characters but newlines by blanks.
func blank(text string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' {
			return c
		}
		return ' '
	}, text)
}

// checkReadOnly rejects text that does anything but read. A request has one statement.
func (r *remote) checkReadOnly(text string) error {
	body := text[len(leading.FindString(text)):]
	if loc := explainAt.FindString(body); loc != "" {
		body = body[len(loc):]
		body = body[len(leading.FindString(body)):]
	} else if showsRe.MatchString(body) {
		return nil
	}
	if !readsRe.MatchString(body) {
		return errors.New("only SELECT (also WITH, VALUES, TABLE, SHOW, DESCRIBE, EXPLAIN) runs here: runs are " +
			"never changed; write results with --output")
	}
	return r.checkNames(body)
}

// checkNames rejects a query in WITH that is named like a table of the runs: with puts that table in the same list, and
// the server refuses a name that stands there twice.
func (r *remote) checkNames(body string) error {
	if !withRe.MatchString(body) {
		return nil
	}
	top := outermost(body)
	for _, v := range r.views {
		if regexp.MustCompile(`(?i)\b` + v.name + `"?\s*(\(\)\s*)?\bAS\s*\(`).MatchString(top) {
			return fmt.Errorf("WITH %s: this is the name of a table of the runs; give your query another name", v.name)
		}
	}
	return nil
}

// commentOrText matches a comment or a text of SQL.
var commentOrText = regexp.MustCompile(`--[^\n]*|(?s:/\*.*?\*/)|'[^']*'`)

// outermost returns a query without its comments, its texts and what is in parentheses.
func outermost(body string) string {
	var b strings.Builder
	depth := 0
	for _, c := range commentOrText.ReplaceAllString(body, " ") {
		if c == ')' {
			depth--
		}
		if depth == 0 {
			b.WriteRune(c)
		}
		if c == '(' {
			depth++
		}
	}
	return b.String()
}

// check reports what is wrong with a query, without running it.
func (r *remote) check(ctx context.Context, text string) error {
	full, lines := r.with(text)
	rows, err := r.db.QueryContext(ctx, "EXPLAIN (TYPE VALIDATE) "+full)
	if err == nil {
		err = rows.Close()
	}
	return r.explain(err, text, lines)
}

// placeRe matches the place in a server's error.
var placeRe = regexp.MustCompile(`^line (\d+):(\d+): `)

// explain turns an error about a text, sent after so many added lines, into one for the user: the server's message
// with the line marked as DuckDB does, or that the server cannot be reached.
func (s *server) explain(err error, text string, lines int) error {
	if err == nil {
		return nil
	}
	for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, cause) {
			return interrupted{cause}
		}
	}
	var said *trino.ErrTrino
	if errors.As(err, &said) {
		message := placeRe.ReplaceAllString(said.Message, "")
		if m := refusedRe.FindStringSubmatch(message); m != nil {
			return errors.New(m[1])
		}
		if said.ErrorName == "TABLE_NOT_FOUND" || said.ErrorName == "SCHEMA_NOT_FOUND" ||
			said.ErrorName == "CATALOG_NOT_FOUND" {
			return fmt.Errorf("%s: %s; commq store register makes the tables, and --dsn names catalog and schema",
				s.address, message)
		}
		if m := placeRe.FindStringSubmatch(said.Message); m != nil {
			var line, column int
			fmt.Sscan(m[1], &line)
			fmt.Sscan(m[2], &column)
			if all := strings.Split(text, "\n"); line > lines && line-lines <= len(all) && column > 0 {
				mark := fmt.Sprintf("LINE %d: ", line-lines)
				return fmt.Errorf("%s\n\n%s%s\n%s^", message, mark, all[line-lines-1],
					strings.Repeat(" ", len(mark)+column-1))
			}
		}
		if said.ErrorType != "USER_ERROR" {
			return fmt.Errorf("%s: %s (%s); the server's log says more", s.address, message, said.ErrorName)
		}
		return errors.New(message)
	}
	var dial *net.OpError
	if errors.As(err, &dial) || strings.Contains(err.Error(), "giving up after") {
		return fmt.Errorf("ask the Trino server at %s: %w; is it up, and is the address right (--dsn)?", s.address, err)
	}
	return fmt.Errorf("ask the Trino server at %s: %w", s.address, err)
}

// query runs a query. If described is not nil, it describes the rows.
func (r *remote) query(ctx context.Context, conn *sql.Conn, described []Column, text string) (Rows, error) {
	full, lines := r.with(text)
	rows, err := conn.QueryContext(ctx, full)
	explained := func(err error) error { return r.explain(err, text, lines) }
	if err != nil {
		return nil, explained(err)
	}
	answer := &engineRows{rows: rows, columns: described, plain: explained, fix: fixed}
	if err := answer.prepare(); err != nil {
		return nil, errors.Join(explained(err), rows.Close())
	}
	return answer, nil
}

// fixed converts a value of Trino's driver, which has one Go type for all integers, to what DuckDB's driver returns.
func fixed(typ string, value any) any {
	if n, ok := value.(int64); ok && typ == "INTEGER" {
		return int32(n)
	}
	return value
}
