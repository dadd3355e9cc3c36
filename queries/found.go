package queries

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/commq/commq/internal/kept"
	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// Found is a row of a finding file: one thing that makes a run slow. Its fields are the columns of every finding.
type Found struct {
	// Callsite is the call site; schema.NullInt32 where there is no one place.
	Callsite int32
	// Call is the MPI function.
	Call string
	// Ranks are the world ranks that cause it; nil means all.
	Ranks []int32
	// CostNs is a bound of the time that the run loses by it, in ns.
	CostNs int64
	// Text says what is the matter, in a sentence without a full stop.
	Text string
	// Latency and Bytes are the parts of both that the messages keep without the fault, from 0 to 1. They are 1 unless
	// the gain is that of messages.
	Latency, Bytes float64
	// Evidence are the values of the file's own columns: nil, bool, int64, float64 or string.
	Evidence []any `snapshot:"-"`
}

// Search asks finding files of a run.
type Search struct {
	// MostRows limits the rows that a file may read, of tables that grow with the number of calls; 0 means no limit.
	MostRows int64
	// Engine limits the engine.
	Engine Options
	// Kept has the answers of earlier searches of the run; nil means nothing is kept.
	Kept *kept.Results
	// Progress is called with the name of each file before it is asked; nil means no callback.
	Progress func(name string)
}

// Answer is the answer of a finding file about a run.
type Answer struct {
	// Finding is the file.
	Finding *Finding
	// Found are the rows of the answer, the largest cost first.
	Found []Found
	// Not is the reason why the file was not asked: what the run lacks, or that it is too large; "" if it was asked.
	Not string
	// Err is a mistake in the file. Its rows are left out then.
	Err error
}

// Look asks finding files of a run, in their order. Errors are those of the engine; a mistake in a file is in its
// answer.
func (s *Search) Look(ctx context.Context, run Run, all []*Finding) ([]Answer, error) {
	answers, before := make([]Answer, len(all)), loadFindings(s.Kept)
	var ask []*Answer
	for i, f := range all {
		a := &answers[i]
		a.Finding, a.Not = f, s.not(run, f)
		if a.Not != "" {
			continue
		}
		known := false
		if a.Found, known = before.answer(f); !known {
			ask = append(ask, a)
		}
	}
	if len(ask) == 0 {
		return answers, nil
	}
	if err := s.ask(ctx, run, ask); err != nil {
		return nil, err
	}
	for _, a := range ask {
		if a.Err == nil {
			before.add(a.Finding, a.Found)
		}
	}
	kept.Save(s.Kept, keptFindingsName, &before)
	return answers, nil
}

// ask completes answers by asking the engine.
func (s *Search) ask(ctx context.Context, run Run, answers []*Answer) error {
	db, err := Open(ctx, []Run{run}, s.Engine)
	if err != nil {
		return err
	}
	for _, a := range answers {
		if s.Progress != nil {
			s.Progress(a.Finding.Name)
		}
		if a.Found, a.Err = db.find(ctx, run, a.Finding); ctx.Err() != nil {
			return errors.Join(ctx.Err(), db.Close())
		}
	}
	return db.Close()
}

// not says why a file is not asked of a run, "" if it is.
func (s *Search) not(run Run, f *Finding) string {
	if lacks := f.lacks(run); len(lacks) > 0 {
		return strings.Join(lacks, "; ")
	}
	rows := int64(0)
	for _, need := range f.Needs {
		if t := tableOf(need); t != nil && t.Sharded && !t.Derived {
			rows += tableInfo(run.Manifest, need).Rows
		}
	}
	if s.MostRows > 0 && rows > s.MostRows {
		return fmt.Sprintf("it would read %s", units.Count(rows, "row"))
	}
	return ""
}

// find asks one finding file.
func (d *DB) find(ctx context.Context, run Run, f *Finding) ([]Found, error) {
	rows, err := d.Ask(ctx, f.Query, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Found
	for rows.Next() {
		found, err := f.read(rows.Row(), run.Manifest.Ranks)
		if err != nil {
			return nil, d.describeError(f.Query, nil, fmt.Errorf("row %d of the answer: %w", len(all)+1, err))
		}
		all = append(all, *found)
	}
	if err := rows.Err(); err != nil {
		return nil, d.describeError(f.Query, nil, err)
	}
	slices.SortStableFunc(all, func(a, b Found) int { return int(max(-1, min(1, b.CostNs-a.CostNs))) })
	return all, nil
}

// read reads a row of the file. The types are those of its columns, which were compared with the engine's.
func (f *Finding) read(row []any, ranks int32) (*Found, error) {
	found := &Found{Callsite: schema.NullInt32, Latency: 1, Bytes: 1}
	if site, ok := row[0].(int32); ok {
		found.Callsite = site
	}
	found.Call, _ = row[1].(string)
	cost, known := row[3].(int64)
	found.CostNs = cost
	found.Text, _ = row[4].(string)
	if !known || cost < 0 {
		return nil, errors.New("cost_ns: want a time, 0 or more")
	}
	if found.Text == "" {
		return nil, errors.New("found: want a sentence that says what is the matter")
	}
	text, _ := row[2].(string)
	var err error
	if found.Ranks, err = ranksOf(text, ranks); err != nil {
		return nil, err
	}
	if f.Gain == gainMessages {
		for i, to := range []*float64{&found.Latency, &found.Bytes} {
			at := len(findingColumns) + i
			factor, known := row[at].(float64)
			if !known || !(factor >= 0 && factor <= 1) {
				return nil, fmt.Errorf("%s: want a factor from 0 to 1, found %v", f.Columns[at].Name, row[at])
			}
			*to = factor
		}
	}
	for _, value := range row[len(f.columns()):] {
		found.Evidence = append(found.Evidence, plainValue(value))
	}
	return found, nil
}

// plainValue widens a number; one that is not finite becomes nil, as JSON has none.
func plainValue(value any) any {
	switch x := value.(type) {
	case int32:
		return int64(x)
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil
		}
	}
	return value
}

// ranksOf reads a list of world ranks, separated by commas, of a run with this many ranks.
func ranksOf(text string, ranks int32) (all []int32, err error) {
	if text == "" {
		return nil, nil
	}
	for _, word := range strings.Split(text, ",") {
		rank, err := strconv.ParseInt(strings.TrimSpace(word), 10, 32)
		if err != nil || rank < 0 || rank >= int64(ranks) {
			return nil, fmt.Errorf("ranks %q: want world ranks below %d, separated by commas", text, ranks)
		}
		all = append(all, int32(rank))
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
