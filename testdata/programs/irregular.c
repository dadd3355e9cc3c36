/* Collective operations that programs do by hand in irregular ways, and traffic that only looks like them. For 6 ranks; each is done TIMES times. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIMES = 6, RANKS = 6, BLOCK = 11, MOST = 200 };

static int rank, ranks, salt;
static MPI_Comm world;
static double out[RANKS][MOST], in[RANKS][MOST];

static unsigned hash(unsigned a, unsigned b)
{
    unsigned h = 2654435761u * (a * 1000003u + salt * 7919u + b + 1u);
    h ^= h >> 15;
    h *= 2246822519u;
    return h ^ h >> 13;
}

static void fill(double *a, int n)
{
    for (int i = 0; i < n; i++)
        a[i] = 1.0 + hash(rank, i) / 4294967296.0;
}

/* Blocks of several sizes go from each rank to some of the others: the same pairs each time, most of them one way. */
static void remap(void)
{
    static const char *to[RANKS] = {"124", "235", "03", "1450", "5", "0"};
    MPI_Request requests[RANKS];
    for (int t = 0; t < TIMES; t++, salt++) {
        int n = 0;
        for (int r = 0; r < ranks; r++)
            if (strchr(to[r], '0' + rank))
                MPI_Irecv(in[r], MOST, MPI_DOUBLE, r, 20, world, &requests[n++]);
        for (const char *c = to[rank]; *c; c++) {
            fill(out[*c - '0'], MOST);
            MPI_Send(out[*c - '0'], 5 + 3 * rank + *c % 4, MPI_DOUBLE, *c - '0', 20, world);
        }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    }
}

/* Particles move to other ranks: other pairs each time, which a call tells first. */
static void particles(void)
{
    MPI_Request requests[2 * RANKS];
    for (int t = 0; t < 2 * TIMES; t++, salt++) {
        int counts[RANKS], come[RANKS], n = 0;
        for (int r = 0; r < ranks; r++)
            counts[r] = r == rank || hash(rank, 77 + r) % 5 < 2 ? 0 : 1 + hash(rank, r) % 90;
        MPI_Alltoall(counts, 1, MPI_INT, come, 1, MPI_INT, world);
        for (int r = 0; r < ranks; r++)
            if (come[r])
                MPI_Irecv(in[r], come[r], MPI_DOUBLE, r, 21, world, &requests[n++]);
        for (int r = 0; r < ranks; r++)
            if (counts[r]) {
                fill(out[r], counts[r] + r);
                MPI_Isend(out[r] + r, counts[r], MPI_DOUBLE, r, 21, world, &requests[n++]);
            }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    }
}

/* Rank 0 writes the blocks of all, which come when it has told them that it is their turn. */
static void write_in_turn(void)
{
    static double block[MOST];
    for (int t = 0; t < TIMES; t++, salt++) {
        fill(block, MOST);
        if (rank) {
            MPI_Recv(NULL, 0, MPI_INT, 0, 22, world, MPI_STATUS_IGNORE);
            MPI_Send(block, 20 + 7 * rank, MPI_DOUBLE, 0, 23, world);
            continue;
        }
        for (int r = 1; r < ranks; r++) {
            MPI_Send(NULL, 0, MPI_INT, r, 22, world);
            MPI_Recv(block, MOST, MPI_DOUBLE, r, 23, world, MPI_STATUS_IGNORE);
        }
    }
}

/* Rank 0 reads a block for each of the others into one buffer, and waits until it has come. */
static void read_in_turn(void)
{
    static double block[MOST];
    for (int t = 0; t < TIMES; t++, salt++) {
        if (rank) {
            MPI_Recv(block, MOST, MPI_DOUBLE, 0, 24, world, MPI_STATUS_IGNORE);
            MPI_Send(NULL, 0, MPI_INT, 0, 25, world);
            continue;
        }
        for (int r = 1; r < ranks; r++, salt++) {
            fill(block, MOST);
            MPI_Send(block, 30 + 9 * r, MPI_DOUBLE, r, 24, world);
            MPI_Recv(NULL, 0, MPI_INT, r, 25, world, MPI_STATUS_IGNORE);
        }
    }
}

