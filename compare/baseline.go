package compare

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/commq/commq/internal/keyed"
)

// Baseline is a set of measures to compare with, kept as a small file beside a program's source.
type Baseline struct {
	// Sections has the measures by number of ranks.
	Sections map[int32]*Section
	// Equations has the equations of measures over the number of ranks, by key; nil if none were fitted.
	Equations map[string]string
}

// Section is the measures of runs with one number of ranks.
type Section struct {
	// Kept describes which rows the runs keep; runs that keep others cannot be compared with them.
	Kept string
	// Hash is the kind of payload hashes of the runs; "" if it was not written.
	Hash string
	// Exact are the exact measures, by key.
	Exact map[string]int64
	// LeftOut are the keys of exact measures that differ between the runs, in order; nil if none do.
	LeftOut []string
	// ComputeClock is the clock of the compute times in Times; "" if it was not written.
	ComputeClock string
	// Times are samples of times, by key; nil if they were not written.
	Times map[string][]int64
}

// maxFileBytes limits the size of a baseline or a file of rules.
const maxFileBytes = 16 << 20

// NewBaseline makes a baseline of runs. kept describes the rows that each run keeps. Exact measures that differ
// between runs with the same number of ranks are left out of that section and returned. times selects whether times are
// kept.
func NewBaseline(samples []Sample, kept []string, times bool) (b *Baseline, unsteady []string, err error) {
	if len(samples) == 0 {
		return nil, nil, errors.New("baseline: no run")
	}
	b = &Baseline{Sections: map[int32]*Section{}}
	for i := range samples {
		s := &samples[i]
		section := b.Sections[s.Ranks]
		if section == nil {
			section = &Section{Kept: kept[i], Hash: s.Hash, Exact: map[string]int64{}}
			b.Sections[s.Ranks] = section
		}
		if section.Kept != kept[i] {
			return nil, nil, fmt.Errorf("baseline: runs of %s keep different rows (%s; %s): capture them alike",
				plural(int64(s.Ranks), "rank"), section.Kept, kept[i])
		}
		if section.Times != nil && section.ComputeClock != s.ComputeClock {
			return nil, nil, fmt.Errorf("baseline: runs of %s have different compute clocks (%s; %s): capture them alike",
				plural(int64(s.Ranks), "rank"), section.ComputeClock, s.ComputeClock)
		}
		section.add(s, times)
	}
	left := map[string]bool{}
	for ranks, section := range b.Sections {
		section.leaveOut(ranks, samples)
		for _, key := range section.LeftOut {
			left[key] = true
		}
	}
	return b, slices.SortedFunc(maps.Keys(left), compareKeys), nil
}

// add adds the measures of a run.
func (s *Section) add(run *Sample, times bool) {
	for k := range run.Values {
		v := &run.Values[k]
		switch {
		case v.Exact:
			s.Exact[v.Key()] = v.Value
		case times:
			if s.Times == nil {
				s.Times = map[string][]int64{}
			}
			s.Times[v.Key()] = append(s.Times[v.Key()], v.Value)
			s.ComputeClock = run.ComputeClock
		}
	}
}

// leaveOut leaves out the exact measures that differ between the runs of the section's number of ranks.
func (s *Section) leaveOut(ranks int32, samples []Sample) {
	for _, key := range slices.SortedFunc(maps.Keys(s.Exact), compareKeys) {
		differs := func(run Sample) bool {
			v, known := run.Find(key)
			return run.Ranks == ranks && (!known || v.Value != s.Exact[key])
		}
		if slices.ContainsFunc(samples, differs) {
			s.LeftOut = append(s.LeftOut, key)
			delete(s.Exact, key)
		}
	}
}

