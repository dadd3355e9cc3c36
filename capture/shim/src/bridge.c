/* A simulator rank: between the ranks of the program and the commq process that simulates the network. It is its own program
 * (with -DCQ_BRIDGE=1), started beside the program's ranks, or one of the ranks that the program was started with, which then
 * never returns from MPI_Init. */
#include "core.h"

#if CQ_SIM

#include <stdlib.h>
#include <unistd.h>

#include "bridge.h"
#include "sim.h"

/* The program's ranks that tell this simulator what they do. */
static int clients(void)
{
	int n = 0;
	for (int r = 0; r < cq_world.apps; r++)
		n += r % cq_world.sims == cq_world.self;
	return n;
}

void cq_bridge_run(void)
{
	cq_sim_event e;
	for (int left = clients(); left > 0;) {
		cq_p.Recv(&e, sizeof e, MPI_BYTE, MPI_ANY_SOURCE, CQ_SIM_TAG, cq_world.channel, MPI_STATUS_IGNORE);
		left -= e.kind == CQ_SIM_LEFT;
	}
}

void cq_bridge_in_init(void)
{
	cq_bridge_run();
	cq_world_part();
	cq_p.Finalize();
	_exit(0);
}

#if CQ_BRIDGE
int main(void)
{
	cq_resolve();
	if (cq_p.Init(NULL, NULL) != MPI_SUCCESS)
		return 2;
	if (cq_world_meet(CQ_WORLD_SIM) == CQ_WORLD_SIM)
		cq_bridge_run();
	cq_world_part();
	cq_p.Finalize();
	return 0;
}
#endif

#endif
