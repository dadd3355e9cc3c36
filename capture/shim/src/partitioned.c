/* Partitioned communication: persistent requests whose message becomes ready, and arrives, in parts. */
#include "recorders.h"

/* Writes the arguments of a partitioned request's *_init call. */
static void init_begin(cq_thread *t, int id, int flags, const void *buf, int64_t count, MPI_Datatype type, int peer,
	int tag, MPI_Comm comm)
{
	int32_t comm_number = cq_comm_of(t, comm)->number, type_number = cq_type_of(t, type)->number;
	cq_call *c = cq_open(t, id);
	c->flags = (uint8_t)flags;
	c->comm = comm_number;
	c->peer = cq_rank_or_null(peer);
	c->tag = cq_tag_or_null(tag);
	c->dtype = type_number;
	c->count = count;
	c->buf = cq_address(buf);
	c->req = 0;
	cq_mpi_begins(t);
}

void cq_psend_begin(cq_thread *t, int id, const void *buf, int64_t count, MPI_Datatype type, int dest, int tag,
	MPI_Comm comm)
{
	if (cq_hooks != NULL)
		cq_hooks->sends(t, CQ_SENDS_PARTS, count * cq_type_of(t, type)->bytes);
	init_begin(t, id, dest == MPI_PROC_NULL ? CQ_F_PROC_NULL : 0, buf, count, type, dest, tag, comm);
}

void cq_precv_begin(cq_thread *t, int id, const void *buf, int64_t count, MPI_Datatype type, int source, int tag,
	MPI_Comm comm)
{
	init_begin(t, id, cq_posted_flags(source, tag), buf, count, type, source, tag, comm);
}

void cq_partitioned_end(cq_thread *t, int err, int partitions, MPI_Request r, uint32_t what)
{
	cq_mpi_ends(t);
	cq_wide_put(t, 3, partitions);
	if (err == MPI_SUCCESS) {
		if (t->call->flags & CQ_F_PROC_NULL)
			what |= CQ_R_PROC_NULL;
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(r), what | CQ_R_PERSISTENT);
	}
	cq_close(t, err);
}

void cq_pready_begin(cq_thread *t, int id, int64_t n, MPI_Request request)
{
	uint32_t serial = cq_req_peek(request).serial;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->count = n;
	c->req = serial;
	cq_mpi_begins(t);
}

void cq_pready_end(cq_thread *t, int err, int64_t lowest)
{
	cq_mpi_ends(t);
	cq_wide_put(t, 4, lowest);
	cq_close(t, err);
}

int64_t cq_lowest(const int *list, int n)
{
	int64_t low = n > 0 ? list[0] : CQ_NULL64;
	for (int i = 1; i < n; i++)
		low = list[i] < low ? list[i] : low;
	return low;
}

void cq_parrived_end(cq_thread *t, int id, int err, uint64_t compute, int flag, int partition, MPI_Request request)
{
	cq_mpi_ends(t);
	if (!flag && err == MPI_SUCCESS) {
		cq_poll_failed(t, compute);
		return;
	}
	uint32_t serial = cq_req_peek(request).serial;
	cq_call *c = cq_poll_open(t, id, compute);
	c->count = 1;
	c->req = serial;
	cq_wide_put(t, 4, partition);
	cq_close(t, err);
}
