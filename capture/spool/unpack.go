package spool

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// unpacker undoes what capture/shim/src/pack.c does: it predicts a slot from the last one with the same key, and adds
// what the packed bytes hold.
type unpacker struct {
	last     [256]words
	returned uint64 // when the last call did
	in       []byte
}

// words are a slot as numbers.
type words [SlotBytes / 8]uint64

// ofCalls is set in the keys of calls.
const ofCalls = 0x80

var errPacked = errors.New("the packed bytes are not those of so many slots")

// unpack fills slots from the packed bytes of a block.
func unpack(slots []words, packed []byte, scale uint32) error {
	u := unpacker{in: packed}
	return u.fill(slots, scale, true)
}

// fill unpacks the next slots; end tells that they are the last ones of the block.
func (u *unpacker) fill(slots []words, scale uint32, end bool) error {
	for i := range slots {
		if err := u.next(&slots[i], scale); err != nil {
			return err
		}
	}
	if end && len(u.in) > 3 {
		return errPacked
	}
	return nil
}

// next unpacks one slot.
func (u *unpacker) next(slot *words, scale uint32) error {
	if len(u.in) < 2 {
		return errPacked
	}
	key, mask := u.in[0], u.in[1]
	u.in = u.in[2:]
	last := &u.last[key]
	*slot = *last
	if key&ofCalls == 0 {
		if err := u.add(slot, mask); err != nil {
			return err
		}
		*last = *slot
		return nil
	}
	compute, err := u.number()
	if err != nil {
		return err
	}
	slot[0] &= 1<<32 - 1
	slot[1] = u.returned
	slot[2] = 0
	if err := u.add(slot, mask); err != nil {
		return err
	}
	slot[2] += slot[1] // after the call's entry
	slot[0] = slot[0]&(1<<32-1) | uint64(uint32(signed(compute))+uint32((slot[1]-u.returned)*uint64(scale)>>20))<<32
	*last = *slot
	if u.returned = slot[2]; u.returned == 0 {
		u.returned = slot[1]
	}
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
