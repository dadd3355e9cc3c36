/* Neighbourhood collectives, blocking and nonblocking, on grids, a graph and a directed graph. Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

static int bad;
#define CHECK(x) ((x) ? 0 : (bad++, fprintf(stderr, "neighbors.c:%d: %s\n", __LINE__, #x)))

static void done(MPI_Request *r)
{
	MPI_Wait(r, MPI_STATUS_IGNORE);
}

/* A row of three; in the second dimension each rank is its own neighbour twice. */
static void row(int rank, int *a, int *b)
{
	int extents[2] = {3, 1}, periods[2] = {0, 1};
	/* left, right, itself, itself; the missing neighbours at the row's ends also have counts */
	int sc[4] = {1, 2, 3, 3}, sd[4] = {0, 1, 3, 6}, rc[4] = {2, 1, 3, 3}, rd[4] = {0, 2, 3, 6};
	MPI_Comm c;
	MPI_Cart_create(MPI_COMM_WORLD, 2, extents, periods, 0, &c);
	MPI_Neighbor_allgather(a, 2, MPI_INT, b, 2, MPI_INT, c);
	CHECK(rank == 0 || b[1] == 10 * (rank - 1) + 1);
	CHECK(rank == 2 || b[3] == 10 * (rank + 1) + 1);
	CHECK(b[5] == 10 * rank + 1);
	MPI_Neighbor_alltoall(a, 1, MPI_INT, b, 1, MPI_INT, c);
	CHECK(rank == 0 || b[0] == 10 * (rank - 1) + 1);
	MPI_Neighbor_alltoallv(a, sc, sd, MPI_INT, b, rc, rd, MPI_INT, c);
	CHECK(rank == 0 || b[1] == 10 * (rank - 1) + 2);
	CHECK(rank == 2 || b[2] == 10 * (rank + 1));
	MPI_Comm_free(&c);
}

/* A ring, and a duplicate of it. */
static void ring(int rank, int *a, int *b)
{
	int three = 3, periodic = 1;
	int at[2] = {0, 1}, none[2] = {0, 0}, rc[2] = {3, 1}, rd[2] = {0, 3}, sc[2] = {1, 3};
	int gathered[2] = {1 + (rank + 2) % 3, 1 + (rank + 1) % 3}, ga[2] = {0, 3};
	MPI_Comm c, d;
	MPI_Request r;
	MPI_Cart_create(MPI_COMM_WORLD, 1, &three, &periodic, 0, &c);
	MPI_Ineighbor_allgather(a, 5, MPI_INT, b, 5, MPI_INT, c, &r), done(&r);
	CHECK(b[0] == 10 * ((rank + 2) % 3) && b[9] == 10 * ((rank + 1) % 3) + 4);
	MPI_Ineighbor_allgatherv(a, 1 + rank, MPI_INT, b, gathered, ga, MPI_INT, c, &r), done(&r);
	CHECK(b[0] == 10 * ((rank + 2) % 3) && b[3] == 10 * ((rank + 1) % 3));
	MPI_Comm_dup(c, &d);
	MPI_Ineighbor_alltoall(a, 4, MPI_INT, b, 4, MPI_INT, d, &r), done(&r);
	CHECK(b[0] == 10 * ((rank + 2) % 3) + 4);
	MPI_Ineighbor_alltoallv(a, sc, at, MPI_INT, b, rc, rd, MPI_INT, c, &r), done(&r);
	CHECK(b[0] == 10 * ((rank + 2) % 3) + 1 && b[3] == 10 * ((rank + 1) % 3));
	MPI_Neighbor_alltoallv(a, none, at, MPI_INT, b, none, at, MPI_INT, c);
	MPI_Comm_free(&d);
	MPI_Comm_free(&c);
}

/* Ranks 1 and 2 around rank 0. */
static void star(int rank, int *a, int *b)
{
	int index[3] = {2, 3, 4}, edges[4] = {1, 2, 0, 0};
	int from0[2] = {2, 3}, at[2] = {0, 2}, from1[1] = {1};
	MPI_Comm c;
	MPI_Graph_create(MPI_COMM_WORLD, 3, index, edges, 0, &c);
	MPI_Neighbor_allgatherv(a, 1 + rank, MPI_INT, b, rank == 0 ? from0 : from1, at, MPI_INT, c);
	CHECK(rank != 0 || b[4] == 22);
	CHECK(rank == 0 || b[0] == 0);
	MPI_Neighbor_alltoall(a, 1, MPI_INT, b, 1, MPI_INT, c);
	CHECK(rank == 0 || b[0] == rank - 1);
	MPI_Comm_free(&c);
}

