/* Numbered messages without end, to be killed at any time: each rank sends to the next one of MPI_COMM_WORLD (alone: to
 * itself). Message i has tag i mod 32768 and i mod 4097 bytes. The calls of a rank: MPI_Init; then for each i
 * MPI_Irecv, MPI_Send, MPI_Wait. After each call the rank writes its number to its 8 bytes of the file given as first
 * argument, which survives a kill. The second argument is the largest number of messages (0: no end); a third one says
 * how to end then: abort, segv, exit, finalize. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char in[4097], out[4097];

int main(int argc, char **argv)
{
	int rank, size;
	long most = argc > 2 ? atol(argv[2]) : 0;
	const char *then = argc > 3 ? argv[3] : "finalize";
	int fd = open(argv[1], O_RDWR | O_CREAT, 0644);
	if (argc < 2 || fd < 0 || ftruncate(fd, 4096) != 0)
		return 9;
	volatile unsigned long *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	made[rank] = 1;
	for (long i = 0; most == 0 || i < most; i++) {
		MPI_Request r;
		int tag = (int)(i % 32768), bytes = (int)(i % 4097);
		MPI_Irecv(in, sizeof in, MPI_BYTE, (rank + size - 1) % size, tag, MPI_COMM_WORLD, &r);
		made[rank]++;
		MPI_Send(out, bytes, MPI_BYTE, (rank + 1) % size, tag, MPI_COMM_WORLD);
		made[rank]++;
		MPI_Wait(&r, MPI_STATUS_IGNORE);
		made[rank]++;
	}
	if (strcmp(then, "abort") == 0 && rank == size - 1)
		MPI_Abort(MPI_COMM_WORLD, 7);
	if (strcmp(then, "segv") == 0 && rank == size - 1)
		*(volatile int *)(fd - fd) = 1;
	if (strcmp(then, "exit") == 0)
		exit(5);
	if (strcmp(then, "finalize") != 0)
		pause();
	MPI_Finalize();
	return 0;
}
