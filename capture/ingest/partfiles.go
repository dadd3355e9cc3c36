package ingest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/zeebo/xxh3"

	"github.com/commq/commq/internal/disk"
	"github.com/commq/commq/run/match"
	"github.com/commq/commq/schema"
	"github.com/commq/commq/writer"
)

// Endings of the files that the process of a part puts into the run's hidden folder. Their names begin with the lowest
// rank of the part.
const (
	indexEnding    = ".index"    // a partIndex
	receivesEnding = ".receives" // a receiveIndex; with dataEnding after it the receives
	rowsEnding     = ".rows"     // partRows; with dataEnding after it the rows of the table parts
	dataEnding     = ".data"
)

func partFile(part int32, ending string) string { return fmt.Sprintf("%d%s", part, ending) }

// jobFile is the file that holds a partJob.
const jobFile = "job.json"

// partJob has the values on which all parts of a run must agree.
type partJob struct {
	Job              string   `json:"job"`
	Ranks            int32    `json:"ranks"`
	Parts            int      `json:"parts"`
	Shares           int      `json:"shares"`
	Record           string   `json:"record"`
	Calls            []string `json:"calls"`
	TimeResolutionNs int64    `json:"time_resolution_ns"`
	NoSymbols        bool     `json:"no_symbols"`
	Partial          bool     `json:"partial"`
	SchemaVersion    int      `json:"schema_version"`
	SpoolVersion     int      `json:"spool_version"`
	Commq            string   `json:"commq"`
}

// partRows lists the rows of a part, once they are written.
type partRows struct {
	Files []writer.PartFile
	Tally tally
}

// receiveIndex locates, in the data file of a part, the receives whose sends are in other parts.
type receiveIndex struct {
	Chunks []receiveChunk
}

// receiveChunk locates the receives of an epoch that a part's ranks posted for messages from part To.
type receiveChunk struct {
	Epoch, To int32
	At, Count int64
	Sum       uint64 // xxh3 of their bytes; all other files of a part are compressed, with a checksum in them
}

// readPartFile reads a file of a part.
func readPartFile(parts *writer.Parts, name string, v any) error {
	data, err := os.ReadFile(parts.Path(name))
	if err == nil {
		err = unpack(data, v)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; remove %s to begin again", parts.Path(name), err, parts.Dir())
	}
	return nil
}

// putIndex writes the index of this part.
func (p *partIngest) putIndex() error {
	data, err := pack(newPartIndex(p.own, &p.o.Options))
	if err != nil {
		return err
	}
	name := partFile(p.number, indexEnding)
	if there, err := os.ReadFile(p.parts.Path(name)); err == nil {
		if !bytes.Equal(there, data) {
			return fmt.Errorf("the records in %s are not those from which %s was made; remove %s to begin again",
				p.own.dir, p.parts.Path(name), p.parts.Dir())
		}
		return nil
	}
	return p.parts.Put(name, data)
}

// readIndexes waits for the indexes of all parts and reads them.
func (p *partIngest) readIndexes(ctx context.Context) ([]*partIndex, error) {
	indexes := map[string]*partIndex{}
	ranks := 0
	err := p.waitUntil(ctx, func() (string, error) {
		names, err := p.parts.List(indexEnding)
		if err != nil {
			return "", err
		}
		for _, name := range names {
			if indexes[name] != nil {
				continue
			}
			x := &partIndex{}
			if err := readPartFile(p.parts, name, x); err != nil {
				return "", err
			}
			if err := x.check(p.own.size); err != nil {
				return "", fmt.Errorf("%s: %w", p.parts.Path(name), err)
			}
			if want := partFile(x.Ranks[0].Rank, indexEnding); name != want {
				return "", fmt.Errorf("%s has what belongs into %s", p.parts.Path(name), want)
			}
			indexes[name] = x
			ranks += len(x.Ranks)
		}
		if ranks >= int(p.own.size) || len(indexes) >= p.o.Parts {
			return "", nil
		}
		return fmt.Sprintf("%d of %d parts: records of %d of %d ranks are not there yet", p.o.Parts-len(indexes),
			p.o.Parts, int(p.own.size)-ranks, p.own.size), nil
	})
	var list []*partIndex
	for _, x := range indexes {
		list = append(list, x)
	}
	return list, err
}

