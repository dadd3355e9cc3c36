package queries

import (
	"fmt"
	"strings"
)

// Help is the header as text for a terminal.
func (q *Query) Help() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", q.Summary)
	for _, p := range q.Params {
		fmt.Fprintf(&b, "%s\n", wrap("--"+p.Name+" "+p.Domain()+" (default "+p.shownDefault()+"): "+p.Doc, "    "))
	}
	if len(q.Params) > 0 {
		b.WriteString("\n")
	}
	b.WriteString("Columns:\n")
	name, typ := 0, 0
	for _, c := range q.Columns {
		name, typ = max(name, len(c.Name)), max(typ, len(c.Type))
	}
	for _, c := range q.Columns {
		unit := ""
		if c.Unit != "" && c.Unit != "1" {
			unit = " [" + c.Unit + "]"
		}
		fmt.Fprintf(&b, "  %-*s  %-*s  %s%s\n", name, c.Name, typ, c.Type, wrap(c.Doc, strings.Repeat(" ", name+typ+6)), unit)
	}
	fmt.Fprintf(&b, "\nOrder:  %s\nNeeds:  %s\nReads:  %s\nSource: %s", q.Order, wrap(q.needs(), "        "),
		wrap(q.Cost, "        "), wrap(q.Source, "        "))
	if q.OverRuns {
		b.WriteString("\nOver:   all runs at once")
	}
	if q.Plot != nil {
		b.WriteString("\nPlot:   " + wrap(q.Plot.text(), "        "))
	}
	return b.String()
}

// needs is what a run must hold, as text.
func (q *Query) needs() string {
	text := strings.Join(q.Needs, ", ")
	if len(q.Origins) > 0 {
		text += " (" + strings.Join(q.Origins, ", ") + ")"
	}
	return text
}

const helpWidth = 110

// wrap breaks text into lines; all but the first begin with indent.
func wrap(text, indent string) string {
	var b strings.Builder
	width := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case width+1+len(word) > helpWidth-len(indent):
			b.WriteString("\n" + indent)
			width = 0
		default:
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += len(word)
	}
	return b.String()
}
