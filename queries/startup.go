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
	// Ns is the time in these calls, MPINs in all recorded calls, both summed over ranks.
	Ns, MPINs int64
}

// initParam is the parameter that decides whether MPI_Init and MPI_Finalize count.
const initParam = "init"

// leavesOutStartup reports whether this is the parameter that queries of times have, and not another one of a user's own
// query.
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
	rows, err := d.query(ctx, nil, "SELECT CAST(COALESCE(SUM(CASE WHEN call IN ("+quoteAll(startupCalls())+
		") THEN time_ns ELSE 0 END), 0) AS BIGINT) AS startup_ns, CAST(COALESCE(SUM(time_ns), 0) AS BIGINT) AS mpi_ns FROM profile")
	if err != nil {
		return s, err
	}
	if rows.Next() {
		row := rows.Row()
		startup, ok := row[0].(int64)
		all, ok2 := row[1].(int64)
		if !ok || !ok2 {
			return s, errors.Join(fmt.Errorf("times in MPI: %T and %T instead of integers", row[0], row[1]), rows.Close())
		}
		s.Ns, s.MPINs = startup, all
	}
	return s, errors.Join(rows.Err(), rows.Close())
}

// startupCalls are the names of the calls that start and end MPI.
func startupCalls() (names []string) {
	for i := range schema.Calls {
		if schema.CallID(i).IsAny(schema.FactInitializes | schema.FactFinalizes) {
			names = append(names, schema.Calls[i].Name)
		}
	}
	return names
}

// Add adds the times of other runs.
func (s *Startup) Add(t Startup) {
	s.Ns += t.Ns
	s.MPINs += t.MPINs
}

// Note tells people what an answer leaves out and how to count it; "" where there is nothing to leave out.
func (s Startup) Note() string {
	if s.Ns <= 0 {
		return ""
	}
	share := fmt.Sprintf("%.0f %%", 100*float64(s.Ns)/float64(s.MPINs))
	if s.Ns*200 < s.MPINs {
		share = "less than 1 %"
	}
	return "MPI_Init and MPI_Finalize took " + share + " of the time in MPI and are left out; --init include counts them"
}
