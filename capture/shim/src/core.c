/* The process's state: finding the MPI library, starting and ending, threads, clocks, forks. */
#include "core.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "counters.h"
#include "recorders.h"
#include "sink.h"
#if CQ_SIM
#include "bridge.h"
#endif

cq_state cq;
cq_fns cq_p;
cq_ffns cq_f;
cq_data cq_d;
CQ_TLS cq_thread *cq_current;
static CQ_TLS cq_thread *mine; /* this thread's, also while cq_current is NULL */
static CQ_TLS int opening;
static int complained;

static void say(const char *line, size_t n)
{
	while (n > 0) {
		ssize_t w = write(STDERR_FILENO, line, n);
		if (w <= 0 && errno != EINTR)
			return;
		if (w > 0) {
			line += w;
			n -= (size_t)w;
		}
	}
}

void cq_say(const char *format, ...)
{
	char line[4096];
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(line, sizeof line, format, ap);
	va_end(ap);
	if (n > 0)
		say(line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
}

void cq_complain(const char *doing, int e, const char *outcome)
{
	if (__atomic_exchange_n(&complained, 1, __ATOMIC_ACQ_REL) == 0)
		cq_say("commq: rank %d: %s in spool %s: %s; %s\n", cq.rank, doing, cq.spool, strerror(e), outcome);
}

void *cq_scratch_get(cq_scratch *s, size_t bytes)
{
	if (CQ_LIKELY(bytes <= s->bytes))
		return s->p;
	size_t want = s->bytes != 0 ? s->bytes : 16384;
	while (want < bytes)
		want *= 2;
	void *p = cq_pages(want);
	if (p == NULL)
		return NULL;
	if (s->p != NULL)
		cq_pages_free(s->p, s->bytes);
	s->p = p;
	s->bytes = want;
	return p;
}

/* Whoever holds it does so for some instructions, unless it lost its CPU meanwhile. */
void cq_spin(uint32_t *lock)
{
	for (int n = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0; ) {
		while (__atomic_load_n(lock, __ATOMIC_RELAXED) != 0) {
#if defined(__x86_64__)
			__builtin_ia32_pause();
#endif
			if (++n % 100 == 0)
				sched_yield();
		}
	}
}

void cq_lock_slow(void)
{
	cq_spin(&cq.lock);
}

/* What is to be done at the end of a thread's call; other threads and signal handlers say so too. */
void cq_due(cq_thread *t, uint64_t bits)
{
	__atomic_or_fetch(&t->due, bits, __ATOMIC_RELAXED);
}

/* Whether that was due, which it then is no more. */
static int due_taken(cq_thread *t, uint64_t bits)
{
	if ((t->due & bits) == 0)
		return 0;
	__atomic_and_fetch(&t->due, ~bits, __ATOMIC_RELAXED);
	return 1;
}

/* The MPI library. */

static void missing(void)
{
	cq_say("commq: this process calls an MPI function that the %s in it does not have, or another MPI library; run it without "
	      "commq, or build the shim for its library (commq capture build --mpi)\n", CQ_LIBRARY);
	abort();
}

static void *find_symbol(const char *name)
{
	static const char *const sonames[] = CQ_SONAMES;
	void *p = dlsym(RTLD_DEFAULT, name);
	/* Libraries that were loaded for one module only (as by Python's import) are not in the default scope. */
	for (size_t i = 0; p == NULL && i < sizeof sonames / sizeof *sonames; i++) {
		void *lib = dlopen(sonames[i], RTLD_LAZY | RTLD_NOLOAD);
		if (lib != NULL) {
			p = dlsym(lib, name);
			dlclose(lib);
		}
	}
	return p;
}

typedef struct {
	const char *name;
	void *where; /* the pointer to set */
} cq_symbol;

void cq_resolve(void)
{
	static const cq_symbol functions[] = {
#define X(f) {"PMPI_" #f, &cq_p.f},
		CQ_FNS(X)
#undef X
#define X(f) {"PMPIX_" #f, &cq_p.MPIX_##f},
		CQ_FNS_MPIX(X) CQ_FNS_SIM_MPIX(X)
#undef X
#define X(f, n) {#f, &cq_f.f},
		CQ_FFNS(X)
#undef X
	};
	static const cq_symbol data[] = {
#define X(f) {#f, &cq_d.p_##f},
		CQ_DATA(X)
#undef X
		{NULL, NULL},
	};
	static char nothing[64];
	if (cq.resolved)
		return;
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		void *p = find_symbol(functions[i].name);
		void (*m)(void) = missing;
		if (p == NULL)
			memcpy(functions[i].where, &m, sizeof m);
		else
			memcpy(functions[i].where, &p, sizeof p);
	}
	for (size_t i = 0; data[i].name != NULL; i++) {
		void *p = find_symbol(data[i].name);
		if (p == NULL)
			p = nothing;
		memcpy(data[i].where, &p, sizeof p);
	}
	cq.resolved = 1;
}

/* Whether this is rank 0 of its job, as far as the launcher's environment tells before MPI_Init: a message comes once. */
static int first_rank(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *v = getenv(names[i]);
		if (v != NULL && *v != 0)
			return strcmp(v, "0") == 0;
	}
	return 1;
}

/* A shim built for one library cannot even pass the other's calls on (handles have other sizes), so before main begins a
 * process with the wrong library is started again without it. */
static void without_us(char **argv)
{
	Dl_info self;
	const char *list = getenv("LD_PRELOAD");
	char *rest = list != NULL ? strdup(list) : NULL;
	char *kept = list != NULL ? calloc(1, strlen(list) + 1) : NULL;
	if (rest == NULL || kept == NULL || dladdr((void *)&cq, &self) == 0)
		return;
	char *save = NULL;
	int removed = 0;
	for (char *f = strtok_r(rest, ": ", &save); f != NULL; f = strtok_r(NULL, ": ", &save)) {
		if (strcmp(f, self.dli_fname) == 0) {
			removed = 1;
			continue;
		}
		if (*kept != 0)
			strcat(kept, ":");
		strcat(kept, f);
	}
	if (!removed)
		return;
	if (*kept != 0)
		setenv("LD_PRELOAD", kept, 1);
	else
		unsetenv("LD_PRELOAD");
	if (first_rank())
		cq_say("commq: the shim is for %s and the program is linked to another MPI library; the program runs on unrecorded\n", CQ_LIBRARY);
	execv("/proc/self/exe", argv);
}

