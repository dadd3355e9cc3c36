/* Finds the MPI library's functions, and handles processes whose library is not the one the shim is built for. */
#include "library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "print.h"

cq_fns cq_p;
cq_fns cq_next;
cq_ffns cq_f;
cq_data cq_d;

static void missing(void)
{
	cq_print("commq: this process calls an MPI function that its MPI library does not have, or it uses another library "
		"than %s, which the shim is for; run it without commq, or name its library with --mpi, or its compiler wrapper with "
		"--mpicc\n", CQ_LIBRARY);
	abort();
}

int cq_is_missing(void (*function)(void))
{
	return function == missing;
}

int cq_of_cray(const char *path)
{
	static const char *const stems[] = {"libmpi_", "libmpifort_"};
	const char *base = strrchr(path, '/');
	base = base != NULL ? base + 1 : path;
	for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) {
		const char *version = strstr(base, ".so.12");
		if (strncmp(base, stems[i], strlen(stems[i])) == 0 && version != NULL && (version[6] == 0 || version[6] == '.'))
			return 1;
	}
	return 0;
}

/* The libraries of Cray MPICH in the process, for C and Fortran. */
typedef struct {
	size_t n;
	char path[2][PATH_MAX];
} cq_cray;

static int add_cray(struct dl_phdr_info *o, size_t size, void *list)
{
	cq_cray *cray = list;
	(void)size;
	if (cray->n < 2 && cq_of_cray(o->dlpi_name) && strlen(o->dlpi_name) < PATH_MAX)
		strcpy(cray->path[cray->n++], o->dlpi_name);
	return 0;
}

/* Finds a symbol in a library that is loaded; NULL if it is not, or has no such symbol. */
static void *symbol_of(const char *library, const char *name)
{
	void *lib = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	if (lib == NULL)
		return NULL;
	void *p = dlsym(lib, name);
	dlclose(lib);
	return p;
}

static void *find_symbol(const cq_cray *cray, const char *name)
{
	static const char *const sonames[] = CQ_SONAMES;
	void *p = dlsym(RTLD_DEFAULT, name);
	/* Libraries loaded for one module only (as by an import in Python) are outside the default scope. */
	for (size_t i = 0; p == NULL && i < sizeof sonames / sizeof *sonames; i++)
		p = symbol_of(sonames[i], name);
	for (size_t i = 0; p == NULL && i < cray->n; i++)
		p = symbol_of(cray->path[i], name);
	return p;
}

/* Libraries of all families. One that is not the shim's may be loaded late, by a module. */
static const char *const all_sonames[] = {CQ_ABI_SONAME, "libmpi.so.40", "libmpi_mpifh.so.40",
	"libmpi_usempif08.so.40", "libmpich.so.12", "libmpichfort.so.12", "libmpi.so.12", "libmpifort.so.12"};

/* find_symbol, and if no library of the shim's family is in the process, in the others. */
static void *find_anywhere(const cq_cray *cray, int own, const char *name)
{
	void *p = find_symbol(cray, name);
	for (size_t i = 0; !own && p == NULL && i < sizeof all_sonames / sizeof *all_sonames; i++)
		p = symbol_of(all_sonames[i], name);
	return p;
}

/* Whether the library in the process is of another family than the shim is for, by the file that a function of it
 * is in: see cq_library_is_foreign. */
static int foreign;

static int find_foreign(const void *function, const void *world_of_openmpi)
{
	static const char stem[] = "libmpi_abi.so";
	Dl_info at, world;
	if (function == NULL || dladdr(function, &at) == 0 || at.dli_fname == NULL)
		return 0;
	const char *base = strrchr(at.dli_fname, '/');
	int abi = strncmp(base != NULL ? base + 1 : at.dli_fname, stem, sizeof stem - 1) == 0;
	/* A program of MPICH may have Open MPI in its process too. A program of Open MPI has the object itself, not its library. */
	int openmpi = world_of_openmpi != NULL &&
		(CQ_OPENMPI || (dladdr(world_of_openmpi, &world) != 0 && world.dli_fbase == at.dli_fbase));
	return abi != CQ_ABI || (!abi && openmpi != CQ_OPENMPI);
}

int cq_library_is_foreign(void)
{
	return foreign;
}

int cq_library_has(const char *function)
{
	cq_cray cray = {.n = 0};
	if (CQ_MPICH)
		dl_iterate_phdr(add_cray, &cray);
	return find_symbol(&cray, function) != NULL;
}

typedef struct {
	const char *name;
	void *where; /* the pointer to set */
} cq_symbol;

/* The objects of the process by their addresses, and which of them the MPI library's functions are in. */
#define MOST_OBJECTS 1024
typedef struct {
	int n;
	uintptr_t begin[MOST_OBJECTS], end[MOST_OBJECTS];
	char of_mpi[MOST_OBJECTS];
} cq_objects;

static int add_object(struct dl_phdr_info *o, size_t size, void *list)
{
	cq_objects *all = list;
	uintptr_t begin = UINTPTR_MAX, end = 0;
	(void)size;
	for (int i = 0; i < o->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &o->dlpi_phdr[i];
		if (h->p_type != PT_LOAD)
			continue;
		uintptr_t from = (uintptr_t)(o->dlpi_addr + h->p_vaddr), to = from + h->p_memsz;
		begin = from < begin ? from : begin;
		end = to > end ? to : end;
	}
	if (all->n < MOST_OBJECTS && begin < end) {
		all->begin[all->n] = begin;
		all->end[all->n++] = end;
	}
	return 0;
}

