package diagnose

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/units"
)

// Detail writes all evidence of a finding for people.
func (d *Diagnosis) Detail(w io.Writer, f *Finding) error {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: gain %s\n", f.Rule, d.Gain(f))
	if f.Bound {
		fmt.Fprintf(&s, "bound: %s\n", f.boundOf())
	} else {
		fmt.Fprintf(&s, "by simulating the run without it on %s, where it takes %s as it is\n", d.Machine,
			units.Duration(d.SimulatedNs))
	}
	fmt.Fprintf(&s, "%s.\n%s\n", f.Title, f.Advice)
	f.callersText(&s)
	f.ranksText(&s)
	f.evidenceText(&s)
	if len(f.Parts) > 0 {
		s.WriteString("\ncomputing longer than needed, before\n")
		for _, p := range f.Parts {
			fmt.Fprintf(&s, "  %s  %s, by %s\n", units.Duration(p.ExcessNs), siteText(p.Call, p.Place),
				strings.ToLower(rankText(p.Ranks)))
		}
	}
	f.beforeText(&s)
	if len(f.Waits) > 0 {
		fmt.Fprintf(&s, "\n%s waited because of it, by all ranks together:\n", units.Duration(f.WaitNs))
		for i := range f.Waits {
			x := &f.Waits[i]
			fmt.Fprintf(&s, "  %s\n    the longest %s, by rank %d at %s\n", x.Text(), units.Duration(x.LongestNs),
				x.LongestRank, units.Duration(x.LongestAtNs))
		}
	}
	d.courseText(&s, f)
	if x := f.Window; x != nil {
		args := x.Args()
		fmt.Fprintf(&s, "\nthe longest wait as a picture, with ranks %s:\n  commq query timeline %s --from-s %s "+
			"--to-s %s --plot wait.png\n", strings.Trim(fmt.Sprint(x.Ranks), "[]"), shellquote.Join(d.asked...),
			args["from-s"], args["to-s"])
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// detailRanks is how many ranks the text of a finding lists.
const detailRanks = 8

// ranksText lists the ranks that cause a finding.
func (f *Finding) ranksText(s *strings.Builder) {
	if f.Instances == nil || len(f.Instances.Ranks) == 0 {
		if len(f.Ranks) > 0 {
			fmt.Fprintf(s, "\nranks: %s\n", strings.Trim(fmt.Sprint(f.Ranks), "[]"))
		}
		return
	}
	in, whole := f.Instances, map[int32]RankTime{}
	for _, r := range f.Computing {
		whole[r.Rank] = r
	}
	head := []string{"rank", map[string]string{ofWaits: "longer than needed", ofComputing: "longer than its " +
		"mean", ofCalls: "in the calls"}[in.Of], "share"}
	if len(whole) > 0 {
		head = append(head, "computes in all", "times the mean")
	}
	rows := [][]string{head}
	for _, r := range in.Ranks[:min(detailRanks, len(in.Ranks))] {
		row := []string{fmt.Sprint(r.Rank), units.Duration(r.Ns), units.Percent(r.Share)}
		if c, found := whole[r.Rank]; found {
			row = append(row, units.Duration(c.ComputeNs), units.Number(c.TimesMean))
		}
		rows = append(rows, row)
	}
	s.WriteString("\n")
	writeColumns(s, rows, 5)
	if rest := in.Ranks[len(rows)-1:]; len(rest) > 0 {
		share := 0.0
		for _, r := range rest {
			share += r.Share
		}
		fmt.Fprintf(s, "  %s: %s\n", units.Count(int64(len(rest)), "other"), units.Percent(share))
	}
}

// beforeText lists the calls before the cause.
func (f *Finding) beforeText(s *strings.Builder) {
	if f.Instances == nil || len(f.Instances.Before) == 0 {
		return
	}
	s.WriteString("\nthe calls before\n")
	for i, c := range f.Instances.Before {
		if i > 0 {
			s.WriteString("\n")
		}
		if len(c.Calls) == 1 {
			s.WriteString("  the begin of the thread\n")
		}
		for k, step := range c.Calls {
			last := k == len(c.Calls)-1
			if last && f.Instances.Of != ofCalls {
				fmt.Fprintf(s, "    %s of computing (%s)\n", units.Duration(c.Ns), times(c.Times))
			}
			fmt.Fprintf(s, "  %s", siteText(step.Call, step.Place))
			if last && f.Instances.Of == ofCalls {
				fmt.Fprintf(s, ": %s (%s)", units.Duration(c.Ns), times(c.Times))
			}
			s.WriteString("\n")
		}
	}
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return units.Comma(n) + " times"
}

// barWide is the length of the longest bar, in characters.
const barWide = 40

// courseText lists when the run loses time by a finding, and the longest instances.
func (d *Diagnosis) courseText(s *strings.Builder, f *Finding) {
	in := f.Instances
	if in == nil || len(in.OverTime) == 0 || len(in.Longest) == 0 {
		return
	}
	lost := map[string]string{ofWaits: "waited", ofComputing: "longer than the mean", ofCalls: "in the calls"}[in.Of]
	most, wide := int64(1), in.OverTime[0].ToNs-in.OverTime[0].FromNs
	for _, x := range in.OverTime {
		most = max(most, x.Ns)
	}
	fmt.Fprintf(s, "\nover time, all ranks together%s\n", d.whose(in))
	rows := [][]string{{"from", "to", lost, ""}}
	for _, x := range in.OverTime {
		rows = append(rows, []string{clock(x.FromNs, wide), clock(x.ToNs, wide), units.Duration(x.Ns),
			strings.Repeat("#", int((barWide*x.Ns+most/2)/most))})
	}
	writeColumns(s, rows, 3)
	in.longestText(s, lost, wide/10)
}

// longestText lists the longest instances. Waits are ordered by the time that all ranks waited, which is shown too.
// wide is the distance, in ns, that printed times must tell apart.
func (in *Instances) longestText(s *strings.Builder, lost string, wide int64) {
	title, head := "the longest", []string{"at", "rank", lost}
	if in.Of == ofWaits {
		title, head = "the longest, by what all ranks waited", append(head, "all ranks")
	}
	fmt.Fprintf(s, "\n%s\n", title)
	rows := [][]string{append(head, "")}
	for _, x := range in.Longest {
		row := []string{clock(x.AtNs, wide), fmt.Sprint(x.Rank), units.Duration(x.OwnNs)}
		if in.Of == ofWaits {
			row = append(row, units.Duration(x.Ns))
		}
		rows = append(rows, append(row, x.text()))
	}
	writeColumns(s, rows, len(head))
}

// clock writes a time of the run with enough digits to tell times apart that differ by wide, both in ns.
func clock(ns, wide int64) string {
	decimals := 2
	for ; decimals < 9 && float64(wide) < 1e10*math.Pow10(-decimals); decimals++ {
	}
	return fmt.Sprintf("%.*f s", decimals, float64(ns)/1e9)
}

// whose returns a note if the times of instances are not those of the diagnosis.
func (d *Diagnosis) whose(in *Instances) string {
	if d.TimesSimulated && in.Of != ofWaits {
		return ", in the recorded times"
	}
	return ""
}

// text says where an instance was, and for whom it waited.
func (x *Instance) text() string {
	text := siteText(x.Call, x.Place)
	switch {
	case x.For != "" && x.Peer != nil:
		text += fmt.Sprintf(", for rank %d", *x.Peer)
	case x.Peer != nil:
		text += fmt.Sprintf(", with rank %d", *x.Peer)
	}
	return text
}

// writeColumns writes rows indented by two columns, the first cells aligned to the right.
func writeColumns(s *strings.Builder, rows [][]string, right int) {
	wide := make([]int, right)
	for _, row := range rows {
		for i, cell := range row[:min(right, len(row))] {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			if i < right {
				cell = strings.Repeat(" ", wide[i]-utf8.RuneCountInString(cell)) + cell
			}
			line += "  " + cell
		}
		s.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}
