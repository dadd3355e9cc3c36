package neighbours

import (
	"slices"

	"github.com/commq/commq/detect/ledger"
	"github.com/commq/commq/schema"
)

// exchange is a repeated exchange within a communicator in which each rank sends to some of the others.
type exchange struct {
	op      ledger.Operation
	members []int32 // of the communicator, sorted
	cells   map[ledger.Cell]bool
	rounds  [][]*ledger.Operand
}

// FindSparse searches for sparse exchanges and adds them to the ledger as MPI_Alltoallv: all messages of a call site
// fall into rounds in which every rank sends all that it sends before it receives anything. Those of all ranks with all
// others in steps, with a tag for each step, are MPI_Alltoall. One round is enough if all send to all. Exchanges whose
// pairs are always the same, both ways, are left for Find, because they are between neighbours. Broadcasts to parts of
// the communicator among the messages of an exchange are withdrawn: payloads repeat by chance. beyond is as
// in Find.
func FindSparse(in *Input, l *ledger.Ledger, first *ledger.Sample) (beyond int64, err error) {
	x := &sparseSearch{minRanks: max(in.MinRanks, 3), ledger: l, taken: ledger.NewOwners(l.Messages, l.Found), members: map[int32][]int32{}}
	for _, c := range in.Comms {
		members := slices.Clone(c.Members)
		slices.Sort(members)
		x.members[c.ID] = members
	}
	found := x.find(first)
	if len(found) == 0 {
		return 0, nil
	}
	all, beyond, err := in.complete(first, func(visit func(map[ledger.Cell]bool)) {
		for _, e := range found {
			visit(e.cells)
		}
	})
	if err != nil || beyond > 0 {
		return beyond, err
	}
	if all != first {
		found = x.find(all)
	}
	for _, e := range found {
		x.record(e)
	}
	return 0, nil
}

// complete returns a sample with all messages of the visited cells, or their number as beyond if that exceeds the room.
func (in *Input) complete(first *ledger.Sample, visit func(func(map[ledger.Cell]bool))) (s *ledger.Sample, beyond int64,
	err error) {
	want, whole, total := wanted(first, visit)
	switch {
	case total > in.Room:
		return nil, total, nil
	case whole:
		return first, 0, nil
	}
	s, err = in.Whole(want)
	return s, 0, err
}

// wanted returns the visited cells, whether the sample has all their messages, and the number of these.
func wanted(first *ledger.Sample, visit func(func(map[ledger.Cell]bool))) (want map[ledger.Cell]bool, whole bool, total int64) {
	want, whole = map[ledger.Cell]bool{}, true
	visit(func(cells map[ledger.Cell]bool) {
		for c := range cells {
			if of := first.Cells[c]; of != nil && !want[c] {
				want[c] = true
				whole = whole && of.IsComplete()
				total += of.Count()
			}
		}
	})
	return want, whole, total
}

// sparseSearch searches a sample for sparse exchanges.
type sparseSearch struct {
	minRanks int
	ledger   *ledger.Ledger
	taken    *ledger.Owners
	members  map[int32][]int32 // of communicators, sorted
}

// find returns the sparse exchanges among the messages of a sample: those of a communicator and sending call site.
func (x *sparseSearch) find(s *ledger.Sample) (out []*exchange) {
	for _, part := range ledger.GroupBy(s.Unless(x.isOther), func(_ int, m *ledger.Operand) ([2]int32, bool) {
		return [2]int32{m.Comm, m.SendSite}, true
	}) {
		if e := x.exchangeOf(part); e != nil {
			out = append(out, e)
		}
	}
	return out
}

// isOther reports whether a message belongs to an operation other than a broadcast to part of its communicator.
func (x *sparseSearch) isOther(m *ledger.Operand) bool {
	i := x.taken.Owner(m.Src, m.SendSeq)
	return i != nil && (i.Op != ledger.Bcast || len(i.Ranks) >= len(x.members[m.Comm]))
}

// minDensity is the least number of messages per rank and round: less is a shift, a pipeline, or tasks and answers.
const minDensity = 1.5

// exchangeOf returns the exchange that the messages are, or nil.
func (x *sparseSearch) exchangeOf(list []*ledger.Operand) *exchange {
	members := x.members[list[0].Comm]
	n := len(members)
	if n < x.minRanks || float64(len(list)) < minDensity*MinInstances*float64(n) {
		return nil
	}
	takes := map[int32]bool{}
	for _, m := range list {
		takes[m.Src], takes[m.Dst] = true, true
	}
	if len(takes) < n {
		return nil
	}
	rounds := inSteps(list, n)
	if rounds == nil {
		rounds = roundsOf(list)
		if len(rounds) == 0 || len(rounds) < MinInstances && len(list) < n*(n-1) || float64(len(list)) < minDensity*float64(n*len(rounds)) || areHalos(rounds, n) ||
			!areDense(rounds, n) || !goBack(list) {
			return nil
		}
	}
	e := &exchange{members: members, rounds: rounds, cells: map[ledger.Cell]bool{}, op: operationOf(rounds, n)}
	for _, m := range list {
		e.cells[m.Cell()] = true
	}
	return e
}

