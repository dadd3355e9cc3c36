package ledger

import (
	"cmp"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// Operand is a payload that may be combined with others or split: that of a message, or one recorded by
// commq_send_to_self (then src equals dst).
type Operand struct {
	Message
	Sum        int64
	OwnerKnown bool // scratch of package combine
	Owner      *Instance

	Sent  bool  // scratch of package combine
	Heard int32 // scratch of package combine
	Index int32 // scratch of package combine: in the messages of an occurrence
	At    int32 // scratch of package neighbours
}

// Limits of a first look: the first messages of each way in a cell must show what is going on before all are read.
const (
	maxCells   = 1 << 14
	MaxSampled = 1 << 20
	minPerWay  = 64
)

// CellSample has the messages of a cell.
type CellSample struct {
	Cell   Cell
	Number int // its place in Sample.Order
	Ways   map[Way]*WaySample
}

// WaySample has the number of messages of a cell from one rank to another, and the first of them.
type WaySample struct {
	Count int64
	List  []Operand
}

// Sample is a bounded selection of all messages.
type Sample struct {
	Cells  map[Cell]*CellSample
	Order  []*CellSample
	perWay int
	total  int
	Closed bool          // all messages were seen
	Only   map[Cell]bool // cells that are kept completely; nil: the first messages of all cells
}

func NewSample(ranks int32) *Sample {
	return &Sample{Cells: map[Cell]*CellSample{}, perWay: max(minPerWay, 4*int(ranks))}
}

// WayOf returns the place for messages of a cell from one rank to another; nil if they are not kept.
func (s *Sample) WayOf(c Cell, of Way) *WaySample {
	if c.Bytes == 0 || s.Only != nil && !s.Only[c] {
		return nil
	}
	in := s.Cells[c]
	if in == nil {
		if len(s.Cells) >= maxCells {
			return nil
		}
		in = &CellSample{Cell: c, Number: len(s.Order), Ways: map[Way]*WaySample{}}
		s.Cells[c] = in
		s.Order = append(s.Order, in)
	}
	w := in.Ways[of]
	if w == nil {
		if s.total >= MaxSampled && s.Only == nil {
			return nil
		}
		w = &WaySample{}
		in.Ways[of] = w
	}
	return w
}

// Keeps reports whether the next message of a way is kept.
func (s *Sample) Keeps(w *WaySample) bool {
	return s.Only != nil || len(w.List) < s.perWay && s.total < MaxSampled
}

// Add counts row i and keeps it if it is among the first.
func (s *Sample) Add(w *WaySample, b *schema.Messages, i int) {
	w.Count++
	if s.Keeps(w) {
		s.total++
		w.List = append(w.List, Operand{Message: MessageOf(b, i), Sum: b.PayloadSum[i]})
	}
}

// CheckRanks returns an error if a message is of a rank that a run does not have.
func (s *Sample) CheckRanks(ranks int32) error {
	for _, c := range s.Cells {
		for _, w := range c.Ways {
			for i := range w.List {
				if err := w.List[i].CheckRanks(ranks); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// IsComplete reports whether all messages of the cell were kept.
func (c *CellSample) IsComplete() bool {
	for _, w := range c.Ways {
		if w.Count != int64(len(w.List)) {
			return false
		}
	}
	return true
}

// Count returns the number of messages of a cell.
func (c *CellSample) Count() (n int64) {
	for _, w := range c.Ways {
		n += w.Count
	}
	return n
}

// CountSent returns the number of messages of a cell from one rank to another; 0 if not counted.
func (s *Sample) CountSent(c Cell) (n int64) {
	of := s.Cells[c]
	if of == nil {
		return 0
	}
	for w, list := range of.Ways {
		if w.Src != w.Dst {
			n += list.Count
		}
	}
	return n
}

// Event is one end of a message.
type Event struct {
	M    *Operand
	Send bool
}

func (e Event) Seq() int64 {
	if e.Send {
		return e.M.SendSeq
	}
	return e.M.DoneSeq
}

// CompareEvents sorts the events of a rank: what a call sends comes before what it receives.
func CompareEvents(a, b Event) int {
	if d := cmp.Compare(a.Seq(), b.Seq()); d != 0 || a.Send == b.Send {
		return d
	}
	if a.Send {
		return -1
	}
	return 1
}

func SortedWays(ways map[Way]*WaySample) []Way {
	out := make([]Way, 0, len(ways))
	for w := range ways {
		out = append(out, w)
	}
	slices.SortFunc(out, CompareWays)
	return out
}

// Untaken returns the free messages of a sample, as Unless does.
func (s *Sample) Untaken(taken *Owners) []*Operand {
	return s.Unless(func(m *Operand) bool { return taken.Owner(m.Src, m.SendSeq) != nil })
}

// Unless returns the messages of a sample that leave does not leave out, ordered by source, up to the row of each rank
// to which all its messages are kept.
func (s *Sample) Unless(leave func(*Operand) bool) (list []*Operand) {
	end := map[int32]int64{} // by rank: the row up to which everything was kept
	limit := func(rank int32, seq int64) {
		if old, ok := end[rank]; !ok || seq < old {
			end[rank] = seq
		}
	}
	for _, of := range s.Order {
		for w, messages := range of.Ways {
			if n := len(messages.List); n > 0 && messages.Count > int64(n) {
				limit(w.Src, messages.List[n-1].SendSeq)
				limit(w.Dst, messages.List[n-1].DoneSeq)
			}
		}
	}
	until := func(rank int32) int64 {
		if seq, limited := end[rank]; limited {
			return seq
		}
		return math.MaxInt64
	}
	for _, of := range s.Order {
		for _, w := range SortedWays(of.Ways) {
			if w.Src == w.Dst {
				continue
			}
			messages, sent, done := of.Ways[w], until(w.Src), until(w.Dst)
			for i := range messages.List {
				if m := &messages.List[i]; m.SendSeq <= sent && m.DoneSeq <= done && !leave(m) {
					list = append(list, m)
				}
			}
		}
	}
	return list
}
