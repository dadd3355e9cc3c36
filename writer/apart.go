package writer

import (
	"github.com/commq/commq/schema"
)

// Nearly all rows of a long run are point-to-point, and many queries ask for the others. In a large batch they stand in a row group
// of their own: an engine that looks for class = 'collective' then leaves the rest out by the statistics, where otherwise every row
// group has some. Both are sorted by the key, and whoever reads with ReadTable or ReadEpochs gets them merged.
const (
	// apartRows is how many rows a batch of events has at least whose rows are told apart: with fewer there is nothing to save.
	apartRows = 1 << 16
	// apartShare is the part of them, 1 in so many, that is not point-to-point at most. Where it is more the two are
	// interleaved so closely that merging takes longer.
	apartShare = 4
)

// span is the rows [i, j) of a batch.
type span struct{ i, j int }

// apart splits a batch of events into the rows of point-to-point calls and the others, in order; the batches of e are used again.
// It gives the batch itself where that brings nothing.
func (e *columnEncoder) apart(b schema.Batch) []schema.Batch {
	events, ok := b.(*schema.Events)
	if !ok || b.Len() < apartRows {
		return []schema.Batch{b}
	}
	spans, rest := e.spans(events.Class)
	if rest == 0 || rest > b.Len()/apartShare || !inOrder(events) {
		return []schema.Batch{b}
	}
	sizes := [2]int{b.Len() - rest, rest}
	from := columnsOf(b)
	for k := range e.parts {
		if e.parts[k] == nil {
			e.parts[k] = &schema.Events{}
		}
		e.parts[k].Resize(sizes[k])
		to, at := columnsOf(e.parts[k]), 0
		for _, s := range spans[k] {
			for c := range from {
				copyRows(to[c], at, from[c], s)
			}
			at += s.j - s.i
		}
	}
	return []schema.Batch{e.parts[0], e.parts[1]}
}

// spans are the stretches of point-to-point rows and those of the others; rest is how many the others are.
func (e *columnEncoder) spans(class []int16) (spans [2][]span, rest int) {
	for k := range e.stretches {
		e.stretches[k] = e.stretches[k][:0]
	}
	for i := 0; i < len(class); {
		p2p, j := schema.Class(class[i]).PointToPoint(), i+1
		for j < len(class) && schema.Class(class[j]).PointToPoint() == p2p {
			j++
		}
		k := 0
		if !p2p {
			k, rest = 1, rest+j-i
		}
		e.stretches[k] = append(e.stretches[k], span{i, j})
		i = j
	}
	return e.stretches, rest
}

// inOrder says whether the rows of a batch are sorted by the key. Others are left as they are: merged, they would come back differently.
func inOrder(b *schema.Events) bool {
	for i := 1; i < b.Len(); i++ {
		if compareRows(b, i-1, b, i) >= 0 {
			return false
		}
	}
	return true
}

// columnsOf are the columns of a batch.
func columnsOf(b schema.Batch) []any {
	columns := make([]any, len(b.Table().Columns))
	for c := range columns {
		columns[c] = b.Data(c)
	}
	return columns
}

// copyRows copies the rows s of a column to place at of another of the same type.
func copyRows(to any, at int, from any, s span) {
	switch v := from.(type) {
	case []int32:
		copy(to.([]int32)[at:], v[s.i:s.j])
	case []int64:
		copy(to.([]int64)[at:], v[s.i:s.j])
	case []int16:
		copy(to.([]int16)[at:], v[s.i:s.j])
	case []string:
		copy(to.([]string)[at:], v[s.i:s.j])
	}
}
