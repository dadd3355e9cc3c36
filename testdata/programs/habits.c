/* Collective operations as programs do them by hand, and exchanges that are no collectives. For 8 ranks; each is done TIMES times. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 6, RANKS = 8, ROWS = 12, COLUMNS = 5, LENGTH = 1003, BLOCK = 9 };

static int rank, ranks, salt;
static MPI_Comm world;

static double number(int i)
{
    unsigned h = 2654435761u * (unsigned)(rank * 1000003 + salt * 7919 + i);
    h ^= h >> 15;
    h *= 2246822519u;
    h ^= h >> 13;
    return 1.0 + h / 4294967296.0;
}

/* Two columns of a matrix are added up at rank 0 by a binomial tree. */
static void reduce_columns(void)
{
    static double a[ROWS][COLUMNS], b[ROWS][COLUMNS];
    MPI_Datatype columns;
    MPI_Type_vector(ROWS, 2, COLUMNS, MPI_DOUBLE, &columns);
    MPI_Type_commit(&columns);
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < ROWS * COLUMNS; i++)
            a[i / COLUMNS][i % COLUMNS] = number(i);
        for (int mask = 1; mask < ranks; mask <<= 1) {
            if (rank & mask) {
                MPI_Send(&a[0][1], 1, columns, rank & ~mask, 10, world);
                break;
            }
            if ((rank | mask) < ranks) {
                MPI_Recv(&b[0][1], 1, columns, rank | mask, 10, world, MPI_STATUS_IGNORE);
                for (int i = 0; i < ROWS; i++)
                    for (int j = 1; j < 3; j++)
                        a[i][j] += b[i][j];
            }
        }
    }
    MPI_Type_free(&columns);
}

/* Gradients are averaged over a ring: the segments' sums go round, then the segments. The last ones are shorter. */
static void ring_allreduce(void)
{
    static float data[LENGTH], buffer[LENGTH];
    int size[RANKS], end[RANKS];
    for (int i = 0; i < ranks; i++) {
        size[i] = LENGTH / ranks + (i < LENGTH % ranks);
        end[i] = size[i] + (i ? end[i - 1] : 0);
    }
    int from = (rank - 1 + ranks) % ranks, to = (rank + 1) % ranks;
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < LENGTH; i++)
            data[i] = number(i);
        for (int i = 0; i < ranks - 1; i++) {
            int in = (rank - i - 1 + ranks) % ranks, out = (rank - i + ranks) % ranks;
            MPI_Request request;
            MPI_Irecv(buffer, size[in], MPI_FLOAT, from, 11, world, &request);
            MPI_Send(&data[end[out] - size[out]], size[out], MPI_FLOAT, to, 11, world);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            for (int k = 0; k < size[in]; k++)
                data[end[in] - size[in] + k] += buffer[k];
        }
        for (int i = 0; i < ranks - 1; i++) {
            int out = (rank - i + 1 + ranks) % ranks, in = (rank - i + ranks) % ranks;
            MPI_Sendrecv(&data[end[out] - size[out]], size[out], MPI_FLOAT, to, 12, &data[end[in] - size[in]], size[in], MPI_FLOAT, from, 12, world, MPI_STATUS_IGNORE);
        }
    }
}

/* Blocks are gathered by all, twice as many in each step. */
static void doubling_allgather(void)
{
    static double all[RANKS][BLOCK];
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < BLOCK; i++)
            all[rank][i] = number(i);
        for (int mask = 1; mask < ranks; mask <<= 1) {
            int partner = rank ^ mask, mine = rank & ~(mask - 1), theirs = partner & ~(mask - 1);
            MPI_Sendrecv(all[mine], mask * BLOCK, MPI_DOUBLE, partner, 13, all[theirs], mask * BLOCK, MPI_DOUBLE, partner, 13, world, MPI_STATUS_IGNORE);
        }
    }
}

