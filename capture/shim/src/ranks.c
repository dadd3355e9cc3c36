/* Separates the program's ranks from simulator ranks, and starts and ends MPI for both. */
#include "lifetime.h"

#if CQ_SIM

#include <dlfcn.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>

#include "bridge.h"
#include "ranks.h"

typedef int main_function(int, char **, char **);

#if CQ_OPENMPI
#define WORLD_F 0
cq_world_state cq_world = {.world_f = WORLD_F, .app_f = WORLD_F};
#else
cq_world_state cq_world = {.app = MPI_COMM_WORLD, .world_f = MPI_COMM_WORLD, .app_f = MPI_COMM_WORLD};
#endif

/* A rank's message to the others: its role, and how many of the last ranks are simulators if none started as one. */
typedef struct {
	int role, sims;
} place;

enum { UNNAMED = -1, NO_NUMBER = -2 };

static int sims_named(void)
{
	const char *s = getenv("COMMQ_SIM_RANKS");
	char *end;
	if (s == NULL || *s == 0)
		return UNNAMED;
	long n = strtol(s, &end, 10);
	return *end != 0 || n < 0 || n > INT32_MAX ? NO_NUMBER : (int)n;
}

/* Assigns the roles when no rank started as a simulator. Returns 0, and prints why, if the job cannot have
 * simulators. */
static int assign_roles(place *places, int size, int rank)
{
	int m = places[0].sims, equal = 1;
	for (int i = 1; i < size; i++)
		equal &= places[i].sims == m;
	if (equal && m > 0 && m < size) {
		for (int i = size - m; i < size; i++)
			places[i].role = CQ_WORLD_SIM;
		return 1;
	}
	if (rank != 0)
		return 0;
	if (!equal)
		cq_print("commq: COMMQ_SIM_RANKS is not the same on all ranks; there are no simulator ranks, and the program "
			"runs unrecorded\n");
	else if (m == UNNAMED)
		cq_print("commq: no simulator ranks: none runs commq-bridge, and COMMQ_SIM_RANKS is not set; start the "
			"program by commq capture --sim-ranks; it runs unrecorded\n");
	else if (m <= 0)
		cq_print("commq: COMMQ_SIM_RANKS=%.40s: give a number from 1 to %d, one less than the %d ranks; the program "
			"runs unrecorded\n", getenv("COMMQ_SIM_RANKS"), size - 1, size);
	else
		cq_print("commq: COMMQ_SIM_RANKS=%d leaves none of the %d ranks for the program: launch %d more; it runs "
			"unrecorded\n", m, size, m);
	return 0;
}

/* Copies the attribute to the program's duplicates of the communicator. */
static int copy_attribute(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
	(void)comm;
	(void)keyval;
	(void)extra;
	memcpy(out, &in, sizeof in);
	*flag = 1;
	return MPI_SUCCESS;
}

static int delete_nothing(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm;
	(void)keyval;
	(void)value;
	(void)extra;
	return MPI_SUCCESS;
}

/* MPI_Finalize begins by deleting MPI_COMM_SELF's attributes, the most recent first, and then MPI_COMM_WORLD's. */
static int self_ends(MPI_Comm comm, int keyval, void *value, void *extra)
{
	(void)comm;
	(void)keyval;
	(void)value;
	(void)extra;
	MPI_Comm app = cq_world.app;
	if (app != MPI_COMM_WORLD)
		cq_p.Comm_free(&app);
	return MPI_SUCCESS;
}

static int copy_none(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
	(void)comm;
	(void)keyval;
	(void)extra;
	(void)in;
	(void)out;
	*flag = 0;
	return MPI_SUCCESS;
}

