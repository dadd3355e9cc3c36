package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/commq/commq/capture/spool/spoolgen"
	"github.com/commq/commq/internal/testenv"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// ingester is a process that ingests a part.
type ingester struct {
	*exec.Cmd
	stderr *bytes.Buffer
	ended  chan error
}

func start(t *testing.T, cmd *exec.Cmd) *ingester {
	t.Helper()
	i := &ingester{Cmd: cmd, stderr: &bytes.Buffer{}, ended: make(chan error, 1)}
	cmd.Stderr = i.stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	go func() { i.ended <- cmd.Wait() }()
	return i
}

// wait waits for a process, which must succeed.
func (i *ingester) wait(t *testing.T) {
	t.Helper()
	select {
	case err := <-i.ended:
		if err != nil {
			t.Fatalf("%v: %v\n%s", i.Args, err, i.stderr)
		}
	case <-time.After(testenv.Patience):
		t.Fatalf("%v does not end\n%s", i.Args, i.stderr)
	}
}

// kill kills a process, which may have ended already.
func (i *ingester) kill() {
	_ = i.Process.Kill()
	<-i.ended
}

// waitForFile waits until a file is there.
func waitForFile(t *testing.T, path string) {
	t.Helper()
	waitUntil(t, path+" is there", func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// waitUntil waits until something is so.
func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testenv.Patience); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after %v", what, testenv.Patience)
		}
	}
}

// wholeOrNot fails if the store lists an incomplete run; it returns the run's manifest, or nil.
func wholeOrNot(t *testing.T, store string) *schema.Manifest {
	t.Helper()
	runs, err := writer.List(store)
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) == 0 {
		return nil
	}
	if runs[0].Err != nil || len(runs) > 1 {
		t.Fatalf("the store lists %+v", runs)
	}
	problems, err := writer.Check(context.Background(), runs[0].Dir)
	if err != nil || len(problems) > 0 {
		t.Fatalf("the run that is there is not whole: %v %v", err, problems)
	}
	return runs[0].Manifest
}

// nodeFolders moves the files of a spool into n folders: the files of a rank into the one with the number rank modulo
// n.
func nodeFolders(t *testing.T, spool string, n int) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(spool, "*.*.*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("spool %s: %v %v", spool, files, err)
	}
	base := t.TempDir()
	var dirs []string
	for i := range n {
		dirs = append(dirs, filepath.Join(base, fmt.Sprint(i)))
		if err := os.Mkdir(dirs[i], 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		var rank int
		if _, err := fmt.Sscanf(strings.Split(filepath.Base(f), ".")[1], "%d", &rank); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(f, filepath.Join(dirs[rank%n], filepath.Base(f))); err != nil {
			t.Fatal(err)
		}
	}
	return dirs
}