__attribute__((constructor)) static void loaded(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)envp;
	int mpi = dlsym(RTLD_DEFAULT, "PMPI_Init") != NULL;
	int openmpi = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != NULL;
	if (mpi && openmpi != CQ_OPENMPI)
		without_us(argv);
}

/* Clocks. */

static int64_t cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* A buffer that nobody has written out for a while: before a call that may take long. */
static void flush_old(cq_thread *t, uint64_t now)
{
	int e = errno;
	if (t->buffered && !t->dead && now - t->flushed > cq.flush_ticks)
		cq_sink_flush(t);
	errno = e;
}

/* Compute time of a long gap: what the CPU clock advanced since it was last read, less the short intervals since then. With
 * counters every gap comes here. */
uint64_t cq_long_gap(cq_thread *t, uint64_t *now, uint64_t gap)
{
	int64_t ns = (int64_t)cq_ticks_ns(gap, cq.mult);
	if (t->due & CQ_DUE_COUNTS)
		cq_count_end(t);
	if (gap <= cq.cpu_ticks) {
		t->shorts += gap;
	} else if (cq.clock == CQ_CLOCK_CPU) {
		int64_t c = cpu_ns();
		int64_t cpu = c - t->cpu - (int64_t)cq_ticks_ns(t->shorts, cq.scale) - cq.cpu_read_ns;
		t->cpu = c;
		t->shorts = 0;
		ns = cpu < 0 ? 0 : cpu < ns ? cpu : ns;
	}
	flush_old(t, *now);
	*now = cq_tick();
	return (uint64_t)ns;
}

/* A long call: the CPU clock is read where it ends, so that the next gap begins from there. With counters every call comes
 * here. */
void cq_long_call(cq_thread *t)
{
	if (t->t1 - t->t0 <= cq.cpu_ticks) {
		t->shorts += t->t1 - t->t0;
	} else if (cq.clock == CQ_CLOCK_CPU) {
		t->cpu = cpu_ns();
		t->shorts = 0;
	}
	if (t->due & CQ_DUE_COUNTS)
		cq_count_begin(t);
	t->last = cq.clock == CQ_CLOCK_CPU || (t->due & CQ_DUE_COUNTS) ? cq_tick() : t->t1;
}

/* Now and then among failed polls, which can go on for hours. */
void cq_polled_long(cq_thread *t)
{
	flush_old(t, t->t1);
}

static int have_tsc(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
#else
	return 0;
#endif
}

/* Where instructions and cycles are to come from; what cannot be had is said once. */
static int counters_named(void)
{
	const char *s = getenv("COMMQ_COUNTERS");
	if (s == NULL || *s == 0 || strcmp(s, "none") == 0)
		return CQ_COUNTERS_NONE;
	if (strcmp(s, "fake") == 0)
		return CQ_COUNTERS_FAKE;
	if (strcmp(s, "perf") != 0) {
		if (cq.rank == 0)
			cq_say("commq: COMMQ_COUNTERS=%s is not perf, fake or none; instructions and cycles are not counted\n", s);
		return CQ_COUNTERS_NONE;
	}
	int e = cq_count_try();
	if (e == 0)
		return CQ_COUNTERS_PERF;
	const char *why = e == EACCES || e == EPERM ? "the system does not let us; set /proc/sys/kernel/perf_event_paranoid to 2 or less" :
		"the machine offers no such counters, as virtual machines often do not";
	if (cq.rank == 0)
		cq_say("commq: instructions and cycles are not counted: perf_event_open: %s: %s\n", strerror(e), why);
	return CQ_COUNTERS_NONE;
}

/* COMMQ_MAX_SPOOL. A file needs room for a header and what MPI_Init records. */
static uint64_t limit_named(void)
{
	const char *s = getenv("COMMQ_MAX_SPOOL");
	char *end = NULL;
	uint64_t least = 65536, n = 0;
	if (s == NULL || *s == 0)
		return 0;
	n = strtoull(s, &end, 10);
	if (*s < '0' || *s > '9' || *end != 0) {
		if (cq.rank == 0)
			cq_say("commq: COMMQ_MAX_SPOOL=%s is not a number of bytes; the records are not bounded\n", s);
		return 0;
	}
	if (n != 0 && n < least) {
		if (cq.rank == 0)
			cq_say("commq: COMMQ_MAX_SPOOL=%s: %d is the least, and used\n", s, (int)least);
		return least;
	}
	return n;
}

static int clock_named(void)
{
	const char *s = getenv("COMMQ_CLOCK");
	if (s == NULL || strcmp(s, "cpu") == 0)
		return CQ_CLOCK_CPU;
	if (strcmp(s, "wall") == 0)
		return CQ_CLOCK_WALL;
	if (strcmp(s, "none") == 0)
		return CQ_CLOCK_NONE;
	if (cq.rank == 0)
		cq_say("commq: COMMQ_CLOCK=%s is not cpu, wall or none; cpu is used\n", s);
	return CQ_CLOCK_CPU;
}

/* Frames of a call site. */
static int stack_named(void)
{
	const char *s = getenv("COMMQ_STACK");
	char *end;
	if (s == NULL || *s == 0)
		return 1;
	long n = strtol(s, &end, 10);
	if (*end == 0 && n >= 0 && n <= 64)
		return (int)n;
	if (cq.rank == 0)
		cq_say("commq: COMMQ_STACK=%s is not a number of frames from 0 to 64; 1 is used\n", s);
	return 1;
}

static void prepare_sites(void)
{
	cq.stack = stack_named();
	if (cq_sites_init() || cq.stack < 2)
		return;
	cq.stack = 1;
	if (cq.rank == 0)
		cq_say("commq: libunwind.so.8 cannot be loaded, so call sites have one frame (Debian: apt-get install libunwind8)\n");
}

