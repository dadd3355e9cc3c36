package model

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/commq/commq/internal/bounded"
	"github.com/commq/commq/predict/model/compute"
	"github.com/commq/commq/predict/model/law"
	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
)

// FileVersion is the version of the format of model files.
const FileVersion = 8

// file is a model file: the signatures of the runs, and the laws that were found in them.
type file struct {
	Version int `json:"commq_models"`
	// Digest is the SHA-256 of what follows the first line, hexadecimal: only what commq fit wrote is read.
	Digest string `json:"digest"`
	// Laws are the laws of destinations for people.
	Laws []PrintedLaw `json:"laws"`
	// Pattern has the laws of destinations.
	Pattern *pattern.Program `json:"pattern"`
	// Numbers are the laws of numbers. Sites and Loops, by node, refer to them by index.
	Numbers []*law.Law   `json:"numbers"`
	Sites   []storedSite `json:"sites"`
	Loops   []int        `json:"loops"`
	// Times are the laws of compute times.
	Times    *compute.Laws          `json:"times"`
	Warnings []string               `json:"warnings"`
	Training []*signature.Signature `json:"training"`
}

// storedSite has the laws of a site's numbers as indexes in a file's Numbers; noLaw is none.
type storedSite struct {
	Event int32  `json:"event"`
	Send  [3]int `json:"send"` // tag, count, bytes
	Recv  [3]int `json:"recv"`
	Root  int    `json:"root"`
}

const noLaw = -1

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

// questions has, by the word in the name of a communication, what its law says of the call.
var questions = map[string]string{"in": "is called by", "to": "sends to", "from": "receives from", "comm": "is among"}

// TextOf describes a communication of m, such as "6 from", or a slot of it, such as "6 from [0]", for people: MPI_Irecv
// in exchange (6) receives from.
func TextOf(m *Model, communication string) string {
	words := strings.Fields(communication)
	for _, s := range m.Sites {
		if len(words) > 1 && fmt.Sprint(s.Event.ID) == words[0] {
			return m.NodeName(s.Event) + " " + cmp.Or(questions[words[1]], words[1])
		}
	}
	return communication
}

// PrintedGrid is a process grid of a program for people.
type PrintedGrid struct {
	// Runs are its extents in the runs.
	Runs []pattern.GridOn `json:"runs"`
	// Laws are the laws of extents that give these.
	Laws []string `json:"laws"`
	// Differ are the different extents by these laws at the smallest number of ranks above those of the runs at which
	// they differ: a run there would rule out some. It is absent if there is none up to 16 times as many ranks.
	Differ []pattern.GridOn `json:"differ,omitempty"`
}

// Grids returns the process grids of the program besides the line of all ranks.
func (m *Model) Grids() []PrintedGrid {
	all := []PrintedGrid{}
	sizes := m.Pattern.Sizes
	for _, laws := range m.Pattern.Grids {
		g := PrintedGrid{Differ: pattern.FirstDifference(laws, sizes[len(sizes)-1])}
		for _, ranks := range sizes {
			if dims, ok := laws[0].Dims(ranks); ok {
				g.Runs = append(g.Runs, pattern.GridOn{Ranks: ranks, Extents: dims})
			}
		}
		for _, law := range laws {
			g.Laws = append(g.Laws, law.String())
		}
		all = append(all, g)
	}
	return all
}

// String formats the grid in the runs, and its laws where they differ.
func (g PrintedGrid) String() string {
	on := func(x pattern.GridOn) string { return fmt.Sprintf("%s on %d", x, x.Ranks) }
	text := "grid " + joined(g.Runs, ", ", on) + " ranks"
	if len(g.Differ) > 0 {
		text += fmt.Sprintf("; of the %d laws that give these a run on %d would rule out some: ", len(g.Laws),
			g.Differ[0].Ranks) + joined(g.Differ, " or ", pattern.GridOn.String)
	}
	return text
}

// joined formats items and joins the texts.
func joined[T any](items []T, separator string, format func(T) string) string {
	texts := make([]string, len(items))
	for i, item := range items {
		texts[i] = format(item)
	}
	return strings.Join(texts, separator)
}

// Write writes the model as JSON, with a line for each law and run, so that files can be compared.
func (m *Model) Write(w io.Writer) error {
	numbers := lawTable{index: map[*law.Law]int{nil: noLaw}}
	sites, loops := m.storedLaws(&numbers)
	var b bytes.Buffer
	err := errors.Join(writeList(&b, "laws", m.Laws()), writeValue(&b, "pattern", m.Pattern),
		writeList(&b, "numbers", numbers.all), writeList(&b, "sites", sites), writeValue(&b, "loops", loops),
		writeValue(&b, "times", m.Times()), writeList(&b, "warnings", m.Warnings),
		writeList(&b, "training", m.Joint.Runs))
	if err != nil {
		return err
	}
	b.Truncate(b.Len() - len(",\n"))
	b.WriteString("}\n")
	if _, err := fmt.Fprintf(w, "{\"commq_models\":%d,\"digest\":\"%s\",\n", FileVersion, digest(b.Bytes())); err != nil {
		return err
	}
	_, err = w.Write(b.Bytes())
	return err
}

