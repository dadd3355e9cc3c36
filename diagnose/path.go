package diagnose

import (
	"context"
	"fmt"

	"github.com/commq/commq/internal/units"
	"github.com/commq/commq/models/critical"
	"github.com/commq/commq/models/simulate"
	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// onPath finds calls that take long themselves: time on the critical path that is not computing. Faster calls shorten
// the run by at most that time; simulateCalls finds by how much.
func onPath(p *critical.Path, place func(int32) string) (all []Finding) {
	for _, g := range p.GroupBy([]critical.Key{critical.ByCallsite, critical.ByCall}, place) {
		ns := g.TotalNs() - g.Ns[critical.Compute]
		call, known := schema.CallByName(g.Call)
		if ns <= 0 || !known || call.Is(schema.FactInitializes) || call.Is(schema.FactFinalizes) {
			continue
		}
		f := newFinding(ruleOf(call, &g), fmt.Sprintf("%s takes %s of the critical path itself%s",
			run.SiteText(g.Call, "", g.Callsite), units.Duration(ns), orWaits(call)))
		f.Place, f.Call, f.GainNs, f.Bound, f.boundNs = g.Callsite, g.Call, ns, true, ns
		all = append(all, f)
	}
	return all
}

// orWaits ends the sentence about the time in a one-sided call that may also be waiting, which is not followed to other
// ranks.
func orWaits(call schema.CallID) string {
	if call.Is(schema.FactOneSided) && !call.IsAny(schema.FactTransfers|schema.FactFence|schema.FactCreatesWindow) {
		return " or in waiting for other ranks"
	}
	return ""
}

// At most mostCalls of these findings are simulated.
const mostCalls = 8

// simulateCalls simulates the run without the cost of each finding of onPath, the longest first. The gain stays a bound
// if the simulation knows no cost of the call: on a network that takes no time, and for calls without a cost in any
// simulation.
func (q *search) simulateCalls(ctx context.Context, findings []Finding) error {
	var known []*Finding
	for i := range findings {
		f := &findings[i]
		call, _ := schema.CallByName(f.Call)
		if len(known) < mostCalls && float64(f.boundNs) >= leastSimulated*float64(q.d.TimeNs) && simulate.Costs(call) &&
			(f.Rule == FileTime || !q.w.idealNetwork()) {
			known = append(known, f)
		}
	}
	if len(known) == 0 || q.w.bounds {
		return nil
	}
	q.w.step("find the messages of calls")
	r := q.w.simulation.Run
	m, err := markRows(ctx, r, groupsOf(known, r.Place(ctx)))
	if err != nil {
		return err
	}
	var gains []*gain
	for i, f := range known {
		keep := m.free(1 << i)
		f.without = func() *change { return &change{keep: keep} }
		gains = append(gains, &gain{"without the cost of " + siteText(f.Call, f.Place), []*change{f.without()},
			&f.GainNs})
	}
	if err := q.w.gains(ctx, gains); err != nil {
		return err
	}
	for _, f := range known {
		f.GainNs, f.Bound = min(max(f.GainNs, 0), f.boundNs), false
	}
	return nil
}

// groupsOf returns which of the findings a call belongs to.
func groupsOf(findings []*Finding, place func(int32) string) func(int32, schema.CallID) groups {
	type key struct {
		site int32
		call schema.CallID
	}
	known := map[key]groups{}
	return func(site int32, call schema.CallID) groups {
		k := key{site, call}
		of, found := known[k]
		if !found {
			for i, f := range findings {
				if f.Call == call.String() && f.Place == place(site) {
					of = 1 << i
				}
			}
			known[k] = of
		}
		return of
	}
}

// ruleOf returns the rule for the time in a call.
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
