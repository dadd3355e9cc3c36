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

// describe names the place in a message about file: just the line if it is in that file.
func (p place) describe(file string) string {
	if p.file == file {
		return fmt.Sprintf("line %d", p.line)
	}
	return fmt.Sprintf("%s, line %d", p.file, p.line)
}

// source is text that remembers which file and line each of its lines came from.
type source struct {
	text   string
	places []place
}

// sourceOf returns a file's text from a line on, without surrounding blanks.
func sourceOf(file string, line int, text string) source {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	line += strings.Count(text[:len(text)-len(trimmed)], "\n")
	s := source{text: strings.TrimRight(trimmed, " \t\r\n")}
	for n := range strings.Count(s.text, "\n") + 1 {
		s.places = append(s.places, place{file, line + n})
	}
	return s
}

// sourceLines is a source that grows by lines.
type sourceLines struct {
	lines  []string
	places []place
}

// add adds a line.
func (l *sourceLines) add(line string, at place) {
	l.lines, l.places = append(l.lines, line), append(l.places, at)
}

// addAll adds the lines of another source.
func (l *sourceLines) addAll(more sourceLines) {
	l.lines, l.places = append(l.lines, more.lines...), append(l.places, more.places...)
}

// source returns the lines as one text.
func (l *sourceLines) source() source { return source{strings.Join(l.lines, "\n"), l.places} }

// replace substitutes each {{use}} by the source that with returns. A source without places gets that of the use. It
// stops at the first error.
func (s source) replace(with func(use string, at place) (source, error)) (source, error) {
	var out []string
	var places []place
	for i, line := range strings.Split(s.text, "\n") {
		out, places = append(out, ""), append(places, s.places[i])
		end := 0
		for _, m := range usesIn(line) {
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

// usesIn returns where each {{use}} of a line begins and ends.
func usesIn(line string) [][]int {
	if !strings.Contains(line, "{{") {
		return nil // most lines; the expression takes much longer to say so
	}
	return useRe.FindAllStringIndex(line, -1)
}

// expand inserts included files, recursively; within lists the files being included, to detect cycles.
func (s source) expand(include func(string) (source, error), within []string) (source, error) {
	return s.replace(func(use string, at place) (source, error) {
		name, ok := strings.CutPrefix(use, "include ")
		if !ok {
			return source{text: "{{" + use + "}}"}, nil
		}
		line := at.describe(at.file)
		if within != nil { // the message begins with the name of the query's own file
			line = at.describe("")
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

// located rewrites an engine error about the text to name the file and line that the text came from.
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
