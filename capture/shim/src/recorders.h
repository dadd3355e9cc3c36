/* The recorders, by class of call: the work of a wrapper before (_begin) and after (_end) the call. The hot ones are
 * inline. Only the call itself runs between cq_mpi_begins, the last step of a begin, and cq_mpi_ends, the first of an
 * end. */
#ifndef COMMQ_RECORDERS_H
#define COMMQ_RECORDERS_H

#include "call.h"
#include "fortran.h"
#include "status.h"

CQ_HOT uint64_t cq_address(const void *p)
{
	return p == MPI_IN_PLACE ? 0 : (uint64_t)(uintptr_t)p;
}

CQ_HOT uint8_t cq_posted_flags(int source, int tag)
{
	uint8_t f = source == MPI_ANY_SOURCE ? CQ_F_ANY_SOURCE : source == MPI_PROC_NULL ? CQ_F_PROC_NULL : 0;
	return (uint8_t)(tag == MPI_ANY_TAG ? f | CQ_F_ANY_TAG : f);
}

CQ_HOT int32_t cq_rank_or_null(int r)
{
	return r == MPI_ANY_SOURCE || r == MPI_PROC_NULL ? CQ_NULL32 : r;
}

CQ_HOT int32_t cq_tag_or_null(int tag)
{
	return tag == MPI_ANY_TAG ? CQ_NULL32 : tag;
}

/* Hashes of payloads; see payload.c. */

/* In MPI_Init, and before MPI_Finalize. */
void cq_hashing_begin(void);
void cq_hashing_end(void);
void cq_mpi_begins_hashing(cq_thread *t, const void *buf, int64_t count, MPI_Datatype type);
void cq_buffer_post(cq_thread *t, uint32_t serial, int receive);
void cq_buffer_forget(uint32_t serial);
void cq_hash_received(cq_thread *t, const cq_posted *in, int64_t bytes, uint32_t req);
void cq_hash_completed(cq_thread *t, cq_req r, const MPI_Status *st);

/* cq_mpi_begins of a call that sends: also hashes the payload if payload hashing is on. */
CQ_HOT void cq_mpi_begins_sending(cq_thread *t, const void *buf, int64_t count, MPI_Datatype type)
{
	if (cq.hash != CQ_ALGORITHM_NONE)
		cq_mpi_begins_hashing(t, buf, count, type);
	else
		cq_mpi_begins(t);
}

/* Remembers the buffer of a receive if received payloads are hashed. */
CQ_HOT void cq_buffer_note(cq_thread *t, const void *buf, int64_t count, MPI_Datatype type)
{
	if (CQ_UNLIKELY(cq.verify)) {
		t->in.buf = buf;
		t->in.count = count;
		t->in.type = type;
	}
}

/* A request has completed: hashes what it received. st is NULL if the status is unknown. */
CQ_HOT void cq_verify(cq_thread *t, cq_req r, const MPI_Status *st)
{
	if (CQ_UNLIKELY(cq.verify) && (r.what & CQ_R_RECV) && r.serial != 0)
		cq_hash_completed(t, r, st);
}

/* Sends, including nonblocking and persistent ones. */

CQ_HOT cq_call *cq_send_open(cq_thread *t, int id, int how, const void *buf, int64_t count, MPI_Datatype type,
	int dest, int tag, MPI_Comm comm)
{
	const cq_type *y = cq_type_of(t, type);
	int32_t type_number = y->number;
	if (cq_hooks != NULL)
		cq_hooks->sends(t, how, count * y->bytes);
	int32_t comm_number = cq_comm_of(t, comm)->number;
	cq_call *c = cq_open(t, id);
	c->flags = dest == MPI_PROC_NULL ? CQ_F_PROC_NULL : 0;
	c->comm = comm_number;
	c->peer = dest == MPI_PROC_NULL ? CQ_NULL32 : dest;
	c->tag = tag;
	c->dtype = type_number;
	c->count = count;
	c->buf = cq_address(buf);
	c->req = 0;
	return c;
}

