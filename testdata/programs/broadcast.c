/* The same broadcast by hand and by MPI_Bcast: what commq detect --machine predicts of the one can be measured with the other.
   broadcast hand|call BYTES ROUNDS: prints the seconds that ROUNDS take, with some computing between. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double compute(double x)
{
    for (int i = 0; i < 2000; i++)
        x = x * 0.999 + 1.0;
    return x;
}

/* The root sends to one rank after the other. */
static void by_hand(char *data, int bytes, int rank, int ranks)
{
    if (rank == 0)
        for (int r = 1; r < ranks; r++)
            MPI_Send(data, bytes, MPI_CHAR, r, 7, MPI_COMM_WORLD);
    else
        MPI_Recv(data, bytes, MPI_CHAR, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) {
        if (rank == 0)
            fprintf(stderr, "usage: broadcast hand|call BYTES ROUNDS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int hand = strcmp(argv[1], "hand") == 0, bytes = atoi(argv[2]), rounds = atoi(argv[3]);
    char *data = calloc((size_t)bytes + sizeof(int), 1);
    double x = rank, start = 0;
    for (int k = -2; k < rounds; k++) { /* two rounds to warm up */
        if (k == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            start = MPI_Wtime();
        }
        x = compute(x);
        if (rank == 0)
            memcpy(data, &k, sizeof k);
        if (hand)
            by_hand(data, bytes, rank, ranks);
        else
            MPI_Bcast(data, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
        int got;
        memcpy(&got, data, sizeof got);
        if (got != k) {
            fprintf(stderr, "rank %d has %d in round %d\n", rank, got, k);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%.9f\n", MPI_Wtime() - start);
    free(data);
    MPI_Finalize();
    return x < 0; /* never true, but keeps x */
}
