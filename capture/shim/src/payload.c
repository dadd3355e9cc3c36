/* Hashes of sent payloads, and of received ones with COMMQ_HASH_VERIFY: finds the bytes that a buffer, a count and a
 * datatype describe, and puts their hashes into the spool. hash.c computes the hashes. */
#include "recorders.h"

#include <link.h>
#include <stdlib.h>

#include "hash.h"

/* A digest in progress: parts are added in the order of sending. */
typedef struct {
	cq_crc_and_sum both;
	uint64_t head;
	int64_t bytes;
	int element; /* of all parts so far; -1: no part yet */
	int failed;  /* a part could not be read */
	cq_posted **keep; /* NULL: reads parts now; else appends them behind *keep, to be read later */
} digest;

/* Payloads are packed in pieces of bounded size. */
#define PACK_BYTES ((int64_t)1 << 20)

static void digest_begin(digest *d)
{
	memset(d, 0, sizeof *d);
	d->element = -1;
}

static void digest_head(digest *d, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n && d->bytes + (int64_t)i < 8; i++)
		d->head |= (uint64_t)p[i] << 8 * (d->bytes + (int64_t)i);
}

static void digest_bytes(digest *d, const uint8_t *p, size_t n)
{
	if (d->bytes < 8)
		digest_head(d, p, n);
	d->bytes += (int64_t)n;
	if (d->element <= CQ_E_NONE)
		d->both.crc = cq_crc(d->both.crc, p, n);
	else
		d->both = cq_crc_with_sum(d->element, d->both, p, n);
}

/* The CPU cannot read memory of a GPU. The library that allocates such memory reveals it; it may be loaded late. */

static int is_runtime(struct dl_phdr_info *info, size_t size, void *found)
{
	static const char *const names[] = {"libcuda.so", "libamdhip64.so", "libze_loader.so"};
	(void)size;
	for (size_t i = 0; info->dlpi_name != NULL && i < sizeof names / sizeof *names; i++) {
		const char *base = strrchr(info->dlpi_name, '/');
		base = base != NULL ? base + 1 : info->dlpi_name;
		if (strncmp(base, names[i], strlen(names[i])) == 0)
			*(const char **)found = names[i];
	}
	return *(const char **)found != NULL;
}

/* Reports whether such a library is loaded; then hashing stops. */
static int find_gpu(void)
{
	const char *found = NULL;
	dl_iterate_phdr(is_runtime, &found);
	if (found == NULL)
		return 0;
	if (__atomic_exchange_n(&cq.hash, CQ_ALGORITHM_NONE, __ATOMIC_RELAXED) != CQ_ALGORITHM_NONE && cq.rank == 0)
		cq_print("commq: %s is loaded, so buffers may be in a GPU's memory: payloads are not hashed\n", found);
	cq.verify = 0;
	return 1;
}

/* Reports whether a payload can be read. The first payload in a stretch of memory triggers another search for such
 * libraries. */
static int readable(cq_thread *t, const void *p)
{
	uint64_t region = ((uint64_t)(uintptr_t)p >> 21) + 1;
	uint64_t *known = &t->regions[cq_hash_key(region) % (sizeof t->regions / sizeof *t->regions)];
	if (CQ_LIKELY(*known == region))
		return 1;
	if (p == NULL || find_gpu())
		return 0;
	*known = region;
	return 1;
}

/* Adds elements by packing them, up to limit bytes. */
static int add_packed_at(cq_thread *t, digest *d, const uint8_t *buf, int64_t count, const cq_shape *s, MPI_Datatype type,
	int64_t limit)
{
	int64_t per = s->bytes < PACK_BYTES ? PACK_BYTES / s->bytes : 1, size = per * s->bytes;
	if (!cq.has_pack_comm || size > INT32_MAX)
		return 0;
	void *packed = cq_scratch_get(&t->packed, (size_t)size);
	if (packed == NULL)
		return 0;
	for (int64_t i = 0; i < count && limit > 0; i += per) {
		int64_t n = count - i < per ? count - i : per;
		int at = 0;
		if (cq_p.Pack(buf + i * s->extent, (int)n, type, packed, (int)size, &at, cq.pack_comm) != MPI_SUCCESS ||
			at != n * s->bytes)
			return 0;
		digest_bytes(d, packed, (size_t)(at < limit ? at : limit));
		limit -= at;
	}
	return 1;
}

