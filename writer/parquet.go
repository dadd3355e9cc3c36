package writer

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/commq/commq/schema"
)

// rowGroupRows bounds a row group: about a million rows, as the other tools' defaults.
const rowGroupRows = 1 << 20

// sink is the file that Parquet is written to. It keeps the first error, since arrow-go drops some.
type sink struct {
	file *os.File
	buf  []byte
	size int64
	err  error
}

// sinkBytes is how much is written at once.
const sinkBytes = 1 << 20

func (s *sink) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && s.err == nil {
		k := copy(s.buf[len(s.buf):cap(s.buf)], p)
		s.buf, p = s.buf[:len(s.buf)+k], p[k:]
		if len(s.buf) == cap(s.buf) {
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
		_, s.err = s.file.Write(s.buf)
	}
	s.buf = s.buf[:0]
}

// tableFile is one Parquet file being written.
type tableFile struct {
	table    *schema.Table
	sink     *sink
	parquet  *file.Writer
	digester *schema.Digester
	levels   []int16
	scratch  columnScratch
}

func createTableFile(path string, t *schema.Table) (*tableFile, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	tf := &tableFile{table: t, sink: &sink{file: f, buf: make([]byte, 0, sinkBytes)}, digester: schema.NewDigester(t)}
	root, err := parquetSchema(t)
	if err == nil {
		tf.parquet, err = newParquetWriter(tf.sink, root, t)
	}
	if err != nil {
		tf.abandon()
		return nil, err
	}
	return tf, nil
}

func newParquetWriter(s *sink, root *pqschema.GroupNode, t *schema.Table) (w *file.Writer, err error) {
	defer recovered(&err)
	kv, err := fileMetadata(t)
	if err != nil {
		return nil, err
	}
	return file.NewParquetWriter(s, root, file.WithWriterProps(writerProperties(t)), file.WithWriteMetadata(kv)), nil
}

// recovered turns a panic of arrow-go, which is how it reports most errors, into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		if e, ok := p.(error); ok {
			*err = e
		} else {
			*err = fmt.Errorf("%v", p)
		}
	}
}

// parquetSchema is the Parquet schema of a table.
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

