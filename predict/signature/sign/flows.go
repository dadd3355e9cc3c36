package sign

import (
	"cmp"
	"math"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
)

// Flows collects which call follows which on each rank, and which symbols meet in collective operations.
type Flows struct {
	sig       *signature.Signature
	symbols   *Symbols
	byRank    []template.Flow
	first     []int64 // by symbol: the earliest position on any rank
	recursive []bool  // by symbol: whether some rank has it below the first level of a recursion
	calls     []int64 // by rank: so far
	last      []int32 // by rank: the symbol of the last call
	level     []int32 // by rank: the recursion level of the last call

	meetings map[signature.Operation]*meeting // that not all ranks have joined
	pairs    map[[2]int32]bool                // symbols that met
	size     map[int32]int32                  // of communicators
}

// meeting is a collective operation: the symbol of the rank that came first, and how many ranks have come.
type meeting struct {
	symbol int32
	ranks  int32
}

func newFlows(sig *signature.Signature) *Flows {
	f := &Flows{sig: sig, symbols: newSymbols(sig), byRank: make([]template.Flow, sig.Ranks),
		calls: make([]int64, sig.Ranks), last: make([]int32, sig.Ranks), level: make([]int32, sig.Ranks),
		meetings: map[signature.Operation]*meeting{}, pairs: map[[2]int32]bool{}, size: map[int32]int32{}}
	for i := range sig.Comms {
		c := &sig.Comms[i]
		f.size[c.ID] += int32(len(c.Members) + len(c.Remote))
	}
	for r := range f.byRank {
		f.byRank[r], f.last[r] = template.Flow{}, template.Outside
	}
	return f
}

// read reads the calls of a source, and counts them in the signature.
func (f *Flows) read(source Source) error {
	err := source.ReadFlows(f)
	for r := range f.byRank {
		f.byRank[r][template.Edge{From: f.last[r], To: template.Outside}]++
		f.sig.Calls += f.calls[r]
	}
	return err
}

// Symbol returns the symbol of the calls at a place.
func (f *Flows) Symbol(p Place) int32 {
	id := f.symbols.add(p)
	for len(f.first) < len(f.symbols.list) {
		f.first, f.recursive = append(f.first, math.MaxInt64), append(f.recursive, false)
	}
	return id
}

// Follow adds a rank's next call. level is its level of a recursion, 0 if there is none. The edge from the rank's
// last call is counted times over, for a repetition of which the other iterations are not followed.
func (f *Flows) Follow(rank, symbol, level int32, times int64) {
	f.first[symbol] = min(f.first[symbol], f.calls[rank])
	f.recursive[symbol] = f.recursive[symbol] || level > 0
	direction := int8(0)
	if f.last[rank] != template.Outside {
		direction = int8(cmp.Compare(level, f.level[rank]))
	}
	f.byRank[rank][template.Edge{From: f.last[rank], To: symbol, Level: direction}] += times
	f.last[rank], f.level[rank] = symbol, level
	f.calls[rank] += times
}

// Meet notes that a rank joins a collective operation with a symbol.
func (f *Flows) Meet(op signature.Operation, symbol int32) {
	m := f.meetings[op]
	if m == nil {
		m = &meeting{symbol: symbol}
		f.meetings[op] = m
	}
	if m.symbol != symbol && f.symbols.list[m.symbol].Call == f.symbols.list[symbol].Call {
		f.pairs[[2]int32{min(m.symbol, symbol), max(m.symbol, symbol)}] = true
	}
	if m.ranks++; m.ranks >= f.size[op.Comm] {
		delete(f.meetings, op)
	}
}

// mergeMeetingSymbols gives the same number to symbols that meet in collective operations, unless some rank has both
// and makes them one right after the other. Ranks may reach the same operation on different paths, often because the
// compiler duplicated a loop or the code behind a condition.
func (f *Flows) mergeMeetingSymbols() {
	if len(f.pairs) == 0 {
		return
	}
	ranks := map[int32]map[int32]bool{} // that have a symbol
	for p := range f.pairs {
		ranks[p[0]], ranks[p[1]] = map[int32]bool{}, map[int32]bool{}
	}
	for r, flow := range f.byRank {
		for e := range flow {
			if having := ranks[e.To]; having != nil {
				having[int32(r)] = true
			}
		}
	}
	representative := make([]int32, len(f.symbols.list))
	for i := range representative {
		representative[i] = int32(i)
	}
	pairs := make([][2]int32, 0, len(f.pairs))
	for p := range f.pairs {
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(a, b [2]int32) int { return slices.Compare(a[:], b[:]) })
	for _, p := range pairs {
		a, b := representative[p[0]], representative[p[1]]
		if a == b || overlap(ranks[a], ranks[b]) && f.adjacent(representative, a, b) {
			continue
		}
		for r := range ranks[b] {
			ranks[a][r] = true
		}
		for i := range representative {
			if representative[i] == b {
				representative[i] = a
			}
		}
	}
	f.renumber(representative)
}

// adjacent reports whether some rank makes calls of two symbols one after the other.
func (f *Flows) adjacent(representative []int32, a, b int32) bool {
	is := func(symbol, x int32) bool { return symbol != template.Outside && representative[symbol] == x }
	for _, flow := range f.byRank {
		for e := range flow {
			if is(e.From, a) && is(e.To, b) || is(e.From, b) && is(e.To, a) {
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

// renumber replaces each symbol by its representative, and numbers the representatives without gaps.
func (f *Flows) renumber(representative []int32) {
	var list []signature.Symbol
	var first []int64
	number := make([]int32, len(representative))
	for i := range representative {
		if representative[i] == int32(i) {
			number[i] = int32(len(list))
			list, first = append(list, f.symbols.list[i]), append(first, f.first[i])
		}
	}
	recursive := make([]bool, len(list))
	for i := range representative {
		number[i] = number[representative[i]]
		first[number[i]] = min(first[number[i]], f.first[i])
		recursive[number[i]] = recursive[number[i]] || f.recursive[i]
	}
	for k, id := range f.symbols.ids {
		f.symbols.ids[k] = number[id]
	}
	renumbered := func(symbol int32) int32 {
		if symbol == template.Outside {
			return template.Outside
		}
		return number[symbol]
	}
	for r, flow := range f.byRank {
		g := template.Flow{}
		for e, n := range flow {
			g[template.Edge{From: renumbered(e.From), To: renumbered(e.To), Level: e.Level}] += n
		}
		f.byRank[r] = g
	}
	f.symbols.list, f.first, f.recursive = list, first, recursive
}
