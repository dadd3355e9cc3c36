/* A signal handler forks at any time while the program calls MPI_Barrier, at least 20 times. The children end at once,
 * or run another program. Run with 1 rank; prints the number of barriers. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int forks, bad;

static void again(void)
{
	struct itimerval once = {{0, 0}, {0, 300}};
	setitimer(ITIMER_REAL, &once, NULL);
}

static void handler(int n)
{
	int status = 0;
	pid_t child = fork();
	if (child == 0) {
		if (forks % 5 == 3)
			execl("/bin/true", "true", (char *)NULL);
		_exit(forks % 5 == 3 ? 9 : 0);
	}
	bad |= child < 0 || waitpid(child, &status, 0) != child || status != 0;
	forks++;
	again();
}

int main(int argc, char **argv)
{
	struct sigaction a;
	int n = 0;
	MPI_Init(&argc, &argv);
	memset(&a, 0, sizeof a);
	a.sa_handler = handler;
	a.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &a, NULL);
	again();
	for (; forks < 20; n++)
		MPI_Barrier(MPI_COMM_SELF);
	signal(SIGALRM, SIG_IGN);
	MPI_Finalize();
	printf(bad ? "bad\n" : "%d\n", n);
	return bad;
}
