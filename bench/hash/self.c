/* Irecv, Send and Wait of a message to ourselves, in a loop, and ISA-L's CRC-64 of the same buffer. Prints ns of CPU time per iteration
 * and per CRC, medians of ten rounds. Arguments: bytes, and the type: byte, double, int, or vector (every other double). */
#include <mpi.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 10

typedef uint64_t (*crc)(uint64_t seed, const unsigned char *p, uint64_t n);

/* CPU time, so that others on the machine disturb less. */
static double now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1e9 + ts.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double median(double *t)
{
	qsort(t, ROUNDS, sizeof *t, ascending);
	return (t[ROUNDS / 2 - 1] + t[ROUNDS / 2]) / 2;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	int bytes = argc > 1 ? atoi(argv[1]) : 65536;
	const char *name = argc > 2 ? argv[2] : "byte";
	MPI_Datatype type = strcmp(name, "int") == 0 ? MPI_INT : strcmp(name, "byte") == 0 ? MPI_BYTE : MPI_DOUBLE;
	int count = type == MPI_INT ? bytes / 4 : type == MPI_DOUBLE ? bytes / 8 : bytes;
	size_t room = 2 * (size_t)bytes;
	if (strcmp(name, "vector") == 0) {
		MPI_Type_vector(count, 1, 2, MPI_DOUBLE, &type);
		MPI_Type_commit(&type);
		count = 1;
	}
	void *lib = dlopen("libisal.so.2", RTLD_NOW), *found = lib != NULL ? dlsym(lib, "crc64_ecma_refl") : NULL;
	if (found == NULL) {
		fprintf(stderr, "self: there is no libisal.so.2 to compare with\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	crc by_isal;
	memcpy(&by_isal, &found, sizeof found);
	unsigned char *a = malloc(room), *b = malloc(room);
	for (size_t i = 0; i < room; i++)
		a[i] = b[i] = (unsigned char)(i * 73 + 5);
	int n = bytes > 1 << 20 ? 20 : bytes > 4096 ? 1000 : 100000;
	double sends[ROUNDS], crcs[ROUNDS];
	volatile uint64_t sink = 0;
	for (int round = -1; round < ROUNDS; round++) {
		MPI_Request r;
		MPI_Status st;
		double t0 = now_ns();
		for (int i = 0; i < n; i++) {
			MPI_Irecv(b, count, type, 0, 9, MPI_COMM_SELF, &r);
			MPI_Send(a, count, type, 0, 9, MPI_COMM_SELF);
			MPI_Wait(&r, &st);
		}
		double t1 = now_ns();
		for (int i = 0; i < n; i++)
			sink ^= by_isal(0, a, (uint64_t)bytes);
		double t2 = now_ns();
		if (round >= 0) {
			sends[round] = (t1 - t0) / n;
			crcs[round] = (t2 - t1) / n;
		}
	}
	printf("%.1f %.1f\n", median(sends), median(crcs));
	MPI_Finalize();
	return 0;
}
