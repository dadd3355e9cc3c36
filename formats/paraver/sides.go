package paraver

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"

	"github.com/commq/commq/formats/spill"
	"github.com/commq/commq/schema"
)

// Kinds of items: a call, and the sides of a message at the times of its record.
const (
	itemCall   = iota
	itemSent   // the logical send
	itemPosted // the logical receive
	itemDone   // the physical receive
)

// item is an event of a rank: the begin of a call, or a side of a message.
type item struct {
	kind   int64
	at     int64 // ns
	thread int64
	call
	side
}

// call is a call of MPI.
type call struct {
	id             int64 // schema.CallID
	end            int64 // null64: it did not return
	times          int64 // calls of the same times, which the export writes for MPI_Startall
	sent, received int64 // bytes of a collective
	comm           int64 // of a collective, in the run
	rooted         int64 // number of a collective with a root on its communicator, null64 for others
	site           int64
}

// side is a side of a message.
type side struct {
	number int64 // of the message, the same at both ends
	peer   int64 // world rank of the other end
	tag    int64
	bytes  int64
	posted int64 // logical receive
}

// numbers returns the fields that are encoded.
func (x *item) numbers() []*int64 {
	if x.kind == itemCall {
		return []*int64{&x.at, &x.thread, &x.id, &x.end, &x.times, &x.sent, &x.received, &x.comm, &x.rooted, &x.site}
	}
	return []*int64{&x.at, &x.thread, &x.number, &x.peer, &x.tag, &x.bytes, &x.posted}
}

// shifted makes null 0, so that it takes one byte; unshifted is the reverse.
func shifted(x int64) int64 {
	switch {
	case x == null64:
		return 0
	case x >= 0:
		return x + 1
	}
	return x
}

func unshifted(x int64) int64 {
	switch {
	case x == 0:
		return null64
	case x > 0:
		return x - 1
	}
	return x
}

// items sorts the items of all ranks by time on disk, and keeps those of each rank together.
type items struct {
	sorter sorter
	line   []byte
	file   *spill.File
	waits  [][]byte // by rank: what is not in the file
	chunk  int
	bytes  int64
}

// sortedInMemory is the number of bytes of items that are sorted in memory at a time.
const sortedInMemory = 64 << 20

// chunkMemory is the memory for what is not yet in the file, of all ranks; chunks are of these sizes.
const chunkMemory, leastChunk, mostChunk = 32 << 20, 1 << 10, 64 << 10

func newItems(ranks int) *items {
	return &items{sorter: sorter{most: sortedInMemory}, waits: make([][]byte, ranks),
		chunk: min(max(chunkMemory/ranks, leastChunk), mostChunk)}
}

// add adds an item of a rank.
func (s *items) add(rank int32, x *item) error {
	s.line = binary.AppendUvarint(s.line[:0], uint64(rank))
	s.line = append(s.line, byte(x.kind))
	for _, n := range x.numbers() {
		s.line = binary.AppendVarint(s.line, shifted(*n))
	}
	return s.sorter.add(x.at, s.line)
}

// sort sorts the items; then they can be read.
func (s *items) sort() (err error) {
	if s.file, err = spill.Create(int32(len(s.waits))); err != nil {
		return err
	}
	err = s.sorter.each(func(text []byte) error {
		rank, n := binary.Uvarint(text)
		s.waits[rank] = append(s.waits[rank], text[n:]...)
		if len(s.waits[rank]) >= s.chunk {
			return s.keep(int32(rank))
		}
		return nil
	})
	for rank := range s.waits {
		if err == nil {
			err = s.keep(int32(rank))
		}
	}
	s.waits = nil
	return errors.Join(err, s.file.Flush(), s.sorter.close())
}

// keep puts what waits into the file.
func (s *items) keep(rank int32) error {
	w := s.waits[rank]
	s.waits[rank] = w[:0]
	s.bytes += int64(len(w))
	return s.file.Append(rank, w)
}

// close removes the temporary files.
func (s *items) close() error {
	err := s.sorter.close()
	if s.file != nil {
		err = errors.Join(err, s.file.Close())
	}
	return err
}

// stream reads the items of a rank in the order of their times.
type stream struct {
	in   *bufio.Reader
	read int64
}

// open returns the items of a rank.
func (s *items) open(rank int32) *stream {
	x := &stream{}
	x.in = bufio.NewReaderSize(s.file.Reader(rank), min(s.chunk, 16<<10))
	return x
}

// next reads the next item; false after the last.
func (s *stream) next(x *item) (bool, error) {
	kind, err := s.ReadByte()
	if err == io.EOF {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	*x = item{kind: int64(kind)}
	for _, n := range x.numbers() {
		v, err := binary.ReadVarint(s)
		if err != nil {
			return false, err
		}
		*n = unshifted(v)
	}
	return true, nil
}

// ReadByte reads and counts.
func (s *stream) ReadByte() (byte, error) {
	b, err := s.in.ReadByte()
	if err == nil {
		s.read++
	}
	return b, err
}

// narrow returns an int64 as an int32, and null as null.
func narrow(x int64) int32 {
	if x == null64 {
		return schema.NullInt32
	}
	return int32(x)
}
