/* Processes spawned by one command and by two, messages to and among them. Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

static int bad;

static void check(int ok, int line)
{
	if (!ok)
		printf("line %d\n", line), bad = 1;
}

/* The exchange of both sides on the communicator between them, and of the spawned ranks among themselves: 5 numbers with tag 9. */
static void meet(MPI_Comm between, int spawned)
{
	int rank, all, five[5] = {3, 5, 9, 0, 7};
	MPI_Comm merged;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (!spawned && rank == 2)
		MPI_Send(five, 3, MPI_INT, 1, 8, between);
	if (spawned && rank == 1)
		MPI_Recv(five, 5, MPI_INT, 2, 8, between, MPI_STATUS_IGNORE);
	if (spawned && rank == 0)
		MPI_Send(five, 5, MPI_INT, 1, 9, MPI_COMM_WORLD);
	if (spawned && rank == 1)
		MPI_Recv(five, 5, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Intercomm_merge(between, spawned, &merged);
	MPI_Comm_rank(merged, &all);
	check(all == (spawned ? 3 + rank : rank), __LINE__);
	MPI_Barrier(merged);
	MPI_Comm_free(&merged);
	MPI_Comm_disconnect(&between);
}

int main(int argc, char **argv)
{
	MPI_Comm parent, between;
	int rank, codes[2] = {3, 3}, counts[2] = {1, 1};
	char *commands[2] = {argv[0], argv[0]};
	MPI_Info infos[2] = {MPI_INFO_NULL, MPI_INFO_NULL};
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL) {
		meet(parent, 1);
	} else {
		MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 1, MPI_COMM_WORLD, &between, codes);
		check(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS, __LINE__);
		meet(between, 0);
		MPI_Comm_spawn_multiple(2, commands, MPI_ARGVS_NULL, counts, infos, 2, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
		meet(between, 0);
	}
	MPI_Finalize();
	if (rank == 0 && !bad && parent == MPI_COMM_NULL)
		printf("ok\n");
	return bad;
}
