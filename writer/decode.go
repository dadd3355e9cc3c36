package writer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/commq/commq/schema"
)

// The encodings of Parquet that columns of integers and names use, read a batch at a time. arrow-go's decoders go value
// by value, and make a text of each name (bench/simulate.md). arrow-go still finds the pages and decompresses them.

// errCut is the error for a page that ends too early.
var errCut = errors.New("a page ends too early, or is damaged")

// hybrid reads the hybrid of runs and packed groups of 8 that encodes levels and dictionary indexes.
type hybrid struct {
	data   []byte
	width  int    // bits of a value, at most 32
	left   int    // values left of the run or the groups
	value  uint32 // of a run
	packed []byte // of groups
	at     int    // next value in packed
}

// begin finds the next run or groups.
func (h *hybrid) begin() error {
	head, n := binary.Uvarint(h.data)
	if n <= 0 || head>>1 == 0 || head>>1 > 1<<40 {
		return errCut
	}
	h.data = h.data[n:]
	count := int(head >> 1)
	if head&1 == 1 {
		h.at, h.left = 0, 8*count
		size := count * h.width
		if size > len(h.data) { // the last group may lack its padding
			if size = len(h.data); h.width > 0 {
				h.left = size * 8 / h.width
			}
		}
		h.packed, h.data = h.data[:size], h.data[size:]
		if h.left == 0 {
			return errCut
		}
		return nil
	}
	h.packed, h.left, h.value = nil, count, 0
	size := (h.width + 7) / 8
	if size > len(h.data) {
		return errCut
	}
	for k := range size {
		h.value |= uint32(h.data[k]) << (8 * k)
	}
	h.data = h.data[size:]
	return nil
}

// part returns how many of the next n values come from the same run or groups.
func (h *hybrid) part(n int) (int, error) {
	if h.left == 0 {
		if err := h.begin(); err != nil {
			return 0, err
		}
	}
	return min(n, h.left), nil
}

// ones counts the ones among the next n packed levels.
func (h *hybrid) ones(n int) (ones int) {
	for i := 0; i < n; i += 32 {
		ones += bits.OnesCount64(bitsAt(h.packed, h.at+i) & (1<<min(32, n-i) - 1))
	}
	return ones
}

// pass skips n values.
func (h *hybrid) pass(n int) error {
	for n > 0 {
		k, err := h.part(n)
		if err != nil {
			return err
		}
		h.left -= k
		h.at += k
		n -= k
	}
	return nil
}

// lookUp fills out with the dictionary's entries at the next indexes.
func lookUp[T any](h *hybrid, dictionary, out []T) error {
	for len(out) > 0 {
		n, err := h.part(len(out))
		if err != nil {
			return err
		}
		switch {
		case h.packed == nil:
			x := dictionary[h.value]
			for i := range out[:n] {
				out[i] = x
			}
		case h.width == 8:
			for i, x := range h.packed[h.at : h.at+n] {
				out[i] = dictionary[x]
			}
		case h.width == 16:
			p := h.packed[2*h.at:]
			for i := range out[:n] {
				out[i] = dictionary[binary.LittleEndian.Uint16(p[2*i:])]
			}
		default:
			mask := uint64(1)<<h.width - 1
			done := 0
			if h.width < 8 {
				done = lookUpEights(h, dictionary, out[:n])
			}
			for i := done; i < n; i++ {
				out[i] = dictionary[bitsAt(h.packed, (h.at+i)*h.width)&mask]
			}
		}
		h.left -= n
		h.at += n
		out = out[n:]
	}
	return nil
}

// lookUpEights does the same as lookUp for indexes of up to 7 bits, eight at a time. It returns how many it did: all
// but the last few.
func lookUpEights[T any](h *hybrid, dictionary, out []T) (done int) {
	width := uint(h.width) & 7
	mask := uint64(1)<<width - 1
	bit := h.at * h.width
	for ; len(out)-done >= 8 && bit/8+8 <= len(h.packed); done += 8 {
		x := binary.LittleEndian.Uint64(h.packed[bit/8:]) >> (bit % 8)
		to := (*[8]T)(out[done:])
		to[0], x = dictionary[x&mask], x>>width
		to[1], x = dictionary[x&mask], x>>width
		to[2], x = dictionary[x&mask], x>>width
		to[3], x = dictionary[x&mask], x>>width
		to[4], x = dictionary[x&mask], x>>width
		to[5], x = dictionary[x&mask], x>>width
		to[6], x = dictionary[x&mask], x>>width
		to[7] = dictionary[x&mask]
		bit += 8 * h.width
	}
	return done
}

