package pattern

import (
	"fmt"
	"strings"
)

// String formats the law: the simplest form, its rivals, the general equation and the local equations.
func (l Law) String() string {
	var b strings.Builder
	if len(l.Forms) == 0 {
		return fmt.Sprintf("%s: the other side of %s", l.Name, l.Inverse)
	}
	fmt.Fprintf(&b, "%s: %s\n", l.Name, l.Forms[0])
	if n := len(l.Forms) - 1; n > 0 {
		fmt.Fprintf(&b, "  %d more fit all runs; where they differ there is no answer:\n", n)
		for _, f := range l.Forms[1:min(len(l.Forms), 5)] {
			fmt.Fprintf(&b, "    %s\n", f)
		}
	}
	if l.Borrowed {
		b.WriteString("  borrowed from sibling axes: a run with more ranks on its own axis would show it\n")
	}
	for i, m := range l.Members {
		if i == 4 {
			fmt.Fprintf(&b, "  and %d more\n", len(l.Members)-4)
			break
		}
		name := ""
		if len(l.Members) > 1 {
			name = fmt.Sprintf("%s  ", m.Slot)
		}
		if g, ok := l.General(m); ok {
			fmt.Fprintf(&b, "  %s%s\n", name, g)
		}
		for _, e := range m.Local {
			fmt.Fprintf(&b, "  %s%s\n", name, e)
		}
	}
	return b.String()
}

// String formats all laws, the unexplained slots and the warnings.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "runs at %v ranks\n", p.Sizes)
	for _, g := range p.Grids {
		fmt.Fprintf(&b, "%s, for %s\n", g[0], g[0].Domain())
		for _, o := range g[1:] {
			fmt.Fprintf(&b, "  or %s, which has the same extents in all runs\n", o)
		}
	}
	for _, l := range p.Laws {
		b.WriteString(l.String())
	}
	for _, u := range p.Unexplained {
		fmt.Fprintf(&b, "%s: no law: %s\n", u.Slot, u.Why)
	}
	for _, w := range p.Warnings {
		fmt.Fprintf(&b, "warning: %s\n", w)
	}
	return b.String()
}
