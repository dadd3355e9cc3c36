package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/queries"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/schema/schematest"
	"github.com/commq/commq/writer"
)

// hostileName is a run's name that breaks any consumer that does not treat it as plain text.
const hostileName = "it's \"x\"; DROP VIEW messages; --\x1b[31m\x1b]0;gone\x07\u009b2J\x7f\r\n\t\u202e<img src=x onerror=alert(1)>|`$(reboot)`%s{{where}}"

// copyRun copies a run of the test data to a path.
func copyRun(t *testing.T, run, dir string) {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(runsDir, run))); err != nil {
		t.Fatal(err)
	}
}

// changeManifest changes the manifest of the run in a folder.
func changeManifest(t *testing.T, dir string, change func(m *schema.Manifest)) {
	t.Helper()
	m, err := writer.ReadManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	text, err := json.Marshal(m)
	if err == nil {
		file := filepath.Join(dir, "manifest.json")
		err = errors.Join(os.WriteFile(file, text, 0o644), schematest.SealManifest(file))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func allQueries(t *testing.T) []*queries.Query {
	t.Helper()
	all, err := queries.All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// drives returns the first control or format character in a text, with its surroundings; "" if there is none.
func drives(s string) string {
	if i := strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' ||
			unicode.Is(unicode.Cf, r)
	}); i >= 0 {
		return s[max(0, i-20):min(len(s), i+20)]
	}
	return ""
}

// TestHostileNamesOnTheCommandLine asks commands about a run whose name, program, hosts and label are hostile.
func TestHostileNamesOnTheCommandLine(t *testing.T) {
	store := t.TempDir()
	dir := filepath.Join(store, hostileName)
	copyRun(t, "ep.W.4", dir)
	copyRun(t, "ft.W.16", filepath.Join(store, "tame.16"))
	changeManifest(t, dir, func(m *schema.Manifest) {
		o := &m.Origin
		o.Name, o.Label, o.Command, o.Launcher, o.MPI, o.Hosts, o.Started = hostileName, hostileName,
			[]string{hostileName, hostileName}, []string{hostileName}, hostileName, []string{hostileName}, hostileName
		m.Warnings = []string{hostileName}
	})
	for _, q := range allQueries(t) {
		for _, format := range []string{"table", "markdown"} {
			args := []string{"query", q.Name, "--run", dir, "--run", filepath.Join(store, "tame.16"), "--format",
				format}
			status, out, errs := commandLine("", args...)
			if drives(out) != "" || drives(errs) != "" || status != exitDone && status != exitCannot {
				t.Errorf("query %s --format %s: status %d, %q, %q", q.Name, format, status, drives(out), drives(errs))
			}
		}
	}
	for _, line := range [][]string{
		{"runs", "list", "--store", store}, {"runs", "show", dir}, {"runs", "check", dir}, {"doctor", dir},
		{"query", "density", "--run", dir, "--where", "colour = 3"},
		{"query", "density", "--run", dir, "--where", hostileName},
		{"query", hostileName, "--run", dir}, {"query", "density", "--run", hostileName + "x"},
		{"runs", "show", hostileName + "x"},
		{"query", "density", "--run", dir, "--format", hostileName}, {"query", "density", "--" + hostileName},
		{"sql", "--run", dir, "SELECT run, ranks FROM runs"}, {"sql", "--run", dir, hostileName},
		{"query", "ratio", "--run", dir, "--run", dir},
	} {
		_, out, errs := commandLine("", line...)
		if out+errs == "" || drives(out) != "" || drives(errs) != "" {
			t.Errorf("%.60q: %q, %q", line, drives(out), drives(errs))
		}
	}
}

// TestHostileNameInSQL runs the output of --sql for a run with a hostile name in a fresh engine, and compares the
// answers.
func TestHostileNameInSQL(t *testing.T) {
	dir := filepath.Join(t.TempDir(), hostileName)
	copyRun(t, "ep.W.4", dir)
	args := []string{"query", "density", "--run", dir}
	status, sql, errs := commandLine("", append(args, "--sql")...)
	if status != 0 {
		t.Fatal(errs)
	}
	if first, _, _ := strings.Cut(sql, "\n"); !strings.HasPrefix(first, "-- density of run it's") ||
		!strings.HasSuffix(first, "{{where}}") {
		t.Errorf("the comment is %q: the name goes beyond its line", first)
	}
	_, want, _ := commandLine("", append(args, "--format", "csv")...)
	if got := shell(t, sql); got != want || strings.Count(got, "\n") < 4 {
		t.Errorf("by itself:\n%s\nwant:\n%s", got, want)
	}
}

// TestHostileNameInAReport looks for elements that come from names.
func TestHostileNameInAReport(t *testing.T) {
	store := t.TempDir()
	dir, page := filepath.Join(store, hostileName), filepath.Join(store, "r.html")
	copyRun(t, "ep.W.4", dir)
	changeManifest(t, dir, func(m *schema.Manifest) {
		m.Origin.Command, m.Origin.Hosts = []string{hostileName}, []string{hostileName}
	})
	if status, _, errs := commandLine("", "report", dir, "-o", page); status != 0 {
		t.Fatal(errs)
	}
	html, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`(?i).{0,40}<img[^>]*onerror.{0,40}`).Find(html); m != nil {
		t.Errorf("the page has %q", m)
	}
	if !strings.Contains(string(html), "&lt;img src=x onerror=alert(1)&gt;") {
		t.Error("the page does not name the run")
	}
}

