/* What handles stand for: communicators, datatypes, requests, reduction operations. All memory is anonymous and mapped. */
#include "core.h"

#include "sink.h"

/* Entries of communicators and datatypes never move, because threads remember the last one they used. */
void *cq_pool_get(size_t bytes)
{
	if (cq.pool_left < bytes) {
		cq.pool = cq_pages(65536);
		cq.pool_left = cq.pool != NULL ? 65536 : 0;
	}
	if (cq.pool_left < bytes)
		return NULL;
	void *p = cq.pool;
	cq.pool += bytes;
	cq.pool_left -= bytes;
	return p;
}

/* Maps. */

#define GONE 1u /* the key of a removed entry; no handle has this value */

static void map_put_raw(cq_map *m, uint64_t key, void *value)
{
	uint64_t i = cq_hash(key) & m->mask;
	while (m->keys[i] != 0)
		i = (i + 1) & m->mask;
	m->keys[i] = key;
	m->values[i] = value;
	m->used++;
}

static int map_grow(cq_map *m)
{
	cq_map old = *m;
	uint64_t live = 0, slots = 1024;
	for (uint64_t i = 0; old.keys != NULL && i <= old.mask; i++)
		live += old.keys[i] > GONE;
	while (slots < live * 4)
		slots *= 2;
	m->keys = cq_pages(slots * sizeof *m->keys);
	m->values = cq_pages(slots * sizeof *m->values);
	if (m->keys == NULL || m->values == NULL) {
		*m = old;
		return 0;
	}
	m->mask = slots - 1;
	m->used = 0;
	for (uint64_t i = 0; old.keys != NULL && i <= old.mask; i++) {
		if (old.keys[i] > GONE)
			map_put_raw(m, old.keys[i], old.values[i]);
	}
	if (old.keys != NULL) {
		cq_pages_free(old.keys, (old.mask + 1) * sizeof *old.keys);
		cq_pages_free(old.values, (old.mask + 1) * sizeof *old.values);
	}
	return 1;
}

int cq_map_put(cq_map *m, uint64_t key, void *value)
{
	if ((m->keys == NULL || m->used * 2 > m->mask) && !map_grow(m) && (m->keys == NULL || m->used >= m->mask))
		return 0;
	map_put_raw(m, key, value);
	return 1;
}

static int64_t map_index(const cq_map *m, uint64_t key)
{
	if (m->keys == NULL)
		return -1;
	for (uint64_t i = cq_hash(key) & m->mask; m->keys[i] != 0; i = (i + 1) & m->mask) {
		if (m->keys[i] == key)
			return (int64_t)i;
	}
	return -1;
}

void *cq_map_get(const cq_map *m, uint64_t key)
{
	int64_t i = map_index(m, key);
	return i < 0 ? NULL : m->values[i];
}

void *cq_map_remove(cq_map *m, uint64_t key)
{
	int64_t i = map_index(m, key);
	if (i < 0)
		return NULL;
	m->keys[i] = GONE;
	return m->values[i];
}

/* Communicators. */

/* Room for a list of neighbours; long ones have pages of their own, which go with the communicator. */
static int *neighbor_list(cq_comm *m, size_t ints)
{
	size_t bytes = (ints * sizeof(int) + 7) & ~(size_t)7;
	if (bytes <= m->room_bytes)
		return m->room;
	if (bytes <= 4096) {
		size_t room = 64;
		while (room < bytes)
			room *= 2;
		cq_lock();
		m->room = cq_pool_get(room);
		cq_unlock();
		m->room_bytes = m->room != NULL ? room : 0;
		return m->room;
	}
	m->neighbors = cq_pages(bytes);
	m->neighbors_bytes = bytes;
	return m->neighbors;
}

/* The neighbours along a Cartesian grid: by dimension the one before and the one behind, from whom and to whom alike. */
static void cart_neighbors(cq_comm *m, MPI_Comm h)
{
	int dims = 0;
	cq_p.Cartdim_get(h, &dims);
	int *list = dims > 0 ? neighbor_list(m, 2 * (size_t)dims) : NULL;
	if (list == NULL)
		return;
	for (int i = 0; i < dims; i++)
		cq_p.Cart_shift(h, i, 1, &list[2 * i], &list[2 * i + 1]);
	m->sources = m->destinations = list;
	m->sources_n = m->destinations_n = 2 * dims;
}

