#include "lock.h"

#include <sched.h>

void cq_spin(uint32_t *lock)
{
	for (int n = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0; ) {
		while (__atomic_load_n(lock, __ATOMIC_RELAXED) != 0) {
#if defined(__x86_64__)
			__builtin_ia32_pause();
#endif
			if (++n % 100 == 0)
				sched_yield();
		}
	}
}
