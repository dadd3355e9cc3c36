package diagnose

import (
	"math"
	"slices"

	"github.com/commq/commq/models"
	"github.com/commq/commq/models/critical"
)

// speeds are the CPU ratios of the nodes of ranks on the machine of the simulations; nil means that all are 1. Waits
// are in the machine's time, computing is in that of the CPUs that the run computed on.
type speeds []float64

// speedsOf returns the CPU ratios of the ranks of a program.
func speedsOf(m *models.Machine, ranks int) (speeds, error) {
	_, nodeOf, err := m.Place(ranks)
	if err != nil {
		return nil, err
	}
	all := make(speeds, ranks)
	for rank, node := range nodeOf {
		all[rank] = m.NodeAt(int(node)).CPURatio
	}
	if !slices.ContainsFunc(all, func(ratio float64) bool { return ratio != 1 }) {
		return nil, nil
	}
	return all, nil
}

// onMachine converts computing of a rank to the machine's time, in ns.
func (s speeds) onMachine(rank int32, ns int64) int64 {
	switch {
	case s == nil:
		return ns
	case s[rank] == 0: // computing takes no time
		return 0
	}
	return int64(math.Round(float64(ns) / s[rank]))
}

// inRun converts a time of a rank on the machine, in ns, to the computing of the run that takes so long there.
func (s speeds) inRun(rank int32, ns int64) int64 {
	if s == nil {
		return ns
	}
	return int64(math.Round(float64(ns) * s[rank]))
}

// allOnMachine converts computing by rank to the machine's time.
func (s speeds) allOnMachine(ns map[int32]int64) map[int32]int64 {
	all := make(map[int32]int64, len(ns))
	for rank, n := range ns {
		all[rank] = s.onMachine(rank, n)
	}
	return all
}

// delays returns delays whose excess is computing of the run.
func (s speeds) delays(all []*critical.Delay) []*critical.Delay {
	if s == nil {
		return all
	}
	own := make([]*critical.Delay, len(all))
	for i, d := range all {
		copied := *d
		copied.ExcessNs = s.inRun(d.Rank, d.ExcessNs)
		own[i] = &copied
	}
	return own
}