/* The scale from ticks to ns over the time MPI_Init took, at least 2 ms. */
static void calibrate(void)
{
	uint64_t tick;
	int64_t ns;
	do
		cq_clock_pair(&tick, &ns);
	while (ns - cq.clock0_ns < 2000000);
	cq.scale = (uint64_t)(((unsigned __int128)(uint64_t)(ns - cq.clock0_ns) << 32) / (tick - cq.clock0_tick));
	cq.mult = cq.clock == CQ_CLOCK_NONE ? 0 : cq.scale;
	cq.flush_ticks = (uint64_t)((((unsigned __int128)1000000000) << 32) / cq.scale);
	cq.cpu_ticks = (uint64_t)((((unsigned __int128)50000) << 32) / cq.scale);
	cq.short_ticks = cq.counters != CQ_COUNTERS_NONE ? 0 : cq.cpu_ticks;
	if (cq.clock != CQ_CLOCK_CPU)
		return;
	cq.cpu_read_ns = INT64_MAX;
	for (int i = 0; i < 20; i++) {
		int64_t a = cpu_ns(), b = cpu_ns();
		if (b - a < cq.cpu_read_ns)
			cq.cpu_read_ns = b - a;
	}
}

static void mark_put(cq_thread *t);
static int in_call(const cq_thread *t);
static void signal_take(void);
static void signal_leave(void);

/* Threads. */

static void header_fill(cq_header *h, int number)
{
	memcpy(h->magic, CQ_SPOOL_MAGIC, sizeof h->magic);
	h->header_bytes = CQ_HEADER_BYTES;
	h->slot_bytes = CQ_SLOT_BYTES;
	h->version = CQ_SPOOL_VERSION;
	h->rank = cq.rank;
	h->size = cq.size;
	h->thread = number;
	h->thread_level = cq.thread_level;
	h->job = cq.job;
#if defined(__aarch64__)
	h->timer = CQ_TIMER_CNTVCT;
#else
	h->timer = cq.tsc ? CQ_TIMER_TSC : CQ_TIMER_MONOTONIC;
#endif
	CQ_VIRTUAL(if (cq_sim_on) h->timer = CQ_TIMER_VIRTUAL;)
	h->compute_clock = (uint32_t)cq.clock;
	h->clock0_tick = cq.clock0_tick;
	h->clock0_ns = cq.clock0_ns;
	cq_clock_pair(&h->clock1_tick, &h->clock1_ns);
	CQ_VIRTUAL(if (cq_sim_on) { h->clock0_tick = h->clock1_tick = 0; h->clock0_ns = h->clock1_ns = 0; })
	h->realtime_ns = cq.realtime_ns;
	h->offset_init_ns = cq.offset_ns;
	h->offset_init_error_ns = cq.offset_error_ns;
	h->offset_init_at_ns = cq.offset_at_ns;
	h->offset_final_ns = h->offset_final_error_ns = h->offset_final_at_ns = CQ_NULL64;
	h->limit = cq.count_only ? 0 : cq.limit;
	h->counters = (uint32_t)cq.counters;
	h->pid = getpid();
	h->stack = (uint32_t)cq.stack;
	h->hash = (uint32_t)cq.hash;
	h->hash_verify = (uint32_t)cq.verify;
	h->sessions = (uint32_t)cq.sessions;
	memcpy(h->host, cq.host, sizeof h->host);
	memcpy(h->boot_id, cq.boot, sizeof h->boot_id);
	memcpy(h->mpi_library, cq.library, sizeof h->mpi_library);
	memcpy(h->program, cq.program, sizeof h->program);
}

/* The calling thread, which is in a recorded call. */
cq_thread *cq_self(void)
{
	return mine;
}

static void wind_up(cq_thread *t, uint32_t ended)
{
	if (t->fd < 0)
		return;
	if (ended != CQ_ENDED_NOT)
		t->head->ended = ended;
	t->head->polls = t->polls_all;
	cq_sink_count(t);
	cq_head_clock(t);
}

/* Its entry stays in the list, but what it has grown goes. */
static void scratch_leave(cq_thread *t)
{
	cq_scratch *all[] = {&t->keys, &t->statuses, &t->infos, &t->indices, &t->blob, &t->packed, &t->hashes};
	if (t->claims != 0 || in_call(t))
		return;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (all[i]->p != NULL)
			cq_pages_free(all[i]->p, all[i]->bytes);
		*all[i] = (cq_scratch){NULL, 0};
	}
}

/* A thread other than the first ends: its file is closed, because a program may start thousands. */
static void thread_exit(void *p)
{
	cq_thread *t = p;
	if (cq.state != CQ_ON || getpid() != cq.pid || __atomic_exchange_n(&t->closing, 1, __ATOMIC_ACQ_REL))
		return;
	cq_current = NULL;
	wind_up(t, CQ_ENDED_NOT);
	cq_sink_leave(t);
	cq_count_close(t);
	cq_tables_leave(t);
	scratch_leave(t);
}

