package printable

import "strings"

// Markdown escapes what Markdown reads as more than text.
func Markdown(s string) string { return literal.Replace(s) }

var literal = strings.NewReplacer("\\", "\\\\", "*", "\\*", "_", "\\_", "`", "\\`", "<", "&lt;", "|", "\\|")
