// shift.c: Jacobi's iteration on a periodic 3-D grid of ranks, as textbooks write it: in each step a rank shifts a face to each of six neighbours with
// MPI_Sendrecv, relaxes its cells, and every tenth step all agree on the change. Arguments: the number of steps, and cells along a side (24).
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n;

static size_t cell(int x, int y, int z) { return ((size_t)z * (n + 2) + y) * (n + 2) + x; }

// face copies a face of u into to (out), or from it into the ghost cells.
static void face(double *u, int axis, int at, double *to, int out)
{
	for (int j = 1; j <= n; j++)
		for (int i = 1; i <= n; i++) {
			double *c = &u[axis == 0 ? cell(at, i, j) : axis == 1 ? cell(i, at, j) : cell(i, j, at)];
			if (out)
				*to++ = *c;
			else
				*c = *to++;
		}
}

static double relax(double *u, double *next)
{
	double change = 0;
	for (int z = 1; z <= n; z++)
		for (int y = 1; y <= n; y++)
			for (int x = 1; x <= n; x++) {
				size_t c = cell(x, y, z);
				next[c] = (u[c - 1] + u[c + 1] + u[c - n - 2] + u[c + n + 2] + u[c - (n + 2) * (n + 2)] + u[c + (n + 2) * (n + 2)]) / 6;
				change += (next[c] - u[c]) * (next[c] - u[c]);
			}
	return change;
}

int main(int argc, char **argv)
{
	int ranks, rank, dims[3] = {0, 0, 0}, periods[3] = {1, 1, 1}, minus, plus, steps = argc > 1 ? atoi(argv[1]) : 100;
	MPI_Comm grid;

	n = argc > 2 ? atoi(argv[2]) : 24;
	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Dims_create(ranks, 3, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 3, dims, periods, 0, &grid);
	MPI_Comm_rank(grid, &rank);
	MPI_Bcast(&steps, 1, MPI_INT, 0, grid);

	size_t cells = cell(n + 1, n + 1, n + 1) + 1;
	double *u = calloc(cells, sizeof *u), *next = calloc(cells, sizeof *u);
	double *out = calloc(n * n, sizeof *u), *in = calloc(n * n, sizeof *u), change = 0, all = 0;
	for (size_t i = 0; i < cells; i++)
		u[i] = (i * 2654435761u + rank) % 1000 / 1000.;
	for (int step = 0; step < steps; step++) {
		for (int axis = 0; axis < 3; axis++) {
			MPI_Cart_shift(grid, axis, 1, &minus, &plus);
			face(u, axis, n, out, 1);
			MPI_Sendrecv(out, n * n, MPI_DOUBLE, plus, 2 * axis, in, n * n, MPI_DOUBLE, minus, 2 * axis, grid, MPI_STATUS_IGNORE);
			face(u, axis, 0, in, 0);
			face(u, axis, 1, out, 1);
			MPI_Sendrecv(out, n * n, MPI_DOUBLE, minus, 2 * axis + 1, in, n * n, MPI_DOUBLE, plus, 2 * axis + 1, grid, MPI_STATUS_IGNORE);
			face(u, axis, n + 1, in, 0);
		}
		change = relax(u, next);
		double *swap = u;
		u = next;
		next = swap;
		if (step % 10 == 9)
			MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, grid);
	}
	if (rank == 0)
		printf("change %g\n", all);
	free(u);
	free(next);
	free(out);
	free(in);
	MPI_Comm_free(&grid);
	MPI_Finalize();
	return 0;
}