/* MPICH does not pack from MPI_BOTTOM: there the elements are packed from their first byte, by a type that is moved. */
static int add_packed(cq_thread *t, digest *d, const uint8_t *buf, int64_t count, const cq_shape *s, MPI_Datatype type,
	int64_t limit)
{
	int one = 1;
	MPI_Aint back = (MPI_Aint)-s->lower;
	MPI_Datatype moved;
	if (CQ_LIKELY(buf != MPI_BOTTOM))
		return add_packed_at(t, d, buf, count, s, type, limit);
	if (cq_p.Type_create_hindexed(1, &one, &back, type, &moved) != MPI_SUCCESS)
		return 0;
	int ok = cq_p.Type_commit(&moved) == MPI_SUCCESS && add_packed_at(t, d, buf + s->lower, count, s, moved, limit);
	cq_p.Type_free(&moved);
	return ok;
}

/* Adds count elements of a type, up to limit bytes. */
static void digest_add(cq_thread *t, digest *d, const void *buf, int64_t count, const cq_shape *s, MPI_Datatype type,
	int64_t limit)
{
	if (!s->known || count < 0) {
		d->failed = 1;
		return;
	}
	d->element = d->element < 0 || d->element == s->element ? s->element : CQ_E_NONE;
	if (limit != INT64_MAX && s->bytes > 0 && limit % s->bytes != 0)
		d->element = CQ_E_NONE; /* the last element is incomplete */
	if (count == 0 || s->bytes == 0 || limit == 0)
		return;
	const uint8_t *first = (const uint8_t *)buf + s->lower;
	if (count > INT64_MAX / s->bytes || !readable(t, first)) {
		d->failed = 1;
		return;
	}
	if (s->in_order && (count == 1 || s->extent == s->bytes))
		digest_bytes(d, first, (size_t)(limit < count * s->bytes ? limit : count * s->bytes));
	else
		d->failed |= !add_packed(t, d, buf, count, s, type, limit);
}

static void slot_fill(cq_hashes *h, const digest *d, int what, uint32_t req)
{
	h->what = (uint16_t)what;
	h->flags = CQ_HAS_HASH | CQ_HAS_HEAD | (d->element > CQ_E_NONE ? CQ_HAS_SUM : 0);
	h->req = req;
	h->hash = d->both.crc;
	h->sum = d->element > CQ_E_NONE ? d->both.sum : 0;
	h->head = d->head;
	h->bytes = d->bytes;
	memset(h->spare, 0, sizeof h->spare);
}

static void slot_end(cq_hashes *h)
{
	cq_barrier();
	*(volatile uint8_t *)&h->kind = CQ_HASH;
}

static void slot_put(cq_thread *t, const digest *d, int what, uint32_t req)
{
	cq_hashes *h = cq_take(t);
	h->kind = 0;
	slot_fill(h, d, what, req);
	slot_end(h);
}

/* Hashing before a call counts neither as compute time nor as part of the call: the gap ends where hashing begins,
 * and the next gap excludes it as it excludes a call. */
static void end_gap(cq_thread *t)
{
	t->gathered = cq_compute_time(t);
}

/* cq_mpi_ends and cq_mpi_begins at one moment: the call begins when hashing ends. */
static void begin_after_hash(cq_thread *t)
{
	uint64_t now = cq_tick(), ticks = now - t->t0;
	cq_call *c = t->call;
	if (CQ_UNLIKELY(ticks > cq.short_ticks)) {
		cq_mpi_ends(t);
		cq_mpi_begins(t);
		return;
	}
	t->shorts += ticks;
	t->t0 = t->last = now;
	cq_stamp(t, c, t->gathered);
	cq_barrier();
	*(volatile uint8_t *)&c->kind = CQ_CALL;
}

static uint64_t head_of(const uint8_t *p, size_t n)
{
	uint64_t head = 0;
	if (CQ_LIKELY(n >= sizeof head)) {
		memcpy(&head, p, sizeof head);
		return head;
	}
	for (size_t i = 0; i < n; i++)
		head |= (uint64_t)p[i] << 8 * i;
	return head;
}

/* A fast path for contiguous elements of the type used last, as in most sends; returns 0 if the elements are not of
 * this kind. */
