package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/diagnose"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/writer"
)

// The tests in this file run MPI programs on three hosts that are made of namespaces: each has its own name, network,
// mounts and CLOCK_MONOTONIC; a bridge joins them. Like a node of a cluster, each has a folder of its own: local.

// hostsProgram sends 4097 bytes with tag 9 to the next rank 20 times, and the last rank sends 513 bytes to rank 1
// three times.
const hostsProgram = `
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	int r, n, len;
	char a[4097] = {0}, b[4097], host[MPI_MAX_PROCESSOR_NAME];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &r);
	MPI_Comm_size(MPI_COMM_WORLD, &n);
	for (int i = 0; i < 20; i++)
		MPI_Sendrecv(a, 4097, MPI_BYTE, (r + 1) % n, 9, b, 4097, MPI_BYTE, (r + n - 1) % n, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < 3 && r == n - 1; i++)
		MPI_Send(a, 513, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
	for (int i = 0; i < 3 && r == 1; i++)
		MPI_Recv(b, 513, MPI_BYTE, n - 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Get_processor_name(host, &len);
	printf("rank %d of %d on %s\n", r, n, host);
	MPI_Finalize();
	return 0;
}
`

// madeHost is one of the three hosts. Its clock is ahead of this machine's by a number of seconds.
type madeHost struct {
	name, address string
	ahead         int64
}

var madeHosts = []madeHost{{"n3", "10.93.0.3", 700}, {"n5", "10.93.0.5", 0}, {"n9", "10.93.0.9", 90001}}

// layout is a number of ranks and their hosts.
type layout struct {
	hosts    []int      // by rank, an index in madeHosts
	messages [][]string // what hostsProgram sends: source, destination, messages, bytes
}

// layouts are the ranks of the launcher lines below. MPICH's ranks poll without sleeping: three of them are enough
// for two cores.
var (
	five  = layout{[]int{0, 0, 1, 1, 2}, fiveSend}
	three = layout{[]int{0, 1, 2}, [][]string{{"0", "1", "20", "81940"}, {"1", "2", "20", "81940"},
		{"2", "0", "20", "81940"}, {"2", "1", "3", "1539"}}}

	fiveSend = [][]string{{"0", "1", "20", "81940"}, {"1", "2", "20", "81940"}, {"2", "3", "20", "81940"},
		{"3", "4", "20", "81940"},
		{"4", "0", "20", "81940"}, {"4", "1", "3", "1539"}}
)

func (l layout) ranks() int { return len(l.hosts) }

// says checks the output of hostsProgram, each line of which begins with a label of the launcher.
func (l layout) says(out string) bool {
	for rank, host := range l.hosts {
		if !strings.Contains(out, fmt.Sprintf("rank %d of %d on %s\n", rank, l.ranks(), madeHosts[host].name)) {
			return false
		}
	}
	return strings.Count(out, "\n") == l.ranks()
}

// agentScript runs a command on a made host as rsh does on a real one: without this environment.
const agentScript = `#!/bin/sh
host=$1
shift
[ "$1" = -x ] && shift
exec nsenter -t "$(cat DIR/$host.pid)" -n -u -m -T --wd=/ env -i PATH="$PATH" HOME="$HOME" TMPDIR=DIR/local sh -c "$*"
`

// network is the three hosts during a test.
type network struct {
	dir   string // seen by all, except dir/local, of which every host has its own
	agent string
}

// needNamespaces skips the test if namespaces cannot be made.
func needNamespaces(t *testing.T) {
	t.Helper()
	testenv.Need(t, "ip", "unshare", "nsenter")
	if out, err := exec.Command("unshare", "-n", "-u", "-m", "-T", "--monotonic", "5", "--fork", "ip", "link", "add",
		"name", "switch", "type", "bridge").CombinedOutput(); err != nil {
		testenv.Skip(t, fmt.Sprintf("network, time and mount namespaces need root and a kernel that has them: %v: %s",
			err, out))
	}
}

