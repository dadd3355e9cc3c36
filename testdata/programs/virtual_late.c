/* Figure 3 of Riesen's paper: rank 0 sends at once, and rank 1 comes late (its clock is not changed by the wait); then rank 1
 * waits for a message that rank 0 sends late (its clock becomes that of the arrival); the same by Irecv and Wait, and by
 * Waitany of two. Rank 1 prints the virtual time after each, in ns since the beginning. */
#include <mpi.h>
#include <stdio.h>

long long commq_compute_ns;
static char buf[2][4097];

int main(int argc, char **argv)
{
	int rank, i;
	MPI_Request r[2];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	double t = MPI_Wtime();
#define NOW() ((MPI_Wtime() - t) * 1e9)
	if (rank == 0) {
		MPI_Send(buf, 4097, MPI_BYTE, 1, 9, MPI_COMM_WORLD); /* at 0 */
		commq_compute_ns += 90000;
		MPI_Send(buf, 4097, MPI_BYTE, 1, 9, MPI_COMM_WORLD); /* at 90 us */
		commq_compute_ns += 10000;
		MPI_Send(buf, 4097, MPI_BYTE, 1, 9, MPI_COMM_WORLD); /* at 100 us */
		commq_compute_ns += 100000;
		MPI_Send(buf, 9, MPI_BYTE, 1, 8, MPI_COMM_WORLD); /* at 200 us */
	} else {
		commq_compute_ns += 50000;
		MPI_Recv(buf, 4097, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		printf("%.0f\n", NOW());
		MPI_Recv(buf, 4097, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		printf("%.0f\n", NOW());
		MPI_Irecv(buf[0], 4097, MPI_BYTE, 0, 9, MPI_COMM_WORLD, r);
		commq_compute_ns += 30000;
		MPI_Wait(r, MPI_STATUS_IGNORE);
		printf("%.0f\n", NOW());
		MPI_Irecv(buf[0], 4097, MPI_BYTE, 0, 7, MPI_COMM_WORLD, r);
		MPI_Irecv(buf[1], 4097, MPI_BYTE, 0, 8, MPI_COMM_WORLD, r + 1);
		MPI_Waitany(2, r, &i, MPI_STATUS_IGNORE);
		printf("%.0f\n", NOW());
		MPI_Cancel(r);
		MPI_Wait(r, MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	return 0;
}
