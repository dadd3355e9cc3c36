/* A ring of ranks that exchange borders with their neighbours, as a small solver does: the example of commq check.
 *
 *     halo [CHANGE] [ITERATIONS]
 *
 * Without a change: parameters are broadcast, each iteration exchanges 17 numbers with both neighbours, computes, and every fifth one
 * reduces a residual. Changes that are worse:
 *
 *     extra     one message more per iteration
 *     double    the borders are twice as wide
 *     byhand    the parameters are sent to each rank by rank 0, in a loop
 *     allpairs  each rank sends a number to every other in each iteration
 *     slow      the computation is done twice
 *
 * and changes that are not:
 *
 *     order     receives are posted in the other order
 *     renamed   the exchange is another function, has other tags, and blocks in MPI_Sendrecv
 *
 * Prints ok and a residual, which is the same for all of them. */
#include <mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 17, CELLS = 4099, PARAMETERS = 513, TAG_RIGHT = 9, TAG_LEFT = 11 };

static int rank, ranks, left, right;
static double cells[CELLS + 2 * WIDTH], spare[2 * WIDTH];

/* Sends the borders of the cells to both neighbours, and receives theirs. */
static void exchange(int reversed)
{
	MPI_Request r[4];
	if (reversed) {
		MPI_Irecv(cells + WIDTH + CELLS, WIDTH, MPI_DOUBLE, right, TAG_LEFT, MPI_COMM_WORLD, &r[1]);
		MPI_Irecv(cells, WIDTH, MPI_DOUBLE, left, TAG_RIGHT, MPI_COMM_WORLD, &r[0]);
	} else {
		MPI_Irecv(cells, WIDTH, MPI_DOUBLE, left, TAG_RIGHT, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(cells + WIDTH + CELLS, WIDTH, MPI_DOUBLE, right, TAG_LEFT, MPI_COMM_WORLD, &r[1]);
	}
	MPI_Isend(cells + CELLS, WIDTH, MPI_DOUBLE, right, TAG_RIGHT, MPI_COMM_WORLD, &r[2]);
	MPI_Isend(cells + WIDTH, WIDTH, MPI_DOUBLE, left, TAG_LEFT, MPI_COMM_WORLD, &r[3]);
	MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

/* The same with calls that block, under another name and with other tags. */
static void swap_borders(void)
{
	MPI_Sendrecv(cells + CELLS, WIDTH, MPI_DOUBLE, right, 77, cells, WIDTH, MPI_DOUBLE, left, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Sendrecv(cells + WIDTH, WIDTH, MPI_DOUBLE, left, 78, cells + WIDTH + CELLS, WIDTH, MPI_DOUBLE, right, 78, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Borders twice as wide, of which only half is used. */
static void exchange_wide(void)
{
	MPI_Sendrecv(cells + CELLS - WIDTH, 2 * WIDTH, MPI_DOUBLE, right, TAG_RIGHT, spare, 2 * WIDTH, MPI_DOUBLE, left, TAG_RIGHT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	memcpy(cells, spare + WIDTH, WIDTH * sizeof *cells);
	MPI_Sendrecv(cells + WIDTH, 2 * WIDTH, MPI_DOUBLE, left, TAG_LEFT, spare, 2 * WIDTH, MPI_DOUBLE, right, TAG_LEFT, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	memcpy(cells + WIDTH + CELLS, spare, WIDTH * sizeof *cells);
}

static void report_progress(int i)
{
	double mine = rank + i, got;
	MPI_Sendrecv(&mine, 1, MPI_DOUBLE, right, 13, &got, 1, MPI_DOUBLE, left, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void tell_everyone(int i)
{
	for (int k = 1; k < ranks; k++) {
		double mine = rank + i, got;
		MPI_Sendrecv(&mine, 1, MPI_DOUBLE, (rank + k) % ranks, 15, &got, 1, MPI_DOUBLE, (rank + ranks - k) % ranks, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void broadcast_parameters(double *p, int by_hand)
{
	if (!by_hand) {
		MPI_Bcast(p, PARAMETERS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
		return;
	}
	if (rank > 0)
		MPI_Recv(p, PARAMETERS, MPI_DOUBLE, 0, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int to = 1; rank == 0 && to < ranks; to++)
		MPI_Send(p, PARAMETERS, MPI_DOUBLE, to, 17, MPI_COMM_WORLD);
}

/* One step over the cells; to is where they go. */
static void compute(const double *p, double *to)
{
	for (int i = 0; i < CELLS; i++) {
		double x = cells[i] + cells[i + 2 * WIDTH];
		for (int k = 0; k < 24; k++)
			x = sin(x + p[(i + k) % PARAMETERS]);
		to[i] = x;
	}
}

int main(int argc, char **argv)
{
	const char *change = argc > 1 ? argv[1] : "";
	int iterations = argc > 2 ? atoi(argv[2]) : 20;
	static double p[PARAMETERS], next[CELLS];
	double residual = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	left = (rank + ranks - 1) % ranks;
	right = (rank + 1) % ranks;
	for (int i = 0; rank == 0 && i < PARAMETERS; i++)
		p[i] = 0.25 * i;
	broadcast_parameters(p, !strcmp(change, "byhand"));
	for (int i = 0; i < CELLS; i++)
		cells[WIDTH + i] = 1.0 / (rank * CELLS + i + 3);
	for (int i = 0; i < iterations; i++) {
		if (!strcmp(change, "renamed"))
			swap_borders();
		else if (!strcmp(change, "double"))
			exchange_wide();
		else
			exchange(!strcmp(change, "order"));
		if (!strcmp(change, "extra"))
			report_progress(i);
		if (!strcmp(change, "allpairs"))
			tell_everyone(i);
		compute(p, next);
		if (!strcmp(change, "slow"))
			compute(p, next);
		memcpy(cells + WIDTH, next, sizeof next);
		if (i % 5 == 4) {
			double sum = 0;
			for (int k = 0; k < CELLS; k++)
				sum += next[k] * next[k];
			MPI_Allreduce(&sum, &residual, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		}
	}
	if (rank == 0)
		printf("ok %.6f\n", residual);
	MPI_Finalize();
	return 0;
}
