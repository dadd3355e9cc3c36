/* The root's part of an Ibcast of 36 bytes is complete in MPI_Test while the other rank, which waits for a message that the root
 * sends later, has not entered it. Then an Iallreduce and an Ibarrier that MPI_Test finds complete: those all have entered. Both
 * ranks print virtual times, in ns since the beginning. */
#include <mpi.h>
#include <stdio.h>

long long commq_compute_ns;
static int buf[9], sum[9];

int main(int argc, char **argv)
{
	int rank, done;
	double times[4], theirs[4];
	MPI_Request r;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	double t = MPI_Wtime();
#define NOW() ((MPI_Wtime() - t) * 1e9)
#define TEST() for (done = 0; !done;) MPI_Test(&r, &done, MPI_STATUS_IGNORE)
	if (rank == 0) {
		commq_compute_ns += 20000;
		MPI_Ibcast(buf, 9, MPI_INT, 0, MPI_COMM_WORLD, &r);
		TEST();
		times[0] = NOW();
		MPI_Send(buf, 9, MPI_BYTE, 1, 9, MPI_COMM_WORLD);
	} else {
		MPI_Recv(buf, 9, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Ibcast(buf, 9, MPI_INT, 0, MPI_COMM_WORLD, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		times[0] = NOW();
	}
	MPI_Barrier(MPI_COMM_WORLD);
	times[1] = NOW();
	commq_compute_ns += rank * 10000;
	MPI_Iallreduce(buf, sum, 9, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &r);
	TEST();
	times[2] = NOW();
	commq_compute_ns += (1 - rank) * 50000;
	MPI_Ibarrier(MPI_COMM_WORLD, &r);
	TEST();
	times[3] = NOW();
	if (rank == 1) {
		MPI_Send(times, 4, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD);
	} else {
		MPI_Recv(theirs, 4, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < 4; i++)
			printf("%.0f %.0f\n", times[i], theirs[i]);
	}
	MPI_Finalize();
	return 0;
}
