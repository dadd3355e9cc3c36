package main

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/output"
	"github.com/commq/commq/writer"
)

// The programs of testdata/programs do the same in every language and under every MPI library, so their captures have
// the same rows. NAME.rows has these rows, written by hand from the program and MPI's rules.

const programsDir = "../../testdata/programs"

// program is one of these programs, and the number of ranks that it is written for.
type program struct {
	name  string
	ranks int
	// only names the supported libraries and language bindings, such as mpich or openmpi/c; empty means all.
	only []string
	// rows is the name of its .rows file if that differs from the program's.
	rows string
	// extension means that Open MPI has its persistent collectives as MPIX_X_init; the .rows file has MPI_X_init.
	extension bool
	// source and defines are the source file and macros that it is compiled with, if they differ from the default.
	source  string
	defines []string
	// spawned are the .rows files of the runs NAME.2, NAME.3, ... of the programs that it spawns.
	spawned []string
}

func programs() []program {
	return []program{
		{name: "p2p", ranks: 3},
		{name: "requests", ranks: 3},
		{name: "probes", ranks: 3},
		{name: "comms", ranks: 5},
		{name: "types", ranks: 3},
		{name: "collectives", ranks: 3},
		// MPICH 4.0.2 alone does not finish through mpi_f08
		{name: "corners", ranks: 3, only: []string{"openmpi", "mpich/c", "mpich/mpifh", "mpich/usempi"}},
		{name: "neighbors", ranks: 3},
		{name: "rma", ranks: 3},
		{name: "io", ranks: 3},
		{name: "persistent", ranks: 3, extension: true, only: []string{"openmpi/c", "mpich"}},
		{name: "windows", ranks: 3, only: []string{"mpich/c"}},
		{name: "pcontrol", ranks: 3},
		{name: "pcontrol-named", ranks: 3, source: "pcontrol", defines: []string{"-DNAMED"},
			only: []string{"openmpi/c", "mpich/c"}},
		{name: "partitioned", ranks: 3, only: []string{"mpich/c"}},
		{name: "sessions", ranks: 3, only: []string{"mpich/c"}},
		{name: "sessions-world", ranks: 3, source: "sessions", defines: []string{"-DWORLD"}, only: []string{"mpich/c"}},
		{name: "spawn", ranks: 3, only: []string{"openmpi"}, spawned: []string{"spawned", "spawned"}},
		{name: "connect", ranks: 3, only: []string{"openmpi/c"}},
		{name: "large", ranks: 3, only: []string{"mpich/c", "mpich/f08"}},
	}
}

// isFor reports whether the program is for that library and language binding.
func (p program) isFor(library, flavour string) bool {
	return len(p.only) == 0 || slices.Contains(p.only, library) || slices.Contains(p.only, library+"/"+flavour)
}

// flavour is a language binding: the suffix of the source's name, the compiler and its flags.
type flavour struct {
	name, suffix, compiler string
	flags                  []string
}

func flavours() []flavour {
	return []flavour{
		{"c", ".c", "mpicc.", []string{"-w"}},
		{"mpifh", ".F90", "mpif90.", []string{"-w", "-fallow-argument-mismatch", "-DMPIFH"}},
		{"usempi", ".F90", "mpif90.", []string{"-w", "-fallow-argument-mismatch", "-DUSEMPI"}},
		{"f08", ".F90", "mpif90.", []string{"-w", "-DF08"}},
	}
}

// build compiles the program and returns the executable.
func (p program) build(t *testing.T, library string, f flavour) string {
	t.Helper()
	exe := filepath.Join(t.TempDir(), p.name)
	source := filepath.Join(programsDir, cmp.Or(p.source, p.name)+f.suffix)
	testenv.Compile(t, exe, f.compiler+library, source,
		slices.Concat(f.flags, p.defines, []string{"-D" + strings.ToUpper(library)})...)
	return exe
}

// described is the start of a query that names communicators: called.name is the kind and the world ranks of the
// members in their order. An intercommunicator's two groups are separated by |, and #2 is appended for the second
// communicator with the same name; MPI_COMM_WORLD is world. Ids and names that differ between libraries do not
// appear.
const described = `
WITH side AS (
  SELECT comm, remote, kind, name, parent, cart_dims, cart_periods,
         string_agg(CAST(world_rank AS VARCHAR), ',' ORDER BY comm_rank) AS members,
         string_agg(graph_edges, '|' ORDER BY comm_rank) AS edges
  FROM comms GROUP BY comm, remote, kind, name, parent, cart_dims, cart_periods
), spelt AS (
  SELECT comm, min(kind) || ':' || string_agg(members, '|' ORDER BY remote) AS name FROM side GROUP BY comm
), numbered AS (
  SELECT comm, name, row_number() OVER (PARTITION BY name ORDER BY comm) AS nth FROM spelt
), called AS (
  SELECT comm, CASE WHEN comm = 0 THEN 'world' WHEN nth = 1 THEN name ELSE name || '#' || nth END AS name FROM numbered
)`

