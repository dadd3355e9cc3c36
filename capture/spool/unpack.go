package spool

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// unpacker undoes what capture/shim/src/pack.c does: it predicts a slot from the last one in the same context, and adds
// what the packed bytes hold.
type unpacker struct {
	places   [1 << contextBits]uint16 // of the last slot in each context among last, plus 1
	next     [1 << contextBits]uint16 // the key of the slot that came after it
	last     []words
	returned uint64 // when the last call did
	context  uint32 // of the last slot
	key      uint16 // of the last slot
	callKey  uint16 // of the last call
	in       []byte
}

// words are a slot as numbers.
type words [SlotBytes / 8]uint64

const (
	contextBits = 11
	// ofCalls is set in the keys of calls.
	ofCalls = 0x8000
)

var errPacked = errors.New("the packed bytes are not those of so many slots")

// unpack fills slots from the packed bytes of a block.
func unpack(slots []words, packed []byte, scale uint32) error {
	u := unpacker{in: packed}
	return u.fill(slots, scale, true)
}

// begin begins with the packed bytes of another block.
func (u *unpacker) begin(packed []byte) { *u = unpacker{in: packed, last: u.last[:0]} }

// fill unpacks the next slots; end tells that they are the last ones of the block.
func (u *unpacker) fill(slots []words, scale uint32, end bool) error {
	for i := range slots {
		if err := u.unpack(&slots[i], scale); err != nil {
			return err
		}
	}
	if end && len(u.in) > 3 {
		return errPacked
	}
	return nil
}

// unpack unpacks one slot.
func (u *unpacker) unpack(slot *words, scale uint32) error {
	header, err := u.number()
	if err != nil {
		return err
	}
	key, before := u.next[u.context], u.context
	if header&1 != 0 {
		if len(u.in) < 2 {
			return errPacked
		}
		key, u.in = binary.LittleEndian.Uint16(u.in), u.in[2:]
	}
	u.context = (uint32(key) ^ uint32(u.callKey)*40503) * 2654435761 >> (32 - contextBits)
	last := u.lastOf(u.context)
	*slot = *last
	mask := uint8(header >> 1)
	if key&ofCalls == 0 {
		if err := u.add(slot, mask); err != nil {
			return err
		}
	} else if err := u.unpackCall(slot, mask, key, scale); err != nil {
		return err
	}
	*last = *slot
	u.next[before], u.key = key, key
	return nil
}

// lastOf returns the last slot in a context.
func (u *unpacker) lastOf(context uint32) *words {
	if u.places[context] == 0 {
		u.last = append(u.last, words{})
		u.places[context] = uint16(len(u.last))
	}
	return &u.last[u.places[context]-1]
}

// unpackCall unpacks the slot of a call from the last one; ordered tells which words differ.
func (u *unpacker) unpackCall(slot *words, ordered uint8, key uint16, scale uint32) error {
	compute, err := u.number()
	if err != nil {
		return err
	}
	slot[0] &= 1<<32 - 1
	slot[1] = u.returned
	slot[2] = 0
	mask := (ordered&1 | ordered>>1&0x1f<<3 | ordered>>6<<1) ^ 6 // the two times have the highest bits, and usually differ
	if err := u.add(slot, mask); err != nil {
		return err
	}
	slot[2] += slot[1] // after the call's entry
	slot[0] = slot[0]&(1<<32-1) | uint64(uint32(signed(compute))+uint32((slot[1]-u.returned)*uint64(scale)>>20))<<32
	if u.returned = slot[2]; u.returned == 0 {
		u.returned = slot[1]
	}
	u.callKey = key
	return nil
}

// add adds the differences of the words in the mask.
func (u *unpacker) add(slot *words, mask byte) error {
	for ; mask != 0; mask &= mask - 1 {
		x, err := u.number()
		if err != nil {
			return err
		}
		slot[bits.TrailingZeros8(mask)] += signed(x)
	}
	return nil
}

// number reads a number: its first byte tells by its lowest set bit how many bytes it has.
func (u *unpacker) number() (uint64, error) {
	if len(u.in) == 0 {
		return 0, errPacked
	}
	n := bits.TrailingZeros8(u.in[0]) + 1 // 9: eight bytes follow
	if n > len(u.in) {
		return 0, errPacked
	}
	var x uint64
	switch {
	case n > 8:
		x = binary.LittleEndian.Uint64(u.in[1:])
	case len(u.in) >= 8:
		x = binary.LittleEndian.Uint64(u.in) & (1<<(8*n) - 1) >> n
	default:
		var eight [8]byte
		copy(eight[:], u.in[:n])
		x = binary.LittleEndian.Uint64(eight[:]) >> n
	}
	u.in = u.in[n:]
	return x, nil
}

// signed is the difference that a number stands for, in two's complement.
func signed(x uint64) uint64 { return x>>1 ^ -(x & 1) }
