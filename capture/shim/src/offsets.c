/* Offsets between the clocks of hosts, measured by ping-pongs between rank 0 and the lowest rank of each other host. */
#include "lifetime.h"

#include <time.h>

/* Takes at least ROUNDS round trips. If the best takes longer than 2 x GOOD_NS, as it does when ranks share cores,
 * tries more, up to MOST or until this host's share of a second, 50 ms at most, is over. */
#define ROUNDS 20
#define MOST 500
#define GOOD_NS 50000
#define STOP INT64_MIN
#define TAG 1

typedef struct {
	int64_t offset, error, at;
} offset_sample;

/* Of all ranks; kept from one measurement to the next, where there are several hosts. */
static offset_sample *samples;

static void free_samples(void)
{
	cq_pages_free(samples, (size_t)cq.size * sizeof *samples);
	samples = NULL;
}

int cq_clock_offsets_room(void)
{
	cq.leaders = cq_pages((size_t)cq.size * sizeof *cq.leaders);
	samples = cq_pages((size_t)cq.size * sizeof *samples);
	return cq.leaders != NULL && samples != NULL;
}

/* Reports whether rank r is the lowest of its host; list has the leaders with lower ranks. */
static int leads(const uint8_t *hellos, size_t stride, int r, const int *list, int n)
{
	for (int i = 0; i < n; i++) {
		if (memcmp(hellos + (size_t)list[i] * stride, hellos + (size_t)r * stride, sizeof(uint64_t)) == 0)
			return 0;
	}
	return 1;
}

/* Waits without keeping a core busy: the two ranks that measure may share cores with those that wait for them. */
static void wait_quietly(MPI_Request *r)
{
	struct timespec nap = {0, 50000};
	int done = 0;
	while (cq_p.Test(r, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done)
		nanosleep(&nap, NULL);
}

/* The other end: answers with its own clock until it receives STOP, or MPI fails. */
static void answer_pings(int with)
{
	int64_t now = 0;
	cq_p.Send(&now, 8, MPI_BYTE, with, TAG, cq.clock_comm); /* lets the other end begin */
	for (;;) {
		if (cq_p.Recv(&now, 8, MPI_BYTE, with, TAG, cq.clock_comm, MPI_STATUS_IGNORE) != MPI_SUCCESS || now == STOP)
			return;
		now = (int64_t)cq_monotonic();
		cq_p.Send(&now, 8, MPI_BYTE, with, TAG, cq.clock_comm);
	}
}

/* This clock minus rank 0's, from the shortest round trip, assuming that rank 0 read its clock halfway. */
static offset_sample measure_offset(int other)
{
	offset_sample best = {0, INT64_MAX, 0};
	MPI_Request turn;
	cq_p.Irecv(&best.at, 8, MPI_BYTE, other, TAG, cq.clock_comm, &turn);
	wait_quietly(&turn);
	int64_t stop = STOP, share = 1000000000 / cq.hosts;
	int64_t now = (int64_t)cq_monotonic(), until = now + (share < 50000000 ? share : 50000000);
	for (int i = 0; i < ROUNDS || (i < MOST && best.error > GOOD_NS && now < until); i++) {
		int64_t a = (int64_t)cq_monotonic(), m = a;
		cq_p.Send(&m, 8, MPI_BYTE, other, TAG, cq.clock_comm);
		cq_p.Recv(&m, 8, MPI_BYTE, other, TAG, cq.clock_comm, MPI_STATUS_IGNORE);
		int64_t b = (int64_t)cq_monotonic();
		if ((b - a + 1) / 2 < best.error)
			best = (offset_sample){a + (b - a) / 2 - m, (b - a + 1) / 2, b};
		now = b;
	}
	cq_p.Send(&stop, 8, MPI_BYTE, other, TAG, cq.clock_comm);
	return best;
}

/* Gives every rank its host's offset: the leaders measure one after the other, then all exchange the results. */
static void measure(void)
{
	offset_sample me = {0, 0, (int64_t)cq_monotonic()};
	MPI_Request r;
	cq_p.Ibarrier(cq.clock_comm, &r);
	wait_quietly(&r);
	for (int i = 1; cq.rank == 0 && i < cq.hosts; i++)
		answer_pings(cq.leaders[i]);
	if (cq.rank != 0 && cq.leaders[cq.host_number] == cq.rank)
		me = measure_offset(0);
	cq_p.Iallgather(&me, sizeof me, MPI_BYTE, samples, sizeof me, MPI_BYTE, cq.clock_comm, &r);
	wait_quietly(&r);
	me = samples[cq.leaders[cq.host_number]];
	cq.offset_ns = me.offset;
	cq.offset_error_ns = me.error;
	cq.offset_at_ns = me.at;
}

void cq_clock_offsets_begin(const void *hellos, size_t stride)
{
	const uint8_t *h = hellos;
	cq.offset_ns = cq.offset_error_ns = 0;
	cq.offset_at_ns = (int64_t)cq_monotonic();
	cq.hosts = 0;
	for (int r = 0; r < cq.size; r++) {
		if (leads(h, stride, r, cq.leaders, cq.hosts))
			cq.leaders[cq.hosts++] = r;
	}
	for (int i = 0; i < cq.hosts; i++) {
		if (memcmp(h + (size_t)cq.leaders[i] * stride, h + (size_t)cq.rank * stride, sizeof(uint64_t)) == 0)
			cq.host_number = i;
	}
	if (cq.common_clock)
		cq.hosts = 1;
	if (cq.hosts < 2) {
		free_samples();
		return;
	}
	cq_p.Comm_dup(CQ_WORLD, &cq.clock_comm);
	measure();
}

void cq_clock_offsets_end(void)
{
	if (cq.hosts < 2) {
		cq.offset_at_ns = (int64_t)cq_monotonic();
		return;
	}
	measure();
	free_samples();
	cq_p.Comm_free(&cq.clock_comm);
}
