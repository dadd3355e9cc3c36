/* Programs without a fault: all ranks compute equally long, and nobody waits for more than a message; see planted.h. */
#include "planted.h"

/* A border goes round, then a sum. */
static void shift(void)
{
	work(BASE);
	MPI_Sendrecv(buf, 16, MPI_DOUBLE, right, TAG, sum, 16, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Allreduce(buf, sum, 16, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void ring(void)
{
	work(BASE);
	MPI_Send(buf, 16, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD);
	MPI_Recv(sum, 16, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void alltoall(void)
{
	work(BASE);
	MPI_Alltoall(buf, 4, MPI_DOUBLE, sum, 4, MPI_DOUBLE, MPI_COMM_WORLD);
}

/* Ranks in two rows, each with two neighbours. */
static void stencil(void)
{
	MPI_Request all[4];

	for (int i = 0; i < 2; i++) {
		MPI_Irecv(sum + 8 * i, 8, MPI_DOUBLE, rank ^ (i + 1), TAG, MPI_COMM_WORLD, &all[i]);
		MPI_Isend(buf + 8 * i, 8, MPI_DOUBLE, rank ^ (i + 1), TAG, MPI_COMM_WORLD, &all[2 + i]);
	}
	MPI_Waitall(4, all, MPI_STATUSES_IGNORE);
	work(BASE);
}

/* A sum by hand. */
static void butterfly(void)
{
	work(BASE);
	for (int bit = 1; bit < ranks; bit *= 2)
		MPI_Sendrecv(buf, 16, MPI_DOUBLE, rank ^ bit, TAG, sum, 16, MPI_DOUBLE, rank ^ bit, TAG, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
}

/* So many items that filling the pipeline takes less than 1 % of the time. */
static void pipeline(void)
{
	for (int item = 0; item < 50; item++) {
		if (rank > 0)
			MPI_Recv(sum, 1, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		work(BASE / 50);
		if (rank < ranks - 1)
			MPI_Send(buf, 1, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD);
	}
}

/* Rank 0 gives out tasks of the same size and computes nothing. */
static void master_worker(void)
{
	if (rank > 0) {
		MPI_Recv(sum, 1, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		work(BASE);
		MPI_Send(buf, 16, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD);
		return;
	}
	for (int to = 1; to < ranks; to++)
		MPI_Send(buf, 1, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD);
	for (int from = 1; from < ranks; from++)
		MPI_Recv(sum, 16, MPI_DOUBLE, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Messages of 5 ms are under way while all compute. */
static void overlap(void)
{
	static double out[437500], in[437500];
	MPI_Request both[2];

	MPI_Irecv(in, 437500, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &both[0]);
	MPI_Isend(out, 437500, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD, &both[1]);
	work(BASE);
	MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void subcommunicators(void)
{
	static MPI_Comm row, column;

	if (step == 0) {
		MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
		MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &column);
	}
	work(BASE / 2);
	MPI_Bcast(buf, 16, MPI_DOUBLE, 0, row);
	work(BASE / 2);
	MPI_Allreduce(buf, sum, 16, MPI_DOUBLE, MPI_SUM, column);
}

static void persistent(void)
{
	static MPI_Request both[2];

	if (step == 0) {
		MPI_Send_init(buf, 16, MPI_DOUBLE, right, TAG, MPI_COMM_WORLD, &both[0]);
		MPI_Recv_init(sum, 16, MPI_DOUBLE, left, TAG, MPI_COMM_WORLD, &both[1]);
	}
	MPI_Startall(2, both);
	work(BASE);
	MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}

static void one_sided(void)
{
	static MPI_Win window;

	if (step == 0)
		MPI_Win_create(sum, sizeof sum, sizeof *sum, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
	MPI_Win_fence(0, window);
	MPI_Put(buf, 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, window);
	work(BASE);
	MPI_Win_fence(0, window);
	if (step == steps - 1)
		MPI_Win_free(&window);
}

/* Each rank puts into the window of the next one, which only those two synchronise, and then adds under a lock. */
static void exposure(void)
{
	static MPI_Win window;
	static MPI_Group to, from;
	MPI_Group all;

	if (step == 0) {
		MPI_Win_create(sum, sizeof sum, sizeof *sum, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
		MPI_Comm_group(MPI_COMM_WORLD, &all);
		MPI_Group_incl(all, 1, &right, &to);
		MPI_Group_incl(all, 1, &left, &from);
		MPI_Group_free(&all);
	}
	MPI_Win_post(from, 0, window);
	MPI_Win_start(to, 0, window);
	MPI_Put(buf, 1, MPI_DOUBLE, right, 0, 1, MPI_DOUBLE, window);
	MPI_Win_complete(window);
	MPI_Win_wait(window);
	work(BASE);
	MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
	MPI_Accumulate(buf, 1, MPI_DOUBLE, 0, 1, 1, MPI_DOUBLE, MPI_SUM, window);
	MPI_Win_unlock(0, window);
	if (step == steps - 1) {
		MPI_Group_free(&to);
		MPI_Group_free(&from);
		MPI_Win_free(&window);
	}
}

static const fault faults[] = {
	{"shift", shift},
	{"ring", ring},
	{"alltoall", alltoall},
	{"stencil", stencil},
	{"butterfly", butterfly},
	{"pipeline", pipeline},
	{"master_worker", master_worker},
	{"overlap", overlap},
	{"subcommunicators", subcommunicators},
	{"persistent", persistent},
	{"one_sided", one_sided},
	{"exposure", exposure},
};

int main(int argc, char **argv) { return run(argc, argv, faults, sizeof faults / sizeof *faults); }
