/* Programs that are rough with their process: rough HOW [ARGUMENT]. HOW is
 * closed:  after MPI_Init closes every file, also stdin, stdout and stderr, and opens the file ARGUMENT in place of them;
 * moved:   then changes to the folder ARGUMENT;
 * jailed:  then changes its root to the folder ARGUMENT;
 * small:   then nothing; its second thread has a stack of 16 KiB.
 * Then a second thread and the first one make calls, and the program prints ok and ends without MPI_Finalize, which needs
 * the files of the library.
 * replaced: before MPI_Init closes stderr and opens the file ARGUMENT in place of it;
 * plain:    nothing. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More calls than a window of records has room for. */
static void calls(int n)
{
	for (int i = 0; i < n; i++) {
		int x = i, y = -1;
		MPI_Sendrecv(&x, 1, MPI_INT, 0, 9, &y, 1, MPI_INT, 0, 9, MPI_COMM_SELF, MPI_STATUS_IGNORE);
		if (y != i)
			abort();
	}
}

static pthread_barrier_t called, go_on;

static void *thread(void *nothing)
{
	calls(10);
	pthread_barrier_wait(&called);
	pthread_barrier_wait(&go_on);
	return nothing;
}

static int start(pthread_t *t, size_t stack)
{
	pthread_attr_t a;
	pthread_attr_init(&a);
	if (stack != 0)
		pthread_attr_setstacksize(&a, stack);
	return pthread_create(t, &a, thread, NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "", *argument = argc > 2 ? argv[2] : "";
	int closed = strcmp(how, "closed") == 0, level, out = STDOUT_FILENO;
	pthread_t t;
	pthread_barrier_init(&called, NULL, 2);
	pthread_barrier_init(&go_on, NULL, 2);
	if (strcmp(how, "replaced") == 0) {
		close(STDERR_FILENO);
		if (open(argument, O_WRONLY | O_CREAT | O_TRUNC, 0600) != STDERR_FILENO)
			return 3;
	}
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
	for (int fd = 0; closed && fd < 1024; fd++)
		close(fd);
	if ((strcmp(how, "moved") == 0 && chdir(argument) != 0) || (strcmp(how, "jailed") == 0 && chroot(argument) != 0))
		return 4;
	if (level != MPI_THREAD_MULTIPLE || start(&t, strcmp(how, "small") == 0 ? 16384 : 0) != 0)
		return 5;
	pthread_barrier_wait(&called);
	for (int fd = 0; closed && fd <= STDERR_FILENO; fd++) {
		if (open(argument, O_WRONLY | O_CREAT | O_APPEND, 0600) != fd)
			_exit(6);
	}
	pthread_barrier_wait(&go_on);
	pthread_join(t, NULL);
	calls(20000);
	if (write(out, "ok\n", 3) != 3)
		return 7;
	if (strcmp(how, "plain") == 0 || strcmp(how, "replaced") == 0)
		MPI_Finalize();
	_exit(0);
}
