/* MPI_Pcontrol switches rows off and on, and marks a phase. Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

static int rank, five[5];

/* A message of n numbers from rank 0 to rank 2, with tag 9. */
static void message(int n)
{
	if (rank == 0)
		MPI_Send(five, n, MPI_INT, 2, 9, MPI_COMM_WORLD);
	if (rank == 2)
		MPI_Recv(five, 5, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	message(1);
	MPI_Pcontrol(0);
	message(2);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Pcontrol(1);
	message(3);
	MPI_Barrier(MPI_COMM_WORLD);
#if defined(NAMED)
	MPI_Pcontrol(2, "solve \xc3\xa4");
	MPI_Pcontrol(2, (char *)3); /* not a name: it is not read */
	MPI_Pcontrol(2, "");
	MPI_Pcontrol(7, "other levels have none");
#endif
	MPI_Finalize();
	if (rank == 0)
		printf("ok\n");
	return 0;
}