// bitsAt returns at least 57 bits from a bit on.
func bitsAt(p []byte, bit int) uint64 {
	p = p[bit/8:]
	if len(p) >= 8 {
		return binary.LittleEndian.Uint64(p) >> (bit % 8)
	}
	var x uint64
	for k, b := range p {
		x |= uint64(b) << (8 * k)
	}
	return x >> (bit % 8)
}

// deltas reads DELTA_BINARY_PACKED.
type deltas struct {
	data   []byte
	left   uint64  // values not decoded yet
	values []int64 // decoded values of a part of a block
	at     int     // next one
	last   int64
	least  int64  // least difference in the block
	widths []byte // bit widths of the parts left in the block
	parts  int    // per block
	length int    // values per part
}

// reset begins to read the values of a page.
func (d *deltas) reset(data []byte) error {
	var head [3]uint64
	for i := range head {
		x, n := binary.Uvarint(data)
		if n <= 0 {
			return errCut
		}
		head[i], data = x, data[n:]
	}
	first, n := binary.Varint(data)
	block, parts := head[0], head[1]
	if n <= 0 || parts == 0 || block%parts != 0 || block/parts%32 != 0 || block > 1<<16 {
		return errCut
	}
	d.data, d.left, d.last = data[n:], head[2], first
	d.parts, d.length, d.widths = int(parts), int(block/parts), nil
	d.values, d.at = d.values[:0], 0
	if d.left > 0 {
		d.left--
		d.values = append(d.values, first)
	}
	return nil
}

// part reads the next part of a block.
func (d *deltas) part() error {
	if d.left == 0 {
		return errCut
	}
	if len(d.widths) == 0 {
		least, n := binary.Varint(d.data)
		if n <= 0 || len(d.data) < n+d.parts {
			return errCut
		}
		d.least, d.widths, d.data = least, d.data[n:n+d.parts], d.data[n+d.parts:]
	}
	width := int(d.widths[0])
	d.widths = d.widths[1:]
	n := int(min(d.left, uint64(d.length)))
	size := d.length * width / 8
	if width > 64 || n*width > 8*len(d.data) {
		return errCut
	}
	packed := d.data[:min(size, len(d.data))]
	d.data = d.data[len(packed):]
	d.left -= uint64(n)
	d.values, d.at = slices.Grow(d.values[:0], n)[:n], 0
	last, mask := d.last, uint64(1)<<width-1
	for i := range d.values {
		bit := i * width
		x := bitsAt(packed, bit)
		if width > 56 && bit%8 != 0 { // beyond 8 bytes
			if k := bit/8 + 8; k < len(packed) {
				x |= uint64(packed[k]) << (64 - bit%8)
			}
		}
		last += d.least + int64(x&mask)
		d.values[i] = last
	}
	d.last = last
	return nil
}

// pass skips n values.
func (d *deltas) pass(n int) error {
	for n > 0 {
		if d.at == len(d.values) {
			if err := d.part(); err != nil {
				return err
			}
		}
		k := min(n, len(d.values)-d.at)
		d.at += k
		n -= k
	}
	return nil
}

// takeDeltas fills out with the next values.
func takeDeltas[T int16 | int32 | int64](d *deltas, out []T) error {
	for len(out) > 0 {
		if d.at == len(d.values) {
			if err := d.part(); err != nil {
				return err
			}
		}
		n := min(len(out), len(d.values)-d.at)
		for i, x := range d.values[d.at : d.at+n] {
			out[i] = T(x)
		}
		d.at += n
		out = out[n:]
	}
	return nil
}

// chunkDecoder reads column chunks, one after the other.
type chunkDecoder interface {
	reset(pages file.PageReader, optional bool)
	fill(column any) error                     // fills the column with the next rows
	fillPart(column any, first, end int) error // fills these rows of the column with the next rows
	skip(rows int) error                       // skips the next rows
}

// newDecoder returns a decoder for the column; numbers has the numbers of its names. It is nil for columns that
// arrow-go has to read.
func newDecoder(c *schema.Column, numbers map[string]int16) chunkDecoder {
	switch c.Type {
	case schema.Int32:
		return &columnDecoder[int32]{null: schema.NullInt32}
	case schema.Int64:
		return &columnDecoder[int64]{null: schema.NullInt64}
	case schema.Enum:
		return &columnDecoder[int16]{null: schema.NullEnum, numbers: numbers}
	}
	return nil
}

