/* Call sites: numbers for return addresses and call paths, and the modules that contain the addresses. A thread finds
 * the number of a return address in its own cache. Behind the cache is a table of the process. A thread takes its
 * lock when it meets an address or path for the first time, and then also writes the definitions, before the call's
 * own slot. Frames of the shim and of the MPI library are left out, recognized by their module. With more than one
 * frame the key is the addresses themselves, so two paths never share a number. */
#include "sites.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <ucontext.h>
#endif

enum {
	MAX_FRAMES = 64, /* of a path */
	MAX_LEAD = 12,   /* frames of the shim and the MPI library before the program's */
	ID_BYTES = 32,   /* largest build id */
	SURE = 16,       /* checks after which the place of a return address in a library's frame is trusted */
};

/* A module that contained an address. Modules stay in the list when they are closed, or another module takes their
 * range. */
typedef struct module module;
struct module {
	module *next;
	uint64_t low, high, bias;
	uint32_t number;
	uint32_t generation; /* when it was last found among the loaded modules */
	int superseded;
	int32_t skip;
	int32_t id_bytes;
	uint8_t id[ID_BYTES];
	char *path;
};

/* A call path: frame i has the address at[i] in module modules_of(p)[i]; 0 means in no module. */
typedef struct {
	uint64_t hash;
	uint32_t number;
	uint32_t n;
	uint32_t generation;
	uint32_t spare;
	uint64_t at[];
} callpath;

static struct {
	uint32_t lock;
	uint32_t generation; /* counts dlclose */
	/* one sequence for modules and sites: a site's modules have the numbers just below its own */
	uint32_t numbers;
	module *modules;
	callpath **slots;
	uint64_t mask, used;
	char *pool;
	size_t pool_left;
	uint64_t self; /* an address in the shim */
} table;

/* libunwind; null if it is missing. */
static struct {
	int (*backtrace)(void **, int);
	int (*init_local)(void *, void *);
	int (*step)(void *);
	int (*get_reg)(void *, int, uint64_t *);
	void (*flush)(void *, uint64_t, uint64_t);
	void **space;
} unw;

static void table_lock(void)
{
	while (__atomic_exchange_n(&table.lock, 1, __ATOMIC_ACQUIRE) != 0)
		sched_yield();
}

static void table_unlock(void)
{
	__atomic_store_n(&table.lock, 0, __ATOMIC_RELEASE);
}

/* Memory that is never freed. */
static void *pool_get(size_t bytes)
{
	bytes = (bytes + 15) & ~(size_t)15;
	if (table.pool_left < bytes) {
		size_t more = bytes > 65536 ? bytes : 65536;
		table.pool = cq_pages(more);
		table.pool_left = table.pool != NULL ? more : 0;
	}
	if (table.pool_left < bytes)
		return NULL;
	void *p = table.pool;
	table.pool += bytes;
	table.pool_left -= bytes;
	return p;
}

/* Modules. */

/* Reports by the file name whether a library belongs to MPI, so that its frames are not the program's. */
static int is_mpi(const char *path)
{
	static const char *const stems[] = {"libmpi", "libmpi_mpifh", "libmpi_usempif08", "libmpi_usempi_ignore_tkr",
		"libmpi_usempi",
		"libmpi_cxx", "libmpi_java", "libmpi_f77", "libmpi_f90", "libmpi_abi", "libmpich", "libmpichfort",
			"libmpichcxx", "libmpifort",
		"libmpicxx", "libpmpi", "libfmpich", "libpmpich", "libopen-rte", "libopen-pal"};
	const char *base = strrchr(path, '/');
	base = base != NULL ? base + 1 : path;
	size_t n = strcspn(base, ".");
	if (strncmp(base, "mca_", 4) == 0 || cq_of_cray(base))
		return 1;
	for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
		if (strlen(stems[i]) == n && memcmp(stems[i], base, n) == 0)
			return 1;
	}
	return 0;
}

/* An address to find among the loaded modules, and the module found. */
typedef struct {
	uint64_t address;
	int found;
	module m;
	char path[PATH_MAX];
} wanted;