/* 0 -> 2 once, 1 -> 0 twice. */
static void directed(int rank, int *a, int *b)
{
	int sources[3][2] = {{1, 1}, {0, 0}, {0, 0}}, in[3] = {2, 0, 1};
	int destinations[3][2] = {{2, 0}, {0, 0}, {0, 0}}, out[3] = {1, 2, 0};
	int sc[3][2] = {{4, 0}, {1, 2}, {0, 0}}, rc[3][2] = {{1, 2}, {0, 0}, {4, 0}}, at[2] = {0, 4};
	MPI_Comm c;
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in[rank], sources[rank], MPI_UNWEIGHTED, out[rank], destinations[rank],
		MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c);
	MPI_Neighbor_allgather(a, 3, MPI_INT, b, 3, MPI_INT, c);
	CHECK(rank != 0 || b[5] == 12);
	CHECK(rank != 2 || b[2] == 2);
	MPI_Neighbor_alltoallv(a, sc[rank], at, MPI_INT, b, rc[rank], at, MPI_INT, c);
	CHECK(rank != 0 || (b[0] == 10 && b[4] == 14));
	CHECK(rank != 2 || b[3] == 3);
	MPI_Comm_free(&c);
}

/* Each sends twice to the next rank. On other topologies not every library can do an alltoallw in every language. */
static void twice(int rank, int *a, int *b)
{
	int left = (rank + 2) % 3, right = (rank + 1) % 3, sources[2] = {left, left}, destinations[2] = {right, right}, counts[2] = {1, 2};
	MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT};
	MPI_Aint bytes[2] = {0, 32};
	MPI_Request r;
	MPI_Comm c;
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, sources, MPI_UNWEIGHTED, 2, destinations, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c);
	b[1] = b[9] = -1;
	MPI_Neighbor_alltoallw(a, counts, bytes, types, b, counts, bytes, types, c);
	CHECK(b[1] == 10 * left + 1 && b[9] == 10 * left + 9);
	b[9] = -1;
	MPI_Ineighbor_alltoallw(a, counts, bytes, types, b, counts, bytes, types, c, &r), done(&r);
	CHECK(b[9] == 10 * left + 9);
	MPI_Comm_free(&c);
}

/* 0 and 1 are neighbours, then only 0 -> 1; 2 has none. */
static void alone(int rank, int *a, int *b)
{
	int index[3] = {1, 2, 2}, edges[2] = {1, 0}, other = rank < 2 ? 1 - rank : 0, at = 0, count = 3;
	MPI_Request r;
	MPI_Comm c;
	MPI_Graph_create(MPI_COMM_WORLD, 3, index, edges, 0, &c);
	b[0] = -1;
	MPI_Neighbor_allgather(a, 2, MPI_INT, b, 2, MPI_INT, c);
	CHECK(b[0] == (rank < 2 ? 10 * other : -1));
	MPI_Ineighbor_alltoall(a, 1, MPI_INT, b, 1, MPI_INT, c, &r), done(&r);
	MPI_Comm_free(&c);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank == 1, &other, MPI_UNWEIGHTED, rank == 0, &other, MPI_UNWEIGHTED,
		MPI_INFO_NULL, 0, &c);
	MPI_Neighbor_allgatherv(a, 3, MPI_INT, b, &count, &at, MPI_INT, c);
	MPI_Neighbor_alltoall(a, 4, MPI_INT, b, 4, MPI_INT, c);
	CHECK(rank != 1 || b[3] == 3);
	MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
	int rank, a[24], b[24];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 24; i++)
		a[i] = 10 * rank + i, b[i] = -1;
	row(rank, a, b);
	ring(rank, a, b);
	star(rank, a, b);
	directed(rank, a, b);
	twice(rank, a, b);
	alone(rank, a, b);
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
