package otf2

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
)

// exportChunk is the size of the chunks that the export writes, the least that OTF2's library takes. Definitions may
// need larger ones, up to mostChunk.
const exportChunk = 256 << 10

// record builds a record's content.
type record struct{ bytes.Buffer }

func (r *record) uint8(v uint8) *record {
	r.WriteByte(v)
	return r
}

// uint32 writes a number with its size before it.
func (r *record) uint32(v uint32) *record {
	if v == undefined32 {
		return r.uint8(255)
	}
	return r.uint64(uint64(v))
}

func (r *record) uint64(v uint64) *record {
	if v == undefined64 {
		return r.uint8(255)
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	n := 8
	for n > 0 && b[n-1] == 0 {
		n--
	}
	r.WriteByte(byte(n))
	r.Write(b[:n])
	return r
}

func (r *record) full64(v uint64) *record {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], v)
	r.Write(b[:])
	return r
}

func (r *record) text(s string) *record {
	r.WriteString(string(bytes.ReplaceAll([]byte(s), []byte{0}, nil)))
	return r.uint8(0)
}

// chunked writes a file in chunks. It holds a chunk in memory, and the file is open only while it writes one, so that
// there may be as many as locations.
type chunked struct {
	path    string
	size    int // of a chunk; 0 means exportChunk
	data    []byte
	records uint64
	first   uint64 // number of the first record of the chunk
	begun   bool
	err     error
}

// chunk returns the size of a chunk.
func (w *chunked) chunk() int { return cmp.Or(w.size, exportChunk) }

// put appends bytes that stay together, as this many records.
func (w *chunked) put(b []byte, records int) {
	if chunkHeader+len(b)+1 > w.chunk() { // one byte for the mark of the end
		w.err = cmp.Or(w.err, fmt.Errorf("%s: a record of %d bytes; a chunk has %d", w.path, len(b), w.chunk()))
		return
	}
	if len(w.data)+len(b)+1 > w.chunk() {
		w.flush(false)
	}
	if len(w.data) == 0 {
		w.first = w.records + 1
		w.data = append(w.data, recordChunkHeader, littleEndian)
		w.data = binary.LittleEndian.AppendUint64(w.data, w.first)
		w.data = binary.LittleEndian.AppendUint64(w.data, 0)
	}
	w.data = append(w.data, b...)
	w.records += uint64(records)
}

// flush writes the chunk; a full one is filled up with zeros.
func (w *chunked) flush(last bool) {
	if len(w.data) == 0 || w.err != nil {
		return
	}
	binary.LittleEndian.PutUint64(w.data[10:], w.records)
	if !last {
		w.data = append(w.data, make([]byte, w.chunk()-len(w.data))...)
	}
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if !w.begun {
		mode |= os.O_EXCL
	}
	w.begun = true
	f, err := os.OpenFile(w.path, mode, 0o666)
	if err == nil {
		_, err = f.Write(w.data)
		if e := f.Close(); err == nil {
			err = e
		}
	}
	w.err = err
	w.data = w.data[:0]
}

// close ends the file.
func (w *chunked) close() error {
	w.put([]byte{recordEndOfFile}, 0)
	w.flush(true)
	return w.err
}

// definition is a record of the file of definitions.
type definition struct {
	id      uint8
	content *record
}

// define writes definitions, in chunks that hold the longest.
func (w *chunked) define(all []definition) {
	longest := 0
	for i := range all {
		longest = max(longest, all[i].content.Len())
	}
	const head = chunkHeader + 10 // number and length of the record
	for w.size = exportChunk; w.size < head+longest+1 && w.size < mostChunk; w.size *= 2 {
	}
	for i := range all {
		var r record
		r.uint8(all[i].id)
		r.sized(all[i].content.Bytes())
		w.put(r.Bytes(), 1)
	}
}

// sized writes the length of a record and its content.
func (r *record) sized(content []byte) {
	if len(content) < 255 {
		r.uint8(uint8(len(content)))
	} else {
		r.uint8(255).full64(uint64(len(content)))
	}
	r.Write(content)
}

// track writes the events of a location, whose times never decrease.
type track struct {
	chunked
	id     uint64
	time   uint64
	events uint64
	frames []int32 // sites that were entered
	end    int64   // of the last call
	open   bool    // the last call never returned
	region uint64  // of the last call
}

// event writes an event. single is for records of one number, which have no length.
func (t *track) event(id uint8, at int64, single bool, content *record) {
	t.time = max(t.time, uint64(max(at, 0)))
	var all record
	all.uint8(recordTimestamp).full64(t.time).uint8(id)
	if single {
		all.Write(content.Bytes())
	} else {
		all.sized(content.Bytes())
	}
	t.put(all.Bytes(), 1)
	t.events++
}

// number writes an event that is one number.
func (t *track) number(id uint8, at int64, v uint64) { t.event(id, at, true, new(record).uint64(v)) }
