/* The virtual clock (docs/method/simulator-ranks.md; Figures 2 and 3 of the paper): what a rank of the program tells the
 * simulator ranks about its messages and collectives, and what it sets its clock by. Times are picoseconds since
 * MPI_Init, CQ_VIRTUAL_START there; each thread has a clock, which begins at the latest of the process.
 *
 * It happens where a recorded call ends, and what the call did is read from its slots: see cq_sim_close. Only what a blocking send
 * does is told before the call: it may wait until a rank receives that has found the message by a probe, and waits for its event. A send leaves
 * at the time of its call's entry and takes none itself. A receive ends when its message arrives, or at once where that has
 * been. A call that completes several things ends with the latest of them. A collective ends when the simulator says,
 * a neighbourhood collective like one of all ranks of its communicator. Communicator constructors, one-sided communication
 * and I/O take no time.
 *
 * A message's event is found by what MPI promises about order: those of one sender, communicator and tag come in the order of
 * the sends, and are received in the order in which the receives were posted. So the event of a message is the first that is
 * left for its (communicator, source, tag), after those that belong to receives that were posted before and are pending:
 * these are handed out first. Whether a pending receive from any source, or with any tag, is one of them is asked of
 * MPI: where a later receive got a message that it would have taken, it has one already. With MPI_THREAD_MULTIPLE it is not
 * asked, because another thread may be completing it. */
#include "recorders.h"

#if CQ_SIM

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "bridge.h"
#include "sim.h"
#include "sink.h"

#define BUCKETS 1024
#define PING_NS 10000000000u /* how long a rank waits until it asks whether the simulators are there */
#define DEAF_NS 60000000000u /* and then for the answer */
#define SYNC_NS 5000000000u  /* how long a rank that ends badly waits until its records are written */
#define NAP_AFTER_NS 1000000u
#define NO_TIME INT64_MIN
#define WORLD_KEY 0x636f6d6d71u
#define PARTS_KEY 0x7061727469u /* partitioned messages match among themselves */

int cq_sim_on;

/* A message, or an operation of a collective (source is COLLECTIVE, n the operation). */
typedef struct {
	uint64_t key, n;
	int32_t source, tag;
} name;

enum { COLLECTIVE = -2, NOT_WANTED = -3, OUTSIDE = -1 };

/* What a simulator has said about a message or collective. */
typedef struct event event;
struct event {
	event *next;
	name of;
	int64_t time;
};

/* A request of the program: an active receive, collective or partitioned send, a message of mprobe, or what a persistent
 * request is made of. */
struct cq_sim_pending {
	cq_sim_pending *next;  /* in its bucket, the list of wildcards, or of free ones */
	cq_sim_pending *after; /* of those that a call has completed */
	name of;               /* source and tag as posted, then as got; of a send its destination */
	uint64_t order;        /* of posting */
	int64_t arrives;       /* once its event is there; else NO_TIME */
	int64_t bytes, received; /* as in ENTERED, of what Start starts; of a partitioned send bytes, and partitions to come */
	cq_sim_ranks *ranks;
	MPI_Request request;   /* of a wildcard */
	uint32_t serial;
	uint32_t flags;
	int32_t peers;
	uint16_t call;
	uint8_t what;          /* WHAT_* */
	uint8_t any;           /* CQ_F_ANY_SOURCE, CQ_F_ANY_TAG, until it is known what it got */
	uint8_t chosen;        /* it was posted with either */
	uint8_t freed, cancelled, listed;
	uint8_t together;      /* a collective that is complete for nobody before all have entered it */
};

enum { WHAT_RECV, WHAT_COLL, WHAT_MESSAGE, WHAT_PARTS, WHAT_START_SEND, WHAT_START_RECV, WHAT_START_COLL, WHAT_START_PARTS };

typedef struct {
	event *first, *last;
} events;

typedef struct {
	cq_sim_pending *first, *last;
} pendings;