CQ_HOT void cq_send_begin(cq_thread *t, int id, const void *buf, int64_t count, MPI_Datatype type, int dest, int tag,
	MPI_Comm comm)
{
	cq_send_open(t, id, CQ_SENDS, buf, count, type, dest, tag, comm);
	cq_mpi_begins_sending(t, buf, count, type);
	if (cq_hooks != NULL)
		cq_hooks->send_begins(t);
}

/* A Sendrecv. Until it returns, req holds the source, so that a reader sees it in a call that never returns. */
CQ_HOT void cq_sendrecv_begin(cq_thread *t, int id, const void *buf, int64_t count, MPI_Datatype type, int dest,
	int tag, MPI_Comm comm, int source)
{
	cq_call *c = cq_send_open(t, id, CQ_SENDS, buf, count, type, dest, tag, comm);
	c->req = source == MPI_PROC_NULL ? 0 : source == MPI_ANY_SOURCE ? UINT32_MAX : (uint32_t)source + 1;
	cq_mpi_begins_sending(t, buf, count, type);
	if (cq_hooks != NULL)
		cq_hooks->send_begins(t);
}

/* A persistent send is hashed at each start. */
CQ_HOT void cq_send_init_begin(cq_thread *t, int id, const void *buf, int64_t count, MPI_Datatype type, int dest,
	int tag, MPI_Comm comm)
{
	cq_send_open(t, id, CQ_SENDS_LATER, buf, count, type, dest, tag, comm);
	t->in.buf = buf;
	t->in.count = count;
	t->in.type = type;
	cq_mpi_begins(t);
}

CQ_HOT void cq_end(cq_thread *t, int err)
{
	cq_mpi_ends(t);
	cq_close(t, err);
}

/* The end of a call that makes a request. */
CQ_HOT void cq_request_end(cq_thread *t, int err, MPI_Request r, uint32_t what)
{
	cq_mpi_ends(t);
	if (cq_hooks != NULL)
		cq_hooks->request_made(t, r);
	if (CQ_LIKELY(err == MPI_SUCCESS)) {
		if (t->call->flags & CQ_F_PROC_NULL)
			what |= CQ_R_PROC_NULL;
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(r), what);
		if (CQ_UNLIKELY(what & CQ_R_RECV ? cq.verify : (what & CQ_R_PERSISTENT) && cq.hash != CQ_ALGORITHM_NONE))
			cq_buffer_post(t, t->call->req, what & CQ_R_RECV);
	}
	cq_close(t, err);
}

/* Receives. */

CQ_HOT void cq_recv_begin(cq_thread *t, int id, const void *buf, int64_t count, MPI_Datatype type, int source, int tag,
	MPI_Comm comm)
{
	int32_t comm_number = cq_comm_of(t, comm)->number, type_number = cq_type_of(t, type)->number;
	cq_call *c = cq_open(t, id);
	c->flags = cq_posted_flags(source, tag);
	c->comm = comm_number;
	c->peer = cq_rank_or_null(source);
	c->tag = cq_tag_or_null(tag);
	c->dtype = type_number;
	c->count = count;
	c->buf = cq_address(buf);
	c->req = 0;
	cq_buffer_note(t, buf, count, type);
	cq_mpi_begins(t);
}

/* Records the message of a blocking receive. */
CQ_HOT void cq_record_received(cq_thread *t, const MPI_Status *st)
{
	int64_t bytes = cq_status_bytes(st);
	cq_call *c = t->call;
	c->peer = cq_rank_or_null(st->MPI_SOURCE);
	c->tag = cq_tag_or_null(st->MPI_TAG);
	if (CQ_LIKELY(bytes < UINT32_MAX)) {
		c->req = (uint32_t)bytes;
	} else {
		c->req = UINT32_MAX;
		cq_wide_put(t, 1, bytes);
	}
}

/* The same for a receive that failed: one whose message was too long still took it. */
void cq_recv_failed(cq_thread *t, int err, const MPI_Status *st);

CQ_HOT void cq_recv_end(cq_thread *t, int err, const MPI_Status *st)
{
	cq_mpi_ends(t);
	if (CQ_LIKELY(err == MPI_SUCCESS)) {
		cq_record_received(t, st);
		if (CQ_UNLIKELY(cq.verify) && st->MPI_SOURCE != MPI_PROC_NULL)
			cq_hash_received(t, &t->in, cq_status_bytes(st), 0);
	} else {
		cq_recv_failed(t, err, st);
	}
	cq_close(t, err);
}

