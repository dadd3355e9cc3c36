package writer

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	"github.com/klauspost/compress/zstd"

	"github.com/commq/commq/schema"
)

const (
	// pageRows is the number of rows of a page, a multiple of 8. It is so large that a page's header and its entry in
	// the page index cost next to nothing.
	pageRows = 1 << 16
	// dictionaryShare and dictionaryLimit bound the entries of a dictionary: to 1/8 of the values, and to 16 bits.
	dictionaryShare = 8
	dictionaryLeast = 256
	dictionaryLimit = 1 << 16
	// stepBytes: values whose differences take this many bytes or fewer need no large dictionary.
	stepBytes = 1.1
	// statBytes is the longest text in statistics.
	statBytes = 256
)

// columnEncoder encodes columns of row groups, one after the other. Its buffers are reused.
type columnEncoder struct {
	values     []int64 // of the rows that are not null: the integers, or numbers of texts; part of the batch or of room
	room       []int64
	bitmap     []byte // a bit per row, 1 when it is not null
	blocks     blocks
	index      []uint32
	dictionary dictionary
	texts      []string // of the column's text numbers, for Enum and Text
	page       []byte
	zstd       *zstd.Encoder
	compressed []byte
	pages      []pageSpan
	seen       []bool
	stretches  [2][]span // the rows of each half of a split batch
}

// column is the input of a column chunk: rows of a column.
type column struct {
	data any
	same bool // all rows of data have the same value
	rows []span
}

// newColumnEncoder returns an encoder. Unlike arrow-go, it lets zstd code entropy even where it finds no repeats: the
// upper bytes of times do not repeat, but are mostly small.
func newColumnEncoder() *columnEncoder {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithAllLitEntropyCompression(true),
		zstd.WithEncoderConcurrency(1), zstd.WithZeroFrames(true), zstd.WithEncoderCRC(true),
		zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // the options are fixed
	}
	return &columnEncoder{zstd: z}
}

// pageSpan is the contents of a page: rows [first, first+rows), values [value, value+values).
type pageSpan struct {
	first, rows, value, values int
	low, high                  int64 // least and greatest value; meaningless for numbers of texts
}

// chunk writes rows of column c.
func (e *columnEncoder) chunk(w file.PageWriter, meta *metadata.ColumnChunkMetaDataBuilder, c *schema.Column,
	from column) error {
	rows := countRows(from.rows)
	if from.same {
		e.loadSame(c, from.data, from.rows[0].i, rows)
	} else {
		e.load(c, from.data, from.rows)
		e.split(rows)
	}
	coding := e.choose(c)
	if coding == parquet.Encodings.RLEDict {
		if err := e.writeDictionary(w, c); err != nil {
			return err
		}
	}
	for _, p := range e.pages {
		if err := e.writePage(w, c, p, coding); err != nil {
			return err
		}
	}
	meta.SetStats(e.statistics(c, pageSpan{0, rows, 0, len(e.values), e.low(), e.high()}))
	e.values = nil // the encoder is kept, the batch is not
	if err := w.Close(coding == parquet.Encodings.RLEDict, false); err != nil {
		return err
	}
	used := []parquet.Encoding{coding, parquet.Encodings.RLE}
	if coding == parquet.Encodings.RLEDict {
		used = append(used, parquet.Encodings.Plain)
	}
	setEncodings(&meta.Contents().MetaData.Encodings, used)
	return nil
}

// setEncodings corrects the list of encodings, which arrow-go takes from the properties. It is generic because the
// element type is internal to arrow-go.
func setEncodings[E ~int64](list *[]E, used []parquet.Encoding) {
	*list = (*list)[:0]
	for _, x := range used {
		*list = append(*list, E(x))
	}
}

// split cuts the rows into pages. A column with at most one distinct value is one page.
func (e *columnEncoder) split(rows int) {
	e.pages = e.pages[:0]
	at := 0
	for first := 0; first < rows; first += pageRows {
		p := pageSpan{first: first, rows: min(pageRows, rows-first), value: at}
		p.values = popcount(e.bitmap[first/8 : (first+p.rows+7)/8])
		p.low, p.high = extremes(e.values[at : at+p.values])
		at += p.values
		e.pages = append(e.pages, p)
	}
	if len(e.values) == 0 || e.low() == e.high() {
		e.pages = append(e.pages[:0], pageSpan{0, rows, 0, len(e.values), e.low(), e.high()})
	}
}

// extremes returns the least and the greatest value, 0 and 0 when there is none.
func extremes(v []int64) (low, high int64) {
	if len(v) == 0 {
		return 0, 0
	}
	low, high = v[0], v[0]
	low2, high2 := low, high // two of each, because a comparison waits for the one before
	for ; len(v) >= 2; v = v[2:] {
		low, high = min(low, v[0]), max(high, v[0])
		low2, high2 = min(low2, v[1]), max(high2, v[1])
	}
	for _, x := range v {
		low, high = min(low, x), max(high, x)
	}
	return min(low, low2), max(high, high2)
}

func (e *columnEncoder) low() int64 {
	low, first := int64(0), true
	for _, p := range e.pages {
		if p.values > 0 && (first || p.low < low) {
			low, first = p.low, false
		}
	}
	return low
}

func (e *columnEncoder) high() int64 {
	high, first := int64(0), true
	for _, p := range e.pages {
		if p.values > 0 && (first || p.high > high) {
			high, first = p.high, false
		}
	}
	return high
}

