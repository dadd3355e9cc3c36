package ingest

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"unsafe"

	"github.com/klauspost/compress/zstd"

	"github.com/commq/commq/capture/spool"
	"github.com/commq/commq/capture/symbols"
)

// partIndex is what the other parts of a job need to know of the ranks of one: all that the first pass found, but for what only the second pass over these
// ranks wants. Equal records give equal bytes: there are no maps in it.
type partIndex struct {
	Ranks    []indexRank
	Paths    []sitePath // the call paths of its ranks, each once
	Frames   []indexFrame
	Warnings []string // of modules that could not be read
}

// sitePath is a call path, the outermost frame first.
type sitePath []indexKey

// indexKey is a siteKey.
type indexKey struct {
	Module, BuildID, Path string
	Offset                uint64
}

func (k siteKey) wire() indexKey { return indexKey{k.module, k.buildID, k.path, k.offset} }

func (k indexKey) key() siteKey { return siteKey{k.Module, k.BuildID, k.Path, k.Offset} }

// indexFrame is what is known of a return address.
type indexFrame struct {
	Key    indexKey
	Frames []symbols.Frame
}

// indexRank is a rankSpool.
type indexRank struct {
	Files                                        []indexFile
	Rank                                         int32
	Rows                                         int64
	Finalized, Inited, Switched, Lossy, UsesSelf bool
	Polls                                        uint64
	Comms                                        []indexComm
	Types                                        []indexType
	Pairs                                        [][]indexPair
	Blocks                                       []indexBlock
	Open                                         []indexCall
	LastCall                                     uint16
}

type indexFile struct {
	Name     string
	Header   []byte
	LastTick uint64 // where records reached their bound
}

type indexComm struct {
	ID                                       int64
	Fixed                                    spool.CommDef
	Parent                                   int
	ByTag, Predefined, Named                 bool
	Name                                     string
	Members, Remote, Extents, Periods, Edges []int32
}

type indexType struct {
	ID    int64
	Name  string
	Fixed spool.TypeDef
}

type indexPair struct {
	Tick uint64
	Ns   int64
}

// indexBlock is the part of a block from which epochs are cut.
type indexBlock struct {
	T0  uint64
	Row int64
}

type indexCall struct {
	Call spool.Call
	File string
}

// index is what the first pass found of the job's ranks, all of which are here.
func (j *job) index() *partIndex {
	x := &partIndex{}
	for _, r := range j.ranks {
		x.Ranks = append(x.Ranks, r.index())
	}
	tree := siteTable{}
	for _, r := range j.ranks {
		if r.files[0].Header.Stack > 0 {
			tree.add(&r.sites)
		}
	}
	x.Paths = leavesOf(&tree.root, nil, nil)
	if j.o.NoSymbols {
		return x
	}
	said := len(j.warnings)
	frames := j.resolve(&tree.root)
	x.Warnings, j.warnings = slices.Clone(j.warnings[said:]), j.warnings[:said]
	for _, k := range slices.SortedFunc(maps.Keys(frames), siteKey.compare) {
		x.Frames = append(x.Frames, indexFrame{k.wire(), frames[k]})
	}
	return x
}

// leavesOf are the paths to the nodes below n that have none below them. A path that is the beginning of another needs no mention: its frames get their
// rows all the same.
func leavesOf(n *siteNode, path sitePath, to []sitePath) []sitePath {
	if len(n.children) == 0 && len(path) > 0 {
		return append(to, slices.Clone(path))
	}
	for _, c := range n.sorted() {
		to = leavesOf(c, append(path, c.key.wire()), to)
	}
	return to
}

func (r *rankSpool) index() indexRank {
	x := indexRank{Rank: r.rank, Rows: r.rows, Finalized: r.finalized, Inited: r.inited, Switched: r.switched, Lossy: r.lossy, UsesSelf: r.usesSelf,
		Polls: r.polls, LastCall: r.lastCall}
	for _, f := range r.files {
		file := indexFile{Name: f.Name, Header: headerBytes(&f.Header)}
		if f.Header.Limited != 0 {
			file.LastTick = r.lastTick(f)
		}
		x.Files = append(x.Files, file)
	}
	for i := range r.comms {
		c := &r.comms[i]
		x.Comms = append(x.Comms, indexComm{c.id, c.fixed, c.parent, c.byTag, c.predefined, c.named, c.name, c.members, c.remote, c.extents, c.periods, c.edges})
	}
	for i := range r.types {
		x.Types = append(x.Types, indexType{r.types[i].id, r.types[i].name, r.types[i].fixed})
	}
	for _, of := range r.pairs {
		var pairs []indexPair
		for _, p := range of {
			pairs = append(pairs, indexPair{p.tick, p.ns})
		}
		x.Pairs = append(x.Pairs, pairs)
	}
	for i := range r.blocks {
		x.Blocks = append(x.Blocks, indexBlock{r.blocks[i].t0, r.blocks[i].row})
	}
	for _, o := range r.openCalls {
		x.Open = append(x.Open, indexCall{o.call, o.file})
	}
	return x
}

