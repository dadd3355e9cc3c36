package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// calledFrom returns, by call, the call path as function:line, the innermost first, up to main or a Fortran program,
// and the number of calls.
const calledFrom = `
WITH RECURSIVE up AS (
  SELECT id AS leaf, id, parent, function, line, module, 0 AS depth FROM callsites
  UNION ALL
  SELECT u.leaf, c.id, c.parent, c.function, c.line, c.module, u.depth + 1 FROM up AS u JOIN callsites AS c ON c.id = u.parent
  WHERE u.function NOT IN ('main', 'sites')
), path AS (
  SELECT leaf, string_agg(module || '!' || coalesce(function, '?') || ':' || coalesce(line, 0), ' < ' ORDER BY depth) AS path FROM up GROUP BY leaf
)
SELECT e.call, p.path, count(*) AS calls FROM events AS e JOIN path AS p ON p.leaf = e.callsite GROUP BY e.call, p.path ORDER BY e.call, p.path`

// siteRows is the table callsites without the names from symbols.
const siteRows = `SELECT id, parent, module, build_id, "offset" FROM callsites ORDER BY id`

// capturedSites captures a program on 3 ranks and returns its output.
func capturedSites(t *testing.T, store, run, exe string, stack int) string {
	t.Helper()
	out := commq(t, "capture", "--store", store, "--name", run, "-q", "-n", "3", "--stack", strconv.Itoa(stack), "--",
		exe)
	commq(t, "runs", "check", "--store", store, run)
	return out
}

// lineNumbers returns the line numbers that the programs print after names.
func lineNumbers(t *testing.T, out string) map[string]string {
	t.Helper()
	lines := map[string]string{}
	for _, m := range regexp.MustCompile(`([a-z]+) (\d+)`).FindAllStringSubmatch(out, -1) {
		lines[m[1]] = m[2]
	}
	if len(lines) < 5 {
		t.Fatalf("the program prints %q", out)
	}
	return lines
}

// fillIn puts the numbers into the expected rows: {put} is the line printed after put.
func fillIn(lines map[string]string, rows ...string) []string {
	for i := range rows {
		for name, line := range lines {
			rows[i] = strings.ReplaceAll(rows[i], "{"+name+"}", line)
		}
	}
	return rows
}

func compileSites(t *testing.T, library string) string {
	t.Helper()
	dir := t.TempDir()
	cc := func(args ...string) {
		t.Helper()
		if out, err := exec.Command("mpicc."+library,
			append([]string{"-w", "-g", "-O2"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("mpicc.%s %v: %v\n%s", library, args, err, out)
		}
	}
	cc("-fPIC", "-shared", "-o", filepath.Join(dir, "libsites.so"), filepath.Join(programsDir, "sites_library.c"))
	cc("-o", filepath.Join(dir, "sites"), filepath.Join(programsDir, "sites.c"), "-L"+dir, "-lsites", "-Wl,-rpath,"+dir)
	return filepath.Join(dir, "sites")
}

// The lines are those that the compiler counts. Ids are the same in two captures, wherever the program is loaded. A
// stripped or newly built program has no lines but the same offsets.
func TestCallSitesInC(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			exe, store := compileSites(t, library), t.TempDir()
			lines := lineNumbers(t, capturedSites(t, store, "one", exe, 1))
			want := fillIn(lines, "MPI_Allreduce sites!inlined:{in} < sites!main:{inlined} 3",
				"MPI_Barrier libsites.so!shared_barrier:{library} 3",
				"MPI_Finalize sites!main:{finalize} 3", "MPI_Init sites!main:{init} 3",
				"MPI_Sendrecv sites!put:{put} 93")
			if diff := gocmp.Diff(want, askRows(t, "one", "sql", "--store", store, "--run", "one", "--format", "csv",
				calledFrom).rows); diff != "" {
				t.Errorf("--stack 1, by hand (-) and captured (+):\n%s", diff)
			}

			capturedSites(t, store, "four", exe, 4)
			want = fillIn(lines, "MPI_Allreduce sites!inlined:{in} < sites!main:{inlined} 3",
				"MPI_Barrier libsites.so!shared_barrier:{library} < sites!main:{shared} 3",
				"MPI_Finalize sites!main:{finalize} 3", "MPI_Init sites!main:{init} 3",
				"MPI_Sendrecv sites!put:{put} < sites!early:{early} < sites!main:{first} 90",
				"MPI_Sendrecv sites!put:{put} < sites!late:{late} < sites!main:{second} 3")
			if diff := gocmp.Diff(want, askRows(t, "four", "sql", "--store", store, "--run", "four", "--format",
				"csv", calledFrom).rows); diff != "" {
				t.Errorf("--stack 4, by hand (-) and captured (+):\n%s", diff)
			}
			sent := askRows(t, "messages", "sql", "--store", store, "--run", "four", "--format", "csv",
				`SELECT m.tag, p.line, m.send_callsite = m.recv_callsite AS same, count(*) AS n FROM messages AS m
				 JOIN callsites AS c ON c.id = m.send_callsite JOIN callsites AS p ON p.id = c.parent GROUP BY ALL ORDER BY m.tag`)
			if diff := gocmp.Diff(fillIn(lines, "5 {late} true 3", "9 {early} true 90"), sent.rows); diff != "" {
				t.Errorf("messages, by hand (-) and captured (+):\n%s", diff)
			}

			capturedSites(t, store, "again", exe, 4)
			first := askRows(t, "sites", "sql", "--store", store, "--run", "four", "--format", "csv", siteRows)
			if diff := gocmp.Diff(first.rows,
				askRows(t, "sites", "sql", "--store", store, "--run", "again", "--format", "csv",
					siteRows).rows); diff != "" {
				t.Errorf("two captures number differently:\n%s", diff)
			}
			noLines(t, store, exe, lines)
		})
	}
}

