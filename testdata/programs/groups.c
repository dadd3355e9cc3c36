/* Groups of MPI_Win_post: none, empty, all ranks, and some in another order. Run with 5 ranks. Prints on rank 0 the
 * class of each error, and how often the handler of MPI_COMM_WORLD was called. With an argument errors are fatal. */
#include <mpi.h>
#include <stdio.h>

static int handled;
static void handle(MPI_Comm *c, int *e, ...)
{
	(void)c;
	(void)e;
	handled++;
}

static void expose(const char *name, int rank, MPI_Group group, MPI_Win w)
{
	int error = MPI_Win_post(group, 0, w), class = 0;
	if (error != MPI_SUCCESS)
		MPI_Error_class(error, &class);
	if (rank == 0)
		printf("%s: %s, handled %d\n", name, class == 0 ? "posted" : class == MPI_ERR_GROUP ? "MPI_ERR_GROUP" : "failed",
			handled);
	if (error != MPI_SUCCESS)
		return;
	MPI_Group all;
	int place = MPI_UNDEFINED;
	MPI_Win_get_group(w, &all);
	if (group != MPI_GROUP_NULL)
		MPI_Group_rank(group, &place);
	if (place != MPI_UNDEFINED) { /* every rank has posted */
		MPI_Win_start(all, 0, w);
		MPI_Win_complete(w);
	}
	MPI_Win_wait(w);
	MPI_Group_free(&all);
}

int main(int argc, char **argv)
{
	int rank, x;
	MPI_Errhandler eh;
	MPI_Group all, some;
	MPI_Win w;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Win_create(&x, sizeof x, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w);
	if (argc == 1) {
		MPI_Comm_create_errhandler(handle, &eh);
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, eh);
		MPI_Win_set_errhandler(w, MPI_ERRORS_RETURN);
	}
	MPI_Comm_group(MPI_COMM_WORLD, &all);
	MPI_Group_incl(all, 4, (int[]){4, 0, 1, 2}, &some);
	expose("null", rank, MPI_GROUP_NULL, w);
	expose("empty", rank, MPI_GROUP_EMPTY, w);
	expose("all", rank, all, w);
	expose("some", rank, some, w);
	MPI_Win_free(&w);
	MPI_Finalize();
	return 0;
}
