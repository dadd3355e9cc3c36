// Package digest computes digests that identify runs: one per table, of its rows, and one of the run. They depend on
// what was captured, not on how it is stored: order, files and compression do not change them.
package digest

import (
	"encoding/binary"
	"fmt"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/commq/commq/internal/uniform"
	"github.com/commq/commq/schema"
)

// Sum is the digest of a set of rows: the sum, modulo 2^128, of the hashes of the rows. It does not depend on the order
// of the rows, so the digests of parts of a table add up to the table's. The zero Sum is that of no rows.
//
// The hash of a row is the 128-bit xxh3 hash of its canonical encoding, seeded with the 64-bit xxh3 hash of the text
// "commq <version> <table>". The encoding is a sequence of 64-bit little-endian words: first a mask with bit i set when
// column i (counted from 0 in the order of the schema) is not null, then, for each column that is not null, its value:
// an integer sign-extended, a string or enum as the 64-bit xxh3 hash of its text.
type Sum struct {
	// Hi and Lo are the upper and lower 64 bits.
	Hi, Lo uint64
}

// Add returns the digest of the rows of both.
func (s Sum) Add(t Sum) Sum {
	lo, carry := bits.Add64(s.Lo, t.Lo, 0)
	hi, _ := bits.Add64(s.Hi, t.Hi, carry)
	return Sum{hi, lo}
}

// String formats the digest as 32 hexadecimal digits.
func (s Sum) String() string { return fmt.Sprintf("%016x%016x", s.Hi, s.Lo) }

// Digester computes the digest of rows of one table. It must not be used concurrently.
type Digester struct {
	table *schema.Table
	seed  uint64
	enums [][]uint64 // per Enum column, the hash of each name
	sum   Sum
	rows  int64
	buf   []byte

	groups, split [digestBlock]rowGroup // of the block that is added; their slices are reused
	places        [digestBlock]uint8    // the rows of a group
}

// rowGroup is the rows of a block that have values in the same columns.
type rowGroup struct {
	rows uint64 // bit r for row r of the block
	mask uint64 // bit i for column i
}

const (
	// digestBlock rows are encoded at a time, so that their encodings stay in the first-level cache. It is the number
	// of bits of rowGroup.rows.
	digestBlock = 64
	// digestColumns is the number of columns that fit the mask.
	digestColumns = 64
)

// New returns a Digester for rows of t.
func New(t *schema.Table) *Digester {
	if len(t.Columns) > digestColumns {
		panic("digest: table " + t.Name + " has more columns than the digest's mask has bits")
	}
	d := &Digester{table: t, seed: xxh3.HashString(fmt.Sprintf("commq %d %s", schema.Version, t.Name))}
	d.buf = make([]byte, digestBlock*d.stride())
	d.enums = make([][]uint64, len(t.Columns))
	for i, c := range t.Columns {
		for _, n := range c.Names {
			d.enums[i] = append(d.enums[i], xxh3.HashString(n))
		}
	}
	return d
}

// stride returns the space for a row's encoding in buf: the mask and every column.
func (d *Digester) stride() int { return 8 * (len(d.table.Columns) + 1) }

// Sum returns the digest of all rows added so far.
func (d *Digester) Sum() Sum { return d.sum }

// Rows returns the number of rows added so far.
func (d *Digester) Rows() int64 { return d.rows }

// Equal reports whether both have the same rows, in any order.
func (d *Digester) Equal(e *Digester) bool { return d.rows == e.rows && d.sum == e.sum }

// Add adds the rows of b, a batch of the Digester's table. Its enums must be null or indexes into their columns'
// Names.
func (d *Digester) Add(b schema.Batch) { d.AddUniform(b, Uniform(b)) }

// Uniform reports, by column, whether all rows of a batch have the same value.
func Uniform(b schema.Batch) []bool {
	same := make([]bool, len(b.Table().Columns))
	for i := range same {
		switch v := b.Data(i).(type) {
		case []int16:
			same[i] = uniform.Ints(v)
		case []int32:
			same[i] = uniform.Ints(v)
		case []int64:
			same[i] = uniform.Ints(v)
		case []string:
			same[i] = uniform.Texts(v)
		}
	}
	return same
}

// AddUniform does the same as Add for callers that have the result of Uniform.
func (d *Digester) AddUniform(b schema.Batch, same []bool) {
	columns := d.live(b, same)
	for i, n := 0, b.Len(); i < n; i += digestBlock {
		d.block(columns, i, min(digestBlock, n-i))
	}
	d.rows += int64(b.Len())
}

// liveColumn is a column with a value in some row.
type liveColumn struct {
	index int
	data  any
	full  bool // all rows have the same value
}

// live lists the columns of b that have a value.
func (d *Digester) live(b schema.Batch, same []bool) []liveColumn {
	columns := make([]liveColumn, 0, len(d.table.Columns))
	for i := range d.table.Columns {
		data := b.Data(i)
		if b.Len() > 0 && !(same[i] && nullFirst(data)) {
			columns = append(columns, liveColumn{i, data, same[i]})
		}
	}
	return columns
}

