package queries_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/commq/commq/queries"
	"github.com/commq/commq/queries/internal/gendocs/example"
)

// sites has two callers of a wrapper in comm.c, a line in heat.c that calls from two places, a function of a library
// without debug information at two places, and an unknown place.
const sites = `
callsites id parent module offset function file line
0 - heat 90 main heat.c 17
1 0 heat 300 exchange heat.c 41
2 1 heat 500 swap comm.c 9
3 0 heat 310 start heat.c 30
4 3 heat 500 swap comm.c 9
5 0 heat 320 start heat.c 30
6 - libx.so 700 x_send - -
7 - libx.so 708 x_send - -
8 - - 4097 - - -
`

const siteEvents = `
events rank seq call class comm instance start_ns end_ns send_peer send_world send_bytes recv_peer recv_world recv_bytes posted_any proc_null request init_seq error_class callsite
# rank 1: two sends through the wrapper from different callers, one to MPI_PROC_NULL, one that failed, a persistent one, a file
1 0 MPI_Send send 0 - 100 117 3 3 4097 - - - - 0 - - - 2
1 1 MPI_Send send 0 - 200 203 3 3 9 - - - - 0 - - - 4
1 2 MPI_Send send 0 - 300 301 - - 0 - - - - 1 - - - 4
1 3 MPI_Send send 0 - 400 402 - - 17 - - - - 0 - - 6 4
1 4 MPI_Send_init other 0 - 500 501 3 3 - - - - - 0 1 - - 6
1 5 MPI_Start send 0 - 600 605 3 3 31 - - - - 0 1 4 - 7
1 6 MPI_File_write io 0 - 700 800 - - 64 - - - - - - - - 8
# rank 3: a probe and its receive, and one more through the wrapper
3 0 MPI_Probe probe 0 - 50 117 - - - 1 1 4097 1 0 - - - 3
3 1 MPI_Recv recv 0 - 117 127 - - - 1 1 4097 0 0 - - - 5
3 2 MPI_Recv recv 0 - 150 203 - - - 1 1 9 3 0 - - - 5
3 3 MPI_Send send 0 - 210 215 1 1 9 - - - - 0 - - - 2
# a call that never returned
3 4 MPI_Recv recv 0 - 900 - - - - - - - 1 0 - - - 5
`

func TestCallSites(t *testing.T) {
	run := newRun(t, "sites.5", world+sites+siteEvents, example.Manifest(5))
	same(t, "by line", ask(t, run, "callsites"), `
		2,swap,comm.c,9,heat,,,MPI_Send,5,2,3,4115,0
		3,start,heat.c,30,heat,,,MPI_Recv,3,1,0,0,4106
		8,,,,,4097,,MPI_File_write,1,1,0,64,0
		7,x_send,,,libx.so,708,,MPI_Start,1,1,1,31,0
		3,start,heat.c,30,heat,,,MPI_Probe,1,1,0,0,0
		6,x_send,,,libx.so,700,,MPI_Send_init,1,1,0,0,0`)
	same(t, "by function", ask(t, run, "callsites", "by", "function"), `
		2,swap,,,heat,,,MPI_Send,5,2,3,4115,0
		3,start,,,heat,,,MPI_Recv,3,1,0,0,4106
		8,,,,,4097,,MPI_File_write,1,1,0,64,0
		6,x_send,,,libx.so,,,MPI_Start,1,1,1,31,0
		3,start,,,heat,,,MPI_Probe,1,1,0,0,0
		6,x_send,,,libx.so,,,MPI_Send_init,1,1,0,0,0`)
	same(t, "by path", ask(t, run, "callsites", "by", "path"), `
		5,start,heat.c,30,heat,,main,MPI_Recv,3,1,0,0,4106
		2,swap,comm.c,9,heat,,exchange < main,MPI_Send,2,2,2,4106,0
		8,,,,,4097,,MPI_File_write,1,1,0,64,0
		7,x_send,,,libx.so,708,,MPI_Start,1,1,1,31,0
		4,swap,comm.c,9,heat,,start < main,MPI_Send,3,1,1,9,0
		3,start,heat.c,30,heat,,main,MPI_Probe,1,1,0,0,0
		6,x_send,,,libx.so,700,,MPI_Send_init,1,1,0,0,0`)
}

