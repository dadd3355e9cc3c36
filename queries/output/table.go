package output

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/queries"
)

// Text is how a table for people looks.
type Text struct {
	// Width is the number of characters in a line; 0 means as many as needed.
	Width int
	// Exact writes raw numbers and names of columns, all columns, as wide as needed.
	Exact bool
}

// WriteText writes all rows to w as a table for people. It does not close rows. Errors come from rows and w.
func WriteText(w io.Writer, rows queries.Rows, how Text) error {
	b := bufio.NewWriterSize(w, 1<<16)
	write := writeTable
	if how.Exact {
		write = writeExact
	}
	if err := write(b, rows, how.Width); err != nil {
		return err
	}
	return b.Flush()
}

// writeExact prints aligned rows with raw numbers and names.
func writeExact(w io.Writer, rows queries.Rows, _ int) error {
	g := &grid{w: w, between: "  ", head: func(c queries.Column) string { return c.Name },
		value: func(v any, c queries.Column) string { return cell(v, c.Type) }, escape: printable.Line}
	return writeGrid(g, rows, func(*grid) {})
}

// The space between columns, the width to which texts are shortened, and the width of a line that has to do.
const (
	gap       = "  "
	leastText = 14
	leastLine = 20
)

// sampleRows is the number of rows from which a table for people determines its units and widths. Wider cells in later
// rows are printed in full and shift their row.
const sampleRows = 10000

// table is a table for people: the columns that have a value, their cells in the sample, and the parts side by side
// that a narrow terminal shows one below the other.
type table struct {
	w     io.Writer
	width int
	// from is the place of each column in the rows.
	from    []int
	columns []*column
	cells   [][]string
	widths  []int
	line    []byte
	err     error
}

// writeTable prints rows for people: aligned, in units that fit, without empty columns, at most so wide.
func writeTable(w io.Writer, rows queries.Rows, width int) error {
	sample, whole, err := sampleOf(rows)
	if err != nil {
		return err
	}
	t := &table{w: w, width: width}
	if width > 0 {
		t.width = max(width, leastLine)
	}
	t.choose(rows.Columns(), sample, whole)
	parts := t.parts(whole)
	for i, p := range parts {
		if i > 0 {
			t.print(nil, nil, nil)
		}
		t.part(p)
	}
	for t.err == nil && !whole && rows.Next() {
		t.row(t.texts(rows.Row()), parts[0])
	}
	if t.err != nil {
		return t.err
	}
	return rows.Err()
}

// sampleOf reads the first rows; whole reports that there are no others.
func sampleOf(rows queries.Rows) (sample [][]any, whole bool, err error) {
	for len(sample) < sampleRows {
		if !rows.Next() {
			return sample, true, rows.Err()
		}
		sample = append(sample, slices.Clone(rows.Row()))
	}
	return sample, false, nil
}

// choose takes the columns that have values and writes their cells.
func (t *table) choose(columns []queries.Column, sample [][]any, whole bool) {
	for i := range columns {
		if !whole || slices.ContainsFunc(sample, func(row []any) bool { return row[i] != nil }) {
			t.from = append(t.from, i)
		}
	}
	if len(t.from) == 0 {
		for i := range columns {
			t.from = append(t.from, i)
		}
	}
	values := make([][]any, len(t.from))
	for k, i := range t.from {
		t.columns = append(t.columns, &column{Column: columns[i], kind: kindOf(columns[i])})
		for _, row := range sample {
			values[k] = append(values[k], row[i])
		}
	}
	setUnits(t.columns, values)
	heads(t.columns)
	t.widths = make([]int, len(t.columns))
	for _, row := range sample {
		cells := t.texts(row)
		for k, text := range cells {
			t.widths[k] = max(t.widths[k], utf8.RuneCountInString(text))
		}
		t.cells = append(t.cells, cells)
	}
}

// texts are the cells of a row.
func (t *table) texts(row []any) []string {
	cells := make([]string, len(t.columns))
	for i, c := range t.columns {
		cells[i] = c.cell(row[t.from[i]])
	}
	return cells
}

// part is some columns of a table beside each other, with the widths they get and the lines of their headers.
type part struct {
	columns []int
	widths  []int
	heads   [][]string
}

// parts lays the columns out: beside each other if they fit, else with headers in several lines, else with shorter
// texts, else in parts below each other, each of which begins with the columns that say what a row is about.
func (t *table) parts(whole bool) []part {
	all := make([]int, len(t.columns))
	for i := range all {
		all[i] = i
	}
	p, fits := t.lay(all)
	if fits || !whole {
		return []part{p}
	}
	keys := t.keys()
	var parts []part
	for rest := all[len(keys):]; len(rest) > 0; {
		n := 1
		for n < len(rest) {
			if _, fits := t.lay(slices.Concat(keys, rest[:n+1])); !fits {
				break
			}
			n++
		}
		p, _ := t.lay(slices.Concat(keys, rest[:n]))
		parts, rest = append(parts, p), rest[n:]
	}
	return parts
}

