/* A 3-D Fourier transform of pencils: pencils N STEPS, for example 48 4. Both axes of MPI_Dims_create's grid must divide N.
 * A step transforms forward and back: an MPI_Alltoall on the rows and one on the columns of the grid each way. */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef double complex number;

static int n;

/* Transforms count lines of n numbers, stored one after the other. */
static void lines(number *a, int count, const number *roots)
{
	number *out = malloc(n * sizeof(number));
	for (int l = 0; l < count; l++, a += n) {
		for (int k = 0; k < n; k++) {
			number sum = 0;
			for (int j = 0; j < n; j++)
				sum += a[j] * roots[j * k % n];
			out[k] = sum;
		}
		for (int k = 0; k < n; k++)
			a[k] = out[k];
	}
	free(out);
}

/* From lines along one axis to lines along another that the ranks of comm share: a holds [others][mine][n], and afterwards
 * [others][mine][n] where the last two have changed places. */
static void turn(number *a, number *tmp, int others, int mine, MPI_Comm comm)
{
	int ranks, piece = others * mine * mine;
	MPI_Comm_size(comm, &ranks);
	for (int r = 0; r < ranks; r++)
		for (int o = 0; o < others; o++)
			for (int m = 0; m < mine; m++)
				for (int k = 0; k < mine; k++)
					tmp[r * piece + (o * mine + k) * mine + m] = a[(o * mine + m) * n + r * mine + k];
	MPI_Alltoall(tmp, piece, MPI_C_DOUBLE_COMPLEX, a, piece, MPI_C_DOUBLE_COMPLEX, comm);
	for (int r = 0; r < ranks; r++)
		for (int o = 0; o < others; o++)
			for (int k = 0; k < mine; k++)
				for (int m = 0; m < mine; m++)
					tmp[(o * mine + k) * n + r * mine + m] = a[r * piece + (o * mine + k) * mine + m];
	for (int i = 0; i < others * mine * n; i++)
		a[i] = tmp[i];
}

/* Stores [y][z][x] as [z][y][x], because the next turn shares the other axis. */
static void flip(number *a, number *tmp, int y, int z)
{
	for (int i = 0; i < y; i++)
		for (int j = 0; j < z; j++)
			for (int k = 0; k < n; k++)
				tmp[(j * y + i) * n + k] = a[(i * z + j) * n + k];
	for (int i = 0; i < y * z * n; i++)
		a[i] = tmp[i];
}

static double start(int x, int y, int z)
{
	return (x * 13 + y * 29 + z * 53) % 17;
}

int main(int argc, char **argv)
{
	int ranks, rank, at[2], dims[2] = {0, 0}, periods[2] = {0, 0}, rows[2] = {0, 1}, columns[2] = {1, 0}, wrong = 0, all_wrong;
	MPI_Comm grid, row, column;
	MPI_Init(&argc, &argv);
	n = argc > 1 ? atoi(argv[1]) : 48;
	int steps = argc > 2 ? atoi(argv[2]) : 4;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Dims_create(ranks, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
	MPI_Comm_rank(grid, &rank);
	MPI_Cart_coords(grid, rank, 2, at);
	MPI_Cart_sub(grid, rows, &row);
	MPI_Cart_sub(grid, columns, &column);
	if (n % dims[0] || n % dims[1]) {
		fprintf(stderr, "pencils: a grid of %d x %d ranks does not divide %d\n", dims[0], dims[1], n);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	int my = n / dims[1], mz = n / dims[0]; /* a pencil is along x, of my in y (shared by the row) and mz in z (by the column) */
	number *a = malloc(my * mz * n * sizeof(number)), *tmp = malloc(my * mz * n * sizeof(number));
	number *forward = malloc(n * sizeof(number)), *back = malloc(n * sizeof(number)), mean = 0;
	for (int k = 0; k < n; k++) {
		forward[k] = cexp(-2 * M_PI * I * k / n);
		back[k] = conj(forward[k]);
	}
	for (int z = 0; z < mz; z++)
		for (int y = 0; y < my; y++)
			for (int x = 0; x < n; x++)
				a[(z * my + y) * n + x] = start(x, at[1] * my + y, at[0] * mz + z);
	for (int step = 0; step < steps; step++) {
		lines(a, my * mz, forward);
		turn(a, tmp, mz, my, row); /* now [z][x][y] */
		lines(a, my * mz, forward);
		flip(a, tmp, mz, my);
		turn(a, tmp, my, mz, column); /* now [x][y][z] */
		lines(a, my * mz, forward);
		if (rank == 0)
			mean = a[0] / ((double)n * n * n);
		lines(a, my * mz, back);
		turn(a, tmp, my, mz, column);
		flip(a, tmp, my, mz);
		lines(a, my * mz, back);
		turn(a, tmp, mz, my, row);
		lines(a, my * mz, back);
		for (int i = 0; i < my * mz * n; i++)
			a[i] /= (double)n * n * n;
	}
	double sum = 0;
	for (int z = 0; z < n; z++)
		for (int y = 0; y < n; y++)
			for (int x = 0; x < n; x++)
				sum += start(x, y, z);
	for (int z = 0; z < mz; z++)
		for (int y = 0; y < my; y++)
			for (int x = 0; x < n; x++)
				wrong += cabs(a[(z * my + y) * n + x] - start(x, at[1] * my + y, at[0] * mz + z)) > 1e-8;
	wrong += rank == 0 && steps > 0 && cabs(mean - sum / ((double)n * n * n)) > 1e-8;
	MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, grid);
	if (rank == 0)
		printf("pencils on %d x %d: mean %.6f, %s\n", dims[0], dims[1], creal(mean), all_wrong ? "WRONG" : "right");
	MPI_Finalize();
	return rank == 0 && all_wrong;
}
