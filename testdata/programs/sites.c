/* Call sites: prints the line of each examined call, as the compiler counts it, before it makes the calls. 3 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))
#define AT(name) (name = __LINE__)
static int rank, line_put, line_inlined, line_early, line_late, line_in, line_library;
static char buf[4097];

void shared_barrier(int *line); /* of libsites.so, in the same file */

/* One place with two paths to it. */
static NOINLINE void put(int tag)
{
	AT(line_put), MPI_Sendrecv(buf, 4097, MPI_BYTE, (rank + 1) % 3, tag, buf, 4097, MPI_BYTE, (rank + 2) % 3, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	buf[1]++; /* prevents a tail call */
}

static NOINLINE void early(void)
{
	AT(line_early), put(9);
	buf[2]++;
}

static NOINLINE void late(void)
{
	AT(line_late), put(5);
	buf[3]++;
}

/* Inlined into main by the compiler. */
static inline __attribute__((always_inline)) void inlined(void)
{
	int sum = rank, all;
	AT(line_in), MPI_Allreduce(&sum, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int line_init, line_first, line_second, line_shared, line_finalize = 0;
	AT(line_init), MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 30; i++)
		AT(line_first), early();
	AT(line_second), late();
	AT(line_inlined), inlined();
	AT(line_shared), shared_barrier(&line_library);
	if (rank == 0) {
		printf("put %d early %d late %d in %d inlined %d library %d ", line_put, line_early, line_late, line_in, line_inlined, line_library);
		printf("init %d first %d second %d shared %d finalize %d\n", line_init, line_first, line_second, line_shared, __LINE__ + 2);
	}
	MPI_Finalize();
	return line_finalize;
}
