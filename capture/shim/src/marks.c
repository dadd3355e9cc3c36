/* Marks: if SIGUSR1 would end the program, the shim records a mark instead. If the program handles or ignores the
 * signal, the shim does nothing. */
#include "call.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

/* The first thread that gets here records the mark. */
void cq_mark_put(cq_thread *t)
{
	static const char label[] = "SIGUSR1";
	if (__atomic_exchange_n(&cq.mark_pending, 0, __ATOMIC_ACQ_REL) == 0)
		return;
	cq_take_pending(t, CQ_PENDING_MARK);
	uint64_t tick = cq_time(t, cq.mark_tick), before = t->call == &t->trash ? 0 : t->call->t0;
	if (tick < before) /* another thread got the signal before this one entered that call */
		tick = before;
	cq_call *c = cq_open(t, CQ_commq_mark);
	c->flags = 0;
	c->compute_ns = 0;
	c->t0 = tick;
	c->site = 0;
	c->comm = c->peer = c->tag = c->dtype = CQ_NULL32;
	c->count = CQ_NULL64;
	c->buf = 0;
	c->req = 0;
	cq_barrier();
	*(volatile uint8_t *)&c->kind = CQ_CALL;
	cq_def_put(t, CQ_DEF_LABEL, 0, label, sizeof label - 1);
	cq_barrier();
	*(volatile uint64_t *)&t->call->t1 = tick;
	t->t1 = tick; /* cq_close of the call before rewrites it */
}

static void on_signal(int number)
{
	int e = errno;
	struct sigaction a;
	if (cq.state != CQ_ON || getpid() != cq.pid) { /* not recording, or a child whose fork no handler saw */
		if (sigaction(number, NULL, &a) == 0 && a.sa_handler == on_signal) {
			signal(number, SIG_DFL);
			raise(number);
		}
		return;
	}
	cq.first->head->marks++;
	cq.first->head->mark_ns = (int64_t)cq_monotonic();
	cq.mark_tick = cq_tick();
	__atomic_store_n(&cq.mark_pending, 1, __ATOMIC_RELEASE);
	for (cq_thread *t = __atomic_load_n(&cq.list, __ATOMIC_ACQUIRE); t != NULL; t = t->link) {
		if (t->closing)
			continue;
		cq_set_pending(t, t->buffered ? CQ_PENDING_MARK | CQ_PENDING_FLUSH : CQ_PENDING_MARK);
		cq_sink_flush_now(t);
	}
	if (cq_mine != NULL && cq_current != NULL) { /* outside MPI: its next call begins with the mark */
		cq_mine->signalled = 1;
		cq_current = NULL;
	}
	errno = e;
}

/* MPICH takes over the signal in MPI_Init and calls the handler that it finds. */
void cq_marks_begin(void)
{
	struct sigaction a;
	if (sigaction(SIGUSR1, NULL, &a) != 0 || (a.sa_flags & SA_SIGINFO) != 0 || a.sa_handler != SIG_DFL)
		return;
	memset(&a, 0, sizeof a);
	a.sa_handler = on_signal;
	a.sa_flags = SA_RESTART;
	cq.handles_signal = sigaction(SIGUSR1, &a, NULL) == 0;
}

void cq_marks_end(void)
{
	struct sigaction a;
	if (!cq.handles_signal || sigaction(SIGUSR1, NULL, &a) != 0 || (a.sa_flags & SA_SIGINFO) != 0 ||
		a.sa_handler != on_signal)
		return;
	memset(&a, 0, sizeof a);
	a.sa_handler = SIG_DFL;
	sigaction(SIGUSR1, &a, NULL);
}
