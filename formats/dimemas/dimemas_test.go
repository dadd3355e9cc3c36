//go:build dimemas

package dimemas

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// These tests (go test -tags dimemas) compare with Dimemas itself, version 5.5.0: $COMMQ_DIMEMAS is its program.
// $COMMQ_DIMEMAS_CASES is how many random programs are compared, $COMMQ_DIMEMAS_SEED the first,
// $COMMQ_DIMEMAS_KEEP a folder for those where the two differ.

func dimemas(t testing.TB) string {
	program := os.Getenv("COMMQ_DIMEMAS")
	if program == "" {
		t.Fatal("$COMMQ_DIMEMAS does not name Dimemas 5.5.0")
	}
	return program
}

// number of an environment variable.
func setting(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}

// run runs Dimemas in a folder on trace.dim and machine.cfg, and returns when each rank finishes, in ns. A heap of
// zeros makes it repeatable. What it cannot do is an error.
func runDimemas(program, dir string, ranks int, flags ...string) ([]float64, error) {
	cmd := exec.Command(program, append([]string{"--dim", "trace.dim", "--config-file", "machine.cfg",
		"--xtra-sched-debug"}, flags...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "MALLOC_PERTURB_=255")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("Dimemas: %w: %s", err, out[max(0, len(out)-300):])
	}
	finish := make([]float64, ranks)
	for i := range finish {
		finish[i] = math.NaN()
	}
	for _, line := range bytes.Split(out, []byte("\n")) {
		at, what, _ := strings.Cut(string(line), ": SCHEDULER no more actions")
		w := strings.Fields(what)
		if len(w) != 4 {
			continue
		}
		rank, err := strconv.Atoi(strings.TrimPrefix(w[2], "T"))
		seconds, err2 := strconv.ParseFloat(at, 64)
		if err != nil || err2 != nil || rank >= ranks {
			return nil, fmt.Errorf("Dimemas: %s", line)
		}
		finish[rank] = seconds * 1e9
	}
	for rank, f := range finish {
		if math.IsNaN(f) {
			return nil, fmt.Errorf("Dimemas: rank %d does not finish", rank)
		}
	}
	return finish, nil
}

// simulated imports the trace and simulates the run.
func simulated(t testing.TB, trace string, m *models.Machine) ([]float64, error) {
	t.Helper()
	r, err := imported(t, trace, Options{Events: true}) // a task gives up its CPU at each
	if err != nil {
		return nil, err
	}
	return finishes(r, m)
}

func finishes(r *result, m *models.Machine) ([]float64, error) {
	p := &simulate.Program{Threads: slices.Repeat([]int32{1}, int(r.Ranks))}
	for _, c := range r.Comms {
		if n := len(p.Comms); n == 0 || p.Comms[n-1].ID != c.Comm {
			p.Comms = append(p.Comms, run.Comm{ID: c.Comm})
		}
		last := &p.Comms[len(p.Comms)-1]
		last.Members = append(last.Members, c.WorldRank)
	}
	all := &schema.Events{}
	for i := range r.Events {
		all.Append(&r.Events[i])
	}
	given := false
	s, err := simulate.Simulate(m, p, &simulate.Options{Dialect: simulate.Dimemas5},
		func(add func(*schema.Events) error) error {
			if given {
				return io.EOF
			}
			given = true
			return add(all)
		})
	if err != nil {
		return nil, err
	}
	var finish []float64
	for _, t := range s.Ranks {
		finish = append(finish, float64(t.Finish)/1000)
	}
	return finish, nil
}

// step is a line of a task. Those of one group belong together: a message, a collective.
type step struct {
	group int
	rank  int
	line  string // as file wants it
}

// random makes programs and machines.
type random struct {
	*rand.Rand
	ranks int
	// wild adds rarely used features: MPI_Reduce, nonblocking collectives, events, bursts that follow each other,
	// unequal nodes, infinitely fast CPUs.
	wild   bool
	groups int
	comms  [][]int
	steps  []step
}

func (r *random) oneOf(words ...string) string { return words[r.IntN(len(words))] }

func (r *random) emit(group, rank int, format string, args ...any) {
	r.steps = append(r.steps, step{group, rank, fmt.Sprintf(format, args...)})
}

func (r *random) bytes() int64 {
	switch r.IntN(6) {
	case 0:
		return 0
	case 1:
		return r.Int64N(100)
	case 2:
		return 65536
	case 3:
		return 1 << 20
	}
	return r.Int64N(3 << 20)
}

