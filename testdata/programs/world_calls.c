/* The results of calls on MPI_COMM_WORLD, printed by rank 3 after it has gathered those of the others: they must not
 * change with simulator ranks. Run with 4 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define W MPI_COMM_WORLD

/* Prints a line with the numbers of the four ranks. */
static void show(const char *what, long v)
{
	long all[4] = {0};
	int rank;
	MPI_Comm_rank(W, &rank);
	MPI_Gather(&v, 1, MPI_LONG, all, 1, MPI_LONG, 3, W);
	if (rank == 3)
		printf("%s %ld %ld %ld %ld\n", what, all[0], all[1], all[2], all[3]);
}

/* Shows size, own rank and order of a communicator's members, and frees it. */
static void ranks(const char *what, MPI_Comm *c)
{
	int size = -1, rank = -1, world, first = -1, one = 1, sum;
	if (*c == MPI_COMM_NULL) {
		show(what, -1);
		return;
	}
	MPI_Comm_size(*c, &size);
	MPI_Comm_rank(*c, &rank);
	MPI_Comm_rank(W, &world);
	MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, *c);
	first = world;
	MPI_Bcast(&first, 1, MPI_INT, 0, *c);
	show(what, size * 1000 + rank * 100 + first * 10 + (sum == size));
	MPI_Comm_free(c);
}

static void made(int rank, int size)
{
	MPI_Comm c, d, inter;
	MPI_Group g, h, e;
	MPI_Info info;
	int two[2] = {3, 1}, range[1][3] = {{3, 0, -1}}, result, n, dims[2] = {2, 2}, periods[2] = {1, 0}, at[2] = {1, 1}, r, s, flag;
	int index[4] = {1, 3, 5, 6}, edges[6] = {1, 0, 2, 1, 3, 2}, nodes, m, three[3] = {-1, -1, -1}, next[1] = {(rank + 1) % size}, prev[1] = {(rank + 3) % size}, degree[1] = {1};

	show("size", size);
	MPI_Comm_group(W, &g);
	MPI_Group_size(g, &n);
	MPI_Group_rank(g, &r);
	show("group", n * 10 + r);
	MPI_Group_incl(g, 2, two, &h);
	MPI_Comm_create(W, h, &c);
	ranks("create", &c);
	if (rank % 2 == 1) {
		MPI_Comm_create_group(W, h, 9, &c);
		MPI_Comm_compare(W, c, &result);
	} else {
		c = MPI_COMM_NULL;
		result = -9;
	}
	show("create_group", result);
	if (c != MPI_COMM_NULL)
		MPI_Comm_free(&c);
	MPI_Group_range_incl(g, 1, range, &e);
	MPI_Group_translate_ranks(g, 2, two, e, dims);
	show("translate", dims[0] * 10 + dims[1]);
	dims[0] = dims[1] = 2;
	MPI_Comm_create(W, e, &c);
	MPI_Comm_compare(W, c, &result);
	show("similar", result == MPI_SIMILAR);
	ranks("reversed", &c);
	MPI_Group_free(&e);
	MPI_Group_free(&h);
	MPI_Group_free(&g);
	MPI_Comm_compare(W, W, &result);
	show("identical", result == MPI_IDENT);
	MPI_Comm_dup(W, &c);
	MPI_Comm_compare(c, W, &result);
	show("congruent", result == MPI_CONGRUENT);
	ranks("dup", &c);
	MPI_Comm_get_info(W, &info);
	MPI_Info_set(info, "commq", "5");
	MPI_Comm_set_info(W, info);
	MPI_Comm_dup_with_info(W, info, &c);
	ranks("dup_with_info", &c);
	MPI_Info_free(&info);
	MPI_Request q;
	MPI_Comm_idup(W, &c, &q);
	MPI_Wait(&q, MPI_STATUS_IGNORE);
	ranks("idup", &c);
	MPI_Comm_split(W, rank / 3, -rank, &c);
	ranks("split", &c);
	MPI_Comm_split_type(W, MPI_COMM_TYPE_SHARED, 5 - rank, MPI_INFO_NULL, &c);
	ranks("split_type", &c);
	MPI_Comm_test_inter(W, &flag);
	MPI_Topo_test(W, &n);
	show("plain", flag * 10 + (n == MPI_UNDEFINED));
	MPI_Cart_map(W, 2, dims, periods, &n);
	show("cart_map", n);
	MPI_Graph_map(W, 4, index, edges, &n);
	show("graph_map", n);
	MPI_Cart_create(W, 2, dims, periods, 0, &c);
	MPI_Cart_rank(c, at, &n);
	MPI_Cart_shift(c, 0, 1, &r, &s);
	show("cart", n * 100 + r * 10 + s);
	MPI_Cart_sub(c, periods, &d);
	ranks("cart_sub", &d);
	ranks("cart", &c);
	MPI_Graph_create(W, 4, index, edges, 0, &c);
	MPI_Graphdims_get(c, &nodes, &n);
	MPI_Graph_neighbors_count(c, rank, &m);
	MPI_Graph_neighbors(c, rank, m, three);
	show("graph", nodes * 1000 + n * 100 + m * 10 + three[0]);
	ranks("graph", &c);
	MPI_Dist_graph_create_adjacent(W, 1, prev, MPI_UNWEIGHTED, 1, next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c);
	MPI_Dist_graph_neighbors_count(c, &n, &m, &flag);
	show("adjacent", n * 100 + m * 10 + flag);
	ranks("adjacent", &c);
	MPI_Dist_graph_create(W, 1, &rank, degree, next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &c);
	ranks("dist_graph", &c);
	MPI_Comm_split(W, rank % 2, rank, &c);
	MPI_Intercomm_create(c, 0, W, 1 - rank % 2, 7, &inter);
	MPI_Comm_remote_size(inter, &n);
	MPI_Comm_remote_group(inter, &g);
	MPI_Group_size(g, &m);
	MPI_Group_free(&g);
	show("inter", n * 10 + m);
	MPI_Intercomm_merge(inter, rank % 2, &d);
	ranks("merged", &d);
	MPI_Comm_free(&inter);
	MPI_Comm_free(&c);
	MPI_Comm_get_parent(&c);
	show("parent", c == MPI_COMM_NULL);
	show("f2c", MPI_Comm_f2c(MPI_Comm_c2f(W)) == W && MPI_Comm_f2c(MPI_Comm_c2f(MPI_COMM_SELF)) == MPI_COMM_SELF);
}

