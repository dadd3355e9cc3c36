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

// debugInfo is a module's DWARF. The compilation units are sorted by address; one of them at a time is read.
type debugInfo struct {
	data  *dwarf.Data
	units []unitRange
	unit  *unit // the one read last
}

// unitRange are addresses of a compilation unit; highest is that of this one and those before it.
type unitRange struct {
	low, high, highest uint64
	offset             dwarf.Offset
}

// unit is a compilation unit that was read.
type unit struct {
	offset    dwarf.Offset
	functions []functionRange // sorted by low
	sequences []sequence      // of the line table, sorted by low
	files     []string        // by the line table's numbers
}

type functionRange struct {
	low, high, highest uint64
	f                  *function
}

// function is a subprogram, or one that was put into another.
type function struct {
	name     string
	ranges   [][2]uint64
	callFile int64 // where it was put in
	callLine int64
	inlined  []*function
}

// sequence is a stretch of the line table without gaps.
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
	*dwarf.Reader
	last  dwarf.Offset
	nulls int // in a row
}

var errForEver = errors.New("its entries never end")

// maxNulls is more than a linker puts between units.
const maxNulls = 1 << 16

// next is the next entry; nil at the end. In a damaged file the way to a sibling can lead back, and a number that is cut off
// is read as a null again and again.
func (r *entries) next() (*dwarf.Entry, error) {
	e, err := r.Next()
	if err != nil || e == nil {
		return e, err
	}
	if e.Offset == 0 { // the end of a list
		if r.nulls++; r.nulls > maxNulls {
			return nil, errForEver
		}
		return e, nil
	}
	if e.Offset <= r.last {
		return nil, errForEver
	}
	r.last, r.nulls = e.Offset, 0
	return e, nil
}

// newDebugInfo reads what the compilation units cover.
func newDebugInfo(data *dwarf.Data) (*debugInfo, error) {
	d := &debugInfo{data: data}
	r := entries{Reader: data.Reader()}
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
				if a[0] < a[1] && a[0] != 0 { // 0: left out by the linker
					d.units = append(d.units, unitRange{low: a[0], high: a[1], offset: e.Offset})
				}
			}
		}
		r.SkipChildren()
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

// frames are the functions at an address, the innermost first; empty when it is in no unit, or the unit cannot be read.
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

// calledAt is where a function was put into the one around it.
func (u *unit) calledAt(f *function) (file string, line int32) {
	if f.callFile < 0 || f.callFile >= int64(len(u.files)) || f.callLine <= 0 || f.callLine > math.MaxInt32 {
		return "", 0
	}
	if file = u.files[f.callFile]; file == "" {
		return "", 0
	}
	return file, int32(f.callLine)
}

// unitAt reads the unit that has the address.
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
				return nil // the symbol table is left
			}
			d.unit = u
		}
		return d.unit
	}
	return nil
}

// read reads a compilation unit.
func (d *debugInfo) read(offset dwarf.Offset) (*unit, error) {
	r := &entries{Reader: d.data.Reader()}
	r.Seek(offset)
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

// maxNesting is how deep functions and blocks are followed: more is not what a compiler writes.
const maxNesting = 200

// readFunctions reads the entries up to the end of the list that r stands in; parent is the function around them.
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
		case dwarf.TagLexDwarfBlock, dwarf.TagTryDwarfBlock, dwarf.TagCatchDwarfBlock, dwarf.TagModule, dwarf.TagNamespace,
			dwarf.TagStructType, dwarf.TagClassType, dwarf.TagUnionType, dwarf.TagCommonDwarfBlock:
		default:
			r.SkipChildren()
			continue
		}
		if !e.Children {
			continue
		}
		if depth == maxNesting {
			r.SkipChildren()
			continue
		}
		if err := u.readFunctions(data, r, inside, depth+1); err != nil {
			return err
		}
	}
}

// readFunction reads a function's addresses, and its name where it has any.
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

// maxOrigins is how often a name is looked for in the entry that an entry says it is an instance of.
const maxOrigins = 8

// functionName is the name of a function, which may stand in the entry it is an instance of; empty: none.
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

// attrMIPSLinkageName is what compilers called DW_AT_linkage_name before DWARF 4.
const attrMIPSLinkageName dwarf.Attr = 0x2007

// functionsAt are the functions that have the address, the outermost first.
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

// readLines reads the unit's line table; it may have none.
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

// absolute is a source file's path with the folder that the compiler ran in.
func absolute(folder, name string) string {
	switch {
	case name == "":
		return ""
	case strings.HasPrefix(name, "/") || folder == "":
		return filepath.Clean(name)
	}
	return filepath.Join(folder, name)
}

// addSequence adds a stretch that ends at the address. One from 0 on was left out by the linker.
func (u *unit) addSequence(rows []lineRow, end uint64) {
	if len(rows) == 0 || rows[0].address == 0 || end <= rows[0].address {
		return
	}
	u.sequences = append(u.sequences, sequence{rows[0].address, end, rows})
}

// lineAt is the file and line of an address; empty and 0: not known.
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