// program makes the steps in an order in which they could happen: they do not wait for each other in a circle.
func (r *random) program(steps int) {
	var later []func() // waits that are still to come
	for rank := range r.ranks {
		r.emit(-1, rank, "1:%s", r.burst())
	}
	for range steps {
		r.groups++
		g := r.groups
		for len(later) > 0 && r.IntN(3) == 0 {
			i := r.IntN(len(later))
			later[i]()
			later = slices.Delete(later, i, i+1)
		}
		switch k := r.IntN(20); {
		case !r.wild && k < 7:
			r.burstBetween(g)
		case k < 6:
			r.emit(g, r.IntN(r.ranks), "1:%s", r.burst())
		case k < 7:
			r.emit(g, r.IntN(r.ranks), "20:%d:%d", 50000000+r.IntN(4), r.IntN(3))
		case k < 16:
			if wait := r.message(g); wait != nil {
				later = append(later, wait)
			}
		default:
			later = append(later, r.collective(g)...)
		}
	}
	for _, wait := range later {
		wait()
	}
	for rank := range r.ranks {
		if r.wild && r.IntN(2) == 0 {
			r.emit(-1, rank, "1:%s", r.burst())
		}
	}
}

// burstBetween emits a burst unless the rank's last record is one.
func (r *random) burstBetween(g int) {
	rank := r.IntN(r.ranks)
	for i := len(r.steps) - 1; i >= 0; i-- {
		if s := &r.steps[i]; s.rank == rank {
			if !strings.HasPrefix(s.line, "1:") {
				r.emit(g, rank, "1:%s", r.burst())
			}
			return
		}
	}
}

func (r *random) burst() string {
	switch r.IntN(4) {
	case 0:
		return "0.000000000"
	case 1:
		return r.oneOf("0.001000000", "0.000010000", "0.002000000")
	}
	return fmt.Sprintf("0.%09d", r.IntN(4_000_000))
}

// message makes a message and returns a function that emits its wait; nil when it has none.
func (r *random) message(g int) func() {
	src, dst := r.IntN(r.ranks), r.IntN(r.ranks)
	size, tag, comm, mode := r.bytes(), r.IntN(3), 1+r.IntN(2), r.IntN(4)
	posted := r.IntN(2) == 0
	if src == dst && !posted {
		mode |= sendImmediate
	}
	at := func(kind int) { r.emit(g, dst, "3:%d:-1:%d:%d:%d:%d", src, size, tag, comm, kind) }
	if posted {
		at(recvImmediate)
	}
	r.emit(g, src, "2:%d:-1:%d:%d:%d:%d", dst, size, tag, comm, mode)
	if posted {
		return func() { at(recvWait) }
	}
	at(recvBlocking)
	return nil
}

// collective makes an operation and returns functions that emit the waits of a nonblocking one.
func (r *random) collective(g int) (waits []func()) {
	c := r.IntN(len(r.comms))
	op, mode := r.IntN(firstNonblocking), collectiveBlocking
	if r.wild && r.IntN(6) == 0 {
		op = opReduce
	}
	if !r.wild && op == opReduce {
		op = 0
	}
	sent, received := r.bytes(), r.bytes()
	root := -1
	if r.IntN(2) == 0 || op == opReduce {
		root = r.comms[c][r.IntN(len(r.comms[c]))]
	}
	switch k := r.IntN(8); {
	case op == opReduce && k < 5:
		mode = collectiveByMessages
	case r.wild && k == 7 && op != opReduce:
		mode = collectiveStart
	}
	for _, rank := range r.comms[c] {
		isRoot := 0
		switch {
		case op == opReduce:
			isRoot = root
		case rank == root:
			isRoot = 1
		}
		line := fmt.Sprintf("10:%d:%d:%d:0:%d:%d:", op, c+1, isRoot, sent, received)
		r.emit(g, rank, "%s%d", line, mode)
		if mode == collectiveStart {
			waits = append(waits, func() { r.emit(g, rank, "%s%d", line, collectiveWait) })
		}
		if r.IntN(3) == 0 {
			sent = r.bytes()
		}
	}
	return waits
}

// text returns the trace of some of the steps.
func (r *random) text(steps []step) string {
	tasks := make([]strings.Builder, r.ranks)
	for c, members := range r.comms {
		fmt.Fprintf(&tasks[0], "d:1:%d:%d", c+1, len(members))
		for _, m := range members {
			fmt.Fprintf(&tasks[0], ":%d", m)
		}
		tasks[0].WriteString("\n")
	}
	for _, s := range steps {
		fmt.Fprintln(&tasks[s.rank], s.line)
	}
	var all []string
	for i := range tasks {
		all = append(all, tasks[i].String())
	}
	return file(all...)
}