// TestDamagedRunsOnTheCommandLine asks every query of runs with every kind of damage: status 2, no answer, and a
// message that names the file and says what to do. A query that does not read the damaged table may answer, as it does
// where the run is whole.
func TestDamagedRunsOnTheCommandLine(t *testing.T) {
	whole := filepath.Join(runsDir, "ep.W.4")
	messages := filepath.Join(whole, "messages", "0000.parquet")
	answers := map[string]string{} // of the whole run, under the same name
	sound := filepath.Join(t.TempDir(), "hurt.4")
	copyRun(t, "ep.W.4", sound)
	for _, q := range allQueries(t) {
		if status, out, _ := commandLine("", "query", q.Name, "--run", sound); status == 0 {
			answers[q.Name] = out
		}
	}
	for _, c := range []struct {
		what   string
		damage func(t *testing.T, dir string)
		want   string
	}{
		{"events cut short", func(t *testing.T, dir string) { cut(t, filepath.Join(dir, "events", "0000.parquet"), 2) }, "events/0000.parquet has"},
		{"ranks empty", func(t *testing.T, dir string) { cut(t, filepath.Join(dir, "ranks/0000.parquet"), 1<<40) }, "ranks/0000.parquet has 0 bytes"},
		{"messages of a foreign program", func(t *testing.T, dir string) { put(t, dir, "messages/0000.parquet", foreignFile(t)) }, "messages/0000.parquet: no column src"},
		{"comms from messages", func(t *testing.T, dir string) {
			text, err := os.ReadFile(messages)
			if err != nil {
				t.Fatal(err)
			}
			put(t, dir, "comms/0000.parquet", text)
		}, "comms/0000.parquet: no column"},
		{"messages not Parquet", func(t *testing.T, dir string) {
			put(t, dir, "messages/0000.parquet", []byte(strings.Repeat("PAR1", 30)))
		}, "messages/0000.parquet: not a whole Parquet file"},
		{"parts gone", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, "parts/0000.parquet")); err != nil {
				t.Fatal(err)
			}
		}, "parts/0000.parquet: no such file"},
	} {
		dir := filepath.Join(t.TempDir(), "hurt.4")
		copyRun(t, "ep.W.4", dir)
		c.damage(t, dir)
		noticed := 0
		for _, q := range allQueries(t) {
			status, out, errs := commandLine("", "query", q.Name, "--run", dir)
			if answer, known := answers[q.Name]; status == 0 && known && out == answer {
				continue
			}
			noticed++
			if status != exitCannot || out != "" || !strings.Contains(errs, c.want) ||
				!strings.Contains(errs, "commq runs check") || !strings.Contains(errs, "hurt.4") {
				t.Errorf("%s: query %s: status %d, stdout %q, stderr %q; want 2, nothing, %q and what to do", c.what,
					q.Name, status, out, errs, c.want)
			}
		}
		if noticed < 5 {
			t.Errorf("%s: %d queries notice it", c.what, noticed)
		}
		table, _, _ := strings.Cut(c.want, "/")
		for _, line := range [][]string{{"sql", "--run", dir, "SELECT count(*) FROM " + table},
			{"report", dir, "-o", filepath.Join(t.TempDir(), "r.html")}} {
			if status, out, errs := commandLine("", line...); status != exitCannot || out != "" ||
				!strings.Contains(errs, c.want) {
				t.Errorf("%s: %q: status %d, stdout %q, stderr %q", c.what, line, status, out, errs)
			}
		}
	}
}

// cut makes a file shorter.
func cut(t *testing.T, file string, by int64) {
	t.Helper()
	info, err := os.Stat(file)
	if err == nil {
		err = os.Truncate(file, info.Size()/by)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// put writes a file of a run and its size in the manifest.
func put(t *testing.T, dir, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, path), text, 0o644); err != nil {
		t.Fatal(err)
	}
	changeManifest(t, dir, func(m *schema.Manifest) {
		for i := range m.Tables {
			for k := range m.Tables[i].Files {
				if f := &m.Tables[i].Files[k]; f.Path == path {
					f.Bytes = int64(len(text))
				}
			}
		}
	})
}

