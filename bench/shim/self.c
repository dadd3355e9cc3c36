/* Cost of a call without a partner: Irecv, Send and Wait of a message to ourselves, in a loop. Prints ns per iteration of the
 * fastest of ten rounds and their median. Arguments: bytes (8), iterations per round (200000). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	int bytes = argc > 1 ? atoi(argv[1]) : 8, n = argc > 2 ? atoi(argv[2]) : 200000;
	double t[10];
	MPI_Request r;
	MPI_Status st;
	MPI_Init(&argc, &argv);
	char *a = calloc(1, bytes), *b = calloc(1, bytes);
	for (int round = -1; round < 10; round++) {
		double t0 = MPI_Wtime();
		for (int i = 0; i < n; i++) {
			MPI_Irecv(b, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF, &r);
			MPI_Send(a, bytes, MPI_BYTE, 0, 1, MPI_COMM_SELF);
			MPI_Wait(&r, &st);
		}
		if (round >= 0)
			t[round] = (MPI_Wtime() - t0) / n * 1e9;
	}
	qsort(t, 10, sizeof *t, ascending);
	printf("%.1f %.1f\n", t[0], (t[4] + t[5]) / 2);
	MPI_Finalize();
	return 0;
}
