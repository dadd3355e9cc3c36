/* Instructions and cycles between calls; see counters.c. */
#ifndef COMMQ_COUNTERS_H
#define COMMQ_COUNTERS_H

#include "state.h"

#pragma GCC visibility push(hidden)

/* Tries whether the machine has the counters: 0, or an errno. */
int cq_count_try(void);
/* Opens the calling thread's counters. Records hold null for those that cannot be opened. */
void cq_count_open(cq_thread *t);
/* A gap begins: at the end of a call. */
void cq_count_begin(cq_thread *t);
/* A gap ends: its counts are added to those of the next record. */
void cq_count_end(cq_thread *t);
void cq_count_close(cq_thread *t);

#pragma GCC visibility pop

#endif
