/* Hashes of what is sent, and of what is received where that is asked for: finding the bytes that a buffer, a count and a
 * datatype stand for, and putting their hashes into the spool. hash.c computes them. */
#include "recorders.h"

#include <link.h>
#include <stdlib.h>

#include "hash.h"

/* What is known of a payload while its parts are added, in the order in which they are sent. */
typedef struct {
	cq_crc_and_sum both;
	uint64_t head;
	int64_t bytes;
	int element; /* of all parts so far; -1: there was none */
	int failed;  /* a part could not be read */
	cq_posted **keep; /* where parts are kept to be read later, not read now; NULL: they are read */
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
		d->both = cq_both(d->element, d->both, p, n);
}

/* Datatypes. */

static int integer_of(int64_t bytes, int is_signed)
{
	switch (bytes) {
	case 1:
		return is_signed ? CQ_E_S1 : CQ_E_U1;
	case 2:
		return is_signed ? CQ_E_S2 : CQ_E_U2;
	case 4:
		return is_signed ? CQ_E_S4 : CQ_E_U4;
	case 8:
		return CQ_E_8;
	}
	return CQ_E_NONE;
}

/* What payload_sum makes of a named type: the integers that MPI's reductions add up. */
static int named_element(MPI_Datatype h, int64_t bytes)
{
	const MPI_Datatype is_signed[] = {
		MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG_INT, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T, MPI_INT64_T, MPI_AINT,
		MPI_OFFSET, MPI_COUNT, MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8,
	};
	const MPI_Datatype is_unsigned[] = {
		MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T, MPI_UINT16_T,
		MPI_UINT32_T, MPI_UINT64_T,
	};
	for (size_t i = 0; i < sizeof is_signed / sizeof *is_signed; i++) {
		if (h == is_signed[i])
			return integer_of(bytes, 1);
	}
	for (size_t i = 0; i < sizeof is_unsigned / sizeof *is_unsigned; i++) {
		if (h == is_unsigned[i])
			return integer_of(bytes, 0);
	}
	return CQ_E_NONE;
}

/* What a constructor puts one after the other: whether each piece begins where the one before it ends. */
typedef struct {
	int begun, broken;
	int64_t end;
	int element; /* of all pieces; -1: there was none */
} run;

/* n elements of a type, at a displacement. */
static void run_add(run *r, const cq_shape *s, int64_t at, int64_t n)
{
	if (n <= 0)
		return;
	r->element = r->element < 0 || r->element == s->element ? s->element : CQ_E_NONE;
	if (s->bytes == 0)
		return;
	if (!s->in_order || (n > 1 && s->extent != s->bytes) || (r->begun && r->end != at + s->lower))
		r->broken = 1;
	r->begun = 1;
	r->end = at + s->lower + n * s->bytes;
}

static cq_shape shape_of(MPI_Datatype h, int depth);

/* Types are looked into so deep; what is deeper is packed. A thread's stack can be small. */
#define DEEPEST 12

/* What MPI_Type_get_contents gives. */
typedef struct {
	const int *ints;
	const MPI_Aint *addresses;
	const MPI_Datatype *types;
	int n; /* types */
} contents;

