/* Looks at the limits of the process before Go's runtime starts. Where it gets too little, commq exec starts its program
 * unrecorded, and the other commands say what is wrong. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define LEAST_ADDRESSES ((rlim_t)2 << 30) /* bytes; with 1 GB threads cannot be started, before any work */
#define LEAST_FILES 8
#define LEAST_THREADS 12 /* Go starts about 7 to do little */

static pthread_mutex_t wait_for_all = PTHREAD_MUTEX_INITIALIZER;

static void *wait_and_end(void *unused)
{
	pthread_mutex_lock(&wait_for_all);
	pthread_mutex_unlock(&wait_for_all);
	return unused;
}

/* Returns how many threads can be started at once, at most LEAST_THREADS. */
static int threads(void)
{
	pthread_t all[LEAST_THREADS];
	int n = 0;
	pthread_mutex_lock(&wait_for_all);
	while (n < LEAST_THREADS && pthread_create(&all[n], NULL, wait_and_end, NULL) == 0)
		n++;
	pthread_mutex_unlock(&wait_for_all);
	for (int i = 0; i < n; i++)
		pthread_join(all[i], NULL);
	return n;
}

/* Writes what is wrong into text, and returns 0 if nothing is. */
static int lack(char *text, size_t bytes)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_AS, &r) == 0 && r.rlim_cur < LEAST_ADDRESSES)
		return snprintf(text, bytes, "this process may use %llu kB of address space; commq needs %llu kB to start and 4 GB for "
			"large runs: raise the limit (ulimit -v unlimited)", (unsigned long long)(r.rlim_cur >> 10),
			(unsigned long long)(LEAST_ADDRESSES >> 10));
	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < LEAST_FILES)
		return snprintf(text, bytes, "this process may open %llu files; commq needs %d to start: raise the limit (ulimit -n 1024)",
			(unsigned long long)r.rlim_cur, LEAST_FILES);
	int n = threads();
	if (n < LEAST_THREADS)
		return snprintf(text, bytes, "this process may start %d threads; commq needs %d: raise the limit (ulimit -u, or that of "
			"the container or job)", n, LEAST_THREADS);
	return 0;
}

/* Returns the program in "commq exec [flags] -- program": without flags the -- may be missing. NULL if there is none to
 * start: without the -- a word after flags may be the value of one, --print-env starts nothing, and with --sim-ranks the
 * program would count the simulator ranks as its own. */
static char **exec_program(int argc, char **argv)
{
	if (argc < 3 || strcmp(argv[1], "exec") != 0)
		return NULL;
	if (argv[2][0] != '-')
		return argv + 2;
	for (char **a = argv + 2; *a != NULL; a++) {
		if (strcmp(*a, "--") == 0)
			return a[1] != NULL ? a + 1 : NULL;
		if (strncmp(*a, "--print-env", 11) == 0 || strncmp(*a, "--sim-ranks", 11) == 0 || (a[0][0] != '-' && a[-1][0] != '-'))
			return NULL;
	}
	return NULL;
}

/* As firstRank in exec.go, which cannot run yet. A header shared with the capture library, which has it too, would not be
 * among the files whose change makes Go compile this one again. */
static int first_rank(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *v = getenv(names[i]);
		if (v != NULL && *v != 0)
			return strcmp(v, "0") == 0;
	}
	return 1;
}

__attribute__((constructor)) static void check_limits(int argc, char **argv)
{
	char text[256];
	if (lack(text, sizeof text) == 0)
		return;
	char **program = exec_program(argc, argv);
	if (program == NULL) {
		fprintf(stderr, "commq: %s\n", text);
		_exit(2);
	}
	if (first_rank())
		fprintf(stderr, "commq: the program runs without being recorded: %s\n", text);
	execvp(program[0], program);
	fprintf(stderr, "commq: exec %s: ", program[0]);
	perror(NULL);
	_exit(2);
}
