/* Collectives: which of their arguments are significant on this rank, their totals, and the part of each peer. */
#include "recorders.h"

typedef struct {
	cq_comm *comm;
	int neighborhood;    /* the peers are neighbours */
	int speers, rpeers; /* number of ranks, or neighbours, in the counts arrays */
	int root;    /* this rank is the root */
	int rooted;
	int send, recv; /* the send and receive arguments are significant on this rank, also if IN_PLACE */
} role;

static int is_rooted(int kind)
{
	return kind == CQ_K_Bcast || kind == CQ_K_Reduce || kind == CQ_K_Gather || kind == CQ_K_Gatherv ||
		kind == CQ_K_Scatter || kind == CQ_K_Scatterv;
}

static int is_scatter(int kind)
{
	return kind == CQ_K_Scatter || kind == CQ_K_Scatterv;
}

/* Collectives whose peers are the neighbours in a topology, which may be none. */
static int is_neighborhood(int kind)
{
	return kind >= CQ_K_Neighbor_allgather;
}

static role role_of(cq_comm *m, const cq_collective *a)
{
	int inter = m->remote != 0;
	int peers = inter ? m->remote : m->size, neighborhood = is_neighborhood(a->kind);
	role r = {m, neighborhood, neighborhood ? m->destinations_n : peers, neighborhood ? m->sources_n : peers, 0,
		is_rooted(a->kind), 1, 1};
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

/* The i-th entry of an array of counts. */
static int64_t count_at(const void *counts, int i, int large)
{
	return large ? (int64_t)((const MPI_Count *)counts)[i] : ((const int *)counts)[i];
}

/* Sums and products of the program's numbers; CQ_NULL64 on overflow of 64 bits. */
static int64_t add_counts(int64_t a, int64_t b)
{
	int64_t s;
	return a == CQ_NULL64 || b == CQ_NULL64 || __builtin_add_overflow(a, b, &s) ? CQ_NULL64 : s;
}

static int64_t multiply_counts(int64_t a, int64_t b)
{
	int64_t p;
	return a == CQ_NULL64 || b == CQ_NULL64 || __builtin_mul_overflow(a, b, &p) ? CQ_NULL64 : p;
}

static MPI_Datatype type_at(const void *types, int i, int fortran)
{
	return fortran ? CQ_TYPE(((const MPI_Fint *)types)[i]) : ((const MPI_Datatype *)types)[i];
}

/* One argument (send or receive): its total count and bytes, and the arrays that give each peer's part. */
typedef struct {
	const void *counts; /* NULL: every peer has the same count */
	int large;
	const void *types; /* w collectives: a type per peer; else NULL */
	int fortran;
	const int *neighbors; /* neighbourhood collectives: ranks of the peers; NULL if there are none, or in other collectives */
	int64_t count, bytes, size;
	int32_t type;
} argument;

/* Bytes to or from one peer; 0 if the neighbour is MPI_PROC_NULL. */
static int64_t part_bytes(cq_thread *t, const argument *g, int i)
{
	if (g->neighbors != NULL && g->neighbors[i] == MPI_PROC_NULL)
		return 0;
	int64_t n = g->counts == NULL ? g->count : count_at(g->counts, i, g->large);
	if (n == 0) /* its type may be anything */
		return 0;
	return multiply_counts(n, g->types == NULL ? g->size : cq_type_of(t, type_at(g->types, i, g->fortran))->bytes);
}

/* bytes is the size of one part if one count holds for all ranks; otherwise, and with neighbours, of all parts
 * together. */
static argument argument_of(cq_thread *t, const cq_collective *a, int64_t count, const void *counts, MPI_Datatype type,
	const void *types, int peers, const int *neighbors)
{
	argument g = {counts, a->large, types, a->fortran, neighbors, count, 0, 0, CQ_NULL32};
	if (types == NULL) {
		const cq_type *y = cq_type_of(t, type);
		g.type = y->number;
		g.size = y->bytes;
	}
	for (int i = 0; counts != NULL && i < peers; i++)
		g.count = add_counts(g.count, count_at(counts, i, g.large));
	if (types == NULL && !is_neighborhood(a->kind))
		g.bytes = multiply_counts(g.count, g.size);
	else
		for (int i = 0; i < peers; i++)
			g.bytes = add_counts(g.bytes, part_bytes(t, &g, i));
	return g;
}

static const argument no_argument = {NULL, 0, NULL, 0, NULL, CQ_NULL64, CQ_NULL64, 0, CQ_NULL32};

/* Collectives with one count and type for both buffers. */
static int has_one_type(int kind)
{
	return kind <= CQ_K_Reduce_scatter_block;
}

static argument send_argument(cq_thread *t, const role *r, const cq_collective *a)
{
	if (a->kind == CQ_K_Bcast && (r->send || r->recv))
		return argument_of(t, a, a->scount, NULL, a->stype, NULL, 0, NULL);
	if (!r->send || (a->sbuf == MPI_IN_PLACE && !has_one_type(a->kind)))
		return no_argument;
	if (a->kind == CQ_K_Reduce_scatter)
		return argument_of(t, a, 0, a->rcounts, a->stype, NULL, r->comm->size, NULL);
	return argument_of(t, a, a->scount, a->scounts, a->stype, a->stypes, r->speers, r->neighborhood ?
		r->comm->destinations : NULL);
}

static argument recv_argument(cq_thread *t, const role *r, const cq_collective *a)
{
	if (!r->recv || (a->rbuf == MPI_IN_PLACE && !has_one_type(a->kind)))
		return no_argument;
	if (a->kind == CQ_K_Reduce_scatter)
		return argument_of(t, a, count_at(a->rcounts, r->comm->rank, a->large), NULL, a->stype, NULL, 0, NULL);
	if (has_one_type(a->kind))
		return argument_of(t, a, a->scount, NULL, a->stype, NULL, 0, NULL);
	return argument_of(t, a, a->rcount, a->rcounts, a->rtype, a->rtypes, r->rpeers, r->neighborhood ?
		r->comm->sources : NULL);
}

void cq_collective_begin(cq_thread *t, int id, cq_collective *a)
{
	cq_comm *m = cq_comm_of(t, a->comm);
	role r = role_of(m, a);
	argument s = send_argument(t, &r, a);
	a->instance = m->instance++;
	if (cq_hooks != NULL)
		cq_hooks->collective(t, a->kind, a->persistent);
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
	if (CQ_UNLIKELY(cq.hash != CQ_ALGORITHM_NONE) && r.send && !a->persistent)
		cq_collective_payload(t, a, m);
	cq_mpi_begins(t);
}

/* Packs two parts into each slot. */
typedef struct {
	cq_thread *t;
	cq_parts slot;
} part_list;

static void parts_flush(part_list *l)
{
	if (l->slot.n == 0)
		return;
	*(cq_parts *)cq_take(l->t) = l->slot;
	memset(&l->slot, 0, sizeof l->slot);
}

static void part_put(part_list *l, int peer, int64_t out, int64_t in)
{
	if ((out == 0 && in == 0) || out == CQ_NULL64 || in == CQ_NULL64)
		return;
	l->slot.kind = CQ_PARTS;
	l->slot.part[l->slot.n++] = (cq_part){peer, 0, out, in};
	if (l->slot.n == 2)
		parts_flush(l);
}

static void parts_put(cq_thread *t, const role *r, const argument *s, const argument *v)
{
	part_list l = {t, {0}};
	for (int i = 0; i < r->speers; i++)
		part_put(&l, i, s->counts != NULL ? part_bytes(t, s, i) : 0, v->counts != NULL ? part_bytes(t, v, i) : 0);
	parts_flush(&l);
}

/* The parts of neighbours. If both lists name a rank at the same index, its two directions form one part. */
static void neighbor_parts_put(cq_thread *t, const cq_comm *m, const argument *s, const argument *v)
{
	part_list l = {t, {0}};
	for (int i = 0; i < m->destinations_n || i < m->sources_n; i++) {
		int to = i < m->destinations_n ? m->destinations[i] : MPI_PROC_NULL;
		int from = i < m->sources_n ? m->sources[i] : MPI_PROC_NULL;
		int64_t out = to != MPI_PROC_NULL ? part_bytes(t, s, i) : 0, in = from != MPI_PROC_NULL ? part_bytes(t, v, i) :
			0;
		if (to == from) {
			part_put(&l, to, out, in);
		} else {
			part_put(&l, to, out, 0);
			part_put(&l, from, 0, in);
		}
	}
	parts_flush(&l);
}

/* MPI_IN_PLACE stands for this rank's own part of the other argument. */
static void resolve_in_place(cq_thread *t, const role *r, const cq_collective *a, argument *s, argument *v)
{
	int own = a->kind == CQ_K_Alltoall || a->kind == CQ_K_Alltoallv || a->kind == CQ_K_Alltoallw ? -1 : r->comm->rank;
	if (has_one_type(a->kind) || r->neighborhood)
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
	resolve_in_place(t, &r, a, &s, &v);
	cq_coll *o = cq_take(t);
	memset(o, 0, sizeof *o);
	o->op = (uint16_t)(a->has_op ? cq_op_code(a->op) : 0xffff);
	o->rdtype = v.type;
	o->instance = a->instance;
	o->rcount = v.count;
	o->sbytes = r.send ? s.bytes : CQ_NULL64;
	if (a->kind == CQ_K_Reduce_scatter_block)
		o->sbytes = multiply_counts(s.bytes, m->size); /* the count argument is one rank's part */
	o->rbytes = v.bytes;
	o->rbuf = r.recv ? cq_address(a->kind == CQ_K_Bcast ? a->sbuf : a->rbuf) : 0;
	o->kind = CQ_COLL;
	if (r.neighborhood)
		neighbor_parts_put(t, m, &s, &v);
	else if (a->scounts != NULL || (a->rcounts != NULL && a->kind != CQ_K_Reduce_scatter))
		parts_put(t, &r, exchange && a->sbuf == MPI_IN_PLACE ? &v : &s, &v);
}

void cq_collective_end(cq_thread *t, int err, const cq_collective *a)
{
	cq_mpi_ends(t);
	coll_put(t, a);
	cq_close(t, err);
}

void cq_icollective_end(cq_thread *t, int err, const cq_collective *a, MPI_Request r)
{
	cq_mpi_ends(t);
	coll_put(t, a);
	if (err == MPI_SUCCESS)
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(r), 0);
	cq_close(t, err);
}

/* Records the creation of a persistent collective. The creation counts on the communicator like any other collective;
 * the communication happens at each start. */
void cq_collective_init_end(cq_thread *t, int err, const cq_collective *a, MPI_Request r)
{
	cq_mpi_ends(t);
	coll_put(t, a);
	if (err == MPI_SUCCESS)
		t->call->req = cq_req_add(&cq.requests, CQ_KEY(r), CQ_R_PERSISTENT);
	if (CQ_UNLIKELY(cq.hash != CQ_ALGORITHM_NONE) && err == MPI_SUCCESS) {
		cq_comm *m = cq_comm_of(t, a->comm);
		if (role_of(m, a).send)
			cq_collective_post(t, a, m, t->call->req);
	}
	cq_close(t, err);
}
