/* Two ranks: 50 round trips of a message of each size from 1 byte to 1 MiB, as latency tests do. */
#include <mpi.h>
#include <stdio.h>

static char buf[1 << 20];

int main(int argc, char **argv)
{
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int size = 1; size <= 1 << 20; size *= 2) {
		double t = MPI_Wtime();
		for (int i = 0; i < 50; i++) {
			if (rank == 0)
				MPI_Send(buf, size, MPI_BYTE, 1, 9, MPI_COMM_WORLD);
			if (rank < 2)
				MPI_Recv(buf, size, MPI_BYTE, 1 - rank, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			if (rank == 1)
				MPI_Send(buf, size, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
		}
		if (rank == 0)
			printf("%7d bytes: %.2f us\n", size, (MPI_Wtime() - t) / 100 * 1e6);
	}
	MPI_Finalize();
	return 0;
}
