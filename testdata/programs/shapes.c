/* Collective operations of which payloads tell little or nothing, but who sends to whom does: done once, of constants,
   of packed objects, of blocks with a tag for each rank, along axes of two ranks; and exchanges of similar shapes that
   are none. For 6 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { TIMES = 6, RANKS = 6, MOST = 512 };

static int rank, ranks, salt;
static MPI_Comm world;

/* An object as bytes: its length is that of the value in it. */
static int pack(char *out, int value)
{
    int n = 1 + (value * 7919 + salt * 31) % 40;
    for (int i = 0; i < n; i++)
        out[i] = (char)(value * 31 + salt * 7 + i * i);
    return n;
}

static int receive(char *in, int from, int tag, MPI_Comm comm)
{
    MPI_Status status;
    int n;
    MPI_Recv(in, MOST, MPI_BYTE, from, tag, comm, &status);
    MPI_Get_count(&status, MPI_BYTE, &n);
    return n;
}

/* A setting that rank 0 tells all others, once. */
static void tell_once(void)
{
    int setting = 100;
    if (rank == 0)
        for (int r = 1; r < ranks; r++)
            MPI_Send(&setting, 1, MPI_INT, r, 1, world);
    else
        MPI_Recv(&setting, 1, MPI_INT, 0, 1, world, MPI_STATUS_IGNORE);
}

/* No broadcast for certain: the same, but not in the order of ranks. */
static void tell_shuffled(void)
{
    static const int order[] = {4, 1, 5, 3, 2};
    int setting = 200;
    if (rank == 0)
        for (int k = 0; k < ranks - 1; k++)
            MPI_Send(&setting, 1, MPI_INT, order[k], 2, world);
    else
        MPI_Recv(&setting, 1, MPI_INT, 0, 2, world, MPI_STATUS_IGNORE);
}

/* Objects are joined up a binomial tree to rank 0, which sends the result to the root of the time. */
static void reduce_objects(void)
{
    char mine[MOST], other[MOST];
    for (int root = 0; root < ranks; root++, salt++) {
        int n = pack(mine, rank), sent = 0;
        for (int mask = 1; mask < ranks && !sent; mask *= 2) {
            if (rank & mask) {
                MPI_Send(mine, n, MPI_BYTE, rank & ~mask, 3, world);
                sent = 1;
            } else if ((rank | mask) < ranks) {
                n += receive(other, rank | mask, 3, world) / 2;
            }
        }
        if (root > 0 && rank == 0)
            MPI_Send(mine, n, MPI_BYTE, root, 3, world);
        else if (root > 0 && rank == root)
            receive(mine, 0, 3, world);
    }
}

/* Objects of all ranks before come to each rank, by doubling. */
static void scan_objects(void)
{
    char mine[MOST], other[MOST];
    for (int t = 0; t < TIMES; t++, salt++) {
        int n = pack(mine, rank + 50);
        for (int mask = 1; mask < ranks; mask *= 2) {
            MPI_Request request;
            if ((rank ^ mask) >= ranks)
                continue;
            MPI_Isend(mine, n, MPI_BYTE, rank ^ mask, 4, world, &request);
            int m = receive(other, rank ^ mask, 4, world);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            memcpy(mine + n, other, m / 2);
            n += m / 2;
        }
    }
}

static int particles(int r) { return 20 + (r * 37) % 23; }

/* Positions and velocities are collected once, in the order of ranks; the tag is the rank. */
static void collect_state(void)
{
    double x[2][64], in[64];
    for (int v = 0; v < 2; v++)
        for (int i = 0; i < 64; i++)
            x[v][i] = 1.0 / (1 + rank + 10 * i + 1000 * v);
    for (int v = 0; v < 2; v++) {
        if (rank > 0)
            MPI_Send(x[v], 8 * particles(rank), MPI_BYTE, 0, rank, world);
        else
            for (int r = 1; r < ranks; r++)
                MPI_Recv(in, 8 * particles(r), MPI_BYTE, r, r, world, MPI_STATUS_IGNORE);
    }
}

/* And dealt out again. */
static void distribute_state(void)
{
    double out[64], in[64];
    if (rank == 0)
        for (int r = 1; r < ranks; r++) {
            for (int i = 0; i < 64; i++)
                out[i] = r + 1.0 / (2 + i);
            MPI_Send(out, 8 * particles(r), MPI_BYTE, r, r, world);
        }
    else
        MPI_Recv(in, 8 * particles(rank), MPI_BYTE, 0, rank, world, MPI_STATUS_IGNORE);
}

