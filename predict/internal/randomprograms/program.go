package randomprograms

import (
	"fmt"
	"strings"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// Program is a random program.
type Program struct {
	// Train and Ask are numbers of ranks, ascending.
	Train, Ask []int

	layout layout
	items  []item
	// hasRequests is set if statements may be nonblocking.
	hasRequests bool
	// features has, by call site, what the statement is made of.
	features [][]string
}

// Features returns what the statement with a call site is made of.
func (p *Program) Features(site int) []string { return p.features[site] }

// Sites returns the number of call sites.
func (p *Program) Sites() int { return len(p.features) }

// String describes the program.
func (p *Program) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %v -> %v:", p.layout.name, p.Train, p.Ask)
	for _, i := range p.items {
		fmt.Fprintf(&b, " %s;", i)
	}
	return b.String()
}

// Run returns the program's run on a number of ranks.
func (p *Program) Run(ranks int) *signature.Run {
	calls := make([][]testruns.Call, ranks)
	places := make([]place, ranks)
	for r := range ranks {
		places[r] = p.layout.placeOf(ranks, r)
	}
	exchanges, comms := map[*leaf][]exchange{}, newComms()
	for r := range ranks {
		e := &execution{program: p, here: places[r], places: places, exchanges: exchanges, comms: comms}
		e.runAll(p.items)
		calls[r] = e.calls
	}
	return p.requested(testruns.Calls(ranks, comms.members, func(rank int) []testruns.Call { return calls[rank] }))
}

// item is a statement: a loop, a leaf, or a wait.
type item struct {
	loop *loop
	leaf *leaf
	wait *wait
}

func (i item) String() string {
	switch {
	case i.leaf != nil:
		return strings.Join(i.leaf.features, ", ")
	case i.wait != nil:
		return i.wait.features[0]
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s {", i.loop.name)
	for _, x := range i.loop.body {
		fmt.Fprintf(&b, " %s;", x)
	}
	return b.String() + " }"
}

// loop repeats items.
type loop struct {
	name  string
	count func(here place, around []int) int // around has the iterations of the loops around it
	body  []item
}

// leaf communicates.
type leaf struct {
	features []string
	site     int // of the first call; the second one follows
	guard    func(place) bool
	partners partners
	size     size
	element  int
	nulls    nulls
	requests requests
	// collective is set if all ranks make this call instead, or with divisions those of each part.
	collective schema.CallID
	root       func(here place, around []int) int
	divisions  []division
}

// execution is a rank on its way through the program.
type execution struct {
	program   *Program
	here      place
	places    []place              // of all ranks
	exchanges map[*leaf][]exchange // of each step, for all ranks
	comms     *comms               // of all ranks
	around    []int
	open      int // requests
	calls     []testruns.Call
	// counted is the number of calls if they are only counted, up to limit.
	onlyCounts     bool
	counted, limit int
}

// add adds a call.
func (e *execution) add(c testruns.Call) {
	if e.onlyCounts {
		e.counted++
		return
	}
	e.calls = append(e.calls, c)
}

// isFull reports whether more calls are counted than there may be.
func (e *execution) isFull() bool { return e.onlyCounts && e.counted > e.limit }

// exceeds reports whether the program makes more than a number of calls on a number of ranks.
func (p *Program) exceeds(limit, ranks int) bool {
	places := make([]place, ranks)
	for r := range ranks {
		places[r] = p.layout.placeOf(ranks, r)
	}
	exchanges, comms := map[*leaf][]exchange{}, newComms()
	for r := range ranks {
		e := &execution{program: p, here: places[r], places: places, exchanges: exchanges, comms: comms, onlyCounts: true,
			limit: limit}
		e.runAll(p.items)
		if limit -= e.counted; limit < 0 {
			return true
		}
	}
	return false
}

// exchange is the messages of a step.
type exchange struct{ sends, receives [][]message }

type message struct{ peer, bytes int }

func (e *execution) runAll(items []item) {
	for _, i := range items {
		switch {
		case i.leaf != nil:
			e.communicate(i.leaf)
			continue
		case i.wait != nil:
			e.waitForAll(i.wait.call, i.wait.site, false)
			continue
		}
		n := i.loop.count(e.here, e.around)
		e.around = append(e.around, 0)
		for k := range n {
			if e.isFull() {
				break
			}
			e.around[len(e.around)-1] = k
			e.runAll(i.loop.body)
		}
		e.around = e.around[:len(e.around)-1]
	}
}

// communicate makes the calls of a leaf: in each step what the rank sends, then what it receives.
func (e *execution) communicate(l *leaf) {
	switch {
	case l.divisions != nil:
		e.communicateInParts(l)
		return
	case l.collective != 0:
		c := testruns.Call{Site: l.site, Call: l.collective, To: None, From: None, Root: l.root(e.here, e.around),
			Bytes: l.element * l.size(e.here, 0, 0), Element: l.element}
		e.add(c)
		return
	}
	steps, known := e.exchanges[l]
	if !known {
		steps = l.exchanges(e.places)
		e.exchanges[l] = steps
	}
	for i, x := range steps {
		if l.nulls != noNulls {
			e.exchangeWithNulls(l, i, x.sends[e.here.rank], x.receives[e.here.rank])
			continue
		}
		if l.requests != noRequests {
			e.exchangeWithRequests(l, i, len(steps), x.sends[e.here.rank], x.receives[e.here.rank])
			continue
		}
		for _, m := range x.sends[e.here.rank] {
			e.add(testruns.Call{Site: l.site, Call: schema.CallSend, To: m.peer, From: None,
				Tag: 7, Bytes: m.bytes, Element: l.element})
		}
		for _, m := range x.receives[e.here.rank] {
			e.add(testruns.Call{Site: l.site + 1, Call: schema.CallRecv, To: None, From: m.peer,
				Tag: 7, Bytes: m.bytes, Element: l.element})
		}
	}
}

// exchanges returns the messages of all steps.
func (l *leaf) exchanges(places []place) (steps []exchange) {
	for step := range l.partners.steps(places[0]) {
		x := exchange{make([][]message, len(places)), make([][]message, len(places))}
		for _, from := range places {
			if !l.guard(from) {
				continue
			}
			for _, to := range l.partners.to(from, step) {
				bytes := l.element * l.size(from, to, step)
				x.sends[from.rank] = append(x.sends[from.rank], message{to, bytes})
				x.receives[to] = append(x.receives[to], message{from.rank, bytes})
			}
		}
		steps = append(steps, x)
	}
	return steps
}
