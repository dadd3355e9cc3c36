/* One-sided communication: windows, transfers, synchronisation. */
#include "recorders.h"

#include <stdio.h>

static void rma_blank(cq_rma *s, int32_t window)
{
	memset(s, 0, sizeof *s);
	s->op = 0xffff;
	s->kind = CQ_RMA;
	s->window = window;
	s->tdtype = s->rdtype = CQ_NULL32;
	s->disp = s->tcount = s->rcount = s->obytes = s->tbytes = CQ_NULL64;
}

static void rma_put(cq_thread *t, const cq_rma *s)
{
	*(cq_rma *)cq_take(t) = *s;
}

/* The CALL slot of a call on a window. A target is a rank in the window's communicator, so it is null if the
 * communicator is unknown: the window was made by an unrecorded call. */
static cq_call *win_open(cq_thread *t, int id, cq_object w)
{
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->comm = w.comm;
	return c;
}

static void win_target(cq_call *c, int rank)
{
	if (rank == MPI_PROC_NULL)
		c->flags |= CQ_F_PROC_NULL;
	else if (c->comm != CQ_NULL32)
		c->peer = rank;
}

/* Transfers. The slot behind the call's takes the target and result arguments; they are looked up before the call. */
void cq_rma_begin(cq_thread *t, int id, cq_onesided *a)
{
	cq_object w = cq_object_get(&cq.windows, CQ_KEY(a->win));
	int idle = a->has_op && a->op == MPI_NO_OP; /* then MPI ignores the origin arguments, which may be anything */
	cq_rma *s = &a->slot;
	const cq_type *y;
	int32_t otype = CQ_NULL32;
	if (a->one) {
		a->ocount = a->tcount = a->rcount = 1;
		a->ttype = a->rtype = a->otype;
	}
	rma_blank(s, w.number);
	y = cq_type_of(t, a->ttype);
	s->tdtype = y->number;
	s->tcount = a->tcount;
	s->tbytes = a->tcount * y->bytes;
	s->disp = a->disp;
	if (a->has_result) {
		s->rdtype = cq_type_of(t, a->rtype)->number;
		s->rcount = a->rcount;
		s->rbuf = cq_address(a->rbuf);
	}
	if (a->has_op)
		s->op = (uint16_t)cq_op_code(a->op);
	s->obytes = 0;
	if (!idle) {
		y = cq_type_of(t, a->otype);
		otype = y->number;
		s->obytes = a->ocount * y->bytes;
	}
	cq_call *c = win_open(t, id, w);
	win_target(c, a->target);
	if (!idle) {
		c->dtype = otype;
		c->count = a->ocount;
		c->buf = cq_address(a->obuf);
	}
	if (a->sends && !idle && a->target != MPI_PROC_NULL)
		cq_mpi_begins_sending(t, a->obuf, a->ocount, a->otype);
	else
		cq_mpi_begins(t);
}

void cq_rma_end(cq_thread *t, int err, const cq_onesided *a)
{
	cq_mpi_ends(t);
	rma_put(t, &a->slot);
	cq_close(t, err);
}

void cq_rma_request_end(cq_thread *t, int err, const cq_onesided *a, MPI_Request r)
{
	cq_mpi_ends(t);
	rma_put(t, &a->slot);
	if (err == MPI_SUCCESS)
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(r), 0);
	cq_close(t, err);
}

/* Synchronisation. */

int32_t cq_win_begin(cq_thread *t, int id, MPI_Win win)
{
	cq_object w = cq_object_get(&cq.windows, CQ_KEY(win));
	win_open(t, id, w);
	cq_mpi_begins(t);
	return w.number;
}

int32_t cq_win_target_begin(cq_thread *t, int id, MPI_Win win, int rank)
{
	cq_object w = cq_object_get(&cq.windows, CQ_KEY(win));
	cq_call *c = win_open(t, id, w);
	win_target(c, rank);
	cq_mpi_begins(t);
	return w.number;
}

/* World ranks as text, in ranges: 0-1023,2000. */
typedef struct {
	char text[CQ_LABEL_BYTES + 1];
	size_t n;
	int first, last; /* of the range that is still open; -1: none */
	int whole;       /* all of them fit so far */
} rank_text;