/* A constructor with one type inside it. */
static void run_one(run *r, const contents *c, int combiner, const cq_shape *s, const cq_shape *whole)
{
	const int *i = c->ints;
	const MPI_Aint *a = c->addresses;
	switch (combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		run_add(r, s, 0, 1);
		break;
	case MPI_COMBINER_CONTIGUOUS:
		run_add(r, s, 0, i[0]);
		break;
	case MPI_COMBINER_VECTOR:
	case MPI_COMBINER_HVECTOR: {
		int64_t stride = combiner == MPI_COMBINER_VECTOR ? i[2] * s->extent : a[0];
		run_add(r, s, 0, i[0] > 0 ? i[1] : 0);
		if (i[0] > 1 && i[1] > 0 && s->bytes > 0)
			r->broken |= stride != i[1] * s->bytes;
		r->end += i[0] > 1 ? (i[0] - 1) * i[1] * s->bytes : 0;
		break;
	}
	case MPI_COMBINER_INDEXED:
		for (int k = 0; k < i[0]; k++)
			run_add(r, s, i[1 + i[0] + k] * s->extent, i[1 + k]);
		break;
	case MPI_COMBINER_HINDEXED:
		for (int k = 0; k < i[0]; k++)
			run_add(r, s, a[k], i[1 + k]);
		break;
	case MPI_COMBINER_INDEXED_BLOCK:
		for (int k = 0; k < i[0]; k++)
			run_add(r, s, i[2 + k] * s->extent, i[1]);
		break;
	case MPI_COMBINER_HINDEXED_BLOCK:
		for (int k = 0; k < i[0]; k++)
			run_add(r, s, a[k], i[1]);
		break;
	case MPI_COMBINER_SUBARRAY:
	case MPI_COMBINER_DARRAY: /* both go through memory upwards, so that without gaps they are in order */
		run_add(r, s, 0, 1);
		r->broken |= s->extent != s->bytes || whole->bytes != whole->span;
		break;
	default: /* of Fortran 77, or with large counts */
		r->element = CQ_E_NONE;
		r->broken = 1;
	}
}

static void run_members(run *r, const contents *c, int depth)
{
	cq_shape s;
	for (int k = 0; k < c->n; k++) {
		if (k == 0 || c->types[k] != c->types[k - 1])
			s = shape_of(c->types[k], depth);
		run_add(r, &s, c->addresses[k], c->ints[1 + k]);
	}
}

static int is_leaf(int combiner)
{
	return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_INTEGER || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX;
}

/* The types that MPI_Type_get_contents gave are ours, but for those that always exist. */
static void release(const MPI_Datatype *types, int n)
{
	for (int k = 0; k < n; k++) {
		int n[4];
		MPI_Datatype h = types[k];
		if (cq_envelope(h, n) && !is_leaf(n[3]))
			cq_p.Type_free(&h);
	}
}

#define SMALL 64

/* Looks into a derived type. */
static void look_inside(MPI_Datatype h, cq_shape *s, int depth)
{
	struct {
		int ints[SMALL];
		MPI_Aint addresses[SMALL];
		MPI_Datatype types[SMALL];
	} small;
	const int *n = s->parts;
	size_t a = (size_t)n[1] * sizeof(MPI_Aint), t = (size_t)n[2] * sizeof(MPI_Datatype), bytes = a + t + (size_t)n[0] * sizeof(int);
	char *p = NULL;
	int *ints = small.ints;
	MPI_Aint *addresses = small.addresses;
	MPI_Datatype *types = small.types;
	run r = {0, 0, 0, -1};
	if (n[0] > SMALL || n[1] > SMALL || n[2] > SMALL) {
		p = cq_pages(bytes);
		if (p == NULL)
			return;
		addresses = (MPI_Aint *)(void *)p;
		types = (MPI_Datatype *)(void *)(p + a);
		ints = (int *)(void *)(p + a + t);
	}
	if (n[2] > 0 && cq_p.Type_get_contents(h, n[0], n[1], n[2], ints, addresses, types) == MPI_SUCCESS) {
		contents c = {ints, addresses, types, n[2]};
		if (n[3] == MPI_COMBINER_STRUCT) {
			run_members(&r, &c, depth);
		} else {
			cq_shape inside = shape_of(types[0], depth);
			run_one(&r, &c, n[3], &inside, s);
		}
		release(types, n[2]);
		s->in_order = !r.broken && s->bytes == s->span;
		s->element = (uint8_t)(r.element > 0 ? r.element : CQ_E_NONE);
	}
	if (p != NULL)
		cq_pages_free(p, bytes);
}

