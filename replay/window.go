package replay

import (
	"fmt"
	"math"
	"slices"

	"github.com/commq/commq/schema"
)

// Window is a part of the run that its ranks repeat. Only one repetition is played, several times over. Each time its
// compute times come from another repetition, chosen evenly over all of them, so that ranks and calls compute as
// unevenly as they did; they are scaled so that their sum is the mean of all repetitions.
type Window struct {
	// First is the first row of the first repetition on each rank, Rows the number of rows in a repetition, and Times
	// how often it is repeated.
	First, Rows []int64
	Times       int64
	// Nth is the repetition that is played.
	Nth int64
}

// checkWindows checks that the windows fit a run of this many ranks.
func checkWindows(o *Options, ranks int) error {
	for i, w := range o.Windows {
		if len(w.First) != ranks || len(w.Rows) != ranks || w.Nth < 0 || w.Nth >= w.Times {
			return fmt.Errorf("phase %d: repetition %d of %d, on %d of %d ranks", i+1, w.Nth, w.Times, len(w.First),
				ranks)
		}
	}
	if len(o.Windows) > 0 && (o.Repeat < 1 || o.Repeat > 1<<20) {
		return fmt.Errorf("a phase cannot be repeated %d times: give a number from 1 to %d", o.Repeat, 1<<20)
	}
	return nil
}

// mostTimes is the largest number of compute times of a window that a rank has in the schedule.
const mostTimes = 1 << 24

// variantCount returns the number of repetitions whose compute times are played.
func (w *Window) variantCount(repeat int) int64 {
	return max(1, min(int64(repeat), w.Times, mostTimes/max(1, slices.Max(w.Rows))))
}

// variantRepetition returns the repetition that variant k of n takes its compute times from.
func (w *Window) variantRepetition(k, n int64) int64 { return (2*k + 1) * w.Times / (2 * n) }

// begin returns the first row of the repetition that is played.
func (w *Window) begin(rank int32) int64 { return w.First[rank] + w.Nth*w.Rows[rank] }

// windowPlan has the windows, and the calls before them that they depend on.
type windowPlan struct {
	list       []*windowState
	used       map[int32]bool       // communicators that windows use, or that those are made from; by index
	makers     map[instanceKey]bool // constructors that make one of them for some rank
	persistent map[rowKey]bool      // rows that make persistent requests which windows start
}

// windowState has the playable rows of a window, and its operations.
type windowState struct {
	Window
	variants  [][][]int64     // compute times, by variant, rank and place, ns
	variantOf map[int64]int64 // by repetition
	computed  float64         // by all ranks in all repetitions, ns
	sends     map[rowKey]bool
	receives  map[rowKey]bool
	arrived   map[instanceKey]int // number of ranks whose row of a collective is in the window
	out       [][]int64           // words, by rank
	posted    [][]*request        // by rank, still open
	mustProbe map[probeKey]int64  // latest row of a receive that stays
}

// probeKey identifies a probe together with the receive after it.
type probeKey struct{ rank, comm, source, tag int32 }

func newWindowState(w Window, ranks, repeat int) *windowState {
	s := &windowState{Window: w, sends: map[rowKey]bool{}, receives: map[rowKey]bool{}, arrived: map[instanceKey]int{},
		mustProbe: map[probeKey]int64{}, out: make([][]int64, ranks), posted: make([][]*request, ranks),
		variantOf: map[int64]int64{}}
	n := w.variantCount(repeat)
	for k := range n {
		s.variantOf[w.variantRepetition(k, n)] = k
		times := make([][]int64, ranks)
		for r := range times {
			times[r] = make([]int64, w.Rows[r])
		}
		s.variants = append(s.variants, times)
	}
	return s
}

// planWindows finds out which rows of the windows can be played: messages with both ends in them, and collectives with
// all their ranks.
func planWindows(src *Source, o *Options, comms *commTable, ranks []rankFindings, n notes) (*windowPlan, error) {
	p := &windowPlan{used: map[int32]bool{}, makers: map[instanceKey]bool{}, persistent: map[rowKey]bool{}}
	for _, w := range o.Windows {
		p.list = append(p.list, newWindowState(w, len(ranks), o.Repeat))
	}
	if len(p.list) == 0 {
		return p, nil
	}
	if err := p.readMessages(src, n); err != nil {
		return nil, err
	}
	if err := p.readRows(src, comms); err != nil {
		return nil, err
	}
	for _, w := range p.list {
		w.scaleVariants()
	}
	p.addParents(comms)
	for r := range ranks {
		for _, x := range ranks[r].constructors {
			if x.makes >= 0 && p.used[x.makes] && x.instance != schema.NullInt64 {
				p.makers[instanceKey{comms.list[x.comm].id, x.instance}] = true
			}
		}
	}
	return p, nil
}

