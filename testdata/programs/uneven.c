/* Smoothing of a ring of cells, with two faults that make it slow. Rank 2 has three times as many cells as the others, so
 * that they wait for it; and rank 1 does its bookkeeping before it sends its border instead of after, so that rank 2 waits.
 * Argument: steps (100). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 40000, BORDER = 1000 };

static void smooth(double *cell, int n)
{
	for (int sweep = 0; sweep < 20; sweep++)
		for (int i = 1; i < n - 1; i++)
			cell[i] = (cell[i - 1] + cell[i] + cell[i + 1]) / 3;
}

static double bookkeeping(const double *cell, int n)
{
	double sum = 0;
	for (int pass = 0; pass < 20; pass++)
		for (int i = 0; i < n; i++)
			sum += cell[i] * pass;
	return sum;
}

static void exchange(double *cell, int n, int rank, int ranks, double *sum)
{
	MPI_Request request;
	double border[BORDER];
	int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;

	MPI_Irecv(border, BORDER, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &request);
	if (rank == 1)
		*sum += bookkeeping(cell, CELLS);
	MPI_Send(cell + n - BORDER, BORDER, MPI_DOUBLE, right, 0, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (rank != 1)
		*sum += bookkeeping(cell, CELLS);
	for (int i = 0; i < BORDER; i++)
		cell[i] = (cell[i] + border[i]) / 2;
}

int main(int argc, char **argv)
{
	int rank, ranks, steps = argc > 1 ? atoi(argv[1]) : 100;
	double sum = 0, total = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	int n = rank == 2 ? 3 * CELLS : CELLS;
	double *cell = malloc(n * sizeof *cell);
	for (int i = 0; i < n; i++)
		cell[i] = rank + i % 7;
	for (int step = 0; step < steps; step++) {
		exchange(cell, n, rank, ranks, &sum);
		smooth(cell, n);
		if (step % 10 == 9)
			MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	}
	if (rank == 0)
		printf("%d steps: %.6g\n", steps, total);
	free(cell);
	MPI_Finalize();
	return 0;
}
