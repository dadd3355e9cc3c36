// grids.c: a stencil on a 96 x 80 domain, on a periodic grid of ranks as in torus.c, but with more of MPI. Borders in the
// second direction use persistent requests, started together and one by one. Rows and columns of ranks have communicators
// (MPI_Cart_sub) for an allgather, gather, scatter and alltoall with a count for each rank. For the tests of prediction.
#include <mpi.h>
#include <stdlib.h>

enum { NX = 96, NY = 80, LINES = 72, STEPS = 40 };

static int cells(int n, int parts, int part) { return n / parts + (part < n % parts); }

// blocks cuts n cells, each width wide, into parts; counts has the lengths of the parts, at their beginnings.
static void blocks(int n, int parts, int width, int *counts, int *at)
{
	int sum = 0;

	for (int p = 0; p < parts; p++) {
		counts[p] = width * cells(n, parts, p);
		at[p] = sum;
		sum += counts[p];
	}
}

int main(int argc, char **argv)
{
	int ranks, rank, dims[2] = {0, 0}, periods[2] = {1, 1}, at[2], west, east, south, north;
	int along[2] = {0, 1}, across[2] = {1, 0}, wrong = 0;
	MPI_Comm grid, row, column;

	MPI_Init(&argc, &argv);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Dims_create(ranks, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
	MPI_Cart_sub(grid, along, &row);
	MPI_Cart_sub(grid, across, &column);
	MPI_Comm_rank(grid, &rank);
	MPI_Cart_coords(grid, rank, 2, at);
	MPI_Cart_shift(grid, 0, 1, &west, &east);
	MPI_Cart_shift(grid, 1, 1, &south, &north);

	int nx = cells(NX, dims[0], at[0]), ny = cells(NY, dims[1], at[1]);
	double *out = calloc(2 * (nx + ny), sizeof(double)), *in = calloc(2 * (nx + ny), sizeof(double)), error = 1, all;
	double *block = calloc(nx * NY, sizeof(double)), *line = calloc(NX * NY, sizeof(double));
	int counts[64], starts[64], sends[64], from[64];
	MPI_Request k[4], one[2];

	MPI_Recv_init(in + 2 * ny, nx, MPI_DOUBLE, south, 3, grid, &k[0]);
	MPI_Recv_init(in + 2 * ny + nx, nx, MPI_DOUBLE, north, 4, grid, &one[0]);
	MPI_Send_init(out + 2 * ny, nx, MPI_DOUBLE, north, 3, grid, &k[1]);
	MPI_Send_init(out + 2 * ny + nx, nx, MPI_DOUBLE, south, 4, grid, &one[1]);

	for (int step = 0; step < STEPS; step++) {
		MPI_Request r[4];
		for (int i = 0; i < nx; i++)
			out[2 * ny + i] = step + rank;
		MPI_Startall(2, k);
		MPI_Irecv(in, ny, MPI_DOUBLE, west, 1, grid, &r[0]);
		MPI_Irecv(in + ny, ny, MPI_DOUBLE, east, 2, grid, &r[1]);
		MPI_Isend(out, ny, MPI_DOUBLE, east, 1, grid, &r[2]);
		MPI_Isend(out + ny, ny, MPI_DOUBLE, west, 2, grid, &r[3]);
		MPI_Start(&one[0]);
		MPI_Start(&one[1]);
		MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
		MPI_Waitall(2, k, MPI_STATUSES_IGNORE);
		MPI_Waitall(2, one, MPI_STATUSES_IGNORE);
		wrong += in[2 * ny] != step + south;
		if (step % 10 == 9)
			MPI_Allreduce(&error, &all, 1, MPI_DOUBLE, MPI_MAX, grid);
	}
	// A row of ranks has a block of lines, each rank some columns. The first collects it and sends it back.
	blocks(NY, dims[1], nx, counts, starts);
	MPI_Allgatherv(block, nx * ny, MPI_DOUBLE, line, counts, starts, MPI_DOUBLE, row);
	MPI_Gatherv(block, nx * ny, MPI_DOUBLE, line, counts, starts, MPI_DOUBLE, 0, row);
	MPI_Scatterv(line, counts, starts, MPI_DOUBLE, block, nx * ny, MPI_DOUBLE, 0, row);
	// Transposed: at first each rank of a column has some columns of all lines, then all columns of some lines.
	blocks(LINES, dims[0], nx, sends, from);
	blocks(NX, dims[0], cells(LINES, dims[0], at[0]), counts, starts);
	MPI_Alltoallv(block, sends, from, MPI_DOUBLE, line, counts, starts, MPI_DOUBLE, column);

	for (int i = 0; i < 2; i++) {
		MPI_Request_free(&k[i]);
		MPI_Request_free(&one[i]);
	}
	free(line);
	free(block);
	free(in);
	free(out);
	MPI_Comm_free(&row);
	MPI_Comm_free(&column);
	MPI_Comm_free(&grid);
	MPI_Finalize();
	return wrong != 0;
}
