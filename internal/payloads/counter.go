// Package payloads counts payloads by their hashes in bounded memory, to find the few among many messages that are
// sent more than once.
package payloads

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"runtime"
	"slices"
	"sync"
)

// Counter counts payloads by their keys, which are hashes, up to MostCounted; it never undercounts. 42 bits of a key
// identify a payload. Keys may come in any order. They are first collected in parts by their highest bits, and
// counted part by part at the end, so that a part fits in the cache. Keys that repeat at once are counted as they
// come, so that a constant payload fills no memory. Beyond mostHeld keys they are counted in a sketch of fixed size.
type Counter struct {
	// recently added keys; the lowest two bits count their repetitions since
	recent [1 << recentBits]uint64
	// keys on their way into parts: one cache line per part, because appending to a part's chunk costs three cache
	// misses
	waiting [1 << partBits][lineKeys]uint32
	waits   [1 << partBits]uint8 // the number of keys in each line of waiting
	parts   [1 << partBits]part
	held    int64 // keys in parts and waiting
	all     int64 // keys that were held before and have been spilled
	limit   int64 // of held
	spilled *sketch

	open    func() (Spill, error)   `snapshot:"-"` // opens a file for keys beyond limit; nil: use the sketch
	file    Spill                   `snapshot:"-"` // nil until it is opened
	written int64                   // bytes written to file
	extents [1 << partBits][]extent // in file, by part
	err     error                   `snapshot:"-"` // the first error of file

	found  int64    // keys of payloads in often, as counted by Finish
	least  int      // the count from which a payload is in often
	often  []uint32 // low bits of payloads that came at least `least` times, by part, sorted in each
	starts []int32  // index into often by a payload's highest bits, with one more entry for the end
	shift  int      // leaves the bits of a payload that index starts
	filter []uint64 // Bloom filter of often by low bits, as most payloads are not in it; nil if most are
}

// MostCounted is the highest count of a Counter.
const MostCounted = 3

const (
	partBits    = 10
	recentBits  = 12
	mostHeld    = 1 << 27 // 512 MiB
	filterShare = 16      // bits of the filter per payload
	leastFilter = 1 << 16 // bits of the smallest filter
	mostFilter  = 1 << 30
	lineKeys    = 16
)

// Spill is a file that is written to and read from.
type Spill interface {
	io.WriterAt
	io.ReaderAt
}

// extent is the place and number of a part's keys in the file.
type extent struct{ at, keys int64 }

// part holds the low 32 bits of payloads, the latest in the last chunk.
type part struct{ chunks [][]uint32 }

const (
	leastChunk = 1 << 4
	mostChunk  = 1 << 12
)

// NewCounter returns a Counter that has counted nothing.
func NewCounter() *Counter { return &Counter{limit: mostHeld} }

// Bound limits the number of keys held in memory, and sets open, which opens a file for the others; they are then
// counted exactly. Without a file they are counted in a sketch. Call it before the first Add.
func (c *Counter) Bound(held int64, open func() (Spill, error)) {
	c.limit, c.open = max(1, min(held, mostHeld)), open
}

// Key returns the hash by which a payload is counted.
func Key(hash, bytes int64) uint64 {
	h := (uint64(hash) ^ bits.RotateLeft64(uint64(bytes)*0x9e3779b97f4a7c15, 29)) * 0xbf58476d1ce4e5b9
	h ^= h >> 31
	return h * 0x94d049bb133111eb
}

// named splits the bits of a key that name its payload.
func named(key uint64) (part uint64, low uint32) {
	return key >> (64 - partBits), uint32(key >> (32 - partBits))
}

// Add counts a payload once more. It must not be called after Finish.
func (c *Counter) Add(key uint64) {
	r := &c.recent[key&(1<<recentBits-1)]
	switch {
	case (*r^key)>>2 != 0 || *r&3 == 0:
		*r = key&^3 | 1
	case *r&3 == MostCounted:
		return
	default:
		*r++
	}
	at, low := named(key)
	n := c.waits[at] % lineKeys
	c.waiting[at][n] = low
	c.waits[at] = n + 1
	c.held++
	if n+1 == lineKeys {
		c.settle(at)
	}
	if c.held >= c.limit {
		c.spill()
	}
}

// settle moves waiting keys into their part.
func (c *Counter) settle(at uint64) {
	p := &c.parts[at]
	n := len(p.chunks) - 1
	if n < 0 || len(p.chunks[n])+lineKeys > cap(p.chunks[n]) {
		p.chunks = append(p.chunks, make([]uint32, 0, min(leastChunk<<min(2*len(p.chunks), 16), mostChunk)))
		n++
	}
	p.chunks[n] = append(p.chunks[n], c.waiting[at][:c.waits[at]]...)
	c.waits[at] = 0
}

// settleAll moves all waiting keys into their parts.
func (c *Counter) settleAll() {
	for at := range c.parts {
		if c.waits[at] > 0 {
			c.settle(uint64(at))
		}
	}
}

