package replace

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/commq/commq/schema"
)

// Pattern is the way in which a program does a collective by hand, if that way is known for any number of ranks.
type Pattern struct {
	// Name is the algorithm: linear, chain, binomial, ring, pairwise, central, dissemination or recursive doubling.
	Name string
	// Operation is the collective.
	Operation schema.CallID
	// Bytes is the size of each message.
	Bytes int64
	shape *shape
	calls style
}

// style is the set of calls that send and receive the messages.
type style uint8

const (
	blocking    style = iota // MPI_Send, MPI_Recv
	nonblocking              // MPI_Isend, MPI_Irecv, MPI_Waitall
	exchanging               // MPI_Sendrecv
)

// String describes the pattern, such as "linear MPI_Bcast of 4097 bytes".
func (p *Pattern) String() string {
	return fmt.Sprintf("%s %s of %d bytes", p.Name, p.Operation, p.Bytes)
}

// action is one step of a rank: it sends, receives, or in a round does both.
type action struct {
	to, from int // none if it does not send, or receive
}

// shape is an algorithm for an operation: what rank k of n does, in order. Rank 0 is the root.
type shape struct {
	name    string
	actions func(k, n int) []action
	powers  bool // n must be a power of two
	rounds  bool // each action waits for the one before
}

func sendTo(k int) action   { return action{k, none} }
func recvFrom(k int) action { return action{none, k} }

// fromRoot and toRoot exchange one message between the root and each other rank.
func fromRoot(k, n int) (list []action) {
	if k > 0 {
		return []action{recvFrom(0)}
	}
	for r := 1; r < n; r++ {
		list = append(list, sendTo(r))
	}
	return list
}

func toRoot(k, n int) (list []action) {
	for _, a := range fromRoot(k, n) {
		list = append(list, action{a.from, a.to})
	}
	return list
}

func chain(k, n int) (list []action) {
	if k > 0 {
		list = append(list, recvFrom(k-1))
	}
	if k < n-1 {
		list = append(list, sendTo(k+1))
	}
	return list
}

// binomial returns the tree in which rank k receives from k without its lowest bit, and sends to the farthest rank
// first.
func binomial(k, n int) (list []action) {
	low := k & -k
	if k == 0 {
		low = 1 << bits.Len(uint(n-1))
	} else {
		list = append(list, recvFrom(k-low))
	}
	for b := low >> 1; b > 0; b >>= 1 {
		if k+b < n {
			list = append(list, sendTo(k+b))
		}
	}
	return list
}

// doubling returns the tree in which rank k receives from k without its highest bit, and sends to the nearest rank
// first.
func doubling(k, n int) (list []action) {
	high := 1
	if k > 0 {
		high = 1 << (bits.Len(uint(k)) - 1)
		list = append(list, recvFrom(k-high))
		high <<= 1
	}
	for b := high; k+b < n; b <<= 1 {
		list = append(list, sendTo(k+b))
	}
	return list
}

// up reverses a tree: messages go from the leaves to the root.
func up(tree func(k, n int) []action) func(k, n int) []action {
	return func(k, n int) []action {
		list := tree(k, n)
		slices.Reverse(list)
		for i, a := range list {
			list[i] = action{a.from, a.to}
		}
		return list
	}
}

func ring(k, n int) (list []action) {
	for range n - 1 {
		list = append(list, action{(k + 1) % n, (k + n - 1) % n})
	}
	return list
}

func pairwise(k, n int) (list []action) {
	for s := 1; s < n; s++ {
		list = append(list, action{(k + s) % n, (k + n - s) % n})
	}
	return list
}

func dissemination(k, n int) (list []action) {
	for s := 1; s < n; s *= 2 {
		list = append(list, action{(k + s) % n, (k + n - s) % n})
	}
	return list
}

// butterfly exchanges with the rank whose number differs in one bit, the lowest bit first. The number of ranks must
// be a power of two.
func butterfly(k, n int) (list []action) {
	for b := 1; b < n; b *= 2 {
		list = append(list, action{k ^ b, k ^ b})
	}
	return list
}

// farFirst is butterfly with the highest bit first.
func farFirst(k, n int) []action {
	list := butterfly(k, n)
	slices.Reverse(list)
	return list
}

