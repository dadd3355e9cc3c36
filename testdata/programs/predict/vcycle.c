/* Multigrid V-cycles with fewer ranks on coarse levels: vcycle N LEVELS CYCLES, for example 256 7 4. The ranks must be a power of two.
 * Strips of a periodic N x N grid, halved in both axes from level to level. Where a rank would keep fewer than 4 rows, every
 * second rank of the level gives its rows to the one before it and waits: on coarse levels every 2nd, 4th, ... rank works. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIN_ROWS 4
#define MAX_LEVELS 16

typedef struct {
	int n, rows, stride; /* columns, rows of this rank, distance between working ranks */
	int merged;          /* the rows of two ranks of the finer level were merged */
	double *u, *f, *r;   /* solution, right hand side, residual; with a ghost row on both sides */
} level;

static int ranks, rank;
static MPI_Comm world;

static int works(const level *l)
{
	return rank % l->stride == 0;
}

static void ghosts(const level *l, double *u)
{
	int up = (rank + l->stride) % ranks, down = (rank + ranks - l->stride) % ranks, n = l->n;
	MPI_Request q[4];
	MPI_Irecv(u, n, MPI_DOUBLE, down, 1, world, &q[0]);
	MPI_Irecv(u + (l->rows + 1) * n, n, MPI_DOUBLE, up, 2, world, &q[1]);
	MPI_Isend(u + l->rows * n, n, MPI_DOUBLE, up, 1, world, &q[2]);
	MPI_Isend(u + n, n, MPI_DOUBLE, down, 2, world, &q[3]);
	MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
}

/* r = f - (4 u - neighbours) of -laplace u = f, on a grid of spacing 1 */
static void residual(const level *l)
{
	ghosts(l, l->u);
	for (int i = 1; i <= l->rows; i++)
		for (int j = 0; j < l->n; j++) {
			const double *u = l->u + i * l->n;
			int e = (j + 1) % l->n, w = (j + l->n - 1) % l->n;
			l->r[i * l->n + j] = l->f[i * l->n + j] - (4 * u[j] - u[e] - u[w] - u[j - l->n] - u[j + l->n]);
		}
}

static void smooth(const level *l, int times)
{
	for (; times > 0; times--) {
		residual(l);
		for (int i = l->n; i < (l->rows + 1) * l->n; i++)
			l->u[i] += 0.2 * l->r[i];
	}
}

/* The residual summed over four cells is the right-hand side of the coarser level; its spacing of 2 counts as 1. */
static void coarsen(const level *fine, level *coarse)
{
	int rows = fine->rows / 2, n = coarse->n;
	for (int i = 0; i < rows; i++)
		for (int j = 0; j < n; j++) {
			const double *r = fine->r + (2 * i + 1) * fine->n + 2 * j;
			coarse->f[(i + 1) * n + j] = r[0] + r[1] + r[fine->n] + r[fine->n + 1];
		}
	if (!coarse->merged)
		return;
	if (works(coarse))
		MPI_Recv(coarse->f + (rows + 1) * n, rows * n, MPI_DOUBLE, rank + fine->stride, 3, world, MPI_STATUS_IGNORE);
	else
		MPI_Send(coarse->f + n, rows * n, MPI_DOUBLE, rank - fine->stride, 3, world);
}

static void refine(const level *coarse, const level *fine)
{
	int rows = fine->rows / 2, n = coarse->n;
	if (coarse->merged && works(coarse))
		MPI_Send(coarse->u + (rows + 1) * n, rows * n, MPI_DOUBLE, rank + fine->stride, 4, world);
	else if (coarse->merged)
		MPI_Recv(coarse->u + n, rows * n, MPI_DOUBLE, rank - fine->stride, 4, world, MPI_STATUS_IGNORE);
	for (int i = 0; i < fine->rows; i++)
		for (int j = 0; j < fine->n; j++)
			fine->u[(i + 1) * fine->n + j] += coarse->u[(i / 2 + 1) * n + j / 2];
}

static void cycle(level *l, int at, int last)
{
	if (!works(&l[at]))
		return;
	smooth(&l[at], at == last ? 20 : 2);
	if (at == last)
		return;
	residual(&l[at]);
	memset(l[at + 1].u, 0, (l[at + 1].rows + 2) * l[at + 1].n * sizeof(double));
	coarsen(&l[at], &l[at + 1]);
	cycle(l, at + 1, last);
	refine(&l[at + 1], &l[at]);
	smooth(&l[at], 2);
}

static double norm(const level *l)
{
	double sum = 0, total;
	residual(l);
	for (int i = l->n; i < (l->rows + 1) * l->n; i++)
		sum += l->r[i] * l->r[i];
	MPI_Allreduce(&sum, &total, 1, MPI_DOUBLE, MPI_SUM, world);
	return sqrt(total);
}

int main(int argc, char **argv)
{
	level l[MAX_LEVELS];
	MPI_Init(&argc, &argv);
	int n = argc > 1 ? atoi(argv[1]) : 256, levels = argc > 2 ? atoi(argv[2]) : 7, cycles = argc > 3 ? atoi(argv[3]) : 4;
	world = MPI_COMM_WORLD;
	MPI_Comm_size(world, &ranks);
	MPI_Comm_rank(world, &rank);
	if (ranks & (ranks - 1) || levels > MAX_LEVELS || n / ranks < MIN_ROWS || n >> (levels - 1) < MIN_ROWS) {
		fprintf(stderr, "vcycle: %d ranks and %d levels do not fit %d rows\n", ranks, levels, n);
		MPI_Abort(world, 2);
	}
	for (int i = 0; i < levels; i++) {
		l[i] = (level){n >> i, (n >> i) / ranks, 1, 0, NULL, NULL, NULL};
		if (i > 0) {
			l[i].rows = l[i - 1].rows / 2;
			l[i].stride = l[i - 1].stride;
			l[i].merged = l[i].rows < MIN_ROWS && l[i].stride < ranks;
			l[i].rows *= 1 + l[i].merged;
			l[i].stride *= 1 + l[i].merged;
		}
		size_t cells = (size_t)(l[i].rows + 2) * l[i].n;
		l[i].u = calloc(cells, sizeof(double));
		l[i].f = calloc(cells, sizeof(double));
		l[i].r = calloc(cells, sizeof(double));
	}
	for (int i = 0; i < l[0].rows; i++)
		for (int j = 0; j < n; j++)
			l[0].f[(i + 1) * n + j] = sin(2 * M_PI * (rank * l[0].rows + i) / n) * cos(4 * M_PI * j / n);
	double before = norm(&l[0]), after = before;
	for (int c = 0; c < cycles; c++) {
		cycle(l, 0, levels - 1);
		after = norm(&l[0]);
	}
	int wrong = !(after < before * pow(0.5, cycles));
	if (rank == 0)
		printf("vcycle on %d: residual %.6e to %.6e, %s\n", ranks, before, after, wrong ? "WRONG" : "right");
	MPI_Finalize();
	return wrong;
}
