package writer

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"

	"github.com/commq/commq/schema"
)

// readEvents reads a file of events with our decoders, or with arrow-go's alone.
func readEvents(t *testing.T, dir string, arrowAlone bool) *schema.Events {
	t.Helper()
	buffers := newReadBuffers(&schema.EventsTable, 1003)
	if arrowAlone {
		clear(buffers.ours)
	}
	r, err := newTableReader(dir, schema.EventsTable.FilePath(0), buffers)
	if err != nil {
		t.Fatal(err)
	}
	got := &schema.Events{}
	for g := range r.groups() {
		err := r.read(context.Background(), g, func(x schema.Batch) error {
			for i := range x.Len() {
				var e schema.Event
				x.(*schema.Events).Row(i, &e)
				got.Append(&e)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return got
}

// Every shape, written by our encoders, reads the same through our decoders and arrow-go's.
func TestDecodersAgreeWithArrow(t *testing.T) {
	for name, shape := range shapes {
		want := shaped(shape, pageRows+4099)
		store := t.TempDir()
		r := mustCreate(t, store, "x")
		if err := r.Write(0, want); err != nil {
			t.Fatal(err)
		}
		if err := r.Commit(t.Context(), testManifest()); err != nil {
			t.Fatal(err)
		}
		for _, alone := range []bool{false, true} {
			if d := firstDifference(want, readEvents(t, filepath.Join(store, "x"), alone)); d != "" {
				t.Errorf("%s, by arrow-go alone %v: %s", name, alone, d)
			}
		}
	}
}

// Every shape, written by arrow-go in each encoding and both page versions, reads back through our decoders.
func TestDecodersReadWhatOthersWrite(t *testing.T) {
	for how, options := range map[string][]parquet.WriterProperty{
		"dictionary": {parquet.WithDictionaryDefault(true), parquet.WithDataPageVersion(parquet.DataPageV1)},
		"plain, V2":  {parquet.WithDictionaryDefault(false), parquet.WithDataPageVersion(parquet.DataPageV2)},
		"small dictionary, plain after it, V2": {parquet.WithDictionaryDefault(true),
			parquet.WithDictionaryPageSizeLimit(64),
			parquet.WithDataPageVersion(parquet.DataPageV2)},
		"differences": {parquet.WithDictionaryDefault(false), parquet.WithDataPageVersion(parquet.DataPageV1),
			parquet.WithEncoding(parquet.Encodings.DeltaBinaryPacked)},
		"differences, V2": {parquet.WithDictionaryDefault(false), parquet.WithDataPageVersion(parquet.DataPageV2),
			parquet.WithEncoding(parquet.Encodings.DeltaBinaryPacked)},
	} {
		options = append(options, parquet.WithDataPageSize(700), parquet.WithCompression(compress.Codecs.Snappy))
		for name, shape := range shapes {
			want := shaped(shape, 5003)
			dir := t.TempDir()
			writeByArrow(t, filepath.Join(dir, filepath.FromSlash(schema.EventsTable.FilePath(0))), want, options)
			if d := firstDifference(want, readEvents(t, dir, false)); d != "" {
				t.Errorf("%s, %s: %s", how, name, d)
			}
		}
	}
}

func writeByArrow(t *testing.T, path string, b *schema.Events, options []parquet.WriterProperty) {
	t.Helper()
	for _, c := range schema.EventsTable.Columns {
		if c.Type == schema.Text || c.Type == schema.Enum { // delta encodings are for integers
			options = append(options, parquet.WithEncodingFor(c.Name, parquet.Encodings.Plain))
		}
	}
	root, err := parquetSchema(&schema.EventsTable)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := file.NewParquetWriter(&out, root, file.WithWriterProps(parquet.NewWriterProperties(options...)))
	group := w.AppendRowGroup()
	for c := range schema.EventsTable.Columns {
		column := &schema.EventsTable.Columns[c]
		chunk, err := group.NextColumn()
		if err != nil {
			t.Fatal(err)
		}
		switch v := b.Data(c).(type) {
		case []int32:
			values, levels := dense(column, v, schema.NullInt32)
			_, err = chunk.(*file.Int32ColumnChunkWriter).WriteBatch(values, levels, nil)
		case []int64:
			values, levels := dense(column, v, schema.NullInt64)
			_, err = chunk.(*file.Int64ColumnChunkWriter).WriteBatch(values, levels, nil)
		case []int16:
			numbers, levels := dense(column, v, schema.NullEnum)
			var names []parquet.ByteArray
			for _, x := range numbers {
				names = append(names, parquet.ByteArray(column.Names[x]))
			}
			_, err = chunk.(*file.ByteArrayColumnChunkWriter).WriteBatch(names, levels, nil)
		case []string:
			values, levels := dense(column, v, schema.NullText)
			var texts []parquet.ByteArray
			for _, x := range values {
				texts = append(texts, parquet.ByteArray(x))
			}
			_, err = chunk.(*file.ByteArrayColumnChunkWriter).WriteBatch(texts, levels, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := chunk.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// dense returns the values that are not null, and a level for each row.
func dense[T comparable](c *schema.Column, v []T, null T) (values []T, levels []int16) {
	if !c.Nullable {
		return v, nil
	}
	for _, x := range v {
		if x == null {
			levels = append(levels, 0)
			continue
		}
		levels = append(levels, 1)
		values = append(values, x)
	}
	return values, levels
}

// FuzzDecode: a damaged page gives an error or other values, but no panic.
func FuzzDecode(f *testing.F) {
	codings := []parquet.Encoding{parquet.Encodings.RLEDict, parquet.Encodings.DeltaBinaryPacked,
		parquet.Encodings.Plain}
	f.Add([]byte{3}, []byte{2, 0b11, 0b11100100, 0b00011011}, uint16(8), uint8(0), false)
	f.Add([]byte{16, 1}, []byte{2, 16, 1}, uint16(8), uint8(0), true)
	f.Add([]byte{3, 0b10101010}, []byte{128, 1, 4, 3, 2, 2, 8, 0, 0, 0, 1, 2, 3, 4}, uint16(3), uint8(1), true)
	f.Add([]byte{}, []byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}, uint16(2), uint8(2), false)
	f.Add([]byte{}, []byte{128, 1, 4, 70, 0, 1, 64, 60, 7, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255},
		uint16(70), uint8(1), false)
	f.Fuzz(func(t *testing.T, levels, data []byte, rows uint16, coding uint8, optional bool) {
		try := func(d chunkDecoder, out any, begin func(parquet.Encoding, []byte) error) {
			if begin(codings[int(coding)%len(codings)], data) == nil {
				_ = d.fill(out)
			}
		}
		n := int(rows)
		long := &columnDecoder[int64]{null: schema.NullInt64, optional: optional,
			levels: hybrid{data: levels, width: 1}, dictionary: []int64{5, 6, 7}}
		try(long, make([]int64, n), func(e parquet.Encoding, p []byte) error { return long.beginPage(int32(n), e, p) })
		name := &columnDecoder[int16]{null: schema.NullEnum, optional: optional,
			levels: hybrid{data: levels, width: 1}, dictionary: []int16{1},
			numbers: map[string]int16{"": 0, "a": 1}}
		try(name, make([]int16, n), func(e parquet.Encoding, p []byte) error { return name.beginPage(int32(n), e, p) })
	})
}
