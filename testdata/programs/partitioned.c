/* Partitioned messages: two requests of one tag, made ready in parts, and started twice. Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int rank, arrived = 0, bad = 0, list[2] = {4, 2};
	static char first[5 * 4097], second[2 * 9];
	MPI_Request r[2];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0) {
		first[4097] = 7;
		MPI_Psend_init(first, 5, 4097, MPI_BYTE, 2, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
		MPI_Psend_init(second, 2, 9, MPI_BYTE, 2, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
	} else if (rank == 2) {
		MPI_Precv_init(first, 5, 4097, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r[0]);
		MPI_Precv_init(second, 2, 9, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_INFO_NULL, &r[1]);
	}
	for (int i = 0; i < 2 && rank != 1; i++) {
		MPI_Start(&r[1]); /* before the older request */
		MPI_Start(&r[0]);
		if (rank == 0) {
			MPI_Pready(3, r[0]);
			MPI_Pready_range(0, 1, r[0]);
			MPI_Pready_list(2, list, r[0]);
			MPI_Pready_range(0, 1, r[1]);
		} else {
			for (arrived = 0; !arrived;)
				MPI_Parrived(r[0], 2, &arrived);
		}
		MPI_Wait(&r[0], MPI_STATUS_IGNORE);
		MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	}
	if (rank == 2)
		bad = first[4097] != 7;
	if (rank != 1) {
		MPI_Request_free(&r[0]);
		MPI_Request_free(&r[1]);
	}
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad;
}
