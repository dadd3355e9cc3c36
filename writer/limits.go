package writer

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/commq/commq/schema"
)

// rowLimits bounds the values that readers use as indices (world ranks, threads, hosts, parents of call sites), so that
// a damaged run cannot make them panic. check rejects the first row beyond them; commq runs check lists all.
type rowLimits struct {
	dir    string
	ranks  int32
	worlds []int // columns of world ranks, without those that are read late
	places []int // columns that say where a row is, without those that are not read
	sites  int32 // rows of callsites so far
}

// limitsOf returns the limits of a table of the run in folder dir with this manifest; none if it has no manifest, like a
// run that is being removed.
func limitsOf(dir string, m *schema.Manifest, t *schema.Table) *rowLimits {
	if m == nil {
		return &rowLimits{dir: dir}
	}
	l := &rowLimits{dir: dir, ranks: m.Ranks}
	for _, name := range t.WorldColumns() {
		_, i := t.Column(name)
		l.worlds = append(l.worlds, i)
	}
	for _, name := range []string{"rank", "seq", "src", "send_seq"} {
		if _, i := t.Column(name); i >= 0 {
			l.places = append(l.places, i)
		}
	}
	return l
}

// leaveOut leaves out columns whose values are unknown when a batch is checked.
func (l *rowLimits) leaveOut(isUnknown func(column int) bool) {
	l.worlds = slices.DeleteFunc(l.worlds, isUnknown)
	l.places = slices.DeleteFunc(l.places, isUnknown)
}

// checked returns a function that checks a batch before it calls fn.
func (l *rowLimits) checked(fn func(schema.Batch) error) func(schema.Batch) error {
	return func(b schema.Batch) error {
		if err := l.check(b); err != nil {
			return err
		}
		return fn(b)
	}
}

// check returns an error if a row has a value that is beyond its limits.
func (l *rowLimits) check(b schema.Batch) error {
	for _, c := range l.worlds {
		column := &b.Table().Columns[c]
		for i, x := range b.Data(c).([]int32) {
			if uint32(x) >= uint32(l.ranks) && (x != schema.NullInt32 || !column.Nullable) {
				return l.broken(b, i, "%s is %d in a run of %d ranks", column.Name, x, l.ranks)
			}
		}
	}
	switch t := b.(type) {
	case *schema.Events:
		return l.checkThreads(b, "thread", t.Thread, schema.MaxThreads-1)
	case *schema.RankInfos:
		if err := l.checkThreads(b, "threads", t.Threads, schema.MaxThreads); err != nil {
			return err
		}
		for i, host := range t.Host {
			if host < 0 || l.ranks > 0 && host >= l.ranks { // 0: the run has no manifest
				return l.broken(b, i, "host is %d in a run of %d ranks", host, l.ranks)
			}
		}
	case *schema.Callsites:
		for i, parent := range t.Parent {
			if t.ID[i] != l.sites || parent >= l.sites || parent < 0 && parent != schema.NullInt32 {
				return l.broken(b, i, "call site %d in row %d, with parent %d: a parent is an earlier row", t.ID[i], l.sites,
					parent)
			}
			l.sites++
		}
	}
	return nil
}

// checkThreads returns an error if a number of a thread, or how many there are, is negative or too large.
func (l *rowLimits) checkThreads(b schema.Batch, column string, numbers []int32, most int32) error {
	for i, x := range numbers {
		if x < 0 || x > most {
			return l.broken(b, i, "%s is %d: want 0 to %d", column, x, most)
		}
	}
	return nil
}

// broken returns the error of a row.
func (l *rowLimits) broken(b schema.Batch, i int, format string, args ...any) error {
	where := []string{"table " + b.Table().Name}
	for _, c := range l.places {
		where = append(where, fmt.Sprint(b.Table().Columns[c].Name, " ", reflect.ValueOf(b.Data(c)).Index(i)))
	}
	return fmt.Errorf("%s: %s: %s; the run breaks the rules of runs, and commq runs check names all places", l.dir,
		strings.Join(where, ", "), fmt.Sprintf(format, args...))
}

// checkThreadsOf returns an error if a rank has more threads than a run may have.
func checkThreadsOf(run string, ranks *schema.RankInfos) error {
	for i, n := range ranks.Threads {
		if n > schema.MaxThreads {
			return fmt.Errorf("write run %q: %d threads of rank %d called MPI; a run has at most %d of a rank, so it is not made",
				run, n, ranks.Rank[i], schema.MaxThreads)
		}
	}
	return nil
}