// readMessages finds the messages with both ends in a window.
func (p *windowPlan) readMessages(src *Source, n notes) error {
	dropped := int64(0)
	err := src.Messages(func(m *schema.Messages) error {
		for i := range m.Src {
			from, to := rowKey{m.Src[i], m.SendSeq[i]}, rowKey{m.Dst[i], m.RecvPostSeq[i]}
			a, b := p.played(from), p.played(to)
			switch {
			case a != nil && a == b:
				a.sends[from], a.receives[to] = true, true
				k := probeKey{to.rank, m.Comm[i], m.Src[i], m.Tag[i]}
				a.mustProbe[k] = max(a.mustProbe[k], to.seq)
			case a != nil || b != nil:
				dropped++
			}
		}
		return nil
	})
	if dropped > 0 {
		n["Messages with one end outside a phase, left out"] = dropped
	}
	return err
}

// readRows reads the compute times of the windows' rows, and what the repetitions that are played use.
func (p *windowPlan) readRows(src *Source, comms *commTable) error {
	var e schema.Event
	return src.Events(func(rows *schema.Events) error {
		for i := range rows.Len() {
			w, place, nth := p.locate(rows.Rank[i], rows.Seq[i])
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
			if k, ok := comms.byID[e.Comm]; ok {
				p.used[k] = true
			}
			if e.InitSeq != schema.NullInt64 {
				p.persistent[rowKey{e.Rank, e.InitSeq}] = true
			}
		}
		return nil
	})
}

// addParents adds the communicators that used ones are made from.
func (p *windowPlan) addParents(comms *commTable) {
	for changed := true; changed; {
		changed = false
		for k, c := range comms.list {
			if !p.used[int32(k)] {
				continue
			}
			for _, parent := range c.parents {
				if parent >= 0 && !p.used[parent] {
					p.used[parent], changed = true, true
				}
			}
		}
	}
}

// locate returns the window of a row, the row's place in its repetition, and which repetition that is; nil: the row is
// in no window.
func (p *windowPlan) locate(rank int32, seq int64) (w *windowState, place, nth int64) {
	for _, w := range p.list {
		rows := w.Rows[rank]
		if offset := seq - w.First[rank]; rows > 0 && offset >= 0 && offset < rows*w.Times {
			return w, offset % rows, offset / rows
		}
	}
	return nil, 0, 0
}

// played returns the window that plays a row; nil: none.
func (p *windowPlan) played(k rowKey) *windowState {
	if w, _, nth := p.locate(k.rank, k.seq); w != nil && nth == w.Nth {
		return w
	}
	return nil
}

// needs reports whether the windows need the operation of a row before them.
func (p *windowPlan) needs(r *rankState, e *schema.Event) bool {
	call := schema.CallID(e.Call)
	switch {
	case call.Is(schema.FactCreatesCommunicator):
		for i := range r.constructors {
			if x := &r.constructors[i]; x.seq == e.Seq {
				return p.needsConstructor(e, x)
			}
		}
	case call.Is(schema.FactCompletes): // of an MPI_Comm_idup
		return len(r.done[e.Seq]) > 0
	}
	return p.persistent[rowKey{e.Rank, e.Seq}]
}

// needsConstructor reports whether a constructor makes a communicator that is used, for any of its ranks: then all have
// to call it.
func (p *windowPlan) needsConstructor(e *schema.Event, x *constructor) bool {
	return x.makes >= 0 && p.used[x.makes] || p.makers[instanceKey{e.Comm, e.Instance}]
}

// scaleVariants scales the compute times of each variant so that their sum is the mean over all repetitions.
func (w *windowState) scaleVariants() {
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

// times returns the compute times of a rank in a variant before each operation of its words: those before the
// operation's row, and of the rows before it that are left out.
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

// contains reports whether everything that a row does lies in the window. If only one side of an MPI_Sendrecv does,
// it changes the row so that only this side is played. A note says why a row is left out, if that matters to the
// user.
func (w *windowState) contains(r *rankState, e *schema.Event, comms *commTable) (ok bool, note string) {
	if e.Comm != schema.NullInt32 && e.Instance != schema.NullInt64 {
		c := comms.list[comms.byID[e.Comm]]
		if w.arrived[instanceKey{e.Comm, e.Instance}] < len(c.groups[0])+len(c.groups[1]) {
			return false, "Calls of collectives whose other ranks are outside a phase, left out"
		}
		return true, ""
	}
	return w.containsOwn(r, e), ""
}

// containsOwn is contains for rows that are not collective operations.
func (w *windowState) containsOwn(r *rankState, e *schema.Event) bool {
	key, call := rowKey{e.Rank, e.Seq}, schema.CallID(e.Call)
	switch schema.Class(e.Class) {
	case schema.ClassSend:
		return w.sends[key]
	case schema.ClassRecv:
		if call.Is(schema.FactMatched) {
			key.seq = e.InitSeq // the probe took the message
		}
		return w.receives[key]
	case schema.ClassProbe:
		if call.Is(schema.FactMatched) {
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
		if call.Is(schema.FactCompletes) {
			return len(r.done[e.Seq]) > 0
		}
		q := r.requests[e.Request]
		return q != nil && slices.Contains(w.posted[e.Rank], q)
	}
	return call != schema.CallFinalize
}
