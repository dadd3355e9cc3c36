package writer

import (
	"slices"

	"github.com/commq/commq/internal/uniform"
	"github.com/commq/commq/schema"
)

// blockRows is the number of rows that are loaded at a time, a multiple of 8: they fit the first-level cache.
const blockRows = 1 << 12

// blocks is memory for the rows of a block whose spans are not together in the batch.
type blocks struct {
	enums  [blockRows]int16
	narrow [blockRows]int32
	wide   [blockRows]int64
	texts  [blockRows]string
}

// eachBlock passes the rows of a column in blocks of blockRows, the last of which may be shorter; at is the number of
// rows before.
func eachBlock[T any](v []T, rows []span, room []T, take func(block []T, at int)) {
	at, filled := 0, 0
	for _, s := range rows {
		for s.i < s.j {
			if filled == 0 && s.j-s.i >= blockRows { // no need to copy
				take(v[s.i:s.i+blockRows], at)
				s.i, at = s.i+blockRows, at+blockRows
				continue
			}
			n := copy(room[filled:], v[s.i:s.j])
			s.i, filled = s.i+n, filled+n
			if filled == blockRows {
				take(room, at)
				at, filled = at+filled, 0
			}
		}
	}
	if filled > 0 {
		take(room[:filled], at)
	}
}

// load fills values, bitmap and texts from rows of a column.
func (e *columnEncoder) load(c *schema.Column, data any, rows []span) {
	e.reserve(countRows(rows))
	switch v := data.(type) {
	case []int32:
		loadInts(e, v, schema.NullInt32, rows, e.blocks.narrow[:])
	case []int64:
		if s := rows[0]; len(rows) == 1 && slices.Index(v[s.i:s.j], schema.NullInt64) < 0 {
			e.values = v[s.i:s.j]
			fillBits(e.bitmap, s.j-s.i)
			return
		}
		loadInts(e, v, schema.NullInt64, rows, e.blocks.wide[:])
	case []int16:
		e.texts = c.Names
		loadInts(e, v, schema.NullEnum, rows, e.blocks.enums[:])
	case []string:
		e.loadTexts(v, rows)
	}
}

// reserve makes room for n rows.
func (e *columnEncoder) reserve(n int) {
	e.room = slices.Grow(e.room[:0], n)[:n]
	e.bitmap = slices.Grow(e.bitmap[:0], n/8+1)[:(n+7)/8]
	e.values, e.texts = e.room, nil
}

// loadSame does the same as load for n rows of a column that all have the value of this row, and makes them one page.
// It leaves the values as they are: nobody looks at those of a page whose least and greatest are equal.
func (e *columnEncoder) loadSame(c *schema.Column, data any, row, n int) {
	e.reserve(n)
	x, null := int64(0), false
	switch v := data.(type) {
	case []int32:
		x, null = int64(v[row]), v[row] == schema.NullInt32
	case []int64:
		x, null = v[row], v[row] == schema.NullInt64
	case []int16:
		x, null, e.texts = int64(v[row]), v[row] == schema.NullEnum, c.Names
	case []string:
		if null = v[row] == schema.NullText; !null {
			e.texts = []string{v[row]}
		}
	}
	p := pageSpan{rows: n, values: n, low: x, high: x}
	if null {
		p = pageSpan{rows: n}
	}
	e.values, e.pages = e.values[:p.values], append(e.pages[:0], p)
}

// loadInts fills values and bitmap with integers or enums.
func loadInts[T int16 | int32 | int64](e *columnEncoder, v []T, null T, rows []span, room []T) {
	n := 0
	eachBlock(v, rows, room, func(block []T, at int) {
		values, bitmap := e.values[n:], e.bitmap[at/8:]
		if slices.Index(block, null) >= 0 {
			if !uniform.Ints(block) {
				n += present(block, null, values, bitmap)
				return
			}
			clear(bitmap[:(len(block)+7)/8])
			return
		}
		values = values[:len(block)]
		for i, x := range block {
			values[i] = int64(x)
		}
		fillBits(bitmap, len(block))
		n += len(block)
	})
	e.values = e.values[:n]
}

// fillBits sets the first n bits, and clears the others of their last byte.
func fillBits(bitmap []byte, n int) {
	for i := range bitmap[:n/8] {
		bitmap[i] = 0xff
	}
	if n%8 != 0 {
		bitmap[n/8] = 1<<(n%8) - 1
	}
}

// present packs one bit per row into bitmap, 1 where v is not null, and widens the values that are not null into
// values. It returns their number. bitmap has room for a bit per row, values for a value per row.
func present[T int16 | int32 | int64](v []T, null T, values []int64, bitmap []byte) int {
	n, i := 0, 0
	for ; i+8 <= len(v); i += 8 {
		var b byte
		for k, x := range v[i : i+8] {
			values[n] = int64(x)
			p := 0
			if x != null {
				p = 1
			}
			n += p
			b |= byte(p << k)
		}
		bitmap[i/8] = b
	}
	if i < len(v) {
		bitmap[i/8] = 0
	}
	for k, x := range v[i:] {
		if x != null {
			values[n] = int64(x)
			n++
			bitmap[i/8] |= 1 << k
		}
	}
	return n
}

// loadTexts fills values with the numbers of texts, and texts with each text once.
func (e *columnEncoder) loadTexts(v []string, rows []span) {
	numbers := map[string]int64{}
	clear(e.bitmap)
	n := 0
	eachBlock(v, rows, e.blocks.texts[:], func(block []string, at int) {
		for i, s := range block {
			if s == schema.NullText {
				continue
			}
			number, ok := numbers[s]
			if !ok {
				number = int64(len(e.texts))
				numbers[s] = number
				e.texts = append(e.texts, s)
			}
			e.bitmap[(at+i)/8] |= 1 << ((at + i) % 8)
			e.values[n] = number
			n++
		}
	})
	e.values = e.values[:n]
}