// columnDecoder reads column chunks of integers or names.
type columnDecoder[T int16 | int32 | int64] struct {
	null     T
	numbers  map[string]int16 // of names; nil for a column of integers
	optional bool

	pages      file.PageReader
	rows       int // left in the page
	levels     hybrid
	coding     parquet.Encoding
	dictionary []T
	index      hybrid
	deltas     deltas
	plain      []byte
	values     []T
}

// decodes reports whether our decoders know all encodings of a column chunk.
func decodes(used []parquet.Encoding) bool {
	return !slices.ContainsFunc(used, func(e parquet.Encoding) bool {
		return !slices.Contains([]parquet.Encoding{parquet.Encodings.RLE, parquet.Encodings.Plain,
			parquet.Encodings.PlainDict, parquet.Encodings.RLEDict,
			parquet.Encodings.DeltaBinaryPacked}, e)
	})
}

// reset begins to read a column chunk.
func (d *columnDecoder[T]) reset(pages file.PageReader, optional bool) {
	d.pages, d.optional, d.rows, d.dictionary = pages, optional, 0, d.dictionary[:0]
}

func (d *columnDecoder[T]) fill(column any) error { return d.fillRows(column.([]T)) }

func (d *columnDecoder[T]) fillPart(column any, first, end int) error {
	return d.fillRows(column.([]T)[first:end])
}

func (d *columnDecoder[T]) fillRows(out []T) (err error) {
	defer recovered(&err) // panics at an index that the dictionary does not have
	for len(out) > 0 {
		if d.rows == 0 {
			if err := d.nextPage(); err != nil {
				return err
			}
			continue
		}
		n := min(len(out), d.rows)
		if err := d.fromPage(out[:n]); err != nil {
			return err
		}
		d.rows -= n
		out = out[n:]
	}
	return nil
}

func (d *columnDecoder[T]) skip(rows int) (err error) {
	defer recovered(&err)
	for rows > 0 {
		if d.rows == 0 {
			if err := d.nextPage(); err != nil {
				return err
			}
			continue
		}
		n := min(rows, d.rows)
		if err := d.skipInPage(n); err != nil {
			return err
		}
		d.rows -= n
		rows -= n
	}
	return nil
}

// skipInPage skips rows of the page, which has at least as many.
func (d *columnDecoder[T]) skipInPage(rows int) error {
	if !d.optional {
		return d.pass(rows)
	}
	for rows > 0 {
		n, err := d.levels.part(rows)
		if err != nil {
			return err
		}
		values := 0
		switch {
		case d.levels.packed != nil:
			values = d.levels.ones(n)
		case d.levels.value == 1:
			values = n
		}
		if err := d.pass(values); err != nil {
			return err
		}
		d.levels.left -= n
		d.levels.at += n
		rows -= n
	}
	return nil
}

// pass skips values of the page. Differences must still be added up.
func (d *columnDecoder[T]) pass(values int) error {
	switch d.coding {
	case parquet.Encodings.DeltaBinaryPacked:
		return d.deltas.pass(values)
	case parquet.Encodings.Plain:
		size := 0
		switch any(d.null).(type) {
		case int32:
			size = 4
		case int64:
			size = 8
		default: // names come after their lengths
			d.values = slices.Grow(d.values[:0], values)[:values]
			return d.take(d.values)
		}
		if len(d.plain) < size*values {
			return errCut
		}
		d.plain = d.plain[size*values:]
		return nil
	}
	return d.index.pass(values)
}

// nextPage finds the next page of values, and loads a dictionary on the way.
func (d *columnDecoder[T]) nextPage() error {
	if !d.pages.Next() {
		return errors.Join(errCut, d.pages.Err())
	}
	data := d.pages.Page().Data()
	switch p := d.pages.Page().(type) {
	case *file.DictionaryPage:
		if int(p.NumValues()) > len(data) {
			return errCut
		}
		d.dictionary = slices.Grow(d.dictionary[:0], int(p.NumValues()))[:p.NumValues()]
		_, err := d.takePlain(data, d.dictionary)
		return err
	case *file.DataPageV1:
		if d.optional {
			if p.DefinitionLevelEncoding() != parquet.Encodings.RLE {
				return fmt.Errorf("its levels are encoded as %s; write them as RLE", p.DefinitionLevelEncoding())
			}
			if len(data) < 4 {
				return errCut
			}
			n := binary.LittleEndian.Uint32(data)
			if uint64(n) > uint64(len(data)-4) {
				return errCut
			}
			d.levels, data = hybrid{data: data[4 : 4+n], width: 1}, data[4+n:]
		}
		return d.beginPage(p.NumValues(), parquet.Encoding(p.Encoding()), data)
	case *file.DataPageV2:
		n := int(p.DefinitionLevelByteLen())
		if p.RepetitionLevelByteLen() != 0 || n > len(data) {
			return errCut
		}
		d.levels = hybrid{data: data[:n], width: 1}
		return d.beginPage(p.NumValues(), parquet.Encoding(p.Encoding()), data[n:])
	}
	return nil
}