// newNetwork makes the hosts; they end with the test.
func newNetwork(t *testing.T) *network {
	t.Helper()
	dir := t.TempDir()
	w := &network{dir: dir, agent: filepath.Join(dir, "agent")}
	if err := os.Mkdir(filepath.Join(dir, "local"), 0o755); err != nil {
		t.Fatal(err)
	}
	names := "127.0.0.1 localhost\n"
	for _, h := range madeHosts {
		names += h.address + " " + h.name + "\n"
	}
	putFile(t, filepath.Join(dir, "hosts"), names, 0o644)
	putFile(t, w.agent, strings.ReplaceAll(agentScript, "DIR", dir), 0o755)
	bridge := w.hold(t, "switch", []string{"-n", "--fork", "--kill-child"},
		"ip link add name switch type bridge && ip link set dev switch up")
	for _, h := range madeHosts {
		pid := w.hold(t, h.name, []string{"-n", "-u", "-m", "-T", "--monotonic", fmt.Sprint(h.ahead), "--fork",
			"--kill-child"},
			fmt.Sprintf("hostname %s && mount -t tmpfs none local && mount --bind hosts /etc/hosts", h.name))
		sh(t, "nsenter", "-t", bridge, "-n", "sh", "-ec", fmt.Sprintf(
			"ip link add name %[1]s type veth peer name eth0 netns %[2]s; ip link set dev %[1]s master switch; ip link set dev %[1]s up", h.name, pid))
		sh(t, "nsenter", "-t", pid, "-n", "sh", "-ec",
			fmt.Sprintf("ip addr add %s/24 dev eth0; ip link set dev eth0 up; ip link set dev lo up", h.address))
	}
	return w
}

// hold starts a process in namespaces of its own that lives as long as the test, and returns its id once commands can
// be run there. At the end it also kills all other processes in its network, such as ranks of a program that hung.
func (w *network) hold(t *testing.T, name string, flags []string, commands string) (pid string) {
	t.Helper()
	ready := filepath.Join(w.dir, name+".ready")
	cmd := exec.Command("unshare", append(flags, "sh", "-ec", commands+"; touch "+ready+"; exec sleep 3600")...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		killAllIn(pid)
		_ = cmd.Process.Kill()
	})
	for deadline := time.Now().Add(testenv.Patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(ready); err == nil {
			child, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", cmd.Process.Pid))
			if err != nil {
				t.Fatal(err)
			}
			pid = strings.TrimSpace(string(child))
			putFile(t, filepath.Join(w.dir, name+".pid"), pid, 0o644)
			return pid
		}
		select {
		case err := <-ended:
			t.Fatalf("host %s: %v\n%s", name, err, out.String())
		default:
		}
	}
	t.Fatalf("host %s did not start\n%s", name, out.String())
	return ""
}

// killAllIn kills the processes that are in the network namespace of a process.
func killAllIn(pid string) {
	own, _ := os.Readlink("/proc/self/ns/net")
	network, err := os.Readlink("/proc/" + pid + "/ns/net")
	if err != nil || network == own {
		return
	}
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range all {
		id, err := strconv.Atoi(filepath.Base(p))
		if theirs, _ := os.Readlink(p + "/ns/net"); err == nil && theirs == network {
			_ = syscall.Kill(id, syscall.SIGKILL)
		}
	}
}

func sh(t *testing.T, line ...string) {
	t.Helper()
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(line, " "), err, out)
	}
}

