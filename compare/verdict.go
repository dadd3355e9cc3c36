package compare

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/commq/commq/internal/junit"
	"github.com/commq/commq/internal/printable"
	"github.com/commq/commq/internal/sarif"
)

// VerdictFormats lists the formats of a verdict.
func VerdictFormats() []string {
	return []string{"text", "markdown", "json", "junit", "sarif", "github"}
}

// Write writes the verdict in a format. tool is commq's version.
func (v *Verdict) Write(w io.Writer, format, tool string) error {
	switch format {
	case "text":
		return v.text(w)
	case "markdown":
		return v.markdown(w)
	case "json":
		return v.json(w)
	case "junit":
		return v.junit(w)
	case "sarif":
		return v.sarif(w, tool)
	case "github":
		return v.github(w)
	}
	return fmt.Errorf("format %q: want one of %s", format, strings.Join(VerdictFormats(), ", "))
}

// count returns the number of rules with a status.
func (v *Verdict) count(status string) (n int) {
	for i := range v.Results {
		if v.Results[i].Status == status {
			n++
		}
	}
	return n
}

// summary returns the verdict in one line.
func (v *Verdict) summary() string {
	text := fmt.Sprintf("%s passed, %d failed", plural(int64(v.count(Passed)), "rule"), v.count(Failed))
	if n := v.count(Undecided); n > 0 {
		text += fmt.Sprintf(", %d undecided", n)
	}
	return text + fmt.Sprintf(" (%s, %s)", v.Rules, plural(int64(len(v.Runs)), "run"))
}

