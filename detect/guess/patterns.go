package guess

import (
	"math/bits"

	"github.com/commq/commq/detect/ledger"
)

// patterns are tried one after the other. Each returns how many steps from at on it explains, 0 for none, and adds
// what they look like.
var patterns = []func(t *team, at int) int{ring, doubling, halving, dissemination}

// ring explains steps in which all ranks send one block to the next one, over and over: p-1 of them pass the block of
// each rank to all others, and twice as many also combine them. More are several rings, one after the other. A
// program that exchanges with a neighbour so often sends the same.
func ring(t *team, at int) int {
	p, first := len(t.ranks), t.steps[at]
	n := 0
	for at+n < len(t.steps) && t.steps[at+n] == first {
		n++
	}
	if at > 0 && t.steps[at-1] == first || first.shift <= 0 || gcd(first.shift, p) != 1 || first.bytes == 0 || n%(p-1) != 0 {
		return 0
	}
	length, op, bytes := 2*(p-1), ledger.Allreduce, first.bytes*int64(p)
	others := []ledger.Operation{ledger.Allgather, ledger.ReduceScatterBlock, ledger.NeighborAlltoall}
	if n%length != 0 {
		length, op, bytes, others = p-1, ledger.Allgather, first.bytes, others[1:]
	}
	for s := at; s < at+n; s += length {
		if !t.passesOn(s, length) {
			return 0
		}
	}
	for s := at; s < at+n; s += length {
		t.add(s, length, bytes, op, others...)
	}
	return n
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// masked reports whether the steps from at on are with partners at the distances 1, 2, 4 and so on to half of the
// ranks, or back from there; scale returns the bytes of step i of n, relative to those of the first.
func (t *team) masked(at int, back bool, fits func(i int, first, bytes int64) bool) (n int) {
	p := len(t.ranks)
	n = bits.Len(uint(p)) - 1
	if p != 1<<n || at+n > len(t.steps) {
		return 0
	}
	for i := range n {
		mask := 1 << i
		if back {
			mask = p >> (i + 1)
		}
		if t.steps[at+i].mask != mask || !fits(i, t.steps[at].bytes, t.steps[at+i].bytes) {
			return 0
		}
	}
	if !t.passesOn(at, n) {
		return 0
	}
	return n
}

func isEqual(_ int, first, bytes int64) bool   { return bytes == first }
func isDoubled(i int, first, bytes int64) bool { return bytes == first<<i }
func isHalved(i int, first, bytes int64) bool  { return bytes<<i == first }

// doubling explains recursive doubling: with equal sizes an all-reduce or a barrier, with doubled ones an all-gather.
func doubling(t *team, at int) int {
	for _, back := range []bool{false, true} {
		if n := t.masked(at, back, isEqual); n > 0 {
			if t.steps[at].bytes == 0 {
				t.add(at, n, 0, ledger.Barrier)
			} else {
				t.add(at, n, t.steps[at].bytes, ledger.Allreduce, ledger.NeighborAlltoall)
			}
			return n
		}
		if n := t.masked(at, back, isDoubled); n > 0 {
			t.add(at, n, t.steps[at].bytes, ledger.Allgather)
			return n
		}
	}
	return 0
}

// halving explains recursive halving, a reduce-scatter, and that with recursive doubling after it, which is an
// all-reduce.
func halving(t *team, at int) int {
	for _, back := range []bool{true, false} {
		n := t.masked(at, back, isHalved)
		if n == 0 {
			continue
		}
		total := 2 * t.steps[at].bytes
		if k := t.masked(at+n, !back, isDoubled); k > 0 && t.steps[at+n].bytes == t.steps[at+n-1].bytes &&
			t.passesOn(at, 2*n) {
			t.add(at, 2*n, total, ledger.Allreduce)
			return 2 * n
		}
		t.add(at, n, total, ledger.ReduceScatterBlock)
		return n
	}
	return 0
}

// dissemination explains steps to the ranks 1, 2, 4 and so on places on, or back: empty ones are a barrier, those that
// double, but for the last, are Bruck's all-gather.
func dissemination(t *team, at int) int {
	p := len(t.ranks)
	n := bits.Len(uint(p - 1))
	if at+n > len(t.steps) {
		return 0
	}
	first := t.steps[at].bytes
	for i := range n {
		s := t.steps[at+i]
		on, back := 1<<i, p-1<<i
		if t.steps[at].shift == 1 && s.shift != on || t.steps[at].shift != 1 && s.shift != back ||
			s.bytes != first*int64(min(on, p-on)) {
			return 0
		}
	}
	if !t.passesOn(at, n) {
		return 0
	}
	if first == 0 {
		t.add(at, n, 0, ledger.Barrier)
	} else {
		t.add(at, n, first, ledger.Allgather)
	}
	return n
}

// each explains as many steps as there are other ranks, in which each rank sends to another one each, in any order.
func each(t *team, at int) int {
	p := len(t.ranks)
	if at+p-1 > len(t.steps) {
		return 0
	}
	bytes := t.messages[t.sent[0][at]].Bytes
	if bytes == 0 {
		return 0
	}
	for k := range p {
		to := map[int32]bool{}
		for _, i := range t.sent[k][at : at+p-1] {
			if to[t.messages[i].Dst] = true; t.messages[i].Bytes != bytes {
				return 0
			}
		}
		if len(to) != p-1 {
			return 0
		}
	}
	t.add(at, p-1, bytes*int64(p-1), ledger.Alltoall, ledger.Allgather)
	return p - 1
}