/* Opens the calling thread's file; the error's number is in *e. */
static cq_thread *thread_open(int *e)
{
	cq_thread *t = cq_pages(sizeof *t);
	*e = errno;
	if (t == NULL)
		return NULL;
	t->number = __atomic_fetch_add(&cq.threads, 1, __ATOMIC_RELAXED);
	CQ_VIRTUAL(cq_sim_thread(t);)
	header_fill(&t->own, t->number);
	t->call = &t->trash;
	t->comm = &cq.none_comm;
	t->type = &cq.none_type;
	*e = cq_sink_open(t);
	if (*e != 0) {
		cq_pages_free(t, sizeof *t);
		return NULL;
	}
	cq_count_open(t);
	t->cpu = cq.clock == CQ_CLOCK_CPU ? cpu_ns() : 0;
	t->last = cq_tick();
	cq_lock();
	t->active = cq.active;
	__atomic_store_n(&cq.active, t, __ATOMIC_RELEASE);
	cq_unlock();
	t->link = __atomic_load_n(&cq.list, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&cq.list, &t->link, t, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	mine = t;
	return t;
}

/* Whether a call that is made there comes from inside the one in progress. What is not deeper in the stack does not, nor does
 * what finds the place overwritten where the wrapper's return address was: something has jumped out of that call, an error
 * handler by longjmp or by a C++ exception. */
static int inside(const cq_thread *t, const void *cfa)
{
	uintptr_t old = (uintptr_t)t->cfa, now = (uintptr_t)cfa;
	if (now >= old)
		return 0;
#if defined(__x86_64__)
	if (old - now < 65536)
		return ((void *const *)old)[-1] == t->site;
#endif
	return 1;
}

/* The call in progress will never return. */
static void abandon(cq_thread *t)
{
	due_taken(t, CQ_DUE_REWRITE);
	t->call_off = 0;
	t->call = &t->trash;
	t->claims = t->no_statuses = 0;
	t->gathered = t->wide = 0;
	CQ_VIRTUAL(t->vt.counted = 0; t->vt.sends = t->vt.collective = t->vt.counted_new = 0; t->vt.ended = NULL;)
	t->cpu = cq.clock == CQ_CLOCK_CPU ? cpu_ns() : 0;
	t->shorts = 0;
	if (t->due & CQ_DUE_COUNTS)
		cq_count_begin(t);
	t->last = cq_tick();
}

/* Whether a call has not returned. */
static int in_call(const cq_thread *t)
{
	return t->call_off != 0 || (t->call != &t->trash && t->call->t1 == 0);
}

/* A call while there is none that can begin: the thread's first, one from inside another, or the first after something
 * unusual. */
static cq_thread *enter_slow(const void *cfa)
{
	int e;
	if (CQ_UNLIKELY(!cq.resolved))
		cq_resolve();
	cq_thread *t = mine;
	if (cq.state != CQ_ON || (t == NULL && opening))
		return NULL;
	if (t == NULL) {
		opening = 1; /* stays where the file cannot be made: this is tried once */
		t = thread_open(&e);
		if (t == NULL) {
			cq_complain("open a thread's file", e, "the thread runs unrecorded");
			return NULL;
		}
		if (cq.has_exit_key)
			pthread_setspecific(cq.exit_key, t);
	} else if (t->signalled && !in_call(t)) {
		t->signalled = 0;
		mark_put(t);
	} else if (t->closing || inside(t, cfa)) {
		return NULL;
	} else {
		abandon(t);
	}
	return t;
}

cq_thread *cq_enter_slow(const void *cfa)
{
	int e = errno;
	cq_thread *t = enter_slow(cfa);
	errno = e;
	return t;
}

/* What is seldom due at the end of a call: errors, long times, polls, bookkeeping of the file. */
void cq_extra(cq_thread *t, int err)
{
	int e = errno;
	if (err != MPI_SUCCESS) {
		cq_err *s = cq_take(t);
		memset(s, 0, sizeof *s);
		cq_p.Error_class(err, &s->error_class);
		s->kind = CQ_ERR;
	}
	if (t->polls != 0 || t->wide != 0 || (t->due & CQ_DUE_COUNTS) != 0) {
		cq_pre *s = cq_take(t);
		memset(s, 0, sizeof *s);
		s->compute_ns = t->wide != 0 ? t->wide : t->call->compute_ns;
		s->polls = t->polls;
		s->poll_ticks = t->poll_ticks;
		s->instructions = t->due & CQ_DUE_COUNTS ? t->count[0] : CQ_NULL64;
		s->cycles = t->due & CQ_DUE_COUNTS ? t->count[1] : CQ_NULL64;
		s->kind = CQ_PRE;
		t->polls = t->poll_ticks = t->wide = 0;
		t->count[0] = t->count[1] = 0;
	}
	if (due_taken(t, CQ_DUE_CLOCK))
		cq_clock_def(t);
	if (due_taken(t, CQ_DUE_REWRITE))
		cq_rewrite(t);
	if (t->due & CQ_DUE_DROP)
		t->head->dropped++;
	if (t->due & (CQ_DUE_MARK | CQ_DUE_FLUSH | CQ_DUE_TIMED)) { /* for them the call is over */
		uint64_t now = t->t1;
		cq_barrier();
		*(volatile uint64_t *)&t->call->t1 = CQ_T1(t);
		if (due_taken(t, CQ_DUE_MARK))
			mark_put(t);
		if (due_taken(t, CQ_DUE_FLUSH) || (t->buffered && (int64_t)(now - t->flushed) > (int64_t)cq.flush_ticks))
			cq_sink_flush(t);
	}
	errno = e;
}

/* SIGUSR1. */

/* The first thread that comes records it. */
static void mark_put(cq_thread *t)
{
	static const char label[] = "SIGUSR1";
	if (__atomic_exchange_n(&cq.mark_pending, 0, __ATOMIC_ACQ_REL) == 0)
		return;
	due_taken(t, CQ_DUE_MARK);
	uint64_t tick = CQ_AT(t, cq.mark_tick), before = t->call == &t->trash ? 0 : t->call->t0;
	if (tick < before) /* this thread was not in that call yet when another one had the signal */
		tick = before;
	cq_call *c = cq_open(t, CQ_commq_mark);
	c->flags = 0;
	c->compute_ns = 0;
	c->t0 = tick;
	c->site = 0;
	c->comm = c->peer = c->tag = c->dtype = CQ_NULL32;
	c->count = CQ_NULL64;
	c->buf = 0;
	c->req = 0;
	cq_barrier();
	*(volatile uint8_t *)&c->kind = CQ_CALL;
	cq_def_put(t, CQ_DEF_LABEL, 0, label, sizeof label - 1);
	cq_barrier();
	*(volatile uint64_t *)&t->call->t1 = tick;
	CQ_VIRTUAL(if (!cq_sim_on)) t->t1 = tick; /* cq_close of the call before writes it once more */
}

static void on_signal(int number)
{
	int e = errno;
	struct sigaction a;
	if (cq.state != CQ_ON || getpid() != cq.pid) { /* not recording, or a child that no handler of a fork knows of */
		if (sigaction(number, NULL, &a) == 0 && a.sa_handler == on_signal) {
			signal(number, SIG_DFL);
			raise(number);
		}
		return;
	}
	cq.first->head->marks++;
	cq.first->head->mark_ns = (int64_t)cq_monotonic();
	cq.mark_tick = cq_tick();
	__atomic_store_n(&cq.mark_pending, 1, __ATOMIC_RELEASE);
	for (cq_thread *t = __atomic_load_n(&cq.list, __ATOMIC_ACQUIRE); t != NULL; t = t->link) {
		if (t->closing)
			continue;
		cq_due(t, t->buffered ? CQ_DUE_MARK | CQ_DUE_FLUSH : CQ_DUE_MARK);
		cq_sink_flush_now(t);
	}
	if (mine != NULL && cq_current != NULL) { /* outside of MPI: its next call begins with the mark */
		mine->signalled = 1;
		cq_current = NULL;
	}
	errno = e;
}

/* Before MPI_Init: where the signal would end the program it makes a mark; a program that has a use for it, or wants none, is
 * left alone. MPICH takes the signal in MPI_Init and calls the handler that it finds. */
static void signal_take(void)
{
	struct sigaction a;
	if (sigaction(SIGUSR1, NULL, &a) != 0 || (a.sa_flags & SA_SIGINFO) != 0 || a.sa_handler != SIG_DFL)
		return;
	memset(&a, 0, sizeof a);
	a.sa_handler = on_signal;
	a.sa_flags = SA_RESTART;
	cq.handles_signal = sigaction(SIGUSR1, &a, NULL) == 0;
}

/* The signal is as it was, unless the program has taken it meanwhile. */
static void signal_leave(void)
{
	struct sigaction a;
	if (!cq.handles_signal || sigaction(SIGUSR1, NULL, &a) != 0 || (a.sa_flags & SA_SIGINFO) != 0 || a.sa_handler != on_signal)
		return;
	memset(&a, 0, sizeof a);
	a.sa_handler = SIG_DFL;
	sigaction(SIGUSR1, &a, NULL);
}

/* Starting. */

static void copy_tail(char *to, size_t cap, const char *from)
{
	size_t n = strlen(from);
	if (n >= cap)
		from += n - (cap - 1);
	memcpy(to, from, strlen(from) + 1);
}

static void read_line(const char *path, char *to, size_t cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, cap - 1);
	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = 0;
	to[strcspn(to, "\n")] = 0;
}

