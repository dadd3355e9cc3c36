package ledger

import "encoding/binary"

// Series is a growing list of numbers, kept as bytes: equal steps between numbers, such as those of the rows of a loop,
// take three bytes or so together, others two or so each.
type Series struct {
	n, first, last int64
	steps          []byte // how many equal steps, and their size, as variable-length integers
	step, times    int64  // steps that are not in there yet
}

// Add appends a number, and returns the number of bytes that this took.
func (s *Series) Add(v int64) (bytes int) {
	step := v - s.last
	switch {
	case s.n == 0:
		s.first = v
	case step == s.step && s.times > 0:
		s.times++
	default:
		before := len(s.steps)
		s.flush()
		s.step, s.times = step, 1
		bytes = len(s.steps) - before
	}
	s.n, s.last = s.n+1, v
	return bytes
}

// flush writes the steps that were held back.
func (s *Series) flush() {
	if s.times > 0 {
		s.steps = binary.AppendVarint(binary.AppendUvarint(s.steps, uint64(s.times)), s.step)
		s.times = 0
	}
}

// Len returns the number of numbers.
func (s *Series) Len() int64 { return s.n }

// Compares reports whether every number n of a series compares to number n+shift of another, if there is one, as want
// says: -1 if it is less, 0 if it is equal.
func (s *Series) Compares(other *Series, shift int64, want int) bool {
	if shift >= other.n {
		return true
	}
	a, b := s.Cursor(), other.Cursor()
	for range shift {
		b.Pass()
	}
	for left := min(s.n, other.n-shift) - 1; ; {
		if d := a.value - b.value; want == 0 && d != 0 || want < 0 && d >= 0 {
			return false
		}
		if left <= 0 {
			return true
		}
		n := min(left, a.equal(), b.equal()) // the difference is linear
		a.skip(n)
		b.skip(n)
		left -= n
	}
}

// Cursor visits the numbers of a series in order. The series must not grow meanwhile.
type Cursor struct {
	value, left int64 // left: numbers from this one on
	steps       []byte
	step, times int64 // equal steps that follow
}

// Cursor returns a cursor at the first number.
func (s *Series) Cursor() Cursor {
	s.flush()
	return Cursor{value: s.first, left: s.n, steps: s.steps}
}

// Next returns the number at the cursor; ok is false at the end.
func (c *Cursor) Next() (v int64, ok bool) { return c.value, c.left > 0 }

// Pass moves the cursor on.
func (c *Cursor) Pass() {
	if c.left > 1 {
		c.equal()
		c.skip(1)
		return
	}
	c.left = 0
}

// equal returns the number of equal steps that follow, at least one.
func (c *Cursor) equal() int64 {
	if c.times == 0 {
		times, n := binary.Uvarint(c.steps)
		step, m := binary.Varint(c.steps[n:])
		c.times, c.step, c.steps = int64(times), step, c.steps[n+m:]
	}
	return c.times
}

// skip advances by n of the equal steps.
func (c *Cursor) skip(n int64) {
	c.value += n * c.step
	c.times -= n
	c.left -= n
}

// Stream is the messages of a cell from one rank to another.
type Stream struct {
	Cell
	Way
}

// Rows has the rows of one message per repetition of a stream, always the one at the same place.
type Rows struct {
	Send, Post, Done Series
	RecvSite         int32
	PostIsDone       bool // of every message
}

// Outline has the rows of all messages of a stream. Each repetition has len(Places) messages.
type Outline struct {
	Places []Rows
	next   int
}

// Add adds the rows of the next message, and returns their size in bytes. ok is false if the message is received in
// another way than those at the same place before it.
func (o *Outline) Add(send, post, done int64, recvSite int32) (bytes int64, ok bool) {
	r := &o.Places[o.next]
	if o.next++; o.next == len(o.Places) {
		o.next = 0
	}
	if r.Send.n == 0 {
		r.RecvSite, r.PostIsDone = recvSite, post == done
	}
	if r.RecvSite != recvSite || r.PostIsDone != (post == done) {
		return 0, false
	}
	n := r.Send.Add(send) + r.Done.Add(done)
	if !r.PostIsDone {
		n += r.Post.Add(post)
	}
	return int64(n), true
}
