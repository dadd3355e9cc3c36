/* Many calls: n messages to itself, then one MPI_Waitall for 2 n requests. Argument: n. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000, x = 1, bad = 0;
	MPI_Init(&argc, &argv);
	int *in = calloc(n, sizeof *in), *out = calloc(n, sizeof *out);
	MPI_Request *r = malloc(2 * n * sizeof *r);
	for (int i = 0; i < n; i++)
		MPI_Sendrecv(&x, 1, MPI_INT, 0, 1, in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	for (int i = 0; i < n; i++) {
		out[i] = i;
		MPI_Irecv(&in[i], 1, MPI_INT, 0, 2, MPI_COMM_SELF, &r[i]);
	}
	for (int i = 0; i < n; i++)
		MPI_Isend(&out[i], 1, MPI_INT, 0, 2, MPI_COMM_SELF, &r[n + i]);
	MPI_Waitall(2 * n, r, MPI_STATUSES_IGNORE);
	for (int i = 0; i < n; i++)
		bad += in[i] != i;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	puts(bad ? "bad" : "ok");
	return bad != 0;
}
