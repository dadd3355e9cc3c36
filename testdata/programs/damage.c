/* Messages of 4097 bytes from rank 1 to rank 2, by blocking and by nonblocking calls. Run with 3 ranks; prints ok. With
 * -DLIBRARY it is a library between a tool and MPI that acts like a faulty network: it changes the last byte of each
 * message with the tag $DAMAGE. */
#include <mpi.h>
#include <stdio.h>

#define BYTES 4097

#if defined(LIBRARY)

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static char *pending;
static MPI_Request request;

static void find(const char *name, void *to)
{
	void *f = dlsym(RTLD_NEXT, name);
	memcpy(to, &f, sizeof f);
}

static int damaged(int tag)
{
	const char *s = getenv("DAMAGE");
	return s != NULL && atoi(s) == tag;
}

int PMPI_Recv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *st)
{
	int (*next)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
	find("PMPI_Recv", &next);
	int err = next(buf, count, type, source, tag, comm, st);
	if (damaged(tag))
		((char *)buf)[BYTES - 1] ^= 4;
	return err;
}

int PMPI_Irecv(void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request *r)
{
	int (*next)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
	find("PMPI_Irecv", &next);
	int err = next(buf, count, type, source, tag, comm, r);
	if (damaged(tag)) {
		pending = buf;
		request = *r;
	}
	return err;
}

int PMPI_Wait(MPI_Request *r, MPI_Status *st)
{
	int (*next)(MPI_Request *, MPI_Status *), mine = pending != NULL && *r == request;
	find("PMPI_Wait", &next);
	int err = next(r, st);
	if (mine) {
		pending[BYTES - 1] ^= 4;
		pending = NULL;
	}
	return err;
}

#else

int main(int argc, char **argv)
{
	static char a[BYTES], b[BYTES];
	int rank;
	MPI_Request r[2];
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	for (int tag = 5; tag <= 9 && rank == 1; tag++) {
		for (int i = 0; i < BYTES; i++)
			a[i] = (char)(i * tag);
		MPI_Send(a, BYTES, MPI_BYTE, 2, tag, MPI_COMM_WORLD);
	}
	if (rank == 2) {
		MPI_Irecv(a, BYTES, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &r[0]);
		MPI_Irecv(b, BYTES, MPI_BYTE, 1, 6, MPI_COMM_WORLD, &r[1]);
		MPI_Wait(&r[0], MPI_STATUS_IGNORE);
		MPI_Wait(&r[1], MPI_STATUS_IGNORE);
		for (int tag = 7; tag <= 9; tag++)
			MPI_Recv(a, BYTES, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Finalize();
	if (rank == 2)
		printf("ok\n");
	return 0;
}

#endif