// shapes are the known algorithms, by operation.
var shapes = map[schema.CallID][]shape{
	schema.CallBcast: {{name: "linear", actions: fromRoot}, {name: "chain", actions: chain},
		{name: "binomial", actions: binomial},
		{name: "binomial", actions: doubling}},
	schema.CallScatter: {{name: "linear", actions: fromRoot}},
	schema.CallGather:  {{name: "linear", actions: toRoot}},
	schema.CallReduce: {{name: "linear", actions: toRoot}, {name: "chain", actions: up(chain)},
		{name: "binomial", actions: up(binomial)},
		{name: "binomial", actions: up(doubling)}},
	schema.CallAllreduce: {{name: "recursive doubling", actions: butterfly, powers: true, rounds: true},
		{name: "recursive doubling", actions: farFirst, powers: true, rounds: true}},
	schema.CallAllgather: {{name: "ring", actions: ring, rounds: true}, {name: "pairwise", actions: pairwise}},
	schema.CallAlltoall:  {{name: "pairwise", actions: pairwise}},
	schema.CallBarrier: {{name: "central", actions: func(k, n int) []action { return append(toRoot(k, n), fromRoot(k, n)...) }},
		{name: "dissemination", actions: dissemination, rounds: true}},
}

// Operation returns the collective that replaces a finding, given by its index.
func (r *Run) Operation(finding int) schema.CallID { return r.findings[finding].Operation }

// Pattern returns how the program does a finding, given by its index. The error says why this cannot be continued to
// other numbers of ranks.
func (r *Run) Pattern(finding int) (*Pattern, error) {
	f := &r.findings[finding]
	var first *Pattern
	for i := range f.Instances {
		p, err := r.pattern(finding, i)
		switch {
		case err != nil:
			return nil, err
		case first == nil:
			first = p
		case first.shape != p.shape || first.calls != p.calls:
			return nil, fmt.Errorf("its instances go different ways")
		case first.Bytes != p.Bytes:
			return nil, fmt.Errorf("its instances are of different sizes")
		}
	}
	if first == nil {
		return nil, fmt.Errorf("it has no instance")
	}
	return first, nil
}

