/* Messages as fast as they go: each even rank sends to the next one, 100 at a time, and is told when they have come. Prints, of
 * ten rounds, the shortest and the median wall-clock time per message of the job in ns. Arguments: bytes (8), messages per sender
 * and round (20000). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BATCH 100

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Not MPI_Wtime, which is virtual beside simulator ranks. */
static double now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	int bytes = argc > 1 ? atoi(argv[1]) : 8, n = argc > 2 ? atoi(argv[2]) : 20000, rank, size;
	double t[10];
	MPI_Request r[BATCH];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	char *a = calloc(BATCH, bytes);
	for (int round = -1; round < 10; round++) {
		MPI_Barrier(MPI_COMM_WORLD);
		double t0 = now_ns();
		for (int i = 0; i < n / BATCH; i++) {
			if (rank % 2 == 0 && rank + 1 < size) {
				for (int k = 0; k < BATCH; k++)
					MPI_Send(a, bytes, MPI_BYTE, rank + 1, 1, MPI_COMM_WORLD);
				MPI_Recv(NULL, 0, MPI_BYTE, rank + 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			} else if (rank % 2 == 1) {
				for (int k = 0; k < BATCH; k++)
					MPI_Irecv(a + (size_t)k * bytes, bytes, MPI_BYTE, rank - 1, 1, MPI_COMM_WORLD, r + k);
				MPI_Waitall(BATCH, r, MPI_STATUSES_IGNORE);
				MPI_Send(NULL, 0, MPI_BYTE, rank - 1, 2, MPI_COMM_WORLD);
			}
		}
		MPI_Barrier(MPI_COMM_WORLD);
		if (round >= 0)
			t[round] = (now_ns() - t0) / ((double)(n / BATCH) * (BATCH + 1) * (size / 2));
	}
	qsort(t, 10, sizeof *t, ascending);
	if (rank == 0)
		printf("%.1f %.1f\n", t[0], (t[4] + t[5]) / 2);
	MPI_Finalize();
	return 0;
}
