/* Collectives: which of their arguments count on this rank, what they add up to, and who gets what part. */
#include "recorders.h"

typedef struct {
	cq_comm *comm;
	int peers;   /* ranks that the counts arrays are about */
	int root;    /* this rank is the root */
	int rooted;
	int send, recv; /* the send and the receive argument are significant here, IN_PLACE or not */
} role;

static int is_rooted(int kind)
{
	return kind == CQ_K_Bcast || kind == CQ_K_Reduce || kind == CQ_K_Gather || kind == CQ_K_Gatherv || kind == CQ_K_Scatter || kind == CQ_K_Scatterv;
}

static int is_scatter(int kind)
{
	return kind == CQ_K_Scatter || kind == CQ_K_Scatterv;
}

static role role_of(cq_comm *m, const cq_collective *a)
{
	int inter = m->remote != 0;
	role r = {m, inter ? m->remote : m->size, 0, is_rooted(a->kind), 1, 1};
	if (a->kind == CQ_K_Barrier)
		r.send = r.recv = 0;
	if (!r.rooted)
		return r;
	r.root = inter ? a->root == MPI_ROOT : a->root == m->rank;
	int idle = inter && a->root == MPI_PROC_NULL;
	if (a->kind == CQ_K_Bcast || is_scatter(a->kind)) {
		r.send = r.root;
		r.recv = a->kind == CQ_K_Bcast || inter ? !r.root && !idle : 1;
	} else {
		r.recv = r.root;
		r.send = inter ? !r.root && !idle : 1;
	}
	return r;
}

static int64_t sum(const int *counts, int n)
{
	int64_t s = 0;
	for (int i = 0; i < n; i++)
		s += counts[i];
	return s;
}

static MPI_Datatype type_at(const void *types, int i, int fortran)
{
	return fortran ? CQ_TYPE(((const MPI_Fint *)types)[i]) : ((const MPI_Datatype *)types)[i];
}

/* One side's argument: its count and bytes in all, and those for one peer. */
typedef struct {
	const int *counts; /* NULL: count for each */
	const void *types; /* w: a type for each; else NULL */
	int fortran;
	int64_t count, bytes, size;
	int32_t type;
} argument;

static int64_t part_bytes(cq_thread *t, const argument *g, int i)
{
	if (g->counts == NULL)
		return g->bytes;
	if (g->counts[i] == 0) /* its type may be anything */
		return 0;
	if (g->types != NULL)
		return g->counts[i] * cq_type_of(t, type_at(g->types, i, g->fortran))->bytes;
	return g->counts[i] * g->size;
}

static argument argument_of(cq_thread *t, int count, const int *counts, MPI_Datatype type, const void *types, int fortran, int peers)
{
	argument g = {counts, types, fortran, count, 0, 0, CQ_NULL32};
	if (counts != NULL)
		g.count = sum(counts, peers);
	if (types == NULL) {
		const cq_type *y = cq_type_of(t, type);
		g.type = y->number;
		g.size = y->bytes;
		g.bytes = g.count * g.size;
	}
	for (int i = 0; types != NULL && i < peers; i++)
		g.bytes += part_bytes(t, &g, i);
	return g;
}

static const argument nothing = {NULL, NULL, 0, CQ_NULL64, CQ_NULL64, 0, CQ_NULL32};

/* Collectives whose one count and type speak of both buffers. */
static int has_one_type(int kind)
{
	return kind <= CQ_K_Reduce_scatter_block;
}

static argument send_argument(cq_thread *t, const role *r, const cq_collective *a)
{
	if (a->kind == CQ_K_Bcast && (r->send || r->recv))
		return argument_of(t, a->scount, NULL, a->stype, NULL, 0, 0);
	if (!r->send || (a->sbuf == MPI_IN_PLACE && !has_one_type(a->kind)))
		return nothing;
	if (a->kind == CQ_K_Reduce_scatter)
		return argument_of(t, 0, a->rcounts, a->stype, NULL, 0, r->comm->size);
	return argument_of(t, a->scount, a->scounts, a->stype, a->stypes, a->fortran, r->peers);
}

static argument recv_argument(cq_thread *t, const role *r, const cq_collective *a)
{
	if (!r->recv || (a->rbuf == MPI_IN_PLACE && !has_one_type(a->kind)))
		return nothing;
	if (a->kind == CQ_K_Reduce_scatter)
		return argument_of(t, a->rcounts[r->comm->rank], NULL, a->stype, NULL, 0, 0);
	if (has_one_type(a->kind))
		return argument_of(t, a->scount, NULL, a->stype, NULL, 0, 0);
	return argument_of(t, a->rcount, a->rcounts, a->rtype, a->rtypes, a->fortran, r->peers);
}

