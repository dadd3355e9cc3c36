/* Many short-lived communicators and datatypes, and threads that cannot have a file: memory must not grow, errno must
 * not change. Run with 1 rank; prints ok. */
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>

static int changed;

/* Returns the kilobytes of private memory. */
static long data_kb(void)
{
	char line[256];
	long kb = -1;
	FILE *f = fopen("/proc/self/status", "r");
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		sscanf(line, "VmData: %ld", &kb);
	if (f != NULL)
		fclose(f);
	return kb;
}

static void rounds(int n)
{
	int x[9] = {5}, y[9], dims[3] = {1, 1, 1}, periods[3] = {0, 0, 0};
	for (int i = 0; i < n; i++) {
		MPI_Datatype type;
		MPI_Comm grid;
		MPI_Type_contiguous(9, MPI_INT, &type);
		MPI_Type_commit(&type);
		if (i % 4 != 0) {
			MPI_Sendrecv(x, 1, type, 0, 9, y, 1, type, 0, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE);
		} else {
			MPI_Cart_create(MPI_COMM_SELF, 3, dims, periods, 0, &grid);
			MPI_Sendrecv(x, 1, type, 0, 9, y, 1, type, 0, 9, grid, MPI_STATUS_IGNORE);
			MPI_Comm_free(&grid);
		}
		MPI_Type_free(&type);
	}
}

static void *sends(void *arg)
{
	int x = 5, y;
	errno = 9999;
	MPI_Sendrecv(&x, 1, MPI_INT, 0, 9, &y, 1, MPI_INT, 0, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	changed = errno != 9999;
	return arg;
}

int main(int argc, char **argv)
{
	int level;
	pthread_t thread;
	struct rlimit r, few;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
	rounds(1000);
	long before = data_kb();
	rounds(40000);
	long grown = data_kb() - before;
	getrlimit(RLIMIT_NOFILE, &r);
	few = r;
	few.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &few);
	if (pthread_create(&thread, NULL, sends, NULL) == 0)
		pthread_join(thread, NULL);
	setrlimit(RLIMIT_NOFILE, &r);
	MPI_Finalize();
	if (grown < 2000 && !changed)
		puts("ok");
	else
		printf("%ld kB more, errno changed: %d\n", grown, changed);
	return 0;
}
