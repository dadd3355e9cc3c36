#include "state.h"

cq_state cq;
CQ_TLS cq_thread *cq_current;
CQ_TLS cq_thread *cq_mine;
CQ_TLS int cq_opening;

void cq_lock_slow(void)
{
	cq_spin(&cq.lock);
}

void cq_set_pending(cq_thread *t, uint64_t bits)
{
	__atomic_or_fetch(&t->pending, bits, __ATOMIC_RELAXED);
}

int cq_take_pending(cq_thread *t, uint64_t bits)
{
	if ((t->pending & bits) == 0)
		return 0;
	__atomic_and_fetch(&t->pending, ~bits, __ATOMIC_RELAXED);
	return 1;
}

int cq_in_call(const cq_thread *t)
{
	return t->call_off != 0 || (t->call != &t->trash && t->call->t1 == 0);
}

void *cq_pool_get(size_t bytes)
{
	if (cq.pool_left < bytes) {
		cq.pool = cq_pages(65536);
		cq.pool_left = cq.pool != NULL ? 65536 : 0;
	}
	if (cq.pool_left < bytes)
		return NULL;
	void *p = cq.pool;
	cq.pool += bytes;
	cq.pool_left -= bytes;
	return p;
}

void *cq_scratch_get(cq_scratch *s, size_t bytes)
{
	if (CQ_LIKELY(bytes <= s->bytes))
		return s->p;
	size_t want = s->bytes != 0 ? s->bytes : 16384;
	while (want < bytes)
		want *= 2;
	void *p = cq_pages(want);
	if (p == NULL)
		return NULL;
	if (s->p != NULL)
		cq_pages_free(s->p, s->bytes);
	s->p = p;
	s->bytes = want;
	return p;
}

void cq_complain(const char *doing, int e, const char *outcome)
{
	if (__atomic_exchange_n(&cq.complained, 1, __ATOMIC_ACQ_REL) == 0)
		cq_print("commq: rank %d: %s in spool %s: %s; %s\n", cq.rank, doing, cq.spool, strerror(e), outcome);
}
