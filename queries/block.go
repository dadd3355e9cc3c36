package queries

import (
	"fmt"
	"regexp"
	"strings"
)

// piece is some lines of a query's text: a block that is there for some values of a parameter, or what stands between
// blocks.
type piece struct {
	source
	begin string // the line that begins the block; empty between blocks
	param string
	value string
	only  bool // there where the parameter has the value alone; else where it has another
}

const blockEnd = "{{end}}"

var blockBegin = regexp.MustCompile(`^\s*\{\{(unless|only) ([\w-]+) ([\w-]+)\}\}\s*$`)

// pieces cuts a text at the lines that begin and end a block, which are in none of them.
func (s source) pieces() (all []piece, err error) {
	var now piece
	next := func(p piece) {
		if len(now.places) > 0 {
			all = append(all, now)
		}
		now = p
	}
	for i, line := range strings.Split(s.text, "\n") {
		begin, end := blockBegin.FindStringSubmatch(line), strings.TrimSpace(line) == blockEnd
		switch at := s.places[i]; {
		case begin != nil && now.begin != "":
			return nil, fmt.Errorf("%s: %s begins a block in another one; end that with a line %s", at.describe(""),
				strings.TrimSpace(line), blockEnd)
		case begin != nil:
			next(piece{begin: line, only: begin[1] == "only", param: begin[2], value: begin[3]})
		case end && now.begin == "":
			return nil, fmt.Errorf("%s: %s without a block; a line {{unless NAME VALUE}} or {{only NAME VALUE}} begins one",
				at.describe(""), blockEnd)
		case end:
			next(piece{})
		default:
			now.add(line, at)
		}
	}
	if now.begin != "" {
		return nil, fmt.Errorf("the block %s does not end; want a line %s", strings.TrimSpace(now.begin), blockEnd)
	}
	next(piece{})
	return all, nil
}

// add adds a line.
func (s *source) add(line string, at place) {
	if len(s.places) > 0 {
		s.text += "\n"
	}
	s.text, s.places = s.text+line, append(s.places, at)
}

// addAll adds the lines of another source.
func (s *source) addAll(more source) {
	for i, line := range strings.Split(more.text, "\n") {
		s.add(line, more.places[i])
	}
}

// withBlocks returns the text with the blocks that are there for the values of the parameters, which literals has.
func (s source) withBlocks(literals map[string]string) (source, error) {
	all, err := s.pieces()
	var left source
	for _, p := range all {
		if p.begin == "" || (literals[p.param] == quote(p.value)) == p.only {
			left.addAll(p.source)
		}
	}
	return left, err
}

// ownBlocks removes the blocks of parameters that the query lacks: of {{only}} with their text, of {{unless}} without. An
// included file is for several queries.
func (q *Query) ownBlocks(s source) (source, error) {
	all, err := s.pieces()
	var left source
	for _, p := range all {
		switch own := q.param(p.param) != nil; {
		case p.begin != "" && own:
			left.add(p.begin, p.places[0])
			left.addAll(p.source)
			left.add(blockEnd, p.places[len(p.places)-1])
		case p.begin == "" || !p.only:
			left.addAll(p.source)
		}
	}
	return left, err
}

// macroText returns the text as an expression that leaves out blocks by the macro's arguments, without its first and last
// quote.
func (q *Query) macroText() string {
	all, err := source{q.text, q.places}.pieces()
	if err != nil {
		panic(err) // the query was parsed
	}
	const quote = "$commq$"
	var texts []string
	for _, p := range all {
		if p.begin == "" {
			texts = append(texts, p.text)
			continue
		}
		there, not := quote+p.text+"\n"+quote, "''"
		if p.only {
			there, not = not, there
		}
		texts = append(texts, quote+"\n|| "+q.param(p.param).macroWhere("'"+p.value+"'", not, there)+" || "+quote)
	}
	return strings.Join(texts, "\n")
}
