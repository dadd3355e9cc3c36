// Package sarif writes findings in SARIF 2.1.0, which tools for code review read.
package sarif

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/commq/commq/internal/printable"
)

// Log is what commq found in one go.
type Log struct{ run *sarif.Run }

// New returns a log of commq with this version.
func New(version string) *Log {
	run := sarif.NewRunWithInformationURI("commq", "https://github.com/commq/commq")
	run.Tool.Driver.WithVersion(version)
	return &Log{run}
}

// Rule adds a rule, whether anything breaks it or not.
func (l *Log) Rule(id, description string) { l.run.AddRule(id).WithDescription(description) }

// Result adds a finding of a rule, with a level of SARIF (error, warning, note) and a text.
func (l *Log) Result(rule, level, text string) *sarif.Result {
	return l.run.CreateResultForRule(rule).WithLevel(level).WithMessage(Text(text))
}

// Write writes the log, without the fields whose value is what SARIF takes for a missing one.
func (l *Log) Write(w io.Writer) error {
	report := sarif.NewReport()
	report.AddRun(l.run)
	var text bytes.Buffer
	if err := report.Write(&text); err != nil {
		return err
	}
	d := json.NewDecoder(&text)
	d.UseNumber()
	var log any
	if err := d.Decode(&log); err != nil {
		return err
	}
	leaveOutEmpty(log)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(log)
}

// leaveOutEmpty removes the fields of objects that are empty lists, empty objects or -1. Those of properties are
// commq's own, and a run without results has an empty list of them: without one nothing was looked for.
func leaveOutEmpty(value any) {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			leaveOutEmpty(element)
		}
	case map[string]any:
		for name, field := range v {
			if name != "properties" {
				leaveOutEmpty(field)
			}
			if name != "results" && isEmpty(field) {
				delete(v, name)
			}
		}
	}
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return value == json.Number("-1")
}

// Location is a place in a source file. A line of 0 is not known; a function may be "".
func Location(file string, line int, function string) *sarif.Location {
	uri := url.URL{Path: filepath.ToSlash(file)}
	if filepath.IsAbs(file) {
		uri.Scheme = "file"
	}
	place := sarif.NewPhysicalLocation().WithArtifactLocation(sarif.NewSimpleArtifactLocation(uri.String()))
	if line > 0 {
		place.WithRegion(sarif.NewRegion().WithStartLine(line))
	}
	l := sarif.NewLocationWithPhysicalLocation(place)
	if function != "" {
		l.AddLogicalLocation(sarif.NewLogicalLocation().WithName(function))
	}
	return l
}

// Text is a message that shows s: invisible characters are escaped, and what viewers would make a link of,
// [text](address), stays text.
func Text(s string) *sarif.Message {
	return sarif.NewTextMessage(strings.ReplaceAll(printable.Text(s), "](", `\](`))
}
