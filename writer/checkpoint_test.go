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

// A folder that is refused where it was made is removed, one that was there stays.
func TestRefusedCheckpointLeavesNothing(t *testing.T) {
	above := t.TempDir()
	dir := filepath.Join(above, "kept")
	if err := os.Chmod(above, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.OpenCheckpoint(dir, 0, checkpointFacts); err == nil ||
		!strings.Contains(err.Error(), "everybody can write to the folder that it is in") {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder stays: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.OpenCheckpoint(dir, 0, checkpointFacts); err == nil {
		t.Error("one that was there")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
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

// A folder that others can write to is refused; in it a link in the place of the new state would be followed.
func TestCheckpointsAreKeptForTheirOwner(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	c := openCheckpoint(t, dir)
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	victim := filepath.Join(t.TempDir(), "victim")
	if err := errors.Join(os.WriteFile(victim, []byte("theirs"), 0o600),
		os.Symlink(victim, filepath.Join(dir, "state.part"))); err != nil {
		t.Fatal(err)
	}
	saveText(t, c, "epoch 3")
	if text, err := os.ReadFile(victim); err != nil || string(text) != "theirs" {
		t.Errorf("the state was written through a link: %q, %v", text, err)
	}
	if err := errors.Join(c.Close(), os.Chmod(dir, 0o777)); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.OpenCheckpoint(dir, 0, checkpointFacts); !errors.Is(err, private.ErrForeign) {
		t.Errorf("a folder for all: %v", err)
	}
}

// What is loaded is what was checked, and a state saved later is checked before it is loaded.
func TestCheckpointIsLoadedAsItWasChecked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	c := openCheckpoint(t, dir)
	saveText(t, c, "epoch 3")
	state := filepath.Join(dir, "state")
	damage := func() {
		t.Helper()
		text, err := os.ReadFile(state)
		if err != nil {
			t.Fatal(err)
		}
		text[len(text)-35] ^= 1
		if err := errors.Join(os.Remove(state), os.WriteFile(state, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	c = openCheckpoint(t, dir)
	damage()
	if got := loadText(t, c); got != "epoch 3" {
		t.Errorf("%q", got)
	}
	saveText(t, c, "epoch 5")
	damage()
	if err := c.Load(func(*bufio.Reader) error { return nil }); err == nil ||
		!strings.Contains(err.Error(), "its checksum does not fit") {
		t.Errorf("%v", err)
	}
	if err := c.Done(); err != nil {
		t.Fatal(err)
	}
}

func TestKeptRowTimesStay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "times")
	rows := []int64{700, 3}
	put, err := writer.KeepRowTimes(rows, path, 0)
	if err != nil {
		t.Fatal(err)
	}
	for seq := range int64(600) {
		if err := put.Put(0, seq, 5*seq, 5*seq+3); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(put.Put(1, 2, 9, 4097), put.Sync()); err != nil {
		t.Fatal(err)
	}
	sum := put.Sum()
	if err := errors.Join(put.Put(1, 1, 7, 8), put.Sync(), put.Close()); err != nil { // and is killed
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	got, err := writer.KeepRowTimes(rows, path, sum)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if err := got.Put(1, 1, 7, 8); err != nil {
		t.Fatal(err)
	}
	takeAll := func(from *writer.RowTimes) error {
		for seq := range int64(600) {
			if _, _, err := from.Take(0, seq); err != nil {
				t.Fatal(err)
			}
		}
		for seq := range int64(2) {
			if _, _, err := from.Take(1, 1+seq); err != nil {
				t.Fatal(err)
			}
		}
		return from.CheckTaken()
	}
	if err := takeAll(got); err != nil {
		t.Error(err)
	}
	for _, want := range [][4]int64{{0, 3, 15, 18}, {0, 599, 2995, 2998}, {1, 2, 9, 4097}} {
		if start, end, err := got.Get(int32(want[0]), want[1]); err != nil || start != want[2] || end != want[3] {
			t.Errorf("rank %d, seq %d: %d to %d, %v; want %d to %d", want[0], want[1], start, end, err, want[2],
				want[3])
		}
	}
	if _, _, err := got.Get(0, 600); err == nil {
		t.Error("a row that was not put has times")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text[16*300] ^= 2
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	changed, err := writer.KeepRowTimes(rows, path, got.Sum())
	if err != nil {
		t.Fatal(err)
	}
	defer changed.Close()
	if err := takeAll(changed); err == nil || !strings.Contains(err.Error(), "their file was changed") {
		t.Errorf("a bit of the file has changed: %v", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.KeepRowTimes(rows, path, 0); !errors.Is(err, private.ErrForeign) {
		t.Errorf("a file for all: %v", err)
	}
}
