/* Communication that is not needed, of a known size, for the rules of commq diagnose that are files; and its likeness
 * that is needed. Arguments: the case and the number of steps. Computing is told in commq_compute_ns and takes no time. A
 * line that ends in "waste NAME" is the one that must be named. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

long long commq_compute_ns;

enum { BASE = 5000, MANY = 200, LARGE = 70000, TAG = 5 };

static int rank, ranks;
static double buf[LARGE];

static void work(int us) { commq_compute_ns += 1000LL * us; }

static void send(int n, int to) { MPI_Send(buf, n, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD); }

static void receive(int n, int from)
{
	MPI_Recv(buf, n, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Even ranks send a row number by number. */
static void small_messages(int step)
{
	(void)step;
	work(BASE);
	for (int i = 0; i < MANY; i++)
		if (rank % 2 == 0)
			MPI_Send(buf + i, 1, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD); /* waste small_messages */
		else
			receive(1, rank - 1);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Each message answers one: none can wait for the next. */
static void answers(int step)
{
	(void)step;
	work(BASE);
	for (int i = 0; i < MANY; i++)
		if (rank % 2 == 0) {
			send(1, rank + 1);
			receive(1, rank + 1);
		} else {
			receive(1, rank - 1);
			send(1, rank - 1);
		}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The work between the messages takes longer than one of them. */
static void pieces(int step)
{
	(void)step;
	for (int i = 0; i < MANY; i++) {
		work(BASE / MANY);
		if (rank % 2 == 0)
			send(1, rank + 1);
		else
			receive(1, rank - 1);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Odd ranks get the same table in each step. */
static void repeated_payloads(int step)
{
	(void)step;
	buf[0] = 1 + rank;
	work(BASE);
	if (rank % 2 == 0)
		MPI_Send(buf, LARGE, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD); /* waste repeated_payloads */
	else
		receive(LARGE, rank - 1);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The table changes. */
static void changing_payloads(int step)
{
	buf[0] = 1 + step;
	work(BASE);
	if (rank % 2 == 0)
		send(LARGE, rank + 1);
	else
		receive(LARGE, rank - 1);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Even ranks wait until odd ones have worked; they could go on. */
static void synchronous_sends(int step)
{
	(void)step;
	if (rank % 2 == 0) {
		MPI_Ssend(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD); /* waste synchronous_sends */
		work(2 * BASE);
	} else {
		work(BASE);
		receive(16, rank - 1);
		work(BASE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The receivers are there already. */
static void prompt_receives(int step)
{
	(void)step;
	if (rank % 2 == 0) {
		work(BASE);
		MPI_Ssend(buf, 16, MPI_DOUBLE, rank + 1, TAG, MPI_COMM_WORLD);
	} else {
		receive(16, rank - 1);
		work(BASE);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void communicator_in_loop(int step)
{
	(void)step;
	work(BASE);
	for (int i = 0; i < 20; i++) {
		MPI_Comm comm;

		MPI_Comm_dup(MPI_COMM_WORLD, &comm); /* waste communicator_in_loop */
		MPI_Comm_free(&comm);
	}
}

/* A communicator of other ranks in each step. */
static void other_communicators(int step)
{
	MPI_Comm comm;

	work(BASE / 10);
	MPI_Comm_split(MPI_COMM_WORLD, rank <= step % ranks, step < ranks ? rank : -rank, &comm);
	MPI_Comm_free(&comm);
}

static const struct {
	const char *name;
	void (*step)(int step);
} cases[] = {
	{"small_messages", small_messages},
	{"answers", answers},
	{"pieces", pieces},
	{"repeated_payloads", repeated_payloads},
	{"changing_payloads", changing_payloads},
	{"synchronous_sends", synchronous_sends},
	{"prompt_receives", prompt_receives},
	{"communicator_in_loop", communicator_in_loop},
	{"other_communicators", other_communicators},
};

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (size_t i = 0; argc > 2 && i < sizeof cases / sizeof *cases; i++)
		if (strcmp(cases[i].name, argv[1]) == 0)
			for (int step = 0; step < atoi(argv[2]); step++)
				cases[i].step(step);
	MPI_Finalize();
	return 0;
}
