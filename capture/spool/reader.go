package spool

import (
	"fmt"
	"iter"
	"sort"
	"unsafe"
)

// packedSlots are the slots of a packed file: blocks in the order of their slots, and those behind them.
type packedSlots struct {
	blocks []placedBlock
	end    int // number of the slot behind the last block
	rest   []words
}

// blockAt returns the last block that begins at or before a slot, and where its slots end or those of the next block
// begin; -1 and that if there is none.
func (p *packedSlots) blockAt(slot int) (block, end int) {
	next := sort.Search(len(p.blocks), func(i int) bool { return p.blocks[i].First > uint64(slot) })
	end = p.end
	if next < len(p.blocks) {
		end = int(p.blocks[next].First)
	}
	if next == 0 {
		return -1, end
	}
	b := &p.blocks[next-1]
	if last := int(b.First) + int(b.N); slot < last {
		return next - 1, min(end, last)
	}
	return -1, end
}

// pieceSlots is the number of slots that a Reader unpacks at once: few enough to stay in the processor's cache.
const pieceSlots = 256

// Reader reads the slots of a File, a piece at a time if they are packed. A file may have several readers, which
// must not be used at the same time.
type Reader struct {
	f *File

	slots []Call // unpacked, from number first
	first int

	block *placedBlock // whose slots come next; nil: slots that are lost
	until int          // where these end
	left  int          // slots of the block that are not unpacked
	from  unpacker

	asWritten bool // a call that begins a block is not looked for behind it, where it may have returned
}

// NewReader returns a reader of a file.
func NewReader(f *File) *Reader { return &Reader{f: f} }

// From returns the slots from number at on: n or more, fewer only at the end of the file. They must not be written, and
// are good until the next call.
func (r *Reader) From(at, n int) []Call {
	if r.f.packed == nil {
		return r.f.slots[min(at, len(r.f.slots)):]
	}
	n = max(0, min(n, r.f.n-at))
	if at < r.first || at > r.first+len(r.slots) {
		r.seek(at)
	}
	have := r.slots[at-r.first:]
	if len(have) < n {
		if at != r.first { // the slots before are not needed any more
			r.slots, r.first = append(r.slots[:0], have...), at
		}
		for len(r.slots) < n {
			r.more()
		}
		have = r.slots
	}
	rest := max(0, r.f.n-at) // up to where the file is cut
	return have[:min(len(have), rest)]
}

// seek moves to a slot that is not unpacked.
func (r *Reader) seek(at int) {
	here := r.first + len(r.slots)
	if at < r.f.packed.end && (r.block == nil || at < here || at >= r.until) {
		here = r.enter(at)
	}
	for r.block != nil && here < at && at < r.until {
		n := min(pieceSlots, at-here)
		r.slots = append(r.slots[:0], make([]Call, n)...)
		r.unpack(asWords(r.slots))
		here += n
	}
	r.slots, r.first = r.slots[:0], at
}

// enter begins the block that has a slot, and returns the slot with which the block begins.
func (r *Reader) enter(at int) int {
	p := r.f.packed
	i, end := p.blockAt(at)
	r.block, r.until = nil, end
	if i < 0 || p.blocks[i].packed == nil {
		return at
	}
	r.block, r.left = &p.blocks[i], int(p.blocks[i].N)
	r.from.begin(r.block.packed)
	return int(r.block.First)
}

// more unpacks the next piece.
func (r *Reader) more() {
	at := r.first + len(r.slots)
	if end := r.f.packed.end; at >= end {
		r.slots = append(r.slots, calls(r.f.packed.rest[at-end:])...)
		return
	}
	if at >= r.until {
		r.enter(at)
	}
	n := len(r.slots)
	r.slots = append(r.slots, make([]Call, min(pieceSlots, r.until-at))...)
	if r.block == nil {
		return
	}
	r.unpack(asWords(r.slots[n:]))
	if c := &r.slots[n]; !r.asWritten && r.block != nil && at == int(r.block.First) && c.Kind == KindCall && c.T1 == 0 {
		r.slots[n] = r.f.callSince(at, *c)
	}
}

// unpack unpacks the next slots of the block.
func (r *Reader) unpack(slots []words) {
	b := r.block
	r.left -= len(slots)
	if err := r.from.fill(slots, b.Scale, r.left == 0); err != nil {
		if r.f.failed == nil {
			r.f.failed = fmt.Errorf("%s: slots %d to %d: %w", r.f.Name, b.First, b.First+uint64(b.N)-1, err)
		}
		r.block = nil
		clear(slots)
	}
}

// callSince returns the CALL slot that begins a block as it is since the call has returned, if it has. Only a call with
// more slots than a window returns in a later block.
func (f *File) callSince(at int, call Call) Call {
	r := NewReader(f)
	r.asWritten = true // else each block that begins with such a call would look through those behind it
	for i := at + 1; i < f.n; i++ {
		slots := r.From(i, 8) // a definition of a slot's size with its payload
		if slots[0].Kind == KindCall || slots[0].Kind == End {
			return call
		}
		if number, since, ok := returned(slots); ok && number == uint64(at) {
			return since
		}
	}
	return call
}

// All passes the slots with their numbers. Each is good until the next one. Slots that cannot be unpacked are of kind
// End, and Err of the file tells.
func (f *File) All() iter.Seq2[int, *Call] {
	return func(yield func(int, *Call) bool) {
		r := NewReader(f)
		for i := 0; i < f.n; i++ {
			slots := r.From(i, 1)
			for k := range slots {
				if !yield(i+k, &slots[k]) {
					return
				}
			}
			i += len(slots) - 1
		}
	}
}

func calls(slots []words) []Call {
	if len(slots) == 0 {
		return nil
	}
	return unsafe.Slice((*Call)(unsafe.Pointer(&slots[0])), len(slots))
}

func asWords(slots []Call) []words {
	if len(slots) == 0 {
		return nil
	}
	return unsafe.Slice((*words)(unsafe.Pointer(&slots[0])), len(slots))
}