// Two processes ingest a job of two nodes. One of them, the first and the second in turn, is killed after some ms, at
// any point from its beginning to the run's renaming, or after its first or second step. The run is then complete or missing, and two more processes
// complete it.
func TestIngesterOfAPartIsKilled(t *testing.T) {
	dir := t.TempDir()
	h := spoolgen.Halo{Ranks: 8, Neighbours: 2, Iterations: 400, Seed: 1, Job: 0xabc, Hashes: true}
	if err := h.Write(dir); err != nil {
		t.Fatal(err)
	}
	whole := filepath.Join(t.TempDir(), "runs")
	commq(t, "ingest", dir, "--keep", "--store", whole, "--name", "r")
	want, err := writer.ReadManifest(filepath.Join(whole, "r"))
	if err != nil {
		t.Fatal(err)
	}
	nodes := nodeFolders(t, dir, 2)
	part := func(store, node string) *exec.Cmd {
		return exec.Command("commq", "ingest", node, "--keep", "--store", store, "--name", "r", "--parts", "2",
			"--wait", "1m", "--quiet")
	}
	rng := rand.New(rand.NewPCG(11, 0))
	unfinished, took := 0, 400*time.Millisecond
	for round := range 12 {
		store := filepath.Join(t.TempDir(), "runs")
		began := time.Now()
		first, second := start(t, part(store, nodes[0])), start(t, part(store, nodes[1]))
		if round == 0 { // how long it takes on this machine
			first.wait(t)
			second.wait(t)
			took = time.Since(began)
		} else {
			victim, other := first, second
			if round%2 == 0 {
				victim, other = second, first
			}
			// in half of the rounds at a step of its own, before the run can be there, however long that takes
			step := fmt.Sprintf(".r.parts/%d.%s", (round+1)%2, []string{"index", "receives"}[round/6])
			if round%4 == 1 || round%4 == 2 {
				waitUntil(t, step+" or the run is there", func() bool {
					_, err := os.Stat(filepath.Join(store, step))
					_, made := os.Stat(filepath.Join(store, "r"))
					return err == nil || made == nil
				})
			} else {
				time.Sleep(time.Duration(rng.Int64N(int64(took))))
			}
			victim.kill()
			if wholeOrNot(t, store) == nil {
				unfinished++
			}
			other.kill() // where it is
			if wholeOrNot(t, store) == nil {
				first, second = start(t, part(store, nodes[0])), start(t, part(store, nodes[1]))
				first.wait(t)
				second.wait(t)
			}
		}
		got := wholeOrNot(t, store)
		if got == nil || got.Digest != want.Digest {
			t.Fatalf("round %d: %+v; want the digest %s", round, got, want.Digest)
		}
		// a process killed between the run's renaming and its end leaves a hidden folder, which is removed with the
		// run
		if round > 0 {
			commq(t, "runs", "remove", "r", "--store", store)
		}
		left, err := os.ReadDir(store)
		if err != nil || len(left) > 1 || round > 0 && len(left) > 0 {
			t.Errorf("round %d: left in the store: %v %v", round, left, err)
		}
	}
	if unfinished < 4 {
		t.Errorf("the run was there in all but %d of 11 rounds: nothing was killed in the middle", unfinished)
	}
}