/* Completion of one request. */

CQ_HOT void cq_record_completion(cq_call *c, cq_req r, const MPI_Status *st)
{
	if (CQ_UNLIKELY(r.what & CQ_R_IO)) {
		c->count = cq_status_bytes(st); /* only this field is known to be set */
	} else if (CQ_UNLIKELY(r.serial != 0 && cq_status_cancelled(st))) {
		c->flags |= CQ_F_CANCELLED;
	} else if (CQ_UNLIKELY(r.what & CQ_R_PROC_NULL)) {
		c->flags |= CQ_F_PROC_NULL;
		if (r.what & CQ_R_RECV)
			c->count = 0;
	} else if (r.serial != 0 && (r.what & CQ_R_RECV)) {
		c->peer = cq_rank_or_null(st->MPI_SOURCE);
		c->tag = cq_tag_or_null(st->MPI_TAG);
		c->count = cq_status_bytes(st);
	}
}

/* The same for a call that failed: a receive whose message was too long still took it. */
void cq_completion_failed(cq_call *c, int err, int fortran, cq_req r, const MPI_Status *st);

CQ_HOT cq_req cq_wait_begin(cq_thread *t, int id, MPI_Request request)
{
	cq_req r = cq_req_take(&cq.requests, CQ_KEY(request));
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->req = r.serial;
	cq_mpi_begins(t);
	return r;
}

CQ_HOT void cq_wait_end(cq_thread *t, int err, int fortran, cq_req r, const MPI_Status *st)
{
	cq_mpi_ends(t);
	if (CQ_LIKELY(err == MPI_SUCCESS))
		cq_record_completion(t->call, r, st);
	else
		cq_completion_failed(t->call, err, fortran, r, st);
	cq_verify(t, r, err == MPI_SUCCESS ? st : NULL);
	cq_close(t, err);
}


/* With several threads, takes the request before the call: another thread could get its handle value before the call
 * returns. */
CQ_HOT uint64_t cq_test_begin(cq_thread *t, uint64_t key)
{
	if (CQ_UNLIKELY(cq.locked))
		t->claim = cq_req_take_locked(&cq.requests, key);
	return key;
}

CQ_HOT cq_req cq_test_take(cq_thread *t, uint64_t key)
{
	if (CQ_UNLIKELY(cq.locked))
		return t->claim;
	return cq_req_take(&cq.requests, key);
}

CQ_HOT void cq_test_put_back(cq_thread *t, uint64_t key)
{
	if (CQ_UNLIKELY(cq.locked) && t->claim.serial != 0)
		cq_req_put_back(&cq.requests, key, t->claim);
}

CQ_HOT void cq_test_end(cq_thread *t, int id, int err, int fortran, uint64_t compute, int flag, uint64_t key, int null,
	const MPI_Status *st)
{
	cq_mpi_ends(t);
	if (!flag && err == MPI_SUCCESS) {
		cq_test_put_back(t, key);
		cq_poll_failed(t, compute);
		return;
	}
	cq_call *c = cq_poll_open(t, id, compute);
	if (CQ_LIKELY(err == MPI_SUCCESS) || null) { /* it completed, perhaps with an error */
		cq_req r = cq_test_take(t, key);
		c->req = r.serial;
		if (CQ_LIKELY(err == MPI_SUCCESS))
			cq_record_completion(c, r, st);
		else
			cq_completion_failed(c, err, fortran, r, st);
		cq_verify(t, r, err == MPI_SUCCESS ? st : NULL);
	} else {
		cq_test_put_back(t, key);
	}
	cq_close(t, err);
}

/* An array of handles as the program passes it: C handles, or Fortran's integers. */
typedef struct {
	const void *p;
	int n;
	int fortran;
} cq_array;

/* Completion calls that are not recorded, such as those of callbacks: which of their requests have ended is seen by the
 * handles that are null behind the call. */
