/* Rank r starts each collective r * 10 us after the first and computes for 1 us before it waits for it. Rank 0 prints, for each,
 * the virtual time from when the last came to when it left itself, in ns. Then the same with 100 us of computing, which
 * hides the collective from rank 0; two at a time; and persistent ones, each started twice. Open MPI 4.1 has these as MPIX_X_init. */
#include <mpi.h>
#include <stdio.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define P(x) MPIX_##x
#else
#define P(x) MPI_##x
#endif

#define W MPI_COMM_WORLD
#define I MPI_INFO_NULL

long long commq_compute_ns;
static int in[4096], out[4096];
static int rank, size;
static MPI_Request r, s;

/* Sets all clocks to the same time; returns the time at which the last rank will enter. */
static double level(void)
{
	MPI_Barrier(W);
	double last = MPI_Wtime() + (size - 1) * 10e-6;
	commq_compute_ns += rank * 10000;
	return last;
}

static void show(const char *name, double last)
{
	if (rank == 0)
		printf("%s %.0f\n", name, (MPI_Wtime() - last) * 1e9);
}

static void wait_for(MPI_Request *q, const char *name, double last, int compute)
{
	commq_compute_ns += compute;
	MPI_Wait(q, MPI_STATUS_IGNORE);
	show(name, last);
}

static void twice(MPI_Request q, const char *name)
{
	for (int i = 0; i < 2; i++) {
		double last = level();
		MPI_Start(&q);
		wait_for(&q, name, last, 1000);
	}
	MPI_Request_free(&q);
}

int main(int argc, char **argv)
{
	double last;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(W, &rank);
	MPI_Comm_size(W, &size);
#define EACH(name, call) \
	last = level(); \
	call; \
	wait_for(&r, name, last, 1000)
	EACH("Ibarrier", MPI_Ibarrier(W, &r));
	EACH("Iallreduce", MPI_Iallreduce(in, out, 9, MPI_INT, MPI_SUM, W, &r));
	EACH("Ialltoall", MPI_Ialltoall(in, 100, MPI_INT, out, 100, MPI_INT, W, &r));
	EACH("Ireduce", MPI_Ireduce(in, out, 9, MPI_INT, MPI_SUM, 1, W, &r));
	EACH("Igather", MPI_Igather(in, 100, MPI_INT, out, 100, MPI_INT, 3, W, &r));
	EACH("Iscatter", MPI_Iscatter(in, 100, MPI_INT, out, 100, MPI_INT, 3, W, &r));
	EACH("Iallgather", MPI_Iallgather(in, 100, MPI_INT, out, 100, MPI_INT, W, &r));
	EACH("Ireduce_scatter_block", MPI_Ireduce_scatter_block(in, out, 9, MPI_INT, MPI_SUM, W, &r));
	EACH("Iscan", MPI_Iscan(in, out, 9, MPI_INT, MPI_SUM, W, &r));

	last = level();
	MPI_Iallreduce(in, out, 9, MPI_INT, MPI_SUM, W, &r);
	wait_for(&r, "hidden", last, 100000);
	last = level();
	MPI_Ibarrier(W, &s);
	MPI_Iallreduce(in, out, 9, MPI_INT, MPI_SUM, W, &r);
	wait_for(&r, "the second", last, 0);
	wait_for(&s, "the first", last, 0);

	MPI_Request q;
	P(Barrier_init)(W, I, &q);
	twice(q, "Barrier_init");
	P(Bcast_init)(in, 1000, MPI_INT, 2, W, I, &q);
	twice(q, "Bcast_init");
	P(Allreduce_init)(in, out, 9, MPI_INT, MPI_SUM, W, I, &q);
	twice(q, "Allreduce_init");
	MPI_Finalize();
	return 0;
}
