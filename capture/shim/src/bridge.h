/* A simulator rank; see bridge.c. */
#ifndef COMMQ_BRIDGE_H
#define COMMQ_BRIDGE_H

/* Kinds of events between the program's ranks and simulator ranks alone; the commq process never sees them. */
enum {
	CQ_BRIDGE_PING = 33, /* to every simulator by a rank that has been waiting for long */
	CQ_BRIDGE_HERE = 34, /* its answer */
	CQ_BRIDGE_OVER = 35, /* to every rank: all have left, and the records are written */
};

#pragma GCC visibility push(hidden)

/* Serves the program's ranks until all have left. */
void cq_bridge_run(void);
/* The same for a rank that the program was started with; it ends the process. */
void cq_bridge_in_init(void) __attribute__((noreturn));

#pragma GCC visibility pop

#endif
