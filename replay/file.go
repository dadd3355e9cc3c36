package replay

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

// The head of the file. Words are 64 bits, little endian. A schedule is made for one launch, so it has no versions.
const (
	magic       = 0x59414c5045525143 // CQREPLAY
	headerWords = 8
	rankWords   = 8
)

// WriteTo writes the schedule.
func (s *Schedule) WriteTo(w io.Writer) (int64, error) {
	out := &wordWriter{w: bufio.NewWriterSize(w, 1<<20)}
	names := (len(s.names) + 7) / 8
	out.words(magic, int64(s.Ranks), int64(len(s.types)), int64(names), int64(s.comms), s.init, int64(s.phases),
		int64(s.repeat))
	offset := int64(headerWords + 3*len(s.types) + names + rankWords*len(s.ranks))
	for _, t := range s.types {
		out.words(t.name, t.bytes, t.extent)
	}
	padded := make([]byte, 8*names)
	copy(padded, s.names)
	for i := range names {
		out.words(int64(binary.LittleEndian.Uint64(padded[8*i:])))
	}
	for i := range s.ranks {
		r := &s.ranks[i]
		out.words(offset, int64(len(r.words)), r.sendArea, r.recvArea, r.requests, r.messages, r.bsend, r.self)
		offset += int64(len(r.words))
	}
	for i := range s.ranks {
		out.words(s.ranks[i].words...)
	}
	if out.err == nil {
		out.err = out.w.Flush()
	}
	return out.n, out.err
}

// wordWriter writes words until the first error, which it keeps.
type wordWriter struct {
	w   *bufio.Writer
	n   int64
	err error
}

func (o *wordWriter) words(list ...int64) {
	var b [8]byte
	for _, x := range list {
		if o.err != nil {
			return
		}
		binary.LittleEndian.PutUint64(b[:], uint64(x))
		_, o.err = o.w.Write(b[:])
		o.n += 8
	}
}

// Times are the times measured while a schedule was played, by rank, in ns on the clock of the rank's node.
type Times struct {
	// Start is the end of the barrier before the first operation, End the time before MPI_Finalize.
	Start, End []int64
	// Phases are the ends of the repetitions of each phase, by phase, rank and repetition. The first repetition warms
	// up.
	Phases [][][]int64
}

// ReadTimes reads the times that the player of this schedule wrote.
func (s *Schedule) ReadTimes(r io.Reader) (*Times, error) {
	each := 2 + s.phases*(s.repeat+1)
	words := make([]int64, s.Ranks*each)
	if err := binary.Read(r, binary.LittleEndian, words); err != nil {
		return nil, fmt.Errorf("the times of %d ranks: %w", s.Ranks, err)
	}
	t := &Times{Phases: make([][][]int64, s.phases)}
	for rank := range s.Ranks {
		own := words[rank*each : (rank+1)*each]
		t.Start, t.End = append(t.Start, own[0]), append(t.End, own[1])
		for i := range s.phases {
			t.Phases[i] = append(t.Phases[i], own[2+i*(s.repeat+1):2+(i+1)*(s.repeat+1)])
		}
		if !t.areOrdered(rank) {
			return nil, fmt.Errorf("the times of rank %d run backwards: they are damaged, or another program's", rank)
		}
	}
	return t, nil
}

// areOrdered reports whether the times of a rank increase, and differ by less than 146 years.
func (t *Times) areOrdered(rank int) bool {
	lists := [][]int64{{t.Start[rank], t.End[rank]}}
	for _, phase := range t.Phases {
		lists = append(lists, phase[rank])
	}
	for _, list := range lists {
		for i, at := range list {
			if at < -mostTime || at > mostTime || i > 0 && at < list[i-1] {
				return false
			}
		}
	}
	return true
}

// mostTime bounds times in ns: the difference of two is a number of 64 bits.
const mostTime = 1 << 61

// Duration returns the longest time that a rank took from Start to End, in ns.
func (t *Times) Duration() (ns int64) {
	for rank := range t.Start {
		ns = max(ns, t.End[rank]-t.Start[rank])
	}
	return ns
}

// Repetitions returns the durations of the repetitions of a phase after the first, each the mean over the ranks, in
// ns.
func (t *Times) Repetitions(phase int) (ns []float64) {
	ranks := t.Phases[phase]
	for k := 1; k < len(ranks[0]); k++ {
		sum := 0.0
		for _, ends := range ranks {
			sum += float64(ends[k] - ends[k-1])
		}
		ns = append(ns, sum/float64(len(ranks)))
	}
	return ns
}
