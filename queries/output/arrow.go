package output

import (
	"fmt"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/duckdb/duckdb-go/v2"

	"github.com/commq/commq/queries"
)

// batchRows is the number of rows in an Arrow batch and in a Parquet row group.
const batchRows = 1 << 16

// writeArrow writes rows as an Arrow IPC stream.
func writeArrow(w io.Writer, rows queries.Rows) error {
	schema := arrowSchema(rows.Columns())
	out := ipc.NewWriter(w, ipc.WithSchema(schema))
	if err := batches(schema, rows, out.Write); err != nil {
		return err
	}
	return out.Close()
}

func arrowSchema(columns []queries.Column) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = arrow.Field{Name: c.Name, Type: arrowType(c.Type), Nullable: true}
		if c.Doc != "" {
			fields[i].Metadata = arrow.NewMetadata([]string{"unit", "description"}, []string{c.Unit, c.Doc})
		}
	}
	return arrow.NewSchema(fields, nil)
}

var decimalRe = regexp.MustCompile(`^DECIMAL\((\d+),\s*(\d+)\)$`)

// arrowType returns the Arrow type of an SQL type. Types that every Parquet reader knows are kept; sums of integers
// (HUGEINT) become decimals without fraction; all others become text.
func arrowType(typ string) arrow.DataType {
	switch typ {
	case "BOOLEAN":
		return arrow.FixedWidthTypes.Boolean
	case "TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT":
		return arrow.PrimitiveTypes.Int32
	case "BIGINT", "UINTEGER":
		return arrow.PrimitiveTypes.Int64
	case "UBIGINT", "HUGEINT":
		return &arrow.Decimal128Type{Precision: 38, Scale: 0}
	case "FLOAT", "DOUBLE":
		return arrow.PrimitiveTypes.Float64
	case "DATE":
		return arrow.FixedWidthTypes.Date32
	}
	if m := decimalRe.FindStringSubmatch(typ); m != nil {
		width, _ := strconv.Atoi(m[1])
		scale, _ := strconv.Atoi(m[2])
		return &arrow.Decimal128Type{Precision: int32(width), Scale: int32(scale)}
	}
	return arrow.BinaryTypes.String
}

// batches passes the rows to put in batches.
func batches(schema *arrow.Schema, rows queries.Rows, put func(arrow.RecordBatch) error) error {
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	columns := rows.Columns()
	n := 0
	flush := func() error {
		batch := b.NewRecordBatch()
		defer batch.Release()
		n = 0
		return put(batch)
	}
	next := byColumn(rows)
	for next != nil {
		some := next()
		if some == nil {
			break
		}
		for i, values := range some.Columns {
			appendColumn(b.Field(i), values, some.Valid[i])
		}
		if n += some.Rows; n >= batchRows {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	for next == nil && rows.Next() {
		for i, v := range rows.Row() {
			if err := appendValue(b.Field(i), v, columns[i].Type); err != nil {
				return fmt.Errorf("column %s: %w", columns[i].Name, err)
			}
		}
		if n++; n == batchRows {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if n == 0 {
		return nil
	}
	return flush()
}

// byColumn returns the function that reads rows by columns, or nil.
func byColumn(rows queries.Rows) func() *queries.Batch {
	if l, ok := rows.(*Limited); ok {
		return l.batches()
	}
	return queries.Batches(rows)
}

// appendColumn appends the values of a column of a batch.
func appendColumn(b array.Builder, values any, valid []bool) {
	switch values := values.(type) {
	case []int32:
		b.(*array.Int32Builder).AppendValues(values, valid)
	case []int64:
		b.(*array.Int64Builder).AppendValues(values, valid)
	case []float64:
		b.(*array.Float64Builder).AppendValues(values, valid)
	case []bool:
		b.(*array.BooleanBuilder).AppendValues(values, valid)
	case []string:
		b.(*array.StringBuilder).AppendValues(values, valid)
	}
}

func appendValue(b array.Builder, v any, typ string) error {
	if v == nil {
		b.AppendNull()
		return nil
	}
	switch b := b.(type) {
	case *array.StringBuilder:
		b.Append(cell(v, typ))
		return nil
	case *array.BooleanBuilder:
		if x, ok := v.(bool); ok {
			b.Append(x)
			return nil
		}
	case *array.Int32Builder:
		if x, ok := integer(v); ok {
			b.Append(int32(x))
			return nil
		}
	case *array.Int64Builder:
		if x, ok := integer(v); ok {
			b.Append(x)
			return nil
		}
	case *array.Float64Builder:
		switch x := v.(type) {
		case float64:
			b.Append(x)
			return nil
		case float32:
			b.Append(float64(x))
			return nil
		}
	case *array.Date32Builder:
		if x, ok := v.(time.Time); ok {
			b.Append(arrow.Date32FromTime(x))
			return nil
		}
	case *array.Decimal128Builder:
		return appendDecimal(b, v)
	}
	return fmt.Errorf("the engine gave a %T for the type %s", v, typ)
}

func integer(v any) (int64, bool) {
	switch x := v.(type) {
	case int8:
		return int64(x), true
	case int16:
		return int64(x), true
	case int32:
		return int64(x), true
	case int64:
		return x, true
	case uint8:
		return int64(x), true
	case uint16:
		return int64(x), true
	case uint32:
		return int64(x), true
	}
	return 0, false
}

// decimalDigits is the largest precision of a Parquet decimal that all readers support.
var decimalDigits = big.NewInt(38)

func appendDecimal(b *array.Decimal128Builder, v any) error {
	var x *big.Int
	switch v := v.(type) {
	case *big.Int:
		x = v
	case uint64:
		x = new(big.Int).SetUint64(v)
	case duckdb.Decimal:
		x = v.Value
	default:
		return fmt.Errorf("the engine gave a %T for a decimal", v)
	}
	if new(big.Int).Abs(x).Cmp(new(big.Int).Exp(big.NewInt(10), decimalDigits, nil)) >= 0 {
		return fmt.Errorf("%s has more than 38 digits; cast it, for example to DOUBLE", x)
	}
	b.Append(decimal128.FromBigInt(x))
	return nil
}