/* No scatter: the first tasks go out in order, more follow to who is done. */
static void deal_tasks(void)
{
    double task[64] = {0}, result = 0;
    int left = 9, busy = 0;
    if (rank == 0) {
        for (int r = 1; r < ranks; r++, busy++) {
            task[0] = r;
            MPI_Send(task, 8 * (10 + r), MPI_BYTE, r, 5, world);
        }
        while (busy > 0) {
            MPI_Status status;
            MPI_Recv(&result, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 6, world, &status);
            task[0] = 100 + left;
            if (left-- > 0)
                MPI_Send(task, 8 * (20 + left), MPI_BYTE, status.MPI_SOURCE, 5, world);
            else
                busy--, MPI_Send(task, 8, MPI_BYTE, status.MPI_SOURCE, 5, world);
        }
    } else {
        for (;;) {
            if (receive((char *)task, 0, 5, world) == 8)
                break;
            result = task[0] + rank;
            MPI_Send(&result, 1, MPI_DOUBLE, 0, 6, world);
        }
    }
}

static void swap_borders(int to, int tag, int n, MPI_Comm comm)
{
    double out[64], in[64];
    int me;
    MPI_Comm_rank(comm, &me);
    for (int i = 0; i < n; i++)
        out[i] = 1.0 / (1 + me + 10 * salt + 100 * i + 5 * tag);
    MPI_Sendrecv(out, n, MPI_DOUBLE, to, tag, in, n, MPI_DOUBLE, to, tag, comm, MPI_STATUS_IGNORE);
}

/* Borders on a grid of 2 x 3 ranks: along the first axis each rank has one neighbour. */
static void borders(void)
{
    for (int t = 0; t < TIMES; t++, salt++) {
        double out[2][16], in[2][16];
        MPI_Request requests[4];
        int n = 0, at = rank % 3;
        swap_borders((rank + 3) % 6, 7, 24, world);
        for (int side = 0; side < 2; side++) {
            int to = side ? rank + 1 : rank - 1;
            if (at + (side ? 1 : -1) < 0 || at + (side ? 1 : -1) > 2)
                continue;
            for (int i = 0; i < 16; i++)
                out[side][i] = 1.0 / (1 + rank + 7 * side + 20 * i + 900 * salt);
            MPI_Irecv(in[side], 16, MPI_DOUBLE, to, 8, world, &requests[n++]);
            MPI_Isend(out[side], 16, MPI_DOUBLE, to, 8, world, &requests[n++]);
        }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    }
}

/* Both borders along each axis of a periodic grid of 2 x 2 ranks: the neighbours on both sides are one rank. */
static void both_borders(MPI_Comm four)
{
    int me;
    MPI_Comm_rank(four, &me);
    for (int t = 0; t < TIMES; t++)
        for (int axis = 1; axis < 4; axis *= 2)
            for (int side = 0; side < 2; side++, salt++)
                swap_borders(me ^ axis, 9, 12, four);
}

/* No neighbours: keys are compared and exchanged along the edges of a square, as in a sort. */
static void compare_exchange(MPI_Comm four)
{
    double out[12], in[12];
    int me;
    MPI_Comm_rank(four, &me);
    for (int t = 0; t < TIMES; t++)
        for (int axis = 1; axis < 4; axis *= 2, salt++) {
            for (int i = 0; i < 12; i++)
                out[i] = 1.0 / (3 + me + 10 * salt + 100 * i);
            int to = me ^ axis;
            MPI_Sendrecv(out, 12, MPI_DOUBLE, to, 10, in, 12, MPI_DOUBLE, to, 10, four, MPI_STATUS_IGNORE);
        }
}

int main(int argc, char **argv)
{
    MPI_Comm four;
    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    MPI_Comm_split(world, rank < 4, rank, &four);
    tell_once();
    tell_shuffled();
    reduce_objects();
    MPI_Barrier(world);
    scan_objects();
    collect_state();
    distribute_state();
    deal_tasks();
    borders();
    if (rank < 4) {
        both_borders(four);
        compare_exchange(four);
    }
    if (rank == 0)
        puts("ok");
    MPI_Finalize();
    return 0;
}
