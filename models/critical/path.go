package critical

import (
	"cmp"
	"slices"

	"github.com/commq/commq/schema"
)

// Path is a critical path, summed by rank, call site and call.
type Path struct {
	// DurationNs is the duration of the run, without startup if Options.LeaveOutStartup is set. It is the sum of all
	// times on the path.
	DurationNs int64
	// EndNs is when the path ends, in ns since the start of the run.
	EndNs int64
	// StartupNs is the time that Options.LeaveOutStartup leaves out.
	StartupNs int64
	// LastRank is the rank that ends last, where the path begins; -1 for an empty run.
	LastRank int32
	// RankChanges counts how often the path goes from one rank to another.
	RankChanges int

	parts map[pathKey]*Part
	trace *trace
}

type pathKey struct {
	rank, site int32
	call       schema.CallID
}

// Part is the time of a part of the path.
type Part struct {
	// Ns is the time by Kind.
	Ns [Kinds]int64
	// Pieces is the number of segments.
	Pieces int64
}

// TotalNs returns the time of all kinds.
func (p *Part) TotalNs() (ns int64) {
	for _, t := range p.Ns {
		ns += t
	}
	return ns
}

func (p *Part) add(q *Part) {
	for kind, ns := range q.Ns {
		p.Ns[kind] += ns
	}
	p.Pieces += q.Pieces
}

// Path walks the critical path and sums it. finish has the time at which each rank ends, as for Walk.
func (g *Graph) Path(finish []int64) *Path {
	p := &Path{LastRank: -1, parts: map[pathKey]*Part{}}
	if g.options.Trace {
		p.trace = &trace{keep: g.options.Segments}
	}
	before := int32(-1)
	p.DurationNs = g.Walk(finish, func(s Segment) {
		if p.LastRank < 0 {
			p.LastRank, p.EndNs = s.Rank, s.To
		} else if s.Rank != before {
			p.RankChanges++
		}
		if p.trace != nil {
			p.trace.add(s, before)
		}
		before = s.Rank
		k := pathKey{s.Rank, s.Site, s.Call}
		part := p.parts[k]
		if part == nil {
			part = &Part{}
			p.parts[k] = part
		}
		part.Ns[s.Kind] += s.To - s.From
		part.Pieces++
	})
	if g.options.LeaveOutStartup && p.LastRank >= 0 {
		p.StartupNs = g.lastNs - g.firstNs - p.DurationNs
	}
	return p
}

// Sum returns the sum of the whole path.
func (p *Path) Sum() Part {
	var sum Part
	for _, part := range p.parts {
		sum.add(part)
	}
	return sum
}

// Key is a column to group the path by.
type Key string

// The keys, in the order of their columns.
const (
	ByCallsite Key = "callsite"
	ByCall     Key = "call"
	ByRank     Key = "rank"
)

// Keys are all keys.
var Keys = []Key{ByCallsite, ByCall, ByRank}

// Group is the part of a path with equal values of some keys. Keys that the path is not grouped by are zero.
type Group struct {
	// Callsite is a place in the program, "" when it is not known; Call is the name of an MPI function.
	Callsite, Call string
	Rank           int32
	Part
}

// GroupBy sums the path by some keys, the longest part first. place returns the name of a call site.
func (p *Path) GroupBy(keys []Key, place func(site int32) string) []Group {
	sites, calls, ranks := slices.Contains(keys, ByCallsite), slices.Contains(keys, ByCall),
		slices.Contains(keys, ByRank)
	type key struct {
		callsite, call string
		rank           int32
	}
	index, groups := map[key]int{}, []Group(nil)
	for k, part := range p.parts {
		var to key
		if sites {
			to.callsite = place(k.site)
		}
		if calls {
			to.call = k.call.String()
		}
		if ranks {
			to.rank = k.rank
		}
		i, known := index[to]
		if !known {
			i = len(groups)
			index[to] = i
			groups = append(groups, Group{Callsite: to.callsite, Call: to.call, Rank: to.rank})
		}
		groups[i].add(part)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.TotalNs(), a.TotalNs()), cmp.Compare(a.Callsite, b.Callsite),
			cmp.Compare(a.Call, b.Call), cmp.Compare(a.Rank, b.Rank))
	})
	return groups
}
