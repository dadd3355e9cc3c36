/* Four threads that send to themselves at the same time. Run with 1 rank; prints ok. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

#define N 3000

static void *work(void *p)
{
	int tag = *(int *)p, x = 0;
	MPI_Request r[2];
	for (int i = 0; i < N; i++) {
		MPI_Irecv(&x, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &r[0]);
		MPI_Isend(&tag, 1, MPI_INT, 0, tag, MPI_COMM_WORLD, &r[1]);
		MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
		if (x != tag)
			printf("bad\n");
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int provided, tags[4] = {3, 5, 7, 9};
	pthread_t t[4];
	MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
	if (provided == MPI_THREAD_MULTIPLE) {
		for (int i = 0; i < 4; i++)
			pthread_create(&t[i], NULL, work, &tags[i]);
		for (int i = 0; i < 4; i++)
			pthread_join(t[i], NULL);
	}
	MPI_Finalize();
	printf("%s\n", provided == MPI_THREAD_MULTIPLE ? "ok" : "no threads");
	return 0;
}
