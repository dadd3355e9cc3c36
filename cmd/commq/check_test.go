package main

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/compare"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// checkFolder returns a store with the runs of diffStore, and a folder with rules and a baseline of a.3.
func checkFolder(t *testing.T) (store, dir string) {
	t.Helper()
	store, dir = diffStore(t), t.TempDir()
	rules := "commq_check: 1\nbaseline: base.yaml\nrules:\n  - name: no more\n    no_more: [messages, pairs]\n"
	if err := os.WriteFile(filepath.Join(dir, "commq-check.yaml"), []byte(rules), 0o644); err != nil {
		t.Fatal(err)
	}
	if status, _, errs := commandLine("", "check", "--write-baseline", "--store", store, "--run", "a.3",
		"--baseline", filepath.Join(dir, "base.yaml")); status != 0 {
		t.Fatal(errs)
	}
	return store, dir
}

func TestCheckCommand(t *testing.T) {
	store, dir := checkFolder(t)
	check := func(args ...string) (int, string, string) {
		return commandLine("", append([]string{"check", "--store", store, "--rules",
			filepath.Join(dir, "commq-check.yaml")}, args...)...)
	}
	if status, out, errs := check("--run", "a.3"); status != exitDone || errs != "" ||
		!strings.Contains(out, "passed     no more\n1 rule passed, 0 failed (") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	xmlFile, jsonFile := filepath.Join(dir, "c.xml"), filepath.Join(dir, "c.json")
	status, out, _ := check("--run", "b.3", "--write", "junit="+xmlFile, "--write", "json="+jsonFile)
	if status != exitFailed || !strings.Contains(out, "messages of run b.3 is 4, the baseline has 3 (+33.3 %)") ||
		strings.Contains(out, "pairs") {
		t.Errorf("status %d\n%s", status, out)
	}
	text, err := os.ReadFile(xmlFile)
	if err != nil || xml.Unmarshal(text, new(struct{})) != nil ||
		!strings.Contains(string(text), `<testsuite name="commq check `) {
		t.Errorf("%v %s", err, text)
	}
	var v compare.Verdict
	text, err = os.ReadFile(jsonFile)
	if err != nil || json.Unmarshal(text, &v) != nil || v.Results[0].Status != compare.Failed {
		t.Errorf("%v %s", err, text)
	}
}

// TestWriteBaseline: check writes the baseline to the file that it would read, and overwrites it only with --replace.
func TestWriteBaseline(t *testing.T) {
	store, dir := checkFolder(t)
	rules, base := filepath.Join(dir, "commq-check.yaml"), filepath.Join(dir, "base.yaml")
	first := mustRead(t, base)
	for _, c := range []struct {
		args []string
		want string // of the message
		run  string // of the baseline afterwards
	}{
		{[]string{"--run", "b.3"}, "base.yaml exists; name another file, or overwrite it with --replace", "a.3"},
		{[]string{"--run", "b.3", "--replace"}, "base.yaml written: measures of 1 run; commit it", "b.3"},
		{[]string{"--run", "a.3", "--replace", "--format", "json"}, "--format is for checking runs", "b.3"},
		{[]string{"--run", "a.3", "--replace", "--base", "b.3"}, "--base is for checking runs", "b.3"},
		{[]string{"--run", "a.3", "--replace", "--times"}, "base.yaml written: ", "a.3"},
	} {
		status, out, errs := commandLine("", append([]string{"check", "--write-baseline", "--store", store, "--rules",
			rules}, c.args...)...)
		if !strings.Contains(errs, c.want) || out != "" || (status == exitDone) != strings.Contains(c.want, "written") {
			t.Errorf("%q: status %d\n%s%s; want %s", c.args, status, out, errs, c.want)
		}
		is := "b.3"
		if mustRead(t, base) == first { // its times too: the run has none
			is = "a.3"
		}
		if is != c.run {
			t.Errorf("%q: the baseline is that of %s, want %s", c.args, is, c.run)
		}
	}
	for _, flag := range []string{"--times", "--equations"} {
		if status, _, errs := commandLine("", "check", "--store", store, "--rules", rules, "--run", "a.3",
			flag); status != exitCannot || !strings.Contains(errs, flag+" is about a baseline; want --write-baseline too") {
			t.Errorf("%s without --write-baseline: status %d, %s", flag, status, errs)
		}
	}
	if status, _, errs := commandLine("", "check", "--store", store, "--rules", rules, "a.3", "--source-root",
		"/nowhere"); status != exitCannot || !strings.Contains(errs, "--source-root /nowhere: no such folder") {
		t.Errorf("a source root that is not there: status %d, %s", status, errs)
	}
	rewrite(t, rules, "baseline: base.yaml\n", "")
	if status, _, errs := commandLine("", "check", "--write-baseline", "--store", store, "--rules", rules, "--run",
		"a.3"); status != exitCannot || !strings.Contains(errs, "commq-check.yaml names no baseline; name the file") {
		t.Errorf("rules without a baseline: status %d, %s", status, errs)
	}
}

