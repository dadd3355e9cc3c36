package writer

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// The Parquet encodings used for columns, for whole pages at once. arrow-go encodes value by value, which costs more
// than the rest of writing a run (bench/writer.md). Widths of small packed integers are rounded up to 1, 2, 4 bits or
// whole bytes: zstd then sees their pattern, which saves more than the padding costs.

// popcount counts the bits that are set.
func popcount(bitmap []byte) int {
	n := 0
	for len(bitmap) >= 8 {
		n += bits.OnesCount64(binary.LittleEndian.Uint64(bitmap))
		bitmap = bitmap[8:]
	}
	for _, b := range bitmap {
		n += bits.OnesCount8(b)
	}
	return n
}

// runBytes is the least number of equal bytes of levels that are encoded as a run.
const runBytes = 16

// appendLevels appends definition levels of 0 and 1 as in a data page of version 1: their length, then the hybrid of
// runs and bit-packing. rows is the number of bits, set the number of bits that are 1.
func appendLevels(out, bitmap []byte, rows, set int) []byte {
	start := len(out)
	out = append(out, 0, 0, 0, 0)
	switch set {
	case 0:
		out = append(binary.AppendUvarint(out, uint64(rows)<<1), 0)
	case rows:
		out = append(binary.AppendUvarint(out, uint64(rows)<<1), 1)
	default:
		out = appendBitmap(out, bitmap, rows)
	}
	binary.LittleEndian.PutUint32(out[start:], uint32(len(out)-start-4))
	return out
}

func appendBitmap(out, bitmap []byte, rows int) []byte {
	literal, whole := 0, rows/8
	for i := 0; i < whole; {
		j := i + 1
		for j < whole && bitmap[j] == bitmap[i] {
			j++
		}
		if j-i >= runBytes && (bitmap[i] == 0 || bitmap[i] == 0xff) {
			out = appendLiteral(out, bitmap[literal:i])
			out = append(binary.AppendUvarint(out, uint64(j-i)*8<<1), bitmap[i]&1)
			literal = j
		}
		i = j
	}
	return appendLiteral(out, bitmap[literal:(rows+7)/8])
}

// appendLiteral appends groups of 8 bits as they are.
func appendLiteral(out, packed []byte) []byte {
	if len(packed) == 0 {
		return out
	}
	out = binary.AppendUvarint(out, uint64(len(packed))<<1|1)
	return append(out, packed...)
}

// indexWidth returns the number of bits of an index into a dictionary of n entries.
func indexWidth(n int) int {
	w := bits.Len(uint(max(n-1, 0)))
	switch {
	case w <= 2:
		return w
	case w <= 4:
		return 4
	}
	return (w + 7) / 8 * 8
}

// runGroups is the least number of groups of 8 equal indexes that are encoded as a run.
const runGroups = 8

// appendIndexes appends dictionary indexes as in a data page: the width, then the hybrid of runs and packed groups.
func appendIndexes(out []byte, index []uint32, width int) []byte {
	out = append(out, byte(width))
	if width == 0 {
		return binary.AppendUvarint(out, uint64(len(index))<<1)
	}
	literal := 0
	for i := 0; i+8 <= len(index); {
		if !sameEight(index[i : i+8]) {
			i += 8
			continue
		}
		j := i + 8
		for j < len(index) && index[j] == index[i] {
			j++
		}
		if j < len(index) {
			j -= (j - i) % 8
		}
		if j-i >= 8*runGroups {
			out = appendPacked(out, index[literal:i], width)
			out = appendRun(out, index[i], j-i, width)
			literal = j
		}
		i = j
	}
	return appendPacked(out, index[literal:], width)
}

func sameEight(v []uint32) bool {
	_ = v[7]
	return v[0] == v[1] && v[0] == v[2] && v[0] == v[3] && v[0] == v[4] && v[0] == v[5] && v[0] == v[6] && v[0] == v[7]
}

