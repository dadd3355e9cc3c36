package hang

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/schema"
)

// site describes the innermost frame of a call site; empty when it is not known.
func (a *analysis) site(r *rank, site uint32) string {
	path := r.sites.Path(site)
	if len(path) == 0 {
		return ""
	}
	p := place{offset: path[0].Offset}
	if m := path[0].Module; m != nil {
		p.path, p.id = m.Path, m.BuildID
	}
	text, ok := a.job.places[p]
	if !ok {
		text = a.job.resolver.Describe(path)
		a.job.places[p] = text
	}
	return text
}

// describe returns the state of a thread.
func (a *analysis) describe(t *thread) State {
	s := State{Rank: t.rank.rank, Thread: t.h.Thread, Calls: t.calls, WaitsFor: []int32{}}
	switch {
	case t.isUnrecorded():
		s.State, s.Text = Unrecorded, "no longer recorded"
	case t.open != nil:
		a.describeCall(t, &s)
	case t.h.Ended == spool.EndedAborted:
		s.State, s.Text = Aborted, "called MPI_Abort"
	case t.rank.finalized || t.h.Ended == spool.EndedFinalized:
		s.State, s.Text = Finalized, "finalized"
	default:
		s.State, s.Text = Outside, "outside MPI"
	}
	if (t.open == nil || s.State == Unrecorded) && t.last.Call != 0 {
		s.Call = schema.CallID(t.last.Call).String()
		s.SinceNs = a.sinceStart(t, t.last.T1)
		s.Site = a.site(t.rank, t.last.Site)
	}
	return s
}

// isUnrecorded reports whether the thread's recording stopped before it ended.
func (t *thread) isUnrecorded() bool {
	return t.h.Ended == spool.EndedNot && !t.rank.finalized && (t.h.Limited != 0 || t.h.Dropped != 0)
}

// describeCall fills in the state of a thread in a call.
func (a *analysis) describeCall(t *thread, s *State) {
	c := t.open
	s.State, s.SinceNs, s.Site = InCall, a.sinceStart(t, c.T0), a.site(t.rank, c.Site)
	if int(c.Call) >= len(schema.Calls) || c.Call == 0 {
		s.Call = fmt.Sprintf("call %d", c.Call)
		s.Text = s.Call
		return
	}
	call := schema.CallID(c.Call)
	s.Call = call.String()
	if call == schema.CallFinalize {
		s.known = true
		for _, r := range a.ranks {
			if r != t.rank && !r.finalized && !r.isIn(schema.CallFinalize) {
				s.WaitsFor = append(s.WaitsFor, r.rank)
			}
		}
	}
	if op := a.open[t]; op != nil {
		s.Pending = []Operation{*op}
		s.WaitsFor, s.Any = op.WaitsFor, op.Any
		s.known = op.Matched || len(op.WaitsFor) > 0
		s.Text = op.text()
		if recv := a.receiving[t]; recv != nil {
			s.addReceiving(op, recv)
		}
		return
	}
	s.Text = s.Call
	if v := a.view(t.rank, c.Comm); v != nil {
		s.Text += " on " + v.Text()
	}
	if kindOf(c) == kindComplete {
		if s.Site != "" {
			s.Text += " at " + s.Site
		}
		a.describeWait(t, s)
	}
}

// addReceiving adds the receive side of an MPI_Sendrecv to the state.
func (s *State) addReceiving(send, recv *Operation) {
	s.Pending = append(s.Pending, *recv)
	s.Text += ", receiving" + peerText(" from", recv.Peer, nil, true)
	s.known = s.known && (recv.Matched || len(recv.WaitsFor) > 0)
	if !recv.Matched && send.Bytes != nil && *send.Bytes <= eagerBytes {
		send.WaitsFor, s.WaitsFor = []int32{}, []int32{}
	}
	switch {
	case recv.Matched:
	case recv.Any && len(send.WaitsFor) == 0:
		s.WaitsFor, s.Any = recv.WaitsFor, true
	case recv.Any:
		s.known = false // it needs all of these ranks and one of those
	default:
		s.WaitsFor = append(slices.Clone(s.WaitsFor), recv.WaitsFor...)
		slices.Sort(s.WaitsFor)
		s.WaitsFor = slices.Compact(s.WaitsFor)
	}
}

// isIn reports whether a thread of the rank is in that call.
func (r *rank) isIn(call schema.CallID) bool {
	return slices.ContainsFunc(r.threads, func(t *thread) bool { return t.open != nil && t.open.Call == uint16(call) })
}

// eagerBytes is the largest size that MPI libraries send without waiting for the receiver. So if an MPI_Waitall could
// be waiting for something else, its smaller sends are assumed to be complete.
const eagerBytes = 64 << 10

