package queries_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/commq/commq/queries/internal/gendocs/example"
)

// fiveRanks are ranks 0 to 2 on one host and 3 and 4 on another, whose clock is known to 7 and 6 ns.
const fiveRanks = `
ranks rank host clock_error_init_ns clock_error_final_ns
0 0 0 0
1 0 0 0
2 0 0 0
3 1 5 7
4 1 6 -
`

// twoRanksCall has calls of ranks 1 and 3 of five, of every class. Rank 3 has two threads, and its barrier never
// returns.
const twoRanksCall = `
events rank seq thread call class start_ns end_ns compute_ns polls poll_ns
1 0 0 MPI_Init other 0 100 0 0 0
1 1 0 MPI_Send send 200 230 90 0 0
# three failed tests of 20 ns together in the gap of 70
1 2 0 MPI_Wait complete 300 390 40 3 20
1 3 0 MPI_Barrier collective 400 450 10 0 0
3 0 0 MPI_Init other 10 100 0 0 0
3 1 0 MPI_Recv recv 100 340 0 0 0
3 2 1 MPI_Send send 150 210 0 0 0
3 3 0 MPI_Put rma 350 360 8 0 0
3 4 0 MPI_File_write io 365 400 5 0 0
3 5 0 MPI_Probe probe 400 410 0 0 0
3 6 0 MPI_Comm_dup comm 410 430 0 0 0
3 7 0 MPI_Barrier collective 440 - 0 0 0
`

func TestTimeByRank(t *testing.T) {
	run := newRun(t, "times.5", world+fiveRanks+twoRanksCall, example.Manifest(5))
	// rank, thread, total, mpi, point-to-point, wait, probe, poll, collective, rma, io, other, outside, compute
	same(t, "time-by-rank", ask(t, run, "time-by-rank"), `
		1,0,350,190,30,90,0,20,50,0,0,0,160,140
		3,0,340,315,240,0,10,0,0,10,35,20,25,13
		3,1,60,60,60,0,0,0,0,0,0,0,0,0`)
	same(t, "with MPI_Init", ask(t, run, "time-by-rank", "init", "include"), `
		1,0,450,290,30,90,0,20,50,0,0,100,160,140
		3,0,430,405,240,0,10,0,0,10,35,110,25,13
		3,1,60,60,60,0,0,0,0,0,0,0,0,0`)
}

func TestCallsTime(t *testing.T) {
	run := newRun(t, "times.5", world+fiveRanks+twoRanksCall, example.Manifest(5))
	// After MPI_Init the threads ran 350 + 340 + 60 = 750 ns, of which 545 in recorded calls.
	same(t, "calls-time", ask(t, run, "calls-time"), `
		MPI_Recv,1,1,240,240,240,240,0.32,0.4404,0
		MPI_Send,2,2,90,30,45,60,0.12,0.1651,0.4714
		MPI_Wait,1,1,90,90,90,90,0.12,0.1651,0
		MPI_Barrier,2,2,50,50,50,50,0.0667,0.0917,1.4142
		MPI_File_write,1,1,35,35,35,35,0.0467,0.0642,0
		MPI_Comm_dup,1,1,20,20,20,20,0.0267,0.0367,0
		MPI_Probe,1,1,10,10,10,10,0.0133,0.0183,0
		MPI_Put,1,1,10,10,10,10,0.0133,0.0183,0`)
	// With it they ran 450 + 430 + 60 = 940 ns, of which 735 in recorded calls. The times of the ranks in MPI_Init are
	// 100 and 90: their standard deviation is 10/sqrt(2) = 7.07, by the mean of 95 0.0744.
	same(t, "with MPI_Init", ask(t, run, "calls-time", "init", "include"), `
		MPI_Recv,1,1,240,240,240,240,0.2553,0.3265,0
		MPI_Init,2,2,190,90,95,100,0.2021,0.2585,0.0744
		MPI_Send,2,2,90,30,45,60,0.0957,0.1224,0.4714
		MPI_Wait,1,1,90,90,90,90,0.0957,0.1224,0
		MPI_Barrier,2,2,50,50,50,50,0.0532,0.068,1.4142
		MPI_File_write,1,1,35,35,35,35,0.0372,0.0476,0
		MPI_Comm_dup,1,1,20,20,20,20,0.0213,0.0272,0
		MPI_Probe,1,1,10,10,10,10,0.0106,0.0136,0
		MPI_Put,1,1,10,10,10,10,0.0106,0.0136,0`)
}

