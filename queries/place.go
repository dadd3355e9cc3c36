package queries

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// place is a line of a file.
type place struct {
	file string
	line int
}

// in says a place in a message about a file: the line alone where it is of that file.
func (p place) in(file string) string {
	if p.file == file {
		return fmt.Sprintf("line %d", p.line)
	}
	return fmt.Sprintf("%s, line %d", p.file, p.line)
}

// source is text that remembers, for each of its lines, where it comes from.
type source struct {
	text   string
	places []place
}

// sourceOf is the text of a file from a line on, without blanks around it.
func sourceOf(file string, line int, text string) source {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	line += strings.Count(text[:len(text)-len(trimmed)], "\n")
	s := source{text: strings.TrimRight(trimmed, " \t\r\n")}
	for n := range strings.Count(s.text, "\n") + 1 {
		s.places = append(s.places, place{file, line + n})
	}
	return s
}

// replace puts the source that with gives in the place of each {{use}}. One without places is where the use was. The first
// error ends it.
func (s source) replace(with func(use string, at place) (source, error)) (source, error) {
	var out []string
	var places []place
	for i, line := range strings.Split(s.text, "\n") {
		out, places = append(out, ""), append(places, s.places[i])
		end := 0
		for _, m := range useRe.FindAllStringIndex(line, -1) {
			last := len(out) - 1
			out[last] += line[end:m[0]]
			end = m[1]
			put, err := with(line[m[0]+2:m[1]-2], s.places[i])
			if err != nil {
				return source{}, err
			}
			for j, part := range strings.Split(put.text, "\n") {
				at := s.places[i]
				if put.places != nil {
					at = put.places[j]
				}
				switch {
				case j > 0:
					out, places = append(out, part), append(places, at)
				case strings.TrimSpace(out[last]) == "":
					out[last], places[last] = out[last]+part, at
				default:
					out[last] += part
				}
			}
		}
		out[len(out)-1] += line[end:]
	}
	return source{strings.Join(out, "\n"), places}, nil
}

// expand puts included text in place, and what that includes; within are the files that this text is included from.
func (s source) expand(include func(string) (source, error), within []string) (source, error) {
	return s.replace(func(use string, at place) (source, error) {
		name, ok := strings.CutPrefix(use, "include ")
		if !ok {
			return source{text: "{{" + use + "}}"}, nil
		}
		line := at.in(at.file)
		if within != nil { // the message begins with the name of the query's own file
			line = at.in("")
		}
		if slices.Contains(within, name) {
			return source{}, fmt.Errorf("%s: include %q includes itself", line, name)
		}
		text, err := include(name)
		if err == nil {
			return text.expand(include, append(slices.Clone(within), name))
		}
		return source{}, fmt.Errorf("%s: %w", line, err)
	})
}

// located makes an error of the engine about the text one about the file that the text comes from: it says the file and the
// line, and counts lines as the file does.
func (s source) located(err error) error {
	m := engineLine.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	n, bad := strconv.Atoi(m[1])
	if bad != nil || n < 1 || n > len(s.places) {
		return err
	}
	at := s.places[n-1]
	before, after, _ := strings.Cut(err.Error(), "LINE "+m[1]+":")
	line := "LINE " + strconv.Itoa(at.line) + ":"
	if text, mark, ok := strings.Cut(after, "\n"); ok { // the mark under the text moves with it
		shift := len(strconv.Itoa(at.line)) - len(m[1])
		for ; shift > 0; shift-- {
			mark = " " + mark
		}
		for ; shift < 0 && strings.HasPrefix(mark, " "); shift++ {
			mark = mark[1:]
		}
		after = text + "\n" + mark
	}
	return locatedError{fmt.Sprintf("%s, line %d: %s%s%s", at.file, at.line, before, line, after), err}
}

type locatedError struct {
	text  string
	cause error
}

func (e locatedError) Error() string { return e.text }
func (e locatedError) Unwrap() error { return e.cause }
