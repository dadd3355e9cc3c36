/* A simulator rank; see bridge.c. */
#ifndef COMMQ_BRIDGE_H
#define COMMQ_BRIDGE_H

#pragma GCC visibility push(hidden)

/* Serves the program's ranks until all have left. */
void cq_bridge_run(void);
/* The same for a rank that the program was started with; it ends the process. */
void cq_bridge_in_init(void) __attribute__((noreturn));

#pragma GCC visibility pop

#endif