func TestImbalance(t *testing.T) {
	run := newRun(t, "times.5", world+fiveRanks+twoRanksCall, example.Manifest(5))
	// what, ranks, total, min, mean over all five, max, top rank, max/mean, max - mean, (max - mean)/max * 5/4
	const (
		first = `
		MPI_Recv,1,240,0,48,240,3,5,192,1
		compute,2,153,0,31,140,1,4.5752,109,0.9768
		MPI_Wait,1,90,0,18,90,1,5,72,1`
		rest = `
		MPI_Send,2,90,0,18,60,3,3.3333,42,0.875
		MPI_Barrier,1,50,0,10,50,1,5,40,1
		MPI_File_write,1,35,0,7,35,3,5,28,1
		MPI_Comm_dup,1,20,0,4,20,3,5,16,1
		MPI_Probe,1,10,0,2,10,3,5,8,1
		MPI_Put,1,10,0,2,10,3,5,8,1`
	)
	same(t, "imbalance", ask(t, run, "imbalance"), "MPI,2,565,0,113,375,3,3.3186,262,0.8733"+first+rest)
	same(t, "with MPI_Init", ask(t, run, "imbalance", "init", "include"),
		"MPI,2,755,0,151,465,3,3.0795,314,0.8441"+first+"\nMPI_Init,2,190,0,38,100,1,2.6316,62,0.775"+rest)
	unclocked := example.Manifest(2)
	unclocked.ComputeClock = "none"
	run = newRun(t, "unclocked.2", twoThreads, unclocked)
	same(t, "without a compute clock", ask(t, run, "imbalance"), `
		MPI,1,200,0,100,200,0,2,100,1
		MPI_Recv,1,200,0,100,200,0,2,100,1`)
}

// twoThreads has two threads of rank 0 that receive at one place all the time.
const twoThreads = `
events rank seq thread call class start_ns end_ns callsite
0 0 0 MPI_Recv recv 0 100 0
0 1 1 MPI_Recv recv 0 100 0

callsites id function file line
0 work heat.c 5

ranks rank host
0 0
1 0
`

// TestShareOfThreads: a call site that takes all time of all threads has a share of 1.
func TestShareOfThreads(t *testing.T) {
	same(t, "callsite-time", ask(t, newRun(t, "threads.2", twoThreads, example.Manifest(2)), "callsite-time"),
		"0,work,heat.c,5,,,,MPI_Recv,2,1,200,100,100,1,1,0")
}

func TestOverTime(t *testing.T) {
	run := newRun(t, "steps.5", comms+`
messages src dst tag bytes send_seq send_start_ns recv_end_ns
1 3 9 17 0 0 150
1 3 9 100 1 99 350
3 1 8 9 0 100 -
3 1 8 5 1 399 -

events rank seq call class comm instance start_ns end_ns send_bytes
1 2 MPI_Barrier collective 0 0 90 220 0
1 3 MPI_Allreduce collective 1 0 310 399 8
3 2 MPI_Barrier collective 0 0 210 220 0
3 3 MPI_Iallreduce collective 1 0 300 301 8
`, example.Manifest(5))
	// Four steps of 399/4 + 1 ns, rounded down. The barrier counts where rank 1 enters, the allreduce where rank 3
	// does.
	same(t, "by send", ask(t, run, "over-time", "bins", "4"), `
		0,0,100,2,117,1,0
		1,100,200,1,9,0,0
		2,200,300,0,0,0,0
		3,300,400,1,5,1,16`)
	same(t, "by receive", ask(t, run, "over-time", "bins", "4", "side", "receive", "where", "tag = 9"), `
		0,0,100,0,0,1,0
		1,100,200,1,17,0,0
		2,200,300,0,0,0,0
		3,300,400,1,100,1,16`)
	if n := strings.Count(ask(t, run, "over-time", "bins", "10000"), "\n"); n != 400 {
		t.Errorf("%d steps of 1 ns; want 400", n)
	}
}

func TestLateSenders(t *testing.T) {
	run := newRun(t, "late.5", world+fiveRanks+`
messages src dst bytes send_seq send_start_ns send_end_ns recv_post_seq recv_done_seq recv_post_ns recv_start_ns recv_end_ns
# rank 3's Waitall at 200 completes messages of 0, 1 and 2: it waits for the last one, of 2; rank 0's was there before
0 3 8 0 150 151 2 9 10 200 300
# rank 0's Waitall at 100 completes two messages sent at the same ns: the lower rank counts
1 0 8 0 150 151 0 4 10 100 200
1 3 8 1 160 161 1 1 100 100 190
1 3 8 2 210 211 3 9 10 200 300
1 3 8 3 500 501 5 5 500 500 600
2 0 8 0 150 151 1 4 10 100 200
2 3 8 1 250 251 4 9 10 200 300
# never completed
2 3 8 2 900 901 7 - 700 - -
# by the clocks sent after it was received
4 3 8 0 400 401 6 6 380 380 390
`, example.Manifest(5))
	same(t, "late-senders", ask(t, run, "late-senders"), `
		1,3,3,1,60,60,7
		1,0,1,1,50,50,0
		2,3,2,1,50,50,7
		4,3,1,1,10,10,0`) // on one host, whose ranks share a clock
}

