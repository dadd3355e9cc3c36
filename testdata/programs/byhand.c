/* Broadcasts by hand with every kind of call that sends, receives and waits, between collectives that are called. For 4 ranks. */
#include <mpi.h>
#include <stdio.h>

enum { N = 300 };

static int rank, ranks, data[N];
static MPI_Comm comm;

static void fill(int value)
{
    for (int i = 0; i < N; i++)
        data[i] = rank == 0 ? value + i : -1;
}

static void done(int value)
{
    for (int i = 0; i < N; i++)
        if (data[i] != value + i) {
            printf("rank %d has %d, want %d\n", rank, data[i], value + i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

static void persistent(void)
{
    MPI_Request r[3];
    int n = rank == 0 ? ranks - 1 : 1;
    for (int k = 0; k < n; k++)
        if (rank == 0)
            MPI_Send_init(data, N, MPI_INT, k + 1, 1, comm, &r[k]);
        else
            MPI_Recv_init(data, N, MPI_INT, 0, 1, comm, &r[k]);
    for (int round = 0; round < 3; round++) {
        fill(1000 + round);
        MPI_Startall(n, r);
        MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
        done(1000 + round);
        MPI_Barrier(comm);
    }
    for (int k = 0; k < n; k++)
        MPI_Request_free(&r[k]);
}

/* Two of the four requests belong to the broadcast; the others carry neighbours' numbers. */
static void tested(void)
{
    MPI_Request r[5];
    int n = 0, left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks, got, number = 7 * rank;
    fill(2000);
    MPI_Irecv(&got, 1, MPI_INT, left, 2, comm, &r[n++]);
    MPI_Isend(&number, 1, MPI_INT, right, 2, comm, &r[n++]);
    if (rank > 0)
        MPI_Irecv(data, N, MPI_INT, 0, 3, comm, &r[n++]);
    else
        for (int k = 1; k < ranks; k++)
            MPI_Isend(data, N, MPI_INT, k, 3, comm, &r[n++]);
    for (int over = 0; over < n;) {
        int count, which[5];
        MPI_Testsome(n, r, &count, which, MPI_STATUSES_IGNORE);
        if (count != MPI_UNDEFINED)
            over += count;
    }
    done(2000);
}

static void probed(int matched)
{
    MPI_Status status;
    MPI_Message message;
    fill(3000 + matched);
    if (rank == 0)
        for (int k = 1; k < ranks; k++)
            MPI_Ssend(data, N, MPI_INT, k, 4, comm);
    else if (matched) {
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message, &status);
        MPI_Mrecv(data, N, MPI_INT, &message, MPI_STATUS_IGNORE);
    } else {
        MPI_Probe(0, MPI_ANY_TAG, comm, &status);
        MPI_Recv(data, N, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, comm, MPI_STATUS_IGNORE);
    }
    done(3000 + matched);
}

/* Each rank passes the data on in the same call that receives a number from the previous rank. */
static void exchanged(void)
{
    int number = 11 * rank, got;
    fill(4000);
    if (rank > 0)
        MPI_Recv(data, N, MPI_INT, rank - 1, 5, comm, MPI_STATUS_IGNORE);
    int to = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL, from = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    if (rank < ranks - 1)
        MPI_Send(&number, 1, MPI_INT, rank + 1, 6, comm);
    MPI_Sendrecv(data, N, MPI_INT, to, 5, &got, 1, MPI_INT, from, 6, comm, MPI_STATUS_IGNORE);
    done(4000);
}

int main(int argc, char **argv)
{
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm); /* the reverse direction */
    MPI_Comm_rank(comm, &rank);
    MPI_Ibarrier(comm, &request);
    persistent();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    tested();
    MPI_Allreduce(MPI_IN_PLACE, &argc, 1, MPI_INT, MPI_MAX, comm);
    probed(0);
    probed(1);
    MPI_Barrier(MPI_COMM_WORLD);
    exchanged();
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
    if (rank == 0)
        printf("ok\n");
    MPI_Finalize();
    return 0;
}
