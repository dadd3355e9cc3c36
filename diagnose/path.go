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
