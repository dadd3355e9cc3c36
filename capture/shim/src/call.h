/* The path of every recorded call, inlined into the wrappers:
 *
 *     t = cq_enter()      the thread, unless this call is not recorded
 *     cq_open(t, id)      its CALL slot, which the recorder fills in
 *     cq_mpi_begins(t)    entry time; from here on a kill leaves a whole slot or none
 *     PMPI_...            the call itself
 *     cq_mpi_ends(t)      return time
 *     cq_close(t, err)    the return time goes into the slot, and the thread may record again
 *
 * Polls (MPI_Test and the like) get a slot only when they succeed: cq_compute_time before the call, and behind it
 * cq_poll_failed or cq_poll_open. */
#ifndef COMMQ_CALL_H
#define COMMQ_CALL_H

#include "sites.h"
#include "tables.h"

#pragma GCC visibility push(hidden)

/* call.c */

uint64_t cq_compute_time_long(cq_thread *t, uint64_t *now, uint64_t gap);
void cq_mpi_ends_long(cq_thread *t);
void cq_polled_long(cq_thread *t);
void cq_close_extra(cq_thread *t, int err);
/* The class of an error. */
int cq_class_of(int err);
/* Abandons the call in progress: it never returns, because the program jumped out of it. */
void cq_abandon(cq_thread *t);

/* threads.c */

cq_thread *cq_enter_slow(const void *cfa);
/* Begins the calling thread's records; the error's number is in *e. */
cq_thread *cq_thread_open(int *e);
/* Closes the records of a thread that ends (a pthread key's destructor). */
void cq_thread_exit(void *t);

/* marks.c */

/* Before MPI_Init: takes over SIGUSR1 if it would end the program. */
void cq_marks_begin(void);
/* Restores SIGUSR1, unless the program has taken it meanwhile. */
void cq_marks_end(void);
/* Records the mark of a signal, unless another thread has done so. */
void cq_mark_put(cq_thread *t);

/* Inlined into the wrapper, so that the return address and the stack are the wrapper's. From inside an MPI call the
 * stack is deeper. Otherwise the call in progress never returned, because the program jumped out of it. */
CQ_HOT cq_thread *cq_enter(void)
{
	cq_thread *t = cq_current;
	if (CQ_LIKELY(t != NULL))
		cq_current = NULL;
	else if ((t = cq_enter_slow(__builtin_dwarf_cfa())) == NULL)
		return NULL;
	t->site = __builtin_return_address(0);
	t->cfa = __builtin_dwarf_cfa();
	return t;
}

CQ_HOT void cq_leave(cq_thread *t)
{
	cq_current = t;
}

/* The CALL slot of the call that is about to begin; its kind is still 0. */
CQ_HOT cq_call *cq_open(cq_thread *t, int id)
{
	uint32_t site = cq_site(t); /* a new site is defined before the slot */
	cq_call *c = cq_take(t);
	t->call = c;
	c->call = (uint16_t)id;
	c->t1 = 0;
	c->site = site;
	return c;
}

/* Compute time since the last MPI call, ns; sets the entry time. */
CQ_HOT uint64_t cq_compute_time(cq_thread *t)
{
	uint64_t now = cq_tick(), gap = now - t->last, ns;
	if (CQ_LIKELY(gap <= cq.short_ticks)) {
		t->shorts += gap;
		ns = cq_ticks_ns(gap, cq.mult);
	} else {
		ns = cq_compute_time_long(t, &now, gap);
	}
	t->t0 = now;
	return ns + t->gathered;
}

/* Puts the compute time and the entry time into a slot. */
CQ_HOT void cq_stamp(cq_thread *t, cq_call *c, uint64_t compute)
{
	uint64_t t0 = t->t0;
	t->gathered = 0;
	if (cq_hooks != NULL)
		t0 = cq_hooks->call_begins(t, compute);
	if (CQ_UNLIKELY(compute >= UINT32_MAX)) {
		t->wide = compute;
		compute = UINT32_MAX;
	}
	c->compute_ns = (uint32_t)compute;
	c->t0 = t0;
}

/* The last step before the call: writes the times, then the kind, so that a kill leaves a whole slot or none. Slots
 * taken after the CALL slot may have moved it. */
CQ_HOT void cq_mpi_begins(cq_thread *t)
{
	cq_call *c = t->call;
	cq_stamp(t, c, cq_compute_time(t));
	cq_barrier();
	*(volatile uint8_t *)&c->kind = CQ_CALL;
}

/* The first step after the call. */
CQ_HOT void cq_mpi_ends(cq_thread *t)
{
	uint64_t now = cq_tick(), d = now - t->t0;
	t->t1 = now;
	if (CQ_LIKELY(d <= cq.short_ticks)) {
		t->shorts += d;
		t->last = now;
	} else {
		cq_mpi_ends_long(t);
	}
}

/* The last step of a recorded call. */
CQ_HOT void cq_close(cq_thread *t, int err)
{
	if (cq_hooks != NULL)
		cq_hooks->call_ends(t, err);
	if (CQ_UNLIKELY((t->polls | t->wide | (uint64_t)err | t->pending) != 0))
		cq_close_extra(t, err);
	cq_barrier();
	*(volatile uint64_t *)&t->call->t1 = cq_time(t, t->t1);
	if (cq_hooks != NULL)
		cq_hooks->call_is_closed(t);
	cq_leave(t);
}

CQ_HOT void cq_poll_failed(cq_thread *t, uint64_t compute)
{
	t->gathered = compute;
	if (cq_hooks != NULL)
		cq_hooks->poll_fails(t, compute);
	t->polls++;
	t->poll_ticks += t->t1 - t->t0;
	if (CQ_UNLIKELY((++t->polls_all & 0xfff) == 0))
		cq_polled_long(t);
	cq_leave(t);
}

/* Sets all fields of a CALL slot that describe the call to null. */
CQ_HOT void cq_blank(cq_call *c)
{
	c->flags = 0;
	c->comm = c->peer = c->tag = c->dtype = CQ_NULL32;
	c->count = CQ_NULL64;
	c->buf = 0;
	c->req = 0;
}

CQ_HOT cq_call *cq_poll_open(cq_thread *t, int id, uint64_t compute)
{
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	cq_stamp(t, c, compute);
	cq_barrier();
	c->kind = CQ_CALL;
	return c;
}

#pragma GCC visibility pop

#endif
