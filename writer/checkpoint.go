package writer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/internal/private"
)

// Checkpoint is a folder with the state of a long task, so that the task can continue after it was killed. The state is
// one file, which is written under another name, synced and renamed: a task killed while saving still has its previous
// state.
type Checkpoint struct {
	// Every is the shortest time between two saved states.
	Every time.Duration

	dir   string
	own   []string // the task's own files
	made  bool     // we made the folder
	lock  *lock
	facts []Fact
	last  time.Time
	saved bool     // there is a state
	state *os.File // it, as it was checked; nil: not checked since it was saved
	start int64    // offset of its bytes in the file
	body  int64    // number of its bytes
}

// Fact is something that a state depends on. A task can use a state only if all facts are the same.
type Fact struct{ Name, Value string }

const (
	checkpointMagic = "commq checkpoint 1\n"
	checkpointState = "state"
	checkpointLock  = "lock"
	mostFactBytes   = 1 << 24
)

// OpenCheckpoint opens a folder of checkpoints, and makes it for this user alone if it does not exist. It returns an
// error when another process uses the folder, when it or its state is another user's or everybody can write to it, when
// the state is damaged, and when it belongs to another task; then the message names the first fact that differs.
func OpenCheckpoint(dir string, every time.Duration, facts []Fact) (c *Checkpoint, err error) {
	c = &Checkpoint{Every: every, dir: dir, facts: facts, last: time.Now()}
	switch err := disk.Mkdir(dir, 0o700); {
	case err == nil:
		c.made = true
		if err := disk.SyncFolder(filepath.Dir(dir)); err != nil {
			return nil, fmt.Errorf("make the folder of checkpoints: %w", errors.Join(err, removeFile(dir)))
		}
	case !errors.Is(err, os.ErrExist):
		return nil, fmt.Errorf("make the folder of checkpoints: %w; name another with --checkpoint", err)
	}
	if err := private.Check(dir); err != nil {
		if c.made {
			err = errors.Join(err, removeFile(dir))
		}
		return nil, fmt.Errorf("--checkpoint: %w", err)
	}
	c.lock, err = takeLock(c.path(checkpointLock))
	if errors.Is(err, errLocked) {
		return nil, fmt.Errorf("--checkpoint %s: another process uses it; name another folder or wait for it to end",
			dir)
	}
	if err != nil {
		return nil, fmt.Errorf("--checkpoint %s: %w", dir, err)
	}
	if err := c.check(); err != nil {
		return nil, errors.Join(fmt.Errorf("--checkpoint %s: %w", dir, err), c.forget(), c.lock.release())
	}
	return c, nil
}

// Own returns the path of a file in the folder for the task's own use. It is removed with the state.
func (c *Checkpoint) Own(name string) string {
	c.own = append(c.own, name)
	return c.path(name)
}

func (c *Checkpoint) path(name string) string { return filepath.Join(c.dir, name) }

// Saved reports whether there is a state to continue from.
func (c *Checkpoint) Saved() bool { return c.saved }