func putFile(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// onHost returns a command on a host, with the environment of this process.
func (w *network) onHost(t *testing.T, host string, args ...string) *exec.Cmd {
	t.Helper()
	pid, err := os.ReadFile(filepath.Join(w.dir, host+".pid"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("nsenter", append([]string{"-t", strings.TrimSpace(string(pid)), "-n", "-u", "-m", "-T",
		"--wd=/", "env", "-C", w.dir}, args...)...)
	cmd.Env = testenv.Environ("TMPDIR=" + filepath.Join(w.dir, "local"))
	return cmd
}

// run runs a command on the first host, as a user of that host would, and returns its output and exit status; 137 if
// it took longer than testenv.Patience.
func (w *network) run(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	limit := []string{"timeout", "-s", "KILL", fmt.Sprint(testenv.Patience.Seconds())}
	cmd := w.onHost(t, madeHosts[0].name, append(limit, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status = cmd.ProcessState.ExitCode()
	if status < 0 { // timeout has killed itself too
		status = 137
	}
	return out.String(), errs.String(), status
}

// launcher returns the library's launcher line for all hosts, and the hosts of the ranks.
func (w *network) launcher(library string) ([]string, layout) {
	const net = "10.93.0.0/24"
	if library == "openmpi" {
		return []string{"mpirun.openmpi", "--mca", "plm_rsh_agent", w.agent, "--mca", "btl", "tcp,self", "--mca",
			"btl_tcp_if_include", net,
			"--mca", "oob_tcp_if_include", net, "--host", "n3:2,n5:2,n9:1", "--map-by", "slot"}, five
	}
	return []string{"mpirun.mpich", "-launcher", "rsh", "-launcher-exec", w.agent, "-iface", "eth0", "-hosts",
		"n3:1,n5:1,n9:1"}, three
}

// gatherLine returns the --gather command of docs/how-to/several-nodes.md, for other hosts that are reached by agent.
func gatherLine(t *testing.T, hosts, agent string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/how-to/several-nodes.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), " --gather '")
	line, _, ok := strings.Cut(rest, "' -- ./app\n")
	if !ok || !strings.Contains(line, "node2 node3") || !strings.Contains(line, "ssh $h") {
		t.Fatalf("the page has no --gather line: %q", line)
	}
	return strings.NewReplacer("node2 node3", hosts, "ssh", agent).Replace(line)
}

// gather returns a --gather command, which fetches the records of the other hosts and removes them there.
func (w *network) gather(t *testing.T) string {
	t.Helper()
	return gatherLine(t, "n5 n9", w.agent)
}

// The --gather line of the page removes no record on its node before it is here, and fails if one node does.
func TestGatherLosesNothing(t *testing.T) {
	const agent = `#!/bin/sh
host=$1
shift
[ $host = gone ] && exit 255
[ $host = torn ] && host=one && PATH=DIR/torn:$PATH
eval "$(echo "$*" | sed "s,$COMMQ_SPOOL,DIR/$host,g")"
`
	for _, c := range []struct {
		name, hosts, path string
		fails             bool
		left              string
	}{
		{"all", "one two", "", false, "here/1 here/2"},
		{"the first cannot be reached", "gone two", "", true, "one/1 two/2"},
		{"no room here", "one two", "full", true, "one/1 two/2"},
		{"a file that cannot be read there", "torn two", "", true, "here/1 one/1 two/2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for i, name := range []string{"here", "one", "two", "full", "torn"} {
				if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
					t.Fatal(err)
				}
				if name == "one" || name == "two" {
					putFile(t, filepath.Join(dir, name, fmt.Sprint(i)), "records", 0o644)
				}
			}
			putFile(t, filepath.Join(dir, "agent"), strings.ReplaceAll(agent, "DIR", dir), 0o755)
			// tar, when the file system has no room: it reads on to the end, then fails
			putFile(t, filepath.Join(dir, "full", "tar"), "#!/bin/sh\ncase \"$*\" in *-x*) cat >"+dir+
				"/read; exit 2;; esac\nexec /bin/tar \"$@\"\n", 0o755)
			putFile(t, filepath.Join(dir, "torn", "tar"), "#!/bin/sh\n/bin/tar \"$@\"\nexit 2\n", 0o755)
			cmd := exec.Command("sh", "-c", gatherLine(t, c.hosts, filepath.Join(dir, "agent")))
			cmd.Env = testenv.Environ("COMMQ_SPOOL="+filepath.Join(dir, "here"), "PATH="+filepath.Join(dir, c.path)+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails {
				t.Errorf("%v\n%s", err, out)
			}
			found, err := filepath.Glob(filepath.Join(dir, "*", "[12]"))
			for i := range found {
				found[i], _ = filepath.Rel(dir, found[i])
			}
			if got := strings.Join(found, " "); err != nil || got != c.left {
				t.Errorf("there is %s (%v), want %s\n%s", got, err, c.left, out)
			}
		})
	}
}

// check compares a run of hostsProgram on the hosts with the expected one.
func (w *network) check(t *testing.T, run string, where layout) {
	t.Helper()
	rows := func(query string) [][]string {
		out, errs, status := w.run(t, "commq", "sql", "--store", "runs", "--run", run, "--format", "csv", query)
		if status != 0 {
			t.Fatalf("%s: %s", query, errs)
		}
		rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		return rows[1:]
	}
	m, err := writer.ReadManifest(filepath.Join(w.dir, "runs", run))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"n3", "n5", "n9"}, m.Origin.Hosts); diff != "" {
		t.Error("hosts:", diff)
	}
	w.checkClocks(t, rows("SELECT rank, host, clock_offset_init_ns, clock_error_init_ns, clock_offset_final_ns, clock_error_final_ns FROM ranks ORDER BY rank"), where)
	if diff := cmp.Diff(where.messages, rows("SELECT src, dst, count(*), CAST(sum(bytes) AS BIGINT) FROM messages GROUP BY src, dst ORDER BY src, dst")); diff != "" {
		t.Error("messages:", diff)
	}
	early := rows(`WITH bound AS (SELECT rank, greatest(clock_error_init_ns, clock_error_final_ns) AS ns FROM ranks)
SELECT src, dst, send_start_ns, recv_end_ns, s.ns, d.ns FROM messages JOIN bound AS s ON s.rank = src JOIN bound AS d ON d.rank = dst
WHERE recv_end_ns + s.ns + d.ns < send_start_ns ORDER BY ALL`)
	if len(early) > 0 {
		t.Errorf("%d messages arrived before they were sent, by more than the clocks' errors: %v", len(early), early)
	}
	// The clocks differ by a day: an uncorrected time would be outside the hour that a busy machine may take.
	if out := rows("SELECT max(end_ns) < 3600000000000 AND min(start_ns) = 0 FROM events"); out[0][0] != "true" {
		t.Errorf("the run is not within an hour: %v", out)
	}
}

