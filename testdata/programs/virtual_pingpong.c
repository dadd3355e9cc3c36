/* Two ranks: for each size the round trip of a message of that many bytes, by MPI_Wtime, in nanoseconds. */
#include <mpi.h>
#include <stdio.h>

static char buf[1 << 20];

int main(int argc, char **argv)
{
	static const int sizes[] = {0, 1, 9, 4097, 65536, 1 << 20};
	int rank;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 6; i++) {
		double t = MPI_Wtime();
		if (rank == 0) {
			MPI_Send(buf, sizes[i], MPI_BYTE, 1, 9, MPI_COMM_WORLD);
			MPI_Recv(buf, sizes[i], MPI_BYTE, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			printf("%d %.0f\n", sizes[i], (MPI_Wtime() - t) * 1e9);
		} else {
			MPI_Recv(buf, sizes[i], MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(buf, sizes[i], MPI_BYTE, 0, 9, MPI_COMM_WORLD);
		}
	}
	MPI_Finalize();
	return 0;
}
