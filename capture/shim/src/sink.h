/* The file behind a thread's records; see sink.c. */
#ifndef COMMQ_SINK_H
#define COMMQ_SINK_H

#include "core.h"

/* Whether the records go into a file. */
#if CQ_SIM
#define CQ_FILED(t) (!(t)->streamed)
#else
#define CQ_FILED(t) 1
#endif

#pragma GCC visibility push(hidden)

int cq_sink_open(cq_thread *t);
void cq_sink_flush(cq_thread *t);
void cq_sink_flush_now(cq_thread *t);
void cq_sink_count(cq_thread *t);
void cq_sink_close(cq_thread *t);
void cq_sink_leave(cq_thread *t);
void cq_sink_disown(cq_thread *t);
void cq_rewrite(cq_thread *t);
void cq_clock_pair(uint64_t *tick, int64_t *ns);
void cq_head_clock(cq_thread *t);
void cq_clock_def(cq_thread *t);
void cq_def_put(cq_thread *t, int what, int64_t id, const void *payload, size_t bytes);
/* Says once in the life of the process what went wrong with the spool, e being an errno, and what comes of it. */
void cq_complain(const char *doing, int e, const char *outcome);

#pragma GCC visibility pop

#endif