typedef struct {
	uint64_t few[8];
	uint64_t *keys;
	int n;
} cq_unseen;

cq_unseen cq_unseen_begin(cq_array a);
void cq_unseen_end(cq_unseen *u, cq_array a);
/* Before an MPI_Request_free that is not recorded. */
void cq_request_freed_unseen(MPI_Request request);

/* The keys of an array of requests before the call; NULL if it has none. With several threads this also takes the
 * requests. */
CQ_HOT uint64_t *cq_request_keys(cq_thread *t, cq_array a)
{
	uint64_t *keys = a.n > 0 ? cq_scratch_get(&t->keys, (size_t)a.n * sizeof *keys) : NULL;
	for (int i = 0; keys != NULL && i < a.n; i++) {
		if (a.fortran)
			keys[i] = CQ_KEY(CQ_REQUEST(((const MPI_Fint *)a.p)[i]));
		else
			keys[i] = CQ_KEY(((const MPI_Request *)a.p)[i]);
	}
	if (CQ_UNLIKELY(cq.locked))
		cq_claim(t, keys, a.n);
	return keys;
}

/* Where a call puts its statuses: the program's array, or scratch memory. If memory runs out they stay ignored. */
CQ_HOT MPI_Status *cq_statuses(cq_thread *t, void *program, int ignored, int n)
{
	if (!ignored || n <= 0)
		return program;
	MPI_Status *st = cq_scratch_get(&t->statuses, (size_t)n * sizeof *st);
	if (CQ_LIKELY(st != NULL))
		return st;
	t->no_statuses = 1;
	return program;
}

/* The statuses of a call if they can be read, else NULL. */
CQ_HOT const MPI_Status *cq_statuses_result(cq_thread *t, const MPI_Status *st)
{
	if (CQ_LIKELY(!t->no_statuses))
		return st;
	t->no_statuses = 0;
	return NULL;
}

void cq_any_end(cq_thread *t, int id, int err, uint64_t compute, int flag, int index, cq_array a, const uint64_t *keys,
	const MPI_Status *st);
void cq_waitany_begin(cq_thread *t, int id);
void cq_waitany_end(cq_thread *t, int err, int index, cq_array a, const uint64_t *keys, const MPI_Status *st);
void cq_waitall_begin(cq_thread *t, int id, cq_array a);
void cq_waitall_end(cq_thread *t, int err, cq_array a, const MPI_Status *st);
void cq_testall_end(cq_thread *t, int id, int err, uint64_t compute, int flag, cq_array a, const uint64_t *keys,
	const MPI_Status *st);
void cq_waitsome_end(cq_thread *t, int err, int n, const int *indices, int base, const uint64_t *keys,
	const MPI_Status *st);
void cq_testsome_end(cq_thread *t, int id, int err, uint64_t compute, int n, const int *indices, int base,
	const uint64_t *keys, const MPI_Status *st);
void cq_get_status_end(cq_thread *t, int id, int err, uint64_t compute, int flag, MPI_Request request,
	const MPI_Status *st);
void cq_request_begin(cq_thread *t, int id, MPI_Request request);
void cq_request_free_begin(cq_thread *t, int id, MPI_Request request);
void cq_start_begin(cq_thread *t, int id, const void *requests, int n, int fortran);
uint32_t cq_template_of(MPI_Request request);
void cq_start_hash_put(cq_thread *t, int i, uint32_t serial);
void cq_starts_hash(cq_thread *t, const void *requests, int n, int fortran);
void cq_start_end(cq_thread *t, int err, const void *requests, int n, int fortran);

/* Probes and matched receives. */

void cq_probe_begin(cq_thread *t, int id, int source, int tag, MPI_Comm comm);
void cq_probe_end(cq_thread *t, int err, const MPI_Status *st);
void cq_mprobe_end(cq_thread *t, int err, MPI_Message message, const MPI_Status *st);
void cq_iprobe_end(cq_thread *t, int id, int err, uint64_t compute, int flag, int source, int tag, MPI_Comm comm,
	MPI_Message message, int matched, const MPI_Status *st);
