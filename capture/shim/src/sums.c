/* SUM slots: checksums of the records, so that a reader notices a changed byte. They cover slots only when these will
 * not change any more, so a process that is killed leaves at most the last EVERY slots without one, and those behind
 * the beginning of the call in progress. */
#include "spooling.h"

#include <stddef.h>

#include "crc.h"

#define EVERY ((ptrdiff_t)64 * CQ_SLOT_BYTES)

/* The number of the slot at an offset of the file. */
static int64_t slot_at(int64_t off)
{
	return (off - CQ_HEADER_BYTES) / CQ_SLOT_BYTES;
}

/* The first slot that may still change: that of the call in progress, else the next one. */
static int64_t first_open(const cq_thread *t)
{
	const uint8_t *call = (const uint8_t *)t->call;
	if (!cq_in_progress(t))
		return (int64_t)cq_slots_used(t);
	if (cq_within(call, t->held, t->held_bytes))
		return slot_at(t->held_off + (call - t->held));
	return slot_at(t->window_off + (call - t->window));
}

/* Fills in a SUM slot for the slots from t->summed to before to, as far as they are in a window of so many bytes. */
static int cover(cq_thread *t, cq_sum *s, const uint8_t *window, size_t bytes, int64_t window_off, int64_t to)
{
	int64_t end = slot_at(window_off + (int64_t)bytes);
	if (to > end)
		to = end;
	if (t->summed >= to || t->summed < slot_at(window_off))
		return 0;
	memset(s, 0, sizeof *s);
	s->kind = CQ_SUM;
	s->flags = (uint8_t)t->sum_flags;
	s->number = t->sums++;
	s->from = (uint64_t)t->summed;
	s->n = (uint64_t)(to - t->summed);
	cq_crc32c_slots(window + (t->summed * CQ_SLOT_BYTES + CQ_HEADER_BYTES - window_off), s->n, s->crc);
	s->check = cq_crc32c(s, offsetof(cq_sum, check));
	t->summed = to;
	t->sum_flags = 0;
	return 1;
}

int cq_sum_make(cq_thread *t, cq_sum *s)
{
	int64_t to = first_open(t), here = slot_at(t->window_off);
	if (t->head->sums == 0)
		return 0;
	if (t->summed < here && t->held != NULL && cover(t, s, t->held, t->held_bytes, t->held_off, to))
		return 1;
	if (t->summed < here && to >= here) { /* they are no longer in memory: a call was larger than a window */
		t->summed = here;
		t->sum_flags = CQ_SUM_GAP;
	}
	return cover(t, s, t->window, t->window_bytes, t->window_off, to);
}

void cq_sum_write(cq_thread *t, const cq_sum *s)
{
	cq_sum *to = (cq_sum *)(void *)t->next;
	t->next += CQ_SLOT_BYTES;
	memcpy((uint8_t *)to + sizeof to->zero + sizeof to->kind, &s->flags, sizeof *s - offsetof(cq_sum, flags));
	to->zero = 0;
	cq_barrier();
	*(volatile uint8_t *)&to->kind = CQ_SUM;
}

void cq_sum_due(cq_thread *t)
{
	t->end = t->head->sums != 0 && t->full - t->next > EVERY ? t->next + EVERY : t->full;
}

void cq_header_sum(cq_header *h)
{
	h->check = 0;
	uint32_t crc = cq_crc32c(h, sizeof *h);
	h->check = crc != 0 ? crc : 1;
}
