package writer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/klauspost/compress/zstd"

	"github.com/commq/commq/schema"
)

// A table of a few kilobytes whose page unpacks to more than the bound is refused, and takes no such memory.
func TestPagesThatUnpackToMuchAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, schema.DatatypesTable.FilePath(0))
	if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	writeLongName(t, path, compress.Codecs.Zstd, maxPageBytes+1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := ReadTable(context.Background(), dir, &schema.DatatypesTable, 7, func(schema.Batch) error { return nil })
	runtime.ReadMemStats(&after)
	if !errors.Is(err, errPageSize) {
		t.Errorf("error %v, want %v", err, errPageSize)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > maxPageBytes/2 {
		t.Errorf("refusing it took %d bytes", took)
	}
}

// A table that is compressed with what has no bound is refused.
func TestCodecsWithoutABoundAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, schema.DatatypesTable.FilePath(0))
	if err := os.Mkdir(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	read := func() error {
		return ReadTable(context.Background(), dir, &schema.DatatypesTable, 7, func(schema.Batch) error { return nil })
	}
	for _, codec := range []compress.Compression{compress.Codecs.Gzip, compress.Codecs.Brotli} {
		writeLongName(t, path, codec, 5)
		wantError(t, read(), "column id is compressed with "+codec.String()+"; want one of [ZSTD SNAPPY UNCOMPRESSED]")
	}
	for _, codec := range boundedCodecs {
		writeLongName(t, path, codec, 5)
		if err := read(); err != nil {
			t.Errorf("%v: %v", codec, err)
		}
	}
}

// writeLongName writes a table of one row, all columns as text of so many bytes.
func writeLongName(t *testing.T, path string, codec compress.Compression, size int) {
	root, err := parquetSchema(&schema.DatatypesTable)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, root, file.WithWriterProps(parquet.NewWriterProperties(
		parquet.WithCompression(codec), parquet.WithDictionaryDefault(false), parquet.WithStats(false))))
	group := w.AppendRowGroup()
	for range schema.DatatypesTable.Columns {
		column, err := group.NextColumn()
		if err != nil {
			t.Fatal(err)
		}
		switch c := column.(type) {
		case *file.ByteArrayColumnChunkWriter:
			_, err = c.WriteBatch([]parquet.ByteArray{make([]byte, size)}, []int16{1}, nil)
		case *file.Int32ColumnChunkWriter:
			_, err = c.WriteBatch([]int32{1}, []int16{1}, nil)
		case *file.Int64ColumnChunkWriter:
			_, err = c.WriteBatch([]int64{1}, []int16{1}, nil)
		default:
			t.Fatalf("a column of type %T", c)
		}
		if err := errors.Join(err, column.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(group.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
	if out.Len() > 1<<20 {
		t.Fatalf("the file has %d bytes", out.Len())
	}
	overwrite(t, path, out.Bytes())
}

// A page that says it is small and unpacks to much is no further unpacked than to the bound.
func TestPagesThatLieAboutTheirSize(t *testing.T) {
	packer, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bomb := packer.EncodeAll(make([]byte, 2*maxPageBytes), nil)
	codec, err := compress.GetCodec(compress.Codecs.Zstd)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, zstd.ErrDecoderSizeExceeded) && !errors.Is(err, zstd.ErrWindowSizeExceeded) {
			t.Errorf("error %v, want one about the size", err)
		}
	}()
	codec.Decode(make([]byte, 100), bomb)
}
