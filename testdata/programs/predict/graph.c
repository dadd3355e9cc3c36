/* Halos of an unstructured mesh: graph POINTS STEPS SEED, for example 4000 10 5.
 * Random points in a square, joined where they are closer than a radius, are dealt to ranks by recursive bisection; each rank
 * averages over neighbours and sends what other ranks border on. Whom a rank talks to, and how much, follows from the points. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
	double x[2];
	int id, owner;
} point;

static int axis;

static int by_axis(const void *a, const void *b)
{
	double p = ((const point *)a)->x[axis], q = ((const point *)b)->x[axis];
	return (p > q) - (p < q);
}

static int by_id(const void *a, const void *b)
{
	return ((const point *)a)->id - ((const point *)b)->id;
}

static double uniform(unsigned long long *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*state >> 11) / 9007199254740992.0;
}

/* Deals n points to the ranks from lo to hi - 1, in the ratio of their number, cutting across the longer axis in turn. */
static void bisect(point *p, int n, int lo, int hi, int depth)
{
	if (hi - lo == 1) {
		for (int i = 0; i < n; i++)
			p[i].owner = lo;
		return;
	}
	int half = (hi - lo) / 2, m = (int)((long)n * half / (hi - lo));
	axis = depth % 2;
	qsort(p, n, sizeof(point), by_axis);
	bisect(p, m, lo, lo + half, depth + 1);
	bisect(p + m, n - m, lo + half, hi, depth + 1);
}

static int joined(const point *a, const point *b, double radius)
{
	double dx = a->x[0] - b->x[0], dy = a->x[1] - b->x[1];
	return a != b && dx * dx + dy * dy < radius * radius;
}

/* v of the points that rank owns, or of all for rank -1, becomes the mean over their neighbours and themselves. */
static void average(const int *start, const int *adjacent, const point *p, int n, int rank, const double *v, double *next)
{
	for (int i = 0; i < n; i++) {
		if (rank >= 0 && p[i].owner != rank)
			continue;
		double sum = v[i];
		for (int e = start[i]; e < start[i + 1]; e++)
			sum += v[adjacent[e]];
		next[i] = sum / (start[i + 1] - start[i] + 1);
	}
}

int main(int argc, char **argv)
{
	int ranks, rank, wrong = 0, all_wrong, neighbours = 0, links;
	MPI_Init(&argc, &argv);
	int n = argc > 1 ? atoi(argv[1]) : 4000, steps = argc > 2 ? atoi(argv[2]) : 10;
	unsigned long long state = argc > 3 ? atoi(argv[3]) : 5;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	double radius = sqrt(8 / (3.14159 * n));
	point *p = malloc(n * sizeof(point));
	for (int i = 0; i < n; i++)
		p[i] = (point){{uniform(&state), uniform(&state)}, i, 0};
	bisect(p, n, 0, ranks, 0);
	qsort(p, n, sizeof(point), by_id);

	int *start = calloc(n + 1, sizeof(int)), *adjacent = malloc(n * 64 * sizeof(int));
	for (int i = 0; i < n; i++) {
		start[i + 1] = start[i];
		for (int j = 0; j < n; j++)
			if (joined(&p[i], &p[j], radius) && start[i + 1] < n * 64)
				adjacent[start[i + 1]++] = j;
	}

	/* boundary[r] lists, in the order of points, what this rank sends to r; ghost[r] what it receives from r */
	int **boundary = calloc(ranks, sizeof(int *)), **ghost = calloc(ranks, sizeof(int *));
	int *out = calloc(ranks, sizeof(int)), *in = calloc(ranks, sizeof(int));
	for (int i = 0; i < n; i++)
		for (int e = start[i]; e < start[i + 1]; e++) {
			int j = adjacent[e], a = p[i].owner, b = p[j].owner, r = a == rank ? b : a;
			int **list = a == rank ? boundary : ghost, *count = a == rank ? out : in;
			if ((a != rank && b != rank) || a == b || (count[r] > 0 && list[r][count[r] - 1] == i))
				continue;
			list[r] = realloc(list[r], (count[r] + 1) * sizeof(int));
			list[r][count[r]++] = i;
		}

	double *v = malloc(n * sizeof(double)), *next = malloc(n * sizeof(double)), *sends = malloc(n * 8 * sizeof(double)), *gets = malloc(n * 8 * sizeof(double)), *swap;
	MPI_Request *requests = malloc(2 * ranks * sizeof(MPI_Request));
	for (int i = 0; i < n; i++)
		v[i] = p[i].owner == rank ? i % 97 : NAN;
	for (int step = 0; step < steps; step++) {
		int m = 0, put = 0, got = 0;
		for (int r = 0; r < ranks; got += in[r], r++)
			if (in[r] > 0)
				MPI_Irecv(gets + got, in[r], MPI_DOUBLE, r, 7, MPI_COMM_WORLD, &requests[m++]);
		for (int r = 0; r < ranks; put += out[r], r++) {
			for (int i = 0; i < out[r]; i++)
				sends[put + i] = v[boundary[r][i]];
			if (out[r] > 0)
				MPI_Isend(sends + put, out[r], MPI_DOUBLE, r, 7, MPI_COMM_WORLD, &requests[m++]);
		}
		neighbours = m / 2;
		MPI_Waitall(m, requests, MPI_STATUSES_IGNORE);
		for (int r = 0, k = 0; r < ranks; r++)
			for (int i = 0; i < in[r]; i++)
				v[ghost[r][i]] = gets[k++];
		average(start, adjacent, p, n, rank, v, next);
		swap = v;
		v = next;
		next = swap;
	}

	double *a = malloc(n * sizeof(double)), *b = malloc(n * sizeof(double));
	for (int i = 0; i < n; i++)
		a[i] = i % 97;
	for (int step = 0; step < steps; step++) {
		average(start, adjacent, p, n, -1, a, b);
		swap = a;
		a = b;
		b = swap;
	}
	for (int i = 0; i < n; i++)
		wrong += p[i].owner == rank && !(v[i] == a[i]);
	MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&neighbours, &links, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("graph on %d: %d points, %d links between ranks, %s\n", ranks, n, links, all_wrong ? "WRONG" : "right");
	MPI_Finalize();
	return rank == 0 && all_wrong;
}
