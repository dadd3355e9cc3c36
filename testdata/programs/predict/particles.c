/* Particles on a ring: particles NUMBER STEPS, for example 2000 6.
 * A line with closed ends is cut into equal slabs. In each step all particles go once around the ring of ranks, each rank adding
 * their forces on its own (as many as a rank happens to have); those that left their slab go to the neighbour, and every third
 * step counts by MPI_Alltoall and an MPI_Alltoallv spread the particles evenly before they are sent home again. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS 3 /* numbers of a particle: position, velocity, identity */

static int ranks, rank, most;

static int slab(double x)
{
	int s = (int)floor(x * ranks);
	return s < 0 ? 0 : s >= ranks ? ranks - 1 : s;
}

/* Adds the forces of all particles on mine, from copies that pass from rank to rank. */
static void forces(const double *mine, int n, double *force, double *a, double *b)
{
	int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks, m = n;
	for (int i = 0; i < n; i++)
		force[i] = 0;
	for (int i = 0; i < n * WORDS; i++)
		a[i] = mine[i];
	for (int hop = 0; hop < ranks; hop++) {
		for (int i = 0; i < n; i++)
			for (int j = 0; j < m; j++) {
				double d = mine[i * WORDS] - a[j * WORDS];
				force[i] += d / (d * d + 0.01);
			}
		if (hop == ranks - 1)
			break;
		MPI_Status s;
		MPI_Request q;
		MPI_Isend(a, m * WORDS, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &q);
		MPI_Recv(b, most * WORDS, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &s);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		MPI_Get_count(&s, MPI_DOUBLE, &m);
		m /= WORDS;
		double *swap = a;
		a = b;
		b = swap;
	}
}

/* Particles that left go to the next slab; none moves further in a step. Returns how many are here afterwards. */
static int migrate(double *p, int n, double *out)
{
	for (int side = -1; side <= 1; side += 2) {
		int to = rank + side, from = rank - side, leave = 0, stay = 0, come = 0;
		for (int i = 0; i < n; i++) {
			int goes = (slab(p[i * WORDS]) - rank) * side > 0;
			double *at = goes ? out + leave++ * WORDS : p + stay++ * WORDS;
			for (int w = 0; w < WORDS; w++)
				at[w] = p[i * WORDS + w];
		}
		n = stay;
		if (to < 0 || to >= ranks)
			to = MPI_PROC_NULL;
		if (from < 0 || from >= ranks)
			from = MPI_PROC_NULL;
		MPI_Status s;
		MPI_Sendrecv(out, leave * WORDS, MPI_DOUBLE, to, 2, p + n * WORDS, (most - n) * WORDS, MPI_DOUBLE, from, 2, MPI_COMM_WORLD, &s);
		MPI_Get_count(&s, MPI_DOUBLE, &come);
		n += come / WORDS;
	}
	return n;
}

/* Sends particle i to rank owner(i). Returns how many are here afterwards. */
static int deal(double *p, int n, double *out, int (*owner)(const double *))
{
	int *counts = calloc(4 * ranks, sizeof(int)), *from = counts + ranks, *at = from + ranks, *start = at + ranks, sum = 0;
	for (int i = 0; i < n; i++)
		counts[owner(p + i * WORDS)] += WORDS;
	MPI_Alltoall(counts, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
	for (int r = 1; r < ranks; r++)
		at[r] = at[r - 1] + counts[r - 1];
	for (int i = 0; i < n; i++) {
		int r = owner(p + i * WORDS);
		for (int w = 0; w < WORDS; w++)
			out[at[r]++] = p[i * WORDS + w];
	}
	for (int r = 0; r < ranks; r++) {
		at[r] -= counts[r];
		start[r] = sum;
		sum += from[r];
	}
	MPI_Alltoallv(out, counts, at, MPI_DOUBLE, p, from, start, MPI_DOUBLE, MPI_COMM_WORLD);
	free(counts);
	return sum / WORDS;
}

static int by_place(const double *p)
{
	return slab(p[0]);
}

static int by_number(const double *p)
{
	return (int)p[2] % ranks;
}

int main(int argc, char **argv)
{
	int n = 0, wrong = 0, fewest, highest;
	double ids = 0, total, momentum = 0, kick = 0;
	MPI_Init(&argc, &argv);
	most = argc > 1 ? atoi(argv[1]) : 2000;
	int steps = argc > 2 ? atoi(argv[2]) : 6;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	double *p = malloc(most * WORDS * sizeof(double)), *force = malloc(most * sizeof(double));
	double *a = malloc(most * WORDS * sizeof(double)), *b = malloc(most * WORDS * sizeof(double));
	for (int i = 0; i < most; i++) {
		double x = (i * 0.618033988749895) - floor(i * 0.618033988749895), bunched = x * x * (3 - 2 * x);
		if (slab(bunched) != rank)
			continue;
		p[n * WORDS] = bunched;
		p[n * WORDS + 1] = 0.3 * sin(i * 1.7);
		p[n++ * WORDS + 2] = i;
	}
	for (int step = 0; step < steps; step++) {
		forces(p, n, force, a, b);
		for (int i = 0; i < n; i++) {
			double v = p[i * WORDS + 1] + force[i] * 1e-5, reach = 0.9 / ranks, d = fmax(-reach, fmin(reach, v * 0.05));
			kick += force[i];
			p[i * WORDS + 1] = v;
			p[i * WORDS] = fmax(0, fmin(1, p[i * WORDS] + d));
		}
		n = migrate(p, n, a);
		for (int i = 0; i < n; i++)
			wrong += slab(p[i * WORDS]) != rank;
		if (step % 3 == 2) {
			n = deal(p, n, a, by_number);
			for (int i = 0; i < n; i++)
				wrong += (int)p[i * WORDS + 2] % ranks != rank;
			n = deal(p, n, a, by_place);
		}
	}
	for (int i = 0; i < n; i++)
		ids += p[i * WORDS + 2];
	MPI_Allreduce(&ids, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	MPI_Allreduce(&kick, &momentum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); /* forces cancel in pairs */
	MPI_Allreduce(&n, &fewest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
	MPI_Allreduce(&n, &highest, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	wrong += total != (double)most * (most - 1) / 2 || fabs(momentum) > 1e-4;
	MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("particles on %d: %d of which ranks have %d to %d, %s\n", ranks, most, fewest, highest, wrong ? "WRONG" : "right");
	MPI_Finalize();
	return wrong != 0;
}