// A complete part is not ingested again: its files stay unchanged. The process that waits for the other node is
// killed in the meantime.
func TestFinishedPartIsKept(t *testing.T) {
	dir := t.TempDir()
	h := spoolgen.Halo{Ranks: 6, Neighbours: 1, Iterations: 50, Seed: 2, Job: 0xabc}
	if err := h.Write(dir); err != nil {
		t.Fatal(err)
	}
	nodes := nodeFolders(t, dir, 2)
	store := filepath.Join(t.TempDir(), "runs")
	part := func(node string) *exec.Cmd {
		return exec.Command("commq", "ingest", node, "--store", store, "--name", "r", "--parts", "2", "--wait", "1m")
	}
	hidden := filepath.Join(store, ".r.parts")
	a := start(t, part(nodes[0]))
	waitForFile(t, filepath.Join(hidden, "0.index"))
	a.kill()
	if m := wholeOrNot(t, store); m != nil {
		t.Fatal("a run of half a job")
	}
	b := start(t, part(nodes[1]))
	waitForFile(t, filepath.Join(hidden, "1.receives"))
	b.kill()
	a = start(t, part(nodes[0])) // it only needs the existing files of the other
	waitForFile(t, filepath.Join(hidden, "0.rows"))
	a.kill()
	before, err := os.Stat(filepath.Join(hidden, "run/events/0000.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	a, b = start(t, part(nodes[0])), start(t, part(nodes[1]))
	a.wait(t)
	b.wait(t)
	if m := wholeOrNot(t, store); m == nil || m.Ranks != 6 {
		t.Fatalf("run %+v", m)
	}
	after, err := os.Stat(filepath.Join(store, "r/events/0000.parquet"))
	if err != nil || !os.SameFile(before, after) || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("the file of the part that was done has changed: %v, %v, %v", before, after, err)
	}
	for _, node := range nodes {
		if _, err := os.Stat(node); !os.IsNotExist(err) {
			t.Errorf("the records in %s are still there (%v)", node, err)
		}
	}
	if left, _ := os.ReadDir(store); len(left) != 1 {
		t.Errorf("left in the store: %v", left)
	}
}

// A program on three hosts with a spool on each; every host ingests its own.
func TestIngestOnThreeHosts(t *testing.T) {
	testenv.MPI(t, "openmpi")
	needNamespaces(t)
	w := newNetwork(t)
	putFile(t, filepath.Join(w.dir, "hosts.c"), hostsProgram, 0o644)
	sh(t, "mpicc.openmpi", "-g", "-o", filepath.Join(w.dir, "program"), filepath.Join(w.dir, "hosts.c"))
	spool := filepath.Join(w.dir, "local", "spool")
	launcher, where := w.launcher("openmpi")
	line := append(launcher, "-n", fmt.Sprint(where.ranks()), "commq", "exec", "--spool", spool, "--hash", "crc64",
		"--", "./program")
	if out, errs, status := w.run(t, line...); status != 0 {
		t.Fatalf("exit status %d\n%s%s", status, out, errs)
	}
	// The run that one process makes of all records, to compare with.
	gather := fmt.Sprintf("mkdir all; cp %s/* all; for h in n5 n9; do %s $h tar -C %s -c . | tar -C all -x; done",
		spool, w.agent, spool)
	if out, errs, status := w.run(t, "sh", "-ec", gather); status != 0 {
		t.Fatalf("gather: exit status %d\n%s%s", status, out, errs)
	}
	if out, errs, status := w.run(t, "commq", "ingest", "all", "--store", "one", "--name", "r"); status != 0 {
		t.Fatalf("ingest: exit status %d\n%s%s", status, out, errs)
	}
	var all []*ingester
	for _, h := range madeHosts {
		all = append(all, start(t, w.onHost(t, h.name, "commq", "ingest", spool, "--store", "runs", "--name", "mpmd",
			"--parts", "3", "--wait", "1m")))
	}
	for _, i := range all {
		i.wait(t)
	}
	w.check(t, "mpmd", where)
	one, err := writer.ReadManifest(filepath.Join(w.dir, "one", "r"))
	if err != nil {
		t.Fatal(err)
	}
	if m := wholeOrNot(t, filepath.Join(w.dir, "runs")); m == nil || m.Digest != one.Digest ||
		len(m.Origin.Hosts) != 3 {
		t.Errorf("in parts %+v\nin one %+v", m, one)
	}
}

// A simulator rank whose process was killed has left its mark in the spool: ingest says so, as capture does, and keeps
// the records.
func TestIngestAfterALostSimulator(t *testing.T) {
	dir, store := t.TempDir(), t.TempDir()
	h := spoolgen.Halo{Ranks: 4, Neighbours: 1, Iterations: 3, Seed: 1, Job: 0xabc}
	if err := h.Write(dir); err != nil {
		t.Fatal(err)
	}
	before, err := filepath.Glob(filepath.Join(dir, "*.cqs"))
	if err != nil || len(before) == 0 {
		t.Fatal(before, err)
	}
	putFile(t, filepath.Join(dir, "simulator-7.lock"), "", 0o644)
	status, _, errs := commandLine("", "ingest", dir, "--store", store, "--name", "r")
	if status != exitCannot || !strings.Contains(errs, "the process of 1 simulator rank ended before the program did") ||
		!strings.Contains(errs, "the records are kept: "+dir) {
		t.Errorf("status %d\n%s", status, errs)
	}
	if after, _ := filepath.Glob(filepath.Join(dir, "*.cqs")); len(after) != len(before) {
		t.Errorf("%v are left of %v", after, before)
	}
	commq(t, "runs", "check", "r", "--store", store)
	commq(t, "ingest", dir, "--store", store, "--name", "r", "--replace") // once told, it is known
}