static int hash_contiguous(cq_thread *t, const void *buf, int64_t count, MPI_Datatype type)
{
	const cq_type *y = t->type;
	const cq_shape *s = &y->shape;
	if (y->key != CQ_KEY(type) || !CQ_TYPE_FIXED(type) || !__atomic_load_n(&s->known, __ATOMIC_ACQUIRE))
		return 0;
	if (!s->in_order || s->extent != s->bytes || s->bytes <= 0 || count <= 0 || count > INT64_MAX / s->bytes)
		return 0;
	const uint8_t *p = (const uint8_t *)buf + s->lower;
	size_t n = (size_t)(count * s->bytes);
	if (!readable(t, p))
		return 0;
	cq_crc_and_sum both = {0, 0};
	cq_hashes *h = cq_take(t);
	h->kind = 0;
	h->what = CQ_HASH_SENT;
	h->flags = CQ_HAS_HASH | CQ_HAS_HEAD | (s->element > CQ_E_NONE ? CQ_HAS_SUM : 0);
	h->req = 0;
	if (s->element > CQ_E_NONE)
		both = cq_crc_with_sum(s->element, both, p, n);
	else
		both.crc = cq_crc(0, p, n);
	h->hash = both.crc;
	h->sum = both.sum;
	h->head = head_of(p, n);
	h->bytes = (int64_t)n;
	memset(h->spare, 0, sizeof h->spare);
	slot_end(h);
	return 1;
}

static void hash_any(cq_thread *t, const void *buf, int64_t count, MPI_Datatype type)
{
	digest d;
	digest_begin(&d);
	cq_shape s = cq_shape_of(t, type);
	digest_add(t, &d, buf, count, &s, type, INT64_MAX);
	if (!d.failed)
		slot_put(t, &d, CQ_HASH_SENT, 0);
}

void cq_mpi_begins_hashing(cq_thread *t, const void *buf, int64_t count, MPI_Datatype type)
{
	if ((t->call->flags & CQ_F_PROC_NULL) || count < 0 || type == MPI_DATATYPE_NULL || t->dead) {
		cq_mpi_begins(t);
		return;
	}
	end_gap(t);
	if (!hash_contiguous(t, buf, count, type))
		hash_any(t, buf, count, type);
	begin_after_hash(t);
}

/* Collectives: this rank's contribution, in the order of ranks. */

static MPI_Datatype type_at(const void *types, int i, int fortran)
{
	return fortran ? CQ_TYPE(((const MPI_Fint *)types)[i]) : ((const MPI_Datatype *)types)[i];
}

/* The i-th entry of an array of counts or displacements. */
static int64_t number_at(const void *a, int i, int large)
{
	return large ? (int64_t)((const MPI_Count *)a)[i] : ((const int *)a)[i];
}

_Static_assert(sizeof(MPI_Aint) == sizeof(MPI_Count), "displacements of the large forms are read as counts");

/* One argument of a collective (send or receive). */
typedef struct {
	const void *buf;
	int64_t count; /* of each peer, unless counts is set */
	MPI_Datatype type;
	const void *counts, *displs, *types;
	int fortran, large, wide_displs;
	const int *neighbors; /* ranks of the peers, or NULL */
} side;

static int posted_make(cq_posted *in, const cq_posted *before);
static cq_posted *posted_new(const cq_posted *in);

/* Adds elements, now or later. */
static void part_add(cq_thread *t, digest *d, const void *buf, int64_t count, const cq_shape *s, MPI_Datatype type)
{
	if (d->keep == NULL) {
		digest_add(t, d, buf, count, s, type, INT64_MAX);
		return;
	}
	cq_posted in = {.buf = buf, .count = count, .of = type, .shape = *s};
	if (d->failed || count < 0 || !posted_make(&in, *d->keep)) {
		d->failed = 1;
		return;
	}
	cq_posted *p = posted_new(&in);
	if (p == NULL) {
		if (in.owned)
			cq_p.Type_free(&in.type);
		d->failed = 1;
		return;
	}
	(*d->keep)->next = p;
	*d->keep = p;
}

/* Adds the part of one peer. */
static void add_peer(cq_thread *t, digest *d, const side *g, int i)
{
	int64_t count = g->counts != NULL ? number_at(g->counts, i, g->large) : g->count;
	if (count == 0 && g->counts != NULL)
		return; /* its type may be anything */
	if (g->neighbors != NULL && g->neighbors[i] == MPI_PROC_NULL)
		return;
	MPI_Datatype type = g->types != NULL ? type_at(g->types, i, g->fortran) : g->type;
	if (type == MPI_DATATYPE_NULL) {
		d->failed = 1;
		return;
	}
	cq_shape s = cq_shape_of(t, type);
	int64_t at = g->displs != NULL ? number_at(g->displs, i, g->wide_displs) : i * g->count;
	part_add(t, d, (const uint8_t *)g->buf + (g->types != NULL ? at : at * s.extent), count, &s, type);
}

