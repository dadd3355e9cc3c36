package queries_test

import (
	"testing"

	"github.com/commq/commq/queries/internal/gendocs/example"
)

// grouped has communicators 4 of ranks 1 and 3 and 7 of the others. Rank 4 calls only in that of all ranks. Rank 3
// waits 30 ns for the message of rank 1.
const grouped = `
comms comm comm_rank world_rank kind
0 0 0 world
0 1 1 world
0 2 2 world
0 3 3 world
0 4 4 world
4 0 1 split
4 1 3 split
7 0 0 split
7 1 2 split
7 2 4 split
` + fiveRanks + `
events rank seq call class comm instance start_ns end_ns
0 0 MPI_Bcast collective 7 0 0 10
0 1 MPI_Bcast collective 7 1 100 110
1 0 MPI_Bcast collective 4 0 0 60
1 1 MPI_Send send 0 - 60 100
2 0 MPI_Bcast collective 7 0 0 10
2 1 MPI_Bcast collective 7 1 100 110
3 0 MPI_Bcast collective 4 0 0 20
3 1 MPI_Recv recv 0 - 30 100
4 0 MPI_Bcast collective 0 0 0 50
4 1 MPI_Bcast collective 0 1 100 110

messages src dst tag bytes send_seq recv_post_seq recv_done_seq send_start_ns send_end_ns recv_post_ns recv_start_ns recv_end_ns
1 3 9 17 1 1 1 60 100 30 30 100
`

func TestRankGroups(t *testing.T) {
	run := newRun(t, "grouped.5", grouped, example.Manifest(5))
	same(t, "by host", ask(t, run, "rank-groups"), `
		0,0,3,0
		1,0,3,0
		2,0,3,0
		3,3,2,1
		4,3,2,1`)
	same(t, "by communicator", ask(t, run, "rank-groups", "by", "communicator"), `
		0,0,2,7
		1,1,2,4
		2,0,2,7
		3,1,2,4
		4,4,1,0`)
	same(t, "by calls", ask(t, run, "rank-groups", "by", "calls"), `
		0,0,3,
		1,1,1,
		2,0,3,
		3,3,1,
		4,0,3,`)
	// In MPI are 20 of 110 ns, 100 of 100, 20 of 110, 90 of 100, 60 of 110.
	same(t, "by time", ask(t, run, "rank-groups", "by", "time"), `
		0,0,2,1
		1,1,2,9
		2,0,2,1
		3,1,2,9
		4,4,1,5`)
}

// TestGroupsOfIntercommunicators counts the ranks of both groups: intercommunicator 5 has two of five ranks, 6 has all,
// and of 8 one is another program's.
func TestGroupsOfIntercommunicators(t *testing.T) {
	run := newRun(t, "intercommunicators.5", `
comms comm remote comm_rank world_rank kind
0 0 0 0 world
0 0 1 1 world
0 0 2 2 world
0 0 3 3 world
0 0 4 4 world
5 0 0 0 inter
5 1 0 1 inter
6 0 0 0 inter
6 0 1 1 inter
6 1 0 2 inter
6 1 1 3 inter
6 1 2 4 inter
8 0 0 4 inter
8 1 0 - inter
`+fiveRanks+`
events rank seq call class comm instance start_ns end_ns
0 0 MPI_Barrier collective 5 0 0 10
1 0 MPI_Barrier collective 5 0 0 10
2 0 MPI_Barrier collective 6 0 0 10
3 0 MPI_Barrier collective 6 0 0 10
4 0 MPI_Barrier collective 8 0 0 10
`, example.Manifest(5))
	same(t, "by communicator", ask(t, run, "rank-groups", "by", "communicator"), `
		0,0,2,5
		1,0,2,5
		2,2,3,0
		3,2,3,0
		4,2,3,0`)
}

// TestTimelineOfGroups has a row of ranks 0 to 2, and one each for 3 and 4.
func TestTimelineOfGroups(t *testing.T) {
	run := newRun(t, "grouped.5", grouped, example.Manifest(5))
	same(t, "hosts, the second unfolded", ask(t, run, "timeline-groups", "bins", "1", "unfold", "3"), `
		0,3,0,0,111,collective,5,100,,,,
		0,3,0,0,111,outside MPI,,180,,,,
		0,3,0,0,111,send,1,40,,,,
		0,3,0,0,111,sent,,,1,17,,
		1,1,,60,100,message,,,1,17,3,1
		3,1,0,0,111,collective,1,20,,,,
		3,1,0,0,111,outside MPI,,10,,,,
		3,1,0,0,111,receive,1,70,,,,
		4,1,0,0,111,collective,2,60,,,,
		4,1,0,0,111,outside MPI,,50,,,,`)
	// By time the groups are 0 and 2, then 4, then 1 and 3: the first two share a row.
	same(t, "more groups than rows", ask(t, run, "timeline-groups", "bins", "1", "rows", "2", "by", "time", "lines", "0"), `
		0,3,0,0,111,collective,6,100,,,,
		0,3,0,0,111,outside MPI,,230,,,,
		1,2,0,0,111,collective,2,80,,,,
		1,2,0,0,111,outside MPI,,10,,,,
		1,2,0,0,111,receive,1,70,,,,
		1,2,0,0,111,send,1,40,,,,
		1,2,0,0,111,sent,,,1,17,,`)
	same(t, "waits", ask(t, run, "timeline-waits", "bins", "1", "by", "host"), `
		3,2,0,0,111,late-sender,1,30,,
		3,1,,30,60,late-sender,1,30,1,`)
	same(t, "waits, ranks 2 to 4", ask(t, run, "timeline-waits", "bins", "1", "by", "communicator", "from-rank", "2", "lines", "0"), `
		3,1,0,0,111,late-sender,1,30,,`)
}