func TestLateReceivers(t *testing.T) {
	run := newRun(t, "late.5", world+fiveRanks+`
events rank seq call class start_ns end_ns request done_seq
# two sends completed by one MPI_Waitall, whose receives are posted at 300 and 450
0 0 MPI_Isend send 50 51 1 2
0 1 MPI_Isend send 60 61 2 2
0 2 MPI_Waitall complete 100 500 - -
1 0 MPI_Ssend send 100 180 - -
1 1 MPI_Isend send 200 205 1 2
1 2 MPI_Wait complete 300 400 1 -
# posted before the MPI_Wait begins
1 3 MPI_Isend send 405 406 2 4
1 4 MPI_Wait complete 420 430 2 -
# eager: over before the receive is posted
1 5 MPI_Send send 500 510 - -
2 0 MPI_Sendrecv sendrecv 100 300 - -
# waits for its own receive, sent by rank 0 at 200
4 0 MPI_Sendrecv sendrecv 100 300 - -

messages src dst bytes send_seq send_start_ns send_end_ns recv_post_seq recv_done_seq recv_post_ns recv_start_ns recv_end_ns
0 1 8 0 50 51 9 9 300 300 310
0 3 8 1 60 61 9 9 450 450 460
0 4 8 3 200 201 0 0 100 100 300
1 3 8 0 100 180 1 1 150 150 190
1 3 8 1 200 205 2 2 350 350 400
1 2 8 3 405 406 2 2 410 410 430
1 2 8 5 500 510 3 3 600 600 610
2 3 8 0 100 300 4 4 250 250 320
4 2 8 0 100 300 1 1 250 250 320
4 2 8 1 50 60 0 0 90 100 300
`, example.Manifest(5))
	same(t, "late-receivers", ask(t, run, "late-receivers"), `
		0,3,1,1,350,350,7
		2,3,1,1,150,150,7
		1,3,2,2,100,50,7`)
}

// collectivesInTime: operations on communicator 1 (ranks 4, 2, 3) and on the intercommunicator 3 (ranks 0, 1 and 2,
// 3, 4).
const collectivesInTime = `
events rank seq call class comm instance root_world start_ns end_ns request done_seq init_seq
0 0 MPI_Barrier_init other 0 0 - 600 601 6 - -
0 1 MPI_Barrier collective 3 0 - 700 735 - - -
# rank 0 is the root (MPI_ROOT), rank 1 takes no part (MPI_PROC_NULL)
0 2 MPI_Bcast collective 3 1 0 830 835 - - -
0 3 MPI_Start collective 0 4294967296 - 900 901 7 4 0
0 4 MPI_Wait complete - - - 910 960 7 - -
0 5 MPI_Allreduce_c collective 2 0 - 970 971 - - -
1 0 MPI_Barrier_init other 0 0 - 600 601 6 - -
1 1 MPI_Barrier collective 3 0 - 720 735 - - -
1 2 MPI_Bcast collective 3 1 - 801 802 - - -
1 3 MPI_Start collective 0 4294967296 - 950 951 7 4 0
1 4 MPI_Wait complete - - - 951 960 7 - -
2 0 MPI_Barrier collective 1 0 - 150 160 - - -
2 1 MPI_Bcast collective 1 1 2 230 235 - - -
2 2 MPI_Reduce collective 1 2 4 350 360 - - -
2 3 MPI_Scan collective 1 3 - 420 450 - - -
2 4 MPI_Iallreduce collective 1 4 - 505 506 1 5 -
2 5 MPI_Wait complete - - - 610 620 1 - -
2 6 MPI_Neighbor_alltoall collective 1 5 - 650 690 - - -
2 7 MPI_Barrier collective 3 0 - 710 735 - - -
2 8 MPI_Bcast collective 3 1 0 800 840 - - -
3 0 MPI_Barrier collective 1 0 - 120 160 - - -
3 1 MPI_Bcast collective 1 1 2 210 240 - - -
3 2 MPI_Reduce collective 1 2 4 380 381 - - -
3 3 MPI_Scan collective 1 3 - 410 450 - - -
3 4 MPI_Iallreduce collective 1 4 - 600 601 1 5 -
3 5 MPI_Wait complete - - - 605 620 1 - -
3 6 MPI_Neighbor_alltoall collective 1 5 - 680 690 - - -
3 7 MPI_Barrier collective 3 0 - 730 735 - - -
3 8 MPI_Bcast collective 3 1 0 820 840 - - -
4 0 MPI_Barrier collective 1 0 - 100 160 - - -
# by the clocks rank 4 has the payload before rank 2 enters
4 1 MPI_Bcast collective 1 1 2 200 215 - - -
4 2 MPI_Reduce collective 1 2 4 300 390 - - -
4 3 MPI_Scan collective 1 3 - 400 450 - - -
4 4 MPI_Iallreduce collective 1 4 - 500 501 1 5 -
4 5 MPI_Wait complete - - - 550 620 1 - -
4 6 MPI_Neighbor_alltoall collective 1 5 - 650 690 - - -
4 7 MPI_Barrier collective 3 0 - 705 735 - - -
4 8 MPI_Bcast collective 3 1 0 840 845 - - -
`

