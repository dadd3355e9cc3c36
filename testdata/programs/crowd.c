/* Four threads per rank that communicate at the same time: N (the first argument) messages of each of four kinds from
 * every thread to its twin on the other rank, with 1 rank to itself. Run with 1 or 2 ranks; prints ok, or what is
 * wrong. In the last kind a thread completes the requests of its neighbour, with each completion call in turn. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 4
#define BATCH 48

static int n, rank, other, bad;
static pthread_barrier_t all;
static MPI_Request given[THREADS][2 * BATCH];
static int got[THREADS][BATCH], put[THREADS][BATCH];

static void check(int is, int should)
{
	if (is != should)
		bad = 1;
}

static void blocking(int tag)
{
	for (int i = 0; i < n; i++) {
		int x = -1;
		if (rank == 0)
			MPI_Send(&i, 1, MPI_INT, other, tag, MPI_COMM_WORLD);
		MPI_Recv(&x, 1, MPI_INT, other, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(&i, 1, MPI_INT, other, tag, MPI_COMM_WORLD);
		check(x, i);
	}
}

static void nonblocking(int tag)
{
	for (int i = 0; i < n; i++) {
		MPI_Request r[2];
		int x = -1;
		MPI_Irecv(&x, 1, MPI_INT, other, tag, MPI_COMM_WORLD, &r[0]);
		MPI_Isend(&i, 1, MPI_INT, other, tag, MPI_COMM_WORLD, &r[1]);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		check(x, i);
	}
}

static void persistent(int tag)
{
	int in = -1, out;
	MPI_Request r[2];
	MPI_Recv_init(&in, 1, MPI_INT, other, tag, MPI_COMM_WORLD, &r[0]);
	MPI_Send_init(&out, 1, MPI_INT, other, tag, MPI_COMM_WORLD, &r[1]);
	for (out = 0; out < n; out++) {
		MPI_Startall(2, r);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		check(in, out);
	}
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
}

static void complete(int how, MPI_Request *r, int m)
{
	int done = 0, index, left, indices[2 * BATCH];
	if (how == 0) {
		for (int i = 0; i < m; i++)
			MPI_Wait(&r[i], MPI_STATUS_IGNORE);
	} else if (how == 1) {
		for (int i = 0; i < m; i++) {
			for (done = 0; !done;)
				MPI_Test(&r[i], &done, MPI_STATUS_IGNORE);
		}
	} else if (how == 2) {
		for (int i = 0; i < m; i++)
			MPI_Waitany(m, r, &index, MPI_STATUS_IGNORE);
	} else if (how == 3) {
		for (left = m; left > 0; left -= done) {
			MPI_Testsome(m, r, &done, indices, MPI_STATUSES_IGNORE);
			if (done == MPI_UNDEFINED)
				break;
		}
	} else {
		while (!done)
			MPI_Testall(m, r, &done, MPI_STATUSES_IGNORE);
	}
}

static void handed_on(int me, int tag)
{
	int next = (me + 1) % THREADS;
	for (int first = 0, round = 0; first < n; first += BATCH, round++) {
		int m = n - first < BATCH ? n - first : BATCH;
		for (int i = 0; i < m; i++) {
			put[me][i] = first + i;
			got[me][i] = -1;
			MPI_Irecv(&got[me][i], 1, MPI_INT, other, tag, MPI_COMM_WORLD, &given[me][i]);
			MPI_Isend(&put[me][i], 1, MPI_INT, other, tag, MPI_COMM_WORLD, &given[me][m + i]);
		}
		pthread_barrier_wait(&all);
		complete((round + me) % 5, given[next], 2 * m);
		pthread_barrier_wait(&all);
		for (int i = 0; i < m; i++)
			check(got[me][i], first + i);
	}
}

static void *work(void *p)
{
	int me = *(int *)p, tag = 10 + me;
	blocking(tag);
	nonblocking(tag + 10);
	persistent(tag + 20);
	handed_on(me, tag + 30);
	return NULL;
}

int main(int argc, char **argv)
{
	int provided, size, me[THREADS];
	pthread_t t[THREADS];
	n = argc > 1 ? atoi(argv[1]) : 100;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	other = size == 1 ? 0 : 1 - rank;
	pthread_barrier_init(&all, NULL, THREADS);
	double t0 = MPI_Wtime();
	for (int i = 0; i < THREADS && provided == MPI_THREAD_MULTIPLE; i++) {
		me[i] = i;
		pthread_create(&t[i], NULL, work, &me[i]);
	}
	for (int i = 0; i < THREADS && provided == MPI_THREAD_MULTIPLE; i++)
		pthread_join(t[i], NULL);
	double took = MPI_Wtime() - t0;
	MPI_Finalize();
	if (argc > 2 && rank == 0)
		fprintf(stderr, "%.3f s\n", took);
	if (rank == 0 || bad)
		printf("%s\n", provided != MPI_THREAD_MULTIPLE ? "no threads" : bad ? "bad" : "ok");
	return bad;
}
