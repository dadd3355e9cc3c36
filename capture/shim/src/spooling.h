/* Writing the spool: slots, definitions, and the file behind a thread's records. spool.h has the format. */
#ifndef COMMQ_SPOOLING_H
#define COMMQ_SPOOLING_H

#include "clock.h"
#include "state.h"

#pragma GCC visibility push(hidden)

void *cq_take_slow(cq_thread *t);

/* Slots used so far. */
CQ_HOT uint64_t cq_slots_used(const cq_thread *t)
{
	return (uint64_t)(t->window_off + (t->next - t->window) - CQ_HEADER_BYTES) / CQ_SLOT_BYTES;
}

/* A free slot. It may hold anything: the caller sets every field that is read. */
CQ_HOT void *cq_take(cq_thread *t)
{
	uint8_t *p = t->next;
	if (CQ_UNLIKELY(p == t->end))
		return cq_take_slow(t);
	t->next = p + CQ_SLOT_BYTES;
	return p;
}

/* Reports whether a CALL slot is in use. Use begins before its kind is set: a call may take other slots before it
 * begins. */
CQ_HOT int cq_in_progress(const cq_thread *t)
{
	return t->call != NULL && t->call != &t->trash && t->call->t1 == 0;
}

CQ_HOT int cq_within(const void *p, const uint8_t *base, size_t bytes)
{
	return base != NULL && (const uint8_t *)p >= base && (const uint8_t *)p < base + bytes;
}

/* slots.c: slots that several recorders write. */

/* A DEF slot and its payload. */
void cq_def_put(cq_thread *t, int what, int64_t id, const void *payload, size_t bytes);
void cq_wide_put(cq_thread *t, int what, int64_t value);
/* The instance number of a constructor on its communicator; rbytes is the size of a window's memory. */
void cq_instance_put(cq_thread *t, uint64_t instance, int64_t rbytes);
enum { CQ_LABEL_BYTES = 4096 };
/* The text of a call, at most its first CQ_LABEL_BYTES. */
void cq_label_put(cq_thread *t, const char *s, size_t n);

/* sums.c: SUM slots. */

/* Computes the next SUM slot; returns 0 if there is nothing for it to cover. It must be written before the next one is
 * computed: a reader takes a missing one for damage. */
int cq_sum_make(cq_thread *t, cq_sum *s);
/* Writes it into the next free slot, which must be there. */
void cq_sum_write(cq_thread *t, const cq_sum *s);
/* Sets the end of the free slots to where the next SUM slot is due. */
void cq_sum_due(cq_thread *t);
/* The checksum of a header that will not change any more. */
void cq_header_sum(cq_header *h);

/* header.c: the header of a file. */

void cq_header_fill(cq_header *h, int number);
/* Brings the header's second clock pair up to date. */
void cq_header_clock(cq_thread *t);
/* The same, and puts the pair among the records. */
void cq_clock_def(cq_thread *t);
/* Completes the header of a file that ends as CQ_ENDED_*; CQ_ENDED_NOT leaves that field unchanged. */
void cq_header_end(cq_thread *t, uint32_t ended);

/* sink.c: the file. */

/* Creates the thread's file with the header in t->own; returns an errno on failure, leaving nothing behind. */
int cq_sink_open(cq_thread *t);
/* Writes the buffer and the header; the thread can continue recording. */
void cq_sink_flush(cq_thread *t);
/* The same from a signal handler, for any thread. Leaves a buffer that is in use to its thread: see
 * CQ_PENDING_FLUSH. */
void cq_sink_flush_now(cq_thread *t);
/* Flushes a buffer that has not been written out for a while; now is a tick. For use before a call that may take
 * long. */
void cq_sink_flush_old(cq_thread *t, uint64_t now);
/* Flushes, cuts the file to the bytes used and closes it. The thread's later calls go to the trash. */
void cq_sink_close(cq_thread *t);
/* The thread ends: closes the file and frees the memory, unless a call is in progress in it. */
void cq_sink_leave(cq_thread *t);
/* In a forked child: the file belongs to the parent. */
void cq_sink_disown(cq_thread *t);
/* Rewrites the CALL slot of a call larger than the buffer, when the call returns. */
void cq_rewrite(cq_thread *t);

#pragma GCC visibility pop

#endif
