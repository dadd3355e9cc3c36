package schema

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"

	"github.com/zeebo/xxh3"
)

// Digest is the digest of a set of rows: the sum, modulo 2^128, of the hashes of the rows. It does not depend on the
// order of the rows, so digests of parts of a table add up to the table's. The zero Digest is that of no rows.
//
// The hash of a row is the 128-bit xxh3 hash of its canonical encoding, seeded with the 64-bit xxh3 hash of the text
// "commq <version> <table>". The encoding is a sequence of 64-bit little-endian words: first a mask with bit i set when
// column i (counted from 0 in the order of the schema) is not null, then, for each column that is not null, its value:
// an integer sign-extended, a string or enum as the 64-bit xxh3 hash of its text.
type Digest struct {
	// Hi and Lo are the upper and lower 64 bits.
	Hi, Lo uint64
}

// Add is the digest of the rows of both.
func (d Digest) Add(e Digest) Digest {
	lo, carry := bits.Add64(d.Lo, e.Lo, 0)
	hi, _ := bits.Add64(d.Hi, e.Hi, carry)
	return Digest{hi, lo}
}

// String is the digest as 32 hexadecimal digits.
func (d Digest) String() string { return fmt.Sprintf("%016x%016x", d.Hi, d.Lo) }

// ParseDigest reads what String wrote. It returns an error for anything else.
func ParseDigest(s string) (Digest, error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 16 {
		return Digest{}, fmt.Errorf("digest %q: want 32 hexadecimal digits", s)
	}
	return Digest{binary.BigEndian.Uint64(b), binary.BigEndian.Uint64(b[8:])}, nil
}

// Digester computes the digest of rows of one table. It is for one goroutine at a time.
type Digester struct {
	table *Table
	seed  uint64
	enums [][]uint64 // per Enum column, the hash of each name
	sum   Digest
	rows  int64
	buf   []byte
	mask  [digestBlock]uint64
	end   [digestBlock]int32

	// While in every column so far all rows of the block have a value or none has, they agree in mask and end: even is how long each is, and mask[0] the mask
	// of all. Else even is -1.
	even int
}

const (
	// digestBlock rows are encoded at a time, so that their encodings stay in the first-level cache.
	digestBlock = 64
	// digestColumns is the number of columns that fit the mask.
	digestColumns = 64
)

// NewDigester returns a Digester for rows of t.
func NewDigester(t *Table) *Digester {
	if len(t.Columns) > digestColumns {
		panic("schema: table " + t.Name + " has more columns than the digest's mask has bits")
	}
	d := &Digester{table: t, seed: xxh3.HashString(fmt.Sprintf("commq %d %s", Version, t.Name))}
	d.buf = make([]byte, digestBlock*d.stride())
	d.enums = make([][]uint64, len(t.Columns))
	for i, c := range t.Columns {
		for _, n := range c.Names {
			d.enums[i] = append(d.enums[i], xxh3.HashString(n))
		}
	}
	return d
}

// stride is the distance of two rows' encodings in buf: the mask, every column, and one word that may be scribbled on.
func (d *Digester) stride() int { return 8 * (len(d.table.Columns) + 2) }

// Sum is the digest of all rows added so far.
func (d *Digester) Sum() Digest { return d.sum }

// Rows is the number of rows added so far.
func (d *Digester) Rows() int64 { return d.rows }

// Add adds the rows of b, a batch of the Digester's table whose enums are indexes into their columns' Names or null.
func (d *Digester) Add(b Batch) {
	columns := d.live(b)
	for i, n := 0, b.Len(); i < n; i += digestBlock {
		d.block(columns, i, min(digestBlock, n-i))
	}
	d.rows += int64(b.Len())
}

// liveColumn is a column that is not null throughout.
type liveColumn struct {
	index int
	data  any
}

// live lists the live columns of b: an all-null column costs one look at each of its cells.
func (d *Digester) live(b Batch) []liveColumn {
	columns := make([]liveColumn, 0, len(d.table.Columns))
	for i := range d.table.Columns {
		data := b.Data(i)
		if !d.table.Columns[i].Nullable || !allNull(data) {
			columns = append(columns, liveColumn{i, data})
		}
	}
	return columns
}

func allNull(data any) bool {
	switch v := data.(type) {
	case []int32:
		return all(v, NullInt32)
	case []int64:
		return all(v, NullInt64)
	case []int16:
		return all(v, NullEnum)
	case []string:
		return all(v, NullText)
	}
	panic(fmt.Sprintf("schema: a column of type %T", data))
}

func all[T comparable](s []T, x T) bool {
	for _, v := range s {
		if v != x {
			return false
		}
	}
	return true
}

// block adds rows [first, first+n), column by column into one encoding per row, then row by row.
func (d *Digester) block(columns []liveColumn, first, n int) {
	stride := d.stride()
	d.even, d.mask[0] = 8, 0
	for _, c := range columns {
		switch v := c.data.(type) {
		case []int32:
			putInts(d, v[first:first+n], NullInt32, c.index)
		case []int64:
			putInts(d, v[first:first+n], NullInt64, c.index)
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
		d.sum = d.sum.Add(Digest{h.Hi, h.Lo})
	}
}

// uneven makes mask and end of n rows that have agreed so far.
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

// evenly says whether a column's rows, of which some are present, still agree, and where in their encodings its values go: nowhere (-1) where all are null.
func (d *Digester) evenly(present, n, column int) (at int, ok bool) {
	switch {
	case d.even >= 0 && present == 0:
		return -1, true
	case d.even >= 0 && present == n:
		at = d.even
		d.even += 8
		d.mask[0] |= 1 << column
		return at, true
	}
	d.uneven(n)
	return 0, false
}

// presentOf is how many of some values are not null.
func presentOf[T int16 | int32 | int64](v []T, null T) (n int) {
	for _, x := range v {
		if x != null {
			n++
		}
	}
	return n
}

// putInts writes every value, null or not, and moves on only past those that are not: no branch to mispredict.
func putInts[T int32 | int64](d *Digester, v []T, null T, column int) {
	if d.even >= 0 {
		if at, ok := d.evenly(presentOf(v, null), len(v), column); ok {
			if stride := d.stride(); at >= 0 {
				for _, x := range v {
					binary.LittleEndian.PutUint64(d.buf[at:], uint64(int64(x)))
					at += stride
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
		if at, ok := d.evenly(presentOf(v, NullEnum), len(v), column); ok {
			if stride := d.stride(); at >= 0 {
				for _, x := range v {
					binary.LittleEndian.PutUint64(d.buf[at:], names[x])
					at += stride
				}
			}
			return
		}
	}
	for r, x := range v {
		if x != NullEnum {
			d.put(r, column, names[x], 1)
		}
	}
}

func putTexts(d *Digester, v []string, column int) {
	d.uneven(len(v))
	for r, x := range v {
		if x != NullText {
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

// isDerived says whether the table of that name is derived.
func isDerived(name string) bool {
	return slices.ContainsFunc(Tables(), func(t *Table) bool { return t.Derived && t.Name == name })
}

// RunDigest is the digest of a run: the xxh3 hash of the identity part of its manifest, which is the manifest's JSON
// without Origin, Digest, the derived tables, and the tables' files.
func RunDigest(m *Manifest) Digest {
	id := *m
	id.Origin, id.Digest = Origin{}, ""
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
	return Digest{h.Hi, h.Lo}
}
