/* Threads: the first call of a thread opens its file, its end closes the file. */
#include "call.h"

#include <errno.h>
#include <unistd.h>

#include "counters.h"

/* Frees a thread's scratch memory; its entry stays in the list. */
static void scratch_leave(cq_thread *t)
{
	cq_scratch *all[] = {&t->keys, &t->statuses, &t->infos, &t->indices, &t->blob, &t->packed, &t->hashes};
	if (t->claims != 0 || cq_in_call(t))
		return;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (all[i]->p != NULL)
			cq_pages_free(all[i]->p, all[i]->bytes);
		*all[i] = (cq_scratch){NULL, 0};
	}
}

/* Closes the file when a thread other than the first ends, because a program may start thousands. */
void cq_thread_exit(void *p)
{
	cq_thread *t = p;
	if (cq.state != CQ_ON || getpid() != cq.pid || __atomic_exchange_n(&t->closing, 1, __ATOMIC_ACQ_REL))
		return;
	cq_current = NULL;
	cq_header_end(t, CQ_ENDED_NOT);
	cq_sink_leave(t);
	cq_count_close(t);
	cq_tables_leave(t);
	scratch_leave(t);
}

cq_thread *cq_thread_open(int *e)
{
	cq_thread *t = cq_pages(sizeof *t);
	*e = errno;
	if (t == NULL)
		return NULL;
	t->number = __atomic_fetch_add(&cq.threads, 1, __ATOMIC_RELAXED);
	if (cq_hooks != NULL && !cq_hooks->thread_begins(t)) {
		*e = ENOMEM;
		cq_pages_free(t, sizeof *t);
		return NULL;
	}
	cq_header_fill(&t->own, t->number);
	t->call = &t->trash;
	t->comm = &cq.none_comm;
	t->type = &cq.none_type;
	*e = cq_sink_open(t);
	if (*e != 0) {
		cq_pages_free(t, sizeof *t);
		return NULL;
	}
	cq_count_open(t);
	t->cpu = cq.clock == CQ_CLOCK_CPU ? cq_cpu_ns() : 0;
	t->last = cq_tick();
	cq_lock();
	t->active = cq.active;
	__atomic_store_n(&cq.active, t, __ATOMIC_RELEASE);
	cq_unlock();
	t->link = __atomic_load_n(&cq.list, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&cq.list, &t->link, t, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	cq_mine = t;
	return t;
}

/* Reports whether a call made at cfa comes from inside the one in progress. It does not if it is no deeper in the
 * stack, or if the wrapper's return address has been overwritten: then something has jumped out of that call, such as
 * an error handler by longjmp or by a C++ exception. */
static int inside(const cq_thread *t, const void *cfa)
{
	uintptr_t old = (uintptr_t)t->cfa, now = (uintptr_t)cfa;
	if (now >= old)
		return 0;
#if defined(__x86_64__)
	if (old - now < 65536)
		return ((void *const *)old)[-1] == t->site;
#endif
	return 1;
}

/* A call while cq_current is NULL: the thread's first, one from inside another, or the first after something unusual. */
static cq_thread *enter_slow(const void *cfa)
{
	int e;
	cq_resolve();
	cq_thread *t = cq_mine;
	if (cq.state != CQ_ON || (t == NULL && cq_opening))
		return NULL;
	if (t == NULL) {
		cq_opening = 1; /* stays 1 if the file cannot be created: try only once */
		t = cq_thread_open(&e);
		if (t == NULL) {
			cq_complain("opening a thread's file", e, "the thread runs unrecorded");
			return NULL;
		}
		if (cq.has_exit_key)
			pthread_setspecific(cq.exit_key, t);
	} else if (t->signalled && !cq_in_call(t)) {
		t->signalled = 0;
		cq_mark_put(t);
	} else if (t->closing || inside(t, cfa)) {
		return NULL;
	} else {
		cq_abandon(t);
	}
	return t;
}

cq_thread *cq_enter_slow(const void *cfa)
{
	int e = errno;
	cq_thread *t = enter_slow(cfa);
	errno = e;
	return t;
}
