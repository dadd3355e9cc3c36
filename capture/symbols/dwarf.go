package symbols

import (
	"cmp"
	"debug/dwarf"
	"errors"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// debugInfo is the DWARF of a module. Compilation units are read one at a time, when needed.
type debugInfo struct {
	data  *dwarf.Data
	units []unitRange // by address
	unit  *unit       // the one read last
}

// unitRange is a range of addresses of a compilation unit. highest is the maximum of high over this range and those
// before it.
type unitRange struct {
	low, high, highest uint64
	offset             dwarf.Offset
}

// unit is a compilation unit.
type unit struct {
	offset    dwarf.Offset
	functions []functionRange // sorted by low
	sequences []sequence      // of the line table, sorted by low
	files     []string        // by their number in the line table
}

type functionRange struct {
	low, high, highest uint64
	f                  *function
}

// function is a function, or an inlined copy of one.
type function struct {
	name     string
	ranges   [][2]uint64
	callFile int64 // if inlined: file and line of the call
	callLine int64
	inlined  []*function
}

// sequence is a part of the line table without gaps in its addresses.
type sequence struct {
	low, high uint64
	rows      []lineRow
}

type lineRow struct {
	address uint64
	file    string
	line    int32
}

// entries reads entries one after the other.
type entries struct {
	reader *dwarf.Reader
	last   dwarf.Offset
	nulls  int // one after the other
}

var errEndless = errors.New("its entries never end")

// maxNulls is more than the number of null entries that a linker puts between units.
const maxNulls = 1 << 16

// next returns the next entry, nil at the end. It ends with an error in a damaged file, where the link to a sibling
// can lead back, or a truncated number can be read as a null entry again and again.
func (r *entries) next() (*dwarf.Entry, error) {
	e, err := r.reader.Next()
	if err != nil || e == nil {
		return e, err
	}
	if e.Offset == 0 { // the end of a list
		if r.nulls++; r.nulls > maxNulls {
			return nil, errEndless
		}
		return e, nil
	}
	if e.Offset <= r.last {
		return nil, errEndless
	}
	r.last, r.nulls = e.Offset, 0
	return e, nil
}

// newDebugInfo reads the address ranges of the compilation units.
func newDebugInfo(data *dwarf.Data) (*debugInfo, error) {
	d := &debugInfo{data: data}
	r := entries{reader: data.Reader()}
	for {
		e, err := r.next()
		if err != nil {
			return nil, err
		}
		if e == nil {
			break
		}
		if e.Tag == dwarf.TagCompileUnit {
			ranges, err := data.Ranges(e)
			if err != nil {
				return nil, err
			}
			for _, a := range ranges {
				if a[0] < a[1] && a[0] != 0 { // 0: removed by the linker
					d.units = append(d.units, unitRange{low: a[0], high: a[1], offset: e.Offset})
				}
			}
		}
		r.reader.SkipChildren()
	}
	slices.SortFunc(d.units, func(a, b unitRange) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.high, b.high), cmp.Compare(a.offset, b.offset))
	})
	var highest uint64
	for i := range d.units {
		highest = max(highest, d.units[i].high)
		d.units[i].highest = highest
	}
	return d, nil
}

// frames returns the functions at an address, innermost first. There are none if no unit has the address, or if the
// unit cannot be read.
func (d *debugInfo) frames(pc uint64) []Frame {
	u := d.unitAt(pc)
	if u == nil {
		return nil
	}
	var inner Frame
	inner.File, inner.Line = u.lineAt(pc)
	nest := u.functionsAt(pc)
	if len(nest) == 0 {
		return []Frame{inner}
	}
	frames := make([]Frame, len(nest))
	for i, f := range nest {
		outer := Frame{Function: f.name, File: inner.File, Line: inner.Line}
		if i+1 < len(nest) {
			outer.File, outer.Line = u.calledAt(nest[i+1])
		}
		frames[len(nest)-1-i] = outer
	}
	return frames
}

// calledAt returns where a function was inlined into the one around it.
func (u *unit) calledAt(f *function) (file string, line int32) {
	if f.callFile < 0 || f.callFile >= int64(len(u.files)) || f.callLine <= 0 || f.callLine > math.MaxInt32 {
		return "", 0
	}
	if file = u.files[f.callFile]; file == "" {
		return "", 0
	}
	return file, int32(f.callLine)
}

