package paraver

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// record is a line of a trace.
type record struct {
	at    int64 // ns
	order int64 // lines of equal time stay in the order they were added
	text  []byte
}

func compare(a, b *record) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) }

// sorter sorts lines by time. What does not fit into memory goes as sorted pieces into a temporary folder.
type sorter struct {
	most   int // limit in memory, in bytes
	bytes  int
	order  int64
	lines  []record
	block  []byte // has the texts of the last lines
	folder string
	files  int
	levels [][]string // pieces by how often their lines were merged
}

// atOnce is the number of pieces of a level that are merged into one of the next, so that few files are open.
const atOnce = 64

// blockBytes is the size of the pieces of memory that texts are copied to.
const blockBytes = 1 << 18

// add copies a line into the sorter.
func (s *sorter) add(at int64, text []byte) error {
	if len(s.block)+len(text) > cap(s.block) {
		s.block = make([]byte, 0, max(blockBytes, len(text)))
	}
	begin := len(s.block)
	s.block = append(s.block, text...)
	s.lines = append(s.lines, record{at, s.order, s.block[begin:]})
	s.order++
	if s.bytes += len(text) + 64; s.bytes > s.most {
		return s.spill()
	}
	return nil
}

// spill writes the lines in memory as a sorted piece.
func (s *sorter) spill() error {
	slices.SortFunc(s.lines, func(a, b record) int { return compare(&a, &b) })
	err := s.keep(0, func(write func(r *record) error) error {
		for i := range s.lines {
			if err := write(&s.lines[i]); err != nil {
				return err
			}
		}
		return nil
	})
	clear(s.lines)
	s.lines, s.block, s.bytes = s.lines[:0], nil, 0
	return err
}

// keep writes a piece of a level, and merges the pieces of the level if they are many.
func (s *sorter) keep(level int, lines func(write func(r *record) error) error) error {
	if s.folder == "" {
		var err error
		if s.folder, err = os.MkdirTemp("", "commq-prv"); err != nil {
			return err
		}
	}
	f, err := os.Create(filepath.Join(s.folder, strconv.Itoa(s.files)))
	if err != nil {
		return err
	}
	s.files++
	w := bufio.NewWriterSize(f, 1<<18)
	var head [20]byte
	err = lines(func(r *record) error {
		binary.LittleEndian.PutUint64(head[:], uint64(r.at))
		binary.LittleEndian.PutUint64(head[8:], uint64(r.order))
		binary.LittleEndian.PutUint32(head[16:], uint32(len(r.text)))
		w.Write(head[:]) // the next one returns the error
		_, err := w.Write(r.text)
		return err
	})
	if err = errors.Join(err, w.Flush(), f.Close()); err != nil {
		return err
	}
	if level == len(s.levels) {
		s.levels = append(s.levels, nil)
	}
	s.levels[level] = append(s.levels[level], f.Name())
	if len(s.levels[level]) < atOnce {
		return nil
	}
	merged := s.levels[level]
	s.levels[level] = nil
	err = s.keep(level+1, func(write func(r *record) error) error { return merge(merged, write) })
	for _, name := range merged {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}

// piece is a sorted piece being read.
type piece struct {
	file *os.File
	in   *bufio.Reader
	now  record
}

// next reads the next line; io.EOF after the last.
func (p *piece) next() error {
	var head [20]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return err
	}
	p.now.at, p.now.order = int64(binary.LittleEndian.Uint64(head[:])), int64(binary.LittleEndian.Uint64(head[8:]))
	length := int(binary.LittleEndian.Uint32(head[16:]))
	p.now.text = slices.Grow(p.now.text[:0], length)[:length]
	_, err := io.ReadFull(p.in, p.now.text)
	return err
}

// pieces is a heap, ordered by the current line of each piece.
type pieces []*piece

func (p pieces) Len() int           { return len(p) }
func (p pieces) Less(i, j int) bool { return compare(&p[i].now, &p[j].now) < 0 }
func (p pieces) Swap(i, j int)      { p[i], p[j] = p[j], p[i] }
func (p *pieces) Push(x any)        { *p = append(*p, x.(*piece)) }
func (p *pieces) Pop() any {
	last := (*p)[len(*p)-1]
	*p = (*p)[:len(*p)-1]
	return last
}

// write writes all lines in order.
func (s *sorter) write(w io.Writer) error {
	return s.each(func(text []byte) error {
		_, err := w.Write(text)
		return err
	})
}

// each calls fn with all lines in order, each valid until the next.
func (s *sorter) each(fn func(text []byte) error) error {
	if len(s.levels) == 0 {
		slices.SortFunc(s.lines, func(a, b record) int { return compare(&a, &b) })
		for _, r := range s.lines {
			if err := fn(r.text); err != nil {
				return err
			}
		}
		return nil
	}
	if err := s.spill(); err != nil {
		return err
	}
	return merge(slices.Concat(s.levels...), func(r *record) error { return fn(r.text) })
}

// merge calls fn with the lines of sorted pieces in order, each valid until the next.
func merge(names []string, fn func(r *record) error) (err error) {
	var open pieces
	defer func() {
		for _, p := range open {
			err = errors.Join(err, p.file.Close())
		}
	}()
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		p := &piece{file: f, in: bufio.NewReaderSize(f, 1<<16)}
		switch err := p.next(); {
		case errors.Is(err, io.EOF):
			if err := f.Close(); err != nil {
				return err
			}
			continue
		case err != nil:
			return errors.Join(err, f.Close())
		}
		open = append(open, p)
	}
	heap.Init(&open)
	for len(open) > 0 {
		p := open[0]
		if err := fn(&p.now); err != nil {
			return err
		}
		switch err := p.next(); {
		case err == nil:
			heap.Fix(&open, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&open)
			if err := p.file.Close(); err != nil {
				return err
			}
		default:
			return err
		}
	}
	return nil
}

// close removes the pieces, and forgets the lines.
func (s *sorter) close() error {
	s.lines, s.block = nil, nil
	if s.folder == "" {
		return nil
	}
	return os.RemoveAll(s.folder)
}