/* Rank 0 receives the blocks of all into one buffer, in their order, to print them. They have several sizes. */
static void print_blocks(void)
{
    static double block[MOST];
    for (int t = 0; t < TIMES; t++, salt++) {
        fill(block, MOST);
        if (rank)
            MPI_Send(block, 15 + 4 * rank, MPI_DOUBLE, 0, 26, world);
        for (int r = 1; r < ranks && !rank; r++)
            MPI_Recv(block, MOST, MPI_DOUBLE, r, 26, world, MPI_STATUS_IGNORE);
    }
}

/* Rank 0 adds up what all others send, as it comes. */
static void sum_as_it_comes(void)
{
    static double sum[BLOCK], part[BLOCK];
    for (int t = 0; t < TIMES; t++, salt++) {
        fill(sum, BLOCK);
        if (rank)
            MPI_Send(sum, BLOCK, MPI_DOUBLE, 0, 27, world);
        for (int r = 1; r < ranks && !rank; r++) {
            MPI_Recv(part, BLOCK, MPI_DOUBLE, r, 27, world, MPI_STATUS_IGNORE);
            for (int i = 0; i < BLOCK; i++)
                sum[i] += part[i];
        }
    }
}

typedef struct { double least, most, sum; int count; } extent;

/* The ranks' extents are joined by recursive doubling; two more ranks than a power of two go first and last. They are sent as bytes. */
static void join_extents(void)
{
    for (int t = 0; t < TIMES; t++, salt++) {
        extent all, other;
        memset(&all, 0, sizeof all);
        fill(&all.least, 3);
        all.count = hash(rank, 9) % 1000;
        if (rank >= 4)
            MPI_Send(&all, sizeof all, MPI_BYTE, rank - 4, 28, world);
        for (int mask = 4; mask; mask = mask == 4 ? 1 : mask == 1 ? 2 : 0) {
            int partner = mask == 4 ? rank + 4 : rank ^ mask;
            if (rank >= 4 || partner >= ranks)
                continue;
            if (mask == 4)
                MPI_Recv(&other, sizeof other, MPI_BYTE, partner, 28, world, MPI_STATUS_IGNORE);
            else
                MPI_Sendrecv(&all, sizeof all, MPI_BYTE, partner, 28, &other, sizeof other, MPI_BYTE, partner, 28, world, MPI_STATUS_IGNORE);
            all.least = other.least < all.least ? other.least : all.least;
            all.most = other.most > all.most ? other.most : all.most;
            all.sum = other.sum + all.sum;
            all.count += other.count;
        }
        if (rank >= 4)
            MPI_Recv(&all, sizeof all, MPI_BYTE, rank - 4, 29, world, MPI_STATUS_IGNORE);
        else if (rank + 4 < ranks)
            MPI_Send(&all, sizeof all, MPI_BYTE, rank + 4, 29, world);
    }
}

/* The best of all candidates, sent as bytes, goes up a tree to rank 0, and down to all. */
static void elect(void)
{
    for (int t = 0; t < TIMES; t++, salt++) {
        extent best, other;
        memset(&best, 0, sizeof best);
        fill(&best.least, 3);
        best.count = rank;
        for (int child = 2 * rank + 1; child <= 2 * rank + 2; child++)
            if (child < ranks) {
                MPI_Recv(&other, sizeof other, MPI_BYTE, child, 38, world, MPI_STATUS_IGNORE);
                if (other.most > best.most)
                    best = other;
            }
        if (rank) {
            MPI_Send(&best, sizeof best, MPI_BYTE, (rank - 1) / 2, 38, world);
            MPI_Recv(&best, sizeof best, MPI_BYTE, (rank - 1) / 2, 39, world, MPI_STATUS_IGNORE);
        }
        for (int child = 2 * rank + 1; child <= 2 * rank + 2; child++)
            if (child < ranks)
                MPI_Send(&best, sizeof best, MPI_BYTE, child, 39, world);
    }
}

/* Extents are joined up a tree at rank 0. */
static void reduce_extents(void)
{
    for (int t = 0; t < TIMES; t++, salt++) {
        extent all, other;
        memset(&all, 0, sizeof all);
        fill(&all.least, 3);
        all.count = 1;
        for (int mask = 1; mask < ranks; mask <<= 1) {
            if (rank & mask) {
                MPI_Send(&all, sizeof all, MPI_BYTE, rank - mask, 40, world);
                break;
            }
            if (rank + mask < ranks) {
                MPI_Recv(&other, sizeof other, MPI_BYTE, rank + mask, 40, world, MPI_STATUS_IGNORE);
                all.least = other.least < all.least ? other.least : all.least;
                all.most = other.most > all.most ? other.most : all.most;
                all.count += other.count;
            }
        }
    }
}

