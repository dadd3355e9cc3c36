package dumpi

import (
	"fmt"
	"os"

	"github.com/commq/commq/formats/calls"
	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/schema"
)

// Bits of the mask of a record: what it has besides the parameters.
const (
	hasStatuses = 3
	hasCPUTimes = 1 << 2
	hasTimes    = 1 << 3
	hasThread   = 1 << 6
	hasCounters = 1 << 7
)

// record is a record of a rank.
type record struct {
	at         int64 // byte where it begins
	function   int   // index of functions
	thread     int32
	start, end int64 // ns
	values     [fieldCount]int64
	arrays     [fieldCount][]int64
	ranges     [][]int64
	name       string
	statuses   []calls.Status
}

// records reads the records of a file in their order.
type records struct {
	*file
	in    *os.File
	cur   *cursor
	base  int64   // ns that are subtracted from all times
	turns int64   // ns that the turns before make up
	last  int64   // end of the last record
	done  []int64 // by thread: end of the last call
}

// open opens the records of a file; their times become ns since base seconds.
func (f *file) open(base int64) (*records, error) {
	in, _, err := bounded.OpenRegular(f.path)
	if err != nil {
		return nil, err
	}
	return &records{file: f, in: in, cur: newCursor(in, f.body, f.end, 1<<15), base: base,
		last: -1 << 62}, nil
}

// next reads the next record; false after the last.
func (r *records) next(x *record) (bool, error) {
	c := r.cur
	for {
		x.at = c.at
		n := int(c.uint16())
		if c.err == nil && n == endOfStream {
			return false, nil
		}
		if c.err == nil && n != functionEnter && n != functionExit && (n >= allFunctions || functions[n].none) {
			c.fail("function %d; want one below %d, or the end %d", n, allFunctions, endOfStream)
		}
		x.function = n
		if c.err == nil {
			r.read(x)
		}
		if c.err != nil {
			return false, fmt.Errorf("%s: byte %d: %w", r.path, x.at, c.err)
		}
		if n < allFunctions {
			return true, nil
		}
	}
}

// read reads a record after its number.
func (r *records) read(x *record) {
	c := r.cur
	mask := c.uint8()
	x.thread = 0
	if mask&hasThread != 0 {
		x.thread = int32(c.uint16())
	}
	if c.err == nil && x.thread >= schema.MaxThreads {
		c.fail("thread %d; want one below %d", x.thread, schema.MaxThreads)
		return
	}
	if mask&hasCPUTimes != 0 {
		c.skip(12)
	}
	if mask&hasTimes == 0 {
		c.fail("the record has no times of the wall clock; trace again with timestamp wall")
		return
	}
	r.times(x)
	if mask&hasCounters != 0 {
		c.skip(16 * int64(c.uint8()))
	}
	if x.function >= allFunctions {
		c.int64() // the address of a function of the program
		return
	}
	x.statuses = x.statuses[:0]
	for _, p := range functions[x.function].parts {
		if p.atRoot && x.values[fRoot] != x.values[fCommrank] {
			if p.field != unused {
				x.values[p.field], x.arrays[p.field] = 0, nil
			}
			continue
		}
		r.part(x, p, mask)
	}
}

// turn is the time after which the seconds of a time, which have 16 bits, begin again.
const turn = int64(1<<16) * 1e9

// mostBack is the most in ns that a clock is taken to be set back.
const mostBack = 60e9

// times reads the times of a record. The records of all threads are in the order in which their calls ended, so an end
// that is before the last one by far is after a turn; so is one before its start. Pauses of more than a turn the file
// does not tell.
func (r *records) times(x *record) {
	start, end := r.seconds()+r.turns, r.seconds()+r.turns
	if end < r.last-mostBack {
		r.turns += turn
		start, end = start+turn, end+turn
	}
	if start > end+mostBack {
		start -= turn
	}
	r.last = end
	for int(x.thread) >= len(r.done) {
		r.done = append(r.done, -1<<62)
	}
	// A call of a thread begins after the one before it, whatever a clock that was set back says.
	shift := r.wallBase*1e9 - r.base
	x.start = max(start+shift, r.done[x.thread])
	x.end = max(end+shift, x.start)
	r.done[x.thread] = x.end
}

// seconds reads a time in ns as it is in the file.
func (r *records) seconds() int64 { return int64(r.cur.uint16())*1e9 + int64(r.cur.uint32()) }

// part reads a parameter.
func (r *records) part(x *record, p part, mask uint8) {
	c := r.cur
	switch p.kind {
	case 'b', 'h', 'i', 'l':
		v := c.number(p.kind)
		if p.field == fOldcommrank {
			x.values[fCommrank] = v
		}
		x.values[p.field] = v
	case 's':
		if mask&hasStatuses != 0 {
			r.readStatuses(x)
		}
	case 'C':
		x.name = c.text(c.length(1))
	case 'I', 'H':
		x.arrays[p.field] = c.array(p.kind)
	case 'J':
		x.ranges = x.ranges[:0]
		for range c.length(4) {
			x.ranges = append(x.ranges, c.array('I'))
		}
	case 'D':
		c.skipTexts()
	case 'E':
		for range c.length(4) {
			c.skipTexts()
		}
	default:
		r.byVersion(x)
	}
}

// number reads a number of a kind.
func (c *cursor) number(kind byte) int64 {
	switch kind {
	case 'b':
		return c.int8()
	case 'h':
		return c.int16()
	case 'i':
		return c.int32()
	}
	return c.int64()
}

// array reads an array of 32 or 16 bits an element.
func (c *cursor) array(kind byte) []int64 {
	each := map[byte]byte{'I': 'i', 'H': 'h'}[kind]
	size := int64(4)
	if each == 'h' {
		size = 2
	}
	all := make([]int64, c.length(size))
	for i := range all {
		all[i] = c.number(each)
	}
	return all
}

func (c *cursor) skipTexts() {
	for range c.length(4) {
		c.skip(int64(c.length(1)))
	}
}

// byVersion reads what earlier versions wrote in another way.
func (r *records) byVersion(x *record) {
	c := r.cur
	switch name := functions[x.function].name; {
	case name == "MPI_Init":
		n := c.length(4)
		if !r.since(2) {
			c.int32() // the same number again
		}
		for range n {
			c.skip(int64(c.length(1)))
		}
	case name == "MPI_Type_struct" && r.since(9), name == "MPI_Cart_get" && r.since(8):
		c.array('I')
	default:
		c.int32()
	}
}

// readStatuses reads the statuses of a record.
func (r *records) readStatuses(x *record) {
	c := r.cur
	tagged := r.since(3)
	for range c.length(10) {
		s := calls.Status{Bytes: c.int32(), Source: c.int32(), Cancelled: c.int8() != 0}
		c.int8() // error
		s.Tag = calls.AnyTag
		if tagged {
			s.Tag = c.int32()
		}
		if c.err != nil {
			return
		}
		x.statuses = append(x.statuses, s)
	}
}

// call returns the call of a record, 0 if it is none that commq records.
func (x *record) call() schema.CallID {
	f := &functions[x.function]
	if f.call == 0 || schema.Calls[f.call].Recorder == "" {
		return 0
	}
	return f.call
}
