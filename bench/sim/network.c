/* What messages and collectives take between the ranks of a job, to describe its machine: for each size in bytes the ns of a
 * message (half a ping-pong between ranks 0 and 1) and of MPI_Alltoallv with that much from each rank to all together; medians. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEAT = 200, MOST = 1 << 23 };

static int order(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;
	return (d > 0) - (d < 0);
}

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	char *in = malloc(MOST), *out = malloc(MOST);
	int *counts = malloc(size * sizeof *counts), *places = malloc(size * sizeof *places);
	double message[REPEAT], collective[REPEAT];
	memset(in, 1, MOST);
	memset(out, 2, MOST);
	for (int bytes = 8; bytes <= MOST; bytes *= 4) {
		int n = bytes > 1 << 18 ? REPEAT / 10 : REPEAT;
		for (int i = 0; i < size; i++) {
			counts[i] = bytes / size;
			places[i] = i * counts[i];
		}
		for (int i = 0; i < n; i++) {
			MPI_Barrier(MPI_COMM_WORLD);
			double t = MPI_Wtime();
			if (rank == 0) {
				MPI_Send(in, bytes, MPI_BYTE, 1, 9, MPI_COMM_WORLD);
				MPI_Recv(out, bytes, MPI_BYTE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			} else if (rank == 1) {
				MPI_Recv(out, bytes, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
				MPI_Send(in, bytes, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
			}
			message[i] = (MPI_Wtime() - t) / 2;
			MPI_Barrier(MPI_COMM_WORLD);
			t = MPI_Wtime();
			MPI_Alltoallv(in, counts, places, MPI_BYTE, out, counts, places, MPI_BYTE, MPI_COMM_WORLD);
			collective[i] = MPI_Wtime() - t;
		}
		qsort(message, n, sizeof *message, order);
		qsort(collective, n, sizeof *collective, order);
		if (rank == 0)
			printf("%d %.0f %.0f\n", bytes, message[n / 2] * 1e9, collective[n / 2] * 1e9);
	}
	MPI_Finalize();
	return 0;
}
