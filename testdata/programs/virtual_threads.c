/* Two threads of each of two ranks, each with a ping-pong on a communicator of its own, and a third that begins when both have ended.
 * Each thread has a clock of its own. Rank 0 prints, in ns since the beginning, the virtual times at which each began and ended, and
 * last that of the main thread, which has done nothing meanwhile. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

typedef struct {
	MPI_Comm comm;
	int bytes, times;
	char buf[65536];
	double began, ended;
} work;

static int rank;
static double t;
static pthread_barrier_t both;

static void *pong(void *p)
{
	work *w = p;
	w->began = (MPI_Wtime() - t) * 1e9;
	if (w->comm != MPI_COMM_WORLD)
		pthread_barrier_wait(&both); /* neither clock has advanced when the other thread's clock begins */
	for (int i = 0; i < w->times; i++) {
		if (rank == 0)
			MPI_Send(w->buf, w->bytes, MPI_BYTE, 1, 9, w->comm);
		MPI_Recv(w->buf, w->bytes, MPI_BYTE, 1 - rank, 9, w->comm, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(w->buf, w->bytes, MPI_BYTE, 0, 9, w->comm);
	}
	w->ended = (MPI_Wtime() - t) * 1e9;
	return NULL;
}

int main(int argc, char **argv)
{
	static work w[3] = {{.bytes = 4097, .times = 300}, {.bytes = 65536, .times = 5}, {.bytes = 9, .times = 2}};
	int provided;
	pthread_t thread[3];
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_dup(MPI_COMM_WORLD, &w[0].comm);
	MPI_Comm_dup(MPI_COMM_WORLD, &w[1].comm);
	w[2].comm = MPI_COMM_WORLD;
	t = MPI_Wtime();
	pthread_barrier_init(&both, NULL, 2);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, pong, &w[i]);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	pthread_create(&thread[2], NULL, pong, &w[2]);
	pthread_join(thread[2], NULL);
	for (int i = 0; i < 3 && rank == 0; i++)
		printf("%d %.0f %.0f\n", w[i].bytes, w[i].began, w[i].ended);
	if (rank == 0)
		printf("%s %.0f\n", provided == MPI_THREAD_MULTIPLE ? "main" : "no threads", (MPI_Wtime() - t) * 1e9);
	MPI_Finalize();
	return 0;
}
