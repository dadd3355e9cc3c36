package paraver

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/schema"
)

// Callers have types of events from 70000001 (functions) and 80000001 (lines), the caller of MPI first.
const mostLevels = 99

// levelOf returns the level of a type of events about callers, 1 for the caller of MPI, and whether it is about lines;
// 0 for other types.
func levelOf(typ int64) (level int64, line bool) {
	switch {
	case typ >= typeFunction && typ < typeFunction+mostLevels:
		return typ - typeFunction + 1, false
	case typ >= typeLine && typ < typeLine+mostLevels:
		return typ - typeLine + 1, true
	}
	return 0, false
}

// frame is a caller as a trace has it; 0: no function, no line.
type frame struct {
	level          int64
	function, line int64
}

// siteKey is a frame below a call site, by its numbers.
type siteKey struct {
	parent         int32
	function, line int64
}

// siteText is a frame below a call site, by its names: each rank may have numbers of its own for the same place.
type siteText struct {
	parent         int32
	function, line string
}

// sites are the call sites of a run.
type sites struct {
	labels *labels
	byKey  map[siteKey]int32
	byText map[siteText]int32
	rows   schema.Callsites
	depth  int32 // most frames of a site
	depths []int32
}

// addFrame adds what an event tells about the callers of a call.
func addFrame(frames []frame, level int64, line bool, value int64) []frame {
	i := slices.IndexFunc(frames, func(f frame) bool { return f.level == level })
	if i < 0 {
		i = len(frames)
		frames = append(frames, frame{level: level})
	}
	if line {
		frames[i].line = value
	} else {
		frames[i].function = value
	}
	return frames
}

// site returns the call site with these callers, null if there are none. It sorts them.
func (s *sites) site(frames []frame) int32 {
	slices.SortFunc(frames, func(a, b frame) int { return cmp.Compare(b.level, a.level) })
	id := null32
	for _, f := range frames {
		if f.function == 0 && f.line == 0 || s.isWrapper(f) {
			continue
		}
		k := siteKey{id, f.function, f.line}
		known, ok := s.byKey[k]
		if !ok {
			known = s.add(siteText{id, s.labels.value(typeFunction+f.level-1, f.function),
				s.labels.value(typeLine+f.level-1, f.line)})
			s.byKey[k] = known
		}
		id = known
	}
	return id
}

// isWrapper reports whether a frame is that of a function of MPI: Extrae's own, below the program's.
func (s *sites) isWrapper(f frame) bool {
	_, is := schema.CallByName(s.labels.values[typeFunction+f.level-1][f.function])
	return is
}

// add returns the call site of a frame.
func (s *sites) add(t siteText) int32 {
	if id, ok := s.byText[t]; ok {
		return id
	}
	row := schema.NullCallsite
	row.ID, row.Parent = int32(len(s.depths)), t.parent
	row.Module, row.Offset, row.Function = functionOf(t.function)
	row.File, row.Line = lineOf(t.line)
	s.byText[t] = row.ID
	s.rows.Append(&row)
	depth := int32(1)
	if t.parent != null32 {
		depth += s.depths[t.parent]
	}
	s.depths = append(s.depths, depth)
	s.depth = max(s.depth, depth)
	return row.ID
}

// noNames are texts for what Extrae, or the export, does not know.
var noNames = []string{"", "End", "unknown", "Unresolved", "_NOT_Found", "??"}

// functionOf reads the name of a function: NAME, NAME [LONG NAME], or, as the export writes it, MODULE+0xOFFSET.
func functionOf(text string) (module string, offset int64, function string) {
	if short, long, ok := strings.Cut(strings.TrimSuffix(text, "]"), " ["); ok && strings.HasSuffix(text, "]") &&
		!strings.HasPrefix(long, "clone ") { // which compilers append to names
		text = cmp.Or(long, short)
	}
	if module, digits, ok := strings.Cut(text, "+0x"); ok {
		if n, err := strconv.ParseInt(digits, 16, 64); err == nil {
			return module, n, schema.NullText
		}
	}
	if _, err := strconv.ParseInt(text, 10, 64); err == nil || slices.Contains(noNames, text) {
		text = schema.NullText // a number has no name in the .pcf
	}
	return schema.NullText, null64, text
}

// lineOf reads the place of a call: FILE:LINE [PATH:LINE, MODULE] or LINE (FILE, MODULE).
func lineOf(text string) (file string, line int32) {
	if _, long, ok := strings.Cut(text, " ["); ok && strings.HasSuffix(text, "]") {
		text, _, _ = strings.Cut(strings.TrimSuffix(long, "]"), ", ")
	}
	var digits string
	if number, rest, ok := strings.Cut(text, " ("); ok && strings.HasSuffix(rest, ")") {
		digits = number
		file, _, _ = strings.Cut(strings.TrimSuffix(rest, ")"), ", ")
	} else if at := strings.LastIndexByte(text, ':'); at >= 0 {
		file, digits = text[:at], text[at+1:]
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n <= 0 || slices.Contains(noNames, file) {
		return schema.NullText, null32
	}
	return file, int32(n)
}