static struct {
	int gone;
	int deaf; /* a simulator rank does not answer */
	uint32_t lock;
	double ratio;
	long long *said; /* COMMQ_CLOCK=none: compute ns that the program says itself, in a variable of its own; NULL: it does not */
	int64_t latest; /* of all clocks */
	uint64_t order;
	uint64_t by_choice, out_of_order, early; /* see CQ_SIM_LEFT */
	int64_t chosen; /* the latest arrival of a match by choice */
	events in[BUCKETS];
	pendings posted[BUCKETS];
	pendings wild;
	cq_map by_serial;  /* +2 */
	cq_map by_number;  /* of communicators, +2 */
	cq_map made;       /* how many communicators of a kind that is not counted on a parent were made, by a hash */
	event *spare_events;
	cq_sim_pending *spare_pendings;
	MPI_Request receiving;
	int has_request, synced, here, over;
	cq_sim_event got[CQ_SIM_MANY];
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

/* Nothing can be simulated any more: clocks go on by compute time alone, and nobody waits. */
static void give_up(void)
{
	sim.gone = 1;
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

static int alike(const name *a, const name *b)
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

/* The first event of that name: where the pointer to it stands, NULL in it where there is none; before is the one before. */
static event **event_find(const name *of, event **before)
{
	event **at = &sim.in[bucket(of)].first;
	for (*before = NULL; *at != NULL && !alike(&(*at)->of, of); at = &(*at)->next)
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

static cq_sim_pending *pending_new(uint32_t serial, int what)
{
	cq_sim_pending *p = sim.spare_pendings;
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
	*p = (cq_sim_pending){.serial = serial, .what = (uint8_t)what, .arrives = NO_TIME, .order = ++sim.order};
	return p;
}

static void ranks_release(cq_sim_ranks *r)
{
	if (r != NULL && __atomic_sub_fetch(&r->holders, 1, __ATOMIC_ACQ_REL) == 0)
		cq_pages_free(r, r->bytes);
}

static cq_sim_ranks *ranks_hold(cq_sim_ranks *r)
{
	if (r != NULL)
		__atomic_add_fetch(&r->holders, 1, __ATOMIC_RELAXED);
	return r;
}

static void pending_end(cq_sim_pending *p)
{
	if (p->serial != 0)
		cq_map_remove(&sim.by_serial, p->serial + (uint64_t)2);
	ranks_release(p->ranks);
	p->next = sim.spare_pendings;
	sim.spare_pendings = p;
}

static cq_sim_pending *pending_of(uint32_t serial)
{
	return serial == 0 ? NULL : cq_map_get(&sim.by_serial, serial + (uint64_t)2);
}

/* Into a list in the order of posting. */
static void list_put(pendings *l, cq_sim_pending *p)
{
	cq_sim_pending **at = &l->first;
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

static void list_remove(pendings *l, cq_sim_pending *p)
{
	cq_sim_pending *before = NULL, *q = l->first;
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

static pendings *list_of(cq_sim_pending *p)
{
	return p->any != 0 ? &sim.wild : &sim.posted[bucket(&p->of)];
}

/* The channel. */

typedef struct {
	int n;
	uint64_t since;  /* when it began to be long */
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
	sim.has_request = cq_p.Irecv(sim.got, sizeof sim.got, MPI_BYTE, MPI_ANY_SOURCE, CQ_SIM_TAG, cq_world.channel, &sim.receiving) == MPI_SUCCESS;
	if (!sim.has_request)
		give_up();
}

/* Takes in what has come; under the lock. */
static void hear(void)
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
		size_t n = (size_t)cq_status_bytes(&st) / sizeof sim.got[0];
		for (size_t i = 0; i < n; i++)
			take_in(&sim.got[i]);
		listen();
	}
}

static int simulator(int k)
{
	return cq_world.ranks[cq_world.apps + k];
}

static int own(void)
{
	return cq_world.self % cq_world.sims;
}

/* Asks all simulators whether they are there, and says so when they are not. */
static void ping(waiting *p, uint64_t now)
{
	MPI_Request r;
	if (p->pinged != 0 && sim.here - p->here >= cq_world.sims) {
		p->since = now;
		p->pinged = 0;
		return;
	}
	if (p->pinged != 0 && now - p->pinged > DEAF_NS) {
		cq_say("commq: rank %d: a simulator rank does not answer; this rank goes on without virtual time, and nothing more of it is recorded\n", cq.rank);
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
		if (cq_p.Isend(&sim.ping, sizeof sim.ping, MPI_BYTE, simulator(k), CQ_SIM_TAG, cq_world.channel, &r) == MPI_SUCCESS)
			cq_p.Request_free(&r);
	}
}

/* Lets others have the core, which they may need for what we wait for. Linux lets a thread that yields wait until all others have
 * used up as much time as it was ever granted, minutes after some thousand yields; one that sleeps gets its core back at once. */
void cq_sim_rest(uint64_t idle_ns)
{
	struct timespec nap = {0, idle_ns > NAP_AFTER_NS ? 50000 : 1000};
	nanosleep(&nap, NULL);
}

/* Between two looks at the channel. */
static void rest(waiting *p)
{
	if (++p->n < 20) /* it often comes at once */
		return;
	uint64_t now = cq_monotonic();
	if (p->since == 0)
		p->since = now;
	cq_sim_rest(now - p->since);
	lock();
	ping(p, now);
	unlock();
}

static void hear_and_rest(waiting *p)
{
	lock();
	hear();
	unlock();
	rest(p);
}

/* Sends to a simulator. What comes meanwhile is taken in, so that the two never wait for each other. */
static void tell(int k, const void *p, size_t n)
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
		if (sim.gone && ++w.n > 100000) /* nobody takes it any more */
			return;
		hear_and_rest(&w);
	}
}

/* The clock. */

void cq_sim_compute(cq_thread *t, uint64_t compute)
{
	if (!cq_sim_on)
		return;
	uint64_t ns = compute - t->vt.counted;
	if (sim.said != NULL) {
		ns += (uint64_t)*sim.said;
		*sim.said = 0;
	}
	t->vt.now += sim.ratio == 1 ? (int64_t)ns * 1000 : (int64_t)((double)ns * 1000 / sim.ratio + 0.5);
	t->vt.counted = compute;
}

void cq_sim_thread(cq_thread *t)
{
	t->vt.now = cq_sim_on ? __atomic_load_n(&sim.latest, __ATOMIC_RELAXED) : 0;
}

/* What happened since the program's call returned is not its compute time. */
void cq_sim_resume(cq_thread *t)
{
	uint64_t now = cq_tick(), d = now - t->last;
	if (!cq_sim_on)
		return;
	if (CQ_LIKELY(d <= cq.short_ticks)) {
		t->shorts += d;
		t->last = now;
	} else {
		uint64_t t0 = t->t0, t1 = t->t1;
		t->t0 = t->last;
		t->t1 = now;
		cq_long_call(t);
		t->t0 = t0;
		t->t1 = t1;
	}
}

/* Communicators. */

static cq_sim_ranks *ranks_new(MPI_Group g, uint64_t *hash, int *least)
{
	int n = 0;
	cq_p.Group_size(g, &n);
	size_t bytes = sizeof(cq_sim_ranks) + 2 * (size_t)n * sizeof(int);
	cq_sim_ranks *r = cq_pages(bytes);
	if (r == NULL)
		return NULL;
	int *in = r->list + n;
	for (int i = 0; i < n; i++)
		in[i] = i;
	cq_p.Group_translate_ranks(g, n, in, cq.world_group, r->list);
	r->holders = r->same = 1;
	r->n = n;
	r->bytes = bytes;
	*hash = (uint64_t)n;
	*least = INT32_MAX;
	for (int i = 0; i < n; i++) {
		if (r->list[i] == MPI_UNDEFINED) {
			r->list[i] = OUTSIDE;
			r->outside++;
		}
		r->same &= r->list[i] == i;
		*hash = mix(*hash, (uint64_t)(int64_t)r->list[i]);
		if (r->list[i] < *least)
			*least = r->list[i];
	}
	if (r->same) { /* the list is not needed, but for its first page */
		size_t page = (size_t)sysconf(_SC_PAGESIZE);
		size_t keep = (sizeof *r + page - 1) / page * page;
		if (bytes > keep && cq_pages_free((char *)r + keep, (bytes + page - 1) / page * page - keep) == 0)
			r->bytes = keep;
	}
	return r;
}

static int world_rank(const cq_sim_ranks *r, int rank)
{
	if (r == NULL || rank < 0 || rank >= r->n)
		return OUTSIDE;
	return r->same ? rank : r->list[rank];
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

/* A communicator has been made. Its key is a hash of what all members know alike, as ADR 0001 has it: the parent, the
 * operation on it, and the lowest rank in MPI_COMM_WORLD; where the operation is not counted on a parent that all have, the members,
 * the tag, and how many such there were before. */
void cq_sim_comm(cq_thread *t, cq_comm *m, MPI_Comm like, int32_t parent, uint64_t instance, int key)
{
	uint64_t a = 0, b = 0;
	int least = INT32_MAX, other = INT32_MAX;
	MPI_Group g;
	if (!cq_sim_on || m == NULL)
		return;
	cq_p.Comm_group(like, &g);
	m->ranks = ranks_new(g, &a, &least);
	cq_p.Group_free(&g);
	if (m->remote != 0) {
		int outside = m->ranks != NULL ? m->ranks->outside : 0;
		ranks_release(m->ranks);
		cq_p.Comm_remote_group(like, &g);
		m->ranks = ranks_new(g, &b, &other);
		cq_p.Group_free(&g);
		if (m->ranks != NULL)
			m->ranks->outside += outside;
		if (other < least)
			least = other;
	}
	if (m->ranks == NULL)
		give_up();
	cq_comm *up = t->vt.counted_new ? comm_numbered(t, parent) : NULL;
	t->vt.counted_new = 0;
	cq_lock();
	if (m->number == 0) {
		m->sim_key = WORLD_KEY;
	} else if (m->number == 1) {
		m->sim_key = mix(WORLD_KEY + 1, (uint64_t)cq.rank);
	} else if (up != NULL) {
		m->sim_key = mix(mix(mix(up->sim_key, 1), instance), (uint64_t)(int64_t)least);
	} else {
		uint64_t h = mix(mix(a + b, a ^ b), (uint64_t)(int64_t)key) | 2; /* the same from both sides */
		uint64_t before = (uint64_t)(uintptr_t)cq_map_remove(&sim.made, h);
		cq_map_put(&sim.made, h, (void *)(uintptr_t)(before + 1));
		m->sim_key = mix(mix(h, 2), before);
	}
	if (!cq_map_put(&sim.by_number, (uint64_t)m->number + 2, m))
		give_up();
	cq_unlock();
}

/* Under cq_lock. */
void cq_sim_comm_end(cq_comm *m)
{
	if (m->ranks == NULL)
		return;
	cq_map_remove(&sim.by_number, (uint64_t)m->number + 2);
	ranks_release(m->ranks);
	m->ranks = NULL;
}

/* Receives. */

static int covers(const cq_sim_pending *p, const name *of)
{
	return p->of.key == of->key && ((p->any & CQ_F_ANY_SOURCE) || p->of.source == of->source) && ((p->any & CQ_F_ANY_TAG) || p->of.tag == of->tag);
}

/* A wildcard turns out to have got that message: it is a receive like others from then on. */
static void known(cq_sim_pending *p, int rank, int tag)
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

/* Sees what pending wildcards that were posted before have got, where they would have taken this message; 0: not yet known. */
static int ask_wildcards(const name *of, uint64_t order)
{
	for (cq_sim_pending *p = sim.wild.first, *next; p != NULL && p->order < order; p = next) {
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
			known(p, st.MPI_SOURCE, st.MPI_TAG);
	}
	return 1;
}

/* The event of a message that a receive posted at that place in order has got (p; NULL: it is not in a list), or of one that a probe has found (look).
 * 0: it is not there yet. */
static int settle(const name *of, uint64_t order, cq_sim_pending *p, int look, int64_t *arrives)
{
	pendings *l = &sim.posted[bucket(of)];
	event **at, *before;
	if (!ask_wildcards(of, order))
		return 0;
	for (cq_sim_pending *q = l->first, *next; q != NULL && q->order < order; q = next) {
		next = q->next;
		if (!alike(&q->of, of))
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

static int64_t arrival(const name *of, uint64_t order, cq_sim_pending *p, int look)
{
	int64_t time = NO_TIME;
	waiting w = {0};
	while (!sim.gone) {
		lock();
		int done = settle(of, order, p, look, &time);
		if (!done) {
			hear();
			done = settle(of, order, p, look, &time);
		}
		unlock();
		if (done)
			break;
		rest(&w);
	}
	return time;
}

static void reach(cq_thread *t, int64_t time)
{
	if (time > t->vt.arrives)
		t->vt.arrives = time;
}

/* Matches by choice are those of receives and probes from any source or with any tag, and what the completions that choose,
 * Waitany, Waitsome, Testany and Testsome, took. One is out of virtual-time order when its message arrives before that of a match by choice
 * that an earlier call of the rank took. */
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

/* A blocking receive, or a probe, has got a message. */
static void received(cq_thread *t, int32_t comm, int32_t source, int32_t tag, int flags, int look)
{
	cq_comm *m = comm_numbered(t, comm);
	if (m == NULL || (flags & CQ_F_PROC_NULL) || source == CQ_NULL32 || tag == CQ_NULL32)
		return;
	name of = {m->sim_key, 0, world_rank(m->ranks, source), tag};
	if (of.source == OUTSIDE)
		return;
	int64_t before = sim.chosen, time = arrival(&of, look ? UINT64_MAX : next_order(), NULL, look);
	if (flags & (CQ_F_ANY_SOURCE | CQ_F_ANY_TAG))
		choice(time, before);
	reach(t, time);
}

/* An mprobe has taken a message: mrecv or imrecv will ask for it. */
static void matched(cq_thread *t, const cq_call *c)
{
	cq_comm *m = comm_numbered(t, c->comm);
	if (m == NULL || c->req == 0 || c->peer == CQ_NULL32)
		return;
	name of = {m->sim_key, 0, world_rank(m->ranks, c->peer), c->tag};
	if (of.source == OUTSIDE)
		return;
	int64_t before = sim.chosen, time = arrival(&of, next_order(), NULL, 0);
	if (c->flags & (CQ_F_ANY_SOURCE | CQ_F_ANY_TAG))
		choice(time, before);
	reach(t, time);
	lock();
	cq_sim_pending *p = pending_new(c->req, WHAT_MESSAGE);
	if (p != NULL)
		p->arrives = time;
	unlock();
}

/* A receive is posted, or is to be by Start. */
static void post(cq_thread *t, int32_t comm, int32_t source, int32_t tag, int flags, uint32_t serial, int what, int partitioned)
{
	cq_comm *m = comm_numbered(t, comm);
	if (m == NULL || serial == 0 || (flags & CQ_F_PROC_NULL))
		return;
	lock();
	cq_sim_pending *p = pending_new(serial, what);
	if (p != NULL) {
		p->any = p->chosen = (uint8_t)(flags & (CQ_F_ANY_SOURCE | CQ_F_ANY_TAG));
		p->of = (name){m->sim_key, 0, source == CQ_NULL32 ? OUTSIDE : world_rank(m->ranks, source), tag};
		if (partitioned)
			p->of.key ^= PARTS_KEY;
		p->ranks = ranks_hold(m->ranks);
		p->request = t->vt.made;
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
	cq_sim_event e = {.kind = CQ_SIM_SENT, .rank = cq_world.self, .peer = of->source, .tag = of->tag, .key = of->key, .time_ps = t->vt.now, .bytes = bytes};
	tell(own(), &e, sizeof e);
}

/* What a call sends, or what Start will. */
static void sends(cq_thread *t, const cq_call *c)
{
	cq_comm *m = comm_numbered(t, c->comm);
	if (m == NULL || (c->flags & CQ_F_PROC_NULL) || c->peer == CQ_NULL32)
		return;
	name of = {m->sim_key, 0, world_rank(m->ranks, c->peer), c->tag};
	if (t->vt.sends == CQ_SENDS) {
		sent(t, &of, t->vt.bytes);
		return;
	}
	lock();
	cq_sim_pending *p = c->req == 0 ? NULL : pending_new(c->req, t->vt.sends == CQ_SENDS_PARTS ? WHAT_START_PARTS : WHAT_START_SEND);
	if (p != NULL) {
		p->of = of;
		if (p->what == WHAT_START_PARTS)
			p->of.key ^= PARTS_KEY;
		p->bytes = t->vt.bytes;
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

static void enter(cq_thread *t, const cq_sim_pending *p)
{
	cq_sim_event e = {.kind = CQ_SIM_ENTERED, .call = p->call, .rank = cq_world.self, .peer = p->peers, .flags = p->flags,
		.key = p->of.key, .n = p->of.n, .time_ps = t->vt.now, .bytes = p->bytes, .received = p->received};
	tell((int)(p->of.key % (uint64_t)cq_world.sims), &e, sizeof e);
}

/* 0: not yet known. */
static int left(const name *of, int64_t *time)
{
	event *before, **at = event_find(of, &before);
	if (*at == NULL)
		return 0;
	*time = event_take(at, before);
	return 1;
}

static int64_t leaving(const name *of)
{
	int64_t time = NO_TIME;
	waiting w = {0};
	while (!sim.gone) {
		lock();
		hear();
		int done = left(of, &time);
		unlock();
		if (done)
			break;
		rest(&w);
	}
	return time;
}

/* Whether an operation is complete for nobody before all ranks have entered it: each needs something of every other. */
static int needs_all(int call, const cq_comm *m, const cq_coll *o)
{
	switch (call) {
	case CQ_Barrier:
		return m->remote == 0;
	case CQ_Allreduce:
	case CQ_Reduce_scatter_block:
	case CQ_Allgather:
	case CQ_Alltoall:
		return m->remote == 0 && (o->sbytes > 0 || o->rbytes > 0);
	}
	return 0;
}

/* A collective of the call: it is done, begun, or described for Start. */
static void collective(cq_thread *t, const cq_call *c, const cq_coll *o)
{
	cq_comm *m = comm_numbered(t, c->comm);
	if (m == NULL)
		return;
	cq_sim_pending d = {.of = {m->sim_key, o->instance, COLLECTIVE, 0}, .call = blocking[t->vt.collective - 1], .peers = m->size + m->remote - (m->ranks != NULL ? m->ranks->outside : 0),
		.bytes = o->sbytes, .received = o->rbytes};
	d.together = (uint8_t)needs_all(d.call, m, o);
	if ((c->flags & CQ_F_ROOT) || (c->peer != CQ_NULL32 && m->remote == 0 && c->peer == m->rank))
		d.flags = CQ_SIM_ROOT;
	int later = t->vt.sends == CQ_SENDS_LATER;
	if (!later)
		enter(t, &d);
	if (c->req == 0) {
		if (!later)
			reach(t, leaving(&d.of));
		return;
	}
	lock();
	cq_sim_pending *p = pending_new(c->req, later ? WHAT_START_COLL : WHAT_COLL);
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
	cq_sim_pending *from = pending_of(template_), *p = NULL, d;
	static const uint8_t becomes[] = {[WHAT_START_RECV] = WHAT_RECV, [WHAT_START_COLL] = WHAT_COLL, [WHAT_START_PARTS] = WHAT_PARTS};
	if (from == NULL) {
		unlock();
		return;
	}
	if (from->what == WHAT_START_COLL) /* the starts of one are told apart beside the instance that it has */
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

/* How many partitions a send has whose size is known for one. */
static void partitions(uint32_t template_, int64_t n)
{
	lock();
	cq_sim_pending *p = pending_of(template_);
	if (p != NULL) {
		p->received = n;
		p->bytes *= n;
	}
	unlock();
}

/* Partitions of a send are ready: it leaves with the last. */
static void ready(cq_thread *t, uint32_t serial, int64_t n)
{
	lock();
	cq_sim_pending *p = pending_of(serial);
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

/* Notes a request that the call has completed; what a wildcard got is known then. */
static void ended(cq_thread *t, uint32_t serial, int32_t source, int32_t tag, uint32_t flags)
{
	lock();
	cq_sim_pending *p = pending_of(serial);
	if (p != NULL && (p->what == WHAT_RECV || p->what == WHAT_COLL)) {
		p->cancelled = (flags & CQ_F_CANCELLED) != 0;
		if (p->what == WHAT_RECV && !p->cancelled && p->any != 0 && source != CQ_NULL32 && tag != CQ_NULL32)
			known(p, source, tag);
		p->after = NULL;
		if (t->vt.ended == NULL)
			t->vt.ended_end = &t->vt.ended;
		*t->vt.ended_end = p;
		t->vt.ended_end = &p->after;
	}
	unlock();
}

static void forget(cq_sim_pending *p)
{
	lock();
	if (p->listed)
		list_remove(list_of(p), p);
	pending_end(p);
	unlock();
}

static void settle_receive(cq_thread *t, cq_sim_pending *p, int how, int64_t before)
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
		forget(p);
}

/* A collective that a Test found complete ends now where the simulator does not know yet, and need not ever without this rank. */
static void settle_collective(cq_thread *t, cq_sim_pending *p, int how)
{
	int64_t time = p->arrives;
	int done = time != NO_TIME;
	if (!done && ((how & HOW_WAITS) || p->together)) {
		time = leaving(&p->of);
	} else if (!done) {
		lock();
		hear();
		done = left(&p->of, &time);
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
		forget(p);
}

static void settle_ended(cq_thread *t, int how)
{
	int64_t before = sim.chosen;
	for (cq_sim_pending *p = t->vt.ended, *next; p != NULL; p = next) {
		next = p->after;
		if (p->what == WHAT_COLL)
			settle_collective(t, p, how);
		else
			settle_receive(t, p, how, before);
	}
	t->vt.ended = NULL;
}

static int how_of(int call)
{
	switch (call) {
	case CQ_Waitany:
	case CQ_Waitsome:
		return HOW_WAITS | HOW_CHOOSES;
	case CQ_Testany:
	case CQ_Testsome:
		return HOW_CHOOSES;
	case CQ_Test:
	case CQ_Testall:
		return 0;
	case CQ_Request_get_status:
		return HOW_LOOKS;
	}
	return HOW_WAITS;
}

/* A request is freed: what it receives takes its event all the same. A wildcard's cannot be known any more. */
static void request_freed(uint32_t serial)
{
	lock();
	cq_sim_pending *p = pending_of(serial);
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

/* What the slots behind the CALL slot say. */
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
			if (t->vt.collective != 0)
				collective(t, c, slot);
			break;
		case CQ_WIDE:
			if (((const cq_wide *)slot)->what == 2)
				t->vt.message = (uint32_t)((const cq_wide *)slot)->value;
			else if (((const cq_wide *)slot)->what == 3 && t->vt.sends == CQ_SENDS_PARTS)
				partitions(c->req, ((const cq_wide *)slot)->value);
			break;
		case CQ_SIDE:
			if (c->call == CQ_Sendrecv || c->call == CQ_Sendrecv_c || c->call == CQ_Sendrecv_replace || c->call == CQ_Sendrecv_replace_c)
				received(t, c->comm, ((const cq_side *)slot)->peer, ((const cq_side *)slot)->tag, ((const cq_side *)slot)->flags, 0);
			else
				post(t, c->comm, ((const cq_side *)slot)->peer, ((const cq_side *)slot)->tag, ((const cq_side *)slot)->flags, c->req, WHAT_RECV, 0);
			break;
		}
	}
}

static void read_call(cq_thread *t, const cq_call *c)
{
	cq_sim_pending *p;
	switch (c->call) {
	case CQ_Recv:
	case CQ_Recv_c:
		received(t, c->comm, c->peer, c->tag, c->flags, 0);
		break;
	case CQ_Probe:
	case CQ_Iprobe:
		received(t, c->comm, c->peer, c->tag, c->flags, 1);
		break;
	case CQ_Irecv:
	case CQ_Irecv_c:
		post(t, c->comm, c->peer, c->tag, c->flags, c->req, WHAT_RECV, 0);
		break;
	case CQ_Recv_init:
	case CQ_Recv_init_c:
	case CQ_Precv_init:
		post(t, c->comm, c->peer, c->tag, c->flags, c->req, WHAT_START_RECV, c->call == CQ_Precv_init);
		break;
	case CQ_Mprobe:
	case CQ_Improbe:
		matched(t, c);
		break;
	case CQ_Mrecv:
	case CQ_Mrecv_c:
		lock();
		if ((p = pending_of(t->vt.message)) != NULL)
			pending_end(p); /* its time has come with the mprobe */
		unlock();
		break;
	case CQ_Imrecv:
	case CQ_Imrecv_c:
		lock();
		if ((p = pending_of(t->vt.message)) != NULL) {
			int64_t time = p->arrives;
			pending_end(p);
			if ((p = c->req != 0 ? pending_new(c->req, WHAT_RECV) : NULL) != NULL)
				p->arrives = time;
		}
		unlock();
		break;
	case CQ_Wait:
	case CQ_Test:
	case CQ_Waitany:
	case CQ_Testany:
	case CQ_Request_get_status:
		ended(t, c->req, c->peer, c->tag, c->flags);
		break;
	case CQ_Request_free:
		request_freed(c->req);
		break;
	case CQ_Pready:
	case CQ_Pready_range:
	case CQ_Pready_list:
		ready(t, c->req, c->count);
		break;
	}
}

/* A call that sends, and may wait for the receiver, is about to be made. The event of one that then fails is not taken back. */
void cq_sim_sends(cq_thread *t)
{
	const cq_call *c = t->call;
	if (!cq_sim_on || sim.gone || c->count < 0 || c->tag < 0)
		return;
	sends(t, c);
	t->vt.sends = CQ_SENDS_NOT;
}

/* The slots of a long call leave the buffer before it ends. */
void cq_sim_leaving(cq_thread *t)
{
	if (cq_sim_on && !sim.gone)
		read_slots(t, t->call_off != 0 ? &t->trash : t->call, t->call_off != 0 ? t->window : (uint8_t *)t->call + CQ_SLOT_BYTES);
}

void cq_sim_close(cq_thread *t, int err)
{
	if (!cq_sim_on)
		return;
	if (!sim.gone && t->call != NULL) {
		const cq_call *c = t->call;
		t->vt.arrives = NO_TIME;
		if (err == MPI_SUCCESS && t->vt.sends != CQ_SENDS_NOT && t->vt.collective == 0)
			sends(t, c);
		if (err == MPI_SUCCESS || c->call == CQ_Waitall || c->call == CQ_Waitsome || c->call == CQ_Testall || c->call == CQ_Testsome)
			read_slots(t, c, t->call_off != 0 ? t->window : (const uint8_t *)c + CQ_SLOT_BYTES);
		if (err == MPI_SUCCESS)
			read_call(t, c);
		if (t->vt.ended != NULL)
			settle_ended(t, how_of(c->call));
		if (t->vt.arrives > t->vt.now)
			t->vt.now = t->vt.arrives;
	}
	t->vt.sends = t->vt.collective = 0;
	if (t->vt.now > __atomic_load_n(&sim.latest, __ATOMIC_RELAXED))
		__atomic_store_n(&sim.latest, t->vt.now, __ATOMIC_RELAXED);
}

/* Records. */

/* Sends n bytes that belong at off in the thread's file; there is room for an event before p. The time that this takes is not
 * compute time, whether the call has been made yet or not. */
void cq_sim_records(cq_thread *t, const void *p, size_t n, int64_t off)
{
	cq_sim_event *e = (cq_sim_event *)((uintptr_t)p - sizeof *e), saved = *e;
	uint64_t tick = cq_tick();
	struct timespec a = {0, 0}, b = {0, 0};
	if (n == 0 || sim.gone)
		return;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	*e = (cq_sim_event){.kind = CQ_SIM_RECORDS, .rank = cq_world.self, .peer = t->number, .n = (uint64_t)off, .bytes = (int64_t)n};
	tell(own(), e, sizeof *e + n);
	*e = saved;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	if (t != cq_self())
		return;
	t->last += cq_tick() - tick;
	t->cpu += (int64_t)(b.tv_sec - a.tv_sec) * 1000000000 + (b.tv_nsec - a.tv_nsec);
}

/* Begin and end. */

static double number(const char *variable, double usual)
{
	const char *s = getenv(variable);
	char *end = NULL;
	double x = s != NULL ? strtod(s, &end) : usual;
	if (x > 0 && (end == NULL || *end == 0))
		return x;
	if (cq.rank == 0)
		cq_say("commq: %s=%s is not a number above 0; %g is used\n", variable, s, usual);
	return usual;
}

int cq_sim_begin(void)
{
	double cpus = number("COMMQ_SIM_CPUS", cq_world.apps);
	sim.ratio = number("COMMQ_SIM_CPU_RATIO", 1) * (cpus < cq_world.apps ? cpus / cq_world.apps : 1);
	if (!cq_world.split)
		return 0;
	sim.latest = CQ_VIRTUAL_START;
	if (cq.clock == CQ_CLOCK_NONE)
		sim.said = dlsym(RTLD_DEFAULT, "commq_compute_ns");
	cq_sim_on = 1;
	listen();
	cq_sim_event e = {.kind = CQ_SIM_HELLO, .rank = cq_world.self, .n = cq.job, .bytes = CQ_SIM_VERSION, .peer = cq_world.apps};
	tell(own(), &e, sizeof e);
	return 1;
}

/* Waits until the records are written, but not for long: the process is ending badly. */
void cq_sim_sync(void)
{
	waiting w = {0};
	int before = sim.synced;
	uint64_t until = cq_monotonic() + SYNC_NS;
	if (!cq_sim_on || sim.gone)
		return;
	cq_sim_event e = {.kind = CQ_SIM_SYNC, .rank = cq_world.self};
	tell(own(), &e, sizeof e);
	while (!sim.gone && sim.synced == before && cq_monotonic() < until)
		hear_and_rest(&w);
}

/* Nothing more comes from this rank, all simulators are told. */
static void leave(int how)
{
	cq_sim_event e = {.kind = CQ_SIM_LEFT, .rank = cq_world.self, .peer = how, .time_ps = sim.latest, .n = sim.out_of_order,
		.bytes = (int64_t)sim.by_choice, .received = (int64_t)sim.early};
	int gone = sim.gone;
	sim.gone = 0; /* a simulator without a process counts those who leave all the same */
	for (int k = 0; k < cq_world.sims; k++)
		tell(k, &e, sizeof e);
	sim.gone |= gone;
}

/* Before PMPI_Finalize, in whose call the thread is: all is recorded, and everyone has left, when it returns. */
void cq_sim_leave(cq_thread *t)
{
	waiting w = {0};
	if (!cq_world.split)
		return;
	if (t != NULL && cq_sim_on) {
		*(volatile uint64_t *)&t->call->t1 = (uint64_t)t->vt.now;
		for (cq_thread *u = cq.list; u != NULL; u = u->link) {
			if (__atomic_exchange_n(&u->closing, 1, __ATOMIC_ACQ_REL))
				continue;
			u->head->ended = CQ_ENDED_FINALIZED;
			u->head->polls = u->polls_all;
			cq_sink_count(u);
			cq_head_clock(u);
			cq_sink_close(u);
			cq_due(u, CQ_DUE_DROP);
		}
	}
	int on = cq_sim_on;
	if (!sim.has_request)
		listen();
	leave(on ? CQ_ENDED_FINALIZED : CQ_ENDED_NOT);
	while (sim.has_request && !sim.deaf && sim.over < cq_world.sims) {
		lock();
		hear();
		unlock();
		cq_sim_rest(++w.n < 1000 ? 0 : UINT64_MAX);
	}
	if (sim.has_request) {
		cq_p.Cancel(&sim.receiving);
		cq_p.Wait(&sim.receiving, MPI_STATUS_IGNORE);
		sim.has_request = 0;
	}
	cq_sim_on = 0;
	cq_world_part();
}

/* exit without MPI_Finalize; the records have been sent. */
void cq_sim_quit(void)
{
	cq_sim_sync();
	if (cq_sim_on && !sim.gone)
		leave(CQ_ENDED_NOT);
	cq_sim_on = 0;
}

/* A forked child. */
void cq_sim_child(void)
{
	cq_sim_on = 0;
}

/* Open MPI's ranks yield while they wait, when told to. Linux 6.18 can then keep one of them from its core for a minute while others
 * yield (5 ranks and 2 simulators on two cores: every third job), and all wait for it. Here waiting ranks sleep instead. */
CQ_EXPORT int sched_yield(void)
{
	struct timespec nap = {0, 1000};
	int e = errno;
	nanosleep(&nap, NULL);
	errno = e;
	return 0;
}

/* MPI_Wtime: the time of the call, which takes none. In a call it is the time where that was entered. */

CQ_HOT double wtime(void)
{
	cq_thread *t = cq_enter();
	if (t == NULL) {
		t = cq_sim_on ? cq_self() : NULL;
		return t != NULL ? (double)t->vt.now / 1e12 : cq_p.Wtime();
	}
	if (!cq_sim_on) {
		cq_leave(t);
		return cq_p.Wtime();
	}
	uint64_t compute = cq_gap(t);
	t->gathered = compute;
	t->last = t->t0;
	cq_sim_compute(t, compute);
	cq_sim_resume(t);
	cq_leave(t);
	return (double)t->vt.now / 1e12;
}

static double wtick(void)
{
	return cq_sim_on ? 1e-12 : cq_p.Wtick();
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
