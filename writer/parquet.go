package writer

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"
	"github.com/zeebo/xxh3"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/internal/filehash"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer/derive"
	"github.com/commq/commq/writer/digest"
)

// codecLevel is the level of zstd; bench/writer.md compares levels.
const codecLevel = 1

// rowGroupRows bounds a row group: about a million rows, like the defaults of other tools.
const rowGroupRows = 1 << 20

// sink is the file that Parquet is written to. It keeps the first error, as arrow-go drops some.
type sink struct {
	file *disk.File
	buf  []byte // grows up to sinkBytes: most tables of small runs are small
	size int64
	err  error

	sum    *xxh3.Hasher // of what was written
	footer *xxh3.Hasher // of what was written since beginFooter; nil before
}

// sinkBytes is the size of a write.
const sinkBytes = 1 << 18

func (s *sink) Write(p []byte) (int, error) {
	n := len(p)
	if s.footer != nil {
		_, _ = s.footer.Write(p) // hashing does not fail
	}
	for len(p) > 0 && s.err == nil {
		k := min(len(p), sinkBytes-len(s.buf))
		s.buf, p = append(s.buf, p[:k]...), p[k:]
		if len(s.buf) == sinkBytes {
			s.flush()
		}
	}
	if s.err != nil {
		return 0, s.err
	}
	s.size += int64(n)
	return n, nil
}

func (s *sink) flush() {
	if s.err == nil && len(s.buf) > 0 {
		_, _ = s.sum.Write(s.buf)
		_, s.err = s.file.Write(s.buf)
	}
	s.buf = s.buf[:0]
}

// sums returns the hashes of the finished file.
func (s *sink) sums() (filehash.Sums, error) {
	headers, err := filehash.Headers(context.Background(), s.file, s.size)
	return filehash.Sums{File: filehash.Text(s.sum.Sum64()), Footer: filehash.Text(s.footer.Sum64()),
		Headers: filehash.Text(headers)}, err
}

// Tell returns the number of bytes written so far.
func (s *sink) Tell() int64 { return s.size }

// tableFile is a Parquet file being written. arrow-go makes the metadata and the page headers, encode.go the pages.
type tableFile struct {
	table    *schema.Table
	sink     *sink
	meta     *metadata.FileMetaDataBuilder
	index    *metadata.PageIndexBuilder
	groups   int
	digester *digest.Digester
	overlaps derive.Overlaps  // of events
	profiler *derive.Profiler // of events, while they are written
}

const parquetMagic = "PAR1"

func createTableFile(path string, t *schema.Table) (tf *tableFile, err error) {
	f, err := disk.Create(path)
	if err != nil {
		return nil, err
	}
	tf = &tableFile{table: t, sink: &sink{file: f, sum: xxh3.New()}, digester: digest.New(t)}
	if t == &schema.EventsTable {
		tf.profiler = derive.NewProfiler()
	}
	if err := tf.begin(); err != nil {
		tf.abandon()
		return nil, err
	}
	return tf, nil
}

func (f *tableFile) begin() (err error) {
	defer recovered(&err)
	root, err := parquetSchema(f.table)
	if err != nil {
		return err
	}
	kv, err := fileMetadata(f.table)
	if err != nil {
		return err
	}
	columns := pqschema.NewSchema(root)
	f.meta = metadata.NewFileMetadataBuilder(columns, writerProperties(f.table), kv)
	f.index = &metadata.PageIndexBuilder{Schema: columns}
	_, err = f.sink.Write([]byte(parquetMagic))
	return err
}

func writerProperties(t *schema.Table) *parquet.WriterProperties {
	var sorting []parquet.SortingColumn
	for _, key := range t.Key {
		_, i := t.Column(key)
		sorting = append(sorting, parquet.SortingColumn{ColumnIdx: int32(i)})
	}
	return parquet.NewWriterProperties(parquet.WithVersion(parquet.V2_LATEST), parquet.WithCreatedBy("commq"),
		parquet.WithCompression(compress.Codecs.Zstd), parquet.WithSortingColumns(sorting))
}

