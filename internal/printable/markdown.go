package printable

import "strings"

// Markdown escapes what Markdown reads as more than text: emphasis, code, HTML, links, cells, and addresses that GitHub
// makes links (https://x, www.x). It is one line.
func Markdown(s string) string { return literal.Replace(Line(s)) }

var literal = strings.NewReplacer("\\", `\\`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "|", `\|`, "~", `\~`,
	"](", `]\(`, "://", `\://`, "www.", `www\.`, "WWW.", `WWW\.`)