func TestWildcards(t *testing.T) {
	run := newRun(t, "wild.5", world+sites+`
events rank seq call class comm send_peer send_world send_bytes recv_peer recv_world recv_tag recv_bytes posted_any request init_seq error_class callsite
# any source: met 1 and 3; any tag; both, cancelled; a named one; a persistent one; one that failed; from another job
2 0 MPI_Irecv recv 0 - - - 1 1 9 4097 1 1 - - 3
2 1 MPI_Irecv recv 0 - - - 3 3 9 17 1 2 - - 5
2 2 MPI_Irecv recv 0 - - - 3 3 7 5 2 3 - - 5
2 3 MPI_Irecv recv 0 - - - - - - - 3 4 - - 5
2 4 MPI_Recv recv 0 - - - 1 1 9 3 0 - - - 5
2 5 MPI_Recv_init other 0 - - - - - - - 1 5 - - 6
2 6 MPI_Start recv 0 - - - 4 4 9 31 1 5 5 - 7
2 7 MPI_Recv recv 0 - - - 4 4 9 100 1 - - 16 2
2 8 MPI_Recv recv 0 - - - 0 - 9 8 1 - - - 2
# the probe has the wildcard, not its receive; a Sendrecv
3 0 MPI_Probe probe 0 - - - 1 1 9 12 3 - - - 3
3 1 MPI_Recv recv 0 - - - 1 1 9 12 0 - - - 3
3 2 MPI_Sendrecv sendrecv 0 4 4 9 2 2 5 6 1 - - - -
`, example.Manifest(5))
	same(t, "wildcards", ask(t, run, "wildcards"), `
		2,MPI_Irecv,0,source,3,start,heat.c,30,,2,2,2,1,4114
		2,MPI_Recv,0,source,2,swap,comm.c,9,,2,1,0,1,8
		2,MPI_Irecv,0,both,3,start,heat.c,30,,1,0,0,0,0
		2,MPI_Irecv,0,tag,3,start,heat.c,30,,1,1,1,1,5
		2,MPI_Start,0,source,7,x_send,,,,1,1,1,1,31
		3,MPI_Probe,0,both,3,start,heat.c,30,,1,1,1,1,12
		3,MPI_Sendrecv,0,source,,,,,,1,1,1,1,6`)
}

const allRanks = `
ranks rank host
0 0
1 0
2 1
3 1
4 1
`

func TestPartnersAndPairs(t *testing.T) {
	run := newRun(t, "partners.5", world+allRanks+pingpong+`
messages src dst comm tag bytes send_seq recv_post_seq
1 2 0 9 4605 90 90
3 2 0 9 0 90 91
`, example.Manifest(5))
	// Rank 1 has 9194 + 17 bytes with rank 3 and 4605 with rank 2; rank 2 receives only; ranks 0 and 4 do nothing.
	same(t, "partners", ask(t, run, "partners"), `
		0,0,0,0,0,0,0,0,,,,0,0
		1,2,1,2,2,4622,3,9194,3,4,9211,0,0
		2,0,2,2,0,0,2,4605,1,1,4605,0,0
		3,2,1,2,4,9194,1,17,1,4,9211,1,0
		4,0,0,0,0,0,0,0,,,,0,0`)
	same(t, "pairs", ask(t, run, "pairs"), `
		1,3,4,9211,1,17,3,9194
		1,2,1,4605,1,4605,0,0
		2,3,1,0,0,0,1,0
		3,3,1,0,1,0,0,0`)
	same(t, "where", ask(t, run, "partners", "where", "tag = 8"), `
		0,0,0,0,0,0,0,0,,,,0,0
		1,1,0,1,1,17,0,0,3,1,17,0,0
		2,0,0,0,0,0,0,0,,,,0,0
		3,0,1,1,0,0,1,17,1,1,17,0,0
		4,0,0,0,0,0,0,0,,,,0,0`)
}

func TestPartnersWithCollectives(t *testing.T) {
	run := newRun(t, "partners.5", world+allRanks+`
events rank seq call class comm instance root_world send_bytes recv_bytes
0 0 MPI_Bcast collective 0 0 3 0 9
1 0 MPI_Bcast collective 0 0 3 0 9
2 0 MPI_Bcast collective 0 0 3 0 9
3 0 MPI_Bcast collective 0 0 3 9 0
4 0 MPI_Bcast collective 0 0 3 0 9
`, example.Manifest(5))
	same(t, "rooted", ask(t, run, "partners", "collectives", "rooted"), `
		0,0,1,1,0,0,1,9,3,1,9,0,0
		1,0,1,1,0,0,1,9,3,1,9,0,0
		2,0,1,1,0,0,1,9,3,1,9,0,0
		3,4,0,4,4,36,0,0,0,1,9,0,0
		4,0,1,1,0,0,1,9,3,1,9,0,0`)
	same(t, "none", ask(t, run, "pairs"), "")
}

