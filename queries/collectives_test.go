package queries_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
)

// comms has the world of ranks 0 to 4; communicator 1 of ranks 4, 2 and 3, in this order; MPI_COMM_SELF of rank 0 as 2;
// and an intercommunicator 3 between ranks 0, 1 and ranks 2, 3, 4.
const comms = `
comms comm remote comm_rank world_rank kind
0 0 0 0 world
0 0 1 1 world
0 0 2 2 world
0 0 3 3 world
0 0 4 4 world
1 0 0 4 split
1 0 1 2 split
1 0 2 3 split
2 0 0 0 self
3 0 0 0 inter
3 0 1 1 inter
3 1 0 2 inter
3 1 1 3 inter
3 1 2 4 inter
`

// collectiveCase is one collective call of each rank, and the rows that each mode makes of it: src, dst, messages,
// bytes.
type collectiveCase struct {
	name                  string
	rows                  string // events (rank call comm root_world send_bytes recv_bytes), then perhaps parts
	rooted, logical, tree string // logical and tree: empty means as rooted
}

func collectiveCases() []collectiveCase {
	return []collectiveCase{
		{name: "bcast of 100 from rank 3", rows: `
			0 MPI_Bcast 0 3 0 100
			1 MPI_Bcast 0 3 0 100
			2 MPI_Bcast 0 3 0 100
			3 MPI_Bcast 0 3 100 0
			4 MPI_Bcast 0 3 0 100`,
			rooted: `
			3,0,1,100
			3,1,1,100
			3,2,1,100
			3,4,1,100`,
			// In the tree the ranks are 3 4 0 1 2: node 3 (rank 1) is a child of node 2 (rank 0), the others of the
			// root.
			tree: `
			0,1,1,100
			3,0,1,100
			3,2,1,100
			3,4,1,100`},
		{name: "gather of 7 to rank 1, nonblocking", rows: `
			0 MPI_Igather 0 1 7 0
			1 MPI_Igather 0 1 7 35
			2 MPI_Igather 0 1 7 0
			3 MPI_Igather 0 1 7 0
			4 MPI_Igather 0 1 7 0`,
			rooted: `
			0,1,1,7
			2,1,1,7
			3,1,1,7
			4,1,1,7`,
			// In the tree the ranks are 1 2 3 4 0: rank 4 gives its part to rank 3, which passes both on.
			tree: `
			0,1,1,7
			2,1,1,7
			3,1,1,14
			4,3,1,7`},
		{name: "reduce of 7 to rank 1", rows: `
			0 MPI_Reduce 0 1 7 0
			1 MPI_Reduce 0 1 7 7
			2 MPI_Reduce 0 1 7 0
			3 MPI_Reduce 0 1 7 0
			4 MPI_Reduce 0 1 7 0`,
			rooted: `
			0,1,1,7
			2,1,1,7
			3,1,1,7
			4,1,1,7`,
			// The parts of a gather add up; those of a reduction are combined into one.
			tree: `
			0,1,1,7
			2,1,1,7
			3,1,1,7
			4,3,1,7`},
		{name: "scatterv of 10, 20, 30, 40, 50", rows: `
			0 MPI_Scatterv 0 0 150 10
			1 MPI_Scatterv 0 0 0 20
			2 MPI_Scatterv 0 0 0 30
			3 MPI_Scatterv 0 0 0 40
			4 MPI_Scatterv 0 0 0 50`,
			rooted: `
			0,1,1,20
			0,2,1,30
			0,3,1,40
			0,4,1,50`,
			tree: `
			0,1,1,20
			0,2,1,70
			0,4,1,50
			2,3,1,40`},
		{name: "barrier of ranks 4, 2, 3", rows: `
			2 MPI_Ibarrier 1 - 0 0
			3 MPI_Ibarrier 1 - 0 0
			4 MPI_Ibarrier 1 - 0 0`,
			rooted: `
			2,4,1,0
			3,4,1,0
			4,2,1,0
			4,3,1,0`},
		{name: "allreduce of 8", rows: `
			0 MPI_Allreduce 0 - 8 8
			1 MPI_Allreduce 0 - 8 8
			2 MPI_Allreduce 0 - 8 8
			3 MPI_Allreduce 0 - 8 8
			4 MPI_Allreduce 0 - 8 8`,
			rooted: `
			0,1,1,8
			0,2,1,8
			0,3,1,8
			0,4,1,8
			1,0,1,8
			2,0,1,8
			3,0,1,8
			4,0,1,8`,
			tree: `
			0,1,1,8
			0,2,1,8
			0,4,1,8
			1,0,1,8
			2,0,1,8
			2,3,1,8
			3,2,1,8
			4,0,1,8`},
		{name: "alltoall of 5 to each of ranks 4, 2, 3", rows: `
			2 MPI_Alltoall 1 - 15 15
			3 MPI_Alltoall 1 - 15 15
			4 MPI_Alltoall 1 - 15 15`,
			rooted: `
			2,4,1,15
			3,4,1,15
			4,2,1,15
			4,3,1,15`,
			logical: `
			2,3,1,5
			2,4,1,5
			3,2,1,5
			3,4,1,5
			4,2,1,5
			4,3,1,5`,
			tree: `
			2,4,1,15
			3,4,1,15
			4,2,1,15
			4,3,1,15`},
		{name: "alltoall of 3 in the tree of 5", rows: `
			0 MPI_Alltoall 0 - 15 15
			1 MPI_Alltoall 0 - 15 15
			2 MPI_Alltoall 0 - 15 15
			3 MPI_Alltoall 0 - 15 15
			4 MPI_Alltoall 0 - 15 15`,
			rooted: `
			0,1,1,15
			0,2,1,15
			0,3,1,15
			0,4,1,15
			1,0,1,15
			2,0,1,15
			3,0,1,15
			4,0,1,15`,
			logical: `
			0,1,1,3
			0,2,1,3
			0,3,1,3
			0,4,1,3
			1,0,1,3
			1,2,1,3
			1,3,1,3
			1,4,1,3
			2,0,1,3
			2,1,1,3
			2,3,1,3
			2,4,1,3
			3,0,1,3
			3,1,1,3
			3,2,1,3
			3,4,1,3
			4,0,1,3
			4,1,1,3
			4,2,1,3
			4,3,1,3`,
			tree: `
			0,1,1,15
			0,2,1,30
			0,4,1,15
			1,0,1,15
			2,0,1,30
			2,3,1,15
			3,2,1,15
			4,0,1,15`},
		{name: "allgatherv of 1, 2, 3 by ranks 4, 2, 3", rows: `
			2 MPI_Allgatherv 1 - 2 6
			3 MPI_Allgatherv 1 - 3 6
			4 MPI_Allgatherv 1 - 1 6`,
			rooted: `
			2,4,1,2
			3,4,1,3
			4,2,1,6
			4,3,1,6`,
			logical: `
			2,3,1,2
			2,4,1,2
			3,2,1,3
			3,4,1,3
			4,2,1,1
			4,3,1,1`,
			tree: `
			2,4,1,2
			3,4,1,3
			4,2,1,6
			4,3,1,6`},
		{name: "allgatherv of 1, 2, 0 by ranks 4, 2, 3", rows: `
			2 MPI_Allgatherv 1 - 2 3
			3 MPI_Allgatherv 1 - 0 3
			4 MPI_Allgatherv 1 - 1 3`,
			rooted: `
			2,4,1,2
			3,4,1,0
			4,2,1,3
			4,3,1,3`,
			logical: `
			2,3,1,2
			2,4,1,2
			4,2,1,1
			4,3,1,1`},
		{name: "reduce_scatter of 12 in parts of 5, 4, 3", rows: `
			2 MPI_Reduce_scatter 1 - 12 4
			3 MPI_Reduce_scatter 1 - 12 3
			4 MPI_Reduce_scatter 1 - 12 5`,
			rooted: `
			2,4,1,12
			3,4,1,12
			4,2,1,4
			4,3,1,3`},
		{name: "alltoallv: rank 1 sends 9 to rank 3 and 4 to itself", rows: `
			0 MPI_Ialltoallv 0 - 0 0
			1 MPI_Ialltoallv 0 - 13 4
			2 MPI_Ialltoallv 0 - 0 0
			3 MPI_Ialltoallv 0 - 0 9
			4 MPI_Ialltoallv 0 - 0 0

			parts rank seq peer_world send_bytes recv_bytes
			1 0 1 4 4
			1 0 3 9 0
			3 0 1 0 9`,
			rooted: `
			0,1,1,4
			0,2,1,0
			0,3,1,9
			0,4,1,0
			1,0,1,13
			2,0,1,0
			3,0,1,0
			4,0,1,0`,
			logical: `
			1,3,1,9`,
			tree: `
			0,1,1,4
			0,2,1,9
			0,4,1,0
			1,0,1,13
			2,0,1,0
			2,3,1,9
			3,2,1,0
			4,0,1,0`},
		{name: "neighbourhood: by parts in every mode", rows: `
			0 MPI_Neighbor_alltoall 0 - 6 6
			1 MPI_Neighbor_alltoall 0 - 6 6

			parts rank seq peer_world send_bytes recv_bytes
			0 0 1 6 6
			1 0 0 6 6`,
			rooted: `
			0,1,1,6
			1,0,1,6`},
		{name: "a communicator of one", rows: `
			0 MPI_Allreduce 2 - 8 8
			0 MPI_Bcast 2 0 8 0`},
		{name: "intercommunicator: bcast of 50 from rank 1", rows: `
			0 MPI_Bcast 3 - 0 0
			1 MPI_Bcast 3 1 50 0
			2 MPI_Bcast 3 1 0 50
			3 MPI_Bcast 3 1 0 50
			4 MPI_Bcast 3 1 0 50`,
			rooted: `
			1,2,1,50
			1,3,1,50
			1,4,1,50`,
			tree: `
			1,2,1,50
			1,3,1,50
			3,4,1,50`},
		{name: "intercommunicator: allgather of 3 and of 4", rows: `
			0 MPI_Allgather 3 - 3 12
			1 MPI_Allgather 3 - 3 12
			2 MPI_Allgather 3 - 4 6
			3 MPI_Allgather 3 - 4 6
			4 MPI_Allgather 3 - 4 6`,
			// Fan-in to rank 0 of the other group, fan-out from rank 0 of the own group.
			rooted: `
			0,1,1,12
			0,2,1,3
			1,2,1,3
			2,0,1,4
			2,3,1,6
			2,4,1,6
			3,0,1,4
			4,0,1,4`,
			logical: `
			0,2,1,3
			0,3,1,3
			0,4,1,3
			1,2,1,3
			1,3,1,3
			1,4,1,3
			2,0,1,4
			2,1,1,4
			3,0,1,4
			3,1,1,4
			4,0,1,4
			4,1,1,4`,
			// The ranks 0, 1 are nodes 1, 2 of the tree under rank 2; the ranks 2, 3, 4 nodes 1, 2, 3 under rank 0.
			tree: `
			0,1,1,12
			0,2,1,3
			1,2,1,3
			2,0,1,4
			2,3,1,6
			2,4,1,6
			3,0,1,8
			4,3,1,4`},
		{name: "intercommunicator: alltoall of 5 to each", rows: `
			0 MPI_Alltoall 3 - 15 15
			1 MPI_Alltoall 3 - 15 15
			2 MPI_Alltoall 3 - 10 10
			3 MPI_Alltoall 3 - 10 10
			4 MPI_Alltoall 3 - 10 10`,
			rooted: `
			0,1,1,15
			0,2,1,15
			1,2,1,15
			2,0,1,10
			2,3,1,10
			2,4,1,10
			3,0,1,10
			4,0,1,10`,
			logical: `
			0,2,1,5
			0,3,1,5
			0,4,1,5
			1,2,1,5
			1,3,1,5
			1,4,1,5
			2,0,1,5
			2,1,1,5
			3,0,1,5
			3,1,1,5
			4,0,1,5
			4,1,1,5`,
			tree: `
			0,1,1,15
			0,2,1,15
			1,2,1,15
			2,0,1,10
			2,3,1,10
			2,4,1,10
			3,0,1,20
			4,3,1,10`},
	}
}

