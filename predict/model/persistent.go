package model

import (
	"fmt"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/predict/slots"
	"github.com/commq/commq/schema"
)

// A persistent request is made by one call (MPI_Send_init) and started by others (MPI_Start, MPI_Startall). Rows of a
// start do what the request says and refer to the call that made it.

// findPersistent finds whether the calls of a site make or start persistent requests that send or receive. Such calls
// have a peer.
func findPersistent(x *Site, symbol *signature.Symbol) {
	makes := symbol.CallID.Is(schema.FactPointToPoint|schema.FactPersistent) &&
		!symbol.CallID.Is(schema.FactPartitioned)
	sends, receives := false, false
	x.Classes = map[slots.Place]string{}
	for _, s := range x.Calls.Slots {
		for _, run := range s.Runs {
			for _, c := range run {
				if c == nil {
					continue
				}
				x.Classes[s.Place] = c.Class
				if c.Recv != nil {
					x.PostedAny = c.PostedAny
				}
				sends = sends || c.Class == schema.ClassSend.String() || makes && symbol.CallID.Is(schema.FactSends)
				receives = receives || c.Class == schema.ClassRecv.String() || makes &&
					symbol.CallID.Is(schema.FactReceives)
			}
		}
	}
	x.StartsBoth = sends && receives
	x.Sends, x.Receives = x.Sends || sends, x.Receives || receives
}

// MakerRule tells which calls made the persistent requests that the calls of an event use, one after the other: all
// calls of some events, in the order in which they were made.
type MakerRule struct {
	Events map[int32]bool
	// Latest means that of each event only the last call so far counts.
	Latest bool
	// StartsNone means that the requests are not started, but freed for example.
	StartsNone bool
}

// findMakerRules sets the maker rules of sites. It returns the events that make requests, and warnings for calls
// without a rule.
func findMakerRules(sites []*Site, sig *signature.Signature) (makers map[int32]bool, warnings []string) {
	makers = map[int32]bool{}
	rules := make([]*MakerRule, len(sig.Nodes()))
	for _, x := range sites {
		for _, c := range sig.Values[x.Event.ID].Events {
			maker := makerOf(c)
			if maker == nil {
				continue
			}
			if x.Maker == nil {
				x.Maker = &MakerRule{Events: map[int32]bool{}, StartsNone: c.About != nil}
				rules[x.Event.ID] = x.Maker
			}
			x.Maker.Events[maker[0]], makers[maker[0]] = true, true
		}
	}
	if len(makers) == 0 {
		return nil, nil
	}
	wrong := checkMakerRules(sig, rules, makers)
	for _, x := range sites {
		w, found := wrong[x.Event.ID]
		if !found {
			continue
		}
		x.Maker.Latest = w.inTurn && !w.latest
		if w.inTurn && w.latest {
			warnings = append(warnings, fmt.Sprintf(
				"%s starts persistent requests in an order without a rule; they are "+
					"taken in turn", sig.NodeName(x.Event)))
		}
	}
	return makers, warnings
}

// wrongRules tells which ways of choosing a request contradict the runs.
type wrongRules struct{ inTurn, latest bool }

// checkMakerRules checks, by event, which ways of choosing requests contradict the runs.
func checkMakerRules(sig *signature.Signature, rules []*MakerRule, makers map[int32]bool) map[int32]wrongRules {
	wrong := map[int32]wrongRules{}
	for rank := range int32(len(sig.Roots)) {
		made := make([]int32, len(sig.Nodes()))
		requests := NewRequestTracker(makers)
		sig.Walk(rank, func(n *template.Node, c *signature.Call) {
			if rule := rules[n.ID]; rule != nil {
				contradicts := func(latest bool) bool {
					p, found := requests.peek(n.ID, &MakerRule{Events: rule.Events, Latest: latest})
					maker := makerOf(c)
					return found != (maker != nil) || found && p != maker.Position(made, 0)
				}
				w := wrong[n.ID]
				wrong[n.ID] = wrongRules{w.inTurn || contradicts(false), w.latest || contradicts(true)}
				requests.advance(n.ID, rule)
			}
			requests.Add(n.ID, made[n.ID])
			made[n.ID]++
		})
	}
	return wrong
}

// makerOf refers to the call that made the persistent request which a call starts or uses; nil if there is none.
func makerOf(c *signature.Call) *signature.Backref {
	if c.About == nil && c.Class != "" {
		return c.Init
	}
	return c.About
}

// RequestTracker follows the persistent requests of a rank.
type RequestTracker struct {
	makers map[int32]bool       // events
	made   []signature.Position // calls that made requests, in order
	uses   map[int32]int64      // so far, by event
}

// NewRequestTracker returns a tracker for a rank without calls. makers are the events that make requests.
func NewRequestTracker(makers map[int32]bool) *RequestTracker {
	return &RequestTracker{makers: makers, uses: map[int32]int64{}}
}

// Add adds the number-th call of an event.
func (t *RequestTracker) Add(event, number int32) {
	if t.makers[event] {
		t.made = append(t.made, signature.Position{Node: event, Number: number})
	}
}

// Next returns the call that made the request which an event uses next; false if there is none.
func (t *RequestTracker) Next(event int32, r *MakerRule) (signature.Position, bool) {
	p, found := t.peek(event, r)
	if found {
		t.uses[event]++
	}
	return p, found
}

// advance skips the next use of an event.
func (t *RequestTracker) advance(event int32, r *MakerRule) { t.Next(event, r) }

// peek returns what Next would return, without using up the request.
func (t *RequestTracker) peek(event int32, r *MakerRule) (signature.Position, bool) {
	var candidates []signature.Position
	for _, p := range t.made {
		if !r.Events[p.Node] {
			continue
		}
		if r.Latest {
			candidates = slices.DeleteFunc(candidates, func(q signature.Position) bool { return q.Node == p.Node })
		}
		candidates = append(candidates, p)
	}
	if len(candidates) == 0 {
		return signature.Position{}, false
	}
	return candidates[t.uses[event]%int64(len(candidates))], true
}
