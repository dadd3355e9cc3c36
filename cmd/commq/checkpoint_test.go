package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cmp"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// inEpochs copies a committed run to a new store, in epochs of perEpoch rows of each rank, and returns the store.
func inEpochs(t *testing.T, name string, perEpoch int64) string {
	t.Helper()
	ctx, from, store := context.Background(), filepath.Join("../../testdata/runs", name), t.TempDir()
	out, err := writer.Create(store, name, writer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	r, err := run.Open(ctx, from, run.Need{})
	if err != nil {
		t.Fatal(err)
	}
	events, err := run.Rows[schema.Event](ctx, r, &schema.EventsTable)
	if err != nil {
		t.Fatal(err)
	}
	epochs := int32(0)
	for i := range events {
		events[i].Epoch = int32(events[i].Seq / perEpoch)
		epochs = max(epochs, events[i].Epoch+1)
	}
	slices.SortStableFunc(events, func(a, b schema.Event) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq))
	})
	messages, err := run.Rows[schema.Message](ctx, r, &schema.MessagesTable)
	if err != nil {
		t.Fatal(err)
	}
	for i := range messages {
		messages[i].Epoch = int32(messages[i].SendSeq / perEpoch)
	}
	slices.SortStableFunc(messages, func(a, b schema.Message) int {
		return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Src, b.Src), cmp.Compare(a.SendSeq, b.SendSeq))
	})
	for i := 0; i < len(events); {
		b := &schema.Events{}
		for e := events[i].Epoch; i < len(events) && events[i].Epoch == e; i++ {
			b.Append(&events[i])
		}
		if err := out.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i < len(messages); {
		b := &schema.Messages{}
		for e := messages[i].Epoch; i < len(messages) && messages[i].Epoch == e; i++ {
			b.Append(&messages[i])
		}
		if err := out.Write(0, b); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range schema.Tables() {
		if table == &schema.EventsTable || table == &schema.MessagesTable {
			continue
		}
		if err := out.CopyTable(ctx, from, table, 1<<17, nil); err != nil {
			t.Fatal(err)
		}
	}
	m := *r.Manifest
	m.Epochs = epochs
	if err := out.Commit(t.Context(), &m); err != nil {
		t.Fatal(err)
	}
	return store
}

// killed starts commq in a process of its own, with temporary files in temp, and kills it when the state in the folder
// of checkpoints has changed the given number of times. It reports whether the process was killed before its end.
func killed(t *testing.T, temp, checkpoint string, changes int, args ...string) bool {
	t.Helper()
	c := exec.Command("commq", args...)
	c.Env = append(os.Environ(), "TMPDIR="+temp)
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var last os.FileInfo
	for {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("%v: %v\n%s", args, err, errs.String())
			}
			return false
		case <-time.After(200 * time.Microsecond):
		}
		now, err := os.Stat(filepath.Join(checkpoint, "state"))
		if err != nil || last != nil && os.SameFile(last, now) {
			continue
		}
		last = now
		if changes--; changes == 0 {
			if err := c.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			return <-ended != nil
		}
	}
}

// leftIn lists the files in folders that are not expected there.
func leftIn(t *testing.T, expected []string, folders ...string) (left []string) {
	t.Helper()
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !slices.Contains(expected, e.Name()) {
				left = append(left, filepath.Join(folder, e.Name()))
			}
		}
	}
	return left
}