uint32_t cq_mrecv_begin(cq_thread *t, int id, const void *buf, int64_t count, MPI_Datatype type, MPI_Message message);
void cq_mrecv_end(cq_thread *t, int err, uint32_t message, const MPI_Status *st);
void cq_imrecv_end(cq_thread *t, int err, uint32_t message, MPI_Request r);

/* Sendrecv. */

typedef struct {
	const void *buf;
	int64_t count;
	MPI_Datatype type;
	int source, tag;
} cq_receive;

void cq_sendrecv_end(cq_thread *t, int err, cq_receive r, const MPI_Status *st);
void cq_isendrecv_end(cq_thread *t, int err, cq_receive r, MPI_Request request);

/* Collectives. */

enum {
	CQ_K_Barrier, CQ_K_Bcast, CQ_K_Reduce, CQ_K_Allreduce, CQ_K_Scan, CQ_K_Exscan, CQ_K_Reduce_scatter,
		CQ_K_Reduce_scatter_block,
	CQ_K_Gather, CQ_K_Gatherv, CQ_K_Scatter, CQ_K_Scatterv, CQ_K_Allgather, CQ_K_Allgatherv, CQ_K_Alltoall,
		CQ_K_Alltoallv, CQ_K_Alltoallw,
	CQ_K_Neighbor_allgather, CQ_K_Neighbor_allgatherv, CQ_K_Neighbor_alltoall, CQ_K_Neighbor_alltoallv,
		CQ_K_Neighbor_alltoallw,
};

/* A collective's arguments; those that the call lacks stay 0. */
typedef struct {
	int kind; /* CQ_K_* */
	int fortran; /* stypes and rtypes are Fortran's integers */
	int large;   /* scounts and rcounts are MPI_Count, not int */
	const void *sbuf, *rbuf;
	int64_t scount, rcount;
	MPI_Datatype stype, rtype;
	/* displacements are MPI_Aint if large, and in Neighbor_alltoallw */
	const void *scounts, *rcounts, *sdispls, *rdispls;
	const void *stypes, *rtypes;
	int root;
	int has_op;
	MPI_Op op;
	MPI_Comm comm;
	int persistent; /* an *_init call */
	uint64_t instance; /* set by cq_collective_begin */
} cq_collective;

void cq_collective_post(cq_thread *t, const cq_collective *a, const cq_comm *m, uint32_t serial);
void cq_collective_payload(cq_thread *t, const cq_collective *a, const cq_comm *m);
void cq_collective_begin(cq_thread *t, int id, cq_collective *a);
void cq_collective_end(cq_thread *t, int err, const cq_collective *a);
void cq_icollective_end(cq_thread *t, int err, const cq_collective *a, MPI_Request r);
void cq_collective_init_end(cq_thread *t, int err, const cq_collective *a, MPI_Request r);

/* Partitioned communication. */

void cq_psend_begin(cq_thread *t, int id, const void *buf, int64_t count, MPI_Datatype type, int dest, int tag,
	MPI_Comm comm);
void cq_precv_begin(cq_thread *t, int id, const void *buf, int64_t count, MPI_Datatype type, int source, int tag,
	MPI_Comm comm);
void cq_partitioned_end(cq_thread *t, int err, int partitions, MPI_Request r, uint32_t what);
void cq_pready_begin(cq_thread *t, int id, int64_t n, MPI_Request request);
void cq_pready_end(cq_thread *t, int err, int64_t lowest);
int64_t cq_lowest(const int *list, int n);
void cq_parrived_end(cq_thread *t, int id, int err, uint64_t compute, int flag, int partition, MPI_Request request);

/* Processes that are spawned or connect. */

/* A string as the program passes it: terminated if n is negative, else n bytes filled with blanks. list, if not NULL,
 * is a C array whose first string counts. */
typedef struct {
	const char *p;
	char *const *list;
	int64_t n;
} cq_text;

int cq_text_key(cq_text s);
void cq_comm_parent_end(cq_thread *t, int err, MPI_Comm parent);
void cq_spawn_end(cq_thread *t, int err, MPI_Comm made, uint64_t instance, int root, MPI_Comm comm, cq_text program);

/* One-sided communication. */

