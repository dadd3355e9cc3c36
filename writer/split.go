package writer

import (
	"github.com/commq/commq/schema"
)

// Nearly all rows of a long run are point-to-point, and many queries ask for the others. So the others of a large
// batch get a row group of their own: an SQL engine that looks for class = 'collective' then skips the rest by the
// statistics, while otherwise every row group would have some. Both row groups are sorted by the key, and ReadTable
// and ReadEpochs merge them again.
const (
	// minRowsToSplit is the least number of rows of a batch that is split. With fewer rows there is nothing to gain.
	minRowsToSplit = 1 << 16
	// othersAtMostOneIn bounds the rows that are not point-to-point: at most 1 in othersAtMostOneIn. With more, the two
	// kinds are interleaved so closely that merging takes too long.
	othersAtMostOneIn = 4
)

// span is the rows [i, j) of a batch.
type span struct{ i, j int }

// splitEvents splits a batch of events into the rows of point-to-point calls and the others, in order. It returns the
// batch itself when splitting gains nothing. The returned batches are reused by the next call.
func (e *columnEncoder) splitEvents(b schema.Batch) []schema.Batch {
	events, ok := b.(*schema.Events)
	if !ok || b.Len() < minRowsToSplit {
		return []schema.Batch{b}
	}
	spans, rest := e.spans(events.Class)
	if rest == 0 || rest > b.Len()/othersAtMostOneIn || !inOrder(events) {
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

// spans lists the stretches of point-to-point rows and those of other rows; rest counts the other rows.
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

// inOrder reports whether the rows of a batch are sorted by the key. Unsorted batches are not split, as merging would
// change their order.
func inOrder(b *schema.Events) bool {
	for i := 1; i < b.Len(); i++ {
		if compareRows(b, i-1, b, i) >= 0 {
			return false
		}
	}
	return true
}

// columnsOf lists the columns of a batch.
func columnsOf(b schema.Batch) []any {
	columns := make([]any, len(b.Table().Columns))
	for c := range columns {
		columns[c] = b.Data(c)
	}
	return columns
}

// copyRows copies the rows s of a column to another one of the same type, from row at on.
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
