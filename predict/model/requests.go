package model

import (
	"fmt"
	"slices"

	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/predict/signature/fold"
	"github.com/commq/commq/predict/signature/template"
	"github.com/commq/commq/schema"
)

// CompletionRule tells which open requests the calls of an event complete.
type CompletionRule struct {
	// Events are those whose requests it completes.
	Events map[int32]bool
	Choice CompletionChoice
	// Always means that each call of the runs completes a request: without one, the call is not made.
	Always bool
	// Drains means that a loop with nothing else in it ends when none of the requests is open.
	Drains bool
	// LeavesNone means that none of the requests is open when a rank of the runs ends.
	LeavesNone bool
	// Single means that each call completes one request.
	Single bool
	// Follows means that ranks of the runs make the call wherever one of the requests is open, and nowhere else: where no
	// law tells who makes it, that follows from who made the requests.
	Follows bool
}

// SharesWith reports whether two rules are about requests of the same event.
func (r *CompletionRule) SharesWith(o *CompletionRule) bool {
	for event := range r.Events {
		if o.Events[event] {
			return true
		}
	}
	return false
}

// CompletionChoice tells which of the open requests of its events a call completes.
type CompletionChoice uint8

const (
	CompleteAll CompletionChoice = iota
	CompleteOldest
	CompleteLatest
	CompleteUnknown // no rule fits the runs
)

// findCompletionRules sets the completion rules of sites. It returns warnings for calls without a rule.
func findCompletionRules(sites []*Site, sig *signature.Signature) (warnings []string) {
	rules := checkCompletions(sig)
	for _, x := range sites {
		r := rules[x.Event.ID]
		if r == nil {
			continue
		}
		call := sig.Symbols[x.Event.Symbol].CallID
		x.Completes = &CompletionRule{Events: r.events, Always: !r.none, Drains: !r.leaves, LeavesNone: !r.forgets,
			Single:  r.single && completesOne(call),
			Follows: !r.none && !r.passes && !r.strays && call.Is(schema.FactBlocking) && call != schema.CallWaitsome}
		switch {
		case r.all && (!r.oldest || !completesOne(call)): // of one request, it may be the oldest of several elsewhere
			x.Completes.Choice = CompleteAll
		case r.oldest:
			x.Completes.Choice = CompleteOldest
		case r.latest:
			x.Completes.Choice = CompleteLatest
		default:
			x.Completes.Choice = CompleteUnknown
			warnings = append(warnings, fmt.Sprintf(
				"%s completes requests in an order without a rule; the oldest are taken",
				sig.NodeName(x.Event)))
		}
	}
	return warnings
}

// completesOne reports whether a call can complete only one request: others may complete as many as are ready, or as
// there are.
func completesOne(call schema.CallID) bool {
	switch call {
	case schema.CallWait, schema.CallWaitany, schema.CallTest, schema.CallTestany:
		return true
	}
	return false
}

// completionCheck has what all calls of an event have in common: which rules fit them.
type completionCheck struct {
	events              map[int32]bool // that made the requests
	all, oldest, latest bool
	none                bool // some call completes no request
	single              bool // each call completes one request
	leaves              bool // a request is open after a loop with nothing else in it
	forgets             bool // a request is open at the end of a rank
	passes              bool // a rank passes the place of the call, or leaves a loop around it, with an open request
	// strays means that a call completes a request from before the iteration, after another call of the iteration.
	strays bool
}

// checkCompletions returns, by node, which rules fit the calls of an event; nil for events that complete nothing.
func checkCompletions(sig *signature.Signature) []*completionCheck {
	nodes := sig.Nodes()
	c := completionChecker{sig: sig, checks: make([]*completionCheck, len(nodes)),
		isCompleted: make([]bool, len(nodes))}
	for _, n := range nodes {
		for _, call := range sig.Values[n.ID].Events {
			for _, b := range call.Completes {
				if c.checks[n.ID] == nil {
					c.checks[n.ID] = &completionCheck{events: map[int32]bool{}, all: true, oldest: true, latest: true,
						single: true}
				}
				c.checks[n.ID].events[b[0]] = true
				c.isCompleted[b[0]] = true
			}
		}
	}
	c.below = make([][]*completionCheck, len(nodes))
	for _, n := range slices.Backward(nodes) { // a loop comes before what is in it
		if r := c.checks[n.ID]; r != nil {
			c.below[n.ID] = []*completionCheck{r}
		}
		if n.Parent != nil {
			c.below[n.Parent.ID] = append(c.below[n.Parent.ID], c.below[n.ID]...)
		}
	}
	for _, root := range sig.Roots {
		c.open, c.made = c.open[:0], make([]int32, len(nodes))
		c.loop(nodes[0], sig.Values[0].Loops[root])
		for _, r := range c.checks {
			if r != nil {
				r.forgets = r.forgets || c.hasOpen(r)
			}
		}
	}
	return c.checks
}