func TestCollectivesInTheMatrix(t *testing.T) {
	for _, c := range collectiveCases() {
		t.Run(c.name, func(t *testing.T) {
			written := newRun(t, "case.5", comms+"\n"+eventRows(c.rows), example.Manifest(5))
			for _, run := range []queries.Run{written, withoutSums(written)} {
				same(t, "rooted", ask(t, run, "density"), c.rooted)
				same(t, "logical", ask(t, run, "density", "collectives", "logical"), cmp.Or(c.logical, c.rooted))
				same(t, "tree", ask(t, run, "density", "collectives", "tree"), cmp.Or(c.tree, c.rooted))
				same(t, "none", ask(t, run, "density", "collectives", "none"), "")
			}
		})
	}
}

// TestStartedCollectivesCountLikeBlocking has persistent collectives of communicator 1 (ranks 4, 2 and 3): a bcast of
// 40 from rank 3, started twice by rank 2 (MPI_Start) and the others (MPI_Startall); an alltoallv with large counts,
// in which rank 4 sends 9 to rank 2; a neighbourhood alltoall between ranks 2 and 3, under the name of Open MPI's
// extension. The calls that make the requests move nothing; persistent sends are started in the same calls.
func TestStartedCollectivesCountLikeBlocking(t *testing.T) {
	text := comms + `
events rank seq call class comm instance init_seq root_world send_world send_bytes recv_bytes
2 0 MPI_Bcast_init other 1 0 - 3 - - -
2 1 MPI_Start collective 1 4294967296 0 3 - 0 40
2 2 MPI_Start collective 1 4294967297 0 3 - 0 40
2 3 MPI_Alltoallv_init_c other 1 1 - - - - -
2 4 MPI_Startall collective 1 8589934592 3 - - 0 9
2 5 MPIX_Neighbor_alltoall_init other 1 2 - - - - -
2 6 MPI_Start collective 1 12884901888 5 - - 7 8
2 7 MPI_Send_init other 1 - - - 4 - -
2 8 MPI_Start send 1 - 7 - 4 4097 -
3 0 MPI_Bcast_init other 1 0 - 3 - - -
3 1 MPI_Startall collective 1 4294967296 0 3 - 40 0
3 2 MPI_Startall collective 1 4294967297 0 3 - 40 0
3 3 MPI_Alltoallv_init other 1 1 - - - - -
3 4 MPI_Startall collective 1 8589934592 3 - - 0 0
3 5 MPIX_Neighbor_alltoall_init other 1 2 - - - - -
3 6 MPI_Start collective 1 12884901888 5 - - 8 7
4 0 MPI_Bcast_init other 1 0 - 3 - - -
4 1 MPI_Startall collective 1 4294967296 0 3 - 0 40
4 2 MPI_Startall collective 1 4294967297 0 3 - 0 40
4 3 MPI_Alltoallv_init_c other 1 1 - - - - -
4 4 MPI_Startall collective 1 8589934592 3 - - 9 0
4 5 MPIX_Neighbor_alltoall_init other 1 2 - - - - -
4 6 MPI_Start collective 1 12884901888 5 - - 0 0

parts rank seq peer_world send_bytes recv_bytes
2 4 4 0 9
2 6 3 7 8
3 6 2 8 7
4 4 2 9 0
`
	run := newRun(t, "started.5", text, example.Manifest(5))
	// The bcasts: 3 to 2 and 4, twice. The alltoallv: 2 and 3 to 4, and back. The neighbours: 2 and 3.
	same(t, "rooted", ask(t, run, "density"), `
		2,3,1,7
		2,4,1,0
		3,2,3,88
		3,4,3,80
		4,2,1,9
		4,3,1,0`)
	same(t, "logical", ask(t, run, "density", "collectives", "logical"), `
		2,3,1,7
		3,2,3,88
		3,4,2,80
		4,2,1,9`)
	same(t, "none", ask(t, run, "density", "collectives", "none"), "")
	for _, q := range [][]string{{"density"}, {"density", "collectives", "logical"}, {"density", "collectives", "tree"}, {"collectives"},
		{"communicators"}, {"sizes", "collectives", "calls"}} {
		same(t, "from rows: "+q[0], ask(t, withoutSums(run), q[0], q[1:]...), ask(t, run, q[0], q[1:]...))
	}
	same(t, "calls", ask(t, run, "calls"), `
		2,MPIX_Neighbor_alltoall_init,3,1,0,0
		2,MPI_Alltoallv_init_c,3,1,0,0
		2,MPI_Bcast_init,3,1,0,0
		2,MPI_Send_init,3,1,0,0
		2,MPI_Start,3,4,4104,88
		2,MPI_Startall,3,1,0,9
		3,MPIX_Neighbor_alltoall_init,3,1,0,0
		3,MPI_Alltoallv_init,3,1,0,0
		3,MPI_Bcast_init,3,1,0,0
		3,MPI_Start,3,1,8,7
		3,MPI_Startall,3,3,80,0
		4,MPIX_Neighbor_alltoall_init,3,1,0,0
		4,MPI_Alltoallv_init_c,3,1,0,0
		4,MPI_Bcast_init,3,1,0,0
		4,MPI_Start,3,1,0,0
		4,MPI_Startall,3,3,9,80`)
}

