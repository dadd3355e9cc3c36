/* The build for simulator ranks: which ranks are the program's, and the calls where the communicator that stands for
 * MPI_COMM_WORLD is not enough. */
#include "recorders.h"

#if CQ_SIM

#include <stdlib.h>
#include <sys/mman.h>

#if CQ_OPENMPI
#define WORLD_F 0
cq_world_state cq_world = {.world_f = WORLD_F, .app_f = WORLD_F};
#else
cq_world_state cq_world = {.app = MPI_COMM_WORLD, .world_f = MPI_COMM_WORLD, .app_f = MPI_COMM_WORLD};
#endif

/* How many of the last ranks are simulators where none came as such. */
static int sims_named(void)
{
	const char *s = getenv("COMMQ_SIM_RANKS");
	long n = s != NULL ? strtol(s, NULL, 10) : 0;
	return n > 0 && n < INT32_MAX ? (int)n : 0;
}

int cq_world_meet(int role)
{
	MPI_Comm parent = MPI_COMM_NULL;
	cq_scratch roles_s = {NULL, 0}, ranks_s = {NULL, 0};
	int rank, size, n = 0;
	cq_world.app = MPI_COMM_WORLD;
	cq_p.Comm_get_parent(&parent);
	if (parent != MPI_COMM_NULL)
		return CQ_WORLD_APP;
	cq_p.Comm_rank(MPI_COMM_WORLD, &rank);
	cq_p.Comm_size(MPI_COMM_WORLD, &size);
	int *roles = cq_scratch_get(&roles_s, (size_t)size * sizeof *roles), *ranks = cq_scratch_get(&ranks_s, (size_t)size * sizeof *ranks);
	if (roles == NULL || ranks == NULL)
		abort(); /* some bytes per rank; the others would wait for ever */
	cq_p.Comm_dup(MPI_COMM_WORLD, &cq_world.channel);
	cq_p.Comm_set_errhandler(cq_world.channel, MPI_ERRORS_RETURN);
	cq_p.Allgather(&role, 1, MPI_INT, roles, 1, MPI_INT, cq_world.channel);
	for (int i = 0; i < size; i++)
		n += roles[i] == CQ_WORLD_SIM;
	for (int i = 0, m = sims_named(); n == 0 && m < size && i < m; i++)
		roles[size - 1 - i] = CQ_WORLD_SIM;
	for (int kind = CQ_WORLD_APP; kind <= CQ_WORLD_SIM; kind++) {
		for (int i = 0; i < size; i++) {
			if (roles[i] != kind)
				continue;
			int k = kind == CQ_WORLD_APP ? cq_world.apps++ : cq_world.sims++;
			if (i == rank)
				cq_world.self = k;
			ranks[cq_world.apps + cq_world.sims - 1] = i;
		}
	}
	role = roles[rank];
	cq_world.ranks = ranks;
	munmap(roles_s.p, roles_s.bytes);
	cq_p.Comm_split(MPI_COMM_WORLD, role, rank, &cq_world.app);
	cq_p.Comm_set_name(cq_world.app, "MPI_COMM_WORLD");
#if CQ_OPENMPI
	cq_world.app_f = cq_p.Comm_c2f(cq_world.app);
#else
	cq_world.app_f = cq_world.app;
#endif
	cq_world.split = 1;
	return role;
}

void cq_world_part(void)
{
	if (!cq_world.split)
		return;
	cq_world.split = 0;
	cq_p.Comm_free(&cq_world.channel);
}

#endif
