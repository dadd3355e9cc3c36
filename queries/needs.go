package queries

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// Run is a run to query: its place and its manifest.
type Run struct {
	// Name is the run's name in results: the column run.
	Name string
	// Dir is the run's folder.
	Dir string
	// Manifest is the run's manifest.
	Manifest *schema.Manifest
	// Registered is its name on a Trino server; empty means Name.
	Registered string
}

// fact is something other than a table that a query can need.
type fact struct {
	name string
	has  func(*schema.Manifest) bool
	// lacks is the negation of has as an SQL condition on m, the manifest as a struct.
	lacks string
	// without describes a run that lacks the fact.
	without string
	// again completes "capture it again"; "" where advice tells what to do instead.
	again, advice string
}

// captured describes a captured run that lacks the fact, and how to get it.
func (f *fact) captured() string {
	if f.again == "" {
		return f.without + f.advice
	}
	return f.without + "; capture it again " + f.again
}

// lackOf describes a run that lacks the fact, and how to get it.
func (f *fact) lackOf(run Run) string {
	trace := run.Manifest.Origin.Trace
	if trace == nil || f.again == "" {
		return fmt.Sprintf("run %q %s", run.Name, f.captured())
	}
	before, after := f.imported()
	return fmt.Sprintf("run %q %s%s%s", run.Name, before, trace.Format, after)
}

// imported describes an imported run that lacks the fact, and how to get it, before and after the format of its trace.
func (f *fact) imported() (before, after string) {
	return strings.Replace(f.without, "was captured", "was imported", 1) + "; its trace (",
		") does not tell that: record the program with commq capture, " + f.again
}

// lackSQL is lackOf without the run's name, as SQL on m, the manifest as a struct.
func (f *fact) lackSQL() string {
	if f.again == "" {
		return quote(f.captured())
	}
	before, after := f.imported()
	return "CASE WHEN m.origin.trace IS NULL THEN " + quote(f.captured()) + " ELSE " + quote(before) +
		" || m.origin.trace.format || " + quote(after) + " END"
}

func facts() []fact {
	return []fact{
		{"times", func(m *schema.Manifest) bool { return m.TimeOrigin != "untimed" }, "m.time_origin = 'untimed'",
			"is untimed", "", "; give it times with commq simulate"},
		{"compute", func(m *schema.Manifest) bool { return m.ComputeClock != "none" }, "m.compute_clock = 'none'",
			"has no compute times", "with --clock cpu", ""},
		{"hashes", func(m *schema.Manifest) bool { return m.Hash != "none" }, "m.hash = 'none'",
			"was captured without payload hashes", "with --hash crc64", ""},
		{"callsites", func(m *schema.Manifest) bool { return m.Callsites }, "NOT COALESCE(m.callsites, FALSE)",
			"was captured without call sites", "with --stack", ""},
		{"every-call", func(m *schema.Manifest) bool { return m.Record == "all" }, "m.record <> 'all'",
			"does not keep every call", "with --record all", ""},
		{"every-send", keepsSends, lacksSends(),
			"leaves out sends by request (--calls), and their messages with them: receives would seem to be " +
				"without a partner", "", ". Capture it again without, or see the counts of commq runs show"},
	}
}

// origins are the time origins of runs that have times.
var origins = [...]string{"measured", "virtual", "simulated"}

// keepsSends reports whether filters by name keep the rows of all calls that send messages. What MPI_Pcontrol switches
// off is assumed to be off on both sides.
func keepsSends(m *schema.Manifest) bool {
	return !slices.ContainsFunc(schema.Calls, func(c schema.Call) bool { return c.SendsMessages() && !m.KeepsCall(c.ID) })
}

// sends lists the names of the calls that send messages.
func sends() []string {
	var names []string
	for i := range schema.Calls {
		if c := &schema.Calls[i]; c.SendsMessages() {
			names = append(names, c.Name)
		}
	}
	return names
}

// lacksSends returns the negation of keepsSends in SQL.
func lacksSends() string {
	return "len([c FOR c IN [" + quoteAll(sends()) + "]" +
		" IF len([f FOR f IN m.filters IF starts_with(f, 'call:')]) > 0" +
		" AND len([f FOR f IN m.filters IF starts_with(f, 'call:') AND c GLOB replace(substr(f, 6), '[^', '[!')]) = 0" +
		" OR len([f FOR f IN m.filters IF starts_with(f, '-call:') AND c GLOB replace(substr(f, 7), '[^', '[!')]) " +
		"> 0]) > 0"
}

// FactNames lists the facts that a query can need.
func FactNames() []string {
	var names []string
	for _, f := range facts() {
		names = append(names, f.name)
	}
	return names
}

func knownNeed(name string) bool {
	return tableOf(name) != nil || slices.Contains(FactNames(), name)
}

// Check reports what the run lacks for the query, with the command that gets it.
func (q *Query) Check(run Run) error {
	var errs []error
	for _, lack := range q.lacks(run) {
		errs = append(errs, fmt.Errorf("query %s: %s", q.Name, lack))
	}
	return errors.Join(errs...)
}