static void graph_neighbors(cq_comm *m, MPI_Comm h)
{
	int n = 0;
	cq_p.Graph_neighbors_count(h, m->rank, &n);
	int *list = n > 0 ? neighbor_list(m, (size_t)n) : NULL;
	if (list == NULL)
		return;
	cq_p.Graph_neighbors(h, m->rank, n, list);
	m->sources = m->destinations = list;
	m->sources_n = m->destinations_n = n;
}

/* The weights, which nobody here wants, go behind the lists. */
static void dist_graph_neighbors(cq_comm *m, MPI_Comm h)
{
	int in = 0, out = 0, weighted;
	cq_p.Dist_graph_neighbors_count(h, &in, &out, &weighted);
	size_t n = (size_t)in + (size_t)out;
	int *list = n > 0 ? neighbor_list(m, 2 * n) : NULL;
	if (list == NULL)
		return;
	cq_p.Dist_graph_neighbors(h, in, list, list + n, out, list + in, list + n + in);
	m->sources = list;
	m->destinations = list + in;
	m->sources_n = in;
	m->destinations_n = out;
}

static void neighbors_find(cq_comm *m, MPI_Comm h)
{
	int kind = MPI_UNDEFINED;
	if (m->remote != 0)
		return;
	cq_p.Topo_test(h, &kind);
	if (kind == MPI_CART)
		cart_neighbors(m, h);
	else if (kind == MPI_GRAPH)
		graph_neighbors(m, h);
	else if (kind == MPI_DIST_GRAPH)
		dist_graph_neighbors(m, h);
}

/* A communicator that is not to be found any more. Its entry stays, because threads remember the last one they used: they
 * know by its key that it is another's now. */
static void comm_end(cq_comm *m)
{
	CQ_VIRTUAL(cq_sim_comm_end(m);)
	m->key = 0;
	m->sources_n = m->destinations_n = 0;
	if (m->neighbors != NULL)
		cq_pages_free(m->neighbors, m->neighbors_bytes);
	m->neighbors = NULL;
}

/* An entry without a key, with that number, or with the next one where it is negative. */
static cq_comm *comm_blank(int32_t number)
{
	cq_lock();
	cq_comm *m = cq.spare_comms;
	if (m != NULL) {
		cq_comm blank = {.room = m->room, .room_bytes = m->room_bytes};
		cq.spare_comms = m->spare;
		*m = blank;
	} else {
		m = cq_pool_get(sizeof *m);
	}
	if (m != NULL)
		m->number = number >= 0 ? number : cq.comms_made++;
	cq_unlock();
	return m;
}

/* The entry can be found from here on, in the place of one that ended unseen; 0: there is no memory for that. */
static int comm_publish(cq_comm *m, uint64_t key)
{
	cq_lock();
	cq_comm *gone = cq_map_remove(&cq.comms, key);
	if (gone != NULL)
		comm_end(gone);
	int put = cq_map_put(&cq.comms, key, m);
	if (put)
		__atomic_store_n(&m->key, key, __ATOMIC_RELEASE);
	cq_unlock();
	return put;
}

/* The communicator is asked about through like, which is h itself or one of the same group; not under the lock, because MPI
 * has locks of its own, and calls functions of the program's that free datatypes. */
static cq_comm *comm_entry(MPI_Comm h, MPI_Comm like, int32_t number)
{
	cq_comm *m = comm_blank(number);
	int inter = 0;
	if (m == NULL)
		return NULL;
	cq_p.Comm_size(like, &m->size);
	cq_p.Comm_rank(like, &m->rank);
	cq_p.Comm_test_inter(like, &inter);
	if (inter)
		cq_p.Comm_remote_size(like, &m->remote);
	neighbors_find(m, like);
	return comm_publish(m, CQ_KEY(h)) ? m : NULL;
}

