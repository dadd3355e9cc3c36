// Package cores has the one sentence by which all commands tell that ranks waited for cores, so that measured times
// are longer than with a core for each rank.
package cores

import (
	"fmt"

	"github.com/commq/commq/internal/units"
)

// least is the part of the time between calls in which ranks have a CPU at least where they have a core each.
const least = 0.9

// Host is a host on which ranks had fewer cores than they are.
type Host struct {
	Name         string
	Ranks, Cores int32
}

// Use describes the cores of a run with measured times.
type Use struct {
	// Shared are the hosts with ranks that shared cores.
	Shared []Host
	// Known means that the run has the cores of its hosts: a host that is not in Shared had one for each rank.
	Known bool
	// CPUShare is the part of the time between calls in which the ranks had a CPU; 1 if that is not known.
	CPUShare float64
	// Threads is the largest number of threads of a rank that call MPI; 0 if that is not known.
	Threads int32
}

// Waited reports whether ranks waited for cores, or for something else that is neither computing nor MPI.
func (u Use) Waited() bool { return len(u.Shared) > 0 || u.CPUShare < least }

// Text says what ranks waited for, without a full stop; "" if they did not. of is " of RUN", or "" where the run is
// named elsewhere.
func (u Use) Text(of string) string {
	switch had := fmt.Sprintf("between calls the ranks%s had a CPU for %s of the time only", of, units.Percent(u.CPUShare)); {
	case len(u.Shared) > 0:
		worst := u.Shared[0]
		for _, h := range u.Shared {
			if int64(h.Ranks)*int64(worst.Cores) > int64(worst.Ranks)*int64(h.Cores) {
				worst = h
			}
		}
		text := fmt.Sprintf("%d ranks%s shared %s on host %s", worst.Ranks, of, units.Count(int64(worst.Cores), "core"), worst.Name)
		if more := len(u.Shared) - 1; more > 0 {
			text += fmt.Sprintf(" (and likewise on %s)", units.Count(int64(more), "other host"))
		}
		return text
	case u.CPUShare >= least:
		return ""
	case u.Threads > 1:
		return had + fmt.Sprintf(", as their threads, up to %d of a rank, may wait for each other outside MPI or "+
			"share cores (else for other processes, a limit of CPU time, files, sleep)", u.Threads)
	case u.Known:
		return had + " although there was a core for each (other processes, a limit of CPU time, files, " +
			"sleep; commq capture --clock wall counts such time as computing)"
	default:
		return had + ", usually because there were more ranks than cores"
	}
}