// receivesFile is the data file of the receives of a part, while it is written.
type receivesFile struct {
	file  *disk.File
	index receiveIndex
	size  int64
}

func createReceives(parts *writer.Parts, part int32) (*receivesFile, error) {
	f, err := disk.Create(parts.Path(partFile(part, receivesEnding) + dataEnding))
	return &receivesFile{file: f}, err
}

// write writes the receives of an epoch from the ranks of one part. Epochs come in order.
func (f *receivesFile) write(epoch, from int32, recvs []match.Recv) error {
	if len(recvs) == 0 {
		return nil
	}
	data := recvBytes(recvs)
	if _, err := f.file.Write(data); err != nil {
		return err
	}
	f.index.Chunks = append(f.index.Chunks,
		receiveChunk{epoch, from, f.size, int64(len(recvs)), xxh3.Hash(data)})
	f.size += int64(len(data))
	return nil
}

// finish writes the index, which makes the receives visible to the other parts.
func (f *receivesFile) finish(parts *writer.Parts, part int32) error {
	if err := f.file.Sync(); err != nil {
		return err
	}
	data, err := pack(&f.index)
	if err != nil {
		return err
	}
	return parts.Put(partFile(part, receivesEnding), data)
}

// recvBytes returns the memory of receives. All processes run the same commq, on machines of the same kind as the
// spool's.
func recvBytes(recvs []match.Recv) []byte {
	if len(recvs) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&recvs[0])), uintptr(len(recvs))*unsafe.Sizeof(recvs[0]))
}

// receivesReader reads what the ranks of another part received from the ranks of this one.
type receivesReader struct {
	file   *os.File
	chunks []receiveChunk // those for this part, by epoch
}

// openReceives opens the receives of all other parts.
func (p *partIngest) openReceives() (list []receivesReader, closeAll func(), err error) {
	closeAll = func() {
		for _, f := range list {
			f.file.Close()
		}
	}
	for _, n := range p.numbers {
		if n == p.number {
			continue
		}
		name := partFile(n, receivesEnding)
		var x receiveIndex
		err := readPartFile(p.parts, name, &x)
		if err == nil {
			var f *os.File
			if f, err = os.Open(p.parts.Path(name + dataEnding)); err == nil {
				list = append(list, receivesReader{f, x.Chunks})
				err = list[len(list)-1].choose(p.number)
			}
		}
		if err != nil {
			closeAll()
			return nil, nil, err
		}
	}
	return list, closeAll, nil
}

// choose checks that the file has all chunks, and leaves those for a part.
func (f *receivesReader) choose(part int32) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	epochs := map[int32]int32{} // the first epoch that may come next
	for _, c := range f.chunks {
		if c.Epoch < 0 || epochs[c.To] > c.Epoch {
			return fmt.Errorf("%s: the receives of epoch %d come after those of a later one, or twice", f.file.Name(), c.Epoch)
		}
		epochs[c.To] = c.Epoch + 1
		room := (info.Size() - c.At) / int64(unsafe.Sizeof(match.Recv{}))
		if c.At < 0 || c.At > info.Size() || c.Count < 0 || c.Count > room {
			return fmt.Errorf("%s is not the file of its index: it has no %d receives at %d", f.file.Name(), c.Count,
				c.At)
		}
	}
	f.chunks = slices.DeleteFunc(f.chunks, func(c receiveChunk) bool { return c.To != part })
	return nil
}

