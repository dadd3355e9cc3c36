package queries

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// piece is some lines of a query's text: a block that is there for some values of a parameter, or what stands between
// blocks.
type piece struct {
	lines sourceLines
	begin string // the line that begins the block; empty between blocks
	at    place  // of that line
	param string
	value string
	only  bool // there where the parameter has the value alone; else where it has another
}

const blockEnd = "{{end}}"

var blockBegin = regexp.MustCompile(`^\s*\{\{(unless|only) ([\w-]+) ([\w-]+)\}\}\s*$`)

// pieces cuts a text at the lines that begin and end a block, which are in none of them. file is that of the query, for
// errors.
func (s source) pieces(file string) (all []piece, err error) {
	var now piece
	next := func(p piece) {
		if len(now.lines.places) > 0 {
			all = append(all, now)
		}
		now = p
	}
	for i, line := range strings.Split(s.text, "\n") {
		begin, end := beginsBlock(line), strings.TrimSpace(line) == blockEnd
		switch at := s.places[i]; {
		case begin != nil && now.begin != "":
			return nil, fmt.Errorf("%s: %s begins a block in another one; end that with a line %s", at.describe(file),
				strings.TrimSpace(line), blockEnd)
		case begin != nil:
			next(piece{begin: line, at: at, only: begin[1] == "only", param: begin[2], value: begin[3]})
		case end && now.begin == "":
			return nil, fmt.Errorf("%s: %s without a block; a line {{unless NAME VALUE}} or {{only NAME VALUE}} begins one",
				at.describe(file), blockEnd)
		case end:
			next(piece{})
		default:
			now.lines.add(line, at)
		}
	}
	if now.begin != "" {
		return nil, fmt.Errorf("%s: the block %s does not end; want a line %s", now.at.describe(file), strings.TrimSpace(now.begin),
			blockEnd)
	}
	next(piece{})
	return all, nil
}

// beginsBlock returns the parts of a line that begins a block: all of it, unless or only, the parameter, its value; nil
// for another line.
func beginsBlock(line string) []string {
	if !strings.Contains(line, "{{") {
		return nil // most lines; the expression takes much longer to say so
	}
	return blockBegin.FindStringSubmatch(line)
}

// withBlocks returns the text with the blocks that are there for the values of the parameters, which literals has.
func (s source) withBlocks(literals map[string]string) (source, error) {
	all, err := s.pieces("")
	var left sourceLines
	for _, p := range all {
		if p.begin == "" || (literals[p.param] == quote(p.value)) == p.only {
			left.addAll(p.lines)
		}
	}
	return left.source(), err
}

// ownBlocks removes the blocks of parameters, or of values of a parameter, that the query lacks: of {{only}} with their
// text, of {{unless}} without. Only an included file may have such, as it is for several queries. file is that of the
// query.
func (q *Query) ownBlocks(s source, file string) (source, error) {
	all, err := s.pieces(file)
	if err != nil {
		return source{}, err
	}
	var left sourceLines
	var errs []error
	always, blocks := false, false
	for _, p := range all {
		param := q.param(p.param)
		blocks = blocks || p.begin != ""
		if p.begin != "" && p.at.file != file {
			q.blocks = append(q.blocks, includedBlock{p.at, strings.TrimSpace(p.begin), param != nil && p.isOf(param)})
		}
		switch {
		case p.begin != "" && param != nil && (p.at.file == file || p.isOf(param)):
			errs = append(errs, p.check(param, file))
			left.add(p.begin, p.at)
			left.addAll(p.lines)
			left.add(blockEnd, p.lines.places[len(p.lines.places)-1])
			continue
		case p.begin != "" && p.at.file == file:
			errs = append(errs, fmt.Errorf("%s: the block %s is of a parameter that the header does not declare; add \"-- param %s "+
				"...\"", p.at.describe(file), strings.TrimSpace(p.begin), p.param))
		case p.begin != "" && p.only:
			continue
		}
		left.addAll(p.lines)
		always = always || strings.TrimSpace(p.lines.source().text) != ""
	}
	if blocks && !always {
		errs = append(errs, fmt.Errorf("all of the SQL stands in blocks; some must be there for every value"))
	}
	return left.source(), errors.Join(errs...)
}

// includedBlock is a block in an included file.
type includedBlock struct {
	at    place
	begin string // its first line
	known bool   // the query has the parameter, and it the value
}

// deadBlocks returns an error for each query that includes a file with a block that none of the queries has the
// parameter and the value for: one of the two is misspelt. A block that others have is no mistake.
func deadBlocks(all []*Query) map[*Query]error {
	known := map[place]bool{}
	for _, q := range all {
		for _, b := range q.blocks {
			known[b.at] = known[b.at] || b.known
		}
	}
	dead := map[*Query]error{}
	for _, q := range all {
		for _, b := range q.blocks {
			if !known[b.at] {
				dead[q] = errors.Join(dead[q], fmt.Errorf("the block %s has no effect: no query that includes the file "+
					"has a parameter of kind choice with that name and value (%s)", b.begin, b.at.describe("")))
			}
		}
	}
	return dead
}

// isOf reports whether the block is of a choice and one of its values.
func (p *piece) isOf(param *Param) bool {
	return param.Kind == "choice" && slices.Contains(param.Choices, p.value)
}

// check checks that the block is of a choice and one of its values.
func (p *piece) check(param *Param, file string) error {
	if !p.isOf(param) {
		return fmt.Errorf("%s: the block %s: %s is not a value of %s; want a parameter of kind choice and one of its values",
			p.at.describe(file), strings.TrimSpace(p.begin), p.value, p.param)
	}
	return nil
}

// macroText returns the text as an expression that leaves out blocks by the macro's arguments, without its first and
// last quote.
func (q *Query) macroText() string {
	all, err := source{q.text, q.places}.pieces("")
	if err != nil {
		panic(err) // the query was parsed
	}
	const quote = "$commq$"
	var texts []string
	for _, p := range all {
		if p.begin == "" {
			texts = append(texts, p.lines.source().text)
			continue
		}
		there, not := quote+p.lines.source().text+"\n"+quote, "''"
		if p.only {
			there, not = not, there
		}
		texts = append(texts, quote+"\n|| "+q.param(p.param).macroWhere("'"+p.value+"'", not, there)+" || "+quote)
	}
	return strings.Join(texts, "\n")
}
