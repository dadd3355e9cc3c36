/* Odd-even transposition sort: oddeven NUMBERS SEED, for example 5000 7.
 * Each rank sorts ceil(NUMBERS / ranks) numbers, filled up with the largest; in as many phases as there are ranks, neighbours
 * exchange all they have and keep the lower or the upper half, pairs starting at even and at odd ranks in turn. */
#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int compare(const void *a, const void *b)
{
	long p = *(const long *)a, q = *(const long *)b;
	return (p > q) - (p < q);
}

/* Keeps the lower or upper half of two sorted lists of n numbers. */
static void keep(long *mine, const long *theirs, long *tmp, int n, int upper)
{
	int i = upper ? n - 1 : 0, j = i, step = upper ? -1 : 1;
	for (int k = i; k >= 0 && k < n; k += step) {
		int take = upper ? mine[i] >= theirs[j] : mine[i] <= theirs[j];
		tmp[k] = take ? mine[i] : theirs[j];
		i += take ? step : 0;
		j += take ? 0 : step;
	}
	for (int k = 0; k < n; k++)
		mine[k] = tmp[k];
}

int main(int argc, char **argv)
{
	int ranks, rank, wrong = 0, all_wrong;
	MPI_Init(&argc, &argv);
	int numbers = argc > 1 ? atoi(argv[1]) : 5000;
	unsigned seed = argc > 2 ? atoi(argv[2]) : 7;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	int n = (numbers + ranks - 1) / ranks;
	long *mine = malloc(n * sizeof(long)), *theirs = malloc(n * sizeof(long)), *tmp = malloc(n * sizeof(long));
	long sum = 0, total, want = 0, last = LONG_MIN;
	for (int i = 0; i < n * ranks; i++) {
		seed = seed * 1664525 + 1013904223;
		long v = i < numbers ? seed >> 8 : LONG_MAX;
		if (i / n == rank)
			mine[i % n] = v;
		want += i < numbers ? v : 0;
	}
	qsort(mine, n, sizeof(long), compare);
	for (int phase = 0; phase < ranks; phase++) {
		int partner = (phase + rank) % 2 == 0 ? rank + 1 : rank - 1;
		if (partner < 0 || partner >= ranks)
			continue;
		MPI_Sendrecv(mine, n, MPI_LONG, partner, phase, theirs, n, MPI_LONG, partner, phase, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		keep(mine, theirs, tmp, n, partner < rank);
	}

	/* each rank's largest number must not exceed the smallest of the next rank */
	if (rank > 0)
		MPI_Recv(&last, 1, MPI_LONG, rank - 1, ranks, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < n; i++) {
		wrong += mine[i] < last;
		last = mine[i];
		sum += mine[i] == LONG_MAX ? 0 : mine[i];
	}
	if (rank < ranks - 1)
		MPI_Send(&last, 1, MPI_LONG, rank + 1, ranks, MPI_COMM_WORLD);
	MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Reduce(&sum, &total, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		all_wrong += total != want;
		printf("oddeven on %d: %d numbers, %d a rank, %s\n", ranks, numbers, n, all_wrong ? "WRONG" : "right");
	}
	MPI_Finalize();
	return rank == 0 && all_wrong;
}