// checkClocks compares measured offsets with those with which the hosts were made.
func (w *network) checkClocks(t *testing.T, ranks [][]string, where layout) {
	t.Helper()
	if len(ranks) != where.ranks() {
		t.Fatalf("ranks: %v", ranks)
	}
	for rank, row := range ranks {
		if row[1] != fmt.Sprint(where.hosts[rank]) {
			t.Errorf("rank %d is on host %s, want %d", rank, row[1], where.hosts[rank])
		}
		want := (madeHosts[where.hosts[rank]].ahead - madeHosts[0].ahead) * 1e9
		for i, when := range []string{"MPI_Init", "MPI_Finalize"} {
			offset, err := strconv.ParseInt(row[2+2*i], 10, 64)
			bound, err2 := strconv.ParseInt(row[3+2*i], 10, 64)
			if err != nil || err2 != nil {
				t.Fatal(rank, when, err, err2)
			}
			if d := offset - want; d < -bound || d > bound || bound > 1e9 {
				t.Errorf("rank %d, %s: its clock is %d ns ahead, measured %d, which is off by %d, with a bound of %d",
					rank, when, want, offset, d, bound)
			}
		}
	}
}

func TestThreeHosts(t *testing.T) {
	for _, library := range []string{"openmpi", "mpich"} {
		t.Run(library, func(t *testing.T) {
			testenv.MPI(t, library)
			needNamespaces(t)
			w := newNetwork(t)
			putFile(t, filepath.Join(w.dir, "hosts.c"), hostsProgram, 0o644)
			sh(t, "mpicc."+library, "-o", filepath.Join(w.dir, "program"), filepath.Join(w.dir, "hosts.c"))
			t.Run("capture", func(t *testing.T) { w.capture(t, library) })
			t.Run("exec", func(t *testing.T) { w.exec(t, library) })
			t.Run("locality", func(t *testing.T) { w.locality(t, library) })
		})
	}
}

// capture uses commq's own launcher line, with spools on the nodes; without --gather it reports missing ranks.
func (w *network) capture(t *testing.T, library string) {
	launcher, where := w.launcher(library)
	line := []string{"commq", "capture", "--store", "runs", "--launcher", strings.Join(launcher, " "), "-n",
		fmt.Sprint(where.ranks())}
	out, errs, status := w.run(t, append(line, "--name", "gathered", "--gather", w.gather(t), "--", "./program")...)
	if status != 0 || !where.says(out) {
		t.Fatalf("exit status %d\n%s%s", status, out, errs)
	}
	if !strings.Contains(errs, " on 3 hosts") {
		t.Errorf("summary: %s", errs)
	}
	w.check(t, "gathered", where)
	for _, h := range madeHosts {
		left, err := exec.Command(w.agent, h.name, "ls "+w.dir+"/local | grep commq").CombinedOutput()
		if len(left) > 0 {
			t.Errorf("left on %s: %s (%v)", h.name, left, err)
		}
	}
	if library == "mpich" {
		return // testing one library is enough
	}
	_, errs, status = w.run(t, append(line, "--name", "alone", "--", "./program")...)
	if status != 2 || !strings.Contains(errs,
		"has no records of rank 2, rank 3, rank 4; put the files of all nodes into one folder") {
		t.Errorf("without --gather: exit status %d\n%s", status, errs)
	}
	_, errs, status = w.run(t, append(line, "--name", "failed", "--mpi", "openmpi", "--", "sh", "-c",
		"./program && exit 3")...)
	if status != 3 || !strings.Contains(errs, "3 ranks without records here; those of the others are kept") {
		t.Errorf("a program that fails, without --gather: exit status %d\n%s", status, errs)
	}
}

