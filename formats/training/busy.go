package training

import (
	"cmp"
	"slices"
	"sort"
)

// Busy is the time in which a process computed. The zero value is ready to use.
type Busy struct {
	spans  []span
	before []int64 // time in the spans before each, after compact
	merged int     // spans that the last compact left
}

type span struct{ start, end int64 }

// compactAt is the number of new spans after which those that touch are merged, at least.
const compactAt = 1 << 16

// Add adds the time from start to end, in ns. Spans may overlap and come in any order.
func (b *Busy) Add(start, end int64) {
	if end <= start {
		return
	}
	b.spans = append(b.spans, span{start, end})
	if len(b.spans) >= max(compactAt, 2*b.merged) {
		b.compact()
	}
}

// compact sorts the spans, merges those that touch, and adds them up.
func (b *Busy) compact() {
	slices.SortFunc(b.spans, func(x, y span) int { return cmp.Compare(x.start, y.start) })
	n := 0
	for _, s := range b.spans {
		if n > 0 && s.start <= b.spans[n-1].end {
			b.spans[n-1].end = max(b.spans[n-1].end, s.end)
			continue
		}
		b.spans[n] = s
		n++
	}
	b.spans, b.merged = b.spans[:n], n
	b.before = slices.Grow(b.before[:0], n)
	sum := int64(0)
	for _, s := range b.spans {
		b.before = append(b.before, sum)
		sum += s.end - s.start
	}
}

// until returns the time computed before t. It and all below need compact.
func (b *Busy) until(t int64) int64 {
	i := sort.Search(len(b.spans), func(i int) bool { return b.spans[i].start >= t })
	if i == 0 {
		return 0
	}
	s := b.spans[i-1]
	return b.before[i-1] + min(t, s.end) - s.start
}

// between returns the time computed from start to end.
func (b *Busy) between(start, end int64) int64 { return max(0, b.until(end)-b.until(start)) }

// idleSince returns since when the process did not compute at the time end; end itself if it computed, and not before
// start.
func (b *Busy) idleSince(start, end int64) int64 {
	i := sort.Search(len(b.spans), func(i int) bool { return b.spans[i].start >= end })
	if i == 0 {
		return start
	}
	return max(start, min(end, b.spans[i-1].end))
}
