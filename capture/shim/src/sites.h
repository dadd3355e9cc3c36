/* Numbers of call sites; see sites.c. */
#ifndef COMMQ_SITES_H
#define COMMQ_SITES_H

#include "spooling.h"

#pragma GCC visibility push(hidden)

/* Prepares to find cq.stack frames; returns 0 if libunwind, which that needs, is missing. */
int cq_sites_init(void);
uint32_t cq_site_slow(cq_thread *t);

/* The number of the call site. */
CQ_HOT uint32_t cq_site(cq_thread *t)
{
	uint64_t key = (uint64_t)(uintptr_t)t->site;
	cq_site_slot *s = &t->sites[cq_hash_key(key) % (sizeof t->sites / sizeof t->sites[0])];
	return CQ_LIKELY(s->key == key) ? s->number : cq_site_slow(t);
}

#pragma GCC visibility pop

#endif
