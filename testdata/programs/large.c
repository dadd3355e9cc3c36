/* Calls with counts of type MPI_Count, of which some do not fit an int. Run with 3 ranks under a library with MPI 4; prints ok. */
#include <mpi.h>
#include <stdio.h>

static int bad;
#define CHECK(x) ((x) ? 0 : (bad++, fprintf(stderr, "large.c:%d: %s\n", __LINE__, #x)))
#define W MPI_COMM_WORLD

static int rank, a[9], b[9];

/* Sends to the right and receives from the left. */
static void around(void)
{
	int left = (rank + 2) % 3, right = (rank + 1) % 3;
	MPI_Request r[2];
	MPI_Isend_c(a, 1 + rank, MPI_INT, right, 5, W, &r[0]);
	MPI_Irecv_c(b, 9, MPI_INT, left, 5, W, &r[1]);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	CHECK(b[left] == 11 * left);
	MPI_Sendrecv_c(a, 2, MPI_INT, right, 6, b, 2, MPI_INT, left, 6, W, MPI_STATUS_IGNORE);
	CHECK(b[1] == 10 * left + 1);
	MPI_Sendrecv_replace_c(b, 1, MPI_INT, right, 7, left, 7, W, MPI_STATUS_IGNORE);
	CHECK(b[0] == 10 * right);
	MPI_Isendrecv_c(a, 4, MPI_INT, right, 8, b, 4, MPI_INT, left, 8, W, &r[0]);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	CHECK(b[3] == 10 * left + 3);
	MPI_Send_init_c(a, 5, MPI_INT, right, 9, W, &r[0]);
	MPI_Recv_init_c(b, 5, MPI_INT, left, 9, W, &r[1]);
	MPI_Startall(2, r);
	MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
	CHECK(b[4] == 10 * left + 4);
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
}

static void matched(void)
{
	MPI_Message m;
	MPI_Request r;
	MPI_Datatype nothing;
	MPI_Type_contiguous(0, MPI_INT, &nothing);
	MPI_Type_commit(&nothing);
	if (rank == 0) {
		MPI_Send_c(a, 6, MPI_INT, 1, 3, W);
		MPI_Mprobe(2, 4, W, &m, MPI_STATUS_IGNORE);
		MPI_Imrecv_c(b, 7, MPI_INT, &m, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		CHECK(b[6] == 26);
	} else if (rank == 1) {
		MPI_Mprobe(0, 3, W, &m, MPI_STATUS_IGNORE);
		MPI_Mrecv_c(b, 6, MPI_INT, &m, MPI_STATUS_IGNORE);
		CHECK(b[5] == 5);
		MPI_Send_c(a, 5000000000, nothing, 2, 2, W);
	} else {
		MPI_Ssend_c(a, 7, MPI_INT, 0, 4, W);
		MPI_Recv_c(b, 5000000000, nothing, 1, 2, W, MPI_STATUS_IGNORE);
	}
	MPI_Type_free(&nothing);
}

static void collectives(void)
{
	MPI_Count counts[3] = {1, 2, 3}, sc[3] = {0, 1, 2}, rc[3] = {rank, rank, rank}, two[2] = {1, 3}, from[2] = {3, 1};
	MPI_Aint at[3] = {0, 1, 3}, sd[3] = {0, 0, 1}, rd[3] = {0, rank, 2 * rank}, sdb[3] = {0, 0, 4}, rdb[3] = {0, 4 * rank, 8 * rank};
	MPI_Aint td[2] = {0, 1}, fd[2] = {0, 3};
	MPI_Datatype ints[3] = {MPI_INT, MPI_INT, MPI_INT};
	int three = 3, periodic = 1, left = (rank + 2) % 3;
	MPI_Comm c;
	MPI_Request r;
	MPI_Bcast_c(b, 4, MPI_INT, 2, W);
	MPI_Gatherv_c(a, rank + 1, MPI_INT, b, counts, at, MPI_INT, 0, W);
	CHECK(rank != 0 || b[5] == 22);
	MPI_Reduce_scatter_c(a, b, counts, MPI_INT, MPI_SUM, W);
	CHECK(b[0] == 30 + 3 * at[rank]);
	MPI_Alltoallw_c(a, sc, sdb, ints, b, rc, rdb, ints, W);
	CHECK(rank == 0 || b[rank] == 10 + (rank == 2));
	MPI_Iallgatherv_c(a, rank + 1, MPI_INT, b, counts, at, MPI_INT, W, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(b[5] == 22);
	MPI_Ialltoallv_c(a, sc, sd, MPI_INT, b, rc, rd, MPI_INT, W, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(rank == 0 || b[rank] == 10 + (rank == 2));
	MPI_Reduce_scatter_block_c(a, b, 2, MPI_INT, MPI_SUM, W);
	MPI_Scatter_c(a, 3, MPI_INT, b, 3, MPI_INT, 1, W);
	CHECK(b[0] == 10 + 3 * rank);
	MPI_Allreduce_init_c(a, b, 2, MPI_INT, MPI_MIN, W, MPI_INFO_NULL, &r);
	MPI_Start(&r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(b[1] == 1);
	MPI_Request_free(&r);
	MPI_Cart_create(W, 1, &three, &periodic, 0, &c);
	MPI_Neighbor_alltoallv_c(a, two, td, MPI_INT, b, from, fd, MPI_INT, c);
	CHECK(b[0] == 10 * left + 1);
	MPI_Ineighbor_allgather_c(a, 3, MPI_INT, b, 3, MPI_INT, c, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	CHECK(b[0] == 10 * left);
	MPI_Comm_free(&c);
}

/* More elements than an int can count, on a communicator of one rank, where no data moves. */
static void huge(void)
{
	MPI_Datatype gib;
	MPI_Count five = 5000000000;
	MPI_Aint zero = 0;
	MPI_Type_contiguous(1 << 30, MPI_BYTE, &gib);
	MPI_Type_commit(&gib);
	MPI_Bcast_c(a, 3, gib, 0, MPI_COMM_SELF);
	MPI_Allgatherv_c(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, &five, &zero, MPI_BYTE, MPI_COMM_SELF);
	MPI_Type_free(&gib);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(W, &rank);
	for (int i = 0; i < 9; i++)
		a[i] = 10 * rank + i;
	around();
	matched();
	collectives();
	huge();
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
