package printable

import (
	"regexp"
	"strings"
)

// marked matches what logs of continuous integration take for a command anywhere in a line: ##[add-mask] of GitHub,
// ##vso[task.setvariable] of Azure, ##teamcity[...].
var marked = regexp.MustCompile(`##([A-Za-z]*)\[`)

// leading matches the begin of a line that GitHub takes for a command: ::add-mask::x, after blanks too.
var leading = regexp.MustCompile(`(?m)^([ \t]*):(:)`)

// neutral takes from a text what a log of continuous integration would obey.
func neutral(s string) string {
	if strings.Contains(s, "##") {
		s = marked.ReplaceAllString(s, `\x23#$1[`)
	}
	if strings.Contains(s, "::") {
		s = leading.ReplaceAllString(s, `$1\x3a$2`)
	}
	return s
}

// Command returns the text of a workflow command of GitHub (::error::TEXT) that shows s.
func Command(s string) string { return commandText.Replace(s) }

// CommandProperty returns the value of a property of a workflow command (::error file=VALUE::).
func CommandProperty(s string) string { return commandValue.Replace(s) }

var (
	commandText  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	commandValue = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)
