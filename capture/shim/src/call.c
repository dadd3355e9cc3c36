/* The rare cases on the path of a recorded call. */
#include "call.h"

#include <errno.h>

#include "counters.h"

/* Compute time of a long gap: the advance of the CPU clock since its last reading, less the short intervals since
 * then. With counters, every gap takes this path. */
uint64_t cq_compute_time_long(cq_thread *t, uint64_t *now, uint64_t gap)
{
	int64_t ns = (int64_t)cq_ticks_ns(gap, cq.mult);
	if (t->pending & CQ_PENDING_COUNTS)
		cq_count_end(t);
	if (gap <= cq.cpu_ticks) {
		t->shorts += gap;
	} else if (cq.clock == CQ_CLOCK_CPU) {
		int64_t c = cq_cpu_ns();
		int64_t cpu = c - t->cpu - (int64_t)cq_ticks_ns(t->shorts, cq.scale) - cq.cpu_read_ns;
		t->cpu = c;
		t->shorts = 0;
		ns = cpu < 0 ? 0 : cpu < ns ? cpu : ns;
	}
	cq_sink_flush_old(t, *now);
	*now = cq_tick();
	return (uint64_t)ns;
}

/* A long call: reads the CPU clock at its end, so that the next gap begins there. With counters, every call takes
 * this path. */
void cq_mpi_ends_long(cq_thread *t)
{
	if (t->t1 - t->t0 <= cq.cpu_ticks) {
		t->shorts += t->t1 - t->t0;
	} else if (cq.clock == CQ_CLOCK_CPU) {
		t->cpu = cq_cpu_ns();
		t->shorts = 0;
	}
	if (t->pending & CQ_PENDING_COUNTS)
		cq_count_begin(t);
	t->last = cq.clock == CQ_CLOCK_CPU || (t->pending & CQ_PENDING_COUNTS) ? cq_tick() : t->t1;
}

/* Called now and then during failed polls, which can continue for hours. */
void cq_polled_long(cq_thread *t)
{
	cq_sink_flush_old(t, t->t1);
}

int cq_class_of(int err)
{
	int class = MPI_SUCCESS;
	if (err != MPI_SUCCESS)
		cq_p.Error_class(err, &class);
	return class;
}

void cq_abandon(cq_thread *t)
{
	cq_take_pending(t, CQ_PENDING_REWRITE);
	t->call_off = 0;
	t->call = &t->trash;
	t->claims = t->no_statuses = 0;
	t->gathered = t->wide = 0;
	if (cq_hooks != NULL)
		cq_hooks->call_abandoned(t);
	t->cpu = cq.clock == CQ_CLOCK_CPU ? cq_cpu_ns() : 0;
	t->shorts = 0;
	if (t->pending & CQ_PENDING_COUNTS)
		cq_count_begin(t);
	t->last = cq_tick();
}

/* The rare work at the end of a call: errors, long times, polls, and the state of the file. */
void cq_close_extra(cq_thread *t, int err)
{
	int e = errno;
	if (err != MPI_SUCCESS) {
		cq_err *s = cq_take(t);
		memset(s, 0, sizeof *s);
		s->error_class = cq_class_of(err);
		s->flags = s->error_class == MPI_ERR_TRUNCATE ? CQ_ERR_TRUNCATE : 0;
		s->kind = CQ_ERR;
	}
	if (t->polls != 0 || t->wide != 0 || (t->pending & CQ_PENDING_COUNTS) != 0) {
		cq_pre *s = cq_take(t);
		memset(s, 0, sizeof *s);
		s->compute_ns = t->wide != 0 ? t->wide : t->call->compute_ns;
		s->polls = t->polls;
		s->poll_ticks = t->poll_ticks;
		s->instructions = t->pending & CQ_PENDING_COUNTS ? t->count[0] : CQ_NULL64;
		s->cycles = t->pending & CQ_PENDING_COUNTS ? t->count[1] : CQ_NULL64;
		s->kind = CQ_PRE;
		t->polls = t->poll_ticks = t->wide = 0;
		t->count[0] = t->count[1] = 0;
	}
	if (cq_take_pending(t, CQ_PENDING_CLOCK))
		cq_clock_def(t);
	if (cq_take_pending(t, CQ_PENDING_REWRITE))
		cq_rewrite(t);
	if (t->pending & CQ_PENDING_DROP)
		t->head->dropped++;
	if (t->pending & (CQ_PENDING_MARK | CQ_PENDING_FLUSH | CQ_PENDING_TIMED)) { /* these need the call to have ended */
		uint64_t now = t->t1;
		cq_barrier();
		*(volatile uint64_t *)&t->call->t1 = cq_time(t, t->t1);
		if (cq_take_pending(t, CQ_PENDING_MARK))
			cq_mark_put(t);
		if (cq_take_pending(t, CQ_PENDING_FLUSH) ||
			(t->buffered && (int64_t)(now - t->flushed) > (int64_t)cq.flush_ticks))
			cq_sink_flush(t);
	}
	errno = e;
}