// recovered turns a panic into an error: arrow-go reports most errors by panics.
func recovered(err *error) {
	if p := recover(); p != nil {
		if e, ok := p.(error); ok {
			*err = e
		} else {
			*err = fmt.Errorf("%v", p)
		}
	}
}

// parquetSchema returns the Parquet schema of a table.
func parquetSchema(t *schema.Table) (*pqschema.GroupNode, error) {
	fields := make(pqschema.FieldList, len(t.Columns))
	for i, c := range t.Columns {
		rep := parquet.Repetitions.Required
		if c.Nullable {
			rep = parquet.Repetitions.Optional
		}
		logical, physical := parquetType(c.Type)
		node, err := pqschema.NewPrimitiveNodeLogical(c.Name, rep, logical, physical, -1, -1)
		if err != nil {
			return nil, err
		}
		fields[i] = node
	}
	return pqschema.NewGroupNode("commq_"+t.Name, parquet.Repetitions.Required, fields, -1)
}

func parquetType(t schema.Type) (pqschema.LogicalType, parquet.Type) {
	switch t {
	case schema.Int32:
		return pqschema.NewIntLogicalType(32, true), parquet.Types.Int32
	case schema.Int64:
		return pqschema.NewIntLogicalType(64, true), parquet.Types.Int64
	}
	return pqschema.StringLogicalType{}, parquet.Types.ByteArray
}

// fileMetadata returns the metadata of a file: the schema version, and each column's unit and description, once as
// plain keys (parquet_kv_metadata in DuckDB) and once as the field metadata of an Arrow schema (pyarrow).
func fileMetadata(t *schema.Table) (metadata.KeyValueMetadata, error) {
	kv := metadata.NewKeyValueMetadata()
	add := func(key, value string) error { return kv.Append(key, value) }
	errs := []error{add("commq.schema_version", strconv.Itoa(schema.Version)), add("commq.table", t.Name),
		add("commq.doc", t.Doc)}
	fields := make([]arrow.Field, len(t.Columns))
	for i, c := range t.Columns {
		fields[i] = arrow.Field{Name: c.Name, Type: arrowType(c.Type), Nullable: c.Nullable,
			Metadata: arrow.NewMetadata([]string{"unit", "doc"}, []string{c.Unit, c.Doc})}
		errs = append(errs, add("commq.column."+c.Name+".doc", c.Doc))
		if c.Unit != "" {
			errs = append(errs, add("commq.column."+c.Name+".unit", c.Unit))
		}
	}
	var buf bytes.Buffer
	errs = append(errs, ipc.NewWriter(&buf, ipc.WithSchema(arrow.NewSchema(fields, nil))).Close())
	errs = append(errs, add("ARROW:schema", base64.StdEncoding.EncodeToString(buf.Bytes())))
	return kv, errors.Join(errs...)
}

func arrowType(t schema.Type) arrow.DataType {
	switch t {
	case schema.Int32:
		return arrow.PrimitiveTypes.Int32
	case schema.Int64:
		return arrow.PrimitiveTypes.Int64
	}
	return arrow.BinaryTypes.String
}

// write appends rows. Rows of events are summed too, and profile gets the sums that are complete.
func (f *tableFile) write(e *columnEncoder, b schema.Batch, profile func(*schema.Profiles) error) error {
	b, err := cleaned(b)
	if err != nil {
		return err
	}
	same := digest.Uniform(b)
	if err := f.writeRowGroups(e, b, same); err != nil {
		return err
	}
	return f.sum(b, same, profile)
}