func TestCollectiveWait(t *testing.T) {
	run := newRun(t, "wait.5", comms+fiveRanks+collectivesInTime, example.Manifest(5))
	// pattern, call, comm, rank, calls, waits, wait, longest, caused, caused ns
	sameWithoutSums(t, run)
	same(t, "needed", ask(t, run, "collective-wait"), `
		wait-at-nxn,MPI_Allreduce,1,2,1,0,0,0,0,0
		wait-at-nxn,MPI_Allreduce,1,3,1,0,0,0,1,50
		wait-at-nxn,MPI_Allreduce,1,4,1,1,50,50,0,0
		wait-at-nxn,MPI_Allreduce,2,0,1,0,0,0,0,0
		wait-at-barrier,MPI_Barrier,0,0,1,1,40,40,0,0
		wait-at-barrier,MPI_Barrier,0,1,1,0,0,0,1,40
		wait-at-barrier,MPI_Barrier,1,2,1,0,0,0,2,80
		wait-at-barrier,MPI_Barrier,1,3,1,1,30,30,0,0
		wait-at-barrier,MPI_Barrier,1,4,1,1,50,50,0,0
		wait-at-barrier,MPI_Barrier,3,0,1,1,30,30,0,0
		wait-at-barrier,MPI_Barrier,3,1,1,1,10,10,2,25
		wait-at-barrier,MPI_Barrier,3,2,1,1,10,10,0,0
		wait-at-barrier,MPI_Barrier,3,3,1,0,0,0,2,40
		wait-at-barrier,MPI_Barrier,3,4,1,1,15,15,0,0
		late-broadcast,MPI_Bcast,1,2,1,0,0,0,2,35
		late-broadcast,MPI_Bcast,1,3,1,1,20,20,0,0
		late-broadcast,MPI_Bcast,1,4,1,1,15,15,0,0
		late-broadcast,MPI_Bcast,3,0,1,0,0,0,2,40
		late-broadcast,MPI_Bcast,3,1,1,0,0,0,0,0
		late-broadcast,MPI_Bcast,3,2,1,1,30,30,0,0
		late-broadcast,MPI_Bcast,3,3,1,1,10,10,0,0
		late-broadcast,MPI_Bcast,3,4,1,0,0,0,0,0
		early-reduce,MPI_Reduce,1,2,1,0,0,0,0,0
		early-reduce,MPI_Reduce,1,3,1,0,0,0,1,80
		early-reduce,MPI_Reduce,1,4,1,1,80,80,0,0
		early-scan,MPI_Scan,1,2,1,0,0,0,0,0
		early-scan,MPI_Scan,1,3,1,1,10,10,0,0
		early-scan,MPI_Scan,1,4,1,0,0,0,0,0`)
	// Ranks wait until the last other rank enters: rank 2 leaves the reduce at 360, before rank 3 enters at 380.
	var last []string
	for _, line := range strings.Split(ask(t, run, "collective-wait", "until", "last"), "\n") {
		if strings.Contains(line, "MPI_Reduce") || strings.Contains(line, "MPI_Scan") ||
			strings.Contains(line, "MPI_Bcast,3") {
			last = append(last, line+"\n")
		}
	}
	same(t, "last", strings.Join(last, ""), `
		late-broadcast,MPI_Bcast,3,0,1,1,5,5,2,40
		late-broadcast,MPI_Bcast,3,1,1,1,1,1,0,0
		late-broadcast,MPI_Bcast,3,2,1,1,30,30,0,0
		late-broadcast,MPI_Bcast,3,3,1,1,10,10,0,0
		late-broadcast,MPI_Bcast,3,4,1,0,0,0,2,6
		early-reduce,MPI_Reduce,1,2,1,1,10,10,0,0
		early-reduce,MPI_Reduce,1,3,1,0,0,0,2,90
		early-reduce,MPI_Reduce,1,4,1,1,80,80,0,0
		early-scan,MPI_Scan,1,2,1,0,0,0,2,30
		early-scan,MPI_Scan,1,3,1,1,10,10,0,0
		early-scan,MPI_Scan,1,4,1,1,20,20,0,0`)
}