/* All to all by Bruck's algorithm: blocks go through other ranks, and are packed again in each step. */
static void bruck_alltoall(void)
{
    static int have[RANKS][BLOCK], out[RANKS][BLOCK], in[RANKS][BLOCK];
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < ranks * BLOCK; i++)
            have[i / BLOCK][i % BLOCK] = 1e6 * number(i);
        for (int step = 1; step < ranks; step <<= 1) {
            int n = 0;
            for (int b = 0; b < ranks; b++)
                if (b & step)
                    memcpy(out[n++], have[b], sizeof have[b]);
            MPI_Sendrecv(out, n * BLOCK, MPI_INT, (rank + step) % ranks, 14, in, n * BLOCK, MPI_INT, (rank - step + ranks) % ranks, 14, world, MPI_STATUS_IGNORE);
            n = 0;
            for (int b = 0; b < ranks; b++)
                if (b & step)
                    memcpy(have[b], in[n++], sizeof have[b]);
        }
    }
}

/* A barrier by dissemination; the byte that is sent has no meaning. */
static void dissemination_barrier(void)
{
    char out = 0, in;
    for (int t = 0; t < TIMES; t++)
        for (int step = 1; step < ranks; step <<= 1)
            MPI_Sendrecv(&out, 1, MPI_CHAR, (rank + step) % ranks, 15, &in, 1, MPI_CHAR, (rank - step + ranks) % ranks, 15, world, MPI_STATUS_IGNORE);
}

/* A matrix of blocks is transposed in place, a pair of ranks at a time. */
static void transpose(void)
{
    static double blocks[RANKS][BLOCK];
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < ranks * BLOCK; i++)
            blocks[i / BLOCK][i % BLOCK] = number(i);
        for (int i = 1; i < ranks; i++)
            MPI_Sendrecv_replace(blocks[rank ^ i], BLOCK, MPI_DOUBLE, rank ^ i, 16, rank ^ i, 16, world, MPI_STATUS_IGNORE);
    }
}

/* Halos on a torus of 2 x 4 ranks by persistent requests. In the dimension of two both neighbours are the same. */
static void persistent_halo(void)
{
    static double out[4][BLOCK], in[4][BLOCK];
    int dims[2] = {2, 4}, periods[2] = {1, 1}, next[4];
    MPI_Comm grid;
    MPI_Request requests[8];
    MPI_Cart_create(world, 2, dims, periods, 0, &grid);
    MPI_Cart_shift(grid, 0, 1, &next[0], &next[1]);
    MPI_Cart_shift(grid, 1, 1, &next[2], &next[3]);
    for (int i = 0; i < 4; i++) {
        MPI_Recv_init(in[i], BLOCK, MPI_DOUBLE, next[i], 20 + i, grid, &requests[i]);
        MPI_Send_init(out[i], BLOCK, MPI_DOUBLE, next[i], 20 + (i ^ 1), grid, &requests[4 + i]);
    }
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < 4 * BLOCK; i++)
            out[i / BLOCK][i % BLOCK] = number(i);
        MPI_Startall(8, requests);
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < 8; i++)
        MPI_Request_free(&requests[i]);
    MPI_Comm_free(&grid);
}

/* A master collects a record from each worker, in the order of arrival. */
static void master_any_source(void)
{
    static double records[RANKS][BLOCK];
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < BLOCK; i++)
            records[rank][i] = number(i);
        if (rank > 0) {
            MPI_Send(records[rank], BLOCK, MPI_DOUBLE, 0, 100 + t, world);
            continue;
        }
        for (int left = ranks - 1; left > 0;) {
            MPI_Status status;
            int there;
            MPI_Iprobe(MPI_ANY_SOURCE, 100 + t, world, &there, &status);
            if (!there)
                continue;
            MPI_Recv(records[status.MPI_SOURCE], BLOCK, MPI_DOUBLE, status.MPI_SOURCE, 100 + t, world, MPI_STATUS_IGNORE);
            left--;
        }
    }
}

/* The last rank collects lists of different lengths, and looks at each as it arrives. */
static void collect_waitany(void)
{
    static int lists[RANKS][4 * BLOCK];
    int root = ranks - 1;
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < BLOCK + rank; i++)
            lists[rank][i] = 1e6 * number(i);
        if (rank != root) {
            MPI_Ssend(lists[rank], BLOCK + rank, MPI_INT, root, 17, world);
            continue;
        }
        MPI_Request requests[RANKS];
        for (int r = 0; r < root; r++)
            MPI_Irecv(lists[r], 4 * BLOCK, MPI_INT, r, 17, world, &requests[r]);
        for (int k = 0, which; k < root; k++)
            MPI_Waitany(root, requests, &which, MPI_STATUS_IGNORE);
    }
}