func TestByRank(t *testing.T) {
	run := newRun(t, "ranks.5", world+allRanks+pingpong+`
events rank seq call class comm instance send_world send_bytes recv_world recv_bytes proc_null error_class
1 0 MPI_Allreduce collective 0 0 - 24 - 24 - -
1 1 MPI_Comm_dup comm 0 1 - - - - - -
1 2 MPI_Win_create rma 0 2 - - - - - -
1 3 MPI_Put rma 0 - 3 100 - - 0 -
1 4 MPI_Fetch_and_op rma 0 - 3 8 3 8 0 -
1 5 MPI_Put rma 0 - - 0 - - 1 -
1 6 MPI_Win_lock rma 0 - 3 - - - 0 -
1 7 MPI_Get rma 0 - - - 3 5 0 6
3 4 MPI_Send send 0 - 1 4097 - - 0 -
4 0 MPI_Start collective 0 4294967296 - 3 - 0 - -
`, example.Manifest(5))
	same(t, "by-rank", ask(t, run, "by-rank"), `
		0,0,0,0,0,0,0,0,0,0,0
		1,1,17,3,9194,1,24,24,2,108,8
		2,0,0,0,0,0,0,0,0,0,0
		3,4,9194,2,17,0,0,0,0,0,0
		4,0,0,0,0,1,3,0,0,0,0`)
}

func TestTags(t *testing.T) {
	run := newRun(t, "tags.5", comms+pingpong+`
messages src dst comm tag bytes send_seq recv_post_seq
1 2 0 9 5 90 90
1 2 1 9 7 91 91
`, example.Manifest(5))
	same(t, "tags", ask(t, run, "tags"), `
		0,9,4,9199,5,4097,2,2,2
		0,8,1,17,17,17,1,1,1
		1,9,1,7,7,7,1,1,1
		0,7,1,0,0,0,1,1,1`)
}

func TestCommunicators(t *testing.T) {
	run := newRun(t, "comms.5", `
comms comm remote comm_rank world_rank kind name parent
0 0 0 0 world MPI_COMM_WORLD -
0 0 1 1 world MPI_COMM_WORLD -
0 0 2 2 world MPI_COMM_WORLD -
0 0 3 3 world MPI_COMM_WORLD -
0 0 4 4 world MPI_COMM_WORLD -
1 0 0 3 split - 0
1 0 1 1 split rows 0
# an intercommunicator; its second group has a process of another job
2 0 0 0 inter - 0
2 1 0 4 inter - 1
2 1 1 - inter - 1
2 1 2 2 inter - 1
`+`
messages src dst comm tag bytes send_seq recv_post_seq
3 1 1 9 4097 4 8
3 1 1 9 9 5 9
4 0 2 9 17 5 9
`+`
events rank seq call class comm instance send_bytes recv_bytes
0 0 MPI_Comm_split comm 0 0 - -
1 0 MPI_Barrier collective 1 0 0 0
1 1 MPI_Allgather collective 1 1 8 16
1 2 MPI_Start collective 1 8589934592 3 5
1 3 MPI_Start collective 1 8589934593 3 5
3 0 MPI_Barrier collective 1 0 0 0
3 1 MPI_Allgather collective 1 1 8 16
3 2 MPI_Start collective 1 8589934592 3 5
`, example.Manifest(5))
	same(t, "communicators", ask(t, run, "communicators"), `
		0,world,MPI_COMM_WORLD,,5,,0,0,0,0,0,0
		1,split,rows,0,2,,2,4106,4,7,25,47
		2,inter,,0,1,3,1,17,0,0,0,0`)
}

func TestDatatypes(t *testing.T) {
	run := newRun(t, "types.5", world+`
datatypes id name combiner bytes extent_bytes
0 MPI_INT named 4 4
1 - vector 24 64
2 MPI_CHAR named 1 1

messages src dst comm tag bytes send_count send_datatype send_seq recv_post_seq
1 3 0 9 48 2 1 0 0
1 3 0 9 12 3 0 1 1
1 3 0 9 0 0 0 2 2

events rank seq call class comm instance send_count send_datatype send_bytes recv_count recv_datatype recv_bytes
# an Allreduce, the root and another of a Bcast, a Gather that receives as another type, a Barrier, and a send
1 0 MPI_Allreduce collective 0 0 2 0 8 2 0 8
1 1 MPI_Bcast collective 0 1 9 2 9 - - -
1 2 MPI_Gather collective 0 2 1 1 24 24 2 120
1 3 MPI_Barrier collective 0 3 - - 0 - - 0
1 4 MPI_Send send 0 - 2 1 48 - - -
3 0 MPI_Bcast collective 0 1 - - - 9 2 9
`, example.Manifest(5))
	same(t, "datatypes", ask(t, run, "datatypes"), `
		2,MPI_CHAR,named,1,1,0,0,0,3,9,129
		1,,vector,24,64,1,2,48,1,24,0
		0,MPI_INT,named,4,4,2,3,12,1,8,8`)
}

