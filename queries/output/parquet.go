package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/schema"

	"github.com/commq/commq/queries"
)

// decimalBytes is the width of a decimal in a file, enough for every precision.
const decimalBytes = 16

// writeParquet writes rows as a Parquet file. It uses Arrow's file layer, because the layer above would link gRPC
// into commq.
func writeParquet(w io.Writer, rows queries.Rows) error {
	arrows := arrowSchema(rows.Columns())
	root, err := parquetSchema(arrows)
	if err != nil {
		return err
	}
	out := file.NewParquetWriter(w, root, file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCreatedBy("commq"))))
	err = batches(arrows, rows, func(b arrow.RecordBatch) error { return writeRowGroup(out, b) })
	if err != nil {
		return err
	}
	return out.Close()
}

// RunsRow returns the run's row of the table runs as a Parquet file, without the column run: for engines that find the
// run in the name of the file's folder.
func RunsRow(ctx context.Context, r queries.Run) (data []byte, err error) {
	db, err := queries.Open(ctx, []queries.Run{r}, queries.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.Query(ctx, "SELECT * EXCLUDE (run) FROM runs")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = Write(&b, "parquet", Limit(rows, 0))
	return b.Bytes(), errors.Join(err, rows.Close())
}

func parquetSchema(s *arrow.Schema) (*schema.GroupNode, error) {
	var nodes schema.FieldList
	for _, f := range s.Fields() {
		node, err := parquetNode(f)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		nodes = append(nodes, node)
	}
	return schema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)
}

func parquetNode(f arrow.Field) (schema.Node, error) {
	rep := parquet.Repetitions.Optional
	switch t := f.Type.(type) {
	case *arrow.BooleanType:
		return schema.NewBooleanNode(f.Name, rep, -1), nil
	case *arrow.Int32Type:
		return schema.NewInt32Node(f.Name, rep, -1), nil
	case *arrow.Int64Type:
		return schema.NewInt64Node(f.Name, rep, -1), nil
	case *arrow.Float64Type:
		return schema.NewFloat64Node(f.Name, rep, -1), nil
	case *arrow.Date32Type:
		return schema.NewPrimitiveNodeLogical(f.Name, rep, schema.DateLogicalType{}, parquet.Types.Int32, -1, -1)
	case *arrow.Decimal128Type:
		return schema.NewPrimitiveNodeLogical(f.Name, rep, schema.NewDecimalLogicalType(t.Precision, t.Scale),
			parquet.Types.FixedLenByteArray, decimalBytes, -1)
	}
	return schema.NewPrimitiveNodeLogical(f.Name, rep, schema.StringLogicalType{}, parquet.Types.ByteArray, -1, -1)
}

func writeRowGroup(out *file.Writer, b arrow.RecordBatch) error {
	group := out.AppendRowGroup()
	for i := range int(b.NumCols()) {
		column, err := group.NextColumn()
		if err != nil {
			return err
		}
		if err := writeColumn(column, b.Column(i)); err != nil {
			return err
		}
		if err := column.Close(); err != nil {
			return err
		}
	}
	return group.Close()
}

// writeColumn writes the values that are not null, and for each row whether it has one.
func writeColumn(to file.ColumnChunkWriter, from arrow.Array) error {
	levels := make([]int16, from.Len())
	for i := range levels {
		if from.IsValid(i) {
			levels[i] = 1
		}
	}
	var err error
	switch to := to.(type) {
	case *file.BooleanColumnChunkWriter:
		_, err = to.WriteBatch(values(from, from.(*array.Boolean).Value), levels, nil)
	case *file.Int32ColumnChunkWriter:
		_, err = to.WriteBatch(values(from, int32At(from)), levels, nil)
	case *file.Int64ColumnChunkWriter:
		_, err = to.WriteBatch(values(from, from.(*array.Int64).Value), levels, nil)
	case *file.Float64ColumnChunkWriter:
		_, err = to.WriteBatch(values(from, from.(*array.Float64).Value), levels, nil)
	case *file.ByteArrayColumnChunkWriter:
		texts := from.(*array.String)
		_, err = to.WriteBatch(values(from, func(i int) parquet.ByteArray { return []byte(texts.Value(i)) }), levels, nil)
	case *file.FixedLenByteArrayColumnChunkWriter:
		numbers := from.(*array.Decimal128)
		_, err = to.WriteBatch(values(from, func(i int) parquet.FixedLenByteArray { return bigEndian(numbers.Value(i)) }), levels, nil)
	default:
		err = fmt.Errorf("no way to write a %s to Parquet", from.DataType())
	}
	return err
}

func int32At(from arrow.Array) func(int) int32 {
	if dates, ok := from.(*array.Date32); ok {
		return func(i int) int32 { return int32(dates.Value(i)) }
	}
	return from.(*array.Int32).Value
}

// values returns the non-null values of an array.
func values[T any](from arrow.Array, at func(int) T) []T {
	out := make([]T, 0, from.Len()-from.NullN())
	for i := range from.Len() {
		if from.IsValid(i) {
			out = append(out, at(i))
		}
	}
	return out
}

// bigEndian encodes a decimal as Parquet does: two's complement, most significant byte first.
func bigEndian(n decimal128.Num) []byte {
	b := make([]byte, decimalBytes)
	high, low := uint64(n.HighBits()), n.LowBits()
	for i := range 8 {
		b[7-i] = byte(high >> (8 * i))
		b[15-i] = byte(low >> (8 * i))
	}
	return b
}
