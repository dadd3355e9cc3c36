/* Known compute times: 60 ms of CPU before the first barrier, 60 ms of sleep before the second, then a failed probe in the
 * middle of 40 ms of CPU before the third. Run with 1 rank; prints ok and the ms of CPU that it saw pass before the first and the third. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

/* Computes for ms of CPU time. Returns the actual time, which a guest system also counts while it has no CPU. */
static double burn(double ms)
{
	double start = now(), end;
	while ((end = now()) < start + ms)
		;
	return end - start;
}

int main(int argc, char **argv)
{
	int flag;
	double first, third;
	MPI_Init(&argc, &argv);
	MPI_Barrier(MPI_COMM_WORLD);
	first = burn(60);
	MPI_Barrier(MPI_COMM_WORLD);
	usleep(60000);
	MPI_Barrier(MPI_COMM_WORLD);
	third = burn(20);
	MPI_Iprobe(0, 9, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
	third += burn(20);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	printf("ok %.3f %.3f\n", first, third);
	return 0;
}
