/* Payloads: the same bytes as several datatypes, and what each rank contributes to collectives. Run with 3 ranks; prints ok. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, bad;

static void pass(const void *buf, int count, MPI_Datatype type, int tag)
{
	char got[256];
	if (rank == 1)
		MPI_Send(buf, count, type, 2, tag, MPI_COMM_WORLD);
	else if (rank == 2)
		MPI_Recv(got, 256, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void pass_once(const void *buf, int count, MPI_Datatype type, int tag)
{
	MPI_Type_commit(&type);
	pass(buf, count, type, tag);
	MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
	int a[12], column[] = {1, 4, 7, 10}, swapped[] = {2, 1}, block[] = {6, 7, 10, 11}, odd[] = {1, 3, 5}, three[] = {2, 3, 5};
	int lengths[] = {1, 1}, sizes[] = {3, 4}, part[] = {2, 2}, from[] = {1, 1}, two = 2;
	MPI_Aint at[] = {4, 0}, address, gap[2];
	MPI_Datatype types[] = {MPI_INT, MPI_INT}, t;
	double d = 1.5;
	short small[] = {-1, 2};
	MPI_Request q;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int i = 0; i < 12; i++)
		a[i] = i + 1;
	pass("123456789", 9, MPI_CHAR, 1);
	pass(column, 4, MPI_INT, 2);
	MPI_Type_vector(4, 1, 3, MPI_INT, &t);
	pass_once(a, 1, t, 3);
	MPI_Type_create_struct(2, lengths, at, types, &t);
	pass_once(a, 1, t, 4);
	pass(swapped, 2, MPI_INT, 5);
	MPI_Type_create_subarray(2, sizes, part, from, MPI_ORDER_C, MPI_INT, &t);
	pass_once(a, 1, t, 6);
	pass(block, 4, MPI_INT, 7);
	MPI_Type_create_resized(MPI_INT, 0, 8, &t);
	pass_once(a, 3, t, 8);
	pass(odd, 3, MPI_INT, 9);
	pass(a, 0, MPI_INT, 10);
	MPI_Get_address(three, &address);
	MPI_Type_create_hindexed(1, &two, &address, MPI_INT, &t);
	pass_once(MPI_BOTTOM, 1, t, 11);
	MPI_Get_address(three, gap), MPI_Get_address(three + 2, gap + 1);
	MPI_Type_create_hindexed(2, lengths, gap, MPI_INT, &t);
	pass_once(MPI_BOTTOM, 1, t, 17);
	pass(small, 2, MPI_SHORT, 12);
	MPI_Type_vector(4, 1, 3, MPI_INT, &t);
	pass_once(a, 1, t, 13);

	if (rank == 1) {
		char *room = malloc(8 + MPI_BSEND_OVERHEAD);
		int n;
		MPI_Send_init(three, 3, MPI_INT, 2, 14, MPI_COMM_WORLD, &q);
		MPI_Start(&q);
		MPI_Wait(&q, MPI_STATUS_IGNORE);
		three[0] = 7;
		MPI_Startall(1, &q);
		MPI_Waitall(1, &q, MPI_STATUSES_IGNORE);
		MPI_Request_free(&q);
		MPI_Buffer_attach(room, 8 + MPI_BSEND_OVERHEAD);
		MPI_Bsend(&d, 1, MPI_DOUBLE, 2, 15, MPI_COMM_WORLD);
		MPI_Buffer_detach(&room, &n);
	} else if (rank == 2) {
		for (int i = 0; i < 2; i++)
			MPI_Recv(three, 3, MPI_INT, 1, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		bad += three[0] != 7;
		MPI_Recv(&d, 1, MPI_DOUBLE, 1, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	if (rank > 0) {
		int x = 3 * rank;
		MPI_Sendrecv_replace(&x, 1, MPI_INT, 3 - rank, 16, 3 - rank, 16, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		bad += x != 3 * (3 - rank);
	}

	int in[] = {3 + rank, 5, 9}, out[3], counts[] = {1, 0, 2}, displs[] = {0, 1, 4}, ones[] = {1, 1, 1}, order[] = {2, 0, 1};
	MPI_Bcast(in + 1, 2, MPI_INT, 2, MPI_COMM_WORLD);
	MPI_Allreduce(MPI_IN_PLACE, in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	bad += in[0] != 12;
	MPI_Scatterv(a, counts, displs, MPI_INT, out, counts[rank], MPI_INT, 0, MPI_COMM_WORLD);
	for (int i = 0; i < 3; i++)
		in[i] = 10 * rank + i;
	if (rank == 0)
		MPI_Gather(MPI_IN_PLACE, 1, MPI_INT, in, 1, MPI_INT, 0, MPI_COMM_WORLD);
	else
		MPI_Gather(in, 1, MPI_INT, out, 1, MPI_INT, 0, MPI_COMM_WORLD);
	bad += rank == 0 && in[2] != 20;
	MPI_Alltoallv(a, ones, order, MPI_INT, out, ones, order, MPI_INT, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Finalize();
	if (rank == 0 && !bad)
		printf("ok\n");
	return bad != 0;
}