// place returns the place of a finding; empty if unknown.
func (f *Finding) place() string {
	switch {
	case f.File == "":
		return ""
	case f.Line == 0:
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

func (v *Verdict) text(w io.Writer) error {
	var b strings.Builder
	for i := range v.Results {
		r := &v.Results[i]
		fmt.Fprintf(&b, "%-9s  %s\n", r.Status, printable.Line(r.Rule))
		for k := range r.Findings {
			f := &r.Findings[k]
			b.WriteString("           ")
			if at := f.place(); at != "" {
				b.WriteString(printable.Line(at) + ": ")
			}
			b.WriteString(printable.Line(f.Message) + "\n")
		}
		for _, note := range r.Notes {
			b.WriteString("           " + printable.Line(note) + "\n")
		}
	}
	b.WriteString(printable.Line(v.summary()) + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// mostMarkdown is the number of bytes of a verdict in Markdown: GitHub refuses comments of more than 65,536 characters.
const mostMarkdown = 60_000

// inTurn calls each with the first finding of each result, then with the second ones, and so on: who reads only the
// beginning sees something of all.
func (v *Verdict) inTurn(each func(result int, f *Finding)) {
	for k, more := 0, true; more; k++ {
		more = false
		for i := range v.Results {
			if k < len(v.Results[i].Findings) {
				each(i, &v.Results[i].Findings[k])
				more = true
			}
		}
	}
}

// cells returns the findings and notes of each result in Markdown, as many as room bytes hold, findings before notes,
// and how many were left out.
func (v *Verdict) cells(room int) [][]string {
	cells, left := make([][]string, len(v.Results)), make([]int, len(v.Results))
	add := func(i int, text string) {
		if room -= len(text) + len("<br>"); room < 0 {
			left[i]++
			return
		}
		cells[i] = append(cells[i], text)
	}
	v.inTurn(func(i int, f *Finding) {
		text := escape(f.Message)
		if at := f.place(); at != "" {
			text = "`" + strings.ReplaceAll(printable.Line(at), "`", "'") + "` " + text
		}
		add(i, text)
	})
	for i := range v.Results {
		for _, note := range v.Results[i].Notes {
			add(i, escape(note))
		}
		if left[i] > 0 {
			cells[i] = append(cells[i], fmt.Sprintf("... %d more: commq check prints them all", left[i]))
		}
	}
	return cells
}

func (v *Verdict) markdown(w io.Writer) error {
	var b strings.Builder
	head := map[string]string{Passed: "Communication as before", Failed: "Communication has changed",
		Undecided: "Communication could not be checked"}[v.Status()]
	fmt.Fprintf(&b, "### %s\n\n%s\n", head, escape(v.summary()))
	g := &grid{words: true}
	g.add("rule", "verdict", "what")
	room := mostMarkdown - b.Len()
	for i := range v.Results {
		room -= len(escape(v.Results[i].Rule)) + 80 // its verdict, and how many findings are left out
	}
	for i, what := range v.cells(room) {
		r := &v.Results[i]
		status := r.Status
		if status != Passed {
			status = "**" + status + "**"
		}
		g.add(escape(r.Rule), status, strings.Join(what, "<br>"))
	}
	b.WriteString("\n" + g.raw())
	_, err := io.WriteString(w, b.String())
	return err
}

func (v *Verdict) json(w io.Writer) error {
	for i := range v.Results { // lists without members are [], not null
		r := &v.Results[i]
		r.Findings, r.Notes = append([]Finding{}, r.Findings...), append([]string{}, r.Notes...)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(PrintedVerdict{v.Status(), v})
}

// PrintedVerdict is a verdict as JSON.
type PrintedVerdict struct {
	// Outcome is passed, failed or undecided: undecided if a rule is, else failed if one failed.
	Outcome string `json:"status"`
	*Verdict
}

// junit writes JUnit's XML: a suite for the file of rules, a case for each rule. A failed rule is a failure, an
// undecided one an error.
func (v *Verdict) junit(w io.Writer) error {
	s := junit.Suite{Name: "commq check " + v.Rules}
	for i := range v.Results {
		r := &v.Results[i]
		c := junit.Case{Name: r.Rule, Class: "commq." + r.Kind, Out: strings.Join(r.Notes, "\n")}
		var lines []string
		for k := range r.Findings {
			line := r.Findings[k].Message
			if at := r.Findings[k].place(); at != "" {
				line = at + ": " + line
			}
			lines = append(lines, line)
		}
		p := &junit.Problem{Type: r.Kind, Text: strings.Join(lines, "\n")}
		if len(r.Findings) > 0 {
			p.Message = r.Findings[0].Message
		}
		switch r.Status {
		case Failed:
			c.Failure = p
		case Undecided:
			c.Error = p
		}
		s.Cases = append(s.Cases, c)
	}
	return junit.Write(w, s)
}

// sarif writes SARIF 2.1.0: a rule for each rule, a result for each finding. A finding without a place gets the
// rule's line.
func (v *Verdict) sarif(w io.Writer, version string) error {
	log := sarif.New(version)
	for i := range v.Results {
		r := &v.Results[i]
		id := r.Kind + "/" + r.Rule
		log.Rule(id, r.Rule)
		for k := range r.Findings {
			f := &r.Findings[k]
			file, line, text := f.File, int(f.Line), f.Message
			if file == "" {
				file, line = v.Rules, r.Line
			}
			if r.Status == Undecided {
				text = "undecided: " + text
			}
			log.Result(id, "error", text).AddLocation(sarif.Location(file, line, ""))
		}
	}
	return log.Write(w)
}

// github writes workflow commands, which GitHub shows beside the changed lines.
func (v *Verdict) github(w io.Writer) error {
	var b strings.Builder
	v.inTurn(func(i int, f *Finding) { // it shows ten errors of a step
		r := &v.Results[i]
		file, line := f.File, int(f.Line)
		if file == "" {
			file, line = v.Rules, r.Line
		}
		fmt.Fprintf(&b, "::error file=%s,line=%d,title=%s::%s\n", printable.CommandProperty(file), max(line, 1),
			printable.CommandProperty("commq check: "+r.Rule+" ("+r.Status+")"), printable.Command(f.Message))
	})
	for i := range v.Results {
		r := &v.Results[i]
		for _, note := range r.Notes {
			if r.Status == Passed && strings.HasSuffix(note, "keeps it") {
				fmt.Fprintf(&b, "::notice title=%s::%s\n", printable.CommandProperty("commq check: "+r.Rule),
					printable.Command(note))
			}
		}
	}
	fmt.Fprintf(&b, "::notice title=commq check::%s\n", printable.Command(v.summary()))
	_, err := io.WriteString(w, b.String())
	return err
}
