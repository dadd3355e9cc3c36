package schema

import (
	"fmt"
	"strings"
)

// Problem is a place in a run that breaks a rule.
type Problem struct {
	// Rule is the name of the rule.
	Rule string
	// Table and File say where it was found; empty where it is about the whole run.
	Table, File string
	// Rank and Seq are the world rank and row it is about; NullInt32 and NullInt64 where there is none.
	Rank int32
	Seq  int64
	// What says what was found.
	What string
}

// String is the problem in one line: events/0000.parquet: rank 7, seq 4112: end 91 ns before start (times).
func (p Problem) String() string {
	var parts []string
	if p.File != "" {
		parts = append(parts, p.File)
	} else if p.Table != "" {
		parts = append(parts, p.Table)
	}
	if p.Rank != NullInt32 {
		at := fmt.Sprintf("rank %d", p.Rank)
		if p.Seq != NullInt64 {
			at += fmt.Sprintf(", seq %d", p.Seq)
		}
		parts = append(parts, at)
	}
	return strings.Join(append(parts, p.What), ": ") + " (" + p.Rule + ")"
}

// Rule is something that holds in every run.
type Rule struct {
	// Name is a word or two, as it stands in a Problem.
	Name string
	// Doc says in a sentence what holds.
	Doc string

	// tables are those it looks at, nil for all; batch looks at some rows, finish at the whole. Either may be nil.
	tables []*Table
	batch  func(*Checker, Batch)
	finish func(*Checker)
}

// problemsPerRule is how many problems of one rule are reported; the rest is counted.
const problemsPerRule = 10

// Checker checks the rows of a run against Rules. Its memory is bounded by the ranks, the members of communicators, the
// persistent collectives, a Profiler for each file and the messages in flight between epochs, not by the rows.
//
// Add the tables ranks, comms, callsites and datatypes first, then events, messages and parts by increasing epoch.
type Checker struct {
	manifest *Manifest
	rules    []Rule
	report   func(Problem)
	found    []int // problems per rule

	rule  int // the one that is looking
	table *Table
	file  string

	lastKeys map[string][]int64
	ranks    []rankState
	threads  map[uint64]int64 // rank and thread -> latest start_ns
	overlaps Overlaps
	sums     map[string]*Profiler // file of events -> its profile
	comms    map[int32]*commState
	members  map[uint64]*memberState // communicator and world rank
	last     memberCache
	types    map[int32]bool
	sites    map[int32]bool
	nextSite int32
	rows     map[string]int64
	sends    map[uint64]half
	receives map[uint64]half
	parts    partsState
	made     map[madeKey]madeState
	inits    map[uint64]*initState // rows that made a persistent collective, by sideKey
	totals   totals

	profiled, summed *Digester // of the rows of profile, and of those that it should have

	hosts   []int32              // by rank
	waits   *WaitSums            // nil: no row has come
	waiting map[*Table]*Digester // of the rows of waitTables
}

// rankState is what is known of a rank.
type rankState struct {
	ended            int16
	events           int64 // as the table ranks has it
	rows             int64 // seen in events
	lastSeq          int64
	epoch            int32
	doneSeq, doneFor int64 // the greatest done_seq, and the row that has it
}

// totals are sums over all rows, to be compared with the manifest.
type totals struct {
	endNs                   int64
	inProgress              int64
	collectives             int64
	byCall                  []int64 // the same by CallID
	messageBytes            int64
	events, polls, droppedN int64 // as the table ranks has them
	verified, mismatches    int64 // messages hashed at both ends, and of those the ones that differ
	unfinished              int   // ranks that are not finalized
}

// NewChecker returns a Checker for the run that m describes; report gets each problem as it is found.
func NewChecker(m *Manifest, report func(Problem)) *Checker {
	rules := Rules()
	return &Checker{manifest: m, rules: rules, report: report, found: make([]int, len(rules)),
		lastKeys: map[string][]int64{}, threads: map[uint64]int64{}, comms: map[int32]*commState{}, members: map[uint64]*memberState{},
		types: map[int32]bool{}, sites: map[int32]bool{}, rows: map[string]int64{}, sends: map[uint64]half{}, receives: map[uint64]half{},
		parts: newPartsState(), made: map[madeKey]madeState{}, inits: map[uint64]*initState{}, totals: totals{byCall: make([]int64, len(Calls))},
		sums: map[string]*Profiler{}, profiled: NewDigester(&ProfileTable), summed: NewDigester(&ProfileTable),
		waiting: map[*Table]*Digester{&WaitsTable: NewDigester(&WaitsTable), &TransfersTable: NewDigester(&TransfersTable),
			&CollectiveWaitsTable: NewDigester(&CollectiveWaitsTable)}}
}

// Add checks rows of a table that stand in file.
func (c *Checker) Add(file string, b Batch) {
	c.table, c.file = b.Table(), file
	c.rows[c.table.Name] += int64(b.Len())
	for i := range c.rules {
		r := &c.rules[i]
		if r.batch != nil && r.about(c.table) {
			c.rule = i
			r.batch(c, b)
		}
	}
}

func (r *Rule) about(t *Table) bool {
	for _, x := range r.tables {
		if x == t {
			return true
		}
	}
	return r.tables == nil
}

// Finish checks what only the whole run shows.
func (c *Checker) Finish() {
	c.table, c.file = nil, ""
	for i := range c.rules {
		if c.rule = i; c.rules[i].finish != nil {
			c.rules[i].finish(c)
		}
	}
	for i, n := range c.found {
		if n > problemsPerRule {
			c.report(Problem{Rule: c.rules[i].Name, Rank: NullInt32, Seq: NullInt64, What: fmt.Sprintf("%d more of this kind", n-problemsPerRule)})
		}
	}
}

// bad reports a problem of the rule that is looking, at a row of a rank.
func (c *Checker) bad(rank int32, seq int64, format string, args ...any) {
	c.found[c.rule]++
	if c.found[c.rule] > problemsPerRule {
		return
	}
	p := Problem{Rule: c.rules[c.rule].Name, File: c.file, Rank: rank, Seq: seq, What: fmt.Sprintf(format, args...)}
	if c.table != nil {
		p.Table = c.table.Name
	}
	c.report(p)
}

// wrong reports a problem of the rule that is looking that is not at a row.
func (c *Checker) wrong(format string, args ...any) { c.bad(NullInt32, NullInt64, format, args...) }

// all says whether rows were left out of events by filters at most.
func (c *Checker) all() bool { return c.manifest.Record == "all" }

// dense says whether the run has every row of events.
func (c *Checker) dense() bool { return c.all() && !c.filtered() }

// filtered says whether rows were left out by name, or by MPI_Pcontrol.
func (c *Checker) filtered() bool { return len(c.manifest.Filters) > 0 }

// bare says whether messages have no rows.
func (c *Checker) bare() bool { return c.manifest.Record == "collectives" }

// rank is the state of a rank, nil when the run has no such rank (the rule ranks says so).
func (c *Checker) rank(r int32) *rankState {
	if r < 0 || int(r) >= len(c.ranks) {
		return nil
	}
	return &c.ranks[r]
}

// where is the rank and seq of row i of a batch, for messages.
func where(b Batch, i int) (int32, int64) {
	switch t := b.(type) {
	case *Events:
		return t.Rank[i], t.Seq[i]
	case *Messages:
		return t.Src[i], t.SendSeq[i]
	case *Parts:
		return t.Rank[i], t.Seq[i]
	case *RankInfos:
		return t.Rank[i], NullInt64
	case *Profiles:
		return t.Rank[i], NullInt64
	}
	return NullInt32, NullInt64
}
