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
// --token-count have none. pass must begin a word (pass, db-pass, CI_PASS, dbPass) or follow the name of what it opens
// (SSHPASS), as it ends other words (bypass); name is a whole name.
const (
	words = `(?:password|passwd|passphrase|pwd|secret|token|credentials?|bearer|authorization|` +
		`(?:api|access|secret|private|auth|account)[-_]?key|(?:\b|_)` + opened + `?pass|(?-i:[a-z]Pass))`
	opened = `(?:user|admin|root|login|account|auth|key|cert|db|database|my|mysql|sql|pg|postgres|mongo|redis|ssh|ftp|` +
		`http|proxy|smtp|imap|mail|ldap|git|svc|service)`
	name = `[\w.-]*` + words
)

// Of a command line's words, named matches the names of options that have their value in the next word, valued those
// with NAME=VALUE. The parameters of a URL end at & and are left to Text.
var (
	named  = regexp.MustCompile(`(?i)` + words + `$`)
	valued = regexp.MustCompile(`(?is)^([^\s?&]*?` + words + `)=(.*)$`)
)

// setsVariable matches the options of MPICH's launcher that have the name of a variable in the next word and its value in
// the one after.
var setsVariable = regexp.MustCompile(`^--?g?env$`)

// switches matches values that turn something on or off, passes names of passes over data and of filters. counted
// matches names whose value may be a number: of tokens (--token 5), of a pass (--pass 1).
var (
	switches = regexp.MustCompile(`^(?:true|false|yes|no|none|on|off)?$`)
	passes   = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:one|two|three|n|num|multi|single|first|second|third|last|per|each|` +
		`low|high|band)[-_.]?pass\W*$`)
	counted = []struct{ name, value *regexp.Regexp }{
		{regexp.MustCompile(`(?i)token\W*$`), regexp.MustCompile(`^[0-9]{1,5}$`)},
		{regexp.MustCompile(`(?i)pass\W*$`), regexp.MustCompile(`^[0-9]{1,2}$`)},
	}
)

// forms matches keys of services by their form, JSON web tokens, and private keys.
var forms = regexp.MustCompile(`\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bgh[pousr]_[0-9A-Za-z]{36,}|` +
	`\bgithub_pat_[0-9A-Za-z_]{22,}|\bglpat-[0-9A-Za-z_-]{20,}|\bxox[abprs]-[0-9A-Za-z-]{10,}|\bhf_[0-9A-Za-z]{30,}|` +
	`\bsk-[0-9A-Za-z_-]{20,}|\beyJ[0-9A-Za-z_-]+\.eyJ[0-9A-Za-z_-]+\.[0-9A-Za-z_-]*|` +
	`(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*)`)

// userinfo matches user and password in a URL. The password ends at the last @ before a blank, as it may contain
// others. userToken matches a user without a password that is as long as a key: https://KEY@host is how services take
// one.
var (
	userinfo  = regexp.MustCompile(`([a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/@]*):\S*@`)
	userToken = regexp.MustCompile(`(?i)(https?://)[^\s:/@?#]{16,}@`)
)

// The patterns match a name and its value. A value in quotes ends at the next quote, or with the text; one without
// ends at a blank, a quote or the end of a URL's parameter.
var patterns = []*regexp.Regexp{
	// NAME=VALUE
	regexp.MustCompile(`(?i)(` + name + `\s*=\s*)(` + quoted + `|[^\s&;"']+)`),
	// "name": "value", as in JSON, also where JSON is a text of JSON
	regexp.MustCompile(`(?is)(` + name + `\\*["']\s*:\s*\\*)("(?:[^"\\]|\\.)*|'[^']*)`),
	// "name": number in JSON; errors have words after a name in quotes: unknown key "token": want ...
	regexp.MustCompile(`(?i)(` + name + `\\*["']\s*:\s*)([0-9]+)`),
	// a header of HTTP
	regexp.MustCompile(`(?i)((?:(?:^|["'-])token|authorization|api-key):\s*(?:bearer |basic )?)([^\s"']+)`),
	// --name VALUE
	regexp.MustCompile(`(?i)((?:^|\s)--?` + name + `\s+)(` + quoted + `|[^\s"'-][^\s"']*)`),
}

const quoted = `"[^"]*|'[^']*`

// compared matches a comparison in statement, SQL, which errors of a database repeat: WHERE token = rank.
var (
	compared  = regexp.MustCompile(`\s=\s+[A-Za-z_.]+[),]*$`)
	statement = regexp.MustCompile(`(?i)\b(?:select|where)\b`)
)

// Text masks secrets in a text, such as an address, a line for a shell or a message. It leaves comparisons of SQL.
func Text(s string) string {
	if statement.MatchString(s) {
		return masked(s, compared.MatchString)
	}
	return masked(s, keepNone)
}

func keepNone(string) bool { return false }

// masked masks secrets in a text, except the names with their values that keep is true of.
func masked(s string, keep func(match string) bool) string {
	s = forms.ReplaceAllString(s, Mask)
	s = userinfo.ReplaceAllString(s, "$1:"+Mask+"@")
	s = userToken.ReplaceAllString(s, "${1}"+Mask+"@")
	for _, pattern := range patterns {
		s = pattern.ReplaceAllStringFunc(s, func(match string) string {
			if keep(match) {
				return match
			}
			m := pattern.FindStringSubmatch(match)
			quote, text := "", m[2]
			if text[0] == '"' || text[0] == '\'' {
				quote, text = text[:1], text[1:]
			}
			return m[1] + quote + value(m[1], text)
		})
	}
	return s
}

// value masks the value of an option or variable whose name says that it is a secret, unless it is a switch or a count.
func value(name, text string) string {
	if switches.MatchString(text) || passes.MatchString(name) {
		return text
	}
	for _, c := range counted {
		if c.name.MatchString(name) && c.value.MatchString(text) {
			return text
		}
	}
	return Mask
}

// Args returns the words of a command line with their secrets masked, and how many words these are. Each word is known
// whole, so that blanks and quotes in a secret do not end it.
func Args(line []string) (words []string, n int) {
	words = make([]string, len(line))
	for i, word := range line {
		words[i] = masked(word, keepNone)
		if m := valued.FindStringSubmatch(word); m != nil {
			words[i] = masked(m[1], keepNone) + "=" + value(m[1], m[2])
		}
		if i > 1 && setsVariable.MatchString(line[i-2]) && named.MatchString(line[i-1]) {
			words[i] = value(line[i-1], word)
		} else if option := before(line, i); named.MatchString(option) {
			words[i] = value(option, word)
		}
		if words[i] != word {
			n++
		}
	}
	return words, n
}

// before returns the option before the i-th word, of which the word may be the value; "" if there is none.
func before(line []string, i int) string {
	if i == 0 || !strings.HasPrefix(line[i-1], "-") || strings.Contains(line[i-1], "=") ||
		strings.HasPrefix(line[i], "--") {
		return ""
	}
	return line[i-1]
}
