package queries_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/queries/internal/gendocs/example"
)

// five is the table ranks of five ranks.
const five = `
ranks rank
0
1
2
3
4
`

// someOfEach has on the communicators of comms: a barrier of all; a bcast of 100 bytes from rank 4 in communicator 1, nonblocking, which
// rank 2 calls in the form with large counts; an allreduce of 8 bytes over the intercommunicator 3; a reduce of 6 to rank 2 in
// communicator 1, persistent and started twice. And what never counts: making a communicator, one-sided calls, files, waits.
const someOfEach = comms + five + `
events rank seq call class comm instance init_seq root_world send_count send_bytes recv_count recv_bytes
0 0 MPI_Barrier collective 0 0 - - - 0 - 0
0 1 MPI_Comm_split comm 0 1 - - - - - -
0 2 MPI_Allreduce collective 3 0 - - 2 8 2 8
0 3 MPI_Win_fence rma 0 - - - - - - -
0 4 MPI_File_write_all io 0 - - - 3 24 - -
1 0 MPI_Barrier collective 0 0 - - - 0 - 0
1 1 MPI_Comm_split comm 0 1 - - - - - -
1 2 MPI_Allreduce collective 3 0 - - 2 8 2 8
2 0 MPI_Barrier collective 0 0 - - - 0 - 0
2 1 MPI_Comm_split comm 0 1 - - - - - -
2 2 MPI_Ibcast_c collective 1 0 - 4 - 0 25 100
2 3 MPI_Wait complete - - - - - - - -
2 4 MPI_Allreduce collective 3 0 - - 2 8 2 8
2 5 MPI_Reduce_init other 1 1 - 2 - - - -
2 6 MPI_Start collective 1 8589934592 5 2 3 6 3 6
2 7 MPI_Start collective 1 8589934593 5 2 3 6 3 6
3 0 MPI_Barrier collective 0 0 - - - 0 - 0
3 1 MPI_Comm_split comm 0 1 - - - - - -
3 2 MPI_Ibcast collective 1 0 - 4 - 0 25 100
3 3 MPI_Allreduce collective 3 0 - - 2 8 2 8
3 4 MPI_Reduce_init_c other 1 1 - 2 - - - -
3 5 MPI_Startall collective 1 8589934592 4 2 3 6 - 0
3 6 MPI_Startall collective 1 8589934593 4 2 3 6 - 0
4 0 MPI_Barrier collective 0 0 - - - 0 - 0
4 1 MPI_Comm_split comm 0 1 - - - - - -
4 2 MPI_Ibcast collective 1 0 - 4 25 100 - 0
4 3 MPI_Allreduce collective 3 0 - - 2 8 2 8
4 4 MPI_Reduce_init other 1 1 - 2 - - - -
4 5 MPI_Start collective 1 8589934592 4 2 3 6 - 0
4 6 MPI_Start collective 1 8589934593 4 2 3 6 - 0
`

// Of 5 ranks, 5 take part in the barrier and in the allreduce, 3 in the bcast and 3 in each of two reduces: 19 operations, 19 / 5 =
// 3.8 per rank. The messages are 5, one of them from rank 3 to itself: 5 of 24 and 19 of 24 operations.
func TestRatio(t *testing.T) {
	m := example.Manifest(5)
	same(t, "both", ask(t, newRun(t, "both.5", someOfEach+pingpong, m), "ratio"), `
		5,point-to-point,5,1,0.20833333333333334
		5,collective,19,3.8,0.7916666666666666`)
	same(t, "collectives alone", ask(t, newRun(t, "coll.5", someOfEach, m), "ratio"), `
		5,point-to-point,0,0,0
		5,collective,19,3.8,1`)
	same(t, "messages alone", ask(t, newRun(t, "pp.5", world+five+pingpong, m), "ratio"), `
		5,point-to-point,5,1,1
		5,collective,0,0,0`)
	m.Record, m.Counts.Messages = "collectives", 57 // 57 / 5 = 11.4; 57 / 76 = 0.75
	same(t, "a run without rows of messages", ask(t, newRun(t, "bare.5", someOfEach, m), "ratio"), `
		5,point-to-point,57,11.4,0.75
		5,collective,19,3.8,0.25`)
}

