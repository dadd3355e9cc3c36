package writer

import (
	"slices"

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

// splitEvents lists the rows of each row group of a batch: of events, those of point-to-point calls and the others.
// When splitting gains nothing, they are all together. The spans are reused by the next call.
func (e *columnEncoder) splitEvents(b schema.Batch) [][]span {
	if b.Len() == 0 {
		return nil
	}
	all := [][]span{{{0, b.Len()}}}
	events, ok := b.(*schema.Events)
	if !ok || b.Len() < minRowsToSplit {
		return all
	}
	spans, rest := e.spans(events.Class)
	if rest == 0 || rest > b.Len()/othersAtMostOneIn || !inOrder(events) {
		return all
	}
	return spans[:]
}

// takeRows returns the first n rows of the spans, or all if there are fewer, and the spans of those that follow.
func takeRows(rows []span, n int) (first, rest []span) {
	for k, s := range rows {
		if s.j-s.i > n {
			first = append(slices.Clone(rows[:k]), span{s.i, s.i + n})
			rest = append([]span{{s.i + n, s.j}}, rows[k+1:]...)
			if n == 0 {
				first = first[:k]
			}
			return first, rest
		}
		n -= s.j - s.i
	}
	return rows, nil
}

// countRows counts the rows of spans.
func countRows(rows []span) (n int) {
	for _, s := range rows {
		n += s.j - s.i
	}
	return n
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

// stretch is rows of a batch that are copied to row at, and those after it, of another batch.
type stretch struct {
	span
	at int
}

// copyStretches copies rows of a column to another column of the same type.
func copyStretches(to, from any, list []stretch) {
	switch v := from.(type) {
	case []int32:
		copyValues(to.([]int32), v, list)
	case []int64:
		copyValues(to.([]int64), v, list)
	case []int16:
		copyValues(to.([]int16), v, list)
	case []string:
		copyValues(to.([]string), v, list)
	}
}

func copyValues[T any](to, from []T, list []stretch) {
	for _, s := range list {
		if s.j-s.i == 1 { // such as a collective between messages: copy would take longer
			to[s.at] = from[s.i]
			continue
		}
		copy(to[s.at:], from[s.i:s.j])
	}
}
