/* The objects behind handles: communicators, datatypes, windows, files, reduction operations, requests. */
#ifndef COMMQ_TABLES_H
#define COMMQ_TABLES_H

#include "spooling.h"
#include "state.h"

#pragma GCC visibility push(hidden)

/* comms.c */

/* Defines MPI_COMM_WORLD and MPI_COMM_SELF. */
void cq_world_define(cq_thread *t);
/* Gives a new communicator its number and writes its definition; -1 for MPI_COMM_NULL. MPI is asked about like: h
 * itself, or the parent of an idup, because MPICH gives wrong answers about an unfinished communicator, and keeps
 * them for the program. */
int32_t cq_comm_define(cq_thread *t, MPI_Comm h, MPI_Comm like, const cq_origin *origin);
/* Finds a communicator that is not the thread's last used one; defines it if no constructor was seen. */
cq_comm *cq_comm_find(cq_thread *t, MPI_Comm h);
/* Defines a communicator that no constructor made, as one of that kind, unless it is known. */
void cq_comm_known(cq_thread *t, MPI_Comm h, int kind);
/* Forgets a communicator that is about to be freed: another thread may get its handle before the call returns. */
void cq_comm_drop(uint64_t key);
void cq_comm_name(cq_thread *t, MPI_Comm h, const char *name, size_t n);

CQ_HOT cq_comm *cq_comm_of(cq_thread *t, MPI_Comm h)
{
	cq_comm *m = t->comm;
	return CQ_LIKELY(m->key == CQ_KEY(h)) ? m : cq_comm_find(t, h);
}

/* types.c */

cq_type *cq_type_find(cq_thread *t, MPI_Datatype h);
/* A datatype from the table; NULL if it has no entry. */
cq_type *cq_type_known(MPI_Datatype h);
void cq_type_drop(uint64_t key);
/* Puts MPI_Type_get_envelope into n[4]: integers, addresses, datatypes, combiner. Returns 0 if h is not a type. A
 * type made with large counts has n[2] 0 and is not examined, because another function gives its contents. */
int cq_envelope(MPI_Datatype h, int *n);
/* schema.Op of a reduction operation. */
int cq_op_code(MPI_Op op);

CQ_HOT cq_type *cq_type_of(cq_thread *t, MPI_Datatype h)
{
	cq_type *y = t->type;
	return CQ_LIKELY(y->key == CQ_KEY(h) && CQ_TYPE_FIXED(h)) ? y : cq_type_find(t, h);
}

/* shapes.c */

/* The memory layout of a datatype's elements; known is 0 if it cannot be determined. */
cq_shape cq_shape_of(cq_thread *t, MPI_Datatype h);
/* Reports whether a combiner belongs to a type that always exists and contains no other types. */
int cq_is_leaf(int combiner);

/* objects.c: windows and files. Their handles mean nothing outside the process, so neither do their numbers. */

/* Gives a new window or file its number; -1 if memory runs out. */
int32_t cq_object_add(cq_map *m, int32_t *made, uint64_t key, int32_t comm);
cq_object cq_object_get(cq_map *m, uint64_t key);
/* Forgets one that is about to be freed, as cq_comm_drop does. */
cq_object cq_object_drop(cq_map *m, uint64_t key);
/* Begins or ends a split collective on a file; returns its serial, or 0 if the file has none. */
uint32_t cq_object_split(cq_map *m, uint64_t key, int begin);

/* requests.c */

/* Returns 0 if memory runs out. */
int cq_reqtab_init(cq_reqtab *q);
/* The thread ends: leaves its incomplete requests to the other threads. */
void cq_tables_leave(cq_thread *t);
cq_reqslot *cq_req_slot_slow(cq_reqtab *q, uint64_t key);
/* Finds the table and queue of the request that a handle value denotes for this thread, and holds them until
 * cq_req_release. Without such a request, the queue is an empty one in the thread's own table. */
cq_reqtab *cq_req_hold(cq_reqtab *q, uint64_t key, cq_reqslot **s);
void cq_req_release(cq_reqtab *q);
/* Adds a new request to a queue that is not empty. */
void cq_req_add_more(cq_reqtab *q, cq_reqslot *s, cq_req r);
/* Adds a request behind others of the same handle value. */
void cq_req_push(cq_reqtab *q, cq_reqslot *s, cq_req r);
/* The first request of a queue is gone (its serial is 0); the next one takes its place. */
void cq_req_pop_more(cq_reqtab *q, cq_reqslot *s);
uint32_t cq_serial_set_aside(void);
uint32_t cq_req_add_locked(cq_reqtab *q, uint64_t key, uint32_t what);
cq_req cq_req_take_locked(cq_reqtab *q, uint64_t key);
/* From now on several threads may call MPI. */
void cq_requests_lock(void);
/* Returns a request that was taken but did not complete. From then on it belongs to this thread. */
void cq_req_put_back(cq_reqtab *q, uint64_t key, cq_req r);
/* Removes the request of a handle value for good, even a persistent one. */
cq_req cq_req_end(cq_reqtab *q, uint64_t key);
/* The request of a handle, which stays in the table. */
cq_req cq_req_peek(MPI_Request request);
/* Takes the requests of an array before the call that may complete them: with several threads the library can give a
 * handle value to another thread's request before the call has returned. */
void cq_claim(cq_thread *t, const uint64_t *keys, int n);

/* The queue of a handle value, created if needed. */
CQ_HOT cq_reqslot *cq_req_slot(cq_reqtab *q, uint64_t key)
{
	cq_reqslot *s = &q->slots[cq_hash_key(key) & q->mask];
	return CQ_LIKELY(s->key == key) ? s : cq_req_slot_slow(q, key);
}

CQ_HOT uint32_t cq_serial(void)
{
	if (CQ_UNLIKELY(cq.locked))
		return cq_serial_set_aside();
	return ++cq.serials;
}

CQ_HOT uint32_t cq_req_add_to(cq_reqtab *q, cq_reqslot *s, uint32_t what)
{
	uint32_t serial = cq_serial();
	cq_req r = {serial, what, 0, 0};
	if (what & CQ_R_PERSISTENT) {
		r.serial = 0;
		r.template_ = serial;
	}
	if (CQ_LIKELY((s->first.serial | s->first.template_) == 0))
		s->first = r;
	else
		cq_req_add_more(q, s, r);
	return serial;
}

CQ_HOT cq_req cq_req_take_from(cq_reqtab *q, cq_reqslot *s)
{
	cq_req r = s->first;
	s->first.serial = 0;
	if (CQ_UNLIKELY(s->last != 0))
		cq_req_pop_more(q, s);
	return r;
}

/* Adds a request (or message) that a call has made; returns its serial. */
CQ_HOT uint32_t cq_req_add(cq_reqtab *q, uint64_t key, uint32_t what)
{
	if (CQ_UNLIKELY(cq.locked))
		return cq_req_add_locked(q, key, what);
	return cq_req_add_to(q, cq_req_slot(q, key), what);
}

/* Takes the oldest, completed request of a handle value; its serial is 0 if it is not known or not active. */
CQ_HOT cq_req cq_req_take(cq_reqtab *q, uint64_t key)
{
	if (CQ_UNLIKELY(cq.locked))
		return cq_req_take_locked(q, key);
	return cq_req_take_from(q, cq_req_slot(q, key));
}

#pragma GCC visibility pop

#endif