// lacks says what the run lacks for the query, a sentence for each.
func (q *Query) lacks(run Run) (all []string) {
	for _, f := range facts() {
		if slices.Contains(q.Needs, f.name) && !f.has(run.Manifest) {
			all = append(all, f.lackOf(run))
		}
	}
	if o := run.Manifest.TimeOrigin; q.Origins != nil && o != "untimed" && !slices.Contains(q.Origins, o) {
		all = append(all, fmt.Sprintf("the times of run %q are %s; the query accepts %s", run.Name, o,
			strings.Join(q.Origins, ", ")))
	}
	if slices.Contains(q.Needs, "messages") && run.Manifest.Record == "collectives" &&
		run.Manifest.Counts.Messages > 0 {
		all = append(all, fmt.Sprintf("run %q keeps no rows of its messages; capture it again with --record "+
			"messages", run.Name))
	}
	for _, need := range q.Needs {
		if tableOf(need) != nil && tableInfo(run.Manifest, need) == nil {
			all = append(all, fmt.Sprintf("run %q has no table %s; capture it again", run.Name, need))
		}
	}
	return all
}

// Tables that tell of messages, and of other operations.
var (
	ofMessages = []string{"messages", "transfers", "repeats", "channels", "waits", "activity"}
	ofCalls    = []string{"events", "parts", "profile", "callsites", "collective_waits", "collective_calls",
		"collective_parts", "activity"}
)

// Tables that a query with the parameter collectives reads for them alone.
var ofCollectives = []string{"events", "parts", "collective_calls", "collective_parts"}

// Reads tells which rows of a run the answer with these arguments is made of. A query that does not need every call
// reads rows of calls that send or receive only where they are there (record all), or shows them as they are.
func (q *Query) Reads(m *schema.Manifest, args map[string]string) (reads schema.Reads) {
	needed := slices.Clone(q.Needs)
	if q.leavesOutCollectives(args) {
		needed = slices.DeleteFunc(needed, func(name string) bool { return slices.Contains(ofCollectives, name) })
	}
	needs := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(needed, name) })
	}
	if needs(ofMessages...) {
		reads |= schema.ReadsMessages
	}
	if needs(ofCalls...) {
		reads |= schema.ReadsOperations
	}
	shows := needs("events", "profile") && needs("times") && !needs("messages")
	if needs("every-call") || shows || needs("profile") && m.Record == "all" {
		reads |= schema.ReadsMessageCalls
	}
	return reads
}

// leavesOutCollectives reports whether the query can count collectives, and these arguments say that it does not.
func (q *Query) leavesOutCollectives(args map[string]string) bool {
	p := q.param("collectives")
	if p == nil {
		return false
	}
	value, isSet := args[p.Name]
	if !isSet {
		value = p.Default
	}
	return value == "none"
}

// ReadsOf tells which rows of a run SQL reads, by the tables that it names, rather too many than too few. Of SQL that
// is not understood, or that makes the names of tables, all words count.
func ReadsOf(sql string) (reads schema.Reads) {
	tables, ok := tablesOf(sql)
	if !ok || catalogRe.MatchString(sql) {
		tables = textNames(sql)
	}
	for _, table := range tables {
		if slices.Contains(ofMessages, table) {
			reads |= schema.ReadsMessages
		}
		if slices.Contains(ofCalls, table) {
			reads |= schema.ReadsOperations | schema.ReadsMessageCalls
		}
	}
	return reads
}

// endOfFrom are the words after which names are those of columns until the next FROM or JOIN. Before the first of them,
// as in PIVOT messages ON tag, all names count.
var endOfFrom = []string{"select", "where", "group", "order", "having", "limit", "qualify", "window"}

// tablesOf returns the names in SQL that stand where it names tables, in lower case: after FROM and JOIN, with or
// without quotes, a schema and parentheses. ok is false for SQL that token does not read.
func tablesOf(sql string) (names []string, ok bool) {
	sql = strings.ToLower(sql)
	from := []bool{true} // by parentheses around the place: whether names are those of tables
	for i := 0; i < len(sql); {
		n, err := token(sql[i:], i > 0 && isWord(sql[i-1]))
		if err != nil {
			return nil, false
		}
		inner := &from[len(from)-1]
		switch c := sql[i]; {
		case c == '"' && *inner:
			names = append(names, strings.ReplaceAll(sql[i+1:i+n-1], `""`, `"`))
		case c == '(':
			from = append(from, *inner)
		case c == ')' && len(from) > 1:
			from = from[:len(from)-1]
		case n == 1 && isWord(c):
			for i+n < len(sql) && isWord(sql[i+n]) {
				n++
			}
			switch word := sql[i : i+n]; {
			case slices.Contains([]string{"from", "join", "table", "pivot", "unpivot", "summarize"}, word):
				*inner = true
			case slices.Contains(endOfFrom, word):
				*inner = false
			case *inner:
				names = append(names, word)
			}
		}
		i += n
	}
	return names, true
}

func tableInfo(m *schema.Manifest, name string) *schema.TableInfo {
	for i := range m.Tables {
		if m.Tables[i].Name == name {
			return &m.Tables[i]
		}
	}
	return nil
}
