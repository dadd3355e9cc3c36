package replay

import "slices"

// alignment of what is received, in bytes.
const alignment = 64

// area gives out pieces of a rank's receive area, so that no two that are open at a time overlap.
type area struct {
	free []piece // ascending, none touching another
	end  int64   // what was ever given out
}

// piece is a part of the area.
type piece struct{ at, bytes int64 }

// take is the offset of a piece of at least so many bytes: the first that fits.
func (a *area) take(bytes int64) piece {
	bytes = max((bytes+alignment-1)/alignment*alignment, alignment)
	for i, p := range a.free {
		if p.bytes < bytes {
			continue
		}
		if p.bytes == bytes {
			a.free = slices.Delete(a.free, i, i+1)
		} else {
			a.free[i] = piece{p.at + bytes, p.bytes - bytes}
		}
		return piece{p.at, bytes}
	}
	if n := len(a.free); n > 0 && a.free[n-1].at+a.free[n-1].bytes == a.end { // the last one grows
		p := piece{a.free[n-1].at, bytes}
		a.free = a.free[:n-1]
		a.end = p.at + bytes
		return p
	}
	p := piece{a.end, bytes}
	a.end += bytes
	return p
}

// give takes a piece back.
func (a *area) give(p piece) {
	if p.bytes == 0 {
		return
	}
	i, _ := slices.BinarySearchFunc(a.free, p.at, func(q piece, at int64) int { return int(max(min(q.at-at, 1), -1)) })
	a.free = slices.Insert(a.free, i, p)
	if i+1 < len(a.free) && a.free[i].at+a.free[i].bytes == a.free[i+1].at {
		a.free[i].bytes += a.free[i+1].bytes
		a.free = slices.Delete(a.free, i+1, i+2)
	}
	if i > 0 && a.free[i-1].at+a.free[i-1].bytes == a.free[i].at {
		a.free[i-1].bytes += a.free[i].bytes
		a.free = slices.Delete(a.free, i, i+1)
	}
}
