/* Ways to end, by the first argument. Run with 3 ranks (early: 1); 0 ends in that way after a barrier, the others too where it is
 * orderly. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, x = 0;
	const char *how = argc > 1 ? argv[1] : "";
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	if (strcmp(how, "status") == 0) {
		MPI_Finalize();
		return rank == 0 ? 3 : 0;
	}
	if (strcmp(how, "early") == 0) /* without MPI_Finalize */
		exit(5);
	if (strcmp(how, "abort") == 0) {
		if (rank == 0)
			MPI_Abort(MPI_COMM_WORLD, 7);
		MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (strcmp(how, "killed") == 0) {
		if (rank == 0) {
			usleep(300000); /* the others have left the barrier */
			raise(SIGKILL);
		}
		MPI_Recv(&x, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (strcmp(how, "fork") == 0) { /* children that call nothing, exit, or become another program */
		int status = 0;
		pid_t child = fork();
		if (child == 0) {
			int initialized;
			MPI_Initialized(&initialized);
			exit(initialized ? 11 : 12);
		}
		waitpid(child, &status, 0);
		if (rank == 0)
			printf("%d %d\n", WEXITSTATUS(status), WEXITSTATUS(system("exit 4")));
		MPI_Barrier(MPI_COMM_WORLD);
	}
	if (strcmp(how, "errors") == 0) {
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
		int e = MPI_Send(&x, 1, MPI_INT, 99, 9, MPI_COMM_WORLD), class;
		MPI_Error_class(e, &class);
		if (rank == 0)
			printf("%d\n", class == MPI_ERR_RANK);
	}
	MPI_Finalize();
	return 0;
}
