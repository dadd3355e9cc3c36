/* The program of commq calibrate --launch. It measures nothing itself: it makes the messages and collectives whose
 * times commq captures. Arguments: rounds, largest message in bytes, largest collective in bytes (of a rank's
 * buffer). */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 9, LATE_ROUNDS = 5, LATE_TRIES = 4, CYCLE_ROUNDS = 101, CYCLE_ADDS = 1 << 17, CLOCK_TAG = 15, TOP_CLOCK_TAG = 16, ROUND_TAG = 1000, MOST_AT_ONCE = 8 };

static int rank, ranks, rounds;
static long most, most_collective;
static char *out, *in;

static double now(void) { return MPI_Wtime(); }

/* pause_for lets others run meanwhile: where ranks are more than CPUs, the one that is to wait needs this one's. */
static void pause_for(double seconds)
{
	for (double until = now() + seconds; now() < until;)
		sched_yield();
}

/* rounds_of: less of what takes long. */
static int rounds_of(long bytes)
{
	long n = rounds;
	for (long b = 65536; b < bytes && n > 20; b *= 2)
		n = n * 2 / 3;
	return n < 20 ? 20 : (int)n;
}

/* ping_pong between rank 0 and a partner: each waits for the other's message. A message's time is known when its
 * receiver waits for it, and who has sent a large message returns when the other has it already: so each pauses before
 * it answers. */
