package symbols

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/commq/commq/internal/bounded"
)

// file is the contents of a module's file and its debug file.
type file struct {
	debug   *debugInfo // nil: none
	symbols []symbol   // functions of the symbol table, by address
}

// symbol is a function of the symbol table.
type symbol struct {
	low, high uint64
	name      string
}

// maxDebugBytes limits the size of the debug sections that are read into memory.
const maxDebugBytes = 4 << 30

// load reads the file of a module. If that has no debug information, it reads the separate debug file too.
func (r *Resolver) load(m *Module) (*file, error) {
	f := &file{}
	own, err := openELF(m.Path)
	if err == nil {
		defer own.close()
		err = r.checkSame(own, m)
	}
	if err == nil {
		err = f.parse(own.File)
	}
	if err == nil && f.debug != nil {
		return f, nil
	}
	if d := r.debugFile(own, m, err == nil); d != nil {
		defer d.close()
		if derr := f.parse(d.File); derr == nil {
			return f, nil
		}
	}
	return f, err
}

// opened is an ELF file.
type opened struct {
	*elf.File
	file *os.File
}

func (o *opened) close() {
	_ = o.file.Close() // read only: nothing is lost
}

func openELF(path string) (*opened, error) {
	f, _, err := bounded.OpenRegular(path)
	if errors.Is(err, bounded.ErrNotRegular) {
		return nil, errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, fmt.Errorf("its file cannot be read here (%w)", reason(err))
	}
	e, err := elf.NewFile(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("damaged file (%w)", err)
	}
	return &opened{e, f}, nil
}

// reason removes the path from an error, because runs must not depend on where files are.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// checkSame returns an error if a file is not the one that the program ran with.
func (r *Resolver) checkSame(o *opened, m *Module) error {
	id := buildID(o.File)
	if m.BuildID != "" {
		if id != m.BuildID {
			return errors.New("its file is not the one that the program ran with (the build ids differ): was it built again since?")
		}
		return nil
	}
	if info, err := o.file.Stat(); err == nil && !r.Started.IsZero() && info.ModTime().After(r.Started) {
		return errors.New("its file was changed since the program started, and has no build id")
	}
	return nil
}

// buildID returns the hexadecimal build id in the notes of an ELF file; empty when it has none.
func buildID(f *elf.File) string {
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOTE || s.Size > 1<<20 {
			continue
		}
		if data, err := s.Data(); err == nil {
			if id := noteID(data, f, s.Addralign); id != "" {
				return id
			}
		}
	}
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE || p.Filesz > 1<<20 {
			continue
		}
		data := make([]byte, p.Filesz)
		if _, err := io.ReadFull(p.Open(), data); err == nil {
			if id := noteID(data, f, p.Align); id != "" {
				return id
			}
		}
	}
	return ""
}

const noteBuildID = 3

func noteID(data []byte, f *elf.File, align uint64) string {
	if align != 8 {
		align = 4
	}
	up := func(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }
	for len(data) >= 12 {
		name, desc, kind := uint64(f.ByteOrder.Uint32(data)), uint64(f.ByteOrder.Uint32(data[4:])),
			f.ByteOrder.Uint32(data[8:])
		start := 12 + up(name)
		if start+desc > uint64(len(data)) {
			return ""
		}
		if kind == noteBuildID && bytes.Equal(data[12:12+name], []byte("GNU\x00")) {
			return hex.EncodeToString(data[start : start+desc])
		}
		data = data[min(start+up(desc), uint64(len(data))):]
	}
	return ""
}

// parse reads the debug information and the symbols of an ELF file.
func (f *file) parse(e *elf.File) error {
	f.addSymbols(e)
	var size uint64
	has := false
	for _, s := range e.Sections {
		if strings.HasPrefix(s.Name, ".debug_") || strings.HasPrefix(s.Name, ".zdebug_") {
			size += s.Size
			has = has || s.Type != elf.SHT_NOBITS && (s.Name == ".debug_info" || s.Name == ".zdebug_info")
		}
	}
	if !has {
		return nil
	}
	if size > maxDebugBytes {
		return fmt.Errorf("%d bytes of debug information are too much to read", size)
	}
	d, err := e.DWARF()
	if err == nil {
		f.debug, err = newDebugInfo(d)
	}
	if err != nil {
		return fmt.Errorf("damaged debug information (%w)", err)
	}
	return nil
}

