package simrank

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"github.com/commq/commq/capture/spool"
)

// queueLength bounds the records that wait for the disk to 16 MiB. When the disk is too slow for that, events wait too.
const queueLength = 256

// chunk is work for the disk: write records, answer a SYNC, or close the files of a rank.
type chunk struct {
	kind   Kind
	rank   int32
	thread int32
	offset int64 // in the file
	data   []byte
}

// disk writes records into the files of their threads, in its own goroutine.
type disk struct {
	dir   string
	job   uint64 // set before the first chunk
	log   io.Writer
	out   *answers
	queue chan chunk
	free  chan []byte
	done  chan struct{}

	files  map[int32][]*file // by rank
	open   []*file
	most   int  // files open at a time
	warned bool // a warning was written
}

// file is a thread's file of records.
type file struct {
	thread  int32
	path    string
	f       *os.File // nil: not open now
	used    uint64   // when it was last written, for eviction
	size    int64
	bad     bool   // a write failed: the file ends at size
	lost    uint64 // calls that are not in the file
	counted int64  // lost has the calls up to this offset
	dropped uint64 // count of dropped calls in the header that the rank sent
}

func newDisk(dir string, out *answers, log io.Writer) *disk {
	d := &disk{dir: dir, log: log, out: out, queue: make(chan chunk, queueLength), free: make(chan []byte, queueLength),
		done: make(chan struct{}), files: map[int32][]*file{}, most: openFiles()}
	go d.run()
	return d
}

// openFiles returns how many files may be open at a time.
func openFiles() int {
	const spare, most = 64, 1 << 16
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil || r.Cur <= 2*spare {
		return spare
	}
	return int(min(r.Cur-spare, most))
}

// buffer returns a buffer for n bytes of records.
func (d *disk) buffer(n int64) []byte {
	select {
	case b := <-d.free:
		return b[:n]
	default:
		return make([]byte, n, RecordBytes)
	}
}

func (d *disk) run() {
	defer close(d.done)
	var now uint64
	for c := range d.queue {
		now++
		switch c.kind {
		case Records:
			f := d.file(c.rank, c.thread)
			f.used = now
			d.write(f, c.offset, c.data)
			select {
			case d.free <- c.data:
			default:
			}
		case Sync:
			e := Event{Kind: Synced, Rank: c.rank}
			d.out.put(e.append(nil))
		case Left:
			d.closeRank(c.rank)
		}
	}
	for rank := range d.files {
		d.closeRank(rank)
	}
}

// close waits until everything is written.
func (d *disk) close() {
	close(d.queue)
	<-d.done
}

// file is the file of a thread.
func (d *disk) file(rank, thread int32) *file {
	for _, f := range d.files[rank] {
		if f.thread == thread {
			return f
		}
	}
	f := &file{thread: thread, path: filepath.Join(d.dir,
		fmt.Sprintf("%016x.%d.%d%s", d.job, rank, thread, spool.Suffix))}
	d.files[rank] = append(d.files[rank], f)
	return f
}

// ensureOpen opens a file unless it is open.
func (d *disk) ensureOpen(f *file) error {
	if f.f != nil {
		return nil
	}
	if len(d.open) >= d.most {
		d.evict()
	}
	flags := os.O_RDWR
	if f.size == 0 {
		flags |= os.O_CREATE | os.O_EXCL
	}
	o, err := os.OpenFile(f.path, flags, 0o600)
	for err != nil && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && len(d.open) > 0 {
		d.evict()
		o, err = os.OpenFile(f.path, flags, 0o600)
	}
	if err != nil {
		return err
	}
	f.f = o
	d.open = append(d.open, f)
	return nil
}

// evict closes the least recently written file.
func (d *disk) evict() {
	oldest := d.open[0]
	for _, f := range d.open {
		if f.used < oldest.used {
			oldest = f
		}
	}
	d.closeFile(oldest)
}

