/* MPI called from inside MPI: by the copy callback of an attribute and by a reduction operation of our own. Run with 3 ranks;
 * prints ok. */
#include <mpi.h>
#include <stdio.h>

static int copies;

static int copy(MPI_Comm c, int key, void *extra, void *in, void *out, int *flag)
{
	int x = 1, y;
	(void)c, (void)key, (void)extra;
	MPI_Sendrecv(&x, 1, MPI_INT, 0, 1, &y, 1, MPI_INT, 0, 1, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	copies += y;
	*(void **)out = in;
	*flag = 1;
	return MPI_SUCCESS;
}

static void add(void *in, void *inout, int *n, MPI_Datatype *type)
{
	MPI_Datatype twice;
	(void)type;
	MPI_Type_contiguous(2, MPI_INT, &twice);
	MPI_Type_free(&twice);
	for (int i = 0; i < *n; i++)
		((int *)inout)[i] += ((int *)in)[i];
}

int main(int argc, char **argv)
{
	int rank, key, x = 2, sum = 0;
	MPI_Comm dup;
	MPI_Op op;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
	MPI_Comm_set_attr(MPI_COMM_WORLD, key, NULL);
	MPI_Comm_dup(MPI_COMM_WORLD, &dup);
	MPI_Op_create(add, 1, &op);
	MPI_Allreduce(&x, &sum, 1, MPI_INT, op, dup);
	MPI_Op_free(&op);
	MPI_Comm_free(&dup);
	MPI_Finalize();
	if (rank == 0 && copies == 1 && sum == 6)
		puts("ok");
	return 0;
}