/* Reads the build id from a segment of notes. */
static void notes(module *m, uint64_t p, uint64_t bytes, uint64_t align)
{
	uint64_t end = p + bytes;
	if (align != 8)
		align = 4;
	while (p + sizeof(ElfW(Nhdr)) <= end) {
		const ElfW(Nhdr) *h = (const void *)(uintptr_t)p;
		uint64_t name = p + sizeof *h, data = name + ((h->n_namesz + align - 1) & ~(align - 1));
		if (data + h->n_descsz > end)
			return;
		if (h->n_type == NT_GNU_BUILD_ID && h->n_namesz == 4 && memcmp((const void *)(uintptr_t)name, "GNU", 4) == 0) {
			m->id_bytes = h->n_descsz < ID_BYTES ? (int32_t)h->n_descsz : ID_BYTES;
			memcpy(m->id, (const void *)(uintptr_t)data, (size_t)m->id_bytes);
			return;
		}
		p = data + ((h->n_descsz + align - 1) & ~(align - 1));
	}
}

static int visit(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	wanted *w = arg;
	uint64_t low = UINT64_MAX, high = 0, bias = info->dlpi_addr;
	int inside = 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t from = bias + p->p_vaddr, to = from + p->p_memsz;
		if (p->p_type != PT_LOAD)
			continue;
		low = from < low ? from : low;
		high = to > high ? to : high;
		inside |= w->address >= from && w->address < to;
	}
	if (!inside)
		return 0;
	w->found = 1;
	w->m.low = low;
	w->m.high = high;
	w->m.bias = bias;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t from = bias + p->p_vaddr;
		if (p->p_type == PT_NOTE && w->m.id_bytes == 0 && from >= low && from + p->p_memsz <= high)
			notes(&w->m, from, p->p_memsz, p->p_align);
	}
	const char *name = info->dlpi_name != NULL ? info->dlpi_name : "";
	size_t n = strnlen(name, sizeof w->path - 1);
	memcpy(w->path, name, n);
	w->path[n] = 0;
	return 1;
}

/* Sets the path of the module's file: absolute if possible, because a reader may run in another folder. */
static void set_path(wanted *w)
{
	static char full[PATH_MAX];
	ssize_t n;
	if (w->path[0] == 0) { /* empty for the executable */
		n = readlink("/proc/self/exe", w->path, sizeof w->path - 1);
		w->path[n > 0 ? n : 0] = 0;
	} else if (w->path[0] != '/' && strchr(w->path, '/') != NULL && realpath(w->path, full) != NULL) {
		memcpy(w->path, full, strlen(full) + 1);
	}
}

static int is_module(const module *a, const wanted *w)
{
	return a->low == w->m.low && a->high == w->m.high && a->bias == w->m.bias && a->id_bytes == w->m.id_bytes &&
		memcmp(a->id, w->m.id, (size_t)a->id_bytes) == 0 && strcmp(a->path, w->path) == 0;
}

static void module_put(cq_thread *t, const module *m)
{
	static struct {
		cq_def_module fixed;
		char rest[ID_BYTES + PATH_MAX];
	} d;
	d.fixed = (cq_def_module){m->low, m->high, m->bias, m->id_bytes, m->skip};
	size_t id = (size_t)m->id_bytes, n = strlen(m->path);
	memcpy(d.rest, m->id, id);
	memcpy(d.rest + id, m->path, n);
	cq_def_put(t, CQ_DEF_MODULE, m->number, &d, sizeof d.fixed + id + n);
}

/* Adds the module found, which takes its range over from older ones. */
static module *module_new(cq_thread *t, const wanted *w)
{
	module *m = pool_get(sizeof *m);
	size_t n = strlen(w->path) + 1;
	char *path = pool_get(n);
	if (m == NULL || path == NULL)
		return NULL;
	*m = w->m;
	m->path = memcpy(path, w->path, n);
	m->skip = is_mpi(path) || (table.self >= m->low && table.self < m->high);
	m->generation = table.generation;
	m->number = ++table.numbers;
	for (module *o = table.modules; o != NULL; o = o->next)
		o->superseded |= o->low < m->high && m->low < o->high;
	m->next = table.modules;
	table.modules = m;
	module_put(t, m);
	return m;
}

/* The module of an address; NULL for code generated at run time. Call under the lock, which also protects the static
 * variables of this function and of those that it calls: the stack of a thread may have 16 KiB. */
