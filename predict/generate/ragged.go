package generate

import (
	"fmt"
	"slices"

	"github.com/commq/commq/predict/pattern"
)

// A family covers all places between its least and largest index, unless it has holes, like the family of a triangular
// loop. Then the ranges of its indexes do not determine its places.

// placeKind is the answer to whether a family has a place that no run has.
type placeKind int

const (
	placeCovered placeKind = iota
	placeAbsent
	placeUnknown
)

// mostPlaces limits the places of a family in a run that are searched for holes.
const mostPlaces = 1 << 16

// placeIn determines whether a family has a place that no run has. If the family has holes, a place within the range of
// some run is absent, because that run lacks it; places beyond the ranges of all runs are unknown.
func (p *peerLaws) placeIn(l *pattern.Law, index []int32) placeKind {
	holes, known := p.holes[l]
	if !known {
		holes = hasHoles(l)
		p.holes[l] = holes
	}
	if !holes {
		return placeCovered
	}
	for _, ranks := range l.Training {
		if low, high, some := boxOf(l, ranks); some && within(index, low, high) {
			return placeAbsent
		}
	}
	return placeUnknown
}

// boxOf returns the least and the largest index of a family's members in a run; false if it has none there.
func boxOf(l *pattern.Law, ranks int32) (low, high []int32, some bool) {
	for i := range l.Members {
		m := &l.Members[i]
		if !slices.Contains(m.Sizes, ranks) {
			continue
		}
		if !some {
			low, high, some = slices.Clone(m.Index), slices.Clone(m.Index), true
		}
		for c, x := range m.Index {
			low[c], high[c] = min(low[c], x), max(high[c], x)
		}
	}
	return low, high, some
}

func within(index, low, high []int32) bool {
	for c, x := range index {
		if x < low[c] || x > high[c] {
			return false
		}
	}
	return true
}

// hasHoles reports whether a family lacks, in some run, a place within the range of its indexes where its law has
// senders.
func hasHoles(l *pattern.Law) bool {
	if len(l.Forms) == 0 || len(l.Members[0].Index) == 0 {
		return false
	}
	for _, ranks := range l.Training {
		low, high, some := boxOf(l, ranks)
		if !some {
			continue
		}
		places := 1
		for c := range low {
			if places *= int(high[c]-low[c]) + 1; places > mostPlaces {
				return false
			}
		}
		there := map[string]bool{}
		for i := range l.Members {
			if slices.Contains(l.Members[i].Sizes, ranks) {
				there[fmt.Sprint(l.Members[i].Index)] = true
			}
		}
		if len(there) < places && lacksPlace(l, ranks, low, high, there) {
			return true
		}
	}
	return false
}

// lacksPlace reports whether a place between two indexes is missing although the law has senders there.
func lacksPlace(l *pattern.Law, ranks int32, low, high []int32, there map[string]bool) bool {
	index := slices.Clone(low)
	for {
		if !there[fmt.Sprint(index)] && l.Forms[0].HasSenders(ranks, index) {
			return true
		}
		c := len(index) - 1
		for ; c >= 0 && index[c] == high[c]; c-- {
			index[c] = low[c]
		}
		if c < 0 {
			return false
		}
		index[c]++
	}
}
