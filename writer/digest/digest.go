// Package digest computes digests that identify runs: one per table, of its rows, and one of the run. They depend on
// what was captured, not on how it is stored: order, files and compression do not change them.
package digest

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"

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

// Parse reads what String wrote. It returns an error for anything else.
func Parse(s string) (Sum, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return Sum{}, fmt.Errorf("digest %q: want 32 hexadecimal digits", s)
	}
	return Sum{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}

// Digester computes the digest of rows of one table. It must not be used concurrently.
type Digester struct {
	table *schema.Table
	seed  uint64
	enums [][]uint64 // per Enum column, the hash of each name
	sum   Sum
	rows  int64
	buf   []byte
	mask  [digestBlock]uint64
	end   [digestBlock]int32

	// If each column so far is null in all rows of the block or in none, all rows have the same mask and length:
	// mask[0] and even. Otherwise even is -1, and mask and end have a value per row.
	even int
}

const (
	// digestBlock rows are encoded at a time, so that their encodings stay in the first-level cache.
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

// stride returns the space for a row's encoding in buf: the mask, every column, and a word that put may overwrite.
func (d *Digester) stride() int { return 8 * (len(d.table.Columns) + 2) }

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
}

// live lists the columns of b that have a value.
func (d *Digester) live(b schema.Batch, same []bool) []liveColumn {
	columns := make([]liveColumn, 0, len(d.table.Columns))
	for i := range d.table.Columns {
		data := b.Data(i)
		if b.Len() > 0 && !(same[i] && nullFirst(data)) {
			columns = append(columns, liveColumn{i, data})
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

// block adds rows [first, first+n), column by column into one encoding per row, then row by row.
func (d *Digester) block(columns []liveColumn, first, n int) {
	stride := d.stride()
	d.even, d.mask[0] = 8, 0
	for _, c := range columns {
		switch v := c.data.(type) {
		case []int32:
			putInts(d, v[first:first+n], schema.NullInt32, c.index)
		case []int64:
			putInts(d, v[first:first+n], schema.NullInt64, c.index)
		case []int16:
			putEnums(d, v[first:first+n], c.index)
		case []string:
			putTexts(d, v[first:first+n], c.index)
		}
	}
	d.uneven(n)
	for r := range n {
		row := d.buf[r*stride : d.end[r]]
		binary.LittleEndian.PutUint64(row, d.mask[r])
		h := xxh3.Hash128Seed(row, d.seed)
		d.sum = d.sum.Add(Sum{h.Hi, h.Lo})
	}
}

// uneven gives each of the n rows its own mask and end, if they have shared one so far.
func (d *Digester) uneven(n int) {
	if d.even < 0 {
		return
	}
	stride := d.stride()
	for r := range n {
		d.mask[r] = d.mask[0]
		d.end[r] = int32(r*stride + d.even)
	}
	d.even = -1
}

// evenly reports whether all rows still share mask and length after a column in which present of n rows have a value.
// If so, offset is the place of the values in the first row's encoding, or -1 if all are null.
func (d *Digester) evenly(present, n, column int) (offset int, ok bool) {
	switch {
	case d.even >= 0 && present == 0:
		return -1, true
	case d.even >= 0 && present == n:
		offset = d.even
		d.even += 8
		d.mask[0] |= 1 << column
		return offset, true
	}
	d.uneven(n)
	return 0, false
}

// countPresent counts the values that are not null.
func countPresent[T int16 | int32 | int64](v []T, null T) (n int) {
	for _, x := range v {
		if x != null {
			n++
		}
	}
	return n
}

// putInts writes every value, null or not, but advances only past those that are not null. So the loop has no branch
// to mispredict.
func putInts[T int32 | int64](d *Digester, v []T, null T, column int) {
	if d.even >= 0 {
		if offset, ok := d.evenly(countPresent(v, null), len(v), column); ok {
			if stride := d.stride(); offset >= 0 {
				for _, x := range v {
					binary.LittleEndian.PutUint64(d.buf[offset:], uint64(int64(x)))
					offset += stride
				}
			}
			return
		}
	}
	for r, x := range v {
		present := uint64(1)
		if x == null {
			present = 0
		}
		d.put(r, column, uint64(int64(x)), present)
	}
}

func putEnums(d *Digester, v []int16, column int) {
	names := d.enums[column]
	if d.even >= 0 {
		if offset, ok := d.evenly(countPresent(v, schema.NullEnum), len(v), column); ok {
			if stride := d.stride(); offset >= 0 {
				for _, x := range v {
					binary.LittleEndian.PutUint64(d.buf[offset:], names[x])
					offset += stride
				}
			}
			return
		}
	}
	for r, x := range v {
		if x != schema.NullEnum {
			d.put(r, column, names[x], 1)
		}
	}
}

func putTexts(d *Digester, v []string, column int) {
	d.uneven(len(v))
	for r, x := range v {
		if x != schema.NullText {
			d.put(r, column, xxh3.HashString(x), 1)
		}
	}
}

func (d *Digester) put(r, column int, word, present uint64) {
	end := d.end[r]
	binary.LittleEndian.PutUint64(d.buf[end:], word)
	d.end[r] = end + int32(present<<3)
	d.mask[r] |= present << column
}

// isDerived reports whether the table of that name is derived.
func isDerived(name string) bool {
	return slices.ContainsFunc(schema.Tables(), func(t *schema.Table) bool { return t.Derived && t.Name == name })
}

// OfRun returns the digest of a run: the 128-bit xxh3 hash of the part of its manifest that identifies it, which is its
// JSON without Origin, Digest, the derived tables and the tables' files.
func OfRun(m *schema.Manifest) Sum {
	id := *m
	id.Origin, id.Digest = schema.Origin{}, ""
	id.Tables = nil
	for _, t := range m.Tables {
		if isDerived(t.Name) {
			continue
		}
		t.Files = nil
		id.Tables = append(id.Tables, t)
	}
	text, err := json.Marshal(&id)
	if err != nil {
		panic(err) // a Manifest holds nothing that JSON cannot
	}
	h := xxh3.Hash128(text)
	return Sum{h.Hi, h.Lo}
}
