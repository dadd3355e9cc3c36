/* The memory layout of datatypes: whether a payload can be read in place, or must be packed. */
#include "tables.h"

#include "hash.h"

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

/* CQ_E_* of a named type: an integer that MPI's reductions can add. */
static int named_element(MPI_Datatype h, int64_t bytes)
{
	const MPI_Datatype is_signed[] = {
		MPI_SIGNED_CHAR, MPI_SHORT, MPI_INT, MPI_LONG, MPI_LONG_LONG_INT, MPI_INT8_T, MPI_INT16_T, MPI_INT32_T,
			MPI_INT64_T, MPI_AINT,
		MPI_OFFSET, MPI_COUNT, MPI_INTEGER, MPI_INTEGER1, MPI_INTEGER2, MPI_INTEGER4, MPI_INTEGER8,
	};
	const MPI_Datatype is_unsigned[] = {
		MPI_UNSIGNED_CHAR, MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_UNSIGNED_LONG_LONG, MPI_UINT8_T,
			MPI_UINT16_T,
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

/* The pieces of a datatype in sequence: whether each begins where the previous one ends. */
typedef struct {
	int begun, broken;
	int64_t end;
	int element; /* of all pieces; -1: no piece yet */
} run;

/* Adds n elements of a type, at a displacement. */
static void add_piece(run *r, const cq_shape *s, int64_t at, int64_t n)
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

/* Nesting depth up to which types are examined; deeper ones are packed. A thread's stack can be small. */
#define DEEPEST 12

/* The result of MPI_Type_get_contents. */
typedef struct {
	const int *ints;
	const MPI_Aint *addresses;
	const MPI_Datatype *types;
	int n; /* types */
} contents;

/* Adds the pieces of a constructor that contains one type. */
static void add_pieces(run *r, const contents *c, int combiner, const cq_shape *s, const cq_shape *whole)
{
	const int *i = c->ints;
	const MPI_Aint *a = c->addresses;
	switch (combiner) {
	case MPI_COMBINER_DUP:
	case MPI_COMBINER_RESIZED:
		add_piece(r, s, 0, 1);
		break;
	case MPI_COMBINER_CONTIGUOUS:
		add_piece(r, s, 0, i[0]);
		break;
	case MPI_COMBINER_VECTOR:
	case MPI_COMBINER_HVECTOR: {
		int64_t stride = combiner == MPI_COMBINER_VECTOR ? i[2] * s->extent : a[0];
		add_piece(r, s, 0, i[0] > 0 ? i[1] : 0);
		if (i[0] > 1 && i[1] > 0 && s->bytes > 0)
			r->broken |= stride != i[1] * s->bytes;
		r->end += i[0] > 1 ? (i[0] - 1) * i[1] * s->bytes : 0;
		break;
	}
	case MPI_COMBINER_INDEXED:
		for (int k = 0; k < i[0]; k++)
			add_piece(r, s, i[1 + i[0] + k] * s->extent, i[1 + k]);
		break;
	case MPI_COMBINER_HINDEXED:
		for (int k = 0; k < i[0]; k++)
			add_piece(r, s, a[k], i[1 + k]);
		break;
	case MPI_COMBINER_INDEXED_BLOCK:
		for (int k = 0; k < i[0]; k++)
			add_piece(r, s, i[2 + k] * s->extent, i[1]);
		break;
	case MPI_COMBINER_HINDEXED_BLOCK:
		for (int k = 0; k < i[0]; k++)
			add_piece(r, s, a[k], i[1]);
		break;
	case MPI_COMBINER_SUBARRAY:
	case MPI_COMBINER_DARRAY: /* both go upwards through memory: in order if without gaps */
		add_piece(r, s, 0, 1);
		r->broken |= s->extent != s->bytes || whole->bytes != whole->span;
		break;
	default: /* of Fortran 77, or with large counts */
		r->element = CQ_E_NONE;
		r->broken = 1;
	}
}

static void add_members(run *r, const contents *c, int depth)
{
	cq_shape s;
	for (int k = 0; k < c->n; k++) {
		if (k == 0 || c->types[k] != c->types[k - 1])
			s = shape_of(c->types[k], depth);
		add_piece(r, &s, c->addresses[k], c->ints[1 + k]);
	}
}

int cq_is_leaf(int combiner)
{
	return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_INTEGER ||
		combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX;
}

/* Frees types that MPI_Type_get_contents returned, except those that always exist. */
static void free_types(const MPI_Datatype *types, int n)
{
	for (int k = 0; k < n; k++) {
		int n[4];
		MPI_Datatype h = types[k];
		if (cq_envelope(h, n) && !cq_is_leaf(n[3]))
			cq_p.Type_free(&h);
	}
}

#define SMALL 64

/* Examines a derived type. */
static void read_contents(MPI_Datatype h, cq_shape *s, int depth)
{
	struct {
		int ints[SMALL];
		MPI_Aint addresses[SMALL];
		MPI_Datatype types[SMALL];
	} small;
	const int *n = s->parts;
	size_t a = (size_t)n[1] * sizeof(MPI_Aint), t = (size_t)n[2] * sizeof(MPI_Datatype),
		bytes = a + t + (size_t)n[0] * sizeof(int);
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
			add_members(&r, &c, depth);
		} else {
			cq_shape inside = shape_of(types[0], depth);
			add_pieces(&r, &c, n[3], &inside, s);
		}
		free_types(types, n[2]);
		s->in_order = !r.broken && s->bytes == s->span;
		s->element = (uint8_t)(r.element > 0 ? r.element : CQ_E_NONE);
	}
	if (p != NULL)
		cq_pages_free(p, bytes);
}

