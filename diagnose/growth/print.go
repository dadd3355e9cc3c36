package growth

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/run"
)

// head says in one sentence which runs are compared.
func (g *Growth) head() string {
	var ranks []string
	for _, t := range g.Times {
		ranks = append(ranks, strconv.Itoa(t.Ranks))
	}
	text := units.Count(int64(len(g.Runs)), "run") + " of " + strings.Join(ranks, ", ") + " ranks"
	if len(g.Runs) > len(g.Times) {
		text += "; medians of the runs with equal numbers"
	}
	return text
}

// Text writes for people the findings that gain at least a share of the time on some number of ranks, up to most of
// them (0 means all), and says what is left out.
func (g *Growth) Text(w io.Writer, least float64, most int, left string) error {
	var s strings.Builder
	fmt.Fprintln(&s, g.head())
	for _, text := range g.Warnings {
		fmt.Fprintf(&s, "warning: %s\n", text)
	}
	shown := g.shown(least, most)
	fmt.Fprintln(&s)
	g.table(&s, nil)
	for i, n := range shown {
		fmt.Fprintf(&s, "\n%d. %s\n   %s.\n", i+1, n.Name(), n.Title)
		g.table(&s, n)
		for _, line := range n.verdict(g) {
			fmt.Fprintf(&s, "   %s\n", line)
		}
	}
	if len(shown) == 0 {
		fmt.Fprintf(&s, "\nNo run has a finding that costs enough to be listed.\n")
	}
	if rest := len(g.Findings) - len(shown); rest > 0 && left != "" {
		fmt.Fprintf(&s, "\n%s: %s\n", units.Count(int64(rest), "smaller finding"), left)
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// shown returns the findings that Text writes.
func (g *Growth) shown(least float64, most int) (all []*Finding) {
	for i := range g.Findings {
		if n := &g.Findings[i]; n.most() >= least && (most == 0 || len(all) < most) {
			all = append(all, n)
		}
	}
	return all
}

// Name is the finding in a few words: imbalance, MPI_Irecv at uneven.c:32.
func (n *Finding) Name() string {
	if n.Call == "" {
		return string(n.Rule)
	}
	return string(n.Rule) + ", " + run.SiteText(n.Call, "", n.Place)
}

// table writes the gains of a finding by number of ranks; nil means the times of the runs.
func (g *Growth) table(s *strings.Builder, n *Finding) {
	lines := [][]string{{"ranks"}, {"time"}}
	if n != nil {
		lines = [][]string{{"ranks"}, {"gain"}, {"share"}}
		if n.Bound {
			lines[1][0] = "at most"
		}
	}
	for i, t := range g.Times {
		lines[0] = append(lines[0], strconv.Itoa(t.Ranks))
		if n == nil {
			lines[1] = append(lines[1], units.Duration(t.TimeNs))
			continue
		}
		lines[1] = append(lines[1], units.Duration(n.Points[i].GainNs))
		lines[2] = append(lines[2], units.Percent(n.Points[i].Share))
	}
	for _, line := range lines {
		fmt.Fprintf(s, "   %-8s", line[0])
		for i, cell := range line[1:] {
			width := 0
			for _, other := range lines {
				width = max(width, len(other[i+1]))
			}
			fmt.Fprintf(s, "  %*s", width, cell)
		}
		fmt.Fprintln(s)
	}
}

// verdict says how the finding grows, by which laws, and where it has the largest gain.
func (n *Finding) verdict(g *Growth) (lines []string) {
	gain, share := n.grows()
	switch {
	case gain && share:
		lines = append(lines, "grows with the number of ranks, in time and as a share of it")
	case gain:
		lines = append(lines, "grows with the number of ranks, but not as a share of the time")
	case share:
		lines = append(lines, "grows with the number of ranks as a share of the time only")
	}
	switch on := n.foundOn(); {
	case n.GainLaw != nil:
		lines = append(lines, "gain in seconds: "+n.GainLaw.text(), "share of the time: "+n.ShareLaw.text())
	case len(g.Times) >= leastForLaw:
		lines = append(lines, fmt.Sprintf("found on %s of ranks only: a law needs %d", units.Count(int64(on), "number"),
			leastForLaw))
	}
	if text := n.first(g); text != "" {
		lines = append(lines, text)
	}
	return lines
}

// text is the law with its error.
func (l *Law) text() string {
	if l.Error == nil {
		return l.Formula
	}
	return fmt.Sprintf("%s (error on runs left out %s)", l.Formula, units.Percent(*l.Error))
}

// first says on how many ranks the finding has the largest gain; "" if on none.
func (n *Finding) first(g *Growth) string {
	most := int64(g.Times[len(g.Times)-1].Ranks)
	switch {
	case len(n.First) > 0:
		var ranks []string
		for _, r := range n.First {
			ranks = append(ranks, strconv.Itoa(r))
		}
		return "the largest finding on " + strings.Join(ranks, ", ") + " ranks"
	case n.FirstByLaw > far*most:
		return fmt.Sprintf("by the laws the largest from about %s ranks on, but that is more than %d times the "+
			"largest run: a guess", units.Comma(n.FirstByLaw), far)
	case n.FirstByLaw > 0:
		return fmt.Sprintf("by the laws the largest from about %s ranks on", units.Comma(n.FirstByLaw))
	}
	return ""
}

// Markdown writes the same findings as a table, for a comment on a change.
func (g *Growth) Markdown(w io.Writer, least float64, most int) error {
	var s strings.Builder
	fmt.Fprintf(&s, "**%s**\n\n", g.head())
	for _, text := range g.Warnings {
		fmt.Fprintf(&s, "Warning: %s\n\n", printable.Markdown(text))
	}
	fmt.Fprint(&s, "| finding |")
	for _, t := range g.Times {
		fmt.Fprintf(&s, " %d ranks |", t.Ranks)
	}
	fmt.Fprintf(&s, " law of the gain in s | |\n|---|%s---|---|\n", strings.Repeat("---|", len(g.Times)))
	for _, n := range g.shown(least, most) {
		fmt.Fprintf(&s, "| %s |", printable.Markdown(n.Name()))
		for _, p := range n.Points {
			fmt.Fprintf(&s, " %s (%s) |", units.Duration(p.GainNs), units.Percent(p.Share))
		}
		law := ""
		if n.GainLaw != nil {
			law = n.GainLaw.Formula
		}
		fmt.Fprintf(&s, " %s | %s |\n", printable.Markdown(law), n.first(g))
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// CSV writes all findings, a row for each number of ranks.
func (g *Growth) CSV(w io.Writer) error {
	rows := [][]string{{"rule", "callsite", "call", "ranks", "runs", "found", "gain_ns", "share", "bound", "gain_law",
		"share_law",
		"first", "first_by_law"}}
	for i := range g.Findings {
		n := &g.Findings[i]
		gain, share := "", ""
		if n.GainLaw != nil {
			gain, share = n.GainLaw.Formula, n.ShareLaw.Formula
		}
		for k, p := range n.Points {
			first := slices.Contains(n.First, p.Ranks)
			rows = append(rows, []string{string(n.Rule), n.Place, n.Call, strconv.Itoa(p.Ranks),
				strconv.Itoa(g.Times[k].Runs),
				strconv.Itoa(p.Found), strconv.FormatInt(p.GainNs, 10), strconv.FormatFloat(p.Share, 'g', 6, 64),
				strconv.FormatBool(n.Bound), gain, share, strconv.FormatBool(first),
				strconv.FormatInt(n.FirstByLaw, 10)})
		}
	}
	return printable.NewCSV(w).WriteAll(rows)
}
