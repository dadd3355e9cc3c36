/* Probes, matched receives, and Sendrecv. */
#include "recorders.h"

void cq_probe_begin(cq_thread *t, int id, int source, int tag, MPI_Comm comm)
{
	int32_t number = cq_comm_of(t, comm)->number;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->flags = cq_posted_flags(source, tag);
	c->comm = number;
	c->peer = cq_rank_or_null(source);
	c->tag = cq_tag_or_null(tag);
	cq_mpi_begins(t);
}

static void probed(cq_call *c, const MPI_Status *st)
{
	c->peer = cq_rank_or_null(st->MPI_SOURCE);
	c->tag = cq_tag_or_null(st->MPI_TAG);
	c->count = cq_status_bytes(st);
}

static uint32_t message_add(MPI_Message m)
{
	if (m == MPI_MESSAGE_NO_PROC || m == MPI_MESSAGE_NULL)
		return 0;
	return cq_req_add(&cq.messages, CQ_KEY(m), CQ_R_RECV);
}

void cq_probe_end(cq_thread *t, int err, const MPI_Status *st)
{
	cq_mpi_ends(t);
	if (err == MPI_SUCCESS)
		probed(t->call, st);
	cq_close(t, err);
}

void cq_mprobe_end(cq_thread *t, int err, MPI_Message message, const MPI_Status *st)
{
	cq_mpi_ends(t);
	if (err == MPI_SUCCESS) {
		probed(t->call, st);
		t->call->req = message_add(message);
	}
	cq_close(t, err);
}

void cq_iprobe_end(cq_thread *t, int id, int err, uint64_t compute, int flag, int source, int tag, MPI_Comm comm,
	MPI_Message message, int matched, const MPI_Status *st)
{
	cq_mpi_ends(t);
	if (!flag && err == MPI_SUCCESS) {
		cq_poll_failed(t, compute);
		return;
	}
	int32_t number = cq_comm_of(t, comm)->number;
	cq_call *c = cq_poll_open(t, id, compute);
	c->flags = cq_posted_flags(source, tag);
	c->comm = number;
	if (err == MPI_SUCCESS) {
		probed(c, st);
		c->req = matched ? message_add(message) : 0;
	}
	cq_close(t, err);
}

uint32_t cq_mrecv_begin(cq_thread *t, int id, const void *buf, int64_t count, MPI_Datatype type, MPI_Message message)
{
	int32_t number = cq_type_of(t, type)->number;
	uint32_t serial = message == MPI_MESSAGE_NO_PROC ? 0 : cq_req_take(&cq.messages, CQ_KEY(message)).serial;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->flags = message == MPI_MESSAGE_NO_PROC ? CQ_F_PROC_NULL : 0;
	c->dtype = number;
	c->count = count;
	c->buf = cq_address(buf);
	cq_buffer_note(t, buf, count, type);
	cq_mpi_begins(t);
	return serial;
}

void cq_mrecv_end(cq_thread *t, int err, uint32_t message, const MPI_Status *st)
{
	cq_mpi_ends(t);
	cq_wide_put(t, 2, message);
	if (err == MPI_SUCCESS)
		cq_record_received(t, st);
	else
		t->call->flags |= CQ_F_NO_STATUS;
	if (cq.verify && err == MPI_SUCCESS && !(t->call->flags & CQ_F_PROC_NULL))
		cq_hash_received(t, &t->in, cq_status_bytes(st), 0);
	cq_close(t, err);
}

void cq_imrecv_end(cq_thread *t, int err, uint32_t message, MPI_Request r)
{
	cq_mpi_ends(t);
	cq_wide_put(t, 2, message);
	if (err == MPI_SUCCESS)
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(r), t->call->flags & CQ_F_PROC_NULL ?
			CQ_R_RECV | CQ_R_PROC_NULL : CQ_R_RECV);
	if (cq.verify && err == MPI_SUCCESS)
		cq_buffer_post(t, t->call->req, 1);
	cq_close(t, err);
}

void cq_recv_failed(cq_thread *t, int err, const MPI_Status *st)
{
	cq_call *c = t->call;
	c->flags |= CQ_F_NO_STATUS;
	if (cq_class_of(err) != MPI_ERR_TRUNCATE)
		return;
	if (c->flags & CQ_F_ANY_SOURCE) /* else it is known, and not every library has written it */
		c->peer = cq_rank_or_null(st->MPI_SOURCE);
	if (c->flags & CQ_F_ANY_TAG)
		c->tag = cq_tag_or_null(st->MPI_TAG);
}

/* Sends that receive as well. */

static void side_put(cq_thread *t, int err, cq_receive r, const MPI_Status *st)
{
	int32_t number = cq_type_of(t, r.type)->number;
	cq_side *s = cq_take(t);
	memset(s, 0, sizeof *s);
	s->flags = cq_posted_flags(r.source, r.tag);
	s->dtype = number;
	s->peer = cq_rank_or_null(r.source);
	s->tag = cq_tag_or_null(r.tag);
	s->count = r.count;
	s->bytes = CQ_NULL64;
	s->buf = cq_address(r.buf);
	/* Open MPI's Fortran form does not write the status where it fails. */
	int has_truncated = !CQ_OPENMPI && err != MPI_SUCCESS && cq_class_of(err) == MPI_ERR_TRUNCATE;
	if (err != MPI_SUCCESS)
		s->flags |= CQ_F_NO_STATUS;
	if (st != NULL && (err == MPI_SUCCESS || (has_truncated && (s->flags & CQ_F_ANY_SOURCE))))
		s->peer = cq_rank_or_null(st->MPI_SOURCE);
	if (st != NULL && (err == MPI_SUCCESS || (has_truncated && (s->flags & CQ_F_ANY_TAG))))
		s->tag = cq_tag_or_null(st->MPI_TAG);
	if (st != NULL && err == MPI_SUCCESS)
		s->bytes = cq_status_bytes(st);
	s->kind = CQ_SIDE;
}

void cq_sendrecv_end(cq_thread *t, int err, cq_receive r, const MPI_Status *st)
{
	cq_mpi_ends(t);
	t->call->req = 0;
	side_put(t, err, r, st);
	cq_buffer_note(t, r.buf, r.count, r.type);
	if (cq.verify && err == MPI_SUCCESS && st->MPI_SOURCE != MPI_PROC_NULL && r.source != MPI_PROC_NULL)
		cq_hash_received(t, &t->in, cq_status_bytes(st), 0);
	cq_close(t, err);
}

void cq_isendrecv_end(cq_thread *t, int err, cq_receive r, MPI_Request request)
{
	cq_mpi_ends(t);
	side_put(t, err, r, NULL);
	if (cq_hooks != NULL)
		cq_hooks->request_made(t, request);
	uint32_t what = r.source == MPI_PROC_NULL ? CQ_R_RECV | CQ_R_PROC_NULL : cq.isendrecv_status ? CQ_R_RECV : 0;
	if (err == MPI_SUCCESS)
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(request), what);
	cq_buffer_note(t, r.buf, r.count, r.type);
	if (cq.verify && err == MPI_SUCCESS && (what & CQ_R_RECV))
		cq_buffer_post(t, t->call->req, 1);
	cq_close(t, err);
}