// describeWait adds the requests that a completion call waits for to the state.
func (a *analysis) describeWait(t *thread, s *State) {
	c := t.open
	requests, exact := t.rank.awaited(c)
	var missing []*Operation
	receives := false // some are not sends
	s.known = len(requests) > 0 && exact
	for _, p := range requests {
		op := a.posted[p]
		s.Pending = append(s.Pending, *op)
		if !op.Matched {
			missing = append(missing, op)
			receives = receives || !op.send
			s.known = s.known && len(op.WaitsFor) > 0
		}
	}
	s.Any = schema.CallID(c.Call).Is(schema.FactAny)
	if s.Any && len(missing) < len(requests) {
		missing = nil // one of the others can complete
	}
	for _, op := range missing {
		small := op.send && op.Bytes != nil && *op.Bytes <= eagerBytes
		if small && receives && !s.Any {
			continue
		}
		if op.Any && len(missing) == 1 {
			s.Any = true
		} else if op.Any && !s.Any {
			s.known = false // it needs all of these ranks and one of those
			continue
		}
		s.WaitsFor = append(s.WaitsFor, op.WaitsFor...)
	}
	slices.Sort(s.WaitsFor)
	s.WaitsFor = slices.Compact(s.WaitsFor)
	s.Text += s.pendingText()
}

// awaited returns the requests that a completion call in progress waits for, by serial number. If the records do not
// name them, it returns all requests of the rank, and exact is false for an MPI_Waitall.
func (r *rank) awaited(c *spool.Call) (requests []*posted, exact bool) {
	low, high := c.Req, c.Req
	waitall := schema.CallID(c.Call) == schema.CallWaitall
	switch {
	case schema.CallID(c.Call) == schema.CallWait:
	case waitall && c.Req != 0 && c.Count > 0:
		high = uint32(c.Tag)
	default:
		low, high = 1, math.MaxUint32
	}
	for _, serial := range sortedKeys(r.pending) {
		if serial >= low && serial <= high && serial != 0 {
			requests = append(requests, r.pending[serial])
		}
	}
	return requests, !waitall || c.Count == int64(len(requests))
}

// maxNamed is the largest number of operations that a text lists.
const maxNamed = 4

// pendingText names the operations that a completion call waits for.
func (s *State) pendingText() string {
	if len(s.Pending) == 0 {
		return ""
	}
	var missing []string
	matched := 0
	for i := range s.Pending {
		if s.Pending[i].Matched {
			matched++
			continue
		}
		missing = append(missing, s.Pending[i].text())
	}
	if len(missing) == 0 {
		return fmt.Sprintf(" for %s that the other side has posted too", plural(matched, "request"))
	}
	text := " for " + strings.Join(missing[:min(len(missing), maxNamed)], "; ")
	if len(missing) > maxNamed {
		text += fmt.Sprintf("; and %d more", len(missing)-maxNamed)
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

func sortedKeys(m map[uint32]*posted) []uint32 {
	keys := make([]uint32, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// text describes an operation.
func (op *Operation) text() string {
	text := op.Call
	switch {
	case op.null && op.send:
		text += " to MPI_PROC_NULL"
	case op.null:
		text += " from MPI_PROC_NULL"
	case op.Instance != nil:
	case op.send:
		text += peerText(" to", op.Peer, op.Tag, false)
	default:
		text += peerText(" from", op.Peer, op.Tag, op.Any)
	}
	if op.Comm != "" {
		text += " on " + op.Comm
	}
	if op.Bytes != nil && *op.Bytes > 0 {
		text += ", " + plural(int(*op.Bytes), "byte")
	}
	if op.Instance != nil {
		text += fmt.Sprintf(" (its operation %d)", *op.Instance+1)
	}
	if op.Site != "" {
		text += ", at " + op.Site
	}
	if op.Hint != "" {
		text += " (" + op.Hint + ")"
	}
	return text
}

func peerText(preposition string, peer, tag *int32, any bool) string {
	text := ""
	switch {
	case peer != nil:
		text = fmt.Sprintf("%s rank %d", preposition, *peer)
	case any:
		text = preposition + " any rank"
	}
	if tag != nil {
		return text + fmt.Sprintf(", tag %d,", *tag)
	}
	return text
}

// sinceStart returns the time of a tick in ns since the start of the job; nil if the timer was not compared with a
// clock.
func (a *analysis) sinceStart(t *thread, tick uint64) *int64 {
	if t.h.Timer == spool.TimerVirtual {
		v := int64((min(max(tick, spool.VirtualStart), 1<<63)-spool.VirtualStart)+500) / 1000
		return &v
	}
	tick1, ns1 := t.h.Clock1Tick, t.h.Clock1Ns
	if t.tick > tick1 {
		tick1, ns1 = t.tick, t.ns
	}
	ns := float64(0)
	switch d := float64(int64(tick - t.h.Clock0Tick)); {
	case t.h.Timer == spool.TimerMonotonic:
		ns = d
	case tick1 > t.h.Clock0Tick:
		ns = d * float64(ns1-t.h.Clock0Ns) / float64(tick1-t.h.Clock0Tick)
	default:
		return nil
	}
	if math.Abs(ns) > 1e17 {
		return nil
	}
	v := t.beganNs() + int64(ns) - a.start
	return &v
}
