package predict_test

import (
	"testing"

	"github.com/commq/commq/predict/internal/testruns"
	"github.com/commq/commq/predict/signature"
	"github.com/commq/commq/schema"
)

// withRequests gives the nonblocking calls of a run requests: MPI_Waitall completes all that are open on its rank,
// MPI_Waitsome the two oldest, other waits the oldest.
func withRequests(run *signature.Run) *signature.Run {
	events := run.Events
	run.Events = func(add func(*schema.Events) error) error {
		return events(func(b *schema.Events) error {
			open := map[int32][]int{} // rows, by rank
			for i := range b.Len() {
				rank, call := b.Rank[i], schema.CallID(b.Call[i])
				switch {
				case call.Is(schema.FactNonblocking):
					b.Request[i] = b.Seq[i]
					open[rank] = append(open[rank], i)
				case call.Is(schema.FactCompletes):
					n := 1
					switch call {
					case schema.CallWaitall, schema.CallTestall:
						n = len(open[rank])
					case schema.CallWaitsome:
						n = 2
					}
					n = min(n, len(open[rank]))
					for _, k := range open[rank][:n] {
						b.DoneSeq[k] = b.Seq[i]
						b.Request[i] = b.Request[k]
					}
					if n != 1 {
						b.Request[i] = schema.NullInt64
					}
					open[rank], b.Comm[i] = open[rank][n:], schema.NullInt32
				}
			}
			return add(b)
		})
	}
	return run
}

func isend(site, to int) testruns.Call {
	return testruns.Call{Site: site, Call: schema.CallIsend, To: to, From: testruns.None, Tag: 9, Bytes: 80,
		Root: testruns.None}
}

func irecv(site, from int) testruns.Call {
	return testruns.Call{Site: site, Call: schema.CallIrecv, To: testruns.None, From: from, Tag: 9, Bytes: 80,
		Root: testruns.None}
}

func wait(call schema.CallID, site int) testruns.Call {
	return testruns.Call{Site: site, Call: call, To: testruns.None, From: testruns.None, Root: testruns.None}
}

// inParts exchanges with both neighbours on a ring and waits for two requests at a time.
func inParts(ranks int) *signature.Run {
	return withRequests(testruns.Calls(ranks, nil, func(rank int) []testruns.Call {
		left, right := (rank+ranks-1)%ranks, (rank+1)%ranks
		return []testruns.Call{irecv(0, left), irecv(1, right), isend(2, right), isend(3, left),
			wait(schema.CallWaitsome, 4), wait(schema.CallWaitsome, 4)}
	}))
}

// solverRequests sends as many messages as a solver has steps along a ring, and completes them with MPI_Waitany.
func solverRequests(ranks int) *signature.Run {
	steps := map[int]int{4: 9, 8: 10, 16: 11, 32: 11}[ranks]
	return withRequests(testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		for range steps {
			all = append(all, irecv(0, (rank+ranks-1)%ranks))
		}
		for range steps {
			all = append(all, isend(1, (rank+1)%ranks))
		}
		for range 2 * steps {
			all = append(all, wait(schema.CallWaitany, 2))
		}
		return all
	}))
}

// testedFirst exchanges 5 times on a ring. MPI_Testall completes the requests, or MPI_Waitall after it if they take
// longer: which of them is a matter of time.
func testedFirst(ranks int) *signature.Run {
	return withRequests(testruns.Calls(ranks, nil, func(rank int) (all []testruns.Call) {
		for step := range 5 {
			all = append(all, irecv(0, (rank+ranks-1)%ranks), isend(1, (rank+1)%ranks))
			if (rank*7+step*5+ranks)%11%3 == 0 {
				all = append(all, wait(schema.CallTestall, 2))
			} else {
				all = append(all, wait(schema.CallWaitall, 3))
			}
		}
		return all
	}))
}

// A number of completing calls is not called exact if that of the requests, or how many a call completes, is not, or if
// it depends on how long something takes.
func TestClaimsOfWaits(t *testing.T) {
	judgeClaims(t, []claim{
		{"two requests at a time", inParts, []int{4, 8, 16}, []int{32}},
		{"as many requests as steps of a solver", solverRequests, []int{4, 8, 16}, []int{32}},
		{"a test in place of a wait", testedFirst, []int{4, 8, 16}, []int{32}},
	})
}
