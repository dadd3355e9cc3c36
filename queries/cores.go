package queries

import (
	"context"
	"errors"
	"fmt"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/schema"
)

// leastCPUShare is the part of the time between calls in which ranks compute at least where they have a core each.
// Commq diagnose has the same.
const leastCPUShare = 0.9

// finestWanted is the time_resolution_ns from which on times are too coarse to tell.
const finestWanted = 1000

// SharedCores is a run whose ranks waited for a CPU between their calls, so that its times are longer than with a
// core for each of them.
type SharedCores struct {
	// Run is the run's name.
	Run string
	// CPUShare is the part of the time between calls in which the ranks had a CPU.
	CPUShare float64
}

// countsCPU reports whether the profile of a run tells how long its ranks had a CPU between calls: its times are
// measured, what ranks compute is on the CPU clock, and all calls are there.
func countsCPU(m *schema.Manifest) bool {
	return m.TimeOrigin == "measured" && m.ComputeClock == "cpu" && m.Record == "all" && len(m.Filters) == 0 &&
		m.TimeResolutionNs < finestWanted
}

// cpuShares is the SQL of how long the threads of each run were between calls, less polling, and had a CPU in that
// time. What a rank computed before its first call, usually MPI_Init, is not between calls.
const cpuShares = "SELECT run, CAST(SUM(wall_ns) AS DOUBLE) AS wall_ns, CAST(SUM(cpu_ns) AS DOUBLE) AS cpu_ns FROM (" +
	"SELECT run, rank, thread, MAX(last_ns) - MIN(first_ns) - SUM(COALESCE(time_ns, 0)) - SUM(COALESCE(poll_ns, 0)) AS wall_ns, " +
	"SUM(CASE WHEN nth = 0 AND calls = 1 THEN 0 ELSE COALESCE(compute_ns, 0) END) AS cpu_ns " +
	"FROM profile GROUP BY run, rank, thread) t GROUP BY run ORDER BY run"

// SharedCores finds the runs whose ranks waited for a CPU between their calls, by their profiles.
func (d *DB) SharedCores(ctx context.Context) (shared []SharedCores, err error) {
	wanted := map[any]bool{}
	for _, r := range d.runs {
		if countsCPU(r.Manifest) {
			wanted[r.Name] = true
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	rows, err := d.query(ctx, nil, cpuShares)
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		row := rows.Row()
		wall, known := row[1].(float64)
		cpu, known2 := row[2].(float64)
		if !wanted[row[0]] || !known || !known2 || wall <= 0 || cpu >= leastCPUShare*wall {
			continue
		}
		shared = append(shared, SharedCores{Run: fmt.Sprint(row[0]), CPUShare: cpu / wall})
	}
	return shared, errors.Join(rows.Err(), rows.Close())
}

// Note tells people what that means for times and how to get others.
func (s SharedCores) Note() string {
	return fmt.Sprintf("between calls the ranks of %s had a CPU for %s of the time only, usually because there were more ranks than "+
		"cores: measured times include waiting for one; commq simulate %s --machine ethernet-40g --name NAME makes a run with a core "+
		"for each rank", s.Run, units.Percent(s.CPUShare), shellquote.Join(s.Run))
}