// startedCall and startedInstance name the call of a row e together with the row i that made its request: a started
// collective is MPI_Start:MPI_Bcast_init 5.1, the second start of the communicator's operation 5.
const (
	startedCall     = `CASE WHEN e.class = 'collective' AND i.call IS NOT NULL THEN e.call || ':' || i.call ELSE e.call END`
	startedInstance = `CASE WHEN e.instance >= 4294967296 THEN (e.instance // 4294967296 - 1) || '.' || (e.instance % 4294967296)
       ELSE CAST(e.instance AS VARCHAR) END`
)

// rowQueries returns the queries for the sections of a .rows file, in their order.
func rowQueries() map[string]string {
	return map[string]string{
		"messages": described + `
SELECT m.src, m.dst, c.name AS comm, m.tag, m.bytes, m.send_count AS count,
       d.combiner || ':' || d.bytes || ':' || d.extent_bytes AS type, s.call AS send, p.call AS post, e.call AS done,
       CASE p.posted_any WHEN 0 THEN 'exact' WHEN 1 THEN 'any_source' WHEN 2 THEN 'any_tag' WHEN 3 THEN 'any' END AS posted
FROM messages AS m JOIN called AS c ON c.comm = m.comm
LEFT JOIN events AS s ON s.rank = m.src AND s.seq = m.send_seq
LEFT JOIN events AS p ON p.rank = m.dst AND p.seq = m.recv_post_seq
LEFT JOIN events AS e ON e.rank = m.dst AND e.seq = m.recv_done_seq
LEFT JOIN datatypes AS d ON d.id = m.send_datatype
ORDER BY m.src, m.send_seq`,
		"collectives": described + `
SELECT e.rank, ` + startedCall + ` AS call, c.name AS comm, ` + startedInstance + ` AS instance, e.root_world AS root, e.reduce_op AS op, e.send_bytes AS send,
       e.recv_bytes AS recv, d.call AS done
FROM events AS e LEFT JOIN called AS c ON c.comm = e.comm
LEFT JOIN events AS d ON d.rank = e.rank AND d.seq = e.done_seq
LEFT JOIN events AS i ON i.rank = e.rank AND i.seq = e.init_seq
WHERE (e.class IN ('collective', 'comm') OR e.call LIKE '%!_init%' ESCAPE '!' AND e.instance IS NOT NULL) AND e.call NOT IN ('MPI_Comm_free', 'MPI_Comm_set_name')
ORDER BY e.rank, e.seq`,
		"parts": `
SELECT p.rank, ` + startedCall + ` AS call, ` + startedInstance + ` AS instance, p.peer_world AS peer, p.send_bytes AS send, p.recv_bytes AS recv
FROM parts AS p LEFT JOIN events AS e ON e.rank = p.rank AND e.seq = p.seq
LEFT JOIN events AS i ON i.rank = e.rank AND i.seq = e.init_seq ORDER BY p.rank, p.seq, p.peer_world`,
		"comms": described + `
SELECT c.name AS comm, s.remote AS side, s.members, s.name, p.name AS parent, s.cart_dims AS dims, s.cart_periods AS periods, s.edges
FROM side AS s JOIN called AS c ON c.comm = s.comm LEFT JOIN called AS p ON p.comm = s.parent ORDER BY s.comm, s.remote`,
		"rma": described + `
SELECT e.rank, e.call, c.name AS comm, e.instance, '+' || (e.send_world - e.rank + 3) % 3 AS "to",
       e.send_count || 'x' || s.combiner || ':' || s.bytes AS sends, e.send_bytes AS send,
       '+' || (e.recv_world - e.rank + 3) % 3 AS "from", e.recv_count || 'x' || r.combiner || ':' || r.bytes AS recvs, e.recv_bytes AS recv,
       e.reduce_op AS op, e.proc_null AS "null", d.call AS done, m.call || '#' || m.instance AS made,
       CASE WHEN e.payload_hash IS NOT NULL THEN 'yes' END AS hash,
       CASE WHEN regexp_full_match(e.label, '[0-9]+') THEN '+' || (CAST(e.label AS INTEGER) - e.rank + 3) % 3 ELSE e.label END AS label
FROM events AS e LEFT JOIN called AS c ON c.comm = e.comm
LEFT JOIN events AS d ON d.rank = e.rank AND d.seq = e.done_seq
LEFT JOIN events AS m ON m.rank = e.rank AND m.seq = e.init_seq
LEFT JOIN datatypes AS s ON s.id = e.send_datatype LEFT JOIN datatypes AS r ON r.id = e.recv_datatype
WHERE e.class = 'rma' ORDER BY e.rank, e.seq`,
		"io": described + `
SELECT e.rank, e.call, c.name AS comm, e.instance, e.send_count || 'x' || s.combiner || ':' || s.bytes AS sends, e.send_bytes AS send,
       e.recv_count || 'x' || r.combiner || ':' || r.bytes AS recvs, e.recv_bytes AS recv,
       d.call AS done, m.call || '#' || m.instance AS made, split_part(e.label, '/', -1) AS label
FROM events AS e LEFT JOIN called AS c ON c.comm = e.comm
LEFT JOIN events AS d ON d.rank = e.rank AND d.seq = e.done_seq
LEFT JOIN events AS m ON m.rank = e.rank AND m.seq = e.init_seq
LEFT JOIN datatypes AS s ON s.id = e.send_datatype LEFT JOIN datatypes AS r ON r.id = e.recv_datatype
WHERE e.class = 'io' ORDER BY e.rank, e.seq`,
		"phases": `
SELECT rank, string_agg(replace(call, 'MPI_', '') || coalesce('=' || label, ''), ' ' ORDER BY seq) AS calls FROM events
WHERE rank IN (SELECT rank FROM events WHERE call = 'MPI_Pcontrol') GROUP BY rank ORDER BY rank`,
		"partitions": `
SELECT rank, call, send_world AS "to", recv_world AS "from", send_count AS sends, recv_count AS recvs FROM events
WHERE call LIKE 'MPI_P%_init' OR call LIKE 'MPI_Pready%' OR call = 'MPI_Parrived' ORDER BY rank, seq`,
		"counts": `
SELECT messages, message_bytes, collectives, unmatched_sends, unmatched_receives, wildcard_receives, in_progress, dropped,
       CASE WHEN polls > 0 THEN 'some' ELSE 'none' END AS polls, ended FROM runs`,
	}
}