static module *module_of(cq_thread *t, uint64_t address)
{
	for (module *m = table.modules; m != NULL; m = m->next) {
		if (!m->superseded && m->generation == table.generation && address >= m->low && address < m->high)
			return m;
	}
	static wanted w;
	w.address = address;
	w.found = 0;
	memset(&w.m, 0, sizeof w.m);
	dl_iterate_phdr(visit, &w);
	if (!w.found)
		return NULL;
	set_path(&w);
	for (module *m = table.modules; m != NULL; m = m->next) {
		if (!m->superseded && is_module(m, &w)) {
			m->generation = table.generation;
			return m;
		}
	}
	return module_new(t, &w);
}

/* Paths. */

static uint32_t *modules_of(callpath *p)
{
	return (uint32_t *)(void *)&p->at[p->n];
}

static uint64_t hash_of(const uint64_t *at, uint32_t n)
{
	uint64_t h = n;
	for (uint32_t i = 0; i < n; i++)
		h = cq_hash_key(h ^ at[i]);
	return h;
}

static int is_path(const callpath *p, uint64_t hash, const uint64_t *at, uint32_t n)
{
	return p->hash == hash && p->n == n && memcmp(p->at, at, n * sizeof *at) == 0;
}

static int grow(void)
{
	uint64_t n = table.slots == NULL ? 1024 : 2 * (table.mask + 1);
	callpath **slots = cq_pages(n * sizeof(callpath *)), **old = table.slots;
	if (slots == NULL)
		return 0;
	for (uint64_t i = 0; old != NULL && i <= table.mask; i++) {
		uint64_t at = old[i] != NULL ? old[i]->hash & (n - 1) : 0;
		if (old[i] == NULL)
			continue;
		while (slots[at] != NULL)
			at = (at + 1) & (n - 1);
		slots[at] = old[i];
	}
	if (old != NULL)
		cq_pages_free(old, (table.mask + 1) * sizeof(callpath *));
	table.slots = slots;
	table.mask = n - 1;
	return 1;
}

/* The path of these addresses, without a number if it is new; NULL if memory runs out. */
static callpath *path_entry(uint64_t hash, const uint64_t *at, uint32_t n)
{
	if (2 * table.used >= table.mask && !grow())
		return NULL;
	uint64_t i = hash & table.mask;
	for (; table.slots[i] != NULL; i = (i + 1) & table.mask) {
		if (is_path(table.slots[i], hash, at, n))
			return table.slots[i];
	}
	callpath *p = pool_get(sizeof *p + n * (sizeof(uint64_t) + sizeof(uint32_t)));
	if (p == NULL)
		return NULL;
	p->hash = hash;
	p->n = n;
	p->number = 0;
	memcpy(p->at, at, n * sizeof *at);
	table.slots[i] = p;
	table.used++;
	return p;
}

/* The path of these addresses. Defines it in the thread's file if it is new, or if other modules are loaded now. */
static callpath *path_find(cq_thread *t, uint64_t hash, const uint64_t *at, uint32_t n)
{
	table_lock();
	callpath *p = path_entry(hash, at, n);
	if (p != NULL && (p->number == 0 || p->generation != table.generation)) {
		int same = p->number != 0;
		for (uint32_t i = 0; i < n; i++) {
			module *m = module_of(t, at[i] - 1);
			uint32_t number = m != NULL ? m->number : 0;
			same &= modules_of(p)[i] == number;
			modules_of(p)[i] = number;
		}
		p->generation = table.generation;
		if (!same) {
			p->number = ++table.numbers;
			cq_def_put(t, CQ_DEF_SITE, p->number, at, n * sizeof *at);
		}
	}
	table_unlock();
	return p;
}

/* Reports whether an address is in the shim or in the MPI library. */
static int is_skipped(cq_thread *t, uint64_t address)
{
	table_lock();
	module *m = module_of(t, address - 1);
	int skip = m != NULL && m->skip;
	table_unlock();
	return skip;
}

/* Frames. */

#if defined(__x86_64__)
#define CURSOR(name) "_ULx86_64_" name
enum { REG_SP = 7, REG_IP = 16 };

/* Walks from here to the first frame of the program and returns its address, or 0 if not found; *away is where the
 * stack holds that address, as an offset from t->cfa. Used only if the frames before it are the MPI library's. */