static void set_attributes(void)
{
	int ends;
	if (CQ_OPENMPI && cq_p.Comm_create_keyval(copy_attribute, delete_nothing, &cq_world.derived, NULL) == MPI_SUCCESS)
		cq_p.Comm_set_attr(cq_world.app, cq_world.derived, NULL);
	if (cq_p.Comm_create_keyval(copy_none, self_ends, &ends, NULL) == MPI_SUCCESS)
		cq_p.Comm_set_attr(MPI_COMM_SELF, ends, NULL);
}

int cq_world_meet(int role)
{
	MPI_Comm parent = MPI_COMM_NULL;
	cq_scratch places_s = {NULL, 0}, ranks_s = {NULL, 0};
	int rank, size, n = 0;
	cq_world.app = MPI_COMM_WORLD;
	cq_p.Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL)
		return CQ_WORLD_APP;
	cq_p.Comm_rank(MPI_COMM_WORLD, &rank);
	cq_p.Comm_size(MPI_COMM_WORLD, &size);
	place me = {role, sims_named()};
	place *places = cq_scratch_get(&places_s, (size_t)size * sizeof *places);
	int *ranks = cq_scratch_get(&ranks_s, (size_t)size * sizeof *ranks);
	if (places == NULL || ranks == NULL)
		abort(); /* a few bytes per rank; the others would wait for ever */
	cq_p.Comm_dup(MPI_COMM_WORLD, &cq_world.channel);
	cq_p.Comm_set_errhandler(cq_world.channel, MPI_ERRORS_RETURN);
	cq_p.Allgather(&me, sizeof me, MPI_BYTE, places, sizeof me, MPI_BYTE, cq_world.channel);
	for (int i = 0; i < size; i++)
		n += places[i].role == CQ_WORLD_SIM;
	if (n == size && rank == 0)
		cq_print("commq: commq-bridge runs on all the job's ranks (%d), a program on none; start both in one job, as "
			"commq capture --sim-ranks does\n", size);
	if (n == size || (n == 0 && !assign_roles(places, size, rank))) {
		cq_p.Comm_free(&cq_world.channel);
		cq_pages_free(places_s.p, places_s.bytes);
		cq_pages_free(ranks_s.p, ranks_s.bytes);
		return CQ_WORLD_APP;
	}
	for (int kind = CQ_WORLD_APP; kind <= CQ_WORLD_SIM; kind++) {
		for (int i = 0; i < size; i++) {
			if (places[i].role != kind)
				continue;
			int k = kind == CQ_WORLD_APP ? cq_world.apps++ : cq_world.sims++;
			if (i == rank)
				cq_world.self = k;
			ranks[cq_world.apps + cq_world.sims - 1] = i;
		}
	}
	role = places[rank].role;
	cq_world.ranks = ranks;
	cq_pages_free(places_s.p, places_s.bytes);
	cq_p.Comm_split(MPI_COMM_WORLD, role, rank, &cq_world.app);
	cq_p.Comm_set_name(cq_world.app, "MPI_COMM_WORLD");
#if CQ_OPENMPI
	cq_world.app_f = cq_p.Comm_c2f(cq_world.app);
#else
	cq_world.app_f = cq_world.app;
#endif
	cq_world.split = 1;
	if (role == CQ_WORLD_APP)
		set_attributes();
	else
		__fpurge(stdout); /* drops the program's buffered output: MPI may write it out */
	return role;
}

void cq_world_free(void)
{
	if (!cq_world.split)
		return;
	cq_world.split = 0;
	cq_p.Comm_free(&cq_world.channel);
}

int cq_world_begun(void)
{
	if (!cq_world.ours)
		return 0;
	cq_world.ours = 0;
	__atomic_fetch_sub(&cq.users, 1, __ATOMIC_ACQ_REL); /* the program's use of MPI replaces ours */
	return 1;
}

int cq_world_stays(void)
{
	if (!cq_world.late || cq_world.finalized)
		return 0;
	return cq_world.finalized = 1;
}

