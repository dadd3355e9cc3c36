package otf2

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/internal/bounded"
)

// anchor is the contents of the anchor file (.otf2) of the archive.
type anchor struct {
	chunkBytes  uint64 // of event files
	defBytes    uint64 // of chunks of definition files
	compressed  bool
	locations   uint64
	definitions uint64
	machine     string
	creator     string
	description string
}

const (
	anchorMagic = "OTF2"
	// Limits that no archive of the OTF2 library exceeds.
	leastChunk, mostChunk = 256, 16 << 20
	mostAnchor            = 1 << 20
	mostBlock             = 64 << 20
	// mostDefinitions is the largest definition file that is read: it is held in memory.
	mostDefinitions = 1 << 30

	substratePosix, compressionNone, compressionZlib = 1, 1, 2
)

// IsAnchor reports whether a file that begins with these bytes (at least 7) is an anchor file of OTF2.
func IsAnchor(head []byte) bool {
	return len(head) >= 7 && head[0] == recordChunkHeader && (head[1] == littleEndian || head[1] == bigEndian) &&
		string(head[2:7]) == anchorMagic+"\x00"
}

// ending is that of anchor files, and of folders that are named after them.
const ending = ".otf2"

// IsFolder reports whether a folder has anchor files of archives.
func IsFolder(path string) bool {
	found, err := anchorsIn(path)
	return err == nil && len(found) > 0
}

// anchorIn returns the anchor file of a folder: traces.otf2, else the only one.
func anchorIn(dir string) (string, error) {
	found, err := anchorsIn(dir)
	if err != nil {
		return "", err
	}
	if export := filepath.Join(dir, ExportName); slices.Contains(found, export) {
		return export, nil
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%s has %d anchor files of OTF2 (*%s); want one, or the name of one", dir, len(found), ending)
	}
	return found[0], nil
}

// anchorsIn returns the anchor files of a folder.
func anchorsIn(dir string) (found []string, err error) {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		if path := filepath.Join(dir, e.Name()); filepath.Ext(path) == ending && hasAnchor(path) {
			found = append(found, path)
		}
	}
	return found, err
}

// hasAnchor reports whether a file begins as an anchor file does.
func hasAnchor(path string) bool {
	data, err := bounded.ReadRegular(path, mostAnchor)
	return err == nil && IsAnchor(data)
}

// parseAnchor reads an anchor file.
func parseAnchor(data []byte) (*anchor, error) {
	c := cursor{data: data}
	c.header()
	if c.err == nil && c.text() != anchorMagic {
		return nil, errors.New("byte 2: no OTF2 anchor file: the word OTF2 is missing")
	}
	format := c.uint8()
	for range 4 { // versions of the trace format and of the library
		c.uint8()
	}
	a := &anchor{chunkBytes: c.full64(), defBytes: c.full64()}
	substrate, compression := c.uint8(), c.uint8()
	a.locations, a.definitions = c.full64(), c.full64()
	a.machine, a.creator, a.description = c.text(), c.text(), c.text()
	switch {
	case c.err != nil:
		return nil, fmt.Errorf("byte %d: %w", c.at, c.err)
	case format == 0:
		return nil, errors.New("byte 7: version 0 of the anchor; want 1 or later")
	case substrate != substratePosix:
		return nil, fmt.Errorf("the archive is not in files of its own (substrate %d, for example SIONlib); only "+
			"archives with a file for each location are read", substrate)
	case compression != compressionNone && compression != compressionZlib:
		return nil, fmt.Errorf("compression %d; want 1 (none) or 2 (zlib)", compression)
	case min(a.chunkBytes, a.defBytes) < leastChunk || max(a.chunkBytes, a.defBytes) > mostChunk:
		return nil, fmt.Errorf("chunks of %d and %d bytes; want %d to %d", a.chunkBytes, a.defBytes, leastChunk, mostChunk)
	}
	a.compressed = compression == compressionZlib
	return a, nil
}

// archive is an OTF2 trace on disk.
type archive struct {
	anchor
	path string // of the anchor file
	dir  string // of the files of locations
	defs string // the file of global definitions
}

// openArchive reads the anchor file.
func openArchive(path string) (*archive, error) {
	data, err := bounded.ReadRegular(path, mostAnchor)
	if err != nil {
		return nil, err
	}
	a, err := parseAnchor(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	base := strings.TrimSuffix(path, filepath.Ext(path))
	return &archive{anchor: *a, path: path, dir: base, defs: base + ".def"}, nil
}

// definitions returns the content of a definition file, decompressed.
func (a *archive) definitionFile(path string) ([]byte, error) {
	data, err := bounded.ReadRegular(path, mostDefinitions)
	if err != nil || !a.compressed {
		return data, err
	}
	var all []byte
	for r := newInflater(strings.NewReader(string(data))); ; {
		block, err := r.block()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: byte %d: %w", path, r.at, err)
		}
		if all = append(all, block...); len(all) > mostDefinitions {
			return nil, fmt.Errorf("%s has more than %d bytes when decompressed", path, mostDefinitions)
		}
	}
}

