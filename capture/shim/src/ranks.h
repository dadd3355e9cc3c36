/* Separates the program's ranks from simulator ranks; see ranks.c, and world.h for the result. */
#ifndef COMMQ_RANKS_H
#define COMMQ_RANKS_H

enum { CQ_WORLD_APP = 0, CQ_WORLD_SIM = 1 };

#pragma GCC visibility push(hidden)

/* Every process of the job calls this once, after PMPI_Init. Returns this rank's role. Without simulator ranks, and
 * in a spawned process, nothing is split. */
int cq_world_meet(int role);
/* Frees what cq_world_meet has made; call before PMPI_Finalize. */
void cq_world_free(void);
/* As in hooks.h: init_is_done, finalize_is_put_off, session_opens. */
int cq_world_begun(void);
int cq_world_stays(void);
int cq_world_session_opens(const void *site, const void *cfa);

#pragma GCC visibility pop

#endif