func TestEfficiency(t *testing.T) {
	run := newRun(t, "pop.5", world+fiveRanks+`
events rank seq thread call class start_ns end_ns poll_ns
1 0 0 MPI_Init other 0 100 0
1 1 0 MPI_Send send 200 260 0
1 2 0 MPI_Wait complete 300 400 40
1 3 0 MPI_Finalize other 1100 1150 0
3 0 0 MPI_Init_thread other 10 100 0
3 1 0 MPI_Recv recv 300 700 0
# a second thread, whose time is not the program's
3 2 1 MPI_Recv recv 320 990 0
# failed tests of 100 ns together before the program ends
3 3 0 MPI_Finalize other 1100 1200 100
# killed: its part ends with its last call
4 0 0 MPI_Init other 0 120 0
4 1 0 MPI_Barrier collective 320 1020 0
`, example.Manifest(5))
	// Useful: rank 1 (1100 - 100) - 60 - 100 - 40 = 800, rank 3 1000 - 400 - 100 = 500, rank 4 (1020 - 120) - 700 =
	// 200; the mean is 500. Runtime: 1100 - 100 = 1000. So 500/1000 = 500/800 * 800/1000.
	same(t, "efficiency", ask(t, run, "efficiency"), `
		parallel-efficiency,0.5,500,1000,3,1
		load-balance,0.625,500,800,3,1
		communication-efficiency,0.8,800,1000,3,1`)
	// With MPI_Init and MPI_Finalize useful time is the same, and the runtime 1200.
	same(t, "with MPI_Init", ask(t, run, "efficiency", "init", "include"), `
		parallel-efficiency,0.4167,500,1200,3,1
		load-balance,0.625,500,800,3,1
		communication-efficiency,0.6667,800,1200,3,1`)
	// A rank alone balances its load. Without MPI_Init and MPI_Finalize the program is what lies between its calls:
	// 1000 - 200 of which 300 in MPI.
	alone := newRun(t, "pop.1", "comms comm comm_rank world_rank kind\n0 0 0 world\n"+`
events rank seq call class start_ns end_ns
0 0 MPI_Send send 200 300
0 1 MPI_Recv recv 800 1000
`, example.Manifest(1))
	same(t, "alone", ask(t, alone, "efficiency"), `
		parallel-efficiency,0.625,500,800,1,0
		load-balance,1,500,500,1,0
		communication-efficiency,0.625,500,800,1,0`)
}

func TestWaitStates(t *testing.T) {
	const text = `
comms comm comm_rank world_rank kind
0 0 0 world
0 1 1 world
0 2 2 world

ranks rank
0
1
2

events rank seq call class comm instance start_ns end_ns
0 0 MPI_Init other - - 0 100
0 1 MPI_Recv recv 0 - 200 500
0 2 MPI_Ssend send 0 - 600 800
0 3 MPI_Barrier collective 0 0 900 1000
0 4 MPI_Finalize other - - 1000 1900
1 0 MPI_Init other - - 0 100
1 1 MPI_Send send 0 - 450 460
1 2 MPI_Barrier collective 0 0 960 1000
1 3 MPI_Finalize other - - 1000 1900
2 0 MPI_Init other - - 0 100
2 1 MPI_Recv recv 0 - 750 810
2 2 MPI_Barrier collective 0 0 930 1000
2 3 MPI_Finalize other - - 1000 1900

messages src dst comm tag bytes send_seq send_start_ns send_end_ns recv_post_seq recv_done_seq recv_post_ns recv_start_ns recv_end_ns
0 2 0 9 4097 2 600 800 1 1 750 750 810
1 0 0 9 17 1 450 460 1 1 200 200 500
`
	run := newRun(t, "states.3", text, example.Manifest(3))
	// Rank 0 waits 450 - 200 = 250 for rank 1's message, and 750 - 600 = 150 for rank 2's receive; at the barrier
	// rank 0 waits 960 - 900 = 60 for rank 1, rank 2 960 - 930 = 30. In MPI: rank 0 300 + 200 + 100 = 600, rank 1 10
	// + 40 = 50, rank 2 60 + 70 = 130, together 780 of 3 * 900. state, rank, waits, wait, of MPI, of all, longest,
	// top rank, its wait
	same(t, "by run", ask(t, run, "wait-states"), `
		all,,4,490,0.6282,0.1815,250,0,460
		late-receiver,,1,150,0.1923,0.0556,150,0,150
		late-sender,,1,250,0.3205,0.0926,250,0,250
		wait-at-barrier,,2,90,0.1154,0.0333,60,0,60`)
	// In MPI_Init and MPI_Finalize each rank is for 1000 ns more: 490 of 3780, and of 3 * 1900.
	if got := ask(t, run, "wait-states", "init", "include"); !strings.HasPrefix(got, "all,,4,490,0.1296,0.086,250,0,460\n") {
		t.Errorf("with MPI_Init:\n%s", got)
	}
	same(t, "by rank", ask(t, run, "wait-states", "by", "rank"), `
		all,0,3,460,0.7667,0.5111,250,0,460
		all,1,0,0,0,0,0,,0
		all,2,1,30,0.2308,0.0333,30,2,30
		late-receiver,0,1,150,0.25,0.1667,150,0,150
		late-sender,0,1,250,0.4167,0.2778,250,0,250
		wait-at-barrier,0,1,60,0.1,0.0667,60,0,60
		wait-at-barrier,2,1,30,0.2308,0.0333,30,2,30`)
	// In virtual times no send waits.
	m := example.Manifest(3)
	m.TimeOrigin = "virtual"
	if got := ask(t, newRun(t, "virtual.3", text, m), "wait-states"); strings.Contains(got, "late-receiver") ||
		!strings.Contains(got, "all,,3,340,") {
		t.Errorf("in virtual times:\n%s", got)
	}
}

