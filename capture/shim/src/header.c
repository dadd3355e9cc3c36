/* The header of a file. */
#include "spooling.h"

#include "crc.h"

void cq_header_fill(cq_header *h, int number)
{
	memcpy(h->magic, CQ_SPOOL_MAGIC, sizeof h->magic);
	h->header_bytes = CQ_HEADER_BYTES;
	h->slot_bytes = CQ_SLOT_BYTES;
	h->version = CQ_SPOOL_VERSION;
	h->rank = cq.rank;
	h->size = cq.size;
	h->thread = number;
	h->thread_level = cq.thread_level;
	h->job = cq.job;
#if defined(__aarch64__)
	h->timer = CQ_TIMER_CNTVCT;
#else
	h->timer = cq.tsc ? CQ_TIMER_TSC : CQ_TIMER_MONOTONIC;
#endif
	h->compute_clock = (uint32_t)cq.clock;
	h->clock0_tick = cq.clock0_tick;
	h->clock0_ns = cq.clock0_ns;
	cq_clock_pair(&h->clock1_tick, &h->clock1_ns);
	if (cq_hooks != NULL)
		cq_hooks->header(h);
	h->realtime_ns = cq.realtime_ns;
	h->offset_init_ns = cq.offset_ns;
	h->offset_init_error_ns = cq.offset_error_ns;
	h->offset_init_at_ns = cq.offset_at_ns;
	h->offset_final_ns = h->offset_final_error_ns = h->offset_final_at_ns = CQ_NULL64;
	h->limit = cq.count_only ? 0 : cq.limit;
	h->counters = (uint32_t)cq.counters;
	h->pid = getpid();
	h->stack = (uint32_t)cq.stack;
	h->hash = (uint32_t)cq.hash;
	h->hash_verify = (uint32_t)cq.verify;
	h->sessions = (uint32_t)cq.sessions;
	h->sums = (uint32_t)cq_crc32c_there();
	memcpy(h->host, cq.host, sizeof h->host);
	memcpy(h->boot_id, cq.boot, sizeof h->boot_id);
	memcpy(h->mpi_library, cq.library, sizeof h->mpi_library);
	memcpy(h->program, cq.program, sizeof h->program);
	memcpy(h->cores, cq.cores, sizeof h->cores);
}

void cq_header_clock(cq_thread *t)
{
	uint64_t tick;
	int64_t ns;
	cq_clock_pair(&tick, &ns);
	if (cq_hooks != NULL)
		cq_hooks->clock_pair(t, &tick, &ns);
	t->head->clock1_tick = tick;
	t->head->clock1_ns = ns;
}

void cq_clock_def(cq_thread *t)
{
	struct {
		uint64_t tick;
		int64_t ns;
	} pair;
	cq_header_clock(t);
	pair.tick = t->head->clock1_tick;
	pair.ns = t->head->clock1_ns;
	cq_def_put(t, CQ_DEF_CLOCK, 0, &pair, sizeof pair);
}

/* The number of files that the process has. A thread whose file could not be made is not in the list. */
static uint32_t files_made(void)
{
	int last = 0;
	for (cq_thread *u = cq.list; u != NULL; u = u->link)
		last = u->number > last ? u->number : last;
	return (uint32_t)last + 1;
}

void cq_header_end(cq_thread *t, uint32_t ended)
{
	if (t->fd < 0)
		return;
	if (ended != CQ_ENDED_NOT)
		t->head->ended = ended;
	if (ended == CQ_ENDED_FINALIZED && t->number == 0)
		t->head->threads = files_made();
	t->head->polls = t->polls_all;
	if (!t->dead)
		t->head->slots = cq_slots_used(t);
	cq_header_clock(t);
}