func TestOneSided(t *testing.T) {
	run := newRun(t, "rma.5", world+`
events rank seq call class comm instance send_world send_bytes recv_world recv_bytes proc_null error_class
1 0 MPI_Win_create rma 0 0 - - - - - -
1 1 MPI_Win_lock rma 0 - 3 - - - 0 -
1 2 MPI_Put rma 0 - 3 100 - - 0 -
1 3 MPI_Rput rma 0 - 3 17 - - 0 -
1 4 MPI_Put rma 0 - - 0 - - 1 -
1 5 MPI_Get rma 0 - - - 3 9 0 -
1 6 MPI_Get rma 0 - - - 3 9 0 6
1 7 MPI_Accumulate rma 0 - 3 24 - - 0 -
1 8 MPI_Rget_accumulate rma 0 - 3 0 3 4 0 -
1 9 MPI_Put rma 1 - 3 5 - - 0 -
1 10 MPI_Compare_and_swap rma 0 - 1 8 1 8 0 -
3 0 MPI_Get rma 0 - - - 1 0 0 -
`, example.Manifest(5))
	same(t, "one-sided", ask(t, run, "one-sided"), `
		1,1,0,0,0,0,0,1,8,8
		1,3,0,2,117,1,9,2,24,4
		1,3,1,1,5,0,0,0,0,0
		3,1,0,0,0,1,0,0,0,0`)
}

func TestFiles(t *testing.T) {
	run := newRun(t, "files.5", world+`
events rank seq call class comm instance send_bytes recv_bytes init_seq error_class label
1 0 MPI_File_open io 0 0 - - - - in.dat
1 1 MPI_File_read_at io 0 - - 4097 0 - -
1 2 MPI_File_open io 0 1 - - - - out.dat
1 3 MPI_File_iread io 0 - - 3 0 - -
1 4 MPI_File_write_all_begin io 0 - 17 - 2 - -
1 5 MPI_File_write_all_end io 0 - - - 2 - -
1 6 MPI_File_read io 0 - - 9 2 35 -
1 7 MPI_File_close io 0 - - - 0 - -
1 8 MPI_File_delete io - - - - - - old.dat
1 9 MPI_File_write io 0 - 5 - - - -
3 0 MPI_File_open io 0 0 - - - - in.dat
3 1 MPI_File_open io 0 1 - - - 20 out.dat
`, example.Manifest(5))
	same(t, "files", ask(t, run, "files"), `
		in.dat,2,2,2,4100,0,0,0
		out.dat,2,1,0,0,1,17,2
		,1,0,0,0,1,5,0
		old.dat,1,0,0,0,0,0,0`)
}

// A probe's message is received by another call, and the data of MPI_Pready was counted when the request was started.
func TestCallsCountBytesOnce(t *testing.T) {
	run := newRun(t, "once.5", world+`
events rank seq call class comm send_world send_bytes recv_world recv_bytes
1 0 MPI_Psend_init other 0 3 - - -
1 1 MPI_Start send 0 3 18 - -
1 2 MPI_Pready_range other 0 - 18 - -
3 0 MPI_Probe probe 0 - - 1 9
3 1 MPI_Recv recv 0 - - 1 9
`, example.Manifest(5))
	same(t, "calls", ask(t, run, "calls"), `
		1,MPI_Pready_range,5,1,0,0
		1,MPI_Psend_init,5,1,0,0
		1,MPI_Start,5,1,18,0
		3,MPI_Probe,5,1,0,0
		3,MPI_Recv,5,1,0,9`)
}

