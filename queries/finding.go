package queries

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Finding is a rule of commq diagnose that is a file: a query whose rows are things that make a run slow. Its Summary
// is the question of the header.
type Finding struct {
	*Query
	// Advice says what to do about what was found, in one sentence.
	Advice string
	// Gain is the way in which the gain is found: one of Gains.
	Gain string
}

// Gains are the ways in which the gain of a finding is found.
//
//	bound     the cost is a bound of the gain
//	messages  simulated: the messages and collectives of these ranks at the call site keep the factors latency and bytes
//	standard  simulated: the synchronous sends of these ranks at the call site become standard ones
var Gains = []string{gainBound, gainMessages, gainStandard}

const gainBound, gainMessages, gainStandard = "bound", "messages", "standard"

// findingColumns are the first columns of each finding file. Its header does not have them.
var findingColumns = []Column{
	{Name: "callsite", Type: "INTEGER", Doc: "Call site of it; null where there is no one place."},
	{Name: "call", Type: "VARCHAR", Doc: "MPI function there."},
	{Name: "ranks", Type: "VARCHAR", Doc: "World ranks that cause it, separated by commas; empty means all."},
	{Name: "cost_ns", Type: "BIGINT", Unit: "ns",
		Doc: "Bound of the time that the run loses by it: that of the rank that loses most, not the sum over ranks."},
	{Name: "found", Type: "VARCHAR", Doc: "What is the matter, in a sentence without a full stop."}}

// factorColumns come next, in findings whose gain is of messages.
var factorColumns = []Column{
	{Name: "latency", Type: "DOUBLE", Unit: "1", Doc: "Part of the latency, from 0 to 1, that the messages keep " +
		"without the fault."},
	{Name: "bytes", Type: "DOUBLE", Unit: "1", Doc: "Part of the bytes that they keep."}}

// columns are the columns that the file must have before its own, the evidence.
func (f *Finding) columns() []Column {
	if f.Gain == gainMessages {
		return slices.Concat(findingColumns, factorColumns)
	}
	return slices.Clone(findingColumns)
}

// EvidenceColumns are the columns of its own, in the order of Found.Evidence.
func (f *Finding) EvidenceColumns() []Column { return f.Columns[len(f.columns()):] }

// parseFinding parses a finding file; file is its name in errors.
func parseFinding(name, file, text string, include func(string) (source, error)) (*Finding, error) {
	f := &Finding{Query: &Query{Name: name}}
	if err := f.parse(file, text, include, f.readers(), f.check); err != nil {
		return nil, err
	}
	return f, nil
}

// readers read the header: what a query's header has for the command line and for pictures is not in it.
func (f *Finding) readers() fieldReader {
	readers := fieldReaders()
	for _, key := range []string{"summary", "over", "example", "plot", "axis", "title", "label"} {
		delete(readers, key)
	}
	readers["question"] = func(q *Query, f field) error { return set(&q.Summary, f) }
	readers["advice"] = func(_ *Query, line field) error { return set(&f.Advice, line) }
	readers["gain"] = func(_ *Query, line field) error {
		if !slices.Contains(Gains, line.text) {
			return fmt.Errorf("gain %q: want one of %s", line.text, strings.Join(Gains, ", "))
		}
		return set(&f.Gain, line)
	}
	return readers
}

// check reports what the header lacks, and puts the columns of every finding before its own.
func (f *Finding) check() error {
	first := f.columns()
	errs := []error{required("question", f.Summary), required("advice", f.Advice), required("gain", f.Gain)}
	for _, c := range first {
		if f.column(c.Name) != nil {
			errs = append(errs, fmt.Errorf("line %d: column %s: every finding has it; leave this line out",
				f.lines["column "+c.Name], c.Name))
		}
	}
	f.Columns = append(first, f.Columns...)
	return errors.Join(errs...)
}

// FindingNames returns the names of commq's finding files, sorted, without reading them.
func FindingNames() []string { return namesIn(files, "findings") }

// Findings returns commq's finding files, sorted by name. An error is a mistake in this package's files.
func Findings() (all []*Finding, err error) {
	include := func(name string) (source, error) { return includeOf(files, name) }
	for _, name := range FindingNames() {
		file := "findings/" + name + ".sql"
		text, err := fs.ReadFile(files, file)
		if err != nil {
			return nil, err
		}
		f, err := parseFinding(name, file, string(text), include)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// OwnFindings reads a user's own finding files, dir/NAME.sql, as Own reads queries.
func OwnFindings(dir string, known []string) (own []*Finding, unusable []Unusable) {
	unusable = ownFiles(dir, ownKind{"finding", "findings", known}, func(file, name, text string) error {
		f, err := parseFinding(name, file, text, func(name string) (source, error) { return ownInclude(dir, name) })
		if err == nil {
			f.File = file
			own = append(own, f)
		}
		return err
	})
	return usable(own, unusable, func(f *Finding) *Query { return f.Query })
}
