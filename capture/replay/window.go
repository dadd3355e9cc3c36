package replay

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// Window is a part of the run that its ranks repeat, and of which one repetition is played by itself, again and again with the compute times of
// repetitions spread evenly over all of them: each time as unevenly as ranks and calls computed in one of these, and as much in all as the mean of all.
type Window struct {
	// First is the first row of the first repetition on each rank, Rows the number of rows in a repetition, and Times how often it is repeated.
	First, Rows []int64
	Times       int64
	// Nth is the repetition that is played.
	Nth int64
}

// mostTimes is how many compute times of a window a rank has at most in the schedule.
const mostTimes = 1 << 24

// variants is the number of repetitions whose compute times are played.
func (w *Window) variants(repeat int) int64 {
	return max(1, min(int64(repeat), w.Times, mostTimes/max(1, slices.Max(w.Rows))))
}

// repetition is which one the variant k of n has the compute times of.
func (w *Window) repetition(k, n int64) int64 { return (2*k + 1) * w.Times / (2 * n) }

// windowState is a window while it is made.
type windowState struct {
	Window
	variants  [][][]int64     // compute times, by variant, rank and place, ns
	variantOf map[int64]int64 // by repetition
	computed  float64         // by all ranks in all repetitions, ns
	sends     map[rowKey]bool
	receives  map[rowKey]bool
	arrived   map[instanceKey]int // ranks whose row of a collective is in the window
	out       [][]int64           // words, by rank
	posted    [][]*request        // by rank, still open
	mustProbe map[probeKey]int64  // latest row of a receive that stays
}

// probeKey is what a probe and the receive after it have in common.
type probeKey struct{ rank, comm, source, tag int32 }

