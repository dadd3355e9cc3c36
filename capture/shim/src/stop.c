/* The end of recording: MPI_Finalize, sessions, MPI_Abort, exit, fork. */
#include "lifetime.h"

#include <unistd.h>

void cq_stop_in_child(void)
{
	cq.state = CQ_OFF;
	cq_current = NULL;
	if (cq_hooks != NULL)
		cq_hooks->forked();
	for (cq_thread *t = cq.list; t != NULL; t = t->link)
		cq_sink_disown(t);
	cq_mine = NULL;
	cq_marks_end();
}

void cq_abort_before(cq_thread *t)
{
	t->head->ended = CQ_ENDED_ABORTED;
	t->head->polls = t->polls_all;
	cq_header_clock(t);
	for (cq_thread *u = cq.list; u != NULL; u = u->link)
		cq_sink_flush(u);
	if (cq_hooks != NULL)
		cq_hooks->aborts();
}

/* One use of MPI ends, MPI_Init's or a session's; returns whether it is the last. */
static int end_use(void)
{
	if (__atomic_sub_fetch(&cq.users, 1, __ATOMIC_ACQ_REL) > 0)
		return 0;
	cq_hashing_end();
	if (cq.has_world_group && cq.state == CQ_ON) {
		cq_p.Group_free(&cq.world_group);
		cq.has_world_group = 0;
	}
	return 1;
}

static void finalize_begins(cq_thread *t)
{
	if (cq.state == CQ_NEW || cq.finalizing)
		return;
	cq.finalizing = 1;
	cq_clock_offsets_end();
	end_use();
	if (t == NULL)
		return;
	t->head->offset_final_ns = cq.offset_ns;
	t->head->offset_final_error_ns = cq.offset_error_ns;
	t->head->offset_final_at_ns = cq.offset_at_ns;
}

void cq_finalize_before(cq_thread *t)
{
	finalize_begins(t);
	if (t != NULL)
		cq_plain_begin(t, CQ_Finalize, MPI_COMM_NULL);
	if (cq_hooks != NULL)
		cq_hooks->finalizes(t);
}

void cq_finalize_after(cq_thread *t, int err)
{
	cq_mpi_ends(t);
	cq_close(t, err);
	if (cq.users > 0) /* sessions continue */
		return;
	cq_current = NULL;
	cq.state = CQ_OFF;
	cq_marks_end();
	for (cq_thread *u = cq.list; u != NULL; u = u->link) {
		if (__atomic_exchange_n(&u->closing, 1, __ATOMIC_ACQ_REL))
			continue;
		cq_header_end(u, err == MPI_SUCCESS ? CQ_ENDED_FINALIZED : CQ_ENDED_NOT);
		cq_sink_close(u);
	}
}

#if CQ_MPI4
int cq_session_ends(void)
{
	return cq.state != CQ_NEW && end_use();
}

/* After the last session the files are as complete as after MPI_Finalize, but stay open, because another session may
 * follow. */
void cq_session_end_after(cq_thread *t, int err, int last)
{
	if (t == NULL)
		return;
	cq_mpi_ends(t);
	cq_close(t, err);
	for (cq_thread *u = cq.list; last && err == MPI_SUCCESS && u != NULL; u = u->link) {
		if (!__atomic_load_n(&u->closing, __ATOMIC_ACQUIRE))
			cq_header_end(u, CQ_ENDED_FINALIZED);
	}
}
#endif

/* exit without MPI_Finalize. Other threads may still run, so their files stay mapped. */
__attribute__((destructor)) static void unloaded(void)
{
	if (cq.state != CQ_ON || getpid() != cq.pid) /* _Fork and clone call no handlers */
		return;
	cq.state = CQ_OFF;
	cq_current = NULL;
	for (cq_thread *u = cq.list; u != NULL; u = u->link) {
		if (__atomic_exchange_n(&u->closing, 1, __ATOMIC_ACQ_REL))
			continue;
		cq_header_end(u, CQ_ENDED_NOT);
		if (u == cq_mine)
			cq_sink_close(u);
		else
			cq_sink_flush(u);
	}
	if (cq_hooks != NULL)
		cq_hooks->exits();
}
