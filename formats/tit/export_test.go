package tit

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/writer"
)

const runs = "../../testdata/runs"

// exported writes a run as a trace and returns its folder.
func exported(t testing.TB, dir string) (string, []string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.tit")
	notes, err := Export(context.Background(), dir, out, out)
	if err != nil {
		t.Fatal(err)
	}
	return out, notes
}

// actions counts the actions of a trace by name, and the bytes of its messages.
func actions(t testing.TB, out string) (n map[string]int64, bytes int64) {
	t.Helper()
	n = map[string]int64{}
	files, err := listed(filepath.Join(out, ListName), false)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			w := strings.Fields(line)
			n[w[1]]++
			if w[1] == "send" || w[1] == "isend" {
				size, err := strconv.ParseInt(w[4], 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				bytes += size
			}
		}
	}
	return n, bytes
}

// Captured runs go out and come back with the same messages, collectives and compute times.
func TestThereAndBack(t *testing.T) {
	for _, name := range []string{"is.W.16", "sp.W.4", "mg.W.16", "uneven.4"} {
		out, notes := exported(t, filepath.Join(runs, name))
		store := t.TempDir()
		is, err := ImportFile(context.Background(), filepath.Join(out, ListName), store, "run", Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := writer.ReadManifest(filepath.Join(runs, name))
		if err != nil {
			t.Fatal(err)
		}
		if is.Counts.Messages != want.Counts.Messages || is.Counts.MessageBytes != want.Counts.MessageBytes {
			t.Errorf("%s: %d messages of %d bytes, the run has %d of %d; %q", name, is.Counts.Messages,
				is.Counts.MessageBytes, want.Counts.Messages, want.Counts.MessageBytes, notes)
		}
		for call, n := range want.Collectives {
			if call != "MPI_Barrier" && is.Collectives[call] != n { // MPI_Comm_* become barriers
				t.Errorf("%s: %d %s, the run has %d", name, is.Collectives[call], call, n)
			}
		}
		if a, b := computed(t, filepath.Join(store, "run")), computed(t, filepath.Join(runs, name)); a != b {
			t.Errorf("%s: %d ns computed, the run has %d", name, a, b)
		}
	}
}

var simulated = regexp.MustCompile(`Simulation time ([0-9.]+)`)

// platform is a network of hosts of one Gflop/s.
func platform(t testing.TB, ranks int) (xml, hosts string) {
	t.Helper()
	dir := t.TempDir()
	xml, hosts = filepath.Join(dir, "platform.xml"), filepath.Join(dir, "hosts")
	var names strings.Builder
	for i := range ranks {
		names.WriteString("n" + strconv.Itoa(i) + "\n")
	}
	text := `<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><cluster id="c" prefix="n" suffix="" radical="0-` + strconv.Itoa(ranks-1) +
		`" speed="1Gf" bw="125MBps" lat="10us"/></platform>`
	for file, text := range map[string]string{xml: text, hosts: names.String()} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return xml, hosts
}

// replayed plays a trace in SimGrid, and returns its output and the time that it simulated in ns.
func replayed(t testing.TB, list string, ranks int, options ...string) (text string, ns int64) {
	t.Helper()
	testenv.Need(t, "smpirun")
	xml, hosts := platform(t, ranks)
	c := exec.Command("smpirun", append([]string{"-no-privatize", "-np", strconv.Itoa(ranks), "-platform", xml,
		"-hostfile", hosts, "-replay", list}, options...)...)
	c.Dir = t.TempDir()
	out, err := c.CombinedOutput()
	at := simulated.FindSubmatch(out)
	if err != nil || at == nil {
		t.Fatalf("smpirun: %v\n%s", err, out[max(0, len(out)-2000):])
	}
	s, err := strconv.ParseFloat(string(at[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return string(out), int64(s * 1e9)
}

// SimGrid plays the traces of captured runs to their end: each action of each rank, and as many messages with as many
// bytes as the runs have.
func TestSimGridReplays(t *testing.T) {
	testenv.Need(t, "smpirun")
	for _, name := range []string{"is.W.16", "sp.W.4", "pingpong.2", "uneven.4"} {
		dir := filepath.Join(runs, name)
		m, err := writer.ReadManifest(dir)
		if err != nil {
			t.Fatal(err)
		}
		out, notes := exported(t, dir)
		text, ns := replayed(t, filepath.Join(out, ListName), int(m.Ranks), "--log=replay.thresh:critical",
			"--log=smpi_replay.thresh:verbose", "--log=root.fmt:%m%n")
		messages, bytes := int64(0), int64(0)
		played := int64(0)
		for line := range strings.Lines(text) {
			w := strings.Fields(line)
			if len(w) < 3 || !others[w[1]] && collectives[w[1]] == 0 {
				continue
			}
			played++
			if w[1] == "send" || w[1] == "isend" {
				messages++
				size, err := strconv.ParseInt(w[4], 10, 64)
				if err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				bytes += size
			}
		}
		n, _ := actions(t, out)
		want := -n["init"] - n["finalize"] // not logged
		for _, count := range n {
			want += count
		}
		if messages != m.Counts.Messages || bytes != m.Counts.MessageBytes || played != want || ns <= 0 {
			t.Errorf("%s: SimGrid played %d of %d actions, %d messages of %d bytes; the run has %d of %d; %q", name, played,
				want, messages, bytes, m.Counts.Messages, m.Counts.MessageBytes, notes)
		}
	}
}
