package queries

import (
	"fmt"
	"strings"

	"github.com/commq/commq/internal/printable"
)

// Help describes the query beyond its summary, wrapped to this number of columns: parameters, columns of the answer,
// needs and cost.
func (q *Query) Help(width int) string {
	var b strings.Builder
	if len(q.Params) > 0 {
		b.WriteString("Parameters:\n")
		for i := range q.Params {
			q.Params[i].help(&b, width)
		}
		b.WriteString("\n")
	}
	columnHelp(&b, q.Columns, width)
	b.WriteString("\n")
	for _, line := range q.otherFields() {
		fmt.Fprintf(&b, "%-9s%s\n", line[0]+":", printable.Wrap(line[1], strings.Repeat(" ", 9), width))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// help writes a parameter: how to give it and, indented below, what it does.
func (p *Param) help(b *strings.Builder, width int) {
	const indent = "      "
	head := fmt.Sprintf("  --%s %s (default %s)", p.Name, p.Domain(), p.shownDefault())
	doc := p.Doc
	if p.Kind == "choice" && len(head) > width {
		head = fmt.Sprintf("  --%s CHOICE (default %s)", p.Name, p.shownDefault())
		doc = "One of " + strings.Join(p.Choices, ", ") + ". " + doc
	}
	if p.Kind == "condition" {
		doc += " It may be given several times: all must hold."
	}
	if p.Kind == "file" {
		doc += " Its columns: " + strings.ReplaceAll(strings.ReplaceAll(p.fileColumns(), ":", " "), ",", ", ") + "."
	}
	fmt.Fprintf(b, "%s\n%s%s\n", head, indent, printable.Wrap(doc, indent, width))
}

// columnHelp writes the columns of the answer, wrapping long descriptions.
func columnHelp(b *strings.Builder, columns []Column, width int) {
	name, typ, unit := len("column"), len("type"), len("unit")
	for _, c := range columns {
		name, typ, unit = max(name, len(c.Name)), max(typ, len(c.Type)), max(unit, len(c.Unit))
	}
	indent := strings.Repeat(" ", name+typ+unit+8)
	fmt.Fprintf(b, "Columns:\n  %-*s  %-*s  %-*s  %s\n", name, "column", typ, "type", unit, "unit", "meaning")
	for _, c := range columns {
		shown := c.Unit
		if shown == "1" {
			shown = ""
		}
		fmt.Fprintf(b, "  %-*s  %-*s  %-*s  %s\n", name, c.Name, typ, c.Type, unit, shown,
			printable.Wrap(c.Doc, indent, width))
	}
}

// otherFields returns the remaining fields of the header with their names.
func (q *Query) otherFields() [][2]string {
	lines := [][2]string{{"Order", q.Order}, {"Needs", q.needs()}, {"Reads", q.Cost}}
	if q.OverRuns {
		lines = append(lines, [2]string{"Asked", "once, of all runs together"})
	}
	if q.Plot != nil {
		lines = append(lines, [2]string{"Plot", q.Plot.text()})
	}
	lines = append(lines, [2]string{"Source", q.Source})
	if q.File != "" {
		lines = append(lines, [2]string{"File", q.File})
	}
	return lines
}

// Examples returns command lines that ask the query, the plain one first. They work on the runs cg.A.4 and cg.A.16 in
// testdata.
func (q *Query) Examples() []string {
	plain := "commq query " + q.Name + " --run cg.A.16"
	if q.OverRuns {
		plain = "commq query " + q.Name + " --run 'cg.A.*'"
	}
	lines := []string{plain}
	if more := q.exampleArgs(); more != "" {
		lines = append(lines, plain+" "+more)
	}
	if q.Plot != nil {
		lines = append(lines, plain+" --plot "+q.Name+".png")
	}
	return lines
}

// exampleArgs returns the arguments of the second example: those in the header, else another value of a parameter.
func (q *Query) exampleArgs() string {
	if q.Example != "" {
		return q.Example
	}
	for _, p := range q.Params {
		switch {
		case p.Kind == "choice":
			for _, choice := range p.Choices {
				if choice != p.Default {
					return "--" + p.Name + " " + choice
				}
			}
		case p.Kind == "condition" && p.Table == "messages":
			return "--" + p.Name + ` "bytes > 1024"`
		}
	}
	return "--format csv"
}

// needs lists what a run must contain, as text.
func (q *Query) needs() string {
	text := strings.Join(q.Needs, ", ")
	if len(q.Origins) > 0 {
		text += " (" + strings.Join(q.Origins, ", ") + ")"
	}
	return text
}
