/* Matrix multiplication by Cannon's algorithm, in 2.5 dimensions: cannon N LAYERS, for example 200 1.
 * LAYERS square grids of q x q ranks have a copy of A and B each; a layer does its share of the q shifts after a skew by the row
 * (A) or column (B) of the grid, and the parts of C are added up on layer 0. With one layer it is Cannon's own. Blocks are
 * of ceil(N / q) rows and columns, filled up with zeros. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int n, q, block;
static MPI_Comm grid, layers;

static double a_of(int i, int j)
{
	return i < n && j < n ? (i * 3 + j * 7) % 11 - 5 : 0;
}

static double b_of(int i, int j)
{
	return i < n && j < n ? (i * 5 + j * 2) % 13 - 6 : 0;
}

/* Moves a block by that many ranks along an axis of the grid, towards its start. */
static void shift(double *x, int axis, int by)
{
	int from, to;
	MPI_Cart_shift(grid, axis, -by, &from, &to);
	MPI_Sendrecv_replace(x, block * block, MPI_DOUBLE, to, axis, from, axis, grid, MPI_STATUS_IGNORE);
}

static void multiply(const double *a, const double *b, double *c)
{
	for (int i = 0; i < block; i++)
		for (int k = 0; k < block; k++)
			for (int j = 0; j < block; j++)
				c[i * block + j] += a[i * block + k] * b[k * block + j];
}

int main(int argc, char **argv)
{
	int ranks, rank, at[2], copies = 1, wrong = 0, all_wrong;
	MPI_Init(&argc, &argv);
	n = argc > 1 ? atoi(argv[1]) : 200;
	copies = argc > 2 ? atoi(argv[2]) : 1;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	while (copies * (q + 1) * (q + 1) <= ranks)
		q++;
	if (copies * q * q != ranks) {
		fprintf(stderr, "cannon: %d ranks are not %d square grids\n", ranks, copies);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	int layer = rank / (q * q), dims[2] = {q, q}, periods[2] = {1, 1};
	MPI_Comm plane;
	MPI_Comm_split(MPI_COMM_WORLD, layer, rank, &plane);
	MPI_Cart_create(plane, 2, dims, periods, 0, &grid);
	MPI_Comm_split(MPI_COMM_WORLD, rank % (q * q), layer, &layers);
	MPI_Cart_coords(grid, rank % (q * q), 2, at);
	block = (n + q - 1) / q;
	double *a = calloc(block * block, sizeof(double)), *b = calloc(block * block, sizeof(double));
	double *c = calloc(block * block, sizeof(double)), *sum = calloc(block * block, sizeof(double));
	for (int i = 0; layer == 0 && i < block; i++)
		for (int j = 0; j < block; j++) {
			a[i * block + j] = a_of(at[0] * block + i, at[1] * block + j);
			b[i * block + j] = b_of(at[0] * block + i, at[1] * block + j);
		}
	if (copies > 1) {
		MPI_Bcast(a, block * block, MPI_DOUBLE, 0, layers);
		MPI_Bcast(b, block * block, MPI_DOUBLE, 0, layers);
	}
	int begin = layer * q / copies, end = (layer + 1) * q / copies;
	shift(a, 1, at[0] + begin);
	shift(b, 0, at[1] + begin);
	for (int step = begin; step < end; step++) {
		multiply(a, b, c);
		if (step + 1 < end) {
			shift(a, 1, 1);
			shift(b, 0, 1);
		}
	}
	if (copies > 1) {
		MPI_Reduce(c, sum, block * block, MPI_DOUBLE, MPI_SUM, 0, layers);
		c = sum;
	}
	for (int i = at[0] * block; layer == 0 && i < (at[0] + 1) * block; i++)
		for (int j = at[1] * block; j < (at[1] + 1) * block; j++) {
			double want = 0;
			for (int k = 0; k < n; k++)
				want += a_of(i, k) * b_of(k, j);
			wrong += want != c[(i % block) * block + j % block];
		}
	MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("cannon on %d x %d x %d: blocks of %d, %s\n", copies, q, q, block, all_wrong ? "WRONG" : "right");
	MPI_Finalize();
	return rank == 0 && all_wrong;
}