static void who_we_are(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
	path[n > 0 ? n : 0] = 0;
	copy_tail(cq.program, sizeof cq.program, path);
	if (gethostname(cq.host, sizeof cq.host - 1) != 0)
		cq.host[0] = 0;
	read_line("/proc/sys/kernel/random/boot_id", cq.boot, sizeof cq.boot);
}

/* Everything that makes two processes' CLOCK_MONOTONIC different clocks. */
static uint64_t host_hash(void)
{
	char line[256];
	uint64_t h = 0xcbf29ce484222325u;
	for (const char *p = cq.host; *p != 0; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3u;
	for (const char *p = cq.boot; *p != 0; p++)
		h = (h ^ (uint8_t)*p) * 0x100000001b3u;
	ssize_t n = readlink("/proc/self/ns/time", line, sizeof line);
	for (ssize_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)line[i]) * 0x100000001b3u;
	return h;
}

static int make_folders(char *path)
{
	for (char *p = path + 1; *p != 0; p++) {
		if (*p != '/')
			continue;
		*p = 0;
		int bad = mkdir(path, 0777) != 0 && errno != EEXIST;
		*p = '/';
		if (bad)
			return errno;
	}
	return mkdir(path, 0777) != 0 && errno != EEXIST ? errno : 0;
}

static void in_child(void)
{
	cq.state = CQ_OFF;
	cq_current = NULL;
	CQ_VIRTUAL(cq_sim_child();)
	for (cq_thread *t = cq.list; t != NULL; t = t->link)
		cq_sink_disown(t);
	mine = NULL;
	signal_leave();
}

static CQ_TLS cq_thread *again; /* in MPI_Init while sessions are recorded already */

static void starting(void)
{
	struct timespec now;
	opening = 1; /* nothing that MPI_Init calls is the program's */
	cq.tsc = have_tsc();
	signal_take();
	cq_clock_pair(&cq.clock0_tick, &cq.clock0_ns);
	clock_gettime(CLOCK_REALTIME, &now);
	cq.realtime_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	cq.init_tick = cq_tick();
}

void cq_init_starts(int id)
{
	cq_resolve();
	again = cq.state == CQ_ON ? cq_enter() : NULL;
	if (again != NULL) {
		again->site = cq.init_site;
		again->cfa = cq.init_cfa;
		cq_plain_begin(again, id, MPI_COMM_NULL);
	} else if (cq.state == CQ_NEW) {
		starting();
	}
}

/* Sees whether the status' own fields hold bytes and cancellation as this library's header says. */
static int fields_mean_that(void)
{
	MPI_Status st;
	MPI_Count n;
	memset(&st, 0, sizeof st);
	cq.status_fields = 1;
	for (int i = 0; i < 2; i++) {
		int64_t want = i == 0 ? 4097 : (int64_t)5 << 32 | 9;
		cq_p.Status_set_cancelled(&st, i == 0);
		if (cq_p.Status_set_elements_x(&st, MPI_BYTE, (MPI_Count)want) != MPI_SUCCESS)
			return 0;
		cq_p.Get_elements_x(&st, MPI_BYTE, &n);
		if ((int64_t)n != want || cq_status_bytes(&st) != want || cq_status_cancelled(&st) != (i == 0))
			return 0;
	}
	return 1;
}

#if CQ_MPICH
static int grequest_query(void *state, MPI_Status *st)
{
	(void)state;
	cq_p.Status_set_elements_x(st, MPI_BYTE, 0);
	cq_p.Status_set_cancelled(st, 0);
	st->MPI_SOURCE = st->MPI_TAG = MPI_UNDEFINED;
	return MPI_SUCCESS;
}

static int grequest_free(void *state)
{
	(void)state;
	return MPI_SUCCESS;
}

static int grequest_cancel(void *state, int complete)
{
	(void)state;
	(void)complete;
	return MPI_SUCCESS;
}

/* What mpi_f08 calls the second of two requests: 2 by the standard, 1 in MPICH 4.0.2. */
static int fortran_base(void)
{
	MPI_Fint requests[2], n = 2, index = 2, flag = 0, e;
	MPI_Request r;
	MPI_Status st;
	if (cq_f.pmpir_testany_f08_ == (cq_f6)(void (*)(void))missing)
		return 1;
	if (cq_p.Grequest_start(grequest_query, grequest_free, grequest_cancel, NULL, &r) != MPI_SUCCESS)
		return 1;
	cq_p.Grequest_complete(r);
	requests[0] = MPI_REQUEST_NULL;
	requests[1] = r;
	cq_f.pmpir_testany_f08_(&n, requests, &index, &flag, &st, &e);
	return flag ? index - 1 : 1;
}
#else
static int fortran_base(void)
{
	return 1;
}
#endif