// unitAt returns the unit with an address; nil when there is none or it cannot be read.
func (d *debugInfo) unitAt(pc uint64) *unit {
	i, _ := slices.BinarySearchFunc(d.units, pc, func(u unitRange, pc uint64) int {
		if u.low <= pc {
			return -1
		}
		return 1
	})
	for i--; i >= 0 && d.units[i].highest > pc; i-- {
		if d.units[i].high <= pc {
			continue
		}
		if d.unit == nil || d.unit.offset != d.units[i].offset {
			u, err := d.read(d.units[i].offset)
			if err != nil {
				return nil // then the caller uses the symbol table
			}
			d.unit = u
		}
		return d.unit
	}
	return nil
}

// read reads a compilation unit.
func (d *debugInfo) read(offset dwarf.Offset) (*unit, error) {
	r := &entries{reader: d.data.Reader()}
	r.reader.Seek(offset)
	e, err := r.next()
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, errors.New("no unit there")
	}
	u := &unit{offset: offset}
	if err := u.readLines(d.data, e); err != nil {
		return nil, err
	}
	if e.Children {
		if err := u.readFunctions(d.data, r, nil, 0); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(u.functions, func(a, b functionRange) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.high, b.high))
	})
	var highest uint64
	for i := range u.functions {
		highest = max(highest, u.functions[i].high)
		u.functions[i].highest = highest
	}
	return u, nil
}

// maxNesting limits the nesting of functions and blocks that is followed; compilers stay below it.
const maxNesting = 200

// readFunctions reads the entries up to the end of the current list of r. parent is the function around them.
func (u *unit) readFunctions(data *dwarf.Data, r *entries, parent *function, depth int) error {
	for {
		e, err := r.next()
		if err != nil {
			return err
		}
		if e == nil || e.Tag == 0 {
			return nil
		}
		inside := parent
		switch e.Tag {
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine:
			f, err := readFunction(data, e)
			if err != nil {
				return err
			}
			if e.Tag == dwarf.TagSubprogram {
				for _, a := range f.ranges {
					u.functions = append(u.functions, functionRange{low: a[0], high: a[1], f: f})
				}
			} else if parent != nil {
				parent.inlined = append(parent.inlined, f)
			}
			inside = f
		case dwarf.TagLexDwarfBlock, dwarf.TagTryDwarfBlock, dwarf.TagCatchDwarfBlock, dwarf.TagModule,
			dwarf.TagNamespace,
			dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType, dwarf.TagCommonDwarfBlock:
		default:
			r.reader.SkipChildren()
			continue
		}
		if !e.Children {
			continue
		}
		if depth == maxNesting {
			r.reader.SkipChildren()
			continue
		}
		if err := u.readFunctions(data, r, inside, depth+1); err != nil {
			return err
		}
	}
}

// readFunction reads the addresses of a function and, if it has any, its name.
func readFunction(data *dwarf.Data, e *dwarf.Entry) (*function, error) {
	f := &function{callFile: -1}
	ranges, err := data.Ranges(e)
	if err != nil {
		return nil, err
	}
	for _, a := range ranges {
		if a[0] < a[1] && a[0] != 0 {
			f.ranges = append(f.ranges, a)
		}
	}
	if len(f.ranges) == 0 {
		return f, nil
	}
	f.name = functionName(data, e)
	if n, ok := e.Val(dwarf.AttrCallFile).(int64); ok {
		f.callFile = n
	}
	if n, ok := e.Val(dwarf.AttrCallLine).(int64); ok {
		f.callLine = n
	}
	return f, nil
}

// maxOrigins is the largest number of entries that functionName follows from an instance to its origin.
const maxOrigins = 8

