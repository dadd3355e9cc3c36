/* Cost of a call without a partner: Irecv, Send and Wait of a message to ourselves, in a loop. Prints ns per iteration of the
 * fastest of ten rounds, their median, and the median and the least of the CPU time. Arguments: bytes (8), iterations per round (200000). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	int bytes = argc > 1 ? atoi(argv[1]) : 8, n = argc > 2 ? atoi(argv[2]) : 200000;
	double t[10], c[10];
	MPI_Request r;
	MPI_Status st;
	MPI_Init(&argc, &argv);
	char *a = calloc(1, bytes), *b = calloc(1, bytes);
	for (int round = -1; round < 10; round++) {
		double c0 = cpu_ns(), t0 = MPI_Wtime();
		for (int i = 0; i < n; i++) {
			MPI_Irecv(b, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF, &r);
			MPI_Send(a, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF);
			MPI_Wait(&r, &st);
		}
		if (round >= 0) {
			t[round] = (MPI_Wtime() - t0) / n * 1e9;
			c[round] = (cpu_ns() - c0) / n;
		}
	}
	qsort(t, 10, sizeof *t, ascending);
	qsort(c, 10, sizeof *c, ascending);
	printf("%.1f %.1f %.1f %.1f\n", t[0], (t[4] + t[5]) / 2, (c[4] + c[5]) / 2, c[0]);
	MPI_Finalize();
	return 0;
}
