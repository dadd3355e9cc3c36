/* Cost of a call with a partner: a message to and fro between 2 ranks. Prints ns per round trip (4 calls, 2 on each rank),
 * fastest of ten rounds, median, and rank 0's median CPU time. Arguments: bytes (8), iterations per round (100000). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Not MPI_Wtime, which is virtual beside simulator ranks. */
static double clock_ns(clockid_t clock)
{
	struct timespec ts;
	clock_gettime(clock, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	int bytes = argc > 1 ? atoi(argv[1]) : 8, n = argc > 2 ? atoi(argv[2]) : 100000, rank;
	double t[10], c[10];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	char *a = calloc(1, bytes);
	for (int round = -1; round < 10; round++) {
		double c0 = clock_ns(CLOCK_THREAD_CPUTIME_ID), t0 = clock_ns(CLOCK_MONOTONIC);
		for (int i = 0; i < n; i++) {
			if (rank == 0) {
				MPI_Send(a, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
				MPI_Recv(a, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			} else {
				MPI_Recv(a, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				MPI_Send(a, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
			}
		}
		if (round >= 0) {
			t[round] = (clock_ns(CLOCK_MONOTONIC) - t0) / n;
			c[round] = (clock_ns(CLOCK_THREAD_CPUTIME_ID) - c0) / n;
		}
	}
	qsort(t, 10, sizeof *t, ascending);
	qsort(c, 10, sizeof *c, ascending);
	if (rank == 0)
		printf("%.1f %.1f %.1f\n", t[0], (t[4] + t[5]) / 2, (c[4] + c[5]) / 2);
	MPI_Finalize();
	return 0;
}
