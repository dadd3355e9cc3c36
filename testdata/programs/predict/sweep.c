/* A wavefront as in discrete ordinates: sweep NX NY NZ PLANES ROUNDS, for example 60 54 32 4 3.
 * Columns of a NX x NY x NZ domain are dealt to MPI_Dims_create's grid of ranks, which ends at its edges. A sweep starts in a
 * corner of it; a rank waits for the faces of two neighbours, computes PLANES planes and sends its own faces on, so ranks work
 * in a pipeline. Each round sweeps from the four corners, up and down in z. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int nx, ny, nz, planes; /* of this rank */
static int west, east, south, north;
static MPI_Comm grid;

static int first(int n, int parts, int part)
{
	return part * (n / parts) + (part < n % parts ? part : n % parts);
}

/* A number follows from its three upwind neighbours; at the domain's border these are 1. Integers keep it exact. */
static unsigned next(unsigned x, unsigned y, unsigned z)
{
	return x * 3 + y * 5 + z * 7 + 11;
}

static void sweep(int dx, int dy, int dz, unsigned *facex, unsigned *facey, unsigned *top, unsigned *flux)
{
	int fromx = dx > 0 ? west : east, tox = dx > 0 ? east : west;
	int fromy = dy > 0 ? south : north, toy = dy > 0 ? north : south;
	for (int i = 0; i < nx * ny; i++)
		top[i] = 1;
	for (int block = 0; block < nz; block += planes) {
		int depth = block + planes < nz ? planes : nz - block;
		for (int i = 0; i < ny * planes; i++)
			facex[i] = 1;
		for (int i = 0; i < nx * planes; i++)
			facey[i] = 1;
		if (fromx != MPI_PROC_NULL)
			MPI_Recv(facex, ny * depth, MPI_UNSIGNED, fromx, 10, grid, MPI_STATUS_IGNORE);
		if (fromy != MPI_PROC_NULL)
			MPI_Recv(facey, nx * depth, MPI_UNSIGNED, fromy, 20, grid, MPI_STATUS_IGNORE);
		for (int k = 0; k < depth; k++) {
			int z = dz > 0 ? block + k : nz - 1 - block - k;
			for (int b = 0; b < ny; b++)
				for (int a = 0; a < nx; a++) {
					int x = dx > 0 ? a : nx - 1 - a, y = dy > 0 ? b : ny - 1 - b;
					unsigned v = next(facex[k * ny + y], facey[k * nx + x], top[y * nx + x]);
					facex[k * ny + y] = facey[k * nx + x] = top[y * nx + x] = v;
					flux[(z * ny + y) * nx + x] += v;
				}
		}
		if (tox != MPI_PROC_NULL)
			MPI_Send(facex, ny * depth, MPI_UNSIGNED, tox, 10, grid);
		if (toy != MPI_PROC_NULL)
			MPI_Send(facey, nx * depth, MPI_UNSIGNED, toy, 20, grid);
	}
}

static void rounds(int n, unsigned *flux)
{
	unsigned *facex = malloc(ny * planes * sizeof(unsigned)), *facey = malloc(nx * planes * sizeof(unsigned));
	unsigned *top = malloc(nx * ny * sizeof(unsigned));
	for (int round = 0; round < n; round++)
		for (int corner = 0; corner < 8; corner++)
			sweep(corner & 1 ? -1 : 1, corner & 2 ? -1 : 1, corner & 4 ? -1 : 1, facex, facey, top, flux);
	free(facex);
	free(facey);
	free(top);
}

int main(int argc, char **argv)
{
	int ranks, rank, at[2], dims[2] = {0, 0}, periods[2] = {0, 0}, args[5] = {60, 54, 32, 4, 3}, wrong = 0, all_wrong;
	unsigned sum = 0, total;
	MPI_Init(&argc, &argv);
	for (int i = 1; i < argc && i <= 5; i++)
		args[i - 1] = atoi(argv[i]);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Dims_create(ranks, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
	MPI_Comm_rank(grid, &rank);
	MPI_Cart_coords(grid, rank, 2, at);
	MPI_Cart_shift(grid, 0, 1, &west, &east);
	MPI_Cart_shift(grid, 1, 1, &south, &north);
	int x0 = first(args[0], dims[0], at[0]), y0 = first(args[1], dims[1], at[1]);
	nx = first(args[0], dims[0], at[0] + 1) - x0;
	ny = first(args[1], dims[1], at[1] + 1) - y0;
	nz = args[2];
	planes = args[3];
	unsigned *flux = calloc(nx * ny * nz, sizeof(unsigned));
	rounds(args[4], flux);
	for (int i = 0; i < nx * ny * nz; i++)
		sum += flux[i];
	MPI_Allreduce(&sum, &total, 1, MPI_UNSIGNED, MPI_SUM, grid);

	/* the same on one rank */
	int mx = nx, my = ny;
	nx = args[0];
	ny = args[1];
	west = east = south = north = MPI_PROC_NULL;
	unsigned *all = calloc(nx * ny * nz, sizeof(unsigned));
	rounds(args[4], all);
	for (int z = 0; z < nz; z++)
		for (int y = 0; y < my; y++)
			for (int x = 0; x < mx; x++)
				wrong += flux[(z * my + y) * mx + x] != all[(z * ny + y0 + y) * nx + x0 + x];
	MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, grid);
	if (rank == 0)
		printf("sweep on %d x %d: flux %u, %s\n", dims[0], dims[1], total, all_wrong ? "WRONG" : "right");
	MPI_Finalize();
	return rank == 0 && all_wrong;
}
