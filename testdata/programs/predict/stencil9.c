/* A 2-D nine-point smoother: stencil9 NX NY ITERATIONS, for example 100 84 20.
 * The grid of ranks is MPI_Dims_create's and ends at its edges. Blocks are uneven, the first ranks of an axis get the remainder.
 * One pair of calls in a loop over eight directions does the whole exchange, corners of one number included; the largest
 * change is reduced in every iteration. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static const int directions[8][2] = {{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}, {0, 1}, {1, -1}, {1, 0}, {1, 1}};

typedef struct {
	int n[2], at[2]; /* size, and first cell in the domain */
	int stride;
	double *now, *next; /* with one ghost layer */
} field;

static double start(int i, int j)
{
	return (i * 37 + j * 91) % 101;
}

static int first(int n, int parts, int part)
{
	return part * (n / parts) + (part < n % parts ? part : n % parts);
}

static field make(int ni, int nj, int ai, int aj)
{
	field f = {{ni, nj}, {ai, aj}, nj + 2, NULL, NULL};
	f.now = calloc((ni + 2) * (nj + 2), sizeof(double));
	f.next = calloc((ni + 2) * (nj + 2), sizeof(double));
	for (int i = 0; i < ni; i++)
		for (int j = 0; j < nj; j++)
			f.now[(i + 1) * f.stride + j + 1] = start(ai + i, aj + j);
	return f;
}

/* One iteration over the inner cells; returns the largest change. */
static double smooth(field *f)
{
	double change = 0, *old = f->now;
	int s = f->stride;
	for (int i = 1; i <= f->n[0]; i++)
		for (int j = 1; j <= f->n[1]; j++) {
			double *c = f->now + i * s + j;
			double v = (4 * c[0] + 2 * (c[-s] + c[s] + c[-1] + c[1]) + c[-s - 1] + c[-s + 1] + c[s - 1] + c[s + 1]) / 16;
			f->next[i * s + j] = v;
			change = fmax(change, fabs(v - c[0]));
		}
	f->now = f->next;
	f->next = old;
	return change;
}

/* The part of the block or of its ghosts that touches direction d. */
static MPI_Datatype edge(const field *f, const int *d, int ghost)
{
	MPI_Datatype t;
	int sizes[2], sub[2], from[2];
	for (int a = 0; a < 2; a++) {
		sizes[a] = f->n[a] + 2;
		sub[a] = d[a] == 0 ? f->n[a] : 1;
		from[a] = d[a] == 0 ? 1 : d[a] < 0 ? 1 - ghost : f->n[a] + ghost;
	}
	MPI_Type_create_subarray(2, sizes, sub, from, MPI_ORDER_C, MPI_DOUBLE, &t);
	MPI_Type_commit(&t);
	return t;
}

static void exchange(field *f, const int *neighbour, MPI_Datatype (*edges)[2], MPI_Comm grid)
{
	MPI_Request r[16];
	int n = 0;
	for (int d = 0; d < 8; d++) {
		if (neighbour[d] == MPI_PROC_NULL)
			continue;
		MPI_Irecv(f->now, 1, edges[d][1], neighbour[d], 7 - d, grid, &r[n++]);
		MPI_Isend(f->now, 1, edges[d][0], neighbour[d], d, grid, &r[n++]);
	}
	MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
}

int main(int argc, char **argv)
{
	int ranks, rank, at[2], dims[2] = {0, 0}, periods[2] = {0, 0}, neighbour[8], domain[2], wrong = 0;
	double change = 0, all = 0;
	MPI_Datatype edges[8][2];
	MPI_Comm grid;
	MPI_Init(&argc, &argv);
	domain[0] = argc > 1 ? atoi(argv[1]) : 100;
	domain[1] = argc > 2 ? atoi(argv[2]) : 84;
	int iterations = argc > 3 ? atoi(argv[3]) : 20;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Dims_create(ranks, 2, dims);
	MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
	MPI_Comm_rank(grid, &rank);
	MPI_Cart_coords(grid, rank, 2, at);
	int i0 = first(domain[0], dims[0], at[0]), i1 = first(domain[0], dims[0], at[0] + 1);
	int j0 = first(domain[1], dims[1], at[1]), j1 = first(domain[1], dims[1], at[1] + 1);
	field f = make(i1 - i0, j1 - j0, i0, j0);
	for (int d = 0; d < 8; d++) {
		int to[2] = {at[0] + directions[d][0], at[1] + directions[d][1]};
		neighbour[d] = MPI_PROC_NULL;
		if (to[0] >= 0 && to[0] < dims[0] && to[1] >= 0 && to[1] < dims[1])
			MPI_Cart_rank(grid, to, &neighbour[d]);
		edges[d][0] = edge(&f, directions[d], 0);
		edges[d][1] = edge(&f, directions[d], 1);
	}
	for (int k = 0; k < iterations; k++) {
		exchange(&f, neighbour, edges, grid);
		change = smooth(&f);
		MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_MAX, grid);
	}

	field serial = make(domain[0], domain[1], 0, 0);
	for (int k = 0; k < iterations; k++)
		change = smooth(&serial);
	wrong = iterations > 0 && change != all;
	for (int i = 1; i <= f.n[0]; i++)
		for (int j = 1; j <= f.n[1]; j++)
			wrong += f.now[i * f.stride + j] != serial.now[(i0 + i) * serial.stride + j0 + j];
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, grid);
	if (rank == 0)
		printf("stencil9 on %d x %d: change %.6f, %s\n", dims[0], dims[1], all, wrong ? "WRONG" : "right");
	MPI_Finalize();
	return wrong != 0;
}