/* Adds the parts of all peers in order. */
static void add_peers(cq_thread *t, digest *d, const side *g, int peers)
{
	if (g->counts != NULL || g->neighbors != NULL) {
		for (int i = 0; i < peers; i++)
			add_peer(t, d, g, i);
		return;
	}
	if (g->type == MPI_DATATYPE_NULL) {
		d->failed = 1;
		return;
	}
	cq_shape s = cq_shape_of(t, g->type);
	part_add(t, d, g->buf, peers * g->count, &s, g->type);
}

static int has_destination(const cq_comm *m)
{
	for (int i = 0; i < m->destinations_n; i++) {
		if (m->destinations[i] != MPI_PROC_NULL)
			return 1;
	}
	return 0;
}

static void contribution(cq_thread *t, digest *d, const cq_collective *a, const cq_comm *m)
{
	int in_place = a->sbuf == MPI_IN_PLACE, peers = m->remote != 0 ? m->remote : m->size;
	int wide = a->large || a->kind == CQ_K_Neighbor_alltoallw;
	side s = {a->sbuf, a->scount, a->stype, a->scounts, a->sdispls, a->stypes, a->fortran, a->large, wide, NULL};
	side r = {a->rbuf, a->rcount, a->rtype, a->rcounts, a->rdispls, a->rtypes, a->fortran, a->large, wide, NULL};
	switch (a->kind) {
	case CQ_K_Scatter:
	case CQ_K_Scatterv:
	case CQ_K_Alltoall:
	case CQ_K_Alltoallv:
	case CQ_K_Alltoallw:
		add_peers(t, d, in_place ? &r : &s, peers);
		return;
	case CQ_K_Gather:
	case CQ_K_Gatherv:
	case CQ_K_Allgather:
	case CQ_K_Allgatherv:
		if (in_place)
			add_peer(t, d, &r, m->rank);
		else
			add_peers(t, d, &s, 1);
		return;
	case CQ_K_Neighbor_allgather:
	case CQ_K_Neighbor_allgatherv:
		add_peers(t, d, &s, has_destination(m)); /* else MPI does not read the buffer */
		return;
	case CQ_K_Neighbor_alltoall:
	case CQ_K_Neighbor_alltoallv:
	case CQ_K_Neighbor_alltoallw:
		s.neighbors = m->destinations;
		add_peers(t, d, &s, m->destinations_n);
		return;
	}
	if (in_place)
		s.buf = a->rbuf;
	for (int i = 0; a->kind == CQ_K_Reduce_scatter && i < m->size; i++)
		s.count += number_at(a->rcounts, i, a->large);
	add_peers(t, d, &s, a->kind == CQ_K_Reduce_scatter_block ? m->size : 1);
}

/* Hashes what this rank contributes to a collective, if anything. */
void cq_collective_payload(cq_thread *t, const cq_collective *a, const cq_comm *m)
{
	digest d;
	int alone = m->size == 1 && m->remote == 0 && (a->kind == CQ_K_Bcast || a->sbuf == MPI_IN_PLACE);
	if (a->kind == CQ_K_Barrier || alone || t->dead) /* with one rank no data moves, and MPI does not read the buffer */
		return;
	end_gap(t);
	digest_begin(&d);
	contribution(t, &d, a, m);
	if (!d.failed)
		slot_put(t, &d, CQ_HASH_SENT, 0);
	cq_mpi_ends(t);
}

/* Buffers to hash later: those of persistent sends and collectives at each start, and with COMMQ_HASH_VERIFY those of
 * receives on completion. The contribution to a collective is a list: a first entry with count -1, and the parts
 * behind it. The program may have freed the datatype by then, so if packing needs it we keep a duplicate. */

static cq_posted *posted_get(void)
{
	cq_posted *p = cq.posted_free;
	if (p != NULL)
		cq.posted_free = p->next;
	else
		p = cq_pool_get(sizeof *p);
	return p;
}

