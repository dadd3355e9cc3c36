package predict_test

import (
	"maps"
	"math/bits"
	"slices"
	"testing"

	"github.com/commq/commq/predict/generate"
	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/model"
	"github.com/commq/commq/predict/report"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

func isend(site, to int) testruns.Call {
	return testruns.Call{Site: site, Call: schema.CallIsend, To: to, From: testruns.None, Tag: 9, Bytes: 80,
		Root: testruns.None}
}

func irecv(site, from int) testruns.Call {
	return testruns.Call{Site: site, Call: schema.CallIrecv, To: testruns.None, From: from, Tag: 9, Bytes: 80,
		Root: testruns.None}
}

// plain returns a call without peers.
func plain(call schema.CallID, site int) testruns.Call {
	return testruns.Call{Site: site, Call: call, To: testruns.None, From: testruns.None, Root: testruns.None}
}

// axesInTurn exchanges faces of a box along one axis after the other, 3 times: with the neighbours that there are, then
// MPI_Waitany as often as there are requests, at one place for all axes.
func axesInTurn(ranks int) *signature.Run {
	dims := evenBox(ranks)
	strides := [3]int{dims[1] * dims[2], dims[2], 1}
	return testruns.WithRequests(testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		for range 3 {
			for _, a := range []int{1, 0, 2} {
				var sends []testruns.Call
				for side, to := range []int{rank - strides[a], rank + strides[a]} {
					if x := rank/strides[a]%dims[a] + 2*side - 1; x >= 0 && x < dims[a] {
						all = append(all, irecv(4*a+side, to))
						sends = append(sends, isend(4*a+2+side, to))
					}
				}
				all = append(all, sends...)
				for range 2 * len(sends) {
					all = append(all, plain(schema.CallWaitany, 12))
				}
			}
			all = append(all, plain(schema.CallBarrier, 13))
		}
		return all
	}))
}

// copiedWaits receives from the rank below along each axis of a cube and sends to the one above. Ranks with neighbours
// on both sides wait for what they receive at another place than those with one.
func copiedWaits(ranks int) *signature.Run {
	g := 1
	for g*g*g < ranks {
		g++
	}
	return testruns.WithRequests(testruns.Calls(ranks, nil, func(rank int) []testruns.Call {
		var receives, sends, waits []testruns.Call
		for a, stride := range []int{g * g, g, 1} {
			x := rank / stride % g
			if x > 0 {
				site := 5*a + 2
				if x < g-1 {
					site++
				}
				receives, waits = append(receives, irecv(5*a, rank-stride)), append(waits, plain(schema.CallWait, site))
			}
			if x < g-1 {
				sends = append(sends, isend(5*a+1, rank+stride))
			}
		}
		all := slices.Concat(receives, sends, waits)
		if len(sends) > 0 {
			all = append(all, plain(schema.CallWaitall, 15))
		}
		return all
	}))
}

// Who completes requests follows from who makes them, in loops that the runs show shorter or to begin later, and at
// places that one run shows.
func TestWaitsFollowRequests(t *testing.T) {
	for _, c := range []claim{
		{"axes in turn", axesInTurn, []int{2, 4, 8, 16}, []int{32}},
		{"two places to wait for the same receives", copiedWaits, []int{8, 27, 64}, []int{125}},
	} {
		m := train(t, c.training, c.run)
		for _, ranks := range c.asked {
			x, err := generate.Predict(t.Context(), m, int32(ranks), generate.Options{})
			if x == nil {
				t.Fatal(err)
			}
			v := report.Judge(m, x, sign(t, c.run(ranks)))
			if len(v.Places) > 0 || v.Edges.Unknown+v.Calls.Unknown+v.Messages.Unknown > 0 || v.Calls.Exact == 0 {
				t.Errorf("%s, at %d ranks: %+v", c.name, ranks, v)
			}
		}
	}
}

// sentBefore sends 4 times to the next rank on a ring and waits, in each step but the first, for the send of the step
// before; the last send is completed at another place.
func sentBefore(ranks int) *signature.Run {
	return testruns.WithRequests(testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		for step := range 4 {
			if step > 0 {
				all = append(all, plain(schema.CallWait, 0))
			}
			r := irecv(2, (rank+ranks-1)%ranks)
			r.Call = schema.CallRecv
			all = append(all, isend(1, (rank+1)%ranks), r)
		}
		return append(all, plain(schema.CallWait, 3))
	}))
}