// choose picks the encoding: a dictionary for texts and for few distinct values, else differences if they fit.
func (e *columnEncoder) choose(c *schema.Column) parquet.Encoding {
	n := len(e.values)
	if n == 0 {
		return parquet.Encodings.Plain
	}
	e.index = slices.Grow(e.index[:0], n)[:n]
	e.dictionary.reset()
	if x := e.low(); x == e.high() {
		clear(e.index)
		e.dictionary.number(x)
		return parquet.Encodings.RLEDict
	}
	limit := min(max(n/dictionaryShare, dictionaryLeast), dictionaryLimit)
	if e.texts != nil {
		limit = n
	}
	if e.texts == nil && n > limit && steps(e.values) <= stepBytes {
		limit = dictionaryLeast
	}
	if e.dictionary.add(e.values, e.low(), e.high(), e.index, limit) {
		return parquet.Encodings.RLEDict
	}
	if c.Type == schema.Int32 && e.high()-e.low() >= 1<<30 {
		return parquet.Encodings.Plain // differences of differences would not fit 32 bits
	}
	return parquet.Encodings.DeltaBinaryPacked
}

// steps returns the mean number of bytes that differences of successive values need, estimated from a sample. The
// sample's places are multiples of the golden ratio: equal distances could meet the first row of every rank, where
// values jump.
func steps(v []int64) float64 {
	const samples, length = 32, 32
	sum, n := 0, 0
	for k := 0; k < samples && len(v) > length; k++ {
		_, part := math.Modf(float64(k) * math.Phi)
		at := int(part * float64(len(v)-length))
		least, most := v[at+1]-v[at], v[at+1]-v[at]
		for i := at + 2; i < at+length; i++ {
			least, most = min(least, v[i]-v[i-1]), max(most, v[i]-v[i-1])
		}
		sum += (bits.Len64(uint64(most-least)) + 7) / 8
		n++
	}
	return float64(sum) / float64(max(1, n))
}

func plainBytes(c *schema.Column) int {
	if c.Type == schema.Int32 {
		return 4
	}
	return 8
}

func (e *columnEncoder) writeDictionary(w file.PageWriter, c *schema.Column) error {
	e.page = e.page[:0]
	if e.texts == nil {
		e.page = appendPlain(e.page, e.dictionary.entries, plainBytes(c))
	}
	for _, number := range e.dictionary.entries {
		if e.texts != nil {
			e.page = binary.LittleEndian.AppendUint32(e.page, uint32(len(e.texts[number])))
			e.page = append(e.page, e.texts[number]...)
		}
	}
	_, err := w.WriteDictionaryPage(file.NewDictionaryPage(memory.NewBufferBytes(e.page),
		int32(len(e.dictionary.entries)), parquet.Encodings.Plain))
	return err
}

func (e *columnEncoder) writePage(w file.PageWriter, c *schema.Column, p pageSpan, coding parquet.Encoding) error {
	e.page = e.page[:0]
	if c.Nullable {
		e.page = appendLevels(e.page, e.bitmap[p.first/8:], p.rows, p.values)
	}
	values := e.values[p.value : p.value+p.values]
	switch coding {
	case parquet.Encodings.RLEDict:
		e.page = appendIndexes(e.page, e.index[p.value:p.value+p.values], indexWidth(len(e.dictionary.entries)))
	case parquet.Encodings.DeltaBinaryPacked:
		e.page = appendDelta(e.page, values)
	default:
		e.page = appendPlain(e.page, values, plainBytes(c))
	}
	e.compressed = e.zstd.EncodeAll(e.page, e.compressed[:0])
	page := file.NewDataPageV1WithConfig(memory.NewBufferBytes(e.compressed), parquet.Encodings.RLE,
		parquet.Encodings.RLE, file.DataPageConfig{
			Num: int32(p.rows), Encoding: coding, UncompressedSize: int32(len(e.page)), Stats: e.statistics(c, p),
			FirstRowIndex: int64(p.first)})
	defer page.Release()
	_, err := w.WriteDataPage(page)
	return err
}

// statistics returns the statistics of a page, or of all pages.
func (e *columnEncoder) statistics(c *schema.Column, p pageSpan) metadata.EncodedStatistics {
	s := metadata.EncodedStatistics{HasNullCount: true, NullCount: int64(p.rows - p.values),
		AllNullValue: p.values == 0, Signed: e.texts == nil}
	switch {
	case p.values == 0:
	case e.texts == nil:
		s.SetMin(appendPlain(nil, []int64{p.low}, plainBytes(c)))
		s.SetMax(appendPlain(nil, []int64{p.high}, plainBytes(c)))
	default:
		low, high := e.textExtremes(e.index[p.value : p.value+p.values])
		s.SetMin([]byte(low))
		s.SetMax([]byte(high))
		s.ApplyStatSizeLimits(statBytes)
	}
	return s
}

// textExtremes returns the first and the last text, in byte order, of dictionary entries.
func (e *columnEncoder) textExtremes(index []uint32) (low, high string) {
	e.seen = slices.Grow(e.seen[:0], len(e.dictionary.entries))[:len(e.dictionary.entries)]
	clear(e.seen)
	for _, x := range index {
		e.seen[x] = true
	}
	first := true
	for x, number := range e.dictionary.entries {
		if !e.seen[x] {
			continue
		}
		s := e.texts[number]
		if first || s < low {
			low = s
		}
		if first || s > high {
			high = s
		}
		first = false
	}
	return low, high
}
