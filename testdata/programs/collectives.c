/* All collectives, blocking and nonblocking, with MPI_IN_PLACE where it is allowed. Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

static int bad;
#define CHECK(x) ((x) ? 0 : (bad++, fprintf(stderr, "collectives.c:%d: %s\n", __LINE__, #x)))
#define W MPI_COMM_WORLD

static void done(MPI_Request *r)
{
	MPI_Wait(r, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	int rank, size, a[9], b[9];
	MPI_Request r;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(W, &rank);
	MPI_Comm_size(W, &size);
	for (int i = 0; i < 9; i++)
		a[i] = 10 * rank + i, b[i] = -1;
	/* rank i contributes i + 1 elements, at offset i */
	int counts[3] = {1, 2, 3}, at[3] = {0, 1, 3};
	/* to rank i: i elements; from rank i: rank elements */
	int sc[3] = {0, 1, 2}, sd[3] = {0, 0, 1}, rc[3] = {rank, rank, rank}, rd[3] = {0, rank, 2 * rank};
	MPI_Datatype ints[3] = {MPI_INT, MPI_INT, MPI_INT};
	int sdb[3] = {0, 0, 4}, rdb[3] = {0, 4 * rank, 8 * rank};

	MPI_Barrier(W);
	MPI_Bcast(b, rank == 2 ? 4 : 4, MPI_INT, 2, W);
	MPI_Reduce(a, b, 3, MPI_INT, MPI_SUM, 1, W);
	CHECK(rank != 1 || b[1] == 33);
	MPI_Reduce(rank == 0 ? MPI_IN_PLACE : b, b, 1, MPI_INT, MPI_MAX, 0, W);
	MPI_Allreduce(a, b, 2, MPI_INT, MPI_MIN, W);
	CHECK(b[0] == 0 && b[1] == 1);
	b[0] = rank + 1;
	MPI_Allreduce(MPI_IN_PLACE, b, 1, MPI_INT, MPI_PROD, W);
	CHECK(b[0] == 6);
	MPI_Scan(a, b, 1, MPI_INT, MPI_SUM, W);
	MPI_Exscan(a, b, 1, MPI_INT, MPI_SUM, W);
	MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, W);
	CHECK(b[0] == 30 + 3 * at[rank]);
	MPI_Reduce_scatter_block(a, b, 2, MPI_INT, MPI_SUM, W);
	CHECK(b[1] == 30 + 3 * (2 * rank + 1));
	MPI_Gather(a, 2, MPI_INT, b, 2, MPI_INT, 2, W);
	CHECK(rank != 2 || b[4] == 20);
	MPI_Gather(rank == 1 ? MPI_IN_PLACE : a, 1, MPI_INT, b, 1, MPI_INT, 1, W);
	MPI_Gatherv(a, rank + 1, MPI_INT, b, counts, at, MPI_INT, 0, W);
	CHECK(rank != 0 || b[5] == 22);
	MPI_Scatter(a, 3, MPI_INT, b, 3, MPI_INT, 1, W);
	CHECK(b[0] == 10 + 3 * rank);
	MPI_Scatter(a, 1, MPI_INT, rank == 0 ? MPI_IN_PLACE : b, 1, MPI_INT, 0, W);
	MPI_Scatterv(a, counts, at, MPI_INT, b, rank + 1, MPI_INT, 2, W);
	CHECK(b[0] == 20 + at[rank]);
	MPI_Allgather(a, 1, MPI_INT, b, 1, MPI_INT, W);
	CHECK(b[2] == 20);
	MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, b, 1, MPI_INT, W);
	MPI_Allgatherv(a, rank + 1, MPI_INT, b, counts, at, MPI_INT, W);
	CHECK(b[5] == 22);
	MPI_Alltoall(a, 1, MPI_INT, b, 1, MPI_INT, W);
	CHECK(b[2] == 20 + rank);
	MPI_Alltoallv(a, sc, sd, MPI_INT, b, rc, rd, MPI_INT, W);
	CHECK(rank == 0 || b[rank] == 10 + (rank == 2));
	MPI_Alltoallw(a, sc, sdb, ints, b, rc, rdb, ints, W);
	CHECK(rank == 0 || b[rank] == 10 + (rank == 2));

	MPI_Ibarrier(W, &r), done(&r);
	MPI_Ibcast(b, 4, MPI_INT, 2, W, &r), done(&r);
	MPI_Ireduce(a, b, 3, MPI_INT, MPI_BAND, 1, W, &r), done(&r);
	MPI_Iallreduce(a, b, 2, MPI_INT, MPI_BOR, W, &r), done(&r);
	MPI_Iscan(a, b, 1, MPI_INT, MPI_BXOR, W, &r), done(&r);
	MPI_Iexscan(a, b, 1, MPI_INT, MPI_PROD, W, &r), done(&r);
	MPI_Ireduce_scatter(a, b, counts, MPI_INT, MPI_SUM, W, &r), done(&r);
	MPI_Ireduce_scatter_block(a, b, 2, MPI_INT, MPI_SUM, W, &r), done(&r);
	MPI_Igather(a, 2, MPI_INT, b, 2, MPI_INT, 2, W, &r), done(&r);
	MPI_Igatherv(a, rank + 1, MPI_INT, b, counts, at, MPI_INT, 0, W, &r), done(&r);
	MPI_Iscatter(a, 3, MPI_INT, b, 3, MPI_INT, 1, W, &r), done(&r);
	MPI_Iscatterv(a, counts, at, MPI_INT, b, rank + 1, MPI_INT, 2, W, &r), done(&r);
	MPI_Iallgather(a, 1, MPI_INT, b, 1, MPI_INT, W, &r), done(&r);
	MPI_Iallgatherv(a, rank + 1, MPI_INT, b, counts, at, MPI_INT, W, &r), done(&r);
	MPI_Ialltoall(a, 1, MPI_INT, b, 1, MPI_INT, W, &r), done(&r);
	MPI_Ialltoallv(a, sc, sd, MPI_INT, b, rc, rd, MPI_INT, W, &r), done(&r);
	MPI_Ialltoallw(a, sc, sdb, ints, b, rc, rdb, ints, W, &r), done(&r);
	CHECK(rank == 0 || b[rank] == 10 + (rank == 2));
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
