/* Collective algorithms as people write them: trees NUMBERS ROUNDS, for example 96 8. The ranks must be a power of two.
 * A binomial broadcast from rank 0, a binomial reduction to it, a butterfly that adds (one size), a butterfly that gathers
 * (sizes double), and a pipeline along the ring of ranks in pieces of 16 numbers. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int ranks, rank;

static void broadcast(double *x, int n)
{
	int bit = 1;
	for (; bit < ranks; bit <<= 1)
		if (rank & bit) {
			MPI_Recv(x, n, MPI_DOUBLE, rank - bit, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			break;
		}
	for (bit >>= 1; bit > 0; bit >>= 1)
		if (rank + bit < ranks)
			MPI_Send(x, n, MPI_DOUBLE, rank + bit, 1, MPI_COMM_WORLD);
}

static void reduce(double *x, double *tmp, int n)
{
	for (int bit = 1; bit < ranks; bit <<= 1) {
		if (rank & bit) {
			MPI_Send(x, n, MPI_DOUBLE, rank - bit, 2, MPI_COMM_WORLD);
			return;
		}
		if (rank + bit < ranks) {
			MPI_Recv(tmp, n, MPI_DOUBLE, rank + bit, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			for (int i = 0; i < n; i++)
				x[i] += tmp[i];
		}
	}
}

static void allreduce(double *x, double *tmp, int n)
{
	for (int bit = 1; bit < ranks; bit <<= 1) {
		MPI_Sendrecv(x, n, MPI_DOUBLE, rank ^ bit, 3, tmp, n, MPI_DOUBLE, rank ^ bit, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = 0; i < n; i++)
			x[i] += tmp[i];
	}
}

/* Every rank puts its n numbers at its place in all. After the step of a bit it has the numbers of 2 * bit ranks. */
static void allgather(double *all, int n)
{
	for (int bit = 1; bit < ranks; bit <<= 1) {
		int mine = rank & ~(bit - 1), theirs = mine ^ bit;
		MPI_Sendrecv(all + mine * n, bit * n, MPI_DOUBLE, rank ^ bit, 4, all + theirs * n, bit * n, MPI_DOUBLE, rank ^ bit, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

/* Rank 0 sends pieces down the line, each rank adds itself and passes them on, the last rank sends them back to 0. */
static void pipeline(double *x, int n)
{
	int piece = 16, next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
	for (int at = 0; at < n; at += piece) {
		int m = at + piece < n ? piece : n - at;
		if (rank > 0)
			MPI_Recv(x + at, m, MPI_DOUBLE, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		for (int i = at; i < at + m; i++)
			x[i] += rank;
		MPI_Send(x + at, m, MPI_DOUBLE, next, 5, MPI_COMM_WORLD);
	}
	if (rank == 0)
		for (int at = 0; at < n; at += piece)
			MPI_Recv(x + at, at + piece < n ? piece : n - at, MPI_DOUBLE, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	int wrong = 0, all_wrong = 0;
	MPI_Init(&argc, &argv);
	int n = argc > 1 ? atoi(argv[1]) : 96, rounds = argc > 2 ? atoi(argv[2]) : 8;
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (ranks & (ranks - 1)) {
		fprintf(stderr, "trees: %d ranks are no power of two\n", ranks);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	double *x = malloc(n * sizeof(double)), *tmp = malloc(n * sizeof(double)), *all = malloc(n * ranks * sizeof(double));
	double ids = ranks * (ranks - 1) / 2.0;
	for (int round = 0; round < rounds; round++) {
		for (int i = 0; i < n; i++)
			x[i] = rank == 0 ? i + round : -1;
		broadcast(x, n);
		for (int i = 0; i < n; i++)
			wrong += x[i] != i + round;
		for (int i = 0; i < n; i++)
			x[i] = rank + i;
		reduce(x, tmp, n);
		for (int i = 0; rank == 0 && i < n; i++)
			wrong += x[i] != ids + (double)ranks * i;
		for (int i = 0; i < n; i++)
			x[i] = rank + i;
		allreduce(x, tmp, n);
		for (int i = 0; i < n; i++)
			wrong += x[i] != ids + (double)ranks * i;
		for (int i = 0; i < n; i++)
			all[rank * n + i] = rank * 1000 + i;
		allgather(all, n);
		for (int i = 0; i < n * ranks; i++)
			wrong += all[i] != i / n * 1000 + i % n;
		for (int i = 0; i < n; i++)
			x[i] = i;
		pipeline(x, n);
		for (int i = 0; i < n; i++)
			wrong += x[i] != i + (rank == 0 ? ids : rank * (rank + 1) / 2.0);
	}
	MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	if (rank == 0)
		printf("trees on %d: %d numbers, %s\n", ranks, n, all_wrong ? "WRONG" : "right");
	MPI_Finalize();
	return all_wrong != 0;
}