// TestEquationsOfOtherRanks: what is exact on up to 16 ranks is checked on 32, and what a regression fits is not.
func TestEquationsOfOtherRanks(t *testing.T) {
	dir := t.TempDir()
	rules, base := filepath.Join(dir, "commq-check.yaml"), filepath.Join(dir, "base.yaml")
	check := func(measures, ranks string, more ...string) (int, string) {
		t.Helper()
		text := "commq_check: 1\nbaseline: base.yaml\nrules:\n  - name: laws\n    equations: [" + measures + "]\n"
		if err := os.WriteFile(rules, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		args := append([]string{"check", "--rules", rules}, more...)
		for _, n := range strings.Fields(ranks) {
			args = append(args, filepath.Join("../../testdata/runs", "mg.W."+n))
		}
		status, out, errs := commandLine("", args...)
		return status, out + errs
	}
	status, said := check("messages", "2 4 8 16", "--write-baseline", "--equations")
	if status != exitDone || !strings.Contains(said, "no equation of message_bytes: its values follow no exact law") {
		t.Fatalf("status %d\n%s", status, said)
	}
	for _, c := range []struct {
		measures, ranks string
		status          int
		want            string
	}{
		{`"*"`, "2 4 8 16", exitDone, "messages is as in the baseline"},
		{`"collective_*", unmatched_sends`, "2 32", exitDone, "collective_bytes is 56 + 1032 P"},
		{`"*"`, "2 4 8 16 32", exitCannot, "message_bytes with 32 ranks has nothing to compare with"},
	} {
		if status, said := check(c.measures, c.ranks); status != c.status || !strings.Contains(said, c.want) {
			t.Errorf("%s on %s ranks: status %d, want %d\n%s", c.measures, c.ranks, status, c.status, said)
		}
	}
	for _, ranks := range []int{2, 4, 8, 16} { // the baseline of a program with a call less on each rank
		rewrite(t, base, fmt.Sprintf("collective_calls: %d\n", 102*ranks),
			fmt.Sprintf("collective_calls: %d\n", 101*ranks))
	}
	rewrite(t, base, "102 P", "101 P")
	if status, said := check("collective_calls", "32"); status != exitFailed || !strings.Contains(said,
		"collective_calls of run mg.W.32 is 3,264, the baseline's equation 101 P says 3,232 with 32 ranks") {
		t.Errorf("a changed program: status %d\n%s", status, said)
	}
}

// emptyRun writes a run without any row of a call or message.
func emptyRun(t *testing.T, store, name string, m schema.Manifest) {
	t.Helper()
	run, err := writer.Create(store, name, writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Abort()
	comms := &schema.Comms{}
	for rank := range m.Ranks {
		c := schema.NullComm
		c.CommRank, c.WorldRank, c.Kind = rank, rank, int16(schema.CommWorld)
		comms.Append(&c)
	}
	m.TimeOrigin, m.ComputeClock, m.Record, m.Hash, m.Epochs = "untimed", "none", "messages", "none", 1
	if err := run.Write(0, comms); err != nil {
		t.Fatal(err)
	}
	if err := run.Commit(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
}

// TestCheckReadsFilesOfTheRegisteredRun: where a server answers queries, rules that read files want the same run here.
func TestCheckReadsFilesOfTheRegisteredRun(t *testing.T) {
	store := t.TempDir()
	emptyRun(t, store, "r", schema.Manifest{Ranks: 2, Ended: "finalized"})
	m, err := writer.ReadManifest(filepath.Join(store, "r"))
	if err != nil {
		t.Fatal(err)
	}
	other := *m
	other.Digest = strings.Repeat("0", len(m.Digest))
	e := &checkEngine{&app{store: store}, &checkOptions{trino: "http://ada@trino:8080"}}
	if found, err := e.withFiles(compare.Run{Name: "r", Manifest: m}); err != nil || found.Name != "r" {
		t.Errorf("the same run: %+v, %v", found, err)
	}
	_, err = e.withFiles(compare.Run{Name: "r", Manifest: &other})
	if want := "have different rows; commq store register"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("another run: %v, want %s", err, want)
	}
}

// TestCheckFailsClosed: if anything is missing, the status is 2 and never 0.
func TestCheckFailsClosed(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(store, dir string)
		args    []string
		want    string
	}{
		"no baseline":  {func(_, dir string) { os.Remove(filepath.Join(dir, "base.yaml")) }, nil, "write it with commq check --write-baseline"},
		"no rules":     {func(_, dir string) { os.Remove(filepath.Join(dir, "commq-check.yaml")) }, nil, "write one (docs/reference/rules.md has the rules)"},
		"no run":       {nil, []string{"--run", "nothing.3"}, "nothing.3"},
		"no pattern":   {nil, []string{"--run", "nothing.*"}, "nothing.*"},
		"empty run":    {func(store, _ string) { emptyRun(t, store, "e.3", schema.Manifest{Ranks: 3, Ended: "finalized"}) }, []string{"--run", "e.3"}, `run "e.3" is empty`},
		"killed":       {func(store, _ string) { emptyRun(t, store, "e.3", schema.Manifest{Ranks: 3, Ended: "killed"}) }, []string{"--run", "e.3"}, `run "e.3" was killed before MPI_Finalize`},
		"base missing": {nil, []string{"--run", "a.3", "--base", "main.*"}, "main.*"},
		"damaged run":  {func(store, _ string) { damage(t, filepath.Join(store, "a.3")) }, []string{"--run", "a.3"}, "damaged"},
		"no file": {nil, []string{"--run", "a.3", "--write", "junit=" +
			filepath.Join(t.TempDir(), "none", "c.xml")}, "there is no folder"},
		"wrong format": {nil, []string{"--run", "a.3", "--write", "xunit=c.xml"},
			"--write xunit=c.xml: want FORMAT=FILE"},
		"wrong measure": {func(_, dir string) { rewrite(t, filepath.Join(dir, "commq-check.yaml"), "messages", "mesages") }, nil, ""},
		"renamed":       {func(_, dir string) { rewrite(t, filepath.Join(dir, "base.yaml"), "messages:", "message_count:") }, nil, ""},
		"unknown key":   {func(_, dir string) { rewrite(t, filepath.Join(dir, "commq-check.yaml"), "no_more", "nomore") }, nil, `commq-check.yaml:5: unknown key "nomore" in rules[0]; did you mean no_more?`},
		"other column": {func(_, dir string) {
			rewrite(t, filepath.Join(dir, "commq-check.yaml"), "no_more: [messages, pairs]",
				"no_rows: SELECT source FROM messages")
		}, nil, ""},
		"no hashes": {func(_, dir string) {
			rewrite(t, filepath.Join(dir, "commq-check.yaml"), "no_more: [messages, pairs]", "no_manual: [all]")
		}, nil, ""},
		"one number of ranks": {func(_, dir string) {
			rewrite(t, filepath.Join(dir, "commq-check.yaml"), "no_more: [messages, pairs]",
				"scaling: messages\n    exponent_at_most: 1")
		}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			store, dir := checkFolder(t)
			if c.prepare != nil {
				c.prepare(store, dir)
			}
			if c.args == nil {
				c.args = []string{"--run", "a.3"}
			}
			status, out, errs := commandLine("",
				append([]string{"check", "--store", store, "--rules", filepath.Join(dir, "commq-check.yaml")},
					c.args...)...)
			if status != exitCannot || !strings.Contains(errs, c.want) || c.want == "" &&
				!strings.Contains(out, "undecided  no more\n") {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
		})
	}
	store, dir := checkFolder(t)
	stopped, stop := context.WithCancel(context.Background())
	stop()
	var out, errs strings.Builder
	if status := execute(stopped, []string{"check", "--store", store, "--rules", filepath.Join(dir, "commq-check.yaml"),
		"--run", "a.3"}, strings.NewReader(""), &out, &errs); status != exitCannot {
		t.Errorf("interrupted: %d %s%s", status, out.String(), errs.String())
	}
}

// rewrite replaces text in a file.
func rewrite(t *testing.T, name, old, new string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil || !strings.Contains(string(text), old) {
		t.Fatalf("%v: no %q in %s", err, old, text)
	}
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// damage cuts a byte off a run's messages.
func damage(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "messages", "*.parquet"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	info, err := os.Stat(files[0])
	if err == nil {
		err = os.Truncate(files[0], info.Size()-1)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestHaloCheck changes the sample program. Each change for the worse breaks the rules that it should, and the
// finding names the line that causes it; harmless changes pass. The time rule has its own runs, five of each side,
// because one run has no p-value.
func TestHaloCheck(t *testing.T) {
	captureEnvironment(t)
	dir := t.TempDir()
	exe := filepath.Join(dir, "halo")
	if out, err := exec.Command("mpicc.mpich", "-g", "-O1", "-o", exe, filepath.Join(programsDir, "halo.c"),
		"-lm").CombinedOutput(); err != nil {
		t.Fatalf("compile halo.c: %v\n%s", err, out)
	}
	store := filepath.Join(dir, "runs")
	capture := func(name, ranks, change string) {
		t.Helper()
		status, _, errs := commandLine("", "capture", "-q", "--store", store, "--mpi", "mpich", "--hash", "crc64",
			"--name", name, "-n", ranks, "--", exe, change)
		if status != 0 {
			t.Fatalf("%s: status %d\n%s", name, status, errs)
		}
	}
	for _, ranks := range []string{"2", "4", "8"} {
		capture("main."+ranks, ranks, "none")
	}
	rules, err := os.ReadFile(filepath.Join(programsDir, "halo-check.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	exact, times, _ := strings.Cut(string(rules), "  - name: not slower\n")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	exactRules := write("exact.yaml", exact)
	timeRules := write("times.yaml", "commq_check: 1\nrules:\n  - name: not slower\n"+times)
	if status, _, errs := commandLine("", "check", "--write-baseline", "--store", store, "--run", "main.*",
		"--equations", "--rules", exactRules); status != 0 {
		t.Fatal(errs)
	}
	for _, c := range []struct {
		change string
		status int
		want   []string
	}{
		{"none", exitDone, nil},
		{"order", exitDone, nil},
		{"renamed", exitDone, nil},
		{"extra", exitFailed, []string{"failed     no more messages\n",
			"messages of run extra.4 is 240, the baseline has 160 (+50 %); MPI_Sendrecv in report_progress (halo.c), line "}},
		{"double", exitFailed, []string{"failed     no more messages\n",
			"message_bytes of run double.4 is 43,520, the baseline has 21,760 (+100 %); MPI_Sendrecv in exchange_wide (halo.c)"}},
		{"byhand", exitFailed, []string{"failed     no collective by hand\n",
			"run byhand.4 does MPI_Bcast by hand: MPI_Bcast over MPI_COMM_WORLD (4 ranks), root 0: 1 instance of 513 MPI_DOUBLE"}},
		{"allpairs", exitFailed, []string{"failed     messages per rank stay constant\n",
			"messages of run allpairs.4 is 400, the baseline has 160 with 4 ranks",
			"grows as ranks^0.792 (60 with 2, 100 with 4, 180 with 8 ranks); an exponent of at most 0.05 is allowed"}},
	} {
		for _, ranks := range []string{"2", "4", "8"} {
			capture(c.change+"."+ranks, ranks, c.change)
		}
		status, out, errs := commandLine("", "check", "--store", store, "--rules", exactRules, "--run", c.change+".*")
		if status != c.status || errs != "" {
			t.Errorf("%s: status %d, want %d\n%s%s", c.change, status, c.status, out, errs)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", c.change, want, out)
			}
		}
	}
	for _, n := range []string{"a", "b", "c", "d", "e"} { // in turn, so that both sides have the same noise
		capture("base."+n, "4", "none")
		capture("same."+n, "4", "renamed")
		capture("slow."+n, "4", "slow")
	}
	times4 := func(name, base string, want int) {
		t.Helper()
		status, out, errs := commandLine("", "check", "--store", store, "--rules", timeRules, "--run", name, "--base",
			base)
		if status != want || errs != "" {
			t.Errorf("%s: status %d, want %d\n%s%s", name, status, want, out, errs)
		}
	}
	times4("same.*", "base.*", exitDone)
	times4("slow.*", "base.*", exitFailed)
	// repeats the check to find false alarms, with ten captures each
	more, _ := strconv.Atoi(os.Getenv("COMMQ_CHECK_REPETITIONS"))
	for k := range more {
		for n := range 5 {
			capture(fmt.Sprintf("base%d.%d", k, n), "4", "none")
			capture(fmt.Sprintf("again%d.%d", k, n), "4", []string{"order", "renamed"}[k%2])
		}
		times4(fmt.Sprintf("again%d.*", k), fmt.Sprintf("base%d.*", k), exitDone)
	}
	if status, out, _ := commandLine("", "check", "--store", store, "--rules", timeRules, "--run", "slow.a", "--base",
		"base.*"); status != exitCannot || !strings.Contains(out, "not enough data") {
		t.Errorf("one run: status %d\n%s", status, out)
	}
}

func mustRead(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
