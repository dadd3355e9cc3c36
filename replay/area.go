package replay

import "slices"

// alignment of received data, in bytes.
const alignment = 64

// area allocates pieces of a rank's receive area, so that no two pieces that are in use at the same time overlap.
type area struct {
	free []piece // ascending, no two adjacent
	end  int64   // highest offset ever allocated, in bytes
}

// piece is a part of the area: bytes from an offset.
type piece struct{ offset, bytes int64 }

// allocate returns the first free piece of at least this many bytes.
func (a *area) allocate(bytes int64) piece {
	bytes = max((bytes+alignment-1)/alignment*alignment, alignment)
	for i, p := range a.free {
		if p.bytes < bytes {
			continue
		}
		if p.bytes == bytes {
			a.free = slices.Delete(a.free, i, i+1)
		} else {
			a.free[i] = piece{p.offset + bytes, p.bytes - bytes}
		}
		return piece{p.offset, bytes}
	}
	if n := len(a.free); n > 0 && a.free[n-1].offset+a.free[n-1].bytes == a.end { // the last piece grows
		p := piece{a.free[n-1].offset, bytes}
		a.free = a.free[:n-1]
		a.end = p.offset + bytes
		return p
	}
	p := piece{a.end, bytes}
	a.end += bytes
	return p
}

// release makes a piece free again.
func (a *area) release(p piece) {
	if p.bytes == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(a.free, p.offset,
		func(q piece, offset int64) int { return int(max(min(q.offset-offset, 1), -1)) })
	a.free = slices.Insert(a.free, i, p)
	if i+1 < len(a.free) && a.free[i].offset+a.free[i].bytes == a.free[i+1].offset {
		a.free[i].bytes += a.free[i+1].bytes
		a.free = slices.Delete(a.free, i+1, i+2)
	}
	if i > 0 && a.free[i-1].offset+a.free[i-1].bytes == a.free[i].offset {
		a.free[i-1].bytes += a.free[i].bytes
		a.free = slices.Delete(a.free, i, i+1)
	}
}
