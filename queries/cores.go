package queries

import (
	"context"
	"errors"
	"fmt"

	"github.com/kballard/go-shellquote"

	"github.com/commq/commq/internal/cores"
	"github.com/commq/commq/schema"
)

// finestWanted is the time_resolution_ns from which on times are too coarse to tell.
const finestWanted = 1000

// SharedCores is a run whose ranks waited for cores, so that its times are longer than with a core for each of them.
type SharedCores struct {
	// Run is the run's name.
	Run string
	// Use is what is known of its cores.
	Use cores.Use
	// Lost is the part of the ranks' whole time in which they were between calls and had no CPU; 0 if that is not
	// known.
	Lost float64
	// CPUTimes means that compute times are on the CPU clock: a simulation of the run has no waiting for cores in them.
	CPUTimes bool
}

// countsCPU reports whether the profile of a run tells how long its ranks had a CPU between calls: its times are
// measured, what ranks compute is on the CPU clock, and all calls are there.
func countsCPU(m *schema.Manifest) bool {
	return m.TimeOrigin == "measured" && m.ComputeClock == "cpu" && m.Record == "all" && len(m.Filters) == 0 &&
		m.TimeResolutionNs < finestWanted
}

// cpuSharesSQL is the SQL of how long the threads of each run were between calls, less polling, and had a CPU in that
// time. What a rank computed before its first call, usually MPI_Init, is not between calls.
const cpuSharesSQL = "SELECT run, CAST(SUM(wall_ns) AS DOUBLE) AS wall_ns, CAST(SUM(cpu_ns) AS DOUBLE) AS cpu_ns, " +
	"CAST(MAX(thread) AS BIGINT) AS last_thread FROM (" +
	"SELECT run, rank, thread, MAX(last_ns) - MIN(first_ns) - SUM(COALESCE(time_ns, 0)) - SUM(COALESCE(poll_ns, 0)) AS wall_ns, " +
	"SUM(CASE WHEN nth = 0 AND calls = 1 THEN 0 ELSE COALESCE(compute_ns, 0) END) AS cpu_ns " +
	"FROM profile GROUP BY run, rank, thread) t GROUP BY run ORDER BY run"

// SharedCoresOf finds those of the runs whose ranks waited for cores. It opens one at a time; see DB.SharedCores.
func SharedCoresOf(ctx context.Context, runs []Run, o Options) (all []SharedCores, err error) {
	for _, r := range runs {
		db, err := Open(ctx, []Run{r}, o)
		if err != nil {
			return nil, err
		}
		shared, err := db.SharedCores(ctx)
		if err := errors.Join(err, db.Close()); err != nil {
			return nil, err
		}
		all = append(all, shared...)
	}
	return all, nil
}

// LeftOutOf tells people which of the runs have compute times that leave out what is neither computing nor MPI, such as
// sleep, although their ranks had a core each: a sentence for each. It opens only runs that can be such.
func LeftOutOf(ctx context.Context, runs []Run, o Options) (notes []string, err error) {
	var ofCPUTimes []Run // with a core for each rank
	for _, r := range runs {
		if countsCPU(r.Manifest) && len(r.Manifest.Origin.Cores) > 0 && len(r.Manifest.SharedCores()) == 0 {
			ofCPUTimes = append(ofCPUTimes, r)
		}
	}
	shared, err := SharedCoresOf(ctx, ofCPUTimes, o)
	for _, s := range shared {
		if left := s.LeftOut(); left != "" {
			notes = append(notes, left)
		}
	}
	return notes, err
}

// SharedCores finds the runs whose ranks waited for cores, by what their manifests say and by their profiles.
func (d *DB) SharedCores(ctx context.Context) (shared []SharedCores, err error) {
	between, err := d.timesBetweenCalls(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range d.runs {
		if r.Manifest.TimeOrigin != "measured" {
			continue
		}
		u := cores.Use{Known: len(r.Manifest.Origin.Cores) > 0, CPUShare: 1}
		for _, h := range r.Manifest.SharedCores() {
			u.Shared = append(u.Shared, cores.Host{Name: r.Manifest.Origin.HostName(h.Host), Ranks: h.SharingRanks, Cores: h.SharedCores})
		}
		lost := 0.0
		if b, known := between[r.Name]; known {
			u.CPUShare, u.Threads = min(1, b.cpuNs/b.wallNs), b.threads
			lost = (b.wallNs - b.cpuNs) / float64(r.Manifest.EndNs) / float64(r.Manifest.Ranks)
		}
		if u.Waited() {
			shared = append(shared, SharedCores{Run: r.Name, Use: u, Lost: lost,
				CPUTimes: r.Manifest.ComputeClock == "cpu"})
		}
	}
	return shared, nil
}

// betweenCalls is how long the threads of a run were between calls, and had a CPU in that time.
type betweenCalls struct {
	wallNs, cpuNs float64
	threads       int32 // the largest number of a rank
}

// timesBetweenCalls is the time between calls, by run. Runs whose profiles do not tell are left out.
func (d *DB) timesBetweenCalls(ctx context.Context) (between map[string]betweenCalls, err error) {
	wanted := map[any]bool{}
	for _, r := range d.runs {
		if countsCPU(r.Manifest) {
			wanted[r.Name] = true
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	rows, err := d.query(ctx, nil, cpuSharesSQL)
	if err != nil {
		return nil, err
	}
	between = map[string]betweenCalls{}
	for rows.Next() {
		row := rows.Row()
		wall, known := row[1].(float64)
		cpu, known2 := row[2].(float64)
		if wanted[row[0]] && known && known2 && wall > 0 {
			last, _ := row[3].(int64)
			between[fmt.Sprint(row[0])] = betweenCalls{wall, cpu, int32(last) + 1}
		}
	}
	return between, errors.Join(rows.Err(), rows.Close())
}

// Note tells people what that means for times and how to get others.
func (s SharedCores) Note() string {
	text := s.Use.Text(" of " + s.Run)
	if s.Use.Threads > 1 && len(s.Use.Shared) == 0 {
		return text + ": the answer takes such waiting for computing"
	}
	text += ": measured times include waiting for a core"
	if !s.CPUTimes {
		return text
	}
	return text + fmt.Sprintf("; commq simulate %s --machine ethernet-40g --name NAME makes a run with a core for each "+
		"rank", shellquote.Join(s.Run))
}

// leastLost is the part of the ranks' time that is worth a word when compute times are without it.
const leastLost = 0.01

// LeftOut tells people that compute times are without what the ranks waited for, although they had a core each; "" if
// they may have waited for cores or for other threads, or waited for less than 1 % of their time.
func (s SharedCores) LeftOut() string {
	if !s.CPUTimes || !s.Use.Known || len(s.Use.Shared) > 0 || s.Use.Threads > 1 || s.Lost < leastLost {
		return ""
	}
	return s.Use.Text(" of "+s.Run) + ": compute times are without the rest"
}