// One MPI_Waitall completes two collectives: it waits for the one whose last rank enters later.
func TestCollectiveWaitOfSeveral(t *testing.T) {
	run := newRun(t, "several.5", comms+fiveRanks+`
events rank seq call class comm instance start_ns end_ns request done_seq
2 0 MPI_Iallreduce collective 1 0 100 101 1 2
2 1 MPI_Ibarrier collective 1 1 110 111 2 2
2 2 MPI_Waitall complete - - 120 200 - -
3 0 MPI_Iallreduce collective 1 0 150 151 1 2
3 1 MPI_Ibarrier collective 1 1 170 171 2 2
3 2 MPI_Waitall complete - - 180 200 - -
`, example.Manifest(5))
	sameWithoutSums(t, run)
	same(t, "collective-wait", ask(t, run, "collective-wait"), `
		wait-at-nxn,MPI_Allreduce,1,2,1,0,0,0,0,0
		wait-at-nxn,MPI_Allreduce,1,3,1,0,0,0,0,0
		wait-at-barrier,MPI_Barrier,1,2,1,1,50,50,0,0
		wait-at-barrier,MPI_Barrier,1,3,1,0,0,0,1,50`)
}

// ring has messages of 1000 ns and 2 ns a byte between hosts, and of 100 ns and 1 ns a byte on one.
const ring = fiveRanks + `
messages src dst tag bytes send_seq send_start_ns recv_done_seq recv_start_ns recv_end_ns
0 1 9 16 0 100 0 90 216
0 1 9 64 1 300 1 300 464
# the receiver comes late, is not done yet, or waits for this and a later one: no time is known
0 1 9 64 2 500 2 501 900
0 1 9 64 3 600 - - -
0 1 9 64 4 700 3 650 990
0 1 9 64 5 800 3 650 990
0 3 9 16 6 100 0 90 1132
0 3 9 16 7 2100 1 2090 3132
0 3 9 16 8 4100 2 4090 9132
0 3 9 100 9 10100 3 10090 11300
0 3 8 5000 10 20100 4 20090 20101
`

func TestLatency(t *testing.T) {
	run := newRun(t, "ring.5", world+ring, example.Manifest(5))
	// same host, bucket, size, at most, messages, timed, mean bytes, min, quartiles, 99 of 100, max, bytes/s, and by
	// the line of latency-fit
	same(t, "latency", ask(t, run, "latency", "where", "tag = 9"), `
		true,1,<= 16,16,1,1,16,116,116,116,116,116,116,137931034,116
		true,2,<= 64,64,5,1,64,164,164,164,164,164,164,390243902,164
		false,1,<= 16,16,3,3,16,1032,1032,1032,5032,5032,5032,15503876,1032
		false,3,<= 256,256,1,1,100,1200,1200,1200,1200,1200,1200,83333333,1200`)
	same(t, "latency-fit", ask(t, run, "latency-fit", "where", "tag = 9"), `
		true,2,2,16,64,100,1000000000,1
		false,4,2,16,100,1000,500000000,1`)
	same(t, "latency of one size", ask(t, run, "latency", "where", "bytes = 16 AND dst = 3"),
		"false,1,<= 16,16,3,3,16,1032,1032,1032,5032,5032,5032,15503876,")
	// A single outlier changes the line through the medians only if it is the only time for its size.
	same(t, "one size", ask(t, run, "latency-fit", "where", "bytes = 16 AND dst = 3"), "false,3,1,16,16,,,")
	same(t, "falling", ask(t, run, "latency-fit", "where", "bytes > 64", "through", "minimum"),
		"false,2,2,100,5000,1224,,1")
}

