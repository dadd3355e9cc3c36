/* Spin locks. A thread holds one for a few instructions, unless it loses its core meanwhile. */
#ifndef COMMQ_LOCK_H
#define COMMQ_LOCK_H

#include <stdint.h>

#include "compiler.h"

void cq_spin(uint32_t *lock) __attribute__((visibility("hidden")));

CQ_HOT void cq_unspin(uint32_t *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
