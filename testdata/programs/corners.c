/* Corner cases of collectives: with MPI_IN_PLACE, without data, between ranks 0, 1 and 2 of an intercommunicator, and
 * after a constructor that fails. Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

static int bad;
#define CHECK(x) ((x) ? 0 : (bad++, fprintf(stderr, "corners.c:%d: %s\n", __LINE__, #x)))
#define W MPI_COMM_WORLD

static int rank, a[30], b[30];

static void fill(void)
{
	for (int i = 0; i < 30; i++)
		a[i] = b[i] = 10 * rank + i;
}

static void in_place(void)
{
	int counts[3] = {1, 2, 3}, at[3] = {0, 1, 3};
	/* the same number to rank i as from it: rank + i */
	int n[3] = {rank, rank + 1, rank + 2}, d[3] = {0, n[0], n[0] + n[1]}, bytes[3] = {0, 4 * d[1], 4 * d[2]};
	MPI_Datatype ints[3] = {MPI_INT, MPI_INT, MPI_INT};
	fill();
	MPI_Scan(MPI_IN_PLACE, b, 1, MPI_INT, MPI_SUM, W);
	CHECK(b[0] == 5 * rank * (rank + 1));
	fill();
	MPI_Exscan(MPI_IN_PLACE, b, 2, MPI_INT, MPI_SUM, W);
	CHECK(rank != 2 || b[1] == 12);
	fill();
	MPI_Reduce_scatter(MPI_IN_PLACE, b, counts, MPI_INT, MPI_SUM, W);
	CHECK(b[0] == 30 + 3 * at[rank]);
	fill();
	MPI_Reduce_scatter_block(MPI_IN_PLACE, b, 2, MPI_INT, MPI_SUM, W);
	CHECK(b[1] == 30 + 3 * (2 * rank + 1));
	fill();
	MPI_Gatherv(rank == 1 ? MPI_IN_PLACE : a, rank + 1, MPI_INT, b, counts, at, MPI_INT, 1, W);
	CHECK(rank != 1 || b[5] == 22);
	MPI_Scatterv(a, counts, at, MPI_INT, rank == 0 ? MPI_IN_PLACE : b, rank + 1, MPI_INT, 0, W);
	CHECK(rank == 0 || b[0] == at[rank]);
	fill();
	MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, counts, at, MPI_INT, W);
	CHECK(b[5] == 25);
	fill();
	MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 1, MPI_INT, W);
	CHECK(b[2] == 20 + rank);
	fill();
	MPI_Alltoallv(MPI_IN_PLACE, n, d, MPI_INT, b, n, d, MPI_INT, W);
	CHECK(rank != 0 || b[1] == 20);
	fill();
	MPI_Alltoallw(MPI_IN_PLACE, n, bytes, ints, b, n, bytes, ints, W);
	CHECK(rank != 0 || b[1] == 20);
}

static void nothing(void)
{
	int none[3] = {0, 0, 0};
	MPI_Bcast(b, 0, MPI_INT, 2, W);
	MPI_Allreduce(a, b, 0, MPI_INT, MPI_SUM, W);
	MPI_Gather(a, 0, MPI_INT, b, 0, MPI_INT, 1, W);
	MPI_Scatterv(a, none, none, MPI_INT, b, 0, MPI_INT, 2, W);
	MPI_Allgatherv(a, 0, MPI_INT, b, none, none, MPI_INT, W);
	MPI_Alltoallv(a, none, none, MPI_INT, b, none, none, MPI_INT, W);
}

/* Ranks 0 and 1 are one group, rank 2 is the other. */
static void between(MPI_Comm c)
{
	int from1 = rank == 1 ? MPI_ROOT : rank == 0 ? MPI_PROC_NULL : 1, to2 = rank == 2 ? MPI_ROOT : 0;
	int few[2] = {1, 3}, four[1] = {4}, counts[2] = {1, 2}, three[1] = {3}, at[2] = {0, 1};
	/* 1 and 2 elements to rank 2, twice as many from it */
	int one[1] = {rank + 1}, twice[1] = {2 * (rank + 1)}, twos[2] = {2, 4}, dtwos[2] = {0, 2}, bat[2] = {0, 4}, btwos[2] = {0, 8};
	MPI_Datatype ints[2] = {MPI_INT, MPI_INT};
	int two = rank == 2;
	fill();
	MPI_Barrier(c);
	MPI_Bcast(b, 3, MPI_INT, from1, c);
	CHECK(b[2] == (two ? 12 : 10 * rank + 2));
	MPI_Reduce(a, b, 2, MPI_INT, MPI_SUM, to2, c);
	CHECK(!two || b[1] == 12);
	MPI_Allreduce(a, b, 2, MPI_INT, MPI_SUM, c);
	CHECK(b[1] == (two ? 12 : 21));
	MPI_Reduce_scatter(a, b, two ? four : few, MPI_INT, MPI_SUM, c);
	CHECK(b[0] == (two ? 10 : 20 + rank));
	MPI_Reduce_scatter_block(a, b, two ? 4 : 2, MPI_INT, MPI_SUM, c);
	CHECK(b[1] == (two ? 12 : 21 + 2 * rank));
	MPI_Gather(a, 3, MPI_INT, b, 3, MPI_INT, to2, c);
	CHECK(!two || b[5] == 12);
	MPI_Gatherv(a, rank + 1, MPI_INT, b, counts, at, MPI_INT, to2, c);
	CHECK(!two || b[2] == 11);
	MPI_Scatter(a, 2, MPI_INT, b, 2, MPI_INT, to2, c);
	CHECK(two || b[1] == 21 + 2 * rank);
	MPI_Scatterv(a, counts, at, MPI_INT, b, rank + 1, MPI_INT, to2, c);
	CHECK(two || b[0] == 20 + rank);
	MPI_Allgather(a, 3, MPI_INT, b, 3, MPI_INT, c);
	CHECK(b[2] == (two ? 2 : 22));
	MPI_Allgatherv(a, rank + 1, MPI_INT, b, two ? counts : three, at, MPI_INT, c);
	CHECK(b[2] == (two ? 11 : 22));
	MPI_Alltoall(a, 2, MPI_INT, b, 2, MPI_INT, c);
	CHECK(b[1] == (two ? 1 : 21 + 2 * rank));
	MPI_Alltoallv(a, two ? twos : one, two ? dtwos : at, MPI_INT, b, two ? counts : twice, at, MPI_INT, c);
	CHECK(b[1] == (two ? 10 : 21 + 2 * rank));
	MPI_Alltoallw(a, two ? twos : one, two ? btwos : bat, ints, b, two ? counts : twice, bat, ints, c);
	CHECK(b[1] == (two ? 10 : 21 + 2 * rank));
}

int main(int argc, char **argv)
{
	int four = 4, no = 0;
	MPI_Comm half, inter, none;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(W, &rank);
	in_place();
	nothing();
	MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
	CHECK(MPI_Cart_create(W, 1, &four, &no, 0, &none) != MPI_SUCCESS);
	MPI_Barrier(W);
	MPI_Comm_split(W, rank == 2, 0, &half);
	MPI_Intercomm_create(half, 0, W, rank == 2 ? 0 : 2, 9, &inter);
	between(inter);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&half);
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
