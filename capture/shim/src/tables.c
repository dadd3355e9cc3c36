/* What handles stand for: communicators, datatypes, requests, reduction operations. All memory is anonymous and mapped. */
#include "core.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "sink.h"

static void *pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* Entries of communicators and datatypes never move, because threads remember the last one they used. */
static void *pool_get(size_t bytes)
{
	if (cq.pool_left < bytes) {
		cq.pool = pages(65536);
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
	m->keys = pages(slots * sizeof *m->keys);
	m->values = pages(slots * sizeof *m->values);
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
		munmap(old.keys, (old.mask + 1) * sizeof *old.keys);
		munmap(old.values, (old.mask + 1) * sizeof *old.values);
	}
	return 1;
}

static int map_put(cq_map *m, uint64_t key, void *value)
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

static void *map_get(const cq_map *m, uint64_t key)
{
	int64_t i = map_index(m, key);
	return i < 0 ? NULL : m->values[i];
}

static void *map_remove(cq_map *m, uint64_t key)
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
	if (bytes <= 4096)
		return pool_get(bytes);
	m->neighbors = pages(bytes);
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

/* A communicator that is not to be found any more. Its entry stays: threads remember the last one they used. */
static void comm_end(cq_comm *m)
{
	m->key = 0;
	m->sources_n = m->destinations_n = 0;
	if (m->neighbors != NULL)
		munmap(m->neighbors, m->neighbors_bytes);
	m->neighbors = NULL;
}

/* The communicator is asked about through like, which is h itself or one of the same group. */
static cq_comm *comm_entry(MPI_Comm h, MPI_Comm like)
{
	cq_comm *m = pool_get(sizeof *m);
	int inter = 0;
	if (m == NULL)
		return NULL;
	m->key = CQ_KEY(h);
	m->number = cq.comms_made++;
	cq_p.Comm_size(like, &m->size);
	cq_p.Comm_rank(like, &m->rank);
	cq_p.Comm_test_inter(like, &inter);
	if (inter)
		cq_p.Comm_remote_size(like, &m->remote);
	neighbors_find(m, like);
	if (!map_put(&cq.comms, m->key, m))
		return NULL;
	return m;
}

