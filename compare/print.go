package compare

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/units"
)

// Comparison is the difference between two sets of runs.
type Comparison struct {
	// Base and New are the names of the runs.
	Base []string `json:"base"`
	New  []string `json:"new"`
	// BaseRanks and NewRanks are the numbers of ranks of their runs.
	BaseRanks int32 `json:"base_ranks"`
	NewRanks  int32 `json:"new_ranks"`
	// Changes lists all measures, including those that did not change.
	Changes []Change `json:"changes"`
	// Findings are the diagnosed causes that only one set has, or whose gains differ.
	Findings []FindingShift `json:"findings"`
	// FindingNotes say what makes these doubtful, or why they were not looked for.
	FindingNotes []string `json:"finding_notes,omitempty"`
}

// Compare compares two sets of runs. The error names the set that is not usable, and why.
func Compare(base, new []Sample, o DiffOptions) (*Comparison, error) {
	for _, err := range []error{CheckSet("base", base), CheckSet("new", new)} {
		if err != nil {
			return nil, err
		}
	}
	return &Comparison{Base: namesOf(base), New: namesOf(new), BaseRanks: base[0].Ranks, NewRanks: new[0].Ranks,
		Changes: Diff(base, new, o), Findings: []FindingShift{}}, nil
}

func namesOf(set []Sample) (names []string) {
	for i := range set {
		names = append(names, set[i].Run)
	}
	return names
}

// Changed reports whether an exact measure differs, or a time significantly.
func (d *Comparison) Changed() bool {
	for i := range d.Changes {
		switch d.Changes[i].What {
		case Same, Unclear:
		default:
			return true
		}
	}
	return false
}

// Text writes the comparison for people: the exact measures that differ (with all, every one) and all times. Lines
// are at most width columns long; 0 means as long as needed.
func (d *Comparison) Text(w io.Writer, all bool, width int) error {
	head := func(side string, names []string, ranks int32) string {
		return fmt.Sprintf("%s  %s (%s)\n", side, printable.Line(few(names)), plural(int64(ranks), "rank"))
	}
	format := func(g *grid) string { return g.text(width) }
	err := d.write(w, head("base", d.Base, d.BaseRanks)+head("new ", d.New, d.NewRanks), all, format)
	if err != nil {
		return err
	}
	return d.writeFindings(w, format, func(note string) string {
		const head = "findings: "
		note = printable.Line(note)
		if width > 0 {
			note = printable.Wrap(note, strings.Repeat(" ", len(head)), width)
		}
		return head + note
	})
}

// Markdown writes the same as Text as Markdown.
func (d *Comparison) Markdown(w io.Writer, all bool) error {
	head := fmt.Sprintf("base: %s (%s)  \nnew: %s (%s)\n", escape(few(d.Base)), plural(int64(d.BaseRanks), "rank"),
		escape(few(d.New)), plural(int64(d.NewRanks), "rank"))
	if err := d.write(w, head, all, (*grid).markdown); err != nil {
		return err
	}
	return d.writeFindings(w, (*grid).markdown, func(note string) string {
		return "- findings: " + escape(note)
	})
}

