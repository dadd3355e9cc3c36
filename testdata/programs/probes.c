/* Probes and matched receives. Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>

static int bad;
#define CHECK(x) ((x) ? 0 : (bad++, fprintf(stderr, "probes.c:%d: %s\n", __LINE__, #x)))

int main(int argc, char **argv)
{
	int rank, flag, n, in[4] = {0}, out[4] = {1, 2, 3, 4};
	MPI_Status st;
	MPI_Message m;
	MPI_Request r;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 2) {
		MPI_Send(out, 3, MPI_INT, 0, 5, MPI_COMM_WORLD);
		MPI_Send(out, 4, MPI_INT, 0, 6, MPI_COMM_WORLD);
		MPI_Send(out, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
		MPI_Send(out, 2, MPI_INT, 0, 8, MPI_COMM_WORLD);
	} else if (rank == 0) {
		MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		CHECK(!flag);
		MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, MPI_INT, &n);
		CHECK(n == 3 && st.MPI_SOURCE == 2);
		MPI_Recv(in, n, MPI_INT, st.MPI_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		do
			MPI_Iprobe(2, 6, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
		while (!flag);
		MPI_Recv(in, 4, MPI_INT, 2, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(in[3] == 4);
		MPI_Mprobe(2, MPI_ANY_TAG, MPI_COMM_WORLD, &m, &st);
		CHECK(st.MPI_TAG == 7);
		MPI_Mrecv(in, 4, MPI_INT, &m, &st);
		MPI_Get_count(&st, MPI_INT, &n);
		CHECK(n == 1 && m == MPI_MESSAGE_NULL);
		do
			MPI_Improbe(2, 8, MPI_COMM_WORLD, &flag, &m, MPI_STATUS_IGNORE);
		while (!flag);
		MPI_Imrecv(in, 2, MPI_INT, &m, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		CHECK(in[1] == 2);
		MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &m, &st);
		CHECK(m == MPI_MESSAGE_NO_PROC);
		MPI_Mrecv(in, 2, MPI_INT, &m, MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
