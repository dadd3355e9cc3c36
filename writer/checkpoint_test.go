package writer_test

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/commq/commq/internal/mutate"
	"github.com/commq/commq/internal/private"
	"github.com/commq/commq/writer"
)

var checkpointFacts = []writer.Fact{{Name: "run", Value: "9f3a"}, {Name: "machine", Value: "flat"}}

func openCheckpoint(t *testing.T, dir string) *writer.Checkpoint {
	t.Helper()
	c, err := writer.OpenCheckpoint(dir, time.Hour, checkpointFacts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func saveText(t *testing.T, c *writer.Checkpoint, text string) {
	t.Helper()
	if err := c.Save(func(w io.Writer) error { _, err := io.WriteString(w, text); return err }); err != nil {
		t.Fatal(err)
	}
}

func loadText(t *testing.T, c *writer.Checkpoint) (text string) {
	t.Helper()
	if err := c.Load(func(r *bufio.Reader) error {
		b, err := io.ReadAll(r)
		text = string(b)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestCheckpointKeepsTheLastWholeState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	c := openCheckpoint(t, dir)
	if c.Saved() {
		t.Error("a new folder has a state")
	}
	saveText(t, c, "epoch 3")
	saveText(t, c, "epoch 5")
	broken := errors.New("broken")
	if err := c.Save(func(w io.Writer) error { _, _ = io.WriteString(w, "epoch 9"); return broken }); !errors.Is(err, broken) {
		t.Errorf("%v, want %v", err, broken)
	}
	if _, err := writer.OpenCheckpoint(dir, 0, checkpointFacts); err == nil ||
		!strings.Contains(err.Error(), "another process uses it") {
		t.Errorf("a second one: %v", err)
	}
	if err := os.WriteFile(c.Own("times"), []byte{3}, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openCheckpoint(t, dir)
	if got := loadText(t, c); !c.Saved() || got != "epoch 5" {
		t.Errorf("%q, want epoch 5", got)
	}
	c.Own("times")
	if err := c.Done(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder stays: %v", err)
	}
}

func TestCheckpointOfNothingLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	c := openCheckpoint(t, dir)
	if err := os.WriteFile(c.Own("times"), []byte{3}, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder stays: %v", err)
	}
}

func TestCheckpointOfAnotherTaskOrDamagedIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	c := openCheckpoint(t, dir)
	saveText(t, c, strings.Repeat("epoch 3\n", 4097))
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := writer.OpenCheckpoint(dir, 0, []writer.Fact{checkpointFacts[0], {Name: "machine", Value: "myrinet"}})
	if err == nil || !strings.Contains(err.Error(), "machine flat, here machine myrinet; name another folder") {
		t.Errorf("another machine: %v", err)
	}
	state := filepath.Join(dir, "state")
	whole, err := os.ReadFile(state)
	if err != nil {
		t.Fatal(err)
	}
	for name, bytes := range map[string][]byte{"cut off": whole[:len(whole)-9], "empty": nil,
		"changed": append(append([]byte{}, whole[:4097]...), append([]byte{'X'}, whole[4098:]...)...),
		"other":   []byte(strings.Repeat("#", 97))} {
		if err := os.WriteFile(state, bytes, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.OpenCheckpoint(dir, 0, checkpointFacts); err == nil ||
			!strings.Contains(err.Error(), "what it keeps is damaged: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzCheckpoint opens folders with arbitrary state: an error, or the bytes that were saved.
func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte("commq checkpoint 1\n[{\"Name\":\"run\",\"Value\":\"9f3a\"}]\n"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, state []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "state"), state, 0o666); err != nil {
			t.Fatal(err)
		}
		c, err := writer.OpenCheckpoint(dir, 0, checkpointFacts)
		if err != nil {
			return
		}
		if c.Saved() {
			t.Errorf("%q is taken for a state", state)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestCheckpointOfAnotherUserIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	c := openCheckpoint(t, dir)
	saveText(t, c, "epoch 3")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	info, err := os.Stat(state)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	refused := func(want string) {
		t.Helper()
		if _, err := writer.OpenCheckpoint(dir, 0, checkpointFacts); !errors.Is(err, private.ErrForeign) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if err := os.Chmod(state, 0o666); err != nil {
		t.Fatal(err)
	}
	refused("everybody can write to it")
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chmod(state, 0o600), os.Chown(state, 12345, -1)); err != nil {
			t.Fatal(err)
		}
		refused("it belongs to user 12345")
	}
}

// sealedState returns a state with its right checksum.
func sealedState(facts, body string) []byte {
	text := "commq checkpoint 1\n" + facts + body
	sum := sha256.Sum256([]byte(text))
	return append([]byte(text), sum[:]...)
}

// FuzzCheckpointEdited opens folders with states of changed facts and their right checksum: an error, or the bytes that
// were saved with the facts of this task.
func FuzzCheckpointEdited(f *testing.F) {
	good, err := json.Marshal(checkpointFacts)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, "epoch 3")
	f.Add([]byte{0, 2, 2, 9}, "epoch 3")
	f.Add([]byte{0, 0, 6, 1}, "\n")
	f.Fuzz(func(t *testing.T, edits []byte, body string) {
		dir := t.TempDir()
		line := strings.TrimSuffix(mutate.JSON(string(good), edits), "\n") + "\n"
		if err := os.WriteFile(filepath.Join(dir, "state"), sealedState(line, body), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := writer.OpenCheckpoint(dir, 0, checkpointFacts)
		if err != nil {
			return
		}
		var facts []writer.Fact
		if err := json.Unmarshal([]byte(line), &facts); err != nil || len(facts) < len(checkpointFacts) ||
			!slices.Equal(facts[:len(checkpointFacts)], checkpointFacts) {
			t.Errorf("the state of %s is taken, %v", line, err)
		}
		if got := loadText(t, c); !c.Saved() || got != body {
			t.Errorf("%q, want %q", got, body)
		}
		if err := c.Done(); err != nil {
			t.Error(err)
		}
	})
}

func TestKeptRowTimesStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "times")
	rows := []int64{700, 3}
	put, err := writer.KeepRowTimes(rows, path)
	if err != nil {
		t.Fatal(err)
	}
	for seq := range int64(600) {
		if err := put.Put(0, seq, 5*seq, 5*seq+3); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(put.Put(1, 2, 9, 4097), put.Sync(), put.Close()); err != nil {
		t.Fatal(err)
	}
	got, err := writer.KeepRowTimes(rows, path)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	for _, want := range [][4]int64{{0, 3, 15, 18}, {0, 599, 2995, 2998}, {1, 2, 9, 4097}} {
		if start, end, err := got.Get(int32(want[0]), want[1]); err != nil || start != want[2] || end != want[3] {
			t.Errorf("rank %d, seq %d: %d to %d, %v; want %d to %d", want[0], want[1], start, end, err, want[2],
				want[3])
		}
	}
	if _, _, err := got.Get(0, 600); err == nil {
		t.Error("a row that was not put has times")
	}
}