// TestRandomWaitsAgainstDirectCount compares late-senders, latency and over-time with a program that examines one
// call after the other.
func TestRandomWaitsAgainstDirectCount(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 31))
		type message struct{ src, dst, bytes, sent, done, start, end int64 }
		var all []message
		for dst := range int64(5) {
			at := rng.Int64N(1000)
			for call := range int64(60) {
				at += rng.Int64N(1 << (10 + 8*seed)) // up to days
				end := at + 1 + rng.Int64N(5000)
				for range 1 + rng.IntN(4) {
					all = append(all, message{rng.Int64N(5), dst, rng.Int64N(300), max(0, at+rng.Int64N(4000)-2000),
						call, at, end})
				}
				at = end
			}
		}
		slices.SortFunc(all, func(a, b message) int { return slices.Compare([]int64{a.src, a.sent}, []int64{b.src, b.sent}) })
		text := strings.Builder{}
		text.WriteString(fiveRanks + "\nmessages src dst bytes send_seq send_start_ns recv_done_seq recv_start_ns recv_end_ns\n")
		for i, m := range all {
			fmt.Fprintln(&text, m.src, m.dst, m.bytes, i, m.sent, m.done, m.start, m.end)
		}
		run := newRun(t, fmt.Sprintf("random.%d", seed), text.String(), example.Manifest(5))

		waited, late, last := map[[2]int64][4]int64{}, map[[2]int64][]message{}, int64(0)
		for _, m := range all {
			pair := [2]int64{m.src, m.dst}
			w := waited[pair]
			w[0]++
			waited[pair] = w
			last = max(last, m.sent)
			if m.sent > m.start {
				late[[2]int64{m.dst, m.done}] = append(late[[2]int64{m.dst, m.done}], m)
			}
		}
		for _, call := range late {
			m := slices.MaxFunc(call, func(a, b message) int { return slices.Compare([]int64{a.sent, -a.src}, []int64{b.sent, -b.src}) })
			w := waited[[2]int64{m.src, m.dst}]
			ns := min(m.sent, m.end) - m.start
			waited[[2]int64{m.src, m.dst}] = [4]int64{w[0], w[1] + 1, w[2] + ns, max(w[3], ns)}
		}
		bound := [5]int64{0, 0, 0, 7, 6}
		var want []string
		for pair, w := range waited {
			both := bound[pair[0]] + bound[pair[1]]
			if pair[0] > 2 && pair[1] > 2 { // on one host
				both = 0
			}
			if w[1] > 0 {
				want = append(want, fmt.Sprintf("%d,%d,%d,%d,%d,%d,%d", pair[0], pair[1], w[0], w[1], w[2], w[3], both))
			}
		}
		slices.Sort(want)
		got := strings.Split(strings.TrimSpace(ask(t, run, "late-senders")), "\n")
		slices.Sort(got)
		same(t, fmt.Sprintf("seed %d late-senders", seed), strings.Join(got, "\n")+"\n", strings.Join(want, "\n"))

		bins := 1 + rng.Int64N(400)
		step := last/bins + 1
		var steps strings.Builder
		for bin := int64(0); bin*step <= last; bin++ {
			var n, bytes int64
			for _, m := range all {
				if m.sent/step == bin {
					n, bytes = n+1, bytes+m.bytes
				}
			}
			fmt.Fprintf(&steps, "%d,%d,%d,%d,%d,0,0\n", bin, bin*step, (bin+1)*step, n, bytes)
		}
		same(t, fmt.Sprintf("seed %d over-time", seed), ask(t, run, "over-time", "bins", fmt.Sprint(bins)),
			steps.String())
	}
}

// TestQuantilesOfLatency compares the quantiles with those of sorted times.
func TestQuantilesOfLatency(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 32))
	var text strings.Builder
	text.WriteString(fiveRanks + "\nmessages src dst bytes send_seq send_start_ns recv_done_seq recv_start_ns recv_end_ns\n")
	var times []int64
	for i := range 999 {
		ns := int64(1 + rng.ExpFloat64()*1e5)
		times = append(times, ns)
		fmt.Fprintln(&text, 0, 1, 3, i, i*1000, i, i*1000, int64(i)*1000+ns)
	}
	run := newRun(t, "quantiles.5", text.String(), example.Manifest(5))
	slices.Sort(times)
	var bucket, atMost, n, timed, mean, least, q25, q50, q75, q99, most, rate int64
	row := strings.NewReplacer("true,", "", "<= 16,", "", ",", " ").Replace(ask(t, run, "latency"))
	if _, err := fmt.Sscan(row, &bucket, &atMost, &n, &timed, &mean, &least, &q25, &q50, &q75, &q99, &most,
		&rate); err != nil {
		t.Fatalf("%q: %v", row, err)
	}
	if timed != 999 || least != times[0] || most != times[998] {
		t.Errorf("row %s: want 999 messages of %d to %d ns", row, times[0], times[998])
	}
	for _, q := range []struct{ got, want int64 }{{q25, times[249]}, {q50, times[499]}, {q75, times[749]},
		{q99, times[989]}} {
		if q.got < q.want || float64(q.got) > 1.01*float64(q.want) {
			t.Errorf("quantile %d; want %d and at most 1 %% more", q.got, q.want)
		}
	}
}

