/* Faults that can be mended, so that the gain that commq diagnose predicts can be measured. Arguments: the fault, its us
 * per step, the number of steps, "faulty" or "mended", and "sleep" if computing is to take time. Otherwise it is told in
 * commq_compute_ns. Rank 0 prints the seconds between MPI_Init and MPI_Finalize. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

long long commq_compute_ns;

enum { BASE = 20000, TAG = 5, PIECES = 100, BIG = 1 << 16 };

static int rank, ranks, mended, sleeps;
static double buf[BIG], got[BIG];

static void work(int us)
{
	struct timespec t = {us / 1000000, us % 1000000 * 1000};

	if (sleeps)
		nanosleep(&t, NULL);
	else
		commq_compute_ns += 1000LL * us;
}

/* The work of a fault stands at one place in the faulty program, and at another in the mended one. */
static void early(int us) { work(mended ? 0 : us); }
static void late(int us) { work(mended ? us : 0); }

static void send(int to, int n) { MPI_Send(buf, n, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD); }
static void recv(int from, int n) { MPI_Recv(got, n, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
static void sum(void) { MPI_Allreduce(buf, got, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }

/* The last rank has more work. */
static void uneven(int us, int step)
{
	(void)step;
	work(BASE);
	early(rank == ranks - 1 ? us : 0);
	late(us / ranks);
	sum();
}

/* The last rank has more work in one of two parts of a step, which all ranks wait after. */
static void uneven_part(int us, int step)
{
	work(BASE);
	MPI_Barrier(MPI_COMM_WORLD);
	uneven(us, step);
}

/* Rows of a triangle: in blocks the later ranks have more of them than when they are dealt out. */
static void triangle(int us, int step)
{
	(void)step;
	early(BASE + us * (2 * rank + 1));
	late(BASE + us * ranks);
	sum();
}

/* Another rank in each step has more work. */
static void in_turn(int us, int step)
{
	early(BASE + (rank == step % ranks ? us : 0));
	late(BASE + us / ranks);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A barrier in each step that nobody needs, where ranks take longer in turn. */
static void barrier(int us, int step)
{
	work(BASE + (rank == step % ranks ? us : 0));
	if (!mended)
		MPI_Barrier(MPI_COMM_WORLD);
}

/* Even ranks compute before they send what odd ones wait for. */
static void send_late(int us, int step)
{
	(void)step;
	if (rank % 2 == 0) {
		early(us);
		send(rank + 1, 16);
		late(us);
		work(BASE);
	} else {
		recv(rank - 1, 16);
		work(BASE + us);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Each rank computes before it passes on what it got, which it could do at once. */
static void chain(int us, int step)
{
	(void)step;
	if (rank > 0)
		recv(rank - 1, 16);
	early(us);
	if (rank + 1 < ranks)
		send(rank + 1, 16);
	late(us);
	work(BASE);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Odd ranks compute before they receive from a synchronous send. */
static void receive_late(int us, int step)
{
	(void)step;
	if (rank % 2 == 0) {
		MPI_Ssend(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD);
		work(BASE + us);
	} else {
		early(us);
		recv(rank - 1, 16);
		late(us);
		work(BASE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The root computes before it broadcasts. */
static void broadcast_late(int us, int step)
{
	(void)step;
	early(rank == 0 ? us : 0);
	MPI_Bcast(buf, 16, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	late(rank == 0 ? us : 0);
	work(BASE + (rank == 0 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A rank computes before it takes part in a gather, for which the root waits. */
static void gather_late(int us, int step)
{
	(void)step;
	early(rank == ranks - 1 ? us : 0);
	MPI_Gather(buf, 1, MPI_DOUBLE, got, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	late(rank == ranks - 1 ? us : 0);
	work(BASE + (rank == ranks - 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A rank computes before a sum that the others wait in, and less after it. */
static void sum_late(int us, int step)
{
	(void)step;
	early(rank == ranks - 1 ? us : 0);
	sum();
	late(rank == ranks - 1 ? us : 0);
	work(BASE + (rank == ranks - 1 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 0 writes a file in every step; mended, nobody does. */
static void write_alone(int us, int step)
{
	(void)step;
	work(BASE);
	early(rank == 0 ? us : 0);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A sum after every part of a step; mended, after the last. */
static void sum_often(int us, int step)
{
	(void)step;
	for (int i = 1; i <= PIECES; i++) {
		work((BASE - us) / PIECES);
		if (!mended || i == PIECES)
			sum();
	}
}

/* Many small messages, each answered; mended, one that has them all. */
static void pieces(int us, int step)
{
	int n = mended ? 1 : PIECES;

	(void)step, (void)us;
	work(BASE / 10);
	for (int i = 0; i < n; i++)
		if (rank % 2 == 0) {
			send(rank + 1, 4 * PIECES / n);
			recv(rank + 1, 1);
		} else {
			recv(rank - 1, 4 * PIECES / n);
			send(rank - 1, 1);
		}
}

/* The same data in every step; mended, in the first only. */
static void repeated(int us, int step)
{
	(void)us;
	work(BASE / 10);
	if (!mended || step == 0) {
		if (rank % 2 == 0)
			send(rank + 1, BIG);
		else
			recv(rank - 1, BIG);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A synchronous send where a standard one would do. */
static void synchronous(int us, int step)
{
	(void)step;
	if (rank % 2 == 0) {
		if (mended)
			send(rank + 1, 16);
		else
			MPI_Ssend(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD);
		work(BASE);
	} else {
		work(us);
		recv(rank - 1, 16);
		work(BASE - us);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A large exchange in the order of the ranks: each receives before it sends. */
static void in_order(int us, int step)
{
	int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;

	(void)us, (void)step;
	work(BASE / 10);
	if (mended) {
		MPI_Sendrecv(buf, BIG, MPI_DOUBLE, next, TAG, got, BIG, MPI_DOUBLE, last, TAG, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
	} else if (rank == 0) {
		send(next, BIG);
		recv(last, BIG);
	} else {
		recv(last, BIG);
		send(next, BIG);
	}
}

static const struct {
	const char *name;
	void (*step)(int us, int step);
} faults[] = {
	{"uneven", uneven},
	{"uneven_part", uneven_part},
	{"triangle", triangle},
	{"in_turn", in_turn},
	{"barrier", barrier},
	{"send_late", send_late},
	{"chain", chain},
	{"receive_late", receive_late},
	{"broadcast_late", broadcast_late},
	{"gather_late", gather_late},
	{"sum_late", sum_late},
	{"write_alone", write_alone},
	{"sum_often", sum_often},
	{"pieces", pieces},
	{"repeated", repeated},
	{"synchronous", synchronous},
	{"in_order", in_order},
};

int main(int argc, char **argv)
{
	double start;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	mended = argc > 4 && strcmp(argv[4], "mended") == 0;
	sleeps = argc > 5 && strcmp(argv[5], "sleep") == 0;
	MPI_Barrier(MPI_COMM_WORLD);
	start = MPI_Wtime();
	for (size_t i = 0; argc > 4 && i < sizeof faults / sizeof *faults; i++)
		if (strcmp(faults[i].name, argv[1]) == 0)
			for (int step = 0; step < atoi(argv[3]); step++)
				faults[i].step(atoi(argv[2]), step);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		printf("%.9f\n", MPI_Wtime() - start);
	MPI_Finalize();
	return 0;
}
