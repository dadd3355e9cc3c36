package compare

import (
	"strings"
	"unicode/utf8"

	"github.com/commq/commq/internal/printable"
)

// grid holds aligned lines of cells: the first column left-aligned, the last too, the others right-aligned unless they
// are words.
type grid struct {
	lines [][]string
	words bool
}

func (g *grid) add(cells ...string) { g.lines = append(g.lines, cells) }

// text returns the grid for a terminal, with two blanks between columns. Where lines would be longer than width, the
// last column goes on in the next line; 0 means as long as needed.
func (g *grid) text(width int) string {
	var widths []int
	for _, line := range g.lines {
		for i := range line {
			line[i] = printable.Line(line[i])
		}
		for i, cell := range line {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	before := 0
	for _, w := range widths[:len(widths)-1] {
		before += w + 2
	}
	var b strings.Builder
	for _, line := range g.lines {
		var row strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i > 0 {
				row.WriteString("  ")
			}
			if i > 0 && i < len(widths)-1 {
				row.WriteString(pad + cell)
			} else if i > 0 && width > 0 {
				row.WriteString(printable.Wrap(cell, strings.Repeat(" ", before), width))
			} else {
				row.WriteString(cell + pad)
			}
		}
		b.WriteString(strings.TrimRight(row.String(), " ") + "\n")
	}
	return b.String()
}

// markdown returns the grid as a Markdown table that shows cells literally; the first line is the header.
func (g *grid) markdown() string {
	escaped := &grid{}
	for _, line := range g.lines {
		var cells []string
		for _, cell := range line {
			cells = append(cells, escape(cell))
		}
		escaped.add(cells...)
	}
	return escaped.raw()
}

// raw returns the grid as a Markdown table whose cells are Markdown themselves.
func (g *grid) raw() string {
	var b strings.Builder
	for k, line := range g.lines {
		b.WriteString("|")
		for _, cell := range line {
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
		if k > 0 {
			continue
		}
		b.WriteString("|")
		for i := range line {
			if i > 0 && i < len(line)-1 && !g.words {
				b.WriteString("---:|")
			} else {
				b.WriteString("---|")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// escape turns text into a Markdown cell that shows it literally.
func escape(s string) string { return printable.Markdown(strings.ReplaceAll(s, "\n", " ")) }
