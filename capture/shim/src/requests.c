/* Requests. */
#include "tables.h"

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

/* Makes space: drops slots with an empty queue, and doubles the table if that is not enough. */
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
		uint64_t j = cq_hash_key(old.slots[i].key) & q->mask;
		while (q->slots[j].key != 0)
			j = (j + 1) & q->mask;
		q->slots[j] = old.slots[i];
	}
	cq_pages_free(old.slots, (old.mask + 2) * sizeof *old.slots);
}

cq_reqslot *cq_req_slot_slow(cq_reqtab *q, uint64_t key)
{
	uint64_t i = cq_hash_key(key) & q->mask;
	while (q->slots[i].key != 0 && q->slots[i].key != key)
		i = (i + 1) & q->mask;
	if (q->slots[i].key == key)
		return &q->slots[i];
	if (q->used * 2 > q->mask) {
		reqtab_grow(q);
		if (q->used >= q->mask) { /* no memory: the record shows the request as made, nothing more */
			q->slots[q->mask + 1] = (cq_reqslot){.key = key};
			return &q->slots[q->mask + 1];
		}
		for (i = cq_hash_key(key) & q->mask; q->slots[i].key != 0;)
			i = (i + 1) & q->mask;
	}
	q->used++;
	q->slots[i].key = key;
	return &q->slots[i];
}

/* A free node's number + 1; 0 if memory runs out. */
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

static void live_add(cq_reqtab *q, int n)
{
	__atomic_store_n(&q->live, q->live + (uint32_t)n, __ATOMIC_RELEASE);
}

/* Puts a request back in front of others of the same handle value. */
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

/* The library gives a persistent request's handle to no other request, so such a one in the queue has ended unseen. */
void cq_req_add_more(cq_reqtab *q, cq_reqslot *s, cq_req r)
{
	if (s->first.template_ == 0) {
		cq_req_push(q, s, r);
		return;
	}
	r.next = s->first.next;
	s->first = r;
	if (cq.locked)
		live_add(q, -1);
}

/* With MPI_THREAD_MULTIPLE each thread adds its requests to its own tables, and looks there first when one completes.
 * So it takes its own oldest request of a handle value, and no other thread waits for it. If it finds none there, it
 * searches the other threads' tables and takes the oldest; the process's table holds what ended threads left. A
 * table's lock is held for a few instructions. */

static void tab_lock(cq_reqtab *q)
{
	cq_spin(&q->lock);
}

void cq_req_release(cq_reqtab *q)
{
	if (cq.locked)
		__atomic_store_n(&q->lock, 0, __ATOMIC_RELEASE);
}

/* Without locks nobody counts live entries. */
static void live_count(cq_reqtab *q)
{
	uint32_t n = 0;
	for (uint64_t i = 0; i <= q->mask; i++) {
		const cq_reqslot *s = &q->slots[i];
		if (s->key == 0 || idle(s))
			continue;
		n++;
		for (uint32_t k = s->first.next; k != 0; k = q->nodes[k - 1].next)
			n++;
	}
	q->live = n;
}

void cq_requests_lock(void)
{
	if (cq.locked)
		return;
	live_count(&cq.requests);
	live_count(&cq.messages);
	cq.locked = 1;
}

/* The calling thread's table, or the process's if memory runs out. */
static cq_reqtab *own_table(cq_reqtab *q)
{
	cq_thread *t = cq_mine;
	cq_reqtab *own = &t->own_tables[q == &cq.messages];
	return own->slots != NULL || cq_reqtab_init(own) ? own : q;
}

static cq_reqslot *tab_find(const cq_reqtab *q, uint64_t key)
{
	if (q->slots == NULL)
		return NULL;
	for (uint64_t i = cq_hash_key(key) & q->mask; q->slots[i].key != 0; i = (i + 1) & q->mask) {
		if (q->slots[i].key == key)
			return idle(&q->slots[i]) ? NULL : &q->slots[i];
	}
	return NULL;
}

/* The serial of the oldest request of a handle value in a table; UINT64_MAX if it has none. */
static uint64_t oldest_serial(cq_reqtab *q, uint64_t key)
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

/* The table with the oldest request of a handle value; NULL if no table has one. */
static cq_reqtab *find_oldest(cq_reqtab *q, uint64_t key)
{
	cq_reqtab *best = NULL;
	uint64_t least = UINT64_MAX, a;
	for (cq_thread *u = __atomic_load_n(&cq.active, __ATOMIC_ACQUIRE); u != NULL;
		u = __atomic_load_n(&u->active, __ATOMIC_ACQUIRE)) {
		cq_reqtab *table = &u->own_tables[q == &cq.messages];
		if ((a = oldest_serial(table, key)) < least) {
			least = a;
			best = table;
		}
	}
	return oldest_serial(q, key) < least ? q : best; /* last, because threads that end leave theirs there */
}

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
		other = find_oldest(q, key);
		if (other == NULL)
			break;
		tab_lock(other);
		if ((*s = tab_find(other, key)) != NULL)
			return other;
		cq_req_release(other); /* another thread was faster */
	}
	tab_lock(own);
	*s = cq_req_slot(own, key);
	return own;
}

/* Reserves serials in blocks, so that threads seldom share a cache line. */
uint32_t cq_serial_set_aside(void)
{
	enum { BLOCK = 256 };
	cq_thread *t = cq_mine;
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
	uint32_t serial = cq_req_add_to(own, cq_req_slot(own, key), what);
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
	r = cq_req_take_from(held, s);
	if (r.template_ == 0 && r.serial != 0)
		live_add(held, -1);
	cq_req_release(held);
	return r;
}

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

void cq_claim(cq_thread *t, const uint64_t *keys, int n)
{
	cq_req *r = keys != NULL ? cq_scratch_get(&t->infos, (size_t)n * sizeof *r) : NULL;
	t->claims = r != NULL ? n : 0;
	for (int i = 0; i < t->claims; i++)
		r[i] = cq_req_take(&cq.requests, keys[i]);
}

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
		if (*u == t) { /* t keeps its own link for threads that are reading it now */
			__atomic_store_n(u, t->active, __ATOMIC_RELEASE);
			break;
		}
	}
	cq_unlock();
}

cq_req cq_req_peek(MPI_Request request)
{
	cq_reqslot *s;
	cq_reqtab *held = cq_req_hold(&cq.requests, CQ_KEY(request), &s);
	cq_req r = s->first;
	cq_req_release(held);
	return r;
}