// keys are the first columns that name what a row is about, as far as they leave a third of the line; at least one.
func (t *table) keys() []int {
	keys, width := []int{0}, 0
	for i, c := range t.columns[:len(t.columns)-1] {
		if width += min(t.widths[i], leastText) + len(gap); c.kind != plain || width > t.width*2/3 {
			break
		}
		if i > 0 {
			keys = append(keys, i)
		}
	}
	return keys
}

// lay gives columns their widths; fits reports whether they are within the line.
func (t *table) lay(columns []int) (p part, fits bool) {
	const mostLines = 4
	for lines := 1; lines <= mostLines; lines++ {
		if p = t.wrapped(columns, lines); t.width == 0 || p.total() <= t.width {
			return p, true
		}
	}
	t.shorten(&p)
	return p, p.total() <= t.width
}

// wrapped gives columns the widths of their cells and of headers in at most this many lines.
func (t *table) wrapped(columns []int, lines int) part {
	p := part{columns: columns}
	for _, i := range columns {
		c, width := t.columns[i], max(t.widths[i], 3)
		words := []string{c.head}
		if nameRe.MatchString(c.Name) {
			words = strings.Split(c.head, " ")
		}
		for _, word := range words {
			width = max(width, utf8.RuneCountInString(word))
		}
		head := wrap(words, width)
		for len(head) > lines {
			width++
			head = wrap(words, width)
		}
		p.widths, p.heads = append(p.widths, width), append(p.heads, head)
	}
	return p
}

// wrap puts words in lines of at most a width.
func wrap(words []string, width int) []string {
	lines := []string{words[0]}
	for _, word := range words[1:] {
		last := &lines[len(lines)-1]
		if joined := *last + " " + word; utf8.RuneCountInString(joined) <= width {
			*last = joined
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

func (p *part) total() int {
	total := len(gap) * (len(p.widths) - 1)
	for _, w := range p.widths {
		total += w
	}
	return total
}

// shorten makes the widest columns of text narrower until the line is, as far as texts then still say something.
func (t *table) shorten(p *part) {
	for over := p.total() - t.width; over > 0; over-- {
		widest := -1
		for k, i := range p.columns {
			least := leastText
			for _, line := range p.heads[k] {
				least = max(least, utf8.RuneCountInString(line))
			}
			if !numeric(t.columns[i].Type) && p.widths[k] > least && (widest < 0 || p.widths[k] > p.widths[widest]) {
				widest = k
			}
		}
		if widest < 0 {
			return
		}
		p.widths[widest]--
	}
}

// part prints the header and the sample of some columns.
func (t *table) part(p part) {
	lines := 0
	for _, head := range p.heads {
		lines = max(lines, len(head))
	}
	for n := range lines {
		texts := make([]string, len(p.columns))
		for k, head := range p.heads {
			if at := n - (lines - len(head)); at >= 0 {
				texts[k] = head[at]
			}
		}
		t.print(texts, p.columns, p.widths)
	}
	for _, cells := range t.cells {
		t.row(cells, p)
	}
}

func (t *table) row(cells []string, p part) {
	texts := make([]string, len(p.columns))
	for k, i := range p.columns {
		if texts[k] = cells[i]; t.width > 0 && !numeric(t.columns[i].Type) {
			texts[k] = shortened(texts[k], p.widths[k])
		}
	}
	t.print(texts, p.columns, p.widths)
}

// shortened leaves the middle out of a text that is too long: the end of a path, with the file and line,
// says most.
func shortened(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	before := int(math.Floor(float64(width-1) * 0.25))
	return string(runes[:before]) + "…" + string(runes[len(runes)-(width-1-before):])
}

// print prints a line of cells, numbers to the right.
func (t *table) print(texts []string, columns, widths []int) {
	if t.err != nil {
		return
	}
	b := t.line[:0]
	for k, text := range texts {
		if k > 0 {
			b = append(b, gap...)
		}
		pad := max(0, widths[k]-utf8.RuneCountInString(text))
		if numeric(t.columns[columns[k]].Type) {
			b = append(appendSpaces(b, pad), text...)
		} else {
			b = appendSpaces(append(b, text...), pad)
		}
	}
	t.line = append(bytes.TrimRight(b, " "), '\n')
	_, t.err = t.w.Write(t.line)
}