// TestWireNumbersCollectivesOnly compares a run with one that makes communicators between the same collectives, of
// which one has another payload on rank 1 and the last is of the new run only.
func TestWireNumbersCollectivesOnly(t *testing.T) {
	const header = "\nevents rank seq call class comm instance send_bytes payload_hash"
	store := t.TempDir()
	base := newRunIn(t, store, "a.5", world+header+`
0 0 MPI_Allreduce collective 0 0 8 71
0 1 MPI_Bcast collective 0 1 40 73
0 2 MPI_Bcast_init other 0 2 - -
0 3 MPI_Start collective 0 12884901888 9 79
1 0 MPI_Allreduce collective 0 0 8 72
1 1 MPI_Bcast collective 0 1 0 -
1 2 MPI_Bcast_init other 0 2 - -
1 3 MPI_Start collective 0 12884901888 0 -
`, example.Manifest(5))
	made := newRunIn(t, store, "b.5", world+header+`
0 0 MPI_Comm_dup comm 0 0 - -
0 1 MPI_Allreduce collective 0 1 8 71
0 2 MPI_Comm_split comm 0 2 - -
0 3 MPI_Bcast collective 0 3 40 73
0 4 MPI_Bcast_init other 0 4 - -
0 5 MPI_Start collective 0 21474836480 9 79
1 0 MPI_Comm_dup comm 0 0 - -
1 1 MPI_Allreduce collective 0 1 8 97
1 2 MPI_Comm_split comm 0 2 - -
1 3 MPI_Bcast collective 0 3 0 -
1 4 MPI_Bcast_init other 0 4 - -
1 5 MPI_Start collective 0 21474836480 0 -
1 6 MPI_Barrier collective 0 5 0 -
`, example.Manifest(5))
	same(t, "wire", askOver(t, []queries.Run{base, made}, "wire"), `
		MPI_Allreduce,1,,0,,1,payload,8,8,,,,
		MPI_Barrier,1,,0,,4,new,,0,,,,`)
}