func TestMessageTimes(t *testing.T) {
	run := newRun(t, "ring.5", world+ring, example.Manifest(5))
	// Of 16 bytes between hosts two took 1032 ns and one 5032; which of them counts does not depend on their order.
	same(t, "message-times", ask(t, run, "message-times", "where", "tag = 9"), `
		true,16,1,116,116,116
		true,64,1,164,164,164
		false,16,3,1032,1032,1032
		false,100,1,1200,1200,1200`)
}

func TestEager(t *testing.T) {
	run := newRun(t, "late.5", fiveRanks+`
events rank seq call class comm start_ns end_ns request done_seq
0 0 MPI_Send send 0 100 200 - -
0 1 MPI_Send send 0 1000 9000 - -
0 2 MPI_Ssend send 0 10000 19000 - -
0 3 MPI_Isend send 0 20000 20010 1 4
0 4 MPI_Wait complete - 20020 27000 1 -
# the wait began after the post: nothing is known
0 5 MPI_Isend send 0 30000 30010 2 6
0 6 MPI_Wait complete - 39000 39500 2 -
0 7 MPI_Isend send 0 40000 40010 3 8
0 8 MPI_Waitall complete - 40020 48000 - -
# not late enough, and never over
0 9 MPI_Send send 0 50000 50100 - -
0 10 MPI_Send send 0 60000 - - -

messages src dst tag bytes send_seq send_start_ns send_end_ns recv_post_seq recv_done_seq recv_post_ns recv_start_ns recv_end_ns
0 1 9 16 0 100 200 0 0 7000 7000 7100
0 1 9 4097 1 1000 9000 1 1 8000 8000 9000
0 1 9 16 2 10000 19000 2 2 18000 18000 19000
0 3 9 4097 3 20000 20010 0 0 26000 26000 27000
0 3 9 4097 5 30000 30010 1 1 38000 38000 39000
0 3 9 4097 7 40000 40010 2 2 47000 47000 48000
0 3 9 16 9 50000 50100 3 3 50090 50090 50200
0 3 9 4097 10 60000 - 4 4 69000 69000 69900
`, example.Manifest(5))
	same(t, "eager", ask(t, run, "eager", "late-ns", "1000"), `
		true,16,1,1,0
		true,4097,1,0,1
		false,4097,1,0,1`)
}

// TestOverlaps has calls that overlap: of one thread, not of two; including a call longer than the next one, one that
// never ended, and one with a duplicate.
func TestOverlaps(t *testing.T) {
	run := newRun(t, "twice.5", comms+`
events rank seq thread call class start_ns end_ns
1 0 0 MPI_Send send 100 197
1 1 0 MPI_Wait complete 190 230
1 2 4 MPI_Recv recv 200 300
1 3 0 MPI_Barrier collective 230 400
1 4 4 MPI_Send send 299 -
1 5 0 MPI_Bcast collective 240 251
1 6 0 MPI_Bcast collective 240 251
1 7 0 MPI_Wait complete 260 -
1 8 0 MPI_Put rma 270 290
3 0 0 MPI_Send send 100 197
3 1 0 MPI_Send send 197 197
3 2 0 MPI_Send send 196 200
`, example.Manifest(5))
	want := `
		1,0,0,MPI_Send,1,MPI_Wait,7
		1,4,2,MPI_Recv,4,MPI_Send,1
		1,0,3,MPI_Barrier,5,MPI_Bcast,11
		3,0,1,MPI_Send,2,MPI_Send,1`
	same(t, "overlaps", ask(t, run, "overlaps"), want)
	if n := run.Manifest.Counts.OverlappingCalls; n != 4 {
		t.Errorf("the manifest says %d; want 4", n)
	}
	sound := newRun(t, "sound.5", world+pingpong, example.Manifest(5))
	same(t, "none", ask(t, sound, "overlaps"), "")
}

// TestOverlapsAreCountedAsListed compares the count in the manifest, by which the query decides whether to search,
// with the calls that it lists.
func TestOverlapsAreCountedAsListed(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var b strings.Builder
		b.WriteString("events rank seq thread call class start_ns end_ns\n")
		for rank := range 3 {
			for seq := range 40 {
				start, end := seq*10+rng.IntN(9), fmt.Sprint(seq*10+9+rng.IntN(5))
				if rng.IntN(9) == 0 {
					end = "-"
				}
				fmt.Fprintf(&b, "%d %d %d MPI_Send send %d %s\n", rank, seq, rng.IntN(2)*4, start, end)
			}
		}
		run := newRun(t, "random.3", b.String(), example.Manifest(3))
		listed := int64(strings.Count(ask(t, run, "overlaps"), "\n"))
		if n := run.Manifest.Counts.OverlappingCalls; n != listed {
			t.Errorf("seed %d: %d in the manifest, %d listed", seed, n, listed)
		}
	}
}
