/* Derived datatypes, also two that use the same handle one after the other. Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, size, a[12] = {0}, b[12] = {0}, bad = 0;
	double d = 1.5;
	MPI_Datatype column, pair;
	MPI_Status st;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < 12; i++)
		a[i] = 100 * rank + i;
	int next = (rank + 1) % size, before = (rank + size - 1) % size;
	MPI_Type_vector(3, 1, 4, MPI_INT, &column);
	MPI_Type_commit(&column);
	MPI_Sendrecv(a, 1, column, next, 1, b, 3, MPI_INT, before, 1, MPI_COMM_WORLD, &st);
	bad += b[1] != 100 * before + 4;
	MPI_Type_free(&column);
	MPI_Type_contiguous(2, MPI_INT, &pair);
	MPI_Type_commit(&pair);
	MPI_Sendrecv(a, 2, pair, next, 2, b, 4, MPI_INT, before, 2, MPI_COMM_WORLD, &st);
	bad += b[3] != 100 * before + 3;
	MPI_Type_free(&pair);
	MPI_Sendrecv(&d, 1, MPI_DOUBLE, next, 3, b, 1, MPI_DOUBLE, before, 3, MPI_COMM_WORLD, &st);
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
