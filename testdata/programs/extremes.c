/* Programs at the edge: extremes HOW N. Prints ok and the most memory that a rank had, in kB. HOW is
 * requests: N receives and N sends outstanding at once between ranks in a ring;
 * posted:   N receives outstanding at once, which N sends one by one complete in their order: what the library does for
 *           each does not grow with N;
 * started:  the same with persistent receives;
 * calls:    N calls of MPI_Sendrecv to itself;
 * comms:    N communicators, as many of them alive as the library allows;
 * threads:  16 threads with MPI_THREAD_MULTIPLE, each with N calls on a communicator of its own. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define THREADS 16
#define TAGS 32000

static long n;
static MPI_Comm own[THREADS];

static void fail(const char *what)
{
	fprintf(stderr, "extremes: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void requests(int rank, int size)
{
	MPI_Request *r = malloc(2 * (size_t)n * sizeof *r);
	int *got = malloc((size_t)n * sizeof *got), *sent = malloc((size_t)n * sizeof *sent);
	for (long i = 0; i < n; i++)
		MPI_Irecv(&got[i], 1, MPI_INT, (rank + size - 1) % size, (int)(i % TAGS), MPI_COMM_WORLD, &r[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	for (long i = 0; i < n; i++) {
		sent[i] = (int)(3 * i + rank);
		MPI_Isend(&sent[i], 1, MPI_INT, (rank + 1) % size, (int)(i % TAGS), MPI_COMM_WORLD, &r[n + i]);
	}
	MPI_Waitall((int)(2 * n), r, MPI_STATUSES_IGNORE);
	for (long i = 0; i < n; i++) {
		if (got[i] != 3 * i + (rank + size - 1) % size)
			fail("another message was received");
	}
}

/* Ends a part, whose CPU time it prints on stderr if EXTREMES_TIMES is set. */
static void lap(const char *part)
{
	static double since;
	double now = (double)clock() / CLOCKS_PER_SEC;
	if (getenv("EXTREMES_TIMES") != NULL && since != 0)
		fprintf(stderr, "%s %.0f ns\n", part, 1e9 * (now - since) / (double)n);
	since = (double)clock() / CLOCKS_PER_SEC;
}

static void posted(int persistent)
{
	MPI_Request *r = malloc((size_t)n * sizeof *r);
	int *got = malloc((size_t)n * sizeof *got);
	lap("start");
	for (long i = 0; i < n; i++) {
		if (persistent)
			MPI_Recv_init(&got[i], 1, MPI_INT, 0, (int)i, MPI_COMM_SELF, &r[i]);
		else
			MPI_Irecv(&got[i], 1, MPI_INT, 0, (int)i, MPI_COMM_SELF, &r[i]);
	}
	lap(persistent ? "MPI_Recv_init" : "MPI_Irecv");
	if (persistent) {
		MPI_Startall((int)n, r);
		lap("MPI_Startall");
	}
	for (long i = 0; i < n; i++) {
		int sent = (int)(3 * i);
		MPI_Send(&sent, 1, MPI_INT, 0, (int)i, MPI_COMM_SELF);
	}
	lap("MPI_Send");
	MPI_Waitall((int)n, r, MPI_STATUSES_IGNORE);
	lap("MPI_Waitall");
	for (long i = 0; i < n; i++) {
		if (got[i] != 3 * i)
			fail("another message was received");
		if (persistent)
			MPI_Request_free(&r[i]);
	}
	lap("MPI_Request_free");
}

static void to_itself(MPI_Comm comm, long calls)
{
	for (long i = 0; i < calls; i++) {
		long x = i, y = -1;
		MPI_Sendrecv(&x, 1, MPI_LONG, 0, 9, &y, 1, MPI_LONG, 0, 9, comm, MPI_STATUS_IGNORE);
		if (y != i)
			fail("another message was received");
	}
}

static void comms(void)
{
#if defined(OPEN_MPI)
	const long alive = 10000;
#else
	const long alive = 1000; /* MPICH has 2048 contexts */
#endif
	MPI_Comm *c = malloc((size_t)alive * sizeof *c);
	for (long made = 0; made < n;) {
		long k = 0;
		for (; k < alive && made < n; k++, made++) {
			MPI_Comm_dup(MPI_COMM_SELF, &c[k]);
			to_itself(c[k], 1);
		}
		while (k > 0)
			MPI_Comm_free(&c[--k]);
	}
}

static void *thread(void *comm)
{
	to_itself(*(MPI_Comm *)comm, n);
	return NULL;
}

static void threads(void)
{
	pthread_t all[THREADS];
	for (int i = 0; i < THREADS; i++)
		MPI_Comm_dup(MPI_COMM_SELF, &own[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&all[i], NULL, thread, &own[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(all[i], NULL);
}

int main(int argc, char **argv)
{
	struct rusage u;
	int rank, size, level;
	if (argc != 3)
		return 2;
	n = atol(argv[2]);
	MPI_Init_thread(&argc, &argv, strcmp(argv[1], "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (strcmp(argv[1], "requests") == 0)
		requests(rank, size);
	else if (strcmp(argv[1], "posted") == 0 || strcmp(argv[1], "started") == 0)
		posted(strcmp(argv[1], "started") == 0);
	else if (strcmp(argv[1], "calls") == 0)
		to_itself(MPI_COMM_SELF, n);
	else if (strcmp(argv[1], "comms") == 0)
		comms();
	else if (level == MPI_THREAD_MULTIPLE)
		threads();
	getrusage(RUSAGE_SELF, &u);
	long mine = u.ru_maxrss, most;
	MPI_Reduce(&mine, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("ok %ld\n", most);
	MPI_Finalize();
	return 0;
}