/* MPICH 4.0.2 leaves the status of an MPI_Isendrecv as some earlier request had it. */
static int isendrecv_tells(void)
{
#if CQ_MPI4
	char to[3] = "", from[5];
	MPI_Request r;
	MPI_Status st;
	memset(&st, 0, sizeof st);
	if ((void (*)(void))cq_p.Isendrecv == missing)
		return 1;
	if (cq.sessions) /* there is no MPI_COMM_SELF to try it on */
		return 0;
	if (cq_p.Isendrecv(to, 3, MPI_BYTE, 0, 9, from, 5, MPI_BYTE, 0, 9, MPI_COMM_SELF, &r) != MPI_SUCCESS || cq_p.Wait(&r, &st) != MPI_SUCCESS)
		return 0;
	return st.MPI_TAG == 9 && cq_status_bytes(&st) == 3;
#else
	return 0;
#endif
}

int64_t cq_status_bytes_slow(const MPI_Status *st)
{
	MPI_Count n = 0;
	cq_p.Get_elements_x((MPI_Status *)st, MPI_BYTE, &n);
	return (int64_t)n;
}

int cq_status_cancelled_slow(const MPI_Status *st)
{
	int flag = 0;
	cq_p.Test_cancelled((MPI_Status *)st, &flag);
	return flag;
}

/* What a rank tells the others at the start. */
typedef struct {
	uint64_t host;
	int32_t error;
	int32_t spare;
} hello;

static int spool_prepare(void)
{
	const char *dir = getenv("COMMQ_SPOOL");
	if (dir == NULL || *dir == 0)
		return ENOENT;
	if (strlen(dir) >= sizeof cq.spool)
		return ENAMETOOLONG;
	strcpy(cq.spool, dir);
	CQ_VIRTUAL(if (cq_world.split) return 0;) /* the commq process makes it */
	return make_folders(cq.spool);
}

static int table_init(void)
{
	cq.none_comm.number = cq.none_type.number = CQ_NULL32;
	return cq_reqtab_init(&cq.requests) && cq_reqtab_init(&cq.messages) ? 0 : ENOMEM;
}

/* What sessions have in common where nothing can be sent yet: a number made of what the launch gives every rank alike, and
 * of the number of ranks, so that jobs of other sizes never mix. 0: the launch gives nothing. */
static uint64_t job_of_environment(void)
{
	static const char *const names[] = {"COMMQ_JOB", "PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID"};
	const char *found[sizeof names / sizeof names[0]];
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		found[i] = getenv(names[i]);
		for (const char *p = found[i]; p != NULL && *p != 0; p++)
			h = (h ^ (uint8_t)*p) * 0x100000001b3u;
		h = (h ^ i) * 0x100000001b3u;
	}
	h = (h ^ (uint64_t)cq.size) * 0x100000001b3u;
	int named = (found[0] != NULL && *found[0] != 0) || found[1] != NULL || (found[2] != NULL && found[3] != NULL);
	return named && h != 0 ? h : 0;
}

/* The ranks exchange their hosts and whether each can record. The first rank that cannot says so for all. */
static int greet(int error, int *others_fail)
{
	cq_scratch s = {NULL, 0};
	hello me = {host_hash(), error, 0};
	hello *all = cq_scratch_get(&s, (size_t)cq.size * sizeof *all);
	int failing = 0, first = -1;
	if (all == NULL)
		return ENOMEM; /* cannot be: 16 bytes per rank; the others would wait for ever, so it is never quiet */
	cq_p.Allgather(&me, sizeof me, MPI_BYTE, all, sizeof me, MPI_BYTE, CQ_WORLD);
	for (int i = 0; i < cq.size; i++) {
		if (all[i].error != 0 && failing++ == 0)
			first = i;
	}
	if (first >= 0 && first != cq.rank)
		complained = 1;
	*others_fail = failing - 1;
	cq_clock_offsets_begin(all, sizeof *all);
	cq_pages_free(s.p, s.bytes);
	return 0;
}

static void report(int error, int others)
{
	const char *dir = getenv("COMMQ_SPOOL");
	if (complained || error == 0)
		return;
	complained = 1;
	if (cq.sessions && error == ENXIO && cq.rank == 0)
		cq_say("commq: the program uses MPI sessions, and nothing in its environment tells this launch from others: start it by commq capture, "
		      "or set COMMQ_JOB to another text for each launch; it runs unrecorded\n");
	else if (cq.sessions && error == EEXIST)
		cq_say("commq: rank %d: spool %s: the records of an earlier launch with this COMMQ_JOB are there; the rank runs unrecorded\n", cq.rank, dir);
	else if (cq.sessions && error == ENXIO)
		;
	else if (dir == NULL || *dir == 0)
		cq_say("commq: COMMQ_SPOOL is not set, so nothing is recorded; start the program by commq capture or commq exec\n");
	else if (others > 0)
		cq_say("commq: rank %d and %d more: spool %s: %s; these ranks run unrecorded\n", cq.rank, others, dir, strerror(error));
	else
		cq_say("commq: rank %d: spool %s: %s; the rank runs unrecorded\n", cq.rank, dir, strerror(error));
}

static int library_fits(void)
{
	char version[MPI_MAX_LIBRARY_VERSION_STRING + sizeof cq.library] = "";
	int n = 0;
	cq_p.Get_library_version(version, &n);
	version[sizeof cq.library - 1] = 0;
	strcpy(cq.library, version);
	if (CQ_OPENMPI)
		return strstr(version, "Open MPI") != NULL;
	return strstr(version, "MPICH") != NULL || strstr(version, "MVAPICH") != NULL;
}