// captureEnvironment prepares a test that captures: both MPI libraries, the settings to run them here, and the
// package's cache.
func captureEnvironment(t *testing.T) {
	t.Helper()
	for _, library := range []string{"openmpi", "mpich"} {
		testenv.MPI(t, library)
	}
	for _, kv := range testenv.Environ("COMMQ_CACHE="+shimCache, "LD_PRELOAD="+testenv.Yielding(t)) {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
}

// TestRequestsThatFail captures calls that complete a receive that is too small and one that is not: both took their
// messages.
func TestRequestsThatFail(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		store := t.TempDir()
		commq(t, "capture", "--store", store, "--name", "r", "-q", "-n", "2", "--", compileMPI(t, library, "errors.c"))
		got := commq(t, "sql", "--store", store, "--run", "r", "--format", "csv",
			"SELECT tag, bytes, COUNT(*) AS messages, COUNT(recv_post_seq) AS posted FROM messages GROUP BY ALL ORDER BY tag")
		if want := "tag,bytes,messages,posted\n8,4,6,6\n9,12,6,6\n"; got != want {
			t.Errorf("%s: messages\n%s\nwant\n%s", library, got, want)
		}
		if left := commq(t, "query", "unmatched", "--store", store, "r", "--format", "csv"); strings.Count(left, "\n") != 1 {
			t.Errorf("%s: without a partner:\n%s", library, left)
		}
		commq(t, "runs", "check", "--store", store, "r")
	}
}

func TestProgramsHaveExpectedRows(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		commq(t, "capture", "build", "--mpi", library)
		for _, p := range programs() {
			want := readRows(t, cmp.Or(p.rows, p.name))
			for _, f := range flavours() {
				if !p.isFor(library, f.name) {
					continue
				}
				t.Run(p.name+"/"+library+"/"+f.name, func(t *testing.T) {
					t.Parallel() // the commands share one process: they must not interfere
					p.check(t, library, p.build(t, library, f), maps.Clone(want))
				})
			}
		}
	}
}

// check captures the program and compares its run with the expected rows.
func (p program) check(t *testing.T, library, exe string, want map[string]rowSection) {
	t.Helper()
	store := t.TempDir()
	out := commq(t, "capture", "--store", store, "--name", p.name, "-q", "-n", strconv.Itoa(p.ranks), "--", exe)
	if out != "ok\n" {
		t.Fatalf("the program prints %q, want ok", out)
	}
	p.compare(t, library, store, p.name, want)
	for i, rows := range p.spawned {
		p.compare(t, library, store, fmt.Sprintf("%s.%d", p.name, i+2), readRows(t, rows))
	}
}