/* MPI_COMM_WORLD and MPI_COMM_SELF have the numbers 0 and 1 also where sessions made communicators before MPI_Init. */
void cq_world_define(cq_thread *t)
{
	cq_lock();
	if (cq.comms_made < 2)
		cq.comms_made = 2;
	cq_unlock();
	cq_comm *world = comm_entry(CQ_WORLD, CQ_WORLD, 0);
	cq_comm *self = comm_entry(MPI_COMM_SELF, MPI_COMM_SELF, 1);
	if (world != NULL && self != NULL)
		t->comm = world;
	CQ_VIRTUAL(cq_sim_comm(t, world, CQ_WORLD, CQ_NULL32, 0, 0); cq_sim_comm(t, self, MPI_COMM_SELF, CQ_NULL32, 0, 0);)
}

static int32_t world_rank(MPI_Group g, int rank)
{
	int world = MPI_UNDEFINED;
	cq_p.Group_translate_ranks(g, 1, &rank, cq.world_group, &world);
	return world == MPI_UNDEFINED ? -1 : world;
}

/* Appends the world ranks of a group's members; at is where, ints is scratch for as many. */
static int32_t *members_put(int32_t *at, MPI_Group g, int n, int *ints)
{
	for (int i = 0; i < n; i++)
		ints[i] = i;
	cq_p.Group_translate_ranks(g, n, ints, cq.world_group, (int *)at);
	for (int i = 0; i < n; i++) {
		if (at[i] == MPI_UNDEFINED)
			at[i] = -1;
	}
	return at + n;
}

/* What the topology of a communicator adds to its definition: how many ints there are at most, then the ints. */
static int topology_size(MPI_Comm h, int rank, int *kind)
{
	int a = 0, b = 0, weighted;
	*kind = MPI_UNDEFINED;
	cq_p.Topo_test(h, kind);
	if (*kind == MPI_CART) {
		cq_p.Cartdim_get(h, &a);
		return 3 * a;
	}
	if (*kind == MPI_GRAPH)
		cq_p.Graph_neighbors_count(h, rank, &a);
	else if (*kind == MPI_DIST_GRAPH)
		cq_p.Dist_graph_neighbors_count(h, &b, &a, &weighted);
	return 3 * (a + b) + a;
}

static int32_t *topology_put(MPI_Comm h, cq_def_comm *d, int kind, int32_t *at, int *ints)
{
	int in = 0, out = 0, weighted;
	if (kind == MPI_CART) {
		cq_p.Cartdim_get(h, &d->dims);
		cq_p.Cart_get(h, d->dims, (int *)at, (int *)at + d->dims, ints);
		return at + 2 * d->dims;
	}
	if (kind == MPI_GRAPH) {
		cq_p.Graph_neighbors_count(h, d->rank, &d->edges);
		cq_p.Graph_neighbors(h, d->rank, d->edges, (int *)at);
		return at + d->edges;
	}
	if (kind == MPI_DIST_GRAPH) {
		cq_p.Dist_graph_neighbors_count(h, &in, &out, &weighted);
		cq_p.Dist_graph_neighbors(h, in, ints, ints + in, out, (int *)at, ints + 2 * in);
		d->edges = out;
		return at + out;
	}
	return at;
}

static void comm_def(cq_thread *t, MPI_Comm h, const cq_comm *m, cq_def_comm *d)
{
	int kind = MPI_UNDEFINED;
	int topology = m->remote == 0 ? topology_size(h, m->rank, &kind) : 0;
	int32_t leader, other = 0;
	MPI_Group local, remote;
	cq_p.Comm_group(h, &local);
	leader = world_rank(local, 0);
	if (m->remote != 0) {
		cq_p.Comm_remote_group(h, &remote);
		other = world_rank(remote, 0);
	}
	int listing = m->rank == 0 || leader < 0; /* a leader in another MPI_COMM_WORLD is not in our job */
	int lists = listing ? m->size + m->remote : 0;
	size_t ints = (size_t)lists + (size_t)topology;
	cq_def_comm *o = cq_scratch_get(&t->blob, sizeof *o + 2 * ints * sizeof(int32_t));
	if (o == NULL) {
		cq_p.Group_free(&local);
		if (m->remote != 0)
			cq_p.Group_free(&remote);
		return;
	}
	int32_t *at = (int32_t *)(o + 1);
	int *work = (int *)at + ints;
	d->size = m->size;
	d->rank = m->rank;
	d->leader_world = leader;
	if (listing) {
		at = members_put(at, local, m->size, work);
		d->members = m->size;
	}
	cq_p.Group_free(&local);
	if (m->remote != 0) {
		d->remote_size = m->remote;
		d->remote_leader_world = other;
		if (listing) {
			at = members_put(at, remote, m->remote, work);
			d->remote_members = m->remote;
		}
		cq_p.Group_free(&remote);
	}
	at = topology_put(h, d, kind, at, work);
	*o = *d;
	cq_def_put(t, CQ_DEF_COMM, m->number, o, (size_t)((uint8_t *)at - (uint8_t *)o));
}

