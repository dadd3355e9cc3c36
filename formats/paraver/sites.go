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

// siteKey is a call site below another.
type siteKey struct {
	parent         int32
	function, line int64
}

// sites are the call sites of a run.
type sites struct {
	labels *labels
	byKey  map[siteKey]int32
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
		if f.function == 0 && f.line == 0 {
			continue
		}
		k := siteKey{id, f.function, f.line}
		known, ok := s.byKey[k]
		if !ok {
			known = int32(len(s.byKey))
			s.byKey[k] = known
			s.add(known, k, f.level)
		}
		id = known
	}
	return id
}

// add adds the row of a call site.
func (s *sites) add(id int32, k siteKey, level int64) {
	row := schema.NullCallsite
	row.ID, row.Parent = id, k.parent
	row.Module, row.Offset, row.Function = functionOf(s.labels.values[typeFunction+level-1][k.function])
	row.File, row.Line = lineOf(s.labels.values[typeLine+level-1][k.line])
	s.rows.Append(&row)
	depth := int32(1)
	if k.parent != null32 {
		depth += s.depths[k.parent]
	}
	s.depths = append(s.depths, depth)
	s.depth = max(s.depth, depth)
}

// noNames are texts for what Extrae, or the export, does not know.
var noNames = []string{"", "End", "unknown", "Unresolved", "_NOT_Found", "Not found"}

// functionOf reads the name of a function: NAME, NAME [LONG NAME], or, as the export writes it, MODULE+0xOFFSET.
func functionOf(text string) (module string, offset int64, function string) {
	if short, long, ok := strings.Cut(strings.TrimSuffix(text, "]"), " ["); ok && strings.HasSuffix(text, "]") {
		text = cmp.Or(long, short)
	}
	if module, digits, ok := strings.Cut(text, "+0x"); ok {
		if n, err := strconv.ParseInt(digits, 16, 64); err == nil {
			return module, n, schema.NullText
		}
	}
	if slices.Contains(noNames, text) {
		text = schema.NullText
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