func TestCallSiteTime(t *testing.T) {
	run := newRun(t, "sites.5", world+sites+siteEvents, example.Manifest(5))
	// Rank 1: 17 + 3 + 1 + 2 at comm.c:9 and 100 in the file, 1 for making and 5 for starting; rank 3: 67, 10, 53 and
	// 5. All calls: 129 + 135 = 264; from the first call to the last end: 800 - 100 and 215 - 50 make 865. cov at
	// comm.c:9: 23 on rank 1 and 5 on rank 3: mean 14, deviation 9.
	same(t, "by line", ask(t, run, "callsite-time"), `
		8,,,,,4097,,MPI_File_write,1,1,100,100,100,0.3787878787878788,0.11560693641618497,0
		3,start,heat.c,30,heat,,,MPI_Probe,1,1,67,67,67,0.2537878787878788,0.07745664739884393,0
		3,start,heat.c,30,heat,,,MPI_Recv,2,1,63,31.5,53,0.23863636363636365,0.07283236994219654,0
		2,swap,comm.c,9,heat,,,MPI_Send,5,2,28,5.6,17,0.10606060606060606,0.03236994219653179,0.6428571428571429
		7,x_send,,,libx.so,708,,MPI_Start,1,1,5,5,5,0.01893939393939394,0.005780346820809248,0
		6,x_send,,,libx.so,700,,MPI_Send_init,1,1,1,1,1,0.003787878787878788,0.0011560693641618498,0`)
}

func TestCompute(t *testing.T) {
	run := newRun(t, "compute.5", world+sites+`
events rank seq call class start_ns end_ns compute_ns callsite
1 0 MPI_Init other 0 100 7000 0
1 1 MPI_Send send 200 230 90 2
1 2 MPI_Send send 300 310 60 4
1 3 MPI_Recv recv 400 - 50 2
3 0 MPI_Init other 0 100 8000 0
3 1 MPI_Send send 200 230 50 2
3 2 MPI_Start send 300 301 25 7
3 3 MPI_Finalize other 400 500 25 -
`, example.Manifest(5))
	// Rank 1 computes 90 + 60 before its sends at comm.c:9, from two callers, and rank 3 50: 200 of all 300. 150 is 1.5
	// times the mean of the two.
	same(t, "by line", ask(t, run, "compute"), `
		2,swap,comm.c,9,heat,,MPI_Send,,2,3,200,66.66666666666667,1,150,1.5,0.6666666666666666
		2,swap,comm.c,9,heat,,MPI_Recv,,1,1,50,50,1,50,1,0.16666666666666666
		7,x_send,,,libx.so,708,MPI_Start,,1,1,25,25,3,25,1,0.08333333333333333
		,,,,,,MPI_Finalize,,1,1,25,25,3,25,1,0.08333333333333333`)
	same(t, "by line and rank", ask(t, run, "compute", "by", "line-rank"), `
		2,swap,comm.c,9,heat,,MPI_Send,1,1,2,150,75,1,150,1,0.5
		2,swap,comm.c,9,heat,,MPI_Recv,1,1,1,50,50,1,50,1,0.16666666666666666
		2,swap,comm.c,9,heat,,MPI_Send,3,1,1,50,50,3,50,1,0.16666666666666666
		7,x_send,,,libx.so,708,MPI_Start,3,1,1,25,25,3,25,1,0.08333333333333333
		,,,,,,MPI_Finalize,3,1,1,25,25,3,25,1,0.08333333333333333`)
}

// near has, beside pingpong, a message within rank 1's host.
const near = world + allRanks + pingpong + `
messages src dst comm tag bytes send_seq recv_post_seq
1 0 0 9 789 90 90
`

