/* Collective operations as in textbooks and programs for courses, and exchanges that are no collectives, for 6 ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 5, RANKS = 6, BLOCK = 7, N = 24 };

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

static double larger(double a, double b) { return a > b ? a : b; }

/* Bruck's allgather: twice as many blocks in each round, and the rest in the last one; then they are sorted. */
static void bruck_allgather(void)
{
    static double all[RANKS][BLOCK];
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < BLOCK; i++)
            all[0][i] = number(i);
        for (int have = 1; have < ranks; have *= 2) {
            int n = have < ranks - have ? have : ranks - have;
            MPI_Sendrecv(all[0], n * BLOCK, MPI_DOUBLE, (rank - have + ranks) % ranks, 1, all[have], n * BLOCK, MPI_DOUBLE, (rank + have) % ranks, 1, world, MPI_STATUS_IGNORE);
        }
    }
}

/* Bruck's alltoall as MPI libraries do it: blocks are picked by a datatype. */
static void bruck_alltoall(void)
{
    static double have[RANKS][BLOCK], in[RANKS * BLOCK];
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < ranks * BLOCK; i++)
            have[i / BLOCK][i % BLOCK] = number(i);
        for (int step = 1; step < ranks; step *= 2) {
            int places[RANKS], n = 0, at = 0;
            MPI_Datatype blocks;
            for (int b = 1; b < ranks; b++)
                if (b & step)
                    places[n++] = b * BLOCK;
            MPI_Type_create_indexed_block(n, BLOCK, places, MPI_DOUBLE, &blocks);
            MPI_Type_commit(&blocks);
            MPI_Sendrecv(have, 1, blocks, (rank + step) % ranks, 2, in, n * BLOCK, MPI_DOUBLE, (rank - step + ranks) % ranks, 2, world, MPI_STATUS_IGNORE);
            for (int k = 0; k < n; k++, at += BLOCK)
                memcpy((double *)have + places[k], in + at, BLOCK * sizeof(double));
            MPI_Type_free(&blocks);
        }
    }
}

/* A sample sort: ranks send samples to rank 0, which sends splitters to all; then numbers go to their buckets. */
static void sample_sort(void)
{
    static int keys[64], bucket[RANKS][64 * RANKS];
    for (int t = 0; t < TIMES; t++, salt++) {
        int samples[RANKS][3], splitters[RANKS], count[RANKS] = {0}, in[RANKS], got[64 * RANKS];
        MPI_Request requests[RANKS];
        for (int i = 0; i < 64; i++)
            keys[i] = 1e6 * number(i);
        for (int i = 0; i < 3; i++)
            samples[rank][i] = keys[20 * i];
        if (rank == 0) {
            for (int r = 1; r < ranks; r++)
                MPI_Recv(samples[r], 3, MPI_INT, r, 3, world, MPI_STATUS_IGNORE);
            for (int i = 0; i < ranks; i++)
                splitters[i] = samples[i][0] + 1000 * i;
            for (int r = 1; r < ranks; r++)
                MPI_Send(splitters, ranks, MPI_INT, r, 4, world);
        } else {
            MPI_Send(samples[rank], 3, MPI_INT, 0, 3, world);
            MPI_Recv(splitters, ranks, MPI_INT, 0, 4, world, MPI_STATUS_IGNORE);
        }
        for (int i = 0; i < 64; i++) {
            int to = (keys[i] / 997 + splitters[0]) % ranks;
            bucket[to][count[to]++] = keys[i];
        }
        for (int k = 1; k < ranks; k++) {
            int to = (rank + k) % ranks, from = (rank - k + ranks) % ranks;
            MPI_Sendrecv(&count[to], 1, MPI_INT, to, 5, &in[from], 1, MPI_INT, from, 5, world, MPI_STATUS_IGNORE);
        }
        int n = 0, at = 0;
        for (int r = 0; r < ranks; r++)
            if (r != rank) {
                MPI_Irecv(got + at, in[r], MPI_INT, r, 6, world, &requests[n++]);
                at += in[r];
            }
        for (int r = 0; r < ranks; r++)
            if (r != rank)
                MPI_Send(bucket[r], count[r], MPI_INT, r, 6, world);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    }
}