/* Halos on a line of ranks; the tag has the step and the direction. */
static void steps(void)
{
    MPI_Request requests[4];
    for (int t = 0; t < TIMES; t++, salt++) {
        int n = 0;
        for (int side = 0; side < 2; side++) {
            int peer = rank + 2 * side - 1;
            if (peer < 0 || peer >= ranks)
                continue;
            fill(out[side], BLOCK + side);
            MPI_Irecv(in[side], BLOCK, MPI_DOUBLE, peer, 1000 + 2 * t + 1 - side, world, &requests[n++]);
            MPI_Isend(out[side] + side, BLOCK, MPI_DOUBLE, peer, 1000 + 2 * t + side, world, &requests[n++]);
        }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    }
}

/* Neighbours on a ring exchange what has left their part of it, often nothing. */
static void leavers(void)
{
    for (int t = 0; t < 2 * TIMES; t++, salt++)
        for (int side = 0; side < 2; side++) {
            int to = (rank + (side ? 1 : ranks - 1)) % ranks, from = (rank + (side ? ranks - 1 : 1)) % ranks;
            int n = hash(rank, side) % 4 ? 0 : 7;
            fill(out[0], n);
            MPI_Sendrecv(out[0], n, MPI_DOUBLE, to, 30, in[0], MOST, MPI_DOUBLE, from, 30, world, MPI_STATUS_IGNORE);
        }
}

/* Rank 0 deals out tasks to whoever asks for one, and at last tells all to stop. */
static void farm(void)
{
    int task[4] = {0}, left = 4 * ranks, going = ranks - 1;
    double result[BLOCK];
    for (; rank; ) {
        fill(result, BLOCK);
        salt += task[0];
        MPI_Send(result, BLOCK, MPI_DOUBLE, 0, 31, world);
        MPI_Recv(task, 4, MPI_INT, 0, 32, world, MPI_STATUS_IGNORE);
        if (task[0] < 0)
            break;
    }
    while (!rank && going) {
        MPI_Status status;
        MPI_Recv(result, BLOCK, MPI_DOUBLE, MPI_ANY_SOURCE, 31, world, &status);
        memset(task, 0, sizeof task);
        task[0] = left ? left-- : -1;
        going -= task[0] < 0;
        MPI_Send(task, 4, MPI_INT, status.MPI_SOURCE, 32, world);
    }
    salt = 5000;
    MPI_Barrier(world);
}

/* Every rank acknowledges what rank 0 sends, and rank 0 what they send. */
static void acknowledge(void)
{
    static double block[MOST];
    for (int t = 0; t < TIMES; t++)
        for (int r = 1; r < ranks; r++, salt++)
            if (rank == r) {
                fill(block, 3 * r + 4);
                MPI_Send(block, 3 * r + 4, MPI_DOUBLE, 0, 33, world);
                MPI_Recv(NULL, 0, MPI_INT, 0, 34, world, MPI_STATUS_IGNORE);
            } else if (!rank) {
                MPI_Recv(block, MOST, MPI_DOUBLE, r, 33, world, MPI_STATUS_IGNORE);
                MPI_Send(NULL, 0, MPI_INT, r, 34, world);
            }
}

/* Rank 0 measures how long a message takes to each other rank and back. */
static void pingpong(void)
{
    static double block[MOST];
    if (!rank)
        fill(block, MOST);
    for (int r = 1; r < ranks; r++)
        for (int t = 0; t < TIMES; t++)
            if (!rank) {
                MPI_Send(block, MOST, MPI_DOUBLE, r, 35, world);
                MPI_Recv(block, MOST, MPI_DOUBLE, r, 36, world, MPI_STATUS_IGNORE);
            } else if (rank == r) {
                MPI_Recv(block, MOST, MPI_DOUBLE, 0, 35, world, MPI_STATUS_IGNORE);
                MPI_Send(block, MOST, MPI_DOUBLE, 0, 36, world);
            }
    salt++;
}