// Write writes the baseline as YAML, one line per measure in a fixed order, so that baselines can be diffed.
func (b *Baseline) Write(w io.Writer) error {
	var s strings.Builder
	s.WriteString("# Written by commq check --write-baseline. commq check compares runs with it; commit it with the " +
		"program.\ncommq_baseline: 1\nranks:\n")
	for _, ranks := range slices.Sorted(maps.Keys(b.Sections)) {
		section := b.Sections[ranks]
		fmt.Fprintf(&s, "  %d:\n    kept: %s\n", ranks, scalar(section.Kept))
		if section.Hash != "" {
			fmt.Fprintf(&s, "    hash: %s\n", scalar(section.Hash))
		}
		s.WriteString("    exact:\n")
		for _, key := range slices.SortedFunc(maps.Keys(section.Exact), compareKeys) {
			fmt.Fprintf(&s, "      %s: %d\n", scalar(key), section.Exact[key])
		}
		if len(section.LeftOut) > 0 {
			s.WriteString("    left_out:\n")
		}
		for _, key := range section.LeftOut {
			fmt.Fprintf(&s, "      - %s\n", scalar(key))
		}
		if len(section.Times) == 0 {
			continue
		}
		if section.ComputeClock != "" {
			fmt.Fprintf(&s, "    clock: %s\n", scalar(section.ComputeClock))
		}
		s.WriteString("    times:\n")
		for _, key := range slices.SortedFunc(maps.Keys(section.Times), compareKeys) {
			fmt.Fprintf(&s, "      %s: [%s]\n", scalar(key),
				strings.Trim(strings.ReplaceAll(fmt.Sprint(section.Times[key]), " ", ", "), "[]"))
		}
	}
	if len(b.Equations) > 0 {
		s.WriteString("equations:\n")
		for _, key := range slices.SortedFunc(maps.Keys(b.Equations), compareKeys) {
			fmt.Fprintf(&s, "  %s: %s\n", scalar(key), scalar(b.Equations[key]))
		}
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// scalar writes a text as a YAML scalar, quoted if needed.
func scalar(s string) string {
	plain := s != ""
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_'
		plain = plain && (letter || i > 0 && (r >= '0' && r <= '9' || r == '/'))
	}
	if plain {
		return s
	}
	return strconv.Quote(s)
}

// ReadBaseline reads a baseline. name, a path, is for messages. Errors name the line, the key, what was found and
// what is wanted.
func ReadBaseline(name string, r io.Reader) (*Baseline, error) {
	b := &Baseline{Sections: map[int32]*Section{}}
	err := readYAML("baseline", name, r, func(root *yaml.Node) error {
		var version int
		return keyed.Mapping(root, "", []keyed.Key{
			{Name: "commq_baseline", Required: true, Set: keyed.Integer(&version, 1, 1)},
			{Name: "ranks", Required: true, Set: b.readSections},
			{Name: "equations", Set: b.readEquations},
		})
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// readYAML reads a YAML file and puts its name in front of errors.
func readYAML(what, name string, r io.Reader, read func(root *yaml.Node) error) error {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", what, name, err)
	case len(data) > maxFileBytes:
		return fmt.Errorf("%s %s: more than %d bytes: none of commq's", what, name, maxFileBytes)
	case len(bytes.TrimSpace(data)) == 0:
		return fmt.Errorf("%s %s: empty", what, name)
	}
	root, err := keyed.Load(data)
	if err != nil {
		return fmt.Errorf("%s %s: %w", what, name, err)
	}
	if err := read(root); err != nil {
		return fmt.Errorf("%s %s:%w", what, name, err)
	}
	return nil
}

// entries passes each key of a mapping with arbitrary keys to each.
func entries(what string, each func(name, value *yaml.Node, path string) error) func(*yaml.Node, string) error {
	return func(v *yaml.Node, path string) error {
		if v.Kind != yaml.MappingNode || len(v.Content) == 0 {
			return keyed.Wrong(v, path, "a mapping of "+what)
		}
		seen := map[string]bool{}
		for i := 0; i+1 < len(v.Content); i += 2 {
			name := v.Content[i]
			var text string
			if err := keyed.Text(&text)(name, path); err != nil {
				return err
			}
			if seen[text] {
				return keyed.ErrorAt(name, keyed.Join(path, text)+" is there a second time; remove one of them")
			}
			seen[text] = true
			if err := each(name, v.Content[i+1], keyed.Join(path, text)); err != nil {
				return err
			}
		}
		return nil
	}
}

func (b *Baseline) readSections(v *yaml.Node, path string) error {
	return entries("numbers of ranks", func(name, value *yaml.Node, path string) error {
		var ranks int
		if err := keyed.Integer(&ranks, 1, math.MaxInt32)(name, path); err != nil {
			return err
		}
		if b.Sections[int32(ranks)] != nil { // 4 and 4e0
			return keyed.ErrorAt(name, path+" is there a second time; remove one of them")
		}
		s := &Section{Exact: map[string]int64{}}
		b.Sections[int32(ranks)] = s
		return keyed.Mapping(value, path, []keyed.Key{
			{Name: "kept", Required: true, Set: keyed.Text(&s.Kept)},
			{Name: "hash", Set: keyed.Text(&s.Hash)},
			{Name: "exact", Required: true, Set: entries("measures", s.readExact)},
			{Name: "left_out", Set: keyed.List("measures", s.readLeftOut)},
			{Name: "clock", Set: keyed.Text(&s.ComputeClock)},
			{Name: "times", Set: entries("times", s.readTimes)},
		})
	})(v, path)
}

func (s *Section) readExact(name, value *yaml.Node, path string) error {
	var n int64
	if err := keyed.Integer(&n, 0, math.MaxInt64)(value, path); err != nil {
		return err
	}
	s.Exact[name.Value] = n
	return nil
}

func (s *Section) readLeftOut(v *yaml.Node, path string) error {
	var key string
	err := keyed.Text(&key)(v, path)
	s.LeftOut = append(s.LeftOut, key)
	return err
}

func (s *Section) readTimes(name, value *yaml.Node, path string) error {
	if s.Times == nil {
		s.Times = map[string][]int64{}
	}
	return keyed.List("ns", func(v *yaml.Node, path string) error {
		var n int64
		if err := keyed.Integer(&n, 0, math.MaxInt64)(v, path); err != nil {
			return err
		}
		s.Times[name.Value] = append(s.Times[name.Value], n)
		return nil
	})(value, path)
}

func (b *Baseline) readEquations(v *yaml.Node, path string) error {
	b.Equations = map[string]string{}
	return entries("measures", func(name, value *yaml.Node, path string) error {
		var text string
		err := keyed.Text(&text)(value, path)
		b.Equations[name.Value] = text
		return err
	})(v, path)
}

// samples returns the section as runs: one with the exact measures, or as many as there are samples of times.
func (s *Section) samples(ranks int32) []Sample {
	first := Sample{Run: "baseline", Ranks: ranks, Hash: s.Hash, LeftOut: s.LeftOut}
	for _, key := range slices.SortedFunc(maps.Keys(s.Exact), compareKeys) {
		first.Values = append(first.Values, valueOf(key, s.Exact[key], true))
	}
	return []Sample{first}
}

// times returns the samples of one time as runs.
func (s *Section) times(ranks int32, key string) (set []Sample) {
	for _, ns := range s.Times[key] {
		set = append(set, Sample{Run: "baseline", Ranks: ranks, ComputeClock: s.ComputeClock,
			Values: []Value{valueOf(key, ns, false)}})
	}
	return set
}

// valueOf returns the value of a key.
func valueOf(key string, value int64, exact bool) Value {
	measure, item, _ := strings.Cut(key, "/")
	v := Value{Measure: measure, Item: item, Value: value, Exact: exact, Unit: "1"}
	switch {
	case measure == "payloads":
		v.Unit = Fingerprint
	case strings.HasSuffix(measure, "_ns"):
		v.Unit = "ns"
	case strings.Contains(measure, "bytes"):
		v.Unit = "bytes"
	}
	return v
}