// receivedBefore begins to receive before a loop, and waits for it in the first step after a send.
func receivedBefore(ranks int) *signature.Run {
	return testruns.WithRequests(testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		left, right := (rank+ranks-1)%ranks, (rank+1)%ranks
		all = append(all, irecv(0, left))
		for step := range 4 {
			s, r := isend(1, right), irecv(3, left)
			s.Call, r.Call = schema.CallSend, schema.CallRecv
			all = append(all, s)
			if step == 0 {
				all = append(all, plain(schema.CallWait, 2))
			} else {
				all = append(all, r)
			}
		}
		return all
	}))
}

// A call follows from its requests if it is made wherever one is open and nowhere else.
func TestFollowsRequests(t *testing.T) {
	for _, c := range []struct {
		name    string
		run     func(ranks int) *signature.Run
		ranks   []int
		follows map[int]bool // by site
	}{
		{"two places for the same receives", copiedWaits, []int{8, 27},
			map[int]bool{2: false, 3: true, 7: false, 8: true, 12: false, 13: true, 15: true}},
		{"the last send is completed after the loop", sentBefore, []int{4, 8}, map[int]bool{0: false, 3: true}},
		{"another call of the iteration is before it", receivedBefore, []int{4, 8}, map[int]bool{2: false}},
		{"several requests, if so by chance", inParts, []int{4, 8}, map[int]bool{4: false}},
		{"a test or a wait", testedFirst, []int{4, 8, 16}, map[int]bool{2: false, 3: false}},
	} {
		m := train(t, c.ranks, c.run)
		got := map[int]bool{}
		for _, x := range m.Sites {
			if frame := m.Joint.Sig.Symbols[x.Event.Symbol].Frame; x.Completes != nil && frame != nil {
				got[int(*frame)] = x.FollowsRequests()
			}
		}
		if !maps.Equal(got, c.follows) {
			t.Errorf("%s: %v, want %v", c.name, got, c.follows)
		}
	}
}

// twoWaits has all ranks but the last two send to the one after the next and wait at site 2, then all but the last send
// to the next and wait at site 5.
func twoWaits(ranks int) *signature.Run {
	return testruns.WithRequests(testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		add := func(site, to, from int) {
			if from >= 0 && from < ranks {
				r := irecv(site+1, from)
				r.Call = schema.CallRecv
				all = append(all, r)
			}
			if to < ranks {
				all = append(all, isend(site, to), plain(schema.CallWait, site+2))
			}
		}
		add(0, rank+2, rank-2)
		add(3, rank+1, rank-1)
		return all
	}))
}

// Where a law has a rank wait that has no request, it or the law of who makes the requests is wrong.
func TestLawOfWaitsWithoutRequests(t *testing.T) {
	m := train(t, []int{4, 5, 8, 9, 12}, twoWaits)
	sites := map[int]*model.Site{}
	for _, x := range m.Sites {
		sites[int(*m.Joint.Sig.Symbols[x.Event.Symbol].Frame)] = x
	}
	wait := sites[2]
	for _, c := range []struct {
		in        string
		isUnknown bool
	}{{wait.In, false}, {sites[5].In, true}} {
		wait.In = c.in
		x, err := generate.Predict(t.Context(), m, 14, generate.Options{})
		if x == nil {
			t.Fatal(err)
		}
		if gap := x.Gaps[wait.Event.ID]; (gap != nil && gap.Calls != "") != c.isUnknown {
			t.Errorf("callers %s: %+v, %v; want unknown %v", c.in, gap, err, c.isUnknown)
		}
	}
}

// inParts exchanges with both neighbours on a ring and waits for two requests at a time.
func inParts(ranks int) *signature.Run {
	return testruns.WithRequests(testruns.Calls(ranks, nil, func(rank int) []testruns.Call {
		left, right := (rank+ranks-1)%ranks, (rank+1)%ranks
		return []testruns.Call{irecv(0, left), irecv(1, right), isend(2, right), isend(3, left),
			plain(schema.CallWaitsome, 4), plain(schema.CallWaitsome, 4)}
	}))
}

