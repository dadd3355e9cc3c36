/* Matrix multiplication by SUMMA: summa N PANEL, for example 240 20. The ranks must be a square of q, PANEL must divide N.
 * Panels of PANEL columns of A and rows of B are dealt in turn to the columns and rows of a q x q grid (block cyclic). For
 * each, the column that has it broadcasts it along the rows and the row that has it along the columns. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int n, panel;

static double a_of(int i, int j)
{
	return (i * 3 + j * 7) % 11 - 5;
}

static double b_of(int i, int j)
{
	return (i * 5 + j * 2) % 13 - 6;
}

/* The number of panels of an axis on the rank at that place. */
static int panels(int q, int at)
{
	return (n / panel - at + q - 1) / q;
}

/* The index in the whole matrix of a local index. */
static int whole(int q, int at, int i)
{
	return (i / panel * q + at) * panel + i % panel;
}

int main(int argc, char **argv)
{
	int ranks, rank, q = 0, wrong = 0, all_wrong;
	MPI_Comm row, column;
	MPI_Init(&argc, &argv);
	n = argc > 1 ? atoi(argv[1]) : 240;
	panel = argc > 2 ? atoi(argv[2]) : 20;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	while ((q + 1) * (q + 1) <= ranks)
		q++;
	if (q * q != ranks || n % panel != 0) {
		fprintf(stderr, "summa: %d ranks are no square, or %d does not divide %d\n", ranks, panel, n);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	int y = rank / q, x = rank % q;
	MPI_Comm_split(MPI_COMM_WORLD, y, x, &row);
	MPI_Comm_split(MPI_COMM_WORLD, x, y, &column);
	int rows = panels(q, y) * panel, columns = panels(q, x) * panel;
	double *a = malloc((rows * columns + 1) * sizeof(double)), *b = malloc((rows * columns + 1) * sizeof(double));
	double *c = calloc(rows * columns + 1, sizeof(double));
	double *left = malloc((rows * panel + 1) * sizeof(double)), *top = malloc((panel * columns + 1) * sizeof(double));
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			a[i * columns + j] = a_of(whole(q, y, i), whole(q, x, j));
			b[i * columns + j] = b_of(whole(q, y, i), whole(q, x, j));
		}
	for (int p = 0; p < n / panel; p++) {
		int mine = p / q * panel; /* where panel p is on the ranks that have it */
		for (int i = 0; x == p % q && i < rows; i++)
			for (int k = 0; k < panel; k++)
				left[i * panel + k] = a[i * columns + mine + k];
		for (int k = 0; y == p % q && k < panel; k++)
			for (int j = 0; j < columns; j++)
				top[k * columns + j] = b[(mine + k) * columns + j];
		MPI_Bcast(left, rows * panel, MPI_DOUBLE, p % q, row);
		MPI_Bcast(top, panel * columns, MPI_DOUBLE, p % q, column);
		for (int i = 0; i < rows; i++)
			for (int k = 0; k < panel; k++)
				for (int j = 0; j < columns; j++)
					c[i * columns + j] += left[i * panel + k] * top[k * columns + j];
	}
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < columns; j++) {
			double want = 0;
			for (int k = 0; k < n; k++)
				want += a_of(whole(q, y, i), k) * b_of(k, whole(q, x, j));
			wrong += want != c[i * columns + j];
		}
	MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("summa on %d x %d: %d panels of %d, %s\n", q, q, n / panel, panel, all_wrong ? "WRONG" : "right");
	MPI_Finalize();
	return all_wrong != 0;
}
