package predict

import (
	"cmp"
	"slices"
)

// meeting is a collective operation while flows are read: the symbol of the rank that came first, and how many have come.
type meeting struct {
	symbol int32
	ranks  int32
}

// meet notes which symbols meet in collective operations.
func (s *signer) meet(k instance, symbol int32) {
	m := s.met[k]
	if m == nil {
		m = &meeting{symbol: symbol}
		s.met[k] = m
	}
	if m.symbol != symbol && s.sig.Symbols[m.symbol].Call == s.sig.Symbols[symbol].Call {
		s.pairs[[2]int32{min(m.symbol, symbol), max(m.symbol, symbol)}] = true
	}
	if m.ranks++; m.ranks >= s.size[k.comm] {
		delete(s.met, k)
	}
}

// join makes one symbol of those that meet in collective operations and that no rank has both of, or has one after the other: ranks go different ways
// through the program, often because the compiler made two loops of one with a condition in it, or copies of what comes behind one, and do the same.
func (s *signer) join() {
	s.same = make([]int32, len(s.sig.Symbols))
	for i := range s.same {
		s.same[i] = int32(i)
	}
	if len(s.pairs) == 0 {
		return
	}
	ranks := map[int32]map[int32]bool{} // that have a symbol
	for p := range s.pairs {
		ranks[p[0]], ranks[p[1]] = map[int32]bool{}, map[int32]bool{}
	}
	for r, f := range s.flows {
		for e := range f {
			if of := ranks[e.to]; of != nil {
				of[int32(r)] = true
			}
		}
	}
	to := make([]int32, len(s.sig.Symbols))
	for i := range to {
		to[i] = int32(i)
	}
	pairs := make([][2]int32, 0, len(s.pairs))
	for p := range s.pairs {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	for _, p := range pairs {
		a, b := to[p[0]], to[p[1]]
		if a == b || overlap(ranks[a], ranks[b]) && s.adjacent(to, a, b) {
			continue
		}
		for r := range ranks[b] {
			ranks[a][r] = true
		}
		for i := range to {
			if to[i] == b {
				to[i] = a
			}
		}
	}
	s.relabel(to)
}

// adjacent says whether some rank makes calls of two symbols one after the other.
func (s *signer) adjacent(to []int32, a, b int32) bool {
	is := func(symbol, of int32) bool { return symbol != outside && to[symbol] == of }
	for _, f := range s.flows {
		for e := range f {
			if is(e.from, a) && is(e.to, b) || is(e.from, b) && is(e.to, a) {
				return true
			}
		}
	}
	return false
}

func overlap(a, b map[int32]bool) bool {
	for r := range a {
		if b[r] {
			return true
		}
	}
	return false
}

// relabel gives symbols other numbers: those of others that they are the same as, without gaps.
func (s *signer) relabel(to []int32) {
	var symbols []Symbol
	var first []int64
	place := make([]int32, len(to))
	for i := range to {
		if to[i] == int32(i) {
			place[i] = int32(len(symbols))
			symbols, first = append(symbols, s.sig.Symbols[i]), append(first, s.first[i])
		}
	}
	for i := range to {
		place[i] = place[to[i]]
		first[place[i]] = min(first[place[i]], s.first[i])
	}
	for k, id := range s.ids {
		s.ids[k] = place[id]
	}
	deep := make([]bool, len(symbols))
	for i := range to {
		deep[place[i]] = deep[place[i]] || s.deep[i]
	}
	s.deep = deep
	at := func(symbol int32) int32 {
		if symbol == outside {
			return outside
		}
		return place[symbol]
	}
	for r, f := range s.flows {
		g := flow{}
		for e, n := range f {
			g[edge{at(e.from), at(e.to), e.level}] += n
		}
		s.flows[r] = g
	}
	s.sig.Symbols, s.first, s.same = symbols, first, place
}