// fileMetadata is what a file says of itself: the schema version, and each column's unit and meaning, once as plain
// keys (parquet_kv_metadata in DuckDB) and once as the field metadata of an Arrow schema (pyarrow).
func fileMetadata(t *schema.Table) (metadata.KeyValueMetadata, error) {
	kv := metadata.NewKeyValueMetadata()
	add := func(key, value string) error { return kv.Append(key, value) }
	errs := []error{add("commq.schema_version", strconv.Itoa(schema.Version)), add("commq.table", t.Name), add("commq.doc", t.Doc)}
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

func writerProperties(t *schema.Table) *parquet.WriterProperties {
	props := []parquet.WriterProperty{
		parquet.WithVersion(parquet.V2_LATEST),
		parquet.WithDataPageVersion(parquet.DataPageV2),
		parquet.WithCreatedBy("commq"),
		parquet.WithRootName("commq_" + t.Name),
		parquet.WithCompression(compress.Codecs.Zstd),
		parquet.WithCompressionLevel(1),
		parquet.WithPageIndexEnabled(true),
		parquet.WithBatchSize(20000),
		parquet.WithDictionaryDefault(true),
	}
	for _, c := range t.Columns {
		if deltaCoded(&c) {
			props = append(props, parquet.WithDictionaryFor(c.Name, false), parquet.WithEncodingFor(c.Name, parquet.Encodings.DeltaBinaryPacked))
		}
	}
	return parquet.NewWriterProperties(props...)
}

// deltaCoded says whether a column's values are mostly new ones, near the one before: times and serial numbers.
func deltaCoded(c *schema.Column) bool {
	switch c.Name {
	case "seq", "send_seq", "recv_post_seq", "recv_done_seq", "done_seq", "init_seq", "request", "instance", "id":
		return true
	}
	return c.Unit == "ns"
}

// columnScratch are buffers that are used for one column after another.
type columnScratch struct {
	int32s []int32
	int64s []int64
	bytes  []parquet.ByteArray
	levels []int16
}

// write appends rows.
func (f *tableFile) write(b schema.Batch) error {
	b, err := cleaned(b)
	if err != nil {
		return err
	}
	for i, n := 0, b.Len(); i < n; i += rowGroupRows {
		if err := f.writeRowGroup(b, i, min(n, i+rowGroupRows)); err != nil {
			return err
		}
	}
	f.digester.Add(b)
	return nil
}

func (f *tableFile) writeRowGroup(b schema.Batch, i, j int) (err error) {
	defer recovered(&err)
	group := f.parquet.AppendRowGroup()
	for c := range f.table.Columns {
		w, err := group.NextColumn()
		if err == nil {
			err = f.writeColumn(w, &f.table.Columns[c], b.Data(c), i, j)
		}
		if err != nil {
			return fmt.Errorf("column %s: %w", f.table.Columns[c].Name, err)
		}
	}
	return errors.Join(group.Close(), f.sink.err)
}

func (f *tableFile) writeColumn(w file.ColumnChunkWriter, c *schema.Column, data any, i, j int) (err error) {
	s := &f.scratch
	switch v := data.(type) {
	case []int32:
		s.int32s, s.levels = dense(s.int32s, s.levels, v[i:j], schema.NullInt32)
		_, err = w.(*file.Int32ColumnChunkWriter).WriteBatch(s.int32s, s.levels, nil)
	case []int64:
		s.int64s, s.levels = dense(s.int64s, s.levels, v[i:j], schema.NullInt64)
		_, err = w.(*file.Int64ColumnChunkWriter).WriteBatch(s.int64s, s.levels, nil)
	case []int16:
		s.bytes, s.levels = denseEnums(s.bytes, s.levels, v[i:j], c.Names)
		_, err = w.(*file.ByteArrayColumnChunkWriter).WriteBatch(s.bytes, s.levels, nil)
	case []string:
		s.bytes, s.levels = denseTexts(s.bytes, s.levels, v[i:j])
		_, err = w.(*file.ByteArrayColumnChunkWriter).WriteBatch(s.bytes, s.levels, nil)
	}
	return err
}

// dense are the values that are not null, and the definition level of every row.
func dense[T comparable](values []T, levels []int16, v []T, null T) ([]T, []int16) {
	values, levels = values[:0], levels[:0]
	for _, x := range v {
		level := int16(0)
		if x != null {
			level = 1
			values = append(values, x)
		}
		levels = append(levels, level)
	}
	return values, levels
}

func denseEnums(values []parquet.ByteArray, levels, v []int16, names []string) ([]parquet.ByteArray, []int16) {
	texts := make([]parquet.ByteArray, len(names))
	for i, n := range names {
		texts[i] = parquet.ByteArray(n)
	}
	values, levels = values[:0], levels[:0]
	for _, x := range v {
		level := int16(0)
		if x != schema.NullEnum {
			level = 1
			values = append(values, texts[x])
		}
		levels = append(levels, level)
	}
	return values, levels
}

func denseTexts(values []parquet.ByteArray, levels []int16, v []string) ([]parquet.ByteArray, []int16) {
	values, levels = values[:0], levels[:0]
	for _, x := range v {
		level := int16(0)
		if x != schema.NullText {
			level = 1
			values = append(values, parquet.ByteArray(x))
		}
		levels = append(levels, level)
	}
	return values, levels
}

// close writes the footer, syncs the file and returns its size in bytes.
func (f *tableFile) close() (int64, error) {
	err := f.footer()
	f.sink.flush()
	err = errors.Join(err, f.sink.err)
	if err == nil {
		err = f.sink.file.Sync()
	}
	return f.sink.size, errors.Join(err, f.sink.file.Close())
}

// footer calls FlushWithFooter because Close of arrow-go drops its error.
func (f *tableFile) footer() (err error) {
	defer recovered(&err)
	return f.parquet.FlushWithFooter()
}

// abandon closes the file without finishing it.
func (f *tableFile) abandon() { f.sink.file.Close() }
