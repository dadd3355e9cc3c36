package shim

import (
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/commq/commq/internal/testenv"
	"github.com/google/go-cmp/cmp"
)

// The two ways to add simulator ranks to a job: as a separate program beside the program, or as the last of the
// program's ranks.
const (
	beside   = "beside"
	diverted = "diverted"
)

// formFor builds one form of the shim, once per test run.
func formFor(t testing.TB, library string, form Form) string {
	t.Helper()
	if form == Recording {
		return shimFor(t, library)
	}
	shimFor(t, library) // skips without the library
	built.Lock()
	defer built.Unlock()
	key := library + " " + form.file()
	if built.path[key] == "" {
		p, err := Build(context.Background(),
			BuildOptions{Library: library, Form: form, Cache: built.cache})
		if err != nil {
			t.Fatal(err)
		}
		built.path[key] = p
	}
	return built.path[key]
}

// simulation returns the environment that simulator ranks need: the commq program, built once per test run, and a
// machine.
func simulation(t testing.TB) []string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.path["commq"] == "" {
		built.path["commq"] = commqCommand(t)
	}
	commq := built.path["commq"]
	machine, err := filepath.Abs("../../models/machines/collectives-in-hardware.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"COMMQ_SIM_COMMAND=" + commq, "COMMQ_SIM_MACHINE=" + machine}
}

// commqCommand is testenv.Command in a folder that stays until all tests have ended.
func commqCommand(t testing.TB) string {
	t.Helper()
	command := testenv.Command(t, "../..")
	if os.Getenv("COMMQ_TEST_CACHE") != "" {
		return command
	}
	kept := filepath.Join(built.dir, "commq")
	if err := os.Rename(command, kept); err != nil {
		t.Fatal(err)
	}
	return kept
}

// simulated runs a program on its own ranks and sims simulator ranks; messages of the shim are errors.
func simulated(t testing.TB, library, how string, ranks, sims int, variables []string, program ...string) outcome {
	t.Helper()
	spool := "COMMQ_SPOOL=" + filepath.Join(t.TempDir(), "spool")
	t.Cleanup(func() { waitForRanks(t, spool) })
	common := append(simulation(t), spool)
	variables = append(append([]string{"LD_PRELOAD=" + formFor(t, library, Simulated)}, common...), variables...)
	if how == diverted {
		return noComplaints(t, launch(t, library, ranks+sims, append(variables, fmt.Sprint("COMMQ_SIM_RANKS=", sims)),
			program...))
	}
	variables[0] += ":" + yielding(t)
	also := append(common, "LD_PRELOAD="+yielding(t))
	args := append([]string{"mpirun." + library, "-n", fmt.Sprint(ranks), "env"}, variables...)
	args = append(append(args, program...), ":", "-n", fmt.Sprint(sims), "env")
	args = append(append(args, also...), formFor(t, library, Bridge))
	return noComplaints(t, run(t, nil, args...))
}

// waitForRanks waits for the processes with a variable in their environment: the launcher of an aborted job can
// return before the last rank, which is still writing its records, has ended.
func waitForRanks(t testing.TB, variable string) {
	t.Helper()
	for deadline := time.Now().Add(testenv.Patience); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		environs, err := filepath.Glob("/proc/[0-9]*/environ")
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(environs, func(file string) bool {
			environ, err := os.ReadFile(file) // it may have ended
			return err == nil && slices.Contains(strings.Split(string(environ), "\x00"), variable)
		}) {
			return
		}
	}
	t.Errorf("processes with %s are there minutes after their launcher", variable)
}

// noComplaints checks that the shim printed nothing.
func noComplaints(t testing.TB, o outcome) outcome {
	t.Helper()
	if strings.Contains("\n"+o.stderr, "\ncommq:") {
		t.Errorf("the shim complains:\n%s", o.stderr)
	}
	return o
}

// compareWithAlone runs a program on ranks alone and with simulator ranks in both ways, and compares its output and
// exit status.
func compareWithAlone(t *testing.T, library string, ranks, sims int, program ...string) outcome {
	t.Helper()
	alone := launch(t, library, ranks, nil, program...)
	for _, how := range []string{beside, diverted} {
		got := simulated(t, library, how, ranks, sims, nil, program...)
		if diff := cmp.Diff(strings.Split(alone.stdout, "\n"), strings.Split(got.stdout, "\n")); diff != "" ||
			got.status != alone.status {
			t.Errorf("%s: status %d, want %d (-alone +with simulator ranks):\n%s%s", how, got.status, alone.status,
				diff, got.stderr)
		}
	}
	return alone
}