// beginPage begins to read a page of values.
func (d *columnDecoder[T]) beginPage(rows int32, coding parquet.Encoding, data []byte) error {
	d.rows, d.coding = int(rows), coding
	switch coding {
	case parquet.Encodings.RLEDict, parquet.Encodings.PlainDict:
		if len(data) > 0 && data[0] > 32 {
			return errCut
		}
		d.index = hybrid{}
		if len(data) > 0 {
			d.index = hybrid{data: data[1:], width: int(data[0])}
		}
	case parquet.Encodings.DeltaBinaryPacked:
		if len(data) == 0 { // only nulls
			data = []byte{128, 1, 4, 0, 0}
		}
		return d.deltas.reset(data)
	case parquet.Encodings.Plain:
		d.plain = data
	default:
		return fmt.Errorf("its values are encoded as %s, and its metadata does not say so", coding)
	}
	return nil
}

// fromPage fills out from the page, which has at least as many rows.
func (d *columnDecoder[T]) fromPage(out []T) error {
	if !d.optional {
		return d.take(out)
	}
	for len(out) > 0 {
		n, err := d.levels.part(len(out))
		if err != nil {
			return err
		}
		switch {
		case d.levels.packed != nil:
			err = d.spread(out[:n])
		case d.levels.value == 1:
			err = d.take(out[:n])
		default:
			for i := range out[:n] {
				out[i] = d.null
			}
		}
		if err != nil {
			return err
		}
		d.levels.left -= n
		d.levels.at += n
		out = out[n:]
	}
	return nil
}

// spread fills out with values where the level is 1, and with nulls elsewhere.
func (d *columnDecoder[T]) spread(out []T) error {
	ones := d.levels.ones(len(out))
	v := slices.Grow(d.values[:0], ones+1)[:ones+1]
	d.values = v
	if err := d.take(v[:ones]); err != nil {
		return err
	}
	packed, null := d.levels.packed, d.null
	k := 0
	for i := range out {
		at := d.levels.at + i
		bit := int(packed[at/8] >> (at % 8) & 1)
		x := v[k] // read even for a null, so that there is no branch to mispredict
		if bit == 0 {
			x = null
		}
		out[i] = x
		k += bit
	}
	return nil
}

// take fills out with the next values of the page.
func (d *columnDecoder[T]) take(out []T) (err error) {
	switch d.coding {
	case parquet.Encodings.DeltaBinaryPacked:
		return takeDeltas(&d.deltas, out)
	case parquet.Encodings.Plain:
		d.plain, err = d.takePlain(d.plain, out)
		return err
	}
	return lookUp(&d.index, d.dictionary, out)
}

// takePlain fills out with values in the encoding PLAIN (names come after their lengths) and returns the rest of data.
func (d *columnDecoder[T]) takePlain(data []byte, out []T) ([]byte, error) {
	switch any(d.null).(type) {
	case int32:
		if len(data) < 4*len(out) {
			return nil, errCut
		}
		for i := range out {
			out[i] = T(int32(binary.LittleEndian.Uint32(data[4*i:])))
		}
		return data[4*len(out):], nil
	case int64:
		if len(data) < 8*len(out) {
			return nil, errCut
		}
		for i := range out {
			out[i] = T(int64(binary.LittleEndian.Uint64(data[8*i:])))
		}
		return data[8*len(out):], nil
	}
	for i := range out {
		if len(data) < 4 {
			return nil, errCut
		}
		n := uint64(binary.LittleEndian.Uint32(data))
		if n > uint64(len(data)-4) {
			return nil, errCut
		}
		x, known := d.numbers[string(data[4:4+n])]
		if !known {
			return nil, fmt.Errorf("%q is not one of its names", data[4:4+n])
		}
		out[i], data = T(x), data[4+n:]
	}
	return data, nil
}