// machine makes a configuration and its communications file.
func (r *random) machine() (config, comms string) {
	nodes := 1 + r.IntN(r.ranks)
	bandwidth := func() string { return r.oneOf("100.0", "87.5", "33.3", "0.0", "1024.0", "0.7") }
	buses := func() int { return max(r.IntN(6)-2, 0) }
	links := func() string {
		return r.oneOf("0, 0", "1, 1", "1, 0", "0, 1", "2, 0", "2, 2", "1, 2", "3, 1")
	}
	latency := func() string { return r.oneOf("1e-05", "2.5e-05", "0.0", "0.000001234", "0.0000000005", "2e-06") }
	var b strings.Builder
	fmt.Fprintln(&b, "#DIMEMAS_CONFIGURATION")
	fmt.Fprintln(&b, `"wide area network information" {"", 1, 0, 4, 0.0, 0.0, 1};;`)
	fmt.Fprintf(&b, "\"environment information\" {\"random\", 0, \"\", %d, %s, %d, %d};;\n", nodes, bandwidth(),
		buses(), 1+r.IntN(3))
	ratio := func() string {
		if r.wild {
			return r.oneOf("1.0", "1.0", "1.25", "0.0", "3.0")
		}
		return r.oneOf("1.0", "1.0", "1.25", "3.0")
	}
	node := func() string {
		return fmt.Sprintf("\"\", %d, %s, %s, %s, %d, %s, %s, %s, 0.0};;", 1+r.IntN(3), ratio(), latency(),
			bandwidth(), buses(), links(), latency(), links())
	}
	if r.wild && r.IntN(3) == 0 {
		for range nodes {
			fmt.Fprintf(&b, "\"node information\" {0, %s\n", node())
		}
	} else {
		fmt.Fprintf(&b, "\"multi node information\" {0, %d, %s\n", nodes, node())
	}
	switch r.IntN(3) {
	case 0:
		fmt.Fprintln(&b, `"predefined mapping information" {"FILL_NODES"};;`)
	case 1:
		fmt.Fprintln(&b, `"predefined mapping information" {"INTERLEAVED"};;`)
	default:
		fmt.Fprintf(&b, "\"predefined mapping information\" {\"%d TASKS_PER_NODE\"};;\n", (r.ranks+nodes-1)/nodes)
	}
	fmt.Fprintln(&b, `"configuration files" {"", "", "comms.cfg", ""};;`)
	var c strings.Builder
	model := func() string { return r.oneOf("0", "CTE", "LIN", "LOG", "LOG") }
	size := func() string { return r.oneOf("MAX", "MIN", "MEAN", "2MAX", "S+R") }
	for op := range firstNonblocking {
		if r.IntN(4) > 0 {
			fmt.Fprintf(&c, "Machine globalop: 0 %d %s %s %s %s\n", op, model(), size(), model(), size())
		}
	}
	return b.String(), c.String()
}

// compared describes the differences between Dimemas and commq for a program on a machine; "" if they agree.
func compared(t *testing.T, program, dir, trace, config, comms string, ranks int, flags []string) string {
	t.Helper()
	for name, text := range map[string]string{"trace.dim": trace, "machine.cfg": config, "comms.cfg": comms} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	m, err := models.ReadCFG("machine.cfg", strings.NewReader(config),
		func(string) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(comms)), nil })
	if err != nil {
		t.Fatal(err)
	}
	threshold(m, flags)
	theirs, err := runDimemas(program, dir, ranks, flags...)
	ours, ourErr := simulated(t, trace, m)
	switch {
	case err != nil && ourErr != nil, err != nil && dimemasFails(err, trace):
		return ""
	case err != nil || ourErr != nil:
		return fmt.Sprintf("Dimemas: %v, commq: %v", err, ourErr)
	}
	for rank := range theirs {
		if math.Abs(theirs[rank]-ours[rank]) > 2 {
			return fmt.Sprintf("rank %d finishes at %.0f ns by Dimemas, at %.3f ns by commq", rank, theirs[rank],
				ours[rank])
		}
	}
	return ""
}

