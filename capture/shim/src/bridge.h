/* A simulator rank; see bridge.c. */
#ifndef COMMQ_BRIDGE_H
#define COMMQ_BRIDGE_H

#include <stdint.h>

/* Kinds of events that only the program's ranks and simulator ranks exchange; the commq process never sees them. */
enum {
	CQ_BRIDGE_PING = 33, /* to every simulator from a rank that has been waiting for long */
	CQ_BRIDGE_HERE = 34, /* its answer */
	CQ_BRIDGE_OVER = 35, /* to every rank: all have left, and the records are written */
};

#pragma GCC visibility push(hidden)

/* Sleeps briefly between two polls of a channel that has been idle for idle_ns: see sim.c. */
void cq_sim_rest(uint64_t idle_ns);
/* Serves the program's ranks until all have left. */
void cq_bridge_run(void);
/* The same for a rank that the program was started with; ends the process. */
void cq_bridge_in_init(void) __attribute__((noreturn));

#pragma GCC visibility pop

#endif
