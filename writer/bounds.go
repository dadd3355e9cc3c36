package writer

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/klauspost/compress/zstd"
)

// maxPageBytes is how large a page of a table may be when it is unpacked. Our own pages are below 16 MiB. A page of a
// few kilobytes may claim, or unpack to, gigabytes.
const maxPageBytes = 256 << 20

// errPageSize is the error of a page that is larger.
var errPageSize = fmt.Errorf("a page unpacks to more than %d MiB; the file is damaged, or not a table of commq", maxPageBytes>>20)

// pageAllocator gives memory for pages and refuses sizes that no page has.
type pageAllocator struct{ memory.Allocator }

func (a pageAllocator) Allocate(size int) []byte {
	if size > maxPageBytes {
		panic(errPageSize) // an Allocator cannot return an error; tableReader.opened recovers
	}
	return a.Allocator.Allocate(size)
}

func (a pageAllocator) Reallocate(size int, b []byte) []byte {
	if size > maxPageBytes {
		panic(errPageSize)
	}
	return a.Allocator.Reallocate(size, b)
}

// pageCodec unpacks pages whose contents are larger than their header says no further than to the bound.
type pageCodec struct {
	compress.Codec
	decoder *zstd.Decoder
}

func (c pageCodec) Decode(to, from []byte) []byte {
	to, err := c.decoder.DecodeAll(from, to[:0])
	if err != nil {
		panic(fmt.Errorf("unpack a page: %w", err)) // as the codec that this one replaces does
	}
	return to
}

func init() {
	codec, err := compress.GetCodec(compress.Codecs.Zstd)
	if err != nil {
		panic(err)
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPageBytes))
	if err != nil {
		panic(err)
	}
	compress.RegisterCodec(compress.Codecs.Zstd, pageCodec{codec, decoder})
}