// lateGroup is a warning of Open MPI's launcher on busy machines: it puts the program of a node into a process group of its
// own, which the program may have done already.
var lateGroup = regexp.MustCompile(`(?m)^\[.*\] plm:rsh: Warning: setpgid\(\d+,\d+\) failed in parent with errno=Permission denied\(13\)\n`)

// exec uses a launcher line of the user, for two programs (MPMD), with a spool on every node, and copies the spools
// itself.
func (w *network) exec(t *testing.T, library string) {
	spool := filepath.Join(w.dir, "local", "spool")
	rank := []string{"commq", "exec", "--spool", spool, "--", "./program"}
	launcher, where := w.launcher(library)
	line := append(append(launcher, "-n", fmt.Sprint(where.ranks()-2)), rank...)
	line = append(append(line, ":", "-n", "2"), rank...)
	out, errs, status := w.run(t, line...)
	if status != 0 || !where.says(out) || lateGroup.ReplaceAllString(errs, "") != "" {
		t.Fatalf("exit status %d\n%s%s", status, out, errs)
	}
	if out, errs, status := w.run(t, "sh", "-ec", "COMMQ_SPOOL="+spool+"; "+w.gather(t)); status != 0 {
		t.Fatalf("gather: exit status %d\n%s%s", status, out, errs)
	}
	if out, errs, status := w.run(t, "commq", "ingest", spool, "--store", "runs", "--name", "mpmd"); status != 0 {
		t.Fatalf("ingest: exit status %d\n%s%s", status, out, errs)
	}
	w.check(t, "mpmd", where)
}

// locality plants exchanges between ranks on different hosts, of which commq diagnose knows how many bytes another
// order of the ranks leaves. Rank 4 is alone on its host: without it, ranks dealt out to hosts in turn are as good.
func (w *network) locality(t *testing.T, library string) {
	sh(t, "mpicc."+library, "-o", filepath.Join(w.dir, "far"), filepath.Join(programsDir, "planted_far.c"))
	launcher, _ := w.launcher(library)
	if library == "mpich" {
		launcher[len(launcher)-1] = "n3:2,n5:2,n9:1"
	}
	const want = "locality of ranks [0 3], swap: 20971520 of 20971520 bytes far, then 0"
	out, errs, status := w.run(t, "commq", "capture", "--store", "runs", "--launcher", strings.Join(launcher, " "), "-n",
		fmt.Sprint(five.ranks()), "--name", "far", "--gather", w.gather(t), "--", "./far")
	if status != 0 {
		t.Fatalf("exit status %d\n%s%s", status, out, errs)
	}
	var d diagnose.Diagnosis
	out, errs, _ = w.run(t, "commq", "diagnose", "--store", "runs", "far", "--format", "json")
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs)
	}
	all := slices.DeleteFunc(d.Findings, func(f diagnose.Finding) bool { return slices.Contains(diagnose.Rules, f.Rule) })
	if len(all) == 0 {
		t.Fatalf("no finding of a file among %s", out)
	}
	f, value := all[0], map[string]any{}
	for _, v := range f.Evidence {
		value[v.Name] = v.Value
	}
	if got := fmt.Sprintf("%s of ranks %v, %v: %.0f of %.0f bytes far, then %.0f", f.Rule, f.Ranks, value["placement"],
		value["far_bytes"], value["all_bytes"], value["left_bytes"]); got != want || f.GainNs <= 0 || f.GainNs > d.TimeNs {
		t.Errorf("%s, gain %d ns; want %s", got, f.GainNs, want)
	}
}
