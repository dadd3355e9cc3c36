package queries_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/queries/internal/gendocs/example"
)

// oracle folds collectives into a matrix by direct counting: one operation at a time, over explicit trees.
type oracle map[[2]int][2]int64

func (o oracle) add(src, dst int, bytes int64) {
	if src != dst {
		c := o[[2]int{src, dst}]
		o[[2]int{src, dst}] = [2]int64{c[0] + 1, c[1] + bytes}
	}
}

func (o oracle) csv() string {
	var keys [][2]int
	for k := range o {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	var b strings.Builder
	for _, k := range keys {
		fmt.Fprintf(&b, "%d,%d,%d,%d\n", k[0], k[1], o[k][0], o[k][1])
	}
	return b.String()
}

// operation is one collective operation: its members in communicator order, and the bytes that each sends and
// receives.
type operation struct {
	members    []int
	root       int // communicator rank
	send, recv []int64
}

// star folds it between the root and every other rank.
func (p operation) star(o oracle, in, out bool) {
	for i, rank := range p.members {
		if in {
			o.add(rank, p.members[p.root], p.send[i])
		}
		if out {
			o.add(p.members[p.root], rank, p.recv[i])
		}
	}
}

// tree folds it along the binomial tree: the children of node v are v + 1, v + 2, v + 4, ..., as far as v's own
// subtree, which has room nodes, and the communicator go.
func (p operation) tree(o oracle, in, out, inSum, outSum bool) {
	n := len(p.members)
	at := func(v int) int { return (v + p.root) % n }
	var grow func(v, room int) (send, recv int64)
	grow = func(v, room int) (send, recv int64) {
		send, recv = p.send[at(v)], p.recv[at(v)]
		for step := 1; step < room && v+step < n; step *= 2 {
			s, r := grow(v+step, step)
			if !inSum {
				s = p.send[at(v+step)]
			}
			if !outSum {
				r = p.recv[at(v+step)]
			}
			if in {
				o.add(p.members[at(v+step)], p.members[at(v)], s)
			}
			if out {
				o.add(p.members[at(v)], p.members[at(v+step)], r)
			}
			send, recv = send+s, recv+r
		}
		return send, recv
	}
	grow(0, 1<<30)
}

// TestRandomCollectivesAgainstDirectCount compares the SQL with the oracle on random operations of random
// communicators.
func TestRandomCollectivesAgainstDirectCount(t *testing.T) {
	kinds := []struct {
		name                   string
		in, out, inSum, outSum bool
	}{
		{"MPI_Bcast", false, true, false, false}, {"MPI_Iscatterv", false, true, false, true},
		{"MPI_Reduce", true, false, false, false},
		{"MPI_Gatherv", true, false, true, false}, {"MPI_Allreduce", true, true, false, false},
		{"MPI_Allgatherv", true, true, true, false},
		{"MPI_Alltoallv", true, true, true, true}, {"MPI_Ireduce_scatter", true, true, false, true},
		{"MPI_Exscan", true, true, false, false},
	}
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 9))
		world := 3 + rng.IntN(20)
		star, tree := oracle{}, oracle{}
		var comms, events strings.Builder
		seq := make([]int, world)
		for comm := range 4 {
			members := rng.Perm(world)[:1+rng.IntN(world)]
			for i, rank := range members {
				fmt.Fprintf(&comms, "%d %d %d split\n", comm, i, rank)
			}
			for instance := range 10 {
				k := kinds[rng.IntN(len(kinds))]
				p := operation{members: members}
				rooted := k.in != k.out
				root := "-"
				if rooted {
					p.root = rng.IntN(len(members))
					root = fmt.Sprint(members[p.root])
				}
				for _, rank := range members {
					p.send, p.recv = append(p.send, rng.Int64N(5000)), append(p.recv, rng.Int64N(5000))
					i := len(p.send) - 1
					fmt.Fprintf(&events, "%d %d %s collective %d %d %s %d %d\n", rank, seq[rank], k.name, comm,
						instance, root, p.send[i], p.recv[i])
					seq[rank]++
				}
				p.star(star, k.in, k.out)
				p.tree(tree, k.in, k.out, k.inSum, k.outSum)
			}
		}
		rows := strings.Split(strings.TrimSpace(events.String()), "\n")
		slices.SortFunc(rows, byRankAndSeq)
		text := "comms comm comm_rank world_rank kind\n" + comms.String() +
			"\nevents rank seq call class comm instance root_world send_bytes recv_bytes\n" + strings.Join(rows, "\n")
		run := newRun(t, fmt.Sprintf("random.%d", seed), text, example.Manifest(int32(world)))
		same(t, fmt.Sprintf("seed %d rooted", seed), ask(t, run, "density"), star.csv())
		same(t, fmt.Sprintf("seed %d tree", seed), ask(t, run, "density", "collectives", "tree"), tree.csv())
	}
}

func byRankAndSeq(a, b string) int {
	var ra, sa, rb, sb int
	fmt.Sscan(a, &ra, &sa)
	fmt.Sscan(b, &rb, &sb)
	return slices.Compare([]int{ra, sa}, []int{rb, sb})
}