func (d *disk) closeFile(f *file) {
	if f.f == nil {
		return
	}
	if err := f.f.Close(); err != nil {
		d.warn(err)
	}
	f.f = nil
	for i := range d.open {
		if d.open[i] == f {
			d.open[i] = d.open[len(d.open)-1]
			d.open = d.open[:len(d.open)-1]
			break
		}
	}
}

// droppedOffset is the offset of the header field that counts the calls that are not in the file.
const droppedOffset = int64(unsafe.Offsetof(spool.Header{}.Dropped))

// kindOffset is the offset of the kind in a slot.
const kindOffset = unsafe.Offsetof(spool.Call{}.Kind)

// write writes records at their offset. Once a write has failed, the file ends after the last complete call before it:
// later records are only counted, earlier ones (the header, a call that has returned) are still written.
func (d *disk) write(f *file, at int64, data []byte) {
	if at == 0 && int64(len(data)) >= droppedOffset+8 {
		f.dropped = binary.LittleEndian.Uint64(data[droppedOffset:])
		binary.LittleEndian.PutUint64(data[droppedOffset:], f.dropped+f.lost)
	}
	full, end := data, at+int64(len(data))
	if f.bad && end > f.size {
		data = data[:max(f.size-at, 0)]
		f.drop(full, at, len(data))
	}
	if len(data) == 0 {
		return
	}
	err := d.ensureOpen(f)
	if err == nil {
		_, err = f.f.WriteAt(data, at)
	}
	if err == nil {
		f.size = max(f.size, at+int64(len(data)))
		return
	}
	d.warn(err)
	if !f.bad && end > f.size {
		d.cut(f, at, data)
	}
}

// cut ends a file after the last complete call of data, of which only a part was written.
func (d *disk) cut(f *file, at int64, data []byte) {
	var written int64 // WriteAt does not return it reliably
	if f.f != nil {
		if info, err := f.f.Stat(); err == nil {
			written = min(info.Size()-at, int64(len(data)))
		}
	}
	keep := 0
	for i := spool.SlotBytes; at > 0 && i <= int(written); i += spool.SlotBytes {
		if i == len(data) || data[i+int(kindOffset)] == byte(spool.KindCall) {
			keep = i
		}
	}
	f.bad = true
	f.size = max(f.size, at+int64(keep))
	if at == 0 {
		f.size = 0
	}
	f.drop(data, at, keep)
	if f.f == nil {
		return
	}
	if f.size == 0 { // a file of records needs a header
		d.closeFile(f)
		_ = os.Remove(f.path)
		return
	}
	_ = f.f.Truncate(f.size)
}

// drop counts the calls in data from byte keep on as lost, each once.
func (f *file) drop(data []byte, at int64, keep int) {
	if at == 0 {
		return
	}
	for i := keep; i+spool.SlotBytes <= len(data); i += spool.SlotBytes {
		if at+int64(i) < f.counted {
			continue
		}
		f.counted = at + int64(i) + spool.SlotBytes
		if data[i+int(kindOffset)] == byte(spool.KindCall) {
			f.lost++
		}
	}
}

// closeRank closes the files of a rank. Their headers get the number of calls that are not in them.
func (d *disk) closeRank(rank int32) {
	for _, f := range d.files[rank] {
		if f.lost > 0 && f.size >= droppedOffset+8 && d.ensureOpen(f) == nil {
			if _, err := f.f.WriteAt(binary.LittleEndian.AppendUint64(nil, f.dropped+f.lost),
				droppedOffset); err != nil {
				d.warn(err)
			}
		}
		d.closeFile(f)
	}
	delete(d.files, rank)
}

// warn warns, once, that records are lost.
func (d *disk) warn(err error) {
	if d.warned {
		return
	}
	d.warned = true
	fmt.Fprintf(d.log, "commq simrank: %v: recording stops there and the program goes on\n", err)
}
