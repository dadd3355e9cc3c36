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

// queueLength bounds the records that wait for the disk: 16 MiB. When it is slower for longer, events wait too.
const queueLength = 256

// chunk is what the disk is asked to do: write records, answer a SYNC, or let go of a rank's files.
type chunk struct {
	kind   Kind
	rank   int32
	thread int32
	at     int64
	data   []byte
}

// disk writes records into the files of their threads, in a goroutine of its own.
type disk struct {
	dir   string
	job   uint64 // to be set before the first chunk
	log   io.Writer
	out   *answers
	queue chan chunk
	free  chan []byte
	done  chan struct{}

	files map[int32][]*file // by rank
	open  []*file
	most  int // files open at a time
	said  bool
}

// file is a thread's file of records.
type file struct {
	thread int32
	path   string
	f      *os.File // nil: not open now
	used   uint64   // when it was last written, for eviction
	size   int64
	bad    bool   // something could not be written: it ends at size
	lost   uint64 // calls that are not in it
	seen   int64  // up to where calls that are not in it are counted
	counts uint64 // what its header says is dropped
}

func newDisk(dir string, out *answers, log io.Writer) *disk {
	d := &disk{dir: dir, log: log, out: out, queue: make(chan chunk, queueLength), free: make(chan []byte, queueLength),
		done: make(chan struct{}), files: map[int32][]*file{}, most: openFiles()}
	go d.run()
	return d
}

// openFiles is how many files may be open at a time.
func openFiles() int {
	const spare, most = 64, 1 << 16
	var r syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r); err != nil || r.Cur <= 2*spare {
		return spare
	}
	return int(min(r.Cur-spare, most))
}

// buffer is room for n bytes of records.
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
			d.write(f, c.at, c.data)
			select {
			case d.free <- c.data:
			default:
			}
		case Sync:
			e := Event{Kind: Synced, Rank: c.rank}
			d.out.put(e.append(nil))
		case Left:
			d.leave(c.rank)
		}
	}
	for rank := range d.files {
		d.leave(rank)
	}
}

// close waits until everything is written.
func (d *disk) close() {
	close(d.queue)
	<-d.done
}

func (d *disk) file(rank, thread int32) *file {
	for _, f := range d.files[rank] {
		if f.thread == thread {
			return f
		}
	}
	f := &file{thread: thread, path: filepath.Join(d.dir, fmt.Sprintf("%016x.%d.%d%s", d.job, rank, thread, spool.Suffix))}
	d.files[rank] = append(d.files[rank], f)
	return f
}

// reach sees to it that a file is open.
func (d *disk) reach(f *file) error {
	if f.f != nil {
		return nil
	}
	if len(d.open) >= d.most {
		d.evict()
	}
	how := os.O_RDWR
	if f.size == 0 {
		how |= os.O_CREATE | os.O_EXCL
	}
	o, err := os.OpenFile(f.path, how, 0o644)
	for err != nil && (errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)) && len(d.open) > 0 {
		d.evict()
		o, err = os.OpenFile(f.path, how, 0o644)
	}
	if err != nil {
		return err
	}
	f.f = o
	d.open = append(d.open, f)
	return nil
}

// evict closes the file that was not written for longest.
func (d *disk) evict() {
	oldest := d.open[0]
	for _, f := range d.open {
		if f.used < oldest.used {
			oldest = f
		}
	}
	d.shut(oldest)
}

func (d *disk) shut(f *file) {
	if f.f == nil {
		return
	}
	if err := f.f.Close(); err != nil {
		d.complain(err)
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

// droppedAt is where the header counts the calls that are not in the file.
const droppedAt = int64(unsafe.Offsetof(spool.Header{}.Dropped))

// kindAt is where a slot has its kind.
const kindAt = unsafe.Offsetof(spool.Call{}.Kind)

// write puts records where they belong. Once something could not be written, the file ends behind the last whole call before
// it; later records are counted, earlier ones (the header, a call that has returned) still written.
func (d *disk) write(f *file, at int64, data []byte) {
	if at == 0 && int64(len(data)) >= droppedAt+8 {
		f.counts = binary.LittleEndian.Uint64(data[droppedAt:])
		binary.LittleEndian.PutUint64(data[droppedAt:], f.counts+f.lost)
	}
	whole, end := data, at+int64(len(data))
	if f.bad && end > f.size {
		data = data[:max(f.size-at, 0)]
		f.drop(whole, at, len(data))
	}
	if len(data) == 0 {
		return
	}
	err := d.reach(f)
	if err == nil {
		_, err = f.f.WriteAt(data, at)
	}
	if err == nil {
		f.size = max(f.size, at+int64(len(data)))
		return
	}
	d.complain(err)
	if !f.bad && end > f.size {
		d.cut(f, at, data)
	}
}

// cut ends a file behind the last whole call of data, of which not all is written.
func (d *disk) cut(f *file, at int64, data []byte) {
	var written int64 // WriteAt does not say
	if f.f != nil {
		if info, err := f.f.Stat(); err == nil {
			written = min(info.Size()-at, int64(len(data)))
		}
	}
	keep := 0
	for i := spool.SlotBytes; at > 0 && i <= int(written); i += spool.SlotBytes {
		if i == len(data) || data[i+int(kindAt)] == byte(spool.KindCall) {
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
	if f.size == 0 { // without a header it is no file of records
		d.shut(f)
		_ = os.Remove(f.path)
		return
	}
	_ = f.f.Truncate(f.size)
}

// drop counts the calls of data from the keep-th byte on as lost, once.
func (f *file) drop(data []byte, at int64, keep int) {
	if at == 0 {
		return
	}
	for i := keep; i+spool.SlotBytes <= len(data); i += spool.SlotBytes {
		if at+int64(i) < f.seen {
			continue
		}
		f.seen = at + int64(i) + spool.SlotBytes
		if data[i+int(kindAt)] == byte(spool.KindCall) {
			f.lost++
		}
	}
}

// leave closes a rank's files. Their headers say what is not in them.
func (d *disk) leave(rank int32) {
	for _, f := range d.files[rank] {
		if f.lost > 0 && f.size >= droppedAt+8 && d.reach(f) == nil {
			if _, err := f.f.WriteAt(binary.LittleEndian.AppendUint64(nil, f.counts+f.lost), droppedAt); err != nil {
				d.complain(err)
			}
		}
		d.shut(f)
	}
	delete(d.files, rank)
}

// complain says once that records are lost.
func (d *disk) complain(err error) {
	if d.said {
		return
	}
	d.said = true
	fmt.Fprintf(d.log, "commq simrank: %v: recording stops there and the program goes on\n", err)
}