// spillOut writes the held keys to the file.
func (c *Counter) spillOut() error {
	if c.file == nil {
		f, err := c.open()
		if err != nil {
			return err
		}
		c.file = f
	}
	c.settleAll()
	var out []byte
	for at := range c.parts {
		out = out[:0]
		for _, chunk := range c.parts[at].chunks {
			for _, low := range chunk {
				out = binary.LittleEndian.AppendUint32(out, low)
			}
		}
		c.parts[at].chunks = nil
		if len(out) == 0 {
			continue
		}
		if _, err := c.file.WriteAt(out, c.written); err != nil {
			return err
		}
		c.extents[at] = append(c.extents[at], extent{c.written, int64(len(out) / 4)})
		c.written += int64(len(out))
	}
	return nil
}

// chunks returns all keys of a part: those in memory and those in the file.
func (c *Counter) chunks(at int) (chunks [][]uint32, err error) {
	chunks = c.parts[at].chunks
	for _, x := range c.extents[at] {
		in := make([]byte, 4*x.keys)
		if _, err := c.file.ReadAt(in, x.at); err != nil {
			return nil, err
		}
		keys := make([]uint32, x.keys)
		for i := range keys {
			keys[i] = binary.LittleEndian.Uint32(in[4*i:])
		}
		chunks = append(chunks, keys)
	}
	return chunks, nil
}

// spill frees memory: it writes the held keys to the file if there is one, and counts them in the sketch otherwise.
func (c *Counter) spill() {
	if c.open != nil {
		if c.err == nil {
			c.err = c.spillOut()
		}
		c.all += c.held
		c.held = 0
		return
	}
	if c.spilled == nil {
		c.spilled = newSketch(c.limit)
	}
	c.settleAll()
	for at := range c.parts {
		p := &c.parts[at]
		for _, chunk := range p.chunks {
			for _, low := range chunk {
				c.spilled.add(uint64(at)<<32 | uint64(low))
			}
		}
		p.chunks = nil
	}
	c.all += c.held
	c.held = 0
}

