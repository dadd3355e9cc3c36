/* Point-to-point calls, blocking: every mode, self messages, wildcards, MPI_PROC_NULL, zero bytes, with and without
 * statuses. Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int bad;
#define CHECK(x) ((x) ? 0 : (bad++, fprintf(stderr, "p2p.c:%d: %s\n", __LINE__, #x)))

int main(int argc, char **argv)
{
	int rank, size, n, out[5], in[5], room;
	MPI_Status st;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int next = (rank + 1) % size, before = (rank + size - 1) % size;
	for (int i = 0; i < 5; i++)
		out[i] = 10 * rank + i;

	/* 0 to 1: standard, synchronous, buffered and ready; 1 posts only receives, in this order */
	if (rank == 0) {
		MPI_Send(out, 5, MPI_INT, 1, 9, MPI_COMM_WORLD);
		MPI_Ssend(out, 4, MPI_INT, 1, 9, MPI_COMM_WORLD);
		room = 3 * sizeof(int) + MPI_BSEND_OVERHEAD;
		void *buffer = malloc(room);
		MPI_Buffer_attach(buffer, room);
		MPI_Bsend(out, 3, MPI_INT, 1, 9, MPI_COMM_WORLD);
		MPI_Buffer_detach(&buffer, &room);
		free(buffer);
		MPI_Recv(NULL, 0, MPI_INT, 1, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Rsend(out, 2, MPI_INT, 1, 11, MPI_COMM_WORLD);
	} else if (rank == 1) {
		MPI_Request r;
		MPI_Recv(in, 5, MPI_INT, 0, 9, MPI_COMM_WORLD, &st);
		CHECK(st.MPI_SOURCE == 0 && st.MPI_TAG == 9 && in[4] == 4);
		MPI_Recv(in, 5, MPI_INT, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, &st);
		MPI_Get_count(&st, MPI_INT, &n);
		CHECK(n == 4 && st.MPI_SOURCE == 0);
		MPI_Recv(in, 5, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Irecv(in, 5, MPI_INT, 0, 11, MPI_COMM_WORLD, &r);
		MPI_Send(NULL, 0, MPI_INT, 0, 17, MPI_COMM_WORLD);
		MPI_Wait(&r, &st);
		MPI_Get_count(&st, MPI_INT, &n);
		CHECK(n == 2 && st.MPI_TAG == 11 && in[1] == 1 && r == MPI_REQUEST_NULL);
	}

	/* all ranks: to the next, from the previous one; in place; to itself; to and from MPI_PROC_NULL */
	MPI_Sendrecv(out, 3, MPI_INT, next, 21, in, 5, MPI_INT, before, 21, MPI_COMM_WORLD, &st);
	CHECK(st.MPI_SOURCE == before && in[2] == 10 * before + 2);
	MPI_Sendrecv_replace(in, 2, MPI_INT, before, 22, next, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(in[0] == 10 * rank && in[1] == 10 * rank + 1);
	MPI_Sendrecv(out, 1, MPI_INT, rank, 23, in, 1, MPI_INT, MPI_ANY_SOURCE, 23, MPI_COMM_WORLD, &st);
	CHECK(st.MPI_SOURCE == rank);
	MPI_Send(out, 5, MPI_INT, MPI_PROC_NULL, 24, MPI_COMM_WORLD);
	st.MPI_SOURCE = st.MPI_TAG = 77;
	MPI_Recv(in, 5, MPI_INT, MPI_PROC_NULL, 24, MPI_COMM_WORLD, &st);
	MPI_Get_count(&st, MPI_INT, &n);
	CHECK(st.MPI_SOURCE == MPI_PROC_NULL && st.MPI_TAG == MPI_ANY_TAG && n == 0);
	MPI_Sendrecv(out, 1, MPI_INT, 0, 26, in, 1, MPI_INT, 0, 26, MPI_COMM_SELF, MPI_STATUS_IGNORE);
	MPI_Sendrecv(out, 2, MPI_INT, rank + 1 < size ? rank + 1 : MPI_PROC_NULL, 25, in, 2, MPI_INT, rank > 0 ? rank - 1 : MPI_PROC_NULL, 25,
		MPI_COMM_WORLD, MPI_STATUS_IGNORE);

	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
