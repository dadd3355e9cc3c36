/* The virtual clock of a program with simulator ranks (docs/method/simulator-ranks.md; Figures 2 and 3 of the paper):
 * what a rank of the program tells the simulator ranks about its messages and collectives, and how it sets its clock
 * from their answers. Times are picoseconds since MPI_Init, which is at CQ_VIRTUAL_START. Each thread has a clock,
 * which begins at the latest time of the process.
 *
 * The hooks do this where a recorded call ends, and read from its slots what the call did: see call_ends. Only a
 * blocking send is told before the call, because it may wait for a rank that has found the message by a probe and waits
 * for its event. A send leaves at its call's entry and takes no time itself. A receive ends when its message arrives,
 * or at once if it has arrived before. A call that completes several requests ends with the latest of them. A
 * collective ends when the simulator says; a neighbourhood collective is like one of all ranks of its communicator.
 * Constructors of communicators, one-sided communication and I/O take no time.
 *
 * The event of a message is found by the order that MPI guarantees: the messages of one sender, communicator and tag
 * arrive in the order of the sends, and are received in the order in which the receives were posted. So the event of a
 * message is the first one left for its (communicator, source, tag), after the events of receives that were posted
 * earlier and are pending: those are assigned first. To learn whether a pending receive from any source, or with any
 * tag, is one of them, MPI is asked: if a later receive got a message that the earlier one would have taken, the
 * earlier one has its message already. With MPI_THREAD_MULTIPLE MPI is not asked, because another thread may be
 * completing the request. */
#include "recorders.h"

#if CQ_SIM

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bridge.h"
#include "facts_gen.h"
#include "lifetime.h"
#include "ranks.h"
#include "sim.h"

#define BUCKETS 1024
#define PING_NS 10000000000u /* a waiting rank asks after this time whether the simulators are alive */
#define DEAF_NS 60000000000u /* and waits this long for the answer */
#define SYNC_NS 5000000000u  /* a failing rank waits this long for its records to be written */
#define NAP_AFTER_NS 1000000u
#define NO_TIME INT64_MIN
#define WORLD_KEY 0x636f6d6d71u
#define PARTS_KEY 0x7061727469u /* partitioned messages match only each other */

/* Ranks of a communicator's (remote) group in MPI_COMM_WORLD; -1: outside. */
typedef struct {
	int holders; /* users of the list: the communicator, and receives pending on it */
	int n;
	int outside; /* members outside the program's ranks: spawned processes */
	int identity;    /* the ranks are the same, so there is no list */
	size_t bytes;
	int list[];
} sim_ranks;

typedef struct pending pending;

/* A thread's virtual clock, and what its call in progress does. */
typedef struct {
	int64_t now;      /* ps */
	uint64_t counted; /* ns of the compute time since the last record that now already includes */
	int64_t bytes;    /* payload that the call sends */
	int sends;        /* CQ_SENDS_* */
	int collective;   /* CQ_K_* + 1; 0: none */
	MPI_Request made; /* the request that the call has made */
	uint32_t message; /* serial of the message of an mrecv or imrecv */
	int64_t arrives;  /* the latest arrival of all that the call has completed */
	pending *ended, **ended_end; /* requests that the call has completed */
} virtual_thread;

static virtual_thread *virtual_of(const cq_thread *t)
{
	return t->hook_data;
}

static sim_ranks *ranks_of(const cq_comm *m)
{
	return m->hook_data;
}

/* A message, or an operation of a collective (then source is COLLECTIVE, and n the operation). */
typedef struct {
	uint64_t key, n;
	int32_t source, tag;
} name;

enum { COLLECTIVE = -2, NOT_WANTED = -3, OUTSIDE = -1 };

/* A simulator's answer about a message or collective. */
typedef struct event event;
struct event {
	event *next;
	name of;
	int64_t time;
};

/* A request of the program: an active receive, collective or partitioned send, a message of mprobe, or the template of
 * a persistent request. */
struct pending {
	pending *next;  /* in its bucket, the list of wildcards, or of free ones */
	pending *after; /* of the requests that a call has completed */
	name of;               /* source and tag as posted, then as received; for a send its destination */
	uint64_t order;        /* of posting */
	int64_t arrives;       /* once its event is there; else NO_TIME */
	int64_t bytes, received; /* as in ENTERED, for the starts; of a partitioned send bytes, and partitions to come */
	sim_ranks *ranks;
	MPI_Request request;   /* of a wildcard */
	uint32_t serial;
	uint32_t flags;
	int32_t peers;
	uint16_t call;
	uint8_t what;          /* WHAT_* */
	uint8_t any;           /* CQ_F_ANY_SOURCE, CQ_F_ANY_TAG, until its message is known */
	uint8_t chosen;        /* it was posted with a wildcard */
	uint8_t freed, cancelled, listed;
	uint8_t needs_all;      /* this collective completes on no rank before all have entered it */
};

enum { WHAT_RECV, WHAT_COLL, WHAT_MESSAGE, WHAT_PARTS, WHAT_START_SEND, WHAT_START_RECV, WHAT_START_COLL,
	WHAT_START_PARTS };

typedef struct {
	event *first, *last;
} events;

typedef struct {
	pending *first, *last;
} pendings;

static struct {
	int on;   /* simulator ranks take the records, and times are virtual */
	int gone;
	int deaf; /* a simulator rank does not answer */
	uint32_t lock;
	double ratio;
	/* COMMQ_CLOCK=none: compute ns that the program sets itself, in a variable of its own; NULL: it does not */
	long long *compute_ns;
	int64_t latest; /* of all clocks */
	uint64_t order;
	uint64_t by_choice, out_of_order, early; /* see CQ_SIM_LEFT */
	int64_t chosen; /* the latest arrival of a match by choice */
	events in[BUCKETS];
	pendings posted[BUCKETS];
	pendings wild;
	cq_map by_serial;  /* +2 */
	cq_map by_number;  /* of communicators, +2 */
	cq_map made;       /* number of communicators made of a kind that is not counted on a parent, by a hash */
	event *spare_events;
	pending *spare_pendings;
	MPI_Request receiving;
	int has_request, synced, here, over;
	cq_sim_event arrived[CQ_SIM_MANY];
	cq_sim_event ping;
} sim = {.chosen = NO_TIME};

static void lock(void)
{
	if (CQ_UNLIKELY(cq.locked))
		cq_spin(&sim.lock);
}

static void unlock(void)
{
	if (CQ_UNLIKELY(cq.locked))
		__atomic_store_n(&sim.lock, 0, __ATOMIC_RELEASE);
}

/* Simulation is over: clocks advance by compute time alone, and no rank waits. */
static void give_up(void)
{
	sim.gone = 1;
}