func TestCollectives(t *testing.T) {
	run := newRun(t, "each.5", someOfEach+pingpong, example.Manifest(5))
	same(t, "collectives", ask(t, run, "collectives"), `
		5,MPI_Allreduce,1,1,40,40
		5,MPI_Barrier,1,1,0,0
		5,MPI_Bcast,1,0.6,100,200
		5,MPI_Reduce,2,1.2,36,12`)
	// A job that ended in its second barrier, which ranks 3 and 4 did not reach; each half of it had a neighbourhood alltoall.
	killed := comms + five + `
events rank seq call class comm instance send_bytes recv_bytes
0 0 MPI_Barrier collective 0 0 0 0
0 1 MPI_Barrier collective 0 1 0 0
1 0 MPI_Barrier collective 0 0 0 0
1 1 MPI_Barrier collective 0 1 0 0
2 0 MPI_Barrier collective 0 0 0 0
2 1 MPI_Ineighbor_alltoallw collective 1 0 7 9
2 2 MPI_Barrier collective 0 1 0 0
3 0 MPI_Barrier collective 0 0 0 0
3 1 MPI_Ineighbor_alltoallw collective 1 0 9 7
4 0 MPI_Barrier collective 0 0 0 0
4 1 MPI_Ineighbor_alltoallw collective 1 0 0 0
`
	same(t, "a killed job", ask(t, newRun(t, "killed.5", killed, example.Manifest(5)), "collectives"), `
		5,MPI_Barrier,2,1.6,0,0
		5,MPI_Neighbor_alltoallw,1,0.6,16,16`)
}

// edges has messages on both sides of the buckets' bounds: of 16, 17, 0 and 64 Mi bytes, one more than that, and one whose elements are
// not known. In elements they are 2, 17, 0, 8 Mi and 64 Mi + 1.
const edges = world + five + `
messages src dst comm tag bytes send_count send_seq recv_post_seq
1 3 0 9 16 2 0 0
1 3 0 9 17 17 1 1
1 3 0 9 0 0 2 2
1 3 0 9 67108864 8388608 3 3
1 3 0 9 67108865 67108865 4 4
1 3 0 7 4097 - 5 5
`

func TestSizes(t *testing.T) {
	run := newRun(t, "edges.5", edges, example.Manifest(5))
	same(t, "bytes", ask(t, run, "sizes"), `
		5,1,<= 16,16,2,16
		5,2,<= 64,64,1,17
		5,3,<= 256,256,0,0
		5,4,<= 1 Ki,1024,0,0
		5,5,<= 4 Ki,4096,0,0
		5,6,<= 16 Ki,16384,1,4097
		5,7,<= 64 Ki,65536,0,0
		5,8,<= 256 Ki,262144,0,0
		5,9,<= 1 Mi,1048576,0,0
		5,10,<= 4 Mi,4194304,0,0
		5,11,<= 16 Mi,16777216,0,0
		5,12,<= 64 Mi,67108864,1,67108864
		5,13,> 64 Mi,,1,67108865`)
	same(t, "elements", some(ask(t, run, "sizes", "unit", "elements")), `
		5,1,<= 16,16,2,16
		5,2,<= 64,64,1,17
		5,11,<= 16 Mi,16777216,1,67108864
		5,13,> 64 Mi,,1,67108865
		5,14,not known,,1,4097`)
	same(t, "where", some(ask(t, run, "sizes", "where", "tag = 7")), "5,6,<= 16 Ki,16384,1,4097")
	same(t, "of nothing", ask(t, run, "sizes", "where", "tag = 8"), "")
}

// The calls of someOfEach: a barrier of nothing (5), an allreduce of 8 bytes (5), a bcast of 100 (3), reduces of 6 (6). Their counts
// are 0, 2, 25 and 3.
func TestSizesOfCollectives(t *testing.T) {
	run := newRun(t, "each.5", someOfEach+pingpong, example.Manifest(5))
	same(t, "none", some(ask(t, run, "sizes")), `
		5,1,<= 16,16,1,0
		5,2,<= 64,64,1,17
		5,4,<= 1 Ki,1024,1,1000
		5,6,<= 16 Ki,16384,2,8194`)
	same(t, "bytes", some(ask(t, run, "sizes", "collectives", "calls", "where", "FALSE")), `
		5,1,<= 16,16,16,76
		5,3,<= 256,256,3,300`)
	same(t, "elements", some(ask(t, run, "sizes", "collectives", "calls", "unit", "elements", "where", "FALSE")), `
		5,1,<= 16,16,16,76
		5,2,<= 64,64,3,300`)
}

