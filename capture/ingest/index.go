package ingest

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/commq/commq/capture/ingest/sites"
	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/symbols"
	"github.com/commq/commq/internal/bounded"
)

// partIndex has the facts about the ranks of a part that other parts of a job need: the result of the first pass,
// without the data that only the second pass over these ranks needs. Equal records give equal bytes, so it has no maps.
type partIndex struct {
	Ranks    []indexRank
	Paths    []sites.Path // the call paths of its ranks, without repetitions
	Frames   []indexFrames
	Warnings []string // about damaged records, and modules that could not be read
}

// indexFrames are the functions at a return address.
type indexFrames struct {
	Key    sites.Key
	Frames []symbols.Frame
}

// indexRank describes a rankSpool.
type indexRank struct {
	Files  []indexFile
	Rank   int32
	Facts  rankFacts
	Blocks []indexBlock
}

type indexFile struct {
	Name     string
	Header   []byte
	LastTick uint64 // when its records reached their limit
}

// indexBlock has what is needed to cut epochs.
type indexBlock struct {
	T0  uint64
	Row int64
}

// newPartIndex makes the index of a part whose ranks have been scanned.
func newPartIndex(j *job, o *Options) *partIndex {
	x := &partIndex{}
	tree := &sites.Tree{}
	for _, r := range j.ranks {
		x.Ranks = append(x.Ranks, newIndexRank(r))
		if r.files[0].Header.Stack > 0 {
			tree.Add(&r.sites)
		}
	}
	x.Paths = tree.Paths()
	(*warnings)(&x.Warnings).addDamage(j)
	if o.NoSymbols {
		return x
	}
	frames, unreadable := tree.Resolve(j.started())
	(*warnings)(&x.Warnings).addFirst(unreadable)
	for _, k := range slices.SortedFunc(maps.Keys(frames), sites.Key.Compare) {
		x.Frames = append(x.Frames, indexFrames{k, frames[k]})
	}
	return x
}

func newIndexRank(r *rankSpool) indexRank {
	x := indexRank{Rank: r.rank, Facts: r.facts}
	for _, f := range r.files {
		file := indexFile{Name: f.Name, Header: headerBytes(&f.Header)}
		if f.Header.Limited != 0 {
			file.LastTick = r.lastTick(f)
		}
		x.Files = append(x.Files, file)
	}
	for i := range r.blocks {
		x.Blocks = append(x.Blocks, indexBlock{r.blocks[i].t0, r.blocks[i].row})
	}
	return x
}

func headerBytes(h *spool.Header) []byte {
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(h)), unsafe.Sizeof(*h)))
}

// rank returns the rank as other parts see it.
func (x *indexRank) rank() (*rankSpool, error) {
	r := &rankSpool{rank: x.Rank, facts: x.Facts, remote: true, lastTicks: map[int32]uint64{}}
	for _, file := range x.Files {
		data := make([]byte, spool.HeaderBytes)
		copy(data, file.Header)
		f, err := spool.Parse(file.Name, data)
		if err != nil {
			return nil, err
		}
		r.files = append(r.files, f)
		r.lastTicks[f.Header.Thread] = file.LastTick
	}
	if len(r.files) == 0 || r.facts.Handles == nil || len(r.facts.Pairs) != len(r.files) {
		return nil, fmt.Errorf("rank %d has no files", x.Rank)
	}
	if h := r.facts.Handles; h.Rank != x.Rank {
		return nil, fmt.Errorf("rank %d has the communicators of rank %d", x.Rank, h.Rank)
	}
	if err := errors.Join(x.checkBlocks(), x.checkCalls()); err != nil {
		return nil, err
	}
	for _, b := range x.Blocks {
		r.blocks = append(r.blocks, block{t0: b.T0, row: b.Row})
	}
	return r, nil
}

// mostRankRows is more than the calls of any rank, mostRows more than those of all. The sum over all ranks fits a number.
const mostRankRows, mostRows = 1 << 38, 1 << 47

// checkBlocks checks that the blocks lie in the rank's calls, in order.
func (x *indexRank) checkBlocks() error {
	f := &x.Facts
	if f.Rows < 0 || f.Rows > mostRankRows || f.Damaged < 0 || f.Damaged > mostRankRows || f.Rows > 0 && len(x.Blocks) == 0 {
		return fmt.Errorf("rank %d has %d calls, and %d damaged ones, in %d blocks", x.Rank, f.Rows, f.Damaged, len(x.Blocks))
	}
	last := int64(0)
	for i, b := range x.Blocks {
		if b.Row < last || b.Row > f.Rows {
			return fmt.Errorf("rank %d: block %d begins with call %d of %d", x.Rank, i, b.Row, f.Rows)
		}
		last = b.Row
	}
	return nil
}

// checkCalls checks the calls that warnings name.
func (x *indexRank) checkCalls() error {
	f := &x.Facts
	if int(f.LastCall) >= len(ops) {
		return fmt.Errorf("rank %d entered the call with the number %d last, known are 1 to %d", x.Rank, f.LastCall, len(ops)-1)
	}
	for i := range f.Open {
		if c := f.Open[i].Call; c == 0 || int(c) >= len(ops) {
			return fmt.Errorf("rank %d is in the call with the number %d, known are 1 to %d", x.Rank, c, len(ops)-1)
		}
	}
	return nil
}

