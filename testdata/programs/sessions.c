/* Communicators from sessions alone (with WORLD: and MPI_Init behind them). Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, x = 0, bad, odd[1] = {1}, ends[2] = {2, 0};
	MPI_Session s, second;
	MPI_Group all, some, other;
	MPI_Comm world, part, between;
	MPI_Datatype column;
	int grid[5][3] = {{0}};
	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &s);
	MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &second);
	MPI_Group_from_session_pset(s, "mpi://WORLD", &all);
	MPI_Group_rank(all, &rank);
	MPI_Group_incl(all, 2, ends, &some);
	MPI_Group_incl(all, 1, odd, &other);
	MPI_Comm_create_from_group(all, "all", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &world);
	MPI_Type_vector(5, 1, 3, MPI_INT, &column);
	MPI_Type_commit(&column);
	grid[4][0] = rank;
	if (rank == 0)
		MPI_Send(grid, 1, column, 2, 9, world);
	else if (rank == 2)
		MPI_Recv(grid, 1, column, 0, 9, world, MPI_STATUS_IGNORE);
	bad = grid[4][0] != (rank == 1);
	MPI_Allreduce(&rank, &x, 1, MPI_INT, MPI_SUM, world);
	bad |= x != 3;
	if (rank != 1) { /* rank 2 is its first rank */
		MPI_Comm_create_from_group(some, "ends", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &part);
		x = rank;
		MPI_Bcast(&x, 1, MPI_INT, 0, part);
		bad |= x != 2;
		MPI_Comm_free(&part);
	}
	MPI_Intercomm_create_from_groups(rank == 1 ? other : some, 0, rank == 1 ? some : other, 0, "between", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &between);
	if (rank == 1)
		MPI_Send(&x, 0, MPI_INT, 1, 5, between); /* to 0 */
	else if (rank == 0)
		MPI_Recv(&x, 1, MPI_INT, 0, 5, between, MPI_STATUS_IGNORE);
	MPI_Barrier(between);
	MPI_Comm_free(&between);
	MPI_Type_free(&column);
	MPI_Comm_free(&world);
	MPI_Group_free(&all);
	MPI_Group_free(&some);
	MPI_Group_free(&other);
	MPI_Session_finalize(&s);
#if defined(WORLD)
	MPI_Init(&argc, &argv);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
#endif
	MPI_Session_finalize(&second);
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad;
}
