/* Collectives by hand: the micro-benchmarks of figure 6 of Calotoiu, Siebert and Wolf (EuroMPI 2012), and some more. For 5 ranks. */
#include <mpi.h>
#include <stdio.h>

enum { N = 1000, SEGMENT = 250 };

static int rank, ranks, next, before;
static int data[N], others[5 * N];

static void fill(int *x, int n, int value)
{
    for (int i = 0; i < n; i++)
        x[i] = value + i;
}

static void noise(int from, int to)
{
    int x[3] = {100 * from + to, from, to}, y[3];
    if (rank == from)
        MPI_Send(x, 3, MPI_INT, to, 1, MPI_COMM_WORLD);
    if (rank == to)
        MPI_Recv(y, 3, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* 6a: one rank after the other, with unrelated messages in between. */
static void linear(void)
{
    if (rank == 0)
        fill(data, N, 1000);
    noise(2, 4);
    if (rank > 0)
        MPI_Recv(data, N, MPI_INT, before, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    noise(0, 3);
    if (rank < ranks - 1)
        MPI_Send(data, N, MPI_INT, next, 2, MPI_COMM_WORLD);
    noise(4, 1);
}

/* 6b: and back to the first rank. */
static void redundant(void)
{
    if (rank == 0)
        fill(data, N, 20000);
    if (rank > 0)
        MPI_Recv(data, N, MPI_INT, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(data, N, MPI_INT, next, 3, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(data, N, MPI_INT, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* 6c: the same twice. */
static void repeated(void)
{
    if (rank == 0)
        fill(data, N, 30000);
    for (int k = 0; k < 2; k++) {
        if (rank > 0)
            MPI_Recv(data, N, MPI_INT, before, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank < ranks - 1)
            MPI_Send(data, N, MPI_INT, next, 4, MPI_COMM_WORLD);
    }
}

/* 6d: the root passes a token to each rank, and the rank with the token broadcasts. */
static void nested(void)
{
    int token = 4711;
    for (int owner = 0; owner < ranks; owner++) {
        if (owner > 0 && rank == 0)
            MPI_Send(&token, 1, MPI_INT, owner, 5, MPI_COMM_WORLD);
        if (owner > 0 && rank == owner)
            MPI_Recv(&token, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == owner) {
            fill(data, N, 40000 + 2000 * owner);
            for (int r = 0; r < ranks; r++)
                if (r != owner)
                    MPI_Send(data, N, MPI_INT, r, 6, MPI_COMM_WORLD);
        } else {
            MPI_Recv(data, N, MPI_INT, owner, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

/* A token that goes round several times: every rank could be the root. */
static void ring(void)
{
    int token = 815;
    for (int lap = 0; lap < 3; lap++) {
        if (rank > 0)
            MPI_Recv(&token, 1, MPI_INT, before, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&token, 1, MPI_INT, next, 7, MPI_COMM_WORLD);
        if (rank == 0)
            MPI_Recv(&token, 1, MPI_INT, before, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* A binomial tree, several times, by nonblocking calls. */
static void tree(void)
{
    for (int k = 0; k < 10; k++) {
        MPI_Request r[5];
        int n = 0, bit = 1;
        if (rank == 0)
            fill(data, N, 60000 + 2000 * k);
        for (; bit < ranks && !(rank & bit); bit *= 2)
            ;
        if (rank > 0) {
            MPI_Irecv(data, N, MPI_INT, rank - bit, 8, MPI_COMM_WORLD, &r[0]);
            MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        }
        for (bit /= 2; bit > 0; bit /= 2)
            if (rank + bit < ranks)
                MPI_Isend(data, N, MPI_INT, rank + bit, 8, MPI_COMM_WORLD, &r[n++]);
        MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
    }
}

/* A broadcast in segments, from the last rank to the first. */
static void pipeline(void)
{
    if (rank == ranks - 1)
        fill(data, N, 90000);
    for (int s = 0; s < N / SEGMENT; s++) {
        if (rank < ranks - 1)
            MPI_Recv(data + s * SEGMENT, SEGMENT, MPI_INT, next, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank > 0)
            MPI_Send(data + s * SEGMENT, SEGMENT, MPI_INT, before, 9, MPI_COMM_WORLD);
    }
}

/* An allgather round a ring, twice. */
static void allgather(void)
{
    for (int k = 0; k < 2; k++) {
        fill(others + rank * N, N, 100000 + 20000 * k + 2000 * rank);
        for (int s = 0; s < ranks - 1; s++)
            MPI_Sendrecv(others + (rank - s + ranks) % ranks * N, N, MPI_INT, next, 10,
                         others + (before - s + ranks) % ranks * N, N, MPI_INT, before, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void alltoall(void)
{
    MPI_Request r[10];
    int n = 0;
    for (int p = 0; p < ranks; p++)
        if (p != rank)
            MPI_Irecv(others + p * N, 7, MPI_INT, p, 11, MPI_COMM_WORLD, &r[n++]);
    for (int p = 0; p < ranks; p++)
        if (p != rank) {
            fill(data + 7 * p, 7, 200000 + 1000 * rank + 100 * p);
            MPI_Isend(data + 7 * p, 7, MPI_INT, p, 11, MPI_COMM_WORLD, &r[n++]);
        }
    MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
}

/* A dissemination barrier, three times. */
static void barrier(void)
{
    for (int k = 0; k < 3; k++)
        for (int s = 1; s < ranks; s *= 2)
            MPI_Sendrecv(NULL, 0, MPI_INT, (rank + s) % ranks, 12, NULL, 0, MPI_INT, (rank - s + ranks) % ranks, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Not a collective: all ranks send the same data to both neighbours. */
static void halo(void)
{
    fill(data, N, 300000);
    for (int k = 0; k < ranks; k++) {
        MPI_Sendrecv(data, N, MPI_INT, next, 13, others, N, MPI_INT, before, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(data, N, MPI_INT, before, 14, others, N, MPI_INT, next, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* A broadcast to all ranks but the third. */
static void part(void)
{
    if (rank == 1) {
        fill(data, N, 400000);
        for (int r = 0; r < ranks; r++)
            if (r != 1 && r != 2)
                MPI_Send(data, N, MPI_INT, r, 15, MPI_COMM_WORLD);
    } else if (rank != 2) {
        MPI_Recv(data, N, MPI_INT, 1, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    next = (rank + 1) % ranks;
    before = (rank + ranks - 1) % ranks;
    linear();
    redundant();
    repeated();
    nested();
    ring();
    tree();
    pipeline();
    allgather();
    alltoall();
    barrier();
    halo();
    part();
    if (rank == 0)
        puts("ok");
    MPI_Finalize();
    return 0;
}