func TestLocality(t *testing.T) {
	run := newRun(t, "near.5", near, example.Manifest(5))
	same(t, "as it ran", ask(t, run, "locality"), `
		self,0,1,1,0,0.16666666666666666,0,0
		intra-node,0,1,1,789,0.16666666666666666,0.0789,0
		inter-node,1,2,4,9211,0.6666666666666666,0.9211,9211`)
	// On 2x3 node 1 is (0,1), node 3 (1,0): one step on each axis.
	same(t, "torus", ask(t, run, "locality", "topology", "torus", "dims", "2x3", "mapping", "block"), `
		self,0,1,1,0,0.16666666666666666,0,0
		inter-node,1,1,1,789,0.16666666666666666,0.0789,789
		inter-node,2,2,4,9211,0.6666666666666666,0.9211,18422`)
	// Leaf switches of three nodes: 0 to 2 and 3 to 5.
	same(t, "tree", ask(t, run, "locality", "topology", "tree", "dims", "2x3", "mapping", "block"), `
		self,0,1,1,0,0.16666666666666666,0,0
		inter-node,2,1,1,789,0.16666666666666666,0.0789,1578
		inter-node,4,2,4,9211,0.6666666666666666,0.9211,36844`)
	// Five ranks by twos take three nodes: ranks 0 and 3 are on node 0, rank 1 on node 1.
	same(t, "cyclic", ask(t, run, "locality", "mapping", "cyclic", "ranks-per-node", "2"), `
		self,0,1,1,0,0.16666666666666666,0,0
		inter-node,1,3,5,10000,0.8333333333333334,1,10000`)
	same(t, "block", ask(t, run, "locality", "mapping", "block", "ranks-per-node", "2", "where", "tag = 9"), `
		intra-node,0,1,1,789,0.25,0.0790343584092958,0
		inter-node,1,1,3,9194,0.75,0.9209656415907042,9194`)
	rankmap := filepath.Join(t.TempDir(), "map.csv")
	write := func(text string) {
		if err := os.WriteFile(rankmap, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("rank,node\n0,7\n1,7\n2,0\n3,4\n4,4\n")
	same(t, "file", ask(t, run, "locality", "topology", "torus", "dims", "8", "mapping", "file", "rankmap", rankmap), `
		self,0,1,1,0,0.16666666666666666,0,0
		intra-node,0,1,1,789,0.16666666666666666,0.0789,0
		inter-node,3,2,4,9211,0.6666666666666666,0.9211,27633`)
	fails := func(want string, args map[string]string) {
		t.Helper()
		rows, err := open(t, run).Ask(t.Context(), named(t, "locality"), args)
		if err == nil {
			for rows.Next() {
			}
			err = errors.Join(rows.Err(), rows.Close())
		}
		if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "refused") {
			t.Errorf("%v: error %v; want one that ends with %q", args, err, want)
		}
	}
	for dims, node := range map[string]string{"": "3", "3": "3", "4x": "3", "2x1": "3", "0x9": "3", "axb": "3",
		"1x1x1x1x1x1x9": "3"} {
		for _, topology := range []string{"torus", "tree"} {
			fails("dims '"+dims+"': want extents as in 4x4x4, with room for node "+node,
				map[string]string{"topology": topology, "dims": dims, "mapping": "block",
					"where": "src = 3 AND dst = 1"})
		}
	}
	for text, rank := range map[string]string{"rank,node\n0,7\n1,7\n2,0\n4,4\n": "3",
		"rank,node\n0,7\n1,7\n2,0\n3,4\n3,5\n4,4\n": "3",
		"rank,node\n0,7\n1,-1\n2,0\n3,4\n4,4\n":     "1", "rank,node\n0,7\n1,\n2,0\n3,4\n4,4\n": "1"} {
		write(text)
		fails("rankmap needs one node, from 0, for rank "+rank,
			map[string]string{"mapping": "file", "rankmap": rankmap})
	}
	fails("rankmap needs one node, from 0, for rank 0", map[string]string{"mapping": "file"})
}

// TestLocalityAgainstDirectCount compares hops with those found by walking the links.
func TestLocalityAgainstDirectCount(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 3))
		dims := make([]int, 1+rng.IntN(4))
		nodes, given := 1, ""
		for i := range dims {
			dims[i] = 1 + rng.IntN(5)
			nodes *= dims[i]
			given += fmt.Sprint("x", dims[i])
		}
		perNode := 1 + rng.IntN(3)
		ranks := (nodes-1)*perNode + 1
		var text strings.Builder
		text.WriteString("ranks rank host\n")
		for r := range ranks {
			fmt.Fprintf(&text, "%d 0\n", r)
		}
		text.WriteString("\nmessages src dst comm tag bytes send_seq recv_post_seq\n")
		var sent [][3]int
		for i := range 60 {
			m := [3]int{rng.IntN(ranks), rng.IntN(ranks), rng.IntN(5000)}
			sent = append(sent, m)
			fmt.Fprintf(&text, "%d %d 0 9 %d %d %d\n", m[0], m[1], m[2], i, i)
		}
		run := newRun(t, fmt.Sprintf("walk.%d", seed), text.String(), example.Manifest(int32(ranks)))
		for _, topology := range []string{"torus", "tree"} {
			hops := walkTorus
			if topology == "tree" {
				hops = walkTree
			}
			for _, mapping := range []string{"block", "cyclic"} {
				var want int
				for _, m := range sent {
					a, b := m[0]/perNode, m[1]/perNode
					if mapping == "cyclic" {
						a, b = m[0]%nodes, m[1]%nodes
					}
					want += hops(dims, a, b) * m[2]
				}
				got := 0
				for _, line := range strings.Split(strings.TrimSpace(ask(t, run, "locality", "topology", topology,
					"dims", given[1:],
					"mapping", mapping, "ranks-per-node", fmt.Sprint(perNode))), "\n") {
					var n int
					fmt.Sscan(line[strings.LastIndex(line, ",")+1:], &n)
					got += n
				}
				if got != want {
					t.Errorf("seed %d: %s %s, %s: %d hop-bytes; want %d", seed, topology, given[1:], mapping, got, want)
				}
			}
		}
	}
}