/* Makes every kind of call that transfers data. */
static void moved(int rank, int size)
{
	int a[8], b[8] = {0}, i, n, counts[4] = {1, 1, 1, 1}, at[4] = {0, 1, 2, 3}, bytes[4] = {0, 4, 8, 12}, flag = 0;
	char buffer[256];
	MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
	MPI_Request q[2];
	MPI_Status st;
	MPI_Message msg;
	MPI_Win w;
	MPI_File f;
	int *mine, position = 0;
	for (i = 0; i < 8; i++)
		a[i] = 10 * rank + i;
#define EACH(what, call) call; for (n = 0, i = 0; i < 8; i++) n = n * 7 + b[i]; show(what, n); memset(b, 0, sizeof b)
	EACH("bcast", b[0] = rank; MPI_Bcast(b, 1, MPI_INT, 3, W));
	EACH("reduce", MPI_Reduce(a, b, 2, MPI_INT, MPI_MAX, 3, W));
	EACH("allreduce", MPI_Allreduce(a, b, 2, MPI_INT, MPI_SUM, W));
	EACH("scan", MPI_Scan(a, b, 2, MPI_INT, MPI_SUM, W));
	EACH("exscan", MPI_Exscan(a, b, 2, MPI_INT, MPI_SUM, W); if (rank == 0) b[0] = b[1] = 0);
	EACH("gather", MPI_Gather(a, 1, MPI_INT, b, 1, MPI_INT, 3, W));
	EACH("gatherv", MPI_Gatherv(a, 1, MPI_INT, b, counts, at, MPI_INT, 3, W));
	EACH("scatter", MPI_Scatter(a, 1, MPI_INT, b, 1, MPI_INT, 3, W));
	EACH("scatterv", MPI_Scatterv(a, counts, at, MPI_INT, b, 1, MPI_INT, 3, W));
	EACH("allgather", MPI_Allgather(a, 1, MPI_INT, b, 1, MPI_INT, W));
	EACH("allgatherv", MPI_Allgatherv(a, 1, MPI_INT, b, counts, at, MPI_INT, W));
	EACH("alltoall", MPI_Alltoall(a, 1, MPI_INT, b, 1, MPI_INT, W));
	EACH("alltoallv", MPI_Alltoallv(a, counts, at, MPI_INT, b, counts, at, MPI_INT, W));
	EACH("alltoallw", MPI_Alltoallw(a, counts, bytes, types, b, counts, bytes, types, W));
	EACH("reduce_scatter", MPI_Reduce_scatter(a, b, counts, MPI_INT, MPI_SUM, W));
	EACH("reduce_scatter_block", MPI_Reduce_scatter_block(a, b, 1, MPI_INT, MPI_SUM, W));
	EACH("ialltoallw", MPI_Ialltoallw(a, counts, bytes, types, b, counts, bytes, types, W, q); MPI_Wait(q, MPI_STATUS_IGNORE));
	EACH("ibarrier", MPI_Ibarrier(W, q); MPI_Wait(q, MPI_STATUS_IGNORE));
	EACH("iallreduce", MPI_Iallreduce(a, b, 2, MPI_INT, MPI_SUM, W, q); MPI_Wait(q, MPI_STATUS_IGNORE));
	EACH("sendrecv", MPI_Sendrecv(a, 3, MPI_INT, (rank + 1) % size, 9, b, 8, MPI_INT, (rank + 3) % size, 9, W, &st));
	EACH("replace", b[0] = rank; MPI_Sendrecv_replace(b, 1, MPI_INT, (rank + 1) % size, 9, (rank + 3) % size, 9, W, &st));
	EACH("isend", MPI_Irecv(b, 8, MPI_INT, MPI_ANY_SOURCE, 5, W, q); MPI_Issend(a, 2, MPI_INT, 3 - rank, 5, W, q + 1); MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
	MPI_Isend(a, 3, MPI_INT, 3 - rank, 5, W, q);
	MPI_Probe(3 - rank, 5, W, &st);
	while (!flag)
		MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, W, &flag, &st);
	MPI_Get_count(&st, MPI_INT, &n);
	MPI_Mprobe(st.MPI_SOURCE, st.MPI_TAG, W, &msg, &st);
	EACH("mrecv", MPI_Mrecv(b, n, MPI_INT, &msg, &st); MPI_Wait(q, MPI_STATUS_IGNORE));
	MPI_Send_init(a, 2, MPI_INT, 3 - rank, 5, W, q);
	MPI_Recv_init(b, 2, MPI_INT, 3 - rank, 5, W, q + 1);
	EACH("persistent", MPI_Startall(2, q); MPI_Waitall(2, q, MPI_STATUSES_IGNORE));
	MPI_Request_free(q);
	MPI_Request_free(q + 1);
	MPI_Pack_size(3, MPI_INT, W, &n);
	show("pack_size", n);
	MPI_Pack(a, 3, MPI_INT, buffer, sizeof buffer, &position, W);
	n = position;
	position = 0;
	EACH("unpack", MPI_Unpack(buffer, n, &position, b, 3, MPI_INT, W));

	MPI_Win_allocate(4 * sizeof(int), sizeof(int), MPI_INFO_NULL, W, &mine, &w);
	memset(mine, 0, 4 * sizeof(int));
	MPI_Win_fence(0, w);
	MPI_Put(a, 1, MPI_INT, (rank + 1) % size, 2, 1, MPI_INT, w);
	MPI_Accumulate(a + 1, 1, MPI_INT, 3, 1, 1, MPI_INT, MPI_SUM, w);
	MPI_Win_fence(0, w);
	EACH("window", memcpy(b, mine, 4 * sizeof(int)));
	MPI_Win_free(&w);

	sprintf(buffer, "%s/commq-world-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getppid());
	MPI_Bcast(buffer, sizeof buffer, MPI_CHAR, 0, W);
	MPI_File_open(W, buffer, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &f);
	MPI_File_write_at_all(f, rank * (int)sizeof(int), a, 1, MPI_INT, &st);
	MPI_File_sync(f);
	MPI_Barrier(W);
	EACH("file", MPI_File_read_at_all(f, (3 - rank) * (int)sizeof(int), b, 1, MPI_INT, &st));
	MPI_File_close(&f);
}

static void named(int rank)
{
	char name[MPI_MAX_OBJECT_NAME] = "";
	MPI_Comm c;
	int n;
	MPI_Comm_get_name(W, name, &n);
	show("name", n + (strcmp(name, "MPI_COMM_WORLD") == 0 ? 100 : 0));
	MPI_Comm_set_name(W, "all of us");
	MPI_Comm_get_name(W, name, &n);
	show("renamed", n + (strcmp(name, "all of us") == 0 ? 100 : 0));
	MPI_Comm_set_name(W, "MPI_COMM_WORLD");
	MPI_Comm_split(W, 0, rank, &c);
	MPI_Comm_get_name(c, name, &n);
	show("unnamed", n);
	MPI_Comm_free(&c);
}

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(W, &rank);
	MPI_Comm_size(W, &size);
	made(rank, size);
	moved(rank, size);
	named(rank);
	MPI_Finalize();
	return 0;
}