func appendRun(out []byte, value uint32, n, width int) []byte {
	out = binary.AppendUvarint(out, uint64(n)<<1)
	for w := 0; w < width; w += 8 {
		out = append(out, byte(value>>w))
	}
	return out
}

// appendPacked appends indexes as groups of 8, the last one padded with zeros.
func appendPacked(out []byte, index []uint32, width int) []byte {
	if len(index) == 0 {
		return out
	}
	groups := (len(index) + 7) / 8
	out = binary.AppendUvarint(out, uint64(groups)<<1|1)
	at := len(out)
	out = grow(out, groups*width)
	pack := out[at:]
	switch width {
	case 8:
		for i, x := range index {
			pack[i] = byte(x)
		}
	case 16:
		for i, x := range index {
			binary.LittleEndian.PutUint16(pack[2*i:], uint16(x))
		}
	case 1, 2, 4:
		for i, x := range index {
			bit := i * width
			pack[bit/8] |= byte(x << (bit % 8))
		}
	default:
		for i, x := range index {
			for k := range width / 8 {
				pack[i*width/8+k] = byte(x >> (8 * k))
			}
		}
	}
	return out
}

// grow appends n zero bytes.
func grow(b []byte, n int) []byte {
	at := len(b)
	if at+n <= cap(b) {
		b = b[:at+n]
		clear(b[at:])
		return b
	}
	return append(b, make([]byte, n)...)
}

// Sizes of DELTA_BINARY_PACKED that every writer uses.
const (
	deltaBlock = 128
	deltaMinis = 4
	deltaMini  = deltaBlock / deltaMinis
)

// appendDelta appends integers in DELTA_BINARY_PACKED.
func appendDelta(out []byte, v []int64) []byte {
	out = binary.AppendUvarint(out, deltaBlock)
	out = binary.AppendUvarint(out, deltaMinis)
	out = binary.AppendUvarint(out, uint64(len(v)))
	if len(v) == 0 {
		return append(out, 0)
	}
	out = binary.AppendVarint(out, v[0])
	var deltas [deltaBlock]int64
	for i := 1; i < len(v); i += deltaBlock {
		n := min(deltaBlock, len(v)-i)
		least := v[i] - v[i-1]
		for k := range n {
			deltas[k] = v[i+k] - v[i+k-1] // modulo 2^64, as the format requires
			least = min(least, deltas[k])
		}
		for k := n; k < deltaBlock; k++ {
			deltas[k] = least
		}
		out = appendDeltaBlock(out, &deltas, least, n)
	}
	return out
}

func appendDeltaBlock(out []byte, deltas *[deltaBlock]int64, least int64, n int) []byte {
	out = binary.AppendVarint(out, least)
	widths := len(out)
	out = append(out, make([]byte, deltaMinis)...)
	for m := 0; m*deltaMini < n; m++ {
		mini := deltas[m*deltaMini : (m+1)*deltaMini]
		var or uint64
		for k, d := range mini {
			mini[k] = d - least
			or |= uint64(mini[k])
		}
		width := deltaWidth(bits.Len64(or))
		out[widths+m] = byte(width)
		if width%8 == 0 {
			out = appendWords(out, mini, width/8)
		} else {
			out = appendBits(out, mini, width)
		}
	}
	return out
}

// deltaWidth returns the number of bits to pack integers of at most n bits with. Small integers get whole bytes, so
// that zstd sees their pattern; large ones are noise, and rounding up would only add padding (bench/writer.md).
// appendBits can take up to 56.
func deltaWidth(n int) int {
	if n <= 16 || n > 56 {
		return (n + 7) / 8 * 8
	}
	return n
}

// appendBits appends the low bits, at most 56, of 32 integers.
func appendBits(out []byte, v []int64, width int) []byte {
	at := len(out)
	out = grow(out, deltaMini*width/8+8) // the last store may write past the end
	to, held, n := out[at:], uint64(0), 0
	for _, x := range v {
		held |= uint64(x) << n
		n += width
		binary.LittleEndian.PutUint64(to, held)
		to = to[n/8:]
		held >>= n / 8 * 8
		n %= 8
	}
	return out[:at+deltaMini*width/8]
}

