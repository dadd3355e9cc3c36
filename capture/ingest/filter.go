package ingest

import (
	"fmt"
	"path"
	"strings"

	"github.com/commq/commq/schema"
)

// selection chooses the rows that are written. It is applied after matching, so a row that is left out has been
// matched.
type selection struct {
	record   string
	patterns []string
	calls    []bool // by CallID: kept; nil: all are
	// switched is true when MPI_Pcontrol switched recording off on some rank.
	switched bool
}

// newSelection makes the selection for ranks that have been scanned.
func newSelection(ranks []*rankSpool, o *Options) (s selection, err error) {
	s = selection{record: o.Record, patterns: o.Calls}
	for _, r := range ranks {
		s.switched = s.switched || r.facts.Switched
	}
	s.calls, err = keptCalls(o.Calls)
	return s, err
}

// CheckCalls checks the patterns of Options.Calls. The error names the one that is malformed or matches no MPI call, or
// says that the patterns and record leave no call to keep.
func CheckCalls(patterns []string, record string) error {
	kept, err := keptCalls(patterns)
	if err != nil || kept == nil {
		return err
	}
	for i, keeps := range kept {
		c := &schema.Calls[i]
		starts := c.ID.Is(schema.FactStarts) // persistent collectives, too
		if keeps && c.Name != "" && (record != RecordCollectives || starts || !schema.OfMessages(c.ID, c.Class)) {
			return nil
		}
	}
	text := fmt.Sprintf("calls %s", strings.Join(patterns, ","))
	if record == RecordCollectives {
		text += " with --record " + record
	}
	return fmt.Errorf("%s keeps no call: nothing would be recorded", text)
}

// keptCalls returns which calls the patterns keep, by id; nil means all.
func keptCalls(patterns []string) ([]bool, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	var f schema.CallFilter
	for _, p := range patterns {
		if err := checkPattern(strings.TrimPrefix(p, "-")); err != nil {
			return nil, fmt.Errorf("calls %q: %w", p, err)
		}
		f.Add(p)
	}
	kept := make([]bool, len(schema.Calls))
	for i := range kept {
		kept[i] = f.Keeps(schema.CallID(i))
	}
	return kept, nil
}

// checkPattern checks that the names of some calls match a pattern.
func checkPattern(pattern string) error {
	for i := range schema.Calls {
		ok, err := path.Match(pattern, schema.Calls[i].Name)
		if err != nil {
			return fmt.Errorf("not a pattern: %w", err)
		}
		if ok {
			return nil
		}
	}
	return fmt.Errorf("no MPI call has such a name; patterns are like MPI_Isend or MPI_I*")
}

// filters reports whether rows are left out for a reason other than record.
func (s *selection) filters() bool { return s.calls != nil || s.switched }

// keepsEarly reports whether some rows are left out, and which ones is known as soon as rows are made. With
// RecordMessages it is known only after matching.
func (s *selection) keepsEarly() bool {
	return s.record == RecordCollectives || s.record == RecordAll && s.filters()
}

// words describes the filters for the manifest.
func (s *selection) words() []string {
	var words []string
	if s.switched {
		words = append(words, switchedWord)
	}
	return append(words, callWords(s.patterns)...)
}

// switchedWord is the word for rows that MPI_Pcontrol left out.
const switchedWord = "pcontrol"

// callWords returns the words for patterns of calls.
func callWords(patterns []string) (words []string) {
	for _, p := range patterns {
		words = append(words, schema.CallFilterWord(p))
	}
	return words
}

// rowFilter applies the selection to the rows of one rank.
type rowFilter struct {
	selection *selection
	keep      []bool         // by row of the epoch: it is written; nil: everything is
	hidden    []bool         // by row of the epoch: a filter leaves it out; nil: there is no filter
	off       bool           // MPI_Pcontrol switched recording off
	unmatched map[int64]bool // with RecordMessages: rows of sends and receives without a partner, by seq
}

// begin makes room for the rows of an epoch.
func (f *rowFilter) begin(rows int64) {
	if f.keep != nil {
		f.keep = make([]bool, rows)
	}
	if f.selection.filters() {
		f.hidden = make([]bool, rows)
	}
}

// hides reports whether a filter leaves the row out.
func (f *rowFilter) hides(r *schema.Event) bool {
	return f.off || f.selection.calls != nil && !f.selection.calls[r.Call]
}

// apply decides whether a filter leaves row n out, and returns the decision.
func (f *rowFilter) apply(n int, r *schema.Event) (hidden bool) {
	f.keeps(n, r)
	if f.hidden == nil || !f.hides(r) {
		return false
	}
	f.hidden[n] = true
	return true
}

// keeps marks row n as written if it is kept in its own right, not for what it completes. It returns whether it is.
func (f *rowFilter) keeps(n int, r *schema.Event) bool {
	if f.keep == nil {
		return true
	}
	keeps := f.records(r) && !f.hides(r)
	if keeps {
		f.keep[n] = true
	}
	return keeps
}

// keepCompletion marks row n as written because it completes a row that is kept.
func (f *rowFilter) keepCompletion(n int, r *schema.Event) {
	if f.keep != nil && !f.hides(r) {
		f.keep[n] = true
	}
}

// isHidden reports whether a filter leaves row n of the epoch out.
func (f *rowFilter) isHidden(n int) bool { return f.hidden != nil && f.hidden[n] }

// records reports whether Options.Record keeps the row.
func (f *rowFilter) records(r *schema.Event) bool {
	switch f.selection.record {
	case RecordMessages:
		return r.ErrorClass != schema.NullInt32 || r.EndNs == schema.NullInt64 || f.unmatched[r.Seq] ||
			!ofMessages(r)
	case RecordCollectives:
		return !ofMessages(r)
	}
	return true
}

// ofMessages reports whether the row is of messages.
func ofMessages(r *schema.Event) bool {
	return schema.OfMessages(schema.CallID(r.Call), schema.Class(r.Class))
}