static void range_end(rank_text *r)
{
	size_t room = sizeof r->text - r->n;
	const char *comma = r->n > 0 ? "," : "";
	if (r->first < 0)
		return;
	int n = r->first == r->last ? snprintf(r->text + r->n, room, "%s%d", comma, r->first) :
		snprintf(r->text + r->n, room, "%s%d-%d", comma, r->first, r->last);
	r->whole = n > 0 && (size_t)n < room;
	r->n += r->whole ? (size_t)n : 0;
}

static void rank_add(rank_text *r, int rank)
{
	if (r->first < 0 || rank != r->last + 1) {
		range_end(r);
		r->first = rank;
	}
	r->last = rank;
}

static void add_group(rank_text *r, MPI_Group group)
{
	int n = 0, from[64], to[64];
	if (cq_p.Group_size(group, &n) != MPI_SUCCESS)
		return;
	for (int at = 0; at < n && r->whole; at += 64) {
		int some = n - at < 64 ? n - at : 64;
		for (int i = 0; i < some; i++)
			from[i] = at + i;
		cq_p.Group_translate_ranks(group, some, from, cq.world_group, to);
		for (int i = 0; i < some && r->whole; i++) {
			if (to[i] != MPI_UNDEFINED)
				rank_add(r, to[i]);
		}
	}
	if (r->whole)
		range_end(r);
}

/* Puts the world ranks of a group as the text of the call, none where it is empty; nothing if that does not fit. Ranks
 * outside the world are left out. MPI must have accepted the group: asking for the ranks of an invalid one would be an
 * error of ours. Open MPI accepts MPI_GROUP_NULL and takes it as empty. */
static void group_put(cq_thread *t, MPI_Group group)
{
	static const char none[] = "none";
	rank_text r = {.first = -1, .whole = 1};
	if (!cq.has_world_group)
		return;
	if (group != MPI_GROUP_NULL)
		add_group(&r, group);
	if (!r.whole)
		return;
	if (r.n > 0)
		cq_label_put(t, r.text, r.n);
	else
		cq_label_put(t, none, sizeof none - 1);
}

int32_t cq_win_lock_begin(cq_thread *t, int id, MPI_Win win, int rank, int type)
{
	static const char exclusive[] = "exclusive", shared[] = "shared";
	cq_object w = cq_object_get(&cq.windows, CQ_KEY(win));
	cq_call *c = win_open(t, id, w);
	win_target(c, rank);
	if (type == MPI_LOCK_EXCLUSIVE)
		cq_label_put(t, exclusive, sizeof exclusive - 1);
	else
		cq_label_put(t, shared, sizeof shared - 1);
	cq_mpi_begins(t);
	return w.number;
}

static void win_put(cq_thread *t, int32_t window)
{
	cq_rma s;
	rma_blank(&s, window);
	rma_put(t, &s);
}

void cq_win_end(cq_thread *t, int err, int32_t window)
{
	cq_mpi_ends(t);
	win_put(t, window);
	cq_close(t, err);
}

void cq_win_group_end(cq_thread *t, int err, int32_t window, MPI_Group group)
{
	cq_mpi_ends(t);
	if (err == MPI_SUCCESS)
		group_put(t, group);
	win_put(t, window);
	cq_close(t, err);
}

void cq_win_test_end(cq_thread *t, int id, int err, uint64_t compute, int flag, MPI_Win win)
{
	cq_mpi_ends(t);
	if (!flag && err == MPI_SUCCESS) {
		cq_poll_failed(t, compute);
		return;
	}
	cq_object w = cq_object_get(&cq.windows, CQ_KEY(win));
	cq_call *c = cq_poll_open(t, id, compute);
	c->comm = w.comm;
	win_put(t, w.number);
	cq_close(t, err);
}

/* Windows. A constructor begins like a communicator's: it is a collective operation on its communicator. */

void cq_win_new_end(cq_thread *t, int err, MPI_Win made, const void *base, int64_t bytes, uint64_t instance)
{
	cq_mpi_ends(t);
	t->call->count = -1;
	if (err == MPI_SUCCESS) {
		t->call->count = cq_object_add(&cq.windows, &cq.windows_made, CQ_KEY(made), t->call->comm);
		t->call->buf = cq_address(base);
	}
	cq_instance_put(t, instance, bytes);
	cq_close(t, err);
}

int32_t cq_win_free_begin(cq_thread *t, int id, MPI_Win win)
{
	cq_object w = cq_object_drop(&cq.windows, CQ_KEY(win));
	win_open(t, id, w);
	cq_mpi_begins(t);
	return w.number;
}
