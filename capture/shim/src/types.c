/* Datatypes and reduction operations. */
#include "tables.h"

static int32_t combiner_code(int c)
{
	const struct {
		int mpi, code;
	} codes[] = {
		{MPI_COMBINER_NAMED, 0}, {MPI_COMBINER_DUP, 1}, {MPI_COMBINER_CONTIGUOUS, 2}, {MPI_COMBINER_VECTOR, 3},
		{MPI_COMBINER_HVECTOR, 4}, {MPI_COMBINER_INDEXED, 5}, {MPI_COMBINER_HINDEXED, 6}, {MPI_COMBINER_INDEXED_BLOCK,
			7},
		{MPI_COMBINER_HINDEXED_BLOCK, 8}, {MPI_COMBINER_STRUCT, 9}, {MPI_COMBINER_SUBARRAY, 10}, {MPI_COMBINER_DARRAY,
			11},
		{MPI_COMBINER_RESIZED, 12}, {MPI_COMBINER_F90_REAL, 13}, {MPI_COMBINER_F90_COMPLEX, 13},
			{MPI_COMBINER_F90_INTEGER, 13},
	};
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		if (codes[i].mpi == c)
			return codes[i].code;
	}
	return -1;
}

int cq_envelope(MPI_Datatype h, int *n)
{
#if CQ_LARGE
	MPI_Count i, a, l, t;
	if (cq_p.Type_get_envelope_c(h, &i, &a, &l, &t, &n[3]) != MPI_SUCCESS)
		return 0;
	n[0] = (int)i;
	n[1] = (int)a;
	n[2] = l > 0 || i > INT32_MAX || a > INT32_MAX || t > INT32_MAX ? 0 : (int)t;
	return 1;
#else
	return cq_p.Type_get_envelope(h, &n[0], &n[1], &n[2], &n[3]) == MPI_SUCCESS;
#endif
}

/* Gives a datatype its number and writes its definition. A thread that cannot write leaves that to other threads. */
static cq_type *type_define(cq_thread *t, MPI_Datatype h)
{
	struct {
		cq_def_type d;
		char name[1024]; /* the library in the process may allow longer names than the mpi.h here says */
	} o;
	MPI_Count bytes = 0;
	MPI_Aint lower = 0, extent = 0;
	int parts[4], n = 0;
	if (t->dead)
		return NULL;
	memset(&o, 0, sizeof o);
	cq_p.Type_size_x(h, &bytes);
	cq_p.Type_get_extent(h, &lower, &extent);
	int combiner = cq_envelope(h, parts) ? parts[3] : -1;
	cq_p.Type_get_name(h, o.name, &n);
	n = n < MPI_MAX_OBJECT_NAME ? n : MPI_MAX_OBJECT_NAME;
	o.d.bytes = bytes == MPI_UNDEFINED ? 0 : (int64_t)bytes;
	o.d.extent = extent;
	o.d.combiner = combiner_code(combiner);
	cq_lock();
	cq_type *y = cq_map_get(&cq.types, CQ_KEY(h));
	if (y != NULL) { /* another thread was faster */
		cq_unlock();
		return y;
	}
	y = cq.spare_types;
	if (y != NULL)
		cq.spare_types = y->spare;
	else
		y = cq_pool_get(sizeof *y);
	if (y != NULL) {
		memset(&y->shape, 0, sizeof y->shape);
		y->bytes = o.d.bytes;
		y->number = cq.types_made++;
		__atomic_store_n(&y->key, CQ_KEY(h), __ATOMIC_RELEASE);
		if (!cq_map_put(&cq.types, y->key, y)) {
			y->key = 0;
			y = NULL;
		}
	}
	cq_unlock();
	if (y != NULL)
		cq_def_put(t, CQ_DEF_TYPE, y->number, &o, offsetof(cq_def_type, spare) + sizeof o.d.spare + (size_t)n);
	return y;
}

static cq_type *type_look_up(cq_thread *t, uint64_t key)
{
	cq_type *y = t->types[cq_hash_key(key) & 7];
	if (y != NULL && y->key == key)
		return y;
	cq_lock();
	y = cq_map_get(&cq.types, key);
	cq_unlock();
	return y;
}

cq_type *cq_type_find(cq_thread *t, MPI_Datatype h)
{
	uint64_t key = CQ_KEY(h);
	if (h == MPI_DATATYPE_NULL || key == 0)
		return &cq.none_type;
	cq_type *y = type_look_up(t, key);
	MPI_Count bytes;
	if (CQ_MPICH && y != NULL && !CQ_TYPE_FIXED(h) && cq_p.Type_size_x(h, &bytes) == MPI_SUCCESS &&
		(int64_t)bytes != y->bytes && bytes != MPI_UNDEFINED) {
		cq_type_drop(key);
		y = NULL;
	}
	if (y == NULL)
		y = type_define(t, h);
	if (y == NULL)
		return &cq.none_type;
	t->type = t->types[cq_hash_key(key) & 7] = y;
	return y;
}

cq_type *cq_type_known(MPI_Datatype h)
{
	cq_lock();
	cq_type *y = cq_map_get(&cq.types, CQ_KEY(h));
	cq_unlock();
	return y;
}

void cq_type_drop(uint64_t key)
{
	cq_lock();
	cq_type *y = cq_map_remove(&cq.types, key);
	if (y != NULL) {
		y->key = 0;
		y->spare = cq.spare_types;
		cq.spare_types = y;
	}
	cq_unlock();
}

int cq_op_code(MPI_Op op)
{
	if (op == MPI_SUM)
		return 3;
	if (op == MPI_MAX)
		return 1;
	if (op == MPI_MIN)
		return 2;
	if (op == MPI_PROD)
		return 4;
	if (op == MPI_LAND)
		return 5;
	if (op == MPI_BAND)
		return 6;
	if (op == MPI_LOR)
		return 7;
	if (op == MPI_BOR)
		return 8;
	if (op == MPI_LXOR)
		return 9;
	if (op == MPI_BXOR)
		return 10;
	if (op == MPI_MAXLOC)
		return 11;
	if (op == MPI_MINLOC)
		return 12;
	if (op == MPI_REPLACE)
		return 13;
	return op == MPI_NO_OP ? 14 : 0;
}
