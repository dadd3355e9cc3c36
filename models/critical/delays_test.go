package critical

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/commq/commq/run"
	"github.com/commq/commq/schema"
)

// explained returns the delays as text, with the places that waited below each.
func explained(g *Graph) string {
	var lines []string
	for _, d := range g.Delays() {
		lines = append(lines, fmt.Sprintf("rank %d %s before %d %s: %d, excess %d", d.Rank, d.Kind, d.Site, d.Call,
			d.Ns, d.ExcessNs))
		var places []string
		for p, w := range d.Places {
			places = append(places, fmt.Sprintf("  %s at %d %s: %d in %.3g, longest %d of rank %d at %d", p.For, p.Site,
				p.Call, w.Ns,
				w.Calls, w.LongestNs, w.LongestRank, w.LongestAtNs))
		}
		slices.Sort(places)
		lines = append(lines, places...)
	}
	return strings.Join(lines, "\n")
}

// Delays worked out by hand.
func TestDelays(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() *Graph
		want string
	}{
		// Rank 0 computes for 100 ns before it sends, rank 1 for 30 before it receives: 70 too many.
		{"late sender", func() *Graph {
			g := graph(t, 2, Options{}, call{rank: 0, call: schema.CallSend, from: 100, to: 110},
				call{rank: 1, call: schema.CallRecv, from: 30, to: 130})
			g.message(0, 0, 1, 0, 0)
			return g
		}, `rank 0 compute before 0 MPI_Send: 70, excess 70
  late sender at 100 MPI_Recv: 70 in 1, longest 70 of rank 1 at 30`},
		// Rank 0 computes for 40 ns and for 60, rank 1 for 20 somewhere else: both explain the wait, by their lengths.
		{"two activities", func() *Graph {
			return graph(t, 2, Options{},
				call{rank: 0, call: schema.CallCommDup, from: 40, to: 40},
				call{rank: 0, call: schema.CallBarrier, from: 100, to: 101, comm: 1, instance: 1},
				call{rank: 1, call: schema.CallBarrier, from: 20, to: 101, comm: 1, instance: 1})
		}, `rank 0 compute before 1 MPI_Barrier: 48, excess 48
  wait at collective at 100 MPI_Barrier: 48 in 0.6, longest 48 of rank 1 at 20
rank 0 compute before 0 MPI_Comm_dup: 32, excess 32
  wait at collective at 100 MPI_Barrier: 32 in 0.4, longest 32 of rank 1 at 20`},
		// A ring of four ranks: 0 and 2 wait for their neighbour 1, and 3 for its neighbour 2 alone.
		{"neighbourhood", func() *Graph {
			g := New(4, Options{})
			for rank := range int32(4) {
				g.AddMember(1, rank)
				g.AddSources(1, rank, []int32{(rank + 3) % 4, (rank + 1) % 4})
			}
			for rank, at := range [][2]int64{{10, 101}, {100, 101}, {50, 101}, {30, 52}} {
				g.rows(t, call{rank: int32(rank), call: schema.CallNeighborAlltoall, from: at[0], to: at[1], comm: 1,
					instance: 1})
			}
			return g
		}, `rank 1 compute before 100 MPI_Neighbor_alltoall: 140, excess 90
  wait at collective at 0 MPI_Neighbor_alltoall: 90 in 1, longest 90 of rank 0 at 10
  wait at collective at 200 MPI_Neighbor_alltoall: 50 in 1, longest 50 of rank 2 at 50
rank 2 compute before 200 MPI_Neighbor_alltoall: 20, excess 20
  wait at collective at 300 MPI_Neighbor_alltoall: 20 in 1, longest 20 of rank 3 at 30`},
		// Rank 2 computes for 90 ns; rank 1 waits for it and then sends to rank 0, which waits for rank 2 through rank
		// 1.
		{"through another rank", func() *Graph {
			g := graph(t, 3, Options{},
				call{rank: 0, call: schema.CallRecv, from: 10, to: 96},
				call{rank: 1, call: schema.CallRecv, from: 10, to: 92},
				call{rank: 1, call: schema.CallSend, from: 94, to: 95},
				call{rank: 2, call: schema.CallSend, from: 90, to: 91})
			g.message(2, 0, 1, 0, 0)
			g.message(1, 1, 0, 0, 0)
			return g
		}, `rank 2 compute before 200 MPI_Send: 160, excess 80
  late sender at 0 MPI_Recv: 80 in 0.957, longest 80 of rank 0 at 10
  late sender at 100 MPI_Recv: 80 in 1, longest 80 of rank 1 at 10
rank 1 transfer before 100 MPI_Recv: 2, excess 2
  late sender at 0 MPI_Recv: 2 in 0.0213, longest 2 of rank 0 at 10
rank 1 compute before 101 MPI_Send: 2, excess 2
  late sender at 0 MPI_Recv: 2 in 0.0213, longest 2 of rank 0 at 10`},
		// Three ranks wait for one: what each waited counts, and the excess once.
		{"collective", func() *Graph {
			return graph(t, 4, Options{},
				call{rank: 0, call: schema.CallBarrier, from: 10, to: 81, comm: 1, instance: 1},
				call{rank: 1, call: schema.CallBarrier, from: 20, to: 81, comm: 1, instance: 1},
				call{rank: 2, call: schema.CallBarrier, from: 30, to: 81, comm: 1, instance: 1},
				call{rank: 3, call: schema.CallBarrier, from: 80, to: 81, comm: 1, instance: 1})
		}, `rank 3 compute before 300 MPI_Barrier: 180, excess 70
  wait at collective at 0 MPI_Barrier: 70 in 1, longest 70 of rank 0 at 10
  wait at collective at 100 MPI_Barrier: 60 in 1, longest 60 of rank 1 at 20
  wait at collective at 200 MPI_Barrier: 50 in 1, longest 50 of rank 2 at 30`},
		// Rank 1 posts its receive at 100: rank 0's send waits from 20 on.
		{"late receiver", func() *Graph {
			g := graph(t, 2, Options{}, call{rank: 0, call: schema.CallSsend, from: 20, to: 105},
				call{rank: 1, call: schema.CallRecv, from: 100, to: 105})
			g.message(0, 0, 1, 0, 0)
			return g
		}, `rank 1 compute before 100 MPI_Recv: 80, excess 80
  late receiver at 0 MPI_Ssend: 80 in 1, longest 80 of rank 0 at 20`},
		// Rank 1 makes the windows 5 ns late. Rank 0 waits 70 ns in the fence of the first, rank 1 40 ns in that of the
		// second.
		{"windows", func() *Graph {
			return graph(t, 2, Options{},
				call{rank: 0, call: schema.CallWinCreate, from: 0, to: 5, comm: 1, instance: 1},
				call{rank: 0, call: schema.CallWinCreate, from: 5, to: 5, comm: 1, instance: 2},
				call{rank: 0, call: schema.CallWinFence, from: 10, to: 80, window: 1},
				call{rank: 0, call: schema.CallWinFence, from: 131, to: 131, window: 2},
				call{rank: 1, call: schema.CallWinCreate, from: 5, to: 5, comm: 1, instance: 1},
				call{rank: 1, call: schema.CallWinCreate, from: 5, to: 5, comm: 1, instance: 2},
				call{rank: 1, call: schema.CallWinFence, from: 80, to: 80, window: 1},
				call{rank: 1, call: schema.CallWinFence, from: 91, to: 131, window: 2})
		}, `rank 1 compute before 102 MPI_Win_fence: 70, excess 70
  wait at collective at 2 MPI_Win_fence: 70 in 1, longest 70 of rank 0 at 10
rank 0 compute before 3 MPI_Win_fence: 40, excess 40
  wait at collective at 103 MPI_Win_fence: 40 in 1, longest 40 of rank 1 at 91
rank 1 compute before 100 MPI_Win_create: 5, excess 5
  wait at collective at 0 MPI_Win_create: 5 in 1, longest 5 of rank 0 at 0`},
		// Rank 1 posts after 60 ns, rank 2 after 20; rank 0, which computes 10, waits for 1. Rank 1 waits for 50 ns
		// longer than its own 15 for what rank 0 computes before it completes.
		{"exposure", func() *Graph {
			return graph(t, 3, Options{},
				call{rank: 0, call: schema.CallWinCreate, comm: 1, instance: 1},
				call{rank: 0, call: schema.CallWinStart, from: 10, to: 60, window: 1, label: "2,1"},
				call{rank: 0, call: schema.CallWinComplete, from: 125, to: 125, window: 1},
				call{rank: 1, call: schema.CallWinCreate, comm: 1, instance: 1},
				call{rank: 1, call: schema.CallWinPost, from: 60, to: 60, window: 1, label: "0"},
				call{rank: 1, call: schema.CallWinWait, from: 75, to: 125, window: 1},
				call{rank: 2, call: schema.CallWinCreate, comm: 1, instance: 1},
				call{rank: 2, call: schema.CallWinPost, from: 20, to: 20, window: 1, label: "0"},
				call{rank: 2, call: schema.CallWinTest, from: 125, to: 125, window: 1})
		}, `rank 0 compute before 2 MPI_Win_complete: 50, excess 50
  late complete at 102 MPI_Win_wait: 50 in 1, longest 50 of rank 1 at 75
rank 1 compute before 101 MPI_Win_post: 50, excess 50
  late post at 1 MPI_Win_start: 50 in 1, longest 50 of rank 0 at 10`},
		// The first start of rank 0 lacks its group, so nobody can tell which post the second waits for.
		{"exposure without a group", func() *Graph {
			g := New(2, Options{})
			g.windows.ungrouped = map[run.WindowKey]bool{{Comm: 1, Instance: 1}: true}
			g.rows(t, call{rank: 0, call: schema.CallWinCreate, comm: 1, instance: 1},
				call{rank: 0, call: schema.CallWinStart, from: 10, to: 10, window: 1},
				call{rank: 0, call: schema.CallWinComplete, from: 10, to: 10, window: 1},
				call{rank: 0, call: schema.CallWinStart, from: 10, to: 60, window: 1, label: "1"},
				call{rank: 1, call: schema.CallWinCreate, comm: 1, instance: 1},
				call{rank: 1, call: schema.CallWinPost, from: 60, to: 60, window: 1, label: "0"})
			return g
		}, ``},
		// Rank 0 has the lock until 70, rank 1 wants it from 10 on and computes 5 with it; rank 2 has a shared one of
		// its own on another target.
		{"lock", func() *Graph {
			return graph(t, 3, Options{},
				call{rank: 0, call: schema.CallWinCreate, comm: 1, instance: 1},
				call{rank: 0, call: schema.CallWinLock, window: 1, label: schema.LabelExclusive, target: 3},
				call{rank: 0, call: schema.CallWinUnlock, from: 70, to: 70, window: 1, target: 3},
				call{rank: 1, call: schema.CallWinCreate, comm: 1, instance: 1},
				call{rank: 1, call: schema.CallWinLock, from: 10, to: 70, window: 1, label: schema.LabelShared,
					target: 3},
				call{rank: 1, call: schema.CallWinUnlock, from: 75, to: 75, window: 1, target: 3},
				call{rank: 2, call: schema.CallWinCreate, comm: 1, instance: 1},
				call{rank: 2, call: schema.CallWinLock, window: 1, label: schema.LabelShared, target: 1},
				call{rank: 2, call: schema.CallWinUnlock, from: 50, to: 90, window: 1, target: 1})
		}, `rank 0 compute before 2 MPI_Win_unlock: 60, excess 60
  lock held at 101 MPI_Win_lock: 60 in 1, longest 60 of rank 1 at 10`},
		// Ranks 0 and 1 share the lock; rank 2 waits in MPI_Win_unlock until the later of them gives it back. Nobody
		// waits for rank 2, which began to give back the lock before it had it. Of the 45 ns that it waits, 50, 25 and
		// 10 of rank 1's 85 are parts.
		{"lock that is had late", func() *Graph {
			return graph(t, 3, Options{},
				call{rank: 0, call: schema.CallWinCreate, comm: 1, instance: 1},
				call{rank: 0, call: schema.CallWinLock, window: 1, label: schema.LabelShared, target: 3},
				call{rank: 0, call: schema.CallWinUnlock, from: 70, to: 70, window: 1, target: 3},
				call{rank: 1, call: schema.CallWinCreate, comm: 1, instance: 1},
				call{rank: 1, call: schema.CallWinLock, from: 10, to: 60, window: 1, label: schema.LabelShared,
					target: 3},
				call{rank: 1, call: schema.CallWinUnlock, from: 85, to: 85, window: 1, target: 3},
				call{rank: 2, call: schema.CallWinCreate, comm: 1, instance: 1},
				call{rank: 2, call: schema.CallWinLock, from: 30, to: 30, window: 1, label: schema.LabelExclusive,
					target: 3},
				call{rank: 2, call: schema.CallWinUnlock, from: 40, to: 95, window: 1, target: 3})
		}, `rank 1 other before 101 MPI_Win_lock: 26, excess 26
  lock held at 202 MPI_Win_unlock: 26 in 0.588, longest 26 of rank 2 at 40
rank 1 compute before 102 MPI_Win_unlock: 13, excess 13
  lock held at 202 MPI_Win_unlock: 13 in 0.294, longest 13 of rank 2 at 40
rank 1 compute before 101 MPI_Win_lock: 5, excess 5
  lock held at 202 MPI_Win_unlock: 5 in 0.118, longest 5 of rank 2 at 40`},
		{"no wait", func() *Graph {
			g := graph(t, 2, Options{}, call{rank: 0, call: schema.CallSend, from: 20, to: 25},
				call{rank: 1, call: schema.CallRecv, from: 30, to: 47})
			g.message(0, 0, 1, 0, 0)
			return g
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, explained(c.make())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Delays explain all that was waited, whatever the rows: each wait's parts add up to it but for their rounding.
func TestDelaysAddUpToWaits(t *testing.T) {
	waited := 0
	for seed := range uint64(3000) {
		g := randomGraph(t, seed)
		waits, sum, parts, calls, explained := int64(0), int64(0), int64(0), 0.0, 0.0
		g.addCollectiveWaits()
		for _, r := range g.ranks {
			for i := range r.rows {
				if w := &r.rows[i]; w.waitedRank >= 0 {
					waits += g.ranks[w.waitedRank].rowAt(w.waitedRow).start - w.start
					calls++
				}
			}
		}
		for _, d := range g.Delays() {
			sum += d.Ns
			places := int64(0)
			for _, w := range d.Places {
				places += w.Ns
				explained += w.Calls
				parts += int64(calls)
			}
			if d.Ns < 0 || d.ExcessNs < 0 || places != d.Ns {
				t.Fatalf("seed %d: %+v, its places have %d", seed, d, places)
			}
		}
		if diff := sum - waits; diff > parts || -diff > parts || math.Abs(calls-explained) > 1e-6 {
			t.Fatalf("seed %d: delays of %d ns in %v calls explain waits of %d ns in %v", seed, sum, explained, waits,
				calls)
		}
		if waits > 0 {
			waited++
		}
	}
	if waited < 1000 {
		t.Errorf("%d of 3000 graphs have waits", waited)
	}
}