// appendWords appends the low bytes of 32 integers.
func appendWords(out []byte, v []int64, width int) []byte {
	if width == 0 {
		return out
	}
	at := len(out)
	out = grow(out, deltaMini*width+8) // the last store may write past the end
	to := out[at:]
	for k, x := range v {
		binary.LittleEndian.PutUint64(to[k*width:], uint64(x))
	}
	return out[:at+deltaMini*width]
}

// appendPlain appends integers of 4 or 8 bytes in the encoding PLAIN.
func appendPlain(out []byte, v []int64, bytes int) []byte {
	for _, x := range v {
		if bytes == 4 {
			out = binary.LittleEndian.AppendUint32(out, uint32(x))
		} else {
			out = binary.LittleEndian.AppendUint64(out, uint64(x))
		}
	}
	return out
}

// dictionary numbers distinct integers in the order in which they appear.
type dictionary struct {
	entries []int64
	slots   []int32 // open addressing: the entry's number + 1; 0 is free
	shift   int
	direct  []uint32 // for a narrow range, by value: the entry's number + 1; 0 is free
}

// reset empties the dictionary.
func (d *dictionary) reset() {
	d.entries = d.entries[:0]
	d.rehash(8)
}

// rehash makes a table of 1<<order slots.
func (d *dictionary) rehash(order int) {
	if cap(d.slots) >= 1<<order {
		d.slots = d.slots[:1<<order]
		clear(d.slots)
	} else {
		d.slots = make([]int32, 1<<order)
	}
	d.shift = 64 - order
	for i, x := range d.entries {
		s := d.hash(x)
		for d.slots[s] != 0 {
			s = (s + 1) & (len(d.slots) - 1)
		}
		d.slots[s] = int32(i + 1)
	}
}

func (d *dictionary) hash(x int64) int { return int(uint64(x) * 0x9e3779b97f4a7c15 >> d.shift) }

// add writes the numbers of the values to index. It stops and returns false when there are more than limit distinct
// values. low and high bound the values.
func (d *dictionary) add(v []int64, low, high int64, index []uint32, limit int) bool {
	if len(v) == 0 {
		return true
	}
	if uint64(high-low) < directRange && len(v) > directRange {
		return d.addDirect(v, low, high, index, limit)
	}
	last, number := v[0], d.number(v[0])
	for i, x := range v {
		if x != last {
			last, number = x, d.number(x)
			if len(d.entries) > limit {
				return false
			}
		}
		index[i] = uint32(number)
	}
	return true
}

// directRange is the largest range of values, and the smallest number of values, for which numbers are looked up in
// an array.
const directRange = 1 << 14

// addDirect does the same as add for a narrow range of values, with an array indexed by value.
func (d *dictionary) addDirect(v []int64, low, high int64, index []uint32, limit int) bool {
	d.direct = slices.Grow(d.direct[:0], directRange)[:high-low+1]
	clear(d.direct)
	for i, x := range v {
		n := d.direct[x-low]
		if n == 0 {
			if len(d.entries) == limit {
				return false
			}
			d.entries = append(d.entries, x)
			n = uint32(len(d.entries))
			d.direct[x-low] = n
		}
		index[i] = n - 1
	}
	return true
}

// number returns the number of x, and assigns one to a new value.
func (d *dictionary) number(x int64) int {
	mask := len(d.slots) - 1
	s := d.hash(x)
	for d.slots[s] != 0 {
		if n := int(d.slots[s]) - 1; d.entries[n] == x {
			return n
		}
		s = (s + 1) & mask
	}
	d.entries = append(d.entries, x)
	d.slots[s] = int32(len(d.entries))
	n := len(d.entries) - 1
	if 2*len(d.entries) > len(d.slots) {
		d.rehash(64 - d.shift + 2)
	}
	return n
}