static void record_init(cq_thread *t, int id, uint64_t t0, uint64_t t1)
{
	t->site = cq.init_site;
	t->cfa = cq.init_cfa;
	cq_call *c = cq_open(t, id);
	c->flags = 0;
	c->compute_ns = 0;
	c->t0 = CQ_AT(t, t0);
	c->comm = c->peer = c->tag = c->dtype = CQ_NULL32;
	c->count = CQ_NULL64;
	c->buf = 0;
	c->req = 0;
	c->kind = CQ_CALL;
	t->t1 = t1;
	cq_close(t, MPI_SUCCESS);
}

static void start_recording(int id, uint64_t t1)
{
	int others = 0, greeted;
	int error = spool_prepare();
	cq_thread *t = NULL;
	if (cq.sessions)
		cq.job = job_of_environment();
	else if (cq.rank == 0 && getrandom(&cq.job, sizeof cq.job, GRND_NONBLOCK) != sizeof cq.job)
		cq.job = cq.clock0_tick * 0x9e3779b97f4a7c15u ^ (uint64_t)getpid() << 32 ^ (uint64_t)cq.realtime_ns;
	if (!cq.sessions)
		cq_p.Bcast(&cq.job, sizeof cq.job, MPI_BYTE, 0, CQ_WORLD);
	else if (error == 0 && cq.job == 0)
		error = ENXIO;
	calibrate();
	prepare_sites();
	cq.offset_ns = cq.offset_error_ns = cq.offset_at_ns = CQ_NULL64;
	if (error == 0)
		error = table_init();
	CQ_VIRTUAL(if (error == 0 && !cq.sessions) cq_sim_begin();)
	if (error == 0)
		t = thread_open(&error);
	greeted = cq.sessions ? 0 : greet(error, &others);
	CQ_VIRTUAL(if (cq_world.split && others >= 0) t = NULL;) /* the others would wait for what an unrecorded rank does not say */
	if (t == NULL || greeted != 0) {
		report(error, others);
		cq.state = CQ_OFF;
		CQ_VIRTUAL(cq_sim_on = 0;)
		return;
	}
	t->head->offset_init_ns = cq.offset_ns;
	t->head->offset_init_error_ns = cq.offset_error_ns;
	t->head->offset_init_at_ns = cq.offset_at_ns;
	if (cq.sessions) {
		cq.comms_made = 2;
		t->comm = &cq.none_comm;
	} else {
		cq.has_world_group = cq_p.Comm_group(CQ_WORLD, &cq.world_group) == MPI_SUCCESS;
		cq_world_define(t);
	}
	cq.has_exit_key = pthread_key_create(&cq.exit_key, thread_exit) == 0;
	pthread_atfork(NULL, NULL, in_child); /* no locks: a child records nothing, and a fork in a signal handler must not wait */
	t->count[0] = t->count[1] = CQ_NULL64; /* nobody counted before MPI_Init */
	record_init(t, id, cq.init_tick, t1);
	cq_current = NULL;
	cq.first = t; /* before a signal handler sees that there is recording */
	cq_barrier();
	cq.state = CQ_ON;
	t->count[0] = t->count[1] = 0;
	t->count_reads = 0;
	if (t->due & CQ_DUE_COUNTS)
		cq_count_begin(t);
	t->cpu = cq.clock == CQ_CLOCK_CPU ? cpu_ns() : 0;
	t->shorts = 0;
	t->last = cq_tick();
	cq_leave(t);
}

/* Sees whether this process can be recorded at all, and as what. */
static int fit(void)
{
	if (!library_fits()) {
		cq.state = CQ_OFF;
		if (cq.rank == 0)
			cq_say("commq: the shim is for %s and the program runs with %.80s; it runs unrecorded\n", CQ_LIBRARY, cq.library);
		return 0;
	}
	const char *sink = getenv("COMMQ_SINK");
	cq.force_write = sink != NULL && strcmp(sink, "write") == 0;
	cq.count_only = sink != NULL && strcmp(sink, "null") == 0;
	cq.clock = clock_named();
	cq.counters = counters_named();
	cq.limit = limit_named();
	cq.locked = cq.sessions || cq.thread_level == 3; /* a later session can have several threads where the first had not */
	cq.status_fields = fields_mean_that();
	cq.f_base = fortran_base();
	cq.isendrecv_status = isendrecv_tells();
	cq.pid = getpid();
	who_we_are();
	cq_hash_begin();
	return 1;
}

/* MPI_Init after sessions: there is an MPI_COMM_WORLD from now on. */
static void init_again(cq_thread *t, int err)
{
	cq_back(t);
	if (err == MPI_SUCCESS) {
		__atomic_fetch_add(&cq.users, 1, __ATOMIC_ACQ_REL);
		if (!cq.has_world_group)
			cq.has_world_group = cq_p.Comm_group(CQ_WORLD, &cq.world_group) == MPI_SUCCESS;
		if (!CQ_SIM) /* there it was known from the beginning */
			cq_world_define(t);
	}
	cq_close(t, err);
}

void cq_init_after(int id, int err)
{
	uint64_t t1 = cq_tick();
	if (again != NULL) {
		cq_thread *t = again;
		again = NULL;
		init_again(t, err);
		return;
	}
	if (err != MPI_SUCCESS || cq.state != CQ_NEW)
		return;
	cq.users = 1;
#if CQ_SIM
	if (cq_world_meet(CQ_WORLD_APP) == CQ_WORLD_SIM)
		cq_bridge_in_init();
	if (!cq_world.split) {
		cq.state = CQ_OFF; /* nobody would take the records */
		signal_leave();
		opening = 0;
		return;
	}
#endif
	cq_p.Comm_rank(CQ_WORLD, &cq.rank);
	cq_p.Comm_size(CQ_WORLD, &cq.size);
	cq_p.Query_thread(&cq.thread_level);
	cq.thread_level = cq.thread_level >= MPI_THREAD_MULTIPLE ? 3 : cq.thread_level >= MPI_THREAD_SERIALIZED ? 2 : cq.thread_level >= MPI_THREAD_FUNNELED;
	if (!fit())
		return;
	start_recording(id, t1);
	if (cq.state != CQ_ON)
		signal_leave();
	opening = 0;
}

