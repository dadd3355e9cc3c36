package diagnose

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/internal/junit"
	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/sarif"
	"github.com/commq/commq/internal/units"
)

// Verdict says in one sentence what the run spends its time on.
func (d *Diagnosis) Verdict() string {
	text := fmt.Sprintf("%s: %s of %s", d.Run, units.Duration(d.TimeNs), units.Count(int64(d.Ranks), "rank"))
	e := d.Efficiency
	if e == nil {
		return text
	}
	factors := fmt.Sprintf("parallel efficiency %s = load balance %s x serialisation %s", units.Percent(e.Parallel),
		units.Percent(e.LoadBalance), units.Percent(e.Serialisation))
	if e.Transfer == nil {
		return fmt.Sprintf("%s; on %s %s; transfer not known (commq diagnose --machine NAME simulates a network)", text,
			idealNetwork, factors)
	}
	return text + "; " + factors + " x transfer " + units.Percent(*e.Transfer)
}

// Basis says which run the times and efficiencies are of, where they are not the run's own times; "" if they all are.
func (d *Diagnosis) Basis() string {
	switch {
	case d.TimesSimulated:
		return fmt.Sprintf("The times, efficiencies and gains of this section are of the run as simulated on %s; the "+
			"sections below are of its own times, with MPI_Init and the waits for cores.", d.Machine)
	case d.Efficiency != nil:
		return fmt.Sprintf("The efficiencies of this section are of the run as simulated on %s, in %s; the sections "+
			"below are of its own times.",
			d.Machine, units.Duration(d.SimulatedNs))
	}
	return ""
}

// share returns ns as a fraction of the run's time.
func (d *Diagnosis) share(ns int64) float64 { return float64(ns) / float64(max(1, d.TimeNs)) }

// Share returns a finding's gain as a fraction of the run's time.
func (d *Diagnosis) Share(f *Finding) float64 { return d.share(f.GainNs) }

// Shown returns how many findings gain at least a share of the run's time, up to most; most 0 means all of them.
func (d *Diagnosis) Shown(least float64, most int) (n int) {
	for n < len(d.Findings) && d.share(d.Findings[n].GainNs) >= least && (most == 0 || n < most) {
		n++
	}
	return n
}

// Gain returns the gain of a finding, in words.
func (d *Diagnosis) Gain(f *Finding) string {
	text := fmt.Sprintf("%s (%s)", units.Duration(f.GainNs), units.Percent(d.share(f.GainNs)))
	switch {
	case f.Rule == LateStart: // no part of the run's time
		return "at most " + units.Duration(f.GainNs)
	case f.Bound:
		return "at most " + text
	case f.MostNs > f.GainNs:
		return fmt.Sprintf("%s shared out evenly, %s if it need not be done", text, units.Duration(f.MostNs))
	}
	return text
}

// Gains returns the gains of all findings, in words and in their order.
func (d *Diagnosis) Gains() []string {
	all := make([]string, len(d.Findings))
	for i := range d.Findings {
		all[i] = d.Gain(&d.Findings[i])
	}
	return all
}

// MostWaits limits the calls that waited in the text of a finding.
const MostWaits = 3

// Nothing is the text for a run without a finding to list.
const Nothing = "Nothing was found whose removal alone would gain enough to be listed."

// Text writes the verdict, the warnings and the first findings for people, and says what is left out.
func (d *Diagnosis) Text(w io.Writer, shown int, left string) error {
	var s strings.Builder
	fmt.Fprintln(&s, d.Verdict())
	for _, text := range d.Warnings {
		fmt.Fprintf(&s, "warning: %s\n", text)
	}
	if shown == 0 {
		fmt.Fprintf(&s, "\n%s\n", Nothing)
	}
	for i := range d.Findings[:shown] {
		f := &d.Findings[i]
		fmt.Fprintf(&s, "\n%d. %s: gain %s\n   %s.\n", i+1, f.Rule, d.Gain(f), f.Title)
		if called := f.Called(); called != "" {
			fmt.Fprintf(&s, "   %s\n", called)
		}
		for k, wait := range f.Waits[:min(MostWaits, len(f.Waits))] {
			begin := "          "
			if k == 0 {
				begin = "   waits: "
			}
			fmt.Fprintf(&s, "%s%s\n", begin, wait.Text())
		}
		fmt.Fprintf(&s, "   %s\n", f.Advice)
	}
	s.WriteString(d.togetherText(shown))
	d.startText(&s)
	s.WriteString(d.leftOut(len(d.Findings)-shown, left))
	_, err := io.WriteString(w, s.String())
	return err
}