// operationOf returns MPI_Alltoall if in each round every rank sends as much to each other, else MPI_Alltoallv.
func operationOf(rounds [][]*ledger.Operand, ranks int) ledger.Operation {
	for _, round := range rounds {
		if len(round) < ranks*(ranks-1) ||
			slices.ContainsFunc(round, func(m *ledger.Operand) bool { return m.Bytes != round[0].Bytes }) {
			return ledger.Alltoallv
		}
	}
	return ledger.Alltoall
}

// areDense reports whether in most rounds at least half of the ranks send.
func areDense(rounds [][]*ledger.Operand, ranks int) bool {
	dense := 0
	for _, round := range rounds {
		senders := map[int32]bool{}
		for _, m := range round {
			senders[m.Src] = true
		}
		if 2*len(senders) >= ranks {
			dense++
		}
	}
	return 4*dense >= 3*len(rounds)
}

// goBack reports whether at least a quarter of the ways are used both ways. The steps of a scan go up only.
func goBack(list []*ledger.Operand) bool {
	ways, back := map[ledger.Way]bool{}, 0
	for _, m := range list {
		ways[ledger.Way{Src: m.Src, Dst: m.Dst}] = true
	}
	for w := range ways {
		if ways[ledger.Way{Src: w.Dst, Dst: w.Src}] {
			back++
		}
	}
	return 4*back >= len(ways)
}

// areHalos reports whether all rounds have the same ways, each both ways, but not between all ranks.
func areHalos(rounds [][]*ledger.Operand, ranks int) bool {
	ways := map[ledger.Way]bool{}
	for _, m := range rounds[0] {
		ways[ledger.Way{Src: m.Src, Dst: m.Dst}] = true
	}
	if len(ways) == ranks*(ranks-1) {
		return false
	}
	for _, round := range rounds {
		if len(round) != len(ways) {
			return false
		}
		for _, m := range round {
			if !ways[ledger.Way{Src: m.Src, Dst: m.Dst}] || !ways[ledger.Way{Src: m.Dst, Dst: m.Src}] {
				return false
			}
		}
	}
	return true
}

// record adds an exchange to the ledger and withdraws the broadcasts among its messages.
func (x *sparseSearch) record(e *exchange) {
	of, gone := &ledger.Proof{Basis: ledger.ByStructure}, map[*ledger.Instance]bool{}
	for _, round := range e.rounds {
		i := &ledger.Instance{Op: e.op, Root: schema.NullInt32, Ranks: e.members, Segments: 1, Proof: of}
		sent := map[int32]int64{}
		for _, m := range round {
			if old := x.taken.Owner(m.Src, m.SendSeq); old != nil {
				gone[old] = true
			}
			sent[m.Src] += m.Bytes
			i.Bytes = max(i.Bytes, sent[m.Src])
			i.Messages = append(i.Messages, int32(len(x.ledger.Messages)))
			m.Message.Taken = true
			x.ledger.Messages = append(x.ledger.Messages, m.Message)
		}
		x.ledger.Found = append(x.ledger.Found, i)
	}
	x.ledger.Found = slices.DeleteFunc(x.ledger.Found, func(i *ledger.Instance) bool {
		if gone[i] {
			x.ledger.Release(i)
		}
		return gone[i]
	})
}

// minSteps is the least number of steps of an exchange: two are shifts there and back.
const minSteps = 3

// inSteps divides messages into rounds of ranks-1 steps, each sorted by source and send; nil if that is impossible. In
// each step every rank sends to another and then receives, until all have sent to all. A tag may tell the step.
func inSteps(list []*ledger.Operand, ranks int) [][]*ledger.Operand {
	steps := ranks - 1
	if steps < minSteps || len(list)%(ranks*steps) != 0 {
		return nil
	}
	received, sent := map[*ledger.Operand]int{}, map[*ledger.Operand]int{}
	for _, events := range eventsOf(list) {
		if len(events) != 2*len(list)/ranks {
			return nil
		}
		for k, e := range events {
			if e.Send != (k%2 == 0) {
				return nil
			}
			round := 1 + k/2/steps
			if e.Send {
				sent[e.M] = round
			} else {
				received[e.M] = round
			}
		}
	}
	for _, m := range list {
		if sent[m] != received[m] {
			return nil
		}
	}
	return inRounds(list, sent, len(list)/(ranks*steps))
}

// eventsOf returns the sends and receives of each rank, in order.
func eventsOf(list []*ledger.Operand) map[int32][]ledger.Event {
	byRank := map[int32][]ledger.Event{}
	for _, m := range list {
		byRank[m.Src] = append(byRank[m.Src], ledger.Event{M: m, Send: true})
		byRank[m.Dst] = append(byRank[m.Dst], ledger.Event{M: m, Send: false})
	}
	for _, events := range byRank {
		slices.SortStableFunc(events, ledger.CompareEvents)
	}
	return byRank
}