/* Rank 0 tells all by a chain, and rank 2 twice. */
static void told_twice(void)
{
    static double block[MOST];
    for (int t = 0; t < TIMES; t++, salt++) {
        if (!rank)
            fill(block, 60);
        if (rank)
            MPI_Recv(block, 60, MPI_DOUBLE, rank - 1, 37, world, MPI_STATUS_IGNORE);
        if (rank + 1 < ranks)
            MPI_Send(block, 60, MPI_DOUBLE, rank + 1, 37, world);
        if (!rank)
            MPI_Send(block, 60, MPI_DOUBLE, 2, 37, world);
        if (rank == 2)
            MPI_Recv(block, 60, MPI_DOUBLE, 0, 37, world, MPI_STATUS_IGNORE);
    }
}

/* Every rank asks two to five others for the rows that they have, as soon as they can tell, which is the same for all who ask. The
 * questions are an exchange, the answers are none. */
static void ask_around(void)
{
    MPI_Request requests[2 * RANKS];
    MPI_Status status;
    int question[RANKS][2], answers[RANKS][7], rows[7], other[2];
    for (int t = 0; t < TIMES; t++, salt++) {
        int asked[RANKS], n = 0, come = 0;
        for (int r = 0; r < ranks; r++)
            asked[r] = r != rank && (t < 2 || hash(rank, r) % 3 || (rank + 1) % ranks == r);
        MPI_Reduce_scatter_block(asked, &come, 1, MPI_INT, MPI_SUM, world);
        for (int r = 0; r < ranks; r++)
            if (asked[r]) {
                question[r][0] = hash(rank, 7 * r), question[r][1] = r;
                MPI_Irecv(answers[r], 7, MPI_INT, r, 39, world, &requests[n++]);
                MPI_Isend(question[r], 2, MPI_INT, r, 38, world, &requests[n++]);
            }
        for (int i = 0; i < 7; i++)
            rows[i] = hash(rank, 50 + i);
        for (; come; come--) {
            MPI_Recv(other, 2, MPI_INT, MPI_ANY_SOURCE, 38, world, &status);
            MPI_Send(rows, 7, MPI_INT, status.MPI_SOURCE, 39, world);
        }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(world);
    }
}

/* An exchange on a coarse grid: all ranks need the points of rank 1, and ranks 2 and 3 send to some what each needs. */
static void coarse_grid(void)
{
    static const char *to[RANKS] = {"", "02345", "01", "145", "", ""};
    MPI_Request requests[2 * RANKS];
    for (int t = 0; t < 2 * TIMES; t++, salt++) {
        int n = 0;
        for (int r = 0; r < ranks; r++)
            if (strchr(to[r], '0' + rank))
                MPI_Irecv(in[r], MOST, MPI_DOUBLE, r, 40, world, &requests[n++]);
        fill(out[0], MOST);
        for (const char *c = to[rank]; *c; c++)
            MPI_Isend(rank == 1 ? out[0] : out[0] + *c - '0', rank == 1 ? 3 : 2, MPI_DOUBLE, *c - '0', 40, world, &requests[n++]);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    }
}

/* Pairs of ranks tell each other how much they have, and then send it: the same to every other rank. */
static void count_first(void)
{
    static double all[RANKS][MOST];
    for (int t = 0; t < TIMES; t++, salt++) {
        int count = 20 + 3 * rank + t, come;
        fill(all[rank], count);
        for (int k = 0; k < ranks; k++) {
            int r = (k - rank + ranks) % ranks;
            if (r == rank)
                continue;
            MPI_Sendrecv(&count, 1, MPI_INT, r, 41, &come, 1, MPI_INT, r, 41, world, MPI_STATUS_IGNORE);
            MPI_Sendrecv(all[rank], count, MPI_DOUBLE, r, 42, all[r], come, MPI_DOUBLE, r, 42, world, MPI_STATUS_IGNORE);
        }
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(world, &rank);
    MPI_Comm_size(world, &ranks);
    if (ranks != RANKS)
        MPI_Abort(MPI_COMM_WORLD, 1);
    void (*all[])(void) = {remap, particles, write_in_turn, read_in_turn, print_blocks, sum_as_it_comes, join_extents, elect, reduce_extents, steps, leavers, farm, acknowledge, pingpong, told_twice, ask_around, coarse_grid, count_first};
    for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)
        all[i]();
    if (!rank)
        printf("ok\n");
    MPI_Comm_free(&world);
    MPI_Finalize();
    return 0;
}
