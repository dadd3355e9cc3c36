/* Requests: every completion call, persistent requests, MPI_Request_free, MPI_Cancel, failed tests. Run with 3 ranks: 1
 * sends when 0 asks, 2 only cancels a receive; prints ok. */
#include <mpi.h>
#include <stdio.h>

static int bad;
#define CHECK(x) ((x) ? 0 : (bad++, fprintf(stderr, "requests.c:%d: %s\n", __LINE__, #x)))

/* Rank 1 sends a message with this tag when rank 0 asks for it. */
static void ask(int tag)
{
	MPI_Send(&tag, 1, MPI_INT, 1, 40, MPI_COMM_WORLD);
}

static void zero(void)
{
	int in[4] = {0}, flag, index, n, indices[4];
	MPI_Request r[4];
	MPI_Status st[4];

	/* Test fails until rank 1 was asked; Request_get_status completes nothing */
	MPI_Irecv(&in[0], 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &r[0]);
	MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
	CHECK(!flag);
	MPI_Test(&r[0], &flag, &st[0]);
	CHECK(!flag);
	ask(1);
	do
		MPI_Request_get_status(r[0], &flag, &st[0]);
	while (!flag);
	CHECK(st[0].MPI_SOURCE == 1 && r[0] != MPI_REQUEST_NULL);
	MPI_Test(&r[0], &flag, &st[0]);
	CHECK(flag && st[0].MPI_TAG == 1 && in[0] == 1 && r[0] == MPI_REQUEST_NULL);
	MPI_Test(&r[0], &flag, &st[0]);
	CHECK(flag);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);

	/* Waitany: the second of three */
	for (int i = 0; i < 3; i++)
		MPI_Irecv(&in[i], 1, MPI_INT, MPI_ANY_SOURCE, 2 + i, MPI_COMM_WORLD, &r[i]);
	ask(3);
	MPI_Waitany(3, r, &index, &st[0]);
	CHECK(index == 1 && st[0].MPI_SOURCE == 1 && st[0].MPI_TAG == 3 && in[1] == 3);
	/* Testany: then the first */
	ask(2);
	do
		MPI_Testany(3, r, &index, &flag, MPI_STATUS_IGNORE);
	while (!flag);
	CHECK(index == 0 && in[0] == 2);
	ask(4);
	MPI_Waitsome(3, r, &n, indices, MPI_STATUSES_IGNORE);
	CHECK(n == 1 && indices[0] == 2 && in[2] == 4);
	MPI_Waitany(3, r, &index, MPI_STATUS_IGNORE);
	CHECK(index == MPI_UNDEFINED);
	MPI_Testany(3, r, &index, &flag, MPI_STATUS_IGNORE);
	CHECK(flag && index == MPI_UNDEFINED);
	MPI_Waitsome(3, r, &n, indices, st);
	CHECK(n == MPI_UNDEFINED);

	/* Testsome, then Testall with a null request in it */
	MPI_Irecv(&in[0], 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &r[0]);
	r[1] = MPI_REQUEST_NULL;
	MPI_Irecv(&in[2], 1, MPI_INT, 1, 6, MPI_COMM_WORLD, &r[2]);
	ask(6);
	do
		MPI_Testsome(3, r, &n, indices, st);
	while (n == 0);
	CHECK(n == 1 && indices[0] == 2 && st[0].MPI_TAG == 6);
	ask(5);
	do
		MPI_Testall(3, r, &flag, MPI_STATUSES_IGNORE);
	while (!flag);
	CHECK(in[0] == 5);

	/* Waitall of a receive, a send to this rank, a receive from MPI_PROC_NULL and the receive of the send */
	in[1] = 11;
	MPI_Irecv(&in[0], 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &r[0]);
	MPI_Isend(&in[1], 1, MPI_INT, 0, 8, MPI_COMM_WORLD, &r[1]);
	MPI_Irecv(&in[2], 1, MPI_INT, MPI_PROC_NULL, 8, MPI_COMM_WORLD, &r[2]);
	MPI_Irecv(&in[3], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &r[3]);
	MPI_Send(&in[1], 1, MPI_INT, 0, 12, MPI_COMM_SELF);
	MPI_Recv(&in[2], 1, MPI_INT, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(in[2] == 11);
	ask(7);
	MPI_Waitall(4, r, st);
	CHECK(in[0] == 7 && in[3] == 11 && st[0].MPI_SOURCE == 1 && st[3].MPI_TAG == 12);
	MPI_Waitall(4, r, MPI_STATUSES_IGNORE);
}

static void one(void)
{
	int tag;
	MPI_Request r;
	for (int i = 1; i <= 7; i++) {
		MPI_Recv(&tag, 1, MPI_INT, 0, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Issend(&tag, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &r);
		MPI_Wait(&r, MPI_STATUS_IGNORE);
	}
}

static void two(void)
{
	int x = 5, y = 0, flag;
	MPI_Request r;
	MPI_Status st;
	/* a receive that no message matches */
	MPI_Irecv(&y, 1, MPI_INT, 0, 99, MPI_COMM_WORLD, &r);
	MPI_Cancel(&r);
	MPI_Wait(&r, &st);
	MPI_Test_cancelled(&st, &flag);
	CHECK(flag);
	/* a send whose request is freed */
	MPI_Irecv(&y, 1, MPI_INT, 0, 31, MPI_COMM_SELF, &r);
	MPI_Wait(&(MPI_Request){MPI_REQUEST_NULL}, MPI_STATUS_IGNORE);
	MPI_Request s;
	MPI_Isend(&x, 1, MPI_INT, 0, 31, MPI_COMM_SELF, &s);
	if (s != MPI_REQUEST_NULL)
		MPI_Request_free(&s);
	MPI_Wait(&r, &st);
	CHECK(y == 5 && s == MPI_REQUEST_NULL);
}

/* Each rank sends 2 ints to the next one, three times, by persistent requests. */
static void persistent(int rank, int size)
{
	int out[2] = {rank, -rank}, in[2];
	MPI_Request r[2];
	MPI_Status st[2];
	MPI_Recv_init(in, 2, MPI_INT, (rank + size - 1) % size, 50, MPI_COMM_WORLD, &r[0]);
	MPI_Send_init(out, 2, MPI_INT, (rank + 1) % size, 50, MPI_COMM_WORLD, &r[1]);
	MPI_Startall(2, r);
	MPI_Waitall(2, r, st);
	CHECK(in[0] == (rank + size - 1) % size);
	MPI_Start(&r[0]);
	MPI_Start(&r[1]);
	MPI_Wait(&r[1], MPI_STATUS_IGNORE);
	MPI_Wait(&r[0], &st[0]);
	CHECK(st[0].MPI_SOURCE == (rank + size - 1) % size && r[0] != MPI_REQUEST_NULL);
	MPI_Wait(&r[0], MPI_STATUS_IGNORE);
	MPI_Request_free(&r[0]);
	MPI_Request_free(&r[1]);
	CHECK(r[0] == MPI_REQUEST_NULL);
}

int main(int argc, char **argv)
{
	int rank, size, provided, bad_all;
	MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rank == 0)
		zero();
	else if (rank == 1)
		one();
	else
		two();
	persistent(rank, size);
	MPI_Reduce(&bad, &bad_all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
	MPI_Finalize();
	if (rank == 0 && !bad_all)
		printf("ok\n");
	return bad != 0;
}
