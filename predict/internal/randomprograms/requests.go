package randomprograms

import (
	"math/rand/v2"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// requests tells how a statement that makes requests completes them. Ranks without requests do not wait, but where
// MPI_Waitall is called anyway.
type requests int

const (
	noRequests   requests = iota // MPI_Send and MPI_Recv
	allOfStep                    // MPI_Waitall after each step
	allAnyway                    // the same, on all ranks
	inOrder                      // MPI_Wait for one after the other, after each step
	untilNone                    // MPI_Waitany until none is open, after each step
	allOfSteps                   // MPI_Waitall after the last step
	anyOfSteps                   // MPI_Waitany after the last step
	stepLater                    // MPI_Wait before the next step, MPI_Waitall after the last one
	onlyReceives                 // MPI_Irecv, MPI_Send, then MPI_Wait
	onlySends                    // MPI_Isend, MPI_Recv, then MPI_Waitall
	leftOpen                     // a statement at the end of the loop around completes them, or after that, or at the end
	allRequests                  // the number of ways
)

func (r requests) String() string {
	return [...]string{"no requests", "waitall", "waitall on all ranks", "waits in order", "waitany until none is open",
		"waitall after all steps", "waitany after all steps", "waits a step later", "irecv", "isend", "left open"}[r]
}

// sitesOfWaits are the call sites of a statement's waits, after those of its sends and receives.
const sitesOfWaits = 2

// NewWithRequests draws the program of New with a number, in which most of the statements that send messages are
// nonblocking and wait for their requests in some way.
func NewWithRequests(number uint64) *Program {
	return (&grammar{Rand: rand.New(rand.NewPCG(number, 25)), withRequests: rand.New(rand.NewPCG(number, 28))}).drawSmall()
}

// drawRequests draws how a statement completes its requests.
func (g *grammar) drawRequests(l *leaf) {
	for range sitesOfWaits {
		g.features = append(g.features, nil)
	}
	l.requests = requests(g.withRequests.IntN(int(allRequests)))
	g.left = g.left || l.requests == leftOpen
	l.features = append(l.features, l.requests.String())
}

// drawWait draws a statement that completes what others leave open.
func (g *grammar) drawWait(where string, around []string) item {
	w := &wait{site: len(g.features), call: schema.CallWaitall}
	what := "waitall "
	if g.withRequests.IntN(2) == 0 {
		w.call, what = schema.CallWaitany, "waitany "
	}
	w.features = append([]string{what + where}, around...)
	w.features = append(w.features, "layout "+g.layout.name)
	g.features = append(g.features, w.features)
	return item{wait: w}
}

// withWaits returns the items of a loop, and what comes after it, such that all requests are completed in some place.
func (g *grammar) withWaits(l *loop, around []string) []item {
	if g.withRequests == nil || !g.left {
		return []item{{loop: l}}
	}
	switch g.withRequests.IntN(3) {
	case 0:
		l.body = append(l.body, g.drawWait("at the end of an iteration", append([]string{l.name}, around...)))
		g.left = false
	case 1:
		after := g.drawWait("after a loop", around)
		g.left = false
		return []item{{loop: l}, after}
	}
	return []item{{loop: l}}
}

// wait is a statement that completes all open requests of a rank, if there are any.
type wait struct {
	features []string
	site     int
	call     schema.CallID
}

// waitForAll completes all open requests of the rank with calls of one site. Calls of MPI_Waitall are made anyway if
// always is set.
func (e *execution) waitForAll(call schema.CallID, site int, always bool) {
	times := e.open
	if call == schema.CallWaitall {
		times = min(times, 1)
		if always {
			times = 1
		}
	}
	for range times {
		e.add(testruns.Call{Site: site, Call: call, To: None, From: None, Root: None})
	}
	e.open = 0
}

// exchangeWithRequests makes the calls of a step, one of so many.
func (e *execution) exchangeWithRequests(l *leaf, step, steps int, sends, receives []message) {
	first, second := l.site+2, l.site+3
	if l.requests == stepLater && step > 0 {
		e.waitForAll(schema.CallWait, first, false)
	}
	receive, send := schema.CallIrecv, schema.CallIsend
	switch l.requests {
	case onlyReceives:
		send = schema.CallSend
	case onlySends:
		receive = schema.CallRecv
	}
	addReceives := func() {
		for _, m := range receives {
			e.add(testruns.Call{Site: l.site + 1, Call: receive, To: None, From: m.peer, Tag: 7, Bytes: m.bytes,
				Element: l.element, Root: None})
		}
	}
	if l.requests != onlySends {
		addReceives()
		e.open += len(receives)
	}
	for _, m := range sends {
		e.add(testruns.Call{Site: l.site, Call: send, To: m.peer, From: None, Tag: 7, Bytes: m.bytes, Element: l.element,
			Root: None})
	}
	if l.requests != onlyReceives {
		e.open += len(sends)
	}
	if l.requests == onlySends {
		addReceives()
	}
	isLast := step == steps-1
	switch l.requests {
	case allOfStep, onlySends:
		e.waitForAll(schema.CallWaitall, first, false)
	case allAnyway:
		e.waitForAll(schema.CallWaitall, first, true)
	case inOrder, onlyReceives:
		e.waitForAll(schema.CallWait, first, false)
	case untilNone:
		e.waitForAll(schema.CallWaitany, first, false)
	case allOfSteps:
		if isLast {
			e.waitForAll(schema.CallWaitall, first, false)
		}
	case anyOfSteps:
		if isLast {
			e.waitForAll(schema.CallWaitany, first, false)
		}
	case stepLater:
		if isLast {
			e.waitForAll(schema.CallWaitall, second, false)
		}
	}
}

// requested gives the calls of a run requests, if the program makes some.
func (p *Program) requested(run *signature.Run) *signature.Run {
	if !p.hasRequests {
		return run
	}
	return testruns.WithRequests(run)
}
