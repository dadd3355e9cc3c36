/* One fault per run, of a known size, for commq diagnose to find. Arguments: the fault, its us per step, and the number of
 * steps (12). Computing is told in commq_compute_ns and takes no time. A line that ends in "fault NAME" is the one that
 * must be named. Where the fault is an order of work, the others do as much at another time, so that no rank computes
 * more than another. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long long commq_compute_ns;

enum { BASE = 20000, TAG = 5 };

static int rank, ranks;
static double buf[16], sum[16];

static void work(int us) { commq_compute_ns += 1000LL * us; }

/* No fault: all ranks compute equally long, and pass a border on. */
static void none(int us, int step)
{
	(void)us, (void)step;
	work(BASE);
	MPI_Sendrecv(buf, 16, MPI_DOUBLE, (rank + 1) % ranks, TAG, sum, 16, MPI_DOUBLE, (rank + ranks - 1) % ranks, TAG,
		     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Allreduce(buf, sum, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void imbalance_barrier(int us, int step)
{
	(void)step;
	work(BASE + (rank == 1 ? us : 0));
	MPI_Barrier(MPI_COMM_WORLD); /* fault imbalance_barrier */
}

static void imbalance_alltoall(int us, int step)
{
	(void)step;
	work(BASE + (rank >= ranks / 2 ? us : 0));
	MPI_Alltoall(buf, 1, MPI_DOUBLE, sum, 1, MPI_DOUBLE, MPI_COMM_WORLD); /* fault imbalance_alltoall */
}

static void imbalance_linear(int us, int step)
{
	(void)step;
	work(BASE + rank * us);
	MPI_Allreduce(buf, sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* fault imbalance_linear */
}

static void imbalance_ring(int us, int step)
{
	(void)step;
	work(BASE + (rank == 2 ? us : 0));
	MPI_Send(buf, 16, MPI_DOUBLE, (rank + 1) % ranks, TAG, MPI_COMM_WORLD); /* fault imbalance_ring */
	MPI_Recv(sum, 16, MPI_DOUBLE, (rank + ranks - 1) % ranks, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void variation(int us, int step)
{
	work(BASE + (rank == step % ranks ? us : 0));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_sender(int us, int step)
{
	(void)step;
	if (rank % 2 == 0) {
		work(us);
		MPI_Send(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD); /* fault late_sender */
		work(BASE);
	} else {
		MPI_Recv(sum, 16, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		work(BASE + us);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_sender_nonblocking(int us, int step)
{
	MPI_Request request;

	(void)step;
	MPI_Irecv(sum, 16, MPI_DOUBLE, (rank + ranks - 1) % ranks, TAG, MPI_COMM_WORLD, &request);
	work(rank == 1 ? us : 0);
	MPI_Send(buf, 16, MPI_DOUBLE, (rank + 1) % ranks, TAG, MPI_COMM_WORLD); /* fault late_sender_nonblocking */
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	work(BASE + (rank == 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A chain: all ranks wait for rank 0, most of them through others. */
static void late_sender_chain(int us, int step)
{
	(void)step;
	if (rank == 0)
		work(us);
	else
		MPI_Recv(sum, 16, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank + 1 < ranks)
		MPI_Send(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD); /* fault late_sender_chain */
	work(BASE + (rank == 0 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Only in simulated times: in virtual times no send waits. */
static void late_receiver(int us, int step)
{
	(void)step;
	if (rank % 2 == 0) {
		MPI_Ssend(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD);
		work(BASE + us);
	} else {
		work(us);
		MPI_Recv(sum, 16, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* fault late_receiver */
		work(BASE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_root(int us, int step)
{
	(void)step;
	work(rank == 0 ? us : 0);
	MPI_Bcast(buf, 16, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* fault late_root */
	work(BASE + (rank == 0 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_scatter(int us, int step)
{
	(void)step;
	work(rank == 3 ? us : 0);
	MPI_Scatter(buf, 1, MPI_DOUBLE, sum, 1, MPI_DOUBLE, 3, MPI_COMM_WORLD); /* fault late_scatter */
	work(BASE + (rank == 3 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void early_root(int us, int step)
{
	(void)step;
	work(rank == 2 ? us : 0);
	MPI_Reduce(buf, sum, 16, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); /* fault early_root */
	work(BASE + (rank == 2 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void early_gather(int us, int step)
{
	(void)step;
	work(rank == 2 ? us : 0);
	MPI_Gather(buf, 1, MPI_DOUBLE, sum, 1, MPI_DOUBLE, 1, MPI_COMM_WORLD); /* fault early_gather */
	work(BASE + (rank == 2 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_collective(int us, int step)
{
	(void)step;
	work(rank == 1 ? us : 0);
	MPI_Allreduce(buf, sum, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* fault late_collective */
	work(BASE + (rank == 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_scan(int us, int step)
{
	(void)step;
	work(rank == 0 ? us : 0);
	MPI_Scan(buf, sum, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* fault late_scan */
	work(BASE + (rank == 0 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A broadcast for each us: they are the fault themselves. */
static void many_broadcasts(int us, int step)
{
	(void)step;
	work(BASE);
	for (int i = 0; i < us / 10; i++)
		MPI_Bcast(buf, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* fault many_broadcasts */
}

/* Rank 1 can go on only when rank 0 has answered, again and again. */
static void many_messages(int us, int step)
{
	(void)step;
	work(BASE);
	for (int i = 0; i < us / 10; i++)
		if (rank % 2 == 0) {
			MPI_Recv(sum, 1, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(buf, 1, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD);
		} else {
			MPI_Send(buf, 1, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD);
			MPI_Recv(sum, 1, MPI_DOUBLE, rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* fault many_messages */
		}
}

/* Rank 0 waits for the late message of rank 1 although the one of rank 2 is there, whose work could be done meanwhile. */
static void wait_order(int us, int step)
{
	MPI_Request requests[2];

	(void)step;
	if (rank == 0) {
		for (int i = 0; i < 2; i++)
			MPI_Irecv(sum + i, 1, MPI_DOUBLE, i + 1, TAG, MPI_COMM_WORLD, &requests[i]);
		for (int i = 0; i < 2; i++) {
			MPI_Wait(&requests[i], MPI_STATUS_IGNORE); /* fault wait_order */
			work(us);
		}
	} else if (rank < 3) {
		work(rank == 1 ? us : 0);
		MPI_Send(buf, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
	}
	work(rank == 0 ? BASE : BASE + us * (rank == 1 ? 1 : 2));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The same with receives of one tag after the other, from any source. */
static void wildcard_receives(int us, int step)
{
	(void)step;
	if (rank == 0) {
		for (int i = 0; i < 2; i++) {
			MPI_Status status;
			MPI_Recv(sum, 1, MPI_DOUBLE, MPI_ANY_SOURCE, TAG + i, MPI_COMM_WORLD, &status); /* fault wildcard_receives */
			work(us);
		}
	} else if (rank < 3) {
		work(rank == 1 ? us : 0);
		MPI_Send(buf, 1, MPI_DOUBLE, 0, rank == 1 ? TAG : TAG + 1, MPI_COMM_WORLD);
	}
	work(rank == 0 ? BASE : BASE + us * (rank == 1 ? 1 : 2));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Ranks 0 and 1 exchange data late; the others have none and wait with them. */
static void oversized_collective(int us, int step)
{
	int counts[64] = {0}, at[64] = {0};

	(void)step;
	if (rank < 2)
		counts[1 - rank] = 1;
	work(rank < 2 ? us : 0);
	MPI_Alltoallv(buf, counts, at, MPI_DOUBLE, sum, counts, at, MPI_DOUBLE, MPI_COMM_WORLD); /* fault oversized_collective */
	work(BASE + (rank < 2 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

static const struct {
	const char *name;
	void (*step)(int us, int step);
} faults[] = {
	{"none", none},
	{"imbalance_barrier", imbalance_barrier},
	{"imbalance_alltoall", imbalance_alltoall},
	{"imbalance_linear", imbalance_linear},
	{"imbalance_ring", imbalance_ring},
	{"variation", variation},
	{"late_sender", late_sender},
	{"late_sender_nonblocking", late_sender_nonblocking},
	{"late_sender_chain", late_sender_chain},
	{"late_receiver", late_receiver},
	{"late_root", late_root},
	{"late_scatter", late_scatter},
	{"early_root", early_root},
	{"early_gather", early_gather},
	{"late_collective", late_collective},
	{"late_scan", late_scan},
	{"many_broadcasts", many_broadcasts},
	{"many_messages", many_messages},
	{"wait_order", wait_order},
	{"wildcard_receives", wildcard_receives},
	{"oversized_collective", oversized_collective},
};

int main(int argc, char **argv)
{
	int steps = argc > 3 ? atoi(argv[3]) : 12;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (size_t i = 0; argc > 2 && i < sizeof faults / sizeof *faults; i++)
		if (strcmp(faults[i].name, argv[1]) == 0)
			for (int step = 0; step < steps; step++)
				faults[i].step(atoi(argv[2]), step);
	MPI_Finalize();
	return 0;
}