// nullFirst reports whether the first row of a column is null.
func nullFirst(data any) bool {
	switch v := data.(type) {
	case []int32:
		return v[0] == schema.NullInt32
	case []int64:
		return v[0] == schema.NullInt64
	case []int16:
		return v[0] == schema.NullEnum
	case []string:
		return v[0] == schema.NullText
	}
	panic(fmt.Sprintf("digest: a column of type %T", data))
}

// block adds rows [first, first+n): those that have values in the same columns together, whose encodings have the same
// layout.
func (d *Digester) block(columns []liveColumn, first, n int) {
	stride := d.stride()
	for _, g := range d.group(columns, first, n) {
		rows := d.places[:0]
		for left := g.rows; left != 0; left &= left - 1 {
			rows = append(rows, uint8(bits.TrailingZeros64(left)))
		}
		for k := range rows {
			binary.LittleEndian.PutUint64(d.buf[k*stride:], g.mask)
		}
		end := 8
		for _, c := range columns {
			if g.mask>>c.index&1 == 0 {
				continue
			}
			d.put(c, first, n, rows, end)
			end += 8
		}
		for k := range rows {
			h := xxh3.Hash128Seed(d.buf[k*stride:k*stride+end], d.seed)
			d.sum = d.sum.Add(Sum{h.Hi, h.Lo})
		}
	}
}

// group groups rows [first, first+n) by the columns in which they have values.
func (d *Digester) group(columns []liveColumn, first, n int) []rowGroup {
	groups, split := append(d.groups[:0], rowGroup{rows: 1<<n - 1}), d.split[:0]
	all := groups[0].rows
	for _, c := range columns {
		present := all
		if !c.full {
			present = c.present(first, n)
		}
		split = split[:0]
		for _, g := range groups {
			if with := g.rows & present; with != 0 {
				split = append(split, rowGroup{with, g.mask | 1<<c.index})
			}
			if without := g.rows &^ present; without != 0 {
				split = append(split, rowGroup{without, g.mask})
			}
		}
		groups, split = split, groups
	}
	return groups
}

// present returns a bit for each of the rows [first, first+n), 1 where the column has a value.
func (c *liveColumn) present(first, n int) (rows uint64) {
	switch v := c.data.(type) {
	case []int32:
		return presentInts(v[first:first+n], schema.NullInt32)
	case []int64:
		return presentInts(v[first:first+n], schema.NullInt64)
	case []int16:
		return presentInts(v[first:first+n], schema.NullEnum)
	case []string:
		for r, x := range v[first : first+n] {
			if x != schema.NullText {
				rows |= 1 << r
			}
		}
	}
	return rows
}

func presentInts[T int16 | int32 | int64](v []T, null T) (rows uint64) {
	i := 0
	for ; i+8 <= len(v); i += 8 {
		w := v[i : i+8 : i+8]
		rows |= (differ(w[0], null) | differ(w[1], null)<<1 | differ(w[2], null)<<2 | differ(w[3], null)<<3 |
			differ(w[4], null)<<4 | differ(w[5], null)<<5 | differ(w[6], null)<<6 | differ(w[7], null)<<7) << i
	}
	for ; i < len(v); i++ {
		rows |= differ(v[i], null) << i
	}
	return rows
}

// differ returns 1 if the numbers differ, else 0, without a branch.
func differ[T int16 | int32 | int64](x, y T) uint64 {
	if x != y {
		return 1
	}
	return 0
}

// put writes the values of some of the rows [first, first+n) into their encodings, at offset.
func (d *Digester) put(c liveColumn, first, n int, rows []uint8, offset int) {
	to, stride := d.buf[offset:], d.stride()
	switch v := c.data.(type) {
	case []int32:
		putInts(to, stride, v[first:first+n], rows)
	case []int64:
		putInts(to, stride, v[first:first+n], rows)
	case []int16:
		names := d.enums[c.index]
		for k, r := range rows {
			binary.LittleEndian.PutUint64(to[k*stride:], names[v[first+int(r)]])
		}
	case []string:
		for k, r := range rows {
			binary.LittleEndian.PutUint64(to[k*stride:], xxh3.HashString(v[first+int(r)]))
		}
	}
}

func putInts[T int32 | int64](to []byte, stride int, v []T, rows []uint8) {
	if len(rows) == len(v) {
		for k, x := range v {
			binary.LittleEndian.PutUint64(to[k*stride:], uint64(int64(x)))
		}
		return
	}
	for k, r := range rows {
		binary.LittleEndian.PutUint64(to[k*stride:], uint64(int64(v[r])))
	}
}

// OfRun returns the digest of a run: that of its manifest's identity.
func OfRun(m *schema.Manifest) Sum {
	h := m.Identity()
	return Sum{h.Hi, h.Lo}
}
