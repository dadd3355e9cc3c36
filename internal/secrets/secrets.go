// Package secrets finds values that look like secrets on command lines and in addresses, and masks them: runs, logs and
// reports are passed on to others. It knows by names (--password, API_TOKEN=), by the form of well-known keys, and by
// the password of a URL. What it does not know it leaves as it is, so it is a safety net and no promise.
package secrets

import (
	"regexp"
	"strings"
)

// Mask stands in place of a secret, as in net/url. A shell takes it as it is.
const Mask = "xxxxx"

// words end the names of options and variables whose value is a secret. They must come last: --password-file and
// --token-count have none.
const words = `(?:password|passwd|passphrase|pwd|secret|token|api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|` +
	`auth[-_]?key|account[-_]?key|credentials?|bearer|authorization)`

var named = regexp.MustCompile(`(?i)` + words + `$`)

// small matches values that are too short to be a secret although their name says so: --token 5.
var small = regexp.MustCompile(`^(?:[0-9]{0,5}|true|false|yes|no|on|off|none)$`)

// forms matches keys of services by their form, JSON web tokens, and private keys.
var forms = regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[0-9A-Za-z]{36,}|\bgithub_pat_[0-9A-Za-z_]{22,}|\bglpat-[0-9A-Za-z_-]{20,}|` +
	`\bxox[abprs]-[0-9A-Za-z-]{10,}|\bhf_[0-9A-Za-z]{30,}|\bsk-[0-9A-Za-z_-]{20,}|\beyJ[0-9A-Za-z_-]+\.eyJ[0-9A-Za-z_-]+\.[0-9A-Za-z_-]*|` +
	`(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*)`)

// userinfo matches user and password in a URL. The password ends at the last @ before a blank, as it may contain
// others.
var userinfo = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@]*):\S*@`)

// assigned matches NAME=VALUE, the value up to a blank, a quote or the end of a URL's parameter; header the same of a
// header of HTTP; option matches --name VALUE.
var (
	assigned = regexp.MustCompile(`(?i)(` + words + `\s*=\s*)([^\s&;"']+)`)
	header   = regexp.MustCompile(`(?i)((?:authorization|token|api-key):\s*(?:bearer |basic )?)([^\s"']+)`)
	option   = regexp.MustCompile(`(?i)((?:^|\s)--?[a-z0-9_.-]*` + words + `\s+)([^\s"'-][^\s"']*)`)
)

// Text masks secrets in a text, such as an address, a line for a shell or a message.
func Text(s string) string {
	s = forms.ReplaceAllString(s, Mask)
	s = userinfo.ReplaceAllString(s, "$1:"+Mask+"@")
	for _, pattern := range []*regexp.Regexp{assigned, header, option} {
		s = pattern.ReplaceAllStringFunc(s, func(match string) string {
			m := pattern.FindStringSubmatch(match)
			return m[1] + value(m[2])
		})
	}
	return s
}

// value masks the value of an option or variable whose name says that it is a secret, unless it is too small.
func value(text string) string {
	if small.MatchString(text) {
		return text
	}
	return Mask
}

// Args returns the words of a command line with their secrets masked, and how many words these are.
func Args(line []string) (masked []string, n int) {
	masked = make([]string, len(line))
	for i, word := range line {
		masked[i] = Text(word)
		if named.MatchString(before(line, i)) {
			masked[i] = value(word)
		}
		if masked[i] != word {
			n++
		}
	}
	return masked, n
}

// before returns the option before the i-th word, of which the word may be the value; "" if there is none.
func before(line []string, i int) string {
	if i == 0 || !strings.HasPrefix(line[i-1], "-") || strings.Contains(line[i-1], "=") ||
		strings.HasPrefix(line[i], "--") {
		return ""
	}
	return line[i-1]
}
