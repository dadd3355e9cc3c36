/* Counters of instructions and cycles; see counters.c. */
#ifndef COMMQ_COUNTERS_H
#define COMMQ_COUNTERS_H

#include "core.h"

#pragma GCC visibility push(hidden)

int cq_count_try(void);
void cq_count_open(cq_thread *t);
void cq_count_begin(cq_thread *t);
void cq_count_end(cq_thread *t);
void cq_count_close(cq_thread *t);

#pragma GCC visibility pop

#endif