// addSymbols adds the functions of both symbol tables, if the file has them.
func (f *file) addSymbols(e *elf.File) {
	all, err := e.Symbols()
	if err != nil {
		all = nil
	}
	if dynamic, err := e.DynamicSymbols(); err == nil {
		all = append(all, dynamic...)
	}
	for _, s := range all {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Section != elf.SHN_UNDEF && s.Value != 0 {
			f.symbols = append(f.symbols, symbol{s.Value, s.Value + s.Size, s.Name})
		}
	}
	slices.SortFunc(f.symbols, func(a, b symbol) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.high, b.high), cmp.Compare(a.name, b.name))
	})
	f.symbols = slices.Compact(f.symbols)
}

// frames returns the functions at an address in the file, innermost first.
func (f *file) frames(pc uint64) []Frame {
	var frames []Frame
	if f.debug != nil {
		frames = f.debug.frames(pc)
	}
	if len(frames) == 0 {
		frames = []Frame{{}}
	}
	if last := &frames[len(frames)-1]; last.Function == "" {
		last.Function = f.symbolAt(pc)
	}
	if frames[0] == (Frame{}) {
		return nil
	}
	return frames
}

// symbolAt returns the name of the symbol table's function at an address; empty when there is none. Of several
// functions that begin at the same address it takes the shortest that contains pc, then the first by name.
func (f *file) symbolAt(pc uint64) string {
	i, _ := slices.BinarySearchFunc(f.symbols, pc, func(s symbol, pc uint64) int {
		if s.low <= pc {
			return -1
		}
		return 1
	})
	if i == 0 {
		return ""
	}
	low := f.symbols[i-1].low
	for i--; i > 0 && f.symbols[i-1].low == low; i-- {
	}
	for ; i < len(f.symbols) && f.symbols[i].low == low; i++ {
		if pc < f.symbols[i].high {
			return symbolName(f.symbols[i].name)
		}
	}
	return ""
}

// debugFile finds the separate debug file of a module, by its build id or by the link in its own file, which may be
// nil. fits is true if own is the file that the program ran with.
func (r *Resolver) debugFile(own *opened, m *Module, fits bool) *opened {
	dirs := r.DebugDirs
	if dirs == nil {
		dirs = []string{"/usr/lib/debug"}
	}
	if len(m.BuildID) > 2 {
		for _, dir := range dirs {
			if o := debugWithID(filepath.Join(dir, ".build-id", m.BuildID[:2], m.BuildID[2:]+".debug"),
				m.BuildID); o != nil {
				return o
			}
		}
	}
	if own == nil || !fits {
		return nil
	}
	name, sum := debugLink(own.File)
	if name == "" {
		return nil
	}
	folder := filepath.Dir(m.Path)
	places := []string{filepath.Join(folder, name), filepath.Join(folder, ".debug", name)}
	for _, dir := range dirs {
		places = append(places, filepath.Join(dir, folder, name))
	}
	for _, p := range places {
		if o := debugWithSum(p, sum, m.BuildID); o != nil && p != m.Path {
			return o
		}
	}
	return nil
}

// debugWithID opens a debug file if it has the build id.
func debugWithID(path, id string) *opened {
	o, err := openELF(path)
	if err != nil {
		return nil
	}
	if buildID(o.File) != id {
		o.close()
		return nil
	}
	return o
}

// debugWithSum opens a debug file if it has the build id or, without one, the checksum of the link.
func debugWithSum(path string, sum uint32, id string) *opened {
	if id != "" {
		return debugWithID(path, id)
	}
	o, err := openELF(path)
	if err != nil {
		return nil
	}
	h := crc32.NewIEEE()
	if _, err := io.Copy(h, io.NewSectionReader(o.file, 0, 1<<62)); err != nil || h.Sum32() != sum {
		o.close()
		return nil
	}
	return o
}

// debugLink returns the name and the checksum in .gnu_debuglink; the name is empty when there is none.
func debugLink(f *elf.File) (name string, sum uint32) {
	s := f.Section(".gnu_debuglink")
	if s == nil || s.Size > 1<<16 {
		return "", 0
	}
	data, err := s.Data()
	if err != nil {
		return "", 0
	}
	text, _, found := bytes.Cut(data, []byte{0})
	at := (len(text) + 4) &^ 3
	if !found || at+4 > len(data) || bytes.ContainsRune(text, '/') {
		return "", 0
	}
	return string(text), f.ByteOrder.Uint32(data[at:])
}