// completionChecker goes through the calls of all ranks.
type completionChecker struct {
	sig         *signature.Signature
	checks      []*completionCheck
	below       [][]*completionCheck // by node: of the events at or below it
	isCompleted []bool               // by node: other calls complete its calls
	open        []signature.Position // calls of the rank that are not completed, in order
	made        []int32              // calls of the rank so far, by node

	candidates, completed []int // scratch: indexes in open
}

// loop goes through iterations. Repetitions are followed until the open requests after one are those before it, as then
// all further ones do the same.
func (c *completionChecker) loop(n *template.Node, items []fold.Item) {
	for i := range items {
		x := &items[i]
		if x.Times == 0 {
			c.iteration(n, c.sig.Values[n.ID].Bodies[x.Value])
			continue
		}
		for k := int64(0); k < x.Times; k++ {
			left := x.Times - k - 1
			if left == 0 || k&(k-1) != 0 { // compare, which takes a copy, only after 0, 1, 2, 4, ... times
				c.loop(n, x.Items)
				continue
			}
			open, made := slices.Clone(c.open), slices.Clone(c.made)
			c.loop(n, x.Items)
			if c.sameOpen(open, made) {
				c.repeat(made, int32(left))
				break
			}
		}
	}
}

// sameOpen reports whether the open requests are as many calls ago as others were.
func (c *completionChecker) sameOpen(open []signature.Position, made []int32) bool {
	return slices.EqualFunc(open, c.open, func(a, b signature.Position) bool {
		return a.Node == b.Node && made[a.Node]-a.Number == c.made[b.Node]-b.Number
	})
}

// repeat adds the changes since a saved state once more for each of times.
func (c *completionChecker) repeat(since []int32, times int32) {
	for i := range c.open {
		p := &c.open[i]
		p.Number += times * (c.made[p.Node] - since[p.Node])
	}
	for i := range c.made {
		c.made[i] += times * (c.made[i] - since[i])
	}
}

func (c *completionChecker) iteration(n *template.Node, body []int32) {
	before := c.withOpen(n)
	next := int32(0) // the first child that the rank has not passed
	for i := 0; i < len(body); i += 2 {
		child, value := n.Children[body[i]], body[i+1]
		c.passAll(n.Children[next:body[i]])
		next = body[i] + 1
		for _, r := range c.below[child.ID] {
			r.strays = r.strays || i > 0 && slices.Contains(before, r)
		}
		if child.Loop {
			c.loop(child, c.sig.Values[child.ID].Loops[value])
			if r := c.checks[child.Children[0].ID]; r != nil && len(child.Children) == 1 {
				r.leaves = r.leaves || c.hasOpen(r)
			}
			c.passAll(n.Children[body[i]:next])
			continue
		}
		if r := c.checks[child.ID]; r != nil {
			c.complete(r, c.sig.Values[child.ID].Events[value])
		}
		if c.isCompleted[child.ID] {
			c.open = append(c.open, signature.Position{Node: child.ID, Number: c.made[child.ID]})
		}
		c.made[child.ID]++
	}
	c.passAll(n.Children[next:])
}

// withOpen returns the rules of events at or below a node that have an open request.
func (c *completionChecker) withOpen(n *template.Node) (rules []*completionCheck) {
	for _, r := range c.below[n.ID] {
		if len(c.open) > 0 && c.hasOpen(r) {
			rules = append(rules, r)
		}
	}
	return rules
}

// passAll notes which calls at or below some nodes are not made, or no more, though one of their requests is open.
func (c *completionChecker) passAll(nodes []*template.Node) {
	for _, n := range nodes {
		for _, r := range c.withOpen(n) {
			r.passes = true
		}
	}
}

// hasOpen reports whether one of the requests that an event completes is open.
func (c *completionChecker) hasOpen(r *completionCheck) bool {
	return slices.ContainsFunc(c.open, func(p signature.Position) bool { return r.events[p.Node] })
}

// complete rules out what does not fit a call, and closes the requests that it completes.
func (c *completionChecker) complete(r *completionCheck, call *signature.Call) {
	c.candidates, c.completed = c.candidates[:0], c.completed[:0]
	for i, p := range c.open {
		if r.events[p.Node] {
			c.candidates = append(c.candidates, i)
		}
	}
	for _, b := range call.Completes {
		for k := range b[2] {
			if i := slices.Index(c.open, b.Position(c.made, k)); i >= 0 {
				c.completed = append(c.completed, i)
			}
		}
	}
	slices.Sort(c.completed)
	r.none = r.none || len(c.completed) == 0
	r.single = r.single && len(c.completed) == 1
	r.all = r.all && slices.Equal(c.completed, c.candidates)
	single := len(c.completed) == 1 || len(c.candidates) == 0 && len(c.completed) == 0
	r.oldest = r.oldest && single && (len(c.completed) == 0 || c.completed[0] == c.candidates[0])
	r.latest = r.latest && single &&
		(len(c.completed) == 0 || c.completed[0] == c.candidates[len(c.candidates)-1])
	for _, i := range slices.Backward(c.completed) {
		c.open = slices.Delete(c.open, i, i+1)
	}
}