func headerBytes(h *spool.Header) []byte {
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(h)), unsafe.Sizeof(*h)))
}

// rank is the rank as it is known elsewhere.
func (x *indexRank) rank() (*rankSpool, error) {
	r := &rankSpool{rank: x.Rank, rows: x.Rows, finalized: x.Finalized, inited: x.Inited, switched: x.Switched, lossy: x.Lossy, usesSelf: x.UsesSelf,
		polls: x.Polls, lastCall: x.LastCall, elsewhere: true, lastTicks: map[int32]uint64{}}
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
	if len(r.files) == 0 {
		return nil, fmt.Errorf("rank %d has no files", x.Rank)
	}
	for _, c := range x.Comms {
		r.comms = append(r.comms, commDef{id: c.ID, fixed: c.Fixed, parent: c.Parent, byTag: c.ByTag, predefined: c.Predefined, named: c.Named, name: c.Name,
			members: c.Members, remote: c.Remote, extents: c.Extents, periods: c.Periods, edges: c.Edges})
	}
	for _, t := range x.Types {
		r.types = append(r.types, typeDef{id: t.ID, name: t.Name, fixed: t.Fixed})
	}
	for _, of := range x.Pairs {
		var pairs []clockPair
		for _, p := range of {
			pairs = append(pairs, clockPair{p.Tick, p.Ns})
		}
		r.pairs = append(r.pairs, pairs)
	}
	for _, b := range x.Blocks {
		r.blocks = append(r.blocks, block{t0: b.T0, row: b.Row})
	}
	for _, o := range x.Open {
		r.openCalls = append(r.openCalls, openCall{o.Call, o.File})
	}
	return r, nil
}

// addPath adds a path to the tree.
func (t *siteTable) addPath(p sitePath) {
	n := &t.root
	for _, k := range p {
		n = n.childOf(k.key(), symbols.Address{Offset: k.Offset})
	}
}

// joined is the job of all parts: the ranks of own as they are, the others as their indexes have them. own is nil where none are here.
func joined(o Options, dir string, id uint64, size int32, own *job, indexes []*partIndex) (*job, error) {
	j := &job{o: o, dir: dir, id: id, size: size, frames: map[siteKey][]symbols.Frame{}}
	here := map[int32]*rankSpool{}
	if own != nil {
		for _, r := range own.ranks {
			here[r.rank] = r
		}
	}
	slices.SortFunc(indexes, func(a, b *partIndex) int { return cmp.Compare(a.Ranks[0].Rank, b.Ranks[0].Rank) })
	var warnings []string
	for _, x := range indexes {
		for i := range x.Ranks {
			r := here[x.Ranks[i].Rank]
			if r == nil {
				var err error
				if r, err = x.Ranks[i].rank(); err != nil {
					return nil, err
				}
			}
			j.ranks = append(j.ranks, r)
		}
		j.paths = append(j.paths, x.Paths...)
		for _, f := range x.Frames {
			if _, ok := j.frames[f.Key.key()]; !ok {
				j.frames[f.Key.key()] = f.Frames
			}
		}
		warnings = append(warnings, x.Warnings...)
	}
	j.sort()
	for i, r := range j.ranks {
		if i > 0 && j.ranks[i-1].rank == r.rank {
			return nil, fmt.Errorf("the records of rank %d are in two parts, as %s and %s: give every process those of its own node, or with a spool that all nodes see --part", r.rank, j.ranks[i-1].files[0].Name, r.files[0].Name)
		}
		for _, f := range r.files {
			if err := j.checkHeader(f, filepath.Base(f.Name)); err != nil {
				return nil, err
			}
		}
	}
	if err := j.checkPresent(); err != nil {
		return nil, err
	}
	slices.Sort(warnings)
	j.moduleWarnings = slices.Compact(warnings)
	return j, nil
}

// pack makes bytes of a value for others to read: gob, compressed.
func pack(v any) ([]byte, error) {
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	if err := gob.NewEncoder(w).Encode(v); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// unpack reads what pack made.
func unpack(data []byte, v any) error {
	r, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return err
	}
	defer r.Close()
	return gob.NewDecoder(r).Decode(v)
}

// checkWorlds sees to it that a part's ranks are of the job.
func (x *partIndex) check(size int32) error {
	if len(x.Ranks) == 0 {
		return fmt.Errorf("no ranks in it")
	}
	for i := range x.Ranks {
		if r := x.Ranks[i].Rank; r < 0 || r >= size || i > 0 && r <= x.Ranks[i-1].Rank {
			return fmt.Errorf("rank %d of %d", r, size)
		}
	}
	return nil
}