// walkTorus counts the steps of a breadth-first search from node a to node b.
func walkTorus(dims []int, a, b int) int {
	dist := map[int]int{a: 0}
	for queue := []int{a}; ; queue = queue[1:] {
		at := queue[0]
		if at == b {
			return dist[at]
		}
		stride := 1
		for i := len(dims) - 1; i >= 0; i-- {
			x := at / stride % dims[i]
			for _, step := range []int{1, dims[i] - 1} {
				next := at + ((x+step)%dims[i]-x)*stride
				if _, seen := dist[next]; !seen {
					dist[next] = dist[at] + 1
					queue = append(queue, next)
				}
			}
			stride *= dims[i]
		}
	}
}

// walkTree goes up from both nodes until they meet.
func walkTree(dims []int, a, b int) int {
	hops := 0
	for i := len(dims) - 1; a != b; i-- {
		a, b = a/dims[i], b/dims[i]
		hops += 2
	}
	return hops
}

// duplicatedMessages has from rank 1: a payload sent three times to 3 and once each to 4 and 2; an empty one sent
// twice; a number whose hash another number has, with another head; equal bytes of another datatype; messages without
// a hash; zeros; and a payload that rank 2 sends too.
const duplicatedMessages = `
messages src dst comm tag bytes send_count send_seq recv_post_seq payload_hash payload_head send_callsite
1 3 0 9 100 25 0 0 -77 5 2
1 3 0 9 100 25 1 1 -77 5 4
1 4 0 9 100 25 2 2 -77 5 5
1 3 0 8 100 25 3 3 -77 5 2
1 2 0 9 100 25 4 4 -77 5 6
1 3 0 9 0 0 5 5 0 0 2
1 3 0 9 0 0 6 6 0 0 2
1 3 0 9 8 1 7 7 12 31 2
1 3 0 9 8 1 8 8 12 32 2
1 3 0 9 100 50 9 9 -77 5 2
1 3 0 9 17 17 10 10 - - 2
1 3 0 9 17 17 11 11 - - 2
1 3 0 9 64 8 12 12 9 0 2
1 3 0 9 64 8 13 13 9 0 4
2 3 0 9 100 25 0 20 -77 5 7
2 2 0 9 30 30 1 1 6 7 7
2 2 0 9 30 30 2 2 6 7 7
`

// TestDuplicatesOfCallsWithoutASite: where the first of equal payloads was sent from an unknown call site, the sums of
// the writer and those of SQL leave out that message, and none of a call with a site.
func TestDuplicatesOfCallsWithoutASite(t *testing.T) {
	run := newRun(t, "unknown.5", world+sites+`
messages src dst comm tag bytes send_count send_seq recv_post_seq payload_hash payload_head send_callsite
1 3 0 9 100 25 0 0 -77 5 -
1 3 0 9 100 25 1 1 -77 5 2
1 3 0 9 100 25 2 2 -77 5 2
1 4 0 9 100 25 3 3 -77 5 4
`, example.Manifest(5))
	for name, run := range map[string]queries.Run{"of the writer": run, "of SQL": withoutSums(run)} {
		rows, err := open(t, run).Query(t.Context(),
			"SELECT src, dst, callsite, again, copied FROM repeats ORDER BY dst, callsite")
		same(t, name, text(t, rows, err), "1,3,2,2,0\n1,4,4,0,1")
	}
}