// answerOf runs commq in a process of its own, which must succeed, and returns its output.
func answerOf(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.Command("commq", args...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	return string(out)
}

// A simulation that is killed several times ends with the same run and answer as one that is not killed.
func TestSimulateContinuesAfterKills(t *testing.T) {
	store := inEpochs(t, "sp.W.4", 400)
	temp := t.TempDir()
	line := []string{"simulate", "--store", store, "--run", "sp.W.4", "--machine", "myrinet", "--format", "json"}
	want := answerOf(t, append(line, "--name", "whole")...)
	whole, err := writer.ReadManifest(filepath.Join(store, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	kills := 0
	for _, changes := range []int{1, 9} {
		name := fmt.Sprintf("parts.%d", changes)
		checkpoint := filepath.Join(t.TempDir(), "kept")
		mine := append(slices.Clone(line), "--name", name, "--checkpoint", checkpoint, "--checkpoint-every", "0s")
		for killed(t, temp, checkpoint, changes, mine...) {
			kills++
			if changes = 3*changes + 4; changes > 60 { // so that it ends at last
				changes = 1 << 30
			}
		}
		m, err := writer.ReadManifest(filepath.Join(store, name))
		if err != nil {
			t.Fatal(err)
		}
		if m.Digest != whole.Digest {
			t.Errorf("%s: digest %s, want %s", name, m.Digest, whole.Digest)
		}
		if left := leftIn(t, []string{"sp.W.4", "whole", "parts.1", "parts.9"}, store, temp,
			checkpoint); len(left) > 0 {
			t.Errorf("%s: %v are left", name, left)
		}
	}
	if kills < 4 {
		t.Errorf("killed %d times; want more", kills)
	}
	checkpoint := filepath.Join(t.TempDir(), "kept")
	mine := append(slices.Clone(line), "--checkpoint", checkpoint, "--checkpoint-every", "0s")
	if !killed(t, temp, checkpoint, 9, mine...) {
		t.Fatal("it ended before it was killed")
	}
	if status, _, errs := commandLine("", append(slices.Clone(mine), "--set",
		"latency_ns=977")...); status != exitCannot || !strings.Contains(errs, "it keeps what another task knows") {
		t.Errorf("another machine: status %d\n%s", status, errs)
	}
	if got := answerOf(t, mine...); got != want {
		t.Errorf("answer\n%s\nwant\n%s", got, want)
	}
}

// A detection that is killed several times ends with the same answer as one that is not killed.
func TestDetectContinuesAfterKills(t *testing.T) {
	store, temp := "../../testdata/runs", t.TempDir()
	line := []string{"detect", "--store", store, "--run", "cg.A.16", "--format", "json", "--messages", "--all"}
	want := answerOf(t, line...)
	line = append(line, "--memory", "1")
	kills := 0
	for _, changes := range []int{1, 4} {
		checkpoint := filepath.Join(t.TempDir(), "kept")
		mine := append(slices.Clone(line), "--checkpoint", checkpoint, "--checkpoint-every", "0s")
		for range 2 {
			if killed(t, temp, checkpoint, changes, mine...) {
				kills++
			}
		}
		if status, _, errs := commandLine("",
			append(slices.Clone(mine), "--min-ranks", "5")...); status != exitCannot ||
			!strings.Contains(errs, "it keeps what another task knows") {
			t.Errorf("other options: status %d\n%s", status, errs)
		}
		if got := answerOf(t, mine...); got != want {
			t.Errorf("killed after %d states: the answer is\n%.2000s\nwant\n%.2000s", changes, got, want)
		}
		if left := leftIn(t, nil, temp, checkpoint); len(left) > 0 {
			t.Errorf("killed after %d states: %v are left", changes, left)
		}
	}
	if kills < 4 {
		t.Errorf("killed %d times; want 4", kills)
	}
}

// A signal at any moment ends a command with the status that shells expect. It leaves no run and no temporary file,
// only a checkpoint.
func TestSignalLeavesNoFiles(t *testing.T) {
	store := inEpochs(t, "cg.A.16", 400)
	findings := filepath.Join(t.TempDir(), "findings.json")
	if err := os.WriteFile(findings, []byte(answerOf(t, "detect", "--store", store, "--run", "cg.A.16", "--format",
		"json", "--messages")), 0o666); err != nil {
		t.Fatal(err)
	}
	answerOf(t, "runs", "check", "--store", store, "cg.A.16")
	started := time.Now()
	answerOf(t, "--version")
	starting := time.Since(started) // signals that come earlier do not reach the command's own handler
	ended := 0
	for k, line := range []string{
		"detect --run cg.A.16 --memory 64",
		"detect --run cg.A.16 --memory 1 --checkpoint CHECKPOINT --checkpoint-every 0s",
		"simulate --run cg.A.16 --machine flat --name new",
		"simulate --run cg.A.16 --machine flat --name new --checkpoint CHECKPOINT",
		"replace --run cg.A.16 --findings FINDINGS --name new",
		"query density --run cg.A.16",
		"store compact cg.A.16 --rows-per-file 20000",
		"export signature --run cg.A.16 -o SIGNATURE.json",
	} {
		for j, after := range []time.Duration{15 * time.Millisecond, 120 * time.Millisecond, 350 * time.Millisecond} {
			temp, home, out := t.TempDir(), t.TempDir(), t.TempDir()
			args := strings.Fields(strings.NewReplacer("FINDINGS", findings, "CHECKPOINT", filepath.Join(out, "kept"),
				"SIGNATURE", filepath.Join(out, "signature")).Replace(line))
			c := exec.Command("commq", append([]string{"--store", store}, args...)...)
			c.Env = append(os.Environ(), "TMPDIR="+temp, "HOME="+home)
			var errs bytes.Buffer
			c.Stderr = &errs
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if j > 0 {
				time.Sleep(starting)
			}
			time.Sleep(after)
			signal := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}[(k+j)%2]
			if err := c.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
				t.Fatal(err)
			}
			_ = c.Wait()
			status := c.ProcessState.Sys().(syscall.WaitStatus)
			switch {
			case status.Exited() && status.ExitStatus() == 0:
				if err := os.RemoveAll(filepath.Join(store, "new")); err != nil {
					t.Fatal(err)
				}
				continue
			case status.Signaled() && status.Signal() == signal: // before the command handled signals
			case !status.Exited() || status.ExitStatus() != 128+int(signal) ||
				!strings.Contains(errs.String(), "commq: ended by a signal: "+signal.String()):
				t.Errorf("%s, %v after %v: %v\n%s", line, signal, after, status, errs.String())
			default:
				ended++
			}
			if left := leftIn(t, []string{"cg.A.16"}, store, temp, home); len(left) > 0 {
				t.Errorf("%s, %v after %v: %v are left", line, signal, after, left)
			}
			// the checkpoint is removed when the same command has succeeded
			if _, err := os.Stat(filepath.Join(out, "kept")); err == nil {
				answerOf(t, append([]string{"--store", store}, args...)...)
				if err := os.RemoveAll(filepath.Join(store, "new")); err != nil {
					t.Fatal(err)
				}
			}
			if left := leftIn(t, nil, out); len(left) > 0 {
				t.Errorf("%s, %v after %v: %v are left", line, signal, after, left)
			}
		}
	}
	if ended < 5 {
		t.Errorf("%d commands were ended by a signal; want more", ended)
	}
	answerOf(t, "runs", "check", "--store", store, "cg.A.16")
}

// A command whose work does not end on a signal, here to read a pipe to which nobody writes, is killed by a later one,
// but not by one that comes at once.
func TestSecondSignalKills(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("commq", "import", pipe)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	defer func() { _ = c.Process.Kill() }()
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until import reads
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	signalled := time.Now()
	for {
		if err := c.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		select {
		case <-ended:
			status := c.ProcessState.Sys().(syscall.WaitStatus)
			if after := time.Since(signalled); status.Signal() != syscall.SIGTERM || after < signalRepeats {
				t.Errorf("ended after %v: %v", after, c.ProcessState)
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
		if time.Since(signalled) > 20*time.Second {
			t.Fatal("signals do not kill it")
		}
	}
}