/* The properties of a type without examining its contents; 0 if even these are unavailable. */
static int read_outside(MPI_Datatype h, cq_shape *s)
{
	MPI_Count bytes = 0;
	MPI_Aint lower, extent, true_lower, span;
	memset(s, 0, sizeof *s);
	if (cq_p.Type_size_x(h, &bytes) != MPI_SUCCESS || bytes == MPI_UNDEFINED || bytes < 0)
		return 0;
	if (cq_p.Type_get_extent(h, &lower, &extent) != MPI_SUCCESS || cq_p.Type_get_true_extent(h, &true_lower,
		&span) != MPI_SUCCESS)
		return 0;
	if (!cq_envelope(h, s->parts))
		return 0;
	s->bytes = (int64_t)bytes;
	s->lower = true_lower;
	s->extent = extent;
	s->span = span;
	return 1;
}

static void read_inside(MPI_Datatype h, cq_shape *s, int depth)
{
	s->known = 1;
	if (!cq_is_leaf(s->parts[3])) {
		if (depth < DEEPEST)
			read_contents(h, s, depth + 1);
		return;
	}
	s->in_order = s->bytes == s->span;
	s->element = (uint8_t)(s->parts[3] == MPI_COMBINER_F90_INTEGER ? integer_of(s->bytes, 1) : named_element(h,
		s->bytes));
}

/* The shape of a type; known is 0 if it cannot be determined. */
static cq_shape shape_of(MPI_Datatype h, int depth)
{
	cq_shape s;
	if (read_outside(h, &s))
		read_inside(h, &s, depth);
	return s;
}

static int equal_outside(const cq_shape *a, const cq_shape *b)
{
	return a->bytes == b->bytes && a->lower == b->lower && a->extent == b->extent && a->span == b->span &&
		memcmp(a->parts, b->parts, sizeof a->parts) == 0;
}

/* The shape of a type whose handle may have been reused for another type (CQ_TYPE_FIXED). A type described by few
 * numbers, like those that the library makes by itself, is examined each time. A type with many numbers is the
 * program's own, and is recognized by its outer properties. */
static cq_shape shape_unfixed(cq_type *y, MPI_Datatype h)
{
	cq_shape s;
	if (!read_outside(h, &s))
		return s;
	if (s.parts[0] + s.parts[1] + s.parts[2] > SMALL && y != NULL) {
		cq_lock();
		cq_shape old = y->shape;
		cq_unlock();
		if (old.known && equal_outside(&old, &s))
			return old;
	}
	read_inside(h, &s, 0);
	if (y != NULL) {
		cq_lock();
		y->shape = s;
		cq_unlock();
	}
	return s;
}

cq_shape cq_shape_of(cq_thread *t, MPI_Datatype h)
{
	cq_type *y = t->type->key == CQ_KEY(h) ? t->type : cq_type_known(h);
	if (y == NULL || !CQ_TYPE_FIXED(h))
		return shape_unfixed(y, h);
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
