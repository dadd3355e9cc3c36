package diagnose

import (
	"fmt"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// onPath finds calls that take long themselves: the time on the critical path that is not computing. Faster calls make
// the run shorter by at most that time.
func onPath(p *critical.Path, place func(int32) string) (all []Finding) {
	for _, g := range p.GroupBy([]critical.Key{critical.ByCallsite, critical.ByCall}, place) {
		ns := g.TotalNs() - g.Ns[critical.Compute]
		call, known := schema.CallByName(g.Call)
		if ns <= 0 || !known || call.Is(schema.FactInitializes) || call.Is(schema.FactFinalizes) {
			continue
		}
		rule := ruleOf(call, &g)
		f := newFinding(rule, fmt.Sprintf("%s takes %s of the critical path itself", run.SiteText(g.Call, "", g.Callsite),
			units.Duration(ns)))
		f.Place, f.Call, f.GainNs, f.Bound = g.Callsite, g.Call, ns, true
		all = append(all, f)
	}
	return all
}

// ruleOf is the rule that names the time in a call.
func ruleOf(call schema.CallID, g *critical.Group) Rule {
	switch {
	case call.Is(schema.FactFile):
		return FileTime
	case call.Is(schema.FactOneSided):
		return OneSidedTime
	case schema.Calls[call].Class == schema.ClassComm:
		return CommunicatorTime
	case g.Ns[critical.Collective] > 0:
		return CollectiveTime
	}
	return Communication
}

// leastCPUShare is the part of the time between calls that ranks compute in where they have a CPU each.
const leastCPUShare = 0.9

// sharedCores warns that the run's times are not those of a core per rank.
func sharedCores(share float64, machine string) string {
	return fmt.Sprintf("between calls the ranks had a CPU for %s of the time only, usually because there are more ranks than "+
		"cores; these times are simulated on %s instead, from the CPU time that the ranks computed", units.Percent(share), machine)
}

// mostlyComputing is the part of a run's time that computing, with its waits, takes at least where no doubt is in
// place.
const mostlyComputing = 0.5

// maybeSharedCores warns of a run that spends most of its time in MPI, which may be for want of cores.
func maybeSharedCores(d *Diagnosis) string {
	return fmt.Sprintf("without messages the run would take %s; the rest is communication, or ranks that waited in MPI for a core: "+
		"on fewer cores than ranks use --machine NAME, whose times are those of a core each", units.Duration(d.SimulatedNs))
}
