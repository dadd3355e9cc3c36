/* Requests that fail while the program ignores their statuses: the results of the calls, the arguments of the error
 * handler, which requests are null. Run with 3 ranks; prints what it sees. */
#include <mpi.h>
#include <stdio.h>

static int handled;
static void handle(MPI_Comm *c, int *e, ...)
{
	(void)c;
	MPI_Error_class(*e, &handled);
}

int main(int argc, char **argv)
{
	int a[3] = {5, 4, 3}, b[4], n, idx[2], flag, rank;
	MPI_Request r[2];
	MPI_Errhandler eh;
	MPI_Init(&argc, &argv);
	MPI_Comm_create_errhandler(handle, &eh);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, eh);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 6; i++) {
		int e = 0;
		if (rank != 0) {
			MPI_Barrier(MPI_COMM_WORLD);
			if (rank == 1)
				MPI_Send(a, 3, MPI_INT, 0, 9, MPI_COMM_WORLD);
			if (rank == 1)
				MPI_Send(a, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
			MPI_Barrier(MPI_COMM_WORLD);
			continue;
		}
		MPI_Irecv(b, 1, MPI_INT, 1, 9, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(b + 3, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, &r[1]);
		MPI_Barrier(MPI_COMM_WORLD);
		MPI_Barrier(MPI_COMM_WORLD);
		handled = 0;
		flag = n = 0;
		switch (i) {
		case 0:
			e = MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
			break;
		case 1:
			do
				e = MPI_Testall(2, r, &flag, MPI_STATUSES_IGNORE);
			while (!e && !flag);
			break;
		case 2:
			e = MPI_Waitsome(2, r, &n, idx, MPI_STATUSES_IGNORE);
			break;
		case 3:
			do
				e = MPI_Testsome(2, r, &n, idx, MPI_STATUSES_IGNORE);
			while (!e && !n);
			break;
		case 4:
			e = MPI_Waitany(2, r, idx, MPI_STATUS_IGNORE);
			break;
		case 5:
			e = MPI_Wait(r, MPI_STATUS_IGNORE);
			break;
		}
		MPI_Error_class(e, &e);
		printf("%d: class %d, handler %d, null %d %d\n", i, e, handled, r[0] == MPI_REQUEST_NULL, r[1] == MPI_REQUEST_NULL);
	}
	MPI_Errhandler_free(&eh);
	MPI_Finalize();
	return 0;
}