/* A copy of in; NULL if memory runs out. */
static cq_posted *posted_new(const cq_posted *in)
{
	cq_lock();
	cq_posted *p = posted_get();
	if (p != NULL)
		*p = *in;
	cq_unlock();
	return p;
}

static void posted_free(cq_posted *p)
{
	while (p != NULL) {
		cq_posted *next = p->next;
		MPI_Datatype type = p->type;
		int owned = p->owned;
		cq_lock();
		p->next = cq.posted_free;
		cq.posted_free = p;
		cq_unlock();
		if (owned)
			cq_p.Type_free(&type);
		p = next;
	}
}

/* Makes sure that in can be read after the program has freed its type; returns 0 if that is impossible. before is the
 * preceding part, or NULL. */
static int posted_make(cq_posted *in, const cq_posted *before)
{
	MPI_Datatype copy;
	in->type = in->of;
	in->owned = 0;
	in->next = NULL;
	if (!in->shape.known)
		return 0;
	if (in->shape.in_order && (in->count == 1 || in->shape.extent == in->shape.bytes)) {
		in->type = MPI_DATATYPE_NULL;
	} else if (cq_is_leaf(in->shape.parts[3])) {
		;
	} else if (before != NULL && before->of == in->of && before->type != MPI_DATATYPE_NULL) {
		in->type = before->type;
	} else {
		if (cq_p.Type_contiguous(1, in->of, &copy) != MPI_SUCCESS)
			return 0;
		cq_p.Type_commit(&copy);
		in->type = copy;
		in->owned = 1;
	}
	return 1;
}

/* Remembers p under a request's serial (the template's for a persistent request). */
static void posted_put(uint32_t serial, cq_posted *p)
{
	cq_lock();
	int put = p != NULL && cq_map_put(&cq.posted, (uint64_t)serial + 2, p);
	cq_unlock();
	if (!put)
		posted_free(p);
}

/* Remembers t->in. */
void cq_buffer_post(cq_thread *t, uint32_t serial, int receive)
{
	cq_posted in = t->in;
	if (t->call->flags & CQ_F_PROC_NULL || in.count < 0 || in.type == MPI_DATATYPE_NULL)
		return;
	in.of = in.type;
	in.shape = cq_shape_of(t, in.type);
	in.receive = receive;
	if (!posted_make(&in, NULL))
		return;
	cq_posted *p = posted_new(&in);
	if (p == NULL && in.owned)
		cq_p.Type_free(&in.type);
	posted_put(serial, p);
}

/* Remembers this rank's contribution to a persistent collective, to be hashed at each start. */
void cq_collective_post(cq_thread *t, const cq_collective *a, const cq_comm *m, uint32_t serial)
{
	cq_posted first = {.count = -1, .type = MPI_DATATYPE_NULL, .of = MPI_DATATYPE_NULL};
	cq_posted *p = a->kind != CQ_K_Barrier ? posted_new(&first) : NULL, *last = p;
	digest d;
	if (p == NULL)
		return;
	digest_begin(&d);
	d.keep = &last;
	contribution(t, &d, a, m);
	if (d.failed)
		posted_free(p);
	else
		posted_put(serial, p);
}

static int posted_find(uint32_t serial, cq_posted *to)
{
	cq_lock();
	cq_posted *p = cq_map_get(&cq.posted, (uint64_t)serial + 2);
	if (p != NULL)
		*to = *p;
	cq_unlock();
	return p != NULL;
}

void cq_buffer_forget(uint32_t serial)
{
	cq_lock();
	cq_posted *p = cq_map_remove(&cq.posted, (uint64_t)serial + 2);
	cq_unlock();
	posted_free(p);
}

/* Hashes a received message; its time is excluded from compute time as a call's is. */
static void hash_arrived(cq_thread *t, const cq_posted *in, int64_t bytes, uint32_t req)
{
	uint64_t t0 = t->t0, t1 = t->t1;
	digest d;
	t->t0 = t->last;
	digest_begin(&d);
	digest_add(t, &d, in->buf, in->count, &in->shape, in->type, bytes);
	if (!d.failed && d.bytes == bytes)
		slot_put(t, &d, CQ_HASH_RECEIVED, req);
	cq_mpi_ends(t);
	t->t0 = t0;
	t->t1 = t1;
}