// mostTogether limits the causes that are left out together.
const mostTogether = 3

// simulatedFirst returns the indices of the first mostTogether findings with a simulated gain, and the index of the one
// of them that gains most.
func simulatedFirst(d *Diagnosis) (all []int, largest int) {
	for i := range d.Findings {
		if f := &d.Findings[i]; f.without != nil && f.GainNs > 0 && len(all) < mostTogether {
			if len(all) == 0 || f.GainNs > d.Findings[largest].GainNs {
				largest = i
			}
			all = append(all, i)
		}
	}
	return all, largest
}

// togetherText says what the run gains without the causes of the first findings; "" unless several are shown.
func (d *Diagnosis) togetherText(shown int) string {
	simulated, largest := simulatedFirst(d)
	switch {
	case len(simulated) < 2 || simulated[1] >= shown:
		return ""
	case d.TogetherNs <= d.Findings[largest].GainNs:
		return fmt.Sprintf("\nThe causes of the first findings share computing: without all of them the run gains no "+
			"more than without that of finding %d.\n", largest+1)
	}
	return fmt.Sprintf("\nWithout the causes of the first findings together: %s less.\n", units.Duration(d.TogetherNs))
}

// Text describes a wait: 1.71 s in MPI_Wait at uneven.c:36 (late sender, 170 calls). Where several call the function
// there, the one with most of it follows.
func (w *Wait) Text() string {
	text := fmt.Sprintf("%s in %s (%s, %s)", units.Duration(w.Ns), siteText(w.Call, w.Place), w.For,
		units.Count(w.Calls, "call"))
	if called := calledFrom(w.Function, w.Callers); called != "" {
		text += ", " + called
	}
	return text
}

func siteText(call, place string) string {
	return call + " at " + cmp.Or(place, "an unknown place")
}