// writeRowGroups writes the row groups of a batch. same tells which of its columns have the same value in all rows.
func (f *tableFile) writeRowGroups(e *columnEncoder, b schema.Batch, same []bool) error {
	for _, rest := range e.splitEvents(b) {
		for len(rest) > 0 {
			var rows []span
			rows, rest = takeRows(rest, rowGroupRows)
			if err := f.writeRowGroup(e, b, same, rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// sumAtOnce is the number of rows of events that are summed at a time: they stay in the second-level cache.
const sumAtOnce = 1 << 10

// sum adds rows to the sums of the file.
func (f *tableFile) sum(b schema.Batch, same []bool, profile func(*schema.Profiles) error) error {
	events, ok := b.(*schema.Events)
	if !ok {
		f.digester.AddUniform(b, same)
		return nil
	}
	for i, n := 0, events.Len(); i < n; i += sumAtOnce {
		rows := events.Slice(i, min(i+sumAtOnce, n))
		f.digester.AddUniform(rows, same)
		f.overlaps.Add(rows)
		if err := f.profiler.Add(rows, profile); err != nil {
			return err
		}
	}
	return nil
}

// writeRowGroup writes rows of a batch. same tells which of its columns have the same value in all rows.
func (f *tableFile) writeRowGroup(e *columnEncoder, b schema.Batch, same []bool, rows []span) (err error) {
	defer recovered(&err)
	if f.groups == math.MaxInt16 {
		return fmt.Errorf("the file has %d row groups, the most that Parquet allows; write larger batches", f.groups)
	}
	group := f.meta.AppendRowGroup()
	if err := f.index.AppendRowGroup(); err != nil {
		return err
	}
	var pages file.PageWriter
	for c := range f.table.Columns {
		meta := group.NextColumnChunk()
		if pages, err = f.pageWriter(pages, meta, c); err == nil {
			err = e.chunk(pages, meta, &f.table.Columns[c], column{b.Data(c), same[c], rows})
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", f.table.Columns[c].Name, err)
		}
	}
	group.SetNumRows(countRows(rows))
	err = group.Finish(0, int16(f.groups))
	f.groups++
	return errors.Join(err, f.sink.err)
}

// pageWriter prepares the page writer for column c: a new one, or w, the writer of the column before.
func (f *tableFile) pageWriter(w file.PageWriter, meta *metadata.ColumnChunkMetaDataBuilder, c int) (file.PageWriter,
	error) {
	group, column := int16(f.groups), int16(c)
	var err error
	if w == nil {
		w, err = file.NewPageWriter(f.sink, compress.Codecs.Zstd, codecLevel, meta, group, column,
			memory.DefaultAllocator, false, nil, nil)
	} else {
		err = w.Reset(f.sink, compress.Codecs.Zstd, codecLevel, meta, group, column, nil, nil)
	}
	if err != nil {
		return nil, err
	}
	values, err := f.index.GetColumnIndexBuilder(c)
	if err != nil {
		return nil, err
	}
	offsets, err := f.index.GetOffsetIndexBuilder(c)
	if err != nil {
		return nil, err
	}
	w.SetIndexBuilders(values, offsets)
	return w, nil
}

// close writes the footer, syncs the file and returns its hashes.
func (f *tableFile) close() (sums filehash.Sums, err error) {
	err = f.footer()
	f.sink.flush()
	err = errors.Join(err, f.sink.err)
	if err == nil {
		err = f.sink.file.Sync()
	}
	if err == nil {
		sums, err = f.sink.sums()
	}
	return sums, errors.Join(err, f.sink.file.Close())
}

// footer writes the page index and the file's metadata.
func (f *tableFile) footer() (err error) {
	defer recovered(&err)
	f.index.Finish()
	var at metadata.PageIndexLocation
	if err := f.index.WriteTo(f.sink, &at); err != nil {
		return err
	}
	if err := f.meta.SetPageIndexLocation(at); err != nil {
		return err
	}
	meta, err := f.meta.Finish()
	if err != nil {
		return err
	}
	f.sink.footer = xxh3.New()
	n, err := meta.WriteTo(f.sink, nil)
	if err != nil {
		return err
	}
	_, err = f.sink.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(n)), parquetMagic...))
	return err
}

// abandon closes the file without finishing it.
func (f *tableFile) abandon() { f.sink.file.Close() }
