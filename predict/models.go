package predict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// ModelsVersion is the version of files of models as they are written.
const ModelsVersion = 1

// models is a file of models: the signatures of the runs, from which the laws are found again, and the laws for people.
type models struct {
	Version  int          `json:"commq_models"`
	Laws     []PrintedLaw `json:"laws"`
	Training []*Signature `json:"training"`
}

// PrintedLaw is a law of destinations as people read it.
type PrintedLaw struct {
	// Communication names calls of the template, and what is said of them: who takes part (in), whom they send to (to), receive from (from), which
	// communicator they are on (comm).
	Communication string `json:"communication"`
	Law           string `json:"law"`
	// Forms is how many laws have all runs and are about as simple.
	Forms int `json:"forms"`
}

// Laws are the laws of destinations, those of calls that do the same once.
func (m *Model) Laws() (all []PrintedLaw) {
	for i := range m.Pattern.Laws {
		if l := &m.Pattern.Laws[i]; len(l.Forms) > 0 {
			all = append(all, PrintedLaw{l.Site, l.Forms[0].String(), len(l.Forms)})
		}
	}
	return all
}

// Runs are the signatures of the runs that the model is of, by number of ranks.
func (m *Model) Runs() []*Signature { return m.t.runs }

// Write writes the model as JSON: a line for each run, so that two files can be compared.
func (m *Model) Write(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"commq_models\":%d,\n\"laws\":", ModelsVersion)
	if err := list(&b, m.Laws()); err != nil {
		return err
	}
	b.WriteString(",\n\"training\":")
	if err := list(&b, m.t.runs); err != nil {
		return err
	}
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// list writes a list, an item a line.
func list[T any](b *bytes.Buffer, items []T) error {
	b.WriteByte('[')
	for i := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		text, err := json.Marshal(items[i])
		if err != nil {
			return err
		}
		b.WriteByte('\n')
		b.Write(text)
	}
	b.WriteByte(']')
	return nil
}

// ReadModels reads a file that Write wrote: the signatures of the runs, which NewModel makes the model of again, and the laws as they are in the file.
// The error says what is wrong with it, and where.
func ReadModels(r io.Reader) (runs []*Signature, laws []PrintedLaw, err error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, nil, err
	}
	var version struct {
		Version *int `json:"commq_models"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, nil, fmt.Errorf("not models of commq fit: %w", at(text, err, int64(len(text))))
	}
	switch {
	case version.Version == nil:
		return nil, nil, errors.New("not models of commq fit: it has no commq_models")
	case *version.Version != ModelsVersion:
		return nil, nil, fmt.Errorf("commq_models %d: this commq reads %d; make the file again with commq fit", *version.Version, ModelsVersion)
	}
	var m models
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return nil, nil, fmt.Errorf("models: %w", at(text, err, dec.InputOffset()))
	}
	for i, s := range m.Training {
		if s == nil {
			return nil, nil, fmt.Errorf("models: run %d of %d is missing", i+1, len(m.Training))
		}
		if err := s.check(); err != nil {
			return nil, nil, fmt.Errorf("models: run %d of %d, %q: %w", i+1, len(m.Training), s.Run, err)
		}
	}
	return m.Training, m.Laws, nil
}

// at is an error of reading JSON with its line and column; where it does not say, that of the offset.
func at(text []byte, err error, offset int64) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	default: // an unknown field, whose error says no place
		if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			offset = int64(max(0, bytes.Index(text, []byte(name+":"))))
		}
	}
	before := text[:max(0, min(offset, int64(len(text))))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	return fmt.Errorf("line %d, column %d: %w", line, len(before)-bytes.LastIndexByte(before, '\n'), err)
}