/* Gives a new communicator its number and writes its definition; -1 for MPI_COMM_NULL. What is to be known of it is asked
 * of like: h itself, or the parent of an idup, because MPICH answers wrongly about a communicator that is still being
 * made, and keeps the wrong answer for the program. */
int32_t cq_comm_define(cq_thread *t, MPI_Comm h, MPI_Comm like, int kind, int32_t parent, uint64_t instance, int key)
{
	cq_def_comm d;
	if (h == MPI_COMM_NULL)
		return -1;
	memset(&d, 0, sizeof d);
	d.kind = kind;
	d.parent = parent;
	d.instance = instance;
	d.key = key;
	cq_comm *m = comm_entry(h, like, -1);
	if (m == NULL)
		return -1;
	comm_def(t, like, m, &d);
	CQ_VIRTUAL(cq_sim_comm(t, m, like, parent, instance, key);)
	return m->number;
}

/* A communicator that is not the thread's last used one; defined here when no constructor was seen. */
cq_comm *cq_comm_find(cq_thread *t, MPI_Comm h)
{
	if (h == MPI_COMM_NULL || CQ_KEY(h) == 0)
		return &cq.none_comm;
	cq_comm **cached = &t->comms[cq_hash(CQ_KEY(h)) & 7], *m = *cached;
	if (m != NULL && m->key == CQ_KEY(h)) {
		t->comm = m;
		return m;
	}
	cq_lock();
	m = cq_map_get(&cq.comms, CQ_KEY(h));
	cq_unlock();
	if (m == NULL) {
		cq_comm_define(t, h, h, 10 /* other */, CQ_NULL32, 0, 0);
		cq_lock();
		m = cq_map_get(&cq.comms, CQ_KEY(h));
		cq_unlock();
	}
	if (m == NULL)
		return &cq.none_comm;
	t->comm = *cached = m;
	return m;
}

/* Sees to it that a communicator that no constructor made is defined, as one of that kind. */
void cq_comm_known(cq_thread *t, MPI_Comm h, int kind)
{
	cq_lock();
	cq_comm *m = cq_map_get(&cq.comms, CQ_KEY(h));
	cq_unlock();
	if (m == NULL)
		cq_comm_define(t, h, h, kind, CQ_NULL32, 0, 0);
}

/* Forgets a communicator that is about to be freed: another thread may get its handle before the call returns. */
void cq_comm_drop(uint64_t key)
{
	cq_lock();
	cq_comm *m = cq_map_remove(&cq.comms, key);
	if (m != NULL) {
		comm_end(m);
		m->spare = cq.spare_comms;
		cq.spare_comms = m;
	}
	cq_unlock();
}

void cq_comm_name(cq_thread *t, MPI_Comm h, const char *name, size_t n)
{
	int32_t number = cq_comm_of(t, h)->number;
	if (number != CQ_NULL32)
		cq_def_put(t, CQ_DEF_COMM_NAME, number, name, n < MPI_MAX_OBJECT_NAME ? n : MPI_MAX_OBJECT_NAME);
}

/* Datatypes. */

static int32_t combiner_code(int c)
{
	const struct {
		int mpi, code;
	} codes[] = {
		{MPI_COMBINER_NAMED, 0}, {MPI_COMBINER_DUP, 1}, {MPI_COMBINER_CONTIGUOUS, 2}, {MPI_COMBINER_VECTOR, 3},
		{MPI_COMBINER_HVECTOR, 4}, {MPI_COMBINER_INDEXED, 5}, {MPI_COMBINER_HINDEXED, 6}, {MPI_COMBINER_INDEXED_BLOCK, 7},
		{MPI_COMBINER_HINDEXED_BLOCK, 8}, {MPI_COMBINER_STRUCT, 9}, {MPI_COMBINER_SUBARRAY, 10}, {MPI_COMBINER_DARRAY, 11},
		{MPI_COMBINER_RESIZED, 12}, {MPI_COMBINER_F90_REAL, 13}, {MPI_COMBINER_F90_COMPLEX, 13}, {MPI_COMBINER_F90_INTEGER, 13},
	};
	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		if (codes[i].mpi == c)
			return codes[i].code;
	}
	return -1;
}