/* Rank 3 does the same with MPI_Testsome. */
static void collect_testsome(void)
{
    static double blocks[RANKS][BLOCK];
    int root = 3;
    for (int t = 0; t < TIMES; t++, salt++) {
        MPI_Request requests[RANKS];
        for (int i = 0; i < BLOCK; i++)
            blocks[rank][i] = number(i);
        if (rank != root) {
            MPI_Isend(blocks[rank], BLOCK, MPI_DOUBLE, root, 18, world, requests);
            MPI_Wait(requests, MPI_STATUS_IGNORE);
            continue;
        }
        int n = 0, got = 0, some, which[RANKS];
        for (int r = 0; r < ranks; r++)
            if (r != root)
                MPI_Irecv(blocks[r], BLOCK, MPI_DOUBLE, r, 18, world, &requests[n++]);
        while (got < n) {
            MPI_Testsome(n, requests, &some, which, MPI_STATUSES_IGNORE);
            got += some;
        }
    }
}

/* Trees from rank 2, with three ways to send. */
static void tree(int way, int (*isend)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *))
{
    static double data[LENGTH];
    int root = 2, me = (rank - root + ranks) % ranks, n = 0;
    MPI_Request requests[RANKS];
    for (int i = 0; rank == root && i < LENGTH; i++)
        data[i] = number(i);
    salt++;
    int mask = 1;
    for (; mask < ranks; mask <<= 1)
        if (me & mask) {
            MPI_Recv(data, LENGTH, MPI_DOUBLE, (me - mask + root) % ranks, way, world, MPI_STATUS_IGNORE);
            break;
        }
    for (mask >>= 1; mask > 0; mask >>= 1)
        if (me + mask < ranks)
            isend(data, LENGTH, MPI_DOUBLE, (me + mask + root) % ranks, way, world, &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void trees(void)
{
    int size = 3 * (LENGTH * sizeof(double) + MPI_BSEND_OVERHEAD);
    void *buffer = malloc(size);
    MPI_Buffer_attach(buffer, size);
    for (int t = 0; t < TIMES; t++) {
        tree(30, MPI_Isend);
        tree(31, MPI_Issend);
        tree(32, MPI_Ibsend);
    }
    MPI_Buffer_detach(&buffer, &size);
    free(buffer);
}

/* A barrier of the even ranks. */
static void butterfly_barrier(void)
{
    MPI_Comm even;
    int me, n;
    MPI_Comm_split(world, rank % 2, rank, &even);
    MPI_Comm_rank(even, &me);
    MPI_Comm_size(even, &n);
    for (int t = 0; rank % 2 == 0 && t < TIMES; t++)
        for (int mask = 1; mask < n; mask <<= 1)
            MPI_Sendrecv(NULL, 0, MPI_BYTE, me ^ mask, 19, NULL, 0, MPI_BYTE, me ^ mask, 19, even, MPI_STATUS_IGNORE);
    MPI_Comm_free(&even);
}

/* The pivot of a column: the largest number and its rank. */
static void pivots(void)
{
    struct {
        double value;
        int rank;
    } mine, theirs;
    double pair[2], other[2];
    for (int t = 0; t < TIMES; t++, salt++) {
        mine.value = number(0);
        mine.rank = rank;
        for (int mask = 1; mask < ranks; mask <<= 1) {
            MPI_Sendrecv(&mine, 1, MPI_DOUBLE_INT, rank ^ mask, 23, &theirs, 1, MPI_DOUBLE_INT, rank ^ mask, 23, world, MPI_STATUS_IGNORE);
            if (theirs.value > mine.value)
                mine = theirs;
        }
    }
    for (int t = 0; t < TIMES; t++, salt++) {
        pair[0] = number(0);
        pair[1] = rank;
        for (int mask = 1; mask < ranks; mask <<= 1) {
            MPI_Sendrecv(pair, 2, MPI_DOUBLE, rank ^ mask, 24, other, 2, MPI_DOUBLE, rank ^ mask, 24, world, MPI_STATUS_IGNORE);
            if (other[0] < pair[0])
                memcpy(pair, other, sizeof pair);
        }
    }
}

/* Ranks take turns at writing a file: each time another one collects the blocks of all. */
static void writers(void)
{
    static double blocks[RANKS][BLOCK];
    for (int t = 0; t < 2 * TIMES; t++, salt++) {
        int root = t % ranks;
        double block[BLOCK];
        for (int i = 0; i < BLOCK; i++)
            block[i] = number(i);
        if (rank != root) {
            MPI_Send(block, BLOCK, MPI_DOUBLE, root, 25, world);
            continue;
        }
        for (int r = 0; r < ranks; r++)
            if (r == rank)
                memcpy(blocks[r], block, sizeof block);
            else
                MPI_Recv(blocks[r], BLOCK, MPI_DOUBLE, r, 25, world, MPI_STATUS_IGNORE);
    }
}

/* A sum at rank 0, which sends it to all: two loops, one function. */
static void sum_and_tell(void)
{
    for (int t = 0; t < TIMES; t++, salt++) {
        double sum = number(0), one;
        if (rank == 0) {
            for (int r = 1; r < ranks; r++) {
                MPI_Recv(&one, 1, MPI_DOUBLE, r, 26, world, MPI_STATUS_IGNORE);
                sum += one;
            }
            for (int r = 1; r < ranks; r++)
                MPI_Send(&sum, 1, MPI_DOUBLE, r, 27, world);
        } else {
            MPI_Send(&sum, 1, MPI_DOUBLE, 0, 26, world);
            MPI_Recv(&sum, 1, MPI_DOUBLE, 0, 27, world, MPI_STATUS_IGNORE);
        }
    }
}

/* All particles visit all ranks, one step after the other round a ring. */
static void systolic(void)
{
    static double mine[BLOCK];
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < BLOCK; i++)
            mine[i] = number(i);
        for (int step = 1; step < ranks; step++)
            MPI_Sendrecv_replace(mine, BLOCK, MPI_DOUBLE, (rank + 1) % ranks, 28, (rank - 1 + ranks) % ranks, 28, world, MPI_STATUS_IGNORE);
    }
}

