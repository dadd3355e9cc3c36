/* The clocks: ticks time the calls, CLOCK_MONOTONIC gives their scale, and the thread's CPU clock gives compute
 * times. */
#ifndef COMMQ_CLOCK_H
#define COMMQ_CLOCK_H

#include <time.h>

#include "state.h"

#pragma GCC visibility push(hidden)

CQ_HOT uint64_t cq_monotonic(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

CQ_HOT uint64_t cq_tick(void)
{
#if defined(__x86_64__)
	if (CQ_LIKELY(cq.tsc))
		return __builtin_ia32_rdtsc(); /* x86intrin.h has it by a nicer name, and takes half of the compile time */
	return cq_monotonic();
#elif defined(__aarch64__)
	uint64_t v;
	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return cq_monotonic();
#endif
}

CQ_HOT uint64_t cq_ticks_ns(uint64_t ticks, uint64_t mult)
{
	return (uint64_t)(((unsigned __int128)ticks * mult) >> 32);
}

/* The time that records hold for a tick. */
CQ_HOT uint64_t cq_time(const cq_thread *t, uint64_t tick)
{
	(void)t;
	return cq_hooks != NULL ? cq_hooks->time(t, tick) : tick;
}

/* CPU time of the calling thread, ns. */
int64_t cq_cpu_ns(void);
/* Both clocks at one moment. */
void cq_clock_pair(uint64_t *tick, int64_t *ns);
/* Chooses the clock of ticks and reads all clocks for the first time. */
void cq_clock_start(void);
/* Computes the scale from ticks to ns from the time since cq_clock_start, at least 2 ms. */
void cq_clock_calibrate(void);

#pragma GCC visibility pop

#endif