static uint64_t __attribute__((noinline)) step_out(cq_thread *t, int64_t *away)
{
	uint64_t cursor[1024] __attribute__((aligned(16)));
	ucontext_t here;
	uint64_t ip = 0, sp = 0;
	if (unw.init_local == NULL || getcontext(&here) != 0 || unw.init_local(cursor, &here) != 0)
		return 0;
	for (int i = 0; ip != (uint64_t)(uintptr_t)t->site; i++) {
		if (i == MAX_LEAD || unw.step(cursor) <= 0 || unw.get_reg(cursor, REG_IP, &ip) != 0)
			return 0;
	}
	if (unw.get_reg(cursor, REG_SP, &sp) != 0 || sp != (uint64_t)(uintptr_t)t->cfa)
		return 0;
	for (int i = 0; is_skipped(t, ip); i++) {
		if (i == MAX_LEAD || unw.step(cursor) <= 0 || unw.get_reg(cursor, REG_IP, &ip) != 0 ||
			unw.get_reg(cursor, REG_SP, &sp) != 0)
			return 0;
	}
	*away = (int64_t)(sp - 8 - (uint64_t)(uintptr_t)t->cfa);
	uint64_t there;
	memcpy(&there, (const char *)t->cfa + *away, sizeof there);
	return there == ip ? ip : 0;
}
#else
#define CURSOR(name) ""

static uint64_t step_out(cq_thread *t, int64_t *away)
{
	(void)t;
	(void)away;
	return 0;
}
#endif

static cq_hop *hop_of(cq_thread *t)
{
	return &t->hops[cq_hash_key((uint64_t)(uintptr_t)t->site) % (sizeof t->hops / sizeof t->hops[0])];
}

static cq_site_slot *slot_of(cq_thread *t, uint64_t key)
{
	return &t->sites[cq_hash_key(key) % (sizeof t->sites / sizeof t->sites[0])];
}

/* The number of a return address in the program. */
static uint32_t number_of(cq_thread *t, uint64_t address)
{
	cq_site_slot *s = slot_of(t, address);
	if (s->key == address)
		return s->number;
	callpath *p = path_find(t, hash_of(&address, 1), &address, 1);
	if (p == NULL)
		return 0;
	s->number = p->number;
	s->key = address;
	return p->number;
}

/* The call came through the MPI library (MPICH's Fortran functions call the C ones). For calls from one place, the
 * library's frame holds the program's return address at the same offset. So it is read from there once the unwinder
 * has found it there often enough, provided that the address was seen before. */
static uint32_t through_library(cq_thread *t, cq_hop *h)
{
	uint64_t address;
	memcpy(&address, (const char *)t->cfa + h->away, sizeof address);
	cq_site_slot *s = slot_of(t, address);
	if (h->sure >= SURE && s->key == address)
		return s->number;
	int64_t away = h->away;
	uint64_t found = step_out(t, &away);
	if (found == 0)
		return 0;
	h->sure = away == h->away ? h->sure + 1 : 0;
	h->away = away;
	return number_of(t, found);
}

/* One frame. */
static uint32_t single(cq_thread *t)
{
	uint64_t address = (uint64_t)(uintptr_t)t->site;
	cq_hop *h = hop_of(t);
	if (h->site == t->site)
		return through_library(t, h);
	if (!is_skipped(t, address))
		return number_of(t, address);
	int64_t away = 0;
	uint64_t found = step_out(t, &away);
	if (found == 0)
		return 0;
	h->away = away;
	h->sure = 0;
	h->site = t->site;
	return number_of(t, found);
}

/* Finds the first frame of the program in a backtrace; -1 if it has none. */
static int leading(cq_thread *t, cq_hop *h, void *const *raw, int n)
{
	int at = 0, lead;
	while (at < n && raw[at] != t->site)
		at++;
	for (lead = at; lead < n && is_skipped(t, (uint64_t)(uintptr_t)raw[lead]); lead++)
		;
	if (lead >= n)
		return -1;
	h->at = at;
	h->lead = lead;
	h->site = t->site;
	return lead;
}

/* For a stack that cannot be walked: the path is the return address alone. */
static uint32_t not_walked(cq_thread *t)
{
	uint64_t address = (uint64_t)(uintptr_t)t->site;
	if (is_skipped(t, address))
		return 0;
	callpath *p = path_find(t, hash_of(&address, 1), &address, 1);
	return p != NULL ? p->number : 0;
}

