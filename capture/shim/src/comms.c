/* Communicators. All their memory comes from anonymous mappings. */
#include "tables.h"

/* Memory for a list of neighbours. Long lists get their own pages, which are freed with the communicator. */
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

/* The neighbours in a Cartesian grid: for each dimension the previous and the next rank; sources equal destinations. */
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

/* MPI stores the weights behind the lists; they are not used. */
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

/* Ends a communicator. Its entry stays, because threads remember the last one they used: the changed key tells them
 * that the entry no longer belongs to their communicator. */
static void comm_end(cq_comm *m)
{
	if (cq_hooks != NULL)
		cq_hooks->comm_ends(m);
	m->key = 0;
	m->sources_n = m->destinations_n = 0;
	if (m->neighbors != NULL)
		cq_pages_free(m->neighbors, m->neighbors_bytes);
	m->neighbors = NULL;
}

/* An entry without a key. It gets the given number, or the next free one if that is negative. */
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

/* Makes the entry findable. Replaces an older entry whose end the shim missed. Returns 0 if memory runs out. */
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

/* Asks MPI about the communicator through like, which is h itself or another of the same group. Must run outside the
 * lock, because MPI has its own locks and may call functions of the program that free datatypes. */
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

/* MPI_COMM_WORLD and MPI_COMM_SELF always have the numbers 0 and 1, even if sessions made communicators before
 * MPI_Init. */
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
	if (cq_hooks != NULL) {
		cq_hooks->comm_begins(t, world, CQ_WORLD, &(cq_origin){.parent = CQ_NULL32});
		cq_hooks->comm_begins(t, self, MPI_COMM_SELF, &(cq_origin){.parent = CQ_NULL32});
	}
}

static int32_t world_rank(MPI_Group g, int rank)
{
	int world = MPI_UNDEFINED;
	cq_p.Group_translate_ranks(g, 1, &rank, cq.world_group, &world);
	return world == MPI_UNDEFINED ? -1 : world;
}

/* Writes the world ranks of a group's members at at and returns the end; ints is scratch memory for as many. */
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

/* The maximum number of ints that the topology adds to a communicator's definition; topology_put writes them. */
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
	int listing = m->rank == 0 || leader < 0; /* the leader is in another job's MPI_COMM_WORLD */
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

int32_t cq_comm_define(cq_thread *t, MPI_Comm h, MPI_Comm like, const cq_origin *origin)
{
	cq_def_comm d;
	if (h == MPI_COMM_NULL)
		return -1;
	memset(&d, 0, sizeof d);
	d.kind = origin->kind;
	d.parent = origin->parent;
	d.instance = origin->instance;
	d.key = origin->key;
	cq_comm *m = comm_entry(h, like, -1);
	if (m == NULL)
		return -1;
	comm_def(t, like, m, &d);
	if (cq_hooks != NULL)
		cq_hooks->comm_begins(t, m, like, origin);
	return m->number;
}

cq_comm *cq_comm_find(cq_thread *t, MPI_Comm h)
{
	if (h == MPI_COMM_NULL || CQ_KEY(h) == 0)
		return &cq.none_comm;
	cq_comm **cached = &t->comms[cq_hash_key(CQ_KEY(h)) & 7], *m = *cached;
	if (m != NULL && m->key == CQ_KEY(h)) {
		t->comm = m;
		return m;
	}
	cq_lock();
	m = cq_map_get(&cq.comms, CQ_KEY(h));
	cq_unlock();
	if (m == NULL) {
		cq_comm_define(t, h, h, &(cq_origin){.kind = 10 /* other */, .parent = CQ_NULL32});
		cq_lock();
		m = cq_map_get(&cq.comms, CQ_KEY(h));
		cq_unlock();
	}
	if (m == NULL)
		return &cq.none_comm;
	t->comm = *cached = m;
	return m;
}

void cq_comm_known(cq_thread *t, MPI_Comm h, int kind)
{
	cq_lock();
	cq_comm *m = cq_map_get(&cq.comms, CQ_KEY(h));
	cq_unlock();
	if (m == NULL)
		cq_comm_define(t, h, h, &(cq_origin){.kind = kind, .parent = CQ_NULL32});
}

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