/* A matrix multiplication on a grid of 2 x 3: panels go along rows by a ring, along columns directly. */
static void summa(void)
{
    MPI_Comm row, column;
    int r = rank / 3, c = rank % 3;
    static double a[N], b[N];
    MPI_Comm_split(world, r, c, &row);
    MPI_Comm_split(world, c, r, &column);
    for (int k = 0; k < 6; k++, salt++) {
        int root = k % 3;
        for (int i = 0; i < N && c == root; i++)
            a[i] = number(i);
        if (c != root)
            MPI_Recv(a, N, MPI_DOUBLE, (c + 2) % 3, 7, row, MPI_STATUS_IGNORE);
        if ((c + 1) % 3 != root)
            MPI_Send(a, N, MPI_DOUBLE, (c + 1) % 3, 7, row);
        for (int i = 0; i < N && r == k % 2; i++)
            b[i] = number(N + i);
        if (r == k % 2)
            MPI_Send(b, N, MPI_DOUBLE, 1 - r, 8, column);
        else
            MPI_Recv(b, N, MPI_DOUBLE, 1 - r, 8, column, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&row);
    MPI_Comm_free(&column);
}

/* Gaussian elimination: the owner of row k sends it only to the ranks after it. */
static void gauss_pipeline(void)
{
    static double row[N];
    for (int k = 0; k < 12; k++, salt++) {
        int owner = k % ranks;
        if (rank == owner)
            for (int i = 0; i < N; i++)
                row[i] = number(i);
        else
            MPI_Recv(row, N - k, MPI_DOUBLE, (rank + ranks - 1) % ranks, 9, world, MPI_STATUS_IGNORE);
        if ((rank + 1) % ranks != owner)
            MPI_Send(row, N - k, MPI_DOUBLE, (rank + 1) % ranks, 9, world);
    }
}

/* Records of several types are packed, and collected by a binomial tree. */
static void packed_gather(void)
{
    char buffer[4096];
    for (int t = 0; t < TIMES; t++, salt++) {
        int at = 0, id = rank;
        double x[3] = {number(0), number(1), number(2)};
        MPI_Pack(&id, 1, MPI_INT, buffer, sizeof buffer, &at, world);
        MPI_Pack(x, 3, MPI_DOUBLE, buffer, sizeof buffer, &at, world);
        for (int mask = 1; mask < ranks; mask *= 2) {
            if (rank & mask) {
                MPI_Send(buffer, at, MPI_PACKED, rank - mask, 10, world);
                break;
            }
            if (rank + mask < ranks) {
                MPI_Status status;
                int n;
                MPI_Recv(buffer + at, sizeof buffer - at, MPI_PACKED, rank + mask, 10, world, &status);
                MPI_Get_count(&status, MPI_PACKED, &n);
                at += n;
            }
        }
    }
}

static void dissemination_barrier(void)
{
    for (int t = 0; t < TIMES; t++)
        for (int step = 1; step < ranks; step *= 2)
            MPI_Sendrecv(NULL, 0, MPI_INT, (rank + step) % ranks, 11, NULL, 0, MPI_INT, (rank - step + ranks) % ranks, 11, world, MPI_STATUS_IGNORE);
}

/* Nodes of two ranks: leaders inform each other, then their nodes. */
static void two_level_broadcast(void)
{
    static double data[N];
    MPI_Comm node, leaders;
    int me;
    MPI_Comm_split(world, rank / 2, rank, &node);
    MPI_Comm_split(world, rank % 2 ? MPI_UNDEFINED : 0, rank, &leaders);
    MPI_Comm_rank(node, &me);
    for (int t = 0; t < TIMES; t++, salt++) {
        for (int i = 0; i < N && rank == 0; i++)
            data[i] = number(i);
        if (me == 0) {
            if (rank == 0) {
                MPI_Send(data, N, MPI_DOUBLE, 1, 12, leaders);
                MPI_Send(data, N, MPI_DOUBLE, 2, 12, leaders);
            } else
                MPI_Recv(data, N, MPI_DOUBLE, 0, 12, leaders, MPI_STATUS_IGNORE);
            MPI_Send(data, N, MPI_DOUBLE, 1, 13, node);
        } else
            MPI_Recv(data, N, MPI_DOUBLE, 0, 13, node, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&node);
    if (me == 0)
        MPI_Comm_free(&leaders);
}

/* The same for a sum: up to the leader of three ranks, to rank 0, and back. */
static void two_level_sum(void)
{
    for (int t = 0; t < TIMES; t++, salt++) {
        double sum[2] = {number(0), number(1)}, in[2];
        int leader = rank / 3 * 3;
        if (rank != leader) {
            MPI_Send(sum, 2, MPI_DOUBLE, leader, 14, world);
            MPI_Recv(sum, 2, MPI_DOUBLE, leader, 15, world, MPI_STATUS_IGNORE);
            continue;
        }
        for (int r = leader + 1; r < leader + 3; r++) {
            MPI_Recv(in, 2, MPI_DOUBLE, r, 14, world, MPI_STATUS_IGNORE);
            sum[0] += in[0], sum[1] += in[1];
        }
        MPI_Sendrecv(sum, 2, MPI_DOUBLE, 3 - leader, 16, in, 2, MPI_DOUBLE, 3 - leader, 16, world, MPI_STATUS_IGNORE);
        sum[0] += in[0], sum[1] += in[1];
        for (int r = leader + 1; r < leader + 3; r++)
            MPI_Send(sum, 2, MPI_DOUBLE, r, 15, world);
    }
}

/* Recursive doubling with two ranks left over, and rounding. */
static void folded_norm(void)
{
    for (int t = 0; t < TIMES; t++, salt++) {
        static const double scales[RANKS] = {1e-3, 1e-2, 0.1, 1, 10, 100};
        double sum = number(0) * scales[rank], in;
        if (rank >= 4)
            MPI_Send(&sum, 1, MPI_DOUBLE, rank - 4, 17, world);
        else if (rank + 4 < ranks) {
            MPI_Recv(&in, 1, MPI_DOUBLE, rank + 4, 17, world, MPI_STATUS_IGNORE);
            sum += in;
        }
        for (int mask = 1; mask < 4 && rank < 4; mask *= 2) {
            MPI_Sendrecv(&sum, 1, MPI_DOUBLE, rank ^ mask, 18, &in, 1, MPI_DOUBLE, rank ^ mask, 18, world, MPI_STATUS_IGNORE);
            sum += in;
        }
        if (rank >= 4)
            MPI_Recv(&sum, 1, MPI_DOUBLE, rank - 4, 19, world, MPI_STATUS_IGNORE);
        else if (rank + 4 < ranks)
            MPI_Send(&sum, 1, MPI_DOUBLE, rank + 4, 19, world);
    }
}

/* Where each rank writes in a file: an offset that comes from the previous rank. */
static void offsets(void)
{
    for (int t = 0; t < TIMES; t++, salt++) {
        long mine = 1e6 * number(0), before = 0;
        if (rank > 0)
            MPI_Recv(&before, 1, MPI_LONG, rank - 1, 20, world, MPI_STATUS_IGNORE);
        before += mine;
        if (rank < ranks - 1)
            MPI_Send(&before, 1, MPI_LONG, rank + 1, 20, world);
    }
}

/* Jacobi on strips; the residual goes to rank 0 and back, in the order of arrival. */
static void jacobi(void)
{
    static double u[N + 2][N], v[N + 2][N];
    int up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
    for (int i = 0; i < N * N; i++)
        u[1 + i / N][i % N] = number(i);
    salt++;
    for (int t = 0; t < 3 * TIMES; t++) {
        double residual = 0, in;
        MPI_Sendrecv(u[1], N, MPI_DOUBLE, up, 21, u[N + 1], N, MPI_DOUBLE, down, 21, world, MPI_STATUS_IGNORE);
        MPI_Sendrecv(u[N], N, MPI_DOUBLE, down, 22, u[0], N, MPI_DOUBLE, up, 22, world, MPI_STATUS_IGNORE);
        for (int i = 1; i <= N; i++)
            for (int j = 1; j < N - 1; j++) {
                v[i][j] = (u[i - 1][j] + u[i + 1][j] + u[i][j - 1] + u[i][j + 1]) / 4;
                residual = larger(residual, (v[i][j] - u[i][j]) * (v[i][j] - u[i][j]));
            }
        for (int i = 1; i <= N; i++)
            memcpy(&u[i][1], &v[i][1], (N - 2) * sizeof(double));
        if (rank > 0) {
            MPI_Send(&residual, 1, MPI_DOUBLE, 0, 23, world);
            MPI_Recv(&residual, 1, MPI_DOUBLE, 0, 24, world, MPI_STATUS_IGNORE);
        } else {
            for (int r = 1; r < ranks; r++) {
                MPI_Recv(&in, 1, MPI_DOUBLE, MPI_ANY_SOURCE, 23, world, MPI_STATUS_IGNORE);
                residual = larger(residual, in);
            }
            for (int r = 1; r < ranks; r++)
                MPI_Send(&residual, 1, MPI_DOUBLE, r, 24, world);
        }
    }
}

/* Floyd-Warshall: the owner of row k sends it to all others, nonblocking. */
static void floyd(void)
{
    static int row[N];
    for (int k = 0; k < 18; k++, salt++) {
        int owner = k / 3;
        if (rank == owner) {
            MPI_Request requests[RANKS];
            int n = 0;
            for (int i = 0; i < N; i++)
                row[i] = 1e6 * number(i);
            for (int r = 0; r < ranks; r++)
                if (r != rank)
                    MPI_Isend(row, N, MPI_INT, r, k, world, &requests[n++]);
            MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        } else
            MPI_Recv(row, N, MPI_INT, owner, k, world, MPI_STATUS_IGNORE);
    }
}

/* Rank 0 adds up the numbers that it receives, and keeps the sum. */
static void energy(void)
{
    for (int t = 0; t < TIMES; t++, salt++) {
        double e[3] = {number(0), number(1), number(2)}, in[3];
        if (rank > 0)
            MPI_Send(e, 3, MPI_DOUBLE, 0, 25, world);
        else
            for (int r = 1; r < ranks; r++) {
                MPI_Recv(in, 3, MPI_DOUBLE, r, 25, world, MPI_STATUS_IGNORE);
                for (int i = 0; i < 3; i++)
                    e[i] += in[i];
            }
    }
}

/* A pipeline of stages; each changes the data that it gets. No collective. */
static void stages(void)
{
    double x[BLOCK];
    for (int t = 0; t < 4 * TIMES; t++, salt++) {
        if (rank == 0)
            for (int i = 0; i < BLOCK; i++)
                x[i] = number(i);
        else
            MPI_Recv(x, BLOCK, MPI_DOUBLE, rank - 1, 26, world, MPI_STATUS_IGNORE);
        for (int i = 0; i < BLOCK; i++)
            x[i] = x[i] * x[i] + rank;
        if (rank < ranks - 1)
            MPI_Send(x, BLOCK, MPI_DOUBLE, rank + 1, 26, world);
    }
}

/* A halo on a ring, in place and both ways. A flag tells the neighbours whether anything changed. No collective. */
static void flags(void)
{
    for (int t = 0; t < 2 * TIMES; t++, salt++) {
        double out[2][BLOCK], in[2][BLOCK];
        int changed = number(0) > 1.3, theirs[2];
        MPI_Request requests[8];
        int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
        for (int i = 0; i < 2 * BLOCK; i++)
            out[i / BLOCK][i % BLOCK] = number(i);
        MPI_Irecv(in[0], BLOCK, MPI_DOUBLE, left, 27, world, &requests[0]);
        MPI_Irecv(in[1], BLOCK, MPI_DOUBLE, right, 28, world, &requests[1]);
        MPI_Irecv(&theirs[0], 1, MPI_INT, left, 29, world, &requests[2]);
        MPI_Irecv(&theirs[1], 1, MPI_INT, right, 29, world, &requests[3]);
        MPI_Isend(out[0], BLOCK, MPI_DOUBLE, right, 27, world, &requests[4]);
        MPI_Isend(out[1], BLOCK, MPI_DOUBLE, left, 28, world, &requests[5]);
        MPI_Isend(&changed, 1, MPI_INT, right, 29, world, &requests[6]);
        MPI_Isend(&changed, 1, MPI_INT, left, 29, world, &requests[7]);
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
    }
}

/* A minimum by a token that goes twice round a ring: to find the minimum, then to distribute it. */
static void election(void)
{
    for (int t = 0; t < TIMES; t++, salt++) {
        int mine = 1e6 * number(0), least = mine;
        if (rank == 0) {
            MPI_Send(&least, 1, MPI_INT, 1, 30, world);
            MPI_Recv(&least, 1, MPI_INT, ranks - 1, 30, world, MPI_STATUS_IGNORE);
            MPI_Send(&least, 1, MPI_INT, 1, 31, world);
            MPI_Recv(&least, 1, MPI_INT, ranks - 1, 31, world, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&least, 1, MPI_INT, rank - 1, 30, world, MPI_STATUS_IGNORE);
            if (mine < least)
                least = mine;
            MPI_Send(&least, 1, MPI_INT, (rank + 1) % ranks, 30, world);
            MPI_Recv(&least, 1, MPI_INT, rank - 1, 31, world, MPI_STATUS_IGNORE);
            MPI_Send(&least, 1, MPI_INT, (rank + 1) % ranks, 31, world);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    bruck_allgather();
    bruck_alltoall();
    sample_sort();
    summa();
    gauss_pipeline();
    packed_gather();
    dissemination_barrier();
    two_level_broadcast();
    two_level_sum();
    folded_norm();
    offsets();
    jacobi();
    floyd();
    energy();
    stages();
    flags();
    election();
    if (rank == 0)
        puts("ok");
    MPI_Finalize();
    return 0;
}