// digest returns the digest of what follows the first line of a file.
func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// writeValue writes a field with a value on one line.
func writeValue(b *bytes.Buffer, name string, value any) error {
	text, err := json.Marshal(value)
	fmt.Fprintf(b, "%q:%s,\n", name, text)
	return err
}

// writeList writes a field with a list, one item per line.
func writeList[T any](b *bytes.Buffer, name string, items []T) error {
	fmt.Fprintf(b, "%q:[", name)
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
	b.WriteString("],\n")
	return nil
}

// lawTable numbers laws. Sites may share one.
type lawTable struct {
	all   []*law.Law
	index map[*law.Law]int
}

func (t *lawTable) add(l *law.Law) int {
	if l.IsEmpty() {
		l = nil
	}
	i, known := t.index[l]
	if !known {
		i = len(t.all)
		t.index[l], t.all = i, append(t.all, l)
	}
	return i
}

// law returns the law with an index.
func (t *lawTable) law(i int) (*law.Law, error) {
	switch {
	case i == noLaw:
		return &law.Law{}, nil
	case i < 0 || i >= len(t.all) || t.all[i] == nil:
		return nil, fmt.Errorf("there is no law %d", i)
	}
	return t.all[i], nil
}

// storedLaws returns the laws of sites and loops as numbers in a table, to which it adds them.
func (m *Model) storedLaws(t *lawTable) (sites []storedSite, loops []int) {
	side := func(s *SideLaws) [3]int { return [3]int{t.add(s.Tag), t.add(s.Count), t.add(s.Bytes)} }
	for _, x := range m.Sites {
		sites = append(sites, storedSite{x.Event.ID, side(&x.Send), side(&x.Recv), t.add(x.Root)})
	}
	for _, l := range m.Iterations {
		loops = append(loops, t.add(l))
	}
	return sites, loops
}

// Read reads a file that Write wrote. The laws are those of the file; they are not looked for again, but those of who
// is together in communicators, which follow from its runs and grids at once. The error tells what is wrong with the
// file, and where.
func Read(r io.Reader) (*Model, error) {
	text, err := bounded.ReadAll(r, bounded.TextBytes)
	if err != nil {
		return nil, err
	}
	if err := checkHead(text); err != nil {
		return nil, err
	}
	var f file
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("models: %w", locate(text, err, dec.InputOffset()))
	}
	for i, s := range f.Training {
		if s == nil {
			return nil, fmt.Errorf("models: run %d of %d is missing", i+1, len(f.Training))
		}
		if err := s.Check(); err != nil {
			return nil, fmt.Errorf("models: run %d of %d, %q: %w", i+1, len(f.Training), s.Run, err)
		}
	}
	m, err := f.model()
	if err != nil {
		return nil, fmt.Errorf("models: %w; make the file again with commq fit", err)
	}
	return m, nil
}

// checkHead checks that text is a file of this version, as Write wrote it.
func checkHead(text []byte) error {
	var head struct {
		Version *int   `json:"commq_models"`
		Digest  string `json:"digest"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return fmt.Errorf("not models of commq fit: %w; want a file that commq fit --run ... -o wrote",
			locate(text, err, int64(len(text))))
	}
	switch {
	case head.Version == nil:
		return errors.New("not models of commq fit: it has no commq_models; want a file that commq fit --run ... -o wrote")
	case *head.Version != FileVersion:
		return fmt.Errorf("commq_models %d: this commq reads %d; make the file again with commq fit", *head.Version,
			FileVersion)
	}
	_, rest, _ := bytes.Cut(text, []byte{'\n'})
	if got := digest(rest); got != head.Digest {
		return fmt.Errorf("models: the file was changed after commq fit wrote it (digest %.8s, want %.8s); make it again "+
			"with commq fit", got, head.Digest)
	}
	return nil
}

// model makes the model of a file.
func (f *file) model() (*Model, error) {
	m, _, err := assemble(f.Training)
	if err != nil {
		return nil, err
	}
	if f.Pattern == nil || f.Times == nil || len(f.Sites) != len(m.Sites) || len(f.Loops) != len(m.Joint.Sig.Nodes()) {
		return nil, errors.New("another version of commq found its laws")
	}
	m.Pattern = f.Pattern
	t := lawTable{all: f.Numbers}
	var wrong []error
	take := func(i int) *law.Law {
		l, err := t.law(i)
		wrong = append(wrong, err)
		return l
	}
	takeSide := func(s *SideLaws, x [3]int) { s.Tag, s.Count, s.Bytes = take(x[0]), take(x[1]), take(x[2]) }
	for i, x := range m.Sites {
		s := &f.Sites[i]
		if s.Event != x.Event.ID {
			return nil, errors.New("another version of commq found its laws")
		}
		sampleSite(x, m.Joint)
		takeSide(&x.Send, s.Send)
		takeSide(&x.Recv, s.Recv)
		x.Root = take(s.Root)
	}
	for _, i := range f.Loops {
		m.Iterations = append(m.Iterations, take(i))
	}
	m.finish()
	m.Warnings = append([]string(nil), f.Warnings...)
	m.times = func() *compute.Laws { return f.Times }
	return m, errors.Join(wrong...)
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