void cq_world_define(cq_thread *t)
{
	cq_comm *world = comm_entry(MPI_COMM_WORLD, MPI_COMM_WORLD);
	cq_comm *self = comm_entry(MPI_COMM_SELF, MPI_COMM_SELF);
	if (world != NULL && self != NULL)
		t->comm = world;
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
	int lists = m->rank == 0 ? m->size + m->remote : 0;
	size_t ints = (size_t)lists + (size_t)topology;
	cq_def_comm *o = cq_scratch_get(&t->blob, sizeof *o + 2 * ints * sizeof(int32_t));
	MPI_Group local, remote;
	if (o == NULL)
		return;
	int32_t *at = (int32_t *)(o + 1);
	int *work = (int *)at + ints;
	cq_p.Comm_group(h, &local);
	d->size = m->size;
	d->rank = m->rank;
	d->leader_world = world_rank(local, 0);
	if (m->rank == 0) {
		at = members_put(at, local, m->size, work);
		d->members = m->size;
	}
	cq_p.Group_free(&local);
	if (m->remote != 0) {
		cq_p.Comm_remote_group(h, &remote);
		d->remote_size = m->remote;
		d->remote_leader_world = world_rank(remote, 0);
		if (m->rank == 0) {
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
	cq_lock();
	cq_comm *gone = map_remove(&cq.comms, CQ_KEY(h)); /* one that ended unseen */
	if (gone != NULL)
		comm_end(gone);
	cq_comm *m = comm_entry(h, like);
	cq_unlock();
	if (m == NULL)
		return -1;
	comm_def(t, like, m, &d);
	return m->number;
}

/* A communicator that is not the thread's last used one; defined here when no constructor was seen. */
cq_comm *cq_comm_find(cq_thread *t, MPI_Comm h)
{
	if (h == MPI_COMM_NULL || CQ_KEY(h) == 0)
		return &cq.none_comm;
	cq_lock();
	cq_comm *m = map_get(&cq.comms, CQ_KEY(h));
	cq_unlock();
	if (m == NULL) {
		cq_comm_define(t, h, h, 10 /* other */, CQ_NULL32, 0, 0);
		cq_lock();
		m = map_get(&cq.comms, CQ_KEY(h));
		cq_unlock();
	}
	if (m == NULL)
		return &cq.none_comm;
	t->comm = m;
	return m;
}

/* Forgets a communicator that is about to be freed: another thread may get its handle before the call returns. */
void cq_comm_drop(uint64_t key)
{
	cq_lock();
	cq_comm *m = map_remove(&cq.comms, key);
	if (m != NULL)
		comm_end(m);
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

static cq_type *type_define(cq_thread *t, MPI_Datatype h)
{
	struct {
		cq_def_type d;
		char name[MPI_MAX_OBJECT_NAME + 1];
	} o;
	MPI_Count bytes = 0;
	MPI_Aint lower = 0, extent = 0;
	int a, b, c, combiner = -1, n = 0;
	cq_type *y = pool_get(sizeof *y);
	if (y == NULL)
		return NULL;
	memset(&o, 0, sizeof o);
	cq_p.Type_size_x(h, &bytes);
	cq_p.Type_get_extent(h, &lower, &extent);
	cq_p.Type_get_envelope(h, &a, &b, &c, &combiner);
	cq_p.Type_get_name(h, o.name, &n);
	y->key = CQ_KEY(h);
	y->number = cq.types_made++;
	y->bytes = bytes == MPI_UNDEFINED ? 0 : (int64_t)bytes;
	o.d.bytes = y->bytes;
	o.d.extent = extent;
	o.d.combiner = combiner_code(combiner);
	if (!map_put(&cq.types, y->key, y))
		return NULL;
	cq_def_put(t, CQ_DEF_TYPE, y->number, &o, offsetof(cq_def_type, spare) + sizeof o.d.spare + (size_t)n);
	return y;
}

cq_type *cq_type_find(cq_thread *t, MPI_Datatype h)
{
	if (h == MPI_DATATYPE_NULL || CQ_KEY(h) == 0)
		return &cq.none_type;
	cq_lock();
	cq_type *y = map_get(&cq.types, CQ_KEY(h));
	MPI_Count bytes;
	if (CQ_MPICH && y != NULL && !CQ_TYPE_FIXED(h) && cq_p.Type_size_x(h, &bytes) == MPI_SUCCESS && (int64_t)bytes != y->bytes && bytes != MPI_UNDEFINED) {
		map_remove(&cq.types, y->key);
		y->key = 0;
		y = NULL;
	}
	if (y == NULL)
		y = type_define(t, h);
	cq_unlock();
	if (y == NULL)
		return &cq.none_type;
	t->type = y;
	return y;
}

void cq_type_drop(uint64_t key)
{
	cq_lock();
	cq_type *y = map_remove(&cq.types, key);
	if (y != NULL)
		y->key = 0;
	cq_unlock();
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

void cq_reqtab_init(cq_reqtab *q)
{
	q->slots = pages(4096 * sizeof *q->slots);
	q->mask = 4095;
	if (q->slots == NULL)
		abort(); /* 160 KiB at MPI_Init */
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
	q->slots = pages(slots * sizeof *q->slots);
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
	munmap(old.slots, (old.mask + 1) * sizeof *old.slots);
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
		cq_req *p = pages((size_t)cap * sizeof *p);
		if (p == NULL)
			return 0;
		if (q->nodes != NULL) {
			memcpy(p, q->nodes, (size_t)q->nodes_cap * sizeof *p);
			munmap(q->nodes, (size_t)q->nodes_cap * sizeof *p);
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

/* With several threads, those that wait for a shared handle value each get their own requests. */

uint32_t cq_req_add_locked(cq_reqtab *q, uint64_t key, uint32_t what)
{
	cq_lock();
	uint32_t serial = cq_req_add_at(q, cq_req_slot(q, key), what | cq_self_number() << CQ_R_THREAD_SHIFT);
	cq_unlock();
	return serial;
}

/* The oldest request in a queue that this thread made, unless it is the first: its node + 1 and that of the one before it
 * (0: the first); 0 when there is none. */
static uint32_t own_node(const cq_reqtab *q, const cq_reqslot *s, uint32_t *before)
{
	uint32_t self = cq_self_number();
	*before = 0;
	if (s->last == 0 || s->first.what >> CQ_R_THREAD_SHIFT == self)
		return 0;
	for (uint32_t n = s->first.next; n != 0; *before = n, n = q->nodes[n - 1].next) {
		if (q->nodes[n - 1].what >> CQ_R_THREAD_SHIFT == self)
			return n;
	}
	return 0;
}

cq_req cq_req_take_locked(cq_reqtab *q, uint64_t key)
{
	uint32_t before;
	cq_req r;
	cq_lock();
	cq_reqslot *s = cq_req_slot(q, key);
	uint32_t n = own_node(q, s, &before);
	if (n == 0) {
		r = cq_req_take_at(q, s);
		cq_unlock();
		return r;
	}
	r = q->nodes[n - 1];
	*(before == 0 ? &s->first.next : &q->nodes[before - 1].next) = r.next;
	if (s->last == n)
		s->last = before;
	q->nodes[n - 1].next = q->nodes_free;
	q->nodes_free = n;
	cq_unlock();
	return r;
}
