/* Known compute times: 60 ms of CPU before the first barrier, 60 ms of sleep before the second, then a failed probe in the
 * middle of 40 ms of CPU before the third. Run with 1 rank; prints ok. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static void burn(double ms)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	double until = t.tv_sec * 1e3 + t.tv_nsec / 1e6 + ms;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	while (t.tv_sec * 1e3 + t.tv_nsec / 1e6 < until);
}

int main(int argc, char **argv)
{
	int flag;
	MPI_Init(&argc, &argv);
	MPI_Barrier(MPI_COMM_WORLD);
	burn(60);
	MPI_Barrier(MPI_COMM_WORLD);
	usleep(60000);
	MPI_Barrier(MPI_COMM_WORLD);
	burn(20);
	MPI_Iprobe(0, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	burn(20);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	puts("ok");
	return 0;
}