// pattern returns the pattern of one instance.
func (r *Run) pattern(finding, instance int) (*Pattern, error) {
	f := &r.findings[finding]
	list := r.messages[r.first[finding][instance]:r.first[finding][instance+1]]
	p := &Pattern{Operation: f.Operation, Bytes: list[0].bytes}
	var calls [3]bool
	for i := range list {
		m := &list[i]
		if m.bytes != p.Bytes {
			return nil, fmt.Errorf("its messages are of different sizes")
		}
		calls[r.style(m)] = true
	}
	for k, used := range calls {
		if used {
			p.calls = style(k)
		}
	}
	n := len(f.Ranks)
	for k := range shapes[f.Operation] {
		s := &shapes[f.Operation][k]
		if s.powers && n&(n-1) != 0 || messages(s, n) != len(list) {
			continue
		}
		for _, root := range r.places(f, instance) {
			if r.fits(f, list, s, root) {
				p.Name, p.shape = s.name, s
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("its messages match none of the algorithms that commq knows for %s", f.Operation)
}

// places returns the positions that rank 0 of a shape may have among the ranks of a finding: the root's; without a
// root the first, and in a barrier any.
func (r *Run) places(f *Finding, instance int) []int {
	if root := f.Instances[instance].Root; root != schema.NullInt32 {
		k, _ := slices.BinarySearch(f.Ranks, root)
		return []int{k}
	}
	if f.Operation != schema.CallBarrier {
		return []int{0}
	}
	all := make([]int, len(f.Ranks))
	for k := range all {
		all[k] = k
	}
	return all
}

// style tells from its calls how a message is sent and received.
func (r *Run) style(m *message) style {
	switch {
	case m.kind[0] == schema.ClassSendrecv || m.kind[1] == schema.ClassSendrecv:
		return exchanging
	case r.ranks[m.Src].done[m.SendSeq] != schema.NullInt64 || m.DoneSeq != m.recvRow:
		return nonblocking
	}
	return blocking
}

// messages counts the messages of a shape.
func messages(s *shape, n int) (count int) {
	for k := range n {
		for _, a := range s.actions(k, n) {
			if a.to != none {
				count++
			}
		}
	}
	return count
}

// fits reports whether the messages are those of a shape. Ranks are numbered from root on. Each must send to the
// ranks that the shape names, and in its order, except in linear, central and pairwise.
func (r *Run) fits(f *Finding, list []message, s *shape, root int) bool {
	n := len(f.Ranks)
	sent := make([][]*message, n)
	for i := range list {
		k, _ := slices.BinarySearch(f.Ranks, list[i].Src)
		sent[k] = append(sent[k], &list[i])
	}
	for k := range n {
		var want, have []int32
		for _, a := range s.actions(k, n) {
			if a.to != none {
				want = append(want, f.Ranks[(a.to+root)%n])
			}
		}
		of := sent[(k+root)%n]
		slices.SortFunc(of, func(a, b *message) int { return compare(a.SendSeq, b.SendSeq) })
		for _, m := range of {
			have = append(have, m.Dst)
		}
		if s.name == "linear" || s.name == "central" || s.name == "pairwise" {
			slices.Sort(want)
			slices.Sort(have)
		}
		if !slices.Equal(want, have) {
			return false
		}
	}
	return true
}

// Rows returns the rows of ranks that do nothing but the operation, once by hand and once by a call. All are on
// communicator 0, and the collective has the size that it has in the run. It is an error if the pattern is not known
// for this number of ranks.
func (p *Pattern) Rows(ranks int) (byHand, called []schema.Event, err error) {
	if p.shape.powers && ranks&(ranks-1) != 0 {
		return nil, nil, fmt.Errorf("not known: %s is for powers of two", p.Name)
	}
	for k := range ranks {
		byHand = append(byHand, p.rows(k, p.shape.actions(k, ranks))...)
	}
	for k := range ranks {
		e := schema.NullEvent
		e.Rank, e.Call, e.Class, e.Comm, e.Instance, e.ComputeNs = int32(k), int16(p.Operation),
			int16(schema.ClassCollective), 0, 0, 0
		a := schema.CollectiveArgs{Peers: int64(ranks), Group: int64(ranks), Root: p.Operation.Is(schema.FactRooted) && k == 0,
			Send: p.Bytes, Recv: p.Bytes}
		if p.Operation.Is(schema.FactRooted) {
			e.RootWorld = 0
		}
		e.SendBytes, e.RecvBytes = schema.CollectiveBytes(p.Operation, a)
		called = append(called, e)
	}
	return byHand, called, nil
}

// rows returns the rows of one rank.
func (p *Pattern) rows(rank int, list []action) (rows []schema.Event) {
	row := func(call schema.CallID, a action) {
		e := schema.NullEvent
		e.Rank, e.Seq, e.Call, e.Class, e.Comm, e.ComputeNs = int32(rank), int64(len(rows)), int16(call),
			int16(schema.Calls[call].Class), 0, 0
		if a.to != none {
			e.SendPeer, e.SendWorld, e.SendTag, e.SendBytes = int32(a.to), int32(a.to), 0, p.Bytes
		}
		if a.from != none {
			e.RecvPeer, e.RecvWorld, e.RecvTag, e.RecvBytes = int32(a.from), int32(a.from), 0, p.Bytes
		}
		rows = append(rows, e)
	}
	var open []int
	wait := func() {
		if len(open) == 0 {
			return
		}
		at := int64(len(rows))
		row(schema.CallWaitall, action{none, none})
		for _, k := range open {
			rows[k].DoneSeq = at
		}
		open = open[:0]
	}
	for i, a := range list {
		switch {
		case a.to != none && a.from != none && p.calls == exchanging:
			row(schema.CallSendrecv, a)
		case p.calls == nonblocking:
			if i > 0 && list[i-1].from != none && a.from == none { // forwards what it received
				wait()
			}
			if a.from != none {
				open = append(open, len(rows))
				row(schema.CallIrecv, recvFrom(a.from))
			}
			if a.to != none {
				open = append(open, len(rows))
				row(schema.CallIsend, sendTo(a.to))
			}
			if p.shape.rounds {
				wait()
			}
		default:
			if a.to != none {
				row(schema.CallSend, sendTo(a.to))
			}
			if a.from != none {
				row(schema.CallRecv, recvFrom(a.from))
			}
		}
	}
	wait()
	return rows
}
