// Package communications finds the communications of a signature (section 4.2 of the paper): to whom ranks send at each
// event, and which patterns these destinations form on one number of ranks. See signature.Communication.
package communications

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/commq/commq/predict/pattern"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/predict/slots"
)

const (
	maxVisits   = 1 << 20 // distinct calls; with more of them a signature is called irregular
	maxPerEvent = 16      // communications of an event: those at most places are kept
)

// Find returns the communications of a signature, whose phases are known. irregular is the reason if there are none
// because the calls are too irregular.
func Find(sig *signature.Signature) (all []signature.Communication, irregular string) {
	found, err := slots.FindVisits(sig, []slots.Run{{First: 0, Ranks: sig.Ranks}}, maxVisits)
	if err != nil {
		return nil, err.Error()
	}
	number, mappings := map[int]int{}, map[int][]pattern.Mapping{} // by phase
	occurrences := sig.Occurrences(sig.Roots)
	for _, site := range found.Sites {
		tables := destinationTables(sig, site)
		if len(tables) == 0 {
			continue
		}
		calls, bytes := sentAt(sig, site.Event, occurrences[site.Event.ID])
		phase := phaseOf(sig, site.Event)
		for _, table := range tables {
			number[phase]++
			m := table.mapping
			e := pattern.Slot{Runs: []pattern.Mapping{m}}.LocalEquations()[0]
			mappings[phase] = append(mappings[phase], m)
			all = append(all, signature.Communication{Phase: phase, Number: number[phase], Event: site.Event.ID,
				Places: table.places, Calls: calls, Bytes: bytes, Dynamic: e.Dynamic, EC1: e.EC1,
				Dependent: e.Dependent, Distances: m.EC2()})
		}
	}
	topologies := map[int][]*pattern.Topology{}
	for phase, list := range mappings {
		topologies[phase] = pattern.Topologies(list)
	}
	for i := range all {
		if c := &all[i]; !c.Dynamic {
			c.Topology = topologies[c.Phase][c.Number-1]
		}
	}
	return all, ""
}

// destinationTable has the destination of each rank, and at how many places ranks send to these destinations.
type destinationTable struct {
	mapping pattern.Mapping
	places  int
	first   slots.Place
}

// destinationTables returns the distinct tables of a site, ordered by their first place. Of more than maxPerEvent,
// those at most places are kept.
func destinationTables(sig *signature.Signature, site *slots.Site) (all []*destinationTable) {
	slices.SortFunc(site.Visits, func(a, b slots.Visit) int {
		return cmp.Or(slices.Compare(a.Place[:], b.Place[:]), cmp.Compare(a.Rank, b.Rank))
	})
	known := map[string]*destinationTable{}
	for from, to := 0, 0; from < len(site.Visits); from = to {
		var key []byte
		for to = from; to < len(site.Visits) && site.Visits[to].Place == site.Visits[from].Place; to++ {
			v := site.Visits[to]
			if d := destination(sig, site.Event, v); d != pattern.None {
				key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(v.Rank)), uint64(d))
			}
		}
		if len(key) == 0 {
			continue
		}
		table := known[string(key)]
		if table == nil {
			dst := slices.Repeat([]int32{pattern.None}, int(sig.Ranks))
			for _, v := range site.Visits[from:to] {
				if d := destination(sig, site.Event, v); d != pattern.None {
					dst[v.Rank] = d
				}
			}
			table = &destinationTable{first: site.Visits[from].Place,
				mapping: pattern.Mapping{Ranks: sig.Ranks, Dst: dst}}
			known[string(key)] = table
			all = append(all, table)
		}
		table.places++
	}
	slices.SortStableFunc(all, func(a, b *destinationTable) int { return cmp.Compare(b.places, a.places) })
	all = all[:min(len(all), maxPerEvent)]
	slices.SortStableFunc(all, func(a, b *destinationTable) int { return slices.Compare(a.first[:], b.first[:]) })
	return all
}

// destination returns to whom a visit sends; pattern.None if it does not send to a rank of the run.
func destination(sig *signature.Signature, n *template.Node, v slots.Visit) int32 {
	c := sig.Values[n.ID].Events[v.Call]
	if !sig.SendsMessage(n, c) {
		return pattern.None
	}
	if to := c.Send.PeerOf(v.Rank); to >= 0 && to < sig.Ranks {
		return to
	}
	return pattern.None
}

// sentAt returns how many messages ranks send at an event, and how many bytes.
func sentAt(sig *signature.Signature, n *template.Node, occurrences []int64) (calls, bytes int64) {
	for i, c := range sig.Values[n.ID].Events {
		if sig.SendsMessage(n, c) {
			calls += occurrences[i]
			bytes += occurrences[i] * int64(max(c.Send[signature.SideBytes], 0))
		}
	}
	return calls, bytes
}

// phaseOf returns the number of the innermost phase that an event is in, from 1; 0 if it is in none. Of several phases
// of a loop it is the one with most calls.
func phaseOf(sig *signature.Signature, n *template.Node) (number int) {
	for l := n.Parent; l != nil && number == 0; l = l.Parent {
		most := int64(-1)
		for i := range sig.Phases {
			if p := &sig.Phases[i]; p.Node == l.ID && p.Calls > most {
				number, most = i+1, p.Calls
			}
		}
	}
	return number
}
