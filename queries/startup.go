package queries

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/commq/commq/schema"
)

// Startup is the time that runs spent in MPI_Init, MPI_Init_thread and MPI_Finalize, which queries with the parameter
// init leave out by default.
type Startup struct {
	// RunNs is the time of the runs from the first call to the end of the last one. Ns is the part of it before a rank
	// has left MPI_Init and after the last rank has entered MPI_Finalize.
	Ns, RunNs int64
}

// initParam is the parameter that decides whether MPI_Init and MPI_Finalize count.
const initParam = "init"

// leavesOutStartup reports whether this is the parameter that queries of times have, and not another one of a user's
// own query.
func (p *Param) leavesOutStartup() bool {
	return p.Name == initParam && slices.Contains(p.Choices, "leave-out")
}

// LeavesOutStartup reports whether the query has the parameter init and leaves MPI_Init and MPI_Finalize out.
func (q *Query) LeavesOutStartup(args map[string]string) bool {
	p := q.param(initParam)
	if p == nil || !p.leavesOutStartup() {
		return false
	}
	value, given := args[initParam]
	if !given {
		value = p.Default
	}
	return value == "leave-out"
}

// Startup asks the runs for their time in MPI_Init and MPI_Finalize.
func (d *DB) Startup(ctx context.Context) (s Startup, err error) {
	rows, err := d.query(ctx, nil, "SELECT CAST(COALESCE(SUM(run_ns), 0) AS BIGINT) AS run_ns, "+
		"CAST(COALESCE(SUM(run_ns - GREATEST(COALESCE(program_end_ns, end_ns) - COALESCE(program_begin_ns, "+
		"begin_ns), 0)), 0) AS BIGINT) AS startup_ns FROM (SELECT run, MAX(last_ns) - MIN(first_ns) AS run_ns, "+
		"MIN(first_ns) AS begin_ns, MAX(last_ns) AS end_ns, MIN(CASE WHEN call IN "+
		"("+quoteAll(callsWith(schema.FactInitializes))+") THEN last_ns END) AS program_begin_ns, "+
		"MAX(CASE WHEN call IN ("+quoteAll(callsWith(schema.FactFinalizes))+") THEN first_ns END) AS program_end_ns "+
		"FROM profile GROUP BY run) t")
	if err != nil {
		return s, err
	}
	if rows.Next() {
		row := rows.Row()
		all, ok := row[0].(int64)
		startup, ok2 := row[1].(int64)
		if !ok || !ok2 {
			return s, errors.Join(fmt.Errorf("times of runs: %T and %T instead of integers", row[0], row[1]),
				rows.Close())
		}
		s.Ns, s.RunNs = startup, all
	}
	return s, errors.Join(rows.Err(), rows.Close())
}

// callsWith are the names of the calls with a fact.
func callsWith(fact schema.Facts) (names []string) {
	for i := range schema.Calls {
		if schema.CallID(i).Is(fact) {
			names = append(names, schema.Calls[i].Name)
		}
	}
	return names
}

// Add adds the times of other runs.
func (s *Startup) Add(t Startup) {
	s.Ns += t.Ns
	s.RunNs += t.RunNs
}

// Note tells people what an answer leaves out and how to count it; "" where there is nothing to leave out.
func (s Startup) Note() string {
	if s.Ns <= 0 {
		return ""
	}
	share := fmt.Sprintf("%.0f %%", 100*float64(s.Ns)/float64(s.RunNs))
	if s.Ns*200 < s.RunNs {
		share = "less than 1 %"
	}
	return "MPI_Init and MPI_Finalize took " + share + " of the run's time and are left out; --init include counts them"
}