/* Reports whether a call has all facts in all, and none in none. */
static int has_facts(int call, uint64_t all, uint64_t none)
{
	uint64_t facts = cq_facts_of(call);
	return (facts & all) == all && (facts & none) == 0;
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* Lists and memory; all under the lock. */

static event *event_new(name of, int64_t time)
{
	event *e = sim.spare_events;
	if (e != NULL) {
		sim.spare_events = e->next;
	} else {
		cq_lock();
		e = cq_pool_get(sizeof *e);
		cq_unlock();
	}
	if (e != NULL)
		*e = (event){NULL, of, time};
	return e;
}

static int is_equal(const name *a, const name *b)
{
	return a->key == b->key && a->n == b->n && a->source == b->source && a->tag == b->tag;
}

static size_t bucket(const name *of)
{
	return mix(mix(of->key, of->n), (uint64_t)(uint32_t)of->source << 32 | (uint32_t)of->tag) % BUCKETS;
}

static void event_put(name of, int64_t time)
{
	events *l = &sim.in[bucket(&of)];
	event *e = event_new(of, time);
	if (e == NULL)
		give_up();
	else if (l->first == NULL)
		l->first = l->last = e;
	else
		l->last = l->last->next = e;
}

/* The pointer to the first event of that name, which is NULL if there is none; *before is the event before it. */
static event **event_find(const name *of, event **before)
{
	event **at = &sim.in[bucket(of)].first;
	for (*before = NULL; *at != NULL && !is_equal(&(*at)->of, of); at = &(*at)->next)
		*before = *at;
	return at;
}

static int64_t event_take(event **at, event *before)
{
	event *e = *at;
	events *l = &sim.in[bucket(&e->of)];
	*at = e->next;
	if (l->last == e)
		l->last = before;
	e->next = sim.spare_events;
	sim.spare_events = e;
	return e->time;
}

static pending *pending_new(uint32_t serial, int what)
{
	pending *p = sim.spare_pendings;
	if (p != NULL) {
		sim.spare_pendings = p->next;
	} else {
		cq_lock();
		p = cq_pool_get(sizeof *p);
		cq_unlock();
	}
	if (p == NULL || (serial != 0 && !cq_map_put(&sim.by_serial, serial + (uint64_t)2, p))) {
		give_up();
		return NULL;
	}
	*p = (pending){.serial = serial, .what = (uint8_t)what, .arrives = NO_TIME, .order = ++sim.order};
	return p;
}

static void ranks_release(sim_ranks *r)
{
	if (r != NULL && __atomic_sub_fetch(&r->holders, 1, __ATOMIC_ACQ_REL) == 0)
		cq_pages_free(r, r->bytes);
}

static sim_ranks *ranks_hold(sim_ranks *r)
{
	if (r != NULL)
		__atomic_add_fetch(&r->holders, 1, __ATOMIC_RELAXED);
	return r;
}

static void pending_end(pending *p)
{
	if (p->serial != 0)
		cq_map_remove(&sim.by_serial, p->serial + (uint64_t)2);
	ranks_release(p->ranks);
	p->next = sim.spare_pendings;
	sim.spare_pendings = p;
}

static pending *pending_of(uint32_t serial)
{
	return serial == 0 ? NULL : cq_map_get(&sim.by_serial, serial + (uint64_t)2);
}

/* Inserts into a list by the order of posting. */
static void list_put(pendings *l, pending *p)
{
	pending **at = &l->first;
	p->listed = 1;
	if (l->last != NULL && l->last->order < p->order)
		at = &l->last->next;
	while (*at != NULL && (*at)->order < p->order)
		at = &(*at)->next;
	p->next = *at;
	*at = p;
	if (p->next == NULL)
		l->last = p;
}

static void list_remove(pendings *l, pending *p)
{
	pending *before = NULL, *q = l->first;
	for (; q != NULL && q != p; q = q->next)
		before = q;
	if (q == NULL)
		return;
	if (before == NULL)
		l->first = p->next;
	else
		before->next = p->next;
	if (l->last == p)
		l->last = before;
	p->listed = 0;
}

static pendings *list_of(pending *p)
{
	return p->any != 0 ? &sim.wild : &sim.posted[bucket(&p->of)];
}

/* The channel. */

typedef struct {
	int n;
	uint64_t since;  /* when the wait became long */
	uint64_t pinged;
	int here;
} waiting;

static void take_in(const cq_sim_event *e)
{
	name of = {e->key, 0, e->peer, e->tag};
	event **at, *before;
	switch (e->kind) {
	case CQ_SIM_ARRIVES:
		event_put(of, e->time_ps + e->delay_ps);
		break;
	case CQ_SIM_LEAVES:
		of = (name){e->key, e->n, NOT_WANTED, 0};
		at = event_find(&of, &before);
		if (*at != NULL) {
			event_take(at, before);
			break;
		}
		of.source = COLLECTIVE;
		event_put(of, e->time_ps);
		break;
	case CQ_SIM_SYNCED:
		sim.synced++;
		break;
	case CQ_BRIDGE_HERE:
		sim.here++;
		break;
	case CQ_BRIDGE_OVER:
		sim.over++;
		break;
	case CQ_SIM_GONE:
		give_up();
		break;
	}
}

static void listen(void)
{
	sim.has_request = cq_p.Irecv(sim.arrived, sizeof sim.arrived, MPI_BYTE, MPI_ANY_SOURCE, CQ_SIM_TAG,
		cq_world.channel, &sim.receiving) == MPI_SUCCESS;
	if (!sim.has_request)
		give_up();
}

/* Takes in messages that have arrived; under the lock. */
static void take_arrived(void)
{
	MPI_Status st;
	int done = 0;
	while (sim.has_request) {
		if (cq_p.Test(&sim.receiving, &done, &st) != MPI_SUCCESS) {
			sim.has_request = 0;
			give_up();
		}
		if (!done)
			return;
		size_t n = (size_t)cq_status_bytes(&st) / sizeof sim.arrived[0];
		for (size_t i = 0; i < n; i++)
			take_in(&sim.arrived[i]);
		listen();
	}
}

static int simulator(int k)
{
	return cq_world.ranks[cq_world.apps + k];
}

static int own_simulator(void)
{
	return cq_world.self % cq_world.sims;
}

/* Asks all simulators whether they are alive; reports if they do not answer. */
static void ping(waiting *p, uint64_t now)
{
	MPI_Request r;
	if (p->pinged != 0 && sim.here - p->here >= cq_world.sims) {
		p->since = now;
		p->pinged = 0;
		return;
	}
	if (p->pinged != 0 && now - p->pinged > DEAF_NS) {
		cq_print("commq: rank %d: a simulator rank does not answer; this rank goes on without virtual time, and is "
			"recorded no further\n", cq.rank);
		sim.deaf = 1;
		give_up();
		return;
	}
	if (p->pinged != 0 || now - p->since < PING_NS)
		return;
	p->pinged = now;
	p->here = sim.here;
	sim.ping = (cq_sim_event){.kind = CQ_BRIDGE_PING, .rank = cq_world.self};
	for (int k = 0; k < cq_world.sims; k++) {
		if (cq_p.Isend(&sim.ping, sizeof sim.ping, MPI_BYTE, simulator(k), CQ_SIM_TAG, cq_world.channel,
			&r) == MPI_SUCCESS)
			cq_p.Request_free(&r);
	}
}

/* Gives up the core, which another process may need to make progress. Linux makes a thread that yields wait until all
 * others have used as much time as it was ever granted, which is minutes after some thousand yields; a thread that
 * sleeps gets its core back at once. */
void cq_sim_rest(uint64_t idle_ns)
{
	struct timespec nap = {0, idle_ns > NAP_AFTER_NS ? 50000 : 1000};
	nanosleep(&nap, NULL);
}

/* Rests between two polls of the channel. */
static void rest_between(waiting *p)
{
	if (++p->n < 20) /* it often arrives at once */
		return;
	uint64_t now = cq_monotonic();
	if (p->since == 0)
		p->since = now;
	cq_sim_rest(now - p->since);
	lock();
	ping(p, now);
	unlock();
}

static void receive_and_rest(waiting *p)
{
	lock();
	take_arrived();
	unlock();
	rest_between(p);
}

/* Sends to a simulator, and takes in arriving messages meanwhile, so that the two never wait for each other. */
static void send_to_simulator(int k, const void *p, size_t n)
{
	MPI_Request r;
	waiting w = {0};
	int done = 0;
	if (sim.gone)
		return;
	if (cq_p.Isend(p, (int)n, MPI_BYTE, simulator(k), CQ_SIM_TAG, cq_world.channel, &r) != MPI_SUCCESS) {
		give_up();
		return;
	}
	for (;;) {
		if (cq_p.Test(&r, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done)
			return;
		if (sim.gone && ++w.n > 100000) /* no process receives it */
			return;
		receive_and_rest(&w);
	}
}

/* The clock. */

static void advance(cq_thread *t, uint64_t compute)
{
	if (!sim.on)
		return;
	uint64_t ns = compute - virtual_of(t)->counted;
	if (sim.compute_ns != NULL) {
		ns += (uint64_t)*sim.compute_ns;
		*sim.compute_ns = 0;
	}
	virtual_of(t)->now += sim.ratio == 1 ? (int64_t)ns * 1000 : (int64_t)((double)ns * 1000 / sim.ratio + 0.5);
	virtual_of(t)->counted = compute;
}

static int thread_begins(cq_thread *t)
{
	t->hook_data = cq_pages(sizeof(virtual_thread));
	if (t->hook_data != NULL)
		virtual_of(t)->now = sim.on ? __atomic_load_n(&sim.latest, __ATOMIC_RELAXED) : 0;
	return t->hook_data != NULL;
}

static uint64_t virtual_time(const cq_thread *t, uint64_t tick)
{
	return sim.on ? (uint64_t)virtual_of(t)->now : tick;
}

static uint64_t call_begins(cq_thread *t, uint64_t compute)
{
	advance(t, compute);
	virtual_of(t)->counted = 0;
	return virtual_time(t, t->t0);
}

static void call_abandoned(cq_thread *t)
{
	virtual_thread *v = virtual_of(t);
	v->counted = 0;
	v->sends = v->collective = 0;
	v->ended = NULL;
}

static void header(cq_header *h)
{
	if (!sim.on)
		return;
	h->timer = CQ_TIMER_VIRTUAL;
	h->clock0_tick = h->clock1_tick = 0;
	h->clock0_ns = h->clock1_ns = 0;
}

static void clock_pair(const cq_thread *t, uint64_t *tick, int64_t *ns)
{
	if (!sim.on)
		return;
	*tick = (uint64_t)virtual_of(t)->now;
	*ns = virtual_of(t)->now / 1000;
}

/* Excludes the time since the program's call returned from its compute time. */
static void call_is_closed(cq_thread *t)
{
	uint64_t now = cq_tick(), d = now - t->last;
	if (!sim.on)
		return;
	if (CQ_LIKELY(d <= cq.short_ticks)) {
		t->shorts += d;
		t->last = now;
	} else {
		uint64_t t0 = t->t0, t1 = t->t1;
		t->t0 = t->last;
		t->t1 = now;
		cq_mpi_ends_long(t);
		t->t0 = t0;
		t->t1 = t1;
	}
}

/* Communicators. */

static sim_ranks *ranks_new(MPI_Group g, uint64_t *hash, int *least)
{
	int n = 0;
	cq_p.Group_size(g, &n);
	size_t bytes = sizeof(sim_ranks) + 2 * (size_t)n * sizeof(int);
	sim_ranks *r = cq_pages(bytes);
	if (r == NULL)
		return NULL;
	int *in = r->list + n;
	for (int i = 0; i < n; i++)
		in[i] = i;
	cq_p.Group_translate_ranks(g, n, in, cq.world_group, r->list);
	r->holders = r->identity = 1;
	r->n = n;
	r->bytes = bytes;
	*hash = (uint64_t)n;
	*least = INT32_MAX;
	for (int i = 0; i < n; i++) {
		if (r->list[i] == MPI_UNDEFINED) {
			r->list[i] = OUTSIDE;
			r->outside++;
		}
		r->identity &= r->list[i] == i;
		*hash = mix(*hash, (uint64_t)(int64_t)r->list[i]);
		if (r->list[i] < *least)
			*least = r->list[i];
	}
	if (r->identity) { /* the list is not needed; its first page stays */
		size_t page = (size_t)sysconf(_SC_PAGESIZE);
		size_t keep = (sizeof *r + page - 1) / page * page;
		if (bytes > keep && cq_pages_free((char *)r + keep, (bytes + page - 1) / page * page - keep) == 0)
			r->bytes = keep;
	}
	return r;
}

static int world_rank(const sim_ranks *r, int rank)
{
	if (r == NULL || rank < 0 || rank >= r->n)
		return OUTSIDE;
	return r->identity ? rank : r->list[rank];
}

static cq_comm *comm_numbered(cq_thread *t, int32_t number)
{
	if (number == CQ_NULL32)
		return NULL;
	if (CQ_LIKELY(t->comm->number == number && t->comm->key != 0))
		return t->comm;
	cq_lock();
	cq_comm *m = cq_map_get(&sim.by_number, (uint64_t)number + 2);
	cq_unlock();
	return m;
}

/* A communicator has been made. Its key is a hash of facts that all members know, as in ADR 0001: the parent, the
 * operation on it, and the lowest rank in MPI_COMM_WORLD. If the operation is not counted on a parent that all
 * members share, the hash uses instead the members, the tag, and the number of earlier communicators of this kind. */
static void comm_begins(cq_thread *t, cq_comm *m, MPI_Comm like, const cq_origin *origin)
{
	uint64_t a = 0, b = 0;
	int least = INT32_MAX, other = INT32_MAX;
	MPI_Group g;
	if (!sim.on || m == NULL)
		return;
	cq_p.Comm_group(like, &g);
	m->hook_data = ranks_new(g, &a, &least);
	cq_p.Group_free(&g);
	if (m->remote != 0) {
		int outside = ranks_of(m) != NULL ? ranks_of(m)->outside : 0;
		ranks_release(ranks_of(m));
		cq_p.Comm_remote_group(like, &g);
		m->hook_data = ranks_new(g, &b, &other);
		cq_p.Group_free(&g);
		if (ranks_of(m) != NULL)
			ranks_of(m)->outside += outside;
		if (other < least)
			least = other;
	}
	if (ranks_of(m) == NULL)
		give_up();
	cq_comm *up = origin->counted ? comm_numbered(t, origin->parent) : NULL;
	cq_lock();
	if (m->number == 0) {
		m->hook_key = WORLD_KEY;
	} else if (m->number == 1) {
		m->hook_key = mix(WORLD_KEY + 1, (uint64_t)cq.rank);
	} else if (up != NULL) {
		m->hook_key = mix(mix(mix(up->hook_key, 1), origin->instance), (uint64_t)(int64_t)least);
	} else {
		uint64_t h = mix(mix(a + b, a ^ b), (uint64_t)(int64_t)origin->key) | 2; /* equal on both sides */
		uint64_t before = (uint64_t)(uintptr_t)cq_map_remove(&sim.made, h);
		cq_map_put(&sim.made, h, (void *)(uintptr_t)(before + 1));
		m->hook_key = mix(mix(h, 2), before);
	}
	if (!cq_map_put(&sim.by_number, (uint64_t)m->number + 2, m))
		give_up();
	cq_unlock();
}

/* Under cq_lock. */
static void comm_ends(cq_comm *m)
{
	if (ranks_of(m) == NULL)
		return;
	cq_map_remove(&sim.by_number, (uint64_t)m->number + 2);
	ranks_release(ranks_of(m));
	m->hook_data = NULL;
}

/* Receives. */

static int covers(const pending *p, const name *of)
{
	return p->of.key == of->key && ((p->any & CQ_F_ANY_SOURCE) || p->of.source == of->source) &&
		((p->any & CQ_F_ANY_TAG) || p->of.tag == of->tag);
}

/* A wildcard receive turns out to have received that message: from then on it is treated like other receives. */
static void settle_wildcard(pending *p, int rank, int tag)
{
	if (p->any != 0 && p->listed)
		list_remove(&sim.wild, p);
	else if (p->listed)
		return;
	p->any = 0;
	p->of.source = world_rank(p->ranks, rank);
	p->of.tag = tag;
	if (p->arrives == NO_TIME && p->of.source != OUTSIDE)
		list_put(&sim.posted[bucket(&p->of)], p);
}

/* Determines what pending wildcards have received that were posted earlier and would have taken this message; returns
 * 0 if that is not known yet. */
static int query_wildcards(const name *of, uint64_t order)
{
	for (pending *p = sim.wild.first, *next; p != NULL && p->order < order; p = next) {
		MPI_Status st;
		int flag = 0;
		next = p->next;
		if (!covers(p, of) || cq.locked)
			continue;
		if (cq_p.Request_get_status(p->request, &flag, &st) != MPI_SUCCESS)
			continue;
		if (!flag)
			return 0;
		if (cq_status_cancelled(&st))
			list_remove(&sim.wild, p);
		else
			settle_wildcard(p, st.MPI_SOURCE, st.MPI_TAG);
	}
	return 1;
}

/* Finds the event of a message: for a receive posted at that place in order (p; NULL: in no list), or for a probe
 * (look), which leaves the event. Returns 0 if it has not arrived yet. */
static int settle(const name *of, uint64_t order, pending *p, int look, int64_t *arrives)
{
	pendings *l = &sim.posted[bucket(of)];
	event **at, *before;
	if (!query_wildcards(of, order))
		return 0;
	for (pending *q = l->first, *next; q != NULL && q->order < order; q = next) {
		next = q->next;
		if (!is_equal(&q->of, of))
			continue;
		at = event_find(of, &before);
		if (*at == NULL)
			return 0;
		q->arrives = event_take(at, before);
		list_remove(l, q);
		if (q->freed)
			pending_end(q);
	}
	at = event_find(of, &before);
	if (*at == NULL)
		return 0;
	*arrives = look ? (*at)->time : event_take(at, before);
	if (p != NULL && p->listed)
		list_remove(list_of(p), p);
	return 1;
}

static int64_t arrival(const name *of, uint64_t order, pending *p, int look)
{
	int64_t time = NO_TIME;
	waiting w = {0};
	while (!sim.gone) {
		lock();
		int done = settle(of, order, p, look, &time);
		if (!done) {
			take_arrived();
			done = settle(of, order, p, look, &time);
		}
		unlock();
		if (done)
			break;
		rest_between(&w);
	}
	return time;
}

static void reach(cq_thread *t, int64_t time)
{
	if (time > virtual_of(t)->arrives)
		virtual_of(t)->arrives = time;
}

/* Matches by choice are those of receives and probes from any source or with any tag, and of the completions that
 * choose: Waitany, Waitsome, Testany and Testsome. A match is out of virtual-time order if its message arrives before
 * that of a match by choice in an earlier call of the rank. */
static void choice(int64_t time, int64_t before)
{
	if (time == NO_TIME)
		return;
	lock();
	sim.by_choice++;
	sim.out_of_order += time < before;
	if (time > sim.chosen)
		sim.chosen = time;
	unlock();
}

static uint64_t next_order(void)
{
	lock();
	uint64_t order = ++sim.order;
	unlock();
	return order;
}

/* A blocking receive, or a probe, has found a message. */
static void message_received(cq_thread *t, int32_t comm, int32_t source, int32_t tag, int flags, int look)
{
	cq_comm *m = comm_numbered(t, comm);
	if (m == NULL || (flags & CQ_F_PROC_NULL) || source == CQ_NULL32 || tag == CQ_NULL32)
		return;
	name of = {m->hook_key, 0, world_rank(ranks_of(m), source), tag};
	if (of.source == OUTSIDE)
		return;
	int64_t before = sim.chosen, time = arrival(&of, look ? UINT64_MAX : next_order(), NULL, look);
	if (flags & (CQ_F_ANY_SOURCE | CQ_F_ANY_TAG))
		choice(time, before);
	reach(t, time);
}

/* An mprobe has taken a message: mrecv or imrecv will ask for it. */
static void probe_matched(cq_thread *t, const cq_call *c)
{
	cq_comm *m = comm_numbered(t, c->comm);
	if (m == NULL || c->req == 0 || c->peer == CQ_NULL32)
		return;
	name of = {m->hook_key, 0, world_rank(ranks_of(m), c->peer), c->tag};
	if (of.source == OUTSIDE)
		return;
	int64_t before = sim.chosen, time = arrival(&of, next_order(), NULL, 0);
	if (c->flags & (CQ_F_ANY_SOURCE | CQ_F_ANY_TAG))
		choice(time, before);
	reach(t, time);
	lock();
	pending *p = pending_new(c->req, WHAT_MESSAGE);
	if (p != NULL)
		p->arrives = time;
	unlock();
}

/* A receive is posted, or described for Start. */
static void post(cq_thread *t, int32_t comm, int32_t source, int32_t tag, int flags, uint32_t serial, int what,
	int partitioned)
{
	cq_comm *m = comm_numbered(t, comm);
	if (m == NULL || serial == 0 || (flags & CQ_F_PROC_NULL))
		return;
	lock();
	pending *p = pending_new(serial, what);
	if (p != NULL) {
		p->any = p->chosen = (uint8_t)(flags & (CQ_F_ANY_SOURCE | CQ_F_ANY_TAG));
		p->of = (name){m->hook_key, 0, source == CQ_NULL32 ? OUTSIDE : world_rank(ranks_of(m), source), tag};
		if (partitioned)
			p->of.key ^= PARTS_KEY;
		p->ranks = ranks_hold(ranks_of(m));
		p->request = virtual_of(t)->made;
		if (what == WHAT_RECV && (p->any || p->of.source != OUTSIDE))
			list_put(list_of(p), p);
	}
	unlock();
}

/* Sends. */

static void sent(cq_thread *t, const name *of, int64_t bytes)
{
	if (of->source == OUTSIDE)
		return;
	cq_sim_event e = {.kind = CQ_SIM_SENT, .rank = cq_world.self, .peer = of->source, .tag = of->tag, .key = of->key,
		.time_ps = virtual_of(t)->now, .bytes = bytes};
	send_to_simulator(own_simulator(), &e, sizeof e);
}

/* The call sends, or makes a request whose starts send. */
static void sends(cq_thread *t, const cq_call *c)
{
	cq_comm *m = comm_numbered(t, c->comm);
	if (m == NULL || (c->flags & CQ_F_PROC_NULL) || c->peer == CQ_NULL32)
		return;
	name of = {m->hook_key, 0, world_rank(ranks_of(m), c->peer), c->tag};
	if (virtual_of(t)->sends == CQ_SENDS) {
		sent(t, &of, virtual_of(t)->bytes);
		return;
	}
	lock();
	pending *p = c->req == 0 ? NULL : pending_new(c->req, virtual_of(t)->sends == CQ_SENDS_PARTS ? WHAT_START_PARTS :
		WHAT_START_SEND);
	if (p != NULL) {
		p->of = of;
		if (p->what == WHAT_START_PARTS)
			p->of.key ^= PARTS_KEY;
		p->bytes = virtual_of(t)->bytes;
	}
	unlock();
}

/* Collectives. */

static const uint16_t blocking[] = {
	[CQ_K_Barrier] = CQ_Barrier, [CQ_K_Bcast] = CQ_Bcast, [CQ_K_Reduce] = CQ_Reduce, [CQ_K_Allreduce] = CQ_Allreduce,
	[CQ_K_Scan] = CQ_Scan, [CQ_K_Exscan] = CQ_Exscan, [CQ_K_Reduce_scatter] = CQ_Reduce_scatter,
	[CQ_K_Reduce_scatter_block] = CQ_Reduce_scatter_block, [CQ_K_Gather] = CQ_Gather, [CQ_K_Gatherv] = CQ_Gatherv,
	[CQ_K_Scatter] = CQ_Scatter, [CQ_K_Scatterv] = CQ_Scatterv, [CQ_K_Allgather] = CQ_Allgather,
	[CQ_K_Allgatherv] = CQ_Allgatherv, [CQ_K_Alltoall] = CQ_Alltoall, [CQ_K_Alltoallv] = CQ_Alltoallv,
	[CQ_K_Alltoallw] = CQ_Alltoallw, [CQ_K_Neighbor_allgather] = CQ_Neighbor_allgather,
	[CQ_K_Neighbor_allgatherv] = CQ_Neighbor_allgatherv, [CQ_K_Neighbor_alltoall] = CQ_Neighbor_alltoall,
	[CQ_K_Neighbor_alltoallv] = CQ_Neighbor_alltoallv, [CQ_K_Neighbor_alltoallw] = CQ_Neighbor_alltoallw,
};

static void enter(cq_thread *t, const pending *p)
{
	cq_sim_event e = {.kind = CQ_SIM_ENTERED, .call = p->call, .rank = cq_world.self, .peer = p->peers,
		.flags = p->flags,
		.key = p->of.key, .n = p->of.n, .time_ps = virtual_of(t)->now, .bytes = p->bytes, .received = p->received};
	send_to_simulator((int)(p->of.key % (uint64_t)cq_world.sims), &e, sizeof e);
}

/* Takes the end time of a collective; returns 0 if it is not known yet. */
static int take_end(const name *of, int64_t *time)
{
	event *before, **at = event_find(of, &before);
	if (*at == NULL)
		return 0;
	*time = event_take(at, before);
	return 1;
}

static int64_t wait_for_end(const name *of)
{
	int64_t time = NO_TIME;
	waiting w = {0};
	while (!sim.gone) {
		lock();
		take_arrived();
		int done = take_end(of, &time);
		unlock();
		if (done)
			break;
		rest_between(&w);
	}
	return time;
}

/* Reports whether an operation completes on no rank before all ranks have entered it: each needs data from every
 * other, and the data is not empty. */
static int needs_all(int call, const cq_comm *m, const cq_coll *o)
{
	uint64_t not = CQ_FACT_ROOTED | CQ_FACT_SCAN | CQ_FACT_NEIGHBORHOOD | CQ_FACT_VARIABLE_COUNTS;
	if (m->remote != 0 || !has_facts(call, CQ_FACT_COLLECTIVE, not))
		return 0;
	return call == CQ_Barrier || o->sbytes > 0 || o->rbytes > 0;
}

/* A collective of the call: it is done, begun, or described for Start. */
static void collective(cq_thread *t, const cq_call *c, const cq_coll *o)
{
	cq_comm *m = comm_numbered(t, c->comm);
	if (m == NULL)
		return;
	pending d = {.of = {m->hook_key, o->instance, COLLECTIVE, 0}, .call = blocking[virtual_of(t)->collective - 1],
		.peers = m->size + m->remote - (ranks_of(m) != NULL ? ranks_of(m)->outside : 0),
		.bytes = o->sbytes, .received = o->rbytes};
	d.needs_all = (uint8_t)needs_all(d.call, m, o);
	if ((c->flags & CQ_F_ROOT) || (c->peer != CQ_NULL32 && m->remote == 0 && c->peer == m->rank))
		d.flags = CQ_SIM_ROOT;
	int later = virtual_of(t)->sends == CQ_SENDS_LATER;
	if (!later)
		enter(t, &d);
	if (c->req == 0) {
		if (!later)
			reach(t, wait_for_end(&d.of));
		return;
	}
	lock();
	pending *p = pending_new(c->req, later ? WHAT_START_COLL : WHAT_COLL);
	if (p != NULL) {
		d.order = p->order;
		d.serial = p->serial;
		d.what = p->what;
		d.arrives = NO_TIME;
		*p = d;
	}
	unlock();
}

/* Persistent requests. */

static void start(cq_thread *t, uint32_t serial, uint32_t template_)
{
	lock();
	pending *from = pending_of(template_), *p = NULL, d;
	static const uint8_t becomes[] = {[WHAT_START_RECV] = WHAT_RECV, [WHAT_START_COLL] = WHAT_COLL,
		[WHAT_START_PARTS] = WHAT_PARTS};
	if (from == NULL) {
		unlock();
		return;
	}
	/* the starts of one request share the instance; these bits tell them apart */
	if (from->what == WHAT_START_COLL)
		from->of.n += (uint64_t)1 << 40;
	d = *from;
	if (from->what != WHAT_START_SEND && (p = pending_new(serial, becomes[from->what])) != NULL) {
		d.order = p->order;
		d.serial = serial;
		d.what = p->what;
		d.ranks = ranks_hold(from->ranks);
		*p = d;
		if (p->what == WHAT_RECV && (p->any || p->of.source != OUTSIDE))
			list_put(list_of(p), p);
	}
	unlock();
	if (d.what == WHAT_START_SEND)
		sent(t, &d.of, d.bytes);
	else if (d.what == WHAT_COLL)
		enter(t, &d);
}

/* Sets the number of partitions of a send; its size so far is that of one partition. */
static void set_partitions(uint32_t template_, int64_t n)
{
	lock();
	pending *p = pending_of(template_);
	if (p != NULL) {
		p->received = n;
		p->bytes *= n;
	}
	unlock();
}

/* Partitions of a send are ready: it leaves when the last one is. */
static void partitions_ready(cq_thread *t, uint32_t serial, int64_t n)
{
	lock();
	pending *p = pending_of(serial);
	int leaves = p != NULL && p->what == WHAT_PARTS && (p->received -= n) <= 0;
	name of = {0};
	int64_t bytes = 0;
	if (leaves) {
		of = p->of;
		bytes = p->bytes;
		pending_end(p);
	}
	unlock();
	if (leaves)
		sent(t, &of, bytes);
}

/* Completions. */

enum { HOW_WAITS = 1, HOW_CHOOSES = 2, HOW_LOOKS = 4 };

/* Notes a request that the call has completed; if it is a wildcard, its message is now known. */
static void ended(cq_thread *t, uint32_t serial, int32_t source, int32_t tag, uint32_t flags)
{
	lock();
	pending *p = pending_of(serial);
	if (p != NULL && (p->what == WHAT_RECV || p->what == WHAT_COLL)) {
		p->cancelled = (flags & CQ_F_CANCELLED) != 0;
		if (p->what == WHAT_RECV && !p->cancelled && p->any != 0 && source != CQ_NULL32 && tag != CQ_NULL32)
			settle_wildcard(p, source, tag);
		p->after = NULL;
		if (virtual_of(t)->ended == NULL)
			virtual_of(t)->ended_end = &virtual_of(t)->ended;
		*virtual_of(t)->ended_end = p;
		virtual_of(t)->ended_end = &p->after;
	}
	unlock();
}

static void drop(pending *p)
{
	lock();
	if (p->listed)
		list_remove(list_of(p), p);
	pending_end(p);
	unlock();
}

static void settle_receive(cq_thread *t, pending *p, int how, int64_t before)
{
	int64_t time = p->arrives;
	if (!p->cancelled && p->any == 0 && p->of.source != OUTSIDE && time == NO_TIME)
		time = arrival(&p->of, p->order, p, 0);
	if (!p->cancelled && !(how & HOW_LOOKS) && (p->chosen || (how & HOW_CHOOSES)))
		choice(time, before);
	if (!p->cancelled)
		reach(t, time);
	if (how & HOW_LOOKS)
		p->arrives = time;
	else
		drop(p);
}

/* Ends a collective that a Test found complete but whose end the simulator does not know yet; without this rank it
 * might never know. */
static void settle_collective(cq_thread *t, pending *p, int how)
{
	int64_t time = p->arrives;
	int done = time != NO_TIME;
	if (!done && ((how & HOW_WAITS) || p->needs_all)) {
		time = wait_for_end(&p->of);
	} else if (!done) {
		lock();
		take_arrived();
		done = take_end(&p->of, &time);
		if (!done && !(how & HOW_LOOKS)) {
			sim.early++;
			name of = p->of;
			of.source = NOT_WANTED;
			event_put(of, 0);
		}
		unlock();
	}
	reach(t, time);
	if (how & HOW_LOOKS)
		p->arrives = time;
	else
		drop(p);
}

static void settle_ended(cq_thread *t, int how)
{
	int64_t before = sim.chosen;
	for (pending *p = virtual_of(t)->ended, *next; p != NULL; p = next) {
		next = p->after;
		if (p->what == WHAT_COLL)
			settle_collective(t, p, how);
		else
			settle_receive(t, p, how, before);
	}
	virtual_of(t)->ended = NULL;
}

static int how_of(int call)
{
	uint64_t facts = cq_facts_of(call);
	if (!(facts & CQ_FACT_TESTS))
		return facts & CQ_FACT_ANY ? HOW_WAITS | HOW_CHOOSES : HOW_WAITS;
	if (!(facts & CQ_FACT_COMPLETES))
		return facts == CQ_FACT_TESTS ? HOW_LOOKS : HOW_WAITS;
	return facts & CQ_FACT_ANY ? HOW_CHOOSES : 0;
}

/* A request is freed. A receive still takes its event, but a wildcard's event can no longer be known. */
static void request_freed(uint32_t serial)
{
	lock();
	pending *p = pending_of(serial);
	if (p != NULL) {
		if (p->what == WHAT_RECV && p->any == 0 && p->listed) {
			p->freed = 1;
		} else {
			if (p->listed)
				list_remove(list_of(p), p);
			pending_end(p);
		}
	}
	unlock();
}

/* The end of a call. */

/* Reads the slots behind the CALL slot. */
static void read_slots(cq_thread *t, const cq_call *c, const uint8_t *from)
{
	for (const uint8_t *p = from; p < t->next; p += CQ_SLOT_BYTES) {
		const void *slot = p;
		switch (((const cq_call *)slot)->kind) {
		case CQ_DONE:
			for (int i = 0; i < ((const cq_done *)slot)->n; i++) {
				const cq_done_entry *e = &((const cq_done *)slot)->done[i];
				ended(t, e->req, e->source, e->tag, e->flags);
			}
			break;
		case CQ_START:
			for (int i = 0; i < ((const cq_start *)slot)->n; i++)
				start(t, ((const cq_start *)slot)->start[i].req, ((const cq_start *)slot)->start[i].template_);
			break;
		case CQ_COLL:
			if (virtual_of(t)->collective != 0)
				collective(t, c, slot);
			break;
		case CQ_WIDE:
			if (((const cq_wide *)slot)->what == 2)
				virtual_of(t)->message = (uint32_t)((const cq_wide *)slot)->value;
			else if (((const cq_wide *)slot)->what == 3 && virtual_of(t)->sends == CQ_SENDS_PARTS)
				set_partitions(c->req, ((const cq_wide *)slot)->value);
			break;
		case CQ_SIDE:
			if (has_facts(c->call, CQ_FACT_BLOCKING, 0))
				message_received(t, c->comm, ((const cq_side *)slot)->peer, ((const cq_side *)slot)->tag,
					((const cq_side *)slot)->flags, 0);
			else
				post(t, c->comm, ((const cq_side *)slot)->peer, ((const cq_side *)slot)->tag,
					((const cq_side *)slot)->flags, c->req, WHAT_RECV, 0);
			break;
		}
	}
}

/* A receive takes the message of an mprobe; its time came with the probe. */
static void take_matched(cq_thread *t, const cq_call *c)
{
	lock();
	pending *p = pending_of(virtual_of(t)->message);
	if (p != NULL) {
		int64_t time = p->arrives;
		pending_end(p);
		p = has_facts(c->call, CQ_FACT_NONBLOCKING, 0) && c->req != 0 ? pending_new(c->req, WHAT_RECV) : NULL;
		if (p != NULL)
			p->arrives = time;
	}
	unlock();
}

static void read_receive(cq_thread *t, const cq_call *c)
{
	uint64_t facts = cq_facts_of(c->call);
	if (facts & CQ_FACT_MATCHED)
		take_matched(t, c);
	else if (facts & CQ_FACT_PERSISTENT)
		post(t, c->comm, c->peer, c->tag, c->flags, c->req, WHAT_START_RECV, (facts & CQ_FACT_PARTITIONED) != 0);
	else if (facts & CQ_FACT_NONBLOCKING)
		post(t, c->comm, c->peer, c->tag, c->flags, c->req, WHAT_RECV, 0);
	else
		message_received(t, c->comm, c->peer, c->tag, c->flags, 0);
}

/* Reads the CALL slot. */
static void read_call(cq_thread *t, const cq_call *c)
{
	uint64_t facts = cq_facts_of(c->call);
	if (c->call == CQ_Request_free)
		request_freed(c->req);
	else if ((facts & CQ_FACT_COMPLETES) || facts == CQ_FACT_TESTS)
		ended(t, c->req, c->peer, c->tag, c->flags);
	else if (!(facts & CQ_FACT_POINT_TO_POINT) || (facts & CQ_FACT_SENDS))
		return;
	else if (facts & CQ_FACT_RECEIVES)
		read_receive(t, c);
	else if ((facts & CQ_FACT_PROBES) && (facts & CQ_FACT_MATCHED))
		probe_matched(t, c);
	else if (facts & CQ_FACT_PROBES)
		message_received(t, c->comm, c->peer, c->tag, c->flags, 1);
	else if ((facts & CQ_FACT_PARTITIONED) && !(facts & CQ_FACT_TESTS)) /* MPI_Pready and its variants */
		partitions_ready(t, c->req, c->count);
}

static void note_send(cq_thread *t, int how, int64_t bytes)
{
	virtual_of(t)->sends = how;
	virtual_of(t)->bytes = bytes;
}

static void note_collective(cq_thread *t, int kind, int persistent)
{
	virtual_of(t)->collective = kind + 1;
	virtual_of(t)->sends = persistent ? CQ_SENDS_LATER : CQ_SENDS_NOT;
}

static void note_request(cq_thread *t, MPI_Request r)
{
	virtual_of(t)->made = r;
}

/* Reports whether a call that sends may block until the message is received. */
static int waits_for_receiver(int call)
{
	return has_facts(call, CQ_FACT_POINT_TO_POINT | CQ_FACT_BLOCKING | CQ_FACT_SENDS, CQ_FACT_BUFFERED);
}

/* A call that sends and may wait for the receiver is about to begin. If it fails, its event is not taken back. */
static void send_begins(cq_thread *t)
{
	const cq_call *c = t->call;
	if (!waits_for_receiver(c->call) || !sim.on || sim.gone || c->count < 0 || c->tag < 0)
		return;
	sends(t, c);
	virtual_of(t)->sends = CQ_SENDS_NOT;
}

/* The slots of a long call leave the buffer before it ends. */
static void call_leaves_buffer(cq_thread *t)
{
	if (sim.on && !sim.gone)
		read_slots(t, t->call_off != 0 ? &t->trash : t->call, t->call_off != 0 ? t->window : (uint8_t *)t->call +
			CQ_SLOT_BYTES);
}

static void call_ends(cq_thread *t, int err)
{
	if (!sim.on)
		return;
	if (!sim.gone && t->call != NULL) {
		const cq_call *c = t->call;
		virtual_of(t)->arrives = NO_TIME;
		if (err == MPI_SUCCESS && virtual_of(t)->sends != CQ_SENDS_NOT && virtual_of(t)->collective == 0)
			sends(t, c);
		if (err == MPI_SUCCESS || has_facts(c->call, CQ_FACT_COMPLETES, 0))
			read_slots(t, c, t->call_off != 0 ? t->window : (const uint8_t *)c + CQ_SLOT_BYTES);
		if (err == MPI_SUCCESS)
			read_call(t, c);
		if (virtual_of(t)->ended != NULL)
			settle_ended(t, how_of(c->call));
		if (virtual_of(t)->arrives > virtual_of(t)->now)
			virtual_of(t)->now = virtual_of(t)->arrives;
	}
	virtual_of(t)->sends = virtual_of(t)->collective = 0;
	if (virtual_of(t)->now > __atomic_load_n(&sim.latest, __ATOMIC_RELAXED))
		__atomic_store_n(&sim.latest, virtual_of(t)->now, __ATOMIC_RELAXED);
}

/* Records. */

/* Sends n bytes that belong at off in the thread's file; an event fits before p. The time that this takes is excluded
 * from compute time, before and after the call alike. */
static void send_records(cq_thread *t, const void *p, size_t n, int64_t off)
{
	cq_sim_event *e = (cq_sim_event *)((uintptr_t)p - sizeof *e), saved = *e;
	uint64_t tick = cq_tick();
	struct timespec a = {0, 0}, b = {0, 0};
	if (n == 0 || sim.gone)
		return;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	*e = (cq_sim_event){.kind = CQ_SIM_RECORDS, .rank = cq_world.self, .peer = t->number, .n = (uint64_t)off,
		.bytes = (int64_t)n};
	send_to_simulator(own_simulator(), e, sizeof *e + n);
	*e = saved;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	if (t != cq_mine)
		return;
	t->last += cq_tick() - tick;
	t->cpu += (int64_t)(b.tv_sec - a.tv_sec) * 1000000000 + (b.tv_nsec - a.tv_nsec);
}

/* Begin and end. */

static double read_number(const char *variable, double preset)
{
	const char *s = getenv(variable);
	char *end = NULL;
	double x = s != NULL ? strtod(s, &end) : preset;
	if (x > 0 && (end == NULL || *end == 0))
		return x;
	if (cq.rank == 0)
		cq_print("commq: %s=%s is not a number above 0; %g is used\n", variable, s, preset);
	return preset;
}

static void begin(void)
{
	double cpus = read_number("COMMQ_SIM_CPUS", cq_world.apps);
	sim.ratio = read_number("COMMQ_SIM_CPU_RATIO", 1) * (cpus < cq_world.apps ? cpus / cq_world.apps : 1);
	if (!cq_world.split)
		return;
	sim.latest = CQ_VIRTUAL_START;
	if (cq.clock == CQ_CLOCK_NONE)
		sim.compute_ns = dlsym(RTLD_DEFAULT, "commq_compute_ns");
	sim.on = 1;
	cq.common_clock = 1;
	listen();
	cq_sim_event e = {.kind = CQ_SIM_HELLO, .rank = cq_world.self, .n = cq.job, .bytes = CQ_SIM_VERSION,
		.peer = cq_world.apps};
	send_to_simulator(own_simulator(), &e, sizeof e);
}

static void give_back(void)
{
	sim.on = 0;
	cq.common_clock = 0;
}

/* Waits until the records are written, but only briefly: the process is failing. */
static void sync_records(void)
{
	waiting w = {0};
	int before = sim.synced;
	uint64_t until = cq_monotonic() + SYNC_NS;
	if (!sim.on || sim.gone)
		return;
	cq_sim_event e = {.kind = CQ_SIM_SYNC, .rank = cq_world.self};
	send_to_simulator(own_simulator(), &e, sizeof e);
	while (!sim.gone && sim.synced == before && cq_monotonic() < until)
		receive_and_rest(&w);
}

/* Tells all simulators that nothing more comes from this rank. */
static void tell_left(int how)
{
	cq_sim_event e = {.kind = CQ_SIM_LEFT, .rank = cq_world.self, .peer = how, .time_ps = sim.latest,
		.n = sim.out_of_order,
		.bytes = (int64_t)sim.by_choice, .received = (int64_t)sim.early};
	int gone = sim.gone;
	sim.gone = 0; /* a simulator without a process still counts those that leave */
	for (int k = 0; k < cq_world.sims; k++)
		send_to_simulator(k, &e, sizeof e);
	sim.gone |= gone;
}

/* Before PMPI_Finalize, with the thread inside MPI_Finalize. When it returns, everything is recorded, and every rank
 * has left. */
static void leave_all(cq_thread *t)
{
	waiting w = {0};
	if (!cq_world.split)
		return;
	if (t != NULL && sim.on) {
		*(volatile uint64_t *)&t->call->t1 = (uint64_t)virtual_of(t)->now;
		for (cq_thread *u = cq.list; u != NULL; u = u->link) {
			if (__atomic_exchange_n(&u->closing, 1, __ATOMIC_ACQ_REL))
				continue;
			cq_header_end(u, CQ_ENDED_FINALIZED);
			cq_sink_close(u);
			cq_set_pending(u, CQ_PENDING_DROP);
		}
	}
	int on = sim.on;
	if (!sim.has_request)
		listen();
	tell_left(on ? CQ_ENDED_FINALIZED : CQ_ENDED_NOT);
	while (sim.has_request && !sim.deaf && sim.over < cq_world.sims) {
		lock();
		take_arrived();
		unlock();
		cq_sim_rest(++w.n < 1000 ? 0 : UINT64_MAX);
	}
	if (sim.has_request) {
		cq_p.Cancel(&sim.receiving);
		cq_p.Wait(&sim.receiving, MPI_STATUS_IGNORE);
		sim.has_request = 0;
	}
	sim.on = 0;
	cq_world_free();
}

/* exit without MPI_Finalize; the records have been sent. */
static void exit_unfinalized(void)
{
	sync_records();
	if (sim.on && !sim.gone)
		tell_left(CQ_ENDED_NOT);
	sim.on = 0;
}

/* A forked child. */
static void forget_in_child(void)
{
	sim.on = 0;
}

/* The hooks. */

static int meet(void)
{
	if (cq_world_meet(CQ_WORLD_APP) == CQ_WORLD_SIM)
		cq_bridge_in_init();
	return cq_world.split;
}

static int takes_records(void)
{
	return cq_world.split;
}

static const cq_hook_table hooks = {
	.meet = meet, .takes_records = takes_records, .recording_begins = begin, .recording_fails = give_back,
	.thread_begins = thread_begins, .finalizes = leave_all, .aborts = sync_records, .exits = exit_unfinalized,
		.forked = forget_in_child,
	.init_is_done = cq_world_begun, .finalize_is_put_off = cq_world_stays, .session_opens = cq_world_session_opens,
	.time = virtual_time, .call_begins = call_begins, .poll_fails = advance, .call_abandoned = call_abandoned,
	.call_ends = call_ends, .call_is_closed = call_is_closed, .header = header, .clock_pair = clock_pair,
	.sends = note_send, .send_begins = send_begins, .collective = note_collective, .request_made = note_request,
	.comm_begins = comm_begins, .comm_ends = comm_ends,
	.records = send_records, .call_leaves_buffer = call_leaves_buffer,
};

const cq_hook_table *const cq_hooks = &hooks;

/* Open MPI's ranks can be told to yield while they wait. Linux 6.18 then keeps one of them off its core for up to a
 * minute while others yield (5 ranks and 2 simulators on two cores: every third job), and all wait for it. So waiting
 * ranks sleep instead. */
CQ_EXPORT int sched_yield(void)
{
	struct timespec nap = {0, 1000};
	int e = errno;
	nanosleep(&nap, NULL);
	errno = e;
	return 0;
}

/* MPI_Wtime returns the time of the call, which takes none. Inside a call it returns the time of entry. */

CQ_HOT double wtime(void)
{
	cq_thread *t = cq_enter();
	if (t == NULL) {
		t = sim.on ? cq_mine : NULL;
		return t != NULL ? (double)virtual_of(t)->now / 1e12 : cq_p.Wtime();
	}
	if (!sim.on) {
		cq_leave(t);
		return cq_p.Wtime();
	}
	uint64_t compute = cq_compute_time(t);
	t->gathered = compute;
	t->last = t->t0;
	advance(t, compute);
	call_is_closed(t);
	cq_leave(t);
	return (double)virtual_of(t)->now / 1e12;
}

static double wtick(void)
{
	return sim.on ? 1e-12 : cq_p.Wtick();
}

CQ_EXPORT double MPI_Wtime(void)
{
	cq_resolve();
	return wtime();
}

CQ_EXPORT double MPI_Wtick(void)
{
	cq_resolve();
	return wtick();
}

/* MPICH's mpi_wtime_ calls MPI_Wtime, and so does Open MPI's mpi_f08. */
#if CQ_OPENMPI
CQ_EXPORT double mpi_wtime_(void)
{
	cq_resolve();
	return wtime();
}

CQ_EXPORT double mpi_wtick_(void)
{
	cq_resolve();
	return wtick();
}
#else
CQ_EXPORT double mpi_wtime_f08_(void)
{
	cq_resolve();
	return wtime();
}

CQ_EXPORT double mpi_wtick_f08_(void)
{
	cq_resolve();
	return wtick();
}
#endif

#endif