/* Rank 0 hands out tasks on request. No collective. */
static void tasks(void)
{
    double task = 0, answer;
    MPI_Status status;
    if (rank == 0) {
        int left = 6 * ranks, busy = ranks - 1;
        while (busy > 0) {
            MPI_Recv(&answer, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 33, world, &status);
            task = left > 0 ? number(left) : -1;
            if (left-- <= 0)
                busy--;
            MPI_Send(&task, 1, MPI_DOUBLE, status.MPI_SOURCE, 34, world);
        }
    } else {
        for (int i = 0; task >= 0; i++) {
            answer = number(1000 + i);
            MPI_Send(&answer, 1, MPI_DOUBLE, 0, 33, world);
            MPI_Recv(&task, 1, MPI_DOUBLE, 0, 34, world, MPI_STATUS_IGNORE);
        }
    }
    salt++;
}

/* Odd-even sort by exchanges. No collective. */
static void odd_even_sort(void)
{
    double mine[BLOCK], theirs[BLOCK];
    for (int i = 0; i < BLOCK; i++)
        mine[i] = number(i);
    salt++;
    for (int step = 0; step < ranks; step++) {
        int partner = (rank + step) % 2 == 0 ? rank + 1 : rank - 1;
        if (partner < 0 || partner >= ranks)
            continue;
        MPI_Sendrecv(mine, BLOCK, MPI_DOUBLE, partner, 35, theirs, BLOCK, MPI_DOUBLE, partner, 35, world, MPI_STATUS_IGNORE);
        for (int i = 0; i < BLOCK; i++)
            if ((partner > rank) == (theirs[i] < mine[i]))
                mine[i] = theirs[i];
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    reduce_columns();
    ring_allreduce();
    doubling_allgather();
    bruck_alltoall();
    dissemination_barrier();
    transpose();
    persistent_halo();
    master_any_source();
    collect_waitany();
    collect_testsome();
    trees();
    butterfly_barrier();
    pivots();
    writers();
    sum_and_tell();
    systolic();
    tasks();
    odd_even_sort();
    if (rank == 0)
        puts("ok");
    MPI_Finalize();
    return 0;
}
