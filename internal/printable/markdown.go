package printable

import (
	"regexp"
	"strings"
)

// Markdown escapes what Markdown reads as more than text: emphasis, code, HTML, links, cells. It is one line.
func Markdown(s string) string { return linked.ReplaceAllString(literal.Replace(Line(s)), `]\(`) }

var literal = strings.NewReplacer("\\", "\\\\", "*", "\\*", "_", "\\_", "`", "\\`", "<", "&lt;", "|", "\\|", "~", "\\~")

// linked matches the middle of a link or an image, [text](address).
var linked = regexp.MustCompile(`\]\(`)