// TestCollectivesAddUp repeats a collective: messages count instances, bytes add up, and point-to-point messages are
// added.
func TestCollectivesAddUp(t *testing.T) {
	text := comms + `
events rank seq call class comm instance root_world send_bytes recv_bytes
2 0 MPI_Alltoall collective 1 0 - 15 15
2 1 MPI_Alltoall collective 1 1 - 6 6
2 2 MPI_Alltoall collective 1 2 - 0 0
3 0 MPI_Alltoall collective 1 0 - 15 15
3 1 MPI_Alltoall collective 1 1 - 6 6
3 2 MPI_Alltoall collective 1 2 - 0 0
3 3 MPI_Comm_dup comm 1 3 - - -
4 0 MPI_Alltoall collective 1 0 - 15 15
4 1 MPI_Alltoall collective 1 1 - 6 6
4 2 MPI_Alltoall collective 1 2 - 0 0

messages src dst comm tag bytes send_seq recv_post_seq
2 3 1 9 4097 3 3
2 3 1 8 1 4 4
`
	run := newRun(t, "sum.5", text, example.Manifest(5))
	same(t, "rooted", ask(t, run, "density"), `
		2,3,2,4098
		2,4,3,21
		3,4,3,21
		4,2,3,21
		4,3,3,21`)
	// 5 and 2 bytes to each; the third moves nothing.
	same(t, "logical", ask(t, run, "density", "collectives", "logical", "where", "tag = 9"), `
		2,3,3,4104
		2,4,2,7
		3,2,2,7
		3,4,2,7
		4,2,2,7
		4,3,2,7`)
	same(t, "none", ask(t, run, "data-density", "collectives", "none"), `
		2,3,4098,2`)
}