// prepareWindows finds out what of the windows can be played: messages with both ends in them, and collectives with all their ranks.
func (b *builder) prepareWindows() error {
	for _, w := range b.o.Windows {
		s := &windowState{Window: w, sends: map[rowKey]bool{}, receives: map[rowKey]bool{}, arrived: map[instanceKey]int{}, mustProbe: map[probeKey]int64{},
			out: make([][]int64, len(b.ranks)), posted: make([][]*request, len(b.ranks)), variantOf: map[int64]int64{}}
		n := w.variants(b.o.Repeat)
		for k := range n {
			s.variantOf[w.repetition(k, n)] = k
			times := make([][]int64, len(b.ranks))
			for r := range b.ranks {
				times[r] = make([]int64, w.Rows[r])
			}
			s.variants = append(s.variants, times)
		}
		b.windows = append(b.windows, s)
	}
	if len(b.windows) == 0 {
		return nil
	}
	dropped := int64(0)
	err := b.src.Messages(func(m *schema.Messages) error {
		for i := range m.Src {
			from, to := rowKey{m.Src[i], m.SendSeq[i]}, rowKey{m.Dst[i], m.RecvPostSeq[i]}
			a, c := b.played(from), b.played(to)
			switch {
			case a != nil && a == c:
				a.sends[from], a.receives[to] = true, true
				k := probeKey{to.rank, m.Comm[i], m.Src[i], m.Tag[i]}
				a.mustProbe[k] = max(a.mustProbe[k], to.seq)
			case a != nil || c != nil:
				dropped++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if dropped > 0 {
		b.notes["Messages with one end outside a phase, left out"] = dropped
	}
	b.used, b.persistent = map[int32]bool{}, map[rowKey]bool{}
	var e schema.Event
	err = b.src.Events(func(rows *schema.Events) error {
		for i := range rows.Len() {
			w, place, nth := b.window(rows.Rank[i], rows.Seq[i])
			if w == nil {
				continue
			}
			compute := max(rows.ComputeNs[i], 0)
			w.computed += float64(compute)
			if k, ok := w.variantOf[nth]; ok {
				w.variants[k][rows.Rank[i]][place] = compute
			}
			if nth != w.Nth {
				continue
			}
			rows.Row(i, &e)
			if e.Comm != schema.NullInt32 && e.Instance != schema.NullInt64 {
				w.arrived[instanceKey{e.Comm, e.Instance}]++
			}
			if k, ok := b.commOf[e.Comm]; ok {
				b.used[k] = true
			}
			if e.InitSeq != schema.NullInt64 {
				b.persistent[rowKey{e.Rank, e.InitSeq}] = true
			}
		}
		return nil
	})
	for _, w := range b.windows {
		w.level()
	}
	b.needed()
	b.makers = map[instanceKey]bool{}
	for r := range b.ranks {
		for _, x := range b.ranks[r].constructors {
			if x.makes >= 0 && b.used[x.makes] && x.instance != schema.NullInt64 {
				b.makers[instanceKey{b.comms[x.comm].id, x.instance}] = true
			}
		}
	}
	return err
}

// begin is the first row of the repetition that is played.
func (w *Window) begin(rank int32) int64 { return w.First[rank] + w.Nth*w.Rows[rank] }

// level makes all variants compute as much in all as the mean of all repetitions.
func (w *windowState) level() {
	for _, ranks := range w.variants {
		total := 0.0
		for _, times := range ranks {
			for _, ns := range times {
				total += float64(ns)
			}
		}
		for _, times := range ranks {
			for i := range times {
				times[i] = int64(float64(times[i]) * w.computed / float64(w.Times) / math.Max(total, 1))
			}
		}
	}
}

// times are what a rank computes in a variant before each operation of its words: what it computed before their rows and those left out before.
func (w *windowState) times(rank int32, variant int, words []int64) (ns []int64) {
	own := w.variants[variant][rank]
	next := int64(0)
	for len(words) > 0 {
		sum := int64(0)
		for place := words[2] - w.begin(rank); next <= place; next++ {
			sum += own[next]
		}
		ns = append(ns, sum)
		words = words[3+words[0]>>32:]
	}
	return ns
}

// needed adds the communicators that others are made from.
func (b *builder) needed() {
	for changed := true; changed; {
		changed = false
		for k, c := range b.comms {
			if !b.used[int32(k)] {
				continue
			}
			for _, p := range c.parents {
				if p >= 0 && !b.used[p] {
					b.used[p], changed = true, true
				}
			}
		}
	}
}

// window is the window that a row is in, the row's place in its repetition, and which that is.
func (b *builder) window(rank int32, seq int64) (w *windowState, place, nth int64) {
	for _, w := range b.windows {
		rows := w.Rows[rank]
		if at := seq - w.First[rank]; rows > 0 && at >= 0 && at < rows*w.Times {
			return w, at % rows, at / rows
		}
	}
	return nil, 0, 0
}

// played is the window whose repetition that is played has the row; nil: none.
func (b *builder) played(k rowKey) *windowState {
	if w, _, nth := b.window(k.rank, k.seq); w != nil && nth == w.Nth {
		return w
	}
	return nil
}

// windowRow makes the operation of a row of a run of which only windows are played. Before them, without computing, come the communicators and
// persistent requests that they use.
func (b *builder) windowRow(s *rankState, e *schema.Event) error {
	w := b.played(rowKey{e.Rank, e.Seq})
	if w == nil {
		s.leave()
		return b.prologue(s, e)
	}
	s.enter(w)
	if !b.whole(w, e) {
		return nil
	}
	return b.row(s, e)
}

// prologue plays a row that comes before all windows.
func (b *builder) prologue(s *rankState, e *schema.Event) error {
	e.ComputeNs, s.pending = 0, 0
	needed := b.persistent[rowKey{e.Rank, e.Seq}]
	switch schema.Calls[e.Call].Recorder {
	case "comm_new", "comm_idup":
		for i := range s.constructors {
			if x := &s.constructors[i]; x.seq == e.Seq {
				needed = b.wanted(e, x)
			}
		}
	case "wait", "waitall", "waitany", "waitsome", "test", "testall", "testany", "testsome": // of an MPI_Comm_idup
		needed = len(s.done[e.Seq]) > 0
	}
	if !needed {
		return nil
	}
	return b.row(s, e)
}

// wanted says whether a constructor makes a communicator that is used for any of its ranks: then all have to call it.
func (b *builder) wanted(e *schema.Event, x *constructor) bool {
	if x.makes >= 0 && b.used[x.makes] {
		return true
	}
	return b.makers[instanceKey{e.Comm, e.Instance}]
}

// whole says whether what a row does is wholly in the window; it takes from a row what is not.
func (b *builder) whole(w *windowState, e *schema.Event) bool {
	key := rowKey{e.Rank, e.Seq}
	if e.Comm != schema.NullInt32 && e.Instance != schema.NullInt64 {
		c := b.comms[b.commOf[e.Comm]]
		if w.arrived[instanceKey{e.Comm, e.Instance}] < len(c.groups[0])+len(c.groups[1]) {
			b.note("Calls of collectives whose other ranks are outside a phase, left out")
			return false
		}
		return true
	}
	switch schema.Class(e.Class) {
	case schema.ClassSend:
		return w.sends[key]
	case schema.ClassRecv:
		if b.matched(e) {
			return w.receives[rowKey{e.Rank, e.InitSeq}]
		}
		return w.receives[key]
	case schema.ClassProbe:
		if recorder := schema.Calls[e.Call].Recorder; recorder == "mprobe" || recorder == "improbe" {
			return w.receives[key]
		}
		last, ok := w.mustProbe[probeKey{e.Rank, e.Comm, e.RecvWorld, e.RecvTag}]
		return ok && last > e.Seq
	case schema.ClassSendrecv:
		none := int32(0)
		if !w.sends[key] {
			none |= schema.ProcNullSend
		}
		if !w.receives[key] {
			none |= schema.ProcNullRecv
		}
		e.ProcNull |= none
		return none != schema.ProcNullSend|schema.ProcNullRecv
	case schema.ClassComplete:
		s := &b.ranks[e.Rank]
		switch schema.Calls[e.Call].Recorder {
		case "wait", "waitall", "waitany", "waitsome", "test", "testall", "testany", "testsome":
			return len(s.done[e.Seq]) > 0
		}
		r := s.requests[e.Request]
		return r != nil && slices.Contains(w.posted[e.Rank], r)
	}
	return schema.Calls[e.Call].Recorder != "finalize"
}

// matched says whether a receive takes what a probe matched.
func (b *builder) matched(e *schema.Event) bool {
	recorder := schema.Calls[e.Call].Recorder
	return recorder == "mrecv" || recorder == "imrecv"
}

// enter makes what follows go into a window.
func (s *rankState) enter(w *windowState) {
	if s.window == w {
		return
	}
	s.leave()
	s.window, s.before, s.pending = w, s.out.words, 0
	s.out.words = nil
}

// leave ends the window that a rank is in: what is open is waited for, and what is left is computed.
func (s *rankState) leave() {
	w := s.window
	if w == nil {
		return
	}
	if len(s.starting) > 0 {
		s.startall()
	}
	e := schema.NullEvent
	e.Rank, e.Seq = s.rank, w.begin(s.rank)+w.Rows[s.rank]-1
	args := []int64{0}
	for _, r := range w.posted[s.rank] {
		if !r.over {
			r.over = true
			args[0]++
			args = append(args, r.slot)
		}
	}
	for seq := range s.done { // rows outside the window
		delete(s.done, seq)
	}
	if args[0] > 0 {
		s.emit(opcodes["Waitall"], &e, args...)
	} else {
		s.emit(opcodes["Compute"], &e)
	}
	w.out[s.rank] = s.out.words
	s.window, s.out.words = nil, s.before
}

// appendWindows puts the windows behind what is played before them.
func (b *builder) appendWindows(s *rankState) {
	e := schema.NullEvent
	e.Rank = s.rank
	for i, w := range b.windows {
		args := []int64{int64(len(w.variants)), 0}
		for k := range w.variants {
			times := w.times(s.rank, k, w.out[s.rank])
			args[1] = int64(len(times))
			args = append(args, times...)
		}
		s.emit(opcodes["Phase"], &e, args...)
		s.out.words = append(s.out.words, w.out[s.rank]...)
		s.emit(opcodes["Phase_end"], &e, int64(i))
	}
}

// checkWindows says whether windows fit the run.
func (b *builder) checkWindows() error {
	for i, w := range b.o.Windows {
		if len(w.First) != len(b.src.Ranks) || len(w.Rows) != len(b.src.Ranks) || w.Nth < 0 || w.Nth >= w.Times {
			return fmt.Errorf("phase %d: repetition %d of %d, on %d of %d ranks", i+1, w.Nth, w.Times, len(w.First), len(b.src.Ranks))
		}
	}
	if len(b.o.Windows) > 0 && (b.o.Repeat < 1 || b.o.Repeat > 1<<20) {
		return fmt.Errorf("a phase is to be repeated %d times", b.o.Repeat)
	}
	return nil
}
