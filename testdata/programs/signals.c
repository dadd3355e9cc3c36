/* SIGUSR1 between calls, in a call, in a thread without MPI, with the program's own handler, after MPI_Finalize. Run
 * with 1 rank and the case; prints the result. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile int hits;

static void own(int n)
{
	hits += n == SIGUSR1;
}

static void *elsewhere(void *p)
{
	pthread_kill(pthread_self(), SIGUSR1);
	return p;
}

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
	raise(SIGUSR1);
	*flag = 0;
	return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	int provided;
	struct sigaction a;
	pthread_t t;
	if (strcmp(how, "before") == 0)
		signal(SIGUSR1, own);
	if (strcmp(how, "ignored") == 0)
		signal(SIGUSR1, SIG_IGN);
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	if (strcmp(how, "after") == 0)
		signal(SIGUSR1, own);
	MPI_Barrier(MPI_COMM_SELF);
	if (strcmp(how, "in a call") == 0) {
		int key;
		MPI_Comm dup;
		MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, &key, NULL);
		MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
		MPI_Comm_dup(MPI_COMM_SELF, &dup);
		MPI_Comm_free(&dup);
	} else if (strcmp(how, "elsewhere") == 0) {
		pthread_create(&t, NULL, elsewhere, NULL);
		pthread_join(t, NULL);
	} else {
		raise(SIGUSR1);
	}
	MPI_Barrier(MPI_COMM_SELF);
	MPI_Barrier(MPI_COMM_SELF);
	MPI_Finalize();
	sigaction(SIGUSR1, NULL, &a);
	printf("%d %s\n", hits, a.sa_handler == SIG_DFL ? "default" : a.sa_handler == SIG_IGN ? "ignored" : a.sa_handler == own ? "own" : "other");
	return 0;
}