void cq_collective_begin(cq_thread *t, int id, cq_collective *a)
{
	cq_comm *m = cq_comm_of(t, a->comm);
	role r = role_of(m, a);
	argument s = send_argument(t, &r, a);
	a->instance = m->instance++;
	cq_call *c = cq_open(t, id);
	cq_blank(c);
	c->comm = m->number;
	if (r.rooted && a->root == MPI_ROOT)
		c->flags |= CQ_F_ROOT;
	else if (r.rooted && a->root == MPI_PROC_NULL)
		c->flags |= CQ_F_PROC_NULL;
	else if (r.rooted)
		c->peer = a->root;
	if (a->sbuf == MPI_IN_PLACE && r.send)
		c->flags |= CQ_F_IN_PLACE_S;
	if (a->rbuf == MPI_IN_PLACE && r.recv)
		c->flags |= CQ_F_IN_PLACE_R;
	c->dtype = s.type;
	c->count = s.count;
	c->buf = r.send || a->kind == CQ_K_Bcast ? cq_address(a->sbuf) : 0;
	cq_go(t, c);
}

static void parts_put(cq_thread *t, const role *r, const argument *s, const argument *v)
{
	cq_parts slot;
	memset(&slot, 0, sizeof slot);
	for (int i = 0; i < r->peers; i++) {
		int64_t out = s != NULL && s->counts != NULL ? part_bytes(t, s, i) : 0;
		int64_t in = v != NULL && v->counts != NULL ? part_bytes(t, v, i) : 0;
		if (out == 0 && in == 0)
			continue;
		slot.kind = CQ_PARTS;
		slot.part[slot.n++] = (cq_part){i, 0, out, in};
		if (slot.n == 2) {
			*(cq_parts *)cq_take(t) = slot;
			memset(&slot, 0, sizeof slot);
		}
	}
	if (slot.n != 0)
		*(cq_parts *)cq_take(t) = slot;
}

/* What IN_PLACE stands for: this rank's own part of the other argument. */
static void in_place(cq_thread *t, const role *r, const cq_collective *a, argument *s, argument *v)
{
	int own = a->kind == CQ_K_Alltoall || a->kind == CQ_K_Alltoallv || a->kind == CQ_K_Alltoallw ? -1 : r->comm->rank;
	if (has_one_type(a->kind))
		return;
	if (a->sbuf == MPI_IN_PLACE && r->send)
		s->bytes = own < 0 ? v->bytes : part_bytes(t, v, own);
	if (a->rbuf == MPI_IN_PLACE && r->recv)
		v->bytes = part_bytes(t, s, own);
}

static void coll_put(cq_thread *t, const cq_collective *a)
{
	cq_comm *m = cq_comm_of(t, a->comm);
	role r = role_of(m, a);
	argument s = send_argument(t, &r, a), v = recv_argument(t, &r, a);
	int exchange = a->kind == CQ_K_Alltoallv || a->kind == CQ_K_Alltoallw;
	in_place(t, &r, a, &s, &v);
	cq_coll *o = cq_take(t);
	memset(o, 0, sizeof *o);
	o->op = (uint16_t)(a->has_op ? cq_op_code(a->op) : 0xffff);
	o->rdtype = v.type;
	o->instance = a->instance;
	o->rcount = v.count;
	o->sbytes = r.send ? s.bytes : CQ_NULL64;
	if (a->kind == CQ_K_Reduce_scatter_block)
		o->sbytes = s.bytes * m->size; /* the count argument is one rank's part */
	o->rbytes = v.bytes;
	o->rbuf = r.recv ? cq_address(a->kind == CQ_K_Bcast ? a->sbuf : a->rbuf) : 0;
	o->kind = CQ_COLL;
	if (a->scounts != NULL || (a->rcounts != NULL && a->kind != CQ_K_Reduce_scatter))
		parts_put(t, &r, exchange && a->sbuf == MPI_IN_PLACE ? &v : &s, &v);
}

void cq_collective_end(cq_thread *t, int err, const cq_collective *a)
{
	cq_back(t);
	coll_put(t, a);
	cq_close(t, err);
}

void cq_icollective_end(cq_thread *t, int err, const cq_collective *a, MPI_Request r)
{
	cq_back(t);
	coll_put(t, a);
	if (err == MPI_SUCCESS)
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(r), 0);
	cq_close(t, err);
}
