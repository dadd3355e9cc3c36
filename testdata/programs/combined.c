/* Gathers, scatters, reductions and scans by hand, and patterns that only look like them. For 5 ranks; each is done TIMES times. */
#include "commq.h"
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { TIMES = 6, N = 7, RANKS = 5 };

static int rank, ranks;
static double x[N], y[N], all[RANKS * N];
static int k[N], l[N], many[RANKS * RANKS];

static void numbers(int time, int salt)
{
    for (int i = 0; i < N; i++) {
        x[i] = 1.0 / (3 + rank * N + i + 1000 * time + 100000 * salt);
        k[i] = (rank * 7919 + i * 104729 + time * 1299709 + salt * 15485863) % 10007 - 5000;
    }
}

static void add(void)
{
    for (int i = 0; i < N; i++)
        x[i] += y[i];
}

static void count(void)
{
    for (int i = 0; i < N; i++)
        k[i] += l[i];
}

/* A sum up a binomial tree to rank 0. The records do not show what inner ranks add. */
static void reduce_tree(void)
{
    for (int t = 0; t < TIMES; t++) {
        numbers(t, 1);
        for (int bit = 1; bit < ranks; bit *= 2) {
            if (rank & bit) {
                MPI_Send(x, N, MPI_DOUBLE, rank - bit, 1, MPI_COMM_WORLD);
                break;
            }
            if (rank + bit < ranks) {
                MPI_Recv(y, N, MPI_DOUBLE, rank + bit, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                add();
            }
        }
    }
}

/* The same with integers; each rank records its contribution. */
static void reduce_recorded(void)
{
    for (int t = 0; t < TIMES; t++) {
        numbers(t, 2);
        commq_send_to_self(k, N, MPI_INT);
        for (int bit = 1; bit < ranks; bit *= 2) {
            if (rank & bit) {
                MPI_Send(k, N, MPI_INT, rank - bit, 2, MPI_COMM_WORLD);
                break;
            }
            if (rank + bit < ranks) {
                MPI_Recv(l, N, MPI_INT, rank + bit, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                count();
            }
        }
        if (rank == 0)
            commq_send_to_self(k, N, MPI_INT);
    }
}

/* By recursive doubling over four ranks. The fifth sends its number to the first before, and gets the sum after. */
static void doubling(void)
{
    for (int t = 0; t < TIMES; t++) {
        numbers(t, 3);
        if (rank == 4)
            MPI_Send(x, N, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD);
        if (rank == 0) {
            MPI_Recv(y, N, MPI_DOUBLE, 4, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            add();
        }
        for (int bit = 1; bit < 4 && rank < 4; bit *= 2) {
            MPI_Sendrecv(x, N, MPI_DOUBLE, rank ^ bit, 3, y, N, MPI_DOUBLE, rank ^ bit, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            add();
        }
        if (rank == 0)
            MPI_Send(x, N, MPI_DOUBLE, 4, 3, MPI_COMM_WORLD);
        if (rank == 4)
            MPI_Recv(x, N, MPI_DOUBLE, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* The maximum of one number per rank, by recursive doubling over the first four ranks. */
static void largest(void)
{
    for (int t = 0; t < TIMES; t++) {
        numbers(t, 4);
        for (int bit = 1; bit < 4 && rank < 4; bit *= 2) {
            MPI_Sendrecv(k, 1, MPI_INT, rank ^ bit, 4, l, 1, MPI_INT, rank ^ bit, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (l[0] > k[0])
                k[0] = l[0];
        }
    }
}

/* A sum at rank 2, which sends it to all. */
static void central(void)
{
    for (int t = 0; t < TIMES; t++) {
        numbers(t, 5);
        if (rank != 2) {
            MPI_Send(x, N, MPI_DOUBLE, 2, 5, MPI_COMM_WORLD);
            MPI_Recv(x, N, MPI_DOUBLE, 2, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            continue;
        }
        for (int r = 0; r < ranks; r++)
            if (r != 2) {
                MPI_Recv(y, N, MPI_DOUBLE, r, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                add();
            }
        for (int r = 0; r < ranks; r++)
            if (r != 2)
                MPI_Send(x, N, MPI_DOUBLE, r, 6, MPI_COMM_WORLD);
    }
}

/* A scan: sums over all ranks up to each, by distances that double. */
static void scan(void)
{
    for (int t = 0; t < TIMES; t++) {
        numbers(t, 7);
        for (int s = 1; s < ranks; s *= 2) {
            int from = rank - s >= 0 ? rank - s : MPI_PROC_NULL, to = rank + s < ranks ? rank + s : MPI_PROC_NULL;
            memset(l, 0, sizeof l);
            MPI_Sendrecv(k, N, MPI_INT, to, 7, l, N, MPI_INT, from, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            count();
        }
    }
}

/* A scan from one rank to the next, with records. */
static void chain(void)
{
    for (int t = 0; t < TIMES; t++) {
        numbers(t, 8);
        commq_send_to_self(x, N, MPI_DOUBLE);
        if (rank > 0) {
            MPI_Recv(y, N, MPI_DOUBLE, rank - 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            add();
        }
        if (rank < ranks - 1)
            MPI_Send(x, N, MPI_DOUBLE, rank + 1, 8, MPI_COMM_WORLD);
    }
}

/* A gather: every rank sends its block directly to its place at rank 3. */
static void gather(void)
{
    for (int t = 0; t < TIMES; t++) {
        MPI_Request r[RANKS];
        int n = 0;
        numbers(t, 9);
        if (rank != 3) {
            MPI_Send(x, N, MPI_DOUBLE, 3, 9, MPI_COMM_WORLD);
            continue;
        }
        for (int p = 0; p < ranks; p++)
            if (p != 3)
                MPI_Irecv(all + p * N, N, MPI_DOUBLE, p, 9, MPI_COMM_WORLD, &r[n++]);
        memcpy(all + 3 * N, x, sizeof x);
        MPI_Waitall(n, r, MPI_STATUSES_IGNORE);
    }
}

/* A gather up a binomial tree to rank 0. Each rank sends the blocks of its subtree, and records its own. */
static void gather_tree(void)
{
    for (int t = 0; t < TIMES; t++) {
        int have = 1;
        numbers(t, 10);
        memcpy(all + rank * N, x, sizeof x);
        commq_send_to_self(all + rank * N, N, MPI_DOUBLE);
        for (int bit = 1; bit < ranks; bit *= 2) {
            if (rank & bit) {
                MPI_Send(all + rank * N, have * N, MPI_DOUBLE, rank - bit, 10, MPI_COMM_WORLD);
                break;
            }
            if (rank + bit < ranks) {
                int more = ranks - rank - bit < bit ? ranks - rank - bit : bit;
                MPI_Recv(all + (rank + bit) * N, more * N, MPI_DOUBLE, rank + bit, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                have += more;
            }
        }
        if (rank == 0)
            commq_send_to_self(all, ranks * N, MPI_DOUBLE);
    }
}

/* Blocks of different sizes from rank 1 to all. */
static void scatterv(void)
{
    for (int t = 0; t < TIMES; t++) {
        for (int i = 0; i < RANKS * RANKS; i++)
            many[i] = i * 31 + t * 1009;
        if (rank != 1) {
            MPI_Recv(many, rank + 1, MPI_INT, 1, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            continue;
        }
        for (int p = 0, at = 0; p < ranks; at += ++p)
            if (p != 1)
                MPI_Send(many + at, p + 1, MPI_INT, p, 11, MPI_COMM_WORLD);
    }
}

/* Down a binomial tree from rank 0: a rank that gets several blocks passes on all but its own. */
static void scatter_tree(void)
{
    for (int t = 0; t < TIMES; t++) {
        int bit = 1, have = ranks;
        for (int i = 0; i < RANKS * N; i++)
            all[i] = rank == 0 ? 1.0 / (17 + i + 101 * t) : 0;
        for (; bit < ranks && !(rank & bit); bit *= 2)
            ;
        if (rank > 0) {
            have = ranks - rank < bit ? ranks - rank : bit;
            MPI_Recv(all + rank * N, have * N, MPI_DOUBLE, rank - bit, 12, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        for (bit /= 2; bit > 0; bit /= 2)
            if (rank + bit < ranks) {
                int more = have - bit;
                MPI_Send(all + (rank + bit) * N, more * N, MPI_DOUBLE, rank + bit, 12, MPI_COMM_WORLD);
                have = bit;
            }
    }
}

/* An allgather over four ranks by recursive doubling. */
static void growing(void)
{
    for (int t = 0; t < TIMES; t++) {
        numbers(t, 13);
        memcpy(all + rank * N, x, sizeof x);
        for (int bit = 1; bit < 4 && rank < 4; bit *= 2) {
            int mine = rank / bit * bit, theirs = mine ^ bit;
            MPI_Sendrecv(all + mine * N, bit * N, MPI_DOUBLE, rank ^ bit, 13, all + theirs * N, bit * N, MPI_DOUBLE, rank ^ bit, 13, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

/* Sums of a block for each rank, round a ring, with records. */
static void ring(void)
{
    for (int t = 0; t < TIMES; t++) {
        int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
        for (int i = 0; i < RANKS * N; i++)
            all[i] = 1.0 / (3 + rank * 7 + i + 13 * t);
        commq_send_to_self(all, ranks * N, MPI_DOUBLE);
        for (int s = 0; s < ranks - 1; s++) {
            int out = (rank - s + ranks) % ranks, in = (before - s + ranks) % ranks;
            MPI_Sendrecv(all + out * N, N, MPI_DOUBLE, next, 14, y, N, MPI_DOUBLE, before, 14, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < N; i++)
                all[in * N + i] += y[i];
        }
    }
}

/* Not a collective: each rank changes what it passes on. */
static void pipeline(void)
{
    for (int t = 0; t < 3 * TIMES; t++) {
        numbers(t, 15);
        if (rank > 0)
            MPI_Recv(y, N, MPI_DOUBLE, rank - 1, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++)
            x[i] = 0.5 * (x[i] + (rank > 0 ? y[i] : 1));
        if (rank < ranks - 1)
            MPI_Send(x, N, MPI_DOUBLE, rank + 1, 15, MPI_COMM_WORLD);
    }
}

/* Not a collective: a halo on a grid of two by two has the partners of recursive doubling. */
static void halo(void)
{
    for (int t = 0; t < 3 * TIMES && rank < 4; t++)
        for (int bit = 1; bit < 4; bit *= 2) {
            numbers(t, 15 + bit);
            MPI_Sendrecv(x, N, MPI_DOUBLE, rank ^ bit, 16, y, N, MPI_DOUBLE, rank ^ bit, 16, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int i = 0; i < N; i++)
                x[i] = 0.25 * (x[i] + y[i]);
        }
}

/* Not a collective: two ranks exchange a number that both change. */
static void ping_pong(void)
{
    for (int t = 0; t < 3 * TIMES && rank < 4; t++) {
        if (rank % 2 == 0) {
            numbers(t, 19);
            MPI_Send(x, N, MPI_DOUBLE, rank + 1, 17, MPI_COMM_WORLD);
            MPI_Recv(x, N, MPI_DOUBLE, rank + 1, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(x, N, MPI_DOUBLE, rank - 1, 17, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            x[0] += t;
            MPI_Send(x, N, MPI_DOUBLE, rank - 1, 17, MPI_COMM_WORLD);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    reduce_tree();
    reduce_recorded();
    doubling();
    largest();
    central();
    scan();
    chain();
    gather();
    gather_tree();
    scatterv();
    scatter_tree();
    growing();
    ring();
    pipeline();
    halo();
    ping_pong();
    if (rank == 0)
        puts("ok");
    MPI_Finalize();
    return 0;
}
