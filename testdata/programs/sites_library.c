/* The shared library of sites.c. */
#include <mpi.h>

void shared_barrier(int *line);

void shared_barrier(int *line)
{
	int at = __LINE__, e = MPI_Barrier(MPI_COMM_WORLD);
	*line = e == MPI_SUCCESS ? at : 0; /* prevents a tail call */
}
