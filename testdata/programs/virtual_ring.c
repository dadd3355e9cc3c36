/* A token of 4097 bytes goes round once. Rank r computes for r + 1 us before it passes it on, and reports that in
 * commq_compute_ns, which is all the compute time there is with the clock "told". Rank 0 prints the virtual time of it all. */
#include <mpi.h>
#include <stdio.h>

long long commq_compute_ns;
static char token[4097];

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	double t = MPI_Wtime();
	if (rank > 0)
		MPI_Recv(token, sizeof token, MPI_BYTE, rank - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	commq_compute_ns += (rank + 1) * 1000;
	MPI_Send(token, sizeof token, MPI_BYTE, (rank + 1) % size, 9, MPI_COMM_WORLD);
	if (rank == 0) {
		MPI_Recv(token, sizeof token, MPI_BYTE, size - 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		printf("%.0f\n", (MPI_Wtime() - t) * 1e9);
	}
	MPI_Finalize();
	return 0;
}