func TestDuplicates(t *testing.T) {
	run := newRun(t, "twice.5", world+sites+duplicatedMessages, example.Manifest(5))
	same(t, "duplicates", ask(t, run, "duplicates"), `
		1,3,12,578,3,264,3,264,0,0,64
		1,2,1,100,1,100,0,0,1,100,0
		1,4,1,100,1,100,0,0,1,100,0
		2,2,2,60,1,30,1,30,0,0,0`)
	same(t, "larger ones", ask(t, run, "duplicates", "min-bytes", "65"), `
		1,3,12,578,2,200,2,200,0,0,0
		1,2,1,100,1,100,0,0,1,100,0
		1,4,1,100,1,100,0,0,1,100,0`)
	// Without tag 8 the third message to rank 3 is missing.
	same(t, "where", ask(t, run, "duplicates", "where", "tag = 9 AND src = 1 AND bytes > 64"), `
		1,2,1,100,1,100,0,0,1,100,0
		1,3,3,300,1,100,1,100,0,0,0
		1,4,1,100,1,100,0,0,1,100,0`)
	// comm.c:9 sends the second and third to rank 3 and the second zeros, heat.c:30 the one to rank 4.
	same(t, "by line", ask(t, run, "duplicate-callsites"), `
		2,swap,comm.c,9,heat,,,1,3,264,264,0,64
		3,start,heat.c,30,heat,,,1,1,100,0,100,0
		6,x_send,,,libx.so,700,,1,1,100,0,100,0
		7,x_send,,,libx.so,708,,1,1,30,30,0,0`)
	same(t, "by path", ask(t, run, "duplicate-callsites", "by", "path"), `
		4,swap,comm.c,9,heat,,start < main,1,2,164,164,0,64
		2,swap,comm.c,9,heat,,exchange < main,1,1,100,100,0,0
		5,start,heat.c,30,heat,,main,1,1,100,0,100,0
		6,x_send,,,libx.so,700,,1,1,100,0,100,0
		7,x_send,,,libx.so,708,,1,1,30,30,0,0`)
}

func TestSharedPayloads(t *testing.T) {
	run := newRun(t, "shared.5", world+`
messages src dst epoch comm tag bytes send_seq recv_post_seq payload_hash
# 77 goes to two ranks, by another that passes it on in the next epoch; as long but not the same; the same hash and not as long
1 3 0 0 9 4097 1 1 77
1 4 0 0 9 4097 2 1 78
3 4 1 0 9 4097 3 2 77
3 1 1 0 9 17 4 3 77
# nothing is nothing, whatever it is said to hold; what a rank has itself is sent to nobody
4 1 1 0 8 0 5 4 -
4 3 2 0 8 0 6 5 5
2 2 2 0 8 31 7 6 79
2 2 2 0 8 31 8 7 79
# what is not known may be anything
2 1 3 0 8 31 9 8 -
`, example.Manifest(5))
	same(t, "two", ask(t, run, "shared-payloads"), `
		0,1,2,1,4097,0
		1,3,2,1,4097,0
		1,4,1,1,0,0
		2,4,1,1,0,0
		3,2,1,0,0,1`)
	same(t, "three", ask(t, run, "shared-payloads", "min-messages", "3"), `
		3,2,1,0,0,1`)
}

// TestDuplicatesAgainstDirectCount compares the query with a list of everything that was sent.
func TestDuplicatesAgainstDirectCount(t *testing.T) {
	type payload struct{ src, hash, head, bytes, count int }
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var rows []string
		had := map[payload]map[int]bool{}
		var again, copied, blank int64
		for src := range 4 {
			for seq := range 60 {
				size := []int{1, 4, 8}[rng.IntN(3)]
				p := payload{src, rng.IntN(4), rng.IntN(3), 8 * rng.IntN(3), 0}
				p.count = p.bytes / size
				dst := rng.IntN(4)
				rows = append(rows, fmt.Sprintf("%d %d 0 9 %d %d %d %d %d %d", src, dst, p.bytes, p.count, seq,
					60*src+seq, p.hash, p.head))
				if p.bytes == 0 {
					continue
				}
				switch {
				case had[p] == nil:
					had[p] = map[int]bool{}
				case had[p][dst]:
					again += int64(p.bytes)
				default:
					copied += int64(p.bytes)
				}
				if p.head == 0 && len(had[p]) > 0 {
					blank += int64(p.bytes)
				}
				had[p][dst] = true
			}
		}
		run := newRun(t, fmt.Sprintf("twice.%d", seed),
			"messages src dst comm tag bytes send_count send_seq recv_post_seq payload_hash payload_head\n"+
				strings.Join(rows, "\n"), example.Manifest(4))
		var gotAgain, gotCopied, gotBlank int64
		for _, line := range strings.Split(strings.TrimSpace(ask(t, run, "duplicates")), "\n") {
			var n [11]int64
			if _, err := fmt.Sscanf(line, "%d,%d,%d,%d,%d,%d,%d,%d,%d,%d,%d", &n[0], &n[1], &n[2], &n[3], &n[4],
				&n[5], &n[6], &n[7], &n[8], &n[9], &n[10]); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			gotAgain, gotCopied, gotBlank = gotAgain+n[7], gotCopied+n[9], gotBlank+n[10]
		}
		if gotAgain != again || gotCopied != copied || gotBlank != blank {
			t.Errorf("seed %d: again %d, copied %d, blank %d bytes; want %d, %d, %d", seed, gotAgain, gotCopied,
				gotBlank, again, copied, blank)
		}
	}
}