// Finish counts the collected keys, so that Often knows the payloads that came at least `least` times, at most
// MostCounted. It returns errors of the file.
func (c *Counter) Finish(least int) error {
	c.least = least
	if c.spilled != nil {
		c.spill()
		c.found = c.all
		return nil
	}
	if c.err != nil {
		return fmt.Errorf("spill payloads: %w", c.err)
	}
	c.settleAll()
	var found [1 << partBits][]uint32
	var keys [1 << partBits]int64
	var all sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	errs := make([]error, workers)
	for w := range workers {
		all.Go(func() {
			var s sorter
			for at := w; at < len(c.parts); at += workers {
				chunks, err := c.chunks(at)
				if err != nil {
					errs[w] = fmt.Errorf("read spilled payloads: %w", err)
					return
				}
				found[at], keys[at] = s.often(chunks, least)
				c.parts[at].chunks = nil
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.found = 0
	total := 0
	for at, list := range found {
		c.found += keys[at]
		total += len(list)
	}
	c.often = make([]uint32, 0, total)
	directory := max(partBits, bits.Len(uint(total/bucketSize)))
	c.shift = payloadBits - directory
	c.starts = make([]int32, 1<<directory+1)
	for at, list := range found {
		for _, low := range list {
			c.starts[(uint64(at)<<32|uint64(low))>>c.shift+1]++
		}
		c.often = append(c.often, list...)
		found[at] = nil
	}
	for k := range 1 << directory {
		c.starts[k+1] += c.starts[k]
	}
	if 2*c.found > c.held+c.all {
		return nil
	}
	size := leastFilter
	for size < mostFilter && size < filterShare*len(c.often) {
		size *= 2
	}
	c.filter = make([]uint64, size/64)
	for _, low := range c.often {
		at := int(low) & (size - 1)
		c.filter[at/64] |= 1 << (at % 64)
	}
	return nil
}

// Found returns the number of added keys for which Often is true. Most of those that repeated at once are not
// counted, so it is a lower bound, but it is at least 2 if two were found. If there were too many keys to hold, it
// counts all keys.
func (c *Counter) Found() int64 { return c.found }

// Often reports whether a payload came at least as often as requested in Finish.
func (c *Counter) Often(key uint64) bool {
	part, low := named(key)
	if c.spilled != nil {
		return c.spilled.most(part<<32|uint64(low)) >= c.least
	}
	if at := int(low) & (64*len(c.filter) - 1); c.filter != nil && c.filter[at/64]>>(at%64)&1 == 0 {
		return false
	}
	bucket := (part<<32 | uint64(low)) >> c.shift
	for _, x := range c.often[c.starts[bucket]:c.starts[bucket+1]] {
		if x == low {
			return true
		}
	}
	return false
}

// sorter finds repeated numbers among evenly distributed ones: numbers that share a bit of a map with another are
// sorted, first into buckets by their highest bits.
type sorter struct {
	once, again []uint64 // bits
	few, sorted []uint32
	ends        []int32
}

// bucketSize is the approximate number of different numbers in a bucket; inputs with many more numbers are sorted in
// another way. bitShare is the least number of bits of a map per number.
const (
	bucketSize = 8
	bitShare   = 8
)

// often returns the numbers that come at least `least` times, each once, sorted, and the sum of their counts.
func (s *sorter) often(chunks [][]uint32, least int) (out []uint32, times int64) {
	n := 0
	for _, chunk := range chunks {
		n += len(chunk)
	}
	if n < least {
		return nil, 0
	}
	s.few = slices.Grow(s.few[:0], n)
	if least < 2 {
		s.few = slices.Concat(chunks...)
	} else {
		s.repeated(chunks, n)
	}
	s.sort()
	n = len(s.sorted)
	for i := 0; i < n; {
		j := i + 1
		for j < n && s.sorted[j] == s.sorted[i] {
			j++
		}
		if j-i >= least {
			out, times = append(out, s.sorted[i]), times+int64(j-i)
		}
		i = j
	}
	return out, times
}

// repeated collects in few the numbers that may be repeated: all repeated ones, and some that share a bit with
// others.
func (s *sorter) repeated(chunks [][]uint32, n int) {
	words := 1 << bits.Len(uint(bitShare*n/64))
	mask := uint32(words - 1)
	s.once, s.again = slices.Grow(s.once[:0], words)[:words], slices.Grow(s.again[:0], words)[:words]
	clear(s.once)
	clear(s.again)
	for _, chunk := range chunks {
		for _, x := range chunk {
			w, bit := x>>6&mask, uint64(1)<<(x&63)
			seen := s.once[w]
			s.again[w] |= seen & bit
			s.once[w] = seen | bit
		}
	}
	k, few := 0, s.few[:n]
	for _, chunk := range chunks {
		for _, x := range chunk {
			few[k] = x
			k += int(s.again[x>>6&mask] >> (x & 63) & 1) // without a branch
		}
	}
	s.few = few[:k]
}

// sort sorts few.
func (s *sorter) sort() {
	n := len(s.few)
	width := bits.Len(uint(n / bucketSize))
	s.ends = slices.Grow(s.ends[:0], 1<<width+1)[:1<<width+1]
	clear(s.ends)
	for _, x := range s.few {
		s.ends[uint64(x)>>(32-width)+1]++
	}
	for b := range 1 << width {
		s.ends[b+1] += s.ends[b]
	}
	s.sorted = slices.Grow(s.sorted[:0], n)[:n]
	for _, x := range s.few {
		at := &s.ends[uint64(x)>>(32-width)]
		s.sorted[*at] = x
		*at++
	}
	begin := int32(0)
	for _, end := range s.ends[:1<<width] {
		sortFew(s.sorted[begin:end])
		begin = end
	}
}

// sortFew sorts a few numbers.
func sortFew(v []uint32) {
	if len(v) > 8*bucketSize {
		slices.Sort(v)
		return
	}
	for i := 1; i < len(v); i++ {
		x, k := v[i], i
		for ; k > 0 && v[k-1] > x; k-- {
			v[k] = v[k-1]
		}
		v[k] = x
	}
}

// sketch counts payloads up to MostCounted in bounded memory; it never undercounts. A payload has two counters of 2
// bits in one line of 64 bytes. Payloads of one part are close together.
type sketch struct {
	lines [][8]uint64
	shift int // leaves the bits of a payload that index its line
}

const (
	countersPerMessage = 16
	leastLines         = 1 << 6
	mostLines          = 1 << 23 // 512 MiB
	payloadBits        = partBits + 32
)

// newSketch returns a sketch for more than the given number of messages.
func newSketch(messages int64) *sketch {
	lines := int64(leastLines)
	for lines < mostLines && lines*256 < messages*countersPerMessage {
		lines *= 2
	}
	return &sketch{make([][8]uint64, lines), payloadBits - bits.Len(uint(lines-1))}
}

// counters returns the two counters of a payload: the line, and the word and shift of each.
func (s *sketch) counters(payload uint64) (line *[8]uint64, words, shifts [2]uint) {
	return &s.lines[payload>>s.shift], [2]uint{uint(payload & 3), 4 + uint(payload>>2&3)},
		[2]uint{uint(payload>>4&31) * 2, uint(payload>>9&31) * 2}
}

func (s *sketch) add(payload uint64) {
	line, words, shifts := s.counters(payload)
	for k, w := range words {
		if line[w]>>shifts[k]&3 < MostCounted {
			line[w] += 1 << shifts[k]
		}
	}
}

// most returns an upper bound of a payload's count, up to MostCounted.
func (s *sketch) most(payload uint64) int {
	line, words, shifts := s.counters(payload)
	return int(min(line[words[0]]>>shifts[0]&3, line[words[1]]>>shifts[1]&3))
}
