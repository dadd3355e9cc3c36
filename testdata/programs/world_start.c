/* Calls before MPI_Init and after MPI_Finalize, and ways to end. With abort: rank 1 calls MPI_Abort; with fatal: it
 * makes an error. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((destructor)) static void unloaded(void)
{
	fputs("unloaded\n", stdout); /* in one write, even where MPI has made stdout unbuffered */
}

static void leaving(void)
{
	fputs("leaving\n", stdout);
}

int main(int argc, char **argv)
{
	int rank, size, provided = -1, x = 3, is = -1, there = -1;
	atexit(leaving);
	printf("before MPI_Init\n");
	MPI_Initialized(&there);
	printf("initialized %d\n", there);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Initialized(&there);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Is_thread_main(&is);
	printf("rank %d of %d, level %d, main %d, initialized %d, arguments %d\n", rank, size, provided >= MPI_THREAD_FUNNELED, is, there, argc);
	MPI_Barrier(MPI_COMM_WORLD);
	if (argc > 1 && strcmp(argv[1], "abort") == 0 && rank == 1)
		MPI_Abort(MPI_COMM_WORLD, 7);
	if (argc > 1 && strcmp(argv[1], "fatal") == 0 && rank == 1)
		MPI_Send(&x, 1, MPI_INT, size, 9, MPI_COMM_WORLD);
	if (argc > 1) { /* ended from outside */
		MPI_Barrier(MPI_COMM_WORLD);
		sleep(60);
	}
	MPI_Finalize();
	MPI_Finalized(&there);
	printf("after MPI_Finalize %d\n", there);
	return 0;
}