/* The arguments of a transfer; those that the call lacks stay 0. */
typedef struct {
	int sends;  /* the origin argument goes to the target; else, without a result argument, data comes back into it */
	int one;    /* one element each: Fetch_and_op and Compare_and_swap */
	const void *obuf, *rbuf;
	int64_t ocount, tcount, rcount;
	MPI_Datatype otype, ttype, rtype;
	int target;
	int64_t disp;
	int has_op, has_result;
	MPI_Op op;
	MPI_Win win;
	cq_rma slot; /* filled in by cq_rma_begin */
} cq_onesided;

void cq_rma_begin(cq_thread *t, int id, cq_onesided *a);
void cq_rma_end(cq_thread *t, int err, const cq_onesided *a);
void cq_rma_request_end(cq_thread *t, int err, const cq_onesided *a, MPI_Request r);
int32_t cq_win_begin(cq_thread *t, int id, MPI_Win win);
int32_t cq_win_target_begin(cq_thread *t, int id, MPI_Win win, int rank);
int32_t cq_win_lock_begin(cq_thread *t, int id, MPI_Win win, int rank, int type);
int32_t cq_win_free_begin(cq_thread *t, int id, MPI_Win win);
void cq_win_end(cq_thread *t, int err, int32_t window);
void cq_win_group_end(cq_thread *t, int err, int32_t window, MPI_Group group);
void cq_win_test_end(cq_thread *t, int id, int err, uint64_t compute, int flag, MPI_Win win);
void cq_win_new_end(cq_thread *t, int err, MPI_Win made, const void *base, int64_t bytes, uint64_t instance);

/* The address of memory from Win_allocate and its relatives; NULL if the call failed. */
CQ_HOT const void *cq_pointed(int err, const void *where)
{
	const void *p = NULL;
	if (err == MPI_SUCCESS)
		memcpy(&p, where, sizeof p);
	return p;
}

/* Files. */

typedef struct {
	MPI_File file;
	int has_offset;
	int64_t offset, count;
	const void *buf;
	MPI_Datatype type;
	int32_t number; /* the file's; set by cq_io_begin */
} cq_transfer;

void cq_io_begin(cq_thread *t, int id, cq_transfer *a);
void cq_io_end(cq_thread *t, int err, const cq_transfer *a, const MPI_Status *st);
void cq_io_request_end(cq_thread *t, int err, const cq_transfer *a, MPI_Request r);
void cq_io_split_end(cq_thread *t, int err, const cq_transfer *a);
int32_t cq_io_end_begin(cq_thread *t, int id, MPI_File file);
void cq_io_end_end(cq_thread *t, int err, int32_t number, const MPI_Status *st);
int32_t cq_file_begin(cq_thread *t, int id, MPI_File file);
int32_t cq_file_close_begin(cq_thread *t, int id, MPI_File file);
void cq_file_end(cq_thread *t, int err, int32_t number);
void cq_file_open_end(cq_thread *t, int err, MPI_File made, uint64_t instance, const char *name, size_t n);
void cq_file_delete_end(cq_thread *t, int err, const char *name, size_t n);

/* Communicators and datatypes. */

enum { CQ_NOT_COUNTED = 0, CQ_COUNTED = 1 };

uint64_t cq_comm_new_begin(cq_thread *t, int id, MPI_Comm parent, int counted);
void cq_comm_new_end(cq_thread *t, int err, MPI_Comm made, int kind, int counted, uint64_t instance, int key);
void cq_comm_new_record(cq_thread *t, int err, MPI_Comm made, int kind, int counted, uint64_t instance, int key);
void cq_comm_idup_end(cq_thread *t, int err, MPI_Comm made, MPI_Comm parent, uint64_t instance, MPI_Request r);
/* After a constructor that is not recorded, such as those of callbacks: see cq_comm_define for like. */
void cq_comm_made_unseen(MPI_Comm made, MPI_Comm like);
void cq_comm_free_begin(cq_thread *t, int id, MPI_Comm comm);
void cq_comm_free_end(cq_thread *t, int err);
void cq_plain_begin(cq_thread *t, int id, MPI_Comm comm);
size_t cq_trimmed(const char *s, size_t n);
size_t cq_length(const char *s);

#endif
