// torus.c: a stencil on a 96 x 80 domain, dealt to a periodic grid of ranks. In each of 40 steps a rank exchanges its borders with four neighbours;
// every tenth step all agree on the error. For the tests of prediction.
#include <mpi.h>
#include <stdlib.h>

enum { NX = 96, NY = 80, STEPS = 40 };

static int cells(int n, int parts, int part) { return n / parts + (part < n % parts); }

int main(int argc, char **argv)
{
	int ranks, rank, dims[2] = {0, 0}, periods[2] = {1, 1}, at[2], west, east, south, north;
	MPI_Comm grid;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Dims_create(ranks, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
	MPI_Comm_rank(grid, &rank);
	MPI_Cart_coords(grid, rank, 2, at);
	MPI_Cart_shift(grid, 0, 1, &west, &east);
	MPI_Cart_shift(grid, 1, 1, &south, &north);

	int nx = cells(NX, dims[0], at[0]), ny = cells(NY, dims[1], at[1]);
	double *out = calloc(2 * (nx + ny), sizeof(double)), *in = calloc(2 * (nx + ny) + 4, sizeof(double)), error = 1, all;

	MPI_Bcast(&error, 1, MPI_DOUBLE, 0, grid);
	for (int step = 0; step < STEPS; step++) {
		MPI_Request r[8];
		MPI_Irecv(in, ny, MPI_DOUBLE, west, 1, grid, &r[0]);
		MPI_Irecv(in + ny, ny, MPI_DOUBLE, east, 2, grid, &r[1]);
		MPI_Irecv(in + 2 * ny, nx, MPI_DOUBLE, south, 3, grid, &r[2]);
		MPI_Irecv(in + 2 * ny + nx, nx, MPI_DOUBLE, north, 4, grid, &r[3]);
		MPI_Isend(out, ny, MPI_DOUBLE, east, 1, grid, &r[4]);
		MPI_Isend(out + ny, ny, MPI_DOUBLE, west, 2, grid, &r[5]);
		MPI_Isend(out + 2 * ny, nx, MPI_DOUBLE, north, 3, grid, &r[6]);
		MPI_Isend(out + 2 * ny + nx, nx, MPI_DOUBLE, south, 4, grid, &r[7]);
		MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
		if (step % 10 == 9)
			MPI_Allreduce(&error, &all, 1, MPI_DOUBLE, MPI_MAX, grid);
	}
	free(in);
	free(out);
	MPI_Comm_free(&grid);
	MPI_Finalize();
	return 0;
}
