/* Constructors of communicators, and calls with at most a communicator as argument. */
#include "recorders.h"

uint64_t cq_comm_new_begin(cq_thread *t, int id, MPI_Comm parent, int counted)
{
	cq_comm *m = cq_comm_of(t, parent);
	uint64_t instance = counted ? m->instance++ : 0;
	int32_t number = m->number;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->comm = number;
	cq_mpi_begins(t);
	return instance;
}

static void made_put(cq_thread *t, MPI_Comm made, MPI_Comm like, int kind, int counted, uint64_t instance, int key)
{
	int32_t parent = t->call->comm;
	if (counted)
		cq_instance_put(t, instance, CQ_NULL64);
	/* accept and connect count on both communicators */
	cq_origin origin = {kind, parent, instance, key, counted && key != -1};
	int32_t number = cq_comm_define(t, made, like, &origin);
	t->call->count = number;
}

/* The end of a constructor except for cq_close, so that the caller can add slots. */
void cq_comm_new_record(cq_thread *t, int err, MPI_Comm made, int kind, int counted, uint64_t instance, int key)
{
	cq_mpi_ends(t);
	if (err == MPI_SUCCESS)
		made_put(t, made, made, kind, counted, instance, key);
	else if (counted) /* later operations on the communicator count from here */
		cq_instance_put(t, instance, CQ_NULL64);
}

void cq_comm_new_end(cq_thread *t, int err, MPI_Comm made, int kind, int counted, uint64_t instance, int key)
{
	cq_comm_new_record(t, err, made, kind, counted, instance, key);
	cq_close(t, err);
}

void cq_comm_idup_end(cq_thread *t, int err, MPI_Comm made, MPI_Comm parent, uint64_t instance, MPI_Request r)
{
	cq_mpi_ends(t);
	if (err == MPI_SUCCESS) {
		made_put(t, made, parent, 2 /* dup */, CQ_COUNTED, instance, 0);
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(r), 0);
	} else {
		cq_instance_put(t, instance, CQ_NULL64);
	}
	cq_close(t, err);
}

/* A call with at most a communicator as argument. */
void cq_plain_begin(cq_thread *t, int id, MPI_Comm comm)
{
	int32_t number = comm == MPI_COMM_NULL ? CQ_NULL32 : cq_comm_of(t, comm)->number;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->comm = number;
	cq_mpi_begins(t);
}

/* Defines the communicator at once: the ranks make those of the same members in the same order, but may use them in
 * another. */
void cq_comm_made_unseen(MPI_Comm made, MPI_Comm like)
{
	cq_thread *t = cq_mine;
	if (cq.state == CQ_ON && t != NULL && !t->closing && !t->growing)
		cq_comm_define(t, made, like, &(cq_origin){.kind = 10 /* other */, .parent = CQ_NULL32});
}

void cq_comm_free_begin(cq_thread *t, int id, MPI_Comm comm)
{
	int32_t number = cq_comm_of(t, comm)->number;
	cq_comm_drop(CQ_KEY(comm));
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->comm = number;
	cq_mpi_begins(t);
}

void cq_comm_free_end(cq_thread *t, int err)
{
	cq_mpi_ends(t);
	if (err == MPI_SUCCESS && t->call->comm != CQ_NULL32)
		cq_def_put(t, CQ_DEF_COMM_FREE, t->call->comm, NULL, 0);
	cq_close(t, err);
}