/* MPI_Type_get_envelope into n[4], integers, addresses, datatypes, combiner. A type that was made with large counts must be
 * asked for them by another function; it has n[2] 0 here, and is not looked into. 0: not a type. */
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

/* Gives a datatype its number and writes its definition. A thread that cannot write leaves that to the others. */
static cq_type *type_define(cq_thread *t, MPI_Datatype h)
{
	struct {
		cq_def_type d;
		char name[MPI_MAX_OBJECT_NAME + 1];
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
	o.d.bytes = bytes == MPI_UNDEFINED ? 0 : (int64_t)bytes;
	o.d.extent = extent;
	o.d.combiner = combiner_code(combiner);
	cq_lock();
	cq_type *y = cq_map_get(&cq.types, CQ_KEY(h));
	if (y != NULL) { /* another thread was quicker */
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
	cq_type *y = t->types[cq_hash(key) & 7];
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
	if (CQ_MPICH && y != NULL && !CQ_TYPE_FIXED(h) && cq_p.Type_size_x(h, &bytes) == MPI_SUCCESS && (int64_t)bytes != y->bytes && bytes != MPI_UNDEFINED) {
		cq_type_drop(key);
		y = NULL;
	}
	if (y == NULL)
		y = type_define(t, h);
	if (y == NULL)
		return &cq.none_type;
	t->type = t->types[cq_hash(key) & 7] = y;
	return y;
}

/* A datatype that is in the table; NULL: it is not. */
cq_type *cq_type_seen(MPI_Datatype h)
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

/* Windows and files. Their handles mean nothing outside the process, so their numbers do not either. */

static const cq_object no_object = {-1, CQ_NULL32, 0};

typedef union object_entry {
	cq_object o;
	union object_entry *next; /* while it is spare */
} object_entry;

static cq_object object_remove(cq_map *m, uint64_t key)
{
	object_entry *e = cq_map_remove(m, key);
	if (e == NULL)
		return no_object;
	cq_object o = e->o;
	e->next = cq.spare_objects;
	cq.spare_objects = e;
	return o;
}

/* Gives a new window or file its number; -1 when there is no memory for that. */
int32_t cq_object_add(cq_map *m, int32_t *made, uint64_t key, int32_t comm)
{
	int32_t number = -1;
	cq_lock();
	object_remove(m, key); /* one that ended unseen */
	object_entry *e = cq.spare_objects;
	if (e != NULL)
		cq.spare_objects = e->next;
	else
		e = cq_pool_get(sizeof *e);
	if (e != NULL && cq_map_put(m, key, e)) {
		number = (*made)++;
		e->o = (cq_object){number, comm, 0};
	}
	cq_unlock();
	return number;
}

cq_object cq_object_get(cq_map *m, uint64_t key)
{
	cq_lock();
	object_entry *e = cq_map_get(m, key);
	cq_object o = e != NULL ? e->o : no_object;
	cq_unlock();
	return o;
}

/* Forgets one that is about to be freed, as cq_comm_drop does. */
cq_object cq_object_drop(cq_map *m, uint64_t key)
{
	cq_lock();
	cq_object o = object_remove(m, key);
	cq_unlock();
	return o;
}

/* A split collective begins on a file, or ends there: its serial; 0 when there is none. */
uint32_t cq_object_split(cq_map *m, uint64_t key, int begin)
{
	uint32_t serial = 0;
	cq_lock();
	object_entry *e = cq_map_get(m, key);
	if (e != NULL) {
		serial = begin ? cq_serial() : e->o.split;
		e->o.split = begin ? serial : 0;
	}
	cq_unlock();
	return serial;
}

/* schema.Op of a reduction operation. */
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

/* Requests. */

/* Says whether there was memory. */
int cq_reqtab_init(cq_reqtab *q)
{
	q->slots = cq_pages((4096 + 1) * sizeof *q->slots);
	q->mask = 4095;
	return q->slots != NULL;
}

static int idle(const cq_reqslot *s)
{
	return (s->first.serial | s->first.template_) == 0;
}

/* Makes room: slots whose queue is empty are let go, and twice as many are made when that is not enough. */
static void reqtab_grow(cq_reqtab *q)
{
	cq_reqtab old = *q;
	uint64_t live = 0, slots = 4096;
	for (uint64_t i = 0; i <= old.mask; i++)
		live += old.slots[i].key != 0 && !idle(&old.slots[i]);
	while (slots < live * 4)
		slots *= 2;
	q->slots = cq_pages((slots + 1) * sizeof *q->slots);
	if (q->slots == NULL) {
		*q = old;
		return;
	}
	q->mask = slots - 1;
	q->used = live;
	for (uint64_t i = 0; i <= old.mask; i++) {
		if (old.slots[i].key == 0 || idle(&old.slots[i]))
			continue;
		uint64_t j = cq_hash(old.slots[i].key) & q->mask;
		while (q->slots[j].key != 0)
			j = (j + 1) & q->mask;
		q->slots[j] = old.slots[i];
	}
	cq_pages_free(old.slots, (old.mask + 2) * sizeof *old.slots);
}

cq_reqslot *cq_req_slot_slow(cq_reqtab *q, uint64_t key)
{
	uint64_t i = cq_hash(key) & q->mask;
	while (q->slots[i].key != 0 && q->slots[i].key != key)
		i = (i + 1) & q->mask;
	if (q->slots[i].key == key)
		return &q->slots[i];
	if (q->used * 2 > q->mask) {
		reqtab_grow(q);
		if (q->used >= q->mask) { /* no memory: it is known to be made, and no more */
			q->slots[q->mask + 1] = (cq_reqslot){.key = key};
			return &q->slots[q->mask + 1];
		}
		for (i = cq_hash(key) & q->mask; q->slots[i].key != 0;)
			i = (i + 1) & q->mask;
	}
	q->used++;
	q->slots[i].key = key;
	return &q->slots[i];
}

/* A free node; 0 when there is no memory, else its number + 1. */
static uint32_t node_get(cq_reqtab *q)
{
	uint32_t n = q->nodes_free;
	if (n != 0) {
		q->nodes_free = q->nodes[n - 1].next;
		return n;
	}
	if (q->nodes_used == q->nodes_cap) {
		uint32_t cap = q->nodes_cap != 0 ? q->nodes_cap * 2 : 4096;
		cq_req *p = cq_pages((size_t)cap * sizeof *p);
		if (p == NULL)
			return 0;
		if (q->nodes != NULL) {
			memcpy(p, q->nodes, (size_t)q->nodes_cap * sizeof *p);
			cq_pages_free(q->nodes, (size_t)q->nodes_cap * sizeof *p);
		}
		q->nodes = p;
		q->nodes_cap = cap;
	}
	return ++q->nodes_used;
}

/* Puts a request behind others of the same handle value. */
void cq_req_push(cq_reqtab *q, cq_reqslot *s, cq_req r)
{
	uint32_t n = node_get(q);
	if (n == 0)
		return;
	r.next = 0;
	q->nodes[n - 1] = r;
	if (s->last == 0)
		s->first.next = n;
	else
		q->nodes[s->last - 1].next = n;
	s->last = n;
}

/* The first request of a queue is gone (its serial is 0); the next one takes its place. */
void cq_req_pop_more(cq_reqtab *q, cq_reqslot *s)
{
	uint32_t n = s->first.next;
	if (s->first.template_ != 0 || n == 0)
		return;
	s->first = q->nodes[n - 1];
	if (n == s->last)
		s->last = 0;
	q->nodes[n - 1].next = q->nodes_free;
	q->nodes_free = n;
}

/* Puts a request before others of the same handle value, where it was taken from. */
static void push_front(cq_reqtab *q, cq_reqslot *s, cq_req r)
{
	r.next = 0;
	if (!idle(s)) {
		uint32_t n = node_get(q);
		if (n == 0)
			return;
		q->nodes[n - 1] = s->first;
		r.next = n;
		if (s->last == 0)
			s->last = n;
	}
	s->first = r;
}

/* With MPI_THREAD_MULTIPLE each thread notes what it makes in tables of its own and looks there first for what it completes:
 * so it takes the oldest of its own requests of a handle value, and no other thread waits for it. What another thread has
 * made is looked for in the others' tables, and the oldest is taken; the process's own table has what threads that ended have
 * left. A table's lock is held for a few instructions. */

static void tab_lock(cq_reqtab *q)
{
	cq_spin(&q->lock);
}

void cq_req_release(cq_reqtab *q)
{
	if (cq.locked)
		__atomic_store_n(&q->lock, 0, __ATOMIC_RELEASE);
}

static void live_add(cq_reqtab *q, int n)
{
	__atomic_store_n(&q->live, q->live + (uint32_t)n, __ATOMIC_RELEASE);
}

/* The calling thread's table, or the process's where there is no memory for it. */
static cq_reqtab *own_table(cq_reqtab *q)
{
	cq_thread *t = cq_self();
	cq_reqtab *own = &t->own_tables[q == &cq.messages];
	return own->slots != NULL || cq_reqtab_init(own) ? own : q;
}

static cq_reqslot *tab_find(const cq_reqtab *q, uint64_t key)
{
	if (q->slots == NULL)
		return NULL;
	for (uint64_t i = cq_hash(key) & q->mask; q->slots[i].key != 0; i = (i + 1) & q->mask) {
		if (q->slots[i].key == key)
			return idle(&q->slots[i]) ? NULL : &q->slots[i];
	}
	return NULL;
}

/* The age of the oldest request of a handle value in a table; UINT64_MAX: there is none. */
static uint64_t age(cq_reqtab *q, uint64_t key)
{
	uint64_t serial = UINT64_MAX;
	if (__atomic_load_n(&q->live, __ATOMIC_ACQUIRE) == 0)
		return serial;
	tab_lock(q);
	const cq_reqslot *s = tab_find(q, key);
	if (s != NULL)
		serial = s->first.serial != 0 ? s->first.serial : s->first.template_;
	cq_req_release(q);
	return serial;
}

/* The table with the oldest request of a handle value; NULL: there is none. */
static cq_reqtab *oldest(cq_reqtab *q, uint64_t key)
{
	cq_reqtab *best = NULL;
	uint64_t least = UINT64_MAX, a;
	for (cq_thread *u = __atomic_load_n(&cq.active, __ATOMIC_ACQUIRE); u != NULL; u = __atomic_load_n(&u->active, __ATOMIC_ACQUIRE)) {
		cq_reqtab *theirs = &u->own_tables[q == &cq.messages];
		if ((a = age(theirs, key)) < least) {
			least = a;
			best = theirs;
		}
	}
	return age(q, key) < least ? q : best; /* last, because threads that end put there what they leave */
}

/* The table and the queue of the request that a handle value means to this thread, until cq_req_release; an empty queue of
 * its own where there is none. */
cq_reqtab *cq_req_hold(cq_reqtab *q, uint64_t key, cq_reqslot **s)
{
	if (!cq.locked) {
		*s = cq_req_slot(q, key);
		return q;
	}
	cq_reqtab *own = own_table(q), *other;
	for (;;) {
		tab_lock(own);
		*s = cq_req_slot(own, key);
		if (!idle(*s))
			return own;
		cq_req_release(own);
		other = oldest(q, key);
		if (other == NULL)
			break;
		tab_lock(other);
		if ((*s = tab_find(other, key)) != NULL)
			return other;
		cq_req_release(other); /* another thread was quicker */
	}
	tab_lock(own);
	*s = cq_req_slot(own, key);
	return own;
}

/* Serials are set aside in blocks, so that they are one thread's affair nearly always. */
uint32_t cq_serial_set_aside(void)
{
	enum { BLOCK = 256 };
	cq_thread *t = cq_self();
	if (t->serial == t->serial_end) {
		t->serial = __atomic_fetch_add(&cq.serials, BLOCK, __ATOMIC_RELAXED);
		t->serial_end = t->serial + BLOCK;
	}
	return ++t->serial;
}

uint32_t cq_req_add_locked(cq_reqtab *q, uint64_t key, uint32_t what)
{
	cq_reqtab *own = own_table(q);
	tab_lock(own);
	uint32_t serial = cq_req_add_at(own, cq_req_slot(own, key), what);
	live_add(own, 1);
	cq_req_release(own);
	return serial;
}

cq_req cq_req_take_locked(cq_reqtab *q, uint64_t key)
{
	cq_reqslot *s;
	cq_req r = {0, 0, 0, 0};
	if (key == CQ_KEY(MPI_REQUEST_NULL))
		return r;
	cq_reqtab *held = cq_req_hold(q, key, &s);
	r = cq_req_take_at(held, s);
	if (r.template_ == 0 && r.serial != 0)
		live_add(held, -1);
	cq_req_release(held);
	return r;
}

/* Takes the request of a handle value out for ever, a persistent one too. */
cq_req cq_req_end(cq_reqtab *q, uint64_t key)
{
	cq_reqslot *s;
	cq_reqtab *held = cq_req_hold(q, key, &s);
	cq_req r = s->first;
	if (!idle(s))
		live_add(held, -1);
	s->first.serial = s->first.template_ = 0;
	if (s->last != 0)
		cq_req_pop_more(held, s);
	cq_req_release(held);
	return r;
}

/* A request that was taken and has not ended after all. It is then this thread's. */
void cq_req_put_back(cq_reqtab *q, uint64_t key, cq_req r)
{
	cq_reqslot *s;
	cq_reqtab *held;
	if (r.template_ != 0) {
		held = cq_req_hold(q, key, &s);
		if (s->first.template_ == r.template_)
			s->first.serial = r.serial;
		cq_req_release(held);
		return;
	}
	held = cq.locked ? own_table(q) : q;
	if (cq.locked)
		tab_lock(held);
	push_front(held, cq_req_slot(held, key), r);
	live_add(held, 1);
	cq_req_release(held);
}

/* Takes the requests of an array before the call that may complete them: with several threads the library can give a handle
 * value to another thread's request before the call has returned. */
void cq_claim(cq_thread *t, const uint64_t *keys, int n)
{
	cq_req *r = keys != NULL ? cq_scratch_get(&t->infos, (size_t)n * sizeof *r) : NULL;
	t->claims = r != NULL ? n : 0;
	for (int i = 0; i < t->claims; i++)
		r[i] = cq_req_take(&cq.requests, keys[i]);
}

/* The thread ends: what it has made and not completed is left to the others. */
void cq_tables_leave(cq_thread *t)
{
	cq_reqtab *all[2] = {&cq.requests, &cq.messages};
	if (!cq.locked)
		return;
	for (int k = 0; k < 2; k++) {
		cq_reqtab *own = &t->own_tables[k], old;
		tab_lock(own);
		tab_lock(all[k]);
		for (uint64_t i = 0; own->slots != NULL && i <= own->mask; i++) {
			cq_reqslot *s = &own->slots[i];
			while (!idle(s)) {
				cq_reqslot *to = cq_req_slot(all[k], s->key);
				cq_req r = s->first;
				r.next = 0;
				if (idle(to))
					to->first = r;
				else
					cq_req_push(all[k], to, r);
				live_add(all[k], 1);
				s->first.serial = s->first.template_ = 0;
				if (s->last != 0)
					cq_req_pop_more(own, s);
			}
		}
		cq_req_release(all[k]);
		old = *own;
		own->slots = NULL;
		own->nodes = NULL;
		own->mask = own->used = 0;
		own->nodes_cap = own->nodes_used = own->nodes_free = 0;
		live_add(own, -(int)own->live);
		cq_req_release(own);
		if (old.slots != NULL)
			cq_pages_free(old.slots, (old.mask + 2) * sizeof *old.slots);
		if (old.nodes != NULL)
			cq_pages_free(old.nodes, (size_t)old.nodes_cap * sizeof *old.nodes);
	}
	cq_lock();
	for (cq_thread **u = &cq.active; *u != NULL; u = &(*u)->active) {
		if (*u == t) { /* t keeps its own link, for those that are at it just now */
			__atomic_store_n(u, t->active, __ATOMIC_RELEASE);
			break;
		}
	}
	cq_unlock();
}
