package ledger

// Series is a growing list of numbers, kept as pieces with equal steps: rows of a loop's messages take little room.
type Series struct {
	n      int64
	next   int64 // what continues the last piece
	pieces []piece
}

// piece is numbers with equal steps.
type piece struct{ from, first, step int64 } // from: the index of the first

// Add appends a number. It reports whether that took a new piece.
func (s *Series) Add(v int64) bool {
	if v == s.next && s.n > 0 {
		s.n++
		s.next += s.pieces[len(s.pieces)-1].step
		return false
	}
	if k := len(s.pieces); k > 0 && s.n == s.pieces[k-1].from+1 {
		p := &s.pieces[k-1]
		p.step = v - p.first
		s.n, s.next = s.n+1, v+p.step
		return false
	}
	s.pieces = append(s.pieces, piece{from: s.n, first: v})
	s.n, s.next = s.n+1, v
	return true
}

// Len returns the number of numbers.
func (s *Series) Len() int64 { return s.n }

// end returns the index after the last number of a piece.
func (s *Series) end(k int) int64 {
	if k+1 < len(s.pieces) {
		return s.pieces[k+1].from
	}
	return s.n
}

func (p piece) at(n int64) int64 { return p.first + (n-p.from)*p.step }

// Compares reports whether every number n of a compares to number n+shift of b, if there is one, as want says: -1 if
// it is less, 0 if it is equal.
func (s *Series) Compares(b *Series, shift int64, want int) bool {
	j := 0
	for k, p := range s.pieces {
		for lo, end := p.from, min(s.end(k), b.n-shift); lo < end; {
			for b.end(j) <= lo+shift {
				j++
			}
			hi := min(end, b.end(j)-shift) // the difference is linear up to here
			for _, n := range [2]int64{lo, hi - 1} {
				if d := p.at(n) - b.pieces[j].at(n+shift); want == 0 && d != 0 || want < 0 && d >= 0 {
					return false
				}
			}
			lo = hi
		}
	}
	return true
}

// Cursor visits the numbers of a series in order.
type Cursor struct {
	Of   *Series
	n    int64
	part int
}

// Next returns the number at the cursor; ok is false at the end.
func (c *Cursor) Next() (v int64, ok bool) {
	if c.n >= c.Of.n {
		return 0, false
	}
	for c.Of.end(c.part) <= c.n {
		c.part++
	}
	return c.Of.pieces[c.part].at(c.n), true
}

// Pass moves the cursor on.
func (c *Cursor) Pass() { c.n++ }

// Stream is the messages of a cell from one rank to another.
type Stream struct {
	Cell
	Way
}

// Rows are the rows of every so many messages of a stream: those that are sent in the same place of a repetition.
type Rows struct {
	Send, Post, Done Series
	RecvSite         int32
	PostIsDone       bool // of every message
}

// Outline has the rows of all messages of a stream, of which each repetition has len(Places).
type Outline struct {
	Places []Rows
	next   int
}

// Add adds the rows of the next message. pieces is the number of pieces that it takes; ok is false if the message is
// received otherwise than those in the same place before it.
func (o *Outline) Add(send, post, done int64, recvSite int32) (pieces int64, ok bool) {
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
	if r.Send.Add(send) {
		pieces++
	}
	if r.Done.Add(done) {
		pieces++
	}
	if !r.PostIsDone && r.Post.Add(post) {
		pieces++
	}
	return pieces, true
}
