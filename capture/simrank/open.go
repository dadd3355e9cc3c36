package simrank

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// mostLines limits the unfinished collectives that warnOpen lists.
const mostLines = 5

// warnOpen lists the ranks that never left and the collectives that not all ranks entered.
func (s *simulator) warnOpen() {
	var remaining []int32
	for r, state := range s.ranks {
		if state == present {
			remaining = append(remaining, int32(r))
		}
	}
	if len(remaining) > 0 {
		fmt.Fprintf(s.o.Log, "commq simrank: %s ended without leaving; what %s recorded is kept\n", rankList(remaining),
			pronoun(remaining))
	}
	open := slices.SortedFunc(maps.Keys(s.gathering),
		func(a, b instance) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.n, b.n)) })
	for i, p := range open {
		if i == mostLines {
			fmt.Fprintf(s.o.Log, "commq simrank: and %d more collectives\n", len(open)-i)
			break
		}
		g := s.gathering[p]
		slices.Sort(g.ranks)
		fmt.Fprintf(s.o.Log, "commq simrank: only %d of %d ranks entered %s, number %d on communicator %016x: %s\n",
			len(g.ranks), g.want, schema.CallID(g.call), p.n, p.key, rankList(g.ranks))
	}
}

func pronoun(ranks []int32) string {
	if len(ranks) == 1 {
		return "it"
	}
	return "they"
}

// rankList is "rank 3" or "ranks 1, 2, 5 and 61 more".
func rankList(ranks []int32) string {
	const most = 8
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	var b strings.Builder
	b.WriteString("ranks ")
	for i, r := range ranks {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(ranks)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprint(&b, r)
	}
	return b.String()
}