/* What can be asked of a type without looking into it; 0: not even that. */
static int outside(MPI_Datatype h, cq_shape *s)
{
	MPI_Count bytes = 0;
	MPI_Aint lower, extent, true_lower, span;
	memset(s, 0, sizeof *s);
	if (cq_p.Type_size_x(h, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED || bytes < 0)
		return 0;
	if (cq_p.Type_get_extent(h, &lower, &extent) != MPI_SUCCESS || cq_p.Type_get_true_extent(h, &true_lower, &span) != MPI_SUCCESS)
		return 0;
	if (!cq_envelope(h, s->parts))
		return 0;
	s->bytes = (int64_t)bytes;
	s->lower = true_lower;
	s->extent = extent;
	s->span = span;
	return 1;
}

static void inside(MPI_Datatype h, cq_shape *s, int depth)
{
	s->known = 1;
	if (!is_leaf(s->parts[3])) {
		if (depth < DEEPEST)
			look_inside(h, s, depth + 1);
		return;
	}
	s->in_order = s->bytes == s->span;
	s->element = (uint8_t)(s->parts[3] == MPI_COMBINER_F90_INTEGER ? integer_of(s->bytes, 1) : named_element(h, s->bytes));
}

/* How a type lies in memory; known is 0 where that cannot be found out. */
static cq_shape shape_of(MPI_Datatype h, int depth)
{
	cq_shape s;
	if (outside(h, &s))
		inside(h, &s, depth);
	return s;
}

static int looks_like(const cq_shape *a, const cq_shape *b)
{
	return a->bytes == b->bytes && a->lower == b->lower && a->extent == b->extent && a->span == b->span && memcmp(a->parts, b->parts, sizeof a->parts) == 0;
}

/* The shape of a type whose handle can mean another one by now (CQ_TYPE_FIXED). Those that the library makes by itself, of
 * a few numbers, are looked into each time; one of many numbers is the program's own, and known by its outside. */
static cq_shape shape_again(cq_type *y, MPI_Datatype h)
{
	cq_shape s;
	if (!outside(h, &s))
		return s;
	if (s.parts[0] + s.parts[1] + s.parts[2] > SMALL && y != NULL) {
		cq_lock();
		cq_shape old = y->shape;
		cq_unlock();
		if (old.known && looks_like(&old, &s))
			return old;
	}
	inside(h, &s, 0);
	if (y != NULL) {
		cq_lock();
		y->shape = s;
		cq_unlock();
	}
	return s;
}

static cq_shape shape_for(cq_thread *t, MPI_Datatype h)
{
	cq_type *y = t->type->key == CQ_KEY(h) ? t->type : cq_type_seen(h);
	if (y == NULL || !CQ_TYPE_FIXED(h))
		return shape_again(y, h);
	if (CQ_UNLIKELY(!__atomic_load_n(&y->shape.known, __ATOMIC_ACQUIRE))) {
		cq_shape s = shape_of(h, 0);
		if (!s.known)
			return s;
		s.known = 0;
		cq_lock();
		if (!y->shape.known) {
			y->shape = s;
			__atomic_store_n(&y->shape.known, 1, __ATOMIC_RELEASE);
		}
		cq_unlock();
	}
	return y->shape;
}

/* Memory of a GPU cannot be read here. What tells is the library that made it, which can be loaded late. */

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

/* Whether there is such a library; then nothing is hashed from here on. */
static int gpu_there(void)
{
	const char *found = NULL;
	dl_iterate_phdr(is_runtime, &found);
	if (found == NULL)
		return 0;
	if (__atomic_exchange_n(&cq.hash, CQ_ALGORITHM_NONE, __ATOMIC_RELAXED) != CQ_ALGORITHM_NONE && cq.rank == 0)
		cq_say("commq: %s is in the process, so buffers may be in a GPU's memory: payloads are not hashed\n", found);
	cq.verify = 0;
	return 1;
}

/* Whether a payload can be read: the first one in a stretch of memory is reason to look for such libraries again. */
static int readable(cq_thread *t, const void *p)
{
	uint64_t region = ((uint64_t)(uintptr_t)p >> 21) + 1;
	uint64_t *known = &t->regions[cq_hash(region) % (sizeof t->regions / sizeof *t->regions)];
	if (CQ_LIKELY(*known == region))
		return 1;
	if (p == NULL || gpu_there())
		return 0;
	*known = region;
	return 1;
}

/* Adds elements that are packed first, but no more than limit bytes of them. */
static int add_packed(cq_thread *t, digest *d, const uint8_t *buf, int64_t count, const cq_shape *s, MPI_Datatype type, int64_t limit)
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
		if (cq_p.Pack(buf + i * s->extent, (int)n, type, packed, (int)size, &at, cq.pack_comm) != MPI_SUCCESS || at != n * s->bytes)
			return 0;
		digest_bytes(d, packed, (size_t)(at < limit ? at : limit));
		limit -= at;
	}
	return 1;
}

