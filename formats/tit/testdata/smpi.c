/* What smpi.trace is a trace of: three ranks in SimGrid, each with two messages (17 doubles and an int) and every
 * collective that its traces know, of one int but for a broadcast of 100 doubles. Barriers: one.
 *
 *     smpicc smpi.c -o smpi
 *     smpirun -trace-ti -trace-file smpi.trace -np 3 -hostfile HOSTS -platform PLATFORM ./smpi
 */
#include <mpi.h>

enum { RANKS = 3 };

int main(int argc, char **argv)
{
	double sent[17] = {0}, received[3000], values[100] = {0};
	int rank, x, y, all[RANKS] = {0}, one[RANKS], at[RANKS], other[RANKS];
	MPI_Request requests[2];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < RANKS; i++) {
		one[i] = 1;
		at[i] = i;
	}
	x = rank;
	int next = (rank + 1) % RANKS, previous = (rank + RANKS - 1) % RANKS;

	/* the receive has room for more than comes */
	MPI_Irecv(received, 3000, MPI_DOUBLE, previous, 9, MPI_COMM_WORLD, &requests[0]);
	MPI_Isend(sent, 17, MPI_DOUBLE, next, 9, MPI_COMM_WORLD, &requests[1]);
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	MPI_Sendrecv(&x, 1, MPI_INT, next, 3, &y, 1, MPI_INT, previous, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);

	MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Reduce(&x, &y, 1, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
	MPI_Bcast(values, 100, MPI_DOUBLE, 1, MPI_COMM_WORLD);
	MPI_Gather(&x, 1, MPI_INT, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Gatherv(&x, 1, MPI_INT, all, one, at, MPI_INT, 2, MPI_COMM_WORLD);
	MPI_Scatterv(all, one, at, MPI_INT, &x, 1, MPI_INT, 2, MPI_COMM_WORLD);
	MPI_Scatter(all, 1, MPI_INT, &x, 1, MPI_INT, 0, MPI_COMM_WORLD);
	MPI_Allgather(&x, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
	MPI_Allgatherv(&x, 1, MPI_INT, all, one, at, MPI_INT, MPI_COMM_WORLD);
	MPI_Alltoall(all, 1, MPI_INT, other, 1, MPI_INT, MPI_COMM_WORLD);
	MPI_Alltoallv(all, one, at, MPI_INT, other, one, at, MPI_INT, MPI_COMM_WORLD);
	MPI_Reduce_scatter(all, other, one, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Scan(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Exscan(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
}
