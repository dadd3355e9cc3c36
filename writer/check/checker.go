package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Problem is a place in a run that breaks a rule.
type Problem struct {
	// Rule is the name of the rule.
	Rule string
	// Table and File say where the problem is; they are empty when it concerns the whole run.
	Table, File string
	// Rank and Seq are the world rank and seq of the row; NullInt32 and NullInt64 where there is none.
	Rank int32
	Seq  int64
	// What describes the problem.
	What string
}

// String formats the problem in one line: events/0000.parquet: rank 7, seq 4112: end 91 ns before start (times).
func (p Problem) String() string {
	var parts []string
	if p.File != "" {
		parts = append(parts, p.File)
	} else if p.Table != "" {
		parts = append(parts, p.Table)
	}
	if p.Rank != schema.NullInt32 {
		place := fmt.Sprintf("rank %d", p.Rank)
		if p.Seq != schema.NullInt64 {
			place += fmt.Sprintf(", seq %d", p.Seq)
		}
		parts = append(parts, place)
	}
	return strings.Join(append(parts, p.What), ": ") + " (" + p.Rule + ")"
}

// problemsPerRule is the number of problems per rule that are reported in full; further ones are counted.
const problemsPerRule = 10

// Checker checks the rows of a run against Rules. Its memory grows with the ranks, the members of communicators, the
// persistent collectives, one derive.Profiler per file, and the messages in flight between epochs, but not with the
// number of rows.
type Checker struct {
	run    *run
	rules  []activeRule
	report func(Problem)
}

// activeRule is a rule during a check.
type activeRule struct {
	tables []*schema.Table
	out    *reporter
	batch  func(schema.Batch) // may be nil
	finish func()             // may be nil
}

// NewChecker returns a Checker for the run that m describes; report receives each problem as it is found.
func NewChecker(m *schema.Manifest, report func(Problem)) *Checker {
	c := &Checker{run: newRun(m), report: report}
	for _, r := range Rules() {
		a := activeRule{tables: r.tables, out: &reporter{rule: r.Name, place: &c.run.place, report: report}}
		if r.start != nil {
			a.batch, a.finish = r.start(c.run, a.out)
		}
		c.rules = append(c.rules, a)
	}
	return c
}

// Add checks rows of a table; file names where they are, for the problems. Add the tables ranks, comms, callsites and
// datatypes first, then events, messages and parts by increasing epoch.
func (c *Checker) Add(file string, b schema.Batch) {
	t := b.Table()
	c.run.place = place{t, file}
	c.run.rows[t.Name] += int64(b.Len())
	for i := range c.rules {
		if r := &c.rules[i]; r.batch != nil && (r.tables == nil || slices.Contains(r.tables, t)) {
			r.batch(b)
		}
	}
}

// Finish checks what depends on the whole run. It is called once, after the last Add.
func (c *Checker) Finish() {
	c.run.place = place{}
	for _, r := range c.rules {
		if r.finish != nil {
			r.finish()
		}
	}
	for _, r := range c.rules {
		if n := r.out.found; n > problemsPerRule {
			c.report(Problem{Rule: r.out.rule, Rank: schema.NullInt32, Seq: schema.NullInt64,
				What: fmt.Sprintf("%d more of this kind", n-problemsPerRule)})
		}
	}
}

// place is the table and file of the rows being checked; the zero value means the whole run.
type place struct {
	table *schema.Table
	file  string
}

// reporter reports the problems of one rule.
type reporter struct {
	rule   string
	place  *place
	found  int
	report func(Problem)
}

// bad reports a problem at a row of a rank; rank and seq may be null.
func (r *reporter) bad(rank int32, seq int64, format string, args ...any) {
	r.found++
	if r.found > problemsPerRule {
		return
	}
	p := Problem{Rule: r.rule, File: r.place.file, Rank: rank, Seq: seq, What: fmt.Sprintf(format, args...)}
	if r.place.table != nil {
		p.Table = r.place.table.Name
	}
	r.report(p)
}

// badRow reports a problem at row i of a batch.
func (r *reporter) badRow(b schema.Batch, i int, format string, args ...any) {
	rank, seq := rankAndSeq(b, i)
	r.bad(rank, seq, format, args...)
}

// wrong reports a problem that does not concern a single row.
func (r *reporter) wrong(format string, args ...any) {
	r.bad(schema.NullInt32, schema.NullInt64, format, args...)
}

// rankAndSeq identifies row i of a batch in a Problem.
func rankAndSeq(b schema.Batch, i int) (rank int32, seq int64) {
	switch t := b.(type) {
	case *schema.Events:
		return t.Rank[i], t.Seq[i]
	case *schema.Messages:
		return t.Src[i], t.SendSeq[i]
	case *schema.Parts:
		return t.Rank[i], t.Seq[i]
	case *schema.RankInfos:
		return t.Rank[i], schema.NullInt64
	case *schema.Profiles:
		return t.Rank[i], schema.NullInt64
	}
	return schema.NullInt32, schema.NullInt64
}