func (d *Comparison) write(w io.Writer, head string, all bool, format func(*grid) string) error {
	exact, times := &grid{}, &grid{}
	exact.add("exact", "base", "new", "change")
	times.add("times", "base", "new", "vs base")
	same, before := 0, ""
	for i := range d.Changes {
		c := &d.Changes[i]
		switch {
		case !c.Exact:
			times.add(c.Measure, timeText(c.Base), timeText(c.New), c.delta())
			continue
		case c.What == Same && !all:
			same++
			continue
		case c.What == Moved && c.To == "": // shown where it vanished
			continue
		case c.Item != "" && c.Measure != before: // the value of the whole did not change
			exact.add(c.Measure, "", "", "")
		}
		before = c.Measure
		name := c.Measure
		if c.Item != "" {
			name = "  " + c.Item
		}
		exact.add(name, c.Base.text(c.Unit), c.New.text(c.Unit), c.delta())
	}
	var b strings.Builder
	b.WriteString(head + "\n")
	if len(exact.lines) > 1 {
		b.WriteString(format(exact))
	}
	switch {
	case same > 0 && len(exact.lines) > 1:
		fmt.Fprintf(&b, "\n%s the same.\n", sameCount(same))
	case same > 0:
		fmt.Fprintf(&b, "all %s are the same.\n", plural(int64(same), "exact measure"))
	}
	if len(times.lines) > 1 {
		b.WriteString("\n" + format(times))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func sameCount(n int) string {
	if n == 1 {
		return "1 other exact measure is"
	}
	return fmt.Sprintf("%d other exact measures are", n)
}

// fewNames is the largest number of run names written out.
const fewNames = 4

// few lists names, abbreviated if there are many.
func few(names []string) string {
	if len(names) <= fewNames {
		return strings.Join(names, " ")
	}
	return fmt.Sprintf("%s ... %s, %d runs", strings.Join(names[:fewNames-1], " "), names[len(names)-1], len(names))
}

func plural(n int64, noun string) string { return units.Count(n, noun) }

// number formats a value: fingerprints in hexadecimal, times with a unit.
func number(v int64, unit string) string {
	switch unit {
	case Fingerprint:
		return fmt.Sprintf("%016x", uint64(v))
	case "ns":
		return units.WithUnit(float64(v), units.Times)
	}
	return units.Comma(v)
}

// text formats an exact measure: a value, or a range.
func (s Side) text(unit string) string {
	switch {
	case s.N == 0:
		return ""
	case s.Low != s.High && unit == Fingerprint:
		return "varies"
	case s.Low != s.High:
		return number(s.Low, unit) + " to " + number(s.High, unit)
	}
	return number(s.Low, unit)
}

// timeText formats a time: the median and its interval, or the range of runs that are too few for an interval.
func timeText(s Side) string {
	switch {
	case s.N == 0:
		return ""
	case s.Low == s.High:
		return units.WithUnit(s.Center, units.Times)
	case s.Error == "":
		return fmt.Sprintf("%s (%s to %s)", number(int64(s.Center), "ns"), number(s.Low, "ns"), number(s.High, "ns"))
	}
	return units.WithUnit(s.Center, units.Times) + " ± " + s.Error
}

// delta describes how a measure changed.
func (c *Change) delta() string {
	ratio, known := c.Ratio()
	percent := ""
	if known {
		percent = percentText(ratio - 1)
	}
	text := ""
	switch c.What {
	case Same:
		if !c.Exact {
			text = fmt.Sprintf("~ (p=%.3f n=%s)", c.P, sizes(c))
		}
	case More, Fewer:
		text = percent
		if !known {
			text = c.What
		}
		if !c.Exact {
			text = fmt.Sprintf("%s (p=%.3f n=%s)", text, c.P, sizes(c))
		}
	case Moved:
		text = "now " + c.To
	case Unclear:
		text = fmt.Sprintf("~ (n=%s, too few for a test)", sizes(c))
	case Unknown:
		return strings.Join(c.Notes, "; ")
	case Appeared, Vanished:
		text = c.What
		if at := c.place(); at != "" {
			text += " at " + at
		}
	default:
		text = c.What
	}
	if c.Exact && len(c.Notes) > 0 {
		text += ", " + strings.Join(c.Notes, ", ")
	}
	return text
}

// sizes formats the sizes of the samples as benchstat does.
func sizes(c *Change) string {
	if c.Base.N == c.New.N {
		return strconv.Itoa(c.Base.N)
	}
	return fmt.Sprintf("%d+%d", c.Base.N, c.New.N)
}

// percentText formats a difference with its sign.
func percentText(f float64) string {
	if f > 0 {
		return "+" + units.Percent(f)
	}
	return units.Percent(f)
}

// place returns the place of the measure in the source: in the new runs, else in the base.
func (c *Change) place() string {
	for _, s := range []Side{c.New, c.Base} {
		if s.File != "" && s.Line > 0 {
			return fmt.Sprintf("%s:%d", s.File, s.Line)
		}
	}
	return ""
}
