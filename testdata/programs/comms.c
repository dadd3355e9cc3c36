/* Constructors of communicators, and messages and collectives on the results. Run with 5 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

static int bad;
#define CHECK(x) ((x) ? 0 : (bad++, fprintf(stderr, "comms.c:%d: %s\n", __LINE__, #x)))

/* A message from rank 0 to rank 1 of a communicator. */
static void pass(MPI_Comm c, int tag)
{
	int rank, x = tag;
	MPI_Comm_rank(c, &rank);
	if (rank == 0)
		MPI_Send(&x, 1, MPI_INT, 1, tag, c);
	else if (rank == 1)
		MPI_Recv(&x, 1, MPI_INT, 0, tag, c, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	int rank, x = 1, y, sum = 0;
	MPI_Comm dup, odd, none, cart, row, made, group_made, inter, merged, graph, dist, idup;
	MPI_Group world, some;
	MPI_Request r;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);

	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Comm_set_name(dup, "ours");
	MPI_Barrier(dup);
	/* odd and even ranks, in reverse order */
	MPI_Comm_split(dup, rank % 2, -rank, &odd);
	pass(odd, 7);
	MPI_Comm_split(odd, rank < 2 ? MPI_UNDEFINED : 0, 0, &none);
	CHECK((none == MPI_COMM_NULL) == (rank < 2));
	if (none != MPI_COMM_NULL)
		MPI_Comm_free(&none);

	/* 2 x 2 of the five */
	MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){2, 2}, (int[]){1, 0}, 0, &cart);
	if (cart != MPI_COMM_NULL) {
		MPI_Cart_sub(cart, (int[]){0, 1}, &row);
		pass(row, 8);
		MPI_Comm_free(&row);
		MPI_Comm_free(&cart);
	}

	/* 4, 2, 0 by group: all call, then only the members call */
	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 3, (int[]){4, 2, 0}, &some);
	MPI_Comm_create(MPI_COMM_WORLD, some, &made);
	CHECK((made == MPI_COMM_NULL) == (rank % 2 == 1));
	if (made != MPI_COMM_NULL) {
		pass(made, 9);
		MPI_Comm_create_group(MPI_COMM_WORLD, some, 33, &group_made);
		MPI_Allreduce(&x, &sum, 1, MPI_INT, MPI_SUM, group_made);
		CHECK(sum == 3);
		MPI_Comm_free(&group_made);
		MPI_Comm_free(&made);
	}
	MPI_Group_free(&some);
	MPI_Group_free(&world);

	/* even (leader 4) and odd (leader 3) ranks meet; each leader is rank 0 of its half */
	MPI_Intercomm_create(odd, 0, MPI_COMM_WORLD, rank % 2 ? 4 : 3, 44, &inter);
	x = rank;
	if (rank % 2 == 0)
		MPI_Bcast(&x, 1, MPI_INT, rank == 4 ? MPI_ROOT : MPI_PROC_NULL, inter);
	else
		MPI_Bcast(&x, 1, MPI_INT, 0, inter);
	CHECK(x == (rank % 2 ? 4 : rank));
	if (rank == 4)
		MPI_Send(&x, 1, MPI_INT, 1, 10, inter);
	else if (rank == 1)
		MPI_Recv(&y, 1, MPI_INT, 0, 10, inter, MPI_STATUS_IGNORE);
	MPI_Allgather(&rank, 1, MPI_INT, (int[3]){0}, 1, MPI_INT, inter);
	MPI_Intercomm_merge(inter, rank % 2, &merged);
	pass(merged, 11);
	MPI_Comm_free(&merged);
	MPI_Comm_free(&inter);

	/* a path 0 - 1 - 2 - 3 - 4, and a ring */
	MPI_Graph_create(MPI_COMM_WORLD, 5, (int[]){1, 3, 5, 7, 8}, (int[]){1, 0, 2, 1, 3, 2, 4, 3}, 0, &graph);
	MPI_Comm_free(&graph);
	MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, (int[]){(rank + 4) % 5}, MPI_UNWEIGHTED, 1, (int[]){(rank + 1) % 5}, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &dist);
	MPI_Comm_free(&dist);

	MPI_Comm_idup(odd, &idup, &r);
	MPI_Wait(&r, MPI_STATUS_IGNORE);
	MPI_Barrier(idup);
	MPI_Comm_free(&idup);
	MPI_Comm_free(&odd);
	MPI_Comm_free(&dup);
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