// foreignFile returns a Parquet file of another program.
func foreignFile(t *testing.T) []byte {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.parquet")
	if status, _, errs := commandLine("", "sql", "--run", filepath.Join(runsDir, "ep.W.4"), "-o", name,
		"SELECT 3 AS a, 'x' AS b"); status != 0 {
		t.Fatal(errs)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestPipesAndDevicesInARun: opening a pipe that nobody writes to waits for ever, and reading a device may never end.
func TestPipesAndDevicesInARun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd.4")
	copyRun(t, "ep.W.4", dir)
	manifest, table := filepath.Join(dir, "manifest.json"), filepath.Join(dir, "events", "0000.parquet")
	ask := func(what, want string, lines ...[]string) {
		t.Helper()
		for _, line := range lines {
			type answer struct {
				status int
				errs   string
			}
			answered := make(chan answer, 1)
			go func() {
				status, _, errs := commandLine("", line...)
				answered <- answer{status, errs}
			}()
			select {
			case got := <-answered:
				if got.status != exitCannot || !strings.Contains(got.errs, want) {
					t.Errorf("%s: %q: status %d, %s", what, line, got.status, got.errs)
				}
			case <-time.After(testenv.Patience):
				t.Fatalf("%s: %q has no answer", what, line)
			}
		}
	}
	changeManifest(t, dir, func(m *schema.Manifest) {
		m.Tables[slices.Index(schema.Tables(), &schema.EventsTable)].Files[0].Bytes = 0
	})
	if err := errors.Join(os.Remove(table), os.Symlink("/dev/zero", table)); err != nil {
		t.Fatal(err)
	}
	ask("a table is a device", "0000.parquet is not a regular file", []string{"sql", "--run", dir, "SELECT max(seq) FROM events"},
		[]string{"sql", "--verify", "--run", dir, "SELECT max(seq) FROM events"},
		[]string{"simulate", "--run", dir, "--machine", "flat", "--store", t.TempDir(), "--name", "s"})
	if err := errors.Join(os.Remove(manifest), syscall.Mkfifo(manifest, 0o600)); err != nil {
		t.Fatal(err)
	}
	ask("the manifest is a pipe", "it has no manifest.json", []string{"sql", "--run", dir, "SELECT 1"},
		[]string{"runs", "show", dir}, []string{"query", "density", "--run", dir})
}

// TestBrokenManifests asks about runs whose manifest is broken.
func TestBrokenManifests(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(runsDir, "ep.W.4", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	whole := string(text)
	replaced := func(old, new string) string {
		if !strings.Contains(whole, old) {
			t.Fatalf("the manifest has no %s", old)
		}
		return strings.Replace(whole, old, new, 1)
	}
	for _, c := range []struct{ what, text, want string }{
		{"empty", "", "not JSON of a manifest"},
		{"cut short", whole[:len(whole)/2], "not JSON of a manifest"},
		{"bytes", "\x00\x1b[31m\xff", "not JSON of a manifest"},
		{"a list", "[]", "not JSON of a manifest"},
		{"another program's", `{"name": "x", "version": 3}`, "no schema_version"},
		{"of the future", replaced(`"schema_version": 2`, `"schema_version": 99`), "schema version 99"},
		{"no ranks", replaced(`"ranks": 4`, `"ranks": 0`), "ranks is 0"},
		{"more ranks than any machine", replaced(`"ranks": 4`, `"ranks": 2147483647`), "at most 16777216"},
		{"ranks of text", replaced(`"ranks": 4`, `"ranks": "4"`), "not JSON of a manifest"},
		{"too many ranks", replaced(`"ranks": 4`, `"ranks": 99999999999`), "not JSON of a manifest"},
		{"a file elsewhere", replaced(`"path": "comms/0000.parquet"`, `"path": "../comms/0000.parquet"`),
			`"../comms/0000.parquet"`},
		{"a file anywhere", replaced(`"path": "comms/0000.parquet"`, `"path": "/etc/passwd"`), `"/etc/passwd"`},
		{"a table twice", replaced(`"name": "comms"`, `"name": "parts"`), `lists "parts" where "comms" is wanted`},
		{"a hostile time origin", replaced(`"time_origin": "measured"`, `"time_origin": "\u001b[31m'; DROP"`),
			"time_origin is"},
	} {
		dir := filepath.Join(t.TempDir(), "broken.4")
		copyRun(t, "ep.W.4", dir)
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		lines := [][]string{{"sql", "--run", dir, "SELECT 1"}, {"report", dir}, {"runs", "show", dir},
			{"runs", "check", dir}}
		for _, q := range allQueries(t) {
			lines = append(lines, []string{"query", q.Name, "--run", dir})
		}
		for _, line := range lines {
			status, out, errs := commandLine("", line...)
			if status != exitCannot || out != "" || drives(errs) != "" || !strings.Contains(errs, c.want) ||
				!strings.Contains(errs, "manifest.json") {
				t.Errorf("%s: %q: status %d, stdout %q, stderr %q; want 2, nothing, %q", c.what, line, status, out,
					errs, c.want)
			}
		}
	}
	if !slices.ContainsFunc(allQueries(t), func(q *queries.Query) bool { return q.Name == "density" }) {
		t.Error("there are no queries")
	}
}