// dimemasFails reports whether Dimemas does not finish the trace because of a known defect of its own, so that there
// is no time to compare: it crashes, searches for a message that waits for a bus in the wrong queue, or forgets ranks
// of a Reduce of messages (messages that wait for a bus or link, or a nonblocking collective under way on the same
// communicator, which it counts in the same series).
func dimemasFails(err error, trace string) bool {
	reduces := regexp.MustCompile(`(?m)^10:.*:3$`).MatchString(trace)
	text := err.Error()
	return strings.Contains(text, "Can't find element to extract from queue") ||
		strings.Contains(text, "segmentation fault") || reduces && strings.Contains(text, "does not finish")
}

// threshold sets the machine's thresholds as the flags -S and -F do for Dimemas.
func threshold(m *models.Machine, flags []string) {
	for i, f := range flags {
		switch f {
		case "-F":
			m.EagerThresholdBytes, m.EagerThresholdGiven = models.NoThreshold, true
		case "-S":
			n, _ := strconv.ParseInt(strings.TrimSuffix(flags[i+1], "K"), 10, 64)
			if strings.HasSuffix(flags[i+1], "K") {
				n *= 1024
			}
			m.EagerThresholdBytes, m.EagerThresholdGiven = n, true
		}
	}
}

// TestAgainstDimemas compares random programs on random machines: each rank finishes when Dimemas says so, within 2 ns.
func TestAgainstDimemas(t *testing.T) {
	program := dimemas(t)
	cases, seed, keep := setting("COMMQ_DIMEMAS_CASES", 300), setting("COMMQ_DIMEMAS_SEED", 1),
		os.Getenv("COMMQ_DIMEMAS_KEEP")
	dir, failed := t.TempDir(), 0
	for i := range cases {
		n := uint64(seed + i)
		r := &random{Rand: rand.New(rand.NewPCG(n, 9)), ranks: 2 + int(n%7), wild: n%2 == 1}
		r.comms = [][]int{r.Perm(r.ranks)[:1+r.IntN(r.ranks)], seq(r.ranks)}
		r.program(4 + r.IntN(40))
		config, comms := r.machine()
		var flags []string
		switch r.IntN(8) {
		case 0:
			flags = []string{"-F"}
		case 1:
			flags = []string{"-S", r.oneOf("64K", "0", "1000", "1048577")}
		}
		what := compared(t, program, dir, r.text(r.steps), config, comms, r.ranks, flags)
		if what == "" {
			continue
		}
		failed++
		steps := shrunk(r.steps, func(s []step) bool { return compared(t, program, dir, r.text(s), config, comms, r.ranks, flags) != "" })
		what = compared(t, program, dir, r.text(steps), config, comms, r.ranks, flags)
		t.Errorf("case %d, flags %v: %s\n%s%s%s", n, flags, what, r.text(steps), config, comms)
		if keep != "" {
			save(t, filepath.Join(keep, fmt.Sprint(n)),
				map[string]string{"trace.dim": r.text(steps), "machine.cfg": config, "comms.cfg": comms,
					"what.txt": fmt.Sprintln(what, flags)})
		}
	}
	t.Logf("%d of %d differ", failed, cases)
}

func seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// shrunk leaves out groups of steps as long as the rest still fails.
func shrunk(steps []step, fails func([]step) bool) []step {
	for again := true; again; {
		again = false
		for g := range 1000 {
			rest := slices.DeleteFunc(slices.Clone(steps), func(s step) bool { return s.group == g })
			if len(rest) < len(steps) && fails(rest) {
				steps, again = rest, true
			}
		}
	}
	return steps
}

func save(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// Dimemas runs the exported traces of captured runs to their end.
func TestDimemasRunsCapturedRuns(t *testing.T) {
	program := dimemas(t)
	for name, ranks := range map[string]int{"cg.A.4": 4, "is.W.16": 16, "mg.W.16": 16, "sp.W.4": 4, "ft.W.16": 16} {
		text, _ := exported(t, "../../testdata/runs/"+name, ExportOptions{})
		folder := t.TempDir()
		save(t, folder, map[string]string{"trace.dim": text, "machine.cfg": cfgHead(ranks)})
		if _, err := runDimemas(program, folder, ranks); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// cfgHead returns a machine with a node for each rank.
func cfgHead(ranks int) string {
	return fmt.Sprintf(`#DIMEMAS_CONFIGURATION
"wide area network information" {"", 1, 0, 4, 0.0, 0.0, 1};;
"environment information" {"test", 0, "", %d, 100.0, 0, 3};;
"multi node information" {0, %d, "", 1, 1.0, 0.0, 0.0, 0, 0, 0, 1e-05, 1, 1, 0.0};;
"predefined mapping information" {"1 TASKS_PER_NODE"};;
`, ranks, ranks)
}
