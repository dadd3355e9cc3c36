package paraver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/schema"
)

// labels are the names that the files beside a trace give.
type labels struct {
	types  map[int64]string           // of types of events
	values map[int64]map[int64]string // by type of events; types that are declared together share theirs
	nodes  []string
	// lacks are the endings of the files that are not there.
	lacks []string
}

// readLabels reads the .pcf and the .row of a trace. Either may be missing.
func readLabels(trace string) (*labels, error) {
	l := newLabels()
	for _, f := range []struct {
		ending string
		read   func(in *lines) error
	}{{".pcf", l.configuration}, {".row", l.rows}} {
		in, err := openBeside(trimEndings(trace) + f.ending)
		if errors.Is(err, fs.ErrNotExist) {
			l.lacks = append(l.lacks, f.ending)
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := errors.Join(f.read(in), in.close()); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// openBeside opens a file beside a trace, which nobody named: a pipe or a device is an error.
func openBeside(path string) (*lines, error) {
	f, size, err := bounded.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	return linesOf(path, f, size)
}

func newLabels() *labels {
	return &labels{types: map[int64]string{}, values: map[int64]map[int64]string{}}
}

// Sections of a .pcf.
const (
	sectionOther = iota
	sectionTypes
	sectionValues
)

// configuration reads a .pcf: types of events after EVENT_TYPE, and their values after VALUES.
func (l *labels) configuration(in *lines) error {
	in.most, in.text = mostText, true
	section := sectionOther
	var together map[int64]string // the values of the types that were declared last
	for {
		line, err := textLine(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch line {
		case "":
			section = sectionOther
			continue
		case "EVENT_TYPE":
			section, together = sectionTypes, map[int64]string{}
			continue
		case "VALUES":
			section = sectionValues
			continue
		}
		first, rest, _ := strings.Cut(line, " ")
		number, err := strconv.ParseInt(first, 10, 64)
		switch rest = strings.TrimSpace(rest); {
		case section == sectionOther:
		case err != nil:
			return in.bad("%q begins with no number; want a number and a name", head([]byte(line)))
		case section == sectionTypes:
			text, name, _ := strings.Cut(rest, " ")
			if number, err = strconv.ParseInt(text, 10, 64); err != nil {
				return in.bad("%q has no type of events; want COLOUR TYPE NAME", head([]byte(line)))
			}
			l.types[number], l.values[number] = strings.TrimSpace(name), together
		case together != nil:
			together[number] = rest
		}
	}
}

// textLine returns the next line without space around it.
func textLine(in *lines) (string, error) {
	line, err := in.next()
	return string(bytes.TrimSpace(line)), err
}

// rows reads the names of the nodes in a .row.
func (l *labels) rows(in *lines) error {
	in.most, in.text = mostText, true
	left := int64(0)
	for {
		line, err := textLine(in)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if text, ok := strings.CutPrefix(line, "LEVEL NODE SIZE "); ok {
			if left, err = strconv.ParseInt(text, 10, 32); err != nil || left < 0 {
				return in.bad("%q is no number of nodes", text)
			}
			continue
		}
		if strings.HasPrefix(line, "LEVEL ") {
			left = 0
		}
		if left > 0 {
			l.nodes = append(l.nodes, line)
			left--
		}
	}
}

// node returns the name of a node, counted from 1.
func (l *labels) node(n int64) string {
	if n >= 1 && n <= int64(len(l.nodes)) && l.nodes[n-1] != "" {
		return l.nodes[n-1]
	}
	return fmt.Sprintf("node%d", n)
}

// value returns the name of a value of events; without one, the value as text, so that different ones stay apart.
func (l *labels) value(typ, value int64) string {
	if name, ok := l.values[typ][value]; ok {
		return name
	}
	return strconv.FormatInt(value, 10)
}

// typeName describes a type of events for a list.
func (l *labels) typeName(typ int64) string {
	if name := l.types[typ]; name != "" {
		return fmt.Sprintf("%d (%s)", typ, name)
	}
	return strconv.FormatInt(typ, 10)
}

// settledNumbers is the highest number of a call that means the same in all versions of Extrae. Higher ones differ, and
// the .pcf has them.
const settledNumbers = 193

// isCall reports whether events of a type are calls of MPI.
func (l *labels) isCall(typ int64) bool {
	return typ >= typePointToPoint && typ <= typeIO || typ == typeUnnumbered && l.types[typ] == unnumberedName
}

// call returns the call that an event begins; false for one that is not known.
func (l *labels) call(typ, value int64) (schema.CallID, bool) {
	if typ != typeUnnumbered && value >= 1 && value <= settledNumbers {
		return schema.CallByName("MPI_" + numbered[value-1])
	}
	return schema.CallByName(l.values[typ][value])
}
