/* What programs share that have one fault per run, or none, of a known size, for commq diagnose to find. Arguments: the
 * fault, its us per step, and the number of steps (12). A line that ends in "fault NAME" is the one that must be named. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BASE = 20000, TAG = 5 };

static int rank, ranks, right, left, us, step, steps;
static double buf[16], sum[16];

/* A fault, and what a step of the program does that has it. */
typedef struct {
	const char *name;
	void (*step)(void);
} fault;

#ifdef NATIVE
/* Computes for so much CPU time: on a busy machine it takes longer, but is no more work. */
static void work(int for_us)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	long long until = t.tv_sec * 1000000000LL + t.tv_nsec + 1000LL * for_us;
	while (for_us > 0 && t.tv_sec * 1000000000LL + t.tv_nsec < until)
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
}
#else
/* Computing in virtual time, which is exact on a busy machine: simulator ranks read this variable. */
long long commq_compute_ns;

static void work(int for_us) { commq_compute_ns += 1000LL * for_us; }
#endif

static int run(int argc, char **argv, const fault *faults, size_t n)
{
	steps = argc > 3 ? atoi(argv[3]) : 12;
	us = argc > 2 ? atoi(argv[2]) : 0;
#ifdef BEFORE_INIT
	if (argc > 2)
		BEFORE_INIT(argv[1]);
#endif
	MPI_Init(&argc, &argv); /* fault late_start */
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	right = (rank + 1) % ranks;
	left = (rank + ranks - 1) % ranks;
	for (size_t i = 0; argc > 2 && i < n; i++)
		if (strcmp(faults[i].name, argv[1]) == 0) {
			for (step = 0; step < steps; step++)
				faults[i].step();
			MPI_Finalize();
			return 0;
		}
	fprintf(stderr, "usage: %s FAULT US [STEPS]\n", argv[0]);
	MPI_Abort(MPI_COMM_WORLD, 2);
	return 2;
}
