package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/predict/signature"
)

// FileVersion is the version of the format of model files.
const FileVersion = 1

// file is a model file: the signatures of the runs, from which the laws are found again, and the laws for people.
type file struct {
	Version  int                    `json:"commq_models"`
	Laws     []PrintedLaw           `json:"laws"`
	Training []*signature.Signature `json:"training"`
}

// PrintedLaw is a law of destinations for people.
type PrintedLaw struct {
	// Communication names an event of the template and the question that the law answers: who makes the call (in), to
	// whom ranks send (to), from whom they receive (from), which communicator they use (comm).
	Communication string `json:"communication"`
	// Law is the law as a formula.
	Law string `json:"law"`
	// Forms is the number of laws that fit all runs and are about as simple.
	Forms int `json:"forms"`
}

// Laws returns the laws of destinations. Calls that do the same share one.
func (m *Model) Laws() (all []PrintedLaw) {
	for i := range m.Pattern.Laws {
		if l := &m.Pattern.Laws[i]; len(l.Forms) > 0 {
			all = append(all, PrintedLaw{l.Site, l.Forms[0].String(), len(l.Forms)})
		}
	}
	return all
}

// Write writes the model as JSON, with a line for each law and run, so that files can be compared.
func (m *Model) Write(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\"commq_models\":%d,\n\"laws\":", FileVersion)
	if err := writeList(&b, m.Laws()); err != nil {
		return err
	}
	b.WriteString(",\n\"training\":")
	if err := writeList(&b, m.Joint.Runs); err != nil {
		return err
	}
	b.WriteString("}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// writeList writes a list with one item per line.
func writeList[T any](b *bytes.Buffer, items []T) error {
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

// Read reads a file that Write wrote: the signatures of the runs, from which New makes the model again, and the laws as
// they are in the file. The error tells what is wrong with the file, and where.
func Read(r io.Reader) (runs []*signature.Signature, laws []PrintedLaw, err error) {
	text, err := bounded.ReadAll(r, bounded.TextBytes)
	if err != nil {
		return nil, nil, err
	}
	var version struct {
		Version *int `json:"commq_models"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, nil, fmt.Errorf("not models of commq fit: %w; want a file that commq fit --run ... -o wrote",
			locate(text, err, int64(len(text))))
	}
	switch {
	case version.Version == nil:
		return nil, nil, errors.New("not models of commq fit: it has no commq_models; want a file that commq fit --run ... -o wrote")
	case *version.Version != FileVersion:
		return nil, nil, fmt.Errorf("commq_models %d: this commq reads %d; make the file again with commq fit",
			*version.Version, FileVersion)
	}
	var f file
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, nil, fmt.Errorf("models: %w", locate(text, err, dec.InputOffset()))
	}
	for i, s := range f.Training {
		if s == nil {
			return nil, nil, fmt.Errorf("models: run %d of %d is missing", i+1, len(f.Training))
		}
		if err := s.Check(); err != nil {
			return nil, nil, fmt.Errorf("models: run %d of %d, %q: %w", i+1, len(f.Training), s.Run, err)
		}
	}
	return f.Training, f.Laws, nil
}

// locate adds line and column to an error of reading JSON. offset is used if the error has none.
func locate(text []byte, err error, offset int64) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	default: // the error for an unknown field has no offset
		if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
			offset = int64(max(0, bytes.Index(text, []byte(name+":"))))
		}
	}
	before := text[:max(0, min(offset, int64(len(text))))]
	line := 1 + bytes.Count(before, []byte{'\n'})
	return fmt.Errorf("line %d, column %d: %w", line, len(before)-bytes.LastIndexByte(before, '\n'), err)
}
