/* A mark and a self-record, before, during and after MPI. Run with 1 rank; prints ok. */
#include "commq.h"
#include <stdio.h>

int main(int argc, char **argv)
{
	int a[] = {3, 5, 9};
	commq_mark("early");
	MPI_Init(&argc, &argv);
	commq_mark("solve");
	commq_send_to_self(a, 3, MPI_INT);
	MPI_Finalize();
	commq_send_to_self(a, 3, MPI_INT);
	printf("ok\n");
	return 0;
}