// eventRows makes rows of events from lines "rank call comm root_world send_bytes recv_bytes", numbers them along
// each rank, and keeps the rest of the text.
func eventRows(short string) string {
	events, rest, _ := strings.Cut(strings.TrimSpace(short), "\n\n")
	var b strings.Builder
	b.WriteString("events rank seq class call comm root_world send_bytes recv_bytes\n")
	seq := map[string]int{}
	for _, line := range strings.Split(events, "\n") {
		w := strings.Fields(line)
		fmt.Fprintf(&b, "%s %d collective %s\n", w[0], seq[w[0]], strings.Join(w[1:], " "))
		seq[w[0]]++
	}
	return b.String() + "\n" + rest
}

// TestCollectivesWithoutSizes: an operation of a trace without sizes has unknown bytes, a barrier none.
func TestCollectivesWithoutSizes(t *testing.T) {
	text := comms + `
datatypes id name
3 MPI_INT

ranks rank
0
1
2
3
4

events rank seq call class comm instance root_world send_datatype send_bytes recv_datatype recv_bytes
2 0 MPI_Allreduce collective 1 0 - - - - -
2 1 MPI_Barrier collective 1 1 - - - - -
2 2 MPI_Bcast collective 1 2 3 - - 3 0
3 0 MPI_Allreduce collective 1 0 - - - - -
3 1 MPI_Barrier collective 1 1 - - - - -
3 2 MPI_Bcast collective 1 2 3 3 0 - -
4 0 MPI_Allreduce collective 1 0 - - - - -
4 1 MPI_Barrier collective 1 1 - - - - -
4 2 MPI_Bcast collective 1 2 3 - - 3 0
`
	run := newRun(t, "unsized.5", text, example.Manifest(5))
	want := ask(t, run, "collectives")
	same(t, "collectives", want, `
		5,MPI_Allreduce,1,0.6,,
		5,MPI_Barrier,1,0.6,0,0
		5,MPI_Bcast,1,0.6,0,0`)
	same(t, "from rows", ask(t, withoutSums(run), "collectives"), want)
}

