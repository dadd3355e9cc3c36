/* Jumps out of MPI calls from an error handler, by longjmp or compiled as C++ by an exception, then goes on; and a call from inside another, which is not one of
 * the program's. Run with 1 rank; prints ok. */
#include <mpi.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static jmp_buf back;
static int thrown, caught;

static void handler(MPI_Comm *comm, int *code, ...)
{
	int size;
	MPI_Request none = MPI_REQUEST_NULL;
	MPI_Comm_size(MPI_COMM_SELF, &size);
	MPI_Wait(&none, MPI_STATUS_IGNORE); /* inside the failing call */
	thrown++;
#ifdef __cplusplus
	throw *code;
#else
	longjmp(back, 1);
#endif
}

static void deep(int levels)
{
	volatile char room[4096];
	memset((char *)room, levels, sizeof room);
	if (levels > 0)
		deep(levels - 1);
	else
		MPI_Barrier(MPI_COMM_SELF);
}

int main(int argc, char **argv)
{
	int x = 0, y = 0;
	MPI_Errhandler h;
	MPI_Init(&argc, &argv);
	MPI_Comm_create_errhandler(handler, &h);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, h);
	MPI_Barrier(MPI_COMM_SELF);
	for (volatile int i = 0; i < 3; i++) {
#ifdef __cplusplus
		try {
			MPI_Send(&x, 1, MPI_INT, 99, 9, MPI_COMM_WORLD);
		} catch (int) {
			caught++;
		}
#else
		if (setjmp(back) == 0)
			MPI_Send(&x, 1, MPI_INT, 99, 9, MPI_COMM_WORLD);
		else
			caught++;
#endif
		if (i == 1)
			deep(3); /* the next call is deeper in the stack than the abandoned one */
		MPI_Sendrecv(&x, 1, MPI_INT, 0, i, &y, 1, MPI_INT, 0, i, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	}
	MPI_Barrier(MPI_COMM_SELF);
	MPI_Finalize();
	printf("%s\n", thrown == 3 && caught == 3 ? "ok" : "bad");
	return 0;
}