#if CQ_MPI4
/* The thread support of a session, by its info. */
static int level_of(MPI_Session s)
{
	static const char *const names[] = {"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED", "MPI_THREAD_SERIALIZED", "MPI_THREAD_MULTIPLE"};
	char value[64] = "";
	MPI_Info info;
	int there = 0;
	if (cq_p.Session_get_info(s, &info) != MPI_SUCCESS)
		return 3;
	cq_p.Info_get(info, "thread_level", sizeof value - 1, value, &there);
	cq_p.Info_free(&info);
	for (int i = 0; there && i < 3; i++) {
		if (strcmp(value, names[i]) == 0)
			return i;
	}
	return 3;
}

/* The group that stands for MPI_COMM_WORLD's. */
static int world_of(MPI_Session s)
{
	if (cq.has_world_group)
		return 1;
	if (cq_p.Group_from_session_pset(s, "mpi://WORLD", &cq.world_group) != MPI_SUCCESS)
		return 0;
	cq.has_world_group = 1;
	return 1;
}

/* Before an MPI_Session_init that is not recorded like other calls: it starts recording where it is the first. */
void cq_session_starts(const void *site, const void *cfa)
{
	cq_resolve();
	if (cq.state != CQ_NEW || __atomic_exchange_n(&cq.starting, 1, __ATOMIC_ACQ_REL) != 0)
		return;
	cq.init_site = site;
	cq.init_cfa = cfa;
	starting();
}

static void session_again(cq_thread *t, int err, const MPI_Session *s)
{
	cq_back(t);
	if (err == MPI_SUCCESS && __atomic_add_fetch(&cq.users, 1, __ATOMIC_ACQ_REL) == 1) { /* all others had ended */
		for (cq_thread *u = cq.list; u != NULL; u = u->link)
			u->head->ended = CQ_ENDED_NOT;
		world_of(*s);
	}
	cq.locked = 1; /* this session can have several threads */
	cq_close(t, err);
}

void cq_session_after(cq_thread *t, int err, const MPI_Session *s)
{
	uint64_t t1 = cq_tick();
	if (t != NULL) {
		session_again(t, err, s);
		return;
	}
	if (!opening || cq.state != CQ_NEW) { /* not recorded, or another thread is starting */
		if (err == MPI_SUCCESS)
			__atomic_fetch_add(&cq.users, 1, __ATOMIC_ACQ_REL);
		return;
	}
	if (err != MPI_SUCCESS) {
		opening = 0;
		cq.starting = 0;
		return;
	}
	__atomic_fetch_add(&cq.users, 1, __ATOMIC_ACQ_REL);
	cq.sessions = 1;
	if (!world_of(*s)) {
		cq.state = CQ_OFF;
		return;
	}
	cq_p.Group_rank(cq.world_group, &cq.rank);
	cq_p.Group_size(cq.world_group, &cq.size);
	cq.thread_level = level_of(*s);
	if (!fit())
		return;
	start_recording(CQ_Session_init, t1);
	opening = 0;
}
#endif

/* Ending. */

void cq_abort_before(cq_thread *t)
{
	t->head->ended = CQ_ENDED_ABORTED;
	t->head->polls = t->polls_all;
	cq_head_clock(t);
	for (cq_thread *u = cq.list; u != NULL; u = u->link)
		cq_sink_flush(u);
	CQ_VIRTUAL(cq_sim_sync();)
}

/* MPI_Init's or a session's use of MPI ends; returns whether it is the last. */
static int let_go(void)
{
	if (__atomic_sub_fetch(&cq.users, 1, __ATOMIC_ACQ_REL) > 0)
		return 0;
	cq_hash_end();
	if (cq.has_world_group && cq.state == CQ_ON) {
		cq_p.Group_free(&cq.world_group);
		cq.has_world_group = 0;
	}
	return 1;
}

/* Before MPI_Finalize, on every rank, also on one that does not record. */
void cq_finalize_before(cq_thread *t)
{
	if (cq.state == CQ_NEW || cq.finalizing)
		return;
	cq.finalizing = 1;
	cq_clock_offsets_end();
	let_go();
	if (t == NULL)
		return;
	t->head->offset_final_ns = cq.offset_ns;
	t->head->offset_final_error_ns = cq.offset_error_ns;
	t->head->offset_final_at_ns = cq.offset_at_ns;
}

void cq_finalize_after(cq_thread *t, int err)
{
	cq_back(t);
	cq_close(t, err);
	if (cq.users > 0) /* sessions go on */
		return;
	cq_current = NULL;
	cq.state = CQ_OFF;
	signal_leave();
	for (cq_thread *u = cq.list; u != NULL; u = u->link) {
		if (__atomic_exchange_n(&u->closing, 1, __ATOMIC_ACQ_REL))
			continue;
		wind_up(u, err == MPI_SUCCESS ? CQ_ENDED_FINALIZED : CQ_ENDED_NOT);
		cq_sink_close(u);
	}
}

#if CQ_MPI4
/* Before MPI_Session_finalize: whether it is the last. */
int cq_session_ends(void)
{
	return cq.state != CQ_NEW && let_go();
}

/* After the last session the files are as after MPI_Finalize, but stay open: another session may come. */
void cq_session_end_after(cq_thread *t, int err, int last)
{
	if (t == NULL)
		return;
	cq_back(t);
	cq_close(t, err);
	for (cq_thread *u = cq.list; last && err == MPI_SUCCESS && u != NULL; u = u->link) {
		if (!__atomic_load_n(&u->closing, __ATOMIC_ACQUIRE))
			wind_up(u, CQ_ENDED_FINALIZED);
	}
}
#endif

/* exit without MPI_Finalize. Other threads may still be running, so that their files must stay as they are mapped. */
__attribute__((destructor)) static void unloaded(void)
{
	if (cq.state != CQ_ON || getpid() != cq.pid) /* _Fork and clone call no handlers */
		return;
	cq.state = CQ_OFF;
	cq_current = NULL;
	for (cq_thread *u = cq.list; u != NULL; u = u->link) {
		if (__atomic_exchange_n(&u->closing, 1, __ATOMIC_ACQ_REL))
			continue;
		wind_up(u, CQ_ENDED_NOT);
		if (u == mine)
			cq_sink_close(u);
		else
			cq_sink_flush(u);
	}
	CQ_VIRTUAL(cq_sim_quit();)
}