// TestTheProgramSeesItsOwnWorld covers every call on MPI_COMM_WORLD, its attributes and names, and callbacks, in every
// language.
func TestTheProgramSeesItsOwnWorld(t *testing.T) {
	for _, p := range []struct {
		name  string
		lines map[string]int // by language, C and Fortran: number of lines that the program must print
	}{{"world_calls", map[string]int{"c": 60, "mpifh": 38, "usempi": 38, "f08": 38}},
		{"world_callbacks", map[string]int{"c": 75, "mpifh": 85, "usempi": 85, "f08": 51}}} {
		for _, library := range libraries {
			for _, f := range flavours {
				t.Run(p.name+"/"+library+"/"+f.name, func(t *testing.T) {
					exe := compile(t, f.compiler+library, filepath.Join(programs, p.name+f.suffix),
						append(f.flags, "-J", t.TempDir())[:len(f.flags)+2*b2i(f.suffix != ".c")]...)
					alone := compareWithAlone(t, library, 4, 2, exe)
					if n := strings.Count(alone.stdout, "\n"); alone.status != 0 || n < p.lines[f.name] {
						t.Errorf("alone: status %d, %d lines, want %d\n%s%s", alone.status, n, p.lines[f.name],
							alone.stdout, alone.stderr)
					}
				})
			}
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestProgramsBesideSimulatorRanks runs the programs of the recorders' tests, which check their own results, mostly
// on MPI_COMM_WORLD.
func TestProgramsBesideSimulatorRanks(t *testing.T) {
	for _, name := range []string{"p2p", "requests", "probes", "collectives", "comms", "types", "neighbors",
		"persistent", "io", "rma"} {
		ranks := 3
		if name == "comms" {
			ranks = 5
		}
		for _, library := range libraries {
			for i, f := range flavours {
				if name == "persistent" && library == OpenMPI && f.name != "c" { // the extension has no Fortran here
					continue
				}
				t.Run(name+"/"+library+"/"+f.name, func(t *testing.T) {
					exe := compileOnce(t, library, name, f)
					how := []string{beside, diverted}[i%2]
					if got := simulated(t, library, how, ranks, 2, nil, exe); got.stdout != "ok\n" || got.status != 0 {
						t.Errorf("%s: status %d, %q\n%s", how, got.status, got.stdout, got.stderr)
					}
				})
			}
		}
	}
}

func TestSessionsBesideSimulatorRanks(t *testing.T) {
	exe := compile(t, "mpicc.mpich", filepath.Join(programs, "world_sessions.c"))
	for _, how := range []string{"only", "init", "first"} {
		t.Run(how, func(t *testing.T) {
			if alone := compareWithAlone(t, MPICH, 3, 2, exe, how); alone.status != 0 ||
				!strings.Contains(alone.stdout, "sum 3, same group 1") {
				t.Errorf("alone: %+v", alone)
			}
		})
	}
	for _, f := range flavours[1:] {
		t.Run(f.name, func(t *testing.T) {
			exe := compile(t, f.compiler+MPICH, filepath.Join(programs, "world_sessions.F90"), f.flags...)
			if alone := compareWithAlone(t, MPICH, 3, 2, exe); alone.stdout != "FF 2 3 3 T 3\n" {
				t.Errorf("alone: %+v", alone)
			}
		})
	}
	for _, flag := range []string{"-UWORLD", "-DWORLD"} {
		t.Run(flag, func(t *testing.T) {
			exe := compile(t, "mpicc.mpich", filepath.Join(programs, "sessions.c"), flag)
			if alone := compareWithAlone(t, MPICH, 3, 2, exe); alone.stdout != "ok\n" {
				t.Errorf("alone: %+v", alone)
			}
		})
	}
}

// TestSpawnBesideSimulatorRanks runs under Open MPI only: MPICH's spawning does not work where the tests run.
func TestSpawnBesideSimulatorRanks(t *testing.T) {
	for _, f := range flavours {
		t.Run(f.name, func(t *testing.T) {
			exe := compile(t, f.compiler+OpenMPI, filepath.Join(programs, "spawn"+f.suffix), f.flags...)
			if alone := compareWithAlone(t, OpenMPI, 3, 1, exe); alone.stdout != "ok\n" {
				t.Errorf("alone: %+v", alone)
			}
		})
	}
}

// sorted returns a text with its lines sorted.
func sorted(s string) []string {
	lines := strings.Split(s, "\n")
	slices.Sort(lines)
	return lines
}

// TestHowTheProgramEnds covers MPI_Abort, a fatal error and an ordinary end: the exit status equals the one without
// simulator ranks; the simulator ranks end with the program and print nothing.
func TestHowTheProgramEnds(t *testing.T) {
	for _, library := range libraries {
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "world_start.c"))
		for _, how := range []string{"", "abort", "fatal"} {
			args := []string{exe, how}[:1+b2i(how != "")]
			alone := launch(t, library, 4, nil, args...)
			if (how == "") != (alone.status == 0) {
				t.Fatalf("%s: %s: status %d", library, how, alone.status)
			}
			for _, form := range []string{beside, diverted} {
				got := simulated(t, library, form, 4, 2, nil, args...)
				if got.status != alone.status {
					t.Errorf("%s: %s: %s: status %d, want %d\n%s", library, how, form, got.status, alone.status,
						got.stderr)
				}
				if diff := cmp.Diff(sorted(alone.stdout), sorted(got.stdout)); how == "" && diff != "" {
					t.Errorf("%s: %s (-alone +with simulator ranks):\n%s", library, form, diff)
				}
			}
		}
	}
}

// TestNoSimulatorRanks checks that a program without simulator ranks runs, and that the reason is printed.
func TestNoSimulatorRanks(t *testing.T) {
	for _, library := range libraries {
		exe := compile(t, "mpicc."+library, filepath.Join(programs, "world_start.c"))
		alone := launch(t, library, 3, nil, exe)
		for value, want := range map[string]string{
			"":    "commq: no simulator ranks: none runs commq-bridge, and COMMQ_SIM_RANKS is not set; start the program by commq capture --sim-ranks; it runs unrecorded\n",
			"0":   "commq: COMMQ_SIM_RANKS=0: give a number from 1 to 2, one less than the 3 ranks; the program runs unrecorded\n",
			"-1":  "commq: COMMQ_SIM_RANKS=-1: give a number from 1 to 2, one less than the 3 ranks; the program runs unrecorded\n",
			"two": "commq: COMMQ_SIM_RANKS=two: give a number from 1 to 2, one less than the 3 ranks; the program runs unrecorded\n",
			"3":   "commq: COMMQ_SIM_RANKS=3 leaves none of the 3 ranks for the program: launch 3 more; it runs unrecorded\n",
			"9":   "commq: COMMQ_SIM_RANKS=9 leaves none of the 3 ranks for the program: launch 9 more; it runs unrecorded\n",
		} {
			spool := filepath.Join(t.TempDir(), "spool")
			got := launch(t, library, 3, []string{"LD_PRELOAD=" + formFor(t, library, Simulated), "COMMQ_SPOOL=" +
				spool, "COMMQ_SIM_RANKS=" + value}, exe)
			if got.stderr != alone.stderr+want || got.status != 0 {
				t.Errorf("%s: COMMQ_SIM_RANKS=%q: status %d, said %q, want %q", library, value, got.status,
					got.stderr, want)
			}
			if diff := cmp.Diff(sorted(alone.stdout), sorted(got.stdout)); diff != "" {
				t.Errorf("%s: COMMQ_SIM_RANKS=%q (-alone +got):\n%s", library, value, diff)
			}
			if files, err := os.ReadDir(spool); err == nil && len(files) > 0 {
				t.Errorf("%s: COMMQ_SIM_RANKS=%q: the spool has %v", library, value, files)
			}
		}
	}
}

// TestSimulatorRanksAlone starts simulator ranks without a program.
func TestSimulatorRanksAlone(t *testing.T) {
	for _, library := range libraries {
		got := run(t, nil, "mpirun."+library, "-n", "2", "env", "LD_PRELOAD="+yielding(t), formFor(t, library, Bridge))
		const want = "commq: commq-bridge runs on all the job's ranks (2), a program on none; start both in one job, as commq capture --sim-ranks does\n"
		if got.status != 2 || strings.Count(got.stderr, "commq:") != 1 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", library, got)
		}
	}
}