/* Several frames. The index of the program's first frame is cached by return address, and checked each time. */
static uint32_t __attribute__((noinline)) walk(cq_thread *t)
{
	void *raw[MAX_FRAMES + MAX_LEAD];
	cq_hop *h = hop_of(t);
	int known = h->site == t->site;
	int lead = known ? h->lead : MAX_LEAD;
	int n = unw.backtrace(raw, cq.stack + lead);
	if (known && (n <= lead || raw[h->at] != t->site)) {
		known = 0;
		n = unw.backtrace(raw, cq.stack + MAX_LEAD);
	}
	if (!known)
		lead = leading(t, h, raw, n);
	if (lead < 0)
		return not_walked(t);
	n = n - lead < cq.stack ? n - lead : cq.stack;
	const uint64_t *at = (const uint64_t *)(const void *)&raw[lead];
	while (n > 1 && at[n - 1] == 0)
		n--;
	uint64_t hash = hash_of(at, (uint32_t)n);
	cq_site_slot *s = slot_of(t, hash);
	callpath *p = (callpath *)(uintptr_t)s->key;
	if (p == NULL || !is_path(p, hash, at, (uint32_t)n)) {
		p = path_find(t, hash, at, (uint32_t)n);
		if (p == NULL)
			return 0;
		s->key = (uint64_t)(uintptr_t)p;
		s->number = p->number;
	}
	return s->number;
}

uint32_t cq_site_slow(cq_thread *t)
{
	if (cq.stack == 0) {
		cq_site_slot *s = slot_of(t, (uint64_t)(uintptr_t)t->site);
		s->number = 0;
		s->key = (uint64_t)(uintptr_t)t->site;
		return 0;
	}
	int e = errno;
	uint32_t number = cq.stack == 1 ? single(t) : walk(t);
	errno = e;
	return number;
}

/* Reports whether calls from Fortran come through the MPI library's own code. */
static int hops_expected(void)
{
	return CQ_MPICH && dlsym(RTLD_DEFAULT, "mpi_send_") != NULL;
}

int cq_sites_init(void)
{
	void *nothing[4];
	table.self = (uint64_t)(uintptr_t)&cq_site_slow;
	if (cq.stack < 2 && !hops_expected())
		return 1;
	void *lib = dlopen("libunwind.so.8", RTLD_LAZY | RTLD_LOCAL);
	if (lib == NULL)
		return 0;
	*(void **)&unw.backtrace = dlsym(lib, "unw_backtrace");
	*(void **)&unw.init_local = dlsym(lib, CURSOR("init_local"));
	*(void **)&unw.step = dlsym(lib, CURSOR("step"));
	*(void **)&unw.get_reg = dlsym(lib, CURSOR("get_reg"));
	*(void **)&unw.flush = dlsym(lib, "_Ux86_64_flush_cache");
	unw.space = dlsym(lib, CURSOR("local_addr_space"));
	if (unw.step == NULL || unw.get_reg == NULL)
		unw.init_local = NULL;
	if (unw.backtrace == NULL)
		return 0;
	unw.backtrace(nothing, 4); /* libunwind builds its tables at its first call */
	return 1;
}

/* A module may have been replaced by another one, so addresses must be looked up again. */
static void modules_change(void)
{
	table_lock();
	table.generation++;
	table_unlock();
	if (unw.flush != NULL && unw.space != NULL)
		unw.flush(*unw.space, 0, 0);
	for (cq_thread *t = __atomic_load_n(&cq.list, __ATOMIC_ACQUIRE); t != NULL; t = t->link) {
		if (t->closing)
			continue;
		for (size_t i = 0; i < sizeof t->sites / sizeof t->sites[0]; i++)
			__atomic_store_n(&t->sites[i].key, 0, __ATOMIC_RELAXED);
		for (size_t i = 0; i < sizeof t->hops / sizeof t->hops[0]; i++)
			__atomic_store_n(&t->hops[i].site, NULL, __ATOMIC_RELAXED);
	}
}

CQ_EXPORT int dlclose(void *handle)
{
	static int (*next)(void *);
	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "dlclose");
	int r = next(handle), e = errno;
	if (cq.state == CQ_ON && getpid() == cq.pid) /* _Fork and clone call no handlers, and the lock may be held */
		modules_change();
	errno = e;
	return r;
}