/* Hashes the message of a blocking receive. */
void cq_hash_received(cq_thread *t, const cq_posted *in, int64_t bytes, uint32_t req)
{
	cq_posted now = *in;
	if (now.type == MPI_DATATYPE_NULL || now.count < 0 || bytes < 0 || t->dead)
		return;
	now.shape = cq_shape_of(t, now.type);
	hash_arrived(t, &now, bytes, req);
}

void cq_hash_completed(cq_thread *t, cq_req r, const MPI_Status *st)
{
	uint32_t serial = r.template_ != 0 ? r.template_ : r.serial;
	cq_posted in;
	if (!posted_find(serial, &in))
		return;
	if (st != NULL && !cq_status_cancelled(st) && !t->dead)
		hash_arrived(t, &in, cq_status_bytes(st), r.serial);
	if (r.template_ == 0)
		cq_buffer_forget(serial);
}

/* Starts of persistent sends and collectives: hashed before the call, and put into the spool after it, when the
 * starts have serials. */

void cq_starts_hash(cq_thread *t, const void *requests, int n, int fortran)
{
	cq_posted in;
	digest d;
	cq_hashes *h = n > 0 ? cq_scratch_get(&t->hashes, (size_t)n * sizeof *h) : NULL;
	if (h == NULL || t->dead)
		return;
	end_gap(t);
	for (int i = 0; i < n; i++) {
		MPI_Request r = fortran ? CQ_REQUEST(((const MPI_Fint *)requests)[i]) : ((const MPI_Request *)requests)[i];
		uint32_t template_ = cq_template_of(r);
		h[i].kind = 0;
		if (template_ == 0 || !posted_find(template_, &in) || in.receive)
			continue;
		digest_begin(&d);
		for (const cq_posted *p = in.count < 0 ? in.next : &in; p != NULL; p = p->next)
			digest_add(t, &d, p->buf, p->count, &p->shape, p->type, INT64_MAX);
		if (d.failed)
			continue;
		slot_fill(&h[i], &d, CQ_HASH_SENT, 0);
		h[i].kind = CQ_HASH;
	}
	cq_mpi_ends(t);
}

void cq_start_hash_put(cq_thread *t, int i, uint32_t serial)
{
	cq_hashes *h = t->hashes.p;
	if ((size_t)(i + 1) * sizeof *h > t->hashes.bytes || h[i].kind != CQ_HASH)
		return;
	cq_hashes *o = cq_take(t);
	h[i].kind = 0;
	h[i].req = serial;
	*o = h[i];
	slot_end(o);
}

static int algorithm_named(void)
{
	const char *s = getenv("COMMQ_HASH");
	if (s == NULL || strcmp(s, "crc64") == 0)
		return CQ_ALGORITHM_CRC64;
	if (strcmp(s, "crc32") == 0)
		return CQ_ALGORITHM_CRC32;
	if (strcmp(s, "none") == 0)
		return CQ_ALGORITHM_NONE;
	if (cq.rank == 0)
		cq_print("commq: COMMQ_HASH=%s is not crc64, crc32 or none; crc64 is used\n", s);
	return CQ_ALGORITHM_CRC64;
}

/* Packing needs a communicator that returns errors: on the program's they would go to the program's handler. It is
 * not made by MPI_Comm_dup, which would call the program's attribute functions. */
void cq_hashing_begin(void)
{
	MPI_Group self;
	const char *isal = getenv("COMMQ_ISAL"), *verify = getenv("COMMQ_HASH_VERIFY");
	cq.hash = algorithm_named();
	if (cq.hash == CQ_ALGORITHM_NONE || find_gpu())
		return;
	cq.verify = verify != NULL && strcmp(verify, "1") == 0;
	cq_hash_prepare(cq.hash, isal != NULL && strcmp(isal, "0") == 0 ? CQ_BY_CLMUL : CQ_BY_ISAL);
	if (cq.sessions) /* without MPI_COMM_SELF, payloads that must be packed have no hash */
		return;
	cq_p.Comm_group(MPI_COMM_SELF, &self);
	cq.has_pack_comm = cq_p.Comm_create(MPI_COMM_SELF, self, &cq.pack_comm) == MPI_SUCCESS;
	if (cq.has_pack_comm)
		cq_p.Comm_set_errhandler(cq.pack_comm, MPI_ERRORS_RETURN);
	cq_p.Group_free(&self);
}

void cq_hashing_end(void)
{
	if (cq.has_pack_comm)
		cq_p.Comm_free(&cq.pack_comm);
	cq.has_pack_comm = 0;
}
