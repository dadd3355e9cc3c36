/* Rank r enters each collective r * 10 us after the first. Rank 0 prints for each, in ns, the virtual time from the
 * last rank's entry to its own exit. */
#include <mpi.h>
#include <stdio.h>

long long commq_compute_ns;
static int in[4096], out[4096];

int main(int argc, char **argv)
{
	int rank, size;
	double t, last;
	MPI_Request r;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Barrier(MPI_COMM_WORLD);
#define EACH(name, call) \
	t = MPI_Wtime(); \
	last = t + (size - 1) * 10e-6; \
	commq_compute_ns += rank * 10000; \
	call; \
	if (rank == 0) \
		printf(name " %.0f\n", (MPI_Wtime() - last) * 1e9)
	EACH("Barrier", MPI_Barrier(MPI_COMM_WORLD));
	EACH("Bcast", MPI_Bcast(in, 1000, MPI_INT, 2, MPI_COMM_WORLD));
	EACH("Reduce", MPI_Reduce(in, out, 9, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD));
	EACH("Allreduce", MPI_Allreduce(in, out, 9, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
	EACH("Alltoall", MPI_Alltoall(in, 100, MPI_INT, out, 100, MPI_INT, MPI_COMM_WORLD));
	EACH("Ibcast", MPI_Ibcast(in, 1000, MPI_INT, 2, MPI_COMM_WORLD, &r); MPI_Wait(&r, MPI_STATUS_IGNORE));
	MPI_Finalize();
	return 0;
}
