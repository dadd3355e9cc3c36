package writer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zeebo/xxh3"
	"golang.org/x/sys/unix"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/internal/private"
	"github.com/commq/commq/schema"
)

// RowTimes stores the start and end of each row of events in a temporary file, for engines that find them in any order.
// First all times are put, then they are read. Its memory is bounded by the number of ranks.
type RowTimes struct {
	file    timesFile
	ranks   []rankTimes
	windows int // the most windows of a rank

	put, taken uint64 // sums of the hashes of the rows that were put, and taken
}

// timesFile is a file that stays, or one without a name.
type timesFile interface {
	io.ReaderAt
	io.WriterAt
	Truncate(size int64) error
	Sync() error
	Close() error
}

// rankTimes is a rank's part of the file, with windows into it. Window k is cached at k modulo their number.
type rankTimes struct {
	base, rows int64
	windows    []timesWindow
}

// timesWindow holds rows of the file from first on.
type timesWindow struct {
	first int64
	data  []byte
	dirty bool
}

const (
	timesBytes = 16 // per row: start + 1 and end + 1, so that 0 means a row without times
	windowRows = 256
	// Messages are read in the order of their senders, so a rank's rows of an epoch are passed once for each partner.
	windowsOfAll = 1 << 14 // 64 MiB; but each rank has at least one window
)

// NewRowTimes makes room for the given number of rows of each rank.
func NewRowTimes(rows []int64) (*RowTimes, error) {
	f, err := Scratch("commq-times-")
	if err != nil {
		return nil, fmt.Errorf("keep the times of rows: %w", err)
	}
	return newRowTimes(f, rows)
}

// Scratch creates a file without a name in $TMPDIR: it disappears when it is closed, or when the process ends in any
// way.
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

// KeepRowTimes is NewRowTimes in a file at path, which stays. Times in an existing file count as put if sum is what Sum
// returned when they were: a process that was killed later may have put more, which must be put again. The file must be
// this user's.
func KeepRowTimes(rows []int64, path string, sum uint64) (*RowTimes, error) {
	f, err := disk.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keep the times of rows: %w", err)
	}
	if err := private.Opened(f); err != nil {
		return nil, errors.Join(fmt.Errorf("keep the times of rows: %w", err), f.Close())
	}
	t, err := newRowTimes(f, rows)
	if err != nil {
		return nil, err
	}
	t.put = sum
	return t, nil
}

// Sum is the checksum of the rows put so far, by this and earlier processes.
func (t *RowTimes) Sum() uint64 { return t.put }

func newRowTimes(f timesFile, rows []int64) (*RowTimes, error) {
	t := &RowTimes{file: f, ranks: make([]rankTimes, len(rows)), windows: max(1, windowsOfAll/max(1, len(rows)))}
	base := int64(0)
	for i, n := range rows {
		t.ranks[i] = rankTimes{base: base, rows: n}
		base += n
	}
	if err := f.Truncate(base * timesBytes); err != nil {
		return nil, errors.Join(fmt.Errorf("keep the times of rows: %w", err), f.Close())
	}
	return t, nil
}

// Close closes the file. The times are then gone, unless KeepRowTimes made it.
func (t *RowTimes) Close() error { return t.file.Close() }

// Sync makes all times that were put durable.
func (t *RowTimes) Sync() error {
	for i := range t.ranks {
		for k := range t.ranks[i].windows {
			if err := t.flush(&t.ranks[i], &t.ranks[i].windows[k]); err != nil {
				return err
			}
		}
	}
	if err := t.file.Sync(); err != nil {
		return fmt.Errorf("keep the times of rows: %w", err)
	}
	return nil
}