// some leaves out the buckets without messages.
func some(rows string) string {
	var b strings.Builder
	for _, line := range strings.SplitAfter(rows, "\n") {
		if !strings.HasSuffix(line, ",0,0\n") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// TestRandomMeasuresAgainstTheSlowWay compares ratio, collectives and sizes with counts taken one operation at a time.
func TestRandomMeasuresAgainstTheSlowWay(t *testing.T) {
	forms := map[string][]string{
		"MPI_Bcast":                {"MPI_Bcast", "MPI_Bcast_c"},
		"MPI_Reduce_scatter_block": {"MPI_Ireduce_scatter_block", "MPI_Ireduce_scatter_block_c"},
		"MPI_Allgatherv":           {"MPI_Allgatherv"},
		"MPI_Iexscan":              nil, // never counted under this name
		"MPI_Exscan":               {"MPI_Iexscan"},
		"MPI_Neighbor_alltoall":    {"MPI_Neighbor_alltoall_init", "MPI_Neighbor_alltoall_init_c", "MPIX_Neighbor_alltoall_init"},
		"MPI_Scan":                 {"MPI_Scan_init"},
	}
	var operations []string
	for name, f := range forms {
		if f != nil {
			operations = append(operations, name)
		}
	}
	slices.Sort(operations)
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 5))
		world := 2 + rng.IntN(9)
		var comms, ranks, events, messages strings.Builder
		seq := make([]int, world)
		for rank := range world {
			fmt.Fprintf(&ranks, "%d\n", rank)
		}
		instances, calls, sent, received := map[string]int{}, map[string]int{}, map[string]int64{}, map[string]int64{}
		for comm := range 3 {
			members := rng.Perm(world)[:1+rng.IntN(world)]
			for i, rank := range members {
				fmt.Fprintf(&comms, "%d %d %d split\n", comm, i, rank)
			}
			for instance := range 12 {
				op := operations[rng.IntN(len(operations))]
				starts := 1
				persistent := strings.Contains(forms[op][0], "_init")
				if persistent {
					starts = rng.IntN(4)
				}
				instances[op] += starts
				calls[op] += starts * len(members)
				for _, rank := range members {
					call := forms[op][rng.IntN(len(forms[op]))]
					init := "-"
					if persistent {
						init = fmt.Sprint(seq[rank])
						fmt.Fprintf(&events, "%d %d %s other %d %d - - -\n", rank, seq[rank], call, comm, instance)
						seq[rank]++
						call = "MPI_Start"
					}
					for k := range starts {
						id := instance
						if persistent {
							id = (instance+1)<<32 + k
						}
						s, r := rng.Int64N(5000), rng.Int64N(5000)
						sent[op], received[op] = sent[op]+s, received[op]+r
						fmt.Fprintf(&events, "%d %d %s collective %d %d %s %d %d\n", rank, seq[rank], call, comm, id, init, s, r)
						seq[rank]++
					}
				}
			}
		}
		var buckets [2][13]int64 // messages by bytes and by elements
		var payload [2][13]int64
		n := rng.IntN(200)
		for i := range n {
			count := rng.Int64N(1 << rng.IntN(30))
			bytes := 8 * count
			for u, size := range []int64{bytes, count} {
				b := 0
				for at := int64(16); b < 12 && size > at; at *= 4 {
					b++
				}
				buckets[u][b]++
				payload[u][b] += bytes
			}
			fmt.Fprintf(&messages, "0 %d 0 9 %d %d %d %d\n", rng.IntN(world), bytes, count, i, i)
		}
		rows := strings.Split(strings.TrimSpace(events.String()), "\n")
		slices.SortFunc(rows, byRankAndSeq)
		text := "comms comm comm_rank world_rank kind\n" + comms.String() + "\nranks rank\n" + ranks.String() +
			"\nevents rank seq call class comm instance init_seq send_bytes recv_bytes\n" + strings.Join(rows, "\n") +
			"\n\nmessages src dst comm tag bytes send_count send_seq recv_post_seq\n" + messages.String()
		run := newRun(t, fmt.Sprintf("random.%d", seed), text, example.Manifest(int32(world)))

		var want strings.Builder
		total, p := 0, float64(world)
		for _, op := range operations {
			if calls[op] > 0 {
				fmt.Fprintf(&want, "%d,%s,%d,%v,%d,%d\n", world, op, instances[op], float64(calls[op])/p, sent[op], received[op])
				total += calls[op]
			}
		}
		same(t, fmt.Sprintf("seed %d collectives", seed), ask(t, run, "collectives"), want.String())
		same(t, fmt.Sprintf("seed %d ratio", seed), ask(t, run, "ratio"), fmt.Sprintf("%d,point-to-point,%d,%v,%v\n%d,collective,%d,%v,%v",
			world, n, float64(n)/p, float64(n)/float64(n+total), world, total, float64(total)/p, float64(total)/float64(n+total)))
		for u, unit := range []string{"bytes", "elements"} {
			var b strings.Builder
			for i, line := range strings.Split(strings.TrimSpace(ask(t, run, "sizes", "unit", unit)), "\n") {
				w := strings.Split(line, ",")
				fmt.Fprintf(&b, "%s,%s,%s\n", w[1], w[4], w[5])
				if n > 0 && i > 12 {
					t.Errorf("seed %d: more than 13 buckets", seed)
				}
			}
			var want strings.Builder
			for i := range 13 {
				fmt.Fprintf(&want, "%d,%d,%d\n", i+1, buckets[u][i], payload[u][i])
			}
			same(t, fmt.Sprintf("seed %d sizes in %s", seed, unit), b.String(), want.String())
		}
	}
}