// read reads the receives of an epoch. Epochs come in order.
func (f *receivesReader) read(epoch int32) ([]match.Recv, error) {
	if len(f.chunks) == 0 || f.chunks[0].Epoch != epoch {
		return nil, nil
	}
	c := f.chunks[0]
	f.chunks = f.chunks[1:]
	recvs := make([]match.Recv, c.Count)
	data := recvBytes(recvs)
	if _, err := f.file.ReadAt(data, c.At); err != nil {
		return nil, fmt.Errorf("%s: %w", f.file.Name(), err)
	}
	if xxh3.Hash(data) != c.Sum {
		return nil, fmt.Errorf("%s was changed: the checksum of the receives of epoch %d differs; remove %s to begin again",
			f.file.Name(), epoch, filepath.Dir(f.file.Name()))
	}
	return recvs, nil
}

// epochParts are the rows of the table parts of an epoch.
type epochParts struct {
	Epoch int32
	Rows  *schema.Parts
}

// partRowsFile is a file of epochParts. It is complete as soon as the rows of its part are.
type partRowsFile struct {
	file   *disk.File
	packed *packer
}

func createPartRows(path string) (*partRowsFile, error) {
	f, err := disk.Create(path)
	if err != nil {
		return nil, err
	}
	p, err := newPacker(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &partRowsFile{f, p}, nil
}

func (f *partRowsFile) put(epoch int32, rows *schema.Parts) error {
	if rows.Len() == 0 {
		return nil
	}
	err := f.packed.put(epochParts{epoch, rows})
	rows.Resize(0)
	return err
}

func (f *partRowsFile) finish() error { return errors.Join(f.packed.zstd.Close(), f.file.Sync()) }

// partRowsReader reads a partRowsFile.
type partRowsReader struct {
	name   string
	file   *unpacker
	epochs int32 // of the run
	next   epochParts
	ended  bool
}

// advance reads the next epoch that has rows.
func (r *partRowsReader) advance() error {
	last := r.next.Epoch
	r.next = epochParts{}
	err := r.file.next(&r.next)
	if errors.Is(err, io.EOF) {
		r.ended = true
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	rows := r.next.Rows
	if rows == nil || rows.Len() == 0 || r.next.Epoch <= last || r.next.Epoch >= r.epochs {
		return fmt.Errorf("%s: no rows of an epoch after %d of %d, or those of epoch %d", r.name, last, r.epochs,
			r.next.Epoch)
	}
	for _, n := range []int{len(rows.Seq), len(rows.Epoch), len(rows.PeerWorld), len(rows.SendBytes), len(rows.RecvBytes)} {
		if n != rows.Len() {
			return fmt.Errorf("%s: epoch %d has a column of %d rows and one of %d", r.name, r.next.Epoch, rows.Len(), n)
		}
	}
	return nil
}

// writeParts writes the table parts: the rows of all parts of the job, by epoch and rank.
func (p *partIngest) writeParts(out sink) error {
	var readers []*partRowsReader
	for _, n := range p.numbers {
		f, err := os.Open(p.parts.Path(partFile(n, rowsEnding) + dataEnding))
		if err != nil {
			return err
		}
		defer f.Close()
		file, err := newUnpacker(f)
		if err != nil {
			return err
		}
		defer file.zstd.Close()
		r := &partRowsReader{name: f.Name(), file: file, epochs: p.plan.epochs(), next: epochParts{Epoch: -1}}
		if err := r.advance(); err != nil {
			return err
		}
		readers = append(readers, r)
	}
	var rows schema.Parts
	for e := range p.plan.epochs() {
		list, err := readEpoch(readers, e)
		if err != nil {
			return err
		}
		for i := range list {
			rows.Append(&list[i])
		}
		if err := writeParts(out, &rows, e == p.plan.epochs()-1); err != nil {
			return err
		}
	}
	return nil
}

// readEpoch reads the rows of one epoch, sorted.
func readEpoch(readers []*partRowsReader, e int32) ([]schema.Part, error) {
	var list []schema.Part
	for _, r := range readers {
		if r.ended || r.next.Epoch != e {
			continue
		}
		for i := range r.next.Rows.Len() {
			var row schema.Part
			r.next.Rows.Row(i, &row)
			list = append(list, row)
		}
		if err := r.advance(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(list, func(a, b schema.Part) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.PeerWorld, b.PeerWorld))
	})
	return list, nil
}
