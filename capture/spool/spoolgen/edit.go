package spoolgen

import (
	"unsafe"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/internal/mutate"
)

// fields are the offsets and sizes of what slots hold; most are at the same place in several kinds.
var fields = [][2]int{{0, 2}, {2, 1}, {3, 1}, {4, 4}, {8, 8}, {16, 8}, {24, 4}, {28, 4}, {32, 4}, {36, 4}, {40, 8},
	{48, 8}, {56, 4}, {60, 4}}

// extremes are values at which readers go wrong.
var extremes = []int64{0, 1, -1, 2, 5, 9, 255, 1 << 16, 1<<31 - 1, -1 << 31, 1 << 32, 1<<62 - 1, -1 << 63, 1<<63 - 1}

// Edit changes a spool file: a field of a slot gets an extreme value or that of another slot, a slot is left out,
// repeated or moved, or a field of the header is changed. The checksums are right afterwards.
func Edit(data, edits []byte) []byte {
	for n := 0; len(edits) >= 5 && n < 16; n, edits = n+1, edits[5:] {
		slots := (len(data) - spool.HeaderBytes) / spool.SlotBytes
		if slots < 2 {
			break
		}
		at := func(i byte) []byte {
			return data[spool.HeaderBytes+int(i)%slots*spool.SlotBytes:][:spool.SlotBytes]
		}
		slot, other, field := at(edits[0]), at(edits[1]), fields[int(edits[3])%len(fields)]
		value := extremes[int(edits[4])%len(extremes)]
		switch edits[2] % 7 {
		case 0:
			copy(slot[field[0]:][:field[1]], unsafe.Slice((*byte)(unsafe.Pointer(&value)), 8))
		case 1:
			copy(slot[field[0]:][:field[1]], other[field[0]:])
		case 2:
			copy(slot, other)
		case 3:
			first := spool.HeaderBytes + int(edits[0])%slots*spool.SlotBytes
			data = append(data[:first], data[first+spool.SlotBytes:]...)
		case 4:
			slot[field[0]]++
		case 5: // a byte of a definition's text or of its lists
			slot[edits[3]%spool.SlotBytes] = edits[4]
		case 6:
			h := (*spool.Header)(unsafe.Pointer(&data[0]))
			form := *h
			mutate.Value(h, edits[:4])
			h.Magic, h.HeaderBytes, h.SlotBytes, h.Version = form.Magic, form.HeaderBytes, form.SlotBytes, form.Version
		}
	}
	seal(data)
	return data
}

// seal sets the checksums of the slots and of the header, if the file has any.
func seal(data []byte) {
	h := (*spool.Header)(unsafe.Pointer(&data[0]))
	n := (len(data) - spool.HeaderBytes) / spool.SlotBytes
	if h.Sums == 0 || n == 0 {
		return
	}
	slots := unsafe.Slice((*spool.Call)(unsafe.Pointer(&data[spool.HeaderBytes])), n)
	for i := range slots {
		s := slots[i].AsSum()
		if slots[i].Kind == spool.KindSum && s.From <= uint64(i) && s.N <= uint64(i)-s.From {
			s.CRC = spool.SumSlots(slots[s.From : s.From+s.N])
			s.Seal()
		}
	}
	if h.Check != 0 {
		h.Seal()
	}
}
