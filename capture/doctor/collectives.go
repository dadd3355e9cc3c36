package doctor

import (
	"context"
	"fmt"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// collectives checks that ranks did the same collective operations in the same order. MPI does not, and a program that
// gets this wrong may end all the same, with data that was taken for other data.
func (r *Run) collectives(ctx context.Context) ([]Finding, error) {
	events, err := r.opened().ReadEpochs(&schema.EventsTable, collectiveRows, "rank", "call", "comm", "instance",
		"root_world", "error_class")
	if err != nil {
		return nil, err
	}
	if err := events.Need("instance"); err != nil {
		return nil, err
	}
	m := matching{recent: map[operation]member{}}
	if err := events.All(ctx, func(b schema.Batch) error { m.add(b.(*schema.Events)); return nil }); err != nil {
		return nil, err
	}
	inter, err := r.intercommunicators(ctx, m.roots)
	if err != nil {
		return nil, err
	}
	return m.finding(inter), nil
}

// collectiveRows is how many rows of the table events are read at once.
const collectiveRows = 1 << 14

// intercommunicators finds which of the communicators connect two groups, whose roots are named otherwise.
func (r *Run) intercommunicators(ctx context.Context, of map[int32]mismatch) (inter map[int32]bool, err error) {
	inter = map[int32]bool{}
	if len(of) == 0 {
		return inter, nil
	}
	return inter, r.opened().ReadTable(ctx, &schema.CommsTable, rankBatch, func(b schema.Batch) error {
		t := b.(*schema.Comms)
		for i, remote := range t.Remote {
			if remote != 0 {
				inter[t.Comm[i]] = true
			}
		}
		return nil
	})
}

// operation is a collective operation of a run.
type operation struct {
	comm     int32
	instance int64
}

// member is the part of a rank in an operation.
type member struct {
	rank, root int32
	call       schema.CallID
}

// mismatch is an operation that two ranks did differently, the first of n.
type mismatch struct {
	operation
	a, b member
	n    int64
}

// matching compares the calls of ranks. Rows of an operation lie near each other, so it remembers only operations that it
// met lately.
type matching struct {
	recent, before map[operation]member
	rows           int64
	calls          mismatch           // other operations
	roots          map[int32]mismatch // other roots, by communicator
}

// mostRecent is how many operations are remembered at least.
const mostRecent = 1 << 19

// add compares rows of events. Starts of persistent operations are left out: their call does not name the operation.
func (m *matching) add(e *schema.Events) {
	for i, instance := range e.Instance {
		is := member{e.Rank[i], e.RootWorld[i], schema.CallID(e.Call[i])}
		if instance == schema.NullInt64 || e.ErrorClass[i] != schema.NullInt32 || is.call.Is(schema.FactStarts) {
			continue
		}
		m.rows++
		at := operation{e.Comm[i], instance}
		first, known := m.recent[at]
		if !known {
			first, known = m.before[at]
		}
		switch {
		case !known:
			if len(m.recent) == mostRecent {
				m.before, m.recent = m.recent, map[operation]member{}
			}
			m.recent[at] = is
		case !first.call.MatchesCollective(is.call):
			m.calls.count(at, first, is)
		case first.root != is.root && first.root != schema.NullInt32 && is.root != schema.NullInt32:
			of := m.roots[at.comm]
			of.count(at, first, is)
			if m.roots == nil {
				m.roots = map[int32]mismatch{}
			}
			m.roots[at.comm] = of
		}
	}
}

// count counts a rank that does an operation differently.
func (m *mismatch) count(at operation, a, b member) {
	if m.n++; m.n == 1 || at.instance < m.instance {
		m.operation, m.a, m.b = at, a, b
	}
}

// finding words what was found; inter are the communicators whose roots do not count. Without collectives there is
// none.
func (m *matching) finding(inter map[int32]bool) []Finding {
	const check = "collectives"
	worst, what := m.calls, func(x member) string { return x.call.String() }
	if worst.n == 0 {
		what = func(x member) string { return fmt.Sprintf("%s with root %d", x.call, x.root) }
		for comm, of := range m.roots {
			if !inter[comm] && (worst.n == 0 || comm < worst.comm) {
				worst = of
			}
		}
	}
	switch {
	case worst.n > 0:
		return []Finding{failure(check, fmt.Sprintf("all ranks of a communicator must do the same operations in the "+
			"same order; SELECT * FROM events WHERE comm = %d AND instance = %d has the calls", worst.comm,
			worst.instance), "%s not match; first, instance %d on communicator %d is %s on rank %d, but %s on rank %d",
			doNot(worst.n), worst.instance, worst.comm, what(worst.a), worst.a.rank, what(worst.b), worst.b.rank)}
	case m.rows > 0:
		return []Finding{ok(check, "all ranks did the same operations in the same order")}
	}
	return nil
}

func doNot(calls int64) string {
	if calls == 1 {
		return "1 call does"
	}
	return units.Count(calls, "call") + " do"
}
