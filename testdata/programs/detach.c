/* All ranks attach a buffer and detach it; only rank 0 sends from it. Run with 3 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	int rank, x = 7, room = sizeof(int) + MPI_BSEND_OVERHEAD;
	void *buffer = malloc(room);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Buffer_attach(buffer, room);
	if (rank == 0)
		MPI_Bsend(&x, 1, MPI_INT, 1, 9, MPI_COMM_WORLD);
	if (rank == 1)
		MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Buffer_detach(&buffer, &room);
	free(buffer);
	MPI_Finalize();
	printf(rank == 0 ? "ok\n" : "");
	return 0;
}
