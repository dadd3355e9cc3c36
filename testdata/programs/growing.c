/* Two faults that grow differently with the number of ranks, for commq diagnose over several runs: rank 1 computes 4 ms
 * longer than the others, and the root works 250 us for each rank before a broadcast. The others do as much work after it.
 * Computing is told in commq_compute_ns and takes no time. */
#include <mpi.h>

long long commq_compute_ns;

enum { STEPS = 12, BASE = 20000, MORE = 4000, EACH = 250 };

static void work(int us) { commq_compute_ns += 1000LL * us; }

int main(int argc, char **argv)
{
	int rank, ranks, step;
	double buf[16] = {0};

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	for (step = 0; step < STEPS; step++) {
		work(rank == 0 ? EACH * ranks : 0);
		MPI_Bcast(buf, 16, MPI_DOUBLE, 0, MPI_COMM_WORLD); /* fault late-root */
		work(BASE + (rank == 0 ? 0 : EACH * ranks) + (rank == 1 ? MORE : 0));
		MPI_Barrier(MPI_COMM_WORLD); /* fault imbalance */
	}
	MPI_Finalize();
	return 0;
}