// check checks that the state is complete and was saved by the same task, and keeps it open.
func (c *Checkpoint) check() error {
	f, err := os.Open(c.path(checkpointState))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	c.state = f
	if err := private.Opened(f); err != nil { // its checksum does not tell who wrote it
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	facts, start, err := checkedState(f, info.Size())
	if err != nil {
		return fmt.Errorf("what it keeps is damaged: %w; remove the folder to begin anew", err)
	}
	for i, want := range c.facts {
		if i >= len(facts) || facts[i] != want {
			got := Fact{want.Name, "none"}
			if i < len(facts) {
				got = facts[i]
			}
			return fmt.Errorf("it keeps what another task knows: %s %s, here %s %s; name another folder, or remove "+
				"it to begin anew", got.Name, got.Value, want.Name, want.Value)
		}
	}
	c.start, c.body, c.saved = start, info.Size()-sha256.Size-start, true
	return nil
}

// checkedState reads a state's facts and the offset of its bytes, and compares its checksum.
func checkedState(r io.Reader, size int64) (facts []Fact, start int64, err error) {
	if size < sha256.Size+int64(len(checkpointMagic)) {
		return nil, 0, errors.New("it is too short")
	}
	sum := sha256.New()
	in := bufio.NewReaderSize(io.TeeReader(io.LimitReader(r, size-sha256.Size), sum), 1<<20)
	magic := make([]byte, len(checkpointMagic))
	if _, err := io.ReadFull(in, magic); err != nil || string(magic) != checkpointMagic {
		return nil, 0, errors.New("it does not begin as one")
	}
	var line []byte
	for len(line) == 0 || line[len(line)-1] != '\n' {
		b, err := in.ReadByte()
		if err != nil || len(line) > mostFactBytes {
			return nil, 0, errors.New("it does not say what it is of")
		}
		line = append(line, b)
	}
	if err := json.Unmarshal(line, &facts); err != nil {
		return nil, 0, fmt.Errorf("what it is of: %w", err)
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return nil, 0, err
	}
	var want [sha256.Size]byte
	if _, err := io.ReadFull(r, want[:]); err != nil {
		return nil, 0, err
	}
	if !bytes.Equal(sum.Sum(nil), want[:]) {
		return nil, 0, errors.New("its checksum does not fit")
	}
	return facts, int64(len(checkpointMagic) + len(line)), nil
}

// Load calls read with the saved state.
func (c *Checkpoint) Load(read func(r *bufio.Reader) error) (err error) {
	if c.state == nil {
		if err := c.check(); err != nil {
			return fmt.Errorf("--checkpoint %s: %w", c.dir, err)
		}
	}
	if err := read(bufio.NewReaderSize(io.NewSectionReader(c.state, c.start, c.body), 1<<20)); err != nil {
		return fmt.Errorf("--checkpoint %s: %w; remove the folder to begin anew", c.dir, err)
	}
	return nil
}

// ShouldSave reports whether Every has passed since the last state.
func (c *Checkpoint) ShouldSave() bool { return time.Since(c.last) >= c.Every }

// Save replaces the state by what write writes.
func (c *Checkpoint) Save(write func(w io.Writer) error) (err error) {
	part := c.path(checkpointState + ".part")
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("keep a checkpoint in %s: %w", c.dir, err), removeFile(part))
		}
	}()
	if err := removeFile(part); err != nil {
		return err
	}
	f, err := disk.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600) // EXCL follows no link
	if err != nil {
		return err
	}
	err = c.write(f, write)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := errors.Join(disk.Rename(part, c.path(checkpointState)), disk.SyncFolder(c.dir)); err != nil {
		return err
	}
	c.last, c.saved = time.Now(), true
	return c.forget()
}

// forget closes the state that was checked.
func (c *Checkpoint) forget() (err error) {
	if c.state != nil {
		err = c.state.Close()
	}
	c.state = nil
	return err
}

func (c *Checkpoint) write(f *disk.File, write func(w io.Writer) error) error {
	facts, err := json.Marshal(c.facts)
	if err != nil {
		return err
	}
	w := &summing{to: bufio.NewWriterSize(f, 1<<20), sum: sha256.New()}
	if _, err := w.Write(append([]byte(checkpointMagic), append(facts, '\n')...)); err != nil {
		return err
	}
	c.start = w.n
	if err := write(w); err != nil {
		return err
	}
	c.body = w.n - c.start
	if _, err := w.to.Write(w.sum.Sum(nil)); err != nil {
		return err
	}
	return w.to.Flush()
}

// summing computes the checksum of what it writes.
type summing struct {
	to  *bufio.Writer
	sum hash.Hash
	n   int64
}

func (s *summing) Write(b []byte) (int, error) {
	s.sum.Write(b)
	s.n += int64(len(b))
	return s.to.Write(b)
}

// Close releases the folder. A saved state stays for the next time; without one all files are removed.
func (c *Checkpoint) Close() error {
	if !c.saved {
		err := c.removeFiles()
		if c.made {
			err = errors.Join(err, removeFile(c.dir))
		}
		return err
	}
	return errors.Join(c.forget(), c.lock.release())
}

// Done removes the state, and the folder if nothing else is in it: the task is complete.
func (c *Checkpoint) Done() error {
	err := c.removeFiles()
	_ = disk.Remove(c.dir) // fails when others have put files into it
	return err
}

func (c *Checkpoint) removeFiles() (err error) {
	for _, name := range append(c.own, checkpointState, checkpointState+".part") {
		err = errors.Join(err, removeFile(c.path(name)))
	}
	return errors.Join(err, c.forget(), c.lock.release())
}

// removeFile removes a file that may not exist.
func removeFile(path string) error {
	if err := disk.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
