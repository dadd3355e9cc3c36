/* A partitioned message of 5 times 4097 bytes, started twice, beside ordinary ones of the same tag. Rank 1 prints the virtual times
 * at which it has them, in ns since the beginning. */
#include <mpi.h>
#include <stdio.h>

long long commq_compute_ns;
static char buf[5 * 4097], other[9];

int main(int argc, char **argv)
{
	int rank, list[2] = {4, 2};
	MPI_Request r;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	double t = MPI_Wtime();
	if (rank == 0)
		MPI_Psend_init(buf, 5, 4097, MPI_BYTE, 1, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
	else
		MPI_Precv_init(buf, 5, 4097, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r);
	for (int i = 0; i < 2; i++) {
		MPI_Start(&r);
		if (rank == 0) {
			MPI_Pready(3, r);
			commq_compute_ns += 50000;
			MPI_Pready_range(0, 1, r);
			MPI_Send(other, 9, MPI_BYTE, 1, 9, MPI_COMM_WORLD);
			commq_compute_ns += 10000;
			MPI_Pready_list(2, list, r);
			commq_compute_ns += 7000;
			MPI_Wait(&r, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(other, 9, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			printf("%.0f\n", (MPI_Wtime() - t) * 1e9);
			MPI_Wait(&r, MPI_STATUS_IGNORE);
			printf("%.0f\n", (MPI_Wtime() - t) * 1e9);
		}
	}
	MPI_Request_free(&r);
	MPI_Finalize();
	return 0;
}