// Markdown writes the verdict, the warnings and the first findings as Markdown, for a comment on a change.
func (d *Diagnosis) Markdown(w io.Writer, shown int) error {
	var s strings.Builder
	fmt.Fprintf(&s, "**%s**\n", printable.Markdown(d.Verdict()))
	for _, text := range d.Warnings {
		fmt.Fprintf(&s, "\nWarning: %s\n", printable.Markdown(text))
	}
	if shown > 0 {
		fmt.Fprintln(&s)
	}
	for i := range d.Findings[:shown] {
		f := &d.Findings[i]
		fmt.Fprintf(&s, "%d. **%s**: gain %s. %s. %s\n", i+1, f.Rule, printable.Markdown(d.Gain(f)),
			printable.Markdown(f.sentence()),
			printable.Markdown(f.Advice))
	}
	if f := d.LateStart(); f != nil {
		fmt.Fprintf(&s, "\nBefore that time, **%s**: gain at most %s. %s. %s\n", f.Rule,
			printable.Markdown(units.Duration(f.GainNs)),
			printable.Markdown(f.Title), printable.Markdown(f.Advice))
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// SARIF writes the first findings in SARIF 2.1.0: a result at the cause, with the callers and the calls that waited as
// related places. Ranks that begin MPI_Init late are a note. version is commq's.
func (d *Diagnosis) SARIF(w io.Writer, shown int, version string) error {
	log := sarif.New(version)
	for i := range d.Findings[:shown] {
		d.Findings[i].addTo(log, "warning", d.Gain(&d.Findings[i]))
	}
	if f := d.LateStart(); f != nil {
		f.addTo(log, "note", d.startGain())
	}
	return log.Write(w)
}

// addTo adds a finding to a log of SARIF, with a level and its gain in words.
func (f *Finding) addTo(log *sarif.Log, level, gain string) {
	log.Rule(string(f.Rule), f.Advice)
	result := log.Result(string(f.Rule), level, fmt.Sprintf("%s; gain %s", f.sentence(), gain))
	if file, line := fileAndLine(f.Place); line > 0 {
		result.AddLocation(sarif.Location(file, line, f.Function))
	}
	related := func(place, function, text string) {
		if file, line := fileAndLine(place); line > 0 {
			result.AddRelatedLocation(sarif.Location(file, line, function).WithMessage(sarif.Text(text)))
		}
	}
	for _, c := range f.Callers {
		related(c.Place, c.Function, "calls it: "+units.Percent(c.Share))
	}
	for k := range f.Waits {
		related(f.Waits[k].Place, "", "waits "+f.Waits[k].Text())
	}
}

// JUnit writes JUnit's XML: a case for each rule, failed if a finding of it gains at least a share of the run's time. A
// built-in rule that was not looked for is an error.
func (d *Diagnosis) JUnit(w io.Writer, least float64) error {
	s := junit.Suite{Name: "commq diagnose " + d.Run}
	found := d.Findings[:d.Shown(least, 0)]
	if f := d.Start; f != nil && d.share(f.GainNs) >= max(least, leastStart) {
		found = append(slices.Clone(found), *f)
	}
	for _, rule := range d.rules() {
		c := junit.Case{Name: string(rule), Class: "commq.diagnose", Out: strings.Join(d.Warnings, "\n")}
		var lines []string
		for i := range found {
			if found[i].Rule == rule {
				lines = append(lines, d.line(&found[i]))
			}
		}
		if len(lines) > 0 {
			c.Failure = &junit.Problem{Message: lines[0], Type: string(rule), Text: strings.Join(lines, "\n")}
		} else if why := reasonNot(d.NotLookedFor, rule); why != "" {
			c.Error = &junit.Problem{Message: "not looked for: " + why, Type: string(rule)}
		}
		s.Cases = append(s.Cases, c)
	}
	return junit.Write(w, s)
}

// reasonNot returns why a rule was not looked for; "" if it was.
func reasonNot(list []NotLookedFor, rule Rule) string {
	for _, n := range list {
		if n.Rule == rule {
			return n.Why
		}
	}
	return ""
}

// rules returns all rules, and those of findings from files.
func (d *Diagnosis) rules() []Rule {
	all := append(slices.Clone(Rules), LateStart)
	for i := range d.Findings {
		if rule := d.Findings[i].Rule; !slices.Contains(all, rule) {
			all = append(all, rule)
		}
	}
	return all
}

// line writes a finding in one line: uneven.c:32: Rank 2 computes ...; gain 735 ms (47.4 %).
func (d *Diagnosis) line(f *Finding) string {
	gain := d.Gain(f)
	if f.Rule == LateStart {
		gain = d.startGain()
	}
	text := fmt.Sprintf("%s; gain %s", f.sentence(), gain)
	if f.Place != "" {
		return f.Place + ": " + text
	}
	return text
}

// FileAndLine returns the finding's place in the source; line is 0 if it is unknown.
func (f *Finding) FileAndLine() (file string, line int) { return fileAndLine(f.Place) }

// fileAndLine splits the place of a call; line is 0 if it has none.
func fileAndLine(place string) (file string, line int) {
	if i := strings.LastIndexByte(place, ':'); i > 0 {
		if n, err := strconv.Atoi(place[i+1:]); err == nil {
			return place[:i], n
		}
	}
	return place, 0
}

// CSV writes all findings, a row each.
func (d *Diagnosis) CSV(w io.Writer) error {
	rows := [][]string{{"run", "rule", "callsite", "call", "function", "caller", "ranks", "gain_ns", "bound", "most_ns",
		"wait_ns", "title"}}
	for i := range d.Findings {
		f := &d.Findings[i]
		ranks := strings.Trim(fmt.Sprint(f.Ranks), "[]")
		caller := ""
		if len(f.Callers) > 0 {
			caller = f.Callers[0].Place
		}
		rows = append(rows, []string{d.Run, string(f.Rule), f.Place, f.Call, f.Function, caller, ranks,
			strconv.FormatInt(f.GainNs, 10),
			strconv.FormatBool(f.Bound), strconv.FormatInt(f.MostNs, 10), strconv.FormatInt(f.WaitNs, 10), f.Title})
	}
	return printable.NewCSV(w).WriteAll(rows)
}