static int object_of(const cq_objects *all, const void *p)
{
	for (int i = 0; i < all->n; i++) {
		if ((uintptr_t)p >= all->begin[i] && (uintptr_t)p < all->end[i])
			return i;
	}
	return -1;
}

/* The name that programs call a function by, from the library's other name: MPI_Send, mpi_send_, mpi_send_f08_. */
static void public_name(const char *name, char *to, size_t cap)
{
	static const char *const own[] = {"PMPI_", "PMPIX_", "pmpir_", "pmpixr_", "pmpix_", "pmpi_"};
	static const char *const public[] = {"MPI_", "MPIX_", "mpi_", "mpix_", "mpix_", "mpi_"};
	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
		if (strncmp(name, own[i], strlen(own[i])) == 0) {
			snprintf(to, cap, "%s%s", public[i], name + strlen(own[i]));
			return;
		}
	}
	*to = 0;
}

/* Where another library behind the shim wraps MPI too, as a profiler in LD_PRELOAD does, the program's calls go on to
 * it. Calls of the shim itself do not: the tool sees what it would see without us. */
static void chain_tools(const cq_symbol *functions, size_t n)
{
	static cq_objects all;
	char name[128];
	void (*none)(void) = missing;
	void *own, *p;
	int at;
	dl_iterate_phdr(add_object, &all);
	for (size_t i = 0; i < n; i++) {
		memcpy(&own, functions[i].where, sizeof own);
		if (memcmp(&own, &none, sizeof own) != 0 && (at = object_of(&all, own)) >= 0)
			all.of_mpi[at] = 1;
	}
	for (size_t i = 0; i < n; i++) {
		uint8_t *where = functions[i].where;
		public_name(functions[i].name, name, sizeof name);
		p = *name != 0 ? dlsym(RTLD_NEXT, name) : NULL;
		if (p == NULL || (at = object_of(&all, p)) < 0 || all.of_mpi[at])
			continue;
		if (where >= (uint8_t *)&cq_p && where < (uint8_t *)(&cq_p + 1))
			where = (uint8_t *)&cq_next + (where - (uint8_t *)&cq_p);
		memcpy(where, &p, sizeof p);
	}
}

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
	static cq_cray cray;
	static int resolved;
	if (resolved)
		return;
	cray.n = 0;
	if (CQ_MPICH)
		dl_iterate_phdr(add_cray, &cray);
	int own = find_symbol(&cray, "PMPI_Init") != NULL;
	foreign = find_foreign(find_anywhere(&cray, own, "PMPI_Init"), find_anywhere(&cray, own, "ompi_mpi_comm_world"));
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		void *p = find_anywhere(&cray, own, functions[i].name);
		void (*m)(void) = missing;
		if (p == NULL)
			memcpy(functions[i].where, &m, sizeof m);
		else
			memcpy(functions[i].where, &p, sizeof p);
	}
	for (size_t i = 0; data[i].name != NULL; i++) {
		void *p = find_symbol(&cray, data[i].name);
		if (p == NULL)
			p = nothing;
		memcpy(data[i].where, &p, sizeof p);
	}
	cq_next = cq_p;
	if (!CQ_SIM)
		chain_tools(functions, sizeof functions / sizeof *functions);
	resolved = 1;
}

/* Reports whether this is rank 0 of its job, according to the launcher's environment, which is all that is known
 * before MPI_Init. Rank 0 prints messages for all. */
int cq_first_rank(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *v = getenv(names[i]);
		if (v != NULL && *v != 0)
			return strcmp(v, "0") == 0;
	}
	return 1;
}

/* A shim built for one library cannot even pass on the other's calls, because the sizes of handles differ. So a
 * process with the wrong library is started again without the shim, before main begins. */
static void restart_without_shim(char **argv)
{
	Dl_info self;
	const char *list = getenv("LD_PRELOAD");
	char *rest = list != NULL ? strdup(list) : NULL;
	char *remaining = list != NULL ? calloc(1, strlen(list) + 1) : NULL;
	if (rest == NULL || remaining == NULL || dladdr((void *)&cq_p, &self) == 0)
		return;
	char *save = NULL;
	int removed = 0;
	for (char *f = strtok_r(rest, ": ", &save); f != NULL; f = strtok_r(NULL, ": ", &save)) {
		if (strcmp(f, self.dli_fname) == 0) {
			removed = 1;
			continue;
		}
		if (*remaining != 0)
			strcat(remaining, ":");
		strcat(remaining, f);
	}
	if (!removed)
		return;
	if (*remaining != 0)
		setenv("LD_PRELOAD", remaining, 1);
	else
		unsetenv("LD_PRELOAD");
	if (cq_first_rank())
		cq_print("commq: the shim is for %s, but the program is linked to another MPI library; the program runs "
			"unrecorded\n", CQ_LIBRARY);
	execv("/proc/self/exe", argv);
}

__attribute__((constructor)) static void loaded(int argc, char **argv, char **envp)
{
	(void)argc;
	(void)envp;
	int mpi = dlsym(RTLD_DEFAULT, "PMPI_Init") != NULL;
	int openmpi = dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") != NULL;
	int abi = mpi && symbol_of(CQ_ABI_SONAME, "PMPI_Init") != NULL;
	if (mpi && (abi != CQ_ABI || (openmpi && !abi) != CQ_OPENMPI))
		restart_without_shim(argv);
}