// solverRequests sends as many messages as a solver has steps along a ring, and completes them with MPI_Waitany.
func solverRequests(ranks int) *signature.Run {
	steps := map[int]int{4: 9, 8: 10, 16: 11, 32: 11}[ranks]
	return testruns.WithRequests(testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		for range steps {
			all = append(all, irecv(0, (rank+ranks-1)%ranks))
		}
		for range steps {
			all = append(all, isend(1, (rank+1)%ranks))
		}
		for range 2 * steps {
			all = append(all, plain(schema.CallWaitany, 2))
		}
		return all
	}))
}

// testedFirst exchanges 5 times on a ring. MPI_Testall completes the requests, or MPI_Waitall after it if they take
// longer: which of them is a matter of time.
func testedFirst(ranks int) *signature.Run {
	return testruns.WithRequests(testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		for step := range 5 {
			all = append(all, irecv(0, (rank+ranks-1)%ranks), isend(1, (rank+1)%ranks))
			if (rank*7+step*5+ranks)%11%3 == 0 {
				all = append(all, plain(schema.CallTestall, 2))
			} else {
				all = append(all, plain(schema.CallWaitall, 3))
			}
		}
		return all
	}))
}

// levelsOfRequests exchanges at levels, the finest first, of which there are more on more ranks. At each level each rank
// exchanges with another one, in an order without a law, and waits for both requests.
func levelsOfRequests(ranks int) *signature.Run {
	masks := []int{1, 3, 2, 5, 11, 6}
	return testruns.WithRequests(testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		for level := bits.Len(uint(ranks)) - 3; level >= 0; level-- {
			to := rank ^ masks[level]
			all = append(all, irecv(0, to), isend(1, to), plain(schema.CallWait, 2), plain(schema.CallWait, 3))
		}
		return all
	}))
}

// lateLevels is the same three times, with a barrier after each.
func lateLevels(ranks int) *signature.Run {
	masks := []int{1, 3, 2, 5, 11, 6}
	return testruns.WithRequests(testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		levels := bits.Len(uint(ranks)) - 2
		for range 3 {
			for level := levels - 1; level >= 0; level-- {
				to := rank ^ masks[level]
				all = append(all, irecv(0, to), send(1, to, 80), plain(schema.CallWait, 2))
				all[len(all)-2].Tag = 9
			}
			all = append(all, plain(schema.CallBarrier, 3))
		}
		return all
	}))
}

func isLast(step, steps int) bool   { return step == steps-1 }
func isMiddle(step, steps int) bool { return step == steps/2 || step == steps-1 }
func isThird(step, steps int) bool  { return step%3 == 2 || step == steps-1 }

// drainedIn sends in each of as many steps as a solver has, and completes all requests with MPI_Waitany in some of
// them.
func drainedIn(in func(step, steps int) bool, apart bool) func(ranks int) *signature.Run {
	return func(ranks int) *signature.Run {
		steps := map[int]int{4: 9, 8: 10, 16: 11, 32: 11}[ranks]
		return testruns.WithRequests(testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
			open := 0
			for step := range steps {
				all = append(all, irecv(0, (rank+ranks-1)%ranks), isend(1, (rank+1)%ranks))
				if open += 2; !in(step, steps) {
					continue
				}
				if apart {
					all = append(all, plain(schema.CallBarrier, 3))
				}
				for range open {
					all = append(all, plain(schema.CallWaitany, 2))
				}
				open = 0
			}
			return all
		}))
	}
}

// A number of completing calls is not called exact if that of the requests, or how many a call completes, is not, or if
// it depends on how long something takes.
func TestClaimsOfWaits(t *testing.T) {
	judgeClaims(t, []claim{
		{"two requests at a time", inParts, []int{4, 8, 16}, []int{32}},
		{"as many requests as steps of a solver", solverRequests, []int{4, 8, 16}, []int{32}},
		{"a test in place of a wait", testedFirst, []int{4, 8, 16}, []int{32}},
		{"requests of all steps of a solver, in the last", drainedIn(isLast, false), []int{4, 8, 16}, []int{32}},
		{"the same after a barrier", drainedIn(isLast, true), []int{4, 8, 16}, []int{32}},
		{"requests of steps of a solver, in the middle", drainedIn(isMiddle, false), []int{4, 8, 16}, []int{32}},
		{"requests of steps of a solver, in every third", drainedIn(isThird, true), []int{4, 8, 16}, []int{32}},
		{"finer levels on more ranks", levelsOfRequests, []int{4, 8, 16}, []int{32, 64}},
		{"finer levels on more ranks, several times", lateLevels, []int{4, 8, 16}, []int{32, 64}},
	})
}