// noLines strips the program, and changes it after its capture.
func noLines(t *testing.T, store, exe string, lines map[string]string) {
	t.Helper()
	if out, err := exec.Command("strip", exe).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	capturedSites(t, store, "stripped", exe, 1)
	count := `SELECT count(*) AS sites, count(function) AS functions, count(line) AS lines, count("offset") AS offsets, count(build_id) AS builds FROM callsites`
	for run, want := range map[string]string{
		"one":      "6 6 6 6 6",
		"stripped": "5 1 1 5 5", // the library is unchanged; functions inlined into main have no frame
	} {
		if got := askRows(t, run, "sql", "--store", store, "--run", run, "--format", "csv",
			count).rows; got[0] != want {
			t.Errorf("%s: sites, functions, lines, offsets, builds: %s, want %s", run, got[0], want)
		}
	}
	spool := filepath.Join(t.TempDir(), "spool")
	library := filepath.Join(filepath.Dir(exe), "libsites.so")
	out := commq(t, "capture", "build", "--mpi", libraryOf(t, exe))
	shim := strings.TrimSpace(out)
	cmd := exec.Command("mpirun."+libraryOf(t, exe), "-n", "3", "env", "LD_PRELOAD="+shim, "COMMQ_SPOOL="+spool, exe)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(library, []byte("another library"), 0o755); err != nil {
		t.Fatal(err)
	}
	commq(t, "ingest", "--store", store, "--name", "rebuilt", "--keep", spool)
	commq(t, "ingest", "--store", store, "--name", "bare", "--no-symbols", spool)
	for _, run := range []string{"rebuilt", "bare"} {
		if got := askRows(t, run, "sql", "--store", store, "--run", run, "--format", "csv",
			count).rows; got[0] != "5 0 0 5 5" {
			t.Errorf("%s: sites, functions, lines, offsets, builds: %s", run, got[0])
		}
		warned := strings.Contains(commq(t, "runs", "show", "--store", store, run),
			"Functions and lines in libsites.so are not known: damaged file")
		if warned != (run == "rebuilt") {
			t.Errorf("%s: warned: %v", run, warned)
		}
	}
}

// libraryOf returns the MPI library that the test's program is built for.
func libraryOf(t *testing.T, exe string) string {
	t.Helper()
	for _, library := range []string{"openmpi", "mpich"} {
		if strings.Contains(t.Name(), library) {
			return library
		}
	}
	t.Fatal(exe)
	return ""
}

// In Fortran the call site is in the program, too, even if functions of MPICH are between it and the call, in all
// three bindings. gfortran 12 gives some calls through use mpi and use mpi_f08 the line of the procedure, so the test
// checks the lines of two calls.
func TestCallSitesInFortran(t *testing.T) {
	captureEnvironment(t)
	for _, library := range []string{"openmpi", "mpich"} {
		for _, f := range flavours()[1:] {
			t.Run(library+"/"+f.name, func(t *testing.T) {
				exe, store := filepath.Join(t.TempDir(), "sites"), t.TempDir()
				args := append([]string{"-g", "-O2", "-fno-inline", "-J", t.TempDir(), "-o", exe,
					filepath.Join(programsDir, "sites.F90")}, f.flags...)
				if out, err := exec.Command(f.compiler+library, args...).CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
				lines := lineNumbers(t, capturedSites(t, store, "one", exe, 1))
				capturedSites(t, store, "three", exe, 3)
				for run, want := range map[string][]string{
					"one": fillIn(lines, "MPI_Isend sites!halo::put:{put} 93", "MPI_Recv sites!halo::put:{recv} 93"),
					"three": fillIn(lines, "MPI_Isend sites!halo::put:{put} < sites!halo::early:{early} 90",
						"MPI_Isend sites!halo::put:{put} < sites!halo::late:{late} 3",
						"MPI_Recv sites!halo::put:{recv} < sites!halo::early:{early} 90",
						"MPI_Recv sites!halo::put:{recv} < sites!halo::late:{late} 3"),
				} {
					query := fmt.Sprintf("SELECT call, regexp_replace(path, ' < sites!sites:.*', '') AS path, calls FROM (%s) WHERE call IN ('MPI_Isend', 'MPI_Recv') ORDER BY ALL", calledFrom)
					if diff := gocmp.Diff(want,
						askRows(t, run, "sql", "--store", store, "--run", run, "--format", "csv",
							query).rows); diff != "" {
						t.Errorf("%s, by hand (-) and captured (+):\n%s", run, diff)
					}
					elsewhere := `SELECT count(*) AS elsewhere FROM events AS e LEFT JOIN callsites AS c ON c.id = e.callsite WHERE c.module IS DISTINCT FROM 'sites'`
					if got := askRows(t, run, "sql", "--store", store, "--run", run, "--format", "csv",
						elsewhere).rows[0]; got != "0" {
						t.Errorf("%s: %s calls have no site in the program", run, got)
					}
				}
			})
		}
	}
}