// check checks that all ranks of a part belong to the job, and that call paths are no longer than any program's.
func (x *partIndex) check(size int32) error {
	if len(x.Ranks) == 0 {
		return fmt.Errorf("no ranks in it")
	}
	for i := range x.Ranks {
		if r := x.Ranks[i].Rank; r < 0 || r >= size || i > 0 && r <= x.Ranks[i-1].Rank {
			return fmt.Errorf("rank %d of %d", r, size)
		}
	}
	for _, p := range x.Paths {
		if len(p) > symbols.MaxFrames {
			return fmt.Errorf("a call path of %d frames", len(p))
		}
	}
	for _, f := range x.Frames {
		if len(f.Frames) > symbols.MaxFrames {
			return fmt.Errorf("%d functions at one return address", len(f.Frames))
		}
	}
	return nil
}

// joinParts makes the job of all parts: the ranks of own as they are, the others from their indexes. It sorts the
// indexes by rank. own is nil if none of the ranks are here.
func joinParts(own *job, base job, indexes []*partIndex) (*job, *partSites, error) {
	j := &base
	known := &partSites{frames: map[sites.Key][]symbols.Frame{}}
	here := map[int32]*rankSpool{}
	if own != nil {
		for _, r := range own.ranks {
			here[r.rank] = r
		}
	}
	slices.SortFunc(indexes, func(a, b *partIndex) int { return cmp.Compare(a.Ranks[0].Rank, b.Ranks[0].Rank) })
	for _, x := range indexes {
		for i := range x.Ranks {
			r := here[x.Ranks[i].Rank]
			if r == nil {
				var err error
				if r, err = x.Ranks[i].rank(); err != nil {
					return nil, nil, err
				}
			}
			j.ranks = append(j.ranks, r)
		}
		known.paths = append(known.paths, x.Paths...)
		for _, f := range x.Frames {
			if _, ok := known.frames[f.Key]; !ok {
				known.frames[f.Key] = f.Frames
			}
		}
		known.warnings = append(known.warnings, x.Warnings...)
	}
	slices.Sort(known.warnings)
	known.warnings = slices.Compact(known.warnings)
	return j, known, j.checkJoined()
}

// checkJoined checks that the parts do not overlap and that their files fit together.
func (j *job) checkJoined() error {
	j.sort()
	for i, r := range j.ranks {
		if i > 0 && j.ranks[i-1].rank == r.rank {
			return fmt.Errorf("the records of rank %d are in two parts, as %s and %s: give every process those of its own node, or --part when all nodes see the same spool folder",
				r.rank, j.ranks[i-1].files[0].Name, r.files[0].Name)
		}
		for _, f := range r.files {
			if err := j.checkHeader(f, filepath.Base(f.Name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostUnpacked is the most that a value of a part may unpack to: a file of a few kilobytes in a shared store may unpack
// to more than the memory of the machine. The index of a part has that with the files of 262,144 threads.
const mostUnpacked = 1 << 30

// mostWindow is twice what the packer's level has.
const mostWindow = 8 << 20

// packer encodes values one after the other for other processes: gob, compressed.
type packer struct {
	zstd    *zstd.Encoder
	encoder *gob.Encoder
	left    int64 // bytes that the next value may still have
	most    int64
}

func newPacker(to io.Writer) (*packer, error) {
	z, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	p := &packer{zstd: z, most: mostUnpacked}
	p.encoder = gob.NewEncoder(p)
	return p, nil
}

// put encodes the next value. One that an unpacker refuses is an error.
func (p *packer) put(v any) error {
	p.left = p.most
	return p.encoder.Encode(v)
}

// Write implements io.Writer for the encoder.
func (p *packer) Write(b []byte) (int, error) {
	if p.left -= int64(len(b)); p.left < 0 {
		return 0, fmt.Errorf("what this part has for the others is more than the %d MiB that they read at once; "+
			"remove the folder of parts, and ingest in more parts, each of fewer ranks", p.most>>20)
	}
	return p.zstd.Write(b)
}

// pack encodes one value.
func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	p, err := newPacker(&b)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(p.put(v), p.zstd.Close()); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// unpack decodes what pack encoded.
func unpack(data []byte, v any) error {
	u, err := newUnpacker(bytes.NewReader(data))
	if err != nil {
		return err
	}
	defer u.zstd.Close()
	return u.next(v)
}

// unpacker decodes the values of a packer.
type unpacker struct {
	zstd    *zstd.Decoder
	decoder *gob.Decoder
	bytes   *bounded.Reader // of the next value
}

func newUnpacker(from io.Reader) (*unpacker, error) {
	z, err := zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(mostUnpacked),
		zstd.WithDecoderMaxWindow(mostWindow))
	if err != nil {
		return nil, err
	}
	u := &unpacker{zstd: z, bytes: &bounded.Reader{From: z, Err: errUnpacked}}
	u.decoder = gob.NewDecoder(u.bytes)
	return u, nil
}

var errUnpacked = fmt.Errorf("it unpacks to more than %d MiB; commq writes no part that does", mostUnpacked>>20)

// next decodes the next value.
func (u *unpacker) next(v any) error {
	u.bytes.Left = mostUnpacked
	return u.decoder.Decode(v)
}