// locate returns the window that holds a row, and the row's bytes in it.
func (t *RowTimes) locate(rank int32, seq int64) (*timesWindow, []byte, error) {
	if rank < 0 || int(rank) >= len(t.ranks) || seq < 0 || seq >= t.ranks[rank].rows {
		return nil, nil, fmt.Errorf("rank %d has no row %d", rank, seq)
	}
	r := &t.ranks[rank]
	w, err := t.window(r, seq/windowRows*windowRows)
	if err != nil {
		return nil, nil, err
	}
	return w, w.data[(seq-w.first)*timesBytes:][:timesBytes], nil
}

// window returns the window of a rank that begins at row first.
func (t *RowTimes) window(r *rankTimes, first int64) (*timesWindow, error) {
	k := int(first / windowRows % int64(t.windows))
	for len(r.windows) <= k {
		r.windows = append(r.windows, timesWindow{})
	}
	w := &r.windows[k]
	if w.data != nil && w.first == first {
		return w, nil
	}
	if err := t.flush(r, w); err != nil {
		return nil, err
	}
	if w.data == nil {
		w.data = make([]byte, min(windowRows, r.rows)*timesBytes)
	}
	w.first = first
	if _, err := t.file.ReadAt(w.rows(r), (r.base+first)*timesBytes); err != nil {
		w.data = nil
		return nil, fmt.Errorf("read the times of rows: %w", err)
	}
	return w, nil
}

// rows returns the part of the window that the rank's rows fill.
func (w *timesWindow) rows(r *rankTimes) []byte {
	return w.data[:min(windowRows, r.rows-w.first)*timesBytes]
}

func (t *RowTimes) flush(r *rankTimes, w *timesWindow) error {
	if !w.dirty {
		return nil
	}
	w.dirty = false
	if _, err := t.file.WriteAt(w.rows(r), (r.base+w.first)*timesBytes); err != nil {
		return fmt.Errorf("keep the times of rows: %w; $TMPDIR may be full", err)
	}
	return nil
}

// Put stores the times of a row in ns, once. They must not be negative.
func (t *RowTimes) Put(rank int32, seq, startNs, endNs int64) error {
	w, b, err := t.locate(rank, seq)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(b, uint64(startNs+1))
	binary.LittleEndian.PutUint64(b[8:], uint64(endNs+1))
	w.dirty = true
	t.put += rowSum(rank, seq, b)
	return nil
}

// rowSum is the hash of a row with its times.
func rowSum(rank int32, seq int64, times []byte) uint64 {
	var row [12 + timesBytes]byte
	binary.LittleEndian.PutUint32(row[:], uint32(rank))
	binary.LittleEndian.PutUint64(row[4:], uint64(seq))
	copy(row[12:], times)
	return xxh3.Hash(row[:])
}

// Get returns the times that Put stored, and an error when there are none.
func (t *RowTimes) Get(rank int32, seq int64) (startNs, endNs int64, err error) {
	startNs, endNs, _, err = t.get(rank, seq)
	return startNs, endNs, err
}

// Take does the same as Get, once for each row; then CheckTaken tells whether the file has changed.
func (t *RowTimes) Take(rank int32, seq int64) (startNs, endNs int64, err error) {
	startNs, endNs, b, err := t.get(rank, seq)
	if err == nil {
		t.taken += rowSum(rank, seq, b)
	}
	return startNs, endNs, err
}

// CheckTaken returns an error unless the rows that were taken are those that were put.
func (t *RowTimes) CheckTaken() error {
	if t.taken != t.put {
		return errors.New("the times of rows are not those that were kept: their file was changed; begin anew")
	}
	return nil
}

func (t *RowTimes) get(rank int32, seq int64) (startNs, endNs int64, b []byte, err error) {
	_, b, err = t.locate(rank, seq)
	if err != nil {
		return schema.NullInt64, schema.NullInt64, nil, err
	}
	startNs, endNs = int64(binary.LittleEndian.Uint64(b))-1, int64(binary.LittleEndian.Uint64(b[8:]))-1
	if startNs < 0 {
		return schema.NullInt64, schema.NullInt64, nil, fmt.Errorf("rank %d, seq %d: the row has no times", rank, seq)
	}
	return startNs, endNs, b, nil
}