// TestCollectivesThatFailed has two bcasts and an alltoallv that returned errors, with the bytes of their arguments,
// before a bcast of 10 bytes: to every query but calls there is one operation.
func TestCollectivesThatFailed(t *testing.T) {
	text := comms + `
datatypes id name
0 MPI_BYTE

ranks rank
0
1
2
3
4

events rank seq call class comm instance root_world send_datatype send_bytes recv_bytes start_ns end_ns error_class
2 0 MPI_Bcast collective 1 0 3 0 0 -50 10 20 2
2 1 MPI_Bcast collective 1 1 - 0 - - 20 30 8
2 2 MPI_Alltoallv collective 1 2 - 0 9 9 30 40 10
2 3 MPI_Bcast collective 1 3 3 0 0 10 40 50 -
3 0 MPI_Bcast collective 1 0 3 0 -50 0 10 20 2
3 1 MPI_Bcast collective 1 1 - 0 - - 20 30 8
3 2 MPI_Alltoallv collective 1 2 - 0 9 9 30 40 10
3 3 MPI_Bcast collective 1 3 3 0 10 0 40 50 -
4 0 MPI_Bcast collective 1 0 3 0 0 -50 10 20 2
4 1 MPI_Bcast collective 1 1 - 0 - - 20 30 8
4 2 MPI_Alltoallv collective 1 2 - 0 9 9 30 40 10
4 3 MPI_Bcast collective 1 3 3 0 0 10 40 50 -

parts rank seq peer_world send_bytes recv_bytes
2 2 3 9 0
3 2 4 9 0
4 2 2 9 0
`
	written := newRun(t, "failed.5", text, example.Manifest(5))
	for _, run := range []queries.Run{written, withoutSums(written)} {
		for _, mode := range []string{"rooted", "logical", "tree"} {
			same(t, mode, ask(t, run, "density", "collectives", mode), `
				3,2,1,10
				3,4,1,10`)
		}
		same(t, "collectives", ask(t, run, "collectives"), `
			5,MPI_Bcast,1,0.6,10,20`)
		same(t, "by-rank", ask(t, run, "by-rank"), `
			0,0,0,0,0,0,0,0,0,0,0
			1,0,0,0,0,0,0,0,0,0,0
			2,0,0,0,0,1,0,10,0,0,0
			3,0,0,0,0,1,10,0,0,0,0
			4,0,0,0,0,1,0,10,0,0,0`)
		same(t, "ratio", ask(t, run, "ratio"), `
			5,point-to-point,0,0,0
			5,collective,3,0.6,1`)
		same(t, "datatypes", ask(t, run, "datatypes"), "0,MPI_BYTE,,0,0,0,0,0,3,10,0")
		same(t, "over-time", ask(t, run, "over-time", "bins", "1"), "0,0,51,0,0,1,10")
		same(t, "calls", ask(t, run, "calls"), `
			2,MPI_Alltoallv,3,1,0,0
			2,MPI_Bcast,3,3,0,10
			3,MPI_Alltoallv,3,1,0,0
			3,MPI_Bcast,3,3,10,0
			4,MPI_Alltoallv,3,1,0,0
			4,MPI_Bcast,3,3,0,10`)
	}
	same(t, "waits from rows", ask(t, withoutSums(written), "collective-wait"), ask(t, written, "collective-wait"))
}