// functionName returns the name of a function; empty when it has none. The name may be in another entry that this one
// refers to as its origin.
func functionName(data *dwarf.Data, e *dwarf.Entry) string {
	plain := ""
	for range maxOrigins {
		for _, attr := range []dwarf.Attr{dwarf.AttrLinkageName, attrMIPSLinkageName} {
			if s, ok := e.Val(attr).(string); ok {
				if name, ok := linkageName(s); ok {
					return name
				}
			}
		}
		if s, ok := e.Val(dwarf.AttrName).(string); ok && plain == "" {
			plain = s
		}
		origin, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			origin, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !ok {
			break
		}
		r := data.Reader()
		r.Seek(origin)
		next, err := r.Next()
		if err != nil || next == nil {
			break
		}
		e = next
	}
	return plain
}

// attrMIPSLinkageName is the attribute that came before DW_AT_linkage_name of DWARF 4.
const attrMIPSLinkageName dwarf.Attr = 0x2007

// functionsAt returns the functions at an address, outermost first.
func (u *unit) functionsAt(pc uint64) []*function {
	i, _ := slices.BinarySearchFunc(u.functions, pc, func(f functionRange, pc uint64) int {
		if f.low <= pc {
			return -1
		}
		return 1
	})
	for i--; i >= 0 && u.functions[i].highest > pc; i-- {
		if u.functions[i].high <= pc {
			continue
		}
		nest := []*function{u.functions[i].f}
		for {
			next := nest[len(nest)-1].inlinedAt(pc)
			if next == nil {
				return nest
			}
			nest = append(nest, next)
		}
	}
	return nil
}

func (f *function) inlinedAt(pc uint64) *function {
	for _, g := range f.inlined {
		for _, a := range g.ranges {
			if a[0] <= pc && pc < a[1] {
				return g
			}
		}
	}
	return nil
}

// readLines reads the line table of the unit, if it has one.
func (u *unit) readLines(data *dwarf.Data, e *dwarf.Entry) error {
	r, err := data.LineReader(e)
	if err != nil || r == nil {
		return err
	}
	folder, _ := e.Val(dwarf.AttrCompDir).(string)
	var rows []lineRow
	var line dwarf.LineEntry
	for {
		err := r.Next(&line)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if line.EndSequence {
			u.addSequence(rows, line.Address)
			rows = nil
			continue
		}
		name := ""
		if line.File != nil {
			name = line.File.Name
		}
		rows = append(rows, lineRow{line.Address, name, int32(min(line.Line, math.MaxInt32))})
	}
	slices.SortFunc(u.sequences, func(a, b sequence) int { return cmp.Compare(a.low, b.low) })
	for _, f := range r.Files() {
		name := ""
		if f != nil {
			name = absolute(folder, f.Name)
		}
		u.files = append(u.files, name)
	}
	for i := range u.sequences {
		for k := range u.sequences[i].rows {
			row := &u.sequences[i].rows[k]
			row.file = absolute(folder, row.file)
		}
	}
	return nil
}

// absolute returns the path of a source file. folder is where the compiler ran.
func absolute(folder, name string) string {
	switch {
	case name == "":
		return ""
	case strings.HasPrefix(name, "/") || folder == "":
		return filepath.Clean(name)
	}
	return filepath.Join(folder, name)
}

// addSequence adds a sequence that ends at the address. Sequences that begin at 0 are left out: the linker removed
// them.
func (u *unit) addSequence(rows []lineRow, end uint64) {
	if len(rows) == 0 || rows[0].address == 0 || end <= rows[0].address {
		return
	}
	u.sequences = append(u.sequences, sequence{rows[0].address, end, rows})
}

// lineAt returns the file and line of an address; empty and 0 when they are not known.
func (u *unit) lineAt(pc uint64) (file string, line int32) {
	i, _ := slices.BinarySearchFunc(u.sequences, pc, func(s sequence, pc uint64) int {
		if s.low <= pc {
			return -1
		}
		return 1
	})
	if i == 0 || pc >= u.sequences[i-1].high {
		return "", 0
	}
	rows := u.sequences[i-1].rows
	k, _ := slices.BinarySearchFunc(rows, pc, func(r lineRow, pc uint64) int {
		if r.address <= pc {
			return -1
		}
		return 1
	})
	if k == 0 || rows[k-1].line <= 0 || rows[k-1].file == "" {
		return "", 0
	}
	return rows[k-1].file, rows[k-1].line
}