/* Adds count elements of a type, but no more than limit bytes of them. */
static void digest_add(cq_thread *t, digest *d, const void *buf, int64_t count, const cq_shape *s, MPI_Datatype type, int64_t limit)
{
	if (!s->known || count < 0) {
		d->failed = 1;
		return;
	}
	d->element = d->element < 0 || d->element == s->element ? s->element : CQ_E_NONE;
	if (limit != INT64_MAX && s->bytes > 0 && limit % s->bytes != 0)
		d->element = CQ_E_NONE; /* not whole elements */
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

/* Hashing before a call is neither part of the compute time nor of the call: the gap ends where it begins, and the time it
 * takes is kept from the next gap as that of a call is. */
static void gap_close(cq_thread *t)
{
	t->gathered = cq_gap(t);
}

/* cq_back and cq_go at one time: that at which hashing ended is that at which the call begins. */
static void hashed_go(cq_thread *t)
{
	uint64_t now = cq_tick(), ticks = now - t->t0;
	cq_call *c = t->call;
	if (CQ_UNLIKELY(ticks > cq.short_ticks)) {
		cq_back(t);
		cq_go(t, c);
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

/* Elements in order, of the type that was used last: what most sends are, done with little ado. */
static int take_plain(cq_thread *t, const void *buf, int64_t count, MPI_Datatype type)
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
		both = cq_both(s->element, both, p, n);
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

static void take_any(cq_thread *t, const void *buf, int64_t count, MPI_Datatype type)
{
	digest d;
	digest_begin(&d);
	cq_shape s = shape_for(t, type);
	digest_add(t, &d, buf, count, &s, type, INT64_MAX);
	if (!d.failed)
		slot_put(t, &d, CQ_HASH_SENT, 0);
}

void cq_payload_go(cq_thread *t, const void *buf, int64_t count, MPI_Datatype type)
{
	if ((t->call->flags & CQ_F_PROC_NULL) || count < 0 || type == MPI_DATATYPE_NULL || t->dead) {
		cq_go(t, t->call);
		return;
	}
	gap_close(t);
	if (!take_plain(t, buf, count, type))
		take_any(t, buf, count, type);
	hashed_go(t);
}

/* Collectives: what this rank contributes, in the order of ranks. */

static MPI_Datatype type_at(const void *types, int i, int fortran)
{
	return fortran ? CQ_TYPE(((const MPI_Fint *)types)[i]) : ((const MPI_Datatype *)types)[i];
}

/* The i-th of an array of counts or displacements. */
static int64_t number_at(const void *a, int i, int large)
{
	return large ? (int64_t)((const MPI_Count *)a)[i] : ((const int *)a)[i];
}

_Static_assert(sizeof(MPI_Aint) == sizeof(MPI_Count), "displacements of the large forms are read as counts");

/* One side's argument. */
typedef struct {
	const void *buf;
	int64_t count; /* where there are no counts */
	MPI_Datatype type;
	const void *counts, *displs, *types;
	int fortran, large, wide_displs;
	const int *neighbors; /* who the peers are, or NULL */
} side;

static int posted_make(cq_posted *in, const cq_posted *before);
static cq_posted *posted_new(const cq_posted *in);

/* Adds elements to what is read, or to what is kept. */
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
	cq_shape s = shape_for(t, type);
	int64_t at = g->displs != NULL ? number_at(g->displs, i, g->wide_displs) : i * g->count;
	part_add(t, d, (const uint8_t *)g->buf + (g->types != NULL ? at : at * s.extent), count, &s, type);
}

/* Adds the parts of all peers, in their order. */
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
	cq_shape s = shape_for(t, g->type);
	part_add(t, d, g->buf, peers * g->count, &s, g->type);
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

/* What this rank contributes to a collective, if anything. */
void cq_collective_payload(cq_thread *t, const cq_collective *a, const cq_comm *m)
{
	digest d;
	int alone = m->size == 1 && m->remote == 0 && (a->kind == CQ_K_Bcast || a->sbuf == MPI_IN_PLACE);
	if (a->kind == CQ_K_Barrier || alone || t->dead) /* alone nothing moves: not even MPI reads the buffer */
		return;
	gap_close(t);
	digest_begin(&d);
	contribution(t, &d, a, m);
	if (!d.failed)
		slot_put(t, &d, CQ_HASH_SENT, 0);
	cq_back(t);
}

/* Buffers that are hashed later: those of persistent sends and collectives when they are started, with COMMQ_HASH_VERIFY those
 * of receives when they are complete. What a collective sends is a list, of the parts behind a first entry that has count -1.
 * The program may have freed the datatype by then, so where it is needed for packing there is one of
 * ours that is the same. */

static cq_posted *posted_get(void)
{
	cq_posted *p = cq.posted_free;
	if (p != NULL)
		cq.posted_free = p->next;
	else
		p = cq_pool_get(sizeof *p);
	return p;
}

/* A copy of in; NULL: there is no memory. */
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

/* Makes in readable when the program may have freed its type; 0: it cannot be. before is the part in front of it, or NULL. */
static int posted_make(cq_posted *in, const cq_posted *before)
{
	MPI_Datatype same;
	in->type = in->of;
	in->owned = 0;
	in->next = NULL;
	if (!in->shape.known)
		return 0;
	if (in->shape.in_order && (in->count == 1 || in->shape.extent == in->shape.bytes)) {
		in->type = MPI_DATATYPE_NULL;
	} else if (is_leaf(in->shape.parts[3])) {
		;
	} else if (before != NULL && before->of == in->of && before->type != MPI_DATATYPE_NULL) {
		in->type = before->type;
	} else {
		if (cq_p.Type_contiguous(1, in->of, &same) != MPI_SUCCESS)
			return 0;
		cq_p.Type_commit(&same);
		in->type = same;
		in->owned = 1;
	}
	return 1;
}

/* Remembers p for a request of that serial, the template's for a persistent one. */
static void posted_put(uint32_t serial, cq_posted *p)
{
	cq_lock();
	int put = p != NULL && cq_map_put(&cq.posted, (uint64_t)serial + 2, p);
	cq_unlock();
	if (!put)
		posted_free(p);
}

/* Remembers t->in. */
void cq_post(cq_thread *t, uint32_t serial, int receive)
{
	cq_posted in = t->in;
	if (t->call->flags & CQ_F_PROC_NULL || in.count < 0 || in.type == MPI_DATATYPE_NULL)
		return;
	in.of = in.type;
	in.shape = shape_for(t, in.type);
	in.receive = receive;
	if (!posted_make(&in, NULL))
		return;
	cq_posted *p = posted_new(&in);
	if (p == NULL && in.owned)
		cq_p.Type_free(&in.type);
	posted_put(serial, p);
}

/* Remembers what this rank contributes to a persistent collective each time that it is started. */
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

void cq_unpost(uint32_t serial)
{
	cq_lock();
	cq_posted *p = cq_map_remove(&cq.posted, (uint64_t)serial + 2);
	cq_unlock();
	posted_free(p);
}

/* Hashes what came into a buffer, and accounts for the time as for a call's. */
static void arrived(cq_thread *t, const cq_posted *in, int64_t bytes, uint32_t req)
{
	uint64_t t0 = t->t0, t1 = t->t1;
	digest d;
	t->t0 = t->last;
	digest_begin(&d);
	digest_add(t, &d, in->buf, in->count, &in->shape, in->type, bytes);
	if (!d.failed && d.bytes == bytes)
		slot_put(t, &d, CQ_HASH_RECEIVED, req);
	cq_back(t);
	t->t0 = t0;
	t->t1 = t1;
}

/* What a blocking receive got. */
void cq_arrived(cq_thread *t, const cq_posted *in, int64_t bytes, uint32_t req)
{
	cq_posted now = *in;
	if (now.type == MPI_DATATYPE_NULL || now.count < 0 || bytes < 0 || t->dead)
		return;
	now.shape = shape_for(t, now.type);
	arrived(t, &now, bytes, req);
}

void cq_ended(cq_thread *t, cq_req r, const MPI_Status *st)
{
	uint32_t serial = r.template_ != 0 ? r.template_ : r.serial;
	cq_posted in;
	if (!posted_find(serial, &in))
		return;
	if (st != NULL && !cq_status_cancelled(st) && !t->dead)
		arrived(t, &in, cq_status_bytes(st), r.serial);
	if (r.template_ == 0)
		cq_unpost(serial);
}

/* Starts of persistent sends and collectives: hashed before the call, put into the spool when they have their serials. */

void cq_starts_hash(cq_thread *t, const void *requests, int n, int fortran)
{
	cq_posted in;
	digest d;
	cq_hashes *h = n > 0 ? cq_scratch_get(&t->hashes, (size_t)n * sizeof *h) : NULL;
	if (h == NULL || t->dead)
		return;
	gap_close(t);
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
	cq_back(t);
}

void cq_started(cq_thread *t, int i, uint32_t serial)
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

/* Starting and ending. */

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
		cq_say("commq: COMMQ_HASH=%s is not crc64, crc32 or none; crc64 is used\n", s);
	return CQ_ALGORITHM_CRC64;
}

/* In MPI_Init. Packing needs a communicator whose errors come back: those of the program's go to the program's handler. It is
 * not made by MPI_Comm_dup, which would call the program's attribute functions. */
void cq_hash_begin(void)
{
	MPI_Group self;
	const char *isal = getenv("COMMQ_ISAL"), *verify = getenv("COMMQ_HASH_VERIFY");
	cq.hash = algorithm_named();
	if (cq.hash == CQ_ALGORITHM_NONE || gpu_there())
		return;
	cq.verify = verify != NULL && strcmp(verify, "1") == 0;
	cq_hash_prepare(cq.hash, isal != NULL && strcmp(isal, "0") == 0 ? CQ_BY_CLMUL : CQ_BY_ISAL);
	if (cq.sessions) /* there is no MPI_COMM_SELF: what would have to be packed has no hash */
		return;
	cq_p.Comm_group(MPI_COMM_SELF, &self);
	cq.has_pack_comm = cq_p.Comm_create(MPI_COMM_SELF, self, &cq.pack_comm) == MPI_SUCCESS;
	if (cq.has_pack_comm)
		cq_p.Comm_set_errhandler(cq.pack_comm, MPI_ERRORS_RETURN);
	cq_p.Group_free(&self);
}

/* Before MPI_Finalize. */
void cq_hash_end(void)
{
	if (cq.has_pack_comm)
		cq_p.Comm_free(&cq.pack_comm);
	cq.has_pack_comm = 0;
}