// compare compares one run with the expected rows.
func (p program) compare(t *testing.T, library, store, run string, want map[string]rowSection) {
	t.Helper()
	commq(t, "runs", "check", "--store", store, run)
	dir := filepath.Join(store, run)
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	db, err := queries.Open(t.Context(), []queries.Run{{Name: run, Dir: dir, Manifest: m}}, queries.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for name, query := range rowQueries() {
		if s, there := want[name]; there && p.extension && library == "openmpi" {
			want[name] = s.withExtensions()
		}
		rows, err := db.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		if err := errors.Join(output.Write(&text, "csv", rows), rows.Close()); err != nil {
			t.Fatal(err)
		}
		got := rowsOfCSV(t, name, text.String())
		if _, there := want[name]; !there && len(got.rows) == 0 {
			continue
		}
		if diff := gocmp.Diff(want[name], got, gocmp.AllowUnexported(rowSection{})); diff != "" {
			t.Errorf("%s of %s: by hand (-) and captured (+) differ:\n%s", name, run, diff)
		}
	}
	if rows := commq(t, "query", "unmatched", "--store", store, "--run", run, "--format", "csv"); strings.Count(rows,
		"\n") != 1 {
		t.Errorf("the query unmatched lists what has a partner or was cancelled:\n%s", rows)
	}
}

// rowSection is a section of a .rows file: its columns, and its rows with a blank between the values.
type rowSection struct {
	columns string
	rows    []string
}

// withExtensions replaces each MPI_X_init by MPIX_X_init.
func (s rowSection) withExtensions() rowSection {
	made := regexp.MustCompile(`MPI_(\w+_init)\b`)
	s.rows = slices.Clone(s.rows)
	for i := range s.rows {
		s.rows[i] = made.ReplaceAllString(s.rows[i], "MPIX_$1")
	}
	return s
}

// sorted puts rows into the order in which they are compared: ids give communicators an order that .rows files do not
// have, and a line for several ranks becomes a row for each.
func (s rowSection) sorted(name string) rowSection {
	switch name {
	case "comms":
		slices.Sort(s.rows)
	case "collectives", "parts", "rma", "io":
		slices.SortStableFunc(s.rows, func(a, b string) int { return cmp.Compare(a[0], b[0]) })
	}
	return s
}

// askRows returns the answer to a command as a section; - is null.
func askRows(t *testing.T, name string, args ...string) rowSection {
	t.Helper()
	return rowsOfCSV(t, name, commq(t, args...))
}

// rowsOfCSV returns an answer as a section; - is null.
func rowsOfCSV(t *testing.T, name, text string) rowSection {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%s: no header: %v", name, err)
	}
	s := rowSection{columns: strings.Join(rows[0], " ")}
	for _, r := range rows[1:] {
		for i := range r {
			r[i] = cmp.Or(r[i], "-")
		}
		s.rows = append(s.rows, strings.Join(r, " "))
	}
	return s.sorted(name)
}

// readRows reads NAME.rows. "# section: columns" begins a section; a missing section has no rows; lines that begin
// with // are comments; a line that begins with ranks and a colon is a row for each of these ranks, with the rank in
// front.
func readRows(t *testing.T, name string) map[string]rowSection {
	t.Helper()
	path := filepath.Join(programsDir, name+".rows")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]rowSection{}
	var at string
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case line == "" || strings.HasPrefix(line, "//"):
		case strings.HasPrefix(line, "# "):
			var columns string
			at, columns, _ = strings.Cut(line[2:], ": ")
			if _, twice := sections[at]; twice || rowQueries()[at] == "" {
				t.Fatalf("%s:%d: section %q twice, or not known", path, i+1, at)
			}
			sections[at] = rowSection{columns: strings.Join(strings.Fields(columns), " ")}
		case at == "":
			t.Fatalf("%s:%d: a row before the first section", path, i+1)
		default:
			s := sections[at]
			s.rows = append(s.rows, rowsOf(line)...)
			sections[at] = s
		}
	}
	for at, s := range sections {
		sections[at] = s.sorted(at)
	}
	return sections
}

// rowsOf returns the rows that a line describes.
func rowsOf(line string) []string {
	ranks, rest, found := strings.Cut(line, ": ")
	if !found || strings.Trim(ranks, "0123456789") != "" {
		return []string{strings.Join(strings.Fields(line), " ")}
	}
	var rows []string
	for _, rank := range ranks {
		rows = append(rows, fmt.Sprintf("%c %s", rank, strings.Join(strings.Fields(rest), " ")))
	}
	return rows
}