// TestDivertedInInit checks that a rank whose number is not in the launcher's environment becomes a simulator in
// MPI_Init.
func TestDivertedInInit(t *testing.T) {
	exe := compile(t, "mpicc.openmpi", filepath.Join(programs, "world_calls.c"), "-w")
	alone := launch(t, OpenMPI, 4, nil, exe)
	got := simulated(t, OpenMPI, diverted, 4, 2, nil, "env", "-u", "OMPI_COMM_WORLD_RANK", exe)
	if diff := cmp.Diff(alone.stdout, got.stdout); diff != "" || got.status != 0 || len(alone.stdout) < 1000 {
		t.Errorf("status %d (-alone +with simulator ranks):\n%s%s", got.status, diff, got.stderr)
	}
}

// communicators lists, by call, the indices of its parameters that are communicators to be translated.
func communicators(t *testing.T) map[string][]int {
	t.Helper()
	f, err := os.Open("../../schema/calls.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	arguments := slices.Index(lines[0], "arguments")
	found := map[string][]int{}
	for _, l := range lines[1:] {
		for i, a := range strings.Split(l[arguments], ";") {
			if strings.HasPrefix(strings.TrimSpace(a), "MPI_Comm ") && !strings.Contains(a, "*") {
				found[l[1]] = append(found[l[1]], i)
			}
		}
	}
	return found
}

// untranslated are calls that must get the communicator unchanged, with the reason.
var untranslated = map[string]string{
	"MPI_Comm_c2f":          "the program's number of MPI_COMM_WORLD is the library's",
	"MPI_Abort":             "ends the real MPI_COMM_WORLD",
	"MPI_COMM_DUP_FN":       "a callback",
	"MPI_COMM_NULL_COPY_FN": "a callback", "MPI_COMM_NULL_DELETE_FN": "a callback",
	"MPI_DUP_FN": "a callback", "MPI_NULL_COPY_FN": "a callback", "MPI_NULL_DELETE_FN": "a callback",
}

// mpichAlso are Fortran symbols of MPICH that its library does not implement by a wrapped C function.
var mpichAlso = strings.Fields(`mpi_comm_get_attr_ mpi_comm_set_attr_ mpi_attr_get_ mpi_attr_put_ mpi_pack_size_f08_large_
	mpi_alltoallw_f08ts_ mpi_ialltoallw_f08ts_ mpi_alltoallw_init_f08ts_ mpix_comm_shrink_f08_ mpix_comm_agree_f08_`)

// TestEveryCommunicatorIsTranslated checks the source: a call whose communicator is not translated would see the
// simulator ranks.
func TestEveryCommunicatorIsTranslated(t *testing.T) {
	takes := communicators(t)
	if len(takes) < 200 {
		t.Fatalf("only %d calls take a communicator", len(takes))
	}
	rows := callRows(t)
	for _, library := range libraries {
		there := exported(t, formFor(t, library, Simulated), regexp.MustCompile(`^(MPI|mpi)x?X?_`))
		for _, name := range slices.Sorted(maps.Keys(takes)) {
			for _, s := range rows[name].spellings(name, library) {
				if !there[s] && untranslated[name] == "" {
					t.Errorf("%s: nothing translates the communicator of %s", library, s)
				}
			}
		}
		for _, s := range mpichAlso {
			if library == MPICH && !there[s] {
				t.Errorf("nothing translates the communicator of MPICH's %s", s)
			}
		}
	}
	wrapper := regexp.MustCompile(`(?m)^CQ_EXPORT \w+ (P?MPIX?_\w+|mpix?_\w+?)(_f08_large_|_f08_|_cptr_|_)?\(([^)]*)\)\n\{\n((?:.*\n)*?)\}\n`)
	spelled := map[string]string{}
	for name := range takes {
		spelled[strings.ToLower(name)] = name
	}
	seen := 0
	for _, file := range []string{"wrap_gen.c", "world_gen.c", "wrappers.c", "process.c"} {
		text, err := sources.ReadFile("src/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range wrapper.FindAllStringSubmatch(string(text), -1) {
			name, macro := m[1], "CQ_IN_APP"
			if strings.HasPrefix(name, "mpi") {
				name, macro = spelled[name], "CQ_IN_APP_F"
			}
			if untranslated[name] != "" {
				continue
			}
			for _, i := range takes[name] {
				seen++
				words := strings.FieldsFunc(strings.Split(m[3], ",")[i],
					func(r rune) bool { return r == ' ' || r == '*' })
				if want := fmt.Sprintf("\t%s(%s);\n", macro, words[len(words)-1]); !strings.Contains(m[4], want) {
					t.Errorf("%s: %s%s has no %s", file, m[1], m[2], strings.TrimSpace(want))
				}
			}
		}
	}
	if seen < 500 {
		t.Errorf("only %d parameters seen", seen)
	}
}