static void ping_pong(int partner, long bytes)
{
	const double pause = bytes < 65536 ? 5e-6 : 20e-6;
	int n = rounds_of(bytes);
	for (int i = 0; i < n; i++) {
		if (rank == 0) {
			pause_for(pause);
			MPI_Send(out, (int)bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD);
			MPI_Recv(in, (int)bytes, MPI_BYTE, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == partner) {
			MPI_Recv(in, (int)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			pause_for(pause);
			MPI_Send(out, (int)bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
		}
	}
}

/* next_size: 1, 2, 3, 4, 6, 8, 12, ...: powers of two and what lies between. */
static long next_size(long bytes)
{
	if (bytes < 2)
		return bytes + 1;
	return (bytes & (bytes - 1)) == 0 ? bytes + bytes / 2 : bytes / 3 * 4;
}

/* be_late: a receiver that is busy, but lets the library make progress: that a send waits for the other side to enter
 * MPI at all, as Open MPI's do from some hundred bytes on, is not what the threshold is about. It says whether the
 * partner's note came meanwhile that its send has returned. */
static int be_late(int partner, double seconds)
{
	int returned = 0;
	double start = now(), last = start;
	for (double until = start + seconds; last < until;) {
		int there;
		MPI_Iprobe(partner, TAG + 4, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
		returned |= there;
		/* the CPU is not given away: on a busy machine it would be long until the library makes progress again */
		double t;
		for (double next = now() + 10e-6; (t = now()) < next;)
			;
		if (t - last > seconds / 4 && t - start < 50 * seconds) /* it was taken away: begin again */
			until = t + seconds;
		last = t;
	}
	return returned;
}

/* all_wait says whether none of LATE_ROUNDS sends of so many bytes has returned before the receiver, who comes late. The
 * receiver sees that: times of the sender would also tell when it lost its CPU before it sent. */
static int all_wait(int partner, long bytes)
{
	int returned = 0;
	for (int i = 0; i < LATE_ROUNDS; i++) {
		char go = 1;
		/* the partner says that it is there, so that it is late from about when the send begins */
		if (rank == partner) {
			MPI_Send(&go, 1, MPI_CHAR, 0, TAG + 1, MPI_COMM_WORLD);
			returned |= be_late(0, 2e-3);
			MPI_Recv(in, (int)bytes, MPI_BYTE, 0, TAG + 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Recv(&go, 1, MPI_CHAR, 0, TAG + 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(&go, 1, MPI_CHAR, partner, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(out, (int)bytes, MPI_BYTE, partner, TAG + 2, MPI_COMM_WORLD);
			MPI_Send(&go, 1, MPI_CHAR, partner, TAG + 4, MPI_COMM_WORLD);
		}
	}
	if (rank == partner)
		MPI_Send(&returned, 1, MPI_INT, 0, TAG + 3, MPI_COMM_WORLD);
	else
		MPI_Recv(&returned, 1, MPI_INT, partner, TAG + 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return !returned;
}

/* waits says whether a send of so many bytes waits for its receiver. A send that returns early decides: the others may
 * have lost their CPU. On a busy machine sends in a row lose it together, so it tries again after a nap. */
static int waits(int partner, long bytes)
{
	const struct timespec nap = {.tv_nsec = 10 * 1000 * 1000};
	for (int i = 0; i < LATE_TRIES; i++) {
		if (i > 0)
			nanosleep(&nap, NULL);
		if (!all_wait(partner, bytes))
			return 0;
	}
	return 1;
}

/* threshold finds the size from which sends wait: by doubling up to the largest message (a simulation of this run may
 * have another threshold), then by halving the interval, to the byte. */
static void threshold(int partner)
{
	if (rank != 0 && rank != partner)
		return;
	long eager = 0, waiting = most + 1;
	for (long bytes = 1; bytes <= most; bytes *= 2)
		if (waits(partner, bytes) && bytes < waiting)
			waiting = bytes;
		else if (bytes < waiting)
			eager = bytes;
	if (waiting > most)
		return;
	while (waiting - eager > 1) {
		long middle = eager + (waiting - eager) / 2;
		if (waits(partner, middle))
			waiting = middle;
		else
			eager = middle;
	}
}

/* collectives on a communicator of so many ranks, of n bytes per rank and partner. */
static void collectives(MPI_Comm comm, int size, long n)
{
	int count = (int)(n / 8), of_all = (int)(n / 8 / size);
	if (of_all < 1)
		of_all = 1;
	int times = rounds_of(n * size) / 4;
	for (int op = 0; op < 10; op++)
		for (int i = 0; i < times; i++) {
			if (op != 0)
				MPI_Barrier(comm); /* so that all come at about the same time */
			switch (op) {
			case 0: MPI_Barrier(comm); break;
			case 1: MPI_Bcast(out, count, MPI_DOUBLE, 0, comm); break;
			case 2: MPI_Reduce(out, in, count, MPI_DOUBLE, MPI_SUM, 0, comm); break;
			case 3: MPI_Allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, comm); break;
			case 4: MPI_Gather(out, of_all, MPI_DOUBLE, in, of_all, MPI_DOUBLE, 0, comm); break;
			case 5: MPI_Scatter(out, of_all, MPI_DOUBLE, in, of_all, MPI_DOUBLE, 0, comm); break;
			case 6: MPI_Allgather(out, of_all, MPI_DOUBLE, in, of_all, MPI_DOUBLE, comm); break;
			case 7: MPI_Alltoall(out, of_all, MPI_DOUBLE, in, of_all, MPI_DOUBLE, comm); break;
			case 8: MPI_Reduce_scatter_block(out, in, of_all, MPI_DOUBLE, MPI_SUM, comm); break;
			case 9: MPI_Scan(out, in, count, MPI_DOUBLE, MPI_SUM, comm); break;
			}
		}
}

/* all_collectives on 2, 3, 4, 6, 8, ... ranks and on all. */
static void all_collectives(void)
{
	for (int size = 2; size <= ranks; size = size == ranks ? ranks + 1 : (next_size(size) < ranks ? (int)next_size(size) : ranks)) {
		MPI_Comm comm;
		MPI_Comm_split(MPI_COMM_WORLD, rank < size ? 0 : MPI_UNDEFINED, rank, &comm);
		if (comm == MPI_COMM_NULL)
			continue;
		for (long n = 8; n <= most_collective; n *= 8)
			collectives(comm, size, n);
		MPI_Comm_free(&comm);
	}
}

/* A round is a set of messages that are sent at once, all of the same size. What they take longer than one message
 * tells how many links and buses there are. */
typedef struct {
	int n, from[MOST_AT_ONCE], to[MOST_AT_ONCE];
} round_t;

static void add(round_t *r, int from, int to)
{
	r->from[r->n] = from;
	r->to[r->n++] = to;
}

/* round_number fills in the round with this number: one message, an exchange, several messages out of a rank, into a
 * rank, and between pairs of ranks, each between near ranks and between far ones. It returns 0 when there is no such
 * round. */
static int round_number(int number, round_t *r)
{
	enum { ONE, EXCHANGE, OUT, IN, PAIRS, SHAPES };
	int k = 0;
	for (int shape = 0; shape < SHAPES; shape++)
		for (int far = 0; far < (ranks > 2 ? 2 : 1); far++)
			for (int m = shape < OUT ? 1 : 2; m <= (shape < OUT ? 1 : MOST_AT_ONCE); m = (int)next_size(m)) {
				if (shape == PAIRS ? m > ranks / 2 : m > ranks - 1)
					break;
				if (k++ != number)
					continue;
				r->n = 0;
				for (int i = 0; i < m; i++) {
					int other = far ? ranks - 1 - i : 1 + i;
					switch (shape) {
					case ONE: case OUT: add(r, 0, other); break;
					case EXCHANGE: add(r, 0, other); add(r, other, 0); break;
					case IN: add(r, other, 0); break;
					case PAIRS: far ? add(r, i, i + ranks / 2) : add(r, 2 * i, 2 * i + 1); break;
					}
				}
				return 1;
			}
	return 0;
}

/* play sends the messages of a round: receives are posted first, and all ranks start together. */
static void play(const round_t *r, int tag, long bytes, char *room)
{
	MPI_Request requests[2 * MOST_AT_ONCE];
	MPI_Status statuses[2 * MOST_AT_ONCE]; /* MPICH's headers make gcc warn of MPI_STATUSES_IGNORE here */
	int n = 0;
	for (int i = 0; i < r->n; i++)
		if (r->to[i] == rank) {
			MPI_Irecv(room + (long)i * bytes, (int)bytes, MPI_BYTE, r->from[i], tag, MPI_COMM_WORLD, &requests[n]);
			n++;
		}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < r->n; i++)
		if (r->from[i] == rank) {
			MPI_Isend(out, (int)bytes, MPI_BYTE, r->to[i], tag, MPI_COMM_WORLD, &requests[n]);
			n++;
		}
	MPI_Waitall(n, requests, statuses);
}

/* contention plays all rounds, again and again, so that what else the machine does disturbs all of them alike. Each
 * time has a tag of its own. */
static void contention(void)
{
	long bytes = most / 2 < 2 << 20 ? most / 2 : 2 << 20;
	int times = rounds / 5 < 5 ? 5 : rounds / 5 > 25 ? 25 : rounds / 5;
	if (bytes < 1)
		bytes = 1;
	char *room = malloc((size_t)(MOST_AT_ONCE * bytes));
	if (!room) {
		fprintf(stderr, "calibrate: rank %d: no memory for %d buffers of %ld bytes\n", rank, MOST_AT_ONCE, bytes);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	memset(room, 0, (size_t)(MOST_AT_ONCE * bytes));
	int tag = ROUND_TAG;
	for (int t = 0; t < times; t++) {
		round_t r;
		for (int number = 0; round_number(number, &r); number++)
			play(&r, tag++, bytes, room);
	}
	free(room);
}

/* clock_mhz reads a number in a file of the operating system that follows key, or is the first thing in the file when
 * key is empty; the largest of several. It returns 0 when there is none. */
static double clock_mhz(const char *path, const char *key, double unit)
{
	char line[256];
	double largest = 0;
	FILE *f = fopen(path, "r");
	if (!f)
		return 0;
	while (fgets(line, sizeof line, f)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		char *colon = strchr(line, ':');
		double mhz = atof(*key && colon ? colon + 1 : line) * unit;
		largest = mhz > largest ? mhz : largest;
	}
	fclose(f);
	return largest;
}

/* tell_clock sends rank 1 a message with as many bytes as the processor has MHz by the operating system, so that the
 * run says what a cycle can take: the highest clock (TOP_CLOCK_TAG), or else the one that /proc/cpuinfo has. */
static void tell_clock(void)
{
	static char mhz[16384];
	if (rank > 1)
		return;
	if (rank == 1) {
		MPI_Recv(mhz, sizeof mhz, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	double top = clock_mhz("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq", "", 1e-3);
	double clock = top > 0 ? top : clock_mhz("/proc/cpuinfo", "cpu MHz", 1);
	MPI_Send(mhz, clock > 0 && clock < sizeof mhz ? (int)(clock + 0.5) : 0, MPI_BYTE, 1, top > 0 ? TOP_CLOCK_TAG : CLOCK_TAG, MPI_COMM_WORLD);
}

/* cycles computes what takes a known number of cycles, and sends an empty message, so that the compute time before that
 * is its time: additions that each need the one before, one for a cycle, in chains so short that most are not
 * interrupted, while the processor executes floating-point instructions and misses nothing. The empty asm keeps the
 * compiler from adding up. */
static void cycles(void)
{
	if (rank > 1)
		return;
	double a = 1, b = 2;
	unsigned long step = 3;
	__asm__ volatile("" : "+r"(step)); /* in a register: processors can add constants without taking a cycle */
	for (int i = 0; i < CYCLE_ROUNDS; i++) {
		char none;
		if (rank == 1) {
			MPI_Recv(&none, 0, MPI_CHAR, 0, TAG + 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			continue;
		}
		unsigned long sum = (unsigned long)i;
		for (long k = 0; k < CYCLE_ADDS / 16; k++) {
#define ADD                                                                                                                                       \
	sum += step;                                                                                                                              \
	__asm__ volatile("" : "+r"(sum));
			ADD ADD ADD ADD ADD ADD ADD ADD
			a = a * 0.5 + 1;
			ADD ADD ADD ADD ADD ADD ADD ADD
			b = b * 0.5 + 1;
		}
		MPI_Send(&none, 0, MPI_CHAR, 1, TAG + 5, MPI_COMM_WORLD);
	}
	if (a + b < 0) /* never: the numbers are used */
		puts("");
}

static long number(int argc, char **argv, int i, long otherwise)
{
	return argc > i ? atol(argv[i]) : otherwise;
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	rounds = (int)number(argc, argv, 1, 100);
	most = number(argc, argv, 2, 4 << 20);
	most_collective = number(argc, argv, 3, 256 << 10);
	if (ranks < 2 || rounds < 1 || most < 1 || most > 1 << 30 || most_collective < 0 || most_collective > 1 << 30) {
		if (rank == 0)
			fprintf(stderr, "calibrate: want 2 ranks or more, rounds, and sizes up to 1 GiB\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	long room = (most > most_collective ? most : most_collective) + 8L * ranks;
	out = malloc((size_t)room);
	in = malloc((size_t)room);
	if (!out || !in) {
		fprintf(stderr, "calibrate: rank %d: no memory for two buffers of %ld bytes\n", rank, room);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	memset(out, 0, (size_t)room);
	memset(in, 0, (size_t)room);
	/* the neighbour, mostly on the same node, and the farthest rank */
	int partners[2] = {1, ranks - 1};
	for (int p = 0; p < (ranks > 2 ? 2 : 1); p++) {
		MPI_Barrier(MPI_COMM_WORLD);
		ping_pong(partners[p], 0); /* connections, and caches */
		for (long bytes = 1; bytes <= most; bytes = next_size(bytes))
			ping_pong(partners[p], bytes);
		threshold(partners[p]);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	contention();
	all_collectives();
	tell_clock();
	cycles();
	free(out);
	free(in);
	MPI_Finalize();
	return 0;
}
