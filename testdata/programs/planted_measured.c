/* Faults that only measured times have, one per run, of a known size, on 2 ranks; see planted.h. */
#define _GNU_SOURCE
#define NATIVE
#define BEFORE_INIT before_init
static void before_init(const char *fault);
#include "planted.h"
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static long long now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static void wait_us(int for_us)
{
	struct timespec t = {for_us / 1000000, for_us % 1000000 * 1000L};
	while (for_us > 0 && nanosleep(&t, &t) != 0)
		continue;
}

/* Rank 0 looks for a message that never comes, and goes on. It has got so many others that nearly all time is in MPI_Iprobe. */
static void polling(void)
{
	enum { OTHERS = 4096 };
	int found = 0;

	for (int i = 0; step == 0 && rank == 1 && i < OTHERS; i++)
		MPI_Send(buf, 1, MPI_BYTE, 0, TAG + 1, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	for (long long until = now_us() + us; rank == 0 && now_us() < until && !found;)
		MPI_Iprobe(1, TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
	work(BASE + (rank == 0 ? 0 : us));
	MPI_Barrier(MPI_COMM_WORLD); /* fault polling */
	for (int i = 0; step == steps - 1 && rank == 0 && i < OTHERS; i++)
		MPI_Recv(sum, 1, MPI_BYTE, 1, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Rank 1 posts its receive long after it knows that the message was sent, which only then is transferred. */
static void unexpected_messages(void)
{
	static char large[1 << 24];
	MPI_Request one;

	if (rank == 0)
		MPI_Isend(large, sizeof large, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &one);
	else
		MPI_Probe(0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	work(BASE + us);
	if (rank == 1)
		MPI_Recv(large, sizeof large, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* fault unexpected_messages */
	else
		MPI_Wait(&one, MPI_STATUS_IGNORE);
	MPI_Barrier(MPI_COMM_WORLD);
}

/* A slow disk: the MPI libraries write with these. */
static int slow;

#define SLOW(name, number, type, at) \
	ssize_t name(int file, type what, at n, off_t offset) \
	{ \
		wait_us(slow); \
		return syscall(number, file, what, n, offset, 0L); \
	}
SLOW(pwrite, SYS_pwrite64, const void *, size_t)
SLOW(pwrite64, SYS_pwrite64, const void *, size_t)
SLOW(pwritev, SYS_pwritev, const struct iovec *, int)
SLOW(pwritev64, SYS_pwritev, const struct iovec *, int)

static void file_time(void)
{
	MPI_File file;

	MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &file);
	slow = rank == 0 ? us : 0;
	MPI_File_write_at(file, 0, buf, 16, MPI_DOUBLE, MPI_STATUS_IGNORE); /* fault file_time */
	slow = 0;
	MPI_File_close(&file);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void late_start(void)
{
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Rank 1 begins MPI_Init late. */
static void before_init(const char *name)
{
	const char *openmpi = getenv("OMPI_COMM_WORLD_RANK"), *mpich = getenv("PMI_RANK"), *own = openmpi ? openmpi : mpich;

	if (strcmp(name, "late_start") == 0 && own != NULL && atoi(own) == 1)
		wait_us(us * steps);
}

static const fault faults[] = {
	{"polling", polling}, {"unexpected_messages", unexpected_messages}, {"file_time", file_time}, {"late_start", late_start},
};

int main(int argc, char **argv) { return run(argc, argv, faults, sizeof faults / sizeof *faults); }
