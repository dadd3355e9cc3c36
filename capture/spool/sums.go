package spool

import (
	"hash/crc32"
	"unsafe"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// SumGap is a flag of SUM slots: no SUM slot covers the slots between the end of the last one and From.
const SumGap = 1

// Damage is a stretch of slots that are not what was recorded: their checksum does not fit, or it is lost.
type Damage struct {
	// First and End are numbers of slots, from 0 behind the header; End is behind the last one.
	First, End int
}

// Damaged returns the damaged stretches of the file, in order. It does not see damage in slots that no SUM slot covers:
// the last ones of a process that was killed, and all of a file without sums.
func (f *File) Damaged() []Damage {
	if f.packed != nil || f.Header.Sums == 0 && !f.Doubtful {
		return f.damaged
	}
	c := coverage{slots: f.slots}
	for at := range f.slots {
		if f.slots[at].Kind == KindSum {
			c.add(f.slots[at].AsSum(), at)
		}
	}
	if c.broken >= c.next && c.broken > 0 { // the last SUM slot, after which no other tells what it covered
		c.damage(c.next, c.broken+1)
	}
	if h := &f.Header; h.Check != 0 && !f.Doubtful {
		end := int(min(h.Summed, uint64(f.n)))
		if there := uint64(f.n); h.Packed == 0 && h.Dropped == 0 && h.Slots > there { // the file was cut short
			end = int(min(h.Slots, maxSlots))
		}
		c.damage(c.next, end)
	}
	return c.damaged
}

// coverage follows the SUM slots of a file.
type coverage struct {
	slots   []Call
	next    int    // the first slot that none has covered so far
	number  uint32 // of the next SUM slot
	broken  int    // the last SUM slot that is itself damaged
	damaged []Damage
}

// add adds the SUM slot at a place in the file.
func (c *coverage) add(s *Sum, at int) {
	if !s.intact() || s.From > uint64(at) || s.N > uint64(at)-s.From || int(s.From) < c.next {
		c.broken = at
		return
	}
	from, end := int(s.From), int(s.From+s.N)
	if s.Number != c.number || s.Flags&SumGap == 0 {
		c.damage(c.next, from)
	}
	if SumSlots(c.slots[from:end]) != s.CRC {
		c.damage(from, end)
	}
	c.next, c.number = end, s.Number+1
}

func (c *coverage) damage(first, end int) {
	if first < end {
		c.damaged = append(c.damaged, Damage{first, end})
	}
}

// intact reports whether the slot itself is as it was written.
func (s *Sum) intact() bool {
	copied := *s
	copied.Kind = KindSum
	return s.Check == copied.sum()
}

func (s *Sum) sum() uint32 {
	return crc32.Checksum(unsafe.Slice((*byte)(unsafe.Pointer(s)), unsafe.Offsetof(s.Check)), castagnoli)
}

// Seal sets the slot's own checksum.
func (s *Sum) Seal() {
	s.Kind = KindSum
	s.Check = s.sum()
}

// SumSlots returns the checksums of slots: of the first third, the second, and the others.
func SumSlots(slots []Call) (crc [3]uint32) {
	lane := len(slots) / 3
	for i, part := range [][]Call{slots[:lane], slots[lane : 2*lane], slots[2*lane:]} {
		crc[i] = crc32.Checksum(bytesOf(part), castagnoli)
	}
	return crc
}

func bytesOf(slots []Call) []byte {
	if len(slots) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&slots[0])), len(slots)*SlotBytes)
}

// fits reports whether the header is as the process left it. A header without a checksum fits: the process was killed.
func (h *Header) fits() bool { return h.Check == 0 || h.Check == h.sum() }

func (h *Header) sum() uint32 {
	copied := *h
	copied.Check = 0
	return max(1, crc32.Checksum(unsafe.Slice((*byte)(unsafe.Pointer(&copied)), HeaderBytes), castagnoli))
}

// Seal sets the header's checksum: the file is complete.
func (h *Header) Seal() { h.Check = h.sum() }