#if CQ_MPI4
/* Sessions. The ranks find their roles on MPI_COMM_WORLD, so if a program opens a session first, we call MPI_Init
 * without its knowledge: to the program MPI is not initialized, and it may still call MPI_Init. Another session can
 * come after the last one, so MPI is finalized when the program exits. */

static uint32_t absent_lock;

/* Reports whether the program opens a session before anything else: then begin_all initializes MPI, and releases the
 * lock. */
static int absent(void)
{
	int there = 1, gone = 1;
	cq_resolve();
	cq_spin(&absent_lock);
	cq_p.Initialized(&there);
	cq_p.Finalized(&gone);
	if (!there && !gone)
		return 1;
	__atomic_store_n(&absent_lock, 0, __ATOMIC_RELEASE);
	return 0;
}

static void at_exit(void)
{
	int gone = 1;
	cq_p.Finalized(&gone);
	cq_world.finalized = 1;
	if (!gone)
		MPI_Finalize();
}

/* A session was opened: postpone MPI_Finalize from now on. */
static void finalize_late(void)
{
	if ((cq_world.split || cq_world.ours) && __atomic_exchange_n(&cq_world.late, 1, __ATOMIC_ACQ_REL) == 0)
		atexit(at_exit);
}

static void begin_all(void)
{
	int provided;
	/* the thread level of a later session is unknown */
	int err = cq_p.Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
	cq_world.ours = err == MPI_SUCCESS;
	cq_init_after(CQ_Session_init, err);
	__atomic_store_n(&absent_lock, 0, __ATOMIC_RELEASE);
}

int cq_world_session_opens(const void *site, const void *cfa)
{
	int first = absent();
	if (first) { /* the start has its record */
		cq.init_site = site;
		cq.init_cfa = cfa;
		cq_init_starts(CQ_Session_init);
		begin_all();
	}
	finalize_late();
	return first;
}
#else
int cq_world_session_opens(const void *site, const void *cfa)
{
	(void)site;
	(void)cfa;
	return 0;
}
#endif

#if !CQ_BRIDGE
/* If the launcher's environment has its number, a simulator rank acts as one from the beginning, and the program's
 * main never begins on it. Otherwise it becomes one in MPI_Init. */

static main_function *program;

static int number_in(const char *name)
{
	const char *s = getenv(name);
	return s != NULL && *s != 0 ? atoi(s) : -1;
}

static int is_last(int sims)
{
	static const char *const names[][2] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, {"PMI_RANK", "PMI_SIZE"},
		{"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		int rank = number_in(names[i][0]), size = number_in(names[i][1]);
		if (rank >= 0 && size > 0)
			return sims < size && rank >= size - sims;
	}
	return 0;
}

static int simulator_main(int argc, char **argv, char **envp)
{
	MPI_Comm parent = MPI_COMM_NULL;
	cq_resolve();
	if (cq_p.Init(NULL, NULL) != MPI_SUCCESS)
		return 2;
	cq_p.Comm_get_parent(&parent);
	if (parent == MPI_COMM_NULL && cq_world_meet(CQ_WORLD_SIM) == CQ_WORLD_SIM)
		cq_bridge_in_init();
	cq_world.ours = 1; /* spawned: not one of the launched ranks */
	return program(argc, argv, envp);
}

CQ_EXPORT int __libc_start_main(main_function *main, int argc, char **argv, main_function *init, void (*fini)(void),
	void (*rtld_fini)(void), void *stack_end)
{
	int (*next)(main_function *, int, char **, main_function *, void (*)(void), void (*)(void), void *);
	void *p = dlsym(RTLD_NEXT, "__libc_start_main");
	memcpy(&next, &p, sizeof next);
	if (sims_named() > 0 && dlsym(RTLD_DEFAULT, "PMPI_Init") != NULL && is_last(sims_named())) {
		program = main;
		main = simulator_main;
	}
	return next(main, argc, argv, init, fini, rtld_fini, stack_end);
}
#endif

#endif