// eventFile opens the events of a location. A location without a file has none.
func (a *archive) eventFile(location uint64) (io.ReadCloser, string, error) {
	path := filepath.Join(a.dir, fmt.Sprint(location, ".evt"))
	f, _, err := bounded.OpenRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, path, nil
	}
	if err != nil {
		return nil, path, err
	}
	if !a.compressed {
		return f, path, nil
	}
	return &inflatedFile{inflater: newInflater(f), file: f}, path, nil
}

// inflater reads blocks that OTF2 compressed with zlib. Before each is a header of 20 bytes: a mark of 8 in the byte
// order of the machine that wrote it, then, little-endian, the sizes of the block, of what it was made of, and of the
// block before it. OTF2's library does not end the stream of a block, it only flushes it. Some of its versions write as
// many bytes as were compressed, with anything behind the block.
type inflater struct {
	in     *bufio.Reader
	at     int64
	behind int // bytes that may be behind the last block
}

const (
	blockMark   = 0x00000000ffffffff
	blockHeader = 20
)

func newInflater(in io.Reader) *inflater { return &inflater{in: bufio.NewReader(in)} }

// isBlock reports whether a block begins with these bytes.
func isBlock(head []byte) bool {
	return binary.LittleEndian.Uint64(head) == blockMark || binary.BigEndian.Uint64(head) == blockMark
}

// pass goes to where the next block begins: here, or behind what some versions of the library write after a block.
func (r *inflater) pass() error {
	if head, err := r.in.Peek(8); r.behind > 0 && (err != nil || !isBlock(head)) {
		n, err := r.in.Discard(r.behind)
		if r.at += int64(n); err != nil {
			return fmt.Errorf("a block goes on for %d more bytes, of which %d are there", r.behind, n)
		}
	}
	return nil
}

// block returns the next block; io.EOF after the last.
func (r *inflater) block() ([]byte, error) {
	if _, err := r.in.Peek(1); err == io.EOF {
		return nil, io.EOF // also after the last block of a version that writes nothing behind it
	}
	if err := r.pass(); err != nil {
		return nil, err
	}
	var head [blockHeader]byte
	n, err := io.ReadFull(r.in, head[:])
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, fmt.Errorf("the header of a compressed block ends after %d of %d bytes", n, blockHeader)
	}
	if !isBlock(head[:]) {
		return nil, fmt.Errorf("%#x where a compressed block begins; want %#x", binary.LittleEndian.Uint64(head[:]),
			uint64(blockMark))
	}
	packed, size := binary.LittleEndian.Uint32(head[8:]), binary.LittleEndian.Uint32(head[12:])
	if packed > mostBlock || size > mostBlock {
		return nil, fmt.Errorf("a block of %d bytes, compressed to %d; want at most %d", size, packed, mostBlock)
	}
	left := &io.LimitedReader{R: r.in, N: int64(packed)}
	data, err := inflate(left, int64(size))
	if err == nil && left.N > 0 {
		err = fmt.Errorf("a block compressed to %d bytes, of which %d are there", packed, int64(packed)-left.N)
	}
	if err != nil {
		return nil, err
	}
	r.at += blockHeader + int64(packed)
	r.behind = max(int(size)-int(packed), 0)
	return data, nil
}

// inflate decompresses a block, whose stream may have no end, to size bytes.
func inflate(in io.Reader, size int64) ([]byte, error) {
	z, err := zlib.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("a compressed block: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(z, size)) // grows with what is there
	if err != nil {
		return nil, fmt.Errorf("a compressed block: %w", err)
	}
	if int64(len(data)) < size {
		return nil, fmt.Errorf("a compressed block holds %d bytes; its header says %d", len(data), size)
	}
	switch n, err := z.Read(make([]byte, 1)); {
	case n > 0:
		return nil, fmt.Errorf("a compressed block holds more than the %d bytes that its header says", size)
	case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF: // no end, or one with a wrong checksum
		return nil, fmt.Errorf("a compressed block: %w", err)
	}
	_, err = io.Copy(io.Discard, in)
	return data, err
}

// inflatedFile reads a compressed file as one stream.
type inflatedFile struct {
	*inflater
	file io.Closer
	rest []byte
}

// Read decompresses the file.
func (f *inflatedFile) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		var err error
		if f.rest, err = f.block(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// Close closes the file.
func (f *inflatedFile) Close() error { return f.file.Close() }
