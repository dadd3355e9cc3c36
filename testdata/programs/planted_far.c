/* Ranks 0 and 2, and 1 and 3, exchange 10 messages of 512 KiB, for commq diagnose to find that they are on different nodes. */
#include <mpi.h>

enum { BYTES = 1 << 19, TAG = 5 };

int main(int argc, char **argv)
{
	static char out[BYTES], in[BYTES];
	int rank;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; rank < 4 && i < 10; i++)
		MPI_Sendrecv(out, BYTES, MPI_BYTE, rank ^ 2, TAG, in, BYTES, MPI_BYTE, rank ^ 2, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	MPI_Finalize();
	return 0;
}
