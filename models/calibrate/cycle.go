package calibrate

import (
	"fmt"
	"slices"
)

// Cycle is the real cycle time of the CPUs.
type Cycle struct {
	// Ns is the median of the samples, LowNs and HighNs are the fiftieth part that is least and
	// largest: the clock of a processor changes with its load.
	Ns     float64 `json:"ns"`
	LowNs  float64 `json:"low_ns"`
	HighNs float64 `json:"high_ns"`
	// Samples is their number.
	Samples int `json:"samples"`
	// StatedMHz is the clock of the processor by the operating system, 0 if unknown. StatedTop is true if that is its
	// highest one.
	StatedMHz int64 `json:"stated_mhz"`
	StatedTop bool  `json:"stated_top"`
}

// Processors have cycles of leastCycleNs (7 GHz) to mostCycleNs (0.4 GHz). Their clock is at most 5 % above the highest
// one that the operating system names, and at most twice the one that it names for now.
const (
	leastCycleNs = 1 / 7.0
	mostCycleNs  = 1 / 0.4
	aboveTop     = 1.05
	aboveStated  = 2
)

// The quantiles of the samples that are their range.
const (
	leastSample = 0.02
	mostSample  = 0.98
)

// FindCycle takes the median of samples in ns. It returns nil without samples, or when the processor cannot have that
// cycle time, and then the reason.
func FindCycle(samples []float64, statedMHz int64, top bool) (*Cycle, string) {
	if len(samples) == 0 {
		return nil, ""
	}
	samples = slices.Sorted(slices.Values(samples))
	c := &Cycle{Ns: quantileOf(samples, Median), LowNs: quantileOf(samples, leastSample),
		HighNs: quantileOf(samples, mostSample), Samples: len(samples), StatedMHz: statedMHz, StatedTop: top}
	least, why := leastCycleNs, "no processor has that"
	if statedMHz > 0 {
		above, clock := float64(aboveStated), "its clock"
		if top {
			above, clock = aboveTop, "its highest clock"
		}
		if ns := 1000 / (float64(statedMHz) * above); ns > least {
			least, why = ns, fmt.Sprintf("%s is %d MHz by the operating system", clock, statedMHz)
		}
	}
	switch {
	case c.Ns < least:
	case c.Ns > mostCycleNs:
		why = "no processor has that"
	default:
		return c, ""
	}
	return nil, fmt.Sprintf("An addition takes %.3g ns at the median of %d samples, and %s: the cycle time is not "+
		"known.", c.Ns, c.Samples, why)
}

// note tells how the cycle time was found, for the machine's YAML.
func (c *Cycle) note() string {
	text := fmt.Sprintf("The median time per addition of %d chains of dependent additions, one per cycle, while floating-point instructions ran without cache misses; most of them took %.3f to %.3f ns.", c.Samples, c.LowNs, c.HighNs)
	switch {
	case c.StatedMHz == 0:
		text += " The operating system does not name the clock."
	case c.StatedTop:
		text += fmt.Sprintf(" The highest clock is %d MHz by the operating system.", c.StatedMHz)
	default:
		text += fmt.Sprintf(" The clock is %d MHz by the operating system, which may name the base clock.", c.StatedMHz)
	}
	return text
}
