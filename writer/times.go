package writer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/commq/commq/schema"
)

// RowTimes keeps when each row of events begins and ends while they are found, in any order, in a temporary file: memory is
// bounded by the ranks. First all are put, then they are looked up.
type RowTimes struct {
	file  *os.File
	ranks []rankTimes
}

// rankTimes is the part of the file that is a rank's, and a window on it.
type rankTimes struct {
	base, rows int64
	first      int64 // row at the beginning of the window
	window     []byte
	dirty      bool
}

const (
	timesBytes = 16 // of a row: start + 1 and end + 1, so that 0 is a row without times
	windowRows = 256
)

// NewRowTimes makes room for so many rows of each rank.
func NewRowTimes(rows []int64) (*RowTimes, error) {
	f, err := Scratch("commq-times-")
	if err != nil {
		return nil, fmt.Errorf("keep the times of rows: %w", err)
	}
	return newRowTimes(f, rows)
}

// Scratch is a file in $TMPDIR that has no name any more: it is gone when it is closed, and when the process ends, however it ends.
func Scratch(pattern string) (*os.File, error) {
	f, err := os.CreateTemp("", pattern)
	if err != nil {
		return nil, fmt.Errorf("%w; name another folder in $TMPDIR", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// KeepRowTimes is NewRowTimes in a file of that path, which stays: what it has, where it is there already, is as if it had been put. Who puts a row again
// must give it the same times.
func KeepRowTimes(rows []int64, path string) (*RowTimes, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("keep the times of rows: %w", err)
	}
	return newRowTimes(f, rows)
}

func newRowTimes(f *os.File, rows []int64) (*RowTimes, error) {
	t := &RowTimes{file: f, ranks: make([]rankTimes, len(rows))}
	base := int64(0)
	for i, n := range rows {
		t.ranks[i] = rankTimes{base: base, rows: n, first: -1}
		base += n
	}
	if err := f.Truncate(base * timesBytes); err != nil {
		return nil, errors.Join(fmt.Errorf("keep the times of rows: %w", err), f.Close())
	}
	return t, nil
}

// Close ends the use of what was kept; it is gone then, unless KeepRowTimes made it.
func (t *RowTimes) Close() error { return t.file.Close() }

// Sync sees to it that all that was put is on disk.
func (t *RowTimes) Sync() error {
	for i := range t.ranks {
		if err := t.flush(&t.ranks[i]); err != nil {
			return err
		}
	}
	if err := t.file.Sync(); err != nil {
		return fmt.Errorf("keep the times of rows: %w", err)
	}
	return nil
}

// at is the place of a row, in a window that holds it.
func (t *RowTimes) at(rank int32, seq int64) ([]byte, error) {
	if rank < 0 || int(rank) >= len(t.ranks) || seq < 0 || seq >= t.ranks[rank].rows {
		return nil, fmt.Errorf("rank %d has no row %d", rank, seq)
	}
	r := &t.ranks[rank]
	if r.first < 0 || seq < r.first || seq >= r.first+windowRows {
		if err := t.flush(r); err != nil {
			return nil, err
		}
		if r.window == nil {
			r.window = make([]byte, windowRows*timesBytes)
		}
		r.first = seq / windowRows * windowRows
		n := min(windowRows, r.rows-r.first) * timesBytes
		if _, err := t.file.ReadAt(r.window[:n], (r.base+r.first)*timesBytes); err != nil {
			return nil, fmt.Errorf("read the times of rows: %w", err)
		}
	}
	return r.window[(seq-r.first)*timesBytes:][:timesBytes], nil
}

func (t *RowTimes) flush(r *rankTimes) error {
	if !r.dirty {
		return nil
	}
	r.dirty = false
	n := min(windowRows, r.rows-r.first) * timesBytes
	if _, err := t.file.WriteAt(r.window[:n], (r.base+r.first)*timesBytes); err != nil {
		return fmt.Errorf("keep the times of rows: %w; $TMPDIR may be full", err)
	}
	return nil
}

// Put keeps the times of a row, not negative, in ns.
func (t *RowTimes) Put(rank int32, seq, startNs, endNs int64) error {
	b, err := t.at(rank, seq)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(b, uint64(startNs+1))
	binary.LittleEndian.PutUint64(b[8:], uint64(endNs+1))
	t.ranks[rank].dirty = true
	return nil
}

// Get is what Put kept; it is an error when there was none.
func (t *RowTimes) Get(rank int32, seq int64) (startNs, endNs int64, err error) {
	b, err := t.at(rank, seq)
	if err != nil {
		return schema.NullInt64, schema.NullInt64, err
	}
	startNs, endNs = int64(binary.LittleEndian.Uint64(b))-1, int64(binary.LittleEndian.Uint64(b[8:]))-1
	if startNs < 0 {
		return schema.NullInt64, schema.NullInt64, fmt.Errorf("rank %d, seq %d: the row has no times", rank, seq)
	}
	return startNs, endNs, nil
}
